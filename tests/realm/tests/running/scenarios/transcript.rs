//! Observations without what differs from run to run: ids of entities, names of accounts, numbers that a step has named.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

/// What every scenario watches.
pub(super) const ALWAYS_WATCHED: [&str; 9] = [
    "connected",
    "controls",
    "queued",
    "lost",
    "resumed",
    "ended",
    "callRefused",
    "callsLost",
    "rateWarned",
];

/// What stands for any value, and begins the name of one.
const ANY: &str = "?";

/// What the names of a scenario stand for in one run.
#[derive(Default)]
pub(super) struct Names {
    /// The account of each player.
    accounts: BTreeMap<String, String>,
    /// The name of each entity, by its id.
    entities: BTreeMap<String, String>,
    /// Values that a step has named, with their `?`.
    values: BTreeMap<String, Json>,
}

impl Names {
    pub(super) fn new(accounts: BTreeMap<String, String>) -> Self {
        Self {
            accounts,
            ..Self::default()
        }
    }

    /// Names the entity that a player controls: `ann.Avatar`, and `ann.Avatar.2` if there was one before.
    pub(super) fn controls(&mut self, player: &str, event: &Json) {
        let (Some(id), Some(entity_type)) = (event["entity"].as_str(), event["type"].as_str()) else {
            return;
        };
        if self.entities.contains_key(id) {
            return;
        }
        let name = format!("{player}.{entity_type}");
        let numbered = (2..).map(|number| format!("{name}.{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let is_free = |name: &String| !self.entities.values().any(|other| other == name);
        if let Some(free) = names.find(is_free) {
            self.entities.insert(id.to_owned(), free);
        }
    }

    /// Whether an event concerns no entity, or one that has a name.
    pub(super) fn knows(&self, event: &Map<String, Json>) -> bool {
        let id = event.get("entity").and_then(Json::as_str);
        id.is_none_or(|id| self.entities.contains_key(id))
    }

    /// A step or an event of the file as it is in this run.
    pub(super) fn put(&self, json: &Json) -> Json {
        match json {
            Json::String(text) => self.put_text(text),
            Json::Array(elements) => Json::Array(elements.iter().map(|element| self.put(element)).collect()),
            Json::Object(fields) => {
                let fields = fields.iter().map(|(key, field)| (key.clone(), self.put(field)));
                Json::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    fn put_text(&self, text: &str) -> Json {
        if let Some(value) = self.values.get(text) {
            return value.clone();
        }
        let entity = self.entities.iter().find(|(_, name)| *name == text);
        if let Some((id, _)) = entity {
            return Json::String(id.clone());
        }
        let mut put = text.to_owned();
        for (player, account) in &self.accounts {
            put = put.replace(&format!("{{{player}}}"), account);
        }
        Json::String(put)
    }

    /// Whether something is what a step expects. Gives a name to what the step names.
    pub(super) fn accept(&mut self, expected: &Json, found: &Json) -> bool {
        match (expected, found) {
            (Json::String(name), _) if name.starts_with(ANY) => {
                if name == ANY {
                    return true;
                }
                let known = self.values.entry(name.clone()).or_insert_with(|| found.clone());
                known == found
            }
            (Json::Array(expected), Json::Array(found)) => {
                let mut pairs = expected.iter().zip(found);
                expected.len() == found.len() && pairs.all(|(expected, found)| self.accept(expected, found))
            }
            (Json::Object(expected), Json::Object(found)) => {
                expected.len() == found.len()
                    && expected.iter().all(|(key, expected)| {
                        let found = found.get(key);
                        found.is_some_and(|found| self.accept(expected, found))
                    })
            }
            (Json::Object(about), Json::Number(found)) => self.accept_about(about, found),
            (Json::Number(expected), Json::Number(found)) => expected.as_f64() == found.as_f64(),
            _ => self.put(expected) == *found,
        }
    }

    /// Whether a number is near the one that a step has named: `{ about = "?name", within = 5.0 }`.
    fn accept_about(&mut self, about: &Map<String, Json>, found: &serde_json::Number) -> bool {
        let (Some(name), Some(within)) = (
            about.get("about").and_then(Json::as_str),
            about.get("within").and_then(Json::as_f64),
        ) else {
            return false;
        };
        let known = self.values.entry(name.to_owned()).or_insert_with(|| json!(found));
        let distance = known
            .as_f64()
            .zip(found.as_f64())
            .map(|(known, found)| (known - found).abs());
        about.len() == 2 && distance.is_some_and(|distance| distance <= within)
    }

    /// As [`accept`](Self::accept), of an event of an entity that has no name yet, if the step names one.
    pub(super) fn accept_new(&mut self, expected: &Map<String, Json>, found: &Map<String, Json>) -> bool {
        let entity = |event: &Map<String, Json>| event.get("entity").and_then(Json::as_str).map(str::to_owned);
        let (Some(name), Some(id)) = (entity(expected), entity(found)) else {
            return false;
        };
        if self.names_new(expected).is_none() || self.entities.contains_key(&id) {
            return false;
        }
        if !self.accept(&Json::Object(expected.clone()), &Json::Object(found.clone())) {
            self.values.remove(&name);
            return false;
        }
        self.entities.insert(id, name);
        true
    }

    /// The name that a step gives to an entity.
    pub(super) fn names_new<'e>(&self, expected: &'e Map<String, Json>) -> Option<&'e str> {
        let name = expected.get("entity").and_then(Json::as_str)?;
        (name.starts_with(ANY) && name != ANY && !self.values.contains_key(name)).then_some(name)
    }
}

/// Whether a scenario watches for an event.
pub(super) fn is_watched(watch: &[String], event: &Map<String, Json>) -> bool {
    let text = |key: &str| event.get(key).and_then(Json::as_str).unwrap_or_default();
    let (kind, entity_type) = (text("event"), text("type"));
    let topic = match kind {
        "changed" | "called" | "answered" => format!("{kind} {entity_type}.{}", text("member")),
        "entered" | "left" => format!("{kind} {} {entity_type}", text("part")),
        _ => kind.to_owned(),
    };
    let mut watched = watch.iter().map(String::as_str).chain(ALWAYS_WATCHED);
    watched.any(|watched| topic == watched)
}

/// An observation that a step has accepted, as every run has it: what the step leaves open is its kind alone.
pub(super) fn canonical(expected: &Json, found: &Json) -> Json {
    match (expected, found) {
        (Json::String(name), _) if name.starts_with(ANY) => {
            let kind = match found {
                Json::Null => "nothing",
                Json::Bool(_) => "yes or no",
                Json::Number(_) => "number",
                Json::String(_) => "text",
                Json::Array(_) => "list",
                Json::Object(_) => "object",
            };
            Json::String(format!("{name} ({kind})"))
        }
        (Json::Array(expected), Json::Array(found)) => {
            let pairs = expected.iter().zip(found);
            Json::Array(pairs.map(|(expected, found)| canonical(expected, found)).collect())
        }
        (Json::Object(expected), Json::Object(found)) => {
            let fields = expected.iter().map(|(key, expected)| {
                let found = found.get(key).unwrap_or(&Json::Null);
                (key.clone(), canonical(expected, found))
            });
            Json::Object(fields.collect())
        }
        // They are equal but for the names, or near. 1 and 1.0 are one number.
        (Json::String(_) | Json::Number(_), _) | (Json::Object(_), Json::Number(_)) => expected.clone(),
        _ => found.clone(),
    }
}
