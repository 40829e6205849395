//! Types exchanged between a writer and its driver.

use annals_event::FrozenBatch;
use annals_ids::{BatchNumber, Epoch, Hash, OwnerId};
use thiserror::Error;

use crate::trouble::ALARM;

/// When a batch counts as acknowledged: the realm's setting `acknowledged`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When JetStream has acknowledged it.
    #[default]
    Log,
    /// When db has folded it into the store.
    Archive,
}

/// A batch by number and hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tip {
    /// Its number; 0 before the first.
    pub number: BatchNumber,
    /// Its hash; zeroes before the first.
    pub hash: Hash,
}

/// Result of reading an owner's log (E1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The newest archived batch: the owner's cursor in the store.
    pub archived: Tip,
    /// The valid batches after it, dense, in order.
    pub beyond: Vec<FrozenBatch>,
    /// The subject's last sequence, whatever that message is; 0 if the subject is empty.
    pub sequence: u64,
    /// The openings that the store holds, of any epoch.
    pub openings: Vec<Opening>,
    /// The highest epoch of any batch on the subject, valid or not.
    pub highest: Epoch,
    /// Whether the reading began when no former holder could receive an acknowledgement any more (rule E8): it has
    /// everything that any of them has shown.
    pub former_ended: bool,
}

impl Chain {
    /// The chain of a log without faults: these batches, all valid, with every `Open` among them recorded.
    #[must_use]
    pub fn whole(archived: Tip, beyond: Vec<FrozenBatch>, sequence: u64) -> Self {
        let opening = |batch: &FrozenBatch| Opening {
            epoch: batch.epoch,
            number: batch.number,
            hash: batch.hash,
        };
        Self {
            openings: beyond.iter().filter(|batch| batch.opens).map(opening).collect(),
            highest: beyond.last().map_or(Epoch(0), |batch| batch.epoch),
            archived,
            beyond,
            sequence,
            former_ended: false,
        }
    }
}

/// The first batch of an epoch, as the store holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The epoch it opens.
    pub epoch: Epoch,
    /// Its number: from it on, batches of lower epochs are void.
    pub number: BatchNumber,
    pub hash: Hash,
}

/// Something that the driver has to do, and answer exactly once, by an [`Input`]. At most one action is unanswered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Append these bytes to the owner's subject, with `expect` as the expected last sequence. Answers:
    /// [`Input::Appended`], [`Input::Rejected`], [`Input::Silent`].
    Append {
        /// The expected sequence.
        expect: u64,
        /// The batch to append.
        batch: &'a FrozenBatch,
    },
    /// Read the subject's last message through the stream's leader. Answers: [`Input::Last`], [`Input::Silent`].
    ReadLast,
    /// Read the owner's log and fills once more, from the first message to the end. Answers: [`Input::Looked`],
    /// [`Input::Silent`].
    LookAgain,
    /// Write the opening into the store, in one transaction (E3), if the granted epoch is still the opening's, and the
    /// owner's cursor is below the opening or the opening is already recorded. Answers: [`Input::OpeningRecorded`],
    /// [`Input::OpeningRefused`], [`Input::Silent`].
    RecordOpening(Opening),
    /// Ask the store whether it still grants this epoch (E6). Answers: [`Input::EpochConfirmed`], [`Input::EpochLost`],
    /// [`Input::Silent`].
    ConfirmEpoch,
}

/// An answer to an action, or a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The append was acknowledged, at this sequence.
    Appended {
        /// The subject's last sequence now.
        sequence: u64,
    },
    /// The append was rejected because the last sequence differs from the expected one.
    Rejected,
    /// No answer in time, or an inconclusive one (no leader, no storage, store unavailable).
    Silent,
    /// The last message on the subject, as sequence and bytes, or nothing.
    Last(Option<(u64, Vec<u8>)>),
    /// The log's present contents.
    Looked {
        /// The bytes of each message of the owner's log and fills, in any order.
        batches: Vec<Vec<u8>>,
        /// The log's last message: its sequence and bytes.
        last: Option<(u64, Vec<u8>)>,
    },
    /// The opening is in the store.
    OpeningRecorded,
    /// The store refused the opening.
    OpeningRefused(OpeningRefused),
    /// The store still grants this epoch.
    EpochConfirmed,
    /// The store grants a higher epoch.
    EpochLost,
    /// The connection to the bus is lost. Unsolicited; an unanswered action still has to be answered.
    Disconnected,
    /// The connection is restored. Unsolicited.
    Reconnected,
    /// db announced the owner's cursor. Unsolicited, in any order.
    Archived {
        /// Newest archived batch.
        upto: Tip,
        /// Epoch in which it was written.
        epoch: Epoch,
    },
}

/// Why the store refused an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningRefused {
    /// A higher epoch is granted.
    Superseded,
    /// db has archived batches that the log has lost since: the cursor has passed the opening.
    CursorPassed,
}

/// What the journal has to close and [`offer`](super::Writer::offer) to the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing at present.
    Nothing,
    /// The `Open` of this epoch (E2).
    Opening,
    /// The gathering batch, if it is not empty.
    Filled,
    /// The gathering batch, even if it is empty.
    Heartbeat,
}

/// Why a writer appends nothing any more. Outputs of unacknowledged batches are never shown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Stop {
    /// Another process holds the owner.
    #[error("owner {owner} was taken over from epoch {epoch}; nothing to do here")]
    Replaced {
        owner: OwnerId,
        /// The epoch that ended.
        epoch: Epoch,
    },
    /// The log or the archive grew during the take-over: restart at E1, in the same epoch.
    #[error("the log of owner {owner} grew during the opening of epoch {epoch}; read it again")]
    ReadAgain {
        owner: OwnerId,
        /// The epoch to open.
        epoch: Epoch,
    },
    /// The log or the archive holds something that cannot precede this chain. An alarm.
    #[error(
        "{ALARM}: the log of owner {owner} contradicts its writer in epoch {epoch}: {found}; run `annals log verify`"
    )]
    Contradicted {
        owner: OwnerId,
        /// The writer's epoch.
        epoch: Epoch,
        /// The contradicting item.
        found: Found,
    },
}

/// What contradicts a writer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Found {
    /// A batch that is neither on the chain nor void.
    #[error("batch {number} of epoch {epoch} with hash {hash} at sequence {sequence}")]
    Batch {
        /// Sequence on the stream.
        sequence: u64,
        number: BatchNumber,
        epoch: Epoch,
        hash: Hash,
    },
    /// A message that is not a batch of this owner.
    #[error("the message at sequence {sequence} is not a batch of this owner")]
    Stranger {
        /// Sequence on the stream.
        sequence: u64,
    },
    /// An archived batch that differs from the one written.
    #[error("the archive holds batch {} with hash {}", archived.number, archived.hash)]
    Archive {
        /// The announced cursor.
        archived: Tip,
    },
}

impl Stop {
    /// Whether an operator must investigate.
    #[must_use]
    pub fn is_alarm(&self) -> bool {
        matches!(self, Stop::Contradicted { .. })
    }
}
