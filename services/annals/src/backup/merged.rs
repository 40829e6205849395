//! The leaves of all shards of a backup, in the order in which a restored realm folds them.

use std::collections::{BTreeMap, BTreeSet};

use annals_db::{MergedLeaf, Merging, Row, Survey};
use annals_ids::{Shard, WallTime};
use annals_store::segment::Leaf;

use super::{
    content::{ContentError, Leaves},
    manifest::Manifest,
    restore::RestoreFailed,
    target::Target,
};

/// The leaves of several archives.
pub(super) struct MergedLeaves<'a> {
    shards: BTreeMap<Shard, Reading<'a>>,
    /// The next leaf of each shard that has one, and what orders it.
    heads: BTreeMap<Shard, MergedLeaf>,
    next: BTreeMap<Shard, Leaf>,
    /// Shards whose next leaf, and all after it, are not wanted.
    closed: BTreeSet<Shard>,
    merging: Merging,
}

/// An archive that is being read.
struct Reading<'a> {
    leaves: Leaves<'a>,
    /// The first leaf that is not read.
    end: u64,
}

/// A leaf in the order of all.
pub(super) struct Passed {
    pub(super) shard: Shard,
    pub(super) leaf: Leaf,
    pub(super) is_wanted: bool,
    /// Whether the leaves up to this one are a consistent cut.
    pub(super) is_cut: bool,
}

/// Reads a backup once before its leaves are ordered.
pub(super) async fn survey(target: &Target, manifest: &Manifest) -> Result<Survey, ContentError> {
    let mut survey = Survey::default();
    for (shard, archive) in manifest.archives() {
        let mut leaves = Leaves::new(target, archive);
        while let Some(leaf) = leaves.next().await? {
            survey.note(shard, &read(&leaves, &leaf)?);
        }
    }
    Ok(survey)
}

impl<'a> MergedLeaves<'a> {
    /// The leaves of a backup, of each shard those before its number in `ends`.
    pub(super) async fn begin(
        (target, manifest): (&'a Target, &'a Manifest),
        rows: &[Row],
        survey: Survey,
        ends: &BTreeMap<Shard, u64>,
    ) -> Result<Self, RestoreFailed> {
        let merging = Merging::begin(rows, survey, ends).await;
        let mut merged = Self {
            shards: BTreeMap::new(),
            heads: BTreeMap::new(),
            next: BTreeMap::new(),
            closed: BTreeSet::new(),
            merging: merging.map_err(RestoreFailed::Rows)?,
        };
        for (shard, archive) in manifest.archives() {
            let reading = Reading {
                leaves: Leaves::new(target, archive),
                end: ends.get(&shard).copied().unwrap_or_default(),
            };
            merged.shards.insert(shard, reading);
            merged.read_next(shard).await?;
        }
        Ok(merged)
    }

    async fn read_next(&mut self, shard: Shard) -> Result<(), ContentError> {
        let Some(reading) = self.shards.get_mut(&shard) else {
            return Ok(());
        };
        if let Some(leaf) = reading.leaves.next().await?.filter(|leaf| leaf.leaf.0 < reading.end) {
            self.heads.insert(shard, read(&reading.leaves, &leaf)?);
            self.next.insert(shard, leaf);
        }
        Ok(())
    }

    /// Passes the next leaf; `None` if none can follow, or none of those that are left is wanted. With a moment, no leaf is
    /// wanted that was closed later, by its writer's clock, and none after that in its shard.
    pub(super) async fn pass(&mut self, until: Option<WallTime>) -> Result<Option<Passed>, ContentError> {
        let later = self
            .heads
            .iter()
            .filter(|(_, head)| until.is_some_and(|until| head.wall() > until));
        self.closed.extend(later.map(|(shard, _)| *shard));
        if self.heads.keys().all(|shard| self.closed.contains(shard)) {
            return Ok(None);
        }
        let Some(shard) = self.merging.choose(&self.heads) else {
            return Ok(None);
        };
        let (Some(head), Some(leaf)) = (self.heads.remove(&shard), self.next.remove(&shard)) else {
            return Ok(None);
        };
        let is_wanted = !self.closed.contains(&shard);
        let is_cut = self.merging.pass(shard, head, is_wanted);
        self.read_next(shard).await?;
        Ok(Some(Passed {
            shard,
            leaf,
            is_wanted,
            is_cut,
        }))
    }

    /// Which of the leaves that were passed since the last cut belong to the largest cut, or to the smallest one with a leaf.
    pub(super) fn in_cut(&self, with: Option<usize>) -> Vec<bool> {
        self.merging.in_cut(with)
    }
}

fn read(leaves: &Leaves<'_>, leaf: &Leaf) -> Result<MergedLeaf, ContentError> {
    MergedLeaf::read(leaf.leaf, &leaf.archived).map_err(|error| ContentError::Damaged {
        piece: leaves.piece().map(|piece| piece.path()).unwrap_or_default(),
        why: format!("leaf {}: {error}", leaf.leaf),
    })
}
