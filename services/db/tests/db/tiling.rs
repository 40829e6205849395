//! Tiles and proofs of the archive's tree: at every size, in whatever form the leaves are stored and however far tiling
//! has come, they are those of the tree over all leaves.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use annals_db::{FoldError, Folder, ProveError, Prover, RetentionPace, RetentionProgress, Tiler};
use annals_ids::{EntityId, Epoch, Hash, LeafIndex, OwnerId, Part, WallTime};
use annals_proof::{Frontier, Tile, TreeHead, tile::root_of, verify_consistency, verify_inclusion};
use annals_store::{
    KeyRange, MemoryStore, Store, StoreError, Transaction,
    faults::{Call, Fault, FaultyStore},
    immediate,
    layout::{
        archive::{Tree, leaf_key, tree_key},
        chunks, tiles,
    },
};
use bytes::Bytes;

use crate::{
    acts, game,
    realm::{Realm, SHARD},
    restoring::{everything, leaves, restore, unlogged},
    retention_killed::{Last, copy, dying},
    scribe::empty,
};

/// Leaves of an archive with three levels of tiles: the second level has a full tile and a partial one.
const MANY: u64 = 256 * 256 + 3 * 256 + 77;

/// Leaves written in one transaction.
const AT_ONCE: usize = 2_000;

/// The batches of one long log.
static BATCHES: LazyLock<Vec<(Vec<u8>, Hash)>> = LazyLock::new(|| {
    let mut tail = annals_event::Tail::default();
    let batches = (0..MANY).map(|mark| empty(OwnerId(1), Epoch(1), &mut tail, mark == 0, mark));
    batches.map(|batch| (batch.bytes, batch.hash)).collect()
});

/// A store with an archive of `leaves` leaves, and nothing else.
fn archive_of(leaves: u64) -> Store {
    let store = MemoryStore::new().store();
    append(&store, 0, leaves);
    store
}

/// Archives the leaves from `first` up to `end`.
fn append(store: &Store, first: u64, end: u64) {
    let mut tree = Frontier::new();
    let numbered: Vec<(u64, &(Vec<u8>, Hash))> = (0..end).zip(BATCHES.iter()).collect();
    numbered.iter().for_each(|(_, (_, hash))| tree.push(*hash));
    let peaks = tree.peaks().to_vec();
    let tree = Tree { size: end, peaks };
    let new = &numbered[usize::try_from(first).expect("small")..];
    for some in new.chunks(AT_ONCE) {
        let tree = &tree;
        let work = |transaction: Transaction| async move {
            for (leaf, (bytes, _)) in some {
                for (key, chunk) in chunks(&leaf_key(SHARD, LeafIndex(*leaf)), bytes) {
                    transaction.set(&key, chunk)?;
                }
            }
            transaction.set(&tree_key(SHARD), &tree.encode())?;
            Ok::<_, StoreError>(())
        };
        immediate(store.run_repeatable(work)).expect("the store answers");
    }
}

fn db(store: &Store) -> Folder {
    immediate(Folder::begin(store.clone(), SHARD, game::schema())).expect("nothing fails")
}

/// Tiles until there is nothing to do. Returns the number of leaves added to full tiles.
fn tile_all(tiler: &mut Tiler) -> Result<u64, FoldError> {
    let mut tiled = 0;
    while let Some(more) = immediate(tiler.tile_next())? {
        tiled += more.leaves;
    }
    Ok(tiled)
}

/// The rows of all tiles.
fn rows(store: &Store) -> Vec<(Bytes, Bytes)> {
    let of_tiles = KeyRange::new(tiles::tiles(SHARD, 0).begin, tiles::tiles(SHARD, 8).begin);
    let mut rows = everything(store);
    rows.retain(|(key, _)| of_tiles.contains(key));
    rows
}

/// Stored tiles of a tree: at level 0 full ones, above those that are based on full ones.
fn kept(size: u64) -> Vec<Tile> {
    let full = size / 256 * 256;
    Tile::all(full).collect()
}

/// Sizes around the boundaries of tiles.
fn sizes(size: u64) -> Vec<u64> {
    let edges = [
        0, 1, 2, 3, 255, 256, 257, 511, 512, 700, 4_096, 65_535, 65_536, 65_537, 66_047, 66_048, 66_049,
    ];
    let mut sizes: Vec<u64> = edges.into_iter().filter(|edge| *edge < size).collect();
    sizes.push(size);
    sizes
}

