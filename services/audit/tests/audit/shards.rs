//! One index over the archives of several shards.

use std::collections::BTreeMap;

use annals_audit::{AuditError, EntityLog, Index, past::Past};
use annals_db::ensure_shards;
use annals_event::Batch;
use annals_evidence::{Cut, Until};
use annals_ids::{OwnerId, Shard, WallTime};
use annals_store::{
    MemoryStore,
    layout::{
        archive::tree_key,
        owners::owner_key,
        shards::{count_key, encode_count},
    },
};

use crate::{
    game::{Game, commit},
    world::World,
};

/// Place of each batch in the order of the index: by the latest time of its shard up to there, then by shard and leaf.
fn order(game: &Game) -> Vec<(WallTime, Shard, u64)> {
    let mut latest: BTreeMap<Shard, WallTime> = BTreeMap::new();
    let seat = |place: usize| {
        let leaf = game.leaf_of(place);
        let wall = Batch::read(&game.leaves[place].1).unwrap().header.wall;
        let moment = latest.entry(leaf.shard).or_default();
        *moment = wall.max(*moment);
        (*moment, leaf.shard, leaf.leaf.0)
    };
    (0..game.leaves.len()).map(seat).collect()
}

/// Number of leaves of each shard among the batches that are in.
fn counted(seats: &[(WallTime, Shard, u64)], is_in: impl Fn(&(WallTime, Shard, u64)) -> bool) -> Cut {
    let mut leaves: BTreeMap<Shard, u64> = (0..3).map(|shard| (Shard(shard), 0)).collect();
    for (_, shard, leaf) in seats.iter().filter(|seat| is_in(seat)) {
        let own = leaves.get_mut(shard).unwrap();
        *own = (*own).max(leaf + 1);
    }
    leaves.into_iter().collect()
}

#[tokio::test]
async fn a_moment_is_a_prefix_of_one_order_of_all_batches() {
    for seed in 0..4 {
        let game = Game::play_on_shards(500 + seed, 120, 3).await;
        let (_folder, mut index) = game.index().await;
        let extent = index.catch_up(&game.store, |_| {}).await.unwrap();
        assert_eq!((extent.trees.len(), extent.leaves()), (3, game.leaves.len() as u64));
        let seats = order(&game);
        for (place, seat) in seats.iter().enumerate() {
            let until = index.until(game.leaves[place].0).await.unwrap();
            let cut = index.cut(Some(&until)).await.unwrap();
            let expected = counted(&seats, |other| other <= seat);
            assert_eq!(cut, expected, "seed {seed}, up to {}", game.leaf_of(place));
            for wall in [seat.0.0 - 1, seat.0.0] {
                let cut = index.cut(Some(&Until::Wall(WallTime(wall)))).await.unwrap();
                let expected = counted(&seats, |(moment, ..)| moment.0 <= wall);
                assert_eq!(cut, expected, "seed {seed}, {wall} ms");
            }
        }
        assert_eq!(
            index.cut(None).await.unwrap(),
            game.cut(game.leaves.len()),
            "seed {seed}"
        );
    }
}

