//! Retention: the deleted events are not needed. The oracle is what was written, as in a realm that keeps everything:
//! every leaf, root, floor and recovered state is compared with it, and so is a restored realm.

use annals_db::{
    Cuts, RestoreError, Retention, RetentionPace, RetentionProgress, read_floor, read_horizon, read_unlogged,
};
use annals_event::{Batch, Thinned};
use annals_ids::{BatchNumber, LeafIndex, OwnerId, Part, WallTime};
use annals_store::{ArchivedBatch, StoreError, archive, immediate, layout::retention as layout};

use crate::{
    generated::founded,
    realm::{Realm, SHARD},
    restoring::{check_cut, header, is_cut, leaves, lived, restore, unlogged},
};

/// Number of realms.
const SEEDS: u64 = 12;

/// Later than every batch.
const EVER: WallTime = WallTime(u64::MAX);

/// A realm whose deletable events are all deleted, with its leaves as they were before.
fn thinned() -> (Realm, Vec<ArchivedBatch>) {
    let realms = (0..SEEDS).map(lived);
    let deleted = |mut realm: Realm| {
        let before = leaves(&realm);
        (let_all_go(&mut realm) > 0).then_some((realm, before))
    };
    realms
        .filter_map(deleted)
        .next()
        .expect("a realm in which something goes")
}

fn retention(realm: &Realm) -> Retention {
    realm.db.retention(RetentionPace::Eager)
}

/// Deletes all that is sealed, some segments at a time so that the horizon moves several times.
fn let_all_go(realm: &mut Realm) -> u64 {
    let mut retention = retention(realm);
    let mut lost = 0;
    for _ in 0..1_000 {
        match immediate(retention.turn(EVER)).expect("the store answers") {
            RetentionProgress::Idle => return lost,
            RetentionProgress::Thinned { bytes, .. } => lost += bytes,
            RetentionProgress::Folding | RetentionProgress::Moved(_) => {}
        }
    }
    panic!("seed {}: it never becomes idle", realm.seed);
}

#[test]
fn a_restored_realm_equals_the_written_one() {
    let (mut refused, mut lost) = (0, 0);
    for seed in 0..SEEDS {
        let mut realm = lived(seed);
        let before = leaves(&realm);
        lost += let_all_go(&mut realm);
        realm.check();
        let leaves = leaves(&realm);
        assert_eq!(leaves.len(), before.len());
        let mut cuts = (Cuts::default(), Cuts::default());
        let consistent: Vec<usize> = (1..=leaves.len())
            .filter(|count| {
                let is_one = is_cut(&mut cuts.0, &leaves[count - 1]);
                assert_eq!(
                    is_one,
                    is_cut(&mut cuts.1, &before[count - 1]),
                    "seed {seed}: {count} leaves"
                );
                is_one
            })
            .collect();
        let rows = unlogged(&realm, &leaves);
        let horizon = immediate(read_horizon(&realm.store, SHARD)).expect("the store answers");
        let horizon = horizon.expect("it has moved").leaf.0 as usize;
        let (below, beyond): (Vec<usize>, Vec<usize>) = consistent.into_iter().partition(|count| *count <= horizon);
        for _ in 0..3 {
            let at = realm.pick(&beyond).expect("the end is one");
            check_cut(&mut realm, &rows, &leaves[..at]);
        }
        check_cut(&mut realm, &rows, &leaves);
        if let Some(at) = realm.pick(&below) {
            refused += 1;
            let restored = restore(&rows, &leaves[..at]).map(|_| ());
            assert!(
                matches!(restored, Err(RestoreError::BeforeHorizon { .. })),
                "seed {seed}: {restored:?}"
            );
        }
    }
    assert!(refused > 0 && lost > 0);
}

