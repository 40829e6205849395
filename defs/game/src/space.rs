//! What a space is made of: the entity that looks after it, spawn points, chests.

use annals_def::{Schema, Value};
use annals_event::Place;
use annals_ids::{Part, Position};
use annals_node::{Answer, Context, Denied, Request};

use crate::{PLAZA, WORLD, near, properties, unknown, unsigned};

/// How many monsters a new space has.
pub(crate) const MONSTERS_AT_FIRST: u64 = 12;

/// How many monsters one spawn point keeps.
const PER_SPAWN_POINT: u64 = 3;

/// How many chests a new space has.
const CHESTS: u64 = 2;

/// How far from its spawn point a monster appears, metres.
const SPAWN_REACH: f32 = 5.0;

/// How long a monster takes to appear, milliseconds: a spawn point that has just been made lets its space settle.
const SPAWN_MS: u64 = 500;

/// How often the weather changes, milliseconds.
const WEATHER_EVERY_MS: u64 = 30_000;

/// How many kinds of weather there are.
const WEATHERS: u64 = 4;

/// How many species of monsters there are.
const SPECIES: u64 = 5;

/// A space's entity stands in its middle.
pub(crate) fn created(context: &mut Context<'_>) -> Result<(), Denied> {
    context.set_timer(WEATHER_EVERY_MS, WEATHER_EVERY_MS, 0);
    let place = Place {
        space: WORLD,
        ..Place::default()
    };
    let entity = context.entity();
    context.request(Request::CreateCell {
        entity,
        place,
        properties: Vec::new(),
    });
    Ok(())
}

pub(crate) fn timer(context: &mut Context<'_>) -> Result<(), Denied> {
    let cell = context.mailbox(Part::Cell);
    let weather = Value::UInt(context.roll() % WEATHERS);
    context.call(cell, "setWeather", vec![weather])
}

pub(crate) fn call(schema: &Schema, context: &mut Context<'_>, name: &str, args: &[Value]) -> Result<Answer, Denied> {
    match (name, args) {
        ("populate", [monsters]) => populate(schema, context, unsigned(monsters)).map(|()| Answer::DONE),
        _ => Ok(unknown(name)),
    }
}

/// Makes spawn points for so many monsters, and chests.
pub(crate) fn populate(schema: &Schema, context: &mut Context<'_>, monsters: u64) -> Result<(), Denied> {
    let mut left = monsters;
    while left > 0 {
        let wanted = left.min(PER_SPAWN_POINT);
        left -= wanted;
        let species = Value::UInt(context.roll() % SPECIES);
        let values = vec![("wanted", Value::UInt(wanted)), ("species", species)];
        put_up(schema, context, "SpawnPoint", values)?;
    }
    for _ in 0..CHESTS {
        let key = context.roll().to_le_bytes().to_vec();
        put_up(schema, context, "Chest", vec![("keyHole", Value::Bytes(key))])?;
    }
    Ok(())
}

/// Makes an entity somewhere in the space.
fn put_up(
    schema: &Schema,
    context: &mut Context<'_>,
    entity_type: &str,
    values: Vec<(&str, Value)>,
) -> Result<(), Denied> {
    let entity = context.create_base(entity_type, Vec::new())?.entity;
    let place = near(context, Position::default(), PLAZA);
    let properties = properties(schema, entity_type, values);
    context.request(Request::CreateCell {
        entity,
        place,
        properties,
    });
    Ok(())
}

pub(crate) fn cell_call(context: &mut Context<'_>, name: &str, args: &[Value]) -> Result<Answer, Denied> {
    match (name, args) {
        ("setWeather", [weather]) => context.set("weather", weather.clone()).map(|()| Answer::DONE),
        _ => Ok(unknown(name)),
    }
}

pub(crate) fn spawn_point_created(schema: &Schema, context: &mut Context<'_>) -> Result<(), Denied> {
    debug_assert!(schema.type_named("Monster").is_some(), "there is nothing to spawn");
    for _ in 0..unsigned(context.get("wanted")?) {
        context.set_timer(SPAWN_MS, 0, 0);
    }
    Ok(())
}

pub(crate) fn spawn_point_call(context: &mut Context<'_>, name: &str) -> Result<Answer, Denied> {
    if name != "onMonsterGone" {
        return Ok(unknown(name));
    }
    let seconds = match context.get("respawnAfter")? {
        Value::Float32(seconds) if seconds.is_finite() => seconds.clamp(1.0, 86_400.0),
        _ => 1.0,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it lies between 1 and 86,400"
    )]
    let seconds = seconds as u64;
    context.set_timer(seconds * 1_000, 0, 0);
    Ok(Answer::DONE)
}

/// A spawn point makes one monster.
pub(crate) fn spawn(schema: &Schema, context: &mut Context<'_>) -> Result<(), Denied> {
    let (Some(monster), Some(place)) = (schema.type_named("Monster"), context.place()) else {
        return Ok(());
    };
    let species = context.get("species")?.clone();
    let own = Value::Mailbox(Some(context.mailbox(Part::Cell)));
    let values = vec![("species", species), ("spawnPoint", own)];
    let place = near(context, place.position, SPAWN_REACH);
    context.create_cell_only(monster.id, place, properties(schema, "Monster", values))?;
    Ok(())
}

/// A chest opens and closes for whoever has the key.
pub(crate) fn chest_call(context: &mut Context<'_>, name: &str, args: &[Value]) -> Result<Answer, Denied> {
    match (name, args) {
        ("turnKey", [key]) => {
            if context.get("keyHole")? == key {
                let open = unsigned(context.get("open")?);
                context.set("open", Value::UInt(1 - open.min(1)))?;
            }
            Ok(Answer::DONE)
        }
        _ => Ok(unknown(name)),
    }
}
