//! Sealing: the archive is moved into segments, and its contents are read unchanged.

use annals_def::Value;
use annals_event::Header;
use annals_ids::{BatchNumber, EntityId, LeafIndex, OwnerId, Part};
use annals_store::{
    ArchivedBatch, StoreError, Transaction, archive, immediate,
    layout::{archive::leaf_key, chunks, segments},
    segment::{BLOCK_BYTES, SEGMENT_LEAVES, Segment},
};

use crate::{
    acts,
    realm::{Realm, SHARD},
};

/// A realm of two owners that wrote in turns, all of it folded.
fn written(batches: usize, size: usize) -> (Realm, OwnerId, OwnerId) {
    let mut realm = Realm::new(5);
    let (base, cell) = (realm.found(Part::Base), realm.found(Part::Cell));
    acts::begin_cell(&mut realm, cell, EntityId(1), base);
    for turn in 0..batches {
        let bytes = (0..size).map(|byte| (byte * turn % 251) as u8).collect();
        acts::set(&mut realm, cell, EntityId(1), "baggage", Value::Bytes(bytes));
        realm.write(cell, false);
        realm.write(base, false);
    }
    realm.fold(usize::MAX);
    (realm, base, cell)
}

fn listed(realm: &Realm) -> Vec<Segment> {
    immediate(archive::read_segments(&realm.store, SHARD)).expect("the store answers")
}

fn loose(realm: &Realm, from: u64) -> Vec<(LeafIndex, ArchivedBatch)> {
    let read = |transaction: Transaction| async move {
        archive::read_loose(&transaction, SHARD, LeafIndex(from), usize::MAX).await
    };
    immediate(realm.store.read(read)).expect("the store answers")
}

#[test]
fn unsealed_leaves_page_at_any_size() {
    for (batches, size) in [(200, 300), (100, 250_000), (90, 150_000)] {
        let (realm, ..) = written(batches, size);
        let all = loose(&realm, 0);
        for budget in [1, 60_000, 5 << 20] {
            let (mut read, mut portions) = (Vec::new(), 0);
            loop {
                let from = LeafIndex(read.len() as u64);
                let next = |transaction: Transaction| async move {
                    archive::read_loose(&transaction, SHARD, from, budget).await
                };
                let more = immediate(realm.store.read(next)).expect("the store answers");
                if more.is_empty() {
                    break;
                }
                read.extend(more);
                portions += 1;
            }
            assert!(read == all, "{batches} batches of {size} bytes, {budget} at a time");
            assert!(budget > 60_000 || portions > 1, "{portions} portions");
        }
    }
}

#[test]
fn segments_are_contiguous_and_name_their_contents() {
    let (mut realm, base, cell) = written(100, 2_000);
    let before: Vec<(LeafIndex, ArchivedBatch)> = loose(&realm, 0);
    let sealed = realm.seal(60);
    assert_eq!(listed(&realm), sealed);
    assert_eq!(sealed.len(), before.len() / 60);
    let mut next = 0;
    for segment in &sealed {
        assert_eq!((segment.first.0, segment.leaves()), (next, 60));
        next = segment.last.0 + 1;
        let held = &before[segment.first.0 as usize..next as usize];
        let bytes: usize = held.iter().map(|(_, archived)| archived.size()).sum();
        assert_eq!(segment.bytes, bytes as u64);
        assert!(
            segment.stored() < segment.bytes / 2,
            "{} of {bytes} B",
            segment.stored()
        );
        let headers = held
            .iter()
            .map(|(_, archived)| Header::read(archived.header()).expect("a batch").0);
        for owner in [base, cell] {
            let numbers: Vec<BatchNumber> = headers
                .clone()
                .filter(|it| it.owner == owner)
                .map(|it| it.number)
                .collect();
            let run = segment.runs.iter().find(|run| run.owner == owner).expect("both wrote");
            assert_eq!((Some(&run.first), Some(&run.last)), (numbers.first(), numbers.last()));
        }
        assert_eq!(headers.clone().map(|it| it.wall).min(), Some(segment.earliest));
        assert_eq!(headers.map(|it| it.wall).max(), Some(segment.latest));
        assert!(
            segment
                .blocks
                .iter()
                .all(|block| block.bytes as usize <= BLOCK_BYTES + 4_096)
        );
    }
    assert_eq!(
        loose(&realm, 0),
        before[next as usize..],
        "what is sealed is nowhere else"
    );
    realm.check();
    assert_eq!(realm.seal(60), [], "nothing is sealed twice");
}

