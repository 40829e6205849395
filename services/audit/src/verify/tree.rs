//! The Merkle tree of a shard, rebuilt from its leaves and compared with what is stored of it: tiles (rule F16) and
//! signed checkpoints.

use std::collections::{BTreeMap, BTreeSet};

use super::report::{CheckpointFault, Finding, TileFault};
use annals_db::{ProveError, Prover};
use annals_host::signer::{KEPT, key_records};
use annals_ids::{Hash, Shard};
use annals_proof::{
    Frontier, SignedNote, TreeHead, VerifierKey,
    checkpoint::Checkpoint,
    tile::{TILE_HEIGHT, TILE_WIDTH, root_of},
};
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction, key_after,
    layout::{
        archive::{Tree, tree_key},
        checkpoints, tiles,
    },
};

/// Rows per read.
const PAGE: usize = 64;

/// Full tiles that wait before they are compared: then they are read one after the other.
const TILES_WAITING: usize = 64;

/// A tree that grows leaf by leaf, and its parts that still have to be compared with the store.
#[derive(Clone, Debug)]
pub(crate) struct TreeCheck {
    shard: Shard,
    pub(super) tree: Frontier,
    /// By level, the hashes of the tile that is not full.
    pub(super) open: Vec<Vec<Hash>>,
    /// Full tiles that were not compared, or that the store does not have yet: level, index, and the root over each.
    pub(super) waiting: Vec<(u8, u64, Hash)>,
    /// Number of waiting tiles that triggers a comparison.
    due: usize,
    /// Number of tiles of leaf hashes that were stored at the start or at the last refresh.
    stored: u64,
    /// By size, the roots in checkpoints that the tree has not reached yet.
    expected: BTreeMap<u64, Hash>,
    /// Sizes of checkpoints that were noted.
    noted: BTreeSet<u64>,
    /// Sizes at which the tree's root differs from a checkpoint.
    wrong: Vec<u64>,
    /// Checkpoints kept outside, to be compared with the tree.
    kept: Vec<TreeHead>,
    /// By size, their roots that the tree has not reached yet.
    kept_roots: BTreeMap<u64, Hash>,
    /// Sizes at which the tree's root differs from theirs.
    kept_wrong: Vec<u64>,
    /// Sizes of kept checkpoints that the store should have, and lacks.
    absent: Vec<u64>,
}

