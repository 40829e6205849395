//! Archives that were changed, before and after they were taken in.

use annals_audit::AuditError;
use annals_event::{Batch, OwnerState, Thinned, ledger::Order};
use annals_evidence::Contradiction;
use annals_ids::{Epoch, LeafIndex, OwnerId, OwnerKind, ProcessId, TransferId};
use annals_store::{
    ArchivedBatch,
    layout::{
        archive::leaf_key,
        chunks,
        owners::{OwnerRecord, owner_key},
        retention::{Horizon, horizon_key, own_key},
        snapshots::Area,
    },
};

use crate::game::{Dice, Game, SHARD, commit};

/// Changes of one leaf that are tried of each game.
const CHANGES: usize = 30;

#[tokio::test]
async fn a_changed_batch_is_named() {
    for seed in 0..3 {
        let game = Game::play(1_000 + seed, 80).await;
        let mut dice = Dice(seed);
        for _ in 0..CHANGES {
            let leaf = dice.below(game.leaves.len());
            let mut bytes = game.leaves[leaf].1.clone();
            let place = dice.below(bytes.len());
            bytes[place] ^= 1 << dice.below(8);
            game.write(leaf, &bytes).await;
            let (_folder, mut index) = game.index().await;
            let found = index.catch_up(&game.store, |_| {}).await.expect_err("changed");
            game.write(leaf, &game.leaves[leaf].1).await;
            assert!(
                is_named(&game, leaf, &found),
                "seed {seed}, leaf {leaf}, byte {place}: {found:?}"
            );
        }
    }
}

/// Whether an error names the leaf that was changed. A change of the header alone leaves the batch well-formed: it shows at
/// the next batch of that log, whose predecessor's hash is another one, or, after the last one, by the tree.
fn is_named(game: &Game, leaf: usize, found: &AuditError) -> bool {
    let (at, _) = game.leaves[leaf];
    let is_next = |other: usize| {
        let (next, _) = game.leaves[other];
        next.owner == at.owner && next.batch == at.batch.next()
    };
    match found {
        AuditError::Changed { leaf: named, .. } => named.0 == leaf as u64,
        AuditError::Archive(_) => true,
        AuditError::Unchained {
            leaf: named, before, ..
        } => {
            let named = usize::try_from(named.0).expect("small");
            named == leaf || (is_next(named) && *before == at.batch)
        }
        AuditError::Tree { .. } => (leaf..game.leaves.len()).all(|other| !is_next(other)),
        _ => false,
    }
}

#[tokio::test]
async fn a_removed_batch_is_named() {
    let game = Game::play(21, 60).await;
    for leaf in 0..game.leaves.len() {
        let index = LeafIndex(leaf as u64);
        let range = annals_store::KeyRange::prefix(&leaf_key(SHARD, index));
        commit(&game.store, |transaction| transaction.clear_range(&range)).await;
        let (_folder, mut desk) = game.index().await;
        let found = desk.catch_up(&game.store, |_| {}).await.expect_err("removed");
        assert!(
            matches!(found, AuditError::LeafMissing(named) if named == index),
            "{leaf}: {found:?}"
        );
        game.write(leaf, &game.leaves[leaf].1).await;
    }
}

#[tokio::test]
async fn batches_in_one_anothers_place_are_named() {
    let game = Game::play(22, 60).await;
    for leaf in 1..game.leaves.len() {
        game.write(leaf - 1, &game.leaves[leaf].1).await;
        game.write(leaf, &game.leaves[leaf - 1].1).await;
        let (_folder, mut index) = game.index().await;
        let found = index.catch_up(&game.store, |_| {}).await.expect_err("reordered");
        let named = match found {
            AuditError::Unchained { leaf: named, .. } => named.0 + 1 == leaf as u64 || named.0 == leaf as u64,
            // Two logs' batches, each of which still follows the one before in its own.
            AuditError::Tree { .. } => game.leaves[leaf].0.owner != game.leaves[leaf - 1].0.owner,
            _ => false,
        };
        assert!(named, "{leaf}: {found:?}");
        game.write(leaf - 1, &game.leaves[leaf - 1].1).await;
        game.write(leaf, &game.leaves[leaf].1).await;
    }
}

