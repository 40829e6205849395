//! Downloads arrive as they were sent, and each ends once (C18): what behaviour was notified of is at a client.

use std::collections::{BTreeMap, BTreeSet};

use annals_client::{DownloadId, Event};
use annals_def::{Edit, Value};
use annals_event::{Body, Subject};
use annals_ids::{CallNumber, EntityId, Part};
use annals_node::download::DOWNLOADS;

use crate::{
    archive::Archive,
    game::{AVATAR, FETCHED, downloaded_content},
    world::World,
};

/// Checks what clients received and what was recorded.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut arrived: BTreeMap<EntityId, BTreeSet<CallNumber>> = BTreeMap::new();
    for (client, played) in world.clients.iter().enumerate() {
        let mut own = BTreeSet::new();
        for event in &played.events {
            let Event::Downloaded {
                id,
                description,
                content,
            } = event
            else {
                continue;
            };
            if *content != downloaded_content(description) {
                wrong.push(format!("client {client} has other content of download {description}"));
            }
            if !own.insert(*id) {
                wrong.push(format!("client {client} has download {description} twice"));
            }
            arrived.entry(id.entity).or_default().insert(id.number);
        }
    }
    let fetched = fetched(world, archive);
    for (entity, count) in &fetched {
        let here = arrived.get(entity).map_or(0, BTreeSet::len) as u64;
        if here < *count {
            wrong.push(format!(
                "entity {entity} was notified that {count} downloads arrived, and {here} have"
            ));
        }
    }
    wrong.extend(ends(archive));
    wrong
}

/// Each download ends once, with its entity at the latest.
fn ends(archive: &Archive) -> Vec<String> {
    let mut open: BTreeMap<DownloadId, u32> = BTreeMap::new();
    let mut wrong = Vec::new();
    for event in archive.logs.values().flatten().flat_map(|batch| &batch.events) {
        let Subject::Entity(entity, Part::Base) = event.subject else {
            continue;
        };
        match event.body {
            Body::Awaits {
                to: DOWNLOADS, number, ..
            } => {
                open.insert(DownloadId { entity, number }, 1);
            }
            Body::Resumed { to: DOWNLOADS, number } => {
                let id = DownloadId { entity, number };
                if open.remove(&id).is_none() {
                    wrong.push(format!("download {number} of entity {entity} ended twice"));
                }
            }
            _ => {}
        }
    }
    for state in archive.states.values() {
        for (entity, image) in &state.entities {
            let kept = image.links.sent.get(&DOWNLOADS).map(|sent| sent.unconfirmed.len());
            let waits = image.links.awaiting.keys().filter(|(to, _)| *to == DOWNLOADS).count();
            if waits > 0 || kept.is_some_and(|kept| kept > 0) {
                wrong.push(format!(
                    "entity {entity} still has {waits} downloads, and {kept:?} calls of some"
                ));
            }
        }
    }
    wrong
}

/// Number of downloads of each player that were reported to behaviour as arrived.
fn fetched(world: &World, archive: &Archive) -> BTreeMap<EntityId, u64> {
    let avatar = world.schema.type_named(AVATAR).expect("there are avatars");
    let member = avatar.property_named(FETCHED).expect("they count downloads").index;
    let mut fetched = BTreeMap::new();
    for event in archive.logs.values().flatten().flat_map(|batch| &batch.events) {
        let (
            Subject::Entity(entity, Part::Base),
            Body::Changed {
                member: changed,
                change,
            },
        ) = (event.subject, &event.body)
        else {
            continue;
        };
        let is_avatar = archive.cells.get(&entity).is_none_or(|cell| cell.type_id == avatar.id);
        if let (true, Edit::Set(Value::UInt(count))) = (is_avatar && *changed == member, &change.change().edit) {
            fetched.insert(entity, *count);
        }
    }
    fetched
}

/// Number of downloads that were reported to behaviour as arrived.
#[must_use]
pub fn count(world: &World, archive: &Archive) -> u64 {
    fetched(world, archive).values().sum()
}
