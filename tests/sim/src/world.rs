//! The world: time, the agenda of coming steps, and all participants.
//!
//! One thread, one clock, one random generator. A step takes no time; everything that takes time is put on the agenda.
//! A seed and a commit therefore always give the same run.

mod asking;
mod borders;
mod carrying;
mod clients;
mod directing;
mod draining;
mod faults;
mod folding;
mod hosting;
mod inquiring;
mod logging_in;
mod parade;
mod partitions;
mod retaining;
mod storing;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use annals_base::Begin;
use annals_client::Input as ClientInput;
use annals_db::ledger::Outbox;
use annals_def::Schema;
use annals_director::ClosedConnections;
use annals_ids::{DatabaseId, Epoch, LeafIndex, OwnerId, Position, ProcessId, Shard, WallTime, WorldTime};
use annals_node::{
    ConnectionId,
    download::Download,
    inquiry::Answered,
    time::{Mono, Now},
    writer,
};
use annals_store::{MemoryStore, Store};
use annals_wire::{SpaceMap, client::Hello};

use crate::{
    fault::{Blow, Kind, Trouble},
    game,
    plan::{Plan, Planned},
    stream::Stream,
};
pub use clients::{Connection, SimClient};
pub use directing::Directing;
pub use folding::Folding;
pub use hosting::{Core, Hold, Process, Service};
pub use parade::{Marched, Parade};
use storing::Storing;

/// The realm's name.
pub const REALM: &str = "sim";

/// Wall time at the start of the simulated realm.
const BEGAN: WallTime = WallTime(1_700_000_000_000);

/// Settling time after a parade, milliseconds: calls are resent after up to 8 s.
const CLOSING_MS: u64 = 9_000;

/// Steps after which a run counts as a livelock.
const STEP_LIMIT: u64 = 20_000_000;

/// A step on the agenda.
#[derive(Debug)]
pub(crate) enum Step {
    /// An envelope arrives at the processes that listen for an owner.
    Deliver {
        from: ProcessId,
        to: OwnerId,
        bytes: Vec<u8>,
    },
    /// The content of a download reaches the holder that asked for it.
    Prepared { hold: Hold, download: Download },
    /// A holder's request reaches the log or the store.
    Ask { hold: Hold, question: asking::Question },
    /// An append reaches the log after its writer has given up.
    LateAppend {
        owner: OwnerId,
        expect: u64,
        bytes: Vec<u8>,
    },
    /// A holder that requested ids is granted some.
    GiveIds { hold: Hold },
    /// An answer reaches a holder.
    Answer { hold: Hold, input: writer::Input },
    /// db announces a cursor to a holder.
    Announce { hold: Hold, input: writer::Input },
    /// A holder's deadline.
    Wake { hold: Hold },
    /// A process tries to take over an owner that it was granted.
    TakeOver { hold: Hold },
    /// The ledger's holder polls the outbox; it last received something at `since`.
    Carry { hold: Hold, outbox: Outbox, since: u64 },
    /// The director's beat.
    Direct,
    /// db reads the stream.
    Fold { shard: usize },
    /// An input reaches a client's core.
    ToClient { client: usize, input: ClientInput },
    /// A client's deadline.
    WakeClient { client: usize },
    /// A client logs in, or asks where its base is.
    Login { client: usize, request: clients::LoginCall },
    /// A client's connection reaches a process.
    Connect {
        client: usize,
        connection: ConnectionId,
        process: ProcessId,
    },
    /// A frame of a client reaches its base.
    Frame { connection: ConnectionId, bytes: Vec<u8> },
    /// A datagram of a client reaches its base.
    Datagram { connection: ConnectionId, bytes: Vec<u8> },
    /// A base notices that a connection is gone.
    Hangup { connection: ConnectionId },
    /// A client acts.
    Play { client: usize },
    /// A process works on an inquiry of behaviour to the database.
    Inquire { asking: inquiring::Asking },
    /// db is asked to check an entity out.
    CheckOut {
        asking: inquiring::Asking,
        epoch: Epoch,
        database: DatabaseId,
    },
    /// The holder of an owner is asked to activate an entity there.
    BeginLife { from: ProcessId, at: OwnerId, begin: Begin },
    /// That request has timed out.
    BeginAgain { request: u64 },
    /// An inquiry to the database is answered.
    Inquired { hold: Hold, answered: Answered },
    /// A round of the parade is over.
    March { round: u64 },
    /// Samples the positions in the parade.
    Glance,
    /// A border is moved.
    MoveBorders,
    /// A cell process crashes in the parade.
    StrikeParade { dice: u64, tries: u64 },
    /// A player moves to a position.
    SetOut { client: usize, position: Position },
    /// A fault strikes.
    Strike { blow: Blow, dice: u64 },
    /// A follower reads on.
    Follow {
        process: ProcessId,
        owner: OwnerId,
        number: u64,
    },
    /// A draining process ends its holding of an owner that is followed.
    HandOver { hold: Hold },
    /// A holder that is at rest releases its owner.
    Release { hold: Hold },
    /// A draining process releases what was not handed over in time.
    ReleaseRest { process: ProcessId },
    /// A draining process ends.
    EndDrained { process: ProcessId },
    /// A process reports to a new director for the first time.
    FindDirector { process: ProcessId },
    /// A process is started.
    Start { service: Service },
    /// A paused process resumes.
    Resume { process: ProcessId },
    /// A partition of a process heals.
    Reconnect { process: ProcessId },
    /// The db of a shard restarts.
    StartDb { shard: usize },
    /// A paused db resumes.
    ResumeDb { shard: usize },
    /// A director restarts.
    StartDirector,
    /// A paused director resumes.
    ResumeDirector,
}

