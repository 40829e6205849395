//! A realm in one test, for a game's own tests: one base, two cells on either side of a boundary at x = 0, and players
//! with the client SDK, wired in memory. It starts no server and no thread, uses no socket, and its clock advances only
//! by [`TestRealm::pass`] and [`TestRealm::until`]; so a test takes milliseconds and always runs the same.
//!
//! The owners, the clients, the database and the ledger are those of a real realm; log, bus and login are replaced, and
//! the store is in memory. No message is lost or late, and [`TestRealm::crash`] kills an owner, which recovers from its
//! log. What a game stores is in the database, and what it orders is booked, within 200 ms of the realm's time.

mod clients;
mod database;
mod outputs;
mod station;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use annals_base::{BaseInput, BaseRole, DuplicateLogin};
use annals_cell::{CellInput, CellRole};
use annals_client::{Attempt, ClientCore, Credentials, Event, Input as ClientInput, Millis, What};
use annals_def::{Schema, Style, Value, check_dir, render, typed::Typed};
use annals_event::{Batch, Call, Link, Outcome, OwnerState};
use annals_host::service::{FIRST_SPACE, Game};
use annals_ids::{
    Address, CallNumber, DatabaseId, Direction, EntityId, Epoch, OwnerId, OwnerKind, Part, Position, SpaceId, TypeId,
    WallTime, WorldTime,
};
use annals_node::{
    Behaviour, ConnectionId, Input, LifecycleEvent,
    outbound::{OutboundAnswer, OutboundCall, answered},
    time::{Mono, Now},
};
use annals_wire::{
    CellArea, Space, SpaceMap,
    bus::{CallMessage, Envelope, Message},
    client::{CloseReason, Secret},
};

use database::Database;
use station::{Station, fold, read_batch};

/// The base.
pub const BASE: OwnerId = OwnerId(10);

/// The cell for places with a negative x.
pub const WEST: OwnerId = OwnerId(20);

/// The cell for all other places.
pub const EAST: OwnerId = OwnerId(21);

/// An owner id that stands for another base.
const ASKER: OwnerId = OwnerId(11);

/// Milliseconds per time step.
const STEP_MS: u64 = 20;

/// Milliseconds between two looks of the db at the logs.
const FOLD_EVERY_MS: u64 = 100;

/// A realm of one base and two cells, and its players. A player is the number that [`TestRealm::join`] returns.
pub struct TestRealm {
    /// The compiled definitions.
    pub schema: Arc<Schema>,
    behaviour: Arc<dyn Behaviour>,
    account: TypeId,
    base: Station<BaseRole>,
    cells: BTreeMap<OwnerId, Station<CellRole>>,
    database: Database,
    /// The players, in the order in which they joined.
    pub players: Vec<Player>,
    /// How a log-in to an account that has a client is handled.
    pub duplicate: DuplicateLogin,
    now: u64,
    secrets: u64,
    asked: u64,
    answers: Vec<Outcome>,
    outbound: Vec<OutboundCall>,
    /// The files that the game can send to clients, by their paths in the folder of downloads.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// A client with the events that it received.
pub struct Player {
    /// The client: what it sees, and which entity it controls.
    pub core: ClientCore,
    account: DatabaseId,
    /// The lost connection that the client has not noticed.
    cut_off: Option<Attempt>,
    /// What it received, oldest first.
    pub events: Vec<Event>,
    connection: Option<(ConnectionId, Attempt)>,
    said_hello: bool,
    pending: Option<(Attempt, Secret)>,
}

impl TestRealm {
    /// A realm of the definitions in a folder, with the behaviour that `game` gives for them, as its services would get
    /// it. Players log in to entities of the type `account`.
    ///
    /// # Panics
    /// If the definitions have errors, have no such type, or are not those that the game was generated from.
    ///
    /// ```no_run
    /// # use annals_reference::*;
    /// use std::path::Path;
    ///
    /// // `game` of the game's own crate, by which its services get the behaviour.
    /// # fn game(_: &std::sync::Arc<def::Schema>) -> Result<std::sync::Arc<dyn Behaviour>, node::typed::OtherSchema> { panic!() }
    /// let definitions = Path::new(env!("CARGO_MANIFEST_DIR")).join("defs");
    /// let realm = TestRealm::open(&definitions, "Account", game);
    /// ```
    pub fn open(world: &Path, account: &str, game: Game) -> Self {
        let (schema, diagnostics) = check_dir(world);
        let Some(schema) = schema else {
            panic!("{}: {}", world.display(), render(&diagnostics, Style::Plain));
        };
        let schema = Arc::new(schema);
        let behaviour = game(&schema).unwrap_or_else(|other| panic!("{other}"));
        let account = type_named(&schema, account);
        Self::new(schema, behaviour, account)
    }

