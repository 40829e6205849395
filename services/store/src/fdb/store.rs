//! The FoundationDB backend.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::foundationdb::options::{ConflictRangeType, MutationType, StreamingMode, TransactionOption};
use ::foundationdb::{Database, FdbError, KeySelector, RangeOption, Transaction};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::timeout;

use super::failure::{Doing, failed};
use super::keys::{KeySpace, stamped_value};
use super::network::Network;
use super::{OpenError, StoreLocation};
use crate::backend::PageBuilder;
use crate::limits::{self, PAGE_BYTES};
use crate::{
    Backend, CommitRequest, Committed, Mutation, Page, RangeRead, Retry, ScanOrder, Store, StoreError, Version,
    Versionstamp,
};

/// Time limit of a read. The client itself would wait for a cluster for ever.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after which the outcome of a commit is unknown. A recovery of the cluster takes a few seconds.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the first answer of the cluster.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause of a watch before it retries, while the cluster is unavailable.
const WATCH_PAUSE: Duration = Duration::from_secs(1);

/// A store on FoundationDB. Clones refer to the same store.
#[derive(Clone)]
pub struct FdbStore {
    inner: Arc<Inner>,
}

struct Inner {
    // Fields are dropped in this order: the network thread outlives the database that uses it.
    database: Database,
    _network: Arc<Network>,
    keys: KeySpace,
    since: Instant,
}

impl FdbStore {
    /// Opens the store at `place`; see [`super::open`].
    ///
    /// # Errors
    /// When the cluster file cannot be read, the client does not start, or the cluster does not answer.
    pub async fn open(place: &StoreLocation) -> Result<Self, OpenError> {
        let path = &place.cluster_file;
        std::fs::read(path).map_err(|source| OpenError::ClusterFile {
            path: path.clone(),
            source,
        })?;
        let name = path
            .to_str()
            .ok_or_else(|| OpenError::ClusterFileName { path: path.clone() })?;
        let network = Network::running()?;
        let database = Database::from_path(name).map_err(|error| OpenError::Client {
            reason: error.message().to_owned(),
            code: error.code(),
        })?;
        let inner = Inner {
            database,
            _network: network,
            keys: KeySpace::new(&place.prefix),
            since: Instant::now(),
        };
        let store = Self { inner: Arc::new(inner) };
        let no_answer = |reason: String| OpenError::NoAnswer {
            path: path.clone(),
            reason,
        };
        match timeout(OPEN_TIMEOUT, store.newest()).await {
            Ok(Ok(_)) => Ok(store),
            Ok(Err(error)) => Err(no_answer(error.to_string())),
            Err(_) => Err(no_answer(format!("no answer within {} s", OPEN_TIMEOUT.as_secs()))),
        }
    }

    /// A handle to the store.
    #[must_use]
    pub fn store(&self) -> Store {
        Store::new(self.clone())
    }

    async fn newest(&self) -> Result<Version, StoreError> {
        let transaction = self.begin(Doing::Reading)?;
        let version = transaction.get_read_version().await.map_err(reading)?;
        self::version(version)
    }

    async fn value(&self, at: Version, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let transaction = self.begin_at(at)?;
        let value = transaction
            .get(&self.inner.keys.key(key), true)
            .await
            .map_err(reading)?;
        Ok(value.map(|value| Bytes::copy_from_slice(&value)))
    }

