//! The archive: batches by leaf, the leaf of each batch, the edge of the Merkle tree, and named holes.

use annals_ids::{BatchNumber, Hash, LeafIndex, OwnerId, Shard};

use super::fields::{Fields, key, number};
use crate::{KeyRange, StoreError};

/// A shard's Merkle tree: its size and the roots of its complete subtrees, largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Number of leaves.
    pub size: u64,
    /// The roots.
    pub peaks: Vec<Hash>,
}

/// The right to fold a shard. Each folding transaction is conditional on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldLease {
    /// Incremented by each db that begins to fold.
    pub term: u64,
}

/// A hole that was not filled in time (rule F4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The last batch before it.
    pub after: Hash,
    /// The previous hash in the first batch after it.
    pub named: Hash,
    /// The first batch after it.
    pub until: BatchNumber,
}

/// Key prefix of the chunks of a leaf's batch.
#[must_use]
pub fn leaf_key(shard: Shard, leaf: LeafIndex) -> Vec<u8> {
    key(0x07, &[&shard.0.to_be_bytes(), &leaf.0.to_be_bytes()])
}

/// All leaves of a shard, chunk by chunk.
#[must_use]
pub fn leaves(shard: Shard) -> KeyRange {
    KeyRange::prefix(&key(0x07, &[&shard.0.to_be_bytes()]))
}

/// The leaf and the chunk number in a key of [`leaves`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn leaf_of(key: &[u8]) -> Result<(LeafIndex, u16), StoreError> {
    let mut fields = Fields::of("a leaf's key", key.get(3..).unwrap_or_default());
    let place = (LeafIndex(fields.u64()?), fields.u16()?);
    fields.finish()?;
    Ok(place)
}

/// Key of the leaf index of an archived batch.
#[must_use]
pub fn place_key(owner: OwnerId, batch: BatchNumber) -> Vec<u8> {
    key(0x08, &[&owner.0.to_be_bytes(), &batch.0.to_be_bytes()])
}

/// Keys of the leaf indexes of an owner's archived batches after `batch`, in order.
#[must_use]
pub fn places_after(owner: OwnerId, batch: BatchNumber) -> KeyRange {
    KeyRange::new(
        place_key(owner, batch.next()),
        KeyRange::prefix(&key(0x08, &[&owner.0.to_be_bytes()])).end,
    )
}

/// The stored form of a leaf's index.
#[must_use]
pub fn encode_place(leaf: LeafIndex) -> [u8; 8] {
    leaf.0.to_be_bytes()
}

/// Decodes a leaf's index.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_place(value: &[u8]) -> Result<LeafIndex, StoreError> {
    number("the place of a batch", value).map(LeafIndex)
}

/// Key of a shard's tree.
#[must_use]
pub fn tree_key(shard: Shard) -> Vec<u8> {
    key(0x09, &[&shard.0.to_be_bytes()])
}

/// Key of a shard's fold lease.
#[must_use]
pub fn lease_key(shard: Shard) -> Vec<u8> {
    key(0x12, &[&shard.0.to_be_bytes()])
}

/// Key of a named hole, by the first missing batch.
#[must_use]
pub fn hole_key(owner: OwnerId, first: BatchNumber) -> Vec<u8> {
    key(0x13, &[&owner.0.to_be_bytes(), &first.0.to_be_bytes()])
}

/// All named holes.
#[must_use]
pub fn holes() -> KeyRange {
    KeyRange::prefix(&[0x13])
}

/// All named holes of an owner's log.
#[must_use]
pub fn holes_of(owner: OwnerId) -> KeyRange {
    KeyRange::prefix(&key(0x13, &[&owner.0.to_be_bytes()]))
}

impl Tree {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut value = self.size.to_be_bytes().to_vec();
        self.peaks.iter().for_each(|peak| value.extend(peak.0));
        value
    }

    /// Decodes the stored form; no value is an empty tree.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: Option<&[u8]>) -> Result<Self, StoreError> {
        let Some(value) = value else { return Ok(Self::default()) };
        let mut fields = Fields::of("a Merkle tree", value);
        let size = fields.u64()?;
        let peaks = (0..size.count_ones())
            .map(|_| fields.hash())
            .collect::<Result<_, _>>()?;
        fields.finish()?;
        Ok(Self { size, peaks })
    }
}

impl FoldLease {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> [u8; 8] {
        self.term.to_be_bytes()
    }

    /// Decodes the stored form; no value is a lease never held.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: Option<&[u8]>) -> Result<Self, StoreError> {
        let term = value.map_or(Ok(0), |value| number("a fold lease", value))?;
        Ok(Self { term })
    }
}

impl Hole {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.after.0[..], &self.named.0, &self.until.0.to_be_bytes()].concat()
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a hole", value);
        let (after, named) = (fields.hash()?, fields.hash()?);
        let hole = Self {
            after,
            named,
            until: BatchNumber(fields.u64()?),
        };
        fields.finish()?;
        Ok(hole)
    }

    /// The owner and the first missing batch in a hole's key.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn place(key: &[u8]) -> Result<(OwnerId, BatchNumber), StoreError> {
        let mut fields = Fields::of("a hole's key", key.get(1..).unwrap_or_default());
        let place = (OwnerId(fields.u32()?), BatchNumber(fields.u64()?));
        fields.finish()?;
        Ok(place)
    }
}