    /// A realm of compiled definitions, with this behaviour. Players log in to entities of the type `account`.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # struct MyGame;
    /// # impl hero::CellBehaviour for MyGame {}
    /// # hooks!(MyGame: cell);
    /// use std::sync::Arc;
    ///
    /// let schema = schema();
    /// let game = Arc::new(Dispatcher::new(&schema, MyGame)?);
    /// let mut realm = TestRealm::new(schema, game, account::TYPE);
    /// let player = realm.join();
    /// # Ok::<(), node::typed::OtherSchema>(())
    /// ```
    pub fn new(schema: Arc<Schema>, behaviour: Arc<dyn Behaviour>, account: TypeId) -> Self {
        let now = 1_000_000;
        let terms = (&schema, &behaviour);
        let at = moment(now);
        let cells = [WEST, EAST].map(|owner| (owner, Station::begin(terms, owner, at, CellRole::take_over)));
        let mut stage = Self {
            base: Station::begin(terms, BASE, at, BaseRole::take_over),
            cells: cells.into(),
            database: Database::new(&schema, at),
            schema,
            behaviour,
            account,
            players: Vec::new(),
            duplicate: DuplicateLogin::Replace,
            now,
            secrets: 0,
            asked: 0,
            answers: Vec::new(),
            outbound: Vec::new(),
            files: BTreeMap::new(),
        };
        for (owner, kind) in [
            (BASE, OwnerKind::Base),
            (WEST, OwnerKind::Cell),
            (EAST, OwnerKind::Cell),
        ] {
            stage.database.grant(owner, kind, Epoch(1));
        }
        stage.draw_map();
        for owner in [BASE, WEST, EAST] {
            stage.get_ready(owner);
        }
        stage
    }

    fn draw_map(&mut self) {
        let now = self.now();
        let out = self.base.give(now, Input::Role(BaseInput::Map(map())));
        self.carry_out(BASE, out);
        for owner in [WEST, EAST] {
            self.give_cell(owner, Input::Role(CellInput::Map(map())));
        }
    }

    /// Informs an owner that it is ready to serve, as its service does after a take-over.
    fn get_ready(&mut self, owner: OwnerId) {
        let is_bootstrap = owner == BASE;
        let ready = LifecycleEvent::Ready { is_bootstrap };
        let now = self.now();
        match self.cells.get_mut(&owner) {
            Some(_) => self.give_cell(owner, Input::LifecycleEvent(ready)),
            None => {
                let out = self.base.give(now, Input::LifecycleEvent(ready));
                self.carry_out(BASE, out);
            }
        }
    }

    /// Adds a client, which logs in to an account of its own, and returns its number. [`entered`](Self::entered) waits
    /// until it plays.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let realm = &mut scene.realm;
    /// let (ann, bob) = (realm.join(), realm.join());
    /// realm.entered(ann, "Avatar");
    /// ```
    pub fn join(&mut self) -> usize {
        self.join_as(self.players.len())
    }

    /// Adds a client that logs in to this account.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let realm = &mut scene.realm;
    /// // Another client of the first player's account replaces the first one.
    /// let again = realm.join_as(0);
    /// realm.entered(again, "Avatar");
    /// ```
    pub fn join_as(&mut self, account: usize) -> usize {
        let number = self.players.len();
        let credentials = Credentials::password(format!("player{number}"), "secret");
        let mut core = ClientCore::new(Arc::clone(&self.schema), credentials, number as u64);
        core.start(self.millis());
        self.players.push(Player {
            core,
            account: self.database.account(account, self.account),
            cut_off: None,
            events: Vec::new(),
            connection: None,
            said_hello: false,
            pending: None,
        });
        self.drain(number);
        number
    }

    /// Breaks a client's connection for good.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player) = (&mut scene.realm, scene.player);
    /// realm.lose(player);
    /// // The session ends after half a minute.
    /// realm.pass(31_000);
    /// assert_eq!(realm.sessions(), 0);
    /// ```
    pub fn lose(&mut self, player: usize) {
        self.hang_up(player);
        self.players[player].core.leave();
        self.drain(player);
    }

