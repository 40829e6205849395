//! Verifying hashes, numbers, seals, chains, tiles and checkpoints: a change in any layer is found and named, by a
//! sweep as by a whole verification, and an interrupted sweep gives the same result as an uninterrupted one.

use annals_audit::{
    archive::Fault,
    verify::{
        CheckpointFault, Finding, Kept, OpeningFault, Swept, TileFault, VerifiedPrefix, VerifyError, sweep, verify,
    },
};
use annals_def::split_mix;
use annals_event::{Batch, FrozenBatch};
use annals_host::log_source::Source;
use annals_ids::{Hash, LeafIndex, LogPosition};
use annals_proof::{Checkpoint, Frontier, KeyKind, KeyName, SignedNote, SignerKey, TreeHead, succession::KeyRecord};
use annals_store::{
    MemoryStore,
    layout::{
        archive::{self, Tree},
        checkpoints,
        owners::{self, Cursor, OpeningRecord},
        tiles,
    },
};
use tempfile::TempDir;

use super::world::{SHARD, World};

/// The bytes of a header with the batch's owner and number: its realm is called "test".
const WHOSE: std::ops::Range<usize> = 7..27;

/// Enough steps for more than a tile.
const STEPS: usize = 260;

/// A realm with tiles, and with signed checkpoints of some sizes.
async fn signed(seed: u64) -> World {
    let world = World::generate(MemoryStore::new().store(), seed, STEPS).await;
    world.tile().await;
    let key = key(7);
    let record = KeyRecord {
        key: key.verifier(),
        change: None,
    };
    world
        .edit(&checkpoints::signer_key(SHARD, 0), Some(record.to_string().as_bytes()))
        .await;
    for size in [1, 100, 256, 257, world.frozen.len() as u64] {
        sign(&world, size, root(&world, size), &key).await;
    }
    world
}

fn key(seed: u8) -> SignerKey {
    let name = KeyName::new("example.com/test").unwrap();
    SignerKey::from_seed(name, KeyKind::Note, &[seed; 32])
}

/// The root of the first leaves.
fn root(world: &World, size: u64) -> Hash {
    let mut tree = Frontier::new();
    let first = &world.frozen[..usize::try_from(size).unwrap()];
    first.iter().for_each(|batch| tree.push(batch.hash));
    tree.root()
}

async fn sign(world: &World, size: u64, root: Hash, key: &SignerKey) {
    let checkpoint = Checkpoint {
        origin: "example.com/test".to_owned(),
        head: TreeHead { size, root },
        extensions: Vec::new(),
    };
    let mut note = SignedNote::new(checkpoint.to_string()).unwrap();
    note.sign(key, 1);
    let row = checkpoints::checkpoint_key(SHARD, size);
    world.edit(&row, Some(note.to_string().as_bytes())).await;
}

/// A sweep from the beginning, with all places between its pieces.
async fn swept(world: &World) -> (Swept, Vec<VerifiedPrefix>) {
    let mut places = vec![VerifiedPrefix::begin(SHARD)];
    let swept = sweep(&world.store, VerifiedPrefix::begin(SHARD), |place, _| {
        places.push(place.clone());
        Ok(())
    });
    (swept.await.unwrap(), places)
}

async fn go_on(world: &World, from: &VerifiedPrefix) -> Result<Swept, VerifyError> {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("place");
    from.write(&file).unwrap();
    let place = VerifiedPrefix::read(&file).unwrap().unwrap();
    sweep(&world.store, place, |_, _| Ok(())).await
}

