//! A cell full of entities that walk in small circles, driven as by its shell.

use std::{collections::VecDeque, f32::consts::TAU, sync::Arc, time::Duration};

use annals_cell::{CellInput, CellRole};
use annals_def::{DataType, Distribution, EntityType, Property, Reach, Schema, Value, Volatile, split_mix};
use annals_event::{Call, CellCreation, ClientLink, Gait, Imprint, Link, OwnerState, Place};
use annals_ids::{
    Address, CallNumber, Direction, EntityId, Epoch, MemberId, OwnerId, Part, Position, SessionId, SpaceId, TimerId,
    TypeId, WallTime, WorldTime,
};
use annals_node::{
    Answer, BLOCK, Beginning, Behaviour, Caller, Context, Input, Output, Owner,
    time::{Mono, Now},
    writer::{self, Action, Chain, Durability, Tip},
};
use annals_wire::{
    CellArea, Space, SpaceMap,
    bus::{CallMessage, Envelope, Message, ViewMessage},
    client::{Known, Movements, ToClientDatagram},
    overview::{Overview, OverviewRequest},
};

/// The tick period.
pub(super) const TICK: Duration = annals_cell::TICK;

/// One entity in this many has a client.
pub(super) const WITNESS_EVERY: usize = 10;

/// AoI radius of a client, metres.
pub(super) const SIGHT: f32 = 50.0;

const HYSTERESIS: f32 = 5.0;

/// Distance between entities' homes, metres: about fifty are in view.
const APART: f32 = 14.0;

/// Length of a step, metres, and steps per circle.
const STEP: f32 = 0.5;
const STEPS: f32 = 32.0;

/// One step in this many changes a property that others see.
const CHANGE_ODDS: u64 = 20;

/// Minimum wake-up latency of a shell, and the interval between two creations, microseconds.
const WAKING: u64 = 1_000;
const SPAWNING: u64 = 100;

pub(super) const CELL: OwnerId = OwnerId(1);
const BASE: OwnerId = OwnerId(2);
pub(super) const SPACE: SpaceId = SpaceId(1);
pub(super) const WALKER: TypeId = TypeId(0);
const PLAYER: TypeId = TypeId(1);
/// Stationary and inactive.
pub(super) const STONE: TypeId = TypeId(2);
/// Walks around a square of [`ROUND`] metres a side, moved by a controller.
pub(super) const GUARD: TypeId = TypeId(3);

/// Side of the path of [`GUARD`], metres, and its speed, metres per second.
const ROUND: f32 = 6.0;
const PACE: f32 = 3.0;

/// Homes of all entities: on a square grid, with a small random offset.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Initial x, z and yaw.
    pub(super) homes: Vec<[f32; 3]>,
    /// Entities with a client: none so near the edge that less would be in view.
    pub(super) clients: Vec<usize>,
    /// Width of the world, metres.
    pub(super) side: f32,
}

impl Layout {
    pub(super) fn of(size: usize) -> Self {
        let across = (1..)
            .find(|across| across * across >= size)
            .expect("some square is as large");
        let mut dice = split_mix(1);
        let mut between = |least: f32, most: f32| least + (most - least) * f32::from((dice() >> 48) as u16) / 65_536.0;
        let crossing = |at: usize| (at + 1) as f32 * APART;
        let homes: Vec<[f32; 3]> = (0..size)
            .map(|entity| {
                let mut shaken = |at| crossing(at) + between(-APART / 3.0, APART / 3.0);
                let (x, z) = (shaken(entity % across), shaken(entity / across));
                [x, z, between(0.0, TAU)]
            })
            .collect();
        let margin = SIGHT + APART;
        let last = crossing(size / across - 1).min(crossing(across - 1));
        let is_inside = |home: &[f32; 3]| {
            home[..2]
                .iter()
                .all(|axis| (margin..=last + APART - margin).contains(axis))
        };
        let inside: Vec<usize> = (0..size).filter(|entity| is_inside(&homes[*entity])).collect();
        let count = size / WITNESS_EVERY;
        assert!(
            inside.len() >= count,
            "{size} entities are too few for clients that are not at the edge"
        );
        let clients = (0..count).map(|client| inside[client * inside.len() / count]).collect();
        let side = crossing(across);
        Self { homes, clients, side }
    }

    /// The same without clients.
    pub(super) fn unwatched(size: usize) -> Self {
        let clients = Vec::new();
        Self {
            clients,
            ..Self::of(size)
        }
    }
}

