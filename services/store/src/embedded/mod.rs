//! The embedded store: files on one machine, used by one process.
//!
//! Rows are stored in a fjall database. This module adds transactions:
//!
//! - one *committer* thread takes commits from a bounded queue, orders them (`crate::sequencer`) and writes everything
//!   that is waiting as one group with one `fdatasync`; meanwhile the next group gathers;
//! - readers see a group only once it is on disk: each published version has a fjall snapshot, kept for as long as a
//!   transaction may read at it;
//! - a caller that submits transactions, one after the other, reads the group that is being written, on top of the last
//!   snapshot: the journal has groups in order, so none is there without those that it could read;
//! - the committer fires watches after the group is published.
//!
//! Reads run on the caller's thread; most are served from memory. When a write or its flush fails, the store is
//! *poisoned*: the commits of that group return [`StoreError::CommitUnknown`], and no further transaction begins or is
//! acknowledged. After a reopen, the store has everything it ever acknowledged.

mod committer;
mod files;
mod published;
mod view;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::{Backend, CommitRequest, Committed, Page, RangeRead, Store, StoreError, Submitted, Version, limits};
use committer::{Committer, Work};
use files::Files;
pub use files::OpenError;
use published::Published;
pub use published::Written;

/// Maximum commits and watches queued for the committer; further callers wait to enqueue. At tens of thousands of
/// commits a second this is some 20 ms of work.
const QUEUE: usize = 1_024;

/// Maximum memory of queued commits, in KiB: six of the largest possible.
const QUEUE_KIB: usize = 64 * 1_024;

// The largest commit fits into the queue.
const _: () = assert!(limits::TRANSACTION_BYTES / 1_024 < QUEUE_KIB);

/// A store in the files of one directory. Clones refer to the same store; dropping the last one closes it.
#[derive(Clone)]
pub struct EmbeddedStore {
    inner: Arc<Inner>,
}

struct Inner {
    /// None only during drop.
    work: Option<mpsc::Sender<Work>>,
    room: Arc<Semaphore>,
    published: Arc<Published>,
    opened: Instant,
    committer: Option<JoinHandle<()>>,
}

impl EmbeddedStore {
    /// Opens the store in `directory`, which is created if missing, and recovers from a crash. Blocks; takes as long as
    /// replaying at most 256 MiB of journal.
    ///
    /// # Errors
    /// When another process has it open, when its files are corrupt or of another format, or when they cannot be read
    /// or created.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let files = Files::open(directory)?;
        let opened = Instant::now();
        // One past the last commit: a transaction that read before the crash may have missed commits that are on disk
        // nevertheless.
        let first = Version(files.last_version()?.0 + 1);
        let published = Arc::new(Published::new(first, files.snapshot()));
        let (work, queue) = mpsc::channel(QUEUE);
        let committer = Committer::new(files, first, Arc::clone(&published), queue, opened);
        let thread = std::thread::Builder::new()
            .name("store-committer".into())
            .spawn(move || committer.run())
            .map_err(|source| OpenError::Files {
                path: directory.to_owned(),
                source,
            })?;
        let room = Arc::new(Semaphore::new(QUEUE_KIB));
        let inner = Inner {
            work: Some(work),
            room,
            published,
            opened,
            committer: Some(thread),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A handle to the store.
    #[must_use]
    pub fn store(&self) -> Store {
        Store::new(self.clone())
    }

    /// Amount written since the store was opened.
    #[must_use]
    pub fn written(&self) -> Written {
        self.inner.published.written()
    }

    async fn send(&self, work: Work) -> Result<(), StoreError> {
        let queue = self
            .inner
            .work
            .as_ref()
            .expect("invariant: the queue is taken only on drop");
        queue.send(work).await.map_err(|_| self.gone())
    }

    /// The outcome of a request that changes nothing; `None` of another one.
    fn nothing(&self, request: &CommitRequest) -> Result<Option<Committed>, StoreError> {
        let bytes = request.bytes(0);
        if bytes > limits::TRANSACTION_BYTES {
            return Err(StoreError::TransactionTooLarge { bytes });
        }
        if !request.changes_nothing() {
            return Ok(None);
        }
        limits::check_commit(request, 0)?;
        let newest = self.inner.published.newest()?;
        Ok(Some(Committed::nothing(request.read_version.unwrap_or(newest))))
    }

    /// Gives a commit to the committer, and returns its outcome.
    async fn enqueue(
        &self,
        request: CommitRequest,
        accepted: Option<oneshot::Sender<()>>,
    ) -> Result<impl Future<Output = Result<Committed, StoreError>> + Send + use<>, StoreError> {
        let kib = u32::try_from(request.bytes(0) / 1_024 + 1).expect("invariant: a transaction is within its limit");
        let room = Arc::clone(&self.inner.room)
            .acquire_many_owned(kib)
            .await
            .map_err(|_| self.gone())?;
        let (answer, answered) = oneshot::channel();
        let work = Work::Commit {
            request,
            room,
            accepted,
            answer,
        };
        self.send(work).await?;
        // A committer that exits without an answer may already have written the commit to disk.
        Ok(answered.map(|answer| answer.unwrap_or(Err(StoreError::CommitUnknown))))
    }

    /// Why the committer accepts no more work.
    fn gone(&self) -> StoreError {
        self.inner
            .published
            .poison()
            .unwrap_or_else(|| StoreError::Poisoned("its committer has stopped".into()))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.work.take());
        if let Some(committer) = self.committer.take()
            && committer.join().is_err()
        {
            tracing::error!("the store's committer panicked");
        }
    }
}

impl Backend for EmbeddedStore {
    fn now(&self) -> Duration {
        self.inner.opened.elapsed()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        tokio::time::sleep(time).boxed()
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        std::future::ready(self.inner.published.newest()).boxed()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        async move { self.inner.published.at(at)?.get(key) }.boxed()
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        async move { self.inner.published.at(at)?.get_range(&read) }.boxed()
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>> {
        async move {
            match self.nothing(&request)? {
                Some(nothing) => Ok(nothing),
                None => self.enqueue(request, None).await?.await,
            }
        }
        .boxed()
    }

    fn submit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Submitted, StoreError>> {
        async move {
            if let Some(nothing) = self.nothing(&request)? {
                return Ok(Submitted::known(nothing));
            }
            let (accepted, when_accepted) = oneshot::channel();
            let outcome = self.enqueue(request, Some(accepted)).await?;
            match when_accepted.await {
                Ok(()) => Ok(Submitted::new(outcome)),
                Err(_) => outcome.await.map(Submitted::known),
            }
        }
        .boxed()
    }

    fn submitted_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        std::future::ready(self.inner.published.submitted()).boxed()
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            let (answer, fired) = oneshot::channel();
            self.send(Work::Watch { key, seen, answer }).await?;
            fired.await.unwrap_or_else(|_| Err(self.gone()))
        }
        .boxed()
    }
}
