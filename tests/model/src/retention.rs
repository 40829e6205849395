//! A realm lets go of what a cell did long ago: what has to be there before it goes, and what stays.
//!
//! One cell's log of three batches, and what others rest upon it: a base's log, which took the call that the cell's second
//! batch made, and a row of the database, which took in what the cell part held when its entity was stored. db folds, seals,
//! writes snapshots, folds floors on (each in two pieces), moves the horizon and drops events, and may crash at any point; a
//! taker recovers the owner meanwhile. What a restored realm would come to is asked in every state. The rule is F14.

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
    /// What may go wrong: crashes of db.
    pub faults: Faults,
}

/// A horizon on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Advance {
    /// The last batch below it.
    target: u8,
    /// The batch at which the entity was stored, if that lies below it; else 0.
    row: u8,
    /// Pieces of the floor that are written.
    pieces: u8,
}

/// Where the taker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Taker {
    /// It has not begun, or begins again.
    #[default]
    Idle,
    /// Its state stands at this batch; how many of them are in it.
    Folding { at: u8, folded: u8 },
    /// It holds the owner; whether its state is what was written.
    Holds(bool),
}

/// Everything that decides what happens next. Sets of batches are bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetentionState {
    archived: u8,
    sealed: u8,
    /// Batches that are old enough.
    old: u8,
    /// The batch at which the newest snapshot stands.
    snapshot: u8,
    /// Batches whose events are gone.
    gone: u8,
    /// Batches of which nothing is left.
    lost: u8,
    /// Whether it is still known that the call was made.
    call: bool,
    /// Whether the events of the base's log are there.
    base: bool,
    /// The batch at which the entity was stored, by the base.
    stored: u8,
    /// Whether the batch of the base that did so is sealed.
    is_row_sealed: bool,
    /// Whether it is below the horizon.
    is_row_below: bool,
    /// The cell part that is kept of it: as of this batch.
    part: u8,
    /// The floors' two areas: at which batch each of two pieces stands.
    areas: [[u8; 2]; 2],
    /// The horizon: a batch, and the area of its floor.
    horizon: (u8, u8),
    advance: Option<Advance>,
    taker: Taker,
    left: Faults,
}

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
pub enum RetentionStep {
    /// db archives the next batch.
    Archive,
    /// The base's log takes the call.
    Store,
    /// What is archived is sealed.
    Seal,
    /// The next batch is old enough.
    Age,
    /// A snapshot is written.
    Snapshot,
    /// db folds the floor on, in memory.
    Begin,
    /// It writes a piece of it.
    Write,
    /// The horizon moves.
    Move,
    /// The events of a batch go.
    Drop(u8),
    /// The events of the base go.
    DropBase,
    /// db crashes.
    Crash,
    /// The taker reads what it begins with.
    Read,
    /// It folds the next batch.
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

    /// The owner is held, and no horizon is half on its way.
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

    /// Where the next floor goes.
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
        // What the database took in on the way is written before.
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
    /// The floor that the horizon names, where it is whole.
    fn floor(&self) -> u8 {
        let (batch, area) = self.horizon;
        let is_whole = self.areas[usize::from(area)] == [batch; 2];
        if is_whole { batch } else { 0 }
    }

    /// What recovery begins with.
    fn begin(&self) -> u8 {
        self.snapshot.max(self.floor())
    }

    /// Whether a restored realm is this one: what was let go is in the floor, the rest is folded, and so are the base and the
    /// row.
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
