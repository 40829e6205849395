//! Restoring: for any consistent cut, the store is that of a realm that ends there, and no number that was given out
//! before is given out again.

use std::collections::BTreeMap;

use annals_db::{ClaimedStore, Cuts, Extent, RestoreError, Row, accounts, read_archived, read_unlogged};
use annals_director::{Grants, read_owners};
use annals_event::{Batch, Header, Thinned};
use annals_ids::{BatchNumber, Hash, LeafIndex, OwnerId, OwnerKind, ProcessId, WallTime};
use annals_store::{
    ArchivedBatch, KeyRange, MemoryStore, ScanOrder, Store, immediate, key_after,
    layout::{
        chunks, database, director,
        lineage::{self, Lineage},
    },
};
use bytes::Bytes;

use crate::{
    game,
    generated::{Play, disturb, founded},
    realm::{Realm, SHARD},
};

/// Number of realms.
const SEEDS: u64 = 10;

/// Steps of each.
const STEPS: usize = 100;

fn lineage(leaf: u64) -> Lineage {
    Lineage {
        leaf: LeafIndex(leaf),
        others: Vec::new(),
        restored: WallTime(5),
        from: "old".into(),
        to: "new".into(),
        backup: "old-5".into(),
    }
}

/// A realm with a long history, all of it folded and some of it sealed.
pub(crate) fn lived(seed: u64) -> Realm {
    live(founded(seed), Play::default())
}

/// Runs a realm for a while.
pub(crate) fn live(mut realm: Realm, mut play: Play) -> Realm {
    for turn in 0..STEPS {
        let owners: Vec<OwnerId> = realm.owners.keys().copied().collect();
        let owner = realm.pick(&owners).expect("there are owners");
        if realm.roll(3) == 0 {
            disturb(&mut realm, owner);
        } else {
            play.act(&mut realm, owner);
            let lose = realm.roll(10) == 0;
            realm.write(owner, lose);
        }
        if turn % 16 == 15 {
            realm.fold(usize::MAX);
        }
    }
    realm.settle();
    realm.seal(20);
    realm
}

/// All leaves of a realm's archive, in order.
pub(crate) fn leaves(realm: &Realm) -> Vec<ArchivedBatch> {
    let mut found = BTreeMap::new();
    for owner in realm.owners.keys() {
        let mut after = BatchNumber(0);
        loop {
            let read = immediate(read_archived(&realm.store, SHARD, *owner, after, 64)).expect("an archive");
            let Some(count) = (!read.is_empty()).then_some(read.len() as u64) else {
                break;
            };
            after = BatchNumber(after.0 + count);
            found.extend(read);
        }
    }
    found.into_values().collect()
}

/// The rows that cannot be derived from a log, with the schema that the realm's batches name.
pub(crate) fn unlogged(realm: &Realm, leaves: &[ArchivedBatch]) -> Vec<Row> {
    let mut rows = immediate(read_unlogged(&realm.store)).expect("the store answers");
    let schema = header(&leaves[0]).schema;
    let key = director::schema_key(schema);
    let encoded = game::schema().encode();
    rows.extend(chunks(&key, &encoded).map(|(key, piece)| (key, piece.to_vec())));
    rows
}

pub(crate) fn header(archived: &ArchivedBatch) -> Header {
    Header::read(archived.header()).expect("a batch").0
}

/// Last batch of each log within the first leaves.
fn extent(leaves: &[ArchivedBatch]) -> Extent {
    let headers = leaves.iter().map(header);
    Extent {
        leaves: BTreeMap::from([(SHARD, leaves.len() as u64)]),
        logs: headers.map(|header| (header.owner, header.number)).collect(),
    }
}

/// Whether the archive up to and including this batch is a consistent cut.
pub(crate) fn is_cut(cuts: &mut Cuts, archived: &ArchivedBatch) -> bool {
    match archived {
        ArchivedBatch::Whole(bytes) => cuts.take(&Batch::read(bytes).expect("a batch")),
        ArchivedBatch::Thinned(bytes) => cuts.take_thinned(&Thinned::read(bytes).expect("a thinned batch")),
    }
}

pub(crate) fn restore(
    rows: &[Row],
    leaves: &[ArchivedBatch],
) -> Result<(Store, BTreeMap<OwnerId, Hash>), RestoreError> {
    restore_of(rows, leaves, &extent(leaves))
}

fn restore_of(
    rows: &[Row],
    leaves: &[ArchivedBatch],
    extent: &Extent,
) -> Result<(Store, BTreeMap<OwnerId, Hash>), RestoreError> {
    let store = MemoryStore::new().store();
    let states = immediate(fill(&store, rows, leaves, extent))?;
    Ok((store, states))
}

