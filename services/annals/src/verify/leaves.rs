//! The Merkle tree of a shard, built anew from the leaves (rule F3).

use std::collections::BTreeMap;

use annals_ids::{Hash, LeafIndex, LogPosition, Shard};
use annals_proof::TreeHead;
use annals_store::{Store, StoreError, layout::archive::Tree};

use super::{
    report::{Finding, VerifyReport},
    tree::TreeCheck,
};

/// Leaves that may wait for one before them. They come in order, unless one is missing: then the tree cannot be built.
const MAX_AHEAD: usize = 100_000;

/// The leaves of a shard, as they come, against the tree as it was stored before they were read.
#[derive(Clone, Debug)]
pub(super) struct Leaves {
    shard: Shard,
    stored: Tree,
    tree: TreeCheck,
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
            tree: TreeCheck::new(shard),
            ahead: BTreeMap::new(),
            expected,
        }
    }

    /// Has them held against checkpoints that were kept outside as well.
    pub(super) fn keep(&mut self, kept: &[TreeHead]) {
        self.tree.keep(kept);
    }

    /// Whose leaves.
    pub(super) fn shard(&self) -> Shard {
        self.shard
    }

    /// Sees which tiles and checkpoints are stored now; to be done before the stored tree is read.
    pub(super) async fn refresh(&mut self, store: &Store, report: &mut VerifyReport) -> Result<(), StoreError> {
        let mut found = Vec::new();
        self.tree.refresh(store, &mut found).await?;
        found.into_iter().for_each(|finding| report.find(finding));
        Ok(())
    }

    /// Holds the tiles that are full by now against those that are stored, if they have become many.
    pub(super) async fn compare_tiles(&mut self, store: &Store, report: &mut VerifyReport) -> Result<(), StoreError> {
        let mut found = Vec::new();
        if self.tree.is_due() {
            self.tree.compare(store, &mut found).await?;
        }
        found.into_iter().for_each(|finding| report.find(finding));
        Ok(())
    }

    /// Goes on to the tree as it is stored now.
    pub(super) fn go_on(&mut self, stored: Tree, report: &mut VerifyReport) {
        self.stored = stored;
        self.build(report);
    }

    /// Takes a leaf.
    pub(super) fn take(&mut self, leaf: LeafIndex, hash: Hash, at: LogPosition, report: &mut VerifyReport) {
        if leaf.0 < self.size() || self.ahead.contains_key(&leaf) {
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
        while self.size() < self.stored.size
            && let Some(hash) = self.ahead.remove(&LeafIndex(self.size()))
        {
            self.tree.push(hash);
            if let Some((leaves, root)) = self.expected
                && (leaves, root) != self.root()
                && leaves == self.size()
            {
                let shard = self.shard;
                report.find(Finding::Rewritten { shard, leaves });
            }
        }
    }

    /// How many leaves the tree has, and its root.
    pub(super) fn root(&self) -> (u64, Hash) {
        (self.size(), self.tree.tree().root())
    }

    fn size(&self) -> u64 {
        self.tree.tree().size()
    }

    /// Compares the tree with the stored one, and what is stored of it with the leaves.
    pub(super) async fn compare(&mut self, store: &Store, report: &mut VerifyReport) -> Result<(), StoreError> {
        let (shard, leaves) = (self.shard, self.stored.size);
        report.leaves += self.size();
        if self.size() < leaves {
            let leaf = LeafIndex(self.size());
            report.find(Finding::LeafMissing { shard, leaf, leaves });
        } else if (self.size(), self.tree.tree().peaks()) != (leaves, &self.stored.peaks[..]) {
            report.find(Finding::Edge { shard, leaves });
        } else if self.expected.is_some_and(|(expected, _)| leaves < expected) {
            report.find(Finding::Rewritten { shard, leaves });
        } else {
            report.roots.insert(shard, self.root());
        }
        let mut found = Vec::new();
        // Of a tree that cannot be built to its end nothing is said that lies behind.
        if self.size() == leaves {
            self.tree.finish(store, &mut found).await?;
        } else {
            self.tree.compare(store, &mut found).await?;
        }
        found.into_iter().for_each(|finding| report.find(finding));
        Ok(())
    }
}
