//! Openings: what a new holder may record before its gate opens, and the result for one that is late (rules E3 and E6).

use annals_director::{
    Grants,
    openings::{self, Recorded},
};
use annals_ids::{BatchNumber, Epoch, EventNumber, Hash, LeafIndex, OwnerId, OwnerKind, ProcessId, Shard};
use annals_store::{
    MemoryStore, Store, Transaction, immediate,
    layout::{
        archive::{encode_place, leaf_key, place_key},
        chunks,
        owners::{Cursor, OpeningRecord, cursor_key, opening_key, read_openings},
    },
};

const SHARD: Shard = Shard(0);

/// The connection over which the holder receives acknowledgements.
const CONNECTION: &str = "server:1";

/// A realm with one owner, which a test grants again as often as it likes.
struct Realm {
    store: Store,
    grants: Grants,
    owner: OwnerId,
    epoch: Epoch,
}

/// The hash of a test's batch is its first bytes.
fn hash_of(bytes: &[u8]) -> Option<Hash> {
    bytes.first_chunk().map(|hash| Hash(*hash))
}

fn opening(epoch: Epoch, number: u64) -> OpeningRecord {
    OpeningRecord {
        epoch,
        number: BatchNumber(number),
        hash: Hash([u8::try_from(10 * epoch.0 + number).expect("small"); 32]),
    }
}

impl Realm {
    fn new() -> Self {
        let store = MemoryStore::new().store();
        let seen = immediate(Grants::watch(&store)).expect("the store answers");
        let grants = immediate(Grants::lead(
            store.clone(),
            ProcessId(1),
            seen,
            std::time::Duration::ZERO,
        ))
        .expect("no other director leads");
        let granted = immediate(grants.found(OwnerKind::Cell, SHARD, ProcessId(2))).expect("it leads");
        Self {
            store,
            grants,
            owner: granted.owner,
            epoch: granted.epoch,
        }
    }

    fn grant(&mut self) {
        self.epoch = immediate(self.grants.grant(self.owner, ProcessId(3), |_| false))
            .expect("it leads")
            .epoch;
    }

    fn record(&self, records: &[OpeningRecord]) -> Recorded {
        let recorded = openings::record(&self.store, SHARD, self.owner, records, CONNECTION, hash_of);
        immediate(recorded).expect("the store answers")
    }

    fn recorded(&self) -> Vec<OpeningRecord> {
        let transaction = self.store.begin();
        immediate(read_openings(&transaction, self.owner, Epoch(0))).expect("the store answers")
    }

    /// db has archived the log up to this batch.
    fn archive(&self, number: u64, hash: Hash) {
        let owner = self.owner;
        let (batch, leaf) = (BatchNumber(number), LeafIndex(number - 1));
        let cursor = Cursor {
            batch,
            hash,
            event: EventNumber(0),
            epoch: self.epoch,
        };
        let write = |transaction: Transaction| async move {
            transaction.set(&cursor_key(owner), &cursor.encode())?;
            transaction.set(&place_key(owner, batch), &encode_place(leaf))?;
            for (key, chunk) in chunks(&leaf_key(SHARD, leaf), &hash.0) {
                transaction.set(&key, chunk)?;
            }
            Ok::<_, annals_store::StoreError>(())
        };
        immediate(self.store.run_repeatable(write)).expect("the store answers");
    }
}

#[test]
fn only_the_granted_epoch_is_opened() {
    let mut realm = Realm::new();
    let first = opening(realm.epoch, 1);
    realm.grant();
    // Its holder was replaced before it recorded anything, or names an epoch that was never granted.
    for epoch in [first.epoch, realm.epoch.next()] {
        assert_eq!(realm.record(&[opening(epoch, 1)]), Recorded::Superseded);
    }
    assert_eq!(realm.recorded(), []);
    let second = opening(realm.epoch, 1);
    assert_eq!(realm.record(&[second]), Recorded::Yes);
    assert_eq!(realm.record(&[second]), Recorded::Yes, "the answer was lost");
    assert_eq!(realm.recorded(), [second]);
    realm.grant();
    assert_eq!(
        realm.record(&[second]),
        Recorded::Superseded,
        "a higher epoch is granted"
    );
    assert_eq!(realm.record(&[]), Recorded::Yes, "nothing was asked for");
}

#[test]
fn openings_found_during_a_take_over_are_recorded_with_the_new_one() {
    let mut realm = Realm::new();
    let first = opening(realm.epoch, 1);
    realm.grant();
    let second = opening(realm.epoch, 4);
    assert_eq!(realm.record(&[first, second]), Recorded::Yes);
    assert_eq!(realm.recorded(), [first, second]);
}

