//! The search for whom a client knows and its cell does not (rule V3).
//!
//! What is near a cell it hears of from its neighbours. But an entity that is being handed over is for a moment held by an owner
//! that, by the newest map, need not be near any more; and that one may be taken over just then.

use annals_ids::EntityId;
use annals_node::{Desk, time::Mono};
use annals_wire::bus::{GhostMessage, Message};

use crate::{role::CellRole, sampling::SECOND, witness::Witness};

/// The beat of the second at which others are asked.
const SEARCHING: u64 = 3;
const _: () = assert!(SEARCHING < SECOND);

/// When whoever has been silent for longest said what it haunts here; `None` if somebody has never done so.
#[derive(Clone, Copy)]
pub(crate) struct LastHeard {
    /// Of the neighbours.
    pub(crate) neighbours: Option<Mono>,
    /// Of all who have an area in a space of this owner.
    pub(crate) fellows: Option<Mono>,
}

impl CellRole {
    pub(crate) fn last_heard(&self, desk: &Desk) -> LastHeard {
        let now = desk.now().mono;
        LastHeard {
            neighbours: self.ghosts.all_heard(now, self.territory.neighbours()),
            fellows: self.ghosts.all_heard(now, self.territory.fellows()),
        }
    }

    /// Once a second, if somebody is missed: asks all who have an area in a space of this owner. They tell what they haunt here.
    pub(crate) fn search(&self, desk: &mut Desk) {
        if self.sampling.beat() % SECOND != SEARCHING {
            return;
        }
        let missed: Option<EntityId> = self.witnesses.values().find_map(Witness::missed);
        let Some(entity) = missed else { return };
        for owner in self.territory.fellows() {
            let have = None;
            desk.tell(*owner, Message::Ghost(GhostMessage::Ask { entity, have }));
        }
    }
}
