//! No shown event is lost: every event that a client was shown is in the archive, with the same number and value.

use annals_client::{Event, What};
use annals_event::{Audience, Body};
use annals_ids::{EntityId, Part};
use annals_wire::client::change_hash;

use crate::{archive::Archive, world::World};

/// Looks up every shown event in the archive.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, client) in world.clients.iter().enumerate() {
        let mut viewer = None;
        for event in &client.events {
            let found = match event {
                Event::Connected { entity, .. } | Event::Controls { entity, .. } => {
                    viewer = Some(*entity);
                    Ok(())
                }
                Event::Shown(showing) => {
                    let event = archive.histories.get(&(showing.entity, showing.part));
                    let event = event.and_then(|history| history.get(&showing.number)?.first());
                    match event {
                        None => Err("it is not in the archive".to_owned()),
                        Some(event) => same(world, archive, (viewer, showing), event),
                    }
                }
                Event::Refreshed { part, entity, upto, .. } => {
                    let newest = archive
                        .histories
                        .get(&(*entity, *part))
                        .and_then(|history| history.keys().next_back());
                    let newest = newest.copied().unwrap_or_default();
                    if *upto <= newest {
                        Ok(())
                    } else {
                        Err(format!("the archive ends at {newest}"))
                    }
                }
                _ => Ok(()),
            };
            if let Err(why) = found {
                wrong.push(format!("client {number} was shown {event:?}: {why}"));
            }
        }
        let counters = client.core.counters();
        if counters.malformed > 0 {
            wrong.push(format!(
                "client {number} was sent {} malformed things",
                counters.malformed
            ));
        }
    }
    wrong
}

fn same(
    world: &World,
    archive: &Archive,
    (viewer, showing): (Option<EntityId>, &annals_client::Showing),
    event: &annals_event::Event,
) -> Result<(), String> {
    let type_id = match showing.part {
        Part::Cell => archive.cells.get(&showing.entity).map(|creation| creation.type_id),
        Part::Base => world.schema.type_named("Avatar").map(|found| found.id),
    };
    let entity_type = type_id.and_then(|type_id| world.schema.entity_type(type_id));
    let entity_type = entity_type.ok_or("it was never created")?;
    match (&showing.what, &event.body) {
        (What::Changed { property, change, .. }, Body::Changed { member, change: logged }) => {
            let logged = logged.change();
            let data_type = &entity_type
                .property(*member)
                .ok_or("the archive names no property")?
                .data_type;
            let same = property == member && change == logged;
            if same && Some(showing.hash) == change_hash(data_type, logged) {
                Ok(())
            } else {
                Err(format!("the archive has {logged:?} there"))
            }
        }
        // The log has no value for an account view; `accounts` checks those.
        (What::Changed { property, change, .. }, Body::Restated { member }) => {
            let data_type = &entity_type
                .property(*member)
                .ok_or("the archive names no property")?
                .data_type;
            if property == member && Some(showing.hash) == change_hash(data_type, change) {
                Ok(())
            } else {
                Err("the archive has the view of another account there".to_owned())
            }
        }
        (
            What::Called { method, args },
            Body::Invoked {
                method: logged,
                args: values,
                audience,
            },
        ) => {
            if let Audience::Of(meant) = audience
                && viewer.is_some_and(|viewer| viewer != *meant)
            {
                return Err(format!("it is for the client of entity {meant} alone"));
            }
            if method == logged && args == values {
                Ok(())
            } else {
                Err("the archive has another call there".to_owned())
            }
        }
        (What::Replied { .. }, Body::Replied { .. }) => same_answer(showing, &event.body),
        (_, body) => {
            let (entity, part): (EntityId, Part) = (showing.entity, showing.part);
            let length = archive
                .histories
                .get(&(entity, part))
                .map_or(0, std::collections::BTreeMap::len);
            Err(format!("the archive has \"{}\" there, of {length} events", body.name()))
        }
    }
}

fn same_answer(showing: &annals_client::Showing, body: &Body) -> Result<(), String> {
    let (
        What::Replied {
            part,
            call,
            method,
            outcome,
        },
        Body::Replied {
            to: _,
            number,
            method: logged,
            outcome: values,
        },
    ) = (&showing.what, body)
    else {
        return Err("it is no answer".to_owned());
    };
    if *part == showing.part && call == number && method == logged && outcome == values {
        Ok(())
    } else {
        Err("the archive has another answer there".to_owned())
    }
}

/// Number of calls of client methods that one client alone is shown.
#[must_use]
pub fn count_directed(archive: &Archive) -> usize {
    let events = archive.logs.values().flatten().flat_map(|batch| &batch.events);
    let is_directed = |body: &Body| {
        matches!(
            body,
            Body::Invoked {
                audience: Audience::Of(_),
                ..
            }
        )
    };
    events.filter(|event| is_directed(&event.body)).count()
}