#[test]
fn retention_continues_in_a_restored_realm() {
    let (realm, _) = thinned();
    let leaves = leaves(&realm);
    let rows = unlogged(&realm, &leaves);
    let (store, _) = restore(&rows, &leaves).expect("it is restored");
    let again = immediate(read_unlogged(&store)).expect("the store answers");
    let of = |rows: &[(Vec<u8>, Vec<u8>)]| {
        rows.iter()
            .filter(|(key, _)| key[0] >= 0x29)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert!(
        !of(&rows).is_empty() && of(&rows) == of(&again),
        "horizon, floors and cell parts go along"
    );
}

#[test]
fn young_leaves_are_kept() {
    let mut realm = lived(2);
    let sealed = immediate(archive::read_segments(&realm.store, SHARD)).expect("the store answers");
    let middle = sealed[sealed.len() / 2].latest;
    let mut retention = retention(&realm);
    assert!(realm.deleted(&mut retention, middle, 1_000));
    let horizon = immediate(read_horizon(&realm.store, SHARD)).expect("the store answers");
    let passed = horizon.map_or(0, |horizon| horizon.leaf.0 + 1);
    let expected = sealed.iter().take_while(|segment| segment.latest < middle).last();
    assert_eq!(passed, expected.map_or(0, |segment| segment.last.0 + 1));
    assert!(horizon.is_none_or(|horizon| horizon.wall < middle));
    realm.check();
}

#[test]
fn a_floor_is_written_only_if_it_saves_enough() {
    let mut realm = lived(3);
    let_all_go(&mut realm);
    let first = immediate(read_horizon(&realm.store, SHARD))
        .expect("the store answers")
        .expect("it has moved");
    // A segment of a few more batches, smaller than the floors.
    let owner = *realm.owners.keys().next().expect("there are owners");
    for _ in 0..20 {
        realm.write(owner, false);
    }
    realm.fold(usize::MAX);
    assert!(!realm.seal(20).is_empty());
    let mut patient = realm.db.retention(RetentionPace::Worthwhile);
    assert_eq!(
        immediate(patient.turn(EVER)).expect("the store answers"),
        RetentionProgress::Idle
    );
    let_all_go(&mut realm);
    let second = immediate(read_horizon(&realm.store, SHARD))
        .expect("the store answers")
        .expect("it has moved");
    assert!(second.leaf > first.leaf && second.area != first.area);
    realm.check();
}

#[test]
fn small_gains_do_not_thin() {
    // A base writes nearly all of it.
    let mut realm = founded(4);
    let bases: Vec<OwnerId> = realm.owners.keys().copied().collect();
    let is_base = |realm: &mut Realm, owner| realm.scribe(owner).state.part() == Some(Part::Base);
    let base = bases
        .into_iter()
        .find(|owner| is_base(&mut realm, *owner))
        .expect("a base");
    for _ in 0..40 {
        realm.write(base, false);
    }
    realm.fold(usize::MAX);
    realm.seal(20);
    let before = immediate(archive::read_segments(&realm.store, SHARD)).expect("the store answers");
    assert_eq!(let_all_go(&mut realm), 0);
    let after = immediate(archive::read_segments(&realm.store, SHARD)).expect("the store answers");
    assert_eq!(before, after);
    assert!(
        immediate(read_horizon(&realm.store, SHARD))
            .expect("the store answers")
            .is_some()
    );
}

#[test]
fn a_superseded_db_deletes_nothing() {
    let mut realm = lived(5);
    let before = leaves(&realm);
    let former = realm.begin_db();
    let mut late = former.retention(RetentionPace::Eager);
    let ended = (0..1_000).find_map(|_| immediate(late.turn(EVER)).err());
    assert!(
        matches!(ended, Some(annals_db::FoldError::Superseded { .. })),
        "{ended:?}"
    );
    assert_eq!(leaves(&realm), before);
    assert_eq!(immediate(read_horizon(&realm.store, SHARD)), Ok(None));
}

/// What a db reads in several steps, its successor may change in between: it must not take that for damage.
#[test]
fn a_superseded_db_reports_no_damage() {
    let mut superseded = 0;
    for turns in 1..60 {
        let mut realm = lived(5);
        let mut late = retention(&realm);
        for _ in 0..turns {
            immediate(late.turn(EVER)).expect("the store answers");
        }
        realm.begin_db();
        let_all_go(&mut realm);
        let ended = (0..1_000).find_map(|_| immediate(late.turn(EVER)).err());
        // There may be nothing left to do.
        let is_superseded = matches!(ended, Some(annals_db::FoldError::Superseded { .. }));
        assert!(is_superseded || ended.is_none(), "after {turns} turns: {ended:?}");
        superseded += u32::from(is_superseded);
    }
    assert!(superseded > 1, "{superseded}");
}

#[test]
fn a_log_without_its_floor_cannot_be_recovered() {
    let (realm, _) = thinned();
    let horizon = immediate(read_horizon(&realm.store, SHARD))
        .expect("the store answers")
        .expect("it has moved");
    let leaves = leaves(&realm);
    let gone = leaves
        .iter()
        .find(|archived| archived.is_thinned())
        .expect("something is gone");
    let cell = header(gone).owner;
    assert!(
        immediate(read_floor(&realm.store, SHARD, cell, BatchNumber(0)))
            .expect("readable")
            .is_some()
    );
    let clear = |transaction: annals_store::Transaction| async move {
        transaction.clear_range(&layout::floors(SHARD, horizon.area))?;
        Ok::<_, StoreError>(())
    };
    immediate(realm.store.run_repeatable(clear)).expect("the store answers");
    let error =
        immediate(annals_db::recover(&realm.store, SHARD, cell, Part::Cell)).expect_err("nothing to begin with");
    assert!(matches!(error, annals_db::RecoveryError::Deleted { .. }), "{error}");
}

#[test]
fn a_thinned_batch_keeps_its_header_and_calls() {
    let (realm, before) = thinned();
    let mut gone = 0;
    for (leaf, (whole, left)) in (0..).map(LeafIndex).zip(before.into_iter().zip(leaves(&realm))) {
        if !left.is_thinned() {
            assert_eq!(whole, left);
            continue;
        }
        gone += 1;
        let batch = Batch::read(&whole.whole().expect("it was whole")).expect("a batch");
        let thinned = Thinned::read(left.header()).expect("a thinned batch");
        assert_eq!(
            (thinned.hash, thinned.tail()),
            (batch.hash, batch.tail()),
            "leaf {leaf}"
        );
        assert_eq!(thinned.header, batch.header);
        assert!(Batch::read(left.header()).is_err() && Batch::read(&left.stored()).is_err());
    }
    assert!(gone > 0);
}
