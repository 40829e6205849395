//! That a tree continues an earlier one, in a file: the body with which C2SP tlog-witness (<https://c2sp.org/tlog-witness>) has a
//! log ask for a cosignature.
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

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// How many leaves the earlier tree has.
    pub old: u64,
    /// The consistency proof.
    pub path: Vec<Hash>,
    /// The signed checkpoint of the later tree.
    pub checkpoint: SignedNote,
}

impl Continuation {
    /// Reads one, and believes nothing of it.
    ///
    /// # Errors
    /// When it is none.
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
