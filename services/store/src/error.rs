//! Errors of the store, and how to react to them.

use std::sync::Arc;

use crate::limits;

/// Why a read, a commit or a watch failed. One enum for all three, because a transaction is one operation to its
/// caller: `?` inside a retried closure must carry each of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A key that this transaction read was written by a transaction that committed after its read version. Nothing was
    /// applied.
    #[error("the transaction read what another has since written; run it again")]
    Conflict,
    /// The read version is no longer kept. Nothing was applied.
    #[error(
        "the transaction is older than {} s; use smaller transactions",
        limits::TRANSACTION_AGE.as_secs()
    )]
    TooOld,
    /// Keys, values and conflict ranges together exceed [`limits::TRANSACTION_BYTES`]. Nothing was applied.
    #[error(
        "the transaction takes {bytes} B of at most {} B; split it",
        limits::TRANSACTION_BYTES
    )]
    TransactionTooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// A range to clear contains more than [`limits::CLEARED_KEYS`] keys. Nothing was applied.
    #[error("a range to clear holds more than {} keys; clear it in pieces", limits::CLEARED_KEYS)]
    ClearTooWide,
    /// A key exceeds [`limits::KEY_BYTES`].
    #[error("a key takes {bytes} B of at most {} B", limits::KEY_BYTES)]
    KeyTooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// A value exceeds [`limits::VALUE_BYTES`].
    #[error("a value takes {bytes} B of at most {} B; store it in chunks", limits::VALUE_BYTES)]
    ValueTooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// The key is not below [`limits::KEYS_END`]; keys beyond it are reserved for the store.
    #[error("keys that begin with ff belong to the store; choose another prefix")]
    KeyReserved,
    /// A range begins after its end.
    #[error("a range begins after its end")]
    RangeInverted,
    /// The transaction reads where it has itself written a versionstamp, which is known only after the commit.
    #[error("the transaction reads a key or value that will hold its own versionstamp; read it after the commit")]
    Unreadable,
    /// The transaction was already committed.
    #[error("the transaction has been committed; begin another")]
    Finished,
    /// [`limits::WATCHES`] watches are already waiting.
    #[error("{} watches are waiting already; drop some", limits::WATCHES)]
    TooManyWatches,
    /// The commit may or may not have been applied. Only an idempotency key or a look at the data can decide; see
    /// [`crate::Store::run_once`].
    #[error("the answer to a commit was lost: the commit may have been applied or not")]
    CommitUnknown,
    /// The store cannot be reached or is not ready. Nothing was applied.
    #[error("the store is not available: {0}")]
    Unavailable(Arc<str>),
    /// The store's client library rejected the request. Nothing was applied.
    #[error("the store rejected the request: {0}")]
    Refused(Arc<str>),
    /// A write to the store's disk failed. The store acknowledges nothing more until it is reopened.
    #[error("the store has stopped after a failed write ({0}); free or replace the disk, then start it again")]
    Poisoned(Arc<str>),
    /// Data read from the disk or received from the peer differs from what was written.
    #[error("the store read malformed data: {0}")]
    Corrupt(Arc<str>),
}

/// How a retry loop reacts to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Nothing was applied, and the same transaction may succeed when run again.
    Again,
    /// It may have been applied: determine that before running it again.
    FindOut,
    /// Running it again will not help.
    Never,
}

impl StoreError {
    /// How a retry loop should react to this error.
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
