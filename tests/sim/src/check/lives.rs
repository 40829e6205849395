//! A stored entity has at most one activation at a time (P1): a check-out begins one activation; the next belongs to a
//! later check-out and begins after the end of the previous one in the archive, because a check-out is granted only
//! after that end. Pets count their activations, so each must begin with the count that the previous one wrote.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_event::{BaseCreation, Body, Event, Subject};
use annals_ids::{DatabaseId, EntityId, Part};
use annals_store::{KeyRange, ScanOrder, immediate, layout::shards};

use crate::{archive::Archive, game::PET, world::World};

/// An activation, as recorded in the archive.
struct Life {
    entity: EntityId,
    checkout: u64,
    /// Place in the order of the archive.
    begun: usize,
    ended: Option<usize>,
    /// Number of earlier activations, as it read from the database.
    before: Option<u64>,
}

/// Checks that activations of a stored entity do not overlap.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = unanswered(world);
    for (database, mut lives) in lives(world, archive) {
        lives.sort_by_key(|life| life.checkout);
        for pair in lives.windows(2) {
            let (one, next) = (&pair[0], &pair[1]);
            let place = format!("entity {database} of the database");
            if one.checkout == next.checkout {
                wrong.push(format!(
                    "{place}: check-out {} began entities {} and {}",
                    one.checkout, one.entity, next.entity
                ));
            }
            if one.ended.is_none_or(|ended| ended > next.begun) {
                wrong.push(format!(
                    "{place}: entity {} began to live while entity {} did",
                    next.entity, one.entity
                ));
            }
        }
        for (nth, life) in (0..).zip(&lives) {
            if life.before.is_some_and(|before| before != nth) {
                wrong.push(format!(
                    "entity {database} of the database: life {nth} found {:?} lives before it",
                    life.before
                ));
            }
            if life.before.is_some() && life.ended.is_none() {
                wrong.push(format!(
                    "entity {database} of the database: activation {nth} never ended"
                ));
            }
        }
    }
    wrong
}

/// What shards still ask of each other at the end of a run, and cell parts that are kept for activations that have ended
/// (rules T3 and T4).
fn unanswered(world: &World) -> Vec<String> {
    let all = shards::all(world.plan.shards);
    let asked = all.flat_map(|shard| [shards::partings(shard), shards::wanted(shard)]);
    let transaction = world.truth().begin();
    let has_rows = |range: &KeyRange| {
        let page = immediate(transaction.get_range(range, 1, ScanOrder::Forward));
        !page.expect("the simulated store answers").rows.is_empty()
    };
    let left = asked.filter(has_rows);
    left.map(|range| format!("a shard still asks another for {range:?}"))
        .collect()
}

/// Number of activations of pets.
#[must_use]
pub fn count(world: &World, archive: &Archive) -> usize {
    let lives = lives(world, archive);
    let pets = lives.values().flatten().filter(|life| life.before.is_some());
    pets.count()
}

/// The activations of each stored entity whose activation was requested.
fn lives(world: &World, archive: &Archive) -> BTreeMap<DatabaseId, Vec<Life>> {
    let mut lives: BTreeMap<DatabaseId, Vec<Life>> = BTreeMap::new();
    let mut of: BTreeMap<EntityId, DatabaseId> = BTreeMap::new();
    for (place, event) in events(archive) {
        let Subject::Entity(entity, Part::Base) = event.subject else {
            continue;
        };
        match &event.body {
            Body::BaseCreated(creation) if creation.database.0 != 0 => {
                of.insert(entity, creation.database);
                lives.entry(creation.database).or_default().push(Life {
                    entity,
                    checkout: creation.checkout,
                    begun: place,
                    ended: None,
                    before: lives_before(world, creation),
                });
            }
            Body::Destroyed => {
                let life = of.get(&entity).and_then(|database| lives.get_mut(database));
                let life = life.into_iter().flatten().find(|life| life.entity == entity);
                if let Some(life) = life {
                    life.ended = Some(place);
                }
            }
            _ => {}
        }
    }
    lives
}

/// A pet's count of its earlier activations; `None` for other entities.
fn lives_before(world: &World, creation: &BaseCreation) -> Option<u64> {
    let pet = world.schema.type_named(PET)?;
    let counted = pet.property_named("lives").filter(|_| creation.type_id == pet.id)?;
    let held = creation.properties.iter().find(|(member, _)| *member == counted.index);
    match held {
        Some((_, Value::UInt(lives))) => Some(*lives),
        _ => None,
    }
}

/// Every event, in archive order; each owner's events are in its own order, even if batches were put back.
fn events(archive: &Archive) -> impl Iterator<Item = (usize, &Event)> {
    archive.order.iter().enumerate().flat_map(|(place, (owner, number))| {
        let batch = archive.logs[owner].iter().find(|batch| batch.header.number == *number);
        let events = batch.into_iter().flat_map(|batch| &batch.events);
        events.map(move |event| (place, event))
    })
}
