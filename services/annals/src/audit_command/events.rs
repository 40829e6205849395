//! What happened to an entity, printed.

use std::collections::BTreeMap;

use annals_audit::{EntityEvent, EntityLog};
use annals_def::Schema;
use annals_evidence::{Span, words};
use annals_ids::{Hash, Part};
use serde_json::{Value, json};

use super::report::Report;
use crate::tail::names::Names;

impl Report {
    /// What happened to an entity.
    pub(super) fn of_entity(log: &EntityLog, span: &Span, schemas: &BTreeMap<Hash, Schema>) -> Self {
        let mut names = Names::new(schemas.values().cloned());
        for event in &log.events {
            names.learn_event(event.schema, &event.event);
        }
        let entity = log.entity;
        let events: Vec<&EntityEvent> = log.within(*span).collect();
        let rows = events.iter().map(|event| {
            let said = names.under(event.schema);
            vec![
                format!("{} #{}", event.at, event.number),
                words::date(event.wall),
                said.subject(event.event.subject),
                said.event(&event.event),
                cause(event),
            ]
        });
        let objects = events.iter().map(|event| object(event, &names));
        let mut said = vec![format!("entity {entity}: {} events", events.len())];
        for (owner, batch) in &log.let_go {
            said.push(format!(
                "of what owner {owner} did up to batch {batch} retention has let go: some of the entity's events were there"
            ));
        }
        let let_go = log.let_go.iter().map(|(owner, batch)| format!("{owner}@{batch}"));
        Self {
            said,
            columns: &["event", "when", "of", "what", "by"],
            rows: rows.collect(),
            object: json!({
                "entity": entity.0,
                "events": objects.collect::<Vec<_>>(),
                "letGo": let_go.collect::<Vec<_>>(),
            }),
        }
    }
}

/// By whose call, and by whose calls that call was made.
fn cause(event: &EntityEvent) -> String {
    let calls: Vec<String> = event.calls.iter().map(words::caller).collect();
    if calls.is_empty() {
        "by itself".to_owned()
    } else {
        calls.join(", because of ")
    }
}

fn object(event: &EntityEvent, names: &Names) -> Value {
    let said = names.under(event.schema);
    let part = match event.event.subject {
        annals_event::Subject::Entity(_, Part::Base) => "base",
        annals_event::Subject::Entity(_, Part::Cell) => "cell",
        annals_event::Subject::Owner => "owner",
    };
    let calls = event
        .calls
        .iter()
        .map(|call| json!({ "from": call.from.to_string(), "call": call.number.0 }));
    json!({
        "batch": event.at.to_string(),
        "event": event.number.0,
        "leaf": event.leaf.0,
        "when": words::date(event.wall),
        "part": part,
        "of": said.subject(event.event.subject),
        "kind": event.event.body.name(),
        "what": said.event(&event.event),
        "history": event.event.history.map(|number| number.0),
        "calls": calls.collect::<Vec<_>>(),
    })
}
