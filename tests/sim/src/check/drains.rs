//! Where nothing else goes wrong, planned hand-overs interrupt nobody (D9): clients go along to the next holder.

use annals_client::Event;

use crate::{
    archive::Archive,
    fault::{Blow, Kind},
    world::World,
};

/// Checks a run whose only faults are drains, all of whose owners were handed over in time.
pub fn check(world: &World, _: &Archive) -> Vec<String> {
    let is_drain = |kind: Kind| kind == Kind::Blow(Blow::Drain);
    let is_calm = world.plan.faults.iter().all(|fault| is_drain(fault.kind()));
    // Players who come and go break their connections themselves.
    if !is_calm || world.plan.visits || world.unfollowed > 0 {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    for (client, played) in world.clients.iter().enumerate() {
        let lost = played
            .told
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
