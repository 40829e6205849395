//! The embedded store: files of one machine, held by one process.
//!
//! Rows lie in a fjall database. Ours are the parts that make transactions of it:
//!
//! - one *committer* thread takes commits from a bounded queue, puts them in order (`crate::sequencer`) and writes whatever
//!   has gathered as one group with one `fdatasync`; while that runs, the next group gathers;
//! - readers see a group only once it is on disk: each published version has a fjall snapshot, kept for as long as a
//!   transaction may read at it;
//! - watches are fired by the committer, after the group is published.
//!
//! Reads run on the caller's thread; most come from memory. When a write or its flush fails, the store is *poisoned*: what
//! was in that group is [`StoreError::CommitUnknown`], and nothing is acknowledged or begun any more. Opened again, it holds
//! everything it ever acknowledged.

mod committer;
mod files;
mod published;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::{Backend, CommitRequest, Committed, Page, RangeRead, Store, StoreError, Version, limits};
use committer::{Committer, Work};
use files::Files;
pub use files::OpenError;
use published::Published;
pub use published::Written;

/// Most commits and watches waiting for the committer. More wait at the door; at tens of thousands of commits a second
/// this is some 20 ms of work.
const QUEUE: usize = 1_024;

/// Most memory that waiting commits may take, in KiB: six of the largest there can be.
const QUEUE_KIB: usize = 64 * 1_024;

// The largest commit fits through the door.
const _: () = assert!(limits::TRANSACTION_BYTES / 1_024 < QUEUE_KIB);

/// A store in the files of one directory. Clones are the same store; it is closed when the last one is dropped.
#[derive(Clone)]
pub struct EmbeddedStore {
    inner: Arc<Inner>,
}

struct Inner {
    /// None only while it is being dropped.
    work: Option<mpsc::Sender<Work>>,
    room: Arc<Semaphore>,
    published: Arc<Published>,
    opened: Instant,
    committer: Option<JoinHandle<()>>,
}

impl EmbeddedStore {
    /// Opens the store in `directory`, which is created when it is missing, and recovers what a crash has left. Blocks; takes
    /// as long as replaying at most 256 MiB of journal.
    ///
    /// # Errors
    /// When another process holds it, when its files are of another format or damaged, or when they cannot be read or made.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let files = Files::open(directory)?;
        let opened = Instant::now();
        // One past the last commit: whoever read before the crash may have missed commits that are on disk all the same.
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

    /// The handle to use it by.
    #[must_use]
    pub fn store(&self) -> Store {
        Store::new(self.clone())
    }

    /// What has been written since it was opened.
    #[must_use]
    pub fn written(&self) -> Written {
        self.inner.published.written()
    }

    async fn send(&self, work: Work) -> Result<(), StoreError> {
        let queue = self
            .inner
            .work
            .as_ref()
            .expect("invariant: only dropping takes the queue away");
        queue.send(work).await.map_err(|_| self.gone())
    }

    /// Why the committer takes no more work.
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
            tracing::error!("the store's committer had panicked");
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
            let size = request.bytes(0);
            if size > limits::TRANSACTION_BYTES {
                return Err(StoreError::TransactionTooLarge { bytes: size });
            }
            if request.changes_nothing() {
                limits::check_commit(&request, 0)?;
                let newest = self.inner.published.newest()?;
                return Ok(Committed::nothing(request.read_version.unwrap_or(newest)));
            }
            let kib = u32::try_from(size / 1_024 + 1).expect("invariant: a transaction is within its limit");
            let room = Arc::clone(&self.inner.room)
                .acquire_many_owned(kib)
                .await
                .map_err(|_| self.gone())?;
            let (answer, answered) = oneshot::channel();
            self.send(Work::Commit { request, room, answer }).await?;
            // A committer that goes away without an answer may have got as far as the disk.
            answered.await.unwrap_or(Err(StoreError::CommitUnknown))
        }
        .boxed()
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
