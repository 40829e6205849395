//! An entity of the database lives at most once (P1): a check-out begins one life, the next is of a later check-out, and begins
//! behind the end of the one before in the archive, which a check-out is given out after. Pets count their lives, so that
//! each must begin with what the one before has written.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_event::{BaseCreation, Body, Event, Subject};
use annals_ids::{DatabaseId, EntityId, LeafIndex, Part};

use crate::{archive::Archive, game::PET, world::World};

/// A life, as the archive tells it.
struct Life {
    entity: EntityId,
    checkout: u64,
    begun: LeafIndex,
    ended: Option<LeafIndex>,
    /// How many there had been, as it found it in the database.
    before: Option<u64>,
}

/// See the module.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
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
                wrong.push(format!("entity {database} of the database: life {nth} never ended"));
            }
        }
    }
    wrong
}

/// How many lives pets have had.
#[must_use]
pub fn count(world: &World, archive: &Archive) -> usize {
    let lives = lives(world, archive);
    let pets = lives.values().flatten().filter(|life| life.before.is_some());
    pets.count()
}

/// The lives of each entity of the database that somebody asked for.
fn lives(world: &World, archive: &Archive) -> BTreeMap<DatabaseId, Vec<Life>> {
    let mut lives: BTreeMap<DatabaseId, Vec<Life>> = BTreeMap::new();
    let mut of: BTreeMap<EntityId, DatabaseId> = BTreeMap::new();
    for (leaf, event) in events(archive) {
        let Subject::Entity(entity, Part::Base) = event.subject else {
            continue;
        };
        match &event.body {
            Body::BaseCreated(creation) if creation.database.0 != 0 => {
                of.insert(entity, creation.database);
                lives.entry(creation.database).or_default().push(Life {
                    entity,
                    checkout: creation.checkout,
                    begun: leaf,
                    ended: None,
                    before: lives_before(world, creation),
                });
            }
            Body::Destroyed => {
                let life = of.get(&entity).and_then(|database| lives.get_mut(database));
                let life = life.into_iter().flatten().find(|life| life.entity == entity);
                if let Some(life) = life {
                    life.ended = Some(leaf);
                }
            }
            _ => {}
        }
    }
    lives
}

/// What a pet says of its former lives; `None` for others.
fn lives_before(world: &World, creation: &BaseCreation) -> Option<u64> {
    let pet = world.schema.type_named(PET)?;
    let counted = pet.property_named("lives").filter(|_| creation.type_id == pet.id)?;
    let held = creation.properties.iter().find(|(member, _)| *member == counted.index);
    match held {
        Some((_, Value::UInt(lives))) => Some(*lives),
        _ => None,
    }
}

/// Every event, in the order of the archive; each owner's in its own order, whatever was put back.
fn events(archive: &Archive) -> impl Iterator<Item = (LeafIndex, &Event)> {
    archive.leaves.iter().flat_map(|(leaf, (owner, number))| {
        let batch = archive.logs[owner].iter().find(|batch| batch.header.number == *number);
        let events = batch.into_iter().flat_map(|batch| &batch.events);
        events.map(|event| (*leaf, event))
    })
}
