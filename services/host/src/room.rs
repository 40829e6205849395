//! Free space of a disk.

use std::{io, path::Path};

/// With fewer free bytes than this, writes fail or are about to.
const FULL: u64 = 1 << 20;

/// Free bytes with which a process that stopped on a full disk goes on: more than it writes before it can notice that
/// the disk is full again.
const ROOM: u64 = 8 << 20;

/// Free space of a disk, in three steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Less than 1 MiB is free.
    Full,
    /// Between the two.
    Little,
    /// At least 8 MiB are free.
    Enough,
}

/// The free space of the disk that has this file or folder.
///
/// # Errors
/// The operating system's error.
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
    fn a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(room(folder.path()).is_ok());
        assert!(room(&folder.path().join("nothing")).is_err());
    }
}
