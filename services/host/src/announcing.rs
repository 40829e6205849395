//! Files with the address on which a process listens, for others.

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
