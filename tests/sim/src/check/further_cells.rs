//! Entities have several cell parts, one after the other (rule C17). The calls between the base part of a pet and its
//! cell parts are numbered, and so counted: a call of a cell part is neither lost nor repeated, whichever cell part takes
//! the answer.

use std::collections::BTreeMap;

use annals_event::{Body, Subject};
use annals_ids::{EntityId, Part};

use crate::{
    archive::Archive,
    game::{FAULTS, PET},
    world::World,
};

/// Checks that no pet counted a call that was missing or repeated.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let pet = world.schema.type_named(PET).expect("there are pets");
    let index = |name| pet.property_named(name).map(|property| property.index);
    let faults = FAULTS.map(|name| (name, index(name).expect("pets count calls")));
    let is_pet = |entity: &EntityId| archive.cells.get(entity).is_some_and(|cell| cell.type_id == pet.id);
    let mut wrong = Vec::new();
    for (owner, log) in &archive.logs {
        for event in log.iter().flat_map(|batch| &batch.events) {
            if let (Subject::Entity(entity, _), Body::Changed { member, .. }) = (event.subject, &event.body)
                && is_pet(&entity)
                && let Some((name, _)) = faults.iter().find(|(_, fault)| fault == member)
            {
                wrong.push(format!(
                    "entity {entity} on owner {owner} counted a call that was {name}"
                ));
            }
        }
    }
    for state in archive.states.values().filter(|state| !state.ending.is_empty()) {
        wrong.push(format!(
            "cell parts that ended on owner {} have not returned",
            state.owner
        ));
    }
    wrong
}

/// Number of cell parts that continue a former one, and how many of them began on another owner than that one.
#[must_use]
pub fn count(archive: &Archive) -> (usize, usize) {
    let mut ended = BTreeMap::new();
    let mut count = (0, 0);
    for (owner, number) in &archive.order {
        let batch = archive.logs[owner].iter().find(|batch| batch.header.number == *number);
        for event in batch.into_iter().flat_map(|batch| &batch.events) {
            match (event.subject, &event.body) {
                (Subject::Entity(entity, Part::Cell), Body::CellEnding) => {
                    ended.insert(entity, *owner);
                }
                (Subject::Entity(entity, Part::Cell), Body::CellCreated(creation)) if creation.former.is_some() => {
                    count.0 += 1;
                    count.1 += usize::from(ended.get(&entity).is_some_and(|before| before != owner));
                }
                _ => {}
            }
        }
    }
    count
}