/// The simulated realm, with its agenda and its observations.
pub struct World {
    pub seed: u64,
    pub plan: Plan,
    /// Microseconds since the simulation began.
    pub now: u64,
    agenda: BTreeMap<(u64, u64), Step>,
    scheduled: u64,
    steps: u64,
    dice: Box<dyn FnMut() -> u64>,
    pub schema: Arc<Schema>,
    /// The streams, by shard.
    pub streams: Vec<Stream>,
    /// The shards of owners.
    shards: BTreeMap<OwnerId, Shard>,
    /// The leaves of all shards in the order in which they were archived.
    pub archived: Vec<(Shard, LeafIndex)>,
    /// How many leaves of each shard that is.
    archived_of: BTreeMap<Shard, u64>,
    /// The connections that servers have reported as closed.
    closed: ClosedConnections,
    /// Until when the log is unavailable.
    log_away: u64,
    /// Until when its disk is slow.
    disk_slow: u64,
    /// Until when lost data is being restored; processes that alone can restore it do not crash meanwhile.
    healing: u64,
    /// The store's memory.
    pub memory: MemoryStore,
    /// The store, as all participants use it.
    pub store: Store,
    /// The store's current troubles.
    storing: Arc<Mutex<Storing>>,
    /// Processes that were started and have not crashed.
    pub processes: BTreeMap<ProcessId, Process>,
    holds: u64,
    /// The leading director, if there is one.
    pub director: Option<Directing>,
    /// A paused director.
    stopped_director: Option<Directing>,
    /// The db of each shard, if it runs.
    pub dbs: Vec<Option<Folding>>,
    /// The paused db of each shard.
    stopped_dbs: Vec<Option<Folding>>,
    /// The newest map.
    pub map: SpaceMap,
    pub clients: Vec<SimClient>,
    /// The clients' connections.
    pub connections: BTreeMap<ConnectionId, Connection>,
    next_connection: u64,
    logins: BTreeMap<u64, clients::Pending>,
    next_login: u64,
    /// Requested activations, by request number.
    lives: BTreeMap<u64, inquiring::Asking>,
    next_call: u32,
    /// The faults and events, in order, for the reader.
    pub events: Vec<String>,
    /// Occurrences of each kind of fault.
    pub struck: BTreeMap<Kind, u64>,
    /// Violations observed during the run.
    pub broken: Vec<String>,
    /// The cuts of the plane.
    borders: borders::Borders,
    /// Observations of the parade.
    pub parade: Parade,
    /// Each log as it was archived, in realms with retention.
    remembered: BTreeMap<OwnerId, Vec<Vec<u8>>>,
    /// Bytes of batches that retention deleted.
    pub deleted: u64,
    /// Boundary moves, and cells added or retired.
    pub redrawn: u64,
    /// The hellos of clients that connected before the process holds their owner.
    early: Vec<(ConnectionId, Hello)>,
    /// Owners that draining processes released.
    pub released: u64,
    /// Owners that were released without a process that follows them.
    pub unfollowed: u64,
    /// Grants to processes that drain themselves.
    pub passed_on: u64,
    /// Take-overs by processes that followed the owner.
    pub followed: u64,
}

