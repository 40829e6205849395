//! A realm of several shards: owners on each of them, a stream, an archive and a fold for each, and one ledger.

use std::collections::{BTreeMap, BTreeSet};

use annals_audit::archive::read_tree;
use annals_director::read_owners;
use annals_ids::{OwnerKind, Shard};
use annals_store::Store;
use tokio::process::Command;

use crate::played::{Played, are_built, binary, run};

const SHARDS: u16 = 3;

/// The first folds shards 0 and 2, and serves the store; the second folds shard 1.
const DBS: u16 = 2;

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
    let (status, said) = run(Command::new(annals).args(["log", "verify", "--realm", "played", "--nats", &nats])).await;
    assert!(status.success() && said.contains("nothing is wrong"), "{said}");
    realm.stop_and_verify().await;
}

/// Number of batches in the archive of a shard.
async fn archived(store: &Store, shard: u16) -> u64 {
    read_tree(store, Shard(shard)).await.expect("the store answers").size
}
