//! Each call takes effect once: the marks that calls leave are counted in the archive.

use std::collections::{BTreeMap, BTreeSet};

use annals_client::Event;
use annals_def::{Edit, Value};
use annals_event::{Body, Subject};
use annals_ids::{Address, CallNumber, EntityId, Part, SessionId};

use crate::{archive::Archive, world::World};

/// Marks that a method must leave: the client methods that show it took effect.
fn marks(method: &str) -> &'static [&'static str] {
    match method {
        "mark" => &["onMark"],
        // From the cell to the base and back: two calls between owners.
        "passOn" => &["onNote", "onNudge"],
        // A two-way call and its reply.
        "askBase" => &["onEcho"],
        // Changes of parts and slices, on cell and base.
        "stash" => &["onStash"],
        "jot" => &["onJot"],
        "deal" => &["onDeal"],
        "leap" => &["onLeap"],
        _ => &[],
    }
}

/// Number of calls that fragments of a service executed.
#[must_use]
pub fn count_of_fragments(archive: &Archive) -> usize {
    let batches = archive.logs.values().flatten();
    let consumed = batches.flat_map(|batch| &batch.header.consumed);
    let by_fragments = consumed.filter(|call| {
        let receiver = call.to.entity();
        receiver.is_some_and(|(entity, _)| entity.fragment().is_some())
    });
    by_fragments.count()
}

/// The calls of clients that a part received while another client controlled it, or none: it does not run them.
fn refused(archive: &Archive) -> BTreeSet<(SessionId, EntityId, Part, CallNumber)> {
    let mut refused = BTreeSet::new();
    for log in archive.logs.values() {
        let mut clients: BTreeMap<(EntityId, Part), SessionId> = BTreeMap::new();
        for batch in log {
            let mut consumed = batch.header.consumed.iter().peekable();
            for (at, event) in batch.events.iter().map(Some).chain([None]).enumerate() {
                while let Some(call) = consumed.next_if(|call| call.at as usize <= at) {
                    if let (Address::Client(session), Some(part)) = (call.from, call.to.entity())
                        && clients.get(&part) != Some(&session)
                    {
                        refused.insert((session, part.0, part.1, call.number));
                    }
                }
                let Some(Subject::Entity(entity, part)) = event.map(|event| event.subject) else {
                    continue;
                };
                let client = match event.map(|event| &event.body) {
                    Some(Body::ClientSet(client)) => client,
                    Some(Body::CellCreated(creation)) => &creation.client,
                    Some(Body::Onloaded { image, .. }) => &image.client,
                    _ => continue,
                };
                match client {
                    Some(client) => clients.insert((entity, part), client.session),
                    None => clients.remove(&(entity, part)),
                };
            }
        }
    }
    refused
}

/// The calls that were reported to a client as perhaps lost, after it has controlled another entity.
fn lost(events: &[Event]) -> BTreeSet<(EntityId, Part, CallNumber)> {
    let (mut lost, mut controlled) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        match event {
            Event::Connected { entity, .. } | Event::Controls { entity, .. } => {
                controlled.insert(*entity);
            }
            Event::CallsLost { entity, part, numbers } if controlled.len() > 1 => {
                lost.extend(numbers.iter().map(|number| (*entity, *part, *number)));
            }
            _ => {}
        }
    }
    lost
}

/// How often each mark was left, by client method and id, and how often each id became a title.
fn marks_left(world: &World, archive: &Archive) -> (BTreeMap<(String, u64), usize>, BTreeMap<u64, usize>) {
    let entity_type = world.schema.type_named("Avatar").expect("the game has avatars");
    let is_avatar = |entity| {
        archive
            .cells
            .get(&entity)
            .is_none_or(|cell| cell.type_id == entity_type.id)
    };
    let mut left: BTreeMap<(String, u64), usize> = BTreeMap::new();
    let mut renamed: BTreeMap<u64, usize> = BTreeMap::new();
    for event in archive.logs.values().flatten().flat_map(|batch| &batch.events) {
        match (&event.body, event.subject) {
            (Body::Invoked { method, args, .. }, _) => {
                let name = entity_type.client_methods[usize::from(method.0)].name.clone();
                if let [Value::UInt(id)] = args[..] {
                    *left.entry((name, id)).or_default() += 1;
                }
            }
            (Body::Changed { member, change }, Subject::Entity(entity, Part::Base))
                if is_avatar(entity)
                    && entity_type
                        .property(*member)
                        .is_some_and(|property| property.name == "title") =>
            {
                if let Edit::Set(Value::UInt(id)) = change.change().edit {
                    *renamed.entry(id).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    (left, renamed)
}

/// Checks that each call left its marks once.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let (left, renamed) = marks_left(world, archive);
    let refused = refused(archive);
    let mut wrong = Vec::new();
    for (number, client) in world.clients.iter().enumerate() {
        let session = client.events.iter().find_map(|event| match event {
            Event::Connected { session, .. } => Some(*session),
            _ => None,
        });
        let lost = lost(&client.events);
        for made in &client.made {
            let is_refused =
                session.is_some_and(|session| refused.contains(&(session, made.entity, made.part, made.number)));
            let is_lost = lost.contains(&(made.entity, made.part, made.number));
            let confirmed = client.core.unconfirmed_calls() == 0 && client.ended.is_none();
            let confirmed = confirmed && !is_refused && !is_lost;
            let counts = marks(made.method).iter().map(|mark| {
                let count = left
                    .get(&((*mark).to_owned(), u64::from(made.id)))
                    .copied()
                    .unwrap_or(0);
                (*mark, count)
            });
            let rename =
                (made.method == "rename").then(|| ("title", renamed.get(&u64::from(made.id)).copied().unwrap_or(0)));
            for (mark, count) in counts.chain(rename) {
                if count > 1 || (confirmed && count == 0) {
                    wrong.push(format!(
                        "client {number}: call {} ({} of {} of entity {}) left {mark} {count} times",
                        made.id, made.method, made.part, made.entity
                    ));
                }
            }
        }
        if client.core.unconfirmed_calls() > 0 && client.ended.is_none() {
            wrong.push(format!(
                "client {number} still waits for {} calls to be taken",
                client.core.unconfirmed_calls()
            ));
        }
    }
    for state in archive
        .states
        .values()
        .filter(|state| !state.departing.is_empty() || !state.estates.is_empty())
    {
        wrong.push(format!("owner {} has not become idle", state.owner));
    }
    wrong
}