async fn fill(
    store: &Store,
    rows: &[Row],
    leaves: &[ArchivedBatch],
    extent: &Extent,
) -> Result<BTreeMap<OwnerId, Hash>, RestoreError> {
    let claimed = ClaimedStore::claim(store.clone(), "old-5").await?;
    let mut restoring = claimed.begin(rows, extent).await?;
    for (leaf, archived) in (0..).zip(leaves) {
        restoring.take(SHARD, LeafIndex(leaf), archived.clone()).await?;
    }
    restoring.finish(&BTreeMap::new(), &lineage(leaves.len() as u64)).await
}

#[test]
fn a_restore_to_any_leaf_gives_the_realm_at_that_leaf() {
    for seed in 0..SEEDS {
        let mut realm = lived(seed);
        let leaves = leaves(&realm);
        let rows = unlogged(&realm, &leaves);
        let mut cuts = Cuts::default();
        let consistent: Vec<usize> = (1..=leaves.len())
            .zip(&leaves)
            .filter(|(_, archived)| is_cut(&mut cuts, archived))
            .map(|(count, _)| count)
            .collect();
        assert_eq!(
            consistent.last(),
            Some(&leaves.len()),
            "seed {seed}: everything is a cut"
        );
        for _ in 0..3 {
            let at = realm.pick(&consistent).expect("there are cuts");
            check_cut(&mut realm, &rows, &leaves[..at]);
        }
        let restored = check_cut(&mut realm, &rows, &leaves);
        assert!(
            derived(&restored) == derived(&realm.store),
            "seed {seed}: folding again gives the same rows"
        );
        check_raised(&realm, &restored);
    }
}

/// Restores the realm up to a cut, and compares the result with what was written.
pub(crate) fn check_cut(realm: &mut Realm, rows: &[Row], leaves: &[ArchivedBatch]) -> Store {
    let (seed, count) = (realm.seed, leaves.len());
    let restored = restore(rows, leaves);
    let (store, states) = restored.unwrap_or_else(|error| panic!("seed {seed}, {count} leaves: {error}"));
    for (owner, batch) in extent(leaves).logs {
        let written = &realm.owners[&owner].chain[batch.0 as usize - 1];
        assert_eq!(
            states[&owner], written.state,
            "seed {seed}, {count} leaves: owner {owner}"
        );
    }
    // The oracle examines the restored store now.
    let former = std::mem::replace(&mut realm.store, store);
    let archive = realm.check();
    assert_eq!(archive.leaves.len(), count, "seed {seed}");
    realm.check_database(&archive);
    std::mem::replace(&mut realm.store, former)
}

/// The rows that folding writes, except snapshots and the form in which a leaf's batch is stored: those depend on when
/// each batch was folded.
fn derived(store: &Store) -> Vec<(Bytes, Bytes)> {
    let prefixes = [0x06, 0x08, 0x09, 0x0c, 0x0d].into_iter().chain(0x18..=0x1f);
    let mut rows = Vec::new();
    for prefix in prefixes {
        let range = KeyRange::prefix(&[prefix]);
        let page = immediate(store.begin().get_range(&range, 100_000, ScanOrder::Forward)).expect("the store answers");
        assert!(!page.more, "few rows");
        rows.extend(page.rows);
    }
    rows
}

/// Checks that numbers that the restored realm gives out were never given out.
fn check_raised(realm: &Realm, restored: &Store) {
    let before = immediate(read_owners(&realm.store)).expect("the store answers");
    let after = immediate(read_owners(restored)).expect("the store answers");
    assert!(before.keys().eq(after.keys()));
    for (owner, record) in &after {
        assert!(record.epoch > before[owner].epoch, "owner {owner}");
        assert_eq!((record.kind, record.process), (before[owner].kind, ProcessId(0)));
    }
    let lead = |store: &Store| {
        let store = store.clone();
        immediate(async {
            let seen = Grants::watch(&store).await.expect("the store answers");
            Grants::lead(store, ProcessId(7), seen, std::time::Duration::ZERO).await
        })
        .expect("no other director leads")
    };
    // Given out by the old realm after the cut, and by the restored one.
    let (old, new) = (lead(&realm.store), lead(restored));
    let grants = [old, new].map(|grants| {
        let grant = immediate(grants.found(OwnerKind::Cell, SHARD, ProcessId(7))).expect("the director leads");
        let process = immediate(grants.register()).expect("the director leads");
        (grant.owner, grant.ids.start, process)
    });
    let [(owner, ids, process), (later_owner, later_ids, later_process)] = grants;
    assert!(later_owner > owner && later_ids > ids + (1 << 30) && later_process > process);
}

