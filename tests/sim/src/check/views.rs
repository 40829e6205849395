//! Views converge: at rest each entity in a client's view equals the entity itself, down to every part of each
//! property.

use annals_def::Property;
use annals_event::Driver;
use annals_ids::{EntityId, Part};

use crate::{
    archive::Archive,
    world::{SimClient, World},
};

/// Compares views with entities.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, client) in world.clients.iter().enumerate() {
        let Some((own, _)) = client.core.controls().filter(|_| client.core.is_playing()) else {
            continue;
        };
        for part in [Part::Base, Part::Cell] {
            for entity in client.core.view(part).entities().keys() {
                let seen = looked_at(world, archive, client, (*entity, part), *entity == own);
                wrong.extend(seen.into_iter().map(|what| format!("client {number} sees {what}")));
            }
        }
    }
    wrong
}

fn looked_at(
    world: &World,
    archive: &Archive,
    client: &SimClient,
    (entity, part): (EntityId, Part),
    is_own: bool,
) -> Vec<String> {
    let states = archive.states.values().filter(|state| state.part() == Some(part));
    let Some(image) = states.filter_map(|state| state.entities.get(&entity)).next() else {
        return vec![format!("entity {entity}, of which there is no {part} part")];
    };
    let driven = image.cell().filter(|cell| {
        let drives = match cell.movement_control.driver {
            Driver::Client => is_own,
            Driver::Server => false,
            Driver::ClientOf(other) => client.core.controls().is_some_and(|(own, _)| own == other),
        };
        client.core.drives(entity) != drives
    });
    let driven = driven.map(|cell| {
        format!(
            "another driver of entity {entity} than {:?}",
            cell.movement_control.driver
        )
    });
    let entity_type = world
        .schema
        .entity_type(image.type_id)
        .expect("the game's types are the schema's");
    let is_shown = |property: &&Property| {
        let to = property.distribution;
        if is_own {
            to.to_own_client()
        } else {
            to.to_other_clients()
        }
    };
    let shown = entity_type.properties.iter().filter(is_shown);
    let other = shown.filter_map(|property| {
        let real = image.value(property)?;
        let seen = client.core.property(entity, &property.name)?;
        (*seen != *real).then(|| format!("{seen} as {} of entity {entity}, which is {real}", property.name))
    });
    other.chain(driven).collect()
}
