//! Every implementation against the one list of checks.

use std::io::Write;
use std::time::Duration;

use annals_store::conformance::{self, Subject};
use annals_store::embedded::EmbeddedStore;
use annals_store::fdb::{self, OpenError, Place, Prefix};
use annals_store::{KeyRange, MemoryStore};
use futures::FutureExt;

/// Names the seed of the generated checks; printed when one fails.
const SEED: &str = "ANNALS_STORE_SEED";

fn seed() -> u64 {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("seed {seed}; set {SEED} for another");
    seed
}

#[tokio::test]
async fn the_store_in_memory_conforms() {
    for seed in seed()..seed() + 20 {
        let memory = MemoryStore::new();
        let clock = memory.clone();
        let pass = Box::new(move |time: Duration| {
            clock.advance(time);
            std::future::ready(()).boxed()
        });
        conformance::run(&Subject {
            store: memory.store(),
            pass,
            seed,
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_store_conforms() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let embedded = EmbeddedStore::open(directory.path()).expect("a new store");
    conformance::run(&Subject::real(embedded.store(), seed())).await;
}

/// Names the cluster file of a FoundationDB cluster to check against.
const CLUSTER: &str = "ANNALS_FDB_CLUSTER_FILE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foundationdb_conforms() {
    let Some(file) = std::env::var_os(CLUSTER) else {
        return skipped(&format!("{CLUSTER} names no cluster file"));
    };
    // Keys of this run alone, as one of several realms in the cluster has them.
    let place = Place {
        cluster_file: file.into(),
        prefix: Prefix::new(&format!("annals-test/conformance-{}/", std::process::id())).expect("a prefix"),
    };
    let store = match fdb::open(&place).await {
        Ok(store) => store,
        Err(OpenError::NotBuilt) => {
            return skipped(&format!(
                "this build has no client (cargo test -p annals-store --features fdb), though {CLUSTER} names a cluster"
            ));
        }
        Err(error) => panic!("{CLUSTER} names a cluster that cannot be used: {error}"),
    };
    conformance::run(&Subject::real(store.clone(), seed())).await;
    let swept = store.begin();
    swept.clear_range(&KeyRange::everything()).expect("within limits");
    swept.commit().await.expect("what the checks have left is removed");
}

/// Written past the test harness, which shows what passing tests print only when asked to.
fn skipped(why: &str) {
    let _ = writeln!(
        std::io::stderr(),
        "\nSKIPPED: the store on FoundationDB is not checked, because {why}.\n"
    );
}