fn at(batch: &FrozenBatch) -> LogPosition {
    LogPosition {
        owner: batch.owner,
        batch: batch.number,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_of_an_intact_archive_is_clean_wherever_it_resumes() {
    for (seed, leaves) in [(0, 0), (1, 30), (2, 64), (3, 100)] {
        let world = signed(seed).await;
        if leaves > 0 {
            assert!(world.seal(leaves).await > 1);
        }
        let (whole, places) = swept(&world).await;
        let all = world.frozen.len() as u64;
        assert_eq!(
            (&whole.findings[..], whole.leaves),
            (&[][..], all),
            "seed {seed}: {whole}"
        );
        let report = verify(&Source::archive(world.store.clone())).await.unwrap();
        assert!(report.is_clean(), "seed {seed}: {report}");
        assert!(
            whole.to_string().contains(&report.roots[&SHARD].1.to_string()),
            "{whole}"
        );
        let bytes: u64 = world.frozen.iter().map(|batch| batch.bytes.len() as u64).sum();
        assert_eq!(whole.bytes, bytes);
        assert!(leaves == 0 || places.len() > 3, "{} places", places.len());
        for place in &places {
            let rest = go_on(&world, place).await.unwrap();
            assert!(rest.findings.is_empty(), "seed {seed}, from {}: {rest}", place.leaves());
            assert_eq!(rest.leaves, all - place.leaves());
            assert_eq!(format!("{:?}", rest.prefix.leaves()), all.to_string());
            let said = rest.to_string();
            assert_eq!(said.lines().next(), whole.to_string().lines().next(), "the same tree");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_continues_while_the_archive_grows() {
    let mut world = signed(5).await;
    let mut place = swept(&world).await.0.prefix;
    for round in 0..4 {
        let before = world.frozen.len() as u64;
        world.play(50 + round, 90).await;
        world.archive().await;
        if round % 2 == 1 {
            world.tile().await;
            world.seal(70).await;
        }
        let rest = go_on(&world, &place).await.unwrap();
        assert!(rest.findings.is_empty(), "{rest}");
        assert_eq!(rest.leaves, world.frozen.len() as u64 - before);
        place = rest.prefix;
    }
    // Leaves verified before their tile was full are compared with it once it is.
    let row = tiles::tile_key(SHARD, 0, 1);
    let stored = world.row(&row).await.expect("there are more than 512 leaves");
    let mut hashes = tiles::decode_tile(Some(&stored)).unwrap();
    hashes[250] = Hash([9; 32]);
    let place = swept(&signed(5).await).await.0.prefix;
    world.edit(&row, Some(&tiles::encode_tile(&hashes))).await;
    let found = go_on(&world, &place).await.unwrap().findings;
    assert!(found.contains(&tile(0, 1, TileFault::Other)), "{found:?}");
}

fn tile(level: u8, index: u64, fault: TileFault) -> Finding {
    Finding::Tile {
        shard: SHARD,
        level,
        index,
        fault,
    }
}

fn damaged(batch: &FrozenBatch, fault: Fault) -> Finding {
    Finding::Batch {
        at: at(batch),
        fault,
        subjects: Vec::new(),
    }
}

/// Sweep and verification name the same batch first.
async fn assert_first(world: &World, is_it: impl Fn(&Finding) -> bool, what: &str) {
    let (found, _) = swept(world).await;
    let first = found.findings.first();
    assert!(first.is_some_and(&is_it), "{what}: {first:?}");
    let report = verify(&Source::archive(world.store.clone())).await.unwrap();
    assert!(report.findings.iter().any(&is_it), "{what}: {report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_byte_is_found_in_its_batch_or_the_next_of_the_log() {
    for seed in 10..13 {
        let world = signed(seed).await;
        let mut dice = split_mix(seed);
        for _ in 0..40 {
            let place = dice() as usize % world.frozen.len();
            let batch = &world.frozen[place];
            let mut bytes = batch.bytes.clone();
            let byte = dice() as usize % bytes.len();
            bytes[byte] ^= 1 << (dice() % 8);
            let leaf = LeafIndex(place as u64);
            world.replace(leaf, &bytes).await;
            let (found, places) = swept(&world).await;
            let next = world.frozen[place..]
                .iter()
                .skip(1)
                .find(|next| next.owner == batch.owner);
            let is_named = match &found.findings[..] {
                [Finding::Batch { at: found, .. }, ..] => {
                    *found == at(batch) || next.is_some_and(|next| *found == at(next))
                }
                [Finding::Opening { at: found, .. }, ..] => *found == at(batch),
                [
                    Finding::LeafMissing { .. } | Finding::Edge { .. } | Finding::Tile { .. },
                    ..,
                ] => true,
                [Finding::Piece { leaf: first, .. }, ..] => first.0 <= leaf.0,
                _ => false,
            };
            // The batch of an unsealed leaf is known from its header only.
            let is_named = is_named || WHOSE.contains(&byte);
            assert!(
                is_named,
                "seed {seed}, byte {byte} of leaf {leaf}: {:?}",
                found.findings
            );
            for before in places.iter().filter(|before| before.leaves() <= leaf.0) {
                let again = go_on(&world, before).await.unwrap();
                assert_eq!(again.findings, found.findings, "from {}", before.leaves());
            }
            world.replace(leaf, &batch.bytes).await;
        }
        assert!(swept(&world).await.0.findings.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_are_checked_against_each_other() {
    let world = signed(20).await;
    let middle = world.frozen.len() / 2;
    let batch = world.frozen[middle].clone();
    let leaf = LeafIndex(middle as u64);
    // An event is replaced, with the original header.
    let mut bytes = batch.bytes.clone();
    *bytes.last_mut().unwrap() ^= 1;
    world.replace(leaf, &bytes).await;
    let is_damaged = |finding: &Finding| matches!(finding, Finding::Batch { at: found, .. } if *found == at(&batch));
    assert_first(&world, is_damaged, "events").await;
    world.replace(leaf, &batch.bytes).await;
    // Two batches are swapped.
    let next = world.frozen[middle + 1..]
        .iter()
        .find(|next| next.owner == batch.owner)
        .unwrap();
    let other = world.leaf(next).await;
    world.replace(leaf, &next.bytes).await;
    world.replace(other, &batch.bytes).await;
    let (found, _) = swept(&world).await;
    assert_eq!(found.findings, [damaged(next, Fault::Unchained)]);
    world.replace(leaf, &batch.bytes).await;
    world.replace(other, &next.bytes).await;
    // A leaf is deleted.
    world.edit(&archive::leaf_key(SHARD, leaf), None).await;
    let (found, _) = swept(&world).await;
    assert!(
        matches!(found.findings[..], [Finding::LeafMissing { leaf: lost, .. }] if lost == leaf),
        "{found}"
    );
    world.replace(leaf, &batch.bytes).await;
    assert!(swept(&world).await.0.findings.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn store_records_of_logs_are_checked_against_the_logs() {
    let world = signed(20).await;
    let batch = world.frozen[world.frozen.len() / 2].clone();
    // An epoch was opened with another batch, or by none.
    let opened = world
        .frozen
        .iter()
        .find(|batch| batch.opens && batch.epoch.0 > 1)
        .unwrap();
    let row = owners::opening_key(opened.owner, opened.epoch);
    let record = OpeningRecord::decode(&world.row(&row).await.unwrap()).unwrap();
    let hash = Hash([3; 32]);
    for (value, fault) in [
        (Some(OpeningRecord { hash, ..record }.encode()), OpeningFault::Other),
        (None, OpeningFault::Unrecorded),
    ] {
        world.edit(&row, value.as_deref()).await;
        let (at, epoch) = (at(opened), opened.epoch);
        let expected = Finding::Opening { at, epoch, fault };
        assert_first(&world, |found| *found == expected, "an opening").await;
    }
    world.edit(&row, Some(&record.encode())).await;
    // The cursor.
    let row = owners::cursor_key(batch.owner);
    let kept = world.row(&row).await.unwrap();
    let cursor = Cursor::decode(Some(&kept)).unwrap();
    world.edit(&row, Some(&Cursor { hash, ..cursor }.encode())).await;
    assert_first(
        &world,
        |found| matches!(found, Finding::Cursor { at } if at.owner == batch.owner),
        "a cursor",
    )
    .await;
    world.edit(&row, Some(&kept)).await;
    // The edge of the tree.
    let row = archive::tree_key(SHARD);
    let kept = world.row(&row).await.unwrap();
    let tree = Tree::decode(Some(&kept)).unwrap();
    let mut peaks = tree.peaks.clone();
    *peaks.last_mut().unwrap() = hash;
    world.edit(&row, Some(&Tree { peaks, ..tree }.encode())).await;
    assert_first(&world, |found| matches!(found, Finding::Edge { .. }), "the edge").await;
    world.edit(&row, Some(&kept)).await;
    assert!(swept(&world).await.0.findings.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tiles_and_checkpoints_are_checked_against_the_leaves() {
    let world = signed(30).await;
    for level in [0, 1] {
        let row = tiles::tile_key(SHARD, level, 0);
        let kept = world.row(&row).await.expect("a tile");
        let mut hashes = tiles::decode_tile(Some(&kept)).unwrap();
        hashes[0] = Hash([4; 32]);
        world.edit(&row, Some(&tiles::encode_tile(&hashes))).await;
        assert_first(&world, |found| *found == tile(level, 0, TileFault::Other), "a tile").await;
        if level == 1 {
            world.edit(&row, None).await;
            assert_first(&world, |found| *found == tile(1, 0, TileFault::Missing), "no tile").await;
        }
        world.edit(&row, Some(&kept)).await;
    }
    let checkpoint = |size, fault| Finding::Checkpoint {
        shard: SHARD,
        size,
        fault,
    };
    sign(&world, 100, Hash([5; 32]), &key(7)).await;
    assert_first(
        &world,
        |found| *found == checkpoint(100, CheckpointFault::Root),
        "another root",
    )
    .await;
    sign(&world, 100, root(&world, 100), &key(8)).await;
    let is_strange = |found: &Finding| {
        matches!(
            found,
            Finding::Checkpoint {
                size: 100,
                fault: CheckpointFault::Untrusted(_),
                ..
            }
        )
    };
    assert_first(&world, is_strange, "another key").await;
    sign(&world, 100, root(&world, 100), &key(7)).await;
    let beyond = world.frozen.len() as u64 + 1;
    sign(&world, beyond, Hash([5; 32]), &key(7)).await;
    assert_first(
        &world,
        |found| *found == checkpoint(beyond, CheckpointFault::Beyond),
        "beyond",
    )
    .await;
    world.edit(&checkpoints::checkpoint_key(SHARD, beyond), None).await;
    assert!(swept(&world).await.0.findings.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_refuses_an_archive_changed_behind_it() {
    let (world, other) = (signed(40).await, signed(41).await);
    let (_, places) = swept(&world).await;
    let place = places.last().unwrap();
    let refused = |found: Result<Swept, VerifyError>| matches!(found, Err(VerifyError::Changed { .. }));
    assert!(refused(go_on(&other, place).await), "another realm");
    // The last batch of a log is replaced.
    let last = world.frozen.last().unwrap();
    let leaf = world.leaf(last).await;
    world.replace(leaf, &other_wall(last)).await;
    assert!(refused(go_on(&world, place).await), "a head is another one");
    world.edit(&archive::leaf_key(SHARD, leaf), None).await;
    assert!(refused(go_on(&world, place).await), "a head is gone");
    world.replace(leaf, &last.bytes).await;
    let row = archive::tree_key(SHARD);
    let mut tree = Frontier::new();
    world.frozen[..10].iter().for_each(|batch| tree.push(batch.hash));
    let (size, peaks) = (tree.size(), tree.peaks().to_vec());
    world.edit(&row, Some(&Tree { size, peaks }.encode())).await;
    assert!(refused(go_on(&world, place).await), "the archive was truncated");
}

/// A batch with another wall time: valid but for its hash.
fn other_wall(batch: &FrozenBatch) -> Vec<u8> {
    let wall = Batch::read(&batch.bytes).unwrap().header.wall.0.to_le_bytes();
    let mut bytes = batch.bytes.clone();
    let byte = bytes.windows(8).position(|bytes| bytes == wall).unwrap();
    bytes[byte] ^= 1;
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chain_reveals_a_batch_replaced_together_with_the_tree() {
    let world = World::generate(MemoryStore::new().store(), 60, 60).await;
    let place = world.frozen.len() / 2;
    let batch = &world.frozen[place];
    let bytes = other_wall(batch);
    world.replace(LeafIndex(place as u64), &bytes).await;
    let mut tree = Frontier::new();
    for (number, kept) in world.frozen.iter().enumerate() {
        let hash = if number == place {
            Batch::read(&bytes).unwrap().hash
        } else {
            kept.hash
        };
        tree.push(hash);
    }
    let (size, peaks) = (tree.size(), tree.peaks().to_vec());
    world
        .edit(&archive::tree_key(SHARD), Some(&Tree { size, peaks }.encode()))
        .await;
    let next = world.frozen[place + 1..]
        .iter()
        .find(|next| next.owner == batch.owner)
        .unwrap();
    let (found, _) = swept(&world).await;
    assert_eq!(found.findings, [damaged(next, Fault::Unchained)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_batch_below_an_unchanged_tile_is_refused() {
    let (sealed, world) = (signed(42).await, signed(42).await);
    assert!(sealed.seal(64).await > 3);
    let (_, places) = swept(&sealed).await;
    let place = places.iter().find(|place| place.leaves() == 256).unwrap();
    assert!(
        go_on(&world, place).await.unwrap().findings.is_empty(),
        "it is the same archive"
    );
    let batch = &world.frozen[255];
    world.replace(LeafIndex(255), &other_wall(batch)).await;
    assert!(matches!(
        go_on(&world, place).await,
        Err(VerifyError::Changed { leaves: 256 })
    ));
}

#[tokio::test]
async fn contradictory_kept_checkpoints_are_reported() {
    let world = World::generate(MemoryStore::new().store(), 60, 60).await;
    let mut tree = Frontier::new();
    let leaves = &world.frozen[..world.frozen.len() / 2];
    leaves.iter().for_each(|batch| tree.push(batch.hash));
    let (size, root) = (tree.size(), tree.root());
    let (own, other) = (
        TreeHead { size, root },
        TreeHead {
            size,
            root: Hash([7; 32]),
        },
    );
    for (kept, wrong) in [
        (vec![own, own], 0),
        (vec![own, other], 1),
        (vec![other, own], 1),
        (vec![other], 1),
    ] {
        let place = VerifiedPrefix::begin(SHARD).against(&Kept::new(kept));
        let swept = sweep(&world.store, place, |_, _| Ok(())).await.unwrap();
        let is_kept = |finding: &&Finding| matches!(finding, Finding::Kept { size: found, .. } if *found == size);
        assert_eq!(swept.findings.iter().filter(is_kept).count(), wrong, "{swept}");
        assert_eq!(swept.findings.len(), wrong, "{swept}");
    }
}
