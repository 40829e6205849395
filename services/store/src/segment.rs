//! Segments: sealed batches of the archive. Many batches become one immutable, compressed unit, from which one batch
//! can be read without the rest.
//!
//! ```text
//! segment  = length:u32 index block*                as one file; in the store each part has its own rows
//! index    = shard:u16 first:u64 last:u64 earliest:u64 latest:u64 bytes:u64
//!            runs:u32 (owner:u32 first:u64 last:u64)*
//!            blocks:u32 (owner:u32 batch:u64 bytes:u32 stored:u32 hash)*
//! block    = zstd of (leaf:u64 owner:u32 batch:u64 wall:u64 length:u32 archived)*
//! archived = batch | 0xff thinned                  a batch without its events, once they are deleted
//! ```
//!
//! Batches are ordered by owner and number, so that a log is read from few blocks, and similar batches are compressed
//! together. A block's entry has the number of its first batch, its size before and after compression, and the SHA-256
//! of its stored bytes. So the hash of the index, which is the segment's name, covers every byte. Numbers are
//! big-endian.

use annals_ids::{BatchNumber, Hash, LeafIndex, OwnerId, Shard, WallTime};
use sha2::{Digest, Sha256};

use crate::layout::Fields;
use crate::{ArchivedBatch, StoreError};

/// Maximum leaves of one segment: its index stays below a few hundred kilobytes, whichever owners wrote the batches.
pub const SEGMENT_LEAVES: usize = 4_096;

/// Maximum bytes of batches in one segment, unless a single batch is larger. With its index, a segment fits into a
/// transaction however badly it compresses.
pub const SEGMENT_BYTES: usize = 4 << 20;

/// Maximum bytes of batches in one block, unless a single batch is larger: the amount to decompress to read one batch.
pub const BLOCK_BYTES: usize = 64 << 10;

/// Largest block before compression, in bytes: one batch of the largest possible size, with room for its entry. A block
/// that claims to be larger is not decompressed.
const BLOCK_CEILING: usize = 8 << 20;

/// Compression level of zstd: its own default, at which batches compress to about a fifth of their size.
const LEVEL: i32 = 3;

const _: () = assert!(SEGMENT_BYTES + (1 << 20) < crate::limits::TRANSACTION_BYTES);
const _: () = assert!(BLOCK_CEILING + (1 << 20) < crate::limits::TRANSACTION_BYTES);

/// An archived batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its position in the archive.
    pub leaf: LeafIndex,
    /// Owner of the batch.
    pub owner: OwnerId,
    /// Number of the batch.
    pub batch: BatchNumber,
    /// When the batch was closed, by its writer's clock.
    pub wall: WallTime,
    /// The batch, whole or thinned.
    pub archived: ArchivedBatch,
}

/// The batches of one log in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Owner of the log.
    pub owner: OwnerId,
    /// First batch.
    pub first: BatchNumber,
    /// Last batch.
    pub last: BatchNumber,
}

/// One block's entry in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Owner of the first batch.
    pub owner: OwnerId,
    /// Number of the first batch.
    pub batch: BatchNumber,
    /// Size before compression, in bytes.
    pub bytes: u32,
    /// Stored size, in bytes.
    pub stored: u32,
    /// SHA-256 of the stored bytes.
    pub hash: Hash,
}

/// The index of a segment: its contents and their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The archive that it belongs to.
    pub shard: Shard,
    /// Its first leaf.
    pub first: LeafIndex,
    /// Its last leaf.
    pub last: LeafIndex,
    /// Earliest wall time of a batch.
    pub earliest: WallTime,
    /// Latest wall time of a batch.
    pub latest: WallTime,
    /// Total bytes of its batches.
    pub bytes: u64,
    /// The batches of each owner.
    pub runs: Vec<Run>,
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
}

