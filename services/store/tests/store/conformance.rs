//! Runs the conformance suite on every implementation.

use std::time::Duration;

use annals_store::MemoryStore;
use annals_store::conformance::{self, Cluster, Subject};
use annals_store::embedded::EmbeddedStore;
use futures::FutureExt;

/// Environment variable with the seed of the generated checks; the seed is printed on failure.
const SEED: &str = "ANNALS_STORE_SEED";

fn seed() -> u64 {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("seed {seed}; set {SEED} for another");
    seed
}

async fn conforms(memory: impl Fn() -> MemoryStore) {
    for seed in seed()..seed() + 20 {
        let memory = memory();
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

#[tokio::test]
async fn the_store_in_memory_conforms() {
    conforms(MemoryStore::new).await;
}

#[tokio::test]
async fn the_store_in_memory_conforms_when_commits_share_versions() {
    conforms(MemoryStore::sharing_versions).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_store_conforms() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let embedded = EmbeddedStore::open(directory.path()).expect("a new store");
    conformance::run(&Subject::real(embedded.store(), seed())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foundationdb_conforms() {
    let Some(mut cluster) = Cluster::named("conformance").await else {
        return;
    };
    let store = cluster.empty().await;
    conformance::run(&Subject::real(store, seed())).await;
}
