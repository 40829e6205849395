//! Personal keys, and records of forgotten persons.
//!
//! A key exists only in this row and in the memory of the process that holds the entity. No backup includes the rows of
//! keys; every backup includes the records of forgotten persons.

use annals_ids::{DatabaseId, LeafIndex};

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError};

/// Maximum length of the name of the requester and of the reason, in bytes.
pub const TEXT_LIMIT: usize = 256;

/// A person was forgotten: the key is deleted, and no new one is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// Time, in ms since 1970.
    pub at: u64,
    /// Number of batches in the archive at that time: what is sealed in them can no longer be read.
    pub leaves: LeafIndex,
    /// The requester, as given.
    pub by: String,
    /// The reason, as given.
    pub reason: String,
}

/// Key of the row of a person's key.
#[must_use]
pub fn key_key(person: DatabaseId) -> Vec<u8> {
    key(0x2f, &[&person.0.to_be_bytes()])
}

/// The keys of all persons.
#[must_use]
pub fn keys() -> KeyRange {
    KeyRange::prefix(&[0x2f])
}

/// Key of the record of a forgotten person.
#[must_use]
pub fn forgotten_key(person: DatabaseId) -> Vec<u8> {
    key(0x30, &[&person.0.to_be_bytes()])
}

/// The records of all forgotten persons.
#[must_use]
pub fn forgotten() -> KeyRange {
    KeyRange::prefix(&[0x30])
}

/// The person in a key of either kind.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn person_of(key: &[u8]) -> Result<DatabaseId, StoreError> {
    let mut fields = Fields::of("the id of a person", key.get(1..).unwrap_or_default());
    let person = DatabaseId(fields.u64()?);
    fields.finish()?;
    Ok(person)
}

/// Decodes a person's key, which is stored unchanged.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_key(value: &[u8]) -> Result<[u8; 32], StoreError> {
    let mut fields = Fields::of("the key of a person", value);
    let key = fields.take()?;
    fields.finish()?;
    Ok(key)
}

impl Forgotten {
    /// The stored form.
    ///
    /// # Panics
    /// If a text is longer than [`TEXT_LIMIT`]: code that accepts one from outside must check it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = [self.at.to_be_bytes(), self.leaves.0.to_be_bytes()].concat();
        assert!(
            self.by.len() <= TEXT_LIMIT && self.reason.len() <= TEXT_LIMIT,
            "a text is too long"
        );
        out.extend((self.by.len() as u64).to_be_bytes());
        out.extend(self.by.as_bytes());
        out.extend(self.reason.as_bytes());
        out
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("the record of an erased person", value);
        let (at, leaves, length) = (fields.u64()?, LeafIndex(fields.u64()?), fields.u64()?);
        let rest = fields.rest();
        let split = usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| fields.corrupt());
        let (by, reason) = split.ok_or_else(|| fields.corrupt())?;
        Ok(Self {
            at,
            leaves,
            by: text(by)?,
            reason: text(reason)?,
        })
    }
}
