//! What passes between a writer and whoever drives it.

use annals_event::FrozenBatch;
use annals_ids::{BatchNumber, Epoch, Hash, OwnerId};
use thiserror::Error;

/// When a batch counts as acknowledged: the realm's setting `acknowledged`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When JetStream has acknowledged it.
    #[default]
    Log,
    /// When db has it in the store.
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

/// What reading the owner's log gave (E1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The newest archived batch: the owner's cursor in the store.
    pub archived: Tip,
    /// The valid batches that follow it, dense, in order.
    pub beyond: Vec<FrozenBatch>,
    /// The subject's last sequence, whatever is there; 0 if the subject is empty.
    pub sequence: u64,
    /// The openings that the store holds, of whatever epoch.
    pub openings: Vec<Opening>,
    /// The highest epoch that anything on the subject was written in, valid or not.
    pub highest: Epoch,
}

impl Chain {
    /// What a log without accidents gives: these batches, all of them valid, with every `Open` among them recorded.
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
        }
    }
}

/// The first batch of an epoch, as the store holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The epoch it opens.
    pub epoch: Epoch,
    /// Its number: from here on, batches of lower epochs are void.
    pub number: BatchNumber,
    /// Its hash.
    pub hash: Hash,
}

/// Something the driver is to do, and to answer exactly once, by an [`Input`]. There is never more than one unanswered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Append these bytes to the owner's subject, expecting `expect` as its last sequence. Answers: [`Input::Appended`],
    /// [`Input::Rejected`], [`Input::Silent`].
    Append {
        /// The sequence expected.
        expect: u64,
        /// What is appended.
        batch: &'a FrozenBatch,
    },
    /// Read the subject's last message through the stream's leader. Answers: [`Input::Last`], [`Input::Silent`].
    ReadLast,
    /// Read the owner's log and fills once more, from the first message to the end. Answers: [`Input::Looked`],
    /// [`Input::Silent`].
    LookAgain,
    /// Write the opening into the store, in one transaction (E3): if the granted epoch is still its epoch, and the owner's
    /// cursor is below it or it is there already. Answers: [`Input::OpeningRecorded`], [`Input::OpeningRefused`],
    /// [`Input::Silent`].
    RecordOpening(Opening),
    /// Ask the store whether it still grants this epoch (E6). Answers: [`Input::EpochConfirmed`], [`Input::EpochLost`],
    /// [`Input::Silent`].
    ConfirmEpoch,
}

/// What the driver tells the writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The append was acknowledged, at this sequence.
    Appended {
        /// The subject's last sequence now.
        sequence: u64,
    },
    /// The append was rejected because the last sequence is another.
    Rejected,
    /// No answer in time, or one that is no verdict (no leader, no storage, store away).
    Silent,
    /// What is last on the subject: its sequence and bytes, or nothing.
    Last(Option<(u64, Vec<u8>)>),
    /// What the log holds now.
    Looked {
        /// The bytes of each message of the owner's log and fills, in any order.
        batches: Vec<Vec<u8>>,
        /// The log's last message: its sequence and bytes.
        last: Option<(u64, Vec<u8>)>,
    },
    /// The opening is in the store.
    OpeningRecorded,
    /// It is not.
    OpeningRefused(OpeningRefused),
    /// The store grants this epoch.
    EpochConfirmed,
    /// The store grants a higher one.
    EpochLost,
    /// The connection to the bus is gone. Comes unasked; an unanswered action is still to be answered.
    Disconnected,
    /// It is back. Comes unasked.
    Reconnected,
    /// db announced the owner's cursor. Comes unasked, in any order.
    Archived {
        /// The newest archived batch.
        upto: Tip,
        /// The epoch it was written in.
        epoch: Epoch,
    },
}

/// Why the store did not take an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningRefused {
    /// A higher epoch is granted.
    Superseded,
    /// db has archived what the log has lost since: the cursor has passed the opening.
    CursorPassed,
}

/// What the writer wants the journal to close and [`offer`](super::Writer::offer) it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing now.
    Nothing,
    /// The `Open` of this epoch (E2).
    Opening,
    /// The gathering batch, if it holds something.
    Filled,
    /// The gathering batch, even if it is empty.
    Heartbeat,
}

/// Why a writer appends nothing any more. What was not acknowledged will not be shown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Stop {
    /// Another process holds the owner.
    #[error("owner {owner} was taken over from epoch {epoch}; nothing to do here")]
    Replaced {
        /// Whose log.
        owner: OwnerId,
        /// The epoch that ended.
        epoch: Epoch,
    },
    /// Something was added to the log, or archived, while the owner was being taken: begin again at E1, in the same epoch.
    #[error("the log of owner {owner} grew while epoch {epoch} was being opened; read it again")]
    ReadAgain {
        /// Whose log.
        owner: OwnerId,
        /// The epoch to be opened.
        epoch: Epoch,
    },
    /// The log or the archive holds what this chain cannot have before it. An alarm.
    #[error("the log of owner {owner} contradicts its writer in epoch {epoch}: {found}; run `annals log verify`")]
    Contradicted {
        /// Whose log.
        owner: OwnerId,
        /// The writer's epoch.
        epoch: Epoch,
        /// What is there.
        found: Found,
    },
}

/// What contradicted a writer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Found {
    /// A batch that is neither of the chain nor void.
    #[error("batch {number} of epoch {epoch} with hash {hash} at sequence {sequence}")]
    Batch {
        /// Where on the stream.
        sequence: u64,
        /// Its number.
        number: BatchNumber,
        /// Its epoch.
        epoch: Epoch,
        /// Its hash.
        hash: Hash,
    },
    /// A message that is no batch of this owner.
    #[error("what is at sequence {sequence} is no batch of this owner")]
    Stranger {
        /// Where on the stream.
        sequence: u64,
    },
    /// An archived batch that differs from the one written.
    #[error("the archive holds batch {} with hash {}", archived.number, archived.hash)]
    Archive {
        /// The cursor that was announced.
        archived: Tip,
    },
}

impl Stop {
    /// Whether an operator must look at it.
    #[must_use]
    pub fn is_alarm(&self) -> bool {
        matches!(self, Stop::Contradicted { .. })
    }
}
