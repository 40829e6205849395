//! Reads everything that is left of an archive, whatever its faults.

use std::collections::{BTreeMap, BTreeSet};

use annals_db::{read_cursor, read_floor_batch};
use annals_director::read_owners;
use annals_host::log_source::read_openings;
use annals_ids::{BatchNumber, Hash, LeafIndex, OwnerId, Shard};
use annals_proof::TreeHead;
use annals_store::{
    ArchivedBatch, KeyRange, Row, ScanOrder, Store, StoreError, Transaction,
    archive::{find_segment, read_block},
    key_after,
    layout::{
        archive::{leaf_of, leaves},
        owners::Cursor,
        segments, tiles,
    },
};

use super::batch::LeafContent;
use crate::{
    archive::{of_recovery, read_tree},
    verify::tree::read_checkpoints,
};

/// Rows per read.
const PAGE: usize = 256;

/// By log, the last batch whose events may have been deleted by retention.
pub(super) type Floors = BTreeMap<OwnerId, BatchNumber>;

/// The readable remains of an archive and of the records about it in the store.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// By leaf, what can be read of it.
    pub(super) seen: BTreeMap<u64, LeafContent>,
    /// Number of leaves in the stored tree.
    pub(super) size: u64,
    /// The archived end of each log, in the store.
    pub(super) ends: BTreeMap<OwnerId, Cursor>,
    /// Hashes of batches that opened an epoch, in the store.
    pub(super) openings: BTreeSet<Hash>,
    /// The stored checkpoints that are signed by a key of the log, by size.
    pub(super) signed: Vec<TreeHead>,
    /// Hashes in the tiles of leaf hashes that differ from those of the leaves.
    pub(super) tiles: BTreeMap<u64, Hash>,
}

impl Reading {
    pub(super) async fn read(store: &Store, shard: Shard) -> Result<Self, StoreError> {
        let mut reading = Self::default();
        let mut floors = Floors::new();
        for owner in read_owners(store).await?.keys() {
            let end = lenient(read_cursor(store, *owner).await)?.unwrap_or_default();
            reading.ends.insert(*owner, end);
            let openings = lenient(read_openings(store, *owner).await)?.unwrap_or_default();
            reading.openings.extend(openings.iter().map(|opening| opening.hash));
            let floor = read_floor_batch(store, shard, *owner).await.map_err(of_recovery);
            floors.insert(*owner, lenient(floor)?.flatten().unwrap_or(BatchNumber(0)));
        }
        reading.read_loose(store, shard, &floors).await?;
        reading.read_sealed(store, shard, &floors).await?;
        reading.size = lenient(read_tree(store, shard).await)?.unwrap_or_default().size;
        let signed =
            lenient(read_checkpoints(store, shard, &mut Vec::new(), &mut BTreeSet::new()).await)?.unwrap_or_default();
        reading.signed = signed.into_iter().map(|(_, checkpoint)| checkpoint.head).collect();
        reading.read_tiles(store, shard).await?;
        Ok(reading)
    }

    fn take(&mut self, leaf: LeafIndex, archived: &ArchivedBatch, floors: &Floors) {
        if let Some(seen) = LeafContent::read(archived, floors) {
            self.seen.insert(leaf.0, seen);
        }
    }

    /// Reads leaves that are not sealed and of which every chunk is present.
    async fn read_loose(&mut self, store: &Store, shard: Shard, floors: &Floors) -> Result<(), StoreError> {
        let mut gathered: Option<(LeafIndex, Vec<u8>)> = None;
        let mut chunks = 0;
        let mut rows = Rows::of(leaves(shard));
        while let Some((key, value)) = rows.next(store).await? {
            let Ok((leaf, chunk)) = leaf_of(&key) else { continue };
            if gathered.as_ref().is_none_or(|(before, _)| *before != leaf) {
                if let Some((before, bytes)) = gathered.replace((leaf, Vec::new())) {
                    self.take(before, &ArchivedBatch::of(bytes), floors);
                }
                chunks = 0;
            }
            // A leaf without all its chunks is truncated.
            if chunk == chunks
                && let Some((_, bytes)) = &mut gathered
            {
                bytes.extend_from_slice(&value);
                chunks += 1;
            }
        }
        if let Some((leaf, bytes)) = gathered {
            self.take(leaf, &ArchivedBatch::of(bytes), floors);
        }
        Ok(())
    }

    async fn read_sealed(&mut self, store: &Store, shard: Shard, floors: &Floors) -> Result<(), StoreError> {
        let mut rows = Rows::of(segments::indexes(shard));
        while let Some((key, _)) = rows.next(store).await? {
            let Ok(last) = segments::last_of(&key) else { continue };
            let find = |transaction: Transaction| async move { find_segment(&transaction, shard, last).await };
            let Some(segment) = lenient(store.read(find).await)?.flatten() else {
                continue;
            };
            for place in 0..segment.blocks.len() {
                let segment = &segment;
                let read = |transaction: Transaction| async move { read_block(&transaction, segment, place).await };
                let stored = lenient(store.read(read).await)?.flatten().unwrap_or_default();
                let opened = segment.open(place, &stored);
                for leaf in opened.unwrap_or_else(|_| segment.salvage(place, &stored)) {
                    self.take(leaf.leaf, &leaf.archived, floors);
                }
            }
        }
        Ok(())
    }

    async fn read_tiles(&mut self, store: &Store, shard: Shard) -> Result<(), StoreError> {
        let mut rows = Rows::of(tiles::tiles(shard, 0));
        while let Some((key, value)) = rows.next(store).await? {
            let (Ok(index), Ok(hashes)) = (tiles::index_of(&key), tiles::decode_tile(Some(&value))) else {
                continue;
            };
            let first = index.saturating_mul(annals_proof::tile::TILE_WIDTH.into());
            let differs = |(leaf, hash): &(u64, Hash)| {
                *leaf < self.size && self.seen.get(leaf).is_none_or(|seen| seen.hash != *hash)
            };
            let other: Vec<(u64, Hash)> = (first..).zip(hashes).filter(differs).collect();
            self.tiles.extend(other);
        }
        Ok(())
    }
}

/// An unreadable row counts as missing.
fn lenient<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(StoreError::Corrupt(_)) => Ok(None),
        read => read.map(Some),
    }
}

/// The rows of a range, page by page.
struct Rows {
    left: Option<KeyRange>,
    page: std::vec::IntoIter<Row>,
}

impl Rows {
    fn of(range: KeyRange) -> Self {
        Self {
            left: Some(range),
            page: Vec::new().into_iter(),
        }
    }

    async fn next(&mut self, store: &Store) -> Result<Option<Row>, StoreError> {
        if let Some(row) = self.page.next() {
            return Ok(Some(row));
        }
        let Some(range) = self.left.take() else { return Ok(None) };
        let rows = &range;
        let read = |transaction: Transaction| async move {
            transaction.snapshot().get_range(rows, PAGE, ScanOrder::Forward).await
        };
        let page: annals_store::Page = store.read(read).await?;
        if let Some((last, _)) = page.rows.last().filter(|_| page.more) {
            self.left = Some(KeyRange::new(key_after(last), range.end));
        }
        self.page = page.rows.into_iter();
        Ok(self.page.next())
    }
}
