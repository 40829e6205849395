//! Ghosts converge: at rest every ghost equals its real entity in all properties that ghosts have, and exists wherever
//! one is required.

use annals_event::Place;
use annals_ids::{EntityId, OwnerId};

use crate::{
    archive::Archive,
    world::{Core, World},
};

/// Compares all ghosts with their real entities.
pub fn check(world: &World, _archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    let cells: Vec<_> = world
        .processes
        .values()
        .flat_map(|process| process.owners.values())
        .filter_map(|held| match &held.core {
            Some(Core::Cell(owner)) if owner.stopped().is_none() => Some(owner),
            _ => None,
        })
        .collect();
    let real = |entity: EntityId| cells.iter().find(|owner| owner.state().entities.contains_key(&entity));
    for owner in &cells {
        let here = owner.state().owner;
        for (entity, ghost) in owner.role().ghosts().iter() {
            let Some(holder) = real(entity) else {
                wrong.push(format!(
                    "owner {here} has a ghost of entity {entity}, which is real nowhere"
                ));
                continue;
            };
            let image = &holder.state().entities[&entity];
            if ghost.history() != image.history {
                wrong.push(format!(
                    "owner {here}: ghost of entity {entity} is at {}, the real one at {}",
                    ghost.history(),
                    image.history
                ));
            }
            let driver = image.cell().map(|cell| cell.movement_control.driver);
            if driver != Some(ghost.driver()) {
                wrong.push(format!(
                    "owner {here}: ghost of entity {entity} has the driver {:?}, the real one {driver:?}",
                    ghost.driver()
                ));
            }
            for (member, value) in ghost.properties() {
                if image.properties.get(member) != Some(value) {
                    wrong.push(format!(
                        "owner {here}: ghost of entity {entity} has {value} for property {member}"
                    ));
                }
            }
        }
    }
    for holder in &cells {
        for (entity, place) in holder.cx().places() {
            let appeal = holder.cx().entity_type(entity).map_or(0.0, |found| found.appeal_radius);
            for neighbour in near(world, holder.state().owner, (place, appeal)) {
                let there = cells.iter().find(|owner| owner.state().owner == neighbour);
                if there.is_some_and(|owner| owner.role().ghosts().get(entity).is_none()) {
                    wrong.push(format!(
                        "entity {entity} has no ghost on owner {neighbour}, near which it stands"
                    ));
                }
            }
        }
    }
    wrong
}

fn near(world: &World, me: OwnerId, (place, appeal): (Place, f32)) -> Vec<OwnerId> {
    let Some(space) = world.map.spaces.get(&place.space) else {
        return Vec::new();
    };
    let cells = space
        .cells
        .iter()
        .filter(|cell| cell.owner != me && cell.distance(place.position) <= space.ghost_distance + appeal);
    cells.map(|cell| cell.owner).collect()
}
