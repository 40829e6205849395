//! Backups of a realm during play, and the realms restored from them.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use annals::up::{Realm, RealmPlan};
use annals_bots::checker::check;
use annals_db::{ledger::audit, read_shards};
use annals_def::Schema;
use annals_host::{
    nats::ServerCount,
    process::{connect, remote_store},
};
use annals_realm::Folder;
use annals_store::embedded::EmbeddedStore;
use tokio::process::Command;

use crate::{
    played::{Played, are_built, binary, connection_to, repository, run, within},
    playing::Playing,
};

/// Bots that play in a restored realm, including those that played in the old one, with their accounts.
const BOTS: usize = 4;

/// Events that they must be shown before they count as playing.
const SHOWN: u64 = 80;

/// Lines of what bots were shown before a backup.
const LINES: usize = 200;

/// Maximum time until all bots play in a restored realm.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Runs `annals` in a folder; it must succeed.
async fn annals(folder: &Path, line: &[&str]) -> String {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command.args(line).current_dir(folder);
    let (status, said) = run(&mut command).await;
    println!("annals {}\n{said}", line.join(" "));
    assert_eq!(status.code(), Some(0), "annals {}: {said}", line.join(" "));
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_backup_restores_to_a_playable_realm() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let schema = Arc::clone(&realm.schema);
    let folder = Folder::create();
    let here = folder.path();
    let nats = realm.realm.nats();
    let create = ["backup", "create", "--realm", "played", "--nats", &nats];
    annals(here, &create).await;
    let playing = accounts(here, &["--realm", "played", "--nats", &nats]).await;
    assert!(
        playing.len() >= BOTS && playing.values().all(|in_use| *in_use),
        "{playing:?}"
    );
    realm.assert_playing("a backup").await;
    let moment = format!("@{}", UNIX_EPOCH.elapsed().expect("a clock").as_secs());
    realm.assert_playing("a moment").await;
    annals(here, &create).await;
    annals(here, &["backup", "verify"]).await;

    let beside = ["backup", "restore", "--realm", "beside", "--data", "beside", "--moment"];
    annals(here, &[&beside[..], &[&moment]].concat()).await;
    assert_playable(here, "beside", &schema).await;
    realm.assert_playing("a realm beside it").await;
    let listed = annals(here, &["backup", "list"]).await;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    realm.stop_and_verify().await;

    annals(here, &["backup", "restore", "--data", "played"]).await;
    assert_playable(here, "played", &schema).await;
    let restored = accounts(here, &["--data", "played"]).await;
    assert!(playing.keys().all(|id| restored.contains_key(id)), "{restored:?}");
}

/// A backup of a realm of several shards has everything that was shown before it was begun (rule T6), and the realm that
/// is restored from it plays on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_backup_of_three_shards_restores_to_a_playable_realm() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start_with_shards(3, 2).await;
    let schema = Arc::clone(&realm.schema);
    let folder = Folder::create();
    let here = folder.path();
    let nats = realm.realm.nats();
    realm.wait_for_trade().await;
    let shown = here.join("shown before");
    within(TIMEOUT, "bots to write what they were shown", async {
        while copy_lines(&realm.shown_files(), &shown) < LINES {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    let made = annals(here, &["backup", "create", "--realm", "played", "--nats", &nats]).await;
    assert!(!made.contains("note:"), "every shard was folded: {made}");
    annals(here, &["backup", "verify"]).await;
    realm.assert_playing("a backup").await;
    realm.stop_and_verify().await;

    annals(here, &["backup", "restore", "--data", "played"]).await;
    let store = EmbeddedStore::open(&here.join("played/store"))
        .expect("a store")
        .store();
    assert_eq!(read_shards(&store).await, Ok(3));
    let checked = check(&shown, &store, &schema).await.expect("the archives can be read");
    assert!(checked.is_clean() && checked.shown > 50, "{checked}");
    let audited = audit(&store).await.expect("the store answers");
    assert!(
        audited.findings.is_empty() && audited.entries.0 > 0,
        "{:?}",
        audited.findings
    );
    drop(store);
    assert_playable(here, "played", &schema).await;
}

/// Copies the whole lines of files that are being written. Returns how many there are.
fn copy_lines(from: &Path, to: &Path) -> usize {
    fs::create_dir_all(to).expect("a folder");
    let mut lines = 0;
    for file in fs::read_dir(from).expect("a folder") {
        let file = file.expect("a file");
        let bytes = fs::read(file.path()).expect("a file");
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        lines += bytes[..whole].iter().filter(|byte| **byte == b'\n').count();
        fs::write(to.join(file.file_name()), &bytes[..whole]).expect("room for a copy");
    }
    lines
}

/// The accounts in a realm's database, and whether each is in use.
async fn accounts(folder: &Path, of: &[&str]) -> BTreeMap<u64, bool> {
    let query = ["realm", "query", "Account", "--select", "logIns", "--format", "json"];
    let said = annals(folder, &[&query, of].concat()).await;
    let answer: serde_json::Value = serde_json::from_str(&said).expect("one object");
    let found = answer["found"].as_array().expect("a list").iter();
    found
        .map(|found| (found["id"].as_u64().expect("an id"), !found["inUse"].is_null()))
        .collect()
}

/// Runs a restored realm: bots log in and play, nothing that they are shown is lost, and all of its log is valid, from
/// before the backup to its end.
async fn assert_playable(folder: &Path, name: &str, schema: &Arc<Schema>) {
    let plan = RealmPlan::new(name, &repository().join("defs"), &folder.join(name));
    let mut realm = Realm::start(plan)
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let files = folder.join(format!("shown in {name}"));
    let mut playing = Playing::start(realm.login, schema, BOTS, &files);
    let plays = playing.wait_until_shown(SHOWN, TIMEOUT).await;
    assert!(plays, "{name}: not all bots play: {}", playing.progress());
    realm.watch(&[]).unwrap_or_else(|error| panic!("{name}: {error}"));
    let nats = realm.nats();
    let log = ["log", "verify", "--realm", name, "--nats", &nats];
    let verified = annals(folder, &log).await;
    assert!(verified.contains("nothing is wrong"), "{name}: {verified}");
    println!("{name}: {}", playing.end().await);
    let settings = connection_to(name, nats);
    let (bus, subjects) = connect(&settings, "test").await.expect("the bus is there");
    let checked = within(TIMEOUT, "what was shown to be archived", async {
        loop {
            let store = remote_store(&bus, &subjects);
            let checked = check(&files, &store, schema).await.expect("the archive can be read");
            if checked.is_clean() {
                return checked;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    println!("{name}: {checked}");
    assert!(checked.shown > 0);
    realm.stop().await.expect("the realm stops");
    let verified = annals(folder, &["log", "verify", "--data", name]).await;
    assert!(verified.contains("nothing is wrong"), "{name}: {verified}");
}
