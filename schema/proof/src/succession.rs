//! The keys of a log, one after the other. At a change both keys sign a checkpoint, and a line of its text names the new key:
//! whoever believes the old key has its word for the new one.
//!
//! ```text
//! record = verifier "\n" [checkpoint]       the checkpoint by which the key before has named this one; the first has none
//! ```

use std::fmt;

use thiserror::Error;

use crate::checkpoint::{Checkpoint, Trust, Untrusted};
use crate::key::{KeyError, VerifierKey};
use crate::note::{NoteError, SignedNote};

/// What an extension line of a checkpoint begins with that names the log's next key.
const NEXT: &str = "next-key ";

/// A key of a log, and how it came to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key.
    pub key: VerifierKey,
    /// The checkpoint by which the key before it has named it; `None` of a log's first key.
    pub change: Option<SignedNote>,
}

/// Why that is no record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// Its first line is no key.
    #[error("the record of a key does not begin with one")]
    Key(#[from] KeyError),
    /// What follows is no signed note.
    #[error("what follows the key is not the checkpoint by which the key before it has named it")]
    Change(#[from] NoteError),
    /// A first line is all there is, and it is not ended; or nothing is there.
    #[error("the record of a key is a line with the key, ended, and at most a checkpoint")]
    Form,
}

/// Why a key is not the successor of another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotNamed {
    /// Nothing says so.
    #[error("nothing says that {key} follows another key: it can only be believed by itself")]
    Alone {
        /// The key.
        key: String,
    },
    /// The checkpoint of the change is not signed by both keys, or of another log.
    #[error("the checkpoint by which the key was changed cannot be believed")]
    Change(#[from] Untrusted),
    /// It names another key, or none.
    #[error("the checkpoint by which the key was changed does not name {key}")]
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
    /// Checks that a key of the log `origin` has named this one, and says from which size of the tree on it signs.
    ///
    /// # Errors
    /// Why it is not shown to have.
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

    /// Reads a record, and believes nothing of it.
    ///
    /// # Errors
    /// When it is none.
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
