//! Global data converges (R1, R2): at rest every owner of a scope holds the state that follows from all logs. And the
//! registry gives each key to one entity at a time (R3), which exists and has not ended its registration (R4).

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Body, Call, GlobalData, GlobalScope, Subject};
use annals_ids::{EntityId, OwnerId};

use crate::{archive::Archive, world::World};

/// Checks global data and registrations.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let logged = logged(archive);
    let mut wrong = Vec::new();
    for (owner, state) in &archive.states {
        for scope in GlobalScope::ALL {
            let held = state.globals.get(&scope).cloned().unwrap_or_default();
            let there = logged.get(&scope).filter(|_| scope.includes(state.kind));
            let there = there.cloned().unwrap_or_default();
            if held != there {
                wrong.push(format!("owner {owner} holds {held:?} of {scope:?}, where {there:?} is"));
            }
        }
    }
    let ended = ended(archive);
    let registry = logged.get(&GlobalScope::Registry).cloned().unwrap_or_default();
    for (key, _) in registry.values() {
        let holder = registry.mailbox(key);
        let exists = holder.is_some_and(|holder| {
            let home = archive.states.get(&holder.home);
            home.is_some_and(|home| home.entities.contains_key(&holder.entity))
        });
        if !exists {
            wrong.push(format!("{key} is held by {holder:?}, which does not exist"));
        }
        // No entity of the game registers twice.
        let left = holder.is_some_and(|holder| ended.contains(&(holder.entity, key)));
        if left {
            wrong.push(format!("{key} is held by {holder:?}, which has ended that"));
        }
    }
    let keeper = world.map.bootstrap.unwrap_or_default();
    wrong.extend(overlapping(archive, keeper));
    wrong
}

/// Number of registrations.
#[must_use]
pub fn count(archive: &Archive) -> usize {
    let entries = entries(archive);
    let registered = entries.filter(|(owner, scope, entry)| {
        *scope == GlobalScope::Registry && *owner == entry.version.by && entry.value.is_some()
    });
    registered.count()
}

fn entries(archive: &Archive) -> impl Iterator<Item = (OwnerId, GlobalScope, &annals_event::GlobalEntry)> {
    let events = archive.logs.iter().flat_map(|(owner, log)| {
        let events = log.iter().flat_map(|batch| &batch.events);
        events.map(|event| (*owner, event))
    });
    events.filter_map(|(owner, event)| match (&event.body, event.subject) {
        (Body::GlobalData { scope, entry }, Subject::Owner) => Some((owner, *scope, entry)),
        _ => None,
    })
}

/// The registrations that owners called the keeper to end.
fn ended(archive: &Archive) -> BTreeSet<(EntityId, &str)> {
    let events = archive.logs.values().flatten().flat_map(|batch| &batch.events);
    let calls = events.filter_map(|event| match &event.body {
        Body::Called {
            call: Call::Deregister { entity, key },
            ..
        } => Some((*entity, key.as_str())),
        _ => None,
    });
    calls.collect()
}

/// Global data folded from all logs.
fn logged(archive: &Archive) -> BTreeMap<GlobalScope, GlobalData> {
    let mut all: BTreeMap<GlobalScope, GlobalData> = BTreeMap::new();
    for (_, scope, entry) in entries(archive) {
        all.entry(scope).or_default().take(entry.clone());
    }
    all
}

/// Registrations that were given while another entity held the key, and entries of other writers than the keeper.
fn overlapping(archive: &Archive, keeper: OwnerId) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut held = GlobalData::default();
    let registry = entries(archive).filter(|(_, scope, _)| *scope == GlobalScope::Registry);
    for (owner, _, entry) in registry {
        if entry.version.by != keeper {
            wrong.push(format!(
                "owner {} wrote {entry:?} instead of {keeper}",
                entry.version.by
            ));
        }
        if owner == keeper {
            let before = held.mailbox(&entry.key);
            if before.is_some() && entry.value.is_some() {
                wrong.push(format!("{entry:?} was written while {before:?} held the key"));
            }
            held.take(entry.clone());
        }
    }
    wrong
}