/// A step: forward and a little to the right.
pub(super) fn step(place: &mut [f32; 3]) {
    let [x, z, yaw] = place;
    *x += yaw.sin() * STEP;
    *z += yaw.cos() * STEP;
    *yaw = (*yaw + TAU / STEPS) % TAU;
}

/// Processor time of the core, and its outputs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// Total time.
    pub(super) all: Duration,
    /// Longest time of one input, with everything that follows from it.
    pub(super) longest: Duration,
    /// Bytes of the messages sent.
    pub(super) sent: usize,
    /// Bytes logged.
    pub(super) logged: usize,
    /// Movements sent to clients.
    pub(super) moves: usize,
    /// Allocations of the core.
    pub(super) allocations: usize,
}

/// What is kept of the log.
#[derive(Debug, Default)]
struct Log {
    /// The sequence of the last batch.
    appended: u64,
    /// The opening of the current epoch.
    opening: Vec<u8>,
    /// All batches, if they are kept.
    kept: Option<Vec<Vec<u8>>>,
}

/// A cell core with its entities, log and clock.
pub(super) struct Crowd {
    cell: Owner<CellRole>,
    epoch: Epoch,
    now: Mono,
    log: Log,
    /// Entities moved by a client, with their positions.
    players: Vec<(EntityId, [f32; 3])>,
    moves: u64,
    spent: Spent,
    /// Returns the number of allocations so far.
    allocated: fn() -> usize,
}

impl Crowd {
    /// A crowd of walkers and players, with a counter of allocations, if there is one.
    pub(super) fn new(layout: &Layout, allocated: fn() -> usize) -> Self {
        let mut crowd = Self::take_over(OwnerState::new(CELL, Part::Cell), allocated);
        crowd.populate(layout, WALKER);
        crowd
    }

    /// A crowd of entities of one type without clients, which keeps all batches of its log.
    pub(super) fn unwatched(size: usize, type_id: TypeId) -> Self {
        let mut crowd = Self::take_over(OwnerState::new(CELL, Part::Cell), || 0);
        crowd.log.kept = Some(vec![crowd.log.opening.clone()]);
        crowd.populate(&Layout::unwatched(size), type_id);
        crowd
    }

    /// The crowd of an owner that is taken over in a state, with a map.
    pub(super) fn take_over(state: OwnerState, allocated: fn() -> usize) -> Self {
        // Time continues from the state's tick.
        let now = Mono(1_000_000 + state.tick.0 * 100_000);
        let (epoch, sequence) = (state.epoch.next(), state.tail.batch.0);
        let archived = Tip {
            number: state.tail.batch,
            hash: state.tail.hash,
        };
        let role = CellRole::take_over(&state, now);
        let schema = schema();
        let beginning = Beginning {
            call_generation: 0,
            chain: Chain::whole(archived, Vec::new(), sequence),
            imprint: Imprint {
                realm: "bench".to_owned(),
                owner: CELL,
                epoch,
                schema: schema.fingerprint(),
            },
            durability: Durability::Log,
            ids: epoch.0 * BLOCK..(epoch.0 + 1) * BLOCK,
            schema,
            behaviour: Arc::new(Walkers),
            panics: annals_node::PanicPolicy::Report,
            dice: Box::new(split_mix(1)),
            keys: std::collections::BTreeMap::new(),
            state,
        };
        let mut crowd = Self {
            cell: Owner::take_over(at(now), role, beginning),
            epoch,
            now,
            log: Log {
                appended: sequence,
                ..Log::default()
            },
            players: Vec::new(),
            moves: 0,
            spent: Spent::default(),
            allocated,
        };
        crowd.give(Input::Role(CellInput::Map(map())));
        crowd
    }

    /// The state of the owner.
    pub(super) fn state(&self) -> &OwnerState {
        self.cell.state()
    }

    /// An overview of its entities.
    pub(super) fn overview(&self, asked: &OverviewRequest) -> Option<Overview> {
        self.cell.overview(asked)
    }

    /// The kept batches.
    pub(super) fn log(&self) -> &[Vec<u8>] {
        self.log.kept.as_deref().unwrap_or_default()
    }