    async fn page(&self, at: Version, read: &RangeRead) -> Result<Page, StoreError> {
        let transaction = self.begin_at(at)?;
        let (begin, end) = self.inner.keys.range(&read.range);
        let range = RangeOption {
            limit: Some(read.limit),
            target_bytes: PAGE_BYTES,
            mode: StreamingMode::WantAll,
            reverse: read.order == ScanOrder::Reverse,
            ..RangeOption::from((
                KeySelector::first_greater_or_equal(begin),
                KeySelector::first_greater_or_equal(end),
            ))
        };
        let values = transaction.get_range(&range, 1, true).await.map_err(reading)?;
        if values.is_empty() && values.more() {
            // A page must contain a row unless there is none; otherwise its reader could not continue.
            return Err(StoreError::Unavailable(
                "the cluster returned an empty page before the end of a range".into(),
            ));
        }
        let mut page = PageBuilder::new(read.limit, PAGE_BYTES);
        for row in values.iter() {
            if !page.push(self.inner.keys.own(row.key())?, Bytes::copy_from_slice(row.value())) {
                break;
            }
        }
        let mut page = page.finish();
        page.more |= values.more();
        Ok(page)
    }

    async fn apply(&self, request: &CommitRequest) -> Result<Committed, StoreError> {
        let bytes = request.bytes(self.inner.keys.prefix_bytes());
        let doing = Doing::Committing { bytes };
        if request.changes_nothing() {
            // In this case the client commits nothing, and returns no version.
            let version = match request.read_version {
                Some(version) => version,
                None => self.newest().await?,
            };
            return Ok(Committed::nothing(version));
        }
        let transaction = self.begin(doing)?;
        self.fill(&transaction, request, doing)?;
        let stamp = transaction.get_versionstamp();
        let committed = transaction
            .commit()
            .await
            .map_err(|error| failure(doing, FdbError::from(error)))?;
        // It is applied from here on: if its version cannot be read, the outcome is unknown to the caller.
        let version = committed.committed_version().map_err(|_| StoreError::CommitUnknown)?;
        let stamp = stamp.await.map_err(|_| StoreError::CommitUnknown)?;
        let stamp = <[u8; Versionstamp::BYTES]>::try_from(&stamp[..]).map_err(|_| StoreError::CommitUnknown)?;
        Ok(Committed {
            version: self::version(version).map_err(|_| StoreError::CommitUnknown)?,
            stamp: Versionstamp(stamp),
        })
    }

    /// Adds the conflict ranges and mutations of `request` to `transaction`.
    fn fill(&self, transaction: &Transaction, request: &CommitRequest, doing: Doing) -> Result<(), StoreError> {
        let conflict = |range: &crate::KeyRange, kind| {
            if range.is_empty() {
                return Ok(());
            }
            let (begin, end) = self.inner.keys.range(range);
            transaction
                .add_conflict_range(&begin, &end, kind)
                .map_err(|error| failure(doing, error))
        };
        if let Some(version) = request.read_version {
            transaction.set_read_version(signed(version)?);
            for range in &request.read_conflicts {
                conflict(range, ConflictRangeType::Read)?;
            }
        }
        for range in &request.write_conflicts {
            conflict(range, ConflictRangeType::Write)?;
        }
        for mutation in &request.mutations {
            self.mutate(transaction, mutation);
        }
        Ok(())
    }

    fn mutate(&self, transaction: &Transaction, mutation: &Mutation) {
        let keys = &self.inner.keys;
        match mutation {
            Mutation::Set { key, value } => transaction.set(&keys.key(key), value),
            Mutation::Clear { key } => transaction.clear(&keys.key(key)),
            Mutation::ClearRange { range } => {
                let (begin, end) = keys.range(range);
                transaction.clear_range(&begin, &end);
            }
            Mutation::Add { key, delta } => {
                transaction.atomic_op(&keys.key(key), &delta.to_le_bytes(), MutationType::Add);
            }
            Mutation::SetStampedKey { key, value } => {
                transaction.atomic_op(&keys.stamped_key(key), value, MutationType::SetVersionstampedKey);
            }
            Mutation::SetStampedValue { key, value } => {
                transaction.atomic_op(
                    &keys.key(key),
                    &stamped_value(value),
                    MutationType::SetVersionstampedValue,
                );
            }
        }
    }

