//! Transfers: requested by events, executed by the db that folds them, reported to the log `ledger`.
//!
//! An owner's log has three batches: the first requests transfer 1, the second transfer 2, the third transfer 1 again
//! (as an owner does that cannot know whether it asked before a crash, or an operator's tool that got no answer; such
//! orders share the action, which is their key: P4). Two dbs fold the batches, one of them wrongly taken for dead; each
//! reads the store, prepares a transaction and commits it, and may stop at any point, or never learn that its commit
//! was applied. The result of a transfer goes to the outbox, and from there into the log `ledger`, whose holder may
//! crash too. The rules are F1, F3 and F7.

pub mod exhibits;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// The transfer requested by each batch, by index.
const ASKED: [u8; 3] = [0, 1, 0];
const DBS: u8 = 2;
const TRANSFERS: usize = 2;
/// More results than the outbox or log can hold while the rules are in force.
const MOST_RESULTS: usize = 4;

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct LedgerBounds {
    /// Batches folded: at most 3.
    pub batches: u8,
    /// Faults; crashes and unknowns count here.
    pub faults: Faults,
}

/// The model of the ledger.
#[derive(Debug, Clone, Copy)]
pub struct LedgerModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: LedgerBounds,
}

/// Results of transfers, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Results {
    of: [u8; MOST_RESULTS],
    count: u8,
}

impl Results {
    fn push(&mut self, transfer: u8) {
        if usize::from(self.count) < MOST_RESULTS {
            self.of[usize::from(self.count)] = transfer;
            self.count += 1;
        }
    }

    fn times(&self, transfer: u8) -> usize {
        self.of[..usize::from(self.count)]
            .iter()
            .filter(|of| **of == transfer)
            .count()
    }
}

/// What the store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Store {
    /// Batches folded.
    cursor: u8,
    /// Entries in the archive.
    archived: u8,
    /// By transfer: how often it has moved its unit.
    moved: [u8; TRANSFERS],
    outbox: Results,
}

/// A db's progress with the batch after its cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Fold {
    /// No fold in progress.
    #[default]
    Idle,
    /// It has read this cursor and prepares the transaction for the batch after it.
    Prepared(u8),
    /// Without F3: the effects are applied; the cursor has yet to follow.
    CursorOwed(u8),
    /// Without F7: the transfer is applied; its result has yet to follow.
    ResultOwed(u8),
}

/// The log `ledger`: its results, and the last entry of the outbox that it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Ledger {
    says: Results,
    taken: u8,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LedgerState {
    store: Store,
    dbs: [Fold; DBS as usize],
    logged: Ledger,
    memory: Ledger,
    left: Faults,
}

/// A step. Dbs are named by index.
#[derive(Debug, Clone, Copy)]
pub enum LedgerStep {
    /// A db reads the cursor and prepares the next fold.
    Prepare(u8),
    /// Its transaction is committed, or rejected.
    Commit(u8),
    /// Its transaction is committed, but the answer is lost: the db begins again.
    CommitUnanswered(u8),
    /// Without F3 or F7: the rest follows in a separate transaction.
    Finish(u8),
    /// A db crashes and loses its prepared transaction.
    DbCrash(u8),
    /// The holder of `ledger` takes the next entry of the outbox.
    TakeResult,
    /// The log acknowledges the holder's state.
    LedgerCommit,
    /// The holder crashes; its successor reads the log.
    LedgerCrash,
}

impl Model for LedgerModel {
    type State = LedgerState;
    type Step = LedgerStep;