#[test]
fn an_opening_behind_the_cursor_is_refused_unless_archived() {
    let realm = Realm::new();
    let opens = opening(realm.epoch, 3);
    // The archive ends just before the opening.
    realm.archive(2, Hash([1; 32]));
    assert_eq!(realm.record(&[opens]), Recorded::Yes);

    // db archives another batch in its place, or goes past it.
    for (cursor, archived, expected) in [
        (3, Hash([2; 32]), Recorded::CursorPassed),
        (3, opens.hash, Recorded::Yes),
        (4, opens.hash, Recorded::CursorPassed),
    ] {
        let realm = Realm::new();
        realm.archive(cursor, archived);
        assert_eq!(realm.record(&[opens]), expected, "cursor at {cursor}, {archived}");
        let is_recorded = realm.recorded() == [opens];
        assert_eq!(is_recorded, expected == Recorded::Yes);
    }

    // An opening that was recorded before the cursor passed it stays.
    let realm = Realm::new();
    assert_eq!(realm.record(&[opens]), Recorded::Yes);
    realm.archive(3, Hash([2; 32]));
    assert_eq!(realm.record(&[opens]), Recorded::Yes);
    let key = opening_key(realm.owner, opens.epoch);
    let stored = immediate(realm.store.begin().get(&key)).expect("the store answers");
    assert_eq!(stored.as_deref(), Some(&opens.encode()[..]));
}

impl Realm {
    /// A realm whose owner was opened over [`CONNECTION`].
    fn opened() -> Self {
        let realm = Self::new();
        assert_eq!(realm.record(&[opening(realm.epoch, 1)]), Recorded::Yes);
        realm
    }

    /// Grants the next epoch while these connections are closed; returns whether the former holder has ended.
    fn is_final(&mut self, closed: &[&str]) -> bool {
        let grant = immediate(
            self.grants
                .grant(self.owner, ProcessId(3), |connection| closed.contains(&connection)),
        )
        .expect("it leads");
        self.epoch = grant.epoch;
        grant.former_ended
    }

    fn confirm(&self, epoch: Epoch, connection: &str) -> bool {
        immediate(openings::confirm(&self.store, self.owner, epoch, connection)).expect("the store answers")
    }
}

#[test]
fn a_holder_has_ended_when_its_connection_is_closed() {
    assert!(!Realm::opened().is_final(&[]), "nothing is known of it");
    assert!(!Realm::opened().is_final(&["server:2"]), "another one is closed");
    assert!(Realm::opened().is_final(&[CONNECTION]));
}

#[test]
fn a_holder_that_confirmed_its_epoch_over_another_connection_has_not_ended() {
    let mut realm = Realm::opened();
    assert!(realm.confirm(realm.epoch, "server:2"));
    assert!(!realm.is_final(&[CONNECTION]));

    let mut realm = Realm::opened();
    assert!(realm.confirm(realm.epoch, "server:2"));
    assert!(realm.is_final(&["server:2"]));
    let before = Epoch(realm.epoch.0 - 1);
    assert!(!realm.confirm(before, "server:3"), "the epoch is granted no more");
    // Until an opening is recorded, the holder of the former epoch remains the last that can have shown anything.
    assert!(realm.is_final(&["server:2"]), "a late confirmation changes nothing");
}

#[test]
fn a_holder_that_released_its_owner_has_ended() {
    let mut realm = Realm::opened();
    let release = |realm: &Realm, epoch| immediate(openings::release(&realm.store, realm.owner, epoch));
    assert_eq!(release(&realm, realm.epoch), Ok(true));
    assert!(realm.is_final(&[]));
    assert_eq!(realm.record(&[opening(realm.epoch, 2)]), Recorded::Yes);
    let before = Epoch(realm.epoch.0 - 1);
    assert_eq!(
        release(&realm, before),
        Ok(false),
        "it does not hold the owner any more"
    );
    assert!(!realm.is_final(&[]), "the next holder has not ended");
}

#[test]
fn an_opening_that_no_holder_recorded_says_nothing_of_a_holder() {
    // As after an accepted hole: the last opening is not the one to which the connection belongs.
    let mut realm = Realm::opened();
    realm.grant();
    let (key, closing) = (
        opening_key(realm.owner, realm.epoch),
        OpeningRecord::closing(realm.epoch, BatchNumber(1)),
    );
    let write = |transaction: Transaction| {
        let key = key.clone();
        async move {
            transaction.set(&key, &closing.encode())?;
            Ok::<_, annals_store::StoreError>(())
        }
    };
    immediate(realm.store.run_repeatable(write)).expect("the store answers");
    assert!(!realm.is_final(&[CONNECTION]));
}
