//! Verification of proofs, following RFC 9162 step by step: section 2.1.3.2 for inclusion, 2.1.4.2 for consistency.

use annals_ids::Hash;
use thiserror::Error;

use crate::merkle::{Frontier, node_hash};
use crate::tree::OutsideTree;

/// Maximum number of hashes in a proof: the height of the largest tree, and one more with which a consistency proof
/// begins.
pub const PATH_HASHES: usize = 65;

/// Why a proof is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unproven {
    /// The numbers are of no tree.
    #[error(transparent)]
    Outside(#[from] OutsideTree),
    /// It has too few hashes, or too many.
    #[error("the proof has {hashes} hashes, a wrong number for these sizes")]
    Length {
        /// Number of hashes.
        hashes: usize,
    },
    /// It does not lead to the expected root.
    #[error("the proof leads to the root {found}, expected {expected}")]
    Root {
        /// The root computed from it.
        found: Hash,
        /// The expected root.
        expected: Hash,
    },
    /// It does not begin at the earlier tree.
    #[error("the proof continues a tree with the root {found}, expected {expected}")]
    OldRoot {
        /// The root that it continues.
        found: Hash,
        /// The root that it should continue.
        expected: Hash,
    },
}

/// A tree, by its number of leaves and its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeHead {
    /// Number of leaves.
    pub size: u64,
    /// The RFC 6962 root over them.
    pub root: Hash,
}

/// Verifies that the leaf with this hash and index is in a tree.
///
/// # Errors
/// Why that is not proven.
pub fn verify_inclusion(leaf: Hash, index: u64, head: TreeHead, path: &[Hash]) -> Result<(), Unproven> {
    if index >= head.size {
        let size = head.size;
        return Err(OutsideTree::Leaf { leaf: index, size }.into());
    }
    let length = Unproven::Length { hashes: path.len() };
    let mut place = TreePosition::of(index, head.size - 1);
    let mut root = leaf;
    for &beside in path {
        match place.climb().ok_or(length)? {
            Side::Left => root = node_hash(beside, root),
            Side::Right => root = node_hash(root, beside),
        }
    }
    if !place.is_top() {
        return Err(length);
    }
    expect_root(root, head.root)
}

/// Verifies that one tree begins with all leaves of another: that nothing was changed, removed or inserted.
///
/// # Errors
/// Why that is not proven.
pub fn verify_consistency(old: TreeHead, new: TreeHead, path: &[Hash]) -> Result<(), Unproven> {
    if old.size > new.size {
        let (old, new) = (old.size, new.size);
        return Err(OutsideTree::Shrunk { old, new }.into());
    }
    let length = Unproven::Length { hashes: path.len() };
    if old.size == 0 || old.size == new.size {
        if !path.is_empty() {
            return Err(length);
        }
        let shown = if old.size == 0 {
            Frontier::new().root()
        } else {
            new.root
        };
        return expect_old_root(shown, old.root);
    }
    let (first, rest) = match path.split_first() {
        _ if old.size.is_power_of_two() => (old.root, path),
        Some((&first, rest)) => (first, rest),
        None => return Err(length),
    };
    let mut place = TreePosition::of(old.size - 1, new.size - 1);
    place.skip_right_children();
    let (mut old_root, mut new_root) = (first, first);
    for &beside in rest {
        match place.climb().ok_or(length)? {
            Side::Left => {
                old_root = node_hash(beside, old_root);
                new_root = node_hash(beside, new_root);
            }
            Side::Right => new_root = node_hash(new_root, beside),
        }
    }
    if !place.is_top() {
        return Err(length);
    }
    expect_old_root(old_root, old.root)?;
    expect_root(new_root, new.root)
}

fn expect_root(found: Hash, expected: Hash) -> Result<(), Unproven> {
    (found == expected)
        .then_some(())
        .ok_or(Unproven::Root { found, expected })
}

fn expect_old_root(found: Hash, expected: Hash) -> Result<(), Unproven> {
    (found == expected)
        .then_some(())
        .ok_or(Unproven::OldRoot { found, expected })
}

/// The side of the next hash of a proof.
enum Side {
    Left,
    Right,
}

/// A node on the way up, and the last one of its level: `fn` and `sn` of the RFC.
struct TreePosition {
    node: u64,
    last: u64,
}

impl TreePosition {
    fn of(node: u64, last: u64) -> Self {
        Self { node, last }
    }

    fn is_top(&self) -> bool {
        self.last == 0
    }

    /// Goes up while it is a right child: the proof begins where the old tree's last complete subtree ends.
    fn skip_right_children(&mut self) {
        let levels = self.node.trailing_ones();
        self.node = self.node.checked_shr(levels).unwrap_or(0);
        self.last = self.last.checked_shr(levels).unwrap_or(0);
    }

    /// Goes one hash up and returns the side of its sibling; `None` at the top.
    fn climb(&mut self) -> Option<Side> {
        if self.is_top() {
            return None;
        }
        let is_right_child = self.node & 1 == 1;
        let side = if is_right_child || self.node == self.last {
            if !is_right_child {
                // A last node without a sibling also represents its parent.
                let levels = self.node.trailing_zeros().min(63);
                self.node >>= levels;
                self.last >>= levels;
            }
            Side::Left
        } else {
            Side::Right
        };
        self.node >>= 1;
        self.last >>= 1;
        Some(side)
    }
}