/// Compares every tile of a tree, and proofs between many of its sizes, with the tree over these leaves.
fn check(store: &Store, leaves: &[Hash]) {
    let mut roots = vec![Frontier::new().root()];
    let mut tree = Frontier::new();
    for leaf in leaves {
        tree.push(*leaf);
        roots.push(tree.root());
    }
    let mut prover = immediate(Prover::begin(store.clone(), SHARD)).expect("the store answers");
    let size = leaves.len() as u64;
    let head = |size: u64| TreeHead {
        size,
        root: roots[usize::try_from(size).expect("small")],
    };
    assert_eq!(prover.head(), head(size));
    for new in sizes(size) {
        assert_eq!(
            immediate(prover.root(new)).expect("a root"),
            head(new).root,
            "{new} leaves"
        );
        for old in sizes(new) {
            let proof = immediate(prover.consistency(old, new)).expect("a proof");
            assert_eq!(
                verify_consistency(head(old), head(new), &proof),
                Ok(()),
                "{old} to {new}"
            );
            let Some(leaf) = old.checked_sub(1) else { continue };
            let proof = immediate(prover.inclusion(leaf, new)).expect("a proof");
            let hash = leaves[usize::try_from(leaf).expect("small")];
            assert_eq!(
                verify_inclusion(hash, leaf, head(new), &proof),
                Ok(()),
                "leaf {leaf} of {new}"
            );
        }
    }
    check_tiles(&mut prover, leaves);
    assert!(matches!(immediate(prover.root(size + 1)), Err(ProveError::Outside(_))));
    assert!(matches!(
        immediate(prover.inclusion(size, size)),
        Err(ProveError::Outside(_))
    ));
    assert!(matches!(
        immediate(prover.inclusion(0, size + 1)),
        Err(ProveError::Outside(_))
    ));
    assert!(matches!(
        immediate(prover.consistency(1, size + 1)),
        Err(ProveError::Outside(_))
    ));
    assert!(matches!(
        immediate(prover.consistency(size, size - 1)),
        Err(ProveError::Outside(_))
    ));
}

/// Checks every tile of the whole tree, and narrower ones.
fn check_tiles(prover: &mut Prover, leaves: &[Hash]) {
    let mut levels = vec![leaves.to_vec()];
    for _ in 1..8 {
        let below = &levels[levels.len() - 1];
        levels.push(below.chunks_exact(256).map(root_of).collect());
    }
    for tile in Tile::all(leaves.len() as u64) {
        let first = usize::try_from(tile.index() * 256).expect("small");
        let hashes = &levels[usize::from(tile.level())][first..first + usize::from(tile.width())];
        assert_eq!(immediate(prover.tile(tile)).expect("a tile"), hashes, "{tile}");
        if tile.width() > 1 {
            let narrow = Tile::new(tile.level(), tile.index(), tile.width() - 1).expect("a tile");
            assert_eq!(
                immediate(prover.tile(narrow)).expect("a tile"),
                hashes[..hashes.len() - 1],
                "{narrow}"
            );
        }
        if !tile.is_full() {
            let wide = Tile::new(tile.level(), tile.index(), tile.width() + 1).expect("a tile");
            assert!(
                matches!(immediate(prover.tile(wide)), Err(ProveError::Outside(_))),
                "{wide}"
            );
        }
    }
}

fn hashes(leaves: u64) -> Vec<Hash> {
    let of_them = &BATCHES[..usize::try_from(leaves).expect("small")];
    of_them.iter().map(|(_, hash)| *hash).collect()
}