/// Seals leaves, which must be consecutive, at least one and at most [`SEGMENT_LEAVES`].
///
/// # Errors
/// When they cannot be compressed, or are not consecutive.
pub fn seal(shard: Shard, mut leaves: Vec<Leaf>) -> Result<(Segment, Vec<Vec<u8>>), StoreError> {
    let consecutive = leaves.windows(2).all(|pair| pair[0].leaf.0 + 1 == pair[1].leaf.0);
    let (Some(first), Some(last)) = (leaves.first(), leaves.last()) else {
        return Err(corrupt("a segment without leaves"));
    };
    if !consecutive || leaves.len() > SEGMENT_LEAVES {
        return Err(corrupt("a segment whose leaves are not consecutive"));
    }
    let mut segment = Segment {
        shard,
        first: first.leaf,
        last: last.leaf,
        earliest: first.wall,
        latest: first.wall,
        bytes: 0,
        runs: Vec::new(),
        blocks: Vec::new(),
    };
    leaves.sort_by_key(|leaf| (leaf.owner, leaf.batch));
    let mut stored = Vec::new();
    let mut begin = 0;
    let mut gathered = Vec::new();
    for (place, leaf) in leaves.iter().enumerate() {
        segment.note(leaf);
        if place > begin && gathered.len() + leaf.archived.size() > BLOCK_BYTES {
            stored.push(segment.close(&leaves[begin], &gathered)?);
            gathered.clear();
            begin = place;
        }
        leaf.write(&mut gathered);
    }
    stored.push(segment.close(&leaves[begin], &gathered)?);
    Ok((segment, stored))
}

impl Segment {
    /// Its name: the hash of its index, which contains the hashes of its blocks.
    #[must_use]
    pub fn name(&self) -> Hash {
        sha256(&self.encode())
    }

