//! How much room a disk has.

use std::{io, path::Path};

/// Fewer free bytes than this, and writes fail or are about to.
const FULL: u64 = 1 << 20;

/// Free bytes with which a process that a full disk has stopped goes on: more than it writes before it is known whether the
/// disk is full again.
const ROOM: u64 = 8 << 20;

/// How a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Less than 1 MiB is free.
    Full,
    /// Something in between.
    Little,
    /// At least 8 MiB are free.
    Enough,
}

/// How much room there is where this file or folder lies.
///
/// # Errors
/// What the operating system says.
pub fn room(path: &Path) -> io::Result<Room> {
    let found = rustix::fs::statvfs(path)?;
    Ok(match found.f_bavail.saturating_mul(found.f_frsize) {
        free if free < FULL => Room::Full,
        free if free < ROOM => Room::Little,
        _ => Room::Enough,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(room(folder.path()).is_ok());
        assert!(room(&folder.path().join("nothing")).is_err());
    }
}