    /// Waits for one change of `key` from `seen`. Returns false if the client fires although the value may be
    /// unchanged.
    async fn watch_once(&self, key: &[u8], seen: Option<&Bytes>) -> Result<bool, StoreError> {
        let watching = |error| failure(Doing::Watching, error);
        let fired = timeout(READ_TIMEOUT, async {
            // With read-your-writes, unlike all other transactions here: the client supports watches only with it.
            let transaction = self.inner.database.create_trx().map_err(watching)?;
            let key = self.inner.keys.key(key);
            let value = transaction.get(&key, true).await.map_err(watching)?;
            if value.as_deref() != seen.map(AsRef::as_ref) {
                return Ok::<_, StoreError>(None);
            }
            let fired = transaction.watch(&key);
            transaction
                .commit()
                .await
                .map_err(|error| watching(FdbError::from(error)))?;
            Ok(Some(fired))
        });
        match fired.await.map_err(|_| silent("a watch"))?? {
            None => Ok(true),
            Some(fired) => fired.await.map(|()| false).map_err(watching),
        }
    }

    async fn watch_until_changed(&self, key: Bytes, seen: Option<Bytes>) -> Result<(), StoreError> {
        loop {
            match self.watch_once(&key, seen.as_ref()).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // While the cluster is unavailable nothing changes in it: a later retry misses nothing.
                Err(error) if error.retry() == Retry::Again => tokio::time::sleep(WATCH_PAUSE).await,
                Err(error) => return Err(error),
            }
        }
    }

    fn begin(&self, doing: Doing) -> Result<Transaction, StoreError> {
        let transaction = self
            .inner
            .database
            .create_trx()
            .map_err(|error| failure(doing, error))?;
        transaction
            .set_option(TransactionOption::ReadYourWritesDisable)
            .map_err(|error| failure(doing, error))?;
        Ok(transaction)
    }

    fn begin_at(&self, at: Version) -> Result<Transaction, StoreError> {
        let transaction = self.begin(Doing::Reading)?;
        transaction.set_read_version(signed(at)?);
        Ok(transaction)
    }
}

impl Backend for FdbStore {
    fn prefix_bytes(&self) -> usize {
        self.inner.keys.prefix_bytes()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn now(&self) -> Duration {
        self.inner.since.elapsed()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        tokio::time::sleep(time).boxed()
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        async move {
            let asked = timeout(READ_TIMEOUT, self.newest()).await;
            asked.map_err(|_| silent("a read version"))?
        }
        .boxed()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        async move {
            let asked = timeout(READ_TIMEOUT, self.value(at, key)).await;
            asked.map_err(|_| silent("a value"))?
        }
        .boxed()
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        async move {
            let asked = timeout(READ_TIMEOUT, self.page(at, &read)).await;
            asked.map_err(|_| silent("a range"))?
        }
        .boxed()
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>> {
        async move {
            limits::check_commit(&request, self.prefix_bytes())?;
            let applied = timeout(COMMIT_TIMEOUT, self.apply(&request)).await;
            applied.unwrap_or(Err(StoreError::CommitUnknown))
        }
        .boxed()
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.watch_until_changed(key, seen).boxed()
    }
}

fn failure(doing: Doing, error: FdbError) -> StoreError {
    failed(doing, error.code(), error.message())
}

fn reading(error: FdbError) -> StoreError {
    failure(Doing::Reading, error)
}

fn silent(what: &str) -> StoreError {
    StoreError::Unavailable(format!("the cluster did not answer {what} within {} s", READ_TIMEOUT.as_secs()).into())
}

/// FoundationDB's versions are signed and never negative.
fn version(version: i64) -> Result<Version, StoreError> {
    let known = u64::try_from(version).map(Version);
    known.map_err(|_| StoreError::Corrupt(format!("the cluster returned version {version}").into()))
}

fn signed(version: Version) -> Result<i64, StoreError> {
    let known = i64::try_from(version.0);
    known.map_err(|_| StoreError::Corrupt(format!("a read at version {version}, which no cluster can have").into()))
}
