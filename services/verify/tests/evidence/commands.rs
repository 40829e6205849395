//! `annals-verify` as a command: its output and exit codes.

use std::{fs, process::Command};

use tempfile::TempDir;

use crate::archive::Archive;

/// A folder with a bundle of a trade that contains a proof from a kept checkpoint, and a receipt of the trade.
struct Given {
    folder: TempDir,
    archive: Archive,
    bundle: Vec<u8>,
    key: String,
}

impl Given {
    async fn make(seed: u64) -> Self {
        let mut archive = Archive::play(seed, 150).await;
        let kept = archive.newest().await;
        let id = archive.settled()[0];
        archive.go_on(40).await;
        archive.sign().await;
        let bundle = archive.try_bundle(archive.trade(), std::slice::from_ref(&kept)).await;
        let given = Self {
            folder: tempfile::tempdir().expect("a folder"),
            bundle: bundle.expect("evidence"),
            key: archive.key.to_string(),
            archive,
        };
        let receipt = given.archive.receipt(id).await.expect("a receipt");
        given.put("kept", kept.to_string());
        given.put("trade.zip", &given.bundle);
        given.put("receipt", receipt);
        given
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.folder.path().join(name), bytes).expect("written");
    }

    /// Asserts the exit code, and that the output contains `part`.
    fn ends(&self, code: i32, line: &[&str], part: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals-verify"));
        let output = command.args(line).current_dir(self.folder.path()).output();
        let output = output.expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).expect("text");
        assert_eq!(output.status.code(), Some(code), "{line:?}: {said}");
        assert!(said.contains(part), "{line:?}: {part:?} in {said}");
    }
}

#[tokio::test]
async fn the_command_reports_proven_and_unproven_claims() {
    let mut given = Given::make(700).await;
    let key = given.key.clone();
    given.ends(0, &["trade.zip"], "That this key is the realm's.");
    given.ends(0, &["trade.zip", "--key", &key], "PROVEN\n- The report follows from");
    given.ends(
        0,
        &["trade.zip", "--key", &key, "--checkpoint", "kept"],
        "begins with the",
    );
    given.ends(0, &["receipt", "--key", &key], " gave stored entity ");
    // A kept checkpoint of the same size needs no consistency proof; a later one cannot be connected with the bundle.
    given.put("newest", given.archive.newest().await.to_string());
    given.put("item.zip", given.archive.bundle(given.archive.item()).await);
    given.ends(0, &["item.zip", "--checkpoint", "newest"], "PROVEN");
    given.archive.go_on(40).await;
    let later = given.archive.sign().await.to_string();
    given.put("later", later);
    given.ends(2, &["item.zip", "--checkpoint", "later"], "no proof leads from");
}

#[tokio::test]
async fn the_command_reports_invalid_evidence() {
    let (given, other) = (Given::make(710).await, Archive::play(711, 120).await);
    let stranger = other.key.to_string();
    given.ends(1, &["trade.zip", "--key", &given.key, "--quorum", "1"], "WRONG: ");
    for file in ["trade.zip", "receipt"] {
        given.ends(
            1,
            &[file, "--key", &stranger],
            "WRONG: the checkpoint is signed by example.com/audited+",
        );
    }
    given.put("other", other.newest().await.to_string());
    given.ends(1, &["trade.zip", "--checkpoint", "other"], "WRONG: the kept checkpoint");
    let mut changed = given.bundle.clone();
    let place = changed.windows(7).position(|bytes| bytes == b"settled");
    let place = place.expect("the report says so");
    changed[place..place + 7].copy_from_slice(b"expired");
    given.put("changed.zip", changed);
    given.ends(
        1,
        &["changed.zip"],
        "WRONG: the bundle is not intact: the file report.txt was changed",
    );
    given.put("cut.zip", &given.bundle[..given.bundle.len() / 2]);
    given.ends(1, &["cut.zip"], "it was truncated");
}

#[tokio::test]
async fn the_command_reports_unreadable_files() {
    let given = Given::make(720).await;
    given.ends(2, &["nowhere.zip"], "cannot be read");
    given.ends(2, &["kept"], "kept cannot be checked");
    given.ends(2, &["trade.zip", "--key", "wrong"], "not a verifier key");
    given.ends(2, &["trade.zip", "--checkpoint", "trade.zip"], "is not a checkpoint");
}
