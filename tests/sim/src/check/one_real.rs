//! An entity part is real on one owner at a time, checked event by event from the archive.

use std::collections::BTreeMap;

use annals_event::{Batch, Body, Call, CellCreation, Event, Subject};
use annals_ids::{Address, CallNumber, EntityId, OwnerId, Part};

use crate::{
    archive::Archive,
    fault::{Blow, Kind},
    world::World,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartState {
    Real(OwnerId),
    UnderWay(OwnerId, OwnerId, CallNumber),
    /// About to end here, with the number of its last call to its base part.
    Ending(OwnerId, CallNumber),
    /// Ended, with that number; 0 without a base part.
    Gone(CallNumber),
}

/// Where each part is, as of the events processed so far.
type Places = BTreeMap<(EntityId, Part), PartState>;

/// Checks that no part is real on two owners.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut places = Places::new();
    let has_lost = [Blow::LoseTail, Blow::LoseMessage, Blow::TornWrite]
        .iter()
        .any(|blow| world.struck.contains_key(&Kind::Blow(*blow)));
    // Nor is there an order between streams (rule T3).
    if has_lost || world.plan.shards > 1 {
        in_causal_order(archive, &mut places, &mut wrong);
    } else {
        in_archived_order(archive, &mut places, &mut wrong);
    }
    unsettled(archive, &places, &mut wrong);
    if world.clients.iter().all(|client| client.events.is_empty()) {
        wrong.push("no event was shown: the run tests nothing".to_owned());
    }
    wrong
}

/// As long as the log loses nothing, archive order is a causal order (rule F5).
fn in_archived_order(archive: &Archive, places: &mut Places, wrong: &mut Vec<String>) {
    for (owner, number) in &archive.order {
        let batch = archive.logs[owner].iter().find(|batch| batch.header.number == *number);
        for event in batch.into_iter().flat_map(|batch| &batch.events) {
            wrong.extend(follow(*owner, event, places).err());
        }
    }
}

/// A batch that was put back after a loss is archived after its consequences. In this case the logs are processed side
/// by side, each in its own order; a log waits while its next event depends on one that no other log has reached.
fn in_causal_order(archive: &Archive, places: &mut Places, wrong: &mut Vec<String>) {
    let events = |log: &'_ Vec<Batch>| {
        log.iter()
            .flat_map(|batch| batch.events.clone())
            .collect::<Vec<Event>>()
    };
    let mut logs: Vec<(OwnerId, Vec<Event>, usize)> = archive
        .logs
        .iter()
        .map(|(owner, log)| (*owner, events(log), 0))
        .collect();
    let mut goes_on = true;
    while goes_on {
        goes_on = false;
        for (owner, events, at) in &mut logs {
            while events
                .get(*at)
                .is_some_and(|event| follow(*owner, event, places).is_ok())
            {
                *at += 1;
                goes_on = true;
            }
        }
    }
    for (owner, events, at) in logs {
        if let Some(event) = events.get(at) {
            wrong.extend(follow(owner, event, places).err());
        }
    }
}

/// Applies an event, if its preconditions hold.
fn follow(owner: OwnerId, event: &Event, places: &mut Places) -> Result<(), String> {
    let Subject::Entity(entity, part) = event.subject else {
        return Ok(());
    };
    let key = (entity, part);
    let place = places.get(&key).copied();
    let next = match (&event.body, place) {
        (Body::BaseCreated(_), None) => PartState::Real(owner),
        (Body::CellCreated(creation), None) if creation.former.is_none() => PartState::Real(owner),
        // A further cell part, after the former one has ended.
        (Body::CellCreated(creation), Some(PartState::Gone(last))) if last == last_placed(creation) => {
            PartState::Real(owner)
        }
        (
            Body::Called {
                number,
                call: Call::Placed(None),
                ..
            },
            Some(PartState::Real(at)),
        ) if at == owner => PartState::Ending(owner, *number),
        (Body::Offloaded { to, number }, Some(PartState::Real(at))) if at == owner => {
            PartState::UnderWay(at, *to, *number)
        }
        (Body::Onloaded { from, number, .. }, Some(PartState::UnderWay(was, to, sent)))
            if *from == was && to == owner && *number == sent =>
        {
            PartState::Real(owner)
        }
        (Body::Returned { to, number }, Some(PartState::UnderWay(was, sent_to, sent)))
            if was == owner && *to == sent_to && *number == sent =>
        {
            PartState::Real(owner)
        }
        (Body::Destroyed, Some(PartState::Real(at))) if at == owner => PartState::Gone(CallNumber(0)),
        (Body::Destroyed, Some(PartState::Ending(at, last))) if at == owner => PartState::Gone(last),
        (
            Body::Offloaded { .. }
            | Body::Onloaded { .. }
            | Body::Returned { .. }
            | Body::Destroyed
            | Body::BaseCreated(_)
            | Body::CellCreated(_),
            place,
        ) => {
            return Err(format!(
                "{part} of entity {entity}: \"{}\" on owner {owner} while {place:?}",
                event.body.name()
            ));
        }
        _ => return Ok(()),
    };
    places.insert(key, next);
    Ok(())
}

/// The last call of the former cell part to its base part, which reported its end.
fn last_placed(creation: &CellCreation) -> CallNumber {
    let links = creation.former.as_ref().map(|former| &former.links);
    let sent = links.and_then(|links| links.sent.get(&Address::Base(creation.entity)));
    sent.map_or(CallNumber(u64::MAX), |sent| sent.last)
}

/// At the end of a run nothing is in transit, and each real part is on one owner.
fn unsettled(archive: &Archive, places: &Places, wrong: &mut Vec<String>) {
    let underway = places
        .iter()
        .filter(|(_, place)| matches!(place, PartState::UnderWay(..)));
    wrong.extend(
        underway.map(|((entity, part), place)| format!("{part} of entity {entity} ended up nowhere: {place:?}")),
    );
    for ((entity, part), place) in places {
        let holders = archive
            .states
            .values()
            .filter(|state| state.part() == Some(*part) && state.entities.contains_key(entity))
            .count();
        let expected = usize::from(matches!(place, PartState::Real(_)));
        if holders != expected {
            wrong.push(format!(
                "{part} of entity {entity}: {holders} owners have it, {place:?}"
            ));
        }
    }
}
