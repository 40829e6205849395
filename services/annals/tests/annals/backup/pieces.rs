//! The pieces of a backup: nothing is stored twice, and no damage is missed.

use annals::backup::{
    check::check,
    content::read_rows,
    create::{CreateError, create},
    manifest::{Manifest, ManifestError},
    restore::{RestoreFailed, Restored, Until, restore},
    target::Target,
};
use annals_audit::verify::verify;
use annals_host::log_source::Source;
use annals_ids::{LogPosition, WallTime};
use annals_store::{MemoryStore, Store, layout::archive};

use super::world::{REALM, SHARD, World};

const STEPS: usize = 120;

async fn world(seed: u64) -> World {
    World::generate(MemoryStore::new().store(), seed, STEPS).await
}

async fn restored(target: &Target, manifest: &Manifest, until: Until) -> Result<(Store, Restored), RestoreFailed> {
    let store = MemoryStore::new().store();
    let restored = restore(target, manifest, until, ("beside", WallTime(9)), store.clone()).await?;
    Ok((store, restored))
}

#[tokio::test]
async fn a_restored_realm_equals_the_original() {
    for seed in 0..6 {
        let world = world(seed).await;
        if seed % 2 == 0 {
            assert!(world.seal(50).await > 0);
        }
        let target = Target::memory();
        let made = create(&world.store, REALM, WallTime(77), &target).await.unwrap();
        assert_eq!(made.manifest.leaves(), world.frozen.len() as u64);
        let checked = check(&target, &made.manifest).await.unwrap();
        assert!(checked.is_clean(), "seed {seed}: {checked}");
        let (store, restored) = restored(&target, &made.manifest, Until::End).await.unwrap();
        for log in &world.logs {
            let state = (
                LogPosition {
                    owner: log.owner,
                    batch: log.state.tail.batch,
                },
                log.state.hash(),
            );
            assert_eq!(restored.states[&log.owner], state, "seed {seed}");
            assert_eq!(checked.states[&log.owner], state, "seed {seed}");
        }
        let report = verify(&Source::archive(store)).await.unwrap();
        assert!(report.is_clean(), "seed {seed}: {report}");
        assert_eq!(report.leaves, world.frozen.len() as u64);
    }
}

#[tokio::test]
async fn a_time_a_batch_or_a_leaf_count_selects_the_cut() {
    let world = world(11).await;
    let target = Target::memory();
    let manifest = create(&world.store, REALM, WallTime(1), &target)
        .await
        .unwrap()
        .manifest;
    for at in (3..world.frozen.len()).step_by(13) {
        let batch = &world.frozen[at];
        let untils = [
            // The world writes a batch every 50 ms.
            Until::Moment(WallTime(1_000 + 50 * at as u64 + 49)),
            Until::Batch(LogPosition {
                owner: batch.owner,
                batch: batch.number,
            }),
            Until::Leaves(at as u64 + 1),
        ];
        for until in untils {
            let (store, restored) = restored(&target, &manifest, until).await.unwrap();
            assert_eq!(restored.wanted, at as u64 + 1, "{until:?}");
            // In these worlds a call is taken after the batch that made it: every prefix is a cut.
            assert_eq!(restored.leaves, restored.wanted, "{until:?}");
            let report = verify(&Source::archive(store)).await.unwrap();
            assert!(report.is_clean(), "{until:?}: {report}");
            assert_eq!(report.leaves, restored.leaves);
        }
    }
    let everything = world.frozen.len() as u64;
    let late = Until::Moment(WallTime(u64::MAX));
    assert_eq!(restored(&target, &manifest, late).await.unwrap().1.leaves, everything);
    let beyond = Until::Leaves(everything + 1);
    let error = restored(&target, &manifest, beyond).await.err().unwrap();
    assert!(
        matches!(error, RestoreFailed::Beyond { leaves, .. } if leaves == everything),
        "{error}"
    );
}

#[tokio::test]
async fn a_cut_that_separates_a_call_from_its_maker_is_extended() {
    let mut world = World::new(MemoryStore::new().store()).await;
    for log in 0..3 {
        world.create(log);
    }
    let [caller, called] = [0, 1].map(|log| *world.logs[log].state.entities.keys().next().unwrap());
    let before = world.frozen.len();
    world.call(0, caller, 1, called);
    // The log was refilled after a batch that consumed from it (rule F5): the batch that made the call is the last of
    // the three.
    world.frozen.swap(before, before + 1);
    world.change(2, *world.logs[2].state.entities.keys().next().unwrap(), 7);
    world.archive().await;
    let target = Target::memory();
    let manifest = create(&world.store, REALM, WallTime(1), &target)
        .await
        .unwrap()
        .manifest;
    let until = Until::Leaves(before as u64 + 1);
    let (store, restored) = restored(&target, &manifest, until).await.unwrap();
    assert_eq!(
        (restored.wanted, restored.leaves),
        (before as u64 + 1, before as u64 + 2)
    );
    let report = verify(&Source::archive(store)).await.unwrap();
    assert!(report.is_clean(), "{report}");
}

