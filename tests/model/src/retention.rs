//! Retention: a realm deletes a cell's old events. What must exist before they are deleted, and what remains.
//!
//! One cell's log of three batches, and what depends on it: a base's log, which took the call that the cell's second
//! batch made, and a row of the database, which contains the cell part of an entity as it was when the entity was
//! stored. db folds, seals, writes snapshots, advances the floors (each in two pieces), moves the horizon and deletes
//! events, and may crash at any point; meanwhile a taker recovers the owner. In every state the model checks what a
//! restored realm would contain. The rule is F14.

pub mod exhibits;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Batches of the cell.
const BATCHES: u8 = 3;

/// The batch that makes a call.
const CALLING: u8 = 2;

/// The model of retention.
#[derive(Debug, Clone, Copy)]
pub struct RetentionModel {
    /// The rules in force.
    pub rules: Rules,
    /// Faults: crashes of db.
    pub faults: Faults,
}

/// An advance of the horizon in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Advance {
    /// The last batch below the new horizon.
    target: u8,
    /// The batch at which the entity was stored, if it is below the new horizon; else 0.
    row: u8,
    /// Pieces of the floor written so far.
    pieces: u8,
}

/// The taker's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Taker {
    /// It has not begun, or begins again.
    #[default]
    Idle,
    /// Its state is at batch `at` and contains `folded` batches.
    Folding { at: u8, folded: u8 },
    /// It holds the owner; whether its state is the one that was written.
    Holds(bool),
}

/// The state of the model. Sets of batches are bit sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetentionState {
    archived: u8,
    sealed: u8,
    /// Batches that are old enough.
    old: u8,
    /// The batch of the newest snapshot.
    snapshot: u8,
    /// Batches whose events are deleted.
    gone: u8,
    /// Batches of which nothing is left, not even the header.
    lost: u8,
    /// Whether the record of the call is kept.
    call: bool,
    /// Whether the events of the base's log exist.
    base: bool,
    /// The batch at which the entity was stored, by the base.
    stored: u8,
    /// Whether the base's batch that stored the entity is sealed.
    is_row_sealed: bool,
    /// Whether that batch is below the horizon.
    is_row_below: bool,
    /// The kept cell part of the stored entity: as of this batch.
    part: u8,
    /// The two areas for floors: the batch of each of the two pieces.
    areas: [[u8; 2]; 2],
    /// The horizon: a batch, and the area of its floor.
    horizon: (u8, u8),
    advance: Option<Advance>,
    taker: Taker,
    left: Faults,
}

/// A step.
#[derive(Debug, Clone, Copy)]
pub enum RetentionStep {
    /// db archives the next batch.
    Archive,
    /// The base's log takes the call.
    Store,
    /// Archived batches are sealed.
    Seal,
    /// The next batch becomes old enough.
    Age,
    /// A snapshot is written.
    Snapshot,
    /// db folds the next floor, in memory.
    Begin,
    /// db writes a piece of the floor.
    Write,
    /// The horizon moves.
    Move,
    /// The events of a batch are deleted.
    Drop(u8),
    /// The events of the base are deleted.
    DropBase,
    /// db crashes.
    Crash,
    /// The taker reads the state that it begins with.
    Read,
    /// The taker folds the next batch.
    Fold,
}

impl Model for RetentionModel {
    type State = RetentionState;
    type Step = RetentionStep;

    fn start(&self) -> RetentionState {
        RetentionState {
            archived: 0,
            sealed: 0,
            old: 0,
            snapshot: 0,
            gone: 0,
            lost: 0,
            call: true,
            base: true,
            stored: 0,
            is_row_sealed: false,
            is_row_below: false,
            part: 0,
            areas: [[0; 2]; 2],
            horizon: (0, 0),
            advance: None,
            taker: Taker::Idle,
            left: self.faults,
        }
    }

    fn steps(&self, state: &RetentionState, steps: &mut Vec<RetentionStep>) {
        if state.archived < BATCHES {
            steps.push(RetentionStep::Archive);
        }
        if state.archived > state.stored {
            steps.push(RetentionStep::Store);
        }
        if state.sealed < state.archived || state.stored > 0 && !state.is_row_sealed {
            steps.push(RetentionStep::Seal);
        }
        if state.old < state.archived {
            steps.push(RetentionStep::Age);
        }
        if state.snapshot < state.archived {
            steps.push(RetentionStep::Snapshot);
        }
        self.retaining(state, steps);
        match state.taker {
            Taker::Idle => steps.push(RetentionStep::Read),
            Taker::Folding { .. } => steps.push(RetentionStep::Fold),
            Taker::Holds(_) => {}
        }
        if state.left.crashes > 0 && state.advance.is_some() {
            steps.push(RetentionStep::Crash);
        }
    }

    fn take(&self, state: &RetentionState, step: RetentionStep) -> RetentionState {
        let mut after = *state;
        self.happen(&mut after, step);
        after
    }

    fn broken(&self, state: &RetentionState) -> Option<Invariant> {
        if state.lost != 0 {
            return Some(Invariant::LeavesAreProved);
        }
        if !state.call && state.archived >= CALLING {
            return Some(Invariant::ArchiveIsACut);
        }
        if state.taker == Taker::Holds(false) {
            return Some(Invariant::RecoveredAsWritten);
        }
        (!state.is_restored()).then_some(Invariant::RestoredAsWritten)
    }

