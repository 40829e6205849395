//! Several dbs that fold their shards at the same time: each call to the store lets the others go on. A db may die in the
//! middle of a transaction, and one that was superseded may go on.

#![expect(
    clippy::disallowed_types,
    reason = "a store is shared by several dbs, and so is a record of its commits"
)]

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use annals_db::{
    Alarm, FoldError, Folder, Replay, RetentionPace, RetentionProgress, Round, ensure_shards, ledger::read_changes,
};
use annals_ids::{LeafIndex, OwnerId, Shard, WallTime};
use annals_store::{
    Backend, CommitRequest, Committed as Outcome, Mutation, Page, RangeRead, Store, StoreError, Version,
    layout::archive,
};
use bytes::Bytes;

use crate::{game, realm::Realm, wait};

/// Leaves of a segment.
const SEALED_LEAVES: usize = 12;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A shard other than the first: its stream, and the db that folds it.
pub(crate) struct Lane {
    pub(crate) stream: Vec<(OwnerId, Vec<u8>)>,
    /// Number of the stream's messages that were offered to db.
    pub(crate) offered: usize,
    pub(crate) db: Folder,
}

impl Lane {
    pub(crate) fn begin(store: &Store, shard: Shard) -> Self {
        let db = wait(Folder::begin(store.clone(), shard, game::schema())).expect("no fault is injected yet");
        Self {
            stream: Vec::new(),
            offered: 0,
            db,
        }
    }
}

/// The leaves of all shards in the order of their transactions.
#[derive(Clone, Default)]
pub(crate) struct Committed(Arc<Mutex<Vec<(Shard, LeafIndex)>>>);

impl Committed {
    /// Wraps a store so that the leaves that are committed to it are recorded.
    pub(crate) fn record(&self, store: &Store) -> Store {
        Store::new(Wrapped {
            inner: store.backend(),
            yields: false,
            committed: self.clone(),
        })
    }

    pub(crate) fn leaves(&self) -> Vec<(Shard, LeafIndex)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, request: &CommitRequest) {
        let mut leaves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for mutation in &request.mutations {
            let Mutation::Set { key, .. } = mutation else { continue };
            let shard = key
                .get(1..3)
                .and_then(|bytes| bytes.try_into().ok())
                .map(u16::from_be_bytes);
            let Some(shard) = shard.map(Shard).filter(|shard| archive::leaves(*shard).contains(key)) else {
                continue;
            };
            let (leaf, _) = archive::leaf_of(key).expect("the key of a leaf");
            if leaves.last() != Some(&(shard, leaf)) {
                leaves.push((shard, leaf));
            }
        }
    }
}

/// Wraps a store so that each call lets others go on first.
pub(crate) fn yielding(store: &Store) -> Store {
    Store::new(Wrapped {
        inner: store.backend(),
        yields: true,
        committed: Committed::default(),
    })
}

struct Wrapped {
    inner: Arc<dyn Backend>,
    yields: bool,
    committed: Committed,
}

