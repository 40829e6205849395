//! A fold whose store is a network away, while another shard's fold changes the ledger all the time (rule T2).

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::time::Duration;

use annals_event::ledger::Outcome;
use annals_store::{
    Backend, CommitRequest, Committed, MemoryStore, Page, RangeRead, Store, StoreError, Version, immediate,
    layout::ledger as layout,
};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};

use crate::traders::{Traders, gold};

/// Round trips between two changes of the ledger by the other shard.
const EVERY: u64 = 8;

/// Orders that are executed, each in a transaction.
const ORDERS: u32 = 8;

/// Logs in one transaction: more than a transaction has attempts.
const LOGS: usize = 50;

/// A store each of whose calls is a round trip; calls at the same time share one.
#[derive(Clone)]
struct FarStore {
    near: Store,
    backend: Arc<dyn Backend>,
    is_contended: Arc<AtomicBool>,
    /// Whether the answer to the next commit is lost.
    loses_answer: Arc<AtomicBool>,
    in_flight: Arc<AtomicU64>,
    trips: Arc<AtomicU64>,
}

impl FarStore {
    fn new() -> Self {
        let near = MemoryStore::new().store();
        Self {
            backend: near.backend(),
            near,
            is_contended: Arc::default(),
            loses_answer: Arc::default(),
            in_flight: Arc::default(),
            trips: Arc::default(),
        }
    }

    async fn travel(&self) {
        if self.in_flight.fetch_add(1, Ordering::Relaxed) == 0 {
            let trips = self.trips.fetch_add(1, Ordering::Relaxed) + 1;
            if self.is_contended.load(Ordering::Relaxed) && trips.is_multiple_of(EVERY) {
                change_ledger(&self.near);
            }
        }
        tokio::task::yield_now().await;
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Writes what every change of the ledger writes, and leaves it as it is.
fn change_ledger(store: &Store) {
    let transaction = store.begin();
    let head = immediate(transaction.get(&layout::head_key())).expect("the store answers");
    let head = head.expect("the ledger has changed before");
    transaction.set(&layout::head_key(), &head).expect("a small row");
    immediate(transaction.commit()).expect("nothing fails");
}

impl Backend for FarStore {
    fn is_remote(&self) -> bool {
        true
    }

    fn now(&self) -> Duration {
        self.backend.now()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.backend.wait(time)
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.travel().then(|()| self.backend.read_version()).boxed()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        self.travel().then(move |()| self.backend.get(at, key)).boxed()
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.travel().then(move |()| self.backend.get_range(at, read)).boxed()
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let answer = self.travel().then(|()| self.backend.commit(request));
        answer
            .map(|answer| match self.loses_answer.swap(false, Ordering::Relaxed) {
                true => answer.and(Err(StoreError::CommitUnknown)),
                false => answer,
            })
            .boxed()
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.backend.watch(key, seen)
    }
}

/// Executes orders. Returns the round trips that it takes, and how many transactions conflicted.
fn execute(is_contended: bool) -> (u64, u64) {
    let far = FarStore::new();
    let mut life = Traders::begin(Store::new(far.clone()), 1, 2);
    let minted = life.mint(1, gold(10));
    life.turn();
    assert_eq!(life.outcome(minted), Outcome::Posted);
    let before = far.trips.load(Ordering::Relaxed);
    far.is_contended.store(is_contended, Ordering::Relaxed);
    for _ in 0..ORDERS {
        let minted = life.mint(2, gold(5));
        life.turn();
        assert_eq!(life.outcome(minted), Outcome::Posted);
    }
    (far.trips.load(Ordering::Relaxed) - before, life.realm.conflicts)
}

#[test]
fn orders_are_executed_beside_a_shard_that_changes_the_ledger_all_the_time() {
    let (calm, none) = execute(false);
    assert!(
        none == 0 && calm > 4 * EVERY,
        "transactions take longer than the pauses of the other shard: {calm}"
    );
    let (trips, conflicts) = execute(true);
    let lost = trips.saturating_sub(calm);
    assert!(
        conflicts > 0 && lost <= conflicts * EVERY,
        "{lost} round trips for {conflicts} conflicts"
    );
}

/// A copy of a log's state must not be used where the store may be ahead of it.
#[test]
fn a_lost_answer_beside_a_busy_shard_is_noticed_for_all_logs_at_once() {
    let far = FarStore::new();
    let mut life = Traders::begin(Store::new(far.clone()), LOGS, LOGS as u64);
    far.is_contended.store(true, Ordering::Relaxed);
    life.mint(1, gold(10));
    life.turn();
    far.is_contended.store(false, Ordering::Relaxed);

    let minted = life.mint(2, gold(10));
    far.loses_answer.store(true, Ordering::Relaxed);
    life.turn();
    assert!(!far.loses_answer.load(Ordering::Relaxed), "an answer was lost");
    assert_eq!(life.outcome(minted), Outcome::Posted);
    life.check();
}
