//! The commands on the data directory of a stopped realm.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use annals_db::ensure_shards;
use annals_ids::{Epoch, OwnerId, OwnerKind, ProcessId};
use annals_store::{
    embedded::EmbeddedStore,
    layout::{
        archive,
        owners::{self, OwnerRecord},
    },
};
use tempfile::TempDir;

use super::{
    carrier::Carrier,
    world::{SHARD, World},
};

/// The data directory of a killed realm: db had not archived all of the log.
struct Left {
    folder: TempDir,
    /// By owner: last batch of the archive, last batch of the log, and the state's hash there.
    ends: BTreeMap<OwnerId, (u64, u64, String)>,
    /// The newest change of a level.
    newest: String,
}

impl Left {
    async fn behind(seed: u64) -> Self {
        let folder = TempDir::new().unwrap();
        let store = EmbeddedStore::open(&folder.path().join("store")).unwrap().store();
        let mut world = World::generate(store, seed, 60).await;
        let archived: BTreeMap<OwnerId, u64> = world
            .logs
            .iter()
            .map(|log| (log.owner, world.last(log.owner).0))
            .collect();
        // db trims the log some time after archiving.
        let kept = world.frozen.len() - 20;
        world.play(seed + 1, 40).await;
        for log in 0..3 {
            world.reopen(log).await;
        }
        let entity = world.change_somebody(1);
        world.record_openings().await;
        let mut carrier = Carrier::start(&folder.path().join("nats"), kept).await;
        carrier.append_all(&world).await;
        carrier.server.stop().await.unwrap();
        let ends = world.logs.iter().map(|log| {
            let (last, hash) = (log.state.tail.batch.0, log.state.hash().to_string());
            (log.owner, (archived[&log.owner], last, hash))
        });
        let log = &world.logs[1];
        let newest = format!(
            "{}@{} #{}  00:00:{:02}.{:03}  Avatar {entity} cell: level = 42 (history {})",
            log.owner,
            log.state.tail.batch,
            log.state.tail.event,
            50 * (world.frozen.len() - 1) / 1_000,
            50 * (world.frozen.len() - 1) % 1_000,
            log.state.entities[&entity].history
        );
        let ends = ends.collect();
        Self { folder, ends, newest }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, line: &[&str]) -> (Option<i32>, String) {
        annals_log(self.path(), line)
    }
}

fn annals_log(data: &Path, line: &[&str]) -> (Option<i32>, String) {
    annals(data, &[&["log"], line].concat())
}

fn annals(data: &Path, line: &[&str]) -> (Option<i32>, String) {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_annals"))
        .args(line)
        .arg("--data")
        .arg(data)
        .env_remove("ANNALS_REALM")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    (output.status.code(), text)
}