impl TreeCheck {
    pub(crate) fn new(shard: Shard) -> Self {
        Self {
            shard,
            tree: Frontier::new(),
            open: Vec::new(),
            waiting: Vec::new(),
            due: TILES_WAITING,
            stored: 0,
            expected: BTreeMap::new(),
            noted: BTreeSet::new(),
            wrong: Vec::new(),
            kept: Vec::new(),
            kept_roots: BTreeMap::new(),
            kept_wrong: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// Adds checkpoints that were kept outside, compared from the next [`Self::refresh`] on.
    pub(crate) fn keep(&mut self, kept: &[TreeHead]) {
        self.kept = kept.to_vec();
    }

    /// Sizes of kept checkpoints that the store lacks, though it has few that are newer.
    pub(crate) fn absent(&self) -> &[u64] {
        &self.absent
    }

    /// The tree so far.
    pub(crate) fn tree(&self) -> &Frontier {
        &self.tree
    }

    /// Notes what is stored now. Must be called before reading the stored tree up to which leaves will be pushed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn refresh(&mut self, store: &Store, found: &mut Vec<Finding>) -> Result<(), StoreError> {
        let shard = self.shard;
        // The level above first: the tiles below it were written with it, or before.
        let above = newest_tile(store, shard, 1).await?;
        let full = match above {
            Some(index) => index * u64::from(TILE_WIDTH) + read_tile(store, shard, 1, index).await?.len() as u64,
            None => 0,
        };
        let newest = newest_tile(store, shard, 0).await?;
        self.stored = newest.map_or(0, |index| index + 1).max(full);
        self.due = TILES_WAITING;
        let mut sizes = BTreeSet::new();
        for (size, note) in read_checkpoints(store, shard, found, &mut sizes).await? {
            if !self.noted.insert(size) {
                continue;
            }
            if size > self.tree.size() {
                self.expected.insert(size, note.head.root);
            } else if size == 0 || root_at(store, shard, size).await? != Some(note.head.root) {
                self.wrong.push(size);
            }
        }
        for TreeHead { size, root } in std::mem::take(&mut self.kept) {
            let newer = sizes.range(size..).count();
            if !sizes.contains(&size) && newer < KEPT {
                self.absent.push(size);
            }
            if size > self.tree.size() {
                // Of two that contradict each other at most one matches the archive.
                let other = self.kept_roots.insert(size, root).filter(|other| *other != root);
                self.kept_wrong.extend(other.map(|_| size));
            } else if size > 0 && root_at(store, shard, size).await? != Some(root) {
                self.kept_wrong.push(size);
            }
        }
        Ok(())
    }

    /// Takes the next leaf.
    pub(crate) fn push(&mut self, leaf: Hash) {
        self.grow(leaf);
        let size = self.tree.size();
        if self.expected.remove(&size).is_some_and(|root| root != self.tree.root()) {
            self.wrong.push(size);
        }
        if self
            .kept_roots
            .remove(&size)
            .is_some_and(|root| root != self.tree.root())
        {
            self.kept_wrong.push(size);
        }
    }

    /// Appends a leaf to the tree, and completed hashes to the tiles.
    fn grow(&mut self, leaf: Hash) {
        let Self {
            tree, open, waiting, ..
        } = self;
        let number = tree.size();
        tree.push_with(leaf, |height, hash| {
            let height_of_tile = u32::from(TILE_HEIGHT);
            if !height.is_multiple_of(height_of_tile) {
                return;
            }
            // A hash of a tile, and the root of the full tile below it.
            let level = height / height_of_tile;
            if let Some(below) = level.checked_sub(1) {
                open[below as usize].clear();
                let below = u8::try_from(below).expect("invariant: a tree of 64-bit numbers has 8 levels of tiles");
                waiting.push((below, number >> height, hash));
            }
            if open.len() == level as usize {
                open.push(Vec::with_capacity(usize::from(TILE_WIDTH)));
            }
            open[level as usize].push(hash);
        });
    }

    /// Whether enough tiles wait to be [compared](Self::compare).
    pub(crate) fn is_due(&self) -> bool {
        self.waiting.len() >= self.due
    }

    /// Compares the waiting full tiles with the stored ones.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn compare(&mut self, store: &Store, found: &mut Vec<Finding>) -> Result<(), StoreError> {
        let shard = self.shard;
        let mut waiting = Vec::new();
        for (level, index, root) in std::mem::take(&mut self.waiting) {
            let stored = read_tile(store, shard, level, index).await?;
            let is_full = stored.len() == usize::from(TILE_WIDTH);
            let fault = if is_full {
                (root_of(&stored) != root).then_some(TileFault::Other)
            } else if index < self.expected_hashes(level) / u64::from(TILE_WIDTH) {
                Some(TileFault::Missing)
            } else {
                waiting.push((level, index, root));
                None
            };
            found.extend(fault.map(|fault| Finding::Tile {
                shard,
                level,
                index,
                fault,
            }));
        }
        self.due = waiting.len() + TILES_WAITING;
        self.waiting = waiting;
        Ok(())
    }

    /// All leaves were pushed: compares what is left.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn finish(&mut self, store: &Store, found: &mut Vec<Finding>) -> Result<(), StoreError> {
        self.compare(store, found).await?;
        let shard = self.shard;
        let read =
            |transaction: Transaction| async move { Tree::decode(transaction.get(&tree_key(shard)).await?.as_deref()) };
        let now = store.read(read).await?.size;
        for (level, open) in (0_u8..).zip(&self.open).skip(1) {
            let index = (self.tree.size() >> (u32::from(level) * u32::from(TILE_HEIGHT))) / u64::from(TILE_WIDTH);
            let stored = read_tile(store, shard, level, index).await?;
            let first = index * u64::from(TILE_WIDTH);
            let least = self.expected_hashes(level).saturating_sub(first);
            let most = (now >> (u32::from(level) * u32::from(TILE_HEIGHT))).saturating_sub(first);
            let both = stored.len().min(open.len());
            let fault = if (stored.len() as u64) < least {
                Some(TileFault::Missing)
            } else if stored.len() as u64 > most || stored[..both] != open[..both] {
                Some(TileFault::Other)
            } else {
                None
            };
            found.extend(fault.map(|fault| Finding::Tile {
                shard,
                level,
                index,
                fault,
            }));
        }
        if self.stored > now / u64::from(TILE_WIDTH) {
            let (level, index, fault) = (0, self.stored - 1, TileFault::Other);
            found.push(Finding::Tile {
                shard,
                level,
                index,
                fault,
            });
        }
        let fault = |size: u64, fault| Finding::Checkpoint { shard, size, fault };
        found.extend(self.wrong.drain(..).map(|size| fault(size, CheckpointFault::Root)));
        let beyond = self.expected.keys().filter(|size| **size > now);
        found.extend(beyond.map(|size| fault(*size, CheckpointFault::Beyond)));
        self.finish_kept(found);
        Ok(())
    }

    /// Reports kept checkpoints that differ, and those that exceed the archive.
    fn finish_kept(&mut self, found: &mut Vec<Finding>) {
        let shard = self.shard;
        let fault = |size: u64, fault| Finding::Kept { shard, size, fault };
        let wrong: BTreeSet<u64> = self.kept_wrong.drain(..).collect();
        found.extend(wrong.into_iter().map(|size| fault(size, CheckpointFault::Root)));
        // Later additions to the archive were not read.
        let looked_at = self.tree.size();
        let beyond = self.kept_roots.keys().filter(|size| **size > looked_at);
        found.extend(beyond.map(|size| fault(*size, CheckpointFault::Beyond)));
    }

    /// Number of hashes of a level that belong to stored tiles of leaf hashes.
    fn expected_hashes(&self, level: u8) -> u64 {
        match level {
            0 => self.stored * u64::from(TILE_WIDTH),
            _ => self.stored >> (u32::from(level - 1) * u32::from(TILE_HEIGHT)),
        }
    }
}

