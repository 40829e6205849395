//! What an implementation of the store provides.
//!
//! Six calls, as FoundationDB's client has them underneath: a version to read at, reads at a version, and a commit that
//! carries what was read and what is written. All that makes transactions pleasant (reading one's own writes, conflict
//! ranges, retries) is written once, in [`crate::Transaction`] and [`crate::Store`], on top of this.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::{CommitRequest, Committed, KeyRange, StoreError, Version};

/// A key and its value.
pub type Row = (Bytes, Bytes);

/// Which end of a range to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
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
    /// Most rows wanted, at least one.
    pub limit: usize,
    /// From which end.
    pub order: Order,
}

/// Rows of a range, in the order asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The rows; at least one unless the range holds none.
    pub rows: Vec<Row>,
    /// Whether the range may hold more beyond the last row: the limit or the size of a page was reached.
    pub more: bool,
}

/// An implementation of the store. Hold a [`crate::Store`] to use one.
///
/// Keys, values and requests are within [`crate::limits`] when they come from a [`crate::Transaction`]; a backend that gets
/// them from another process checks them again.
///
/// **Old versions.** A store may refuse any version with [`StoreError::TooOld`], and has to keep none longer than
/// [`crate::limits::TRANSACTION_AGE`]; it may serve older ones. Whatever it serves is right: a read gives what was there at
/// that version, and a commit that depends on something since written is never applied. It is [`crate::Transaction`] that
/// refuses to go on at that age, on every store.
pub trait Backend: Send + Sync + 'static {
    /// Bytes that it puts before each key. They count in the size of a transaction.
    fn prefix_bytes(&self) -> usize {
        0
    }

    /// Time since some moment in the past, to tell how old a transaction is.
    fn now(&self) -> Duration;

    /// Waits before trying again.
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

    /// Applies a transaction at once, or not at all. When this returns a [`Committed`], it lasts. One that
    /// [changes nothing](CommitRequest::changes_nothing) is answered with [`Committed::nothing`], and conflicts with nothing.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::TooOld`], a limit, [`StoreError::Unavailable`]: nothing was applied.
    /// [`StoreError::CommitUnknown`]: it may have been.
    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>>;

    /// Resolves once `key` holds another value than `seen`; at once when it does already.
    ///
    /// # Errors
    /// [`StoreError::TooManyWatches`], [`StoreError::Unavailable`], [`StoreError::Poisoned`].
    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// What a row counts beyond its key and value, so that many small ones cannot make a page long when it is sent: a row takes
/// at most 13 B of structure in a message.
const ROW_OVERHEAD: usize = 16;

/// Gathers rows into a page until a limit is reached.
#[derive(Debug)]
pub(crate) struct PageBuilder {
    page: Page,
    limit: usize,
    bytes: usize,
    most_bytes: usize,
}

impl PageBuilder {
    /// A page of at most `limit` rows and, beyond the first row, `most_bytes`.
    pub(crate) fn new(limit: usize, most_bytes: usize) -> Self {
        Self {
            page: Page::default(),
            limit,
            bytes: 0,
            most_bytes,
        }
    }

    /// Adds a row, unless the page is full: then it says so, and there is more.
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

    /// The page.
    pub(crate) fn finish(self) -> Page {
        self.page
    }
}