/// The content of a folder, file by file.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_realms_logs_are_verified_replayed_and_printed_to_the_end() {
    let left = Left::behind(31).await;
    let nats = contents(&left.path().join("nats"));
    let (code, text) = left.run(&["verify"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("nothing is wrong"), "{text}");
    let (code, replayed) = left.run(&["replay"]);
    assert_eq!(code, Some(0), "{replayed}");
    for (owner, (archived, last, hash)) in &left.ends {
        let beyond = last - archived;
        assert!(
            text.contains(&format!(
                "{beyond} batches beyond the archive; state at batch {last}: {hash}"
            )),
            "{text}"
        );
        assert!(replayed.contains(&format!("{owner}@{last} {hash} ")), "{replayed}");
        assert!(
            replayed.contains(&format!("archived up to batch {archived}")),
            "{replayed}"
        );
    }
    let (code, text) = left.run(&["replay", "--at", "2@1"]);
    assert!(code == Some(0) && text.starts_with("2@1 "), "{text}");
    let (code, text) = left.run(&["replay", "--at", "2@100000"]);
    assert!(
        code == Some(1) && text.contains("the log of owner 2 ends at batch"),
        "{text}"
    );
    let (code, text) = left.run(&["tail", "-n", "3"]);
    assert_eq!(code, Some(0), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[2]), (3, left.newest.as_str()), "{text}");
    let (code, text) = left.run(&["tail", "--follow"]);
    assert!(code == Some(1) && text.contains("leave --follow out"), "{text}");
    assert_eq!(
        contents(&left.path().join("nats")),
        nats,
        "nothing of the server's was touched"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_server_store_only_the_archive_is_read_and_reported() {
    let left = Left::behind(32).await;
    fs::remove_dir_all(left.path().join("nats")).unwrap();
    let (code, text) = left.run(&["verify"]);
    assert!(code == Some(0) && text.contains("this is the archive alone"), "{text}");
    let (code, text) = left.run(&["replay"]);
    assert!(code == Some(0) && text.contains("this is the archive alone"), "{text}");
    for (owner, (archived, ..)) in &left.ends {
        assert!(text.contains(&format!("{owner}@{archived} ")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_batch_is_named_and_fails_each_command() {
    let left = Left::behind(33).await;
    let open = || EmbeddedStore::open(&left.path().join("store")).unwrap().store();
    let transaction = open().begin();
    let place = transaction
        .get(&archive::place_key(OwnerId(1), annals_ids::BatchNumber(4)))
        .await
        .unwrap();
    let leaf = archive::decode_place(&place.unwrap()).unwrap();
    transaction
        .clear_range(&annals_store::KeyRange::prefix(&archive::leaf_key(SHARD, leaf)))
        .unwrap();
    transaction.commit().await.unwrap();
    drop(transaction);
    let (code, text) = left.run(&["verify"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("WRONG: batch 4 of owner 1 is missing; restore it from a backup"),
        "{text}"
    );
    let (code, text) = left.run(&["replay"]);
    assert!(
        code == Some(1) && text.contains("batch 4 of owner 1 is missing"),
        "{text}"
    );
    let (code, text) = left.run(&["tail", "-n", "10000"]);
    assert!(
        code == Some(0) && text.contains("note: batch 4 of owner 1 is missing"),
        "{text}"
    );
}

#[test]
fn an_invalid_or_used_directory_is_refused_with_advice() {
    let folder = TempDir::new().unwrap();
    let (code, text) = annals_log(folder.path(), &["verify"]);
    assert!(
        code == Some(2) && text.contains("is not the data directory of a realm"),
        "{text}"
    );
    assert_eq!(contents(folder.path()), BTreeMap::new(), "nothing was made there");
    let _held = EmbeddedStore::open(&folder.path().join("store")).unwrap();
    fs::create_dir(folder.path().join("nats")).unwrap();
    fs::write(folder.path().join("nats/nats.conf"), "host: 127.0.0.1\nport: 23456\n").unwrap();
    for command in ["verify", "replay", "tail"] {
        let (code, text) = annals_log(folder.path(), &[command]);
        assert_eq!(code, Some(2), "{text}");
        assert!(
            text.contains("--nats nats://127.0.0.1:23456 instead of --data"),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_of_a_shard_that_the_realm_does_not_have_is_refused() {
    let folder = TempDir::new().unwrap();
    let store = EmbeddedStore::open(&folder.path().join("store")).unwrap().store();
    let world = World::generate(store, 31, 20).await;
    ensure_shards(&world.store, 2).await.unwrap();
    drop(world);
    let (code, text) = annals(folder.path(), &["checkpoint", "show", "--shard", "1"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("has no signed checkpoint"), "{text}");
    for more in [
        &["--shard", "2"][..],
        &["--shard", "2", "--keys"],
        &["--shard", "9", "--ended"],
    ] {
        let (code, text) = annals(folder.path(), &[&["checkpoint", "show"], more].concat());
        assert_eq!(code, Some(2), "{text}");
        let said = format!("the realm has no shard {}: its shards are 0 to 1", more[1]);
        assert!(text.contains(&said), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepting_a_hole_in_a_base_or_ledger_log_needs_confirmation() {
    let folder = TempDir::new().unwrap();
    let store = EmbeddedStore::open(&folder.path().join("store")).unwrap().store();
    let transaction = store.begin();
    for (number, kind) in (1..).zip(OwnerKind::ALL) {
        let record = OwnerRecord {
            shard: SHARD,
            kind,
            epoch: Epoch(1),
            process: ProcessId(1),
            call_generation: 0,
        };
        let key = owners::owner_key(OwnerId(number));
        transaction.set(&key, &record.encode()).unwrap();
    }
    transaction.commit().await.unwrap();
    drop((transaction, store));
    for (number, kind) in (1..).zip(OwnerKind::ALL) {
        let place = format!("{number}@7");
        let (code, text) = annals_log(folder.path(), &["accept-hole", &place]);
        assert_eq!(code, Some(2), "{text}");
        assert_eq!(
            text.contains("--though-calls-are-lost"),
            kind != OwnerKind::Cell,
            "{text}"
        );
        let (code, text) = annals_log(folder.path(), &["accept-hole", &place, "--though-calls-are-lost"]);
        assert!(
            code == Some(2) && text.contains("no hole is registered at batch 7"),
            "{text}"
        );
    }
}

#[test]
fn an_unreadable_cluster_is_refused_with_advice() {
    let folder = TempDir::new().unwrap();
    let cluster = format!("fdb:{}", folder.path().join("fdb.cluster").display());
    let (code, text) = annals_log(folder.path(), &["verify", "--store", &cluster]);
    // This build has no FoundationDB client, or does not find the cluster file.
    let says = text.contains("build it with the feature `fdb`") || text.contains("fdb.cluster cannot be read");
    assert!(code == Some(2) && says, "{text}");
    let output = Command::new(env!("CARGO_BIN_EXE_annals"))
        .args(["log", "verify", "--data"])
        .arg(folder.path())
        .env("ANNALS_STORE", &cluster)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), text, "as the services read it");
    let (code, text) = annals_log(folder.path(), &["accept-hole", "1@7", "--store", &cluster]);
    assert!(code == Some(2) && text.contains("start db"), "{text}");
    let beside = Command::new(env!("CARGO_BIN_EXE_annals"))
        .args(["log", "verify", "--store", &cluster])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&beside.stderr);
    assert!(
        beside.status.code() == Some(2) && text.contains("with --data"),
        "{text}"
    );
    let (code, text) = annals_log(folder.path(), &["verify", "--store", "redis"]);
    assert!(code == Some(2) && text.contains("write embedded"), "{text}");
}
