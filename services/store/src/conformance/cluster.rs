//! A FoundationDB cluster to run suites on, where one is named.

use std::io::Write;
use std::path::PathBuf;

use crate::fdb::{self, OpenError, Place, Prefix};
use crate::{KeyRange, Store};

/// Names the cluster file of the cluster.
pub const CLUSTER: &str = "ANNALS_FDB_CLUSTER_FILE";

/// The named cluster, of which a suite has keys of its own. Only one suite of a process can have one: FoundationDB's client
/// starts once.
pub struct Cluster {
    file: PathBuf,
    suite: String,
    /// Kept to the end, as the client stops with the last.
    opened: Vec<Store>,
}

impl Cluster {
    /// The cluster that [`CLUSTER`] names, for `suite`. None is said past the test harness, which shows what passing tests
    /// print only when asked to.
    ///
    /// # Panics
    /// When a cluster is named that cannot be used.
    pub async fn named(suite: &str) -> Option<Self> {
        let Some(file) = std::env::var_os(CLUSTER) else {
            return skipped(suite, &format!("{CLUSTER} names no cluster file"));
        };
        let mut cluster = Self {
            file: file.into(),
            suite: suite.to_owned(),
            opened: Vec::new(),
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

    /// An empty store, as one of several realms in the cluster has it.
    ///
    /// # Panics
    /// When the cluster gives none.
    pub async fn empty(&mut self) -> Store {
        let opened = self.open().await;
        opened.unwrap_or_else(|error| panic!("{CLUSTER} names a cluster that cannot be used: {error}"))
    }

    /// Removes what the suite has left there.
    ///
    /// # Panics
    /// When it stays.
    pub async fn sweep(self) {
        for store in &self.opened {
            let swept = store.begin();
            swept.clear_range(&KeyRange::everything()).expect("within limits");
            swept.commit().await.expect("what the suite has left is removed");
        }
    }

    async fn open(&mut self) -> Result<Store, OpenError> {
        let (suite, process, nth) = (&self.suite, std::process::id(), self.opened.len());
        let place = Place {
            cluster_file: self.file.clone(),
            prefix: Prefix::new(&format!("annals-test/{suite}-{process}-{nth}/")).expect("suites have short names"),
        };
        let store = fdb::open(&place).await?;
        self.opened.push(store.clone());
        Ok(store)
    }
}

fn skipped(suite: &str, why: &str) -> Option<Cluster> {
    // What cannot be said to the standard error can be said nowhere.
    let _ = writeln!(
        std::io::stderr(),
        "\nSKIPPED: {suite} is not run on FoundationDB, because {why}.\n"
    );
    None
}
