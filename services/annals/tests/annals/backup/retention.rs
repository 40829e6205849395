//! Backups of realms with retention: one made before reaches back, one made after contains what is left, and says so.

use annals::backup::{
    check::check,
    create::create,
    manifest::Manifest,
    restore::{RestoreFailed, Restored, Until, restore},
    target::Target,
};
use annals_audit::verify::verify;
use annals_db::{RestoreError, read_horizon};
use annals_host::log_source::Source;
use annals_ids::WallTime;
use annals_store::{MemoryStore, Store};

use super::world::{REALM, SHARD, World};

async fn restored(target: &Target, manifest: &Manifest, until: Until) -> Result<(Store, Restored), RestoreFailed> {
    let store = MemoryStore::new().store();
    let restored = restore(target, manifest, until, ("beside", WallTime(9)), store.clone()).await?;
    Ok((store, restored))
}

async fn check_restored(world: &World, target: &Target, manifest: &Manifest) {
    let checked = check(target, manifest).await.unwrap();
    assert!(checked.is_clean(), "{checked}");
    let (store, restored) = restored(target, manifest, Until::End).await.unwrap();
    for log in &world.logs {
        assert_eq!(restored.states[&log.owner].1, log.state.hash());
        assert_eq!(checked.states[&log.owner].1, log.state.hash());
    }
    let report = verify(&Source::archive(store)).await.unwrap();
    assert!(report.is_clean(), "{report}");
}

#[tokio::test]
async fn backups_from_before_and_after_retention_are_restored() {
    let (mut lost, mut written) = (0, 0);
    for seed in 0..8 {
        let mut world = World::generate(MemoryStore::new().store(), seed, 120).await;
        world.seal(30).await;
        let target = Target::memory();
        let before = create(&world.store, REALM, WallTime(77), &target).await.unwrap();
        lost += world.apply_retention().await;
        let after = create(&world.store, REALM, WallTime(78), &target).await.unwrap();
        assert_eq!(
            after.manifest.shards[0].root, before.manifest.shards[0].root,
            "seed {seed}"
        );
        written += after.written;
        for manifest in [&before.manifest, &after.manifest] {
            check_restored(&world, &target, manifest).await;
        }
        // The realm and its backups continue.
        world.play(seed + 100, 90).await;
        world.archive().await;
        world.seal(30).await;
        let third = create(&world.store, REALM, WallTime(79), &target).await.unwrap();
        assert!(third.reused > 0, "what was not touched is there already");
        check_restored(&world, &target, &third.manifest).await;
        lost += world.apply_retention().await;
        let last = create(&world.store, REALM, WallTime(80), &target).await.unwrap();
        check_restored(&world, &target, &last.manifest).await;
    }
    assert!(lost > 0 && written > 8, "what was thinned is another piece");
}

#[tokio::test]
async fn a_cut_before_the_horizon_is_refused() {
    let world = World::generate(MemoryStore::new().store(), 5, 120).await;
    world.seal(30).await;
    let target = Target::memory();
    let before = create(&world.store, REALM, WallTime(77), &target).await.unwrap();
    world.apply_retention().await;
    let after = create(&world.store, REALM, WallTime(78), &target).await.unwrap();
    let horizon = read_horizon(&world.store, SHARD).await.unwrap().unwrap().leaf.0 + 1;
    let refused = restored(&target, &after.manifest, Until::Leaves(20))
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(
        matches!(&refused, RestoreFailed::Store(RestoreError::BeforeHorizon { horizon: found, .. }) if *found == horizon),
        "{refused:?}"
    );
    let (_, early) = restored(&target, &before.manifest, Until::Leaves(20)).await.unwrap();
    assert!(early.leaves >= 20 && early.leaves < horizon);
    let (_, late) = restored(&target, &after.manifest, Until::Leaves(horizon))
        .await
        .unwrap();
    assert!(late.leaves >= horizon);
}

#[tokio::test]
async fn a_segment_without_protected_events_is_reported() {
    let world = World::generate(MemoryStore::new().store(), 6, 120).await;
    world.seal(30).await;
    world.apply_retention().await;
    // The rows that stand for deleted events are not backed up.
    let transaction = world.store.begin();
    transaction
        .clear(&annals_store::layout::retention::horizon_key(SHARD))
        .unwrap();
    transaction.commit().await.unwrap();
    let target = Target::memory();
    let made = create(&world.store, REALM, WallTime(78), &target).await.unwrap();
    let checked = check(&target, &made.manifest).await.unwrap();
    assert!(
        checked.to_string().contains("are missing, and no floor replaces them"),
        "{checked}"
    );
    let refused = restored(&target, &made.manifest, Until::End)
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(
        matches!(refused, RestoreFailed::Store(RestoreError::Deleted { .. })),
        "{refused:?}"
    );
}