    fn words(&self, state: &RetentionState, step: RetentionStep, after: &RetentionState) -> String {
        words::words(state, step, after)
    }

    /// The owner is held, and no advance of the horizon is in progress.
    fn settled(&self, state: &RetentionState) -> bool {
        matches!(state.taker, Taker::Holds(_)) && state.advance.is_none()
    }

    fn is_fault(&self, step: RetentionStep) -> bool {
        matches!(step, RetentionStep::Crash)
    }
}

impl RetentionModel {
    fn retaining(&self, state: &RetentionState, steps: &mut Vec<RetentionStep>) {
        let ripe = state.sealed.min(state.old);
        match state.advance {
            None if ripe > state.horizon.0 => steps.push(RetentionStep::Begin),
            None => {}
            Some(advance) => {
                if advance.pieces < 2 {
                    steps.push(RetentionStep::Write);
                }
                if advance.pieces == 2 || !self.rules.has(Rule::F14FloorFirst) {
                    steps.push(RetentionStep::Move);
                }
            }
        }
        let below = if self.rules.has(Rule::F14Below) {
            state.horizon.0
        } else {
            ripe
        };
        let whole = (1..=below).filter(|batch| state.gone & bit(*batch) == 0);
        steps.extend(whole.map(RetentionStep::Drop));
        if !self.rules.has(Rule::F14Lasting) && state.base && state.is_row_below {
            steps.push(RetentionStep::DropBase);
        }
    }

    fn happen(&self, state: &mut RetentionState, step: RetentionStep) {
        match step {
            RetentionStep::Archive => state.archived += 1,
            RetentionStep::Store => {
                state.stored = state.archived;
                (state.is_row_sealed, state.is_row_below) = (false, false);
            }
            RetentionStep::Seal => {
                state.sealed = state.archived;
                state.is_row_sealed = state.stored > 0;
            }
            RetentionStep::Age => state.old += 1,
            RetentionStep::Snapshot => state.snapshot = state.archived,
            RetentionStep::Begin => {
                let target = state.sealed.min(state.old);
                let is_below = state.is_row_sealed && state.stored <= target;
                state.advance = Some(Advance {
                    target,
                    row: if is_below { state.stored } else { 0 },
                    pieces: 0,
                });
            }
            RetentionStep::Write => self.write(state),
            RetentionStep::Move => self.move_horizon(state),
            RetentionStep::Drop(batch) => {
                state.gone |= bit(batch);
                if !self.rules.has(Rule::F14Header) {
                    state.lost |= bit(batch);
                }
                if batch == CALLING && !self.rules.has(Rule::F14Calls) {
                    state.call = false;
                }
            }
            RetentionStep::DropBase => state.base = false,
            RetentionStep::Crash => {
                spend(&mut state.left.crashes);
                state.advance = None;
            }
            RetentionStep::Read => {
                let at = state.begin();
                state.taker = Taker::Folding { at, folded: at };
            }
            RetentionStep::Fold => self.fold(state),
        }
    }

    /// The area for the next floor.
    fn area(&self, state: &RetentionState) -> u8 {
        let (_, area) = state.horizon;
        if self.rules.has(Rule::F14TwoAreas) {
            1 - area
        } else {
            area
        }
    }

    fn write(&self, state: &mut RetentionState) {
        let area = self.area(state);
        if let Some(advance) = &mut state.advance {
            state.areas[usize::from(area)][usize::from(advance.pieces)] = advance.target;
            advance.pieces += 1;
        }
    }

    fn move_horizon(&self, state: &mut RetentionState) {
        let area = self.area(state);
        let Some(advance) = state.advance.take() else { return };
        // The cell part that the database stored below the new horizon is written first.
        if self.rules.has(Rule::F14CellParts) && advance.row > 0 {
            state.part = advance.row;
        }
        state.is_row_below |= advance.row > 0 && advance.row == state.stored;
        state.horizon = (advance.target, area);
    }

    fn fold(&self, state: &mut RetentionState) {
        let Taker::Folding { at, folded } = state.taker else {
            return;
        };
        let next = at + 1;
        state.taker = if next > state.archived {
            Taker::Holds(folded == state.archived)
        } else if state.gone & bit(next) == 0 {
            Taker::Folding {
                at: next,
                folded: folded + 1,
            }
        } else if self.rules.has(Rule::F14BeginAgain) {
            Taker::Idle
        } else {
            Taker::Folding { at: next, folded }
        };
    }
}

impl RetentionState {
    /// The batch of the floor that the horizon names, if the floor is complete.
    fn floor(&self) -> u8 {
        let (batch, area) = self.horizon;
        let is_whole = self.areas[usize::from(area)] == [batch; 2];
        if is_whole { batch } else { 0 }
    }

    /// The batch that recovery begins with.
    fn begin(&self) -> u8 {
        self.snapshot.max(self.floor())
    }

    /// Whether a restored realm equals this one: deleted events are in the floor, the others are folded, and so are the
    /// base and the row.
    fn is_restored(&self) -> bool {
        let floor = self.floor();
        let folds = (floor + 1..=self.archived).all(|batch| self.gone & bit(batch) == 0);
        let has_row = !self.is_row_below || self.part == self.stored;
        folds && has_row && self.base
    }
}

fn bit(batch: u8) -> u8 {
    1 << batch
}
