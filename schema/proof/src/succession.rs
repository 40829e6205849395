//! The succession of a log's keys. At a change both keys sign a checkpoint, and a line of its text names the new key:
//! trust in the old key extends to the new one.
//!
//! ```text
//! record = verifier "\n" [checkpoint]       the checkpoint in which the previous key named it; the first has none
//! ```

use std::fmt;

use thiserror::Error;

use crate::checkpoint::{Checkpoint, Trust, Untrusted};
use crate::key::{KeyError, VerifierKey};
use crate::note::{NoteError, SignedNote};

/// Prefix of the extension line of a checkpoint that names the log's next key.
const NEXT: &str = "next-key ";

/// A key of a log, with the proof of its succession.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key.
    pub key: VerifierKey,
    /// The checkpoint in which the previous key has named it; `None` for a log's first key.
    pub change: Option<SignedNote>,
}

/// Why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The first line is not a key.
    #[error("the record of a key does not begin with a key")]
    Key(#[from] KeyError),
    /// The rest is not a signed note.
    #[error("the key is not followed by the checkpoint in which its predecessor names it")]
    Change(#[from] NoteError),
    /// There is only an unterminated first line, or nothing at all.
    #[error("the record of a key is one line with the key, and at most one checkpoint")]
    Form,
}

/// Why a key is not the successor of another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotNamed {
    /// There is no checkpoint that names it.
    #[error("{key} has no predecessor: it can only be trusted directly")]
    Alone {
        /// The key.
        key: String,
    },
    /// The checkpoint of the change is not signed by both keys, or of another log.
    #[error("the checkpoint of the key change cannot be trusted")]
    Change(#[from] Untrusted),
    /// It names another key, or none.
    #[error("the checkpoint of the key change does not name {key}")]
    Other {
        /// The key.
        key: String,
    },
}

/// The line by which a checkpoint names the log's next key.
#[must_use]
pub fn naming(next: &VerifierKey) -> String {
    format!("{NEXT}{next}")
}

impl KeyRecord {
    /// Checks that a key of the log `origin` has named this one, and returns the tree size from which on it signs.
    ///
    /// # Errors
    /// Why that is not proven.
    pub fn follows(&self, before: &VerifierKey, origin: &str) -> Result<u64, NotNamed> {
        let key = self.key.to_string();
        let Some(change) = &self.change else {
            return Err(NotNamed::Alone { key });
        };
        let mut checkpoint: Option<Checkpoint> = None;
        for signer in [before, &self.key] {
            let trust = Trust {
                origin: origin.to_owned(),
                keys: vec![signer.clone()],
                witnesses: Vec::new(),
                quorum: 0,
            };
            checkpoint = Some(trust.check(change)?.checkpoint);
        }
        let named = naming(&self.key);
        match checkpoint {
            Some(checkpoint) if checkpoint.extensions.contains(&named) => Ok(checkpoint.head.size),
            _ => Err(NotNamed::Other { key }),
        }
    }

    /// Parses a record without verifying it.
    ///
    /// # Errors
    /// When the bytes are not one.
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(RecordError::Form)?;
        let key = str::from_utf8(&bytes[..end]).map_err(|_| RecordError::Form)?.parse()?;
        let rest = &bytes[end + 1..];
        let change = if rest.is_empty() {
            None
        } else {
            Some(SignedNote::parse(rest)?)
        };
        Ok(Self { key, change })
    }
}

impl fmt::Display for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.key)?;
        self.change.iter().try_for_each(|change| write!(f, "{change}"))
    }
}
