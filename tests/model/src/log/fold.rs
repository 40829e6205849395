//! The store's record of the owner, and db: folds (F2), holes (F4), trimming (F6).

use super::batch::Batch;
use super::subject::{Message, Subject};
use super::{LogModel, LogState, LogStep, MOST_HOLDERS};
use crate::faults::spend;
use crate::invariant::Invariant;
use crate::rule::Rule;

/// The store's record of the owner. A transaction is one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Store {
    /// The highest epoch granted.
    pub(crate) granted: u8,
    /// The newest archived batch; its chain is the archive.
    pub(crate) cursor: Batch,
    /// The sequence at which db read that batch; 0 if it was a fill.
    cursor_sequence: u8,
    /// By epoch - 1: the recorded opening; `NONE` if there is none yet.
    pub(crate) openings: [Batch; MOST_HOLDERS],
}

impl Store {
    pub(crate) fn with_archived(open: Batch) -> Self {
        Self {
            granted: 1,
            cursor: open,
            cursor_sequence: 1,
            openings: [open, Batch::NONE, Batch::NONE],
        }
    }

    /// The highest epoch with an opening.
    pub(crate) fn highest_opening(&self) -> u8 {
        (1u8..)
            .zip(self.openings)
            .filter(|(_, open)| *open != Batch::NONE)
            .map(|(epoch, _)| epoch)
            .max()
            .unwrap_or(0)
    }

    /// Bit set of the epochs with an opening.
    fn opened_epochs(&self) -> u8 {
        (0u8..)
            .zip(self.openings)
            .map(|(index, open)| u8::from(open != Batch::NONE) << index)
            .sum()
    }
}

/// db's memory. It matters that db read a message before folding it only if the log loses the message in between. So a
/// message goes to `hand` only when the log loses it; all others are folded straight from the subject.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Db {
    /// A batch that was read or filled, and is not folded yet.
    hand: Batch,
    /// Without F2: the epochs whose openings db has read.
    knows: u8,
}

impl Db {
    pub(crate) fn hand(&self) -> Batch {
        self.hand
    }

    pub(crate) fn take_in_hand(&mut self, batch: Batch) {
        self.hand = batch;
    }
}

impl LogModel {
    pub(crate) fn db_steps(&self, state: &LogState, steps: &mut Vec<LogStep>) {
        let cursor = state.store.cursor;
        let seen = self.openings_seen(state);
        let foldable = |batch| self.follows(batch, cursor) && self.may_be_folded(state, batch, seen);
        for (index, message) in (0u8..).zip(state.subject.messages()) {
            if foldable(message.batch) {
                steps.push(LogStep::Fold(index));
            }
        }
        if foldable(state.db.hand) {
            steps.push(LogStep::FoldHand);
        }
        if !self.rules.has(Rule::F2OpeningsInFold) && state.db.knows != state.store.opened_epochs() {
            steps.push(LogStep::DbLearn);
        }
        if self.trimmed(state).is_some_and(|subject| subject != state.subject) {
            steps.push(LogStep::Trim);
        }
    }

    pub(crate) fn db_step(&self, state: &mut LogState, step: LogStep) {
        match step {
            LogStep::Fold(index) => {
                let message = state.subject.messages()[usize::from(index)];
                state.fold(message.batch, message.sequence);
            }
            LogStep::FoldHand => state.fold(state.db.hand, 0),
            LogStep::DbLearn => state.db.knows = state.store.opened_epochs(),
            LogStep::Trim => {
                if let Some(trimmed) = self.trimmed(state) {
                    state.subject = trimmed;
                }
            }
            _ => {}
        }
    }

    /// Whether `batch` is the successor of `cursor`.
    pub(crate) fn follows(&self, batch: Batch, cursor: Batch) -> bool {
        batch.number() == cursor.number() + 1 && (batch.before() == cursor || !self.rules.has(Rule::L2Chain))
    }

    fn openings_seen(&self, state: &LogState) -> u8 {
        if self.rules.has(Rule::F2OpeningsInFold) {
            u8::MAX
        } else {
            state.db.knows
        }
    }

