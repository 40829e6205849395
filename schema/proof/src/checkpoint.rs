//! Checkpoints: a log's statement of its tree, as in C2SP tlog-checkpoint (<https://c2sp.org/tlog-checkpoint>), and the
//! conditions for trusting it.
//!
//! ```text
//! checkpoint = origin "\n" size "\n" base64(root) "\n" (extension "\n")*
//! ```

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::base64;
use crate::key::{KeyKind, KeyName, VerifierKey};
use crate::note::{NoteError, SignedNote};
use crate::shown::shown;
use crate::verify::TreeHead;

/// A log's tree at one moment, as stated by the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log.
    pub origin: String,
    /// Its tree.
    pub head: TreeHead,
    /// Further lines, without meaning here.
    pub extensions: Vec<String>,
}

/// Why a text is not a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// A line is missing, or empty.
    #[error("a checkpoint has three or more lines, none of them empty: origin, size and root; line {line} is missing")]
    Missing {
        /// The line number, from 1.
        line: usize,
    },
    /// The size is not a number.
    #[error("the second line of a checkpoint is the tree's size, a decimal number without leading zeros below 2^64")]
    Size,
    /// The root is not a hash.
    #[error("the third line of a checkpoint is the tree's root: 32 bytes in base64")]
    Root,
}

/// Which keys to trust for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The log: the first line of its checkpoints.
    pub origin: String,
    /// Keys of the log: one of them must have signed.
    pub keys: Vec<VerifierKey>,
    /// Keys of witnesses.
    pub witnesses: Vec<VerifierKey>,
    /// Number of witnesses that must have cosigned.
    pub quorum: usize,
}

/// A trusted checkpoint, with its valid signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    pub checkpoint: Checkpoint,
    /// The log's keys that have signed.
    pub signed: Vec<VerifierKey>,
    /// The witnesses that have cosigned, with the times (seconds since 1970).
    pub cosigned: Vec<(KeyName, u64)>,
}

/// Why a checkpoint is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Untrusted {
    /// It is not a note, or not signed by the log.
    #[error("the checkpoint cannot be trusted")]
    Note(#[from] NoteError),
    /// The note is not a checkpoint.
    #[error("the signed note is not a checkpoint")]
    Checkpoint(#[from] CheckpointError),
    /// It is of another log.
    #[error(
        "the checkpoint is of the log \"{}\", and not of \"{}\"",
        shown(found),
        shown(expected)
    )]
    Origin {
        /// The log in the checkpoint.
        found: String,
        /// The expected log.
        expected: String,
    },
    /// Too few witnesses.
    #[error("{cosigned} of the known witnesses have cosigned the checkpoint; {quorum} are required")]
    Quorum {
        /// Number of cosignatures.
        cosigned: usize,
        /// Number required.
        quorum: usize,
    },
    /// A log's key given as a witness's, or the other way round.
    #[error("the key {name} is given as a {role}'s, but is of the other kind")]
    Role {
        /// The name of the key.
        name: KeyName,
        /// The role in which it was given.
        role: &'static str,
    },
}

/// The note's text.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TreeHead { size, root } = self.head;
        write!(f, "{}\n{size}\n{}\n", self.origin, base64::encode(&root.0))?;
        self.extensions.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl FromStr for Checkpoint {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let count = text.split('\n').count();
        let text = text
            .strip_suffix('\n')
            .ok_or(CheckpointError::Missing { line: count })?;
        let lines: Vec<&str> = text.split('\n').collect();
        if let Some(empty) = lines.iter().position(|line| line.is_empty()) {
            return Err(CheckpointError::Missing { line: empty + 1 });
        }
        let [origin, size, root, extensions @ ..] = &lines[..] else {
            return Err(CheckpointError::Missing { line: count });
        };
        let size = read_decimal(size).ok_or(CheckpointError::Size)?;
        let root = base64::decode_hash(root).ok_or(CheckpointError::Root)?;
        Ok(Self {
            origin: (*origin).to_owned(),
            head: TreeHead { size, root },
            extensions: extensions.iter().map(|&line| line.to_owned()).collect(),
        })
    }
}

/// Reads a decimal number in its one form.
pub(crate) fn read_decimal(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl Trust {
    /// Trust in those keys that have the name of the log `origin`, without witnesses.
    #[must_use]
    pub fn in_log<'k>(origin: &str, keys: impl IntoIterator<Item = &'k VerifierKey>) -> Self {
        let is_of = |key: &&VerifierKey| key.name().as_str() == origin;
        Self {
            origin: origin.to_owned(),
            keys: keys.into_iter().filter(is_of).cloned().collect(),
            witnesses: Vec::new(),
            quorum: 0,
        }
    }

    /// Reads a signed checkpoint and checks that it can be trusted.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn open(&self, bytes: &[u8]) -> Result<Trusted, Untrusted> {
        self.check(&SignedNote::parse(bytes)?)
    }

    /// Checks that a signed checkpoint can be trusted.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self, note: &SignedNote) -> Result<Trusted, Untrusted> {
        expect_kind(&self.keys, KeyKind::Note, "log")?;
        expect_kind(&self.witnesses, KeyKind::Cosignature, "witness")?;
        let signed = note.verify(&self.keys)?;
        let cosigned = match note.verify(&self.witnesses) {
            Err(NoteError::Unsigned { .. }) => Vec::new(),
            checked => checked?,
        };
        let checkpoint: Checkpoint = note.text().parse()?;
        if checkpoint.origin != self.origin {
            let (found, expected) = (checkpoint.origin, self.origin.clone());
            return Err(Untrusted::Origin { found, expected });
        }
        if cosigned.len() < self.quorum {
            let (cosigned, quorum) = (cosigned.len(), self.quorum);
            return Err(Untrusted::Quorum { cosigned, quorum });
        }
        let when = |signed: &crate::note::Signed<'_>| Some((signed.key.name().clone(), signed.statement.time?));
        Ok(Trusted {
            checkpoint,
            signed: signed.iter().map(|signed| signed.key.clone()).collect(),
            cosigned: cosigned.iter().filter_map(when).collect(),
        })
    }
}

fn expect_kind(keys: &[VerifierKey], kind: KeyKind, role: &'static str) -> Result<(), Untrusted> {
    match keys.iter().find(|key| key.kind() != kind) {
        Some(key) => Err(Untrusted::Role {
            name: key.name().clone(),
            role,
        }),
        None => Ok(()),
    }
}
