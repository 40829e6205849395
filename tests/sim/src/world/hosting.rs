//! Processes and the owners they hold: the host's holder, without waiting.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use annals_base::{BaseInput, BaseRole, Connections};
use annals_cell::{CellInput, CellRole};
use annals_db::{LedgerInput, LedgerRole, ledger::Outbox, no_behaviour};
use annals_director::Grant;
use annals_event::{Imprint, OwnerState};
use annals_ids::{Epoch, OwnerId, OwnerKind, ProcessId};
use annals_node::{
    Beginning, Behaviour, Input, Output, Owner,
    inquiry::Answered,
    writer::{self, Durability, Opening, Tip},
};
use annals_store::{
    immediate,
    layout::owners::{self, Cursor, OpeningRecord},
};
use annals_wire::{SpaceMap, bus::Envelope};

use super::{
    REALM, Step, World,
    asking::{Question, question},
    draining::{Draining, Following},
    partitions::Cut,
};
use crate::{fault::Trouble, game::Game};

/// What a process serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    Base,
    Cell,
    /// The ledger's owner. In a realm db does.
    Ledger,
}

/// One holding of an owner by a process; inputs for an earlier holding are not given to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    pub process: ProcessId,
    pub owner: OwnerId,
    /// Number of the holding.
    pub number: u64,
}

/// A process.
pub struct Process {
    /// What it serves.
    pub service: Service,
    /// Until when it is paused, if it is.
    pub paused: Option<u64>,
    /// Its partition.
    pub cut: Cut,
    /// Whether it has reported to the director that leads.
    pub(super) has_found_director: bool,
    /// Error of its wall clock, milliseconds; positive is ahead.
    pub wrong_ms: i64,
    /// The map of spaces last received from the director.
    pub(super) map: SpaceMap,
    /// Steps deferred during its pause.
    pub(crate) missed: Vec<Step>,
    /// The owners it holds.
    pub owners: BTreeMap<OwnerId, Held>,
    /// Its drain, if it drains.
    pub draining: Option<Draining>,
    /// The connections of its clients.
    pub(super) clients: Connections,
    /// The owners that it follows.
    pub follows: BTreeMap<OwnerId, Following>,
    /// The owners that it was granted and has released.
    pub released: BTreeSet<OwnerId>,
}

impl Process {
    /// Whether it is about to hold an owner, which it follows or takes over.
    #[must_use]
    pub fn is_next(&self, owner: OwnerId) -> bool {
        let takes_over = |held: &Held| held.core.is_none();
        self.follows.contains_key(&owner) || self.owners.get(&owner).is_some_and(takes_over)
    }

    /// Whether it and the director reach each other.
    #[must_use]
    pub fn reaches_director(&self) -> bool {
        self.paused.is_none() && !self.cut.director
    }

    /// Whether it reports to the director that leads, and acts on its orders.
    #[must_use]
    pub fn reports_to_director(&self) -> bool {
        self.reaches_director() && self.has_found_director
    }
}

/// An owner that a process holds or is taking over.
pub struct Held {
    pub hold: Hold,
    /// The granted epoch.
    pub epoch: Epoch,
    /// The granted ids.
    pub ids: std::ops::Range<u64>,
    /// Whether the grant found that the former holder had ended (rule E8).
    former_ended: bool,
    /// What this process read of the log while it followed the owner.
    following: Option<Following>,
    /// The core, after the take-over.
    pub core: Option<Core>,
    /// Whether it ends in order.
    pub(super) ending: Ending,
    /// Version of the map that the core was given.
    map: u64,
    /// Inputs that wait until the core accepts inputs again.
    waiting: VecDeque<Given>,
    /// Whether a request of it is pending.
    asking: bool,
    /// Its scheduled wake-up.
    waking: Option<u64>,
}

/// Whether a holder takes input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It does.
    No,
    /// What has happened is logged and shown, and nothing more happens.
    Finishing,
    /// It is at rest, and about to release the owner.
    AtRest,
}

/// A core.
pub enum Core {
    /// Of a base owner.
    Base(Box<Owner<BaseRole>>),
    /// Of a cell owner.
    Cell(Box<Owner<CellRole>>),
    /// Of the ledger's owner.
    Ledger(Box<Owner<LedgerRole>>),
}

/// Applies the same expression to the core of any role.
macro_rules! either {
    ($core:expr, $owner:ident => $does:expr) => {
        match $core {
            Core::Base($owner) => $does,
            Core::Cell($owner) => $does,
            Core::Ledger($owner) => $does,
        }
    };
}