#[test]
fn accounts_are_restored_before_their_entities_are_stored() {
    let realm = lived(3);
    let leaves = leaves(&realm);
    let entity = annals_db::StoredEntity {
        entity_type: "Avatar".into(),
        ..Default::default()
    };
    let made = immediate(accounts::create(&realm.store, b"anna", "phc", &entity, &game::schema())).expect("an account");
    immediate(accounts::name_key(&realm.store, [7; 32])).expect("a key");
    immediate(accounts::check_out(&realm.store, made.database, OwnerId(1))).expect("a check-out");
    let (store, _) = restore(&unlogged(&realm, &leaves), &leaves).expect("it is restored");
    assert_eq!(immediate(accounts::find(&store, b"anna")), Ok(Some(made.clone())));
    assert_eq!(immediate(accounts::load(&store, made.database)), Ok(Some(entity)));
    assert_eq!(immediate(accounts::name_key(&store, [8; 32])), Ok([7; 32]));
    // It was not active in any log: the check-out went with the process that was about to activate it.
    let key = database::checkout_key(made.database);
    assert_eq!(immediate(store.begin().get(&key)), Ok(None));
}

#[test]
fn only_an_empty_store_is_filled() {
    let realm = lived(4);
    let before = everything(&realm.store);
    let claimed = immediate(ClaimedStore::claim(realm.store.clone(), "old-5"));
    assert!(matches!(claimed, Err(RestoreError::NotEmpty)));
    assert_eq!(everything(&realm.store), before, "no key of it changed");
}

#[test]
fn an_interrupted_restore_is_reported_and_restarted() {
    for seed in 0..SEEDS {
        let mut realm = lived(seed);
        let leaves = leaves(&realm);
        let rows = unlogged(&realm, &leaves);
        let (whole, states) = restore(&rows, &leaves).expect("it is restored");
        let store = MemoryStore::new().store();
        let extent = extent(&leaves);
        for _ in 0..3 {
            let taken = realm.roll(leaves.len() + 1);
            immediate(async {
                let claimed = ClaimedStore::claim(store.clone(), "old-5").await?;
                let mut restoring = claimed.begin(&rows, &extent).await?;
                for (leaf, archived) in (0..).zip(&leaves).take(taken) {
                    restoring.take(SHARD, LeafIndex(leaf), archived.clone()).await?;
                }
                Ok::<_, RestoreError>(())
            })
            .expect("it succeeds up to this point");
            let unfinished = immediate(lineage::read_unfinished(&store.begin()));
            assert_eq!(unfinished, Ok(Some("old-5".to_owned())), "seed {seed}, {taken} leaves");
        }
        let unmarked = || {
            let rows = everything(&store).into_iter();
            rows.filter(|(key, _)| *key != lineage::unfinished_key()).count()
        };
        assert!(unmarked() > 0, "seed {seed}");
        immediate(ClaimedStore::claim(store.clone(), "old-5")).expect("it is unfinished");
        assert_eq!(unmarked(), 0, "seed {seed}: a claimed store holds its mark only");
        let unfinished = immediate(lineage::read_unfinished(&store.begin()));
        assert_eq!(unfinished, Ok(Some("old-5".to_owned())), "seed {seed}");
        assert_eq!(
            immediate(fill(&store, &rows, &leaves, &extent)).expect("it is restored"),
            states
        );
        assert_eq!(
            immediate(lineage::read_unfinished(&store.begin())),
            Ok(None),
            "seed {seed}"
        );
        assert_eq!(
            everything(&store),
            everything(&whole),
            "seed {seed}: as if it had never been interrupted"
        );
    }
}

/// All rows of a store, except those of transactions that run once.
pub(crate) fn everything(store: &Store) -> Vec<(Bytes, Bytes)> {
    let mut range = KeyRange::new(vec![], vec![0xff]);
    let mut rows = Vec::new();
    loop {
        let page = immediate(store.begin().get_range(&range, 256, ScanOrder::Forward)).expect("the store answers");
        rows.extend(page.rows);
        match rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => return rows,
        }
    }
}

#[test]
fn a_backup_with_missing_or_changed_leaves_is_rejected() {
    let realm = lived(5);
    let leaves = leaves(&realm);
    let rows = unlogged(&realm, &leaves);
    // A batch in the middle is missing, and the rest is given as if it came next.
    let mut short = leaves.clone();
    short.remove(leaves.len() / 2);
    assert!(restore_of(&rows, &short, &extent(&leaves)).is_err());
    let mut changed = leaves.clone();
    let middle = changed.len() / 2;
    let mut bytes = changed[middle].clone().whole().expect("no leaf was thinned");
    *bytes.last_mut().expect("a batch") ^= 1;
    changed[middle] = ArchivedBatch::Whole(bytes);
    assert!(restore_of(&rows, &changed, &extent(&leaves)).is_err());
    // A root that differs from the backup's.
    let store = MemoryStore::new().store();
    let finished = immediate(async {
        let claimed = ClaimedStore::claim(store, "old-5").await?;
        let mut restoring = claimed.begin(&rows, &extent(&leaves)).await?;
        for (leaf, archived) in (0..).zip(&leaves) {
            restoring.take(SHARD, LeafIndex(leaf), archived.clone()).await?;
        }
        restoring
            .finish(&BTreeMap::from([(SHARD, Hash([9; 32]))]), &lineage(leaves.len() as u64))
            .await
    });
    assert!(matches!(finished, Err(RestoreError::Root { .. })), "{finished:?}");
}
