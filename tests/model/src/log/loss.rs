//! What the log has lost, which losses exceed the fault budget, and whether anything that was shown is lost.

use super::batch::Batch;
use super::subject::Message;
use super::{Acknowledged, LogModel, LogState, UNLOGGED};

/// The fault budget of `acknowledged = log`: a batch that JetStream lost is *excused* if no process is left to resend
/// it: its writer crashed, or was replaced, before db had archived it. Batches that follow an excused batch are excused
/// with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Losses {
    /// Lost by the log before they were archived, and not resent.
    lost: BatchSet,
    /// Beyond the budget.
    excused: BatchSet,
    /// Whether the log has lost anything at all.
    any: bool,
}

impl Losses {
    pub(crate) fn none_so_far(&self) -> bool {
        !self.any
    }

    /// `batch` is on the subject again.
    pub(crate) fn put_back(&mut self, batch: Batch) {
        self.lost.retain(|lost| lost != batch);
    }

    /// An opening was recorded: lost batches that do not precede it are void.
    pub(crate) fn excuse_all_but(&mut self, opening: Batch) {
        self.excuse(|lost| !opening.contains(lost));
    }

    fn excuse(&mut self, which: impl Fn(Batch) -> bool) {
        for lost in self.lost.0 {
            if lost != Batch::NONE && which(lost) {
                self.excused.insert(lost);
            }
        }
    }

    fn excuses(&self, batch: Batch) -> bool {
        self.excused
            .0
            .iter()
            .any(|lost| *lost != Batch::NONE && batch.contains(*lost))
    }
}

/// A small ordered set of batches, padded with `NONE`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct BatchSet([Batch; 4]);

impl BatchSet {
    /// A full set stays unchanged; the bounds leave room for everything that one schedule can lose.
    fn insert(&mut self, batch: Batch) {
        if !self.0.contains(&batch) && self.0[0] == Batch::NONE {
            self.0[0] = batch;
            self.0.sort_unstable();
        }
    }

    fn retain(&mut self, wanted: impl Fn(Batch) -> bool) {
        for batch in &mut self.0 {
            if !wanted(*batch) {
                *batch = Batch::NONE;
            }
        }
        self.0.sort_unstable();
    }
}

impl LogState {
    /// The log has just lost these messages; `read` says that db had read the first of them.
    pub(crate) fn lose(&mut self, messages: &[Message], read: bool) {
        self.losses.any = true;
        for message in messages {
            if !self.subject.has(message.batch) {
                self.losses.lost.insert(message.batch);
            }
        }
        if let (true, Some(first)) = (read, messages.first()) {
            self.db.take_in_hand(first.batch);
        }
    }

    /// Removes archived batches from the lost ones; those that no process has in memory exceed the budget.
    pub(crate) fn settle_losses(&mut self) {
        let cursor = self.store.cursor;
        self.losses.lost.retain(|lost| !cursor.contains(lost));
        let holders = self.holders;
        self.losses.excuse(|lost| {
            !holders
                .iter()
                .any(|holder| holder.has_chain() && holder.tip.contains(lost))
        });
    }
}

impl LogModel {
    /// Whether `batch`, or one that it follows, was lost beyond the budget. `archive` has no such excuse.
    pub(crate) fn excuses(&self, state: &LogState, batch: Batch) -> bool {
        self.acknowledged == Acknowledged::Log && state.losses.excuses(batch)
    }

    /// Whether something that was shown can no longer reach the archive, and the budget does not excuse it.
    pub(crate) fn shown_and_lost(&self, state: &LogState) -> bool {
        (0u8..).zip(state.shown).any(|(input, shown)| match shown {
            None => false,
            UNLOGGED => !state.holders.iter().any(|holder| holder.gathering & 1 << input != 0),
            Some(batch) => {
                !self.excuses(state, batch) && (self.is_nowhere(state, batch) || self.is_contradicted(state, batch))
            }
        })
    }

    /// Whether the batch is in no archive, on no subject and in no memory.
    fn is_nowhere(&self, state: &LogState, batch: Batch) -> bool {
        !state.store.cursor.contains(batch)
            && !state.subject.has(batch)
            && !state.holders.iter().any(|holder| {
                holder.has_chain() && holder.tip.contains(batch) && self.keeps(state, holder, batch.number())
            })
    }

    /// Whether the archive has another batch in its place, or a recorded opening of a higher epoch does not follow it.
    fn is_contradicted(&self, state: &LogState, batch: Batch) -> bool {
        let cursor = state.store.cursor;
        let elsewhere = !cursor.contains(batch) && !batch.contains(cursor);
        let higher = &state.store.openings[usize::from(batch.epoch())..];
        elsewhere || higher.iter().any(|open| *open != Batch::NONE && !open.contains(batch))
    }
}