    fn start(&self) -> LedgerState {
        LedgerState {
            store: Store::default(),
            dbs: Default::default(),
            logged: Ledger::default(),
            memory: Ledger::default(),
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &LedgerState, steps: &mut Vec<LedgerStep>) {
        for (index, fold) in (0u8..).zip(state.dbs) {
            match fold {
                Fold::Idle if state.store.cursor < self.bounds.batches => steps.push(LedgerStep::Prepare(index)),
                Fold::Idle => continue,
                Fold::Prepared(_) => {
                    steps.push(LedgerStep::Commit(index));
                    if state.left.unknowns > 0 {
                        steps.push(LedgerStep::CommitUnanswered(index));
                    }
                }
                Fold::CursorOwed(_) | Fold::ResultOwed(_) => steps.push(LedgerStep::Finish(index)),
            }
            if state.left.crashes > 0 && fold != Fold::Idle {
                steps.push(LedgerStep::DbCrash(index));
            }
        }
        if state.memory.taken < state.store.outbox.count && usize::from(state.memory.says.count) < MOST_RESULTS {
            steps.push(LedgerStep::TakeResult);
        }
        if state.memory != state.logged {
            steps.push(LedgerStep::LedgerCommit);
        }
        let all_is_logged = self.rules.has(Rule::F7TakenOnce) && state.memory == state.logged;
        if state.left.crashes > 0 && !all_is_logged && state.memory != Ledger::default() {
            steps.push(LedgerStep::LedgerCrash);
        }
    }

    fn take(&self, state: &LedgerState, step: LedgerStep) -> LedgerState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    fn broken(&self, state: &LedgerState) -> Option<Invariant> {
        if state.store.moved.iter().any(|times| *times > 1) {
            return Some(Invariant::UnitsHaveOneOwner);
        }
        if state.store.archived > self.bounds.batches {
            return Some(Invariant::ChainIsDense);
        }
        let twice = (0..TRANSFERS as u8).any(|transfer| state.logged.says.times(transfer) > 1);
        twice.then_some(Invariant::LedgerSaysOnce)
    }

    fn words(&self, state: &LedgerState, step: LedgerStep, after: &LedgerState) -> String {
        let db = |index: u8| format!("db {}", index + 1);
        let moved = |transfer: usize| after.store.moved[transfer] > state.store.moved[transfer];
        let effect = match (moved(0), moved(1)) {
            (true, _) => ": transfer 1 moves its unit",
            (_, true) => ": transfer 2 moves its unit",
            _ if after.store != state.store => ": nothing is moved",
            _ => ": refused, because the cursor has changed",
        };
        match step {
            LedgerStep::Prepare(index) => format!("{} prepares to fold batch {}", db(index), state.store.cursor + 1),
            LedgerStep::Commit(index) => format!("{} commits{effect}", db(index)),
            LedgerStep::CommitUnanswered(index) => format!("{} commits and receives no answer{effect}", db(index)),
            LedgerStep::Finish(index) => format!("{} commits the rest", db(index)),
            LedgerStep::DbCrash(index) => format!("{} crashes", db(index)),
            LedgerStep::TakeResult => {
                let transfer = state.store.outbox.of[usize::from(state.memory.taken)];
                format!(
                    "the holder of `ledger` takes the result of transfer {} from the outbox",
                    transfer + 1
                )
            }
            LedgerStep::LedgerCommit => "the log `ledger` stores all its events".into(),
            LedgerStep::LedgerCrash => "the holder of `ledger` crashes; its successor continues from the log".into(),
        }
    }

    /// Every batch is folded, and the log `ledger` has the result of every transfer.
    fn settled(&self, state: &LedgerState) -> bool {
        let asked = &ASKED[..usize::from(self.bounds.batches)];
        state.store.cursor == self.bounds.batches
            && state.memory == state.logged
            && asked.iter().all(|transfer| state.logged.says.times(*transfer) > 0)
    }

    fn is_fault(&self, step: LedgerStep) -> bool {
        matches!(
            step,
            LedgerStep::CommitUnanswered(_) | LedgerStep::DbCrash(_) | LedgerStep::LedgerCrash
        )
    }
}

impl LedgerModel {
    fn happen(&self, state: &mut LedgerState, step: LedgerStep) {
        match step {
            LedgerStep::Prepare(index) => state.dbs[usize::from(index)] = Fold::Prepared(state.store.cursor),
            LedgerStep::Commit(index) => state.dbs[usize::from(index)] = self.commit(state, index),
            LedgerStep::CommitUnanswered(index) => {
                spend(&mut state.left.unknowns);
                self.commit(state, index);
                state.dbs[usize::from(index)] = Fold::Idle;
            }
            LedgerStep::Finish(index) => {
                match state.dbs[usize::from(index)] {
                    Fold::CursorOwed(cursor) => state.store.cursor = cursor + 1,
                    Fold::ResultOwed(transfer) => state.store.outbox.push(transfer),
                    Fold::Idle | Fold::Prepared(_) => {}
                }
                state.dbs[usize::from(index)] = Fold::Idle;
            }
            LedgerStep::DbCrash(index) => {
                spend(&mut state.left.crashes);
                state.dbs[usize::from(index)] = Fold::Idle;
            }
            LedgerStep::TakeResult => {
                let transfer = state.store.outbox.of[usize::from(state.memory.taken)];
                state.memory.says.push(transfer);
                state.memory.taken += 1;
            }
            LedgerStep::LedgerCommit => state.logged = state.memory,
            LedgerStep::LedgerCrash => {
                spend(&mut state.left.crashes);
                if !self.rules.has(Rule::F7TakenOnce) {
                    state.logged.taken = 0;
                }
                state.memory = state.logged;
            }
        }
    }

    /// Commits the folding transaction; returns the db's next phase.
    fn commit(&self, state: &mut LedgerState, index: u8) -> Fold {
        let Fold::Prepared(read) = state.dbs[usize::from(index)] else {
            return Fold::Idle;
        };
        let store = &mut state.store;
        if self.rules.has(Rule::F1Conditional) && store.cursor != read {
            return Fold::Idle;
        }
        let transfer = ASKED[usize::from(read)];
        let done = store.moved[usize::from(transfer)] > 0 && self.rules.has(Rule::F7Keyed);
        let mut then = Fold::Idle;
        if !done {
            store.moved[usize::from(transfer)] += 1;
            if self.rules.has(Rule::F7OutboxInFold) {
                store.outbox.push(transfer);
            } else {
                then = Fold::ResultOwed(transfer);
            }
        }
        store.archived += 1;
        if self.rules.has(Rule::F3OneTransaction) {
            store.cursor = read + 1;
        } else {
            then = Fold::CursorOwed(read);
        }
        then
    }
}
