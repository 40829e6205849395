//! Reads the archive: batches by their leaves, whether stored one by one, as they were folded, or sealed into a
//! segment. Sealing replaces one form by the other in one transaction, so that a reader finds every batch in exactly
//! one form.

use std::collections::BTreeMap;

use annals_ids::{BatchNumber, LeafIndex, OwnerId, Shard};

use crate::layout::{archive::leaf_key, read_chunks, segments};
use crate::segment::{Leaf, Segment};
use crate::{ArchivedBatch, KeyRange, ScanOrder, Store, StoreError, Transaction, key_after};

/// Rows per read.
const PAGE: usize = 256;

/// Bytes of unsealed leaves per read, give or take one leaf: most are some hundred bytes, and the store is read over a
/// network.
const LOOSE_BYTES: usize = 32 << 10;

/// Reads batches within one transaction. It caches the segment and the block read last, and the leaves after the one
/// looked up: consecutive batches of one log are stored together.
pub struct ArchiveReader<'a> {
    transaction: &'a Transaction,
    shard: Shard,
    segment: Option<Segment>,
    block: Option<(usize, Vec<Leaf>)>,
    loose: BTreeMap<LeafIndex, ArchivedBatch>,
}

impl<'a> ArchiveReader<'a> {
    /// A reader of a shard's archive at the transaction's version.
    #[must_use]
    pub fn new(transaction: &'a Transaction, shard: Shard) -> Self {
        Self {
            transaction,
            shard,
            segment: None,
            block: None,
            loose: BTreeMap::new(),
        }
    }

    /// The batch archived at `leaf`, whole or thinned; `None` if the archive has nothing there.
    ///
    /// # Errors
    /// As the transaction's reads; [`StoreError::Corrupt`] if the stored data is not what was written.
    pub async fn batch(
        &mut self,
        leaf: LeafIndex,
        owner: OwnerId,
        batch: BatchNumber,
    ) -> Result<Option<ArchivedBatch>, StoreError> {
        let covers = |segment: &Segment| (segment.first..=segment.last).contains(&leaf);
        if !self.segment.as_ref().is_some_and(covers) {
            if let Some(archived) = self.loose.remove(&leaf) {
                return Ok(Some(archived));
            }
            self.block = None;
            // Segments first: the rows of sealed leaves are deleted, and a range read would walk over all of them.
            self.segment = find_segment(self.transaction, self.shard, leaf).await?;
            if self.segment.is_none() {
                let found = read_loose(self.transaction, self.shard, leaf, LOOSE_BYTES).await?;
                self.loose = found.into_iter().collect();
                return Ok(self.loose.remove(&leaf));
            }
        }
        let Some(segment) = &self.segment else { return Ok(None) };
        let Some(place) = segment.block_of(owner, batch) else {
            return Ok(None);
        };
        if self.block.as_ref().is_none_or(|(held, _)| *held != place) {
            self.block = None;
            let Some(stored) = read_block(self.transaction, segment, place).await? else {
                return Ok(None);
            };
            self.block = Some((place, segment.open(place, &stored)?));
        }
        let mut leaves = self.block.iter().flat_map(|(_, leaves)| leaves);
        let found = leaves.find(|found| (found.leaf, found.owner, found.batch) == (leaf, owner, batch));
        Ok(found.map(|found| found.archived.clone()))
    }
}

/// The segment that contains a leaf, if the leaf is sealed.
///
/// # Errors
/// As the transaction's reads.
pub async fn find_segment(
    transaction: &Transaction,
    shard: Shard,
    leaf: LeafIndex,
) -> Result<Option<Segment>, StoreError> {
    let range = segments::indexes_from(shard, leaf);
    let page = transaction.get_range(&range, 1, ScanOrder::Forward).await?;
    let Some((key, _)) = page.rows.first() else {
        return Ok(None);
    };
    let segment = read_index(transaction, shard, segments::last_of(key)?).await?;
    Ok(segment.filter(|segment| segment.first <= leaf))
}

/// The newest segment of a shard.
///
/// # Errors
/// As the transaction's reads.
pub async fn newest_segment(transaction: &Transaction, shard: Shard) -> Result<Option<Segment>, StoreError> {
    let page = transaction
        .get_range(&segments::indexes(shard), 1, ScanOrder::Reverse)
        .await?;
    match page.rows.first() {
        Some((key, _)) => read_index(transaction, shard, segments::last_of(key)?).await,
        None => Ok(None),
    }
}

/// All segments of a shard, in order.
///
/// # Errors
/// When the store cannot be read, or an index is corrupt.
pub async fn read_segments(store: &Store, shard: Shard) -> Result<Vec<Segment>, StoreError> {
    let mut found = Vec::new();
    let mut next = LeafIndex(0);
    while let Some(segment) = store
        .read(|transaction| async move {
            let range = segments::indexes_from(shard, next);
            let page = transaction.get_range(&range, 1, ScanOrder::Forward).await?;
            match page.rows.first() {
                Some((key, _)) => read_index(&transaction, shard, segments::last_of(key)?).await,
                None => Ok(None),
            }
        })
        .await?
    {
        next = LeafIndex(segment.last.0 + 1);
        found.push(segment);
    }
    Ok(found)
}

