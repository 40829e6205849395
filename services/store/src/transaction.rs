//! The transaction interface for callers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OnceCell;

use crate::ahead::{Ahead, Reads};
use crate::draft::{Draft, Own, seen};
use crate::largest::Gauge;
use crate::limits::{self, RANGE_BYTES, TRANSACTION_AGE};
use crate::mutation::{Stamped, added};
use crate::{
    Backend, CommitRequest, Committed, KeyRange, Mutation, Page, RangeRead, Retry, ScanOrder, StoreError, Submitted,
    Version,
};

/// A transaction: reads at one version, sees its own writes, and commits atomically.
///
/// It reads at the version that is the newest at its first read. Its reads become *read conflict ranges*: if another
/// transaction writes there and commits first, this one fails with [`StoreError::Conflict`]. Reads through
/// [`Self::snapshot`] add no conflict ranges. A limited scan depends only on the rows it returned and on the gaps
/// between them.
///
/// A read-only transaction needs no commit. Clones refer to the same transaction, so that it can be passed to a retried
/// closure ([`crate::Store::run_once`]). Dropping it without a commit has no effect.
#[derive(Clone)]
pub struct Transaction {
    shared: Arc<Shared>,
}

struct Shared {
    backend: Arc<dyn Backend>,
    gauge: Arc<Gauge>,
    /// Whether it reads what is submitted and may not be durable yet.
    is_pipelined: bool,
    /// What the transaction before this one has read, if this one repeats its work.
    repeated: Reads,
    snapshot: OnceCell<Snapshot>,
    progress: Mutex<Progress>,
}

/// The read version of a transaction.
struct Snapshot {
    version: Version,
    /// When the read version was requested: no later than the store assigned it, so that a transaction never
    /// underestimates its age.
    since: Duration,
    /// What was read ahead at this version.
    ahead: Ahead,
}

#[derive(Default)]
struct Progress {
    draft: Draft,
    reads: Reads,
    finished: bool,
    /// The first retryable error, for the retry loop: the closure may have wrapped it in an error of its own.
    setback: Option<StoreError>,
}

/// Whether a read adds a conflict range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Isolation {
    Serializable,
    Snapshot,
}

impl Transaction {
    /// A transaction on `backend`, recorded in `gauge` when it commits.
    pub(crate) fn new(backend: Arc<dyn Backend>, gauge: Arc<Gauge>) -> Self {
        Self::repeating(backend, gauge, false, Reads::default())
    }

    /// As [`Self::new`], but reads what is submitted.
    pub(crate) fn pipelined(backend: Arc<dyn Backend>, gauge: Arc<Gauge>) -> Self {
        Self::repeating(backend, gauge, true, Reads::default())
    }

    fn repeating(backend: Arc<dyn Backend>, gauge: Arc<Gauge>, is_pipelined: bool, repeated: Reads) -> Self {
        let progress = Progress {
            draft: Draft::new(backend.prefix_bytes()),
            ..Progress::default()
        };
        Self {
            shared: Arc::new(Shared {
                backend,
                gauge,
                is_pipelined,
                repeated,
                snapshot: OnceCell::new(),
                progress: Mutex::new(progress),
            }),
        }
    }

    /// Begins a transaction that does the work of this one again, after a conflict. Where the store is remote, its first
    /// read sends the reads of this one, all at the same time, so that it takes a few round trips in place of one for each
    /// read: another transaction has less time to conflict with it. What it does not read itself adds no conflict range.
    #[must_use]
    pub fn repeat(&self) -> Self {
        let reads = self.lock().reads.clone();
        let Shared { backend, gauge, .. } = &*self.shared;
        Self::repeating(Arc::clone(backend), Arc::clone(gauge), self.shared.is_pipelined, reads)
    }

    /// The read version of this transaction; requests it from the store if nothing was read yet.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::Poisoned`].
    pub async fn read_version(&self) -> Result<Version, StoreError> {
        let result = self.snapshot_taken().await.map(|snapshot| snapshot.version);
        self.noting(result)
    }

