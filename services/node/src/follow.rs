//! An owner's state at the end of its log, read at once for a take-over, or step by step while another process holds the
//! owner (rules E1 and D9 of `docs/protocol.md`).
//!
//! [`Followed`] holds what was folded so far. The caller reads the log and the store, and folds what [`Followed::unfolded`]
//! returns, as conversions between definitions need the store.

use annals_event::{FrozenBatch, Header, OwnerState};
use annals_ids::BatchNumber;
use thiserror::Error;

use crate::{
    chain::{Hole, assemble},
    writer::{Chain, Opening, Tip},
};

/// What was read of one owner's log: the input of [`assemble`]. It is read on from where it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The bytes of each message, of the log and of its fills.
    pub batches: Vec<Vec<u8>>,
    /// The sequence of the log's last message, by the stream's leader; 0 if it is empty.
    pub last: u64,
    /// The bytes of the log's last message.
    newest: Vec<u8>,
    /// The sequence of the last fill that was read.
    last_fill: u64,
}

impl Reading {
    /// Adds the next message of the log.
    pub fn add_message(&mut self, sequence: u64, bytes: Vec<u8>) {
        self.last = sequence;
        self.newest.clone_from(&bytes);
        self.batches.push(bytes);
    }

    /// Adds the next fill.
    pub fn add_fill(&mut self, sequence: u64, bytes: Vec<u8>) {
        self.last_fill = sequence;
        self.batches.push(bytes);
    }

    /// The log's last message: its sequence and bytes.
    #[must_use]
    pub fn last_message(&self) -> Option<(u64, Vec<u8>)> {
        (self.last > 0).then(|| (self.last, self.newest.clone()))
    }

    /// The sequence of the last fill.
    #[must_use]
    pub fn last_fill(&self) -> u64 {
        self.last_fill
    }

    /// Whether the message that the log has at [`Self::last`] now is another than the one that was read. A log that has
    /// lost its tail reuses the sequences. If the message is the same, so are all before it, by the hashes.
    #[must_use]
    pub fn is_replaced_by(&self, sequence: u64, bytes: &[u8]) -> bool {
        sequence == self.last && bytes != self.newest
    }

    /// Drops the messages that are archived up to this batch, and those that are no batches.
    pub fn forget(&mut self, upto: BatchNumber) {
        let is_new = |bytes: &Vec<u8>| Header::read(bytes).is_ok_and(|(header, _)| header.number > upto);
        self.batches.retain(is_new);
    }
}

/// What was folded is not on the owner's chain: the log has lost its tail, or was voided by an opening. Everything has to
/// be read again from the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("batch {folded}, which was folded, is not on the owner's chain any more")]
pub struct NotOnChain {
    /// The last folded batch.
    pub folded: BatchNumber,
}

/// The state of an owner up to a batch of its log.
#[derive(Clone, Debug)]
pub struct Followed {
    /// A batch that was archived when the log was read from there.
    archived: Tip,
    /// The last folded batch.
    tip: Tip,
    state: OwnerState,
}

impl Followed {
    /// Begins with a state of the archive, which is that after batch `archived`.
    #[must_use]
    pub fn from_archive(archived: Tip, state: OwnerState) -> Self {
        Self {
            archived,
            tip: archived,
            state,
        }
    }

    /// The owner's chain from the archive to the end of what was read, as [`assemble`] finds it.
    ///
    /// # Errors
    /// If a batch is missing.
    pub fn chain(
        &self,
        openings: &[Opening],
        batches: impl IntoIterator<Item = Vec<u8>>,
        sequence: u64,
    ) -> Result<Chain, Hole> {
        assemble(self.state.owner, self.archived, openings, batches, sequence)
    }

    /// The batches of that chain that are to be folded next, in order.
    ///
    /// # Errors
    /// If what was folded is not on the chain.
    pub fn unfolded<'c>(&self, chain: &'c Chain) -> Result<&'c [FrozenBatch], NotOnChain> {
        if self.tip == self.archived {
            return Ok(&chain.beyond);
        }
        let place = chain.beyond.iter().position(|batch| tip_of(batch) == self.tip);
        let place = place.ok_or(NotOnChain {
            folded: self.tip.number,
        })?;
        Ok(&chain.beyond[place + 1..])
    }

    /// The state, into which the caller folds the next of the unfolded batches. It then calls [`Self::folded`].
    pub fn state_mut(&mut self) -> &mut OwnerState {
        &mut self.state
    }

    /// Records that this batch is folded.
    pub fn folded(&mut self, batch: &FrozenBatch) {
        debug_assert_eq!(
            batch.previous, self.tip.hash,
            "batches are folded in the order of the chain"
        );
        self.tip = tip_of(batch);
    }

    /// Takes a newer cursor of the archive as the beginning, if its batch is on the chain and folded, and drops what the
    /// chain has up to there. Returns whether it did: messages up to that batch need not be kept any more.
    pub fn rebase(&mut self, chain: &mut Chain, cursor: Tip) -> bool {
        let place = chain.beyond.iter().position(|batch| tip_of(batch) == cursor);
        let Some(place) = place.filter(|_| cursor.number <= self.tip.number) else {
            return false;
        };
        self.archived = cursor;
        chain.archived = cursor;
        chain.beyond.drain(..=place);
        true
    }

    /// The state at the last folded batch.
    #[must_use]
    pub fn into_state(self) -> OwnerState {
        self.state
    }
}

fn tip_of(batch: &FrozenBatch) -> Tip {
    Tip {
        number: batch.number,
        hash: batch.hash,
    }
}
