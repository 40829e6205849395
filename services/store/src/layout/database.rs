//! The database: stored entities, their indexes, check-outs, and accounts.
//!
//! A stored entity is its type's name, then its persistent properties by name, so that it survives a change of the
//! schema; db writes and reads it (`annals-db`), in chunks.
//!
//! An account is looked up by a keyed hash of its name. The hash's key is stored here too, so that every login process
//! uses the same one and it is backed up and restored with the accounts, which cannot be found without it. The hash
//! makes names short and of one length, and keeps them out of records, requests and logs; it hides them from no one who
//! can read the whole store.

use annals_ids::{DatabaseId, OwnerId};
use sha2::{Digest, Sha256};

use super::fields::{Fields, key, number};
use crate::{KeyRange, StoreError, tuple::Packer};

/// The activation of a stored entity. There is at most one, so there is never more than one live instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The owner on which it is, or is about to be, activated.
    pub owner: OwnerId,
    /// Number of the check-out in the realm: a later activation has a higher number.
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

/// Key prefix of the chunks of a stored entity.
#[must_use]
pub fn entity_key(database: DatabaseId) -> Vec<u8> {
    key(0x0c, &[&database.0.to_be_bytes()])
}

/// All stored entities, chunk by chunk.
#[must_use]
pub fn entities() -> KeyRange {
    KeyRange::prefix(&[0x0c])
}

/// The entity of a chunk, from the chunk's key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn entity_of(key: &[u8]) -> Result<DatabaseId, StoreError> {
    decode_id(key.get(1..9).unwrap_or_default())
}

/// A value in the order of an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IndexedValue<'a> {
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A floating-point number.
    Float(f64),
    /// Bytes, or text in UTF-8, cut to the length that the index stores.
    Bytes(&'a [u8]),
}

impl IndexedValue<'_> {
    /// Whether it is an empty text, which identifies nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Bytes(bytes) if bytes.is_empty())
    }

    fn pack(&self, packer: Packer) -> Packer {
        match self {
            Self::Signed(number) => packer.i64(*number),
            Self::Unsigned(number) => packer.u64(*number),
            Self::Float(number) => {
                // Encodes so that bytes sort as the numbers do: negative ones have all bits inverted, others only the
                // sign.
                let bits = number.to_bits();
                let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                packer.bytes(&ordered.to_be_bytes())
            }
            Self::Bytes(bytes) => packer.bytes(bytes),
        }
    }
}

/// Key of the only entity of a type with this value in this property.
#[must_use]
pub fn unique_key(names: (&str, &str), value: &IndexedValue<'_>) -> Vec<u8> {
    index_key(value.pack(index_place(names)))
}

/// Key of an entity of a type with this value in this property, which others may have too.
#[must_use]
pub fn indexed_key(names: (&str, &str), value: &IndexedValue<'_>, database: DatabaseId) -> Vec<u8> {
    let mut key = index_key(value.pack(index_place(names)));
    key.extend(database.0.to_be_bytes());
    key
}

/// The keys of all entities after `after` with this value in this property.
#[must_use]
pub fn indexed_range(names: (&str, &str), value: &IndexedValue<'_>, after: DatabaseId) -> KeyRange {
    let place = index_key(value.pack(index_place(names)));
    let after = indexed_key(names, value, after);
    // No id begins with ff; a longer text with a zero where this one ends does.
    KeyRange::new(crate::key_after(&after), [&place[..], &[0xff]].concat())
}

/// All index keys of one property of a type.
#[must_use]
pub fn index_of(names: (&str, &str)) -> KeyRange {
    KeyRange::prefix(&index_key(index_place(names)))
}

/// The entity in an [`indexed_key`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn indexed_id(key: &[u8]) -> Result<DatabaseId, StoreError> {
    decode_id(key.last_chunk::<8>().map_or(&[], |id| &id[..]))
}

fn index_place((entity_type, property): (&str, &str)) -> Packer {
    Packer::new().text(entity_type).text(property)
}

fn index_key(place: Packer) -> Vec<u8> {
    key(0x0d, &[&place.finish()])
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

/// Key of the secret key of the hash of account names.
#[must_use]
pub fn name_key_key() -> Vec<u8> {
    key(0x14, &[])
}

/// Decodes the secret key of the hash of account names, which is stored unchanged.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_name_key(value: &[u8]) -> Result<[u8; 32], StoreError> {
    let mut fields = Fields::of("the key of account names", value);
    let name_key = fields.take()?;
    fields.finish()?;
    Ok(name_key)
}

/// The hash by which an account is looked up: without the realm's secret key, names cannot be tried.
#[must_use]
pub fn hashed_name(name_key: &[u8; 32], name: &str) -> Vec<u8> {
    let hash = Sha256::new().chain_update(name_key).chain_update(name.as_bytes());
    hash.finalize().to_vec()
}

/// The stored form of a database id.
#[must_use]
pub fn encode_id(database: DatabaseId) -> [u8; 8] {
    database.0.to_be_bytes()
}

/// Decodes a database id.
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

    /// Decodes the stored form.
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

    /// Decodes the stored form.
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
