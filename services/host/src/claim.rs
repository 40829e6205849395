//! Exclusive use of a realm's data directory.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// The file in a realm's folder that is locked while the realm runs.
const CLAIM: &str = "realm.lock";

/// Exclusive use of a folder by this realm, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Claim {
    /// The lock belongs to the open file.
    _file: File,
}

/// Why a folder could not be claimed.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// Another realm runs in it: its files must not be written twice.
    #[error("a realm runs in {data} already; stop it, or name another folder with --data", data = data.display())]
    Taken {
        /// The folder.
        data: PathBuf,
    },
    /// The lock file cannot be used.
    #[error("{path} cannot be used", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Claim {
    /// Claims a folder, which must exist.
    ///
    /// # Errors
    /// When a realm runs in it, or it cannot be written.
    pub fn take(data: &Path) -> Result<Self, ClaimError> {
        let path = data.join(CLAIM);
        let failed = |source| ClaimError::File {
            path: path.clone(),
            source,
        };
        let file = File::create(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(ClaimError::Taken { data: data.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}
