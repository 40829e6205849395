//! Writing output files: only into existing folders, so a mistyped path creates none.

use std::{fs, io, path::Path};

use thiserror::Error;

/// Why nothing was written.
#[derive(Debug, Error)]
pub(super) enum OutputError {
    /// The parent folder does not exist.
    #[error("{path} cannot be written: folder {parent} does not exist; create it first")]
    NoFolder { path: String, parent: String },
    /// The operating system refuses.
    #[error("{path} cannot be written: {source}")]
    Refused {
        path: String,
        #[source]
        source: io::Error,
    },
}

/// Writes a file, unless it has this content already: a newer file would be compiled again by whatever reads it.
pub(super) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), OutputError> {
    if fs::read(path).is_ok_and(|present| present == content.as_ref()) {
        return Ok(());
    }
    fs::write(path, content).map_err(|source| why(path, source))
}

/// Creates a folder if it does not exist; its parent must exist.
pub(super) fn make_folder(path: &Path) -> Result<(), OutputError> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir(path).map_err(|source| why(path, source))
}

fn why(path: &Path, source: io::Error) -> OutputError {
    let name = path.display().to_string();
    match path.parent().filter(|_| source.kind() == io::ErrorKind::NotFound) {
        Some(parent) => OutputError::NoFolder {
            path: name,
            parent: parent.display().to_string(),
        },
        None => OutputError::Refused { path: name, source },
    }
}