#[tokio::test]
async fn shards_that_are_added_later_are_taken_in() {
    let mut world = World::new(MemoryStore::new().store()).await;
    world.play(1, 40).await;
    world.archive().await;
    let mut index = Index::over(MemoryStore::new().store()).await.unwrap();
    let before = index.catch_up(&world.store, |_| {}).await.unwrap();
    assert_eq!(before.trees.keys().collect::<Vec<_>>(), [&Shard(0)]);
    ensure_shards(&world.store, 3).await.unwrap();
    let log = world.found(Shard(2)).await;
    world.create(log);
    let entity = *world.logs[log].state.entities.keys().next().unwrap();
    world.hand_over(log, entity, 0);
    world.archive().await;
    let after = index.catch_up(&world.store, |_| {}).await.unwrap();
    let sizes = after.trees.iter().map(|(shard, tree)| (shard.0, tree.size));
    let alone = world.frozen.iter().filter(|batch| batch.owner == world.logs[log].owner);
    let alone = alone.count() as u64;
    assert_eq!(
        sizes.collect::<Vec<_>>(),
        [(0, world.frozen.len() as u64 - alone), (1, 0), (2, alone)]
    );
    let found = EntityLog::find(&index, &world.store, entity).await.unwrap();
    let shards: Vec<Shard> = found.events.iter().map(|event| event.leaf.shard).collect();
    assert_eq!(
        shards,
        [2, 2, 0, 2].map(Shard),
        "created, handed over, taken over, and gone"
    );
    let past = Past::at(&index, &world.store, &index.cut(None).await.unwrap()).await;
    let past = past.unwrap();
    for log in &world.logs {
        assert_eq!(
            past.owners()[&log.owner].hash(),
            log.state.hash(),
            "owner {}",
            log.owner
        );
    }
}

/// An owner belongs to its shard for life.
#[tokio::test]
async fn a_log_that_continues_on_another_shard_is_named() {
    let mut game = Game::play_on_shards(510, 40, 3).await;
    game.moved.insert(OwnerId(2), Shard(1));
    let before = game.leaves.len();
    game.play_on(40).await;
    let (_folder, mut index) = game.index().await;
    let found = index.catch_up(&game.store, |_| {}).await.unwrap_err();
    let first = (before..game.leaves.len()).find(|place| game.leaves[*place].0.owner == OwnerId(2));
    let expected = game.leaf_of(first.unwrap());
    // Shards are read in their order: its own log is not known yet, and does not begin there.
    assert!(
        matches!(found, AuditError::Unchained { leaf, .. } if leaf == expected),
        "{found:?}"
    );
}

/// An index that knows the log on its own shard refuses its continuation on another one, even if the chain fits.
#[tokio::test]
async fn a_known_log_that_continues_on_another_shard_is_named() {
    let mut game = Game::play_on_shards(511, 40, 3).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.unwrap();
    game.moved.insert(OwnerId(2), Shard(1));
    game.play_on(40).await;
    let found = index.catch_up(&game.store, |_| {}).await.unwrap_err();
    assert!(
        matches!(&found, AuditError::Changed { what, .. } if what == "its log is on shard 2"),
        "{found:?}"
    );
}

/// The log of the ledger is on shard 0.
#[tokio::test]
async fn an_entry_of_the_ledger_on_another_shard_is_named() {
    let mut game = Game::play_on_shards(512, 40, 3).await;
    let serial = *game.serials.last().unwrap();
    game.ledger = OwnerId(7);
    game.forge(serial, None).await;
    let (_folder, mut index) = game.index().await;
    let found = index.catch_up(&game.store, |_| {}).await.unwrap_err();
    let forged = game.leaf_of(game.leaves.len() - 1);
    assert_eq!(forged.shard, Shard(1));
    assert!(
        matches!(&found, AuditError::Changed { leaf, what, .. } if *leaf == forged && what.contains("of the ledger")),
        "{found:?}"
    );
}

/// Nothing that is removed from the store hides a shard that the index knows.
#[tokio::test]
async fn a_shard_that_was_removed_is_named() {
    let game = Game::play_on_shards(513, 60, 3).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.unwrap();
    commit(&game.store, |transaction| {
        transaction.set(&count_key(), &encode_count(1))?;
        transaction.clear(&owner_key(OwnerId(2)))
    })
    .await;
    let extent = index.catch_up(&game.store, |_| {}).await.unwrap();
    assert_eq!(extent.leaves(), game.leaves.len() as u64);
    commit(&game.store, |transaction| transaction.clear(&tree_key(Shard(2)))).await;
    let found = index.catch_up(&game.store, |_| {}).await.unwrap_err();
    let removed = Shard(2);
    assert!(
        matches!(found, AuditError::Shorter { shard, now: 0, .. } if shard == removed),
        "{found:?}"
    );
}
