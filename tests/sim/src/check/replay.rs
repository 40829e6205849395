//! Replay equals live: folding the whole log of each owner gives the state of the running core.

use crate::{archive::Archive, world::World};

/// Compares replayed and live states.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    for (owner, replayed) in &archive.states {
        let cores: Vec<_> = world
            .processes
            .values()
            .filter_map(|process| process.owners.get(owner)?.core.as_ref())
            .filter(|core| core.stopped().is_none())
            .collect();
        let [core] = cores[..] else {
            wrong.push(format!("owner {owner} is held by {} processes at rest", cores.len()));
            continue;
        };
        // The newest heartbeats may not be archived; they do not change state.
        let mut live = core.state().clone();
        if live.tail.event != replayed.tail.event {
            wrong.push(format!(
                "owner {owner} is at event {}, its archive at {}",
                live.tail.event, replayed.tail.event
            ));
            continue;
        }
        (live.tail, live.tick, live.epoch) = (replayed.tail, replayed.tick, replayed.epoch);
        if live.hash() != replayed.hash() {
            wrong.push(format!(
                "owner {owner}: the replayed state is another than the live one"
            ));
        }
    }
    wrong
}
