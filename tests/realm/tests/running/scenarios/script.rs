//! The file of scenarios: `tests/realm/scenarios/scenarios.toml`, whose README describes it.

use std::{collections::BTreeMap, fs};

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::played::repository;

/// Path of the file in the repository.
const PATH: &str = "tests/realm/scenarios/scenarios.toml";

/// What stands in a part for the player that plays it.
const PLAYER: &str = "$";

/// A player of this name is the realm.
pub(super) const REALM: &str = "realm";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    part: Vec<Part>,
    scenario: Vec<Written>,
}

/// Steps that several scenarios have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    steps: Vec<Map<String, Json>>,
}

/// A scenario as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    players: Vec<String>,
    #[serde(default)]
    watch: Vec<String>,
    steps: Vec<Map<String, Json>>,
}

/// A scenario.
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) players: Vec<String>,
    /// What each player has to see, besides [`ALWAYS_WATCHED`](super::transcript::ALWAYS_WATCHED): nothing of it may be
    /// missing, and nothing be there that no step expects.
    pub(super) watch: Vec<String>,
    pub(super) steps: Vec<Step>,
}

/// A step: what a player does, or has to see.
pub(super) struct Step {
    pub(super) who: String,
    pub(super) what: What,
}

pub(super) enum What {
    /// The player does this, and gets the answer.
    Does { step: Map<String, Json>, gives: Json },
    /// The player sees this event next, of those that are watched.
    Sees(Map<String, Json>),
}

/// All scenarios, in their order.
pub(super) fn scenarios() -> Vec<Scenario> {
    let text = fs::read_to_string(repository().join(PATH)).expect("it can be read");
    let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{PATH}: {error}"));
    let parts: BTreeMap<&str, &[_]> = file.part.iter().map(|part| (&part.name[..], &part.steps[..])).collect();
    file.scenario.iter().map(|written| read(written, &parts)).collect()
}

fn read(written: &Written, parts: &BTreeMap<&str, &[Map<String, Json>]>) -> Scenario {
    let Written {
        name,
        players,
        watch,
        steps,
    } = written;
    let mut read = Vec::new();
    for step in steps {
        let Some(part) = step.get("plays").and_then(Json::as_str) else {
            read.push(read_step(name, step.clone()));
            continue;
        };
        assert_eq!(step.len(), 2, "{name}: a part has a player, and nothing else: {step:?}");
        let player = step["who"].as_str().expect("a player has a name");
        let steps = parts
            .get(part)
            .unwrap_or_else(|| panic!("{name}: there is no part {part}"));
        for step in *steps {
            let mut step = Json::Object(step.clone());
            put_player(&mut step, player);
            let Json::Object(mut step) = step else {
                unreachable!("it was one")
            };
            step.insert("who".to_owned(), Json::String(player.to_owned()));
            read.push(read_step(name, step));
        }
    }
    for step in &read {
        assert!(
            step.who == REALM || players.contains(&step.who),
            "{name} has no player {}",
            step.who
        );
    }
    Scenario {
        name: name.clone(),
        players: players.clone(),
        watch: watch.clone(),
        steps: read,
    }
}

fn read_step(scenario: &str, mut step: Map<String, Json>) -> Step {
    let who = match step.remove("who") {
        Some(Json::String(who)) => who,
        other => panic!("{scenario}: a step of {other:?}"),
    };
    let what = if let Some(event) = step.remove("sees") {
        step.insert("event".to_owned(), event);
        What::Sees(step)
    } else {
        assert!(step.contains_key("does"), "{scenario}: does or sees nothing: {step:?}");
        let gives = step.remove("gives").unwrap_or(Json::Null);
        What::Does { step, gives }
    };
    Step { who, what }
}

/// Puts a player's name where a part has [`PLAYER`].
fn put_player(json: &mut Json, player: &str) {
    match json {
        Json::String(text) => *text = text.replace(PLAYER, player),
        Json::Array(elements) => elements.iter_mut().for_each(|element| put_player(element, player)),
        Json::Object(fields) => fields.values_mut().for_each(|field| put_player(field, player)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}
