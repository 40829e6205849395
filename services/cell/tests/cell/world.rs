//! Cells, a home and clients on a simulated bus. All of it is determined by one seed.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{Arc, atomic::Ordering},
};

use annals_cell::{CellInput, CellRole};
use annals_def::{Schema, Value};
use annals_event::{CellCreation, Image, Place};
use annals_ids::{EntityId, HistoryNumber, MemberId, OwnerId, SessionId, SpaceId, TypeId, WallTime, WorldTime};
use annals_node::{
    Input, Output, OwnerContext, PanicPolicy,
    outbound::{OutboundAnswer, OutboundCall, answered},
    time::{Mono, Now},
};
use annals_wire::{
    CellArea, Space, SpaceMap,
    bus::{DrivenMovement, Envelope, Message, ViewMessage},
    client::{Movements, Reads, ViewItem},
};

use crate::{
    client::Client,
    game::Game,
    home::{Home, HomeInput},
    process::{self, Process},
};

pub(crate) const SPACE: SpaceId = SpaceId(7);
pub(crate) const HOME: OwnerId = OwnerId(100);
pub(crate) const WEST: OwnerId = OwnerId(1);
pub(crate) const MIDDLE: OwnerId = OwnerId(2);
pub(crate) const EAST: OwnerId = OwnerId(3);

/// West of this is `WEST`'s area, then comes that of `MIDDLE`, up to [`EAST_EDGE`].
pub(crate) const WEST_EDGE: f32 = 0.0;
pub(crate) const EAST_EDGE: f32 = 60.0;

pub(crate) const RADIUS: f32 = 40.0;
pub(crate) const HYSTERESIS: f32 = 5.0;

/// Faults of the bus, in percent, and the maximum latency of messages and log answers, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) delay: u64,
}

pub(crate) const CALM: Faults = Faults {
    lost: 0,
    repeated: 0,
    delay: 2_000,
};

pub(crate) const ROUGH: Faults = Faults {
    lost: 10,
    repeated: 5,
    delay: 60_000,
};

/// Cells, a home, clients and the bus between them.
pub(crate) struct World {
    pub(crate) now: Mono,
    pub(crate) faults: Faults,
    pub(crate) cells: BTreeMap<OwnerId, Process<CellRole>>,
    pub(crate) home: Process<Home>,
    pub(crate) clients: BTreeMap<SessionId, Client>,
    pub(crate) map: SpaceMap,
    pub(crate) game: Arc<Game>,
    context: process::Game,
    bus: BTreeMap<(Mono, u64), (OwnerId, Vec<u8>)>,
    /// Number of messages sent.
    pub(crate) posted: u64,
    /// The calls to services outside the realm, each as often as it was sent.
    pub(crate) outbound: Vec<OutboundCall>,
    /// All messages of owners, delivered or lost, if they are to be kept.
    pub(crate) sent: Option<Vec<Envelope>>,
    dice: Box<dyn FnMut() -> u64>,
    /// Messages to this owner are lost.
    pub(crate) cut_off: Option<OwnerId>,
    /// Messages to this owner about data of spaces are lost.
    pub(crate) unaware: Option<OwnerId>,
    /// Downstream limit of each client on cells that start, bits per second.
    pub(crate) downstream: Option<NonZeroU32>,
    /// This owner receives messages, and does not notice that time passes.
    pub(crate) drowsy: Option<OwnerId>,
    /// The format of movements in views that begin after it is set.
    pub(crate) movements: Movements,
    /// This client receives no datagrams.
    pub(crate) deaf: Option<SessionId>,
    /// Whether clients never acknowledge movements.
    pub(crate) silent: bool,
    /// How many datagrams of 100 overtake the one before.
    pub(crate) overtaking: u64,
    /// Datagrams that are being overtaken.
    overtaken: BTreeMap<SessionId, Vec<u8>>,
}

