//! A store restored from an older backup beside an intact log: what reveals this before anything is granted, and what
//! the log proves to the store. The rule is F17.
//!
//! One owner. A process takes it over (grant, `Open`, record) and appends batches, each of which is shown; db folds.
//! The store is backed up once, at any time. All processes may crash, and the store may be restored from the backup
//! while nothing runs. Then the realm starts: the store is compared with the log and, if they do not match, an operator
//! adopts the log.
//!
//! The log loses nothing here, and is not trimmed: trimmed batches are in no log any more, and an operator gives them
//! up by name.

pub mod exhibits;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// More epochs than any schedule within the bounds is granted.
const EPOCHS: usize = 6;
/// More batches than any schedule within the bounds appends.
const BATCHES: usize = 7;
/// No batch. Batches are named by their place in the log, from 1.
const NONE: u8 = 0;

/// The model of a restored store.
#[derive(Debug, Clone, Copy)]
pub struct BackupModel {
    /// The rules in force.
    pub rules: Rules,
    /// Faults: crashes of all processes at once.
    pub faults: Faults,
}

/// A batch. It names its predecessor, as a hash would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Batch {
    epoch: u8,
    opens: bool,
    previous: u8,
}

/// The store's record of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Store {
    granted: u8,
    /// By epoch: the recorded `Open`.
    openings: [u8; EPOCHS],
    /// The newest folded batch.
    cursor: u8,
}

/// The process that holds the owner or takes it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    /// The owner is granted to it.
    Granted(u8),
    /// Its `Open` is in the log.
    Opened(u8, u8),
    /// The `Open` is recorded: it appends after this batch.
    Holds(u8, u8),
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BackupState {
    log: [Batch; BATCHES],
    length: u8,
    store: Store,
    backup: Option<Store>,
    is_restored: bool,
    is_running: bool,
    holder: Option<Holder>,
    left: Faults,
}

/// A step.
#[derive(Debug, Clone, Copy)]
pub enum BackupStep {
    /// The owner is granted to a process.
    Grant,
    /// The process appends its `Open`, or stops because it reads a higher epoch.
    Open,
    /// It records its `Open`.
    Record,
    /// It appends a batch and shows it.
    Append,
    /// db folds the next batch.
    Fold,
    /// The store is backed up.
    BackUp,
    /// All processes crash.
    Kill,
    /// The store is restored to its backup.
    Restore,
    /// The realm starts.
    Start,
}

impl Model for BackupModel {
    type State = BackupState;
    type Step = BackupStep;

    fn start(&self) -> BackupState {
        BackupState {
            log: [Batch::default(); BATCHES],
            length: 0,
            store: Store::default(),
            backup: None,
            is_restored: false,
            is_running: true,
            holder: None,
            left: self.faults,
        }
    }

    fn steps(&self, state: &BackupState, steps: &mut Vec<BackupStep>) {
        if !state.is_running {
            if state.backup.is_some() && !state.is_restored {
                steps.push(BackupStep::Restore);
            }
            steps.push(BackupStep::Start);
            return;
        }
        let has_room = usize::from(state.length) < BATCHES;
        match state.holder {
            None if usize::from(state.store.granted) + 1 < EPOCHS => steps.push(BackupStep::Grant),
            Some(Holder::Granted(_)) if has_room => steps.push(BackupStep::Open),
            Some(Holder::Opened(..)) => steps.push(BackupStep::Record),
            Some(Holder::Holds(..)) if has_room => steps.push(BackupStep::Append),
            _ => {}
        }
        if state.next(state.store.cursor) != NONE {
            steps.push(BackupStep::Fold);
        }
        if state.backup.is_none() {
            steps.push(BackupStep::BackUp);
        }
        if state.left.crashes > 0 {
            steps.push(BackupStep::Kill);
        }
    }

    fn take(&self, state: &BackupState, step: BackupStep) -> BackupState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    /// Each batch that was shown is archived, or is on the chain that is valid according to the store.
    fn broken(&self, state: &BackupState) -> Option<Invariant> {
        let mut kept = [false; BATCHES + 1];
        let mut at = state.end();
        while at != NONE {
            kept[usize::from(at)] = true;
            at = state.batch(at).previous;
        }
        let is_lost = |at: u8| !state.batch(at).opens && !kept[usize::from(at)];
        let lost = state.is_running && (1..=state.length).any(is_lost);
        lost.then_some(Invariant::ShownIsNeverLost)
    }

    fn words(&self, state: &BackupState, step: BackupStep, after: &BackupState) -> String {
        words::words(state, step, after)
    }

    fn settled(&self, state: &BackupState) -> bool {
        state.is_running && state.next(state.store.cursor) == NONE
    }

    fn is_fault(&self, step: BackupStep) -> bool {
        matches!(step, BackupStep::Kill | BackupStep::Restore | BackupStep::BackUp)
    }
}

