//! Where nothing else goes wrong, planned hand-overs interrupt nobody, even if the director is replaced meanwhile (D9):
//! clients switch to the next holder.

use annals_client::Event;

use crate::{
    archive::Archive,
    fault::{Blow, Kind},
    world::World,
};

/// Whether processes were only drained or replaced, and all owners were handed over in time.
#[must_use]
pub fn is_calm(world: &World) -> bool {
    let is_calm = |kind: Kind| matches!(kind, Kind::Blow(Blow::Drain | Blow::ReplaceDirector));
    let is_calm = world.plan.faults.iter().all(|fault| is_calm(fault.kind()));
    // Players who come and go break their connections themselves.
    is_calm && !world.plan.visits && world.unfollowed == 0 && world.released > 0
}

/// Checks a run in which nothing else went wrong.
pub fn check(world: &World, _: &Archive) -> Vec<String> {
    if !is_calm(world) {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    for (client, played) in world.clients.iter().enumerate() {
        let lost = played
            .events
            .iter()
            .filter(|event| matches!(event, Event::Lost(_)))
            .count();
        let resumed = played.core.counters().resumed;
        if lost > 0 || resumed > 0 {
            wrong.push(format!(
                "client {client} lost {lost} connections and resumed {resumed} times while processes drained"
            ));
        }
    }
    wrong
}
