//! The Merkle tree of a shard, built anew from its leaves and held against what is stored of it: tiles (rule F16) and signed
//! checkpoints.

use std::collections::{BTreeMap, BTreeSet};

use super::report::{CheckpointFault, Finding, TileFault};
use annals_db::{ProveError, Prover};
use annals_host::signer::key_records;
use annals_ids::{Hash, Shard};
use annals_proof::{
    Frontier, SignedNote, VerifierKey,
    checkpoint::Checkpoint,
    tile::{TILE_HEIGHT, TILE_WIDTH, root_of},
};
use annals_store::{
    KeyRange, Order, Store, StoreError, Transaction, key_after,
    layout::{
        archive::{Tree, tree_key},
        checkpoints, tiles,
    },
};

/// Rows read at a time.
const PAGE: usize = 64;

/// Full tiles that wait before they are compared: then they are read one after the other.
const TILES_WAITING: usize = 64;

/// A tree that grows leaf by leaf, and what of it is yet to be held against the store.
#[derive(Clone, Debug)]
pub(crate) struct TreeCheck {
    shard: Shard,
    pub(super) tree: Frontier,
    /// By level, the hashes of the tile that is not full.
    pub(super) open: Vec<Vec<Hash>>,
    /// Full tiles that were not compared, or that the store does not have yet: which, and the root over each.
    pub(super) waiting: Vec<(u8, u64, Hash)>,
    /// How many of these are to wait before they are compared.
    due: usize,
    /// How many tiles of leaf hashes were stored when this was begun or taken up again.
    stored: u64,
    /// By size, what checkpoints say that the root was, until the tree has that size.
    expected: BTreeMap<u64, Hash>,
    /// Sizes of checkpoints that were taken note of.
    noted: BTreeSet<u64>,
    /// Sizes at which the tree had another root than a checkpoint says.
    wrong: Vec<u64>,
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
        }
    }

    /// The tree so far.
    pub(crate) fn tree(&self) -> &Frontier {
        &self.tree
    }

    /// Sees what is stored by now. To be done before the stored tree is read up to which leaves are going to come.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn refresh(&mut self, store: &Store, found: &mut Vec<Finding>) -> Result<(), StoreError> {
        let shard = self.shard;
        let newest = |transaction: Transaction| async move {
            let page = transaction
                .get_range(&tiles::tiles(shard, 0), 1, Order::Reverse)
                .await?;
            page.rows.first().map(|(key, _)| tiles::index_of(key)).transpose()
        };
        let newest: Option<u64> = store.read(newest).await?;
        self.stored = newest.map_or(0, |index| index + 1);
        self.due = TILES_WAITING;
        for (size, note) in read_checkpoints(store, shard, found).await? {
            if !self.noted.insert(size) {
                continue;
            }
            if size > self.tree.size() {
                self.expected.insert(size, note.head.root);
            } else if size == 0 || root_at(store, shard, size).await? != Some(note.head.root) {
                self.wrong.push(size);
            }
        }
        Ok(())
    }

    /// Takes the next leaf.
    pub(crate) fn push(&mut self, leaf: Hash) {
        self.tree.push(leaf);
        let size = self.tree.size();
        if self.expected.remove(&size).is_some_and(|root| root != self.tree.root()) {
            self.wrong.push(size);
        }
        let mut hash = leaf;
        let mut number = size - 1;
        for level in 0.. {
            if self.open.len() == level {
                self.open.push(Vec::with_capacity(usize::from(TILE_WIDTH)));
            }
            self.open[level].push(hash);
            if self.open[level].len() < usize::from(TILE_WIDTH) {
                return;
            }
            hash = root_of(&self.open[level]);
            self.open[level].clear();
            number >>= TILE_HEIGHT;
            let level = u8::try_from(level).expect("invariant: a tree of 64-bit numbers has 8 levels of tiles");
            self.waiting.push((level, number, hash));
        }
    }

    /// Whether enough tiles wait to be [compared](Self::compare).
    pub(crate) fn is_due(&self) -> bool {
        self.waiting.len() >= self.due
    }

    /// Holds the full tiles that wait against those that are stored.
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

    /// All leaves have come: what is left is compared.
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
        Ok(())
    }

    /// How many hashes of a level belong to the tiles of leaf hashes that were stored.
    fn expected_hashes(&self, level: u8) -> u64 {
        match level {
            0 => self.stored * u64::from(TILE_WIDTH),
            _ => self.stored >> (u32::from(level - 1) * u32::from(TILE_HEIGHT)),
        }
    }
}

async fn read_tile(store: &Store, shard: Shard, level: u8, index: u64) -> Result<Vec<Hash>, StoreError> {
    let read = |transaction: Transaction| async move {
        let value = transaction.get(&tiles::tile_key(shard, level, index)).await?;
        Ok::<_, StoreError>(value.map(|value| value.to_vec()))
    };
    let value = store.read(read).await?;
    // What is no row of hashes is no tile of this tree either.
    Ok(tiles::decode_tile(value.as_deref()).unwrap_or_default())
}

/// The root of the first leaves, which were verified before; `None` if the tree has not so many.
pub(crate) async fn root_at(store: &Store, shard: Shard, size: u64) -> Result<Option<Hash>, StoreError> {
    let mut prover = Prover::begin(store.clone(), shard).await?;
    match prover.root(size).await {
        Ok(root) => Ok(Some(root)),
        Err(ProveError::Store(error)) if !matches!(error, StoreError::Corrupt(_)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The stored checkpoints that are signed by a key of the log, by size; the others are findings.
async fn read_checkpoints(
    store: &Store,
    shard: Shard,
    found: &mut Vec<Finding>,
) -> Result<Vec<(u64, Checkpoint)>, StoreError> {
    let mut read = Vec::new();
    let mut range = checkpoints::checkpoints(shard);
    loop {
        let rows = &range;
        let page = store
            .read(|transaction| async move { transaction.get_range(rows, PAGE, Order::Forward).await })
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
