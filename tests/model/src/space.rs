//! The data of a space: copies on its owners, and what a client sees of them.
//!
//! Three owners write a value, or open the space anew, which begins another life of the space and voids the values of
//! earlier lives. Each owner logs its writes, sends them to the others and receives theirs; messages are lost, owners
//! crash, get an area in the space or lose it, and a client moves between owners. Game time is the number of writes,
//! and clocks are right. The rules are S1 to S4.

pub mod exhibits;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Owners within the bounds.
const OWNERS: usize = 3;

/// Maximum writes within the bounds.
const MOST_WRITES: usize = 3;

/// Keys: that of the value, and that of the time since which the space is open.
const VALUE: usize = 0;
const LIFE: usize = 1;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct SpaceBounds {
    /// Number of writes: at most 3.
    pub writes: u8,
    /// How many of these open the space anew.
    pub openings: u8,
    /// Number of owners that have an area initially.
    pub owners: u8,
    /// Number of times that an owner gets or loses its area.
    pub redrawn: u8,
    /// Number of times that the client moves to another owner.
    pub moves: u8,
    /// Faults; crashes and drops count here.
    pub faults: Faults,
}

/// The model of a space's data.
#[derive(Debug, Clone, Copy)]
pub struct SpaceModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: SpaceBounds,
}