    /// E5 and F2: whether no recorded opening voids `batch`; `epochs` is the bit set of the openings that were read.
    pub(crate) fn may_be_folded(&self, state: &LogState, batch: Batch, epochs: u8) -> bool {
        if !self.rules.has(Rule::E3Recorded) {
            return !state
                .subject
                .messages()
                .iter()
                .any(|message| voids(message.batch, batch));
        }
        let index = usize::from(batch.epoch()) - 1;
        let void = (batch.epoch()..)
            .zip(&state.store.openings[index + 1..])
            .any(|(higher, open)| epochs & 1 << higher != 0 && voids(*open, batch));
        if void && self.rules.has(Rule::E5Void) {
            return false;
        }
        if batch.is_open() && self.rules.has(Rule::F2OnlyRecorded) {
            return state.store.openings[index] == batch;
        }
        true
    }

    /// F4: a holder can fill the hole after the cursor, if a later batch on the subject reveals the hole.
    pub(crate) fn fill_steps(&self, state: &LogState, index: u8, steps: &mut Vec<LogStep>) {
        if !self.rules.has(Rule::F4Filled) {
            return;
        }
        let holder = &state.holders[usize::from(index)];
        let missing = state.store.cursor.number() + 1;
        let batch = holder.tip.at(missing);
        let asked_for = state.subject.messages().iter().any(|message| {
            message.batch.number() > missing
                && self.may_be_folded(state, message.batch, u8::MAX)
                && (message.batch.contains(batch) || !self.rules.has(Rule::F4Hash))
        });
        let there = state.subject.messages().iter().any(|message| {
            self.follows(message.batch, state.store.cursor) && self.may_be_folded(state, message.batch, u8::MAX)
        });
        if asked_for && !there && self.keeps(state, holder, missing) && state.db.hand != batch {
            steps.push(LogStep::Fill(index));
            if state.left.damages > 0 && !self.rules.has(Rule::F4Hash) {
                steps.push(LogStep::FillDamaged(index));
            }
        }
    }

    /// F6: the subject after trimming it now.
    fn trimmed(&self, state: &LogState) -> Option<Subject> {
        let cursor = state.store.cursor;
        let mut subject = state.subject;
        let messages = state.subject.messages();
        if !self.rules.has(Rule::F6BehindArchive) {
            subject.purge_below(state.subject.last_sequence());
            return Some(subject);
        }
        let mut sequence = state.store.cursor_sequence;
        if self.rules.has(Rule::F6LookedUp) {
            let wanted = |message: &&Message| {
                !cursor.contains(message.batch) && self.may_be_folded(state, message.batch, u8::MAX)
            };
            let first_wanted = messages.iter().find(wanted).map_or(u8::MAX, |message| message.sequence);
            let newest = messages.iter().rfind(|message| message.batch == cursor)?;
            sequence = newest.sequence.min(first_wanted);
        }
        if !self.rules.has(Rule::F6NewestStays) {
            sequence += 1;
        }
        subject.purge_below(sequence);
        Some(subject)
    }
}

/// Whether `open`, if it is an opening, makes `batch` void.
fn voids(open: Batch, batch: Batch) -> bool {
    open.is_open() && open.epoch() > batch.epoch() && open.number() <= batch.number()
}

impl LogState {
    fn fold(&mut self, batch: Batch, sequence: u8) {
        if batch.before() != self.store.cursor {
            self.wrong = Some(Invariant::ChainIsDense);
        }
        self.store.cursor = batch;
        self.store.cursor_sequence = sequence;
        self.db.hand = Batch::NONE;
    }

    pub(crate) fn fill(&mut self, index: u8) {
        self.db.hand = self.holders[usize::from(index)].tip.at(self.store.cursor.number() + 1);
    }

    pub(crate) fn fill_damaged(&mut self, index: u8) {
        spend(&mut self.left.damages);
        self.fill(index);
        self.db.hand = self.db.hand.holding(0);
    }
}
