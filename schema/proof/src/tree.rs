//! What a proof is made of: which runs of leaves, and of which complete subtrees each run.
//!
//! A proof (RFC 6962, sections 2.1.1 and 2.1.2) is a list of tree hashes, each over a [`Span`] of the leaves. Which spans,
//! follows from the numbers alone; so whoever makes one first asks for the spans, fetches what they consist of (tiles, as a
//! rule), and then has them hashed. Nothing in here reads anything by itself.

use annals_ids::Hash;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::merkle::node_hash;
use crate::tile::Tile;

/// A subtree of which no leaf is missing: 2^`level` leaves, the first of them `index` · 2^`level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// How high it stands; a leaf is at level 0.
    pub level: u8,
    /// How many of its level are left of it.
    pub index: u64,
}

/// A run of leaves that is a subtree of some tree, its right side possibly incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// A multiple of the smallest power of two that is no less than the number of leaves.
    start: u64,
    end: u64,
}

/// What was to be proven does not lie in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OutsideTree {
    /// There is no such leaf.
    #[error("a tree of {size} leaves has no leaf {leaf}")]
    Leaf {
        /// The leaf's index.
        leaf: u64,
        /// Leaves of the tree.
        size: u64,
    },
    /// There is no such tile, or not as much of it.
    #[error("a tree of {size} leaves has no {tile}")]
    Tile {
        /// The tile.
        tile: Tile,
        /// Leaves of the tree.
        size: u64,
    },
    /// The later tree is the smaller one.
    #[error("a tree of {new} leaves cannot be a later state of one of {old}")]
    Shrunk {
        /// Leaves of the earlier tree.
        old: u64,
        /// Leaves of the later one.
        new: u64,
    },
}

impl Span {
    /// All leaves of a tree: its hash is the tree's root.
    #[must_use]
    pub fn whole(size: u64) -> Self {
        Self { start: 0, end: size }
    }

    /// The complete subtrees that it consists of, from left to right, hence largest first.
    pub fn nodes(self) -> impl Iterator<Item = Node> {
        let mut at = self.start;
        std::iter::from_fn(move || {
            let level = (self.end - at).checked_ilog2()?;
            let index = at >> level;
            at += 1 << level;
            Some(Node {
                level: level.try_into().expect("invariant: at most 63"),
                index,
            })
        })
    }

    /// Its tree hash, from those of its complete subtrees.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn hash<E>(self, read: impl FnMut(Node) -> Result<Hash, E>) -> Result<Hash, E> {
        let nodes: Vec<Hash> = self.nodes().map(read).collect::<Result<_, _>>()?;
        let mut from_the_right = nodes.into_iter().rev();
        Ok(match from_the_right.next() {
            None => Hash(Sha256::digest([]).into()),
            Some(last) => from_the_right.fold(last, |right, left| node_hash(left, right)),
        })
    }

    /// Where the tree over it divides; it has two leaves or more.
    fn split(self) -> (Self, Self) {
        let left = 1u64 << (self.end - self.start - 1).ilog2();
        let middle = self.start + left;
        let (start, end) = (self.start, self.end);
        (Self { start, end: middle }, Self { start: middle, end })
    }
}

/// The spans whose hashes prove that a leaf is in a tree of `size` leaves, from the leaf's side to the root's.
///
/// # Errors
/// When there is no such leaf.
pub fn inclusion(leaf: u64, size: u64) -> Result<Vec<Span>, OutsideTree> {
    if leaf >= size {
        return Err(OutsideTree::Leaf { leaf, size });
    }
    let mut path = Vec::new();
    let mut within = Span::whole(size);
    while within.end - within.start > 1 {
        let (left, right) = within.split();
        let (towards, beside) = if leaf < left.end { (left, right) } else { (right, left) };
        path.push(beside);
        within = towards;
    }
    path.reverse();
    Ok(path)
}

/// The spans whose hashes prove that a tree of `new` leaves begins with the leaves of one of `old`. None are needed for trees
/// of one size, or for an empty old one.
///
/// # Errors
/// When the later tree is the smaller one.
pub fn consistency(old: u64, new: u64) -> Result<Vec<Span>, OutsideTree> {
    if old > new {
        return Err(OutsideTree::Shrunk { old, new });
    }
    let mut path = Vec::new();
    if old == 0 {
        return Ok(path);
    }
    let mut within = Span::whole(new);
    while old < within.end {
        let (left, right) = within.split();
        let (towards, beside) = if old <= left.end { (left, right) } else { (right, left) };
        path.push(beside);
        within = towards;
    }
    // Whoever checks has the old root: where that is this very subtree, it need not be told.
    if within.start != 0 {
        path.push(within);
    }
    path.reverse();
    Ok(path)
}
