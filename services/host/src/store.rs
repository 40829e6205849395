//! Opens a realm's store where the settings place it.

use std::path::Path;

use annals_store::{
    Store, StoreError,
    embedded::{self, EmbeddedStore},
    fdb::{self, Prefix, StoreLocation},
    layout::{
        lineage,
        mark::{self, OtherLayout},
    },
};
use thiserror::Error;

use crate::config::{Realm, StoreKind};
use crate::waiting::Wait;

/// Why a realm's store cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The embedded store.
    #[error("the store in the data directory cannot be opened")]
    Embedded(#[from] embedded::OpenError),
    /// The store on a cluster.
    #[error("the store on FoundationDB cannot be opened")]
    FoundationDb(#[from] fdb::OpenError),
    /// It was written with another layout of keys.
    #[error("this program cannot use the realm's store")]
    Layout(#[from] OtherLayout),
    /// It cannot be read.
    #[error("the store cannot be read")]
    Unreadable(#[from] StoreError),
    /// It holds no realm: the restore of a backup has not finished.
    #[error(
        "the store is unfinished: restoring backup {0} into it was begun and has not ended. Let it end, or run \
         `annals backup restore` again, which starts over"
    )]
    Unfinished(String),
}

/// Opens the store of `realm`, as [`open_to_fill`] does.
///
/// # Errors
/// As there; and when the restore of a backup into it has not finished.
pub async fn open(kind: &StoreKind, data: &Path, realm: &Realm) -> Result<Store, OpenError> {
    let store = open_to_fill(kind, data, realm).await?;
    let unfinished = |transaction| async move { lineage::read_unfinished(&transaction).await };
    match store.read(unfinished).await? {
        Some(backup) => Err(OpenError::Unfinished(backup)),
        None => Ok(store),
    }
}

/// Opens the store of `realm` with any content, as long as its layout is ours: the embedded one is in the data
/// directory and is created if missing, one on a cluster is under the realm's own prefix of keys.
///
/// # Errors
/// When it cannot be reached, is held by another process, is of another layout, or this binary has no client for it.
pub async fn open_to_fill(kind: &StoreKind, data: &Path, realm: &Realm) -> Result<Store, OpenError> {
    let store = match kind {
        StoreKind::Embedded => EmbeddedStore::open(&data.join("store"))?.store(),
        StoreKind::FoundationDb(cluster_file) => {
            let place = StoreLocation {
                cluster_file: cluster_file.clone(),
                prefix: prefix(realm),
            };
            let mut wait = Wait::new(
                format!("the FoundationDB cluster of {}", cluster_file.display()),
                "nothing is served until it answers, and this process ends soon; check that the cluster runs",
            );
            let opened = wait.during(fdb::open(&place)).await;
            wait.ends();
            opened?
        }
    };
    let layout = |transaction| async move { mark::read_layout(&transaction).await };
    mark::check_layout(store.read(layout).await?)?;
    Ok(store)
}

/// Key prefix of a realm on a cluster. No realm's name has a `/`, so no prefix begins with another.
fn prefix(realm: &Realm) -> Prefix {
    Prefix::new(&format!("annals/{}/", realm.as_str())).expect("invariant: a realm's name is short and printable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_realm_has_a_prefix_of_its_own() {
        let of = |name: &str| prefix(&name.parse().expect("a name"));
        assert_eq!(of("aldmoor").as_str(), "annals/aldmoor/");
        assert!(!of("aldmoor-2").as_str().starts_with(of("aldmoor").as_str()));
        let longest = "r".repeat(32);
        assert!(of(&longest).as_str().ends_with(&format!("{longest}/")));
    }
}