impl World {
    /// Three cells side by side and a home, all up.
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(seed, crate::game::schema())
    }

    /// The same with a schema that has more than the game knows.
    pub(crate) fn of(seed: u64, schema: Arc<Schema>) -> Self {
        let game = Arc::new(Game::default());
        let context = process::Game {
            schema,
            behaviour: Arc::clone(&game) as _,
            panics: PanicPolicy::Propagate,
        };
        let mut world = Self {
            now: Mono(1_000_000),
            faults: CALM,
            cells: [WEST, MIDDLE, EAST].map(|id| (id, Process::new(id))).into(),
            home: Process::new(HOME),
            clients: BTreeMap::new(),
            map: three_cells(),
            game,
            context,
            bus: BTreeMap::new(),
            posted: 0,
            outbound: Vec::new(),
            sent: None,
            dice: Box::new(annals_def::split_mix(seed)),
            cut_off: None,
            unaware: None,
            downstream: None,
            drowsy: None,
            movements: Movements::choose(Reads::Predicted, RADIUS + HYSTERESIS),
            deaf: None,
            silent: false,
            overtaking: 0,
            overtaken: BTreeMap::new(),
        };
        for id in [WEST, MIDDLE, EAST] {
            world.start(id);
        }
        world.start_home();
        world.run(300);
        world
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        (self.dice)() % sides
    }

    pub(crate) fn at(&self) -> Now {
        Now {
            mono: self.now,
            wall: WallTime(self.now.0 / 1_000),
            world: WorldTime(self.now.0 / 1_000),
        }
    }

    pub(crate) fn start(&mut self, id: OwnerId) {
        let (now, seed, map) = (self.at(), self.roll(u64::MAX), self.map.clone());
        let cell = self.cells.get_mut(&id).expect("there is such a cell");
        if cell.owner.is_none() {
            let downstream = self.downstream;
            let role = |state: &_, now| {
                let role = CellRole::take_over(state, now);
                downstream.into_iter().fold(role, CellRole::with_downstream)
            };
            cell.start(now, &self.context, role, seed);
            self.send_to_cell(id, CellInput::Map(map));
        }
    }

    /// Limits the downstream of each client from here on, bits per second. Every cell restarts.
    pub(crate) fn limit(&mut self, bits: u32) {
        self.downstream = NonZeroU32::new(bits);
        for id in [WEST, MIDDLE, EAST] {
            self.crash(id);
            self.start(id);
        }
        self.run(300);
    }

    /// From here on owners report panics of behaviour, as in a realm. All of them restart.
    pub(crate) fn report_panics(&mut self) {
        self.context.panics = PanicPolicy::Report;
        self.crash(HOME);
        self.start_home();
        for id in [WEST, MIDDLE, EAST] {
            self.crash(id);
            self.start(id);
        }
        self.run(300);
    }

    pub(crate) fn start_home(&mut self) {
        let (now, seed, map) = (self.at(), self.roll(u64::MAX), self.map.clone());
        if self.home.owner.is_none() {
            let (lost, returned) = (Vec::new(), Vec::new());
            self.home
                .start(now, &self.context, |_, _| Home { map, lost, returned }, seed);
        }
    }

    pub(crate) fn crash(&mut self, id: OwnerId) {
        let lands = self.roll(2) == 0;
        match self.cells.get_mut(&id) {
            Some(cell) => cell.crash(lands),
            None => self.home.crash(lands),
        }
    }

    pub(crate) fn send_to_cell(&mut self, id: OwnerId, input: CellInput) {
        let (now, latency) = (self.at(), self.latency());
        let cell = self.cells.get_mut(&id).expect("there is such a cell");
        let outputs = cell.handle(now, Input::Role(input), latency);
        self.post(outputs);
    }

    pub(crate) fn send_to_home(&mut self, input: HomeInput) {
        let (now, latency) = (self.at(), self.latency());
        let outputs = self.home.handle(now, Input::Role(input), latency);
        self.post(outputs);
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, milliseconds: u64) {
        let end = Mono(self.now.0 + milliseconds * 1_000);
        while self.now < end {
            self.now = self.next().map_or(end, |next| next.clamp(self.now, end));
            self.deliver();
            self.wake();
            self.attend_clients();
        }
    }

    fn next(&self) -> Option<Mono> {
        let at = self.at();
        let awake = self.cells.values().filter(|cell| self.drowsy != Some(cell.id));
        let cells = awake.filter_map(|cell| cell.due(at));
        let message = self.bus.first_key_value().map(|((due, _), _)| *due);
        // Nothing is so urgent that it cannot wait for the next tenth of a millisecond; so time always passes.
        let next = cells.chain(self.home.due(at)).chain(message).min()?;
        Some(Mono(next.0.max(self.now.0 + 100)))
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.bus.first_entry() {
            if entry.key().0 > self.now {
                return;
            }
            let (to, bytes) = entry.remove();
            let envelope = Envelope::decode(&bytes).expect("what was written can be read");
            let (now, latency) = (self.at(), self.latency());
            let outputs = match self.cells.get_mut(&to) {
                Some(cell) => cell.handle(now, Input::Bus(envelope), latency),
                None => self.home.handle(now, Input::Bus(envelope), latency),
            };
            self.post(outputs);
        }
    }

    fn wake(&mut self) {
        let now = self.at();
        for id in [WEST, MIDDLE, EAST] {
            let latency = self.latency();
            let outputs = self
                .cells
                .get_mut(&id)
                .expect("there is such a cell")
                .wake(now, latency);
            self.post(outputs);
        }
        let latency = self.latency();
        let outputs = self.home.wake(now, latency);
        self.post(outputs);
    }

    /// Answers a call to a service outside, on each cell that had it.
    pub(crate) fn answer_outbound(&mut self, call: &OutboundCall) {
        for id in [WEST, MIDDLE, EAST] {
            let answer = OutboundAnswer {
                from: call.from,
                number: call.number,
                outcome: answered(200, Vec::new()),
            };
            let (now, latency) = (self.at(), self.latency());
            let cell = self.cells.get_mut(&id).expect("there is such a cell");
            let outputs = cell.handle(now, Input::Outbound(answer), latency);
            self.post(outputs);
        }
    }

    fn latency(&mut self) -> u64 {
        500 + self.roll(self.faults.delay / 4 + 1)
    }

    fn post(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send { to, envelope } => self.send(to, &envelope),
                Output::Frame { connection, bytes } => {
                    let session = SessionId(connection.0);
                    if self
                        .clients
                        .get_mut(&session)
                        .is_some_and(|client| client.frame(&bytes))
                    {
                        self.begin_view(session);
                    }
                }
                Output::Datagram { connection, bytes } => {
                    let session = SessionId(connection.0);
                    if self.roll(100) >= self.faults.lost && self.deaf != Some(session) {
                        self.datagram(session, bytes);
                    }
                }
                Output::Outbound(call) => self.outbound.push(call),
                Output::WantIds => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Delivers a datagram to a client, or holds it until the next one overtakes it. The client acknowledges what it
    /// has read.
    fn datagram(&mut self, session: SessionId, bytes: Vec<u8>) {
        if self.overtaking > 0 && self.roll(100) < self.overtaking && !self.overtaken.contains_key(&session) {
            self.overtaken.insert(session, bytes);
            return;
        }
        let before = self.overtaken.remove(&session);
        for bytes in std::iter::once(bytes).chain(before) {
            let Some(client) = self.clients.get_mut(&session) else {
                return;
            };
            let (entity, view) = (client.entity, client.view);
            if let Some(ack) = client.datagram(&bytes).filter(|_| !self.silent) {
                self.send_to_home(HomeInput::MovementAck {
                    session,
                    entity,
                    view,
                    ack,
                });
            }
        }
    }

    fn send(&mut self, to: OwnerId, envelope: &Envelope) {
        let bytes = envelope.encode();
        if let Some(sent) = &mut self.sent {
            sent.push(Envelope::decode(&bytes).expect("what was written can be read"));
        }
        let copies = 1 + u64::from(self.roll(100) < self.faults.repeated);
        for _ in 0..copies {
            let is_withheld = self.unaware == Some(to) && matches!(envelope.message, Message::Space(..));
            if self.roll(100) < self.faults.lost || self.cut_off == Some(to) || is_withheld {
                continue;
            }
            // Frames between two owners mostly keep their order; without faults everything does.
            let frames = matches!(envelope.message, Message::View(ViewMessage::Frames { .. }));
            let in_order = self.faults.delay == CALM.delay || (frames && self.roll(20) != 0);
            let delay = if in_order {
                1_000
            } else {
                200 + self.roll(self.faults.delay)
            };
            self.posted += 1;
            let due = Mono(self.now.0 + delay);
            self.bus.insert((due, self.posted), (to, bytes.clone()));
        }
    }

    /// Restarts a client's view.
    pub(crate) fn begin_view(&mut self, session: SessionId) {
        let now = self.now;
        let Some(client) = self.clients.get_mut(&session) else {
            return;
        };
        let movements = self.movements;
        let (entity, known) = (client.entity, client.begin(now, movements));
        let view = client.view;
        self.send_to_home(HomeInput::Stamps {
            session,
            entity,
            view,
            known,
            movements,
        });
    }

    fn attend_clients(&mut self) {
        let now = self.now;
        let waiting = self.clients.values().filter(|client| client.is_impatient(now));
        let waiting: Vec<SessionId> = waiting.map(|client| client.session).collect();
        for session in waiting {
            self.begin_view(session);
        }
    }

    /// Creates an entity with a base, and its client, if a session is given.
    pub(crate) fn spawn(&mut self, type_id: TypeId, x: f32, session: Option<u64>) -> EntityId {
        let session = session.map(SessionId);
        self.send_to_home(HomeInput::Create {
            type_id,
            place: place(x, 0.0),
            session,
        });
        let state = self.home.owner.as_ref().expect("the home is up").state();
        let entity = *state.entities.keys().max().expect("it was made");
        if let Some(session) = session {
            let client = Client::new(session, entity, Arc::clone(&self.context.schema));
            self.clients.insert(session, client);
            self.begin_view(session);
        }
        entity
    }

    /// Creates an entity without a base on the cell that is responsible.
    pub(crate) fn spawn_creature(&mut self, x: f32) {
        let place = place(x, 0.0);
        let owner = self.map.owner_at(SPACE, place.position).expect("a cell is responsible");
        self.send_to_cell(
            owner,
            CellInput::Create {
                type_id: crate::game::CREATURE,
                place,
                properties: Vec::new(),
            },
        );
    }

    pub(crate) fn call(&mut self, entity: EntityId, method: MemberId, args: Vec<Value>) {
        self.send_to_home(HomeInput::Call(entity, method, args));
    }

    /// A client moves its entity to a position.
    pub(crate) fn walk(&mut self, session: u64, x: f32, z: f32) {
        self.look(session, place(x, z));
    }

    /// A client moves its entity to a place, direction included.
    pub(crate) fn look(&mut self, session: u64, place: Place) {
        let session = SessionId(session);
        let client = self.clients.get_mut(&session).expect("there is such a client");
        client.moved += 1;
        let (entity, sequence) = (client.entity, client.moved);
        let moved = ViewMessage::Moved {
            session,
            entity,
            sequence,
            place,
        };
        self.send_to_home(HomeInput::Moved(entity, moved));
    }

    /// A client moves another entity than its own, whether it may or not.
    pub(crate) fn drive(&mut self, session: u64, driven: EntityId, x: f32, z: f32) {
        let upto = self.client(session).known.get(&driven).map(|seen| seen.history);
        let client = self
            .clients
            .get_mut(&SessionId(session))
            .expect("there is such a client");
        client.drive(driven, place(x, z).position);
        self.drive_as_of(session, (driven, upto.unwrap_or(HistoryNumber(0))), (x, z));
    }

    /// A client sends a movement of another entity as if it were shown it up to that number.
    pub(crate) fn drive_as_of(&mut self, session: u64, (driven, upto): (EntityId, HistoryNumber), (x, z): (f32, f32)) {
        let session = SessionId(session);
        let client = self.clients.get_mut(&session).expect("there is such a client");
        client.moved += 1;
        let (entity, sequence, place) = (client.entity, client.moved, place(x, z));
        let drove = ViewMessage::Drove(DrivenMovement {
            session,
            driver: entity,
            driven,
            upto,
            sequence,
            place,
        });
        self.send_to_home(HomeInput::Moved(entity, drove));
    }

    /// How often a client was sent a place of an entity as an item.
    pub(crate) fn placements(&self, session: u64, entity: EntityId) -> usize {
        let items = self.client(session).items.iter();
        let placed = items.filter(|item| matches!(item, ViewItem::Placed { entity: placed, .. } if *placed == entity));
        placed.count()
    }

    /// The movements of clients that cells have rejected.
    pub(crate) fn rejected_movements(&self) -> u64 {
        let counters = self.cells.keys().map(|id| self.role(*id).counters());
        counters.map(|counters| counters.rejected_movements).sum()
    }

    pub(crate) fn client(&self, session: u64) -> &Client {
        &self.clients[&SessionId(session)]
    }

    pub(crate) fn live(&self, id: OwnerId) -> &annals_node::Owner<CellRole> {
        self.cells[&id].owner.as_ref().expect("the cell is up")
    }

    pub(crate) fn cx(&self, id: OwnerId) -> &OwnerContext {
        self.live(id).cx()
    }

    pub(crate) fn role(&self, id: OwnerId) -> &CellRole {
        self.live(id).role()
    }

    /// The owners on which an entity is real.
    pub(crate) fn holders(&self, entity: EntityId) -> Vec<OwnerId> {
        let up = self
            .cells
            .iter()
            .filter_map(|(id, cell)| Some((id, cell.owner.as_ref()?)));
        up.filter(|(_, owner)| owner.state().entities.contains_key(&entity))
            .map(|(id, _)| *id)
            .collect()
    }

    /// The real entity, on any owner.
    pub(crate) fn real(&self, entity: EntityId) -> &Image {
        let holders = self.holders(entity);
        assert_eq!(holders.len(), 1, "entity {entity} is real on {holders:?}");
        self.cx(holders[0]).image(entity).expect("it is held")
    }

    /// All real entities, with their owners and places.
    pub(crate) fn reals(&self) -> BTreeMap<EntityId, (OwnerId, Place)> {
        let mut reals = BTreeMap::new();
        for id in self.cells.keys() {
            for (entity, place) in self.cx(*id).places() {
                let twice = reals.insert(entity, (*id, place));
                assert_eq!(twice, None, "entity {entity} is real on {id} too");
            }
        }
        reals
    }

    /// Whether entities act by themselves.
    pub(crate) fn set_lively(&self, lively: bool) {
        self.game.lively.store(lively, Ordering::Relaxed);
    }
}

