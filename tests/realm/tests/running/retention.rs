//! A realm that lets go of what its cells did, while people play in it and processes die: every promise is kept, and what is
//! left comes to what it was.
//!
//! It waits for the horizon to pass, no longer: the segments of so small a realm need not be worth rewriting until then, so
//! their events may all be there still. That what was let go is gone is for the tests of db to show.

use std::{
    path::Path,
    process::ExitStatus,
    time::{Duration, UNIX_EPOCH},
};

use annals::checker::Following;
use annals_db::read_horizon;
use annals_ids::Shard;
use annals_store::Store;
use tokio::process::Command;

use crate::played::{Played, are_built, binary, run_within, within};

/// The shortest age that the setting takes.
const KEPT: &str = "1s";

/// How long it may take until something goes: a segment has to be full, which it is after some thousand batches.
const GOES: Duration = Duration::from_secs(600);

/// How long a command may take that reads the whole archive.
const READS: Duration = Duration::from_secs(300);

/// How long what was shown may take to be archived.
const ARCHIVED: Duration = Duration::from_secs(300);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

async fn annals(folder: &Path, line: &[&str]) -> (ExitStatus, String) {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command.args(line).current_dir(folder);
    let (status, said) = run_within(READS, &mut command).await;
    println!("annals {}\n{said}", line.join(" "));
    (status, said)
}

/// The same; it has to work.
async fn does(folder: &Path, line: &[&str]) -> String {
    let (status, said) = annals(folder, line).await;
    assert_eq!(status.code(), Some(0), "annals {}: {said}", line.join(" "));
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_that_lets_go_keeps_every_promise() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start_keeping(KEPT).await;
    let beginning = format!("@{}", UNIX_EPOCH.elapsed().expect("a clock").as_secs());
    let (_, _, store) = realm.bus();
    dies(&mut realm, "cell-1").await;
    within(GOES, "something to be let go", async {
        while !has_let_go(&store).await {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    // Whoever takes the dead one's owner over begins at a floor.
    dies(&mut realm, "cell-2").await;
    dies(&mut realm, "base-1").await;

    let folder = tempfile::tempdir().expect("a folder for backups");
    let (here, nats) = (folder.path(), realm.realm.nats());
    let running = ["--realm", "played", "--nats", &nats];
    let verified = does(here, &[&["log", "verify"], &running[..]].concat()).await;
    assert!(verified.contains("nothing is wrong"), "{verified}");
    assert!(
        verified.contains("were let go by retention, none of them closed after @"),
        "{verified}"
    );
    some_was_let_go(&realm, &store).await;

    does(here, &[&["backup", "create"], &running[..]].concat()).await;
    does(here, &["backup", "verify"]).await;
    let restore = ["backup", "restore", "--realm", "beside", "--data", "beside"];
    let (status, said) = annals(here, &[&restore[..], &["--moment", &beginning]].concat()).await;
    assert_ne!(status.code(), Some(0), "{said}");
    assert!(
        said.contains("lies before the horizon: retention has let go of what cells did"),
        "{said}"
    );
    let restored = does(here, &restore).await;
    let verified = does(here, &["log", "verify", "--data", "beside", "--realm", "beside"]).await;
    assert!(verified.contains("nothing is wrong"), "{verified}");
    // Each owner is there what the realm that runs replays to at that batch; of a cell, only if the horizon has not passed it
    // since, as the realm goes on letting go.
    let (mut replayed, mut let_go) = (0, 0);
    for line in restored.lines() {
        let Some((at, state)) = line.split_once(' ').filter(|(at, _)| at.contains('@')) else {
            continue;
        };
        let (status, said) = annals(here, &[&["log", "replay", "--at", at], &running[..]].concat()).await;
        if status.code() != Some(0) {
            assert!(said.contains("was let go by retention"), "{at}: {said}");
            let_go += 1;
        } else {
            assert!(said.contains(state), "{at} is {state} in the restored realm: {said}");
            replayed += 1;
        }
    }
    assert!(replayed >= 3, "two bases and the ledger keep all they did: {restored}");
    assert!(replayed + let_go >= 5, "two cells beside them: {restored}");
    realm.plays_on("a backup").await;
    realm.prove().await;
}

/// A process dies and is started again; everybody plays on.
async fn dies(realm: &mut Played, name: &'static str) {
    assert!(realm.realm.kill(name).expect("it can be killed"), "{name} is there");
    realm.start_again(name);
    realm.plays_on(name).await;
}

/// Whether the horizon has passed something: from then on that is not built upon any more, whether or not it takes so much that
/// its segment is written anew.
async fn has_let_go(store: &Store) -> bool {
    let horizon = read_horizon(store, Shard(0)).await;
    horizon.expect("the store answers").is_some()
}

/// Some of what was shown up to now was let go, and all the rest is there once it is archived.
async fn some_was_let_go(realm: &Played, store: &Store) {
    let mut shown = Following::new(&realm.shown_files());
    shown.look().expect("files of bots");
    let checked = within(ARCHIVED, "what was shown to be archived", async {
        loop {
            let checked = shown
                .check(store, &realm.schema)
                .await
                .expect("the archive can be read");
            if checked.is_clean() {
                return checked;
            }
            println!("not yet: {checked}");
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    println!("{checked}");
    assert!(checked.let_go > 0 && checked.shown > checked.let_go, "{checked}");
}
