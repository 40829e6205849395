//! `annals backup` on data directories, killed at any moment.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use annals_db::{StoredEntity, accounts};
use annals_def::split_mix;
use annals_director::read_owners;
use annals_host::log_source::Source;
use annals_ids::{DatabaseId, OwnerId, ProcessId};
use annals_store::{
    Store, Transaction,
    embedded::EmbeddedStore,
    layout::owners::{OwnerRecord, owner_key},
};
use tempfile::TempDir;

use super::world::World;

/// Number of kills of a command.
const KILLS: u64 = 8;

/// Maximum number of kills, if none of the first ones came in time.
const MAX_KILLS: u64 = 64;

/// A data directory with a realm, and room for others beside it.
struct Realm {
    folder: TempDir,
}

impl Realm {
    async fn new(seed: u64, steps: usize) -> Self {
        let folder = TempDir::new().unwrap();
        let store = EmbeddedStore::open(&folder.path().join("realm/store")).unwrap().store();
        World::generate(store, seed, steps).await;
        Self { folder }
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
        command
            .args(line)
            .current_dir(self.folder.path())
            .env_remove("ANNALS_REALM")
            .env_remove("ANNALS_BACKUPS");
        command
    }

    fn run(&self, line: &[&str]) -> (Option<i32>, String) {
        let output: Output = self.command(line).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        println!("annals {}\n{text}", line.join(" "));
        (output.status.code(), text)
    }

    #[track_caller]
    fn works(&self, line: &[&str]) -> String {
        let (code, text) = self.run(line);
        assert_eq!(code, Some(0), "{text}");
        text
    }

