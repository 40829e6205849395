//! The store on FoundationDB: the production store.
//!
//! It is thin, because [`crate::Transaction`] requires of a backend what FoundationDB's client offers: a read version,
//! reads at a version, and a commit with explicit conflict ranges. A realm has all its keys under its own [`Prefix`],
//! so that many realms can share a cluster. The client's own retries, read-your-writes and time limits are not used:
//! this crate implements those once, for every store.
//!
//! Enabled by the feature `fdb`, which links the C client library and uses client API version 7.3; `fdb-6_3` uses 6.3
//! instead. Without either, [`open`] returns an error that names the missing feature.

#[cfg(any(test, feature = "foundationdb"))]
mod failure;
#[cfg(any(test, feature = "foundationdb"))]
mod keys;
#[cfg(feature = "foundationdb")]
mod network;
#[cfg(feature = "foundationdb")]
mod store;

use std::path::PathBuf;

#[cfg(feature = "foundationdb")]
pub use store::FdbStore;

use crate::limits::PREFIX_BYTES;

#[cfg(all(feature = "fdb-7_3", feature = "fdb-6_3"))]
compile_error!("a binary speaks one version of FoundationDB's client API: choose fdb-7_3 or fdb-6_3");

/// Location of a realm's store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLocation {
    /// The cluster file, as used by FoundationDB's own tools. The client rewrites it when coordinators change, so it
    /// and its folder must be writable.
    pub cluster_file: PathBuf,
    /// Prefix of the realm's keys.
    pub prefix: Prefix,
}

/// Prefix of all keys of one realm, in a cluster that other realms may share: 1 to [`PREFIX_BYTES`] printable ASCII
/// characters. No realm's prefix may be a prefix of another's. To ensure that, end all of them with a character that
/// occurs nowhere else in them, such as `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

/// The text is not a valid prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a prefix of keys has 1 to {PREFIX_BYTES} printable ASCII characters")]
pub struct NoPrefix;

impl Prefix {
    /// A prefix.
    ///
    /// # Errors
    /// [`NoPrefix`].
    pub fn new(text: &str) -> Result<Self, NoPrefix> {
        let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || text.len() > PREFIX_BYTES || !printable {
            return Err(NoPrefix);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text of the prefix.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a store on FoundationDB cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The binary was built without the client.
    #[error(
        "this binary was built without FoundationDB; build it with the feature `fdb` (or `fdb-6_3` for clusters of that \
         version), or set `store = \"embedded\"`"
    )]
    NotBuilt,
    /// The cluster file is missing or not readable.
    #[error("the cluster file {path} cannot be read", path = path.display())]
    ClusterFile {
        /// Path of the cluster file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The path cannot be passed to the C client.
    #[error("the cluster file {path} has a name that is not UTF-8; rename it", path = path.display())]
    ClusterFileName {
        /// Path of the cluster file.
        path: PathBuf,
    },
    /// The client does not start.
    #[error("FoundationDB's client does not start: {reason} ({code})")]
    Client {
        /// The client's error message.
        reason: String,
        /// Its error code.
        code: i32,
    },
    /// The client was stopped: it starts only once in a process.
    #[error("FoundationDB's client has been stopped in this process, and starts only once; restart the process")]
    Stopped,
    /// The cluster does not answer.
    #[error(
        "the cluster of {path} does not answer ({reason}); check that it runs and can be reached",
        path = path.display()
    )]
    NoAnswer {
        /// The cluster file.
        path: PathBuf,
        /// The pending operation, or the client's error message.
        reason: String,
    },
}

/// Opens the store at `place` and requests a version from the cluster, to detect errors now. The client's network
/// thread starts with the first store of a process, and stops when the last one is dropped.
///
/// # Errors
/// When the binary has no client, or the client cannot reach the cluster.
#[cfg(feature = "foundationdb")]
pub async fn open(place: &StoreLocation) -> Result<crate::Store, OpenError> {
    FdbStore::open(place).await.map(|store| store.store())
}

/// Reports that this binary was built without the client.
///
/// # Errors
/// Always [`OpenError::NotBuilt`].
#[cfg(not(feature = "foundationdb"))]
pub async fn open(_place: &StoreLocation) -> Result<crate::Store, OpenError> {
    Err(OpenError::NotBuilt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_printable_and_short() {
        assert_eq!(
            Prefix::new("annals/aldmoor/").as_ref().map(Prefix::as_str),
            Ok("annals/aldmoor/")
        );
        let long = "p".repeat(PREFIX_BYTES + 1);
        for text in ["", "a b", "\u{ff}", "a\0", &long] {
            assert_eq!(Prefix::new(text), Err(NoPrefix), "{text:?}");
        }
    }

    #[cfg(not(feature = "foundationdb"))]
    #[test]
    fn a_binary_without_the_client_names_the_feature() {
        let place = StoreLocation {
            cluster_file: "/etc/foundationdb/fdb.cluster".into(),
            prefix: Prefix::new("annals/test/").expect("a prefix"),
        };
        let error = crate::immediate(open(&place))
            .map(drop)
            .expect_err("it is not built in");
        assert!(error.to_string().contains("the feature `fdb`"), "{error}");
    }
}
