//! The end of a log: a signed statement that a realm has lost batches which the log has signed, and that another log
//! continues the rest.
//!
//! ```text
//! text = "annals log end v1\n"
//!        "ended " origin "\n"
//!        "signed " size " " base64(root) "\n"        the last tree of the ended log
//!        "continued " size " " base64(root) "\n"     the tree with which the next log begins
//!        "next-key " verifier "\n"                   the first key of the next log
//!        "adoption " number " " milliseconds since 1970 "\n"
//!        "time " milliseconds since 1970 "\n"
//!        "operator " text "\n"
//!        "reason " text "\n"
//!        ("lost-key " base64(record) "\n")*          keys by which the ended log was signed beyond the continued tree
//! ```
//! The text is a signed note with a signature of the ended log's last key and one of the next log's first key. A name of
//! a key has no spaces, so no checkpoint begins with the first line.

use std::fmt;

use annals_ids::WallTime;
use thiserror::Error;

use crate::base64;
use crate::checkpoint::read_decimal;
use crate::key::{KeyError, KeyName, VerifierKey};
use crate::note::SignedNote;
use crate::shown::is_unseen;
use crate::succession::{KeyRecord, RecordError};
use crate::verify::TreeHead;

/// Maximum bytes of an operator's name, and of a reason.
pub const TEXT_BYTES: usize = 1_000;

/// The first line.
const FIRST_LINE: &str = "annals log end v1";

/// A statement that a log has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// The ended log: the first line of its checkpoints.
    pub ended: KeyName,
    /// The last tree that it has signed; if it has signed none, the tree with which it has continued another log.
    pub signed: TreeHead,
    /// The tree with which the next log begins. What the ended log has signed beyond it is lost.
    pub continued: TreeHead,
    /// The first key of the next log, which has its name.
    pub next: VerifierKey,
    /// The adoption of the realm's log after which the archive differed from what was signed. A store that is restored
    /// once more assigns its numbers again, so its time is part of its identity.
    pub adoption: (u32, WallTime),
    /// When it was signed.
    pub at: WallTime,
    /// Who decided it.
    pub operator: String,
    /// The operator's reason.
    pub reason: String,
    /// Records of the ended log's keys that have signed only what is lost, in order.
    pub lost_keys: Vec<KeyRecord>,
}

/// Why a text is not such a statement.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogEndError {
    /// A line is not as expected.
    #[error("line {line} of the statement that a log has ended should be {expected}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// The expected content.
        expected: &'static str,
    },
    /// A key or a name cannot be read.
    #[error("the statement that a log has ended has no key where one should be")]
    Key(#[from] KeyError),
    /// A record of a key cannot be read.
    #[error("the statement that a log has ended has no record of a key where one should be")]
    Record(#[source] Box<RecordError>),
    /// The next log begins with more than was signed.
    #[error("the next log continues {continued} batches of a log that has signed {signed}")]
    Longer {
        /// Size of the continued tree.
        continued: u64,
        /// Size of the last signed tree.
        signed: u64,
    },
    /// The operator or the reason is not a text.
    #[error("an operator and a reason have 1 to {TEXT_BYTES} bytes each, without line breaks and invisible characters")]
    Text,
    /// The next log has the name of the ended one.
    #[error("the next log has the same name as the ended one")]
    SameName,
}

impl LogEnd {
    /// Whether a note is such a statement, and not a checkpoint.
    #[must_use]
    pub fn is_in(note: &SignedNote) -> bool {
        note.text().lines().next() == Some(FIRST_LINE)
    }

    /// The tree size from which on the next log signs: it signs no tree that the ended one may have signed.
    #[must_use]
    pub fn first_size(&self) -> u64 {
        self.continued.size.saturating_add(1)
    }

    /// Parses the text of a note. Signatures are not verified: that is [`KeyRecord::follows`].
    ///
    /// # Errors
    /// When the text is not such a statement.
    pub fn parse(text: &str) -> Result<Self, LogEndError> {
        let mut lines = Fields {
            rest: text.strip_suffix('\n').unwrap_or_default().split('\n'),
            number: 0,
        };
        lines.literal(FIRST_LINE)?;
        let ended = KeyName::new(lines.field("ended ", "\"ended \" and the name of a log")?)?;
        let signed = lines.head("signed ")?;
        let continued = lines.head("continued ")?;
        let next: VerifierKey = lines.field("next-key ", "\"next-key \" and a verifier key")?.parse()?;
        let adoption = lines.adoption()?;
        let at = WallTime(lines.decimal("time ")?);
        let operator = lines.field("operator ", "\"operator \" and a name")?.to_owned();
        let reason = lines.field("reason ", "\"reason \" and a text")?.to_owned();
        let mut lost_keys = Vec::new();
        while let Some(line) = lines.next() {
            let bytes = line.strip_prefix("lost-key ").and_then(base64::decode);
            let bytes = bytes.ok_or_else(|| lines.expected("\"lost-key \" and the record of a key in base64"))?;
            lost_keys.push(KeyRecord::parse(&bytes).map_err(|error| LogEndError::Record(Box::new(error)))?);
        }
        if !is_text(&operator) || !is_text(&reason) {
            return Err(LogEndError::Text);
        }
        if continued.size > signed.size {
            let (continued, signed) = (continued.size, signed.size);
            return Err(LogEndError::Longer { continued, signed });
        }
        if *next.name() == ended {
            return Err(LogEndError::SameName);
        }
        Ok(Self {
            ended,
            signed,
            continued,
            next,
            adoption,
            at,
            operator,
            reason,
            lost_keys,
        })
    }
}

/// The note's text.
impl fmt::Display for LogEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ended,
            signed,
            continued,
            next,
            adoption,
            at,
            operator,
            reason,
            lost_keys,
        } = self;
        writeln!(f, "{FIRST_LINE}\nended {ended}")?;
        for (label, TreeHead { size, root }) in [("signed", signed), ("continued", continued)] {
            writeln!(f, "{label} {size} {}", base64::encode(&root.0))?;
        }
        let (adoption, adopted) = adoption;
        writeln!(f, "next-key {next}\nadoption {adoption} {}\ntime {}", adopted.0, at.0)?;
        writeln!(f, "operator {operator}\nreason {reason}")?;
        for record in lost_keys {
            writeln!(f, "lost-key {}", base64::encode(record.to_string().as_bytes()))?;
        }
        Ok(())
    }
}

