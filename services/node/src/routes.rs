//! Last known locations of cell parts. Hints only: a sender that follows one and finds nothing asks the home (rule C6).

use std::collections::BTreeMap;

use annals_ids::{EntityId, Epoch, OwnerId};

/// Maximum remembered cell parts; beyond it the lowest ids are evicted and looked up again.
const REMEMBERED: usize = 100_000;

/// Last known owner of each cell part, and the newest epoch seen of each owner.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    cells: BTreeMap<EntityId, OwnerId>,
    /// The same for calls of clients, which are passed on and leave no link here.
    of_clients: BTreeMap<EntityId, OwnerId>,
    epochs: BTreeMap<OwnerId, Epoch>,
}

impl Routes {
    /// Last known owner of a cell part.
    #[must_use]
    pub(crate) fn cell(&self, entity: EntityId) -> Option<OwnerId> {
        self.cells.get(&entity).copied()
    }

    /// Records that a cell part is on owner `to`.
    pub(crate) fn moved(&mut self, entity: EntityId, to: OwnerId) {
        insert(&mut self.cells, entity, to);
    }

    /// Last known owner of a cell part that clients call.
    #[must_use]
    pub(crate) fn of_client(&self, entity: EntityId) -> Option<OwnerId> {
        self.of_clients.get(&entity).or(self.cells.get(&entity)).copied()
    }

    /// Records that a cell part that a client has called is on owner `to`. Nobody else is sent there: this owner may be
    /// the home, and the part may have ended.
    pub(crate) fn moved_for_clients(&mut self, entity: EntityId, to: OwnerId) {
        insert(&mut self.of_clients, entity, to);
    }

    /// Removes a route that proved wrong.
    pub(crate) fn forget(&mut self, entity: EntityId) {
        self.cells.remove(&entity);
    }

    /// Whether to accept a message: its sender's epoch is the highest seen of that owner (rule E7).
    pub(crate) fn admits(&mut self, owner: OwnerId, epoch: Epoch) -> bool {
        let newest = self.epochs.entry(owner).or_default();
        *newest = epoch.max(*newest);
        epoch == *newest
    }
}

fn insert(routes: &mut BTreeMap<EntityId, OwnerId>, entity: EntityId, to: OwnerId) {
    routes.insert(entity, to);
    if routes.len() > REMEMBERED {
        routes.pop_first();
    }
}
