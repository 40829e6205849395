//! Entities are created on other owners once (C15): each request in the archive created one entity, and was answered
//! once, with that entity.

use std::collections::BTreeMap;

use annals_director::read_owners;
use annals_event::{Body, Call, Subject};
use annals_ids::{CallNumber, EntityId, OwnerId, OwnerKind};
use annals_store::immediate;

use crate::{archive::Archive, game::EGG, world::World};

/// Checks that each request created one entity, and that no other entity of that type was created.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let egg = world.schema.type_named(EGG).expect("the game has eggs").id;
    let mut requests: BTreeMap<(EntityId, CallNumber), usize> = BTreeMap::new();
    let mut answers: BTreeMap<(EntityId, CallNumber), Vec<EntityId>> = BTreeMap::new();
    let mut created: BTreeMap<EntityId, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for event in archive.logs.values().flatten().flat_map(|batch| &batch.events) {
        match (&event.body, event.subject) {
            (Body::BaseCreated(creation), Subject::Entity(entity, _)) if creation.type_id == egg => {
                *created.entry(entity).or_default() += 1;
            }
            (Body::Called { call, .. }, _) => match call {
                Call::CreateBase(wanted) => *requests.entry((wanted.by, wanted.of)).or_default() += 1,
                Call::Created { by, of, created } => match created {
                    Ok((entity, _)) => answers.entry((*by, *of)).or_default().push(*entity),
                    Err(why) => wrong.push(format!("the request {of} of entity {by} was refused: {why}")),
                },
                _ => {}
            },
            _ => {}
        }
    }
    for ((by, of), times) in &requests {
        let answered = answers.get(&(*by, *of)).cloned().unwrap_or_default();
        let once = answered.iter().all(|entity| created.get(entity) == Some(&1));
        if *times != 1 || answered.len() != 1 || !once {
            wrong.push(format!(
                "entity {by} requested an entity {times} times under number {of}, and was answered {answered:?}"
            ));
        }
    }
    let answered: usize = answers.values().map(Vec::len).sum();
    if created.len() != answered || requests.len() != answers.len() {
        wrong.push(format!(
            "{} requests for entities on other owners had {answered} answers, and created {} entities",
            requests.len(),
            created.len()
        ));
    }
    wrong
}

/// Number of entities that were created on request of cell parts.
#[must_use]
pub fn count_by_cells(world: &World, archive: &Archive) -> usize {
    let owners = immediate(read_owners(&world.truth())).expect("the store in memory answers");
    let is_cell = |owner: &OwnerId| owners.get(owner).is_some_and(|record| record.kind == OwnerKind::Cell);
    let of_cells = archive.logs.iter().filter(|(owner, _)| is_cell(owner));
    let events = of_cells.flat_map(|(_, log)| log).flat_map(|batch| &batch.events);
    let is_request = |body: &Body| {
        matches!(
            body,
            Body::Called {
                call: Call::CreateBase(_),
                ..
            }
        )
    };
    events.filter(|event| is_request(&event.body)).count()
}

/// Number of entities that were created on request.
#[must_use]
pub fn count(archive: &Archive) -> usize {
    let events = archive.logs.values().flatten().flat_map(|batch| &batch.events);
    let is_answer = |body: &Body| {
        matches!(
            body,
            Body::Called {
                call: Call::Created { created: Ok(_), .. },
                ..
            }
        )
    };
    events.filter(|event| is_answer(&event.body)).count()
}
