//! A realm of several shards: owners on each of them, a stream, an archive and a fold for each, and one ledger.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use annals_audit::{Index, archive::read_tree};
use annals_director::read_owners;
use annals_evidence::Item;
use annals_ids::{OwnerKind, Shard};
use annals_realm::Folder;
use annals_store::Store;
use serde_json::Value;
use tokio::process::Command;

use crate::played::{POLL_INTERVAL, Played, TIMEOUT, are_built, binary, run, within};

const SHARDS: u16 = 3;

/// The first folds shards 0 and 2, and serves the store; the second folds shard 1.
const DBS: u16 = 2;

/// Batches that a shard archives in some seconds of play.
const FOLDED: u64 = 40;

/// Kills of each kind of process, while bots trade and walk across the borders of cells, which are on different shards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_of_three_shards_keeps_every_promise() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start_with_shards(SHARDS, DBS).await;
    let (_, _, store) = realm.bus();
    let owners = read_owners(&store).await.expect("the store answers");
    let mut kinds: BTreeMap<OwnerKind, BTreeSet<Shard>> = BTreeMap::new();
    for record in owners.values() {
        kinds.entry(record.kind).or_default().insert(record.shard);
    }
    assert_eq!(
        kinds[&OwnerKind::Base].len(),
        2,
        "two bases are on different shards: {owners:?}"
    );
    assert_eq!(kinds[&OwnerKind::Cell].len(), 2, "so are two cells: {owners:?}");
    assert_eq!(kinds[&OwnerKind::Ledger], BTreeSet::from([Shard(0)]));
    let all: BTreeSet<Shard> = kinds.into_values().flatten().collect();
    assert_eq!(all.len(), usize::from(SHARDS), "each shard has owners: {owners:?}");

    realm.wait_for_trade().await;
    for name in ["cell-1", "base-1", "db-2", "cell-2", "db", "base-2"] {
        realm.kill(name);
        realm.start_again(name);
        realm.assert_playing(name).await;
    }
    for shard in 0..SHARDS {
        assert!(archived(&store, shard).await > 0, "shard {shard} is archived");
    }
    let nats = realm.realm.nats();
    let annals = binary("annals").expect("it was built");
    let (status, said) = run(Command::new(&annals).args(["log", "verify", "--realm", "played", "--nats", &nats])).await;
    assert!(status.success() && said.contains("nothing is wrong"), "{said}");
    an_item_is_traced(&store, &annals, &nats).await;
    realm.stop_and_verify().await;
}

/// The db of shard 1 is killed: bots play on, also those of that shard, and the other shard is folded meanwhile. Started
/// again, it folds what its stream holds, with nothing lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shards_db_dies_alone() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start_with_shards(2, 2).await;
    let (_, _, store) = realm.bus();
    realm.wait_for_trade().await;
    realm.kill("db-2");
    // What it has committed by now.
    tokio::time::sleep(POLL_INTERVAL).await;
    let before = [archived(&store, 0).await, archived(&store, 1).await];
    realm.assert_playing("a shard's db is dead").await;
    within(TIMEOUT, "the other shard to be folded", async {
        while archived(&store, 0).await < before[0] + FOLDED {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
    realm.assert_playing("the other shard is folded").await;
    assert_eq!(archived(&store, 1).await, before[1], "nothing folds shard 1");
    realm.start_again("db-2");
    within(TIMEOUT, "the shard to be folded again", async {
        while archived(&store, 1).await < before[1] + FOLDED {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
    realm.assert_playing("both shards are folded").await;
    realm.stop_and_verify().await;
}

/// The history of an item that was traded, which orders on several shards asked for.
async fn an_item_is_traced(store: &Store, annals: &Path, nats: &str) {
    let folder = Folder::create();
    let mut index = Index::open(&folder.path().join("own")).await.expect("an index");
    let what = "an item traded by a base on another shard than the ledger's";
    let item = within(TIMEOUT, what, async {
        loop {
            index.catch_up(store, |_| {}).await.expect("a sound archive");
            if let Some(item) = item_of_another_shard(&index, store).await {
                break item;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
    let mut command = Command::new(annals);
    command.args(["audit", "item", &item.serial.to_string(), "--format", "json"]);
    command.args(["--realm", "played", "--nats", nats, "--index"]);
    command.arg(folder.path().join("asked"));
    let (status, said) = run(&mut command).await;
    assert!(status.success(), "{said}");
    let answer: Value = serde_json::from_str(&said[..=said.rfind('}').expect("an object")]).expect("an object");
    let steps = answer["steps"].as_array().expect("steps");
    assert!(steps.len() >= item.steps.len(), "{said}");
    for (step, expected) in steps.iter().zip(&item.steps) {
        assert_eq!(step["entry"], expected.cited.entry.number.0, "{said}");
        assert_eq!(step["told"]["shard"], 0, "the ledger is on shard 0: {said}");
        let asked = expected.cited.asked.as_ref();
        assert_eq!(
            step["asked"]["shard"].as_u64(),
            asked.map(|asked| asked.leaf.shard.0.into()),
            "{said}"
        );
    }
    let verified = answer["verified"]["shards"].as_object().expect("what was verified");
    assert_eq!(verified.len(), usize::from(SHARDS), "{said}");
    assert!(
        verified.values().all(|shard| shard["batches"].as_u64() > Some(0)),
        "{said}"
    );
}

/// An item of a trade that is archived, one order of whose history came from another shard than the ledger's.
async fn item_of_another_shard(index: &Index, store: &Store) -> Option<Item> {
    for trade in index.recent_trades(100).await.expect("the index answers") {
        let trade = index.trade(store, trade).await.expect("an answer");
        let moved = trade.steps.iter().flat_map(|step| &step.cited.entry.passages);
        for serial in moved.map(|passage| passage.serial).collect::<BTreeSet<_>>() {
            let item = index.item(store, serial).await.expect("an answer");
            let mut asked = item.steps.iter().filter_map(|step| step.cited.asked.as_ref());
            if asked.any(|asked| asked.leaf.shard != Shard(0)) {
                return Some(item);
            }
        }
    }
    None
}

/// Number of batches in the archive of a shard.
async fn archived(store: &Store, shard: u16) -> u64 {
    read_tree(store, Shard(shard)).await.expect("the store answers").size
}
