//! Keys of persons, and who was forgotten.
//!
//! A key is in this one row and in the memory of whoever holds the entity. The rows of keys are in no backup, those of the
//! forgotten in all.

use annals_ids::{DatabaseId, LeafIndex};

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError};

/// Longest name of whoever had a person forgotten, and longest reason, in bytes.
pub const TEXT_LIMIT: usize = 256;

/// That a person was forgotten: the key is gone, and none is made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// When, in ms since 1970.
    pub at: u64,
    /// How many batches the archive had then: what is sealed in them cannot be read any more.
    pub leaves: LeafIndex,
    /// By whom, as they said.
    pub by: String,
    /// Why, as they said.
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

/// Key of the row that says that a person was forgotten.
#[must_use]
pub fn forgotten_key(person: DatabaseId) -> Vec<u8> {
    key(0x30, &[&person.0.to_be_bytes()])
}

/// All who were forgotten.
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

/// Reads a person's key, which is stored as it is.
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
    /// When a text is longer than [`TEXT_LIMIT`]: whoever takes one in has to say so.
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

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("that a person was forgotten", value);
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