    /// Removes the clients; none of them may be connected.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player) = (&mut scene.realm, scene.player);
    /// realm.lose(player);
    /// realm.forget_players();
    /// assert!(realm.players.is_empty());
    /// ```
    pub fn forget_players(&mut self) {
        assert!(self.players.iter().all(|player| player.connection.is_none()));
        self.players.clear();
    }

    /// Sessions of the base, with and without a connection.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// assert_eq!(scene.realm.sessions(), 1);
    /// ```
    pub fn sessions(&self) -> usize {
        self.base.owner.role().sessions()
    }

    /// Waits until a player controls an entity of this type in the world, and returns the entity.
    ///
    /// # Panics
    /// If that does not happen within 20 s of the realm's time, or there is no such type.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let realm = &mut scene.realm;
    /// let player = realm.join();
    /// let avatar = realm.entered(player, "Avatar");
    /// ```
    pub fn entered(&mut self, player: usize, entity_type: &str) -> EntityId {
        let type_id = type_named(&self.schema, entity_type);
        self.until("the player is in the world", |realm| {
            realm.in_world(player, type_id).is_some()
        });
        self.in_world(player, type_id)
            .expect("invariant: it was there just now")
    }

    /// The entity of this type that a player controls, if it has a place.
    fn in_world(&self, player: usize, type_id: TypeId) -> Option<EntityId> {
        let core = &self.players[player].core;
        let (entity, _) = core.controls().filter(|(_, controlled)| *controlled == type_id)?;
        core.entity(entity).and_then(|seen| seen.place).map(|_| entity)
    }

    /// The entities of this type that a player sees, in the order of their ids.
    ///
    /// # Panics
    /// If there is no such type.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player) = (&mut scene.realm, scene.player);
    /// let monsters = realm.seen(player, "Monster");
    /// assert_eq!(monsters.len(), 1);
    /// ```
    pub fn seen(&self, player: usize, entity_type: &str) -> Vec<EntityId> {
        let type_id = type_named(&self.schema, entity_type);
        let entities = self.players[player].core.view(Part::Cell).entities().iter();
        let of_type = entities.filter(|(_, seen)| seen.type_id == type_id);
        of_type.map(|(entity, _)| *entity).collect()
    }

    /// Where a player's client sees an entity; `None` if it does not see it.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player, avatar) = (&mut scene.realm, scene.player, scene.avatar);
    /// assert_eq!(realm.position(player, avatar).map(|at| at.x), Some(5.0));
    /// ```
    pub fn position(&self, player: usize, entity: EntityId) -> Option<Position> {
        let (position, _) = self.players[player].core.entity(entity)?.place?;
        Some(position)
    }

    /// A property of an entity, as a player's client has it; `None` if the client has not received it.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player, avatar) = (&mut scene.realm, scene.player, scene.avatar);
    /// assert_eq!(realm.read::<i32>(player, avatar, "hp"), Some(10));
    /// ```
    pub fn read<T: Typed>(&self, player: usize, entity: EntityId, property: &'static str) -> Option<T> {
        annals_client::typed::read(&self.players[player].core, entity, property)
    }

    /// The arguments of each call of an entity's client method that a player's client received, oldest first.
    /// Empty if the client neither sees nor controls the entity now.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| own.to_all_clients().on_say("Hello".to_owned()));
    /// # let (realm, player, avatar) = (&mut scene.realm, scene.player, scene.avatar);
    /// realm.pass(300);
    /// let hello = Value::Unicode("Hello".to_owned());
    /// assert_eq!(realm.received(player, avatar, "onSay"), [[hello]]);
    /// ```
    pub fn received(&self, player: usize, entity: EntityId, method: &str) -> Vec<Vec<Value>> {
        let Player { core, events, .. } = &self.players[player];
        let controlled = core.controls().filter(|(controlled, _)| *controlled == entity);
        let type_id = match core.entity(entity) {
            Some(seen) => Some(seen.type_id),
            None => controlled.map(|(_, type_id)| type_id),
        };
        let entity_type = type_id.and_then(|type_id| self.schema.entity_type(type_id));
        let meant = entity_type.and_then(|found| found.client_method_named(method));
        let calls = events.iter().filter_map(|event| match event {
            Event::Shown(shown) if shown.entity == entity => match &shown.what {
                What::Called { method, args } if meant.is_some_and(|meant| meant.index == *method) => {
                    Some(args.clone())
                }
                What::Called { .. } | What::Changed { .. } | What::Replied { .. } => None,
            },
            _ => None,
        });
        calls.collect()
    }

