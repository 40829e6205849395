//! A file which proves that a tree continues an earlier one: the body with which a log requests a cosignature in C2SP
//! tlog-witness (<https://c2sp.org/tlog-witness>).
//!
//! ```text
//! continuation = "old " decimal "\n" (base64(hash) "\n")* "\n" checkpoint
//! ```
//! The hashes are the consistency proof from the tree of `old` leaves to that of the checkpoint, a signed note.

use std::fmt;

use annals_ids::Hash;

use crate::base64;
use crate::file::{FILE_BYTES, FileError, Lines};
use crate::note::SignedNote;

/// A consistency proof from an earlier tree to that of a signed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// Number of leaves of the earlier tree.
    pub old: u64,
    /// The consistency proof.
    pub path: Vec<Hash>,
    /// The signed checkpoint of the later tree.
    pub checkpoint: SignedNote,
}

impl Continuation {
    /// Parses a continuation without verifying it.
    ///
    /// # Errors
    /// When the bytes are not one.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        if bytes.len() > FILE_BYTES {
            return Err(FileError::Size { bytes: bytes.len() });
        }
        let mut lines = Lines::new(bytes);
        let old = lines.number("old ", "\"old \" and a decimal number without leading zeros")?;
        let path = lines.path()?;
        let checkpoint = SignedNote::parse(lines.rest())?;
        Ok(Self { old, path, checkpoint })
    }
}

impl fmt::Display for Continuation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old)?;
        self.path
            .iter()
            .try_for_each(|hash| writeln!(f, "{}", base64::encode(&hash.0)))?;
        write!(f, "\n{}", self.checkpoint)
    }
}
