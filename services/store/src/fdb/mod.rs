//! The store on FoundationDB: what production runs.
//!
//! Thin, because [`crate::Transaction`] asks of a backend what FoundationDB's client offers: a read version, reads at a
//! version, and a commit with explicit conflict ranges. A realm has all its keys under a [`Prefix`] of its own, so that many
//! can share a cluster. The client's own retries, read-your-writes and time limits are not used: those are written once, for
//! every store, in this crate.
//!
//! Compiled in by the feature `fdb`, which needs the C client library when a binary is linked and speaks the client API of
//! version 7.3; `fdb-6_3` instead of it speaks that of 6.3. Without either, [`open`] says what is missing.

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

/// Where a realm's store lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The cluster file, as FoundationDB's own tools use it. The client rewrites it when coordinators change, so that it and
    /// its folder must be writable.
    pub cluster_file: PathBuf,
    /// What the realm's keys begin with.
    pub prefix: Prefix,
}

/// What all keys of one realm begin with, in a cluster that may hold others: 1 to [`PREFIX_BYTES`] printable ASCII
/// characters. No realm's prefix may begin with another's; names that end with the same character that is in none of them,
/// such as `/`, ensure that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

/// Why a text is no prefix.
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

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a store on FoundationDB cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The binary has no client in it.
    #[error(
        "this binary was built without FoundationDB; build it with the feature `fdb` (or `fdb-6_3` for clusters of that \
         version), or set `store = \"embedded\"`"
    )]
    NotBuilt,
    /// The cluster file is not there, or not readable.
    #[error("the cluster file {path} cannot be read", path = path.display())]
    ClusterFile {
        /// Which.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The path cannot be handed to the C client.
    #[error("the cluster file {path} has a name that is not UTF-8; rename it", path = path.display())]
    ClusterFileName {
        /// Which.
        path: PathBuf,
    },
    /// The client does not start.
    #[error("FoundationDB's client does not start: {reason} ({code})")]
    Client {
        /// What the client says.
        reason: String,
        /// Its error code.
        code: i32,
    },
    /// It was stopped: it starts once in a process.
    #[error("FoundationDB's client has been stopped in this process, and starts only once; start the process again")]
    Stopped,
    /// Nobody answers.
    #[error("the cluster that {path} names gives no answer ({reason}); is it running, and reachable from here?", path = path.display())]
    NoAnswer {
        /// The cluster file.
        path: PathBuf,
        /// What was awaited, or what the client says.
        reason: String,
    },
}

/// Opens the store at `place` and asks the cluster for its version, so that what is wrong is known now. The client's network
/// thread starts with the first store of a process, and stops when the last is dropped.
///
/// # Errors
/// When there is no client in this binary, or it cannot reach the cluster.
#[cfg(feature = "foundationdb")]
pub async fn open(place: &Place) -> Result<crate::Store, OpenError> {
    FdbStore::open(place).await.map(|store| store.store())
}

/// Says that this binary has no client in it.
///
/// # Errors
/// Always [`OpenError::NotBuilt`].
#[cfg(not(feature = "foundationdb"))]
pub async fn open(_place: &Place) -> Result<crate::Store, OpenError> {
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
    fn a_binary_without_it_names_the_feature() {
        let place = Place {
            cluster_file: "/etc/foundationdb/fdb.cluster".into(),
            prefix: Prefix::new("annals/test/").expect("a prefix"),
        };
        let error = crate::immediate(open(&place))
            .map(drop)
            .expect_err("it is not built in");
        assert!(error.to_string().contains("the feature `fdb`"), "{error}");
    }
}
