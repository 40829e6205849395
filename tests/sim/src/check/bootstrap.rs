//! The realm bootstraps once, with one entity, however many of its processes crashed.

use annals_ids::{EntityId, OwnerId};

use crate::{archive::Archive, world::World};

/// Checks that the realm was bootstrapped once.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let begun = archive.states.iter();
    let begun: Vec<(OwnerId, EntityId)> = begun
        .filter_map(|(owner, state)| Some((*owner, state.bootstrap?)))
        .collect();
    match begun[..] {
        [(owner, entity)] if archive.states[&owner].entities.contains_key(&entity) => Vec::new(),
        [(owner, entity)] => vec![format!(
            "the realm began on owner {owner} with entity {entity}, which is gone"
        )],
        _ => vec![format!(
            "the realm began {} times: {begun:?}; the map says on {:?}",
            begun.len(),
            world.map.bootstrap
        )],
    }
}
