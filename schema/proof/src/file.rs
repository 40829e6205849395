//! A proof in a file: it shows that a leaf is in a log, and has all that is needed to check it except the keys. The
//! format is C2SP tlog-proof (<https://c2sp.org/tlog-proof>), as that page stood in 2026.
//!
//! ```text
//! file  = "c2sp.org/tlog-proof@v1\n" ["extra " base64(bytes) "\n"]
//!         "index " decimal "\n" (base64(hash) "\n")* "\n" checkpoint
//! ```
//! The hashes are the inclusion proof of the leaf `index`, from its sibling up; the checkpoint is a signed note.

use std::fmt;

use annals_ids::Hash;
use thiserror::Error;

use crate::base64;
use crate::checkpoint::{Trust, Trusted, Untrusted, read_decimal};
use crate::note::{NOTE_BYTES, NoteError, SignedNote};
use crate::verify::{PATH_HASHES, Unproven, verify_inclusion};

/// Maximum size of the unsigned extra data of a file (bytes): a batch's header with all its consumed calls is some
/// hundred kilobytes at worst.
pub const EXTRA_BYTES: usize = 1 << 20;

/// Maximum size of a file that is read: all its parts at their limits, and base64 is four bytes for three.
pub const FILE_BYTES: usize = EXTRA_BYTES / 3 * 4 + NOTE_BYTES + PATH_HASHES * 45 + 256;

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1";

const EXTRA: &str = "extra ";

/// A proof that a leaf is in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFile {
    /// Extra data, which is not signed.
    pub extra: Option<Vec<u8>>,
    /// The index of the leaf.
    pub index: u64,
    /// The inclusion proof.
    pub path: Vec<Hash>,
    /// The signed checkpoint of the tree.
    pub checkpoint: SignedNote,
}

/// Why bytes are not such a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// They are of another kind.
    #[error("not a proof: the first line is not \"{FIRST_LINE}\"")]
    Kind,
    /// They are longer than a proof can be.
    #[error("a proof has at most {FILE_BYTES} bytes; this has {bytes}")]
    Size {
        /// Number of bytes.
        bytes: usize,
    },
    /// A line is not as expected.
    #[error("line {line} of the proof should be {expected}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// The expected content.
        expected: &'static str,
    },
    /// The checkpoint is not a signed note.
    #[error("the checkpoint in the proof cannot be read")]
    Checkpoint(#[from] NoteError),
}

/// Why a proof in a file is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileUnproven {
    /// Its checkpoint is not trusted.
    #[error(transparent)]
    Checkpoint(#[from] Untrusted),
    /// The leaf is not in the checkpoint's tree.
    #[error("the proof does not show that leaf {index} is in the log")]
    Inclusion {
        /// The index of the leaf.
        index: u64,
        /// The reason.
        source: Unproven,
    },
}

impl ProofFile {
    /// Parses a file without verifying it.
    ///
    /// # Errors
    /// When the bytes are not such a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        if bytes.len() > FILE_BYTES {
            return Err(FileError::Size { bytes: bytes.len() });
        }
        let mut lines = Lines::new(bytes);
        if lines.next() != Some(FIRST_LINE) {
            return Err(FileError::Kind);
        }
        let mut extra = None;
        if lines.rest.starts_with(EXTRA.as_bytes()) {
            let text = lines.next().and_then(|line| line.strip_prefix(EXTRA));
            let decoded = text.and_then(base64::decode);
            let decoded = decoded.filter(|bytes| (1..=EXTRA_BYTES).contains(&bytes.len()));
            extra = Some(decoded.ok_or_else(|| lines.expected("\"extra \" and up to 1 MiB in base64"))?);
        }
        let index = lines.number("index ", "\"index \" and a decimal number without leading zeros")?;
        let path = lines.path()?;
        let checkpoint = SignedNote::parse(lines.rest)?;
        Ok(Self {
            extra,
            index,
            path,
            checkpoint,
        })
    }

    /// Checks that the leaf with this hash is in the log at this file's index, and returns the trusted checkpoint.
    ///
    /// # Errors
    /// Why that is not proven.
    pub fn verify(&self, leaf: Hash, trust: &Trust) -> Result<Trusted, FileUnproven> {
        let trusted = trust.check(&self.checkpoint)?;
        let index = self.index;
        verify_inclusion(leaf, index, trusted.checkpoint.head, &self.path)
            .map_err(|source| FileUnproven::Inclusion { index, source })?;
        Ok(trusted)
    }
}

/// The file's text.
impl fmt::Display for ProofFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", base64::encode(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        self.path
            .iter()
            .try_for_each(|hash| writeln!(f, "{}", base64::encode(&hash.0)))?;
        write!(f, "\n{}", self.checkpoint)
    }
}

/// The lines before the checkpoint.
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, number: 0 }
    }

    /// The bytes after the lines that were read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next complete line, if it is text.
    fn next(&mut self) -> Option<&'a str> {
        self.number += 1;
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        let line = str::from_utf8(&self.rest[..end]).ok()?;
        self.rest = &self.rest[end + 1..];
        Some(line)
    }

    /// A number after its label.
    pub(crate) fn number(&mut self, name: &str, expected: &'static str) -> Result<u64, FileError> {
        let number = self
            .next()
            .and_then(|line| line.strip_prefix(name))
            .and_then(read_decimal);
        number.ok_or_else(|| self.expected(expected))
    }

    /// The hashes of a proof, and the empty line after them.
    pub(crate) fn path(&mut self) -> Result<Vec<Hash>, FileError> {
        let mut path = Vec::new();
        loop {
            let line = self.next();
            if line == Some("") {
                return Ok(path);
            }
            let hash = line.filter(|_| path.len() < PATH_HASHES).and_then(base64::decode_hash);
            path.push(hash.ok_or_else(|| self.expected("a hash of 32 bytes in base64, or empty behind at most 65"))?);
        }
    }

    fn expected(&self, expected: &'static str) -> FileError {
        FileError::Line {
            line: self.number,
            expected,
        }
    }
}