impl Held {
    fn is_full(&self) -> bool {
        self.core.as_ref().is_some_and(Core::is_full)
    }

    fn wait(&mut self, given: Given) {
        // Queue at most one time input.
        let is_said = matches!((&given, self.waiting.back()), (Given::Time, Some(Given::Time)));
        if !is_said {
            self.waiting.push_back(given);
        }
    }

    /// Drops the inputs that wait: calls are resent to the next holder of the owner.
    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    fn next_waiting(&mut self) -> Option<Given> {
        if self.is_full() { None } else { self.waiting.pop_front() }
    }
}

impl Core {
    /// Whether it accepts inputs from the log only, and its time does not advance.
    #[must_use]
    pub fn is_full(&self) -> bool {
        either!(self, owner => owner.is_full())
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> &OwnerState {
        either!(self, owner => owner.state())
    }

    /// Whether it no longer writes.
    #[must_use]
    pub fn stopped(&self) -> Option<&writer::Stop> {
        either!(self, owner => owner.stopped())
    }

    /// Its writer.
    #[must_use]
    pub fn writer(&self) -> &writer::Writer {
        either!(self, owner => owner.writer())
    }
}

impl World {
    pub(super) fn start(&mut self, service: Service) {
        let Some(director) = &self.director else {
            self.after(200_000, Step::Start { service });
            return;
        };
        match immediate(director.grants.register()) {
            Ok(process) => {
                let started = Process {
                    service,
                    paused: None,
                    cut: Cut::default(),
                    has_found_director: true,
                    wrong_ms: 0,
                    map: SpaceMap::default(),
                    missed: Vec::new(),
                    owners: BTreeMap::new(),
                    draining: None,
                    clients: Connections::default(),
                    follows: BTreeMap::new(),
                    released: BTreeSet::new(),
                };
                self.processes.insert(process, started);
            }
            Err(_) => self.after(200_000, Step::Start { service }),
        }
    }

    /// A process was granted an owner.
    pub(super) fn begin_hold(&mut self, process: ProcessId, grant: Grant) {
        let Grant {
            owner,
            epoch,
            ids,
            former_ended,
            ..
        } = grant;
        self.holds += 1;
        let hold = Hold {
            process,
            owner,
            number: self.holds,
        };
        let Some(host) = self.processes.get_mut(&process) else {
            return;
        };
        let following = host.follows.remove(&owner);
        self.passed_on += u64::from(host.draining.is_some());
        host.owners.insert(
            owner,
            Held {
                hold,
                epoch,
                ids,
                former_ended,
                following,
                core: None,
                ending: Ending::No,
                map: 0,
                waiting: VecDeque::new(),
                asking: false,
                waking: None,
            },
        );
        let delay = self.between(500, 5_000);
        self.after(delay, Step::TakeOver { hold });
    }

    /// Rule E1.
    pub(super) fn take_over(&mut self, hold: Hold) {
        let now = self.moment(hold.process);
        if self.defer(hold.process, |_| Step::TakeOver { hold }) {
            return;
        }
        if self.cut_of(hold.process).log {
            self.after(300_000, Step::TakeOver { hold });
            return;
        }
        let Some(held) = self.held(hold) else { return };
        let (epoch, ids, former_ended) = (held.epoch, held.ids.clone(), held.former_ended);
        let reader = held
            .following
            .as_mut()
            .map(|following| std::mem::take(&mut following.reader));
        let Some((state, chain)) = self.read_owner(hold.owner, reader.unwrap_or_default()) else {
            // The next try begins from the archive.
            return self.after(300_000, Step::TakeOver { hold });
        };
        let imprint = Imprint {
            realm: REALM.to_owned(),
            owner: hold.owner,
            epoch,
            schema: self.schema.fingerprint(),
        };
        let seed = self.roll();
        let (kind, base, cell, ledger) = (
            state.kind,
            BaseRole::take_over(&state, now.mono),
            self.plan
                .shape
                .downstream
                .into_iter()
                .fold(CellRole::take_over(&state, now.mono), CellRole::with_downstream),
            LedgerRole::take_over(&state, now.mono),
        );
        let durability = match kind {
            OwnerKind::Base | OwnerKind::Cell => self.plan.shape.durability,
            OwnerKind::Ledger => Durability::Archive,
        };
        let keys = self.keys(&state);
        let beginning = Beginning {
            state,
            call_generation: 0,
            chain: writer::Chain { former_ended, ..chain },
            imprint,
            durability,
            ids,
            schema: Arc::clone(&self.schema),
            behaviour: self.behaviour(kind),
            panics: annals_node::PanicPolicy::Propagate,
            dice: Box::new(annals_def::split_mix(seed)),
            keys,
        };
        let core = match kind {
            OwnerKind::Base => Core::Base(Box::new(Owner::take_over(now, base, beginning))),
            OwnerKind::Cell => Core::Cell(Box::new(Owner::take_over(now, cell, beginning))),
            OwnerKind::Ledger => Core::Ledger(Box::new(Owner::take_over(now, ledger, beginning))),
        };
        self.begin_core(hold, core);
        if kind == OwnerKind::Ledger {
            let (outbox, since) = (Outbox::default(), self.now);
            self.after(0, Step::Carry { hold, outbox, since });
        }
    }

