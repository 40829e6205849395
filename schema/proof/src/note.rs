//! Signed notes, as in C2SP signed-note (<https://c2sp.org/signed-note>).
//!
//! ```text
//! note      = text "\n" signature+
//! text      = lines, each ended by "\n", up to the last empty line of the file
//! signature = "— " name " " base64(id signature) "\n"
//! ```
//! It is UTF-8 without control characters other than line ends. No content of a note is trusted before
//! [`SignedNote::verify`].

use std::fmt;

use thiserror::Error;

use crate::base64;
use crate::key::{KeyError, KeyId, KeyName, SignerKey, Statement, VerifierKey};

/// Maximum size of a note that is read (bytes): 64 signatures of the longest kind in use, and a long text.
pub const NOTE_BYTES: usize = 512 << 10;

/// Maximum number of signatures of a note: a log's keys at a change of keys, and more witnesses than any policy
/// requires. The specification requires at least 16.
pub const SIGNATURES: usize = 64;

const DASH: &str = "\u{2014} ";

/// A text with signatures, not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<NoteSignature>,
}

/// A signature, by a key that may be unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteSignature {
    /// The key's name.
    pub name: KeyName,
    /// The key's id.
    pub id: KeyId,
    /// The signature bytes of the key.
    bytes: Vec<u8>,
}

/// A valid signature of a known key.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    pub key: &'a VerifierKey,
    pub statement: Statement,
}

/// Why bytes are not a note, or a note is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoteError {
    /// It is too long.
    #[error("a note has at most {NOTE_BYTES} bytes; this has {bytes}")]
    Size {
        /// Number of bytes.
        bytes: usize,
    },
    /// It has characters that a note must not have.
    #[error("a note is UTF-8 text without control characters; byte {at} is invalid")]
    Characters {
        /// Their offset.
        at: usize,
    },
    /// Text and signatures are not separated.
    #[error("not a note: expected text, an empty line, and signature lines that end with a line feed")]
    Form,
    /// A signature line is malformed.
    #[error("line {line} of the signatures is not of the form \"— NAME BASE64\"")]
    Signature {
        /// Its number, from 1.
        line: usize,
    },
    /// The name of a key is not valid.
    #[error("line {line} of the signatures names no key")]
    Name {
        /// Number of the signature, from 1.
        line: usize,
        /// The reason.
        source: KeyError,
    },
    /// There are too many signatures.
    #[error("a note has at most {SIGNATURES} signatures")]
    Many,
    /// A signature in the name of a known key is not valid.
    #[error("the signature by {name} (key {id}) does not verify over this text: one of the two was changed")]
    Forged {
        /// The key's name.
        name: KeyName,
        id: KeyId,
    },
    /// No known key has signed.
    #[error("no trusted key has signed it; keys that have signed: {others}")]
    Unsigned {
        /// The names and ids in the signatures.
        others: String,
    },
}

impl SignedNote {
    /// Creates a note without signatures, which can be parsed once it is signed.
    ///
    /// # Errors
    /// When the text is not valid for a note.
    pub fn new(text: String) -> Result<Self, NoteError> {
        check_characters(&text)?;
        if text.len() > NOTE_BYTES {
            return Err(NoteError::Size { bytes: text.len() });
        }
        if !text.ends_with('\n') {
            return Err(NoteError::Form);
        }
        let signatures = Vec::new();
        Ok(Self { text, signatures })
    }

    /// Parses a note without verifying it.
    ///
    /// # Errors
    /// When the bytes are not one.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > NOTE_BYTES {
            return Err(NoteError::Size { bytes: bytes.len() });
        }
        let note = str::from_utf8(bytes).map_err(|error| NoteError::Characters {
            at: error.valid_up_to(),
        })?;
        check_characters(note)?;
        let divide = note.rfind("\n\n").ok_or(NoteError::Form)?;
        let (text, signatures) = (&note[..=divide], &note[divide + 2..]);
        let lines = signatures.strip_suffix('\n').ok_or(NoteError::Form)?;
        let signatures = (1..).zip(lines.split('\n')).take(SIGNATURES + 1);
        let signatures: Vec<_> = signatures
            .map(|(line, text)| NoteSignature::parse(line, text))
            .collect::<Result<_, _>>()?;
        if signatures.len() > SIGNATURES {
            return Err(NoteError::Many);
        }
        let text = text.to_owned();
        Ok(Self { text, signatures })
    }

    /// The signed text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures, not verified.
    #[must_use]
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Adds a signature, replacing an earlier one of the same key. A cosigning key thereby states that this is the
    /// newest it had seen at `now` (seconds since 1970).
    pub fn sign(&mut self, key: &SignerKey, now: u64) {
        let verifier = key.verifier();
        self.add(NoteSignature {
            name: verifier.name().clone(),
            id: verifier.id(),
            bytes: key.sign(&self.text, now),
        });
    }

    /// Adds a signature made elsewhere, replacing an earlier one of the same key.
    pub fn add(&mut self, signature: NoteSignature) {
        let same = |held: &NoteSignature| (&held.name, held.id) == (&signature.name, signature.id);
        self.signatures.retain(|held| !same(held));
        self.signatures.push(signature);
    }

    /// The keys among these that have signed, each once. Signatures of unknown keys are ignored.
    ///
    /// # Errors
    /// When a signature in the name of one of these keys is not valid, or none of them has signed.
    pub fn verify<'a>(&self, keys: &'a [VerifierKey]) -> Result<Vec<Signed<'a>>, NoteError> {
        let mut signed: Vec<Signed<'a>> = Vec::new();
        for NoteSignature { name, id, bytes } in &self.signatures {
            let Some(key) = keys.iter().find(|key| key.name() == name && key.id() == *id) else {
                continue;
            };
            let statement = key.verify(&self.text, bytes).ok_or_else(|| NoteError::Forged {
                name: name.clone(),
                id: *id,
            })?;
            if !signed.iter().any(|other| other.key == key) {
                signed.push(Signed { key, statement });
            }
        }
        if signed.is_empty() {
            let others = self
                .signatures
                .iter()
                .map(|held| format!("{} ({})", held.name, held.id));
            let others = others.take(SIGNATURES).collect::<Vec<_>>().join(", ");
            return Err(NoteError::Unsigned { others });
        }
        Ok(signed)
    }
}

/// The note as it is stored and sent.
impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| {
            let bytes = [&signature.id.0[..], &signature.bytes].concat();
            writeln!(f, "{DASH}{} {}", signature.name, base64::encode(&bytes))
        })
    }
}

impl NoteSignature {
    fn parse(line: usize, text: &str) -> Result<Self, NoteError> {
        let malformed = || NoteError::Signature { line };
        let (name, signature) = text
            .strip_prefix(DASH)
            .and_then(|rest| rest.split_once(' '))
            .ok_or_else(malformed)?;
        let name = KeyName::new(name).map_err(|source| NoteError::Name { line, source })?;
        let signature = base64::decode(signature).ok_or_else(malformed)?;
        let (id, bytes) = signature.split_first_chunk::<4>().ok_or_else(malformed)?;
        if bytes.is_empty() {
            return Err(malformed());
        }
        Ok(Self {
            name,
            id: KeyId(*id),
            bytes: bytes.to_vec(),
        })
    }
}

fn check_characters(text: &str) -> Result<(), NoteError> {
    match text.bytes().position(|byte| byte < b' ' && byte != b'\n') {
        Some(at) => Err(NoteError::Characters { at }),
        None => Ok(()),
    }
}