/// Runs a closure as behaviour of an entity, at once.
pub(crate) fn have(
    world: &mut World,
    entity: EntityId,
    errand: impl FnOnce(&mut annals_node::Context<'_>) + Send + 'static,
) {
    *world.game.errand.lock().expect("the lock is not poisoned") = Some(Box::new(errand));
    world.call(entity, crate::game::ACT, vec![Value::UInt(crate::game::ERRAND)]);
    for _ in 0..100 {
        if world.game.errand.lock().expect("the lock is not poisoned").is_none() {
            return;
        }
        world.run(10);
    }
    panic!("it was not done within a second");
}

/// A creation as the home asks a cell for it.
pub(crate) fn creation(entity: EntityId, type_id: TypeId, x: f32) -> CellCreation {
    CellCreation {
        entity,
        type_id,
        home: HOME,
        based: false,
        place: place(x, 0.0),
        properties: Vec::new(),
        client: None,
        former: None,
    }
}

pub(crate) fn place(x: f32, z: f32) -> Place {
    let mut place = Place {
        space: SPACE,
        ..Place::default()
    };
    (place.position.x, place.position.z) = (x, z);
    place
}

fn three_cells() -> SpaceMap {
    let area = |owner, west, east| CellArea {
        west,
        east,
        ..CellArea::everywhere(owner)
    };
    let space = Space {
        cells: vec![
            area(WEST, f32::NEG_INFINITY, WEST_EDGE),
            area(MIDDLE, WEST_EDGE, EAST_EDGE),
            area(EAST, EAST_EDGE, f32::INFINITY),
        ],
        aoi_radius: RADIUS,
        aoi_hysteresis: HYSTERESIS,
        ghost_distance: 50.0,
    };
    SpaceMap {
        version: 1,
        spaces: [(SPACE, space)].into(),
        cells: [WEST, MIDDLE, EAST].into(),
        ..SpaceMap::default()
    }
}
