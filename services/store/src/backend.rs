//! The interface of a store implementation.
//!
//! Six calls, as in FoundationDB's client: a read version, reads at a version, and a commit with the ranges read and
//! the mutations. The conveniences of transactions (reading one's own writes, conflict ranges, retries) are built once
//! on top of it, in [`crate::Transaction`] and [`crate::Store`].
//!
//! A store whose commits take long may let a caller continue before they are durable ([`Backend::submit`]).

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, MaybeDone, maybe_done, ready};

use crate::{CommitRequest, Committed, KeyRange, StoreError, Version};

/// A key and its value.
pub type Row = (Bytes, Bytes);

/// Which end of a range to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanOrder {
    /// Smallest key first.
    Forward,
    /// Greatest key first.
    Reverse,
}

/// A read of part of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRead {
    /// The keys.
    pub range: KeyRange,
    /// Maximum rows, at least one.
    pub limit: usize,
    /// Which end to start from.
    pub order: ScanOrder,
}

/// Rows of a range, in the requested order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The rows; at least one unless the range is empty.
    pub rows: Vec<Row>,
    /// Whether the range may contain more beyond the last row, because the limit or the size of a page was reached.
    pub more: bool,
}

/// An implementation of the store. Use it through a [`crate::Store`].
///
/// Keys, values and requests from a [`crate::Transaction`] are within [`crate::limits`]; a backend that receives them
/// from another process must check them again.
///
/// **Old versions.** A store may reject any version with [`StoreError::TooOld`]. It need not keep a version longer than
/// [`crate::limits::TRANSACTION_AGE`], but it may. Its answers are always correct: a read returns what was there at
/// that version, and a commit that depends on something written since is never applied. [`crate::Transaction`] enforces
/// the age limit on every store.
pub trait Backend: Send + Sync + 'static {
    /// Length of the prefix before each key, in bytes. It counts in the size of a transaction.
    fn prefix_bytes(&self) -> usize {
        0
    }

    /// Whether each call is a round trip to another process: then the reads of a [repeated](crate::Transaction::repeat)
    /// transaction are sent all at the same time.
    fn is_remote(&self) -> bool {
        false
    }

    /// Monotonic time since an arbitrary origin, to compute the age of a transaction.
    fn now(&self) -> Duration;

    /// Waits before a retry.
    fn wait(&self, time: Duration) -> BoxFuture<'_, ()>;

    /// A version that includes every commit acknowledged before this call.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::Poisoned`].
    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>>;

    /// The value of `key` at a version.
    ///
    /// # Errors
    /// [`StoreError::TooOld`], [`StoreError::Unavailable`], [`StoreError::Corrupt`].
    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>>;

    /// Rows of a range at a version, at most [`crate::limits::PAGE_BYTES`] of them.
    ///
    /// # Errors
    /// As [`Self::get`].
    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// Applies a transaction atomically. When this returns a [`Committed`], the transaction is durable. One that
    /// [changes nothing](CommitRequest::changes_nothing) returns [`Committed::nothing`], and conflicts with nothing.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::TooOld`], a limit, [`StoreError::Unavailable`]: nothing was applied.
    /// [`StoreError::CommitUnknown`]: it may have been.
    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>>;

    /// Applies a transaction as [`Self::commit`] does, but may return before it is durable, once no other transaction can
    /// conflict with it any more. [`Self::submitted_version`] includes it from then on.
    ///
    /// # Errors
    /// As [`Self::commit`].
    fn submit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Submitted, StoreError>> {
        async move { Ok(Submitted::known(self.commit(request).await?)) }.boxed()
    }

    /// A version that includes every commit acknowledged and every transaction submitted before this call. What is read at
    /// it may be lost in a crash; a transaction that read at it is durable only after everything that it could read.
    ///
    /// # Errors
    /// As [`Self::read_version`].
    fn submitted_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.read_version()
    }

    /// Resolves once `key` has a value other than `seen`; immediately if it already does.
    ///
    /// # Errors
    /// [`StoreError::TooManyWatches`], [`StoreError::Unavailable`], [`StoreError::Poisoned`].
    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// A transaction that the store has accepted.
pub struct Submitted {
    outcome: MaybeDone<BoxFuture<'static, Result<Committed, StoreError>>>,
}

impl Submitted {
    /// A transaction that is durable when `outcome` returns a [`Committed`].
    #[must_use]
    pub fn new(outcome: impl Future<Output = Result<Committed, StoreError>> + Send + 'static) -> Self {
        Self {
            outcome: maybe_done(outcome.boxed()),
        }
    }

    /// A transaction that is durable already.
    #[must_use]
    pub fn known(committed: Committed) -> Self {
        Self::new(ready(Ok(committed)))
    }

    /// Waits until the transaction is durable. Can be cancelled and called again.
    ///
    /// # Errors
    /// [`StoreError::CommitUnknown`]: it may have been applied or not, and no transaction that read it is.
    pub async fn committed(&mut self) -> Result<Committed, StoreError> {
        (&mut self.outcome).await;
        match &self.outcome {
            MaybeDone::Done(outcome) => outcome.clone(),
            MaybeDone::Future(_) | MaybeDone::Gone => unreachable!("invariant: it was awaited, and is never taken"),
        }
    }
}

/// What a row counts beyond its key and value, so that a page of many small rows does not become too long to send: a
/// row has at most 13 B of structure in a message.
const ROW_OVERHEAD: usize = 16;

/// Collects rows into a page until a limit is reached.
#[derive(Debug)]
pub(crate) struct PageBuilder {
    page: Page,
    limit: usize,
    bytes: usize,
    most_bytes: usize,
}

impl PageBuilder {
    /// A page of at most `limit` rows and, after the first row, `most_bytes`.
    pub(crate) fn new(limit: usize, most_bytes: usize) -> Self {
        Self {
            page: Page::default(),
            limit,
            bytes: 0,
            most_bytes,
        }
    }

    /// Adds a row and returns true. If the page is full, marks that there are more rows and returns false.
    pub(crate) fn push(&mut self, key: Bytes, value: Bytes) -> bool {
        let bytes = key.len() + value.len() + ROW_OVERHEAD;
        let full =
            self.page.rows.len() >= self.limit || (!self.page.rows.is_empty() && self.bytes + bytes > self.most_bytes);
        if full {
            self.page.more = true;
            return false;
        }
        self.bytes += bytes;
        self.page.rows.push((key, value));
        true
    }

    /// Returns the page.
    pub(crate) fn finish(self) -> Page {
        self.page
    }
}
