//! Puppets play every world of the repository.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use annals_client::Event;
use annals_def::{Edit, EntityType, Exposure, Method, Schema, Value, generate, split_mix};
use annals_event::{Body, Subject};
use annals_game::testing::{BASE, EAST, TestRealm, WEST};
use annals_ids::{EntityId, MemberId, Part, TypeId};
use annals_sample::Puppet;

use crate::world::schema;

/// Time limit within which four clients cover everything.
const MOST_SECONDS: u64 = 600;

/// What was exercised, according to the logs.
#[derive(Debug, Default)]
struct Driven {
    types: BTreeMap<EntityId, TypeId>,
    parts: BTreeSet<(TypeId, Part)>,
    assigned: BTreeSet<(TypeId, MemberId)>,
    nested: BTreeSet<(TypeId, MemberId)>,
    sliced: BTreeSet<(TypeId, MemberId)>,
    invoked: BTreeSet<(TypeId, MemberId)>,
}

impl Driven {
    fn read(stage: &TestRealm) -> Self {
        let mut driven = Self::default();
        let events: Vec<_> = stage.batches().flat_map(|batch| batch.events).collect();
        for event in &events {
            let Subject::Entity(entity, part) = event.subject else {
                continue;
            };
            let made = match &event.body {
                Body::BaseCreated(creation) => creation.type_id,
                Body::CellCreated(creation) => creation.type_id,
                _ => continue,
            };
            driven.types.insert(entity, made);
            driven.parts.insert((made, part));
        }
        for event in &events {
            let Subject::Entity(entity, _) = event.subject else {
                continue;
            };
            let Some(type_id) = driven.types.get(&entity).copied() else {
                continue;
            };
            match &event.body {
                Body::Changed { member, change } => {
                    let change = change.change();
                    let deeper = match change.edit {
                        Edit::Set(_) if change.is_whole() => &mut driven.assigned,
                        Edit::Set(_) => &mut driven.nested,
                        Edit::Splice { .. } => &mut driven.sliced,
                    };
                    deeper.insert((type_id, *member))
                }
                Body::Invoked { method, .. } => driven.invoked.insert((type_id, *method)),
                _ => continue,
            };
        }
        driven
    }

    /// Members of a world that were not exercised.
    fn missing(&self, schema: &Schema) -> Vec<String> {
        let mut missing = Vec::new();
        for found in schema.types() {
            let parts = [(found.parts.base, Part::Base), (found.parts.cell, Part::Cell)];
            for (_, part) in parts.into_iter().filter(|(has_part, _)| *has_part) {
                if !self.parts.contains(&(found.id, part)) {
                    missing.push(format!("the {part} part of {}", found.name));
                }
            }
            let held = |base: bool, cell: bool| (base && found.parts.base) || (cell && found.parts.cell);
            for property in &found.properties {
                let is_held = held(property.is_held_by(Part::Base), property.is_held_by(Part::Cell));
                if is_held && !self.assigned.contains(&(found.id, property.index)) {
                    missing.push(format!("{}.{}", found.name, property.name));
                }
                let (key, data_type) = ((found.id, property.index), &property.data_type);
                let by_parts = is_held && !property.latest_only;
                if by_parts && data_type.has_parts() && !self.nested.contains(&key) {
                    missing.push(format!("a part of {}.{}", found.name, property.name));
                }
                if by_parts && data_type.has_slices() && !self.sliced.contains(&key) {
                    missing.push(format!("a slice of {}.{}", found.name, property.name));
                }
            }
            let methods = found.client_methods.iter();
            let silent = methods.filter(|method| !self.invoked.contains(&(found.id, method.index)));
            missing.extend(silent.map(|method| format!("{}.{}()", found.name, method.name)));
        }
        missing
    }
}

/// Calls every exposed method of the entity that a client controls. Returns the number of calls.
fn call_everything(stage: &mut TestRealm, player: usize, dice: &mut dyn FnMut() -> u64, driven: &mut Called) -> u64 {
    let Some((entity, type_id)) = stage.players[player].core.controls() else {
        return 0;
    };
    let schema = Arc::clone(&stage.schema);
    let own: &EntityType = schema.entity_type(type_id).unwrap();
    let mut calls = 0;
    for (part, method) in exposed(own) {
        if stage.players[player].core.view(part).entities().contains_key(&entity) {
            let args = method.args.iter();
            let args: Vec<Value> = args.map(|argument| generate(&argument.data_type, dice)).collect();
            stage.call(player, entity, part, &method.name, &args);
            driven.insert((type_id, part, method.index));
            calls += 1;
        }
    }
    calls
}

