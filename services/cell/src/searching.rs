//! The search for entities that a client knows and its cell does not (rule V3).
//!
//! A cell receives ghosts of what is near from its neighbours. But an entity that is being handed over is for a moment
//! held by an owner that, by the newest map, need not be near any more; and that owner may be taken over just then.

use annals_ids::EntityId;
use annals_node::OwnerContext;
use annals_wire::bus::{GhostMessage, Message};

use crate::{role::CellRole, sampling::SECOND, witness::Witness};

/// Beat of each second at which others are asked.
const SEARCHING: u64 = 3;
const _: () = assert!(SEARCHING < SECOND);

impl CellRole {
    /// Once a second, if an entity is missed: asks all owners with an area in a space of this owner. They answer with
    /// the list of their ghosts here.
    pub(crate) fn search(&self, cx: &mut OwnerContext) {
        if self.sampling.beat() % SECOND != SEARCHING {
            return;
        }
        let missed: Option<EntityId> = self.witnesses.values().find_map(Witness::missed);
        let Some(entity) = missed else { return };
        for owner in self.territory.space_peers() {
            let have = None;
            cx.tell(*owner, Message::Ghost(GhostMessage::Ask { entity, have }));
        }
    }
}