    /// Advances one tick period: client inputs come at its beginning, and the core is woken at each deadline.
    pub(super) fn tick(&mut self) {
        let end = self.now.after(TICK);
        self.moves += 1;
        let mut players = std::mem::take(&mut self.players);
        for (entity, place) in &mut players {
            step(place);
            self.say(ViewMessage::Moved {
                session: SessionId(entity.0),
                entity: *entity,
                sequence: self.moves,
                place: standing(place),
            });
        }
        self.players = players;
        while let Some(due) = self.cell.deadline(at(self.now)).filter(|due| *due <= end) {
            // Shells wake a little late, never early.
            self.now = Mono(due.0.max(self.now.0 + WAKING)).min(end);
            self.give(Input::Time);
            if self.now == end {
                break;
            }
        }
        self.now = end;
        let (upto, epoch) = (self.cell.writer().tip(), self.epoch);
        self.give(Input::Log(writer::Input::Archived { upto, epoch }));
    }

    /// Resets the counters.
    pub(super) fn forget(&mut self) {
        self.spent = Spent::default();
    }

    pub(super) fn spent(&self) -> Spent {
        self.spent
    }

    fn populate(&mut self, layout: &Layout, type_id: TypeId) {
        let mut clients = layout.clients.iter().copied().peekable();
        for (index, home) in layout.homes.iter().enumerate() {
            // Entities are created over some ticks, so that their timers do not all fire at once and batches fit the
            // bus.
            self.now = Mono(self.now.0 + SPAWNING);
            if clients.next_if_eq(&index).is_some() {
                self.create_player(*home);
            } else {
                self.give(Input::Role(CellInput::Create {
                    type_id,
                    place: standing(home),
                    properties: Vec::new(),
                }));
            }
        }
        let real = self.cell.state().entities.len();
        assert_eq!(real, layout.homes.len(), "all of them were made");
        let players: Vec<EntityId> = self.players.iter().map(|(entity, _)| *entity).collect();
        for entity in players {
            self.say(ViewMessage::Stamps {
                session: SessionId(entity.0),
                entity,
                view: 1,
                known: Known::default(),
                movements: Movements::Plain,
            });
        }
    }

    fn create_player(&mut self, home: [f32; 3]) {
        let entity = EntityId(4 * BLOCK + self.players.len() as u64);
        let client = ClientLink {
            session: SessionId(entity.0),
            proxy: BASE,
        };
        let creation = CellCreation {
            entity,
            type_id: PLAYER,
            home: BASE,
            based: true,
            place: standing(&home),
            properties: Vec::new(),
            client: Some(client),
            former: None,
        };
        self.players.push((entity, home));
        self.receive(Message::Call(CallMessage {
            link: Link {
                from: Address::Base(entity),
                to: Address::Owner(CELL),
            },
            from_home: BASE,
            to_home: CELL,
            number: CallNumber(1),
            is_oldest: false,
            trace: [0; 16],
            call: Call::CreateCell(Box::new(creation)),
        }));
    }

    fn say(&mut self, message: ViewMessage) {
        self.receive(Message::View(message));
    }

    fn receive(&mut self, message: Message) {
        self.give(Input::Bus(from_base(message)));
    }

    /// Gives the core an input, and everything that follows from it; log and base answer at once.
    fn give(&mut self, input: Input<CellInput>) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let (began, allocated) = (crate::busy(), (self.allocated)());
            let outputs = self.handle(input);
            self.spent.allocations += (self.allocated)() - allocated;
            let took = crate::busy().saturating_sub(began);
            self.spent.all += took;
            self.spent.longest = self.spent.longest.max(took);
            for output in outputs {
                inputs.extend(self.deliver(output).map(Input::Bus));
            }
        }
    }

    /// One input, handled as by a shell.
    fn handle(&mut self, input: Input<CellInput>) -> Vec<Output> {
        let now = at(self.now);
        self.cell.handle(now, input);
        while let Some(action) = self.cell.poll_log(now) {
            let answer = match action {
                Action::Append { batch, .. } => {
                    self.log.appended += 1;
                    self.spent.logged += batch.bytes.len();
                    if batch.opens {
                        self.log.opening.clone_from(&batch.bytes);
                    }
                    if let Some(kept) = &mut self.log.kept {
                        kept.push(batch.bytes.clone());
                    }
                    let sequence = self.log.appended;
                    writer::Input::Appended { sequence }
                }
                Action::LookAgain => writer::Input::Looked {
                    batches: vec![self.log.opening.clone()],
                    last: Some((self.log.appended, self.log.opening.clone())),
                },
                Action::RecordOpening(_) => writer::Input::OpeningRecorded,
                Action::ReadLast | Action::ConfirmEpoch => panic!("the log always answers"),
            };
            self.cell.handle(now, Input::Log(answer));
        }
        std::iter::from_fn(|| self.cell.poll_output(now)).collect()
    }

    /// Counts an output; returns the base's answer, if there is one.
    fn deliver(&mut self, output: Output) -> Option<Envelope> {
        let Output::Send { to, envelope } = output else {
            panic!("a cell that makes few entities sends messages to its base and nothing else");
        };
        assert_eq!(to, BASE);
        self.spent.sent += envelope.encode().len();
        match envelope.message {
            Message::Call(CallMessage { link, number, .. }) => Some(from_base(Message::Took { link, upto: number })),
            Message::View(ViewMessage::Datagram { bytes, .. }) => {
                if let Ok(ToClientDatagram::Moves(moves)) = ToClientDatagram::read(&bytes) {
                    self.spent.moves += moves.moves.len();
                }
                None
            }
            _ => None,
        }
    }
}