    /// Number of leaves.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        self.last.0 - self.first.0 + 1
    }

    /// Total stored bytes of its blocks.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.stored)).sum()
    }

    /// Position of the block that contains a batch, if the batch is in this segment.
    #[must_use]
    pub fn block_of(&self, owner: OwnerId, batch: BatchNumber) -> Option<usize> {
        let held = |run: &Run| run.owner == owner && (run.first..=run.last).contains(&batch);
        if !self.runs.iter().any(held) {
            return None;
        }
        let before = |block: &Block| (block.owner, block.batch) <= (owner, batch);
        self.blocks.partition_point(before).checked_sub(1)
    }

    /// The leaves of the block at `place`, from its stored bytes.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if they are not what was written.
    pub fn open(&self, place: usize, stored: &[u8]) -> Result<Vec<Leaf>, StoreError> {
        let damaged = |why: &str| {
            let (first, last) = (self.first, self.last);
            corrupt(&format!(
                "block {place} of the segment of leaves {first} to {last} {why}"
            ))
        };
        let block = self.blocks.get(place).ok_or_else(|| damaged("does not exist"))?;
        if sha256(stored) != block.hash || stored.len() != block.stored as usize {
            return Err(damaged("is not what was sealed"));
        }
        let bytes =
            zstd::bulk::decompress(stored, block.bytes as usize).map_err(|_| damaged("cannot be decompressed"))?;
        if bytes.len() != block.bytes as usize {
            return Err(damaged("has another size than was sealed"));
        }
        let mut fields = Fields::of("a block of a segment", &bytes);
        let mut leaves = Vec::new();
        while !fields.is_empty() {
            leaves.push(Leaf::read(&mut fields)?);
        }
        Ok(leaves)
    }

    /// Salvages a corrupt block: returns the leaves up to the first that cannot be read. None of them is known to be
    /// unchanged.
    #[must_use]
    pub fn salvage(&self, place: usize, stored: &[u8]) -> Vec<Leaf> {
        let size = self.blocks.get(place).map_or(0, |block| block.bytes as usize);
        let bytes = zstd::bulk::decompress(stored, size).unwrap_or_default();
        let mut fields = Fields::of("a block of a segment", &bytes);
        std::iter::from_fn(|| Leaf::read(&mut fields).ok()).collect()
    }

    /// The segment as one file: its index and its blocks.
    #[must_use]
    pub fn join(&self, blocks: &[Vec<u8>]) -> Vec<u8> {
        let index = self.encode();
        let mut file = count(index.len()).to_vec();
        file.extend(index);
        blocks.iter().for_each(|block| file.extend(block));
        file
    }

    /// Splits the file of the segment `name` into its index and the stored bytes of its blocks.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the file is not that segment, complete and intact as far as its index shows; the hash
    /// of each block is checked when it is [opened](Self::open).
    pub fn split(name: Hash, file: &[u8]) -> Result<(Self, Vec<&[u8]>), StoreError> {
        let mut fields = Fields::of("a segment", file);
        let length = fields.u32()? as usize;
        let index = fields.bytes(length)?;
        if sha256(index) != name {
            return Err(corrupt(&format!("the index of segment {name} is not what was sealed")));
        }
        let segment = Self::decode(index)?;
        let mut blocks = Vec::new();
        for block in &segment.blocks {
            blocks.push(fields.bytes(block.stored as usize)?);
        }
        fields.finish()?;
        Ok((segment, blocks))
    }

    /// Its leaves in order, from the stored bytes of its blocks. All of them must be there, and match the index.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if they are not what was written.
    pub fn leaves_of(&self, blocks: &[impl AsRef<[u8]>]) -> Result<Vec<Leaf>, StoreError> {
        let mut leaves = Vec::new();
        let mut found = Self {
            bytes: 0,
            runs: Vec::new(),
            earliest: WallTime(u64::MAX),
            latest: WallTime(0),
            ..self.clone()
        };
        for (place, block) in blocks.iter().enumerate() {
            let opened = self.open(place, block.as_ref())?;
            opened.iter().for_each(|leaf| found.note(leaf));
            if let (Some(first), Some(block)) = (opened.first(), found.blocks.get_mut(place)) {
                (block.owner, block.batch) = (first.owner, first.batch);
            }
            leaves.extend(opened);
        }
        if found != *self {
            let (first, last) = (self.first, self.last);
            return Err(corrupt(&format!(
                "the index of the segment of leaves {first} to {last} does not match its blocks"
            )));
        }
        leaves.sort_by_key(|leaf| leaf.leaf);
        let dense = (self.first.0..)
            .zip(&leaves)
            .all(|(expected, leaf)| expected == leaf.leaf.0);
        if !dense || leaves.len() as u64 != self.leaves() {
            return Err(corrupt(&format!(
                "the segment of leaves {} to {} holds other leaves",
                self.first, self.last
            )));
        }
        Ok(leaves)
    }

    /// The stored form of the index.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.shard.0.to_be_bytes().to_vec();
        let numbers = [self.first.0, self.last.0, self.earliest.0, self.latest.0, self.bytes];
        out.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        out.extend(count(self.runs.len()));
        for run in &self.runs {
            out.extend(run.owner.0.to_be_bytes());
            out.extend(run.first.0.to_be_bytes());
            out.extend(run.last.0.to_be_bytes());
        }
        out.extend(count(self.blocks.len()));
        for block in &self.blocks {
            out.extend(block.owner.0.to_be_bytes());
            out.extend(block.batch.0.to_be_bytes());
            out.extend(block.bytes.to_be_bytes());
            out.extend(block.stored.to_be_bytes());
            out.extend(block.hash.0);
        }
        out
    }

    /// Decodes the stored form of an index.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("the index of a segment", value);
        let mut segment = Self {
            shard: Shard(fields.u16()?),
            first: LeafIndex(fields.u64()?),
            last: LeafIndex(fields.u64()?),
            earliest: WallTime(fields.u64()?),
            latest: WallTime(fields.u64()?),
            bytes: fields.u64()?,
            runs: Vec::new(),
            blocks: Vec::new(),
        };
        for _ in 0..fields.u32()? {
            segment.runs.push(Run {
                owner: OwnerId(fields.u32()?),
                first: BatchNumber(fields.u64()?),
                last: BatchNumber(fields.u64()?),
            });
        }
        for _ in 0..fields.u32()? {
            segment.blocks.push(Block {
                owner: OwnerId(fields.u32()?),
                batch: BatchNumber(fields.u64()?),
                bytes: fields.u32()?,
                stored: fields.u32()?,
                hash: fields.hash()?,
            });
        }
        let too_large = |block: &Block| block.bytes as usize > BLOCK_CEILING;
        let span = segment.last.0.checked_sub(segment.first.0);
        if span.is_none_or(|span| span >= SEGMENT_LEAVES as u64) || segment.blocks.iter().any(too_large) {
            return Err(fields.corrupt());
        }
        fields.finish()?;
        Ok(segment)
    }

    fn note(&mut self, leaf: &Leaf) {
        self.bytes += leaf.archived.size() as u64;
        self.earliest = self.earliest.min(leaf.wall);
        self.latest = self.latest.max(leaf.wall);
        match self.runs.last_mut().filter(|run| run.owner == leaf.owner) {
            Some(run) => run.last = leaf.batch,
            None => self.runs.push(Run {
                owner: leaf.owner,
                first: leaf.batch,
                last: leaf.batch,
            }),
        }
    }

    fn close(&mut self, first: &Leaf, gathered: &[u8]) -> Result<Vec<u8>, StoreError> {
        let stored = zstd::bulk::compress(gathered, LEVEL)
            .map_err(|error| corrupt(&format!("a block that cannot be compressed: {error}")))?;
        self.blocks.push(Block {
            owner: first.owner,
            batch: first.batch,
            bytes: length(gathered.len()),
            stored: length(stored.len()),
            hash: sha256(&stored),
        });
        Ok(stored)
    }
}

