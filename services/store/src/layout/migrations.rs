//! Changes of a realm's definitions: what became of what, and how far stored entities are with it.
//!
//! Migrations are numbered from 0. The **generation** of a stored entity is how many of them were made when it was written.

use annals_ids::{DatabaseId, EntityId, Hash, LeafIndex, TypeId, WallTime};

use super::fields::{Fields, key};
use crate::{KeyRange, Order, StoreError, Transaction};

/// The definitions of a realm were changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationRecord {
    /// The fingerprint of the old ones.
    pub from: Hash,
    /// The fingerprint of the new ones.
    pub to: Hash,
    /// When, by the wall clock.
    pub at: WallTime,
    /// How many leaves the archive had.
    pub leaves: LeafIndex,
    /// What was said to be renamed, as it was said.
    pub renames: Vec<String>,
    /// To whom calls were under way: the type under the old definitions, or nothing where the entity was no more.
    pub receivers: Vec<(EntityId, Option<TypeId>)>,
}

/// Stored entities are being converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converting {
    /// All of them up to this one were looked at.
    pub upto: DatabaseId,
    /// How many were converted.
    pub converted: u64,
    /// How many there were when it began.
    pub of: u64,
    /// Whether the realm may run meanwhile.
    pub later: bool,
}

/// Under which the chunks of a migration are kept.
#[must_use]
pub fn key_of(number: u32) -> Vec<u8> {
    key(0x26, &[&number.to_be_bytes()])
}

/// All migrations, chunk by chunk, the oldest first.
#[must_use]
pub fn migrations() -> KeyRange {
    KeyRange::prefix(&[0x26])
}

/// The number of the migration to which a chunk's key belongs.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn number_of(key: &[u8]) -> Result<u32, StoreError> {
    let mut fields = Fields::of("the key of a migration", key.get(1..).unwrap_or_default());
    let number = fields.u32()?;
    fields.u16()?;
    fields.finish()?;
    Ok(number)
}

/// How many migrations there were: the generation of what is written now.
///
/// # Errors
/// As [`Transaction::get_range`].
pub async fn generation(transaction: &Transaction) -> Result<u32, StoreError> {
    // No migration is made while anybody else uses the store: nothing can conflict.
    let page = transaction
        .snapshot()
        .get_range(&migrations(), 1, Order::Reverse)
        .await?;
    page.rows.first().map_or(Ok(0), |(key, _)| Ok(number_of(key)? + 1))
}

/// Key of how far stored entities are; not there when all are converted.
#[must_use]
pub fn converting_key() -> Vec<u8> {
    key(0x27, &[])
}

impl MigrationRecord {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut value = [&self.from.0[..], &self.to.0].concat();
        value.extend(
            [self.at.0, self.leaves.0]
                .iter()
                .flat_map(|number| number.to_be_bytes()),
        );
        put_count(&mut value, self.renames.len());
        for rename in &self.renames {
            put_count(&mut value, rename.len());
            value.extend(rename.as_bytes());
        }
        put_count(&mut value, self.receivers.len());
        for (entity, type_id) in &self.receivers {
            value.extend(entity.0.to_be_bytes());
            value.push(u8::from(type_id.is_some()));
            value.extend(type_id.map_or(0, |type_id| type_id.0).to_be_bytes());
        }
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a migration", value);
        let (from, to) = (fields.hash()?, fields.hash()?);
        let (at, leaves) = (WallTime(fields.u64()?), LeafIndex(fields.u64()?));
        let mut renames = Vec::new();
        for _ in 0..fields.u32()? {
            let length = fields.u32()? as usize;
            let text = fields.bytes(length)?.to_vec();
            renames.push(String::from_utf8(text).map_err(|_| fields.corrupt())?);
        }
        let mut receivers = Vec::new();
        for _ in 0..fields.u32()? {
            let entity = EntityId(fields.u64()?);
            let (is_there, type_id) = (fields.u8()?, TypeId(fields.u16()?));
            if is_there > 1 {
                return Err(fields.corrupt());
            }
            receivers.push((entity, (is_there == 1).then_some(type_id)));
        }
        fields.finish()?;
        Ok(Self {
            from,
            to,
            at,
            leaves,
            renames,
            receivers,
        })
    }
}

impl Converting {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let numbers = [self.upto.0, self.converted, self.of];
        let mut value: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        value.push(u8::from(self.later));
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("how far stored entities are converted", value);
        let converting = Self {
            upto: DatabaseId(fields.u64()?),
            converted: fields.u64()?,
            of: fields.u64()?,
            later: fields.u8()? != 0,
        };
        fields.finish()?;
        Ok(converting)
    }
}

fn put_count(value: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("invariant: a migration is far below 4 GiB");
    value.extend(count.to_be_bytes());
}
