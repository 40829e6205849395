//! `annals log verify --hashes --resume`: the command continues from its file, and refuses a file that it cannot use.

use std::{path::Path, process::Command};

use annals_ids::LeafIndex;
use annals_store::{embedded::EmbeddedStore, layout::archive};
use tempfile::TempDir;

use super::world::{SHARD, World};

fn annals(data: &Path, line: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    command
        .args(["log", "verify", "--hashes", "--data"])
        .arg(data)
        .args(line);
    let output = command.env_remove("ANNALS_REALM").output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    println!("{text}");
    (output.status.code(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_resumes_from_its_file() {
    let folder = TempDir::new().unwrap();
    let store = || EmbeddedStore::open(&folder.path().join("store")).unwrap().store();
    let file = folder.path().join("verified.json");
    let resume = ["--resume", file.to_str().unwrap()];
    let world = World::generate(store(), 50, 80).await;
    let (leaves, last) = (world.frozen.len(), world.frozen[3].clone());
    drop(world);
    let (code, said) = annals(folder.path(), &resume);
    assert!(code == Some(0) && said.contains(&format!("{leaves} leaves")), "{said}");
    assert!(
        said.contains("nothing is wrong") && !said.contains("verifying"),
        "no bar where there is no terminal: {said}"
    );
    let (code, said) = annals(folder.path(), &resume);
    assert!(
        code == Some(0) && said.contains(&format!("behind {leaves} batches that were verified before")),
        "{said}"
    );
    let kept = std::fs::read(&file).unwrap();
    let mut bytes = last.bytes.clone();
    *bytes.last_mut().unwrap() ^= 1;
    let transaction = store().begin();
    transaction
        .set(&archive::leaf_key(SHARD, LeafIndex(3)), &bytes)
        .unwrap();
    transaction
        .clear_range(&annals_store::KeyRange::prefix(&archive::leaf_key(SHARD, LeafIndex(3))))
        .unwrap();
    for (key, chunk) in annals_store::layout::chunks(&archive::leaf_key(SHARD, LeafIndex(3)), &bytes) {
        transaction.set(&key, chunk).unwrap();
    }
    transaction.commit().await.unwrap();
    drop(transaction);
    let (code, said) = annals(folder.path(), &[]);
    let named = format!("WRONG: batch {} of owner {}", last.number, last.owner);
    assert!(code == Some(1) && said.contains(&named), "{said}");
    std::fs::write(&file, "{}").unwrap();
    let (code, said) = annals(folder.path(), &resume);
    assert!(code == Some(2) && said.contains("to start over"), "{said}");
    let wrong = String::from_utf8(kept)
        .unwrap()
        .replacen("\"hash\": \"", "\"hash\": \"00", 1);
    std::fs::write(&file, wrong).unwrap();
    assert_eq!(annals(folder.path(), &resume).0, Some(2));
}
