//! Space data converges and never goes backwards: at rest all owners of a space, and the clients in it, hold the state
//! that follows from all logs; and while a client's entity is in a space, each update of a key is newer than the
//! previous one.

use std::collections::BTreeMap;

use annals_client::Event;
use annals_event::{Body, SpaceData, SpaceVersion};
use annals_ids::SpaceId;

use crate::{archive::Archive, world::World};

/// Checks space data on owners and clients.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let logged = logged(archive);
    let mut wrong = owners(world, archive, &logged);
    for (number, client) in world.clients.iter().enumerate() {
        let aged = aged(&client.events).into_iter();
        wrong.extend(aged.map(|what| format!("client {number} received {what}")));
        let Some((space, data)) = client
            .core
            .view(annals_ids::Part::Cell)
            .space()
            .filter(|_| client.core.is_playing())
        else {
            continue;
        };
        let there = logged.get(&space).cloned().unwrap_or_default();
        if *data != there {
            wrong.push(format!(
                "client {number} holds {data:?} of space {space}, where {there:?} is"
            ));
        }
    }
    wrong
}

/// Space data folded from all logs.
fn logged(archive: &Archive) -> BTreeMap<SpaceId, SpaceData> {
    let mut all: BTreeMap<SpaceId, SpaceData> = BTreeMap::new();
    for event in archive.logs.values().flatten().flat_map(|batch| &batch.events) {
        if let Body::SpaceData { space, entry } = &event.body {
            all.entry(*space).or_default().take(entry.clone());
        }
    }
    all
}

fn owners(world: &World, archive: &Archive, logged: &BTreeMap<SpaceId, SpaceData>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, space) in &world.map.spaces {
        let there = logged.get(id).cloned().unwrap_or_default();
        for area in &space.cells {
            let held = archive.states.get(&area.owner).and_then(|state| state.spaces.get(id));
            let held = held.cloned().unwrap_or_default();
            if held != there {
                let owner = area.owner;
                wrong.push(format!(
                    "owner {owner} holds {held:?} of space {id}, where {there:?} is"
                ));
            }
        }
    }
    wrong
}

/// Updates of a key that were not newer than an earlier one, within one stay of the client's entity in a space.
fn aged(events: &[Event]) -> Vec<String> {
    let mut known: BTreeMap<u16, SpaceVersion> = BTreeMap::new();
    let mut wrong = Vec::new();
    for event in events {
        match event {
            Event::SpaceEntered { .. } | Event::Controls { .. } | Event::Connected { .. } => known.clear(),
            Event::SpaceDataChanged { key, version, .. } => {
                let before = known.insert(*key, *version);
                if before >= Some(*version) {
                    wrong.push(format!("{event:?} after {before:?}"));
                }
            }
            _ => {}
        }
    }
    wrong
}
