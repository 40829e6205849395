//! `annals backup` on data directories, killed at any moment.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use annals_def::split_mix;
use annals_store::embedded::EmbeddedStore;
use tempfile::TempDir;

use super::world::World;

/// How often a command is killed.
const KILLS: u64 = 8;

/// A data directory with a realm in it, and room for others beside it.
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

    /// Starts a command and kills it after a while. Whether it was still running.
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

/// The lines that say what states came of it.
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
    // Beside it, and not to its end.
    let beside = realm.works(&[
        "backup", "restore", "--realm", "beside", "--data", "beside", "--leaves", "100",
    ]);
    assert!(
        beside.contains("100 leaves") && beside.contains("--realm beside"),
        "{beside}"
    );
    realm.works(&["log", "verify", "--data", "beside"]);
    // Nothing is put over a realm.
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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_is_named_and_not_restored() {
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
async fn a_backup_that_is_killed_is_none_and_the_next_is_whole() {
    let realm = Realm::new(23, 1_500).await;
    let create = ["backup", "create", "--data", "realm"];
    let mut dice = split_mix(23);
    let mut interrupted = 0;
    for _ in 0..KILLS {
        let before = count(&realm.path("backups/backups"));
        let after = Duration::from_millis(dice() % 300);
        let runs = realm.kill(&create, after);
        interrupted += u64::from(runs && count(&realm.path("backups/backups")) == before);
    }
    println!("{interrupted} of {KILLS} were interrupted");
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
async fn a_restore_that_is_killed_is_no_realm_and_the_next_is_whole() {
    let realm = Realm::new(24, 1_500).await;
    realm.works(&["backup", "create", "--data", "realm"]);
    let expected = realm.works(&["backup", "restore", "--data", "whole"]);
    let restore = ["backup", "restore", "--data", "again"];
    let mut dice = split_mix(24);
    let (mut interrupted, mut unfinished) = (0, 0);
    for _ in 0..KILLS {
        let runs = realm.kill(&restore, Duration::from_millis(50 + dice() % 600));
        let (code, text) = realm.run(&["log", "verify", "--data", "again"]);
        if code == Some(0) {
            // It was done by then.
            fs::remove_dir_all(realm.path("again")).unwrap();
        } else {
            assert!(runs && code == Some(2), "half of one is no realm: {text}");
            interrupted += 1;
            unfinished += usize::from(text.contains("run `annals backup restore` again, which begins anew"));
        }
    }
    println!("{interrupted} of {KILLS} were interrupted, {unfinished} of them with something in the store");
    assert!(unfinished > 0);
    let restored = realm.works(&restore);
    assert_eq!(states(&restored), states(&expected));
    realm.works(&["log", "verify", "--data", "again"]);
}

/// A disk of memory of so many KiB, mounted until it is dropped.
struct SmallDisk {
    path: std::path::PathBuf,
}

impl SmallDisk {
    /// `None` where mounting is not allowed.
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
async fn a_full_disk_leaves_no_backup_and_no_realm() {
    let realm = Realm::new(25, 400).await;
    let create = ["backup", "create", "--data", "realm"];
    let Some(full) = SmallDisk::mount(&realm.path("backups"), 16) else {
        return;
    };
    let (code, text) = realm.run(&create);
    assert!(code == Some(2) && text.contains("no backup was made"), "{text}");
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

/// How many files a folder has.
fn count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}
