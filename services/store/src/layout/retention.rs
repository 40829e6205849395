//! Retention (rule F14): the horizon up to which events were deleted, the floors at it, and the cell parts that stored
//! entities had before it: by stored entity, and in a realm of several shards also by activation.
//!
//! A floor is an owner's state at the horizon. Floors have two areas, as snapshots have: new floors are written into
//! the area that the horizon does not name, and one transaction moves the horizon and names that area.

use annals_ids::{DatabaseId, EntityId, Hash, LeafIndex, OwnerId, Shard, WallTime};

use super::fields::{Fields, key, number};
use super::snapshots::Area;
use crate::{KeyRange, StoreError};

/// The point up to which events may have been deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// The last leaf whose events may be deleted.
    pub leaf: LeafIndex,
    /// The latest wall time up to that leaf.
    pub wall: WallTime,
    /// The area of the current floors.
    pub area: Area,
    /// Size of the floors, in bytes.
    pub bytes: u64,
}

/// The last cell part of a stored entity before the horizon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellPart {
    /// Fingerprint of the definitions that it conforms to.
    pub schema: Hash,
    /// Its encoded image.
    pub image: Vec<u8>,
}

/// Key of a shard's horizon.
#[must_use]
pub fn horizon_key(shard: Shard) -> Vec<u8> {
    key(0x29, &[&shard.0.to_be_bytes(), &[0]])
}

/// Key of the thinning progress of a shard's segments: the first leaf not examined.
#[must_use]
pub fn thinned_key(shard: Shard) -> Vec<u8> {
    key(0x29, &[&shard.0.to_be_bytes(), &[1]])
}

/// The stored form of the thinning progress.
#[must_use]
pub fn encode_thinned(next: LeafIndex) -> [u8; 8] {
    next.0.to_be_bytes()
}

/// Decodes the thinning progress; the first leaf if there is no value.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_thinned(value: Option<&[u8]>) -> Result<LeafIndex, StoreError> {
    value.map_or(Ok(LeafIndex(0)), |value| {
        number("the progress of thinning", value).map(LeafIndex)
    })
}

/// All floors of an area, chunk by chunk.
#[must_use]
pub fn floors(shard: Shard, area: Area) -> KeyRange {
    KeyRange::prefix(&key(0x2a, &[&shard.0.to_be_bytes(), &[area.byte()]]))
}

/// Key prefix of the chunks of an owner's own state in its floor.
#[must_use]
pub fn own_key(shard: Shard, area: Area, owner: OwnerId) -> Vec<u8> {
    floor_key(shard, area, owner, 0, &[])
}

/// Key prefix of the chunks of an entity's image in a floor.
#[must_use]
pub fn entity_key(shard: Shard, area: Area, owner: OwnerId, entity: EntityId) -> Vec<u8> {
    floor_key(shard, area, owner, 1, &entity.0.to_be_bytes())
}

/// All entities of a floor, chunk by chunk.
#[must_use]
pub fn entities(shard: Shard, area: Area, owner: OwnerId) -> KeyRange {
    KeyRange::prefix(&floor_key(shard, area, owner, 1, &[]))
}

fn floor_key(shard: Shard, area: Area, owner: OwnerId, what: u8, rest: &[u8]) -> Vec<u8> {
    let parts = [
        &shard.0.to_be_bytes()[..],
        &[area.byte()],
        &owner.0.to_be_bytes(),
        &[what],
        rest,
    ];
    key(0x2a, &parts)
}

/// The entity in the key of a chunk of [`entities`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn entity_of(key: &[u8]) -> Result<EntityId, StoreError> {
    let mut fields = Fields::of("a floor's key", key.get(9..).unwrap_or_default());
    let entity = EntityId(fields.u64()?);
    fields.u16()?;
    fields.finish()?;
    Ok(entity)
}

/// Key prefix of the chunks of a cell part written at a leaf.
#[must_use]
pub fn part_key(shard: Shard, database: DatabaseId, leaf: LeafIndex) -> Vec<u8> {
    let parts = [
        &shard.0.to_be_bytes()[..],
        &database.0.to_be_bytes(),
        &leaf.0.to_be_bytes(),
    ];
    key(0x2b, &parts)
}

/// The cell parts of an entity written before a leaf, chunk by chunk.
#[must_use]
pub fn parts_before(shard: Shard, database: DatabaseId, leaf: LeafIndex) -> KeyRange {
    KeyRange::new(part_key(shard, database, LeafIndex(0)), part_key(shard, database, leaf))
}

/// All cell parts of a shard, chunk by chunk.
#[must_use]
pub fn parts(shard: Shard) -> KeyRange {
    KeyRange::prefix(&key(0x2b, &[&shard.0.to_be_bytes()]))
}

/// The entity and the leaf in the key of a chunk of [`parts`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn part_of(key: &[u8]) -> Result<(DatabaseId, LeafIndex), StoreError> {
    let mut fields = Fields::of("a cell part's key", key.get(3..).unwrap_or_default());
    let place = (DatabaseId(fields.u64()?), LeafIndex(fields.u64()?));
    fields.u16()?;
    fields.finish()?;
    Ok(place)
}

/// Key prefix of the chunks of a cell part that ended at a leaf.
#[must_use]
pub fn ended_key(shard: Shard, entity: EntityId, leaf: LeafIndex) -> Vec<u8> {
    let parts = [
        &shard.0.to_be_bytes()[..],
        &entity.0.to_be_bytes(),
        &leaf.0.to_be_bytes(),
    ];
    key(0x3d, &parts)
}

/// All cell parts of a shard that ended before its horizon, chunk by chunk.
#[must_use]
pub fn ended(shard: Shard) -> KeyRange {
    KeyRange::prefix(&key(0x3d, &[&shard.0.to_be_bytes()]))
}

/// The entity and the leaf in the key of a chunk of [`ended`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn ended_of(key: &[u8]) -> Result<(EntityId, LeafIndex), StoreError> {
    let mut fields = Fields::of("the key of an ended cell part", key.get(3..).unwrap_or_default());
    let place = (EntityId(fields.u64()?), LeafIndex(fields.u64()?));
    fields.u16()?;
    fields.finish()?;
    Ok(place)
}

impl Horizon {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let numbers = [self.leaf.0, self.wall.0, self.bytes];
        let mut value: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        value.push(self.area.byte());
        value
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a horizon", value);
        let (leaf, wall, bytes) = (LeafIndex(fields.u64()?), WallTime(fields.u64()?), fields.u64()?);
        let area = Area::of(fields.u8()?).ok_or_else(|| fields.corrupt())?;
        fields.finish()?;
        Ok(Self {
            leaf,
            wall,
            area,
            bytes,
        })
    }
}

impl CellPart {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.schema.0[..], &self.image].concat()
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a cell part", value);
        let schema = fields.hash()?;
        let image = fields.rest().to_vec();
        Ok(Self { schema, image })
    }
}