async fn newest_tile(store: &Store, shard: Shard, level: u8) -> Result<Option<u64>, StoreError> {
    let newest = |transaction: Transaction| async move {
        let page = transaction
            .get_range(&tiles::tiles(shard, level), 1, ScanOrder::Reverse)
            .await?;
        page.rows.first().map(|(key, _)| tiles::index_of(key)).transpose()
    };
    store.read(newest).await
}

async fn read_tile(store: &Store, shard: Shard, level: u8, index: u64) -> Result<Vec<Hash>, StoreError> {
    let read = |transaction: Transaction| async move {
        let value = transaction.get(&tiles::tile_key(shard, level, index)).await?;
        Ok::<_, StoreError>(value.map(|value| value.to_vec()))
    };
    let value = store.read(read).await?;
    // A row that is not a row of hashes is no tile of this tree.
    Ok(tiles::decode_tile(value.as_deref()).unwrap_or_default())
}

/// The root of the first leaves, which were verified before; `None` if the tree is smaller.
pub(crate) async fn root_at(store: &Store, shard: Shard, size: u64) -> Result<Option<Hash>, StoreError> {
    let mut prover = Prover::begin(store.clone(), shard).await?;
    match prover.root(size).await {
        Ok(root) => Ok(Some(root)),
        Err(ProveError::Store(error)) if !matches!(error, StoreError::Corrupt(_)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The stored checkpoints that are signed by a key of the log, by size; the others become findings. `sizes` are those
/// of all.
pub(super) async fn read_checkpoints(
    store: &Store,
    shard: Shard,
    found: &mut Vec<Finding>,
    sizes: &mut BTreeSet<u64>,
) -> Result<Vec<(u64, Checkpoint)>, StoreError> {
    let mut read = Vec::new();
    let mut range = checkpoints::checkpoints(shard);
    loop {
        let rows = &range;
        let page = store
            .read(|transaction| async move { transaction.get_range(rows, PAGE, ScanOrder::Forward).await })
            .await?;
        read.extend(page.rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => break,
        }
    }
    let records = if read.is_empty() {
        Vec::new()
    } else {
        match key_records(store, shard).await {
            Err(StoreError::Corrupt(_)) => Vec::new(),
            records => records?,
        }
    };
    let keys: Vec<VerifierKey> = records.into_iter().map(|(_, record)| record.key).collect();
    let mut known = Vec::new();
    for (key, value) in read {
        let size = checkpoints::size_of(&key)?;
        sizes.insert(size);
        let fault = match open(&value, &keys) {
            Ok(checkpoint) if checkpoint.head.size == size => {
                known.push((size, checkpoint));
                continue;
            }
            Ok(_) => CheckpointFault::Misplaced,
            Err(why) => CheckpointFault::Untrusted(why),
        };
        found.push(Finding::Checkpoint { shard, size, fault });
    }
    Ok(known)
}

fn open(note: &[u8], keys: &[VerifierKey]) -> Result<Checkpoint, String> {
    let note = SignedNote::parse(note).map_err(|error| error.to_string())?;
    note.verify(keys).map_err(|error| error.to_string())?;
    note.text()
        .parse()
        .map_err(|error: annals_proof::checkpoint::CheckpointError| error.to_string())
}
