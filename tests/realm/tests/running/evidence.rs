//! Evidence of a trade in a live realm, and offline afterwards, by real processes and commands.

use std::{fs, path::Path, process::ExitStatus, time::Duration};

use annals_host::nats::ServerCount;
use annals_realm::Folder;
use tokio::process::Command;

use crate::{
    hands::Hand,
    played::{Played, are_built, binary, run, within},
    trading::exchange,
};

/// Maximum time until something is signed: some rounds of the signer.
const SIGN_TIMEOUT: Duration = Duration::from_secs(60);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Runs one of our commands in a folder; returns exit status and output.
pub(crate) async fn command(folder: &Path, line: &[&str]) -> (ExitStatus, String) {
    let mut command = Command::new(binary(line[0]).expect("it is built"));
    command.args(&line[1..]).current_dir(folder);
    run(&mut command).await
}

/// The same; the exit code must be `code`.
pub(crate) async fn run_expecting(folder: &Path, code: i32, line: &[&str]) -> String {
    let (status, said) = command(folder, line).await;
    assert_eq!(status.code(), Some(code), "{}: {said}", line.join(" "));
    said
}

/// Creates an evidence bundle, `trade.zip` for a trade, as soon as the answer is signed.
pub(crate) async fn bundle(folder: &Path, [about, which]: [&str; 2], running: &[&str]) {
    let file = format!("{about}.zip");
    let ask = ["annals", "audit", about, which, "--bundle", &file];
    let ask = [&ask[..], running].concat();
    within(SIGN_TIMEOUT, "it to be signed", async {
        loop {
            let (status, said) = command(folder, &ask).await;
            if status.success() {
                break;
            }
            assert!(
                status.code() == Some(2) && said.contains("no signed checkpoint"),
                "{said}"
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evidence_proves_a_trade_without_the_realm() {
    if !are_built() || binary("annals-verify").is_none() {
        return;
    }
    let realm = Played::start(ServerCount::One, &[]).await;
    let (ann, bob) = (Hand::log_in(&realm, "ann").await, Hand::log_in(&realm, "bob").await);
    let (asker, number) = exchange(&ann, &bob).await;
    let (trade, nats) = (format!("{asker}/{number}"), realm.realm.nats());
    let folder = Folder::create();
    let here = folder.path();
    let running = ["--realm", "played", "--nats", &nats];
    bundle(here, ["trade", &trade], &running).await;
    let keys = [&["annals", "checkpoint", "show", "--keys"][..], &running].concat();
    let keys = run_expecting(here, 0, &keys).await;
    let key = keys.trim().strip_prefix("0 ").expect("one key").to_owned();
    let verified = run_expecting(here, 0, &["annals-verify", "trade.zip", "--key", &key]).await;
    assert!(
        verified.contains(&format!("Trade {trade} of stored entity")),
        "{verified}"
    );
    assert!(
        verified.contains(": settled.") && verified.contains("which you gave"),
        "{verified}"
    );

    let receipt = [&["annals", "audit", "receipt", &trade][..], &running].concat();
    let receipt = run_expecting(here, 0, &receipt).await;
    for (giver, taker, coins) in [(&ann, &bob, 3), (&bob, &ann, 1)] {
        let line = format!(
            "stored entity {} gave stored entity {}: {coins} of kind ",
            giver.id(),
            taker.id()
        );
        assert!(receipt.contains(&line), "{line}: {receipt}");
    }
    fs::write(here.join("receipt"), receipt).expect("written");
    run_expecting(here, 0, &["annals-verify", "receipt", "--key", &key]).await;

    let kept = [&["annals", "checkpoint", "show"][..], &running].concat();
    fs::write(here.join("kept"), run_expecting(here, 0, &kept).await).expect("written");
    let data = realm.data();
    realm.realm.stop().await.expect("it stops");
    // The archive alone, without the realm, and with a new index.
    let data = data.to_str().expect("a path");
    let bundle = [
        "annals",
        "audit",
        "trade",
        &trade,
        "--bundle",
        "again.zip",
        "--kept",
        "kept",
    ];
    let stopped = ["--realm", "played", "--data", data, "--index", "another"];
    run_expecting(here, 0, &[&bundle[..], &stopped].concat()).await;
    let checked = ["annals-verify", "again.zip", "--key", &key, "--checkpoint", "kept"];
    run_expecting(here, 0, &checked).await;
}