    /// Starts a command and kills it after this time. Returns whether it was still running.
    fn kill(&self, line: &[&str], after: Duration) -> bool {
        let mut child = self
            .command(line)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(after);
        let runs = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        runs
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

/// The lines with the restored states.
fn states(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.contains('@') && line.len() > 64)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_realm_is_backed_up_verified_and_restored() {
    let realm = Realm::new(21, 200).await;
    let replayed = realm.works(&["log", "replay", "--data", "realm"]);
    let made = realm.works(&["backup", "create", "--data", "realm"]);
    assert!(made.contains("backup test-"), "the realm's name is in its log: {made}");
    let listed = realm.works(&["backup", "list"]);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let verified = realm.works(&["backup", "verify"]);
    assert!(verified.contains("whole and intact"), "{verified}");
    let restored = realm.works(&["backup", "restore", "--data", "again"]);
    assert_eq!(states(&restored), states(&verified));
    let again = realm.works(&["log", "replay", "--data", "again"]);
    assert_eq!(again.lines().next(), replayed.lines().next());
    let clean = realm.works(&["log", "verify", "--data", "again"]);
    assert!(clean.contains("nothing is wrong"), "{clean}");
    // Restores beside it, up to an earlier point.
    let beside = realm.works(&[
        "backup", "restore", "--realm", "beside", "--data", "beside", "--leaves", "100",
    ]);
    assert!(
        beside.contains("100 leaves") && beside.contains("--realm beside"),
        "{beside}"
    );
    realm.works(&["log", "verify", "--data", "beside"]);
    // A realm is never overwritten.
    for data in ["realm", "again"] {
        let (code, text) = realm.run(&["backup", "restore", "--data", data]);
        assert!(
            code == Some(2) && text.contains("name an empty data directory"),
            "{text}"
        );
    }
    fs::create_dir_all(realm.path("left/nats/store")).unwrap();
    let (code, text) = realm.run(&["backup", "restore", "--data", "left"]);
    assert!(
        code == Some(2) && text.contains("name an empty data directory"),
        "{text}"
    );
}

/// The store of a data directory, while no command uses it.
fn store_of(realm: &Realm, data: &str) -> Store {
    EmbeddedStore::open(&realm.path(data).join("store")).unwrap().store()
}

/// Accounts in a store, each active on an owner.
async fn online(store: &Store, names: [&str; 2], owner: OwnerId) -> [DatabaseId; 2] {
    let mut persons = Vec::new();
    let about = Source::archive(store.clone()).about().await.unwrap().unwrap();
    let schema = about.schemas().into_values().next().unwrap();
    for name in names {
        let entity = StoredEntity {
            entity_type: schema.types()[0].name.clone(),
            ..StoredEntity::default()
        };
        let account = accounts::create(store, name.as_bytes(), "phc", &entity, &schema).await;
        let person = account.unwrap().database;
        accounts::check_out(store, person, owner).await.unwrap();
        persons.push(person);
    }
    persons.try_into().unwrap()
}

/// Grants an owner to a process, as the director does.
async fn grant(store: &Store, owner: OwnerId) {
    let work = |transaction: Transaction| async move {
        let key = owner_key(owner);
        let record = OwnerRecord::decode(&transaction.get(&key).await?.unwrap())?;
        transaction.set(&key, &record.passed_to(ProcessId(7)).encode())
    };
    store.run_repeatable(work).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn personal_keys_are_imported_despite_accounts_online_at_the_cut() {
    let realm = Realm::new(26, 60).await;
    realm.works(&["backup", "create", "--data", "realm"]);
    realm.works(&["backup", "restore", "--data", "again"]);
    let store = store_of(&realm, "again");
    let owner = *read_owners(&store).await.unwrap().keys().next().unwrap();
    let [anna, bert] = online(&store, ["anna", "bert"], owner).await;
    drop(store);
    let forgotten = r#""forgotten":{"at":5,"leaves":1,"by":"olga","reason":"asked"}"#;
    let lines = [
        r#"{"form":"annals persons v1","persons":3}"#.to_owned(),
        format!(r#"{{"person":{},{forgotten}}}"#, anna.0),
        format!(r#"{{"person":{},"key":"{}"}}"#, bert.0, "ab".repeat(32)),
        format!(r#"{{"person":99999999,"key":"{}"}}"#, "cd".repeat(32)),
    ];
    fs::write(realm.path("keys"), lines.join("\n") + "\n").unwrap();
    let said = realm.works(&["person", "import", "keys", "--data", "again"]);
    assert!(
        said.contains("2 keys brought back, 1 persons forgotten again"),
        "{said}"
    );
    let show = |person: DatabaseId| realm.works(&["person", "show", &format!("stored:{person}"), "--data", "again"]);
    assert!(show(anna).contains("is forgotten since") && show(bert).contains("has a key"));

    // Once an owner is granted, the message names the accounts, and what can be done is done.
    let store = store_of(&realm, "again");
    grant(&store, owner).await;
    drop(store);
    let lines = [
        r#"{"form":"annals persons v1","persons":2}"#.to_owned(),
        format!(r#"{{"person":{},{forgotten}}}"#, bert.0),
        format!(r#"{{"person":99999998,"key":"{}"}}"#, "cd".repeat(32)),
    ];
    fs::write(realm.path("keys"), lines.join("\n") + "\n").unwrap();
    let (code, said) = realm.run(&["person", "import", "keys", "--data", "again"]);
    assert!(
        code == Some(1)
            && said.contains("1 keys brought back, 0 persons forgotten again")
            && said.contains(&format!("because they live: stored entities {bert}; ")),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_pieces_are_named_and_not_restored() {
    let realm = Realm::new(22, 60).await;
    realm.works(&["backup", "create", "--data", "realm"]);
    let segment = fs::read_dir(realm.path("backups/segments"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = fs::read(&segment).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let name = segment.file_name().unwrap().to_str().unwrap();
    let (code, text) = realm.run(&["backup", "verify"]);
    assert!(
        code == Some(1) && text.contains(name) && text.contains("WRONG"),
        "{text}"
    );
    let (code, text) = realm.run(&["backup", "restore", "--data", "again"]);
    assert!(code == Some(2) && text.contains(name), "{text}");
    let (code, text) = realm.run(&["log", "verify", "--data", "again"]);
    assert_eq!(code, Some(2), "what failed is no realm: {text}");
    let (code, text) = realm.run(&["backup", "verify", "none-1"]);
    assert!(code == Some(2) && text.contains("none-1"), "{text}");
    let (code, text) = realm.run(&["backup", "verify", "--target", "empty"]);
    assert!(code == Some(2) && text.contains("there is no backup at"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_backup_is_invalid_and_the_next_is_complete() {
    let realm = Realm::new(23, 1_500).await;
    let create = ["backup", "create", "--data", "realm"];
    let mut dice = split_mix(23);
    let (mut interrupted, mut kills) = (0, 0);
    // How long a backup takes depends on the machine: later kills come earlier.
    while kills < KILLS || (interrupted == 0 && kills < MAX_KILLS) {
        let before = count(&realm.path("backups/backups"));
        let after = Duration::from_millis(dice() % (300 / (1 + kills / KILLS)));
        let runs = realm.kill(&create, after);
        interrupted += u64::from(runs && count(&realm.path("backups/backups")) == before);
        kills += 1;
    }
    println!("{interrupted} of {kills} were interrupted");
    assert!(interrupted > 0);
    realm.works(&create);
    for name in realm.works(&["backup", "list"]).lines() {
        let name = name.split(' ').next().unwrap();
        realm.works(&["backup", "verify", name]);
    }
    realm.works(&["backup", "restore", "--data", "again"]);
    realm.works(&["log", "verify", "--data", "again"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_restore_is_invalid_and_the_next_is_complete() {
    let realm = Realm::new(24, 1_500).await;
    realm.works(&["backup", "create", "--data", "realm"]);
    let expected = realm.works(&["backup", "restore", "--data", "whole"]);
    let restore = ["backup", "restore", "--data", "again"];
    let mut dice = split_mix(24);
    let (mut interrupted, mut unfinished, mut kills) = (0, 0, 0);
    while kills < KILLS || (unfinished == 0 && kills < MAX_KILLS) {
        kills += 1;
        let runs = realm.kill(&restore, Duration::from_millis(50 + dice() % 600));
        let (code, text) = realm.run(&["log", "verify", "--data", "again"]);
        if code == Some(0) {
            // The restoration had finished by then.
            fs::remove_dir_all(realm.path("again")).unwrap();
        } else {
            assert!(runs && code == Some(2), "half of one is no realm: {text}");
            interrupted += 1;
            unfinished += usize::from(text.contains("run `annals backup restore` again, which starts over"));
        }
    }
    println!("{interrupted} of {kills} were interrupted, {unfinished} of them with something in the store");
    assert!(unfinished > 0);
    let restored = realm.works(&restore);
    assert_eq!(states(&restored), states(&expected));
    realm.works(&["log", "verify", "--data", "again"]);
}

/// A RAM disk of this size in KiB, mounted until it is dropped.
struct SmallDisk {
    path: std::path::PathBuf,
}

impl SmallDisk {
    /// `None` if mounting is not permitted.
    fn mount(path: &Path, kib: u32) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "annals-test"])
            .arg(path)
            .stderr(Stdio::null())
            .status();
        let is_mounted = mounted.is_ok_and(|status| status.success());
        if !is_mounted {
            println!("SKIPPED: no small disk can be mounted here");
        }
        is_mounted.then(|| Self { path: path.to_owned() })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.path).status().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_no_partial_backup_or_realm() {
    let realm = Realm::new(25, 400).await;
    let create = ["backup", "create", "--data", "realm"];
    let Some(full) = SmallDisk::mount(&realm.path("backups"), 16) else {
        return;
    };
    let (code, text) = realm.run(&create);
    assert!(code == Some(2) && text.contains("the backup failed"), "{text}");
    assert_eq!(count(&realm.path("backups/backups")), 0);
    drop(full);
    realm.works(&create);
    let Some(full) = SmallDisk::mount(&realm.path("again"), 64) else {
        return;
    };
    let (code, text) = realm.run(&["backup", "restore", "--data", "again"]);
    assert_eq!(code, Some(2), "{text}");
    let (code, text) = realm.run(&["log", "verify", "--data", "again"]);
    assert_eq!(code, Some(2), "{text}");
    drop(full);
    realm.works(&["backup", "restore", "--data", "again"]);
    realm.works(&["log", "verify", "--data", "again"]);
}

/// Number of files in a folder.
fn count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}