    /// Gives a new core the map, and what waited for it.
    fn begin_core(&mut self, hold: Hold, core: Core) {
        let Some(held) = self.held(hold) else { return };
        held.core = Some(core);
        let following = held.following.take();
        if let Some(host) = self.processes.get_mut(&hold.process) {
            host.clients.forget_move(hold.owner);
        }
        self.send_map(hold);
        if let Some(following) = following {
            self.followed += 1;
            self.give_kept(hold, following);
        }
        self.greet_early(hold.process);
    }

    fn behaviour(&self, kind: OwnerKind) -> Arc<dyn Behaviour> {
        match kind {
            OwnerKind::Base | OwnerKind::Cell => Arc::new(Game {
                beasts: self.plan.crossing.map_or(0, |crossing| crossing.beasts),
                squints: self.plan.squints(),
                visits: self.plan.visits,
            }),
            OwnerKind::Ledger => no_behaviour(),
        }
    }

    pub(super) fn openings(&self, owner: OwnerId) -> Option<Vec<Opening>> {
        let read = self
            .store
            .read(|transaction| async move { owners::read_openings(&transaction, owner, Epoch(0)).await });
        let records = immediate(read).ok()?.into_iter();
        let opening = |OpeningRecord { epoch, number, hash }| Opening { epoch, number, hash };
        Some(records.map(opening).collect())
    }

    /// The newest archived batch of an owner.
    pub(super) fn cursor(&self, owner: OwnerId) -> Option<Tip> {
        let read = self.store.read(|transaction| async move {
            let value = transaction.get(&owners::cursor_key(owner)).await?;
            Cursor::decode(value.as_deref())
        });
        let Cursor { batch, hash, .. } = immediate(read).ok()?;
        Some(Tip { number: batch, hash })
    }

    /// Defers a step for a paused process until it resumes.
    pub(super) fn defer(&mut self, process: ProcessId, step: impl FnOnce(&mut Process) -> Step) -> bool {
        match self.processes.get_mut(&process) {
            Some(host) if host.paused.is_some() => {
                let step = step(host);
                host.missed.push(step);
                true
            }
            Some(_) => false,
            None => true,
        }
    }

    pub(super) fn resume(&mut self, process: ProcessId) {
        let Some(host) = self.processes.get_mut(&process) else {
            return;
        };
        host.paused = None;
        let missed = std::mem::take(&mut host.missed);
        let holds: Vec<Hold> = host.owners.values().map(|held| held.hold).collect();
        for step in missed {
            self.after(0, step);
        }
        for hold in holds {
            self.after(1, Step::Wake { hold });
        }
    }

    pub(super) fn held(&mut self, hold: Hold) -> Option<&mut Held> {
        self.processes
            .get_mut(&hold.process)?
            .owners
            .get_mut(&hold.owner)
            .filter(|held| held.hold == hold)
    }

    pub(super) fn deliver(&mut self, from: ProcessId, to: OwnerId, bytes: &[u8]) {
        let Ok(envelope) = Envelope::decode(bytes) else {
            panic!("seed {}: an envelope does not round-trip", self.seed)
        };
        let reached: Vec<ProcessId> = self.processes.keys().copied().collect();
        let reached: Vec<ProcessId> = reached
            .into_iter()
            .filter(|process| self.reach_each_other(from, *process))
            .collect();
        let mut holds = Vec::new();
        for process in reached {
            let now = self.now;
            let Some(host) = self.processes.get_mut(&process) else {
                continue;
            };
            match (host.owners.get_mut(&to), host.follows.get_mut(&to)) {
                (Some(held), _) => match &mut held.following {
                    Some(following) => following.keep(now, envelope.clone()),
                    None => holds.push(held.hold),
                },
                (None, Some(following)) => following.keep(now, envelope.clone()),
                (None, None) => {}
            }
        }
        for hold in holds {
            if !self.defer(hold.process, |_| Step::Deliver {
                from,
                to,
                bytes: bytes.to_vec(),
            }) {
                self.give(hold, Given::Bus(envelope.clone()));
            }
        }
    }

