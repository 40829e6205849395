//! An optional FoundationDB cluster to run suites on, named by the environment.

use std::io::Write;
use std::path::PathBuf;

use crate::fdb::{self, OpenError, Prefix, StoreLocation};
use crate::{KeyRange, Store, StoreError, Transaction};

/// Environment variable with the path of the cluster file.
pub const CLUSTER: &str = "ANNALS_FDB_CLUSTER_FILE";

/// The named cluster, in which a suite has its own keys. They are deleted on drop, also while a failed suite unwinds.
/// Only one suite of a process can use it: FoundationDB's client starts once.
pub struct Cluster {
    file: PathBuf,
    suite: String,
    /// Kept to the end, as the client stops with the last store.
    opened: Swept,
}

/// Stores whose rows are deleted on drop.
#[derive(Default)]
struct Swept(Vec<Store>);

impl Cluster {
    /// The cluster that [`CLUSTER`] names, for `suite`. If there is none, says so past the test harness, which hides
    /// the output of passing tests.
    ///
    /// # Panics
    /// When the named cluster cannot be used.
    pub async fn named(suite: &str) -> Option<Self> {
        let Some(file) = std::env::var_os(CLUSTER) else {
            return skipped(suite, &format!("{CLUSTER} names no cluster file"));
        };
        let mut cluster = Self {
            file: file.into(),
            suite: suite.to_owned(),
            opened: Swept::default(),
        };
        match cluster.open().await {
            Ok(_) => Some(cluster),
            Err(OpenError::NotBuilt) => skipped(
                suite,
                &format!("this build has no client (--features annals-store/fdb), though {CLUSTER} names a cluster"),
            ),
            Err(error) => panic!("{CLUSTER} names a cluster that cannot be used: {error}"),
        }
    }

    /// An empty store, as for one of several realms in the cluster.
    ///
    /// # Panics
    /// When the cluster cannot be used.
    pub async fn empty(&mut self) -> Store {
        let opened = self.open().await;
        opened.unwrap_or_else(|error| panic!("{CLUSTER} names a cluster that cannot be used: {error}"))
    }

    async fn open(&mut self) -> Result<Store, OpenError> {
        let (suite, process, nth) = (&self.suite, std::process::id(), self.opened.0.len());
        let place = StoreLocation {
            cluster_file: self.file.clone(),
            prefix: Prefix::new(&format!("annals-test/{suite}-{process}-{nth}/")).expect("suites have short names"),
        };
        let store = fdb::open(&place).await?;
        self.opened.0.push(store.clone());
        Ok(store)
    }
}

impl Drop for Swept {
    fn drop(&mut self) {
        let stores = std::mem::take(&mut self.0);
        if stores.is_empty() {
            return;
        }
        // On its own thread: the dropping code may be inside a runtime, which must not block.
        let swept = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let sweep =
                |runtime: tokio::runtime::Runtime| runtime.block_on(sweep(&stores)).map_err(|error| error.to_string());
            runtime.map_err(|error| error.to_string()).and_then(sweep)
        });
        let why = match swept.join() {
            Ok(Ok(())) => return,
            Ok(Err(why)) => why,
            Err(_) => "a panic, printed above".to_owned(),
        };
        let left = format!("what the suite has left stays in the cluster: {why}");
        // A second panic would hide the first.
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "{left}");
        } else {
            panic!("{left}");
        }
    }
}

async fn sweep(stores: &[Store]) -> Result<(), StoreError> {
    for store in stores {
        let clear = |transaction: Transaction| async move { transaction.clear_range(&KeyRange::everything()) };
        store.run_repeatable(clear).await?;
    }
    Ok(())
}

fn skipped(suite: &str, why: &str) -> Option<Cluster> {
    // If standard error fails, there is nowhere to report.
    let _ = writeln!(
        std::io::stderr(),
        "\nSKIPPED: {suite} is not run on FoundationDB, because {why}.\n"
    );
    None
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::MemoryStore;

    #[test]
    fn a_suite_that_fails_leaves_no_rows_behind() {
        let memory = MemoryStore::new();
        let failing = AssertUnwindSafe(|| {
            let swept = Swept(vec![memory.store()]);
            let transaction = swept.0[0].begin();
            transaction.set(b"left", b"1").expect("a small row");
            crate::immediate(transaction.commit()).expect("it commits");
            assert_eq!(memory.rows().len(), 1);
            panic!("a check has failed");
        });
        assert!(catch_unwind(failing).is_err());
        assert!(memory.rows().is_empty());
    }
}
