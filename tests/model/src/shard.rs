//! Three shards, each with its stream and its db: the end of an activation whose parts were on all of them (T3, T4).
//!
//! A stored entity has its base part on shard 0. Its first cell part ends on shard 1, its second on shard 2, and then its
//! base part: each of these is logged once the one before it is. Dbs fold their streams at any pace, answer requests in
//! rounds, and crash. When the check-out is returned, the next activation begins with the entity's row.

pub mod exhibits;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

const SHARDS: u8 = 3;

/// The shard of each event: the ends of the two cell parts, and of the base part.
const LOGGED: [u8; 3] = [1, 2, 0];

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct ShardBounds {
    /// Faults; crashes count here.
    pub faults: Faults,
}

/// The model of several shards.
#[derive(Debug, Clone, Copy)]
pub struct ShardModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: ShardBounds,
}

/// What the store holds of the entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Store {
    /// The cell part that is kept, by its number; 0 for none.
    kept: u8,
    /// The cell part in the entity's row.
    row: u8,
    /// The shards that have to pass the end of the activation: a bit set.
    asked: u8,
    returned: bool,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardState {
    /// Events logged; each shard's stream holds at most one.
    logged: u8,
    /// The shards whose stream is folded to its end: a bit set.
    folded: u8,
    /// By shard: in a round, whether the stream held the shard's event when it began.
    round: [Option<bool>; SHARDS as usize],
    store: Store,
    /// The cell part with which the next activation has begun.
    begun: Option<u8>,
    left: Faults,
}

/// A step. Dbs are named by their shards.
#[derive(Debug, Clone, Copy)]
pub enum ShardStep {
    /// The next event is logged.
    Log,
    /// A db folds the event in its stream.
    Fold(u8),
    /// A db reads the requests, and where its stream ends.
    BeginRound(u8),
    /// It answers.
    EndRound(u8),
    /// It crashes; another takes its shard.
    Crash(u8),
    /// The next activation begins.
    Begin,
}

impl Model for ShardModel {
    type State = ShardState;
    type Step = ShardStep;

    fn start(&self) -> ShardState {
        ShardState {
            logged: 0,
            folded: 0,
            round: [None; SHARDS as usize],
            store: Store::default(),
            begun: None,
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &ShardState, steps: &mut Vec<ShardStep>) {
        if usize::from(state.logged) < LOGGED.len() {
            steps.push(ShardStep::Log);
        }
        for shard in 0..SHARDS {
            if state.has_logged(shard) && !state.has_folded(shard) {
                steps.push(ShardStep::Fold(shard));
            }
            match state.round[usize::from(shard)] {
                None if state.store.asked & 1 << shard != 0 => steps.push(ShardStep::BeginRound(shard)),
                None => {}
                Some(holds) => {
                    if !holds || state.has_folded(shard) || !self.rules.has(Rule::T3FoldedFirst) {
                        steps.push(ShardStep::EndRound(shard));
                    }
                    if state.left.crashes > 0 {
                        steps.push(ShardStep::Crash(shard));
                    }
                }
            }
        }
        if state.store.returned && state.begun.is_none() {
            steps.push(ShardStep::Begin);
        }
    }

    fn take(&self, state: &ShardState, step: ShardStep) -> ShardState {
        let mut after = *state;
        match step {
            ShardStep::Log => after.logged += 1,
            ShardStep::Fold(shard) => self.fold(&mut after, shard),
            ShardStep::BeginRound(shard) => after.round[usize::from(shard)] = Some(after.has_logged(shard)),
            ShardStep::EndRound(shard) => self.answer(&mut after, shard),
            ShardStep::Crash(shard) => {
                spend(&mut after.left.crashes);
                after.round[usize::from(shard)] = None;
            }
            ShardStep::Begin => after.begun = Some(after.store.row),
        }
        after
    }

    fn broken(&self, state: &ShardState) -> Option<Invariant> {
        let newest = LOGGED.len() as u8 - 1;
        let is_old = state.begun.is_some_and(|begun| begun != newest);
        is_old.then_some(Invariant::BegunAsEnded)
    }

    fn words(&self, _: &ShardState, step: ShardStep, after: &ShardState) -> String {
        match step {
            ShardStep::Log => match after.logged {
                3 => "the base part ends; shard 0 has that in its stream".to_owned(),
                part => format!("cell part {part} ends; shard {part} has that in its stream"),
            },
            ShardStep::Fold(0) if after.store.asked == 0 => {
                "the db of shard 0 folds the end of the base part, and returns the check-out".to_owned()
            }
            ShardStep::Fold(0) => "the db of shard 0 folds the end of the base part, and asks all shards".to_owned(),
            ShardStep::Fold(part) => format!(
                "the db of shard {part} folds the end of cell part {part}; cell part {} is kept",
                after.store.kept
            ),
            ShardStep::BeginRound(shard) => format!("the db of shard {shard} begins a round"),
            ShardStep::EndRound(shard) if after.store.returned => {
                format!("the db of shard {shard} answers; the check-out is returned")
            }
            ShardStep::EndRound(shard) => format!("the db of shard {shard} answers"),
            ShardStep::Crash(shard) => format!("the db of shard {shard} crashes; another takes its shard"),
            ShardStep::Begin => format!(
                "the next activation begins with what cell part {} had",
                after.begun.unwrap_or_default()
            ),
        }
    }

    fn settled(&self, state: &ShardState) -> bool {
        state.begun.is_some()
    }

    fn is_fault(&self, step: ShardStep) -> bool {
        matches!(step, ShardStep::Crash(_))
    }
}

impl ShardModel {
    fn fold(&self, state: &mut ShardState, shard: u8) {
        state.folded |= 1 << shard;
        let store = &mut state.store;
        if shard != 0 {
            if shard > store.kept || !self.rules.has(Rule::T4LaterStays) {
                store.kept = shard;
            }
        } else if self.rules.has(Rule::T4Asked) {
            store.asked = (1 << SHARDS) - 1;
        } else {
            store.give_back();
        }
    }

    fn answer(&self, state: &mut ShardState, shard: u8) {
        state.round[usize::from(shard)] = None;
        let store = &mut state.store;
        store.asked &= !(1 << shard);
        if !store.returned && (store.asked == 0 || !self.rules.has(Rule::T4LastReturns)) {
            store.give_back();
        }
    }
}

impl Store {
    fn give_back(&mut self) {
        self.row = self.kept;
        self.returned = true;
    }
}

impl ShardState {
    fn has_logged(&self, shard: u8) -> bool {
        LOGGED[..usize::from(self.logged)].contains(&shard)
    }

    fn has_folded(&self, shard: u8) -> bool {
        self.folded & 1 << shard != 0
    }
}
