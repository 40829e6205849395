//! Snapshots: an owner's state at a batch, each entity in rows of its own.
//!
//! An owner has two areas. One contains its newest complete snapshot and is not modified; the next snapshot is written
//! into the other, in as many transactions as necessary. The last of them stores that area and the batch in the owner's
//! position.

use annals_ids::{BatchNumber, EntityId, OwnerId};

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError};

/// One of the two areas that an owner's snapshots alternate between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    First,
    Second,
}

/// Batch and area of an owner's newest snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The batch of the snapshot.
    pub batch: BatchNumber,
    /// The area that it is stored in.
    pub area: Area,
}

/// Key of an owner's [`Position`].
#[must_use]
pub fn position_key(owner: OwnerId) -> Vec<u8> {
    key(0x0b, &[&owner.0.to_be_bytes()])
}

/// Key prefix of the chunks of an owner's own state.
#[must_use]
pub fn own_key(owner: OwnerId, area: Area) -> Vec<u8> {
    key(0x0a, &[&owner.0.to_be_bytes(), &[area.byte(), 0]])
}

/// Key prefix of the chunks of an entity's image.
#[must_use]
pub fn entity_key(owner: OwnerId, area: Area, entity: EntityId) -> Vec<u8> {
    key(
        0x0a,
        &[&owner.0.to_be_bytes(), &[area.byte(), 1], &entity.0.to_be_bytes()],
    )
}

/// All keys of an area.
#[must_use]
pub fn area(owner: OwnerId, area: Area) -> KeyRange {
    KeyRange::prefix(&key(0x0a, &[&owner.0.to_be_bytes(), &[area.byte()]]))
}

/// All entities of an owner's snapshot, chunk by chunk.
#[must_use]
pub fn entities(owner: OwnerId, area: Area) -> KeyRange {
    KeyRange::prefix(&key(0x0a, &[&owner.0.to_be_bytes(), &[area.byte(), 1]]))
}

/// The entity in a chunk's key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn entity_of(key: &[u8]) -> Result<EntityId, StoreError> {
    let mut fields = Fields::of("a snapshot's key", key.get(7..).unwrap_or_default());
    let entity = EntityId(fields.u64()?);
    fields.u16()?;
    fields.finish()?;
    Ok(entity)
}

impl Area {
    /// The area of the next snapshot.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    pub(super) fn byte(self) -> u8 {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }

    pub(super) fn of(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::First),
            1 => Some(Self::Second),
            _ => None,
        }
    }
}

impl Position {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.batch.0.to_be_bytes()[..], &[self.area.byte()]].concat()
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a snapshot's position", value);
        let batch = BatchNumber(fields.u64()?);
        let area = Area::of(fields.u8()?).ok_or_else(|| fields.corrupt())?;
        fields.finish()?;
        Ok(Self { batch, area })
    }
}