impl World {
    /// Creates a realm before its first step.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let seed = plan.seed;
        // The plan drew from the start of the seed's generator; removing faults from a plan does not affect this one.
        let dice: Box<dyn FnMut() -> u64> = Box::new(annals_def::split_mix(!seed));
        let memory = MemoryStore::new();
        let storing = Arc::new(Mutex::new(Storing::of(&plan)));
        let store = storing::wrap(&memory.store(), &storing);
        let shards = plan.shards;
        let mut world = Self {
            seed,
            plan,
            now: 0,
            agenda: BTreeMap::new(),
            scheduled: 0,
            steps: 0,
            dice,
            schema: game::schema(),
            streams: (0..shards).map(|_| Stream::default()).collect(),
            shards: BTreeMap::new(),
            archived: Vec::new(),
            archived_of: BTreeMap::new(),
            closed: ClosedConnections::default(),
            log_away: 0,
            disk_slow: 0,
            healing: 0,
            memory,
            store,
            storing,
            processes: BTreeMap::new(),
            holds: 0,
            director: None,
            stopped_director: None,
            dbs: (0..shards).map(|_| None).collect(),
            stopped_dbs: (0..shards).map(|_| None).collect(),
            map: SpaceMap::default(),
            clients: Vec::new(),
            connections: BTreeMap::new(),
            next_connection: 1,
            logins: BTreeMap::new(),
            next_login: 1,
            lives: BTreeMap::new(),
            next_call: 1,
            events: Vec::new(),
            struck: BTreeMap::new(),
            broken: Vec::new(),
            borders: borders::Borders::default(),
            parade: Parade::default(),
            remembered: BTreeMap::new(),
            deleted: 0,
            redrawn: 0,
            early: Vec::new(),
            released: 0,
            unfollowed: 0,
            passed_on: 0,
            followed: 0,
        };
        world.begin();
        world
    }

    /// Runs to the end of the plan.
    ///
    /// # Panics
    /// If a core panics, or the run does not end.
    pub fn run(&mut self) {
        let end = self.end_us();
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), step) = entry.remove_entry();
            assert!(at >= self.now, "time is monotonic");
            let passed = at - self.now;
            self.memory.advance(std::time::Duration::from_micros(passed));
            self.now = at;
            self.set_store_time();
            self.steps += 1;
            assert!(
                self.steps < STEP_LIMIT,
                "seed {}: the realm does not come to rest",
                self.seed
            );
            self.take(step);
        }
    }

    /// Whether clients still play and faults still strike.
    #[must_use]
    pub fn is_playing(&self) -> bool {
        self.now < self.play_us()
    }

    /// Duration of play and faults, microseconds.
    fn play_us(&self) -> u64 {
        self.plan.shape.play_ms * 1_000
    }

    /// End of the run, microseconds.
    fn end_us(&self) -> u64 {
        let shape = self.plan.shape;
        let parade = if self.plan.crossing.is_some() {
            parade::PARADE_MS + CLOSING_MS
        } else {
            0
        };
        (shape.play_ms + shape.settle_ms + parade) * 1_000
    }

    /// The store without troubles, for checkers.
    #[must_use]
    pub fn truth(&self) -> Store {
        self.memory.store()
    }

    /// The time as given to the cores of a process, whose wall clock may be wrong.
    #[must_use]
    pub fn moment(&self, process: ProcessId) -> Now {
        let wrong_ms = self.processes.get(&process).map_or(0, |process| process.wrong_ms);
        // The monotonic clock did not start with the realm.
        let mono = Mono(self.now + 1_000_000_000);
        let millis = self.now / 1_000;
        Now {
            mono,
            wall: WallTime((BEGAN.0 + millis).saturating_add_signed(wrong_ms)),
            world: WorldTime(millis),
        }
    }

    /// A random number.
    pub fn roll(&mut self) -> u64 {
        (self.dice)()
    }

    /// A random number of microseconds from `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.roll() % (most - least + 1)
    }

    /// Whether a trouble affects an item of traffic.
    fn befalls(&mut self, trouble: Trouble) -> bool {
        let roll = self.roll();
        let hit = self.plan.odds(trouble, self.now / 1_000).hit(roll);
        if hit {
            self.count(Kind::Trouble(trouble));
        }
        hit
    }

    fn count(&mut self, kind: Kind) {
        *self.struck.entry(kind).or_default() += 1;
    }

    /// Schedules a step after this many microseconds.
    pub(crate) fn after(&mut self, delay: u64, step: Step) {
        self.scheduled += 1;
        self.agenda.insert((self.now + delay, self.scheduled), step);
    }

    /// Records an event for the reader.
    pub fn note(&mut self, what: impl std::fmt::Display) {
        self.events.push(format!("{:>9.3} s  {what}", self.now as f64 / 1e6));
    }

    fn begin(&mut self) {
        self.make_pets();
        self.set_shards();
        for shard in 0..self.streams.len() {
            self.after(0, Step::StartDb { shard });
        }
        self.after(1_000, Step::StartDirector);
        for number in 0..self.plan.shape.bases {
            self.after(10_000 + number, Step::Start { service: Service::Base });
        }
        for number in 0..self.plan.shape.cells {
            self.after(11_000 + number, Step::Start { service: Service::Cell });
        }
        for number in 0..self.plan.shape.ledgers {
            self.after(
                12_000 + number,
                Step::Start {
                    service: Service::Ledger,
                },
            );
        }
        for client in 0..self.plan.shape.clients {
            self.add_client(client);
        }
        if self.plan.crossing.is_some() {
            let settled = (self.plan.shape.play_ms + self.plan.shape.settle_ms) * 1_000;
            self.after(settled, Step::March { round: 0 });
        }
        for fault in self.plan.faults.clone() {
            if let Planned::Strike { at_ms, blow, dice } = fault {
                self.after(at_ms * 1_000, Step::Strike { blow, dice });
            }
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Deliver { from, to, bytes } => self.deliver(from, to, &bytes),
            Step::Ask { hold, question } => self.ask(hold, question),
            Step::LateAppend { owner, expect, bytes } => {
                self.stream_of(owner).append(owner, expect, bytes);
            }
            Step::GiveIds { hold } => self.give_ids(hold),
            Step::Prepared { hold, download } => self.prepared(hold, download),
            Step::Answer { hold, input } => self.answer(hold, input),
            Step::Announce { hold, input } => self.announce(hold, input),
            Step::Wake { hold } => self.wake(hold),
            Step::TakeOver { hold } => self.take_over(hold),
            Step::Carry { hold, outbox, since } => self.carry(hold, outbox, since),
            Step::Direct => self.direct(),
            Step::Fold { shard } => self.fold(shard),
            Step::ToClient { client, input } => self.send_to_client(client, input),
            Step::WakeClient { client } => self.wake_client(client),
            Step::Login { client, request } => self.log_in(client, request),
            Step::Connect {
                client,
                connection,
                process,
            } => self.connect(client, connection, process),
            Step::Frame { connection, bytes } => self.frame(connection, &bytes),
            Step::Datagram { connection, bytes } => self.datagram(connection, &bytes),
            Step::Hangup { connection } => self.hangup(connection),
            Step::Play { client } => self.play(client),
            Step::Inquire { asking } => self.inquire(asking),
            Step::CheckOut {
                asking,
                epoch,
                database,
            } => self.check_out(asking, epoch, database),
            Step::BeginLife { from, at, begin } => self.begin_life(from, at, begin),
            Step::BeginAgain { request } => self.begin_again(request),
            Step::Inquired { hold, answered } => self.inquired(hold, answered),
            Step::March { round } => self.march(round),
            Step::Glance => self.glance(),
            Step::MoveBorders => self.shift_borders(),
            Step::StrikeParade { dice, tries } => self.strike_parade(dice, tries),
            Step::SetOut { client, position } => self.set_out(client, position),
            Step::Strike { blow, dice } => self.strike(blow, dice),
            Step::Follow { process, owner, number } => self.follow(process, owner, number),
            Step::HandOver { hold } => self.hand_over(hold),
            Step::Release { hold } => self.release(hold, true),
            Step::ReleaseRest { process } => self.release_rest(process),
            Step::EndDrained { process } => self.end_drained(process),
            Step::FindDirector { process } => self.find_director(process),
            Step::Start { service } => self.start(service),
            Step::Resume { process } => self.resume(process),
            Step::Reconnect { process } => self.reconnect(process),
            Step::StartDb { shard } => self.start_db(shard),
            Step::ResumeDb { shard } => self.resume_db(shard),
            Step::StartDirector => self.start_director(),
            Step::ResumeDirector => self.resume_director(),
        }
    }
}
