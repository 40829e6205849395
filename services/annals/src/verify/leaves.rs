//! The Merkle tree of a shard, built anew from the leaves (rule F3).

use std::collections::BTreeMap;

use annals_ids::{Hash, LeafIndex, LogPosition, Shard};
use annals_proof::Frontier;
use annals_store::layout::archive::Tree;

use super::report::{Finding, VerifyReport};

/// Leaves that may wait for one before them. They come in order, unless one is missing: then the tree cannot be built.
const MAX_AHEAD: usize = 100_000;

/// The leaves of a shard, as they come, against the tree as it was stored before they were read.
#[derive(Clone, Debug)]
pub(super) struct Leaves {
    shard: Shard,
    stored: Tree,
    tree: Frontier,
    /// Leaves that come after one that is missing, or were archived after the tree was read.
    ahead: BTreeMap<LeafIndex, Hash>,
    /// How many leaves there were at a checkpoint, and the root.
    expected: Option<(u64, Hash)>,
}

impl Leaves {
    pub(super) fn new(shard: Shard, expected: Option<(u64, Hash)>) -> Self {
        Self {
            shard,
            stored: Tree::default(),
            tree: Frontier::new(),
            ahead: BTreeMap::new(),
            expected,
        }
    }

    /// Goes on to the tree as it is stored now.
    pub(super) fn go_on(&mut self, stored: Tree, report: &mut VerifyReport) {
        self.stored = stored;
        self.build(report);
    }

    /// Takes a leaf.
    pub(super) fn take(&mut self, leaf: LeafIndex, hash: Hash, at: LogPosition, report: &mut VerifyReport) {
        if leaf.0 < self.tree.size() || self.ahead.contains_key(&leaf) {
            let shard = self.shard;
            report.find(Finding::LeafTwice { shard, leaf, at });
            return;
        }
        if self.ahead.len() < MAX_AHEAD {
            self.ahead.insert(leaf, hash);
        }
        self.build(report);
    }

    fn build(&mut self, report: &mut VerifyReport) {
        while self.tree.size() < self.stored.size
            && let Some(hash) = self.ahead.remove(&LeafIndex(self.tree.size()))
        {
            self.tree.push(hash);
            if let Some((leaves, root)) = self.expected
                && leaves == self.tree.size()
                && root != self.tree.root()
            {
                let shard = self.shard;
                report.find(Finding::Rewritten { shard, leaves });
            }
        }
    }

    /// How many leaves the tree has, and its root.
    pub(super) fn root(&self) -> (u64, Hash) {
        (self.tree.size(), self.tree.root())
    }

    /// Compares the tree with the stored one.
    pub(super) fn compare(&self, report: &mut VerifyReport) {
        let (shard, leaves) = (self.shard, self.stored.size);
        report.leaves += self.tree.size();
        if self.tree.size() < leaves {
            let leaf = LeafIndex(self.tree.size());
            report.find(Finding::LeafMissing { shard, leaf, leaves });
        } else if (self.tree.size(), self.tree.peaks()) != (leaves, &self.stored.peaks[..]) {
            report.find(Finding::Edge { shard, leaves });
        } else if self.expected.is_some_and(|(expected, _)| leaves < expected) {
            report.find(Finding::Rewritten { shard, leaves });
        } else {
            report.roots.insert(shard, self.root());
        }
    }
}
