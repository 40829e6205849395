//! Folding the next transaction while the store makes the last one durable.

#![expect(
    clippy::disallowed_types,
    reason = "a store is shared by the fold and by those who look at what is durable"
)]

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;

use annals_db::{Folded, read_cursor};
use annals_ids::{BatchNumber, OwnerId, Part};
use annals_store::{
    Backend, CommitRequest, Committed, KeyRange, MemoryStore, Page, RangeRead, ScanOrder, Store, StoreError, Submitted,
    Version, key_after,
};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};

use crate::{realm::Realm, wait};

/// A store in which a submitted transaction becomes durable when somebody waits for it, or when a later one is accepted.
#[derive(Clone)]
pub(crate) struct LazyStore {
    /// The store itself, in which everything is applied at once.
    eager: Arc<dyn Backend>,
    /// As db accesses it.
    inner: Arc<dyn Backend>,
    /// The version of the transaction that is not durable, and the version before it.
    pending: Arc<Mutex<Option<(Version, Version)>>>,
    /// Whether the next submitted transaction conflicts.
    rejects: Arc<AtomicBool>,
}

impl LazyStore {
    /// Wraps `reached`, a way to access `store`.
    pub(crate) fn wrap(store: &Store, reached: &Store) -> Self {
        Self {
            eager: store.backend(),
            inner: reached.backend(),
            pending: Arc::default(),
            rejects: Arc::default(),
        }
    }

    /// Lets the next submitted transaction conflict.
    fn reject_next(&self) {
        self.rejects.store(true, Ordering::Relaxed);
    }

    /// What is durable, in another store: as after a crash.
    async fn durable(&self) -> Result<Store, StoreError> {
        let at = self.read_version().await?;
        let store = MemoryStore::new().store();
        let mut range = KeyRange::everything();
        loop {
            let read = RangeRead {
                range: range.clone(),
                limit: 1_000,
                order: ScanOrder::Forward,
            };
            let page = self.eager.get_range(at, read).await?;
            let transaction = store.begin();
            for (key, value) in &page.rows {
                transaction.set(key, value)?;
            }
            transaction.commit().await?;
            match page.rows.last().filter(|_| page.more) {
                Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
                None => return Ok(store),
            }
        }
    }

    fn set_pending(&self, pending: Option<(Version, Version)>) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = pending;
    }

    fn pending(&self) -> Option<(Version, Version)> {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for LazyStore {
    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.inner.wait(time)
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        async move {
            let newest = self.inner.read_version().await?;
            // A later commit, also of others, was accepted only when this one was durable.
            let pending = self.pending().filter(|(version, _)| *version == newest);
            Ok(pending.map_or(newest, |(_, before)| before))
        }
        .boxed()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        self.inner.get(at, key)
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.inner.get_range(at, read)
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>> {
        self.inner.commit(request)
    }

    fn submit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Submitted, StoreError>> {
        async move {
            if self.rejects.swap(false, Ordering::Relaxed) {
                return Err(StoreError::Conflict);
            }
            let before = self.eager.read_version().await?;
            let committed = self.inner.commit(request).await?;
            self.set_pending(Some((committed.version, before)));
            let store = self.clone();
            Ok(Submitted::new(async move {
                if store.pending().is_some_and(|(version, _)| version == committed.version) {
                    store.set_pending(None);
                }
                Ok(committed)
            }))
        }
        .boxed()
    }

    fn submitted_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.inner.read_version()
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.watch(key, seen)
    }
}

/// Offers the next batch of the stream and submits a transaction that folds it.
fn submit_next(realm: &mut Realm) {
    let (owner, bytes) = realm.stream[realm.offered].clone();
    realm.db.offer(owner, bytes);
    realm.offered += 1;
    wait(realm.db.submit()).expect("the store answers");
}

/// A realm in which a log has two batches beyond the durable one that is returned.
fn behind(seed: u64) -> (Realm, LazyStore, (OwnerId, BatchNumber)) {
    let (mut realm, lazy) = Realm::pipelined(seed);
    let owner = realm.found(Part::Base);
    realm.settle();
    let first = durable(&realm, owner);
    for _ in 0..2 {
        realm.write(owner, false);
    }
    (realm, lazy, (owner, first))
}

fn take_folded(realm: &mut Realm) -> Folded {
    let folded = wait(realm.db.next_folded()).expect("the store answers");
    folded.expect("a transaction was submitted")
}

/// The last batch of a log that is durable in the archive.
fn durable(realm: &Realm, owner: OwnerId) -> BatchNumber {
    wait(read_cursor(&realm.reached, owner))
        .expect("the store answers")
        .batch
}

#[test]
fn a_batch_is_folded_before_the_one_before_it_is_durable() {
    let (mut realm, _, (owner, first)) = behind(1);
    submit_next(&mut realm);
    assert_eq!(durable(&realm, owner), first, "nobody sees what is not durable");
    submit_next(&mut realm);
    assert_eq!(realm.db.submitted(), 2);
    assert_eq!(
        durable(&realm, owner),
        first.next(),
        "the second is not durable, so it was folded before anybody waited for it"
    );

    let folded = [take_folded(&mut realm), take_folded(&mut realm)];
    for (batch, folded) in [first.next(), first.next().next()].into_iter().zip(folded) {
        let cursors: Vec<(OwnerId, BatchNumber)> = folded.cursors.iter().map(|(of, to)| (*of, to.batch)).collect();
        assert_eq!((cursors, folded.conflicts), (vec![(owner, batch)], 0));
    }
    assert!(wait(realm.db.next_folded()).expect("nothing is waited for").is_none());
    assert_eq!(durable(&realm, owner), first.next().next());
}

#[test]
fn a_transaction_that_conflicts_is_folded_again_behind_the_one_before_it() {
    let (mut realm, lazy, (owner, first)) = behind(2);
    submit_next(&mut realm);
    lazy.reject_next();
    submit_next(&mut realm);
    let conflicts = [take_folded(&mut realm), take_folded(&mut realm)].map(|folded| folded.conflicts);
    assert_eq!(conflicts, [0, 1]);
    assert_eq!(durable(&realm, owner), first.next().next());
    realm.check();
}

/// The stream has what a crash has lost.
#[test]
fn what_is_not_durable_at_a_crash_is_folded_by_the_next_db() {
    let (mut realm, lazy, (owner, first)) = behind(3);
    submit_next(&mut realm);
    submit_next(&mut realm);
    realm.store = wait(lazy.durable()).expect("the store answers");
    realm.reached = realm.store.clone();
    assert_eq!(durable(&realm, owner), first.next(), "the second is lost");
    drop(realm.begin_db());
    realm.fold(usize::MAX);
    realm.take_folded(0).expect("the store answers");
    assert_eq!(durable(&realm, owner), first.next().next());
    realm.check();
}