    /// Calls a method of an entity, as a client.
    ///
    /// # Panics
    /// If the client may not call it, does not see the entity, or gave arguments of other types.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player, avatar) = (&mut scene.realm, scene.player, scene.avatar);
    /// realm.call(player, avatar, Part::Cell, "act", &[]);
    /// realm.pass(200);
    /// ```
    pub fn call(&mut self, player: usize, entity: EntityId, part: Part, method: &str, args: &[Value]) -> CallNumber {
        let now = self.millis();
        let called = self.players[player].core.call(now, entity, part, method, args);
        self.drain(player);
        called.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Moves a client's entity.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player, avatar) = (&mut scene.realm, scene.player, scene.avatar);
    /// let there = Position { x: 6.0, y: 0.0, z: 2.0 };
    /// realm.stand(player, there);
    /// realm.pass(200);
    /// assert_eq!(realm.position(player, avatar), Some(there));
    /// ```
    pub fn stand(&mut self, player: usize, position: Position) {
        let now = self.millis();
        let moved = self.players[player].core.move_to(now, position, Direction::default());
        assert!(moved, "player {player} is playing, and moves its entity");
        self.drain(player);
    }

    /// Loses the process that holds this owner, and lets another take it over. Clients of the base reconnect by
    /// themselves.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player) = (&mut scene.realm, scene.player);
    /// for owner in [WEST, EAST, BASE] {
    ///     realm.crash(owner);
    /// }
    /// let avatar = realm.entered(player, "Avatar");
    /// ```
    pub fn crash(&mut self, owner: OwnerId) {
        let now = self.now();
        let terms = (&self.schema, &self.behaviour);
        match self.cells.get_mut(&owner) {
            Some(cell) => {
                cell.crash(terms, now, BTreeMap::new(), CellRole::take_over);
                self.database.grant(owner, OwnerKind::Cell, cell.epoch);
            }
            None => {
                self.base.crash(terms, now, self.database.keys(), BaseRole::take_over);
                self.database.grant(BASE, OwnerKind::Base, self.base.epoch);
                for player in 0..self.players.len() {
                    self.disconnect(player, CloseReason::Lost);
                }
            }
        }
        self.draw_map();
        self.get_ready(owner);
    }

    /// Calls the hooks of an event of the realm's life in every part: that it is about to stop, or stops.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let realm = &mut scene.realm;
    /// use annals_reference::node::{LifecycleEvent, ShutDown};
    ///
    /// realm.announce(LifecycleEvent::ShuttingDown);
    /// realm.pass(100);
    /// realm.announce(LifecycleEvent::ShutDown(ShutDown::Parting));
    /// ```
    pub fn announce(&mut self, event: LifecycleEvent) {
        let now = self.now();
        let out = self.base.give(now, Input::LifecycleEvent(event));
        self.carry_out(BASE, out);
        for owner in [WEST, EAST] {
            self.give_cell(owner, Input::LifecycleEvent(event));
        }
    }

    /// Calls of behaviour to services outside the realm since the last time, oldest first. A call comes again until it
    /// is answered.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| own.context.call_outside("payments", b"order 17".to_vec(), 30_000, (1, Vec::new())));
    /// # let realm = &mut scene.realm;
    /// realm.pass(100);
    /// let calls = realm.outbound();
    /// assert_eq!(calls[0].service, "payments");
    /// ```
    pub fn outbound(&mut self) -> Vec<OutboundCall> {
        std::mem::take(&mut self.outbound)
    }

    /// Answers such a call, with a status such as 200, and a body.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| own.context.call_outside("payments", b"order 17".to_vec(), 30_000, (1, Vec::new())));
    /// # let realm = &mut scene.realm;
    /// realm.pass(100);
    /// let call = realm.outbound().remove(0);
    /// realm.answer_outbound(&call, 200, b"paid");
    /// ```
    pub fn answer_outbound(&mut self, call: &OutboundCall, status: u16, body: &[u8]) {
        let OutboundCall { from, number, .. } = *call;
        let outcome = answered(status, body.to_vec());
        let answer = OutboundAnswer { from, number, outcome };
        let now = self.now();
        let out = self.base.give(now, Input::Outbound(answer.clone()));
        self.carry_out(BASE, out);
        for cell in [WEST, EAST] {
            self.give_cell(cell, Input::Outbound(answer.clone()));
        }
    }

    /// Breaks a client's connection, until [`TestRealm::reconnect`].
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player) = (&mut scene.realm, scene.player);
    /// realm.cut_off(player);
    /// realm.pass(1_000);
    /// realm.reconnect(player);
    /// realm.pass(500);
    /// assert_eq!(realm.sessions(), 1);
    /// ```
    pub fn cut_off(&mut self, player: usize) {
        if let Some((connection, attempt)) = self.players[player].connection.take() {
            self.players[player].cut_off = Some(attempt);
            self.give_base(BaseInput::Closed { connection });
        }
    }

