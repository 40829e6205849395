//! The tiles of a shard's Merkle tree. At level 0 a tile is written once, when it is full: 256 leaf hashes. A tile of a
//! higher level contains the root of each full tile below it so far, and grows.

use annals_ids::{Hash, Shard};

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError};

/// Key of a tile.
#[must_use]
pub fn tile_key(shard: Shard, level: u8, index: u64) -> Vec<u8> {
    key(0x2d, &[&shard.0.to_be_bytes(), &[level], &index.to_be_bytes()])
}

/// All tiles of a shard's level, in order.
#[must_use]
pub fn tiles(shard: Shard, level: u8) -> KeyRange {
    KeyRange::prefix(&key(0x2d, &[&shard.0.to_be_bytes(), &[level]]))
}

/// The index of a tile within its level, from its key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn index_of(key: &[u8]) -> Result<u64, StoreError> {
    let mut fields = Fields::of("a tile's key", key.get(4..).unwrap_or_default());
    let index = fields.u64()?;
    fields.finish()?;
    Ok(index)
}

/// The stored form of a tile's hashes.
#[must_use]
pub fn encode_tile(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// Decodes a tile's hashes; no value is a tile without any.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_tile(value: Option<&[u8]>) -> Result<Vec<Hash>, StoreError> {
    let mut fields = Fields::of("a tile", value.unwrap_or_default());
    let mut hashes = Vec::new();
    while !fields.is_empty() {
        hashes.push(fields.hash()?);
    }
    Ok(hashes)
}
