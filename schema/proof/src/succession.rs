//! The succession of keys. When a log changes its key, both keys sign a checkpoint, and a line of its text names the new
//! key. When a log ends and another continues it, the last key of the one and the first key of the other sign a
//! [`LogEnd`]. Either way trust in the old key extends to the new one.
//!
//! ```text
//! record = verifier "\n" [checkpoint | log end]       the note in which the previous key named it; the first has none
//! ```

use std::fmt;

use thiserror::Error;

use crate::checkpoint::{Checkpoint, Trust, Untrusted};
use crate::key::{KeyError, KeyName, VerifierKey};
use crate::log_end::{LogEnd, LogEndError};
use crate::note::{NoteError, SignedNote};
use crate::verify::TreeHead;

/// Prefix of the extension line of a checkpoint that names the log's next key.
const NEXT: &str = "next-key ";

/// A key of a log, with the proof of its succession.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    pub key: VerifierKey,
    /// The note in which the previous key has named it: a checkpoint, or the end of the previous log. `None` for the
    /// first key of a log that continues no other.
    pub change: Option<SignedNote>,
}

/// Why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The first line is not a key.
    #[error("the record of a key does not begin with a key")]
    Key(#[from] KeyError),
    /// The rest is not a signed note.
    #[error("the key is not followed by the signed note in which its predecessor names it")]
    Change(#[from] NoteError),
    /// The rest begins as the end of a log, and is none.
    #[error("the key is not followed by a statement that another log has ended")]
    LogEnd(#[from] LogEndError),
    /// There is only an unterminated first line, or nothing at all.
    #[error("the record of a key is one line with the key, and at most one signed note")]
    Form,
}

/// Why a key is not the successor of another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotNamed {
    /// There is no note that names it.
    #[error("{key} has no predecessor: it can only be trusted directly")]
    Alone { key: String },
    /// The checkpoint of the change is not signed by both keys, or of another log.
    #[error("the checkpoint of the key change cannot be trusted")]
    Change(#[from] Untrusted),
    /// The statement that the previous log has ended is not signed by both keys.
    #[error("the statement that the log {origin} has ended cannot be trusted")]
    Unsigned {
        /// The log.
        origin: KeyName,
        /// The reason.
        source: NoteError,
    },
    /// The statement that the previous log has ended cannot be read.
    #[error("the statement that the previous log has ended cannot be read")]
    LogEnd(#[from] LogEndError),
    /// The statement is about another log.
    #[error("the statement ends the log {ended}, and not {origin}")]
    OtherLog {
        /// The log in the statement.
        ended: KeyName,
        /// The log of the previous key.
        origin: KeyName,
    },
    /// It names another key, or none.
    #[error("the note of the key change does not name {key}")]
    Other { key: String },
}

/// The line by which a checkpoint names the log's next key.
#[must_use]
pub fn naming(next: &VerifierKey) -> String {
    format!("{NEXT}{next}")
}

impl KeyRecord {
    /// The statement that the previous log has ended, if this is the first key of a log that continues another. Its
    /// signatures are not verified.
    ///
    /// # Errors
    /// When the note begins as such a statement and is none.
    pub fn log_end(&self) -> Result<Option<LogEnd>, LogEndError> {
        let end = self.change.as_ref().filter(|note| LogEnd::is_in(note));
        end.map(|note| LogEnd::parse(note.text())).transpose()
    }

    /// This record, after all that are only in the statement by which an earlier log has ended, and in the statements in
    /// those: oldest first.
    ///
    /// # Errors
    /// As [`Self::log_end`].
    pub fn with_lost(&self) -> Result<Vec<KeyRecord>, LogEndError> {
        let mut records = Vec::new();
        for lost in self.log_end()?.into_iter().flat_map(|end| end.lost_keys) {
            records.extend(lost.with_lost()?);
        }
        records.push(self.clone());
        Ok(records)
    }

    /// The tree that must be continued by all that this key signs; `None` if no key has named it. Its signatures are not
    /// verified.
    ///
    /// # Errors
    /// When the note that names it is neither a checkpoint nor the end of a log.
    pub fn changed_at(&self) -> Result<Option<TreeHead>, NotNamed> {
        if let Some(end) = self.log_end()? {
            return Ok(Some(end.continued));
        }
        let checkpoint = self.change.as_ref().map(|change| change.text().parse::<Checkpoint>());
        let checkpoint = checkpoint.transpose().map_err(Untrusted::Checkpoint)?;
        Ok(checkpoint.map(|checkpoint| checkpoint.head))
    }

    /// Checks that a key of the log `origin` has named this one, and returns the tree size from which on it signs.
    ///
    /// # Errors
    /// Why that is not proven.
    pub fn follows(&self, before: &VerifierKey, origin: &str) -> Result<u64, NotNamed> {
        let key = || self.key.to_string();
        let change = self.change.as_ref().ok_or_else(|| NotNamed::Alone { key: key() })?;
        if *before == self.key {
            return Err(NotNamed::Other { key: key() });
        }
        match self.log_end()? {
            None => self.is_rotated(change, before, origin),
            Some(end) => self.continues(change, &end, before),
        }
    }

    /// Checks the checkpoint in which the previous key of the same log names this one.
    fn is_rotated(&self, change: &SignedNote, before: &VerifierKey, origin: &str) -> Result<u64, NotNamed> {
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
            _ => Err(NotNamed::Other {
                key: self.key.to_string(),
            }),
        }
    }

    /// Checks the statement in which the last key of another log names this one. Keys that have signed only what is lost
    /// are followed by way of the statement.
    fn continues(&self, change: &SignedNote, end: &LogEnd, before: &VerifierKey) -> Result<u64, NotNamed> {
        let mut last = before;
        for record in &end.lost_keys {
            record.follows(last, last.name().as_str())?;
            last = &record.key;
        }
        if end.ended != *last.name() {
            let (ended, origin) = (end.ended.clone(), last.name().clone());
            return Err(NotNamed::OtherLog { ended, origin });
        }
        if end.next != self.key {
            let key = self.key.to_string();
            return Err(NotNamed::Other { key });
        }
        for signer in [last, &self.key] {
            let signed = change.verify(std::slice::from_ref(signer));
            signed.map_err(|source| NotNamed::Unsigned {
                origin: end.ended.clone(),
                source,
            })?;
        }
        Ok(end.first_size())
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
        let record = Self { key, change };
        record.log_end()?;
        Ok(record)
    }
}

impl fmt::Display for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.key)?;
        self.change.iter().try_for_each(|change| write!(f, "{change}"))
    }
}
