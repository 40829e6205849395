//! A destroyed entity leaves nothing behind. A cell part is real nowhere if its base part was destroyed, even in
//! mid-teleport, or if any cell requested its destruction, wherever the part was.

use std::collections::BTreeSet;

use annals_event::{Body, Call};
use annals_ids::{Address, EntityId, Part};

use crate::{archive::Archive, world::World};

/// Checks that no destroyed cell part is still real.
pub fn check(_world: &World, archive: &Archive) -> Vec<String> {
    let of = |part| archive.states.values().filter(move |state| state.part() == Some(part));
    let bases: BTreeSet<EntityId> = of(Part::Base)
        .flat_map(|state| state.entities.keys().copied())
        .collect();
    let doomed = doomed(archive);
    let mut wrong = Vec::new();
    for state in of(Part::Cell) {
        for (entity, image) in &state.entities {
            let is_based = image.cell().is_some_and(|cell| cell.based);
            if is_based && !bases.contains(entity) {
                wrong.push(format!(
                    "the cell part of entity {entity} on owner {} outlived its base part",
                    state.owner
                ));
            }
            if doomed.contains(entity) {
                wrong.push(format!(
                    "the cell part of entity {entity} on owner {} was to end",
                    state.owner
                ));
            }
        }
    }
    wrong
}

/// Cell parts whose destruction another part requested.
fn doomed(archive: &Archive) -> BTreeSet<EntityId> {
    let events = archive.logs.values().flatten().flat_map(|batch| &batch.events);
    let asked = events.filter_map(|event| match &event.body {
        Body::Called {
            to: Address::Cell(entity),
            call: Call::DestroyCell,
            ..
        } => Some(*entity),
        _ => None,
    });
    asked.collect()
}

/// Number of destructions requested from another owner, or from the base part.
#[must_use]
pub fn count(archive: &Archive) -> usize {
    doomed(archive).len()
}
