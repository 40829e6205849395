//! Conformance suite for every implementation of the store.
//!
//! One list of checks, run against the embedded store, the one in memory, the one over NATS, and FoundationDB if there
//! is a cluster. Each check uses its own keys, so that all can share one store, whatever its contents.

mod cluster;
mod isolation;
mod limits;
mod reads;
mod serializability;
mod unknown;
mod watching;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, LocalBoxFuture};

use crate::{KeyRange, Store, StoreError};

pub use cluster::{CLUSTER, Cluster};

/// A store under test.
pub struct Subject {
    pub store: Store,
    /// Advances its time, by waiting or by setting it.
    pub pass: Box<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>,
    /// Seed of the generated checks.
    pub seed: u64,
}

impl Subject {
    /// A store that uses the machine's clock.
    #[must_use]
    pub fn real(store: Store, seed: u64) -> Self {
        Self {
            store,
            pass: Box::new(|time| tokio::time::sleep(time).boxed()),
            seed,
        }
    }
}

/// One check. It returns an unexpected error of the store, and panics on any other wrong behaviour.
pub type Check = for<'a> fn(&'a Subject) -> LocalBoxFuture<'a, Result<(), StoreError>>;

/// All checks, by name.
#[must_use]
pub fn checks() -> Vec<(&'static str, Check)> {
    let mut checks: Vec<(&'static str, Check)> = Vec::new();
    checks.extend_from_slice(reads::CHECKS);
    checks.extend_from_slice(isolation::CHECKS);
    checks.extend_from_slice(watching::CHECKS);
    checks.extend_from_slice(unknown::CHECKS);
    checks.extend_from_slice(serializability::CHECKS);
    checks.extend_from_slice(limits::CHECKS);
    checks
}

/// Runs all checks to their end, then fails with the names of those that failed.
///
/// # Panics
/// If a check failed.
pub async fn run(subject: &Subject) {
    let mut failed = Vec::new();
    for (name, check) in checks() {
        println!("checking {name}");
        // On a store that never waits, the checks before would have used up the runtime's budget for one task, and then
        // even what is ready has to wait.
        tokio::task::yield_now().await;
        match AssertUnwindSafe(check(subject)).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failed.push(format!("{name}: {error}")),
            Err(_) => failed.push(format!("{name}: its panic is printed above")),
        }
    }
    assert!(
        failed.is_empty(),
        "with seed {}, the store fails: {failed:#?}",
        subject.seed
    );
}

/// The keys of one check: those that start with its name. Deletes the rows of an earlier run.
async fn fresh(subject: &Subject, name: &str) -> Result<Keys, StoreError> {
    let keys = Keys {
        prefix: format!("conformance/{name}/").into_bytes(),
    };
    let transaction = subject.store.begin();
    transaction.clear_range(&keys.all())?;
    transaction.commit().await?;
    Ok(keys)
}

/// The keys of one check.
struct Keys {
    prefix: Vec<u8>,
}

impl Keys {
    fn key(&self, name: impl AsRef<[u8]>) -> Vec<u8> {
        [&self.prefix, name.as_ref()].concat()
    }

    fn all(&self) -> KeyRange {
        KeyRange::prefix(&self.prefix)
    }

    fn range(&self, begin: &str, end: &str) -> KeyRange {
        KeyRange::new(self.key(begin), self.key(end))
    }

    /// The part of a key after the check's prefix.
    fn name(&self, key: &[u8]) -> String {
        String::from_utf8_lossy(key.strip_prefix(&self.prefix[..]).unwrap_or(key)).into_owned()
    }
}

/// Writes rows in one transaction.
async fn put(store: &Store, rows: &[(&[u8], &[u8])]) -> Result<(), StoreError> {
    let transaction = store.begin();
    for (key, value) in rows {
        transaction.set(key, value)?;
    }
    transaction.commit().await.map(drop)
}

/// Reads one key in its own transaction.
async fn look(store: &Store, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(store.begin().get(key).await?.map(|value| value.to_vec()))
}

/// Splitmix64: pseudorandom numbers, the same for the same seed.
struct Dice {
    state: u64,
}

impl Dice {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }
}