    pub(super) fn answer(&mut self, hold: Hold, input: writer::Input) {
        let input = match self.cut_of(hold.process).log {
            // The request is carried out; its answer is lost.
            true => writer::Input::Silent,
            false => input,
        };
        let kept = input.clone();
        if self.defer(hold.process, |_| Step::Answer { hold, input: kept }) {
            return;
        }
        if let Some(held) = self.held(hold) {
            held.asking = false;
        }
        self.give(hold, Given::Log(input));
    }

    /// An announcement of db may be lost: it is repeated.
    pub(super) fn announce(&mut self, hold: Hold, input: writer::Input) {
        if self
            .processes
            .get(&hold.process)
            .is_some_and(|host| host.paused.is_none() && !host.cut.log)
        {
            self.give(hold, Given::Log(input));
        }
    }

    pub(super) fn wake(&mut self, hold: Hold) {
        if self
            .processes
            .get(&hold.process)
            .is_none_or(|host| host.paused.is_some())
        {
            return;
        }
        let now = self.now;
        if let Some(held) = self.held(hold) {
            if held.waking.is_some_and(|at| at > now) {
                return;
            }
            held.waking = None;
        }
        self.give(hold, Given::Time);
    }

    /// Gives a core an input, once it accepts any, and carries out all its outputs.
    pub(super) fn give(&mut self, hold: Hold, given: Given) {
        let waits = !matches!(given, Given::Log(_) | Given::Ids(_));
        match self.held(hold) {
            // Its log continues, and nothing else.
            Some(held) if held.ending != Ending::No && !matches!(given, Given::Log(_)) => self.drain(hold),
            Some(held) if waits && held.is_full() => {
                held.wait(given);
                // Its log continues.
                self.drain(hold);
            }
            _ => self.hand(hold, given),
        }
        while let Some(next) = self.held(hold).and_then(Held::next_waiting) {
            self.hand(hold, next);
        }
    }

    fn hand(&mut self, hold: Hold, given: Given) {
        let now = self.moment(hold.process);
        let Some(core) = self.held(hold).and_then(|held| held.core.as_mut()) else {
            return;
        };
        match (core, given) {
            (Core::Base(owner), Given::Base(input)) => owner.handle(now, Input::Role(input)),
            (Core::Cell(owner), Given::Cell(input)) => owner.handle(now, Input::Role(input)),
            (Core::Ledger(owner), Given::Ledger(input)) => owner.handle(now, Input::Role(input)),
            (_, Given::Base(_) | Given::Cell(_) | Given::Ledger(_)) => {}
            (core, Given::Bus(envelope)) => either!(core, owner => owner.handle(now, Input::Bus(envelope))),
            (core, Given::Log(input)) => either!(core, owner => owner.handle(now, Input::Log(input))),
            (core, Given::Inquired(answered)) => either!(core, owner => owner.handle(now, Input::Inquired(answered))),
            (core, Given::Ids(ids)) => either!(core, owner => owner.handle(now, Input::Ids(ids))),
            (core, Given::Time) => either!(core, owner => owner.handle(now, Input::Time)),
        }
        self.drain(hold);
    }

    pub(super) fn drain(&mut self, hold: Hold) {
        let now = self.moment(hold.process);
        let Some(held) = self.held(hold) else { return };
        let Some(core) = held.core.as_mut() else { return };
        let question = if held.asking {
            None
        } else {
            either!(core, owner => owner.poll_log(now)).as_ref().map(question)
        };
        let mut outputs = Vec::new();
        while let Some(output) = either!(core, owner => owner.poll_output(now)) {
            outputs.push(output);
        }
        let deadline = match held.ending {
            Ending::No => either!(core, owner => owner.deadline(now)),
            Ending::Finishing | Ending::AtRest => core.writer().deadline(now.mono),
        };
        let is_at_rest = held.ending == Ending::Finishing && either!(core, owner => owner.is_at_rest());
        let stopped = core.stopped().cloned();
        held.asking |= question.is_some();
        if let Some(question) = question {
            let most = match question {
                Question::Append { .. } => self.plan.shape.append_us,
                _ => 2_500,
            };
            let delay = self.between(200, most);
            self.after(delay, Step::Ask { hold, question });
        }
        for output in outputs {
            self.emit(hold, output);
        }
        if let Some(stop) = stopped {
            self.end_hold(hold, &stop);
            return;
        }
        if let Some(held) = self.held(hold).filter(|_| is_at_rest) {
            held.ending = Ending::AtRest;
            let delay = self.between(200, 2_500);
            self.after(delay, Step::Release { hold });
        }
        if let Some(deadline) = deadline {
            let due = deadline.0.saturating_sub(1_000_000_000).max(self.now + 50);
            let waking = self.held(hold).is_some_and(|held| {
                let sooner = held.waking.is_none_or(|at| due < at);
                if sooner {
                    held.waking = Some(due);
                }
                sooner
            });
            if waking {
                self.after(due - self.now, Step::Wake { hold });
            }
        }
    }

