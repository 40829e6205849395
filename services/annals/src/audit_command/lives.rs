//! Prints the activations of a stored entity.

use annals_audit::{LifeStep, Turn};
use annals_evidence::{Lexicon, Span, words};
use annals_ids::{DatabaseId, Hash};
use serde_json::{Value, json};

use super::report::{Report, client, names};

impl Report {
    /// The report on the activations of a stored entity.
    pub(super) fn of_lives(stored: DatabaseId, lexicon: &Lexicon, steps: &[LifeStep], span: &Span) -> Self {
        let within: Vec<&LifeStep> = steps.iter().filter(|step| span.covers(step.leaf, step.wall)).collect();
        let began = |step: &&&LifeStep| matches!(step.turn, Turn::Began { .. });
        let lives = match within.iter().filter(began).count() {
            1 => "1 life".to_owned(),
            lives => format!("{lives} lives"),
        };
        let rows = within.iter().map(|step| {
            let event = format!("{} #{}", step.at, step.event);
            vec![words::date(step.wall), event, said(&step.turn)]
        });
        Self {
            said: vec![format!(
                "{}: {lives} in the world",
                lexicon.under(Hash::default()).stored(stored)
            )],
            columns: &["when", "event", "what"],
            rows: rows.collect(),
            plain: None,
            object: json!({
                "stored": stored.0,
                "names": names(lexicon),
                "steps": within.iter().map(|step| object(step)).collect::<Vec<_>>(),
            }),
        }
    }
}

fn said(turn: &Turn) -> String {
    match turn {
        Turn::Began { entity, checkout: None } => format!("stored, as the entity {entity} that lived already"),
        Turn::Began {
            entity,
            checkout: Some(number),
        } => format!("a life began, as entity {entity}, check-out {number}"),
        Turn::CameIn(came) => format!("client session {} came in: {}", came.session, came.said()),
        Turn::Ended { entity } => format!("the life as entity {entity} ended"),
    }
}

fn object(step: &LifeStep) -> Value {
    let (kind, entity, checkout, came) = match &step.turn {
        Turn::Began { entity, checkout } => ("began", Some(entity.0), *checkout, None),
        Turn::CameIn(came) => ("came in", None, None, Some(client(came))),
        Turn::Ended { entity } => ("ended", Some(entity.0), None, None),
    };
    json!({
        "kind": kind,
        "entity": entity,
        "checkOut": checkout,
        "client": came,
        "batch": step.at.to_string(),
        "leaf": step.leaf.leaf.0,
        "shard": step.leaf.shard.0,
        "event": step.event.0,
        "when": words::date(step.wall),
    })
}
