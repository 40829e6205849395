//! A realm with retention for its cells' events, during play and process crashes: every promise is kept, and the
//! remaining archive gives the same states.
//!
//! The test waits only for the horizon to pass: the segments of so small a realm may not be worth rewriting by then, so
//! their events may all still be there. Deletion itself is covered by the tests of db.

use std::{
    path::Path,
    process::ExitStatus,
    time::{Duration, UNIX_EPOCH},
};

use annals_bots::checker::Following;
use annals_db::read_horizon;
use annals_ids::Shard;
use annals_realm::Folder;
use annals_store::Store;
use tokio::process::Command;

use crate::played::{Played, are_built, binary, run_within, within};

/// The minimum age that the setting accepts.
const MIN_AGE: &str = "1s";

/// Maximum time until something is deleted: a segment has to be full, which takes some thousand batches.
const DELETE_TIMEOUT: Duration = Duration::from_secs(600);

/// Timeout of a command that reads the whole archive.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum time until what was shown is archived.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(300);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

async fn annals(folder: &Path, line: &[&str]) -> (ExitStatus, String) {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command.args(line).current_dir(folder);
    let (status, said) = run_within(READ_TIMEOUT, &mut command).await;
    println!("annals {}\n{said}", line.join(" "));
    (status, said)
}

/// The same; it must succeed.
async fn succeed(folder: &Path, line: &[&str]) -> String {
    let (status, said) = annals(folder, line).await;
    assert_eq!(status.code(), Some(0), "annals {}: {said}", line.join(" "));
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_with_retention_keeps_every_promise() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start_with(vec![("keep_cell_events", MIN_AGE.to_owned())]).await;
    let beginning = format!("@{}", UNIX_EPOCH.elapsed().expect("a clock").as_secs());
    let (_, _, store) = realm.bus();
    kill_and_restart(&mut realm, "cell-1").await;
    within(DELETE_TIMEOUT, "retention to delete an event", async {
        while !has_deleted_events(&store).await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
    // The process that takes over the dead one's owner starts from a floor.
    kill_and_restart(&mut realm, "cell-2").await;
    kill_and_restart(&mut realm, "base-1").await;

    let folder = Folder::create();
    let (here, nats) = (folder.path(), realm.realm.nats());
    let running = ["--realm", "played", "--nats", &nats];
    let verified = succeed(here, &[&["log", "verify"], &running[..]].concat()).await;
    assert!(verified.contains("nothing is wrong"), "{verified}");
    assert!(
        verified.contains("were deleted by retention, none of them closed after @"),
        "{verified}"
    );
    assert_some_were_deleted(&realm, &store).await;

    succeed(here, &[&["backup", "create"], &running[..]].concat()).await;
    succeed(here, &["backup", "verify"]).await;
    let restore = ["backup", "restore", "--realm", "beside", "--data", "beside"];
    let (status, said) = annals(here, &[&restore[..], &["--moment", &beginning]].concat()).await;
    assert_ne!(status.code(), Some(0), "{said}");
    assert!(
        said.contains("is before the horizon: retention has deleted the cell events"),
        "{said}"
    );
    let restored = succeed(here, &restore).await;
    let verified = succeed(here, &["log", "verify", "--data", "beside", "--realm", "beside"]).await;
    assert!(verified.contains("nothing is wrong"), "{verified}");
    // Each owner is compared with what the live realm replays to at that batch; a cell only if the horizon has not
    // passed that batch since, as retention continues.
    let (mut replayed, mut deleted) = (0, 0);
    for line in restored.lines() {
        let Some((at, state)) = line.split_once(' ').filter(|(at, _)| at.contains('@')) else {
            continue;
        };
        let (status, said) = annals(here, &[&["log", "replay", "--at", at], &running[..]].concat()).await;
        if status.code() != Some(0) {
            assert!(said.contains("deleted by retention"), "{at}: {said}");
            deleted += 1;
        } else {
            assert!(said.contains(state), "{at} is {state} in the restored realm: {said}");
            replayed += 1;
        }
    }
    assert!(replayed >= 3, "two bases and the ledger keep all they did: {restored}");
    assert!(replayed + deleted >= 5, "two cells beside them: {restored}");
    realm.assert_playing("a backup").await;
    realm.stop_and_verify().await;
}

/// Kills and restarts a process; all bots play on.
async fn kill_and_restart(realm: &mut Played, name: &'static str) {
    assert!(realm.realm.kill(name).expect("it can be killed"), "{name} is there");
    realm.start_again(name);
    realm.assert_playing(name).await;
}

/// Whether the horizon has passed a batch: from then on readers do not use that batch, even if its segment is not
/// rewritten.
async fn has_deleted_events(store: &Store) -> bool {
    let horizon = read_horizon(store, Shard(0)).await;
    horizon.expect("the store answers").is_some()
}

/// Checks that some of what was shown so far was deleted, and that all the rest is present once archived.
async fn assert_some_were_deleted(realm: &Played, store: &Store) {
    let mut shown = Following::new(&realm.shown_files());
    shown.look().expect("files of bots");
    let checked = within(ARCHIVE_TIMEOUT, "what was shown to be archived", async {
        loop {
            let checked = shown
                .check(store, &realm.schema)
                .await
                .expect("the archive can be read");
            if checked.is_clean() {
                return checked;
            }
            println!("not yet: {checked}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
    println!("{checked}");
    assert!(checked.deleted > 0 && checked.shown > checked.deleted, "{checked}");
}
