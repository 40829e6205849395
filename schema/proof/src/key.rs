//! Keys that sign notes, and their text forms.
//!
//! ```text
//! verifier = name "+" id "+" base64(kind key)               C2SP signed-note
//! signer   = "PRIVATE+KEY+" name "+" id "+" base64(kind seed)    as golang.org/x/mod/sumdb/note writes it
//! name     = characters that are neither white space nor "+"
//! id       = 8 hexadecimal digits: SHA-256(name "\n" kind key)[..4]
//! kind     = 01 (signs the note's text) | 04 (cosigns a checkpoint, with a time)
//! ```
//! `key` and `seed` are the 32 bytes that RFC 8032 calls public and private key of Ed25519.

use std::{fmt, str::FromStr};

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::base64;
use crate::shown::{is_unseen, shown};

/// Maximum length of a key's name (bytes). The specification has no limit; names are meant to be short addresses.
pub const NAME_BYTES: usize = 255;

/// Maximum length of a key that is read: name, id, and the text of 33 bytes.
const KEY_TEXT_BYTES: usize = SIGNER_PREFIX.len() + NAME_BYTES + 1 + 8 + 1 + 44;

const SIGNER_PREFIX: &str = "PRIVATE+KEY+";

/// The first line of the text that a cosigner signs: no other text that the key signs begins with it.
const COSIGNATURE_HEADER: &str = "cosignature/v1";

/// Size of the time in front of a cosignature (bytes).
const TIME_BYTES: usize = 8;

/// The name of a key: part of every line that it signs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyName(String);

/// Distinguishes keys of one name. It is short, and proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 4]);

/// What a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyKind {
    /// A note's text: the key of a log.
    Note,
    /// A checkpoint and the time at which it was seen, as in C2SP tlog-cosignature for Ed25519: the key of a witness.
    Cosignature,
}

/// A key that verifies signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: KeyName,
    kind: KeyKind,
    key: VerifyingKey,
}

/// A key that signs. It has no `Debug`, so it is not logged by mistake.
pub struct SignerKey {
    name: KeyName,
    kind: KeyKind,
    key: SigningKey,
}

/// Why a text or value is not a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The name is not valid.
    #[error(
        "a key's name has 1 to {NAME_BYTES} bytes without white space, invisible characters and +, such as \
         example.com/realm; this is \"{name}\""
    )]
    Name {
        /// The rejected name, escaped for display, and truncated if long.
        name: String,
    },
    /// It is not of the form of a key.
    #[error("not a {what} key: {form}")]
    Form {
        /// The kind of key that was expected.
        what: &'static str,
        /// The expected form.
        form: &'static str,
    },
    /// The signature type is unknown.
    #[error("this key is of signature type {0:#04x}; known are 0x01 (Ed25519) and 0x04 (Ed25519 cosignatures)")]
    Kind(u8),
    /// The id is that of another key.
    #[error("the key's id is {found}, but its bytes have the id {expected}: one of the two was changed")]
    Id {
        /// The id found.
        found: KeyId,
        /// The id computed from the key.
        expected: KeyId,
    },
    /// The bytes are not a point of the curve, or a weak one for which anybody can sign.
    #[error("these 32 bytes are not a valid or safe Ed25519 public key")]
    Weak,
}

/// The content of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The time at which the cosigner had seen nothing newer (seconds since 1970); `None` for a key that signs only the
    /// text.
    pub time: Option<u64>,
}

impl KeyName {
    /// Creates a name.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn new(name: &str) -> Result<Self, KeyError> {
        let is_allowed = |c: char| !c.is_whitespace() && !is_unseen(c) && c != '+';
        if name.is_empty() || name.len() > NAME_BYTES || !name.chars().all(is_allowed) {
            let name = shown(&name.chars().take(80).collect::<String>());
            return Err(KeyError::Name { name });
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl KeyKind {
    fn byte(self) -> u8 {
        match self {
            Self::Note => 1,
            Self::Cosignature => 4,
        }
    }

    fn of(byte: u8) -> Result<Self, KeyError> {
        match byte {
            1 => Ok(Self::Note),
            4 => Ok(Self::Cosignature),
            other => Err(KeyError::Kind(other)),
        }
    }
}

impl VerifierKey {
    /// The key's name.
    #[must_use]
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// What it signs.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Its id, which complements the name.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let digest = Sha256::new()
            .chain_update(self.name.as_str())
            .chain_update([b'\n', self.kind.byte()])
            .chain_update(self.key.as_bytes());
        let [a, b, c, d, ..] = <[u8; 32]>::from(digest.finalize());
        KeyId([a, b, c, d])
    }

    /// The statement of this key's signature of a note's text; `None` if the signature is not by this key for this
    /// text.
    #[must_use]
    pub fn verify(&self, text: &str, signature: &[u8]) -> Option<Statement> {
        let (time, signed, signature) = match self.kind {
            KeyKind::Note => (None, text.to_owned(), signature),
            KeyKind::Cosignature => {
                let (time, signature) = signature.split_first_chunk::<TIME_BYTES>()?;
                let time = u64::from_be_bytes(*time);
                i64::try_from(time).ok()?;
                (Some(time), cosigned(text, time), signature)
            }
        };
        let signature = Signature::from_slice(signature).ok()?;
        self.key.verify_strict(signed.as_bytes(), &signature).ok()?;
        Some(Statement { time })
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&[self.kind.byte()], &self.key.as_bytes()[..]].concat();
        write!(f, "{}+{}+{}", self.name, self.id(), base64::encode(&bytes))
    }
}

