//! Opens a realm's store where the settings say that it lies.

use std::path::Path;

use annals_store::{
    Store,
    embedded::{self, EmbeddedStore},
    fdb::{self, Place, Prefix},
};
use thiserror::Error;

use crate::config::{Realm, StoreKind};

/// Why a realm's store cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The embedded one.
    #[error("the store in the data directory cannot be opened")]
    Embedded(#[from] embedded::OpenError),
    /// One on a cluster.
    #[error("the store on FoundationDB cannot be opened")]
    FoundationDb(#[from] fdb::OpenError),
}

/// Opens the store of `realm`: the embedded one lies in the data directory and is made if there is none, one on a cluster lies
/// under the realm's own prefix of keys.
///
/// # Errors
/// When it cannot be reached, is held by another process, or this binary has no client for it.
pub async fn open(kind: &StoreKind, data: &Path, realm: &Realm) -> Result<Store, OpenError> {
    match kind {
        StoreKind::Embedded => Ok(EmbeddedStore::open(&data.join("store"))?.store()),
        StoreKind::FoundationDb(cluster_file) => {
            let place = Place {
                cluster_file: cluster_file.clone(),
                prefix: prefix(realm),
            };
            Ok(fdb::open(&place).await?)
        }
    }
}

/// What the keys of a realm begin with on a cluster. No realm's name has a `/`, so that no prefix begins with another.
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