/// Exposed methods that were called, by type and part.
pub(crate) type Called = BTreeSet<(TypeId, Part, MemberId)>;

pub(crate) fn exposed(own: &EntityType) -> impl Iterator<Item = (Part, &Method)> {
    let base = own.base_methods.iter().map(|method| (Part::Base, method));
    let cell = own.cell_methods.iter().map(|method| (Part::Cell, method));
    let on = (own.parts.base, own.parts.cell);
    base.filter(move |_| on.0)
        .chain(cell.filter(move |_| on.1))
        .filter(|(_, method)| method.exposed != Exposure::No)
}

/// Exposed methods of a world that were not called. Types without a base part have no client, and are left out.
pub(crate) fn uncalled(schema: &Schema, called: &Called) -> Vec<String> {
    let with_client = schema.types().iter().filter(|found| found.parts.base);
    let all = with_client.flat_map(|found| exposed(found).map(move |(part, method)| (found, part, method)));
    let missing = all.filter(|(found, part, method)| !called.contains(&(found.id, *part, method.index)));
    missing
        .map(|(found, _, method)| format!("{}.{}", found.name, method.name))
        .collect()
}

/// Number of calls that were reported to clients as not accepted or not run.
fn failed_calls(stage: &TestRealm) -> u64 {
    let events = stage.players.iter().flat_map(|player| &player.events);
    let in_vain = events.map(|event| match event {
        Event::CallsLost { numbers, .. } => numbers.len() as u64,
        Event::CallRefused { .. } => 1,
        _ => 0,
    });
    in_vain.sum()
}

fn play(folder: &Path) {
    let schema = schema(folder);
    let Some(account) = Puppet::account_type(&schema) else {
        panic!("{}: no account can log in", folder.display())
    };
    let puppet = Arc::new(Puppet::new(Arc::clone(&schema)));
    let behaviour = Arc::clone(&puppet);
    let mut stage = TestRealm::new(Arc::clone(&schema), behaviour, account);
    for _ in 0..4 {
        stage.join();
    }
    let (mut calls, mut called, mut dice) = (0, Called::new(), split_mix(5));
    for round in 0..MOST_SECONDS {
        stage.pass(1_000);
        if round % 4 == 3 {
            for player in 0..stage.players.len() {
                calls += call_everything(&mut stage, player, &mut dice, &mut called);
            }
        }
        match round {
            20 => stage.crash(WEST),
            30 => stage.crash(BASE),
            40 => stage.crash(EAST),
            60.. if uncalled(&schema, &called).is_empty() => break,
            _ => {}
        }
    }
    stage.pass(9_000);
    let counters = puppet.counters();
    println!(
        "{}: {counters:?}, {:?}, {calls} calls",
        folder.display(),
        stage.base_counters()
    );
    assert_eq!(counters.denied, 0);
    assert_eq!(stage.base_counters().denied, 0);
    // Some calls are made while the base is being taken over, and arrive at puppets that another client or none
    // controls: their clients are notified.
    assert_eq!(counters.called + failed_calls(&stage), calls, "each call once");
    let mut missing = Driven::read(&stage).missing(&schema);
    missing.extend(uncalled(&schema, &called));
    assert!(missing.is_empty(), "{} not driven: {missing:?}", folder.display());
    for owner in [BASE, WEST, EAST] {
        assert_eq!(
            stage.folded(owner).hash(),
            stage.state(owner).hash(),
            "replay equals live on {owner}"
        );
    }
    for player in &stage.players {
        assert!(player.core.is_playing(), "{:?}", player.events.last());
        assert_eq!(player.core.counters().malformed, 0);
    }
}

#[test]
fn the_sample_world_needs_no_behaviour_of_its_own() {
    play(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
}

#[test]
fn every_game_next_to_the_repository_can_be_played() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    #[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
    let folder = std::env::var("ANNALS_CORPUS").map_or(beside, PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no games beside the repository, and ANNALS_CORPUS names no folder");
        return;
    };
    let mut games: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    games.sort();
    assert!(!games.is_empty());
    games.iter().for_each(|game| play(game));
}
