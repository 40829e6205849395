//! The Merkle tree of a shard, built anew from the leaves (rule F3).

use std::collections::BTreeMap;

use annals_event::merkle::Frontier;
use annals_ids::{Hash, LeafIndex, LogPosition, Shard};
use annals_store::layout::archive::Tree;

use super::report::{Finding, VerifyReport};

/// Leaves that may wait for one before them. They come in order, unless one is missing: then the tree cannot be built.
const MAX_AHEAD: usize = 100_000;

/// The leaves of a shard, as they come, against the tree as it was stored before they were read.
#[derive(Debug)]
pub(super) struct Leaves {
    shard: Shard,
    stored: Tree,
    tree: Frontier,
    ahead: BTreeMap<LeafIndex, Hash>,
}

impl Leaves {
    pub(super) fn new(shard: Shard, stored: Tree) -> Self {
        Self {
            shard,
            stored,
            tree: Frontier::new(),
            ahead: BTreeMap::new(),
        }
    }

    /// Takes a leaf. Those that were archived after the tree was read are left alone.
    pub(super) fn take(&mut self, leaf: LeafIndex, hash: Hash, at: LogPosition, report: &mut VerifyReport) {
        if leaf.0 >= self.stored.size {
            return;
        }
        if leaf.0 < self.tree.size() || self.ahead.contains_key(&leaf) {
            let shard = self.shard;
            report.find(Finding::LeafTwice { shard, leaf, at });
            return;
        }
        if self.ahead.len() < MAX_AHEAD {
            self.ahead.insert(leaf, hash);
        }
        while let Some(hash) = self.ahead.remove(&LeafIndex(self.tree.size())) {
            self.tree.push(hash);
        }
    }

    /// Compares the tree with the stored one.
    pub(super) fn finish(self, report: &mut VerifyReport) {
        let shard = self.shard;
        report.leaves += self.tree.size();
        if self.tree.size() < self.stored.size {
            report.find(Finding::LeafMissing {
                shard,
                leaf: LeafIndex(self.tree.size()),
                leaves: self.stored.size,
            });
        } else if self.tree.peaks() != self.stored.peaks {
            let leaves = self.stored.size;
            report.find(Finding::Edge { shard, leaves });
        } else {
            report.roots.insert(shard, (self.stored.size, self.tree.root()));
        }
    }
}
