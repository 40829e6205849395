//! A realm in one test, for a game's own tests: one base, two cells on either side of a boundary at x = 0, and players
//! with the client SDK, wired in memory. It starts no server and no thread, uses no socket, and its clock advances only
//! by [`TestRealm::pass`] and [`TestRealm::until`]; so a test takes milliseconds and always runs the same.
//!
//! The owners and the clients are those of a real realm; log, bus and login are replaced. No message is lost or late, and
//! [`TestRealm::crash`] kills an owner, which recovers from its log. Not replaced are the database and the ledger: a
//! game that queries or orders something there panics here.

mod station;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use annals_base::{BaseInput, BaseRole, CheckedOut, DownloadContent, DuplicateLogin, OpenSession, PreparedDownload};
use annals_cell::{CellInput, CellRole};
use annals_client::{
    Attempt, ClientCore, Credentials, Event, Input as ClientInput, Millis, Output as ClientOutput, What,
};
use annals_def::{Schema, Style, Value, check_dir, render, typed::Typed};
use annals_event::{Batch, Call, Link, Outcome, OwnerState};
use annals_host::service::{FIRST_SPACE, Game};
use annals_ids::{
    Address, CallNumber, DatabaseId, Direction, EntityId, Epoch, OwnerId, Part, Position, SessionId, TypeId, WallTime,
    WorldTime,
};
use annals_node::{
    Behaviour, ConnectionId, Input, NotOpened, Output,
    download::{Download, DownloadSource},
    inquiry::Inquiry,
    outbound::{OutboundAnswer, OutboundCall, answered},
    time::{Mono, Now},
};
use annals_wire::{
    CellArea, Space, SpaceMap,
    bus::{CallMessage, Envelope, Message},
    client::{
        CloseReason, Hello, Located, LoginAnswer, LoginRefusal, Secret, Ticket, ToServer, ToServerDatagram, value_hash,
    },
};

use station::{Station, WRITTEN, fold, read_batch};

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

