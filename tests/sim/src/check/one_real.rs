//! An entity part is real on one owner at a time: told from the archive, event by event.

use std::collections::BTreeMap;

use annals_event::{Body, Subject};
use annals_ids::{CallNumber, EntityId, OwnerId, Part};

use crate::{archive::Archive, world::World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Real(OwnerId),
    UnderWay(OwnerId, OwnerId, CallNumber),
    Gone,
}

/// See the module.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut places: BTreeMap<(EntityId, Part), Place> = BTreeMap::new();
    for (owner, number) in archive.leaves.values() {
        let Some(batch) = archive.logs[owner].iter().find(|batch| batch.header.number == *number) else {
            continue;
        };
        for event in &batch.events {
            let Subject::Entity(entity, part) = event.subject else {
                continue;
            };
            let key = (entity, part);
            let place = places.get(&key).copied();
            let next = match (&event.body, place) {
                (Body::BaseCreated(_) | Body::CellCreated(_), None) => Place::Real(*owner),
                (Body::Offloaded { to, number }, Some(Place::Real(at))) if at == *owner => {
                    Place::UnderWay(at, *to, *number)
                }
                (Body::Onloaded { from, number, .. }, Some(Place::UnderWay(was, to, sent)))
                    if *from == was && to == *owner && *number == sent =>
                {
                    Place::Real(*owner)
                }
                (Body::Returned { to, number }, Some(Place::UnderWay(was, sent_to, sent)))
                    if was == *owner && *to == sent_to && *number == sent =>
                {
                    Place::Real(*owner)
                }
                (Body::Destroyed, Some(Place::Real(at))) if at == *owner => Place::Gone,
                (
                    Body::Offloaded { .. }
                    | Body::Onloaded { .. }
                    | Body::Returned { .. }
                    | Body::Destroyed
                    | Body::BaseCreated(_)
                    | Body::CellCreated(_),
                    place,
                ) => {
                    wrong.push(format!(
                        "{part} of entity {entity}: \"{}\" on owner {owner} while {place:?}",
                        event.body.name()
                    ));
                    continue;
                }
                _ => continue,
            };
            places.insert(key, next);
        }
    }
    unsettled(archive, &places, &mut wrong);
    if world.clients.iter().all(|client| client.told.is_empty()) {
        wrong.push("nobody was ever shown anything: the run tests nothing".to_owned());
    }
    wrong
}

/// At the end of a run nothing is under way, and each real part is held by one owner.
fn unsettled(archive: &Archive, places: &BTreeMap<(EntityId, Part), Place>, wrong: &mut Vec<String>) {
    let underway = places.iter().filter(|(_, place)| matches!(place, Place::UnderWay(..)));
    wrong.extend(
        underway.map(|((entity, part), place)| format!("{part} of entity {entity} ended up nowhere: {place:?}")),
    );
    for ((entity, part), place) in places {
        let holders = archive
            .states
            .values()
            .filter(|state| state.part() == Some(*part) && state.entities.contains_key(entity))
            .count();
        let expected = usize::from(matches!(place, Place::Real(_)));
        if holders != expected {
            wrong.push(format!(
                "{part} of entity {entity}: {holders} owners have it, {place:?}"
            ));
        }
    }
}
