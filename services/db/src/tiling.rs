//! Tiling: writes the hashes of a shard's Merkle tree from the archive into tiles (rule F16).
//!
//! A tiler follows the archive's end. Each transaction writes a few full tiles of leaf hashes, and the resulting tiles
//! of the levels above, conditional on the fold lease and on the position of the newest tile. A crash leaves what was
//! committed; the next tiler begins there. For an archive without tiles, that is its first leaf.

use async_recursion::async_recursion as boxed;
use std::{collections::BTreeMap, ops::Range};

use annals_event::Header;
use annals_ids::{Hash, LeafIndex, Shard};
use annals_proof::tile::{TILE_LEVELS, TILE_WIDTH, root_of};
use annals_store::{
    ScanOrder, Store, StoreError, Transaction, archive,
    layout::{
        archive::{Tree, tree_key},
        tiles,
    },
    segment::Segment,
};

use crate::fold::{FoldError, check_lease};

/// Maximum tiles of leaf hashes that one transaction writes: those of a segment, of 8 KiB each.
const TILES_AT_ONCE: u64 = 16;

/// Bytes of unsealed batches that are read at a time, to within one batch: usually enough for a tile.
const LOOSE_BYTES: usize = 256 << 10;

/// Writes the tiles of a shard's archive for as long as its [`crate::Folder`] folds it.
pub struct Tiler {
    store: Store,
    shard: Shard,
    term: u64,
    leaves: LeafHashes,
}

/// Result of one turn of tiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiled {
    /// First leaf whose hash was written.
    pub first: LeafIndex,
    /// Number of leaves written, including the first.
    pub leaves: u64,
}

impl Tiler {
    pub(crate) fn new(store: Store, shard: Shard, term: u64) -> Self {
        let leaves = LeafHashes::new(store.clone(), shard);
        Self {
            store,
            shard,
            term,
            leaves,
        }
    }

    /// Writes the next tiles, if there are enough leaves for a whole one.
    ///
    /// # Errors
    /// When another db process folds the shard, or the store cannot be used.
    #[boxed]
    pub async fn tile_next(&mut self) -> Result<Option<Tiled>, FoldError> {
        let shard = self.shard;
        let read = |transaction: Transaction| async move {
            let tree = Tree::decode(transaction.get(&tree_key(shard)).await?.as_deref())?;
            let full = tree.size / u64::from(TILE_WIDTH);
            Ok::<_, StoreError>((full, end(&transaction, shard).await?))
        };
        let (full, next) = self.store.read(read).await?;
        if next >= full {
            return Ok(None);
        }
        let tiles = next..full.min(next + TILES_AT_ONCE);
        let width = u64::from(TILE_WIDTH);
        let hashes = self.leaves.read(tiles.start * width..tiles.end * width).await?;
        let (term, hashes) = (self.term, &hashes);
        let work = |transaction: Transaction| async move {
            check_lease(&transaction, shard, term).await?;
            // An earlier attempt was applied but its answer was lost.
            if end(&transaction, shard).await? == next {
                write(&transaction, shard, next, hashes).await?;
            }
            Ok::<_, FoldError>(())
        };
        self.store.run_repeatable(work).await?;
        Ok(Some(Tiled {
            first: LeafIndex(tiles.start * width),
            leaves: hashes.len() as u64,
        }))
    }
}

/// First tile of leaf hashes that is not written.
async fn end(transaction: &Transaction, shard: Shard) -> Result<u64, StoreError> {
    let page = transaction
        .get_range(&tiles::tiles(shard, 0), 1, ScanOrder::Reverse)
        .await?;
    match page.rows.first() {
        Some((key, _)) => Ok(tiles::index_of(key)? + 1),
        None => Ok(0),
    }
}

/// Writes full tiles of leaf hashes beginning at index `next`, appends their roots to the level above, and so on.
async fn write(transaction: &Transaction, shard: Shard, next: u64, hashes: &[Hash]) -> Result<(), StoreError> {
    let width = u64::from(TILE_WIDTH);
    let mut changed: BTreeMap<(u8, u64), Vec<Hash>> = BTreeMap::new();
    for (index, tile) in (next..).zip(hashes.chunks_exact(usize::from(TILE_WIDTH))) {
        changed.insert((0, index), tile.to_vec());
        let (mut below, mut root) = (index, root_of(tile));
        for level in 1..TILE_LEVELS {
            let (above, place) = (below / width, below % width);
            let held = match changed.remove(&(level, above)) {
                Some(held) => held,
                None => read_tile(transaction, shard, level, above).await?,
            };
            if held.len() as u64 != place {
                let what = format!(
                    "tile {above} of level {level} has {} hashes instead of {place}",
                    held.len()
                );
                return Err(StoreError::Corrupt(what.into()));
            }
            let grown = [held, vec![root]].concat();
            root = root_of(&grown);
            let is_full = grown.len() == usize::from(TILE_WIDTH);
            changed.insert((level, above), grown);
            if !is_full {
                break;
            }
            below = above;
        }
    }
    for ((level, index), hashes) in &changed {
        transaction.set(&tiles::tile_key(shard, *level, *index), &tiles::encode_tile(hashes))?;
    }
    Ok(())
}