/// Whether a text can be an operator or a reason.
#[must_use]
pub fn is_text(text: &str) -> bool {
    (1..=TEXT_BYTES).contains(&text.len()) && !text.trim().is_empty() && !text.chars().any(is_unseen)
}

/// The lines of a statement.
struct Fields<'a> {
    rest: std::str::Split<'a, char>,
    number: usize,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.number += 1;
        self.rest.next()
    }

    fn expected(&self, expected: &'static str) -> LogEndError {
        let line = self.number;
        LogEndError::Line { line, expected }
    }

    fn literal(&mut self, line: &'static str) -> Result<(), LogEndError> {
        match self.next() {
            Some(found) if found == line => Ok(()),
            _ => Err(self.expected(line)),
        }
    }

    /// The text after a label.
    fn field(&mut self, label: &str, expected: &'static str) -> Result<&'a str, LogEndError> {
        let field = self.next().and_then(|line| line.strip_prefix(label));
        field.ok_or_else(|| self.expected(expected))
    }

    fn decimal(&mut self, label: &str) -> Result<u64, LogEndError> {
        let expected = "a label and a decimal number without leading zeros";
        let number = read_decimal(self.field(label, expected)?);
        number.ok_or_else(|| self.expected(expected))
    }

    fn adoption(&mut self) -> Result<(u32, WallTime), LogEndError> {
        let read = |number: &str, at: &str| {
            let number = u32::try_from(read_decimal(number)?).ok()?;
            Some((number, WallTime(read_decimal(at)?)))
        };
        self.pair("adoption ", "\"adoption \", its number and its time", read)
    }

    fn head(&mut self, label: &str) -> Result<TreeHead, LogEndError> {
        let read = |size: &str, root: &str| {
            let (size, root) = (read_decimal(size)?, base64::decode_hash(root)?);
            Some(TreeHead { size, root })
        };
        self.pair(label, "a label, the size of a tree, and its root in base64", read)
    }

    /// Two fields after a label.
    fn pair<T>(
        &mut self,
        label: &str,
        expected: &'static str,
        read: impl Fn(&str, &str) -> Option<T>,
    ) -> Result<T, LogEndError> {
        let fields = self.field(label, expected)?.split_once(' ');
        let pair = fields.and_then(|(first, second)| read(first, second));
        pair.ok_or_else(|| self.expected(expected))
    }
}
