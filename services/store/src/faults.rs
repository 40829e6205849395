//! A store with injected faults: the simulation and the conformance suite put it between a caller and the real store.
//!
//! A function of the caller decides what fails, so that a seed or a script reproduces it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::{Backend, CommitRequest, Committed, Page, RangeRead, Store, StoreError, Version};

/// A call that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A read version, a value or a page of a range.
    Read,
    Commit,
    Watch,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The store is unreachable: [`StoreError::Unavailable`].
    Unavailable,
    /// A commit conflicts, whatever it read: [`StoreError::Conflict`]. Other calls succeed.
    Conflict,
    /// A commit is applied, and its answer lost: [`StoreError::CommitUnknown`]. Other calls fail as unavailable.
    AnswerLost,
    /// A commit is lost in transit: [`StoreError::CommitUnknown`], and it is never applied. Other calls fail as
    /// unavailable.
    RequestLost,
    /// A commit is delayed in transit: [`StoreError::CommitUnknown`], and it is applied just before the next commit.
    /// Other calls fail as unavailable.
    LandsBeforeNext,
    /// As [`Self::LandsBeforeNext`], but just after the next commit.
    LandsAfterNext,
}

/// A wrapper around a store that injects faults.
pub struct FaultyStore {
    inner: Arc<dyn Backend>,
    faults: Mutex<Faults>,
}

struct Faults {
    decide: Box<dyn FnMut(Call) -> Fault + Send>,
    before_next: Vec<CommitRequest>,
    after_next: Vec<CommitRequest>,
}

impl FaultyStore {
    /// Wraps `store`: `decide` returns the fault for each call.
    #[must_use]
    pub fn wrap(store: &Store, decide: impl FnMut(Call) -> Fault + Send + 'static) -> Store {
        let faults = Faults {
            decide: Box::new(decide),
            before_next: Vec::new(),
            after_next: Vec::new(),
        };
        Store::new(Self {
            inner: store.backend(),
            faults: Mutex::new(faults),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reach(&self, call: Call) -> Result<(), StoreError> {
        let fault = (self.lock().decide)(call);
        match fault {
            Fault::None | Fault::Conflict => Ok(()),
            _ => Err(StoreError::Unavailable("a fault was injected".into())),
        }
    }

    /// Applies delayed commits; their answers are dropped.
    async fn land(&self, held: Vec<CommitRequest>) {
        for request in held {
            let _ = self.inner.commit(request).await;
        }
    }

    async fn commit_faultily(&self, request: CommitRequest) -> Result<Committed, StoreError> {
        let (fault, before, after) = {
            let mut faults = self.lock();
            let fault = (faults.decide)(Call::Commit);
            (
                fault,
                std::mem::take(&mut faults.before_next),
                std::mem::take(&mut faults.after_next),
            )
        };
        self.land(before).await;
        let result = match fault {
            Fault::None => self.inner.commit(request).await,
            Fault::Unavailable => Err(StoreError::Unavailable("a fault was injected".into())),
            Fault::Conflict => Err(StoreError::Conflict),
            Fault::AnswerLost => self.inner.commit(request).await.and(Err(StoreError::CommitUnknown)),
            Fault::RequestLost => Err(StoreError::CommitUnknown),
            Fault::LandsBeforeNext => {
                self.lock().before_next.push(request);
                Err(StoreError::CommitUnknown)
            }
            Fault::LandsAfterNext => {
                self.lock().after_next.push(request);
                Err(StoreError::CommitUnknown)
            }
        };
        self.land(after).await;
        result
    }
}

impl Backend for FaultyStore {
    fn prefix_bytes(&self) -> usize {
        self.inner.prefix_bytes()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.inner.wait(time)
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        async move {
            self.reach(Call::Read)?;
            self.inner.read_version().await
        }
        .boxed()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        async move {
            self.reach(Call::Read)?;
            self.inner.get(at, key).await
        }
        .boxed()
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        async move {
            self.reach(Call::Read)?;
            self.inner.get_range(at, read).await
        }
        .boxed()
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>> {
        self.commit_faultily(request).boxed()
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            self.reach(Call::Watch)?;
            self.inner.watch(key, seen).await
        }
        .boxed()
    }
}