    fn end_hold(&mut self, hold: Hold, stop: &writer::Stop) {
        assert!(
            !stop.is_alarm(),
            "seed {}: an alarm that no fault explains: {stop}",
            self.seed
        );
        if let Some(host) = self.processes.get_mut(&hold.process) {
            host.owners.remove(&hold.owner);
        }
        self.send_away(hold.process, hold.owner);
        self.leave_if_empty(hold.process);
    }

    fn emit(&mut self, hold: Hold, output: Output) {
        match output {
            Output::Send { to, envelope } => self.publish(hold.process, to, &envelope),
            Output::WantIds => self.give_ids(hold),
            Output::Inquire {
                entity,
                number,
                inquiry,
            } => self.begin_inquiry(hold, (entity, number), inquiry),
            Output::Begun { request, begun } => self.life_begun(request, begun),
            Output::Download(download) => {
                let delay = self.between(100, 20_000);
                self.after(delay, Step::Prepared { hold, download });
            }
            other => self.emit_to_client(other),
        }
    }

    /// Grants ids to a holder that requested them, once a director can be reached.
    pub(super) fn give_ids(&mut self, hold: Hold) {
        if self.defer(hold.process, |_| Step::GiveIds { hold }) {
            return;
        }
        let reached = self.director.as_ref().filter(|_| !self.cut_of(hold.process).director);
        match reached.map(|director| immediate(director.grants.more_ids())) {
            Some(Ok(ids)) => self.give(hold, Given::Ids(ids)),
            _ if self.held(hold).is_some() => self.after(300_000, Step::GiveIds { hold }),
            _ => {}
        }
    }

    /// Latencies of a message's copies that arrive.
    pub(super) fn journeys(&mut self) -> Vec<u64> {
        if self.befalls(Trouble::Drop) {
            return Vec::new();
        }
        let copies = if self.befalls(Trouble::Duplicate) { 2 } else { 1 };
        let journey = |_| {
            if self.befalls(Trouble::Delay) {
                self.between(10_000, 2_000_000)
            } else {
                self.between(100, 1_500)
            }
        };
        (0..copies).map(journey).collect()
    }

    /// The bus: it may lose, duplicate, delay and thereby reorder.
    fn publish(&mut self, from: ProcessId, to: OwnerId, envelope: &Envelope) {
        let bytes = envelope.encode();
        for delay in self.journeys() {
            self.after(
                delay,
                Step::Deliver {
                    from,
                    to,
                    bytes: bytes.clone(),
                },
            );
        }
    }

    /// Gives a core the map of its process, unless it already has it.
    pub(super) fn send_map(&mut self, hold: Hold) {
        let Some(host) = self.processes.get_mut(&hold.process) else {
            return;
        };
        let (service, map) = (host.service, host.map.clone());
        let held = host.owners.get_mut(&hold.owner);
        let Some(held) = held.filter(|held| held.hold == hold && held.core.is_some() && held.map < map.version) else {
            return;
        };
        held.map = map.version;
        let given = match service {
            Service::Base => Given::Base(BaseInput::Map(map)),
            Service::Cell => Given::Cell(CellInput::Map(map)),
            Service::Ledger => Given::Ledger(LedgerInput::Map(map)),
        };
        self.give(hold, given);
    }
}

/// An input of a core.
pub(crate) enum Given {
    /// For a base.
    Base(BaseInput),
    /// For a cell.
    Cell(CellInput),
    /// For the ledger's owner.
    Ledger(LedgerInput),
    /// From the bus.
    Bus(Envelope),
    /// From log or store.
    Log(writer::Input),
    /// The answer to an inquiry.
    Inquired(Answered),
    /// From the director.
    Ids(std::ops::Range<u64>),
    /// From the clock.
    Time,
}
