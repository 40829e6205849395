//! Errors of questions.

use annals_evidence::Contradiction;
use annals_ids::{BatchNumber, DatabaseId, EntityId, EntryNumber, LeafIndex, LogPosition, Serial, SessionId, TradeId};
use annals_store::StoreError;
use thiserror::Error;

/// Why a question has no answer, or an archive cannot be trusted. If data was changed, the first deviation is named.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The archive cannot be read.
    #[error("the archive cannot be read")]
    Archive(#[source] StoreError),
    /// The index cannot be read.
    #[error("the index cannot be used")]
    Index(#[source] StoreError),
    /// A leaf is missing.
    #[error("the archive lacks leaf {0}: it was removed, or the archive ends before what its tree says")]
    LeafMissing(LeafIndex),
    /// A leaf's bytes are not a valid batch.
    #[error("leaf {leaf} of the archive, batch {at}, was changed: {what}")]
    Changed {
        /// The leaf.
        leaf: LeafIndex,
        /// The batch that should be there.
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
        /// The leaf.
        leaf: LeafIndex,
        /// The batch.
        at: LogPosition,
        /// The last batch of that log before it.
        before: BatchNumber,
    },
    /// The tree over the batches differs from the stored one.
    #[error(
        "the first {leaves} batches of the archive do not come to the tree that is stored for them: one was replaced together \
         with all that follow it in its log, or the tree was"
    )]
    Tree {
        /// Number of batches.
        leaves: u64,
    },
    /// The archive is shorter than before.
    #[error(
        "the archive has {now} batches and had {before} when it was last verified: it was cut back, or replaced by an older \
         one. If that was a restore that is known of, remove the index's folder: a new one is built from the archive as it is"
    )]
    Shorter {
        /// Former number of batches.
        before: u64,
        /// Current number of batches.
        now: u64,
    },
    /// Cited data differs from what was verified.
    #[error("batch {at}, leaf {leaf} of the archive, is not what it was when the index verified it")]
    Replaced {
        /// The leaf.
        leaf: LeafIndex,
        /// The batch.
        at: LogPosition,
    },
    /// The log of the ledger continues with the wrong entry.
    #[error(
        "the ledger's log has entry {found} where {expected} comes next, in batch {at}: what lies between was lost or removed"
    )]
    Entries {
        /// The expected entry.
        expected: EntryNumber,
        /// The entry found.
        found: EntryNumber,
        /// The batch.
        at: LogPosition,
    },
    /// The index points to a different entry.
    #[error("the index does not fit the archive at entry {0}: remove its folder, and it is built anew")]
    Misled(EntryNumber),
    /// The basis of an answer contradicts itself.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The archive is not the one that was taken in before.
    #[error(
        "the first batch of the archive is another one than when the index was begun: either it is the index of another realm, and \
         another folder has to be named, or the archive was written anew from its beginning"
    )]
    Another,
    /// There is no such batch.
    #[error("the archive has no batch {0}")]
    NoBatch(LogPosition),
    /// No holder with that number has had anything, or asked for anything.
    #[error("no entry in the archive is about stored entity {0}")]
    NoHolder(DatabaseId),
    /// No event is about that entity.
    #[error("no event in the archive is about entity {0}; what retention has let go of is not in it")]
    NoEntity(EntityId),
    /// No client came in for that session.
    #[error("no event in the archive says that a client came in in session {0}")]
    NoSession(SessionId),
    /// That stored entity was never in the world.
    #[error("no event in the archive says that stored entity {0} was ever in the world")]
    NoLife(DatabaseId),
    /// The index points to a different event.
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
    /// Whether the error shows that data was changed, and not merely that it is unknown or unavailable.
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
