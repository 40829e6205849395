//! The database: entities that outlive their lives, how they are found, who has one in use, and accounts.
//!
//! A stored entity is its type's name, then its persistent properties by name, so that it survives a change of the
//! schema; db writes and reads it (`annals-db`), in chunks.
//!
//! An account is found by a keyed hash of its name. The hash's key lies here too, so that every login has the same and it is
//! kept and restored with the accounts, which without it nobody would find again. So the hash makes names short and of one
//! length, and keeps them out of records, requests and logs; it hides them from nobody who can read the whole store.

use annals_ids::{DatabaseId, OwnerId, TypeId};

use super::fields::{Fields, key, number};
use crate::{KeyRange, StoreError};

/// Who has an entity of the database in use. There is at most one, so there is never more than one live instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The owner on which it lives or is about to.
    pub owner: OwnerId,
    /// Counts the check-outs of the realm: a later life has a higher number.
    pub number: u64,
}

/// An account that can log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its entity.
    pub database: DatabaseId,
    /// The hash of its password, as a PHC string.
    pub password: String,
}

/// Under which the chunks of a stored entity are kept.
#[must_use]
pub fn entity_key(database: DatabaseId) -> Vec<u8> {
    key(0x0c, &[&database.0.to_be_bytes()])
}

/// All stored entities, chunk by chunk.
#[must_use]
pub fn entities() -> KeyRange {
    KeyRange::prefix(&[0x0c])
}

/// Key under which the entity of a type with this identifier is found.
#[must_use]
pub fn identifier_key(type_id: TypeId, identifier: &[u8]) -> Vec<u8> {
    key(0x0d, &[&type_id.0.to_be_bytes(), identifier])
}

/// Key of a check-out.
#[must_use]
pub fn checkout_key(database: DatabaseId) -> Vec<u8> {
    key(0x0e, &[&database.0.to_be_bytes()])
}

/// Key of an account, by the keyed hash of its name.
#[must_use]
pub fn account_key(name: &[u8]) -> Vec<u8> {
    key(0x0f, &[name])
}

/// Key of the key under which account names are hashed.
#[must_use]
pub fn name_key_key() -> Vec<u8> {
    key(0x14, &[])
}

/// Reads the key under which account names are hashed, which is stored as it is.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_name_key(value: &[u8]) -> Result<[u8; 32], StoreError> {
    let mut fields = Fields::of("the key of account names", value);
    let name_key = fields.take()?;
    fields.finish()?;
    Ok(name_key)
}

/// The stored form of a database id.
#[must_use]
pub fn encode_id(database: DatabaseId) -> [u8; 8] {
    database.0.to_be_bytes()
}

/// Reads a database id.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_id(value: &[u8]) -> Result<DatabaseId, StoreError> {
    number("a database id", value).map(DatabaseId)
}

impl Checkout {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.owner.0.to_be_bytes()[..], &self.number.to_be_bytes()].concat()
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a check-out", value);
        let checkout = Self {
            owner: OwnerId(fields.u32()?),
            number: fields.u64()?,
        };
        fields.finish()?;
        Ok(checkout)
    }
}

impl Account {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.database.0.to_be_bytes()[..], self.password.as_bytes()].concat()
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("an account", value);
        let database = DatabaseId(fields.u64()?);
        let password = String::from_utf8(fields.rest().to_vec()).map_err(|_| fields.corrupt())?;
        Ok(Self { database, password })
    }
}
