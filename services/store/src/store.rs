//! The handle to a store, and its retry loops for transactions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::largest::Gauge;
use crate::layout::idempotency;
use crate::{Backend, Committed, KeyRange, Largest, ScanOrder, StoreError, Transaction, Version, Versionstamp};

/// Maximum runs of one transaction before its last error is returned. The pauses between them add up to some 30 s,
/// which is longer than a restart of the store takes.
const RUNS: u32 = 40;

/// Pause after the first failed run; it doubles after each further one, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Maximum pause between two runs.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Handle to a store of any implementation. Clones refer to the same store.
#[derive(Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    gauge: Arc<Gauge>,
}

/// Outcome of [`Store::run_once`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Once<T> {
    /// This call applied it.
    Applied {
        /// Return value of the closure in the run that was applied.
        value: T,
        committed: Committed,
    },
    /// An earlier call with the same idempotency key applied it.
    Earlier {
        /// The commit of that call.
        committed: Committed,
    },
}

impl<T> Once<T> {
    /// The commit that applied it.
    #[must_use]
    pub fn committed(&self) -> Committed {
        match self {
            Self::Applied { committed, .. } | Self::Earlier { committed } => *committed,
        }
    }
}

impl Store {
    /// Creates a handle to the store that `backend` provides.
    #[must_use]
    pub fn new(backend: impl Backend) -> Self {
        Self {
            backend: Arc::new(backend),
            gauge: Arc::default(),
        }
    }