    /// The value of `key`, with this transaction's own writes.
    ///
    /// # Errors
    /// An exceeded limit, [`StoreError::Unreadable`], [`StoreError::TooOld`], or a store that cannot be read.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let result = self.get_as(key, Isolation::Serializable).await;
        self.noting(result)
    }

    /// Rows of `range`, with this transaction's own writes, at most `limit` of them and [`RANGE_BYTES`].
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_range(&self, range: &KeyRange, limit: usize, order: ScanOrder) -> Result<Page, StoreError> {
        let result = self.get_range_as(range, limit, order, Isolation::Serializable).await;
        self.noting(result)
    }

    /// Reads that add no conflict ranges.
    #[must_use]
    pub fn snapshot(&self) -> SnapshotReads<'_> {
        SnapshotReads { transaction: self }
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// An exceeded limit.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.mutate(Mutation::Set {
            key: Bytes::copy_from_slice(key),
            value: Bytes::copy_from_slice(value),
        })
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// An exceeded limit.
    pub fn clear(&self, key: &[u8]) -> Result<(), StoreError> {
        self.mutate(Mutation::Clear {
            key: Bytes::copy_from_slice(key),
        })
    }

    /// Deletes all keys of `range`.
    ///
    /// # Errors
    /// An exceeded limit. More than [`limits::CLEARED_KEYS`] keys are rejected at the commit.
    pub fn clear_range(&self, range: &KeyRange) -> Result<(), StoreError> {
        self.mutate(Mutation::ClearRange { range: range.clone() })
    }

    /// Adds `delta` to the little-endian 64-bit integer at `key` (0 if the key is absent), wrapping; signed and
    /// unsigned integers behave alike. Transactions that only add to a key do not conflict on it.
    ///
    /// # Errors
    /// An exceeded limit.
    pub fn atomic_add(&self, key: &[u8], delta: i64) -> Result<(), StoreError> {
        self.mutate(Mutation::Add {
            key: Bytes::copy_from_slice(key),
            delta,
        })
    }

    /// Sets the key `before` + versionstamp of this commit + `after` to `value`.
    ///
    /// # Errors
    /// An exceeded limit.
    pub fn set_versionstamped_key(&self, before: &[u8], after: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.mutate(Mutation::SetStampedKey {
            key: stamped(before, after),
            value: Bytes::copy_from_slice(value),
        })
    }

    /// Sets `key` to `before` + versionstamp of this commit + `after`.
    ///
    /// # Errors
    /// An exceeded limit.
    pub fn set_versionstamped_value(&self, key: &[u8], before: &[u8], after: &[u8]) -> Result<(), StoreError> {
        self.mutate(Mutation::SetStampedValue {
            key: Bytes::copy_from_slice(key),
            value: stamped(before, after),
        })
    }

    /// Adds `range` to the read conflict ranges.
    ///
    /// # Errors
    /// An exceeded limit.
    pub fn add_read_conflict(&self, range: &KeyRange) -> Result<(), StoreError> {
        self.open()?.draft.add_read_conflict(range.clone())
    }

    /// Adds `range` to the write conflict ranges.
    ///
    /// # Errors
    /// An exceeded limit.
    pub fn add_write_conflict(&self, range: &KeyRange) -> Result<(), StoreError> {
        self.open()?.draft.add_write_conflict(range.clone())
    }

    /// Commits. A transaction that wrote nothing, or cleared only empty ranges, succeeds at its read version, with a
    /// stamp of zeros, without a request to the store.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::TooOld`], [`StoreError::ClearTooWide`], [`StoreError::Unavailable`],
    /// [`StoreError::Poisoned`]: nothing was applied. [`StoreError::CommitUnknown`]: it may have been; see
    /// [`crate::Store::run_once`].
    pub async fn commit(&self) -> Result<Committed, StoreError> {
        let draft = self.finish()?;
        let result = self.commit_draft(draft).await;
        self.noting(result)
    }

    /// Commits as [`Self::commit`] does, but may return before the transaction is durable, once no other can conflict with
    /// it any more: its caller can prepare the next one meanwhile ([`crate::Store::begin_pipelined`]).
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub async fn submit(&self) -> Result<Submitted, StoreError> {
        let draft = self.finish()?;
        let result = self.submit_draft(draft).await;
        self.noting(result)
    }

    /// Takes the draft; the transaction can do nothing more.
    fn finish(&self) -> Result<Draft, StoreError> {
        let mut progress = self.open()?;
        progress.finished = true;
        Ok(std::mem::take(&mut progress.draft))
    }

    /// The first retryable error of this transaction.
    pub(crate) fn setback(&self) -> Option<StoreError> {
        self.lock().setback.clone()
    }

    async fn commit_draft(&self, draft: Draft) -> Result<Committed, StoreError> {
        if draft.writes_nothing() {
            return Ok(self.nothing());
        }
        let request = self.request(draft).await?;
        self.shared.backend.commit(request).await
    }

    async fn submit_draft(&self, draft: Draft) -> Result<Submitted, StoreError> {
        if draft.writes_nothing() {
            return Ok(Submitted::known(self.nothing()));
        }
        let request = self.request(draft).await?;
        self.shared.backend.submit(request).await
    }

    /// The commit of a transaction that wrote nothing.
    fn nothing(&self) -> Committed {
        let snapshot = self.shared.snapshot.get();
        Committed::nothing(snapshot.map_or(Version::default(), |snapshot| snapshot.version))
    }

    /// The request of a transaction that is within the limits.
    async fn request(&self, draft: Draft) -> Result<CommitRequest, StoreError> {
        let depends = draft.has_read_conflicts();
        let mut request = draft.into_request();
        if depends {
            request.read_version = Some(self.snapshot_fresh().await?.version);
        }
        self.shared.gauge.note(&request, self.shared.backend.prefix_bytes());
        Ok(request)
    }

    async fn get_as(&self, key: &[u8], isolation: Isolation) -> Result<Option<Bytes>, StoreError> {
        limits::check_key(key)?;
        let own = self.open()?.draft.own(key);
        let plus = match own {
            Own::Known(value) => return Ok(value),
            Own::Unreadable => return Err(StoreError::Unreadable),
            Own::Stored => None,
            Own::Plus(delta) => Some(delta),
        };
        let snapshot = self.snapshot_fresh().await?;
        self.note(|reads| reads.note_key(key));
        let stored = match snapshot.ahead.value(key) {
            Some(value) => value.clone(),
            None => self.shared.backend.get(snapshot.version, key).await?,
        };
        if isolation == Isolation::Serializable {
            self.open()?.draft.add_read_conflict(KeyRange::single(key))?;
        }
        Ok(match plus {
            Some(delta) => Some(added(stored.as_deref(), delta)),
            None => stored,
        })
    }

    async fn get_range_as(
        &self,
        range: &KeyRange,
        limit: usize,
        order: ScanOrder,
        isolation: Isolation,
    ) -> Result<Page, StoreError> {
        limits::check_range(range)?;
        if range.is_empty() || limit == 0 {
            return Ok(Page {
                rows: Vec::new(),
                more: !range.is_empty(),
            });
        }
        let mut gathered = crate::backend::PageBuilder::new(limit, RANGE_BYTES);
        let mut rest = Some(range.clone());
        'pages: while let Some(range) = rest.take() {
            let snapshot = self.snapshot_fresh().await?;
            let read = RangeRead {
                range: range.clone(),
                limit,
                order,
            };
            self.note(|reads| reads.note_range(&read));
            let page = match snapshot.ahead.page(&read) {
                Some(page) => page.clone(),
                None => self.shared.backend.get_range(snapshot.version, read).await?,
            };
            let (rows, uncovered) = self.open()?.draft.overlay(&range, order, page)?;
            for (key, value) in rows {
                if !gathered.push(key, value) {
                    break 'pages;
                }
            }
            rest = uncovered;
        }
        let page = gathered.finish();
        if isolation == Isolation::Serializable {
            self.open()?
                .draft
                .add_read_conflict(seen(range, order, &page.rows, page.more))?;
        }
        Ok(page)
    }

    /// Notes a read for a repetition, if it would gain from it.
    fn note(&self, note: impl FnOnce(&mut Reads)) {
        if self.shared.backend.is_remote() {
            note(&mut self.lock().reads);
        }
    }

    fn mutate(&self, mutation: Mutation) -> Result<(), StoreError> {
        self.open()?.draft.mutate(mutation)
    }

    /// The read version, with what was read ahead, unless it is too old to use.
    async fn snapshot_fresh(&self) -> Result<&Snapshot, StoreError> {
        let snapshot = self.snapshot_taken().await?;
        if self.shared.backend.now().saturating_sub(snapshot.since) > TRANSACTION_AGE {
            return Err(StoreError::TooOld);
        }
        Ok(snapshot)
    }

    async fn snapshot_taken(&self) -> Result<&Snapshot, StoreError> {
        let take = || async {
            let since = self.shared.backend.now();
            let version = if self.shared.is_pipelined {
                self.shared.backend.submitted_version().await?
            } else {
                self.shared.backend.read_version().await?
            };
            let ahead = Ahead::read(&*self.shared.backend, version, &self.shared.repeated).await;
            Ok(Snapshot { version, since, ahead })
        };
        self.shared.snapshot.get_or_try_init(take).await
    }

    fn noting<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &result
            && error.retry() != Retry::Never
        {
            self.lock().setback.get_or_insert_with(|| error.clone());
        }
        result
    }

    fn open(&self) -> Result<MutexGuard<'_, Progress>, StoreError> {
        let progress = self.lock();
        if progress.finished {
            Err(StoreError::Finished)
        } else {
            Ok(progress)
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        // Nothing panics while it holds the lock, and no change under it can be left incomplete.
        self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads at the transaction's version, with its own writes, that add no conflict ranges.
#[derive(Clone, Copy)]
pub struct SnapshotReads<'a> {
    transaction: &'a Transaction,
}

impl SnapshotReads<'_> {
    /// As [`Transaction::get`].
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let result = self.transaction.get_as(key, Isolation::Snapshot).await;
        self.transaction.noting(result)
    }

    /// As [`Transaction::get_range`].
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub async fn get_range(&self, range: &KeyRange, limit: usize, order: ScanOrder) -> Result<Page, StoreError> {
        let result = self
            .transaction
            .get_range_as(range, limit, order, Isolation::Snapshot)
            .await;
        self.transaction.noting(result)
    }
}

fn stamped(before: &[u8], after: &[u8]) -> Stamped {
    Stamped {
        before: Bytes::copy_from_slice(before),
        after: Bytes::copy_from_slice(after),
    }
}
