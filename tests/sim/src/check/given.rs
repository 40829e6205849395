//! Clients that are given to other owners (C20): each is answered once, and at rest each session is at one entity, whose
//! base part waits for no answer.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Body, Call, Subject};
use annals_ids::{Address, CallNumber, EntityId, OwnerId, Part, SessionId};

use crate::{archive::Archive, world::World};

/// The numbers of a base part's waits for another owner to take its client, for its end after that, and for a client that
/// another owner has given to it.
const CLIENT_TAKEN: CallNumber = CallNumber(3);
const CLIENT_COMES: CallNumber = CallNumber(5);

/// Checks that each client that was given is at one entity.
pub fn check(_world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    let (mut given, mut answered) = (0, 0);
    for call in calls(archive) {
        match call {
            Call::GiveClient(_) => given += 1,
            Call::ClientTaken { .. } => answered += 1,
            _ => {}
        }
    }
    if given != answered {
        wrong.push(format!(
            "clients were given {given} times, and that was answered {answered} times"
        ));
    }
    let mut entities: BTreeMap<SessionId, Vec<(OwnerId, EntityId)>> = BTreeMap::new();
    let bases = archive.states.values().filter(|state| state.part() == Some(Part::Base));
    for (state, (entity, image)) in bases.flat_map(|state| state.entities.iter().map(move |entry| (state, entry))) {
        if let Some(client) = image.client {
            entities.entry(client.session).or_default().push((state.owner, *entity));
            if client.proxy != state.owner {
                wrong.push(format!(
                    "the client of entity {entity} is behind owner {}",
                    client.proxy
                ));
            }
        }
        let own = Address::Owner(image.home);
        let mut waits = image.links.awaiting.keys().filter(|(to, _)| *to == own);
        if waits.any(|(_, number)| (CLIENT_TAKEN..=CLIENT_COMES).contains(number)) {
            wrong.push(format!(
                "entity {entity} still waits for a client to be taken, or to come"
            ));
        }
    }
    let several = entities.into_iter().filter(|(_, at)| at.len() > 1);
    wrong.extend(several.map(|(session, at)| format!("session {session} is at several entities: {at:?}")));
    wrong
}

/// Number of clients that an entity has expected from another owner, and of those that came.
#[must_use]
pub fn count(archive: &Archive) -> (usize, usize) {
    let (mut given, mut arrived) = (0, 0);
    for (owner, log) in &archive.logs {
        let mut expecting: BTreeSet<EntityId> = BTreeSet::new();
        for event in log.iter().flat_map(|batch| &batch.events) {
            let Subject::Entity(entity, Part::Base) = event.subject else {
                continue;
            };
            match &event.body {
                Body::Awaits { to, number, .. } if *to == Address::Owner(*owner) && *number == CLIENT_COMES => {
                    given += 1;
                    expecting.insert(entity);
                }
                Body::Admitted { .. } if expecting.remove(&entity) => arrived += 1,
                _ => {}
            }
        }
    }
    (given, arrived)
}

fn calls(archive: &Archive) -> impl Iterator<Item = &Call> {
    let events = archive.logs.values().flatten().flat_map(|batch| &batch.events);
    events.filter_map(|event| match &event.body {
        Body::Called { call, .. } => Some(call),
        _ => None,
    })
}