/// Reads the stored hashes of a tile.
pub(crate) async fn read_tile(
    transaction: &Transaction,
    shard: Shard,
    level: u8,
    index: u64,
) -> Result<Vec<Hash>, StoreError> {
    let value = transaction.get(&tiles::tile_key(shard, level, index)).await?;
    tiles::decode_tile(value.as_deref())
}

/// Hashes of archived leaves, computed from their headers. Caches the leaves that were read last, usually those of a
/// segment.
pub(crate) struct LeafHashes {
    store: Store,
    shard: Shard,
    first: u64,
    held: Vec<Hash>,
}

impl LeafHashes {
    pub(crate) fn new(store: Store, shard: Shard) -> Self {
        Self {
            store,
            shard,
            first: 0,
            held: Vec::new(),
        }
    }

    /// Returns the hashes of these leaves, all of which must be archived.
    pub(crate) async fn read(&mut self, leaves: Range<u64>) -> Result<Vec<Hash>, StoreError> {
        let mut found = Vec::new();
        let mut next = leaves.start;
        while next < leaves.end {
            let held = self.first..self.first + self.held.len() as u64;
            if !held.contains(&next) {
                (self.first, self.held) = self.fetch(next).await?;
                continue;
            }
            let upto = held.end.min(leaves.end);
            let place = |leaf: u64| usize::try_from(leaf - held.start).expect("invariant: within the tile");
            found.extend_from_slice(&self.held[place(next)..place(upto)]);
            next = upto;
        }
        Ok(found)
    }

    /// Returns hashes of consecutive leaves that include this one, and the first of these leaves.
    async fn fetch(&self, leaf: u64) -> Result<(u64, Vec<Hash>), StoreError> {
        let shard = self.shard;
        let mut tried: Option<Segment> = None;
        loop {
            let read = |transaction: Transaction| async move {
                let segment = archive::find_segment(&transaction, shard, LeafIndex(leaf)).await?;
                let loose = match segment {
                    Some(_) => Vec::new(),
                    None => archive::read_loose(&transaction, shard, LeafIndex(leaf), LOOSE_BYTES).await?,
                };
                Ok::<_, StoreError>((segment, loose))
            };
            let (segment, loose) = self.store.read(read).await?;
            let Some(segment) = segment else {
                return Ok((leaf, loose_hashes(leaf, &loose)?));
            };
            match archive::read_leaves(&self.store, &segment).await {
                Ok(leaves) => {
                    let hashes = leaves.iter().map(|found| hash_of(found.leaf, &found.archived));
                    return Ok((segment.first.0, hashes.collect::<Result<_, _>>()?));
                }
                // A segment that was thinned meanwhile is looked up again; a damaged one is found unchanged.
                Err(StoreError::Corrupt(_)) if tried.as_ref() != Some(&segment) => tried = Some(segment),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Hashes of consecutive leaves beginning at `from`.
fn loose_hashes(from: u64, loose: &[(LeafIndex, annals_store::ArchivedBatch)]) -> Result<Vec<Hash>, StoreError> {
    let following = (from..).zip(loose).take_while(|(next, (leaf, _))| *next == leaf.0);
    let hashes: Vec<Hash> = following
        .map(|(_, (leaf, archived))| hash_of(*leaf, archived))
        .collect::<Result<_, _>>()?;
    if hashes.is_empty() {
        return Err(StoreError::Corrupt(format!("the archive lacks leaf {from}").into()));
    }
    Ok(hashes)
}

fn hash_of(leaf: LeafIndex, archived: &annals_store::ArchivedBatch) -> Result<Hash, StoreError> {
    let damaged = |error| StoreError::Corrupt(format!("leaf {leaf} of the archive is not a batch: {error}").into());
    Header::read(archived.header()).map(|(_, hash)| hash).map_err(damaged)
}