    /// Lets the client notice that its connection was lost, and resume.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player) = (&mut scene.realm, scene.player);
    /// realm.cut_off(player);
    /// realm.reconnect(player);
    /// realm.entered(player, "Avatar");
    /// ```
    pub fn reconnect(&mut self, player: usize) {
        if let Some(attempt) = self.players[player].cut_off.take() {
            let reason = CloseReason::Lost;
            self.give_core(player, ClientInput::Disconnected { attempt, reason });
        }
    }

    /// Calls a method of an entity, as a client, if it is in view.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player, monster) = (&mut scene.realm, scene.player, scene.monster.entity);
    /// // No client may call this, so nothing happens.
    /// realm.try_call(player, monster, Part::Cell, "takeDamage");
    /// ```
    pub fn try_call(&mut self, player: usize, entity: EntityId, part: Part, method: &str) {
        let now = self.millis();
        // A call to an entity that is not in view, or has no such method, is ignored.
        let _ = self.players[player].core.call(now, entity, part, method, &[]);
        self.drain(player);
    }

    /// Advances time, by as many steps of 20 ms as are needed.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let realm = &mut scene.realm;
    /// let before = realm.millis();
    /// realm.pass(1_000);
    /// assert_eq!(realm.millis().0 - before.0, 1_000);
    /// ```
    pub fn pass(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds.div_ceil(STEP_MS) {
            self.now += STEP_MS * 1_000;
            let now = self.now();
            let out = self.base.give(now, Input::Time);
            self.carry_out(BASE, out);
            for owner in [WEST, EAST] {
                self.give_cell(owner, Input::Time);
            }
            if (self.now / 1_000).is_multiple_of(FOLD_EVERY_MS) {
                self.look_at_logs();
            }
            for player in 0..self.players.len() {
                let now = self.millis();
                self.players[player].core.tick(now);
                self.drain(player);
            }
        }
    }

    /// Advances time until a condition holds.
    ///
    /// # Panics
    /// If that does not happen within 20 s of the realm's time.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, player) = (&mut scene.realm, scene.player);
    /// realm.until("a monster is seen", |realm| !realm.seen(player, "Monster").is_empty());
    /// ```
    pub fn until(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        for _ in 0..1_000 {
            if is_so(self) {
                return;
            }
            self.pass(STEP_MS);
        }
        panic!("{what}: not after {} s", 1_000 * STEP_MS / 1_000);
    }

    /// Calls a method of an entity's base part, as another owner's entity would, and returns the answers.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, avatar) = (&mut scene.realm, scene.avatar);
    /// let answers = realm.ask_base(avatar, "act", Vec::new());
    /// assert_eq!(answers, [Ok(Vec::new())]);
    /// ```
    pub fn ask_base(&mut self, entity: EntityId, method: &str, args: Vec<Value>) -> Vec<Outcome> {
        let image = self.base.owner.state().entities[&entity].type_id;
        let found = self.schema.entity_type(image);
        let found = found.and_then(|found| found.base_method_named(method));
        let found = found.unwrap_or_else(|| panic!("the entity has no base method {method}"));
        self.asked += 1;
        let asker = Address::Base(EntityId(u64::from(ASKER.0) << 40));
        let call = CallMessage {
            link: Link {
                from: asker,
                to: Address::Base(entity),
            },
            from_home: ASKER,
            to_home: BASE,
            number: CallNumber(self.asked),
            is_oldest: false,
            trace: [0; 16],
            call: Call::Method {
                method: found.index,
                args,
                wants_reply: true,
            },
        };
        let envelope = Envelope {
            from: ASKER,
            epoch: Epoch(1),
            message: Message::Call(call),
        };
        let now = self.now();
        let out = self.base.give(now, Input::Bus(envelope));
        self.carry_out(BASE, out);
        self.pass(200);
        std::mem::take(&mut self.answers)
    }