#[test]
fn a_batch_is_read_from_its_block_alone() {
    let (mut realm, _, cell) = written(200, 3_000);
    let sealed = realm.seal(SEGMENT_LEAVES.min(400));
    let segment = &sealed[0];
    assert!(segment.blocks.len() > 4, "{} blocks", segment.blocks.len());
    let first = segment.block_of(cell, BatchNumber(1)).expect("it is in there");
    // Every other block is deleted.
    let work = |transaction: Transaction| async move {
        for place in (0..segment.blocks.len()).filter(|place| *place != first) {
            let key = segments::block_key(SHARD, segment.last, place as u32);
            transaction.clear_range(&annals_store::KeyRange::prefix(&key))?;
        }
        Ok::<_, StoreError>(())
    };
    immediate(realm.store.run_repeatable(work)).expect("the store answers");
    let read = immediate(annals_db::read_archived(&realm.store, SHARD, cell, BatchNumber(0), 3));
    assert_eq!(read.expect("three batches").len(), 3);
}

#[test]
fn a_damaged_block_is_an_error() {
    let (mut realm, _, cell) = written(20, 100);
    let segment = realm.seal(40).remove(0);
    let key = segments::block_key(SHARD, segment.last, 0);
    for place in [0, 7, segment.blocks[0].stored as usize - 1] {
        let key = &key;
        let flip = |transaction: Transaction| async move {
            let mut bytes = annals_store::layout::read_chunks(&transaction, key)
                .await?
                .expect("a block");
            bytes[place] ^= 4;
            for (key, chunk) in chunks(key, &bytes) {
                transaction.set(&key, chunk)?;
            }
            Ok::<_, StoreError>(())
        };
        immediate(realm.store.run_repeatable(flip)).expect("the store answers");
        let read = immediate(annals_db::read_archived(&realm.store, SHARD, cell, BatchNumber(0), 1));
        let error = read.expect_err("it is damaged");
        assert!(
            matches!(&error, annals_db::RecoveryError::Store { source: StoreError::Corrupt(why), .. } if why.contains("not what was sealed")),
            "{error:?}"
        );
        immediate(realm.store.run_repeatable(flip)).expect("the store answers");
    }
    realm.check();
}

#[test]
fn sealing_stops_at_a_missing_leaf() {
    let (mut realm, _, _) = written(30, 10);
    let key = leaf_key(SHARD, LeafIndex(10));
    let work = |transaction: Transaction| {
        let range = annals_store::KeyRange::prefix(&key);
        async move { transaction.clear_range(&range) }
    };
    immediate(realm.store.run_repeatable(work)).expect("the store answers");
    assert_eq!(realm.seal(20), []);
    assert_eq!(listed(&realm), []);
}

/// A db that has gathered a part of a segment reads on behind what its successor has sealed: no leaf is missing there.
#[test]
fn a_superseded_db_reports_no_damage() {
    let (mut realm, base, cell) = written(30, 10);
    let mut late = realm.db.sealer().of_leaves(200);
    assert!(
        immediate(late.seal_next()).expect("the store answers").is_none(),
        "too few leaves"
    );
    realm.begin_db();
    for turn in 0..150 {
        acts::set(&mut realm, cell, EntityId(1), "baggage", Value::Bytes(vec![turn]));
        realm.write(cell, false);
        realm.write(base, false);
    }
    realm.fold(usize::MAX);
    assert!(!realm.seal(20).is_empty());
    for turn in 0..10 {
        acts::set(&mut realm, cell, EntityId(1), "baggage", Value::Bytes(vec![turn]));
        realm.write(cell, false);
    }
    realm.fold(usize::MAX);
    let result = immediate(late.seal_next());
    assert!(
        matches!(result, Err(annals_db::FoldError::Superseded { .. })),
        "{result:?}"
    );
}
