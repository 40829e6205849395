//! Evidence that was handed out stays valid for ever, and `annals-verify` reports the same about it.
//!
//! The folder `handed-out` beside this file has evidence of form 1 as it was made once, and for each file a
//! `FILE.said`: the command line of the check, and its result. There are bundles of a trade, an item and an account, of
//! a log that has changed its key, cosigned by a witness and with a consistency proof from a checkpoint that was kept
//! before the change, and a receipt of that trade.
//!
//! The folder `handed-out-3` has the same of form 3: bundles of a trade and an item of a realm of three shards, checked with
//! the keys of all three logs, and with that of the ledger's alone.
//!
//! The files are never regenerated. `UPDATE_EXPECT=1` makes them only if the folder is missing: a changed form is a new
//! form, with a folder of its own beside the one that people have.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use annals_evidence::Question;
use annals_host::signer::add_cosignatures;
use annals_ids::DatabaseId;
use annals_proof::{Checkpoint, KeyKind, KeyName, SignedNote, SignerKey};

use crate::{archive::Archive, game::SHARD};

/// When the witness saw the checkpoint, seconds since 1970.
const SEEN: u64 = 1_795_308_600;

/// The folder of form 1.
const FIRST: &str = "handed-out";

/// The folder of form 3.
const THIRD: &str = "handed-out-3";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/evidence").join(name)
}

/// Exit code and output of `annals-verify` in a folder.
fn said(name: &str, line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals-verify"));
    let output = command.args(line.split_whitespace()).current_dir(folder(name)).output();
    let output = output.expect("it runs");
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
    let code = output.status.code().expect("it ends by itself");
    format!("$ annals-verify {line}\n{printed}exit code {code}\n")
}

#[tokio::test]
async fn evidence_of_every_released_form_is_accepted() {
    let is_to_be_made = |name| !folder(name).exists() && std::env::var("UPDATE_EXPECT").is_ok();
    if is_to_be_made(FIRST) {
        hand_out().await;
    }
    if is_to_be_made(THIRD) {
        hand_out_of_shards().await;
    }
    assert_eq!(understood(FIRST), 4, "a trade, an item, an account and a receipt");
    assert_eq!(understood(THIRD), 4, "a trade and an item, each checked twice");
}

/// Checks that `annals-verify` says of all evidence in a folder what it said once. Returns how much of it it accepts.
fn understood(name: &str) -> usize {
    let mut understood = 0;
    for file in fs::read_dir(folder(name)).expect("it is kept") {
        let path = file.expect("it can be read").path();
        if path.extension().is_none_or(|extension| extension != "said") {
            continue;
        }
        let before = fs::read_to_string(&path).expect("text");
        let line = before
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("$ annals-verify "));
        let now = said(name, line.expect("the line by which it was checked"));
        assert_eq!(
            now,
            before,
            "{}: of this, something else was said before",
            path.display()
        );
        understood += usize::from(before.ends_with("exit code 0\n"));
    }
    understood
}

/// Makes evidence of a realm of three shards.
async fn hand_out_of_shards() {
    fs::create_dir(folder(THIRD)).expect("a folder");
    let put = |name: &str, bytes: &[u8]| fs::write(folder(THIRD).join(name), bytes).expect("written");
    let archive = Archive::play_on_shards(810, 150, 3).await;
    let all = archive.anchors_of_all().keys;
    let all: Vec<String> = all.iter().map(|key| format!("--key {key}")).collect();
    for (name, question) in [("trade.zip", archive.trade()), ("item.zip", archive.item())] {
        put(name, &archive.bundle(question).await);
        let lines = [("all", all.join(" ")), ("one", format!("--key {}", archive.key))];
        for (which, keys) in lines {
            let said = said(THIRD, &format!("{name} {keys}"));
            put(&format!("{name}.{which}.said"), said.as_bytes());
        }
    }
}

/// Makes evidence as an operator would.
async fn hand_out() {
    fs::create_dir(folder(FIRST)).expect("a folder");
    let put = |name: &str, bytes: &[u8]| fs::write(folder(FIRST).join(name), bytes).expect("written");
    let mut archive = Archive::play(800, 150).await;
    let first = archive.key.clone();
    put("kept.txt", archive.newest().await.to_string().as_bytes());
    let second = archive.rotate();
    archive.go_on(20).await;
    archive.sign().await;
    archive.go_on(20).await;
    let mut cosigned = archive.sign().await;
    let name = KeyName::new("witness.example").expect("a name");
    let witness = SignerKey::from_seed(name, KeyKind::Cosignature, &[7; 32]);
    cosigned.sign(&witness, SEEN);
    let size = cosigned.text().parse::<Checkpoint>().expect("one").head.size;
    let added = add_cosignatures(&archive.game.store, SHARD, size, &cosigned, &[witness.verifier()]).await;
    assert_eq!(added.expect("the store answers"), 1);
    let kept = fs::read_to_string(folder(FIRST).join("kept.txt")).expect("it was written");
    let kept = [SignedNote::parse(kept.as_bytes()).expect("a note")];
    let witness = witness.verifier();
    let party = archive.game.deals.iter().find(|deal| deal.id == archive.settled()[0]);
    let DatabaseId(party) = party.expect("a trade").parties[0];
    let questions = [
        ("trade.zip", archive.trade()),
        ("item.zip", archive.item()),
        ("account.zip", Question::Account(DatabaseId(party))),
    ];
    for (name, question) in questions {
        put(name, &archive.try_bundle(question, &kept).await.expect("evidence"));
        let line = format!("{name} --key {first} --checkpoint kept.txt --witness {witness} --quorum 1");
        put(&format!("{name}.said"), said(FIRST, &line).as_bytes());
    }
    let receipt = archive.receipt(archive.settled()[0]).await.expect("a receipt");
    put("receipt.txt", receipt.as_bytes());
    put(
        "receipt.txt.said",
        said(FIRST, &format!("receipt.txt --key {second}")).as_bytes(),
    );
}