#[test]
fn tiling_catches_up_with_an_untiled_archive() {
    let store = archive_of(MANY);
    let folder = db(&store);
    let mut prover = immediate(Prover::begin(store.clone(), SHARD)).expect("the store answers");
    let head = prover.head();
    assert_eq!(immediate(prover.root(MANY)).expect("a root"), head.root);
    let proof = immediate(prover.inclusion(70, MANY)).expect("a proof");
    assert_eq!(verify_inclusion(BATCHES[70].1, 70, head, &proof), Ok(()));
    assert_eq!(rows(&store).len(), 0);
    assert_eq!(tile_all(&mut folder.tiler()).expect("nothing fails"), MANY / 256 * 256);
    let expected: Vec<Vec<u8>> = kept(MANY)
        .iter()
        .map(|tile| tiles::tile_key(SHARD, tile.level(), tile.index()))
        .collect();
    let found = rows(&store);
    assert_eq!(found.iter().map(|(key, _)| key.to_vec()).collect::<Vec<_>>(), expected);
    for ((_, value), tile) in found.iter().zip(kept(MANY)) {
        assert_eq!(value.len(), usize::from(tile.width()) * 32, "{tile}");
    }
    check(&store, &hashes(MANY));
    assert_eq!(
        tile_all(&mut folder.tiler()).expect("nothing fails"),
        0,
        "nothing is written twice"
    );
}

#[test]
fn tiles_follow_a_growing_and_sealed_archive() {
    let store = archive_of(0);
    let folder = db(&store);
    let (mut tiler, mut sealer) = (folder.tiler(), folder.sealer().of_leaves(300));
    let mut before = 0;
    for (turn, size) in [100, 255, 256, 300, 1_000, 1_023, 1_024, 3_000].into_iter().enumerate() {
        append(&store, before, size);
        if turn % 2 == 0 {
            tile_all(&mut tiler).expect("nothing fails");
            check(&store, &hashes(size));
        }
        while immediate(sealer.seal_next()).expect("nothing fails").is_some() {}
        check(&store, &hashes(size));
        before = size;
    }
    tile_all(&mut tiler).expect("nothing fails");
    check(&store, &hashes(before));
    let whole = archive_of(before);
    tile_all(&mut db(&whole).tiler()).expect("nothing fails");
    assert_eq!(rows(&store), rows(&whole));
}

#[test]
fn a_kill_during_tiling_leaves_the_old_or_the_new_state() {
    let size = 256 * 70 + 9;
    let store = archive_of(size);
    let whole = copy(&store);
    tile_all(&mut db(&whole).tiler()).expect("nothing fails");
    let commits = u64::div_ceil(70, 16);
    for last in [Last::Lost, Last::Applied] {
        for at in 0..commits {
            let store = copy(&store);
            let left = Arc::new(AtomicU64::new(u64::MAX));
            let folder = db(&dying(&store, Arc::clone(&left), last));
            left.store(at, Ordering::Relaxed);
            assert!(tile_all(&mut folder.tiler()).is_err(), "{at}, {last:?}: it is killed");
            check(&store, &hashes(size));
            let tiled = tile_all(&mut db(&store).tiler()).expect("faults have ended");
            let applied = at + u64::from(last == Last::Applied);
            assert_eq!(
                tiled,
                (70 - (applied * 16).min(70)) * 256,
                "{at}, {last:?}: no tile is written again"
            );
            assert_eq!(rows(&store), rows(&whole), "{at}, {last:?}");
        }
    }
}

#[test]
fn an_unacknowledged_tiling_commit_is_not_repeated() {
    let store = archive_of(600);
    let whole = copy(&store);
    tile_all(&mut db(&whole).tiler()).expect("nothing fails");
    let mut lost = false;
    let armed = Arc::new(AtomicBool::new(false));
    let arm = Arc::clone(&armed);
    let forgetful = FaultyStore::wrap(&store, move |call| {
        if call != Call::Commit || lost || !armed.load(Ordering::Relaxed) {
            return Fault::None;
        }
        lost = true;
        Fault::AnswerLost
    });
    let folder = db(&forgetful);
    arm.store(true, Ordering::Relaxed);
    tile_all(&mut folder.tiler()).expect("it is tried again");
    assert_eq!(rows(&store), rows(&whole));
}

#[test]
fn a_level_without_a_root_is_not_extended() {
    let store = archive_of(600);
    let folder = db(&store);
    tile_all(&mut folder.tiler()).expect("nothing fails");
    let shorten = |transaction: Transaction| async move {
        transaction.set(&tiles::tile_key(SHARD, 1, 0), &[7; 32])?;
        Ok::<_, StoreError>(())
    };
    immediate(store.run_repeatable(shorten)).expect("the store answers");
    append(&store, 600, 1_000);
    let refused = tile_all(&mut folder.tiler());
    assert!(
        matches!(refused, Err(FoldError::Store(StoreError::Corrupt(_)))),
        "{refused:?}"
    );
}

