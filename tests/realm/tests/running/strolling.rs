//! `annals bots` on a live realm.

use std::{fs, path::Path, time::Duration};

use annals::up::{Realm, RealmPlan};
use annals_ids::Hash;
use serde_json::Value;
use tokio::{process::Command, time::sleep};

use crate::played::{are_built, binary, permit, repository, run};

const REALM: &str = "strolled";

/// Three bots for four seconds.
fn bots(realm: &Realm, certificate: Hash, files: &Path) -> Command {
    let mut command = annals("bots", files);
    command
        .args(["--json", "--bots", "3", "--duration", "4"])
        .args(["--login", &realm.login.0.to_string()])
        .args(["--certificate", &certificate.to_string()]);
    command
}

fn annals(command: &str, files: &Path) -> Command {
    let mut annals = Command::new(binary("annals").expect("it is built"));
    annals.arg(command);
    annals.arg("--world").arg(repository().join("defs"));
    annals.arg("--files").arg(files);
    annals
}

fn report(said: &str) -> Value {
    let line = said.lines().find(|line| line.starts_with('{')).expect("a report");
    serde_json::from_str(line).expect("it is JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bots_play_in_a_live_realm_and_report_what_they_were_shown() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (files, world) = (folder.path().join("shown"), repository().join("defs"));
    let realm = Realm::start(RealmPlan::new(REALM, &world, &folder.path().join("realm"))).await;
    let realm = realm.unwrap_or_else(|error| panic!("{error}"));
    let (status, said) = run(&mut bots(&realm, realm.login.1, &files)).await;
    assert!(status.success(), "{said}");
    let told = report(&said);
    assert_eq!(
        (&told["bots"], &told["has_played"]),
        (&3.into(), &true.into()),
        "{said}"
    );
    assert!(told["in_view"].as_f64() > Some(0.5), "they see one another: {said}");
    assert!(told["round_trip_p50_us"].as_u64() > Some(0), "{said}");

    // The files they wrote are the input of `annals check`, once the archive has the events.
    let mut checked = (false, String::new());
    for _ in 0..40 {
        if checked.0 {
            break;
        }
        sleep(Duration::from_millis(250)).await;
        let (status, said) = run(annals("check", &files).args(["--realm", REALM, "--nats", &realm.nats()])).await;
        checked = (status.success(), said);
    }
    assert!(checked.0, "{}", checked.1);

    // A client with the wrong certificate hash is refused, and the error names possible causes.
    let (status, said) = run(&mut bots(&realm, Hash::ZERO, &files)).await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert_eq!(report(&said)["has_played"], false);
    assert!(said.contains("3 bots never logged in"), "{said}");
    assert_eq!(fs::read_dir(&files).expect("the folder is there").count(), 3);
    realm.stop().await.expect("it stops");
}