    /// The state of an owner.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let (realm, avatar) = (&mut scene.realm, scene.avatar);
    /// let image = &realm.state(EAST).entities[&avatar];
    /// assert_eq!(image.type_id, avatar::TYPE);
    /// ```
    pub fn state(&self, owner: OwnerId) -> &OwnerState {
        match self.cells.get(&owner) {
            Some(cell) => cell.owner.state(),
            None => self.base.owner.state(),
        }
    }

    /// Number of entities of a type that are real on these owners.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// assert_eq!(scene.realm.count(&[WEST, EAST], "Monster"), 1);
    /// ```
    pub fn count(&self, owners: &[OwnerId], entity_type: &str) -> usize {
        let type_id = type_named(&self.schema, entity_type);
        let images = owners.iter().flat_map(|owner| self.state(*owner).entities.values());
        images.filter(|image| image.type_id == type_id).count()
    }

    /// All logged batches, by owner.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// let events: usize = scene.realm.batches().map(|batch| batch.events.len()).sum();
    /// assert!(events > 0);
    /// ```
    pub fn batches(&self) -> impl Iterator<Item = Batch> {
        let cells = self.cells.values().flat_map(|cell| &cell.log);
        cells.chain(&self.base.log).map(|bytes| read_batch(bytes))
    }

    /// State that an owner's log folds into.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// // What would be recovered is what is.
    /// assert_eq!(scene.realm.folded(EAST).entities, scene.realm.state(EAST).entities);
    /// ```
    pub fn folded(&self, owner: OwnerId) -> OwnerState {
        match self.cells.get(&owner) {
            Some(cell) => fold(owner, Part::Cell, &cell.log),
            None => fold(owner, Part::Base, &self.base.log),
        }
    }

    /// The counters of the base.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// let counters = scene.realm.base_counters();
    /// ```
    pub fn base_counters(&self) -> annals_base::Counters {
        self.base.owner.role().counters()
    }

    fn now(&self) -> Now {
        moment(self.now)
    }

    /// The present, in the time of clients.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// let now = scene.realm.millis();
    /// scene.realm.pass(20);
    /// assert!(scene.realm.millis() > now);
    /// ```
    pub fn millis(&self) -> Millis {
        Millis(self.now / 1_000)
    }

    fn give_base(&mut self, input: BaseInput) {
        let now = self.now();
        let out = self.base.give(now, Input::Role(input));
        self.carry_out(BASE, out);
    }

    fn give_cell(&mut self, owner: OwnerId, input: Input<CellInput>) {
        let now = self.now();
        let cell = self.cells.get_mut(&owner);
        let out = cell
            .expect("there are no owners but the base and two cells")
            .give(now, input);
        self.carry_out(owner, out);
    }
}

fn type_named(schema: &Schema, name: &str) -> TypeId {
    let found = schema.type_named(name);
    found
        .unwrap_or_else(|| panic!("the definitions have no entity type {name}"))
        .id
}

fn moment(micros: u64) -> Now {
    Now {
        mono: Mono(micros),
        wall: WallTime(micros / 1_000),
        world: WorldTime(micros / 1_000),
    }
}

fn map() -> SpaceMap {
    let (west, east) = (CellArea::everywhere(WEST), CellArea::everywhere(EAST));
    let space = Space {
        cells: vec![CellArea { east: 0.0, ..west }, CellArea { west: 0.0, ..east }],
        aoi_radius: 200.0,
        aoi_hysteresis: 5.0,
        ghost_distance: 205.0,
    };
    SpaceMap {
        version: 1,
        spaces: (0..3)
            .map(|more| (SpaceId(FIRST_SPACE.0 + more), space.clone()))
            .collect(),
        bootstrap: Some(BASE),
        bases: [BASE].into(),
        cells: [WEST, EAST].into(),
    }
}
