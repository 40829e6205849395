//! The store in memory: a [`StoreState`] with the interface of a [`Backend`], for the simulation and for tests.
//!
//! It never waits, so each future is ready at its first poll and a whole transaction is one step ([`immediate`]); time
//! advances only by [`MemoryStore::advance`]. Only a watch may wait, for another step.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::state::{StoreState, WatchId};
use crate::{Backend, CommitRequest, Committed, Page, RangeRead, Store, StoreError, Version};

/// A store in memory. Clones refer to the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    state: StoreState,
    now: Duration,
    waiters: BTreeMap<WatchId, oneshot::Sender<()>>,
}

impl MemoryStore {
    /// An empty store at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store whose commits may share versions; see [`StoreState::sharing_versions`].
    #[must_use]
    pub fn sharing_versions() -> Self {
        let inner = Inner {
            state: StoreState::sharing_versions(),
            ..Inner::default()
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// A handle to the store.
    #[must_use]
    pub fn store(&self) -> Store {
        Store::new(self.clone())
    }

    /// Advances the time.
    pub fn advance(&self, time: Duration) {
        self.lock().now += time;
    }

    /// Number of keys visited so far; see [`StoreState::walked`].
    #[must_use]
    pub fn walked(&self) -> u64 {
        self.lock().state.walked()
    }

    /// All current rows, for checkers.
    #[must_use]
    pub fn rows(&self) -> BTreeMap<Bytes, Bytes> {
        self.lock().state.rows()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic in another test thread must not cause a second one here.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn fire(&mut self) {
        while let Some(watch) = self.state.poll_fired() {
            if let Some(waiter) = self.waiters.remove(&watch) {
                // The receiver may have been dropped.
                let _ = waiter.send(());
            }
        }
    }

    fn watch(&mut self, key: Bytes, seen: Option<Bytes>) -> Result<oneshot::Receiver<()>, StoreError> {
        let given_up: Vec<WatchId> = self
            .waiters
            .iter()
            .filter(|(_, waiter)| waiter.is_closed())
            .map(|(&watch, _)| watch)
            .collect();
        for watch in given_up {
            self.waiters.remove(&watch);
            self.state.unwatch(watch);
        }
        let watch = self.state.watch(key, seen)?;
        let (waiter, fired) = oneshot::channel();
        self.waiters.insert(watch, waiter);
        self.fire();
        Ok(fired)
    }
}

impl Backend for MemoryStore {
    fn now(&self) -> Duration {
        self.lock().now
    }

    fn wait(&self, _time: Duration) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        let version = self.lock().state.read_version();
        std::future::ready(Ok(version)).boxed()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        let value = self.lock().state.get(at, key);
        std::future::ready(value).boxed()
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        let page = self.lock().state.get_range(at, &read);
        std::future::ready(page).boxed()
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let mut inner = self.lock();
        let now = inner.now;
        let committed = inner.state.commit(now, &request);
        inner.fire();
        std::future::ready(committed).boxed()
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        let fired = self.lock().watch(key, seen);
        async move {
            fired?
                .await
                .map_err(|_| StoreError::Unavailable("the store in memory is gone".into()))
        }
        .boxed()
    }
}

/// The result of a future that never waits, such as a whole transaction on a [`MemoryStore`].
///
/// # Panics
/// If it waits: then it depends on more than a store in memory, which is an error of the caller.
pub fn immediate<T>(future: impl Future<Output = T>) -> T {
    future
        .now_or_never()
        .expect("a transaction on a store in memory never waits")
}
