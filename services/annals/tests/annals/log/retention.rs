//! Verifying logs from which much was deleted by retention: the rest is intact, and deleted events are not reported as
//! missing.

use annals::tail::{Tail, TailPlan};
use annals_audit::{
    replay::{Extent, ReplayError, replay},
    verify::{Finding, verify},
};
use annals_db::{read_floor, read_horizon};
use annals_host::log_source::Source;
use annals_ids::{BatchNumber, LogPosition};
use annals_store::{KeyRange, MemoryStore, layout::retention as layout};

use super::world::{SHARD, World};

const STEPS: usize = 160;

/// A realm that has deleted everything sealed, with its report from before.
async fn thinned(seed: u64) -> (World, Source, String) {
    let world = World::generate(MemoryStore::new().store(), seed, STEPS).await;
    assert!(world.seal(30).await > 2);
    let source = Source::archive(world.store.clone());
    let before = verify(&source).await.unwrap();
    assert!(before.is_clean(), "seed {seed}: {before}");
    assert!(!before.to_string().contains("deleted by retention"), "{before}");
    let root = before.roots[&SHARD].1.to_string();
    world.apply_retention().await;
    (world, source, root)
}

#[tokio::test]
async fn the_events_left_by_retention_verify_and_replay() {
    for seed in 0..12 {
        let (world, source, root) = thinned(seed).await;
        let report = verify(&source).await.unwrap();
        let text = report.to_string();
        assert!(report.is_clean(), "seed {seed}: {text}");
        assert!(text.contains(&root), "seed {seed}: another tree: {text}");
        assert!(
            text.contains("were deleted by retention, none of them closed after @"),
            "{text}"
        );
        for log in &world.logs {
            let replayed = replay(&source, log.owner, None, Extent::Archive).await.unwrap();
            assert_eq!(
                (replayed.at.batch, replayed.state),
                (log.state.tail.batch, log.state.hash())
            );
            assert_eq!(replayed.events, log.state.tail.event.0);
        }
    }
}

#[tokio::test]
async fn a_position_deleted_by_retention_is_refused() {
    let (world, source, _) = thinned(3).await;
    let owner = world.logs[0].owner;
    let floor = read_floor(&world.store, SHARD, owner, BatchNumber(0))
        .await
        .unwrap()
        .unwrap();
    let batch = floor.tail.batch;
    let at = replay(&source, owner, Some(batch), Extent::Archive).await.unwrap();
    assert_eq!(at.state, floor.hash());
    let refused = replay(&source, owner, Some(BatchNumber(batch.0 - 1)), Extent::Archive).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(&refused, ReplayError::Deleted { floor, .. } if *floor == batch),
        "{refused}"
    );
    assert!(refused.to_string().contains("deleted by retention"), "{refused}");
    let plan = TailPlan {
        events: 10_000,
        ..TailPlan::default()
    };
    let lines = Tail::read(&source, plan).await.unwrap().lines();
    let note = format!("note: the events of owner {owner} up to batch {batch} were deleted by retention");
    assert!(lines.contains(&note), "{lines:?}");
    let begins = format!("{owner}@");
    let printed = lines
        .iter()
        .filter_map(|line| line.strip_prefix(&begins)?.split(' ').next());
    let first = printed.map(|number| number.parse::<u64>().unwrap()).min();
    assert!(first.is_none_or(|first| first > batch.0), "{lines:?}");
}

#[tokio::test]
async fn a_replaced_floor_is_found() {
    let (world, source, _) = thinned(4).await;
    let owner = world.logs[1].owner;
    let horizon = read_horizon(&world.store, SHARD).await.unwrap().unwrap();
    let batch = read_floor(&world.store, SHARD, owner, BatchNumber(0))
        .await
        .unwrap()
        .unwrap()
        .tail
        .batch;
    let key = layout::own_key(SHARD, horizon.area, owner);
    // The row of another owner, as a manual restoration might put it there.
    let other = layout::own_key(SHARD, horizon.area, world.logs[0].owner);
    let transaction = world.store.begin();
    let rows = transaction
        .get_range(&KeyRange::prefix(&other), 10, annals_store::ScanOrder::Forward)
        .await
        .unwrap()
        .rows;
    transaction.clear_range(&KeyRange::prefix(&key)).unwrap();
    for (place, value) in rows {
        transaction
            .set(&[&key[..], &place[key.len()..]].concat(), &value)
            .unwrap();
    }
    transaction.commit().await.unwrap();
    let report = verify(&source).await.unwrap();
    assert!(!report.is_clean(), "owner {owner}, batch {batch}: {report}");
}

#[tokio::test]
async fn a_log_without_protected_events_is_found() {
    let (world, source, _) = thinned(5).await;
    // The horizon is set back: nothing stands for what is gone.
    let transaction = world.store.begin();
    transaction.clear(&layout::horizon_key(SHARD)).unwrap();
    transaction.commit().await.unwrap();
    let report = verify(&source).await.unwrap();
    let at = LogPosition {
        owner: world.logs[0].owner,
        batch: BatchNumber(1),
    };
    let is_named = |finding: &Finding| matches!(finding, Finding::Batch { at: found, fault: annals_audit::archive::Fault::Deleted, .. } if found.batch == at.batch);
    assert!(report.findings.iter().any(is_named), "{report}");
}
