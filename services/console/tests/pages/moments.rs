//! An entity at selected moments, compared with its log folded batch by batch.

use annals_def::Value;
use annals_event::{Batch, OwnerState, Subject};
use annals_ids::{EntityId, LogPosition, OwnerId, Part};
use annals_store::MemoryStore;
use axum::http::StatusCode;
use std::collections::BTreeMap;

use crate::{archive::Console, visitor::Visitor, world::World};

const STEPS: usize = 120;

/// Parts of an entity after a number of batches: their holders, and its level.
fn parts(world: &World, leaves: usize, entity: EntityId) -> Vec<(OwnerId, String)> {
    let mut states: BTreeMap<OwnerId, OwnerState> = BTreeMap::new();
    for frozen in &world.frozen[..leaves] {
        let state = states
            .entry(frozen.owner)
            .or_insert_with(|| OwnerState::new(frozen.owner, Part::Cell));
        state
            .fold(&Batch::read(&frozen.bytes).expect("sound"))
            .expect("possible");
    }
    let level = world
        .schema
        .type_named("Avatar")
        .expect("avatars")
        .property_named("level")
        .expect("levels");
    let here = states
        .values()
        .filter_map(|state| Some((state.owner, state.entities.get(&entity)?.value(level)?.into_owned())));
    let mut found: Vec<(OwnerId, Value)> = here.collect();
    if found.is_empty() {
        let away = states
            .values()
            .flat_map(|state| state.departing.values().map(move |departing| (state.owner, departing)));
        let of_it = away.filter(|(_, (other, _))| *other == entity);
        found = of_it
            .filter_map(|(owner, (_, image))| Some((owner, image.value(level)?.into_owned())))
            .collect();
    }
    found
        .into_iter()
        .map(|(owner, level)| (owner, level.to_string()))
        .collect()
}

#[tokio::test]
async fn the_state_of_an_entity_at_a_moment_is_correct() {
    for seed in 0..3 {
        let world = World::generate(MemoryStore::new().store(), seed, STEPS).await;
        let console = Console::over(&world.store).await;
        let mut iris = Visitor::named(&console, "iris").await;
        let mut seen = 0;
        for (leaf, frozen) in world.frozen.iter().enumerate().step_by(7) {
            let batch = Batch::read(&frozen.bytes).expect("sound");
            let Some(entity) = batch.events.iter().find_map(|event| match event.subject {
                Subject::Entity(entity, _) => Some(entity),
                Subject::Owner => None,
            }) else {
                continue;
            };
            let at = LogPosition {
                owner: frozen.owner,
                batch: frozen.number,
            };
            let shown = iris.get(&format!("/entity/{entity}?at={at}")).await;
            assert_eq!(shown.status, StatusCode::OK, "seed {seed}: {}", shown.text());
            let expected = parts(&world, leaf + 1, entity);
            let text = shown.text();
            let (_, then) = text.split_once("What it was then").expect("a heading");
            let (then, around) = then.split_once("What happened around that").expect("another");
            assert_eq!(
                then.contains("Nothing of it existed"),
                expected.is_empty(),
                "seed {seed}, {at}: {then}"
            );
            for (owner, level) in &expected {
                assert!(
                    then.contains(&format!("held by owner {owner}")),
                    "seed {seed}, {at}: {then}"
                );
                assert!(
                    then.contains(&format!("level{level}")),
                    "seed {seed}, {at}: level {level}: {then}"
                );
            }
            let (before, _) = around.split_once("the moment").expect("the moment is marked");
            assert!(
                before.contains(&format!("{at} #")),
                "seed {seed}: its own batch is before the moment"
            );
            seen += 1;
        }
        assert!(seen > 5, "seed {seed}: {seen} moments");
    }
}

/// Address of the link with this text.
fn link(html: &str, text: &str) -> Option<String> {
    let (before, _) = html.split_once(&format!(">{text}</a>"))?;
    let (_, address) = before.rsplit_once("href=\"")?;
    Some(address.trim_end_matches('"').replace("&amp;", "&"))
}

#[tokio::test]
async fn links_traverse_all_events_in_both_directions() {
    let world = World::generate(MemoryStore::new().store(), 9, STEPS).await;
    let console = Console::over(&world.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let entity = EntityId(101);
    let batches = world.frozen.iter().filter(|frozen| {
        let batch = Batch::read(&frozen.bytes).expect("sound");
        batch
            .events
            .iter()
            .any(|event| matches!(event.subject, Subject::Entity(of, _) if of == entity))
    });
    let batches: Vec<String> = batches
        .map(|frozen| format!("{}@{}", frozen.owner, frozen.number))
        .collect();
    let mut visited = Vec::new();
    let mut address = format!("/entity/{entity}");
    for _ in 0..=batches.len() {
        let shown = iris.get(&address).await;
        assert_eq!(shown.status, StatusCode::OK, "{address}");
        let Some(earlier) = link(shown.html(), "← Event before") else {
            break;
        };
        visited.push(earlier.split_once("at=").expect("a moment").1.to_owned());
        address = earlier;
    }
    let mut expected: Vec<String> = batches.iter().rev().skip(1).cloned().collect();
    assert_eq!(visited, expected, "back to the first");
    expected.reverse();
    visited.clear();
    for _ in 0..=batches.len() {
        let shown = iris.get(&address).await;
        let Some(later) = link(shown.html(), "Next event →") else {
            break;
        };
        visited.push(later.split_once("at=").expect("a moment").1.to_owned());
        address = later;
    }
    assert_eq!(visited, batches[1..], "and on to the last");
}
