//! Clients that are given to other owners (C20): each is answered once, and at rest each session is at one entity, whose
//! base part waits for no answer.

use std::collections::BTreeMap;

use annals_event::{Body, Call, GivenOutcome};
use annals_ids::{EntityId, OwnerId, Part, SessionId};

use crate::{archive::Archive, world::World};

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
        // The wait of a base part for another owner to take its client.
        let own = annals_ids::Address::Owner(image.home);
        if image
            .links
            .awaiting
            .keys()
            .any(|(to, number)| *to == own && number.0 > 2)
        {
            wrong.push(format!("entity {entity} still waits for its client to be taken"));
        }
    }
    let several = entities.into_iter().filter(|(_, at)| at.len() > 1);
    wrong.extend(several.map(|(session, at)| format!("session {session} is at several entities: {at:?}")));
    wrong
}

/// Number of clients that went to another owner.
#[must_use]
pub fn count(archive: &Archive) -> usize {
    let is_taken = |call: &&Call| {
        matches!(
            call,
            Call::ClientTaken {
                outcome: GivenOutcome::Taken { .. },
                ..
            }
        )
    };
    calls(archive).filter(is_taken).count()
}

fn calls(archive: &Archive) -> impl Iterator<Item = &Call> {
    let events = archive.logs.values().flatten().flat_map(|batch| &batch.events);
    events.filter_map(|event| match &event.body {
        Body::Called { call, .. } => Some(call),
        _ => None,
    })
}