impl Wrapped {
    async fn pause(&self) {
        let mut paused = !self.yields;
        std::future::poll_fn(|context| {
            if paused {
                return Poll::Ready(());
            }
            paused = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl Backend for Wrapped {
    fn is_remote(&self) -> bool {
        self.yields
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.inner.wait(time)
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(async move {
            self.pause().await;
            self.inner.read_version().await
        })
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        Box::pin(async move {
            self.pause().await;
            self.inner.get(at, key).await
        })
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        Box::pin(async move {
            self.pause().await;
            self.inner.get_range(at, read).await
        })
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(async move {
            self.pause().await;
            let kept = request.clone();
            let committed = self.inner.commit(request).await;
            if committed.is_ok() {
                self.committed.note(&kept);
            }
            committed
        })
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.watch(key, seen)
    }
}

type Folding<'a> = Pin<Box<dyn Future<Output = Result<Vec<Alarm>, FoldError>> + 'a>>;

/// Folds until there is nothing to do.
async fn fold_on(db: &mut Folder) -> Result<Vec<Alarm>, FoldError> {
    let mut alarms = Vec::new();
    while db.has_work() {
        alarms.extend(db.commit().await?.alarms);
    }
    Ok(alarms)
}

impl Realm {
    fn lane(&mut self, shard: usize) -> (&mut Folder, &mut usize, &[(OwnerId, Vec<u8>)]) {
        match shard.checked_sub(1) {
            None => (&mut self.db, &mut self.offered, &self.stream),
            Some(lane) => {
                let lane = &mut self.lanes[lane];
                (&mut lane.db, &mut lane.offered, &lane.stream)
            }
        }
    }

    /// The db of one shard reads on, at most `count` messages, and folds alone.
    pub(crate) fn fold_one(&mut self, shard: usize, count: usize) {
        let seed = self.seed;
        let (db, offered, stream) = self.lane(shard);
        let end = stream.len().min(offered.saturating_add(count));
        for (owner, bytes) in &stream[*offered..end] {
            db.offer(*owner, bytes.clone());
        }
        *offered = end;
        let found = wait(fold_on(db)).unwrap_or_else(|error| panic!("seed {seed}: shard {shard}: {error}"));
        self.alarms.extend(found);
    }

    /// Folds the archive of another realm into this realm's empty store: the leaves of each shard, in the order in which
    /// they changed the ledger (rule T5).
    pub(crate) fn refold_shards(&mut self, other: &Realm) {
        self.copy_grants(other);
        let changes = wait(read_changes(&other.store)).expect("the store answers");
        let mut archives: BTreeMap<Shard, Vec<(OwnerId, Vec<u8>)>> = BTreeMap::new();
        for ((shard, _), (owner, batch)) in other.order.leaves().into_iter().zip(other.check().leaves) {
            let place = usize::try_from(batch.header.number.0 - 1).expect("few batches");
            let bytes = other.owners[&owner].chain[place].batch.bytes.clone();
            archives.entry(shard).or_default().push((owner, bytes));
        }
        for shard in self.shards() {
            let own = changes.iter().filter(|change| change.shard == shard);
            let folder = self
                .begin_folder(shard)
                .again(Arc::new(Replay::of_shard(own.map(|change| change.leaf).collect(), 0)));
            let (db, _, _) = self.lane(shard.0.into());
            *db = folder;
        }
        let mut folded: BTreeMap<Shard, usize> = BTreeMap::new();
        let rest = archives.iter().map(|(shard, leaves)| (*shard, leaves.len()));
        let steps = changes.iter().map(|change| (change.shard, change.leaf.0 as usize + 1));
        for (shard, upto) in steps.chain(rest.collect::<Vec<_>>()) {
            let from = std::mem::replace(folded.entry(shard).or_default(), upto);
            let (db, _, _) = self.lane(shard.0.into());
            for (owner, bytes) in &archives[&shard][from..upto] {
                db.offer(*owner, bytes.clone());
            }
            let alarms = wait(fold_on(db)).expect("nothing fails");
            assert_eq!(alarms, [], "seed {}", self.seed);
        }
    }

    /// A realm of one shard gets more.
    pub(crate) fn grow(&mut self, count: u16) {
        assert_eq!(wait(ensure_shards(&self.store, count)), Ok(count), "seed {}", self.seed);
        let lanes = (1..count).map(|shard| Lane::begin(&self.reached, Shard(shard)));
        self.lanes = lanes.collect();
    }

    /// The db of a shard seals what it has archived, and deletes everything that may be deleted. Returns the bytes that
    /// were deleted.
    pub(crate) fn delete_in(&mut self, shard: usize) -> u64 {
        let seed = self.seed;
        let (db, _, _) = self.lane(shard);
        let mut sealer = db.sealer().of_leaves(SEALED_LEAVES);
        while wait(sealer.seal_next()).expect("nothing fails").is_some() {}
        let mut retention = db.retention(RetentionPace::Eager);
        let mut lost = 0;
        loop {
            match wait(retention.turn(WallTime(u64::MAX))) {
                Ok(RetentionProgress::Idle) => return lost,
                Ok(RetentionProgress::Thinned { bytes, .. }) => lost += bytes,
                Ok(RetentionProgress::Folding | RetentionProgress::Moved(_)) => {}
                Err(error) => panic!("seed {seed}: shard {shard}: {error}"),
            }
        }
    }

    /// A db reads what other shards ask of its shard. Also returns the end of its stream.
    pub(crate) fn begin_round(&mut self, shard: usize) -> Option<(Round, usize)> {
        let seed = self.seed;
        let (db, _, stream) = self.lane(shard);
        let round = wait(db.begin_round()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        round.map(|round| (round, stream.len()))
    }

    /// It answers, if it has folded up to that end. Returns whether it did.
    pub(crate) fn end_round(&mut self, shard: usize, (round, end): &(Round, usize)) -> bool {
        let seed = self.seed;
        let (db, offered, _) = self.lane(shard);
        *offered >= *end && wait(db.end_round(round)).unwrap_or_else(|error| panic!("seed {seed}: {error}"))
    }

    /// All dbs read on, at most `count` messages each, and fold at the same time. Sometimes one dies meanwhile, and
    /// another takes its shard over, while the former goes on.
    pub(crate) fn fold_together(&mut self, count: usize) {
        let shards = self.lanes.len() + 1;
        for shard in 0..shards {
            let (db, offered, stream) = self.lane(shard);
            let end = stream.len().min(offered.saturating_add(count));
            for (owner, bytes) in &stream[*offered..end] {
                db.offer(*owner, bytes.clone());
            }
            *offered = end;
        }
        let dies = (count != usize::MAX && self.roll(4) == 0).then(|| (self.roll(shards), self.roll(60)));
        let mut former = dies.and_then(|(shard, _)| {
            let next = (self.roll(2) == 0).then(|| self.begin_folder(Shard(shard as u16)))?;
            let (db, offered, _) = self.lane(shard);
            *offered = 0;
            Some(std::mem::replace(db, next))
        });
        let superseded = former.is_some();
        let seed = self.seed;
        let mut dice = annals_def::split_mix(self.roll(1 << 30) as u64);
        let mut found = Vec::new();
        {
            let lanes = self.lanes.iter_mut().map(|lane| &mut lane.db);
            let dbs = std::iter::once(&mut self.db).chain(lanes);
            let mut folding: Vec<(usize, Folding<'_>)> = dbs
                .enumerate()
                .map(|(shard, db)| (shard, Box::pin(fold_on(db)) as Folding<'_>))
                .collect();
            folding.extend(
                former
                    .as_mut()
                    .map(|db| (usize::MAX, Box::pin(fold_on(db)) as Folding<'_>)),
            );
            let mut polls = 0;
            while !folding.is_empty() {
                polls += 1;
                assert!(polls < 5_000_000, "seed {seed}: the dbs never become idle");
                if let Some((shard, at)) = dies.filter(|(_, at)| !superseded && *at == polls) {
                    let _ = at;
                    folding.retain(|(folds, _)| *folds != shard);
                    continue;
                }
                let chosen = usize::try_from(dice() % folding.len() as u64).expect("few dbs");
                let mut context = Context::from_waker(Waker::noop());
                let Poll::Ready(done) = folding[chosen].1.as_mut().poll(&mut context) else {
                    continue;
                };
                let (shard, _) = folding.swap_remove(chosen);
                match done {
                    Ok(alarms) => found.extend(alarms),
                    Err(FoldError::Superseded { .. }) if shard == usize::MAX => {}
                    Err(error) => panic!("seed {seed}: shard {shard}: {error}"),
                }
            }
        }
        for alarm in &found {
            self.judge(alarm);
        }
        self.alarms.extend(found);
        if let Some((shard, _)) = dies.filter(|_| !superseded) {
            let next = self.begin_folder(Shard(shard as u16));
            let (db, offered, _) = self.lane(shard);
            (*db, *offered) = (next, 0);
        }
    }
}