/// A realm of one base and two cells, and its players. A player is the number that [`TestRealm::join`] returns.
pub struct TestRealm {
    /// The compiled definitions.
    pub schema: Arc<Schema>,
    behaviour: Arc<dyn Behaviour>,
    account: TypeId,
    base: Station<BaseRole>,
    cells: BTreeMap<OwnerId, Station<CellRole>>,
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
    pub fn new(schema: Arc<Schema>, behaviour: Arc<dyn Behaviour>, account: TypeId) -> Self {
        let now = 1_000_000;
        let terms = (&schema, &behaviour);
        let at = moment(now);
        let cells = [WEST, EAST].map(|owner| (owner, Station::begin(terms, owner, at, CellRole::take_over)));
        let mut stage = Self {
            base: Station::begin(terms, BASE, at, BaseRole::take_over),
            cells: cells.into(),
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
        stage.draw_map();
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

    /// Adds a client, which logs in to an account of its own.
    pub fn join(&mut self) -> usize {
        self.join_as(self.players.len())
    }

    /// Adds a client that logs in to this account.
    pub fn join_as(&mut self, account: usize) -> usize {
        let number = self.players.len();
        let credentials = Credentials::password(format!("player{number}"), "secret");
        let mut core = ClientCore::new(Arc::clone(&self.schema), credentials, number as u64);
        core.start(self.millis());
        self.players.push(Player {
            core,
            account: DatabaseId(account as u64 + 1),
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
    pub fn lose(&mut self, player: usize) {
        self.hang_up(player);
        self.players[player].core.leave();
        self.drain(player);
    }

    /// Removes the clients; none of them may be connected.
    pub fn forget_players(&mut self) {
        assert!(self.players.iter().all(|player| player.connection.is_none()));
        self.players.clear();
    }

    /// Sessions of the base, with and without a connection.
    pub fn sessions(&self) -> usize {
        self.base.owner.role().sessions()
    }

    /// Waits until a player controls an entity of this type in the world, and returns the entity.
    ///
    /// # Panics
    /// If that does not happen within 20 s of the realm's time, or there is no such type.
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
    pub fn seen(&self, player: usize, entity_type: &str) -> Vec<EntityId> {
        let type_id = type_named(&self.schema, entity_type);
        let entities = self.players[player].core.view(Part::Cell).entities().iter();
        let of_type = entities.filter(|(_, seen)| seen.type_id == type_id);
        of_type.map(|(entity, _)| *entity).collect()
    }

    /// Where a player's client sees an entity; `None` if it does not see it.
    pub fn position(&self, player: usize, entity: EntityId) -> Option<Position> {
        let (position, _) = self.players[player].core.entity(entity)?.place?;
        Some(position)
    }

    /// A property of an entity, as a player's client has it; `None` if the client has not received it.
    pub fn read<T: Typed>(&self, player: usize, entity: EntityId, property: &'static str) -> Option<T> {
        annals_client::typed::read(&self.players[player].core, entity, property)
    }

    /// The arguments of each call of an entity's client method that a player's client received, oldest first.
    /// Empty if the client neither sees nor controls the entity now.
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
                What::Called { .. } | What::Changed { .. } => None,
            },
            _ => None,
        });
        calls.collect()
    }

    /// Calls a method of an entity, as a client.
    ///
    /// # Panics
    /// If the client may not call it, does not see the entity, or gave arguments of other types.
    pub fn call(&mut self, player: usize, entity: EntityId, part: Part, method: &str, args: &[Value]) -> CallNumber {
        let now = self.millis();
        let called = self.players[player].core.call(now, entity, part, method, args);
        self.drain(player);
        called.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Moves a client's entity.
    pub fn stand(&mut self, player: usize, position: Position) {
        let moved = self.players[player].core.move_to(position, Direction::default());
        assert!(moved, "player {player} is playing");
        self.drain(player);
    }

    /// Loses the process that holds this owner, and lets another take it over.
    pub fn crash(&mut self, owner: OwnerId) {
        let now = self.now();
        let terms = (&self.schema, &self.behaviour);
        match self.cells.get_mut(&owner) {
            Some(cell) => cell.crash(terms, now, CellRole::take_over),
            None => {
                self.base.crash(terms, now, BaseRole::take_over);
                for player in 0..self.players.len() {
                    self.disconnect(player, CloseReason::Lost);
                }
            }
        }
        self.draw_map();
    }

    /// Calls of behaviour to services outside the realm since the last time, oldest first. A call comes again until it is
    /// answered.
    pub fn outbound(&mut self) -> Vec<OutboundCall> {
        std::mem::take(&mut self.outbound)
    }

    /// Answers such a call, with a status such as 200, and a body.
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
    pub fn cut_off(&mut self, player: usize) {
        if let Some((connection, attempt)) = self.players[player].connection.take() {
            self.players[player].cut_off = Some(attempt);
            self.give_base(BaseInput::Closed { connection });
        }
    }

    /// Lets the client notice that its connection was lost, and resume.
    pub fn reconnect(&mut self, player: usize) {
        if let Some(attempt) = self.players[player].cut_off.take() {
            let reason = CloseReason::Lost;
            self.tell(player, ClientInput::Disconnected { attempt, reason });
        }
    }

    /// Calls a method of an entity, as a client, if it is in view.
    pub fn try_call(&mut self, player: usize, entity: EntityId, part: Part, method: &str) {
        let now = self.millis();
        // A call to an entity that is not in view, or has no such method, is ignored.
        let _ = self.players[player].core.call(now, entity, part, method, &[]);
        self.drain(player);
    }

    /// Advances time.
    pub fn pass(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds.div_ceil(STEP_MS) {
            self.now += STEP_MS * 1_000;
            let now = self.now();
            let out = self.base.give(now, Input::Time);
            self.carry_out(BASE, out);
            for owner in [WEST, EAST] {
                self.give_cell(owner, Input::Time);
            }
            for player in 0..self.players.len() {
                let now = self.millis();
                self.players[player].core.tick(now);
                self.drain(player);
            }
        }
    }

    /// Advances time until a condition holds.
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
    pub fn state(&self, owner: OwnerId) -> &OwnerState {
        match self.cells.get(&owner) {
            Some(cell) => cell.owner.state(),
            None => self.base.owner.state(),
        }
    }

    /// Number of entities of a type that are real on these owners.
    pub fn count(&self, owners: &[OwnerId], entity_type: &str) -> usize {
        let type_id = type_named(&self.schema, entity_type);
        let images = owners.iter().flat_map(|owner| self.state(*owner).entities.values());
        images.filter(|image| image.type_id == type_id).count()
    }

    /// All logged batches, by owner.
    pub fn batches(&self) -> impl Iterator<Item = Batch> {
        let cells = self.cells.values().flat_map(|cell| &cell.log);
        cells.chain(&self.base.log).map(|bytes| read_batch(bytes))
    }

    /// State that an owner's log folds into.
    pub fn folded(&self, owner: OwnerId) -> OwnerState {
        match self.cells.get(&owner) {
            Some(cell) => fold(owner, Part::Cell, &cell.log),
            None => fold(owner, Part::Base, &self.base.log),
        }
    }

    /// The counters of the base.
    pub fn base_counters(&self) -> annals_base::Counters {
        self.base.owner.role().counters()
    }

    fn now(&self) -> Now {
        moment(self.now)
    }

    /// The present, in the time of clients.
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

    /// Performs an owner's outputs, as its shell would.
    fn carry_out(&mut self, from: OwnerId, outputs: Vec<Output>) {
        let now = self.now();
        for output in outputs {
            match output {
                Output::Send { to, envelope } if to == BASE => {
                    let out = self.base.give(now, Input::Bus(envelope));
                    self.carry_out(BASE, out);
                }
                Output::Send { to: ASKER, envelope } => {
                    if let Message::Call(CallMessage {
                        call: Call::Reply { outcome, .. },
                        ..
                    }) = envelope.message
                        && self.answers.is_empty()
                    {
                        self.answers.push(outcome);
                    }
                }
                Output::Send { to, envelope } => self.give_cell(to, Input::Bus(envelope)),
                Output::Frame {
                    connection,
                    bytes: body,
                } => {
                    self.give_player(connection, |attempt| ClientInput::Frame { attempt, body });
                }
                Output::Datagram { connection, bytes } => {
                    self.give_player(connection, |attempt| ClientInput::Datagram { attempt, bytes });
                }
                Output::Close { connection, reason } => {
                    if let Some(player) = self.player_on(connection) {
                        self.disconnect(player, reason);
                    }
                }
                Output::Reject { rejection, .. } => panic!("a client was rejected: {rejection}"),
                Output::SessionOpened { request, opened } => self.opened(request, &opened),
                Output::WantIds => panic!("owner {from} has a million ids"),
                Output::Outbound(call) => self.outbound.push(call),
                Output::Download(download) => self.download(download),
                Output::BackgroundFrame {
                    connection,
                    bytes: body,
                } => {
                    self.give_player(connection, |attempt| ClientInput::Frame { attempt, body });
                }
                Output::Inquire {
                    entity,
                    number,
                    inquiry: Inquiry::Place(new),
                } => {
                    // There is no other base.
                    let on = BASE;
                    self.give_base(BaseInput::Place {
                        entity,
                        number,
                        on,
                        new,
                    });
                }
                Output::Begun { .. }
                | Output::Ordered { .. }
                | Output::SessionsEnded { .. }
                | Output::Inquire { .. } => {
                    panic!("this game does not query the database")
                }
            }
        }
    }

    /// Gives the base the content of a download.
    fn download(&mut self, download: Download) {
        let Download {
            id,
            description,
            source,
        } = download;
        let content = match source {
            DownloadSource::Content(content) => Ok(content),
            DownloadSource::File(name) => self
                .files
                .get(&name)
                .cloned()
                .ok_or_else(|| format!("the test has no file {name:?}")),
        };
        let content = content.map(|bytes| DownloadContent {
            hash: value_hash(&bytes),
            bytes: bytes.into(),
        });
        self.give_base(BaseInput::Download(PreparedDownload {
            id,
            description,
            content,
        }));
    }

    fn player_on(&self, connection: ConnectionId) -> Option<usize> {
        let on = |player: &Player| player.connection.is_some_and(|(on, _)| on == connection);
        self.players.iter().position(on)
    }

    fn give_player(&mut self, connection: ConnectionId, input: impl FnOnce(Attempt) -> ClientInput) {
        let Some(player) = self.player_on(connection) else {
            return;
        };
        let Some((_, attempt)) = self.players[player].connection else {
            return;
        };
        self.tell(player, input(attempt));
    }

    fn tell(&mut self, player: usize, input: ClientInput) {
        let now = self.millis();
        self.players[player].core.handle(now, input);
        self.drain(player);
    }

    fn disconnect(&mut self, player: usize, reason: CloseReason) {
        if let Some((_, attempt)) = self.players[player].connection.take() {
            self.tell(player, ClientInput::Disconnected { attempt, reason });
        }
    }

    fn drain(&mut self, number: usize) {
        loop {
            let player = &mut self.players[number];
            player.events.extend(std::iter::from_fn(|| player.core.poll_event()));
            let Some(output) = player.core.poll_output() else {
                return;
            };
            self.do_for_player(number, output);
        }
    }

    fn do_for_player(&mut self, number: usize, output: ClientOutput) {
        match output {
            ClientOutput::Login { attempt, request } => self.log_in(number, attempt, &request),
            ClientOutput::Connect { attempt, .. } => {
                self.hang_up(number);
                self.secrets += 1;
                let player = &mut self.players[number];
                (player.connection, player.said_hello) = (Some((ConnectionId(self.secrets), attempt)), false);
                self.tell(number, ClientInput::Connected { attempt });
            }
            ClientOutput::Frame(bytes) => self.frame(number, &bytes),
            ClientOutput::Datagram(bytes) => {
                if let Some((connection, _)) = self.players[number].connection {
                    let datagram = ToServerDatagram::read(&bytes).expect(WRITTEN);
                    self.give_base(BaseInput::Datagram { connection, datagram });
                }
            }
            ClientOutput::Disconnect(_) => self.hang_up(number),
            ClientOutput::Prepare { .. } | ClientOutput::Greet(_) | ClientOutput::Switch | ClientOutput::Abandon => {
                unreachable!("the base stays where it is")
            }
        }
    }

    fn hang_up(&mut self, number: usize) {
        if let Some((connection, _)) = self.players[number].connection.take() {
            self.give_base(BaseInput::Closed { connection });
        }
    }

    fn frame(&mut self, number: usize, bytes: &[u8]) {
        let Some((connection, _)) = self.players[number].connection else {
            return;
        };
        if self.players[number].said_hello {
            let (frame, trace) = (ToServer::read(bytes).expect(WRITTEN), [0; 16]);
            return self.give_base(BaseInput::Frame {
                connection,
                frame,
                trace,
            });
        }
        self.players[number].said_hello = true;
        let (hello, fresh_token) = (Hello::read(bytes).expect(WRITTEN), self.secret());
        self.give_base(BaseInput::Hello {
            connection,
            from: ([127, 0, 0, 1], 1).into(),
            hello,
            fresh_token,
        });
    }

    fn secret(&mut self) -> Secret {
        self.secrets += 1;
        let mut secret = [7; 32];
        secret[..8].copy_from_slice(&self.secrets.to_le_bytes());
        Secret(secret)
    }

    fn log_in(&mut self, number: usize, attempt: Attempt, request: &annals_wire::client::LoginRequest) {
        if matches!(request, annals_wire::client::LoginRequest::Locate { .. }) {
            let answer = Some(LoginAnswer::Located(self.located()));
            return self.tell(number, ClientInput::LoginAnswered { attempt, answer });
        }
        let ticket = self.secret();
        let account = self.players[number].account;
        // An activation that has not ended keeps its check-out, as in the database.
        let live = self.base.owner.state().databases.get(&account);
        let live = live.and_then(|entity| self.base.owner.state().entities[entity].base());
        let checkout = live.map_or(self.secrets, |base| base.checkout);
        let wanted = OpenSession {
            request: number as u64,
            account: CheckedOut {
                epoch: self.base.epoch,
                database: account,
                checkout,
                type_id: self.account,
                properties: Vec::new(),
                key: None,
            },
            ticket: ticket.digest().0,
            name: number.to_string(),
            duplicate: self.duplicate,
            replaces_only: false,
        };
        self.players[number].pending = Some((attempt, ticket));
        self.give_base(BaseInput::OpenSession(wanted));
    }

    fn located(&self) -> Located {
        Located {
            owner: BASE,
            epoch: self.base.epoch,
            address: ([127, 0, 0, 1], 1).into(),
            certificate: None,
        }
    }

    fn opened(&mut self, request: u64, opened: &Result<SessionId, NotOpened>) {
        let number = usize::try_from(request).expect("invariant: the request is a player's number");
        let pending = self.players[number].pending.take();
        let (attempt, secret) = pending.expect("invariant: the base answers each request once");
        let base = self.located();
        let answer = Some(match opened {
            Ok(session) => LoginAnswer::Ticket(Ticket {
                session: *session,
                secret,
                base,
            }),
            Err(NotOpened::InUse) => LoginAnswer::Refused(LoginRefusal::LoggedIn),
            Err(_) => LoginAnswer::Refused(LoginRefusal::Busy),
        });
        self.tell(number, ClientInput::LoginAnswered { attempt, answer });
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
        spaces: [(FIRST_SPACE, space)].into(),
        bootstrap: Some(BASE),
        bases: [BASE].into(),
        cells: [WEST, EAST].into(),
    }
}