impl Leaf {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.leaf.0.to_be_bytes());
        out.extend(self.owner.0.to_be_bytes());
        out.extend(self.batch.0.to_be_bytes());
        out.extend(self.wall.0.to_be_bytes());
        let stored = self.archived.stored();
        out.extend(length(stored.len()).to_be_bytes());
        out.extend(&*stored);
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, StoreError> {
        let leaf = LeafIndex(fields.u64()?);
        let (owner, batch) = (OwnerId(fields.u32()?), BatchNumber(fields.u64()?));
        let wall = WallTime(fields.u64()?);
        let length = fields.u32()? as usize;
        Ok(Self {
            leaf,
            owner,
            batch,
            wall,
            archived: ArchivedBatch::of(fields.bytes(length)?.to_vec()),
        })
    }
}

/// SHA-256, which identifies blocks and segments.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}

fn count(items: usize) -> [u8; 4] {
    length(items).to_be_bytes()
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("invariant: a segment is far smaller than 4 GiB")
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Consecutive leaves of a few logs, each with consecutive batches.
    fn leaves() -> impl Strategy<Value = Vec<Leaf>> {
        let sizes = prop_oneof![0..200_usize, Just(BLOCK_BYTES - 10), Just(BLOCK_BYTES + 10)];
        let one = (0..4_u32, sizes, any::<u8>(), 1..1_000_u64);
        (prop::collection::vec(one, 1..80), 0..1_000_u64).prop_map(|(all, first)| {
            let mut next = [1; 4];
            let make = |(place, (owner, size, fill, wall)): (u64, (u32, usize, u8, u64))| {
                let batch = next[owner as usize];
                next[owner as usize] += 1;
                Leaf {
                    leaf: LeafIndex(first + place),
                    owner: OwnerId(owner),
                    batch: BatchNumber(batch),
                    wall: WallTime(wall),
                    archived: ArchivedBatch::of(vec![fill; size]),
                }
            };
            (0..).zip(all).map(make).collect()
        })
    }

    proptest! {
        #[test]
        fn sealed_segments_round_trip(leaves in leaves()) {
            let (segment, blocks) = seal(Shard(3), leaves.clone()).expect("it can be sealed");
            prop_assert_eq!(Segment::decode(&segment.encode()), Ok(segment.clone()));
            prop_assert_eq!(segment.leaves(), leaves.len() as u64);
            prop_assert_eq!(segment.bytes, leaves.iter().map(|leaf| leaf.archived.size() as u64).sum::<u64>());
            for leaf in &leaves {
                let place = segment.block_of(leaf.owner, leaf.batch).expect("it is in there");
                let block = segment.open(place, &blocks[place]).expect("it is intact");
                prop_assert!(block.contains(leaf));
            }
            let absent = BatchNumber(leaves.len() as u64 + 1);
            prop_assert_eq!(segment.block_of(leaves[0].owner, absent), None);
            let mut all: Vec<Leaf> = (0..).zip(&blocks).flat_map(|(place, block)| segment.open(place, block).expect("intact")).collect();
            all.sort_by_key(|leaf| leaf.leaf);
            prop_assert_eq!(all, leaves);
        }

        #[test]
        fn every_flipped_bit_is_detected(leaves in leaves(), at in any::<prop::sample::Index>(), bit in 0..8_u32) {
            let (segment, mut blocks) = seal(Shard(0), leaves).expect("it can be sealed");
            let mut index = segment.encode();
            let place = at.index(index.len());
            index[place] ^= 1 << bit;
            let same = Segment::decode(&index).is_ok_and(|other| other.name() == segment.name());
            prop_assert!(!same);
            let block = at.index(blocks.len());
            let place = at.index(blocks[block].len());
            blocks[block][place] ^= 1 << bit;
            prop_assert!(matches!(segment.open(block, &blocks[block]), Err(StoreError::Corrupt(_))));
        }
    }

    #[test]
    fn only_consecutive_leaves_are_sealed() {
        let leaf = |leaf| Leaf {
            leaf: LeafIndex(leaf),
            owner: OwnerId(1),
            batch: BatchNumber(leaf + 1),
            wall: WallTime(0),
            archived: ArchivedBatch::Whole(Vec::new()),
        };
        for wrong in [vec![], vec![leaf(1), leaf(3)], vec![leaf(2), leaf(1)]] {
            assert!(seal(Shard(0), wrong).is_err());
        }
    }
}
