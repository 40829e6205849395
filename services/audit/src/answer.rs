//! Why there is no answer.

use annals_evidence::Contradiction;
use annals_ids::{BatchNumber, DatabaseId, EntityId, EntryNumber, LeafIndex, LogPosition, Serial, SessionId, TradeId};
use annals_store::StoreError;
use thiserror::Error;

/// Why a question has no answer, or an archive cannot be relied upon. Where something is not as it was, the first thing that
/// is not is named.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The archive does not answer.
    #[error("the archive cannot be read")]
    Archive(#[source] StoreError),
    /// The index does not answer.
    #[error("the index cannot be used")]
    Index(#[source] StoreError),
    /// A leaf is gone.
    #[error("the archive lacks leaf {0}: it was removed, or the archive ends before what its tree says")]
    LeafMissing(LeafIndex),
    /// A leaf's bytes are no batch.
    #[error("leaf {leaf} of the archive, batch {at}, was changed: {what}")]
    Changed {
        /// Which leaf.
        leaf: LeafIndex,
        /// Which batch should be there.
        at: LogPosition,
        /// What is wrong with it.
        what: String,
    },
    /// A batch does not follow the one before it in its log.
    #[error(
        "batch {at}, leaf {leaf} of the archive, does not continue batch {before} of its log: one of the two was replaced, or \
         what lay between them was removed"
    )]
    Unchained {
        /// Which leaf.
        leaf: LeafIndex,
        /// Which batch.
        at: LogPosition,
        /// The last one of that log before it.
        before: BatchNumber,
    },
    /// The tree over the batches is not the one that is stored.
    #[error(
        "the first {leaves} batches of the archive do not come to the tree that is stored for them: one was replaced together \
         with all that follow it in its log, or the tree was"
    )]
    Tree {
        /// How many.
        leaves: u64,
    },
    /// The archive is shorter than it was.
    #[error(
        "the archive has {now} batches and had {before} when it was last verified: it was cut back, or replaced by an older \
         one. If that was a restore that is known of, remove the index's folder: a new one is built from the archive as it is"
    )]
    Shorter {
        /// How many it had.
        before: u64,
        /// How many it has.
        now: u64,
    },
    /// What is cited is not what was verified.
    #[error("batch {at}, leaf {leaf} of the archive, is not what it was when the index verified it")]
    Replaced {
        /// Which leaf.
        leaf: LeafIndex,
        /// Which batch.
        at: LogPosition,
    },
    /// The log of the ledger goes on with the wrong entry.
    #[error(
        "the ledger's log has entry {found} where {expected} comes next, in batch {at}: what lies between was lost or removed"
    )]
    Entries {
        /// Which was expected.
        expected: EntryNumber,
        /// Which is there.
        found: EntryNumber,
        /// In which batch.
        at: LogPosition,
    },
    /// The index points at something else.
    #[error("the index does not fit the archive at entry {0}: remove its folder, and it is built anew")]
    Misled(EntryNumber),
    /// What an answer would rest on contradicts itself.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// Another archive is to be taken in than was before.
    #[error(
        "the first batch of the archive is another one than when the index was begun: either it is the index of another realm, and \
         another folder has to be named, or the archive was written anew from its beginning"
    )]
    Another,
    /// There is no such batch.
    #[error("the archive has no batch {0}")]
    NoBatch(LogPosition),
    /// Nobody of that number has had anything, or asked for anything.
    #[error("no entry in the archive is about stored entity {0}")]
    NoHolder(DatabaseId),
    /// No event is about that entity.
    #[error("no event in the archive is about entity {0}; what retention has let go of is not in it")]
    NoEntity(EntityId),
    /// No client came in in that session.
    #[error("no event in the archive says that a client came in in session {0}")]
    NoSession(SessionId),
    /// It was never in the world.
    #[error("no event in the archive says that stored entity {0} was ever in the world")]
    NoLife(DatabaseId),
    /// The index points at something else.
    #[error("the index does not fit the archive at batch {0}: remove its folder, and it is built anew")]
    Mislaid(LogPosition),
    /// There is no such item.
    #[error("there is no item {0} in the archive")]
    NoItem(Serial),
    /// There is no such trade.
    #[error(
        "there is no trade {0} in the archive; a trade is written ENTITY/NUMBER: who proposed it, and with which of its orders. \
         What was given, and not traded, is found by the item or by the accounts"
    )]
    NoTrade(TradeId),
}

impl AuditError {
    /// Whether something is not as it was, and not merely unknown or out of reach.
    #[must_use]
    pub fn is_finding(&self) -> bool {
        !matches!(
            self,
            Self::Archive(_)
                | Self::Index(_)
                | Self::NoBatch(_)
                | Self::NoHolder(_)
                | Self::NoEntity(_)
                | Self::NoSession(_)
                | Self::NoLife(_)
                | Self::NoItem(_)
                | Self::NoTrade(_)
        )
    }
}
