//! Sealed segments and their blocks. Each index is stored under the segment's last leaf, so that the segment that
//! contains a leaf is the first at or after it.

use annals_ids::{LeafIndex, Shard};

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError};

/// Key prefix of the chunks of a segment's index.
#[must_use]
pub fn index_key(shard: Shard, last: LeafIndex) -> Vec<u8> {
    key(0x20, &[&shard.0.to_be_bytes(), &last.0.to_be_bytes()])
}

/// The indexes of a shard's segments that end at `leaf` or after it, in order.
#[must_use]
pub fn indexes_from(shard: Shard, leaf: LeafIndex) -> KeyRange {
    KeyRange::new(index_key(shard, leaf), indexes(shard).end)
}

/// The indexes of all segments of a shard, chunk by chunk.
#[must_use]
pub fn indexes(shard: Shard) -> KeyRange {
    KeyRange::prefix(&key(0x20, &[&shard.0.to_be_bytes()]))
}

/// Key prefix of the chunks of a block.
#[must_use]
pub fn block_key(shard: Shard, last: LeafIndex, block: u32) -> Vec<u8> {
    key(
        0x21,
        &[&shard.0.to_be_bytes(), &last.0.to_be_bytes(), &block.to_be_bytes()],
    )
}

/// All blocks of the segment with this last leaf, chunk by chunk.
#[must_use]
pub fn blocks(shard: Shard, last: LeafIndex) -> KeyRange {
    KeyRange::prefix(&key(0x21, &[&shard.0.to_be_bytes(), &last.0.to_be_bytes()]))
}

/// The last leaf in the key of a segment's index.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn last_of(key: &[u8]) -> Result<LeafIndex, StoreError> {
    let mut fields = Fields::of("the key of a segment", key.get(3..).unwrap_or_default());
    let last = LeafIndex(fields.u64()?);
    fields.u16()?;
    fields.finish()?;
    Ok(last)
}
