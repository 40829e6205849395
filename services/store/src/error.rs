//! What can go wrong with a store, and what to do about it.

use std::sync::Arc;

use crate::limits;

/// Why a read, a commit or a watch did not happen. One enum for all three, because a transaction is one operation to its
/// caller: `?` inside a retried closure must carry every one of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Something this transaction read was written by a transaction that committed after its read version. Nothing was applied.
    #[error("the transaction read what another has since written; run it again")]
    Conflict,
    /// The read version is no longer kept. Nothing was applied.
    #[error(
        "the transaction is older than {} s; do the same in smaller transactions",
        limits::TRANSACTION_AGE.as_secs()
    )]
    TooOld,
    /// Keys, values and conflict ranges together pass [`limits::TRANSACTION_BYTES`]. Nothing was applied.
    #[error(
        "the transaction takes {bytes} B of at most {} B; split it",
        limits::TRANSACTION_BYTES
    )]
    TransactionTooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// A range to clear holds more than [`limits::CLEARED_KEYS`] keys. Nothing was applied.
    #[error("a range to clear holds more than {} keys; clear it in pieces", limits::CLEARED_KEYS)]
    ClearTooWide,
    /// A key passes [`limits::KEY_BYTES`].
    #[error("a key takes {bytes} B of at most {} B", limits::KEY_BYTES)]
    KeyTooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// A value passes [`limits::VALUE_BYTES`].
    #[error("a value takes {bytes} B of at most {} B; store it in chunks", limits::VALUE_BYTES)]
    ValueTooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// The key is not below [`limits::KEYS_END`]; what lies beyond belongs to the store itself.
    #[error("keys that begin with ff belong to the store; choose another prefix")]
    KeyReserved,
    /// A range begins after its end.
    #[error("a range begins after its end")]
    RangeInverted,
    /// The transaction itself has put a versionstamp where it now wants to read, and the stamp is known only after the commit.
    #[error("the transaction reads a key or value that will hold its own versionstamp; read it after the commit")]
    Unreadable,
    /// The transaction was committed already.
    #[error("the transaction has been committed; begin another")]
    Finished,
    /// [`limits::WATCHES`] are waiting already.
    #[error("{} watches are waiting already; drop some", limits::WATCHES)]
    TooManyWatches,
    /// The commit may or may not have been applied. Only an idempotency key or a look at the data can tell; see
    /// [`crate::Store::run_once`].
    #[error("the answer to a commit was lost: it may have been applied or not")]
    CommitUnknown,
    /// The store cannot be reached or is not ready. Nothing was applied.
    #[error("the store is not available: {0}")]
    Unavailable(Arc<str>),
    /// The store's own client refuses what it is asked. Nothing was applied.
    #[error("the store refuses what it is asked: {0}")]
    Refused(Arc<str>),
    /// A write to the store's disk failed. It acknowledges nothing more until it is opened anew.
    #[error("the store has stopped after a failed write ({0}); free or replace the disk, then start it again")]
    Poisoned(Arc<str>),
    /// What was read from the disk, or came from the other side, is not what was written.
    #[error("the store cannot make sense of what it reads: {0}")]
    Corrupt(Arc<str>),
}

/// What a retry loop makes of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Nothing was applied, and the same transaction may succeed when run again.
    Again,
    /// It may have been applied: find out before running it again.
    FindOut,
    /// Running it again will not help.
    Never,
}

impl StoreError {
    /// What a retry loop should make of this error.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Conflict | Self::TooOld | Self::Unavailable(_) => Retry::Again,
            Self::CommitUnknown => Retry::FindOut,
            Self::TransactionTooLarge { .. }
            | Self::ClearTooWide
            | Self::KeyTooLarge { .. }
            | Self::ValueTooLarge { .. }
            | Self::KeyReserved
            | Self::RangeInverted
            | Self::Unreadable
            | Self::Finished
            | Self::TooManyWatches
            | Self::Refused(_)
            | Self::Poisoned(_)
            | Self::Corrupt(_) => Retry::Never,
        }
    }
}