#[test]
fn only_the_folding_db_writes_tiles() {
    let store = archive_of(600);
    let former = db(&store);
    let mut late = former.tiler();
    let newer = db(&store);
    assert!(matches!(immediate(late.tile_next()), Err(FoldError::Superseded { .. })));
    assert_eq!(rows(&store).len(), 0);
    assert_eq!(tile_all(&mut newer.tiler()).expect("nothing fails"), 512);
}

#[test]
fn proofs_from_a_damaged_tile_are_rejected() {
    let size = 60_000;
    let store = archive_of(size);
    tile_all(&mut db(&store).tiler()).expect("nothing fails");
    let key = tiles::tile_key(SHARD, 1, 0);
    let key = &key;
    let flip = |transaction: Transaction| async move {
        let mut bytes = transaction.get(key).await?.expect("a tile").to_vec();
        bytes[40] ^= 1;
        transaction.set(key, &bytes)?;
        Ok::<_, StoreError>(())
    };
    immediate(store.run_repeatable(flip)).expect("the store answers");
    let mut prover = immediate(Prover::begin(store.clone(), SHARD)).expect("the store answers");
    let head = prover.head();
    assert_ne!(immediate(prover.root(size)).expect("a root"), head.root);
    let proof = immediate(prover.inclusion(3, size)).expect("hashes");
    assert!(verify_inclusion(BATCHES[3].1, 3, head, &proof).is_err());
    // A tile that is not a whole number of hashes is detected where it is read.
    let cut = |transaction: Transaction| async move {
        transaction.set(key, &[7; 33])?;
        Ok::<_, StoreError>(())
    };
    immediate(store.run_repeatable(cut)).expect("the store answers");
    let read = immediate(prover.inclusion(3, size));
    assert!(
        matches!(read, Err(ProveError::Store(StoreError::Corrupt(_)))),
        "{read:?}"
    );
}

/// A realm whose cell's events are deleted, and the hashes of its leaves.
fn thinned() -> (Realm, Vec<Hash>) {
    let mut realm = Realm::new(5);
    let (base, cell) = (realm.found(Part::Base), realm.found(Part::Cell));
    acts::begin_cell(&mut realm, cell, EntityId(1), base);
    for turn in 0..400u32 {
        let bytes = turn.to_le_bytes().repeat(200);
        acts::set(
            &mut realm,
            cell,
            EntityId(1),
            "baggage",
            annals_def::Value::Bytes(bytes),
        );
        realm.write(cell, false);
        realm.write(base, false);
    }
    realm.fold(usize::MAX);
    let hashes = leaves(&realm).iter().map(hash_of).collect();
    realm.seal(100);
    let mut retention = realm.db.retention(RetentionPace::Eager);
    while immediate(retention.turn(WallTime(u64::MAX))).expect("the store answers") != RetentionProgress::Idle {}
    let gone = leaves(&realm).iter().filter(|leaf| leaf.is_thinned()).count();
    assert!(gone > 300, "{gone} batches were thinned");
    (realm, hashes)
}

fn hash_of(leaf: &annals_store::ArchivedBatch) -> Hash {
    annals_event::Header::read(leaf.header()).expect("a batch").1
}

#[test]
fn deleted_events_keep_their_proofs() {
    let (realm, hashes) = thinned();
    check(&realm.store, &hashes);
    let tiled = tile_all(&mut realm.db.tiler()).expect("nothing fails");
    assert_eq!(tiled, hashes.len() as u64 / 256 * 256);
    check(&realm.store, &hashes);
}

#[test]
fn a_restored_realm_rebuilds_its_tiles() {
    let (realm, hashes) = thinned();
    tile_all(&mut realm.db.tiler()).expect("nothing fails");
    let archived = leaves(&realm);
    let unlogged = unlogged(&realm, &archived);
    assert!(
        !unlogged.iter().any(|(key, _)| key.first() == Some(&0x2d)),
        "a backup has no tiles"
    );
    let (restored, _) = restore(&unlogged, &archived).expect("restored");
    assert_eq!(rows(&restored), []);
    check(&restored, &hashes);
    tile_all(&mut db(&restored).tiler()).expect("nothing fails");
    assert_eq!(rows(&restored), rows(&realm.store));
    check(&restored, &hashes);
}
