//! Signed checkpoints of a live realm, by real processes and commands: an archive always extends what was signed
//! before, whichever processes are killed, and an archive for which this is not true is never signed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::ExitStatus,
    time::{Duration, SystemTime},
};

use annals::up::{Realm, RealmPlan};
use annals_realm::Folder;
use tokio::process::Command;

use crate::played::{are_built, binary, permit, repository, run, within};

/// Maximum time until something new is signed: some rounds of the signer.
const SIGN_TIMEOUT: Duration = Duration::from_secs(60);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Runs `annals` in a folder; returns exit status and output.
async fn annals(folder: &Path, line: &[&str]) -> (ExitStatus, String) {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command.args(line).current_dir(folder);
    let (status, said) = run(&mut command).await;
    println!("annals {}\n{said}", line.join(" "));
    (status, said)
}

/// The same; the exit code must be `code`.
async fn run_expecting(folder: &Path, code: i32, line: &[&str]) -> String {
    let (status, said) = annals(folder, line).await;
    assert_eq!(status.code(), Some(code), "annals {}: {said}", line.join(" "));
    said
}

/// Number of batches that a checkpoint covers.
fn size(checkpoint: &str) -> u64 {
    let line = checkpoint.lines().nth(1).unwrap_or_default();
    line.parse().unwrap_or_else(|_| panic!("{checkpoint}"))
}