/// Behaviour of entities without a client.
struct Walkers;

impl Behaviour for Walkers {
    fn created(&self, context: &mut Context<'_>) {
        if context.entity_type().id == WALKER {
            let period = u64::try_from(TICK.as_millis()).expect("a tick is short");
            context.set_timer(period, period, 0);
        }
        if let (GUARD, Some(place)) = (context.entity_type().id, context.place()) {
            let corner = |x: f32, z: f32| Position {
                x: place.position.x + x,
                z: place.position.z + z,
                ..place.position
            };
            let path = vec![
                corner(ROUND, 0.0),
                corner(ROUND, ROUND),
                corner(0.0, ROUND),
                corner(0.0, 0.0),
            ];
            context.patrol(path, Gait::at(PACE), 0).expect("a guard can go round");
        }
    }

    fn call(&self, _context: &mut Context<'_>, _method: MemberId, _args: &[Value], _caller: &Caller) -> Answer {
        Answer::DONE
    }

    fn timer(&self, context: &mut Context<'_>, _timer: TimerId, _tag: u32) {
        let Some(Place {
            position, direction, ..
        }) = context.place()
        else {
            return;
        };
        let mut place = [position.x, position.z, direction.yaw];
        step(&mut place);
        context.move_to(standing(&place)).expect("a step leads to a place");
        let roll = context.roll();
        if roll.is_multiple_of(CHANGE_ODDS) {
            let health = Value::Int(i64::from((roll >> 48) as u16));
            context.set("health", health).expect("a walker has health");
        }
    }
}

fn schema() -> Arc<Schema> {
    let being = |name| {
        let mut being = EntityType::new(name);
        being.properties = vec![
            Property::new("health", DataType::Int32, Distribution::AllClients),
            Property::new("name", DataType::Unicode, Distribution::AllClients),
        ];
        being.volatile = Volatile {
            position: Reach::Always,
            yaw: Reach::Always,
            ..Volatile::default()
        };
        being
    };
    let baseless = |name| {
        let mut being = being(name);
        being.parts.base = false;
        being
    };
    let types = vec![
        baseless("Walker"),
        being("Player"),
        baseless("Stone"),
        baseless("Guard"),
    ];
    Arc::new(Schema::new(types, Vec::new(), Vec::new()))
}

/// A map in which the cell has the whole space.
fn map() -> SpaceMap {
    let space = Space {
        cells: vec![CellArea::everywhere(CELL)],
        aoi_radius: SIGHT,
        aoi_hysteresis: HYSTERESIS,
        ghost_distance: SIGHT,
    };
    SpaceMap {
        version: 1,
        spaces: [(SPACE, space)].into(),
        ..SpaceMap::default()
    }
}

fn from_base(message: Message) -> Envelope {
    Envelope {
        from: BASE,
        epoch: Epoch(1),
        message,
    }
}

fn standing(&[x, z, yaw]: &[f32; 3]) -> Place {
    Place {
        space: SPACE,
        position: Position { x, y: 0.0, z },
        direction: Direction {
            yaw,
            ..Direction::default()
        },
    }
}

fn at(mono: Mono) -> Now {
    let milliseconds = mono.0 / 1_000;
    Now {
        mono,
        wall: WallTime(milliseconds),
        world: WorldTime(milliseconds),
    }
}
