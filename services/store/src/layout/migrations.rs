//! Migrations of a realm's definitions, and the progress of converting stored entities.
//!
//! Migrations are numbered from 0. The **generation** of a stored entity is the number of migrations before it was
//! written.

use annals_ids::{DatabaseId, EntityId, Hash, LeafIndex, TypeId, WallTime};

use super::fields::{Fields, key, put_count, put_texts};
use crate::{KeyRange, ScanOrder, StoreError, Transaction};

/// One migration of a realm's definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationRecord {
    /// Fingerprint of the old definitions.
    pub from: Hash,
    /// Fingerprint of the new definitions.
    pub to: Hash,
    /// Time, by the wall clock.
    pub at: WallTime,
    /// Number of leaves in the archive.
    pub leaves: LeafIndex,
    /// The renames, as they were given.
    pub renames: Vec<String>,
    /// Receivers of calls in flight: the type under the old definitions, or nothing if the entity no longer existed.
    pub receivers: Vec<(EntityId, Option<TypeId>)>,
}

/// Progress of converting stored entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converting {
    /// The last entity examined.
    pub upto: DatabaseId,
    /// Number of entities converted.
    pub converted: u64,
    /// Number of entities at the start.
    pub of: u64,
    /// Whether the realm may run meanwhile.
    pub later: bool,
}

/// Key prefix of the chunks of a migration.
#[must_use]
pub fn key_of(number: u32) -> Vec<u8> {
    key(0x26, &[&number.to_be_bytes()])
}

/// All migrations, chunk by chunk, oldest first.
#[must_use]
pub fn migrations() -> KeyRange {
    KeyRange::prefix(&[0x26])
}

/// The migration in a chunk's key.
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

/// Number of migrations, which is the generation of entities written now.
///
/// # Errors
/// As [`Transaction::get_range`].
pub async fn generation(transaction: &Transaction) -> Result<u32, StoreError> {
    // Whatever was written under an earlier generation is converted when it is read: no conflict is needed.
    let page = transaction
        .snapshot()
        .get_range(&migrations(), 1, ScanOrder::Reverse)
        .await?;
    page.rows.first().map_or(Ok(0), |(key, _)| Ok(number_of(key)? + 1))
}

/// Key of the progress of the conversion; absent once all are converted.
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
        put_texts(&mut value, &self.renames);
        put_count(&mut value, self.receivers.len());
        for (entity, type_id) in &self.receivers {
            value.extend(entity.0.to_be_bytes());
            value.push(u8::from(type_id.is_some()));
            value.extend(type_id.map_or(0, |type_id| type_id.0).to_be_bytes());
        }
        value
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a migration", value);
        let (from, to) = (fields.hash()?, fields.hash()?);
        let (at, leaves) = (WallTime(fields.u64()?), LeafIndex(fields.u64()?));
        let renames = fields.texts()?;
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

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("the progress of a migration", value);
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
