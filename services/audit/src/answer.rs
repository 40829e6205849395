//! Errors of questions.

use annals_evidence::{Contradiction, ShardLeaf};
use annals_ids::{BatchNumber, DatabaseId, EntityId, EntryNumber, LogPosition, Serial, SessionId, Shard, TradeId};
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
    #[error("leaf {0} is missing from the archive: it was removed, or the archive is shorter than its tree")]
    LeafMissing(ShardLeaf),
    /// A leaf's bytes are not a valid batch.
    #[error("leaf {leaf}, batch {at}, was changed: {what}")]
    Changed {
        leaf: ShardLeaf,
        /// The batch that should be there.
        at: LogPosition,
        /// What is wrong with it.
        what: String,
    },
    /// A batch does not follow the one before it in its log.
    #[error(
        "batch {at}, leaf {leaf}, does not continue batch {before} of its log: one of the two was replaced, or batches \
         between them were removed"
    )]
    Unchained {
        leaf: ShardLeaf,
        /// The batch.
        at: LogPosition,
        /// The last batch of that log before it.
        before: BatchNumber,
    },
    /// The tree over the batches differs from the stored one.
    #[error(
        "the first {leaves} batches of the archive of shard {shard} do not match the stored tree: one was replaced \
         with all that follow it in its log, or the tree was replaced"
    )]
    Tree {
        shard: Shard,
        /// Number of batches.
        leaves: u64,
    },
    /// The archive is shorter than before.
    #[error(
        "the archive of shard {shard} has {now} batches and had {before} when last verified: it was truncated, or \
         replaced by an older one. After a known restore, remove the index's folder to build a new index"
    )]
    Shorter {
        shard: Shard,
        /// Former number of batches.
        before: u64,
        /// Current number of batches.
        now: u64,
    },
    /// Cited data differs from what was verified.
    #[error("batch {at}, leaf {leaf}, has changed since the index verified it")]
    Replaced {
        leaf: ShardLeaf,
        /// The batch.
        at: LogPosition,
    },
    /// The log of the ledger continues with the wrong entry.
    #[error(
        "the ledger's log has entry {found}, expected {expected}, in batch {at}: the entries between were lost or \
         removed"
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
    #[error("the index does not match the archive at entry {0}: remove its folder to rebuild it")]
    Misled(EntryNumber),
    /// The basis of an answer contradicts itself.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The archive is not the one that was taken in before.
    #[error(
        "the first batch of the archive of shard {0} differs from the one in the index: either the index is of \
         another realm, and another folder must be given, or the archive was rewritten from its start"
    )]
    Another(Shard),
    /// There is no such batch.
    #[error("the archive has no batch {0}")]
    NoBatch(LogPosition),
    /// No holder with that number has had anything, or asked for anything.
    #[error("the archive has no ledger entry of stored entity {0}")]
    NoHolder(DatabaseId),
    /// No event is about that entity.
    #[error("the archive has no event of entity {0}; it may have had events that retention deleted")]
    NoEntity(EntityId),
    /// No client came in for that session.
    #[error("the archive has no client log-in of session {0}")]
    NoSession(SessionId),
    /// That stored entity was never in the world.
    #[error("the archive has no activation of stored entity {0}")]
    NoLife(DatabaseId),
    /// The index points to a different event.
    #[error("the index does not match the archive at batch {0}: remove its folder to rebuild it")]
    Mislaid(LogPosition),
    /// There is no such item.
    #[error("there is no item {0} in the archive")]
    NoItem(Serial),
    /// There is no such trade.
    #[error(
        "there is no trade {0} in the archive; write ENTITY/NUMBER: the proposing entity and the number of its \
         order. Find gifts by the item or by the accounts"
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
