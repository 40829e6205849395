//! Proving: tiles, roots and proofs of a shard's Merkle tree, at any size that it has had, from the store alone.
//!
//! Reads what the tiler has written, and computes the rest (partial tiles, the archive's end, an archive without tiles)
//! from the leaves. A tree only grows, so reads in several transactions are consistent.

use annals_ids::{Hash, Shard};
use annals_proof::{
    Frontier, Tile, Tiles, TreeHead,
    tile::{TILE_WIDTH, root_of},
    tree::{OutsideTree, Span, consistency, inclusion},
};
use annals_store::{
    Store, StoreError, Transaction,
    layout::archive::{Tree, tree_key},
};
use async_recursion::async_recursion as boxed;
use thiserror::Error;

use crate::tiling::{LeafHashes, read_tile};

/// Reason why a proof fails.
#[derive(Debug, Error)]
pub enum ProveError {
    /// There is no such tree or leaf.
    #[error(transparent)]
    Outside(#[from] OutsideTree),
    /// The store did not answer, or its data is damaged.
    #[error("the archive's tree could not be read")]
    Store(#[from] StoreError),
}

/// Reads the tree of a shard's archive, as it was when the prover began.
pub struct Prover {
    store: Store,
    shard: Shard,
    head: TreeHead,
    leaves: LeafHashes,
}

impl Prover {
    /// Begins with the current tree.
    ///
    /// # Errors
    /// When the store does not answer, or has no tree where there should be one.
    #[boxed]
    pub async fn begin(store: Store, shard: Shard) -> Result<Self, StoreError> {
        let read =
            |transaction: Transaction| async move { Tree::decode(transaction.get(&tree_key(shard)).await?.as_deref()) };
        let Tree { size, peaks } = store.read(read).await?;
        let tree = Frontier::resume(size, peaks).expect("invariant: decoding counts the peaks");
        Ok(Self {
            leaves: LeafHashes::new(store.clone(), shard),
            store,
            shard,
            head: TreeHead {
                size,
                root: tree.root(),
            },
        })
    }

    /// Number of leaves, and the root that was stored with the last of them.
    #[must_use]
    pub fn head(&self) -> TreeHead {
        self.head
    }

    /// Hashes of a tile.
    ///
    /// # Errors
    /// When the tree does not have the tile, or the store does not answer.
    #[boxed]
    pub async fn tile(&mut self, tile: Tile) -> Result<Vec<Hash>, ProveError> {
        let size = self.head.size;
        match Tile::within(size, tile.level(), tile.index()) {
            Some(within) if within.width() >= tile.width() => Ok(self.read(tile).await?),
            _ => Err(OutsideTree::Tile { tile, size }.into()),
        }
    }

    /// Root of the first `size` leaves.
    ///
    /// # Errors
    /// When there are fewer, or the store does not answer.
    #[boxed]
    pub async fn root(&mut self, size: u64) -> Result<Hash, ProveError> {
        self.check(size)?;
        let hashes = self.hash_all(&[Span::whole(size)], size).await?;
        Ok(hashes[0])
    }

    /// Proof that a leaf is among the first `size`.
    ///
    /// # Errors
    /// When it is not, or there are fewer, or the store does not answer.
    #[boxed]
    pub async fn inclusion(&mut self, leaf: u64, size: u64) -> Result<Vec<Hash>, ProveError> {
        self.check(size)?;
        self.hash_all(&inclusion(leaf, size)?, size).await
    }

    /// Proof that the first `old` leaves are an unchanged prefix of the first `new`.
    ///
    /// # Errors
    /// When `new` is smaller than `old`, or there are fewer leaves, or the store does not answer.
    #[boxed]
    pub async fn consistency(&mut self, old: u64, new: u64) -> Result<Vec<Hash>, ProveError> {
        self.check(new)?;
        self.hash_all(&consistency(old, new)?, new).await
    }

    fn check(&self, size: u64) -> Result<(), OutsideTree> {
        consistency(size, self.head.size).map(|_| ())
    }

    async fn hash_all(&mut self, spans: &[Span], size: u64) -> Result<Vec<Hash>, ProveError> {
        let mut tiles = Tiles::default();
        for tile in Tiles::needed(spans, size) {
            tiles.insert(tile, self.read(tile).await?);
        }
        Ok(tiles
            .hash_all(spans)
            .expect("invariant: the tiles that spans need were read"))
    }

    /// Reads a tile of the tree, and computes hashes that are not written from the level below.
    async fn read(&mut self, tile: Tile) -> Result<Vec<Hash>, StoreError> {
        let (shard, level, index) = (self.shard, tile.level(), tile.index());
        let width = usize::from(tile.width());
        let stored = |transaction: Transaction| async move { read_tile(&transaction, shard, level, index).await };
        let mut hashes = self.store.read(stored).await?;
        hashes.truncate(width);
        let first = index * u64::from(TILE_WIDTH);
        let missing = first + hashes.len() as u64..first + width as u64;
        if level == 0 {
            if !missing.is_empty() {
                hashes.extend(self.leaves.read(missing).await?);
            }
            return Ok(hashes);
        }
        for below in missing {
            let below = Tile::new(level - 1, below, TILE_WIDTH);
            let below = below.expect("invariant: a tile of the tree stands on tiles of the tree");
            hashes.push(root_of(&Box::pin(self.read(below)).await?));
        }
        Ok(hashes)
    }
}