/// By key: the write that is held, counted from 1; 0 for none.
type Held = [u8; 2];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Write {
    key: usize,
    /// The life of the space that the writer knew, or began.
    life: u8,
    stamp: u8,
    by: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Owner {
    memory: Held,
    log: Held,
    has_area: bool,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpaceState {
    /// All writes, in order.
    writes: [Write; MOST_WRITES],
    made: u8,
    owners: [Owner; OWNERS],
    /// By owner: bit set of the writes in flight to it.
    messages: [u8; OWNERS],
    /// What the client sees, which owner serves it, and what that owner believes that the client sees.
    sees: Held,
    holder: usize,
    believes: Held,
    /// Whether a newer value was replaced by an older one.
    has_aged: bool,
    openings: u8,
    redrawn: u8,
    moves: u8,
    left: Faults,
}

/// A step.
#[derive(Debug, Clone, Copy)]
pub enum SpaceStep {
    /// An owner writes under a key.
    Write(usize, usize),
    /// The log acknowledges the owner's memory, and the others are sent its writes.
    Log(usize),
    /// A write reaches an owner.
    Arrive(usize, u8),
    /// A write to an owner is lost.
    Lose(usize, u8),
    /// The two owners exchange their versions, and each is sent what it lacks.
    Beat(usize, usize),
    /// The process crashes, and another continues from the log.
    Crash(usize),
    /// The owner gets or loses an area in the space.
    Redraw(usize),
    /// The client is shown what its owner has.
    Show,
    /// The client's entity is handed over.
    Move(usize),
}

impl Model for SpaceModel {
    type State = SpaceState;
    type Step = SpaceStep;

    fn start(&self) -> SpaceState {
        let mut owners = [Owner::default(); OWNERS];
        owners[..usize::from(self.bounds.owners)]
            .iter_mut()
            .for_each(|owner| owner.has_area = true);
        SpaceState {
            writes: [Write::default(); MOST_WRITES],
            made: 0,
            owners,
            messages: [0; OWNERS],
            sees: [0; 2],
            holder: 0,
            believes: [0; 2],
            has_aged: false,
            openings: self.bounds.openings,
            redrawn: self.bounds.redrawn,
            moves: self.bounds.moves,
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &SpaceState, steps: &mut Vec<SpaceStep>) {
        for (at, owner) in state.owners.iter().enumerate() {
            if owner.has_area && state.made < self.bounds.writes {
                steps.push(SpaceStep::Write(at, VALUE));
                steps.extend((state.openings > 0).then_some(SpaceStep::Write(at, LIFE)));
            }
            steps.extend((owner.memory != owner.log).then_some(SpaceStep::Log(at)));
            for write in (1..=state.made).filter(|write| state.messages[at] & bit(*write) != 0) {
                steps.push(SpaceStep::Arrive(at, write));
                steps.extend((state.left.drops > 0).then_some(SpaceStep::Lose(at, write)));
            }
            for other in 0..OWNERS {
                let says = owner.has_area || self.rules.has(Rule::S2Leaver);
                let receives = other != at && state.owners[other].has_area;
                let is_news = self.exchanged(state, at, other) != state.messages;
                if says && receives && is_news && self.rules.has(Rule::S2Beat) {
                    steps.push(SpaceStep::Beat(at, other));
                }
            }
            steps.extend((state.left.crashes > 0 && owner.memory != owner.log).then_some(SpaceStep::Crash(at)));
            let others = state.owners.iter().filter(|owner| owner.has_area).count();
            let may_leave = others > 1 && state.holder != at;
            steps.extend((state.redrawn > 0 && (!owner.has_area || may_leave)).then_some(SpaceStep::Redraw(at)));
            let may_take = owner.has_area && state.holder != at;
            steps.extend((state.moves > 0 && may_take).then_some(SpaceStep::Move(at)));
        }
        steps.extend((self.shown(state) != state.believes).then_some(SpaceStep::Show));
    }

    fn take(&self, state: &SpaceState, step: SpaceStep) -> SpaceState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    fn broken(&self, state: &SpaceState) -> Option<Invariant> {
        let pairs = (1..=state.made).flat_map(|later| (1..later).map(move |earlier| (earlier, later)));
        let mut overtaken = pairs.filter(|(earlier, later)| {
            let (one, other) = (state.write(*earlier), state.write(*later));
            let are_values = one.key == VALUE && other.key == VALUE;
            are_values && one.life == other.life && self.version(state, *earlier) >= self.version(state, *later)
        });
        let is_back = |held: Held| held[VALUE] > 0 && state.write(held[VALUE]).life < state.life(held);
        if state.has_aged {
            Some(Invariant::NothingAges)
        } else if overtaken.next().is_some() {
            Some(Invariant::LastWordStays)
        } else if state.owners.iter().any(|owner| is_back(owner.memory)) {
            Some(Invariant::VoidStaysAway)
        } else {
            None
        }
    }

    fn words(&self, state: &SpaceState, step: SpaceStep, after: &SpaceState) -> String {
        match step {
            SpaceStep::Write(owner, key) => {
                let Write { life, stamp, .. } = after.writes[usize::from(state.made)];
                let what = match key {
                    VALUE => format!(
                        "writes a value: write {}, of life {life} with stamp {stamp}",
                        after.made
                    ),
                    _ => format!("opens the space anew: write {}, for life {life}", after.made),
                };
                format!("{} {what}", name(owner))
            }
            SpaceStep::Log(owner) => format!("{} logs {}", name(owner), held(after.owners[owner].log)),
            SpaceStep::Arrive(owner, write) => {
                let has = held(after.owners[owner].memory);
                format!("write {write} reaches {}, which then has {has}", name(owner))
            }
            SpaceStep::Lose(owner, write) => format!("write {write} is lost on its way to {}", name(owner)),
            SpaceStep::Beat(owner, other) => format!(
                "{} and {} exchange their versions, and each receives what it lacks",
                name(owner),
                name(other)
            ),
            SpaceStep::Crash(owner) => format!("{} crashes, and continues from its log", name(owner)),
            SpaceStep::Redraw(owner) if after.owners[owner].has_area => format!("{} gets an area", name(owner)),
            SpaceStep::Redraw(owner) => format!("{} loses its area", name(owner)),
            SpaceStep::Show => format!("the client sees {}", held(after.sees)),
            SpaceStep::Move(owner) => format!("the client's entity moves to {}", name(owner)),
        }
    }

    /// All owners of the space have logged the newest write of any log, and the client sees it.
    fn settled(&self, state: &SpaceState) -> bool {
        let mut newest: Held = [0; 2];
        for owner in &state.owners {
            for key in [LIFE, VALUE] {
                self.put(state, &mut newest, owner.log[key]);
            }
        }
        let mut there = state.owners.iter().filter(|owner| owner.has_area);
        // Two writes that begin the same life are equal.
        let versions = |held: Held| held.map(|write| self.version(state, write));
        let newest = versions(newest);
        there.all(|owner| versions(owner.log) == newest && versions(owner.memory) == newest)
            && versions(state.sees) == newest
    }

    fn is_fault(&self, step: SpaceStep) -> bool {
        matches!(
            step,
            SpaceStep::Write(..)
                | SpaceStep::Lose(..)
                | SpaceStep::Crash(_)
                | SpaceStep::Redraw(_)
                | SpaceStep::Move(_)
        )
    }
}

impl SpaceModel {
    fn happen(&self, state: &mut SpaceState, step: SpaceStep) {
        match step {
            SpaceStep::Write(owner, key) => self.write(state, owner, key),
            SpaceStep::Log(owner) => self.log(state, owner),
            SpaceStep::Arrive(owner, write) => {
                state.messages[owner] &= !bit(write);
                let mut memory = state.owners[owner].memory;
                self.put(state, &mut memory, write);
                state.has_aged |= self.is_older(state, memory, state.owners[owner].memory);
                state.owners[owner].memory = memory;
            }
            SpaceStep::Lose(owner, write) => {
                spend(&mut state.left.drops);
                state.messages[owner] &= !bit(write);
            }
            SpaceStep::Beat(owner, other) => state.messages = self.exchanged(state, owner, other),
            SpaceStep::Crash(owner) => {
                spend(&mut state.left.crashes);
                state.owners[owner].memory = state.owners[owner].log;
            }
            SpaceStep::Redraw(owner) => {
                state.redrawn -= 1;
                state.owners[owner].has_area = !state.owners[owner].has_area;
            }
            SpaceStep::Show => {
                let shown = self.shown(state);
                state.has_aged |= self.is_older(state, shown, state.sees);
                (state.sees, state.believes) = (shown, shown);
            }
            SpaceStep::Move(owner) => {
                state.moves -= 1;
                state.holder = owner;
                // S3: the client names what it has.
                let names = self.rules.has(Rule::S3Names);
                state.believes = if names { state.sees } else { [0; 2] };
            }
        }
    }

    fn write(&self, state: &mut SpaceState, owner: usize, key: usize) {
        let memory = state.owners[owner].memory;
        let next = match memory[VALUE] {
            0 => 1,
            write => state.write(write).stamp + 1,
        };
        let now = state.made + 1;
        let stamp = match key {
            VALUE if self.rules.has(Rule::S1GameTime) => now.max(next),
            VALUE => next,
            _ => 0,
        };
        let life = state.life(memory) + u8::from(key == LIFE);
        state.writes[usize::from(state.made)] = Write {
            key,
            life,
            stamp,
            by: owner,
        };
        state.made += 1;
        state.openings -= u8::from(key == LIFE);
        let mut memory = memory;
        self.put(state, &mut memory, state.made);
        state.owners[owner].memory = memory;
    }

    /// G1: only logged writes are sent.
    fn log(&self, state: &mut SpaceState, owner: usize) {
        let Owner { memory, log, .. } = state.owners[owner];
        state.owners[owner].log = memory;
        for (write, before) in memory.into_iter().zip(log) {
            let own = write > 0 && write != before && state.write(write).by == owner;
            for other in (0..OWNERS).filter(|other| own && *other != owner) {
                if state.owners[other].has_area {
                    state.messages[other] |= bit(write);
                }
            }
        }
    }

    /// The messages in flight after two owners have exchanged the contents of their logs.
    fn exchanged(&self, state: &SpaceState, one: usize, other: usize) -> [u8; OWNERS] {
        let mut messages = state.messages;
        for (from, to) in [(one, other), (other, one)] {
            for write in state.owners[from].log.into_iter().filter(|write| *write > 0) {
                let mut copy = state.owners[to].memory;
                if self.is_news(state, copy, write) {
                    self.put(state, &mut copy, write);
                    messages[to] |= bit(write);
                }
            }
        }
        messages
    }

    /// What the client sees after it is sent everything that its owner has logged and does not believe it to have.
    fn shown(&self, state: &SpaceState) -> Held {
        let mut shown = state.believes;
        for key in [LIFE, VALUE] {
            let write = state.owners[state.holder].log[key];
            if write > 0 && self.is_news(state, state.believes, write) {
                self.put(state, &mut shown, write);
            }
        }
        shown
    }

    /// S1, S4: whether a write is higher than the one held for its key, and not void.
    fn is_news(&self, state: &SpaceState, held: Held, write: u8) -> bool {
        let key = state.write(write).key;
        !self.is_void(state, held, write) && self.version(state, write) > self.version(state, held[key])
    }

    /// S4: whether a value is of an earlier life than the known one.
    fn is_void(&self, state: &SpaceState, held: Held, write: u8) -> bool {
        let Write { key, life, .. } = state.write(write);
        key == VALUE && life < state.life(held) && self.rules.has(Rule::S4Lives)
    }

    fn put(&self, state: &SpaceState, held: &mut Held, write: u8) {
        if write == 0 {
            return;
        }
        let Write { key, life, .. } = state.write(write);
        let is_taken = !self.rules.has(Rule::S1Higher) && !self.is_void(state, *held, write);
        if self.is_news(state, *held, write) || is_taken {
            held[key] = write;
            // A value of a later life makes that life known.
            if life > state.life(*held) {
                held[LIFE] = state.beginning(life);
            }
        }
        if held[VALUE] > 0 && self.is_void(state, *held, held[VALUE]) {
            held[VALUE] = 0;
        }
    }

    /// The version of no write is below all others.
    fn version(&self, state: &SpaceState, write: u8) -> (u8, u8, usize) {
        if write == 0 {
            return (0, 0, 0);
        }
        let Write { key, life, stamp, by } = state.write(write);
        match key {
            LIFE => (life, 0, 0),
            _ if self.rules.has(Rule::S4Lives) => (life, stamp, by + 1),
            _ => (0, stamp, by + 1),
        }
    }

    /// Whether a value was replaced by an older one. A value that became void counts as absent, not as older.
    fn is_older(&self, state: &SpaceState, now: Held, before: Held) -> bool {
        let mut keys = now.into_iter().zip(before);
        keys.any(|(now, before)| now > 0 && self.version(state, now) < self.version(state, before))
    }
}

impl SpaceState {
    fn write(&self, number: u8) -> Write {
        self.writes[usize::from(number) - 1]
    }

    /// The life that these values make known.
    fn life(&self, held: Held) -> u8 {
        match held[LIFE] {
            0 => 0,
            write => self.write(write).life,
        }
    }

    /// The first write that began a life.
    fn beginning(&self, life: u8) -> u8 {
        let begins = |write: &u8| {
            let Write { key, life: begun, .. } = self.write(*write);
            key == LIFE && begun == life
        };
        (1..=self.made).find(begins).unwrap_or(0)
    }
}

fn bit(write: u8) -> u8 {
    1 << (write - 1)
}

fn name(owner: usize) -> &'static str {
    ["X", "Y", "Z"][owner]
}

fn held(held: Held) -> String {
    let of = |write: u8| format!("write {write}");
    match held {
        [0, 0] => "nothing".to_owned(),
        [value, 0] => of(value),
        [0, life] => format!("{} alone", of(life)),
        [value, life] => format!("{} and {}", of(life), of(value)),
    }
}
