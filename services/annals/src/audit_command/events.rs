//! Prints the events of an entity.

use std::collections::{BTreeMap, BTreeSet};

use annals_audit::{CameIn, EntityEvent, EntityLog, Sessions, names::Names};
use annals_def::Schema;
use annals_event::{Body, ledger::Warrant};
use annals_evidence::{Span, words};
use annals_ids::{Hash, Part};
use serde_json::{Value, json};

use super::report::{Report, client, operator};

impl Report {
    /// The report on the events of an entity.
    pub(super) fn of_entity(
        (log, sessions): (&EntityLog, &Sessions),
        (span, kinds): (&Span, &[String]),
        schemas: &BTreeMap<Hash, Schema>,
    ) -> Self {
        let mut names = Names::new(schemas.values().cloned());
        for event in &log.events {
            names.learn_event(event.schema, &event.event);
        }
        let entity = log.entity;
        let is_meant =
            |event: &&EntityEvent| kinds.is_empty() || kinds.iter().any(|kind| kind == event.event.body.name());
        let events: Vec<&EntityEvent> = log.within(span).filter(is_meant).collect();
        let rows = events.iter().map(|event| {
            let said = names.under(event.schema);
            vec![
                format!("{} #{}", event.at, event.number),
                words::date(event.wall),
                said.subject(event.event.subject),
                what(event, said.event(&event.event)),
                cause(event, sessions),
            ]
        });
        let objects = events.iter().map(|event| object(event, sessions, &names));
        let mut said = vec![format!("entity {entity}: {} events", events.len())];
        let found: BTreeSet<&str> = log.events.iter().map(|event| event.event.body.name()).collect();
        for kind in kinds.iter().filter(|kind| !found.contains(kind.as_str())) {
            let found: Vec<&str> = found.iter().copied().collect();
            said.push(format!(
                "none of its events is of kind {kind:?}; they are of these: {}",
                found.join(", ")
            ));
        }
        for (owner, batch) in &log.deleted {
            said.push(format!(
                "retention deleted the events of owner {owner} up to batch {batch}: some of them were of this entity"
            ));
        }
        let deleted = log.deleted.iter().map(|(owner, batch)| format!("{owner}@{batch}"));
        Self {
            said,
            columns: &["event", "when", "of", "what", "by"],
            rows: rows.collect(),
            plain: None,
            object: json!({
                "entity": entity.0,
                "events": objects.collect::<Vec<_>>(),
                "deleted": deleted.collect::<Vec<_>>(),
            }),
        }
    }
}

/// What happened, and which client session controls the entity no longer.
fn what(event: &EntityEvent, said: String) -> String {
    match (event.former_session, &event.event.body) {
        (Some(former), Body::ClientSet(Some(_))) => format!("{said}, in place of session {former}"),
        (Some(former), _) => format!("{said}: session {former} controls it no longer"),
        (None, _) => said,
    }
}

/// The operator's warrant under which the event was ordered.
fn warrant(event: &EntityEvent) -> Option<&Warrant> {
    match &event.event.body {
        Body::Ordered { order, .. } => order.warrant(),
        _ => None,
    }
}

/// The cause of an event: the chain of calls that led to it, or the operator.
fn cause(event: &EntityEvent, sessions: &Sessions) -> String {
    if let Some(warrant) = warrant(event) {
        return words::operator(warrant);
    }
    let caller = |call| {
        let who = sessions.behind(call, event.leaf, event.wall).map(CameIn::said);
        who.map_or_else(|| words::caller(call), |who| format!("{} ({who})", words::caller(call)))
    };
    let calls: Vec<String> = event.calls.iter().map(caller).collect();
    if calls.is_empty() {
        "by itself".to_owned()
    } else {
        calls.join(", because of ")
    }
}

fn object(event: &EntityEvent, sessions: &Sessions, names: &Names) -> Value {
    let said = names.under(event.schema);
    let part = match event.event.subject {
        annals_event::Subject::Entity(_, Part::Base) => "base",
        annals_event::Subject::Entity(_, Part::Cell) => "cell",
        annals_event::Subject::Owner => "owner",
    };
    let calls = event.calls.iter().map(|call| {
        let client = sessions.behind(call, event.leaf, event.wall).map(client);
        json!({ "from": call.from.to_string(), "call": call.number.0, "client": client })
    });
    json!({
        "batch": event.at.to_string(),
        "event": event.number.0,
        "leaf": event.leaf.leaf.0,
        "shard": event.leaf.shard.0,
        "when": words::date(event.wall),
        "part": part,
        "of": said.subject(event.event.subject),
        "kind": event.event.body.name(),
        "what": said.event(&event.event),
        "former_session": event.former_session.map(|session| session.0),
        "history": event.event.history.map(|number| number.0),
        "calls": calls.collect::<Vec<_>>(),
        "operator": warrant(event).map(operator),
    })
}
