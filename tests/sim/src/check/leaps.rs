//! Teleports: each request to enter another space either succeeds or is reported as failed, exactly once, whichever
//! processes crashed meanwhile.

use annals_def::Value;
use annals_event::Body;
use annals_ids::Part;

use crate::{archive::Archive, world::World};

/// Checks that each teleport request has one outcome.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let entity_type = world.schema.type_named("Avatar").expect("the game has avatars");
    let on_leap = entity_type.client_method_named("onLeap").expect("it is ours").index;
    let leaps = entity_type.property_named("leaps").expect("it is ours").index;
    let mut wrong = Vec::new();
    let alive = archive.states.values().filter(|state| state.part() == Some(Part::Cell));
    for (entity, image) in alive.flat_map(|state| &state.entities) {
        let history = archive.histories.get(&(*entity, Part::Cell)).into_iter().flatten();
        let wished = history.flat_map(|(_, events)| events).filter(|event| {
            image.type_id == entity_type.id && matches!(&event.body, Body::Invoked { method, .. } if *method == on_leap)
        });
        let wished = Value::UInt(wished.count() as u64);
        if image.type_id == entity_type.id && image.properties.get(&leaps) != Some(&wished) {
            let received = image.properties.get(&leaps);
            wrong.push(format!(
                "entity {entity} requested {wished} teleports and received the results {received:?}"
            ));
        }
        if !image
            .links
            .awaiting
            .keys()
            .all(|(to, _)| to.entity().is_some() || *to == annals_node::inquiry::DATABASE)
        {
            wrong.push(format!(
                "entity {entity} still waits for a hand-over: {:?}",
                image.links.awaiting
            ));
        }
    }
    wrong
}
