//! Targets: a folder, and a bucket if one is available.

use annals::backup::{
    check::check,
    create::create,
    manifest::Manifest,
    target::{Target, TargetError},
};
use annals_ids::WallTime;
use annals_store::MemoryStore;
use tempfile::TempDir;

use super::world::{REALM, World};

/// The bucket, or a prefix in one, in which tests may write: `s3://BUCKET/PREFIX`. Endpoint and keys come from the
/// usual variables.
const BUCKET: &str = "ANNALS_TEST_S3";

async fn is_a_target(address: &str) {
    let target = Target::open(address).unwrap();
    let world = World::generate(MemoryStore::new().store(), 3, 60).await;
    let created = WallTime(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64);
    let manifest = create(&world.store, REALM, created, &target).await.unwrap().manifest;
    assert!(Manifest::names(&target).await.unwrap().contains(&manifest.name()));
    // Reopened, as the next command does.
    let target = Target::open(address).unwrap();
    let read = Manifest::read(&target, Some(&manifest.name())).await.unwrap();
    assert_eq!(read, manifest);
    let checked = check(&target, &read).await.unwrap();
    assert!(checked.is_clean(), "{checked}");
    let again = create(&world.store, REALM, created, &target).await.unwrap_err();
    let text = annals_host::telemetry::Chain(&again).to_string();
    assert!(
        text.contains("already exists"),
        "no backup takes another's place: {text}"
    );
    let absent = target.read("segments/none").await.unwrap_err();
    assert!(absent.is_absent(), "{absent}");
}

#[tokio::test]
async fn a_backup_to_a_folder() {
    let folder = TempDir::new().unwrap();
    is_a_target(&folder.path().join("a new one").display().to_string()).await;
}

#[tokio::test]
async fn a_backup_to_a_bucket() {
    match std::env::var(BUCKET) {
        Ok(address) => is_a_target(&address).await,
        Err(_) => println!("SKIPPED: {BUCKET} names no bucket (s3://BUCKET/PREFIX, with AWS_ENDPOINT and keys)"),
    }
}

#[test]
fn an_address_names_a_bucket() {
    for wrong in ["s3://", "s3:///prefix"] {
        let error = Target::open(wrong).unwrap_err();
        assert!(matches!(error, TargetError::Address { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_target_that_is_not_a_folder_is_an_error() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let error = Target::folder(&file).unwrap_err();
    assert!(error.to_string().contains("cannot be created"), "{error}");
}