#[tokio::test]
async fn what_is_cited_is_what_was_verified() {
    let game = Game::play(23, 120).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let serial = game.serials[0];
    let item = index.item(&game.store, serial).await.expect("known");
    for step in &item.steps {
        let asked = step.cited.asked.as_ref().expect("asked for");
        for cited in [step.cited.leaf, asked.leaf] {
            let leaf = usize::try_from(cited.0).expect("small");
            let mut bytes = game.leaves[leaf].1.clone();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            game.write(leaf, &bytes).await;
            let found = index.item(&game.store, serial).await.expect_err("changed");
            assert!(
                matches!(found, AuditError::Replaced { leaf, .. } if leaf == cited),
                "{found:?}"
            );
            game.write(leaf, &game.leaves[leaf].1).await;
        }
    }
}

#[tokio::test]
async fn another_archive_is_not_taken_for_the_same() {
    let (game, other) = (Game::play(24, 60).await, Game::play(25, 200).await);
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let found = index.catch_up(&other.store, |_| {}).await.expect_err("another");
    assert!(matches!(found, AuditError::Another), "{found:?}");
    let shorter = Game::play(24, 30).await;
    let found = index.catch_up(&shorter.store, |_| {}).await.expect_err("cut back");
    assert!(matches!(found, AuditError::Shorter { .. }), "{found:?}");
}

#[tokio::test]
async fn an_entry_that_nobody_asked_for_is_named() {
    for is_ordered in [false, true] {
        let mut game = Game::play(26, 60).await;
        let elsewhere = *game.serials.last().expect("an item");
        let order = is_ordered.then(|| Order::Void {
            of: TransferId::default(),
        });
        game.forge(elsewhere, order).await;
        game.forge(elsewhere, None).await;
        let (_folder, mut index) = game.index().await;
        index.catch_up(&game.store, |_| {}).await.expect("well-formed");
        let found = index.item(&game.store, elsewhere).await.expect_err("made up");
        let is_named = match found {
            AuditError::Contradiction(Contradiction::NotAsked { entry, .. }) => {
                is_ordered && entry == game.truths[game.truths.len() - 2].entry.number
            }
            AuditError::Contradiction(Contradiction::Astray { serial, .. }) => !is_ordered && serial == elsewhere,
            _ => false,
        };
        assert!(is_named, "{found:?}");
    }
}

/// What retention would leave of a batch.
fn thinned(bytes: &[u8]) -> Vec<u8> {
    let batch = Batch::read(bytes).expect("one");
    let thinned = ArchivedBatch::Thinned(Thinned::of(&batch).write());
    thinned.stored().into_owned()
}

/// The store says that an owner is a cell, and that its log has a floor at that batch.
async fn pretend_a_floor(game: &Game, owner: OwnerId, bytes: &[u8]) {
    let batch = Batch::read(bytes).expect("one");
    let mut floor = OwnerState::new(owner, OwnerKind::Cell);
    floor.tail = batch.tail();
    let mut own = Vec::new();
    floor.write_own(&mut own);
    let horizon = Horizon {
        leaf: LeafIndex(game.leaves.len() as u64),
        wall: batch.header.wall,
        area: Area::First,
        bytes: 0,
    };
    let record = OwnerRecord {
        kind: OwnerKind::Cell,
        shard: SHARD,
        epoch: Epoch(1),
        process: ProcessId(1),
    };
    commit(&game.store, |transaction| {
        for (key, chunk) in chunks(&own_key(SHARD, horizon.area, owner), &own) {
            transaction.set(&key, chunk)?;
        }
        transaction.set(&horizon_key(SHARD), &horizon.encode())?;
        transaction.set(&owner_key(owner), &record.encode())
    })
    .await;
}

/// Events are not let go of but by retention, which leaves alone what bases and the ledger did: whoever takes them out, and has
/// every hash as it was, is found.
#[tokio::test]
async fn a_batch_without_its_events_is_named() {
    for pretend in [false, true] {
        let game = Game::play(24, 60).await;
        let mut firsts = std::collections::BTreeSet::new();
        for (leaf, (at, bytes)) in game.leaves.iter().enumerate() {
            // Of the first batch of a log nobody knows yet whose it is.
            let is_first = firsts.insert(at.owner);
            if Batch::read(bytes).expect("one").events.is_empty() || (pretend && is_first) {
                continue;
            }
            game.write(leaf, &thinned(bytes)).await;
            if pretend {
                pretend_a_floor(&game, at.owner, bytes).await;
            }
            let (_folder, mut index) = game.index().await;
            let found = index.catch_up(&game.store, |_| {}).await.expect_err("let go of");
            let named = LeafIndex(leaf as u64);
            assert!(
                matches!(found, AuditError::Changed { leaf, .. } if leaf == named),
                "{leaf}: {found:?}"
            );
            game.write(leaf, bytes).await;
        }
    }
}