impl FromStr for VerifierKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = KeyError::Form {
            what: "verifier",
            form: "the form is NAME+ID+BASE64, in one line",
        };
        let (name, id, kind, key) = read_key(text, form)?;
        let key = VerifyingKey::from_bytes(&key).map_err(|_| KeyError::Weak)?;
        if key.is_weak() {
            return Err(KeyError::Weak);
        }
        let found = Self { name, kind, key };
        expect_id(id, found.id())?;
        Ok(found)
    }
}

impl SignerKey {
    /// Creates a key from 32 random bytes, which must be kept secret.
    #[must_use]
    pub fn from_seed(name: KeyName, kind: KeyKind, seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        Self { name, kind, key }
    }

    /// The key that verifies its signatures.
    #[must_use]
    pub fn verifier(&self) -> VerifierKey {
        VerifierKey {
            name: self.name.clone(),
            kind: self.kind,
            key: self.key.verifying_key(),
        }
    }

    /// Signs a note's text; a cosigning key thereby states that this is the newest it had seen at `now` (seconds since
    /// 1970).
    pub(crate) fn sign(&self, text: &str, now: u64) -> Vec<u8> {
        match self.kind {
            KeyKind::Note => self.key.sign(text.as_bytes()).to_bytes().to_vec(),
            KeyKind::Cosignature => {
                let signature = self.key.sign(cosigned(text, now).as_bytes());
                [&now.to_be_bytes()[..], &signature.to_bytes()].concat()
            }
        }
    }

    /// The text of the file that stores it: with it, anybody can sign.
    #[must_use]
    pub fn to_secret_text(&self) -> String {
        let bytes = [&[self.kind.byte()], &self.key.to_bytes()[..]].concat();
        let id = self.verifier().id();
        format!("{SIGNER_PREFIX}{}+{id}+{}", self.name, base64::encode(&bytes))
    }
}

impl FromStr for SignerKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = KeyError::Form {
            what: "signer's",
            form: "the form is PRIVATE+KEY+NAME+ID+BASE64, in one line",
        };
        let rest = text.strip_prefix(SIGNER_PREFIX).ok_or_else(|| form.clone())?;
        let (name, id, kind, seed) = read_key(rest, form)?;
        let key = Self::from_seed(name, kind, &seed);
        expect_id(id, key.verifier().id())?;
        Ok(key)
    }
}

/// The text that a cosigner signs.
fn cosigned(text: &str, time: u64) -> String {
    format!("{COSIGNATURE_HEADER}\ntime {time}\n{text}")
}

fn expect_id(found: KeyId, expected: KeyId) -> Result<(), KeyError> {
    (found == expected)
        .then_some(())
        .ok_or(KeyError::Id { found, expected })
}

/// Reads name, id, kind and 32 bytes.
fn read_key(text: &str, form: KeyError) -> Result<(KeyName, KeyId, KeyKind, [u8; 32]), KeyError> {
    if text.len() > KEY_TEXT_BYTES {
        return Err(form);
    }
    // The third part is base64 and may contain a + of its own.
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(form);
    };
    let name = KeyName::new(name)?;
    let id = read_id(id).ok_or_else(|| form.clone())?;
    let bytes = base64::decode(key).ok_or_else(|| form.clone())?;
    let Some((&kind, key)) = bytes.split_first() else {
        return Err(form);
    };
    let kind = KeyKind::of(kind)?;
    Ok((name, id, kind, key.try_into().map_err(|_| form)?))
}

fn read_id(text: &str) -> Option<KeyId> {
    let is_digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if text.len() != 8 || !text.bytes().all(is_digit) {
        return None;
    }
    u32::from_str_radix(text, 16).ok().map(|id| KeyId(id.to_be_bytes()))
}
