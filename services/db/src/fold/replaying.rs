//! What is needed beside its leaves to fold an archive again.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{DatabaseId, EntityId, LeafIndex};
use annals_store::layout::shards::EndedCell;

use crate::retention::Part;

/// What the leaves of an archive that is folded again do not show.
#[derive(Debug, Default)]
pub struct Replay {
    /// In a realm of several shards, the leaves at which the ledger changed (rule T5).
    changed: Option<Changed>,
    /// Cell parts that rows of stored entities took in, where the events that led to them were deleted (rule F14).
    parts: BTreeMap<LeafIndex, Vec<(DatabaseId, Part)>>,
    /// Cell parts that ended, in a realm of several shards.
    ended: BTreeMap<LeafIndex, Vec<(EntityId, EndedCell)>>,
}

#[derive(Debug)]
struct Changed {
    at: BTreeSet<LeafIndex>,
    /// Number of leaves from before the realm had several shards: each may have changed the ledger.
    alone: u64,
}

impl Replay {
    /// For a shard of several, given the leaves at which it changed the ledger and the number of leaves from before the
    /// realm had other shards: nothing expires at another leaf.
    #[must_use]
    pub fn of_shard(at: BTreeSet<LeafIndex>, alone: u64) -> Self {
        Self {
            changed: Some(Changed { at, alone }),
            ..Self::default()
        }
    }

    /// Adds what was kept of deleted events.
    #[must_use]
    pub(crate) fn with_kept(
        mut self,
        parts: Vec<(DatabaseId, Part)>,
        ended: BTreeMap<LeafIndex, Vec<(EntityId, EndedCell)>>,
    ) -> Self {
        for (database, part) in parts {
            self.parts.entry(part.leaf).or_default().push((database, part));
        }
        self.ended = ended;
        self
    }

    /// Whether something may expire at this leaf.
    pub(super) fn may_change(&self, leaf: LeafIndex) -> bool {
        let changed = self.changed.as_ref();
        changed.is_none_or(|changed| leaf.0 < changed.alone || changed.at.contains(&leaf))
    }

    /// Whether the fold of this leaf writes rows that folds of other shards may write too, whatever its events.
    pub(crate) fn is_shared(&self, leaf: LeafIndex) -> bool {
        let is_change = self.changed.as_ref().is_some_and(|changed| changed.at.contains(&leaf));
        is_change || self.parts.contains_key(&leaf) || self.ended.contains_key(&leaf)
    }

    pub(super) fn parts_at(&self, leaf: LeafIndex) -> &[(DatabaseId, Part)] {
        self.parts.get(&leaf).map_or(&[], Vec::as_slice)
    }

    pub(super) fn ended_at(&self, leaf: LeafIndex) -> &[(EntityId, EndedCell)] {
        self.ended.get(&leaf).map_or(&[], Vec::as_slice)
    }
}
