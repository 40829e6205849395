//! Every implementation against the one list of checks.

use std::io::Write;
use std::time::Duration;

use annals_store::MemoryStore;
use annals_store::conformance::{self, Subject};
use annals_store::embedded::EmbeddedStore;
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

#[test]
fn foundationdb_conforms() {
    const CLUSTER: &str = "ANNALS_FDB_CLUSTER_FILE";
    let why = match std::env::var(CLUSTER) {
        Err(_) => format!("{CLUSTER} names no cluster file"),
        Ok(file) => format!("{CLUSTER} names {file}, but this build has no FoundationDB implementation"),
    };
    // Written past the test harness, which shows what passing tests print only when asked to.
    let _ = writeln!(
        std::io::stderr(),
        "\nSKIPPED: the store on FoundationDB is not checked, because {why}.\n"
    );
}
