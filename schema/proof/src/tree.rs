//! The structure of proofs: the runs of leaves in a proof, and the complete subtrees of each run.
//!
//! A proof (RFC 6962, sections 2.1.1 and 2.1.2) is a list of tree hashes, each over a [`Span`] of the leaves. The spans
//! follow from the numbers alone; so a program that makes a proof first asks for the spans, fetches the data for them
//! (usually tiles), and then hashes them. Nothing in this module reads data by itself.

use annals_ids::Hash;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::merkle::node_hash;
use crate::tile::Tile;

/// A complete subtree: 2^`level` leaves, the first of them `index` · 2^`level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Its height; a leaf is at level 0.
    pub level: u8,
    /// Its index within its level.
    pub index: u64,
}

/// A run of leaves that is a subtree of some tree, its right side possibly incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// A multiple of the smallest power of two that is no less than the number of leaves.
    start: u64,
    end: u64,
}

/// The subject of a proof is not in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OutsideTree {
    /// There is no such leaf.
    #[error("a tree of {size} leaves has no leaf {leaf}")]
    Leaf {
        /// The leaf's index.
        leaf: u64,
        /// Number of leaves of the tree.
        size: u64,
    },
    /// There is no such tile, or less of it.
    #[error("a tree of {size} leaves has no {tile}")]
    Tile {
        tile: Tile,
        /// Number of leaves of the tree.
        size: u64,
    },
    /// The later tree is the smaller one.
    #[error("a tree of {new} leaves cannot be a later state of one of {old}")]
    Shrunk {
        /// Number of leaves of the earlier tree.
        old: u64,
        /// Number of leaves of the later one.
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

    /// Its tree hash, computed from those of its complete subtrees.
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

    /// The two spans into which the tree divides it; it must have two leaves or more.
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

/// The spans whose hashes prove that a tree of `new` leaves begins with the leaves of one of `old`. None are needed if
/// both have the same size, or the old one is empty.
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
    // A verifier has the old root: where it is the root of this very subtree, it is omitted.
    if within.start != 0 {
        path.push(within);
    }
    path.reverse();
    Ok(path)
}