    /// Begins a transaction. Sends nothing to the store before the first read.
    #[must_use]
    pub fn begin(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.backend), Arc::clone(&self.gauge))
    }

    /// Begins a transaction that also reads what was [submitted](Transaction::submit) and may not be durable yet. What it
    /// reads must not be shown or acted on before it is committed: a crash may lose it. What it writes is durable only after
    /// all that it could read. If it writes nothing, its commit does not wait for that.
    #[must_use]
    pub fn begin_pipelined(&self) -> Transaction {
        Transaction::pipelined(Arc::clone(&self.backend), Arc::clone(&self.gauge))
    }

    /// The implementation, for code that wraps or serves it.
    #[must_use]
    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    /// The largest transactions committed through this handle and its clones.
    #[must_use]
    pub fn largest(&self) -> Largest {
        self.gauge.largest()
    }

    /// Runs `work`, which must only read, and retries it on errors that may pass.
    ///
    /// # Errors
    /// The error of `work` if a retry cannot help; otherwise the last error after a bounded number of runs.
    pub async fn read<T, E, F, Fut>(&self, work: F) -> Result<T, E>
    where
        E: From<StoreError>,
        F: Fn(Transaction) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let mut pauses = Pauses::new(self);
        let mut transaction = self.begin();
        loop {
            match work(transaction.clone()).await {
                Ok(value) => return Ok(value),
                Err(error) if transaction.setback().is_none() || pauses.spent() => return Err(error),
                Err(_) => pauses.pause().await,
            }
            transaction = transaction.repeat();
        }
    }

    /// Runs `work` and commits, with retries. For work that may safely be applied twice because it reads what it is
    /// about to write and sees if it is already there (an advanced cursor, an existing record).
    ///
    /// # Errors
    /// The error of `work` if a retry cannot help; otherwise the last error after a bounded number of runs. If that is
    /// [`StoreError::CommitUnknown`], a run may have been applied.
    pub async fn run_repeatable<T, E, F, Fut>(&self, work: F) -> Result<(T, Committed), E>
    where
        E: From<StoreError>,
        F: Fn(Transaction) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let mut pauses = Pauses::new(self);
        let mut transaction = self.begin();
        loop {
            let result = match work(transaction.clone()).await {
                Ok(value) => transaction
                    .commit()
                    .await
                    .map(|committed| (value, committed))
                    .map_err(E::from),
                Err(error) => Err(error),
            };
            match result {
                Ok(done) => return Ok(done),
                Err(error) if transaction.setback().is_none() || pauses.spent() => return Err(error),
                Err(_) => pauses.pause().await,
            }
            transaction = transaction.repeat();
        }
    }

    /// Runs `work` and commits, with retries, exactly once per idempotency key, even if the answer to a commit is lost
    /// or the caller crashes and calls again.
    ///
    /// Each run first reads a record under `key`, and writes it in the same transaction. After
    /// [`StoreError::CommitUnknown`], the next run finds the record if the lost commit was applied. If the lost commit
    /// arrives later still, it conflicts with that run on the record, and only one of the two is applied. The record
    /// names the run that wrote it, so that the value returned is that of the run that was applied.
    ///
    /// `key` (at most [`idempotency::KEY_BYTES`]) must identify the operation: the same key in each attempt, and no
    /// other operation with that key. Records stay until [`Self::forget_runs`] removes them; until then the operation
    /// cannot be applied again.
    ///
    /// # Errors
    /// The error of `work` if a retry cannot help; otherwise the last error after a bounded number of runs. If that is
    /// [`StoreError::CommitUnknown`], call again with the same key.
    pub async fn run_once<T, E, F, Fut>(&self, key: &[u8], work: F) -> Result<Once<T>, E>
    where
        E: From<StoreError>,
        F: Fn(Transaction) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let record_key = idempotency::record_key(key)?;
        let mut pauses = Pauses::new(self);
        // Runs whose commit may have been applied, with their return values.
        let mut unknown: Vec<(idempotency::Run, T)> = Vec::new();
        let mut transaction = self.begin();
        loop {
            let error = match self.run_recorded(&transaction, &record_key, pauses.done, &work).await {
                Ok(Recorded::Applied { value, committed }) => return Ok(Once::Applied { value, committed }),
                Ok(Recorded::Found(record)) => {
                    let committed = record.committed();
                    return Ok(match unknown.into_iter().find(|(run, _)| *run == record.run) {
                        Some((_, value)) => Once::Applied { value, committed },
                        None => Once::Earlier { committed },
                    });
                }
                Ok(Recorded::Unknown { run, value }) => {
                    unknown.push((run, value));
                    E::from(StoreError::CommitUnknown)
                }
                Err(error) => error,
            };
            if transaction.setback().is_none() {
                // This run failed for good. An earlier one may still be in flight, and must not be applied after the
                // error is returned.
                if unknown.is_empty() {
                    return Err(error);
                }
                match self.fence(&record_key).await {
                    Ok(None) => return Err(error),
                    Ok(Some(_)) => {
                        transaction = transaction.repeat();
                        continue;
                    }
                    Err(_) => return Err(E::from(StoreError::CommitUnknown)),
                }
            }
            if pauses.spent() {
                // Whatever the last error was, an earlier run may have been applied.
                return Err(if unknown.is_empty() {
                    error
                } else {
                    E::from(StoreError::CommitUnknown)
                });
            }
            pauses.pause().await;
            transaction = transaction.repeat();
        }
    }

    /// Removes records of [`Self::run_once`] committed at `horizon` or before, at most `limit` of them, and returns how
    /// many. No caller may still be waiting for one of those operations or retry it: use as `horizon` a version read
    /// long enough ago.
    ///
    /// # Errors
    /// As [`Self::run_repeatable`].
    pub async fn forget_runs(&self, horizon: Version, limit: usize) -> Result<usize, StoreError> {
        let range = KeyRange::prefix(idempotency::PREFIX);
        let forget = |transaction: Transaction| {
            let range = range.clone();
            async move {
                let page = transaction
                    .snapshot()
                    .get_range(&range, limit, ScanOrder::Forward)
                    .await?;
                let mut forgotten = 0;
                for (key, value) in page.rows {
                    if idempotency::Record::decode(&value)?.stamp.version() <= horizon {
                        transaction.clear(&key)?;
                        forgotten += 1;
                    }
                }
                Ok::<_, StoreError>(forgotten)
            }
        };
        self.run_repeatable(forget).await.map(|(forgotten, _)| forgotten)
    }

    /// Resolves once `key` has a value other than `seen`; immediately if it already does, so that no change is missed
    /// between reading a value and watching it. A value that changes and changes back may go unnoticed.
    ///
    /// # Errors
    /// [`StoreError::TooManyWatches`], [`StoreError::Unavailable`], [`StoreError::Poisoned`].
    pub async fn watch(&self, key: &[u8], seen: Option<Bytes>) -> Result<(), StoreError> {
        crate::limits::check_key(key)?;
        self.backend.watch(Bytes::copy_from_slice(key), seen).await
    }

    /// Ensures that no earlier run can still be applied, or returns the record of the one that was: a run that read the
    /// record before this commit conflicts with it.
    async fn fence(&self, record_key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let fence = |transaction: Transaction| async move {
            let record = transaction.get(record_key).await?;
            if record.is_none() {
                transaction.add_write_conflict(&KeyRange::single(record_key))?;
            }
            Ok::<_, StoreError>(record)
        };
        self.run_repeatable(fence).await.map(|(record, _)| record)
    }

    async fn run_recorded<T, E, F, Fut>(
        &self,
        transaction: &Transaction,
        record_key: &[u8],
        attempt: u32,
        work: &F,
    ) -> Result<Recorded<T>, E>
    where
        E: From<StoreError>,
        F: Fn(Transaction) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        if let Some(record) = transaction.get(record_key).await? {
            return Ok(Recorded::Found(idempotency::Record::decode(&record)?));
        }
        let run = idempotency::Run {
            read_version: transaction.read_version().await?,
            attempt,
        };
        let value = work(transaction.clone()).await?;
        transaction.set_versionstamped_value(record_key, &run.encode(), b"")?;
        match transaction.commit().await {
            Ok(committed) => Ok(Recorded::Applied { value, committed }),
            Err(StoreError::CommitUnknown) => Ok(Recorded::Unknown { run, value }),
            Err(error) => Err(error.into()),
        }
    }
}

/// Outcome of one run of [`Store::run_once`].
enum Recorded<T> {
    Applied { value: T, committed: Committed },
    Unknown { run: idempotency::Run, value: T },
    Found(idempotency::Record),
}

/// Counts the runs of a retry loop and waits between them.
struct Pauses<'a> {
    backend: &'a dyn Backend,
    done: u32,
}

impl<'a> Pauses<'a> {
    fn new(store: &'a Store) -> Self {
        Self {
            backend: store.backend.as_ref(),
            done: 0,
        }
    }

    /// Whether the failed run was the last one allowed.
    fn spent(&self) -> bool {
        self.done + 1 >= RUNS
    }

    async fn pause(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.done.min(16)).min(LONGEST_PAUSE);
        self.done += 1;
        self.backend.wait(pause).await;
    }
}

impl idempotency::Record {
    fn committed(&self) -> Committed {
        let stamp: Versionstamp = self.stamp;
        Committed {
            version: stamp.version(),
            stamp,
        }
    }
}
