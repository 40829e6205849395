//! The Merkle tree of a shard, rebuilt from the leaves (rule F3).

use std::collections::BTreeMap;

use annals_ids::{Hash, LeafIndex, LogPosition, Shard};
use annals_proof::TreeHead;
use annals_store::{Store, StoreError, layout::archive::Tree};

use super::{
    report::{Finding, VerifyReport},
    tree::TreeCheck,
};

/// Maximum leaves that wait for an earlier one. They arrive in order, unless one is missing: then the tree cannot be
/// built.
const MAX_AHEAD: usize = 100_000;

/// The leaves of a shard, as they arrive, compared with the tree as stored before they were read.
#[derive(Clone, Debug)]
pub(super) struct Leaves {
    shard: Shard,
    stored: Tree,
    tree: TreeCheck,
    /// Leaves after a missing one, or archived after the tree was read.
    ahead: BTreeMap<LeafIndex, Hash>,
    /// The number of leaves at a checkpoint, and the root.
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

    /// Adds checkpoints that were kept outside, to be compared too.
    pub(super) fn keep(&mut self, kept: &[TreeHead]) {
        self.tree.keep(kept);
    }

    /// The shard of the leaves.
    pub(super) fn shard(&self) -> Shard {
        self.shard
    }

    /// Notes which tiles and checkpoints are stored now; must be called before the stored tree is read.
    pub(super) async fn refresh(&mut self, store: &Store, report: &mut VerifyReport) -> Result<(), StoreError> {
        let mut found = Vec::new();
        self.tree.refresh(store, &mut found).await?;
        found.into_iter().for_each(|finding| report.find(finding));
        Ok(())
    }

    /// Compares the full tiles with the stored ones, if enough are waiting.
    pub(super) async fn compare_tiles(&mut self, store: &Store, report: &mut VerifyReport) -> Result<(), StoreError> {
        let mut found = Vec::new();
        if self.tree.is_due() {
            self.tree.compare(store, &mut found).await?;
        }
        found.into_iter().for_each(|finding| report.find(finding));
        Ok(())
    }

    /// Continues to the tree as it is stored now.
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

    /// The size of the tree in leaves, and its root.
    pub(super) fn root(&self) -> (u64, Hash) {
        (self.size(), self.tree.tree().root())
    }

    fn size(&self) -> u64 {
        self.tree.tree().size()
    }

    /// Compares the tree with the stored one, and stored tiles and checkpoints with the leaves.
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
        // If the tree cannot be built to its end, nothing beyond is reported.
        if self.size() == leaves {
            self.tree.finish(store, &mut found).await?;
        } else {
            self.tree.compare(store, &mut found).await?;
        }
        found.into_iter().for_each(|finding| report.find(finding));
        Ok(())
    }
}