/// The stored bytes of a segment's block.
///
/// # Errors
/// As the transaction's reads.
pub async fn read_block(
    transaction: &Transaction,
    segment: &Segment,
    place: usize,
) -> Result<Option<Vec<u8>>, StoreError> {
    read_chunks(transaction, &block_key(segment, place)).await
}

/// The key of a segment's block.
pub(crate) fn block_key(segment: &Segment, place: usize) -> Vec<u8> {
    let number = u32::try_from(place).expect("invariant: a segment has no more blocks than leaves");
    segments::block_key(segment.shard, segment.last, number)
}

/// Unsealed leaves from `from` on, in order, with their stored bytes: as many as there are, up to about `budget` bytes;
/// none only if there are no more. Everything read from the store is returned, even if it exceeds the budget.
///
/// # Errors
/// As the transaction's reads; [`StoreError::Corrupt`] when a chunk is missing.
pub async fn read_loose(
    transaction: &Transaction,
    shard: Shard,
    from: LeafIndex,
    budget: usize,
) -> Result<Vec<(LeafIndex, ArchivedBatch)>, StoreError> {
    let found = read_stored(transaction, shard, from, budget).await?;
    Ok(found
        .into_iter()
        .map(|(leaf, stored)| (leaf, ArchivedBatch::of(stored)))
        .collect())
}

async fn read_stored(
    transaction: &Transaction,
    shard: Shard,
    from: LeafIndex,
    budget: usize,
) -> Result<Vec<(LeafIndex, Vec<u8>)>, StoreError> {
    let mut range = KeyRange::new(leaf_key(shard, from), crate::layout::archive::leaves(shard).end);
    let mut found: Vec<(LeafIndex, Vec<u8>)> = Vec::new();
    let mut chunks = 0;
    let mut bytes = 0;
    loop {
        let page = transaction
            .snapshot()
            .get_range(&range, PAGE, ScanOrder::Forward)
            .await?;
        for (key, value) in &page.rows {
            let (leaf, chunk) = crate::layout::archive::leaf_of(key)?;
            if found.last().is_none_or(|(last, _)| *last != leaf) {
                found.push((leaf, Vec::new()));
                chunks = 0;
            }
            if chunk != chunks {
                let what = format!("the store lacks chunk {chunks} of leaf {leaf}");
                return Err(StoreError::Corrupt(what.into()));
            }
            chunks += 1;
            bytes += value.len();
            if let Some((_, gathered)) = found.last_mut() {
                gathered.extend_from_slice(value);
            }
        }
        match page.rows.last().filter(|_| page.more) {
            // The last of them may continue on the next page.
            Some(_) if bytes >= budget && found.len() > 1 => {
                found.pop();
                return Ok(found);
            }
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end.clone()),
            None => return Ok(found),
        }
    }
}

/// All leaves of a segment, in order. They are read block by block; a block that was replaced meanwhile does not match
/// its index, and the caller must look the segment up again.
///
/// # Errors
/// When the store cannot be read; [`StoreError::Corrupt`] if the stored data is not what was written.
pub async fn read_leaves(store: &Store, segment: &Segment) -> Result<Vec<Leaf>, StoreError> {
    let mut blocks = Vec::new();
    for place in 0..segment.blocks.len() {
        let read = |transaction: Transaction| async move { read_block(&transaction, segment, place).await };
        blocks.push(store.read(read).await?.unwrap_or_default());
    }
    segment.leaves_of(&blocks)
}

/// Replaces leaves by their segment.
///
/// # Errors
/// As the transaction's writes.
pub fn write_segment(transaction: &Transaction, segment: &Segment, blocks: &[Vec<u8>]) -> Result<(), StoreError> {
    use crate::layout::chunks;
    let shard = segment.shard;
    for (key, chunk) in chunks(&segments::index_key(shard, segment.last), &segment.encode()) {
        transaction.set(&key, chunk)?;
    }
    for (place, block) in blocks.iter().enumerate() {
        for (key, chunk) in chunks(&block_key(segment, place), block) {
            transaction.set(&key, chunk)?;
        }
    }
    let behind = LeafIndex(segment.last.0 + 1);
    transaction.clear_range(&KeyRange::new(leaf_key(shard, segment.first), leaf_key(shard, behind)))
}

/// Replaces a segment by one of the same leaves, if the old one is still there. Returns whether it was.
///
/// # Errors
/// As the transaction's reads and writes.
pub async fn replace_segment(
    transaction: &Transaction,
    former: &Segment,
    segment: &Segment,
    blocks: &[Vec<u8>],
) -> Result<bool, StoreError> {
    let shard = segment.shard;
    assert_eq!(
        (former.first, former.last),
        (segment.first, segment.last),
        "the same leaves"
    );
    if read_index(transaction, shard, former.last).await?.as_ref() != Some(former) {
        return Ok(false);
    }
    transaction.clear_range(&KeyRange::prefix(&segments::index_key(shard, former.last)))?;
    transaction.clear_range(&segments::blocks(shard, former.last))?;
    write_segment(transaction, segment, blocks)?;
    Ok(true)
}

async fn read_index(transaction: &Transaction, shard: Shard, last: LeafIndex) -> Result<Option<Segment>, StoreError> {
    let bytes = read_chunks(transaction, &segments::index_key(shard, last)).await?;
    bytes.map(|bytes| Segment::decode(&bytes)).transpose()
}
