//! Files that tell others where a process listens.

use std::{fs, io, path::Path};

/// Writes an address to a file that is complete as soon as it exists: others wait for it.
///
/// # Errors
/// If it cannot be written.
pub fn announce(path: &Path, address: &str) -> io::Result<()> {
    let beside = path.with_added_extension("new");
    fs::write(&beside, address)?;
    fs::rename(&beside, path)
}
