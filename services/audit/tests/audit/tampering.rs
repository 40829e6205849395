//! Archives that were changed, before and after they were taken in.

use annals_audit::AuditError;
use annals_event::ledger::Order;
use annals_evidence::Contradiction;
use annals_ids::{LeafIndex, TransferId};
use annals_store::layout::archive::leaf_key;

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