#[tokio::test]
async fn a_later_backup_writes_only_new_pieces() {
    let mut world = world(5).await;
    let target = Target::memory();
    let sealed = world.seal(40).await as u64;
    let first = create(&world.store, REALM, WallTime(1), &target).await.unwrap();
    assert_eq!(first.reused, 0);
    let again = create(&world.store, REALM, WallTime(2), &target).await.unwrap();
    assert_eq!(again.written, 0, "nothing has happened");
    world.play(6, 60).await;
    world.archive().await;
    let later = create(&world.store, REALM, WallTime(3), &target).await.unwrap();
    assert!(later.reused >= sealed && later.written <= 3, "{later:?}");
    let names = Manifest::names(&target).await.unwrap();
    assert_eq!(names, ["test-1", "test-2", "test-3"]);
    for (name, leaves) in names
        .iter()
        .zip([&first, &again, &later].map(|made| made.manifest.leaves()))
    {
        let manifest = Manifest::read(&target, Some(name)).await.unwrap();
        assert_eq!(manifest.leaves(), leaves);
        let checked = check(&target, &manifest).await.unwrap();
        assert!(checked.is_clean(), "{name}: {checked}");
        assert_eq!(restored(&target, &manifest, Until::End).await.unwrap().1.leaves, leaves);
    }
    let newest = Manifest::read(&target, None).await.unwrap();
    assert_eq!(newest, later.manifest);
}

#[tokio::test]
async fn edited_missing_and_truncated_pieces_are_named() {
    let world = world(8).await;
    world.seal(30).await;
    let target = Target::memory();
    let manifest = create(&world.store, REALM, WallTime(1), &target)
        .await
        .unwrap()
        .manifest;
    let rows = manifest.rows.iter().map(|piece| piece.path());
    let pieces: Vec<String> = manifest.segments().map(|piece| piece.path()).chain(rows).collect();
    for piece in &pieces {
        let whole = target.read(piece).await.unwrap().to_vec();
        let mut flipped = whole.clone();
        let middle = whole.len() / 2;
        flipped[middle] ^= 1;
        let mut longer = whole.clone();
        longer.push(0);
        for damaged in [flipped, whole[..whole.len() - 1].to_vec(), longer, Vec::new()] {
            target.write(piece, damaged).await.unwrap();
            let checked = check(&target, &manifest).await.unwrap();
            assert!(
                !checked.is_clean() && checked.to_string().contains(piece),
                "{piece}: {checked}"
            );
            assert!(restored(&target, &manifest, Until::End).await.is_err(), "{piece}");
        }
        target.write(piece, whole).await.unwrap();
    }
    assert!(check(&target, &manifest).await.unwrap().is_clean());
    // A manifest whose pieces are missing, and one that was edited.
    let elsewhere = Target::memory();
    let checked = check(&elsewhere, &manifest).await.unwrap();
    assert_eq!(checked.findings.len(), pieces.len(), "{checked}");
    assert!(
        pieces.iter().all(|piece| checked.to_string().contains(piece)),
        "{checked}"
    );
    let mut edited = target.read(&manifest.path()).await.unwrap().to_vec();
    let place = edited.len() - 10;
    edited[place] ^= 1;
    target.write(&manifest.path(), edited).await.unwrap();
    let error = Manifest::read(&target, None).await.unwrap_err();
    assert!(
        matches!(&error, ManifestError::Damaged(what) if *what == manifest.path()),
        "{error}"
    );
}

#[tokio::test]
async fn a_damaged_archive_is_not_backed_up() {
    let world = world(9).await;
    let target = Target::memory();
    let batch = world.frozen[20].clone();
    let leaf = world.leaf(&batch).await;
    world.replace(leaf, &world.frozen[21].bytes).await;
    let error = create(&world.store, REALM, WallTime(1), &target).await.unwrap_err();
    assert!(
        matches!(error, CreateError::Tree { .. } | CreateError::Store(_)),
        "{error}"
    );
    world.edit(&archive::leaf_key(SHARD, leaf), None).await;
    let error = create(&world.store, REALM, WallTime(1), &target).await.unwrap_err();
    assert!(
        matches!(error, CreateError::Lost(SHARD, lost) if lost == leaf),
        "{error}"
    );
    assert!(Manifest::names(&target).await.unwrap().is_empty());
    let none = create(&MemoryStore::new().store(), REALM, WallTime(1), &target)
        .await
        .unwrap_err();
    assert!(matches!(none, CreateError::NoRealm), "{none}");
}

#[tokio::test]
async fn the_restored_realm_is_backed_up_and_restored_again() {
    let world = world(10).await;
    let target = Target::memory();
    let manifest = create(&world.store, REALM, WallTime(1), &target)
        .await
        .unwrap()
        .manifest;
    let (store, first) = restored(&target, &manifest, Until::Leaves(60)).await.unwrap();
    let again = create(&store, "beside", WallTime(2), &target).await.unwrap().manifest;
    assert!(!read_rows(&target, &again).await.unwrap().is_empty());
    let (store, second) = restored(&target, &again, Until::End).await.unwrap();
    assert_eq!(first.states, second.states);
    let name = Source::archive(store)
        .realm_name(&"other".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(name.as_str(), "beside");
}