async fn start(name: &str, data: &Path) -> Realm {
    let plan = RealmPlan::new(name, &repository().join("defs"), data);
    Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Repeats a command until its output matches.
async fn until(what: &str, folder: &Path, line: &[&str], is_it: impl Fn(&str) -> bool) -> String {
    within(SIGN_TIMEOUT, what, async {
        loop {
            let (status, said) = annals(folder, line).await;
            if status.success() && is_it(&said) {
                return said;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_archive_always_extends_the_signed_checkpoints() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = Folder::create();
    let (here, data) = (folder.path(), folder.path().join("kept"));
    fs::create_dir_all(&data).expect("a folder for the realm");
    let named = ["checkpoint", "keygen", "--data", "kept", "--name", "example.com/kept"];
    let key = run_expecting(here, 0, &named).await.trim().to_owned();
    run_expecting(here, 2, &named).await;
    let mode = fs::metadata(data.join("signer/key"))
        .expect("a key")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "the key file is private");
    let mut realm = start("kept", &data).await;
    let nats = realm.nats();
    let running = ["--realm", "kept", "--nats", &nats];
    let of = |line: &[&'static str]| [&["checkpoint"], line, &running[..]].concat();
    let verify = |file, key| [&["checkpoint", "verify", file, "--key", key][..], &running].concat();
    let first = until("a checkpoint", here, &of(&["show"]), |_| true).await;
    assert!(first.starts_with("example.com/kept\n"), "{first}");
    fs::write(here.join("first"), &first).expect("written");
    let verified = run_expecting(here, 0, &verify("first", key.as_str())).await;
    assert!(verified.contains("begins with these"), "{verified}");

    witnessed(here, &key, &running).await;

    // A signer that is killed continues where it was.
    realm.kill("signer").expect("it runs");
    assert!(realm.start_again("signer").expect("it starts"));
    let later = until("a later checkpoint", here, &of(&["show"]), |said| {
        size(said) > size(&first) + 20
    })
    .await;

    let rotate = ["checkpoint", "rotate", "--data", "kept"];
    let next = run_expecting(here, 0, &rotate).await.trim().to_owned();
    let keys = until("the new key", here, &of(&["show", "--keys"]), |said| {
        said.lines().count() == 2
    })
    .await;
    assert!(
        keys.starts_with(&format!("0 {key}\n")) && keys.contains(&next),
        "{keys}"
    );
    let last = until("a checkpoint by the new key", here, &of(&["show"]), |said| {
        size(said) > size(&later) && !said.contains("next-key")
    })
    .await;
    fs::write(here.join("last"), &last).expect("written");
    run_expecting(here, 0, &verify("last", next.as_str())).await;
    let wrong = run_expecting(here, 1, &verify("last", key.as_str())).await;
    assert!(wrong.contains("WRONG"), "{wrong}");

    run_expecting(here, 0, &[&["backup", "create"][..], &running].concat()).await;
    realm.stop().await.expect("it stops");
    // An offline realm answers as well.
    let stopped = ["--realm", "kept", "--data", "kept"];
    run_expecting(
        here,
        0,
        &[&["checkpoint", "verify", "first", "--key", &key][..], &stopped].concat(),
    )
    .await;
    rolled_back(here, (&key, &next), size(&first), size(&last)).await;
}

/// A witness cosigns an extension of what it has cosigned, and others see the signature.
async fn witnessed(here: &Path, key: &str, running: &[&str]) {
    let made = [
        "checkpoint",
        "keygen",
        "--witness",
        "witness",
        "--name",
        "witness.example",
    ];
    let witness = run_expecting(here, 0, &made).await.trim().to_owned();
    let cosign = [
        "checkpoint",
        "cosign",
        "--witness",
        "witness",
        "--last",
        "seen",
        "--key",
        key,
    ];
    let cosigned = run_expecting(here, 0, &[&cosign[..], running].concat()).await;
    assert_eq!(fs::read_to_string(here.join("seen")).expect("it remembers"), cosigned);
    let add = ["checkpoint", "add-cosignature", "seen", "--witness"];
    run_expecting(here, 0, &[&add[..], &[&witness], running].concat()).await;
    run_expecting(here, 2, &[&add[..], &[key], running].concat()).await;
    let of_that_size = size(&cosigned).to_string();
    let show = ["checkpoint", "show", "--size", &of_that_size];
    let shown = run_expecting(here, 0, &[&show[..], running].concat()).await;
    assert_eq!(shown, cosigned);
    let verify = [
        "checkpoint",
        "verify",
        "seen",
        "--key",
        key,
        "--witness",
        &witness,
        "--quorum",
    ];
    let said = run_expecting(here, 0, &[&verify[..], &["1"], running].concat()).await;
    let now = SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    let time = said.split('@').nth(1).and_then(|time| time.lines().next());
    let time: u64 = time
        .and_then(|time| time.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    assert!((now - 60..=now).contains(&time), "{said}");
    run_expecting(here, 1, &[&verify[..], &["2"], running].concat()).await;
    // It remembers what it has seen, and does not cosign another log.
    run_expecting(here, 0, &[&cosign[..], running].concat()).await;
}

/// An earlier copy of the archive is not signed by the signer that knows the later one, and a checkpoint distinguishes
/// the two.
async fn rolled_back(here: &Path, (key, next): (&str, &str), first: u64, last: u64) {
    let leaves = (first + 1).to_string();
    let restore = [
        "backup", "restore", "--realm", "back", "--data", "back", "--leaves", &leaves,
    ];
    run_expecting(here, 0, &restore).await;
    let back = ["--realm", "back", "--data", "back"];
    // A checkpoint of an earlier archive holds for this one too.
    run_expecting(
        here,
        0,
        &[&["checkpoint", "verify", "first", "--key", key][..], &back].concat(),
    )
    .await;
    fs::create_dir_all(here.join("back/signer/keys")).expect("a folder");
    for file in ["key", "checkpoint"] {
        fs::copy(here.join("kept/signer").join(file), here.join("back/signer").join(file)).expect("copied");
    }
    let mut realm = start("back", &here.join("back")).await;
    let log = here.join("back/logs/signer.log");
    within(SIGN_TIMEOUT, "the signer to refuse", async {
        while !fs::read_to_string(&log).is_ok_and(|said| said.contains("it was rolled back")) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
    let said = fs::read_to_string(&log).expect("a log");
    let signed = said
        .split("a checkpoint was signed of ")
        .nth(1)
        .and_then(|said| said.split(':').next());
    let signed: u64 = signed
        .and_then(|size| size.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    assert!(signed >= last, "{said}");
    realm.watch(&[]).expect("everything runs on");
    let nats = realm.nats();
    // The last signed checkpoint is in the store, so that every reader sees that the archive is a different one.
    let running = ["--realm", "back", "--nats", &nats];
    let shown = run_expecting(here, 0, &[&["checkpoint", "show"][..], &running].concat()).await;
    assert_eq!(size(&shown), signed);
    fs::write(here.join("newest"), shown).expect("written");
    let verify = ["checkpoint", "verify", "newest", "--key", next];
    let said = run_expecting(here, 1, &[&verify[..], &running].concat()).await;
    assert!(
        said.contains("WRONG: the archive has") && said.contains("it was rolled back"),
        "{said}"
    );
    realm.stop().await.expect("it stops");
}
