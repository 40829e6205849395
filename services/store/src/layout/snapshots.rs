//! Snapshots: an owner's state at a batch, its entities one by one.

use annals_ids::{BatchNumber, EntityId, OwnerId};

use super::fields::{Fields, key, number};
use crate::{KeyRange, StoreError};

/// Key of the batch at which an owner's snapshot stands.
#[must_use]
pub fn position_key(owner: OwnerId) -> Vec<u8> {
    key(0x0b, &[&owner.0.to_be_bytes()])
}

/// The stored form of a position.
#[must_use]
pub fn encode_position(batch: BatchNumber) -> [u8; 8] {
    batch.0.to_be_bytes()
}

/// Reads a position.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_position(value: &[u8]) -> Result<BatchNumber, StoreError> {
    number("a snapshot's position", value).map(BatchNumber)
}

/// Under which the chunks of an owner's own state are kept.
#[must_use]
pub fn own_key(owner: OwnerId) -> Vec<u8> {
    key(0x0a, &[&owner.0.to_be_bytes(), &[0]])
}

/// Under which the chunks of an entity's image are kept.
#[must_use]
pub fn entity_key(owner: OwnerId, entity: EntityId) -> Vec<u8> {
    key(0x0a, &[&owner.0.to_be_bytes(), &[1], &entity.0.to_be_bytes()])
}

/// All entities of an owner's snapshot, chunk by chunk.
#[must_use]
pub fn entities(owner: OwnerId) -> KeyRange {
    KeyRange::prefix(&key(0x0a, &[&owner.0.to_be_bytes(), &[1]]))
}

/// The entity to which a chunk's key belongs.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn entity_of(key: &[u8]) -> Result<EntityId, StoreError> {
    let mut fields = Fields::of("a snapshot's key", key.get(6..).unwrap_or_default());
    let entity = EntityId(fields.u64()?);
    fields.u16()?;
    fields.finish()?;
    Ok(entity)
}
