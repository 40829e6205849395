//! Where others were last heard of. A hint: whoever follows it and finds nobody asks the home (rule C6).

use std::collections::BTreeMap;

use annals_ids::{EntityId, Epoch, OwnerId};

/// Most cell parts whose place is remembered; beyond that the oldest ids are forgotten and asked for again.
const REMEMBERED: usize = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    cells: BTreeMap<EntityId, OwnerId>,
    epochs: BTreeMap<OwnerId, Epoch>,
}

impl Routes {
    /// Where a cell part was last heard of.
    #[must_use]
    pub(crate) fn cell(&self, entity: EntityId) -> Option<OwnerId> {
        self.cells.get(&entity).copied()
    }

    /// A cell part was heard of there.
    pub(crate) fn moved(&mut self, entity: EntityId, to: OwnerId) {
        self.cells.insert(entity, to);
        if self.cells.len() > REMEMBERED {
            self.cells.pop_first();
        }
    }

    /// A cell part was not where it was looked for.
    pub(crate) fn forget(&mut self, entity: EntityId) {
        self.cells.remove(&entity);
    }

    /// Whether a message may be believed: its sender's epoch is the highest seen of that owner (rule E7).
    pub(crate) fn admits(&mut self, owner: OwnerId, epoch: Epoch) -> bool {
        let newest = self.epochs.entry(owner).or_default();
        *newest = epoch.max(*newest);
        epoch == *newest
    }
}
