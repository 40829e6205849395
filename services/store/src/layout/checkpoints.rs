//! Signed checkpoints of a shard's Merkle tree, and the keys that signed them. All values are text for external
//! readers; their signatures prove them.

use annals_ids::Shard;

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError};

/// Key of the checkpoint of the tree's first `size` leaves: a signed note.
#[must_use]
pub fn checkpoint_key(shard: Shard, size: u64) -> Vec<u8> {
    key(0x2e, &[&shard.0.to_be_bytes(), &[0], &size.to_be_bytes()])
}

/// All checkpoints of a shard's tree, by size.
#[must_use]
pub fn checkpoints(shard: Shard) -> KeyRange {
    KeyRange::prefix(&key(0x2e, &[&shard.0.to_be_bytes(), &[0]]))
}

/// Key of the record of a log's signing key, by the tree size from which on it signs: the public key in its usual
/// one-line text form, and the checkpoint in which the previous key named it.
#[must_use]
pub fn signer_key(shard: Shard, from: u64) -> Vec<u8> {
    key(0x2e, &[&shard.0.to_be_bytes(), &[1], &from.to_be_bytes()])
}

/// The records of all signing keys, in order.
#[must_use]
pub fn signers(shard: Shard) -> KeyRange {
    KeyRange::prefix(&key(0x2e, &[&shard.0.to_be_bytes(), &[1]]))
}

/// The size in a key of either kind.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn size_of(key: &[u8]) -> Result<u64, StoreError> {
    let mut fields = Fields::of("a checkpoint's key", key.get(4..).unwrap_or_default());
    let size = fields.u64()?;
    fields.finish()?;
    Ok(size)
}