impl BackupModel {
    fn happen(&self, state: &mut BackupState, step: BackupStep) {
        match (step, state.holder) {
            (BackupStep::Grant, _) => {
                state.store.granted += 1;
                state.holder = Some(Holder::Granted(state.store.granted));
            }
            (BackupStep::Open, Some(Holder::Granted(epoch))) => {
                let newest = (1..=state.length).map(|at| state.batch(at).epoch).max();
                let recorded = (usize::from(epoch) + 1..EPOCHS).any(|higher| state.store.openings[higher] != NONE);
                state.holder = if recorded || newest.is_some_and(|newest| newest >= epoch) {
                    None
                } else {
                    let previous = state.end();
                    let opens = true;
                    Some(Holder::Opened(epoch, state.append(Batch { epoch, opens, previous })))
                };
            }
            (BackupStep::Record, Some(Holder::Opened(epoch, open))) => {
                state.store.openings[usize::from(epoch)] = open;
                state.holder = Some(Holder::Holds(epoch, open));
            }
            (BackupStep::Append, Some(Holder::Holds(epoch, previous))) => {
                let opens = false;
                let appended = state.append(Batch { epoch, opens, previous });
                state.holder = Some(Holder::Holds(epoch, appended));
            }
            (BackupStep::Fold, _) => state.store.cursor = state.next(state.store.cursor),
            (BackupStep::BackUp, _) => state.backup = Some(state.store),
            (BackupStep::Kill, _) => {
                spend(&mut state.left.crashes);
                (state.is_running, state.holder) = (false, None);
            }
            (BackupStep::Restore, _) => {
                state.store = state.backup.unwrap_or_default();
                state.is_restored = true;
            }
            (BackupStep::Start, _) => {
                if self.rules.has(Rule::F17Compared) && self.is_mismatch(state) {
                    self.adopt(state);
                }
                state.is_running = true;
            }
            (BackupStep::Open | BackupStep::Record | BackupStep::Append, _) => {}
        }
    }

    /// Whether the log contains batches that the store would know of if it were not older.
    fn is_mismatch(&self, state: &BackupState) -> bool {
        let archived = state.chain(state.store.cursor);
        (1..=state.length).filter(|at| !archived[usize::from(*at)]).any(|at| {
            let batch = state.batch(at);
            let is_recorded = state.store.openings[usize::from(batch.epoch)] != NONE;
            let follows = !batch.opens && !is_recorded && self.rules.has(Rule::F17Openings);
            batch.epoch > state.store.granted || follows
        })
    }

    /// The operator adopts what the log proves: the newest batch of the newest epoch, and its predecessors.
    fn adopt(&self, state: &mut BackupState) {
        let proven = (1..=state.length).filter(|at| !state.batch(*at).opens);
        let newest = proven.max_by_key(|at| (state.batch(*at).epoch, *at));
        let mut at = newest.unwrap_or(NONE);
        while at != NONE && self.rules.has(Rule::F17Adopted) {
            let batch = state.batch(at);
            if batch.opens {
                state.store.openings[usize::from(batch.epoch)] = at;
            }
            at = batch.previous;
        }
        let highest = (1..=state.length).map(|at| state.batch(at).epoch).max();
        state.store.granted = state.store.granted.max(highest.unwrap_or(NONE));
    }
}

impl BackupState {
    fn batch(&self, at: u8) -> Batch {
        at.checked_sub(1)
            .map_or(Batch::default(), |index| self.log[usize::from(index)])
    }

    fn append(&mut self, batch: Batch) -> u8 {
        self.log[usize::from(self.length)] = batch;
        self.length += 1;
        self.length
    }

    /// The batch number of the batch at this place.
    fn number(&self, at: u8) -> u8 {
        if at == NONE {
            0
        } else {
            1 + self.number(self.batch(at).previous)
        }
    }

    /// The batches up to and including this one.
    fn chain(&self, mut at: u8) -> [bool; BATCHES + 1] {
        let mut chain = [false; BATCHES + 1];
        while at != NONE {
            chain[usize::from(at)] = true;
            at = self.batch(at).previous;
        }
        chain
    }

    /// The successor of `tip` according to the store (rules E5 and F2).
    fn next(&self, tip: u8) -> u8 {
        let (epoch, number) = (self.batch(tip).epoch, self.number(tip) + 1);
        let behind = || (1..=self.length).filter(|at| self.batch(*at).previous == tip);
        let opening = behind().find(|at| {
            let batch = self.batch(*at);
            batch.opens && batch.epoch > epoch && self.store.openings[usize::from(batch.epoch)] == *at
        });
        let is_void = (usize::from(epoch) + 1..EPOCHS).any(|higher| {
            let open = self.store.openings[higher];
            open != NONE && self.number(open) <= number
        });
        let goes_on = behind().find(|at| !self.batch(*at).opens && self.batch(*at).epoch == epoch);
        opening.or(goes_on.filter(|_| !is_void)).unwrap_or(NONE)
    }

    /// The end of the chain according to the store.
    fn end(&self) -> u8 {
        let mut at = self.store.cursor;
        loop {
            match self.next(at) {
                NONE => return at,
                next => at = next,
            }
        }
    }
}
