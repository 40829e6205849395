//! Walks over one log of an archive, and the realm's owners.

use annals_audit::{
    archive::{Fault, LogWalk},
    replay,
};
use annals_ids::{BatchNumber, Hash};
use annals_store::{
    MemoryStore,
    layout::owners::{self, Cursor},
};

use crate::world::{SHARD, World};

/// A log of which very much is missing is not read to its end; the last step says so, and that it was not read.
#[tokio::test]
async fn a_walk_that_ends_early_says_so() {
    let world = World::generate(MemoryStore::new().store(), 1, 10).await;
    let (owner, last) = (world.logs[0].owner, world.last(world.logs[0].owner));
    let cursor = Cursor {
        batch: BatchNumber(last.0 + 20_000),
        hash: Hash([7; 32]),
        event: world.logs[0].state.tail.event,
        epoch: world.logs[0].imprint.epoch,
    };
    world.edit(&owners::cursor_key(owner), Some(&cursor.encode())).await;
    let mut walk = LogWalk::begin(&world.store, SHARD, owner).await.unwrap();
    let mut faults = Vec::new();
    while let Some(step) = walk.next().await.unwrap() {
        faults.extend(step.fault);
    }
    assert!(faults.len() < 20_000, "{} batches were looked up", faults.len());
    let (end, missing) = faults.split_last().unwrap();
    assert_eq!(*end, Fault::TooMany);
    assert!(missing.iter().all(|fault| *fault == Fault::Missing));
}

#[tokio::test]
async fn every_owner_of_a_realm_is_listed() {
    let world = World::new(MemoryStore::new().store()).await;
    let expected: Vec<_> = world.logs.iter().map(|log| log.owner).collect();
    assert_eq!(replay::owners(&world.store).await.unwrap(), expected);
}
