//! A store that records commits, so that they can be repeated on another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use annals_store::{
    Backend, CommitRequest, Committed, Mutation, Page, RangeRead, Store, StoreError, Submitted, Version,
};
use bytes::Bytes;
use futures::future::BoxFuture;

/// A store, and the commits made through it. Clones share the recording.
#[derive(Clone)]
pub(crate) struct Recording {
    backend: Arc<dyn Backend>,
    recorded: Arc<Mutex<Recorded>>,
}

#[derive(Default)]
struct Recorded {
    commits: Vec<CommitRequest>,
    written: Written,
    /// Keys read individually.
    gets: u64,
}

/// Rows and bytes written by transactions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Written {
    /// Rows set or cleared.
    pub(crate) rows: u64,
    /// Bytes of their keys and values.
    pub(crate) bytes: u64,
}

impl Recording {
    /// Records what is committed to `store`.
    pub(crate) fn of(store: &Store) -> Self {
        Self {
            backend: store.backend(),
            recorded: Arc::default(),
        }
    }

    /// The handle that records.
    pub(crate) fn store(&self) -> Store {
        Store::new(self.clone())
    }

    /// Clears the recording.
    pub(crate) fn begin(&self) {
        self.recorded().commits.clear();
    }

    /// Repeats the commits on another store, one after the other, each as a whole and without conditions. Returns the
    /// duration.
    pub(crate) async fn commit_again(&self, store: &Store) -> Duration {
        let mut commits = std::mem::take(&mut self.recorded().commits);
        for commit in &mut commits {
            commit.read_version = None;
            commit.read_conflicts.clear();
            self.recorded().written.add(&commit.mutations);
        }
        let backend = store.backend();
        let began = Instant::now();
        for commit in commits {
            backend.commit(commit).await.expect("it commits");
        }
        began.elapsed()
    }

    /// Total of the repeated commits.
    pub(crate) fn written(&self) -> Written {
        self.recorded().written
    }

    /// What the recorded commits wrote.
    pub(crate) fn recorded_writes(&self) -> Written {
        let mut written = Written::default();
        let recorded = self.recorded();
        recorded
            .commits
            .iter()
            .for_each(|commit| written.add(&commit.mutations));
        written
    }

    /// Number of keys read individually so far.
    pub(crate) fn gets(&self) -> u64 {
        self.recorded().gets
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    fn add(&mut self, mutations: &[Mutation]) {
        self.rows += mutations.len() as u64;
        self.bytes += mutations.iter().map(bytes_of).sum::<usize>() as u64;
    }
}

fn bytes_of(mutation: &Mutation) -> usize {
    match mutation {
        Mutation::Set { key, value } => key.len() + value.len(),
        Mutation::Clear { key } => key.len(),
        Mutation::ClearRange { range } => range.begin.len() + range.end.len(),
        other => other.bytes(0),
    }
}

impl Backend for Recording {
    fn prefix_bytes(&self) -> usize {
        self.backend.prefix_bytes()
    }

    fn now(&self) -> Duration {
        self.backend.now()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.backend.wait(time)
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.backend.read_version()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        self.recorded().gets += 1;
        self.backend.get(at, key)
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.backend.get_range(at, read)
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>> {
        self.recorded().commits.push(request.clone());
        self.backend.commit(request)
    }

    fn submit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Submitted, StoreError>> {
        self.recorded().commits.push(request.clone());
        self.backend.submit(request)
    }

    fn submitted_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.backend.submitted_version()
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.backend.watch(key, seen)
    }
}
