//! Behaviour of the sample world: what the entities described in `defs/` do.
//!
//! A game is a crate of its own that depends on the crates of Annals; this one is an example. [`Sample`] is the game of
//! the sample definitions, with a module per kind of entity, written against the types in [`defs`], which are generated
//! from them. [`Puppet`] plays any world from its schema alone.
//!
//! Behaviour keeps no state between calls: lasting state is in properties, timers and the notes of awaited replies.

mod account;
mod avatar;
mod combat;
#[rustfmt::skip]
pub mod defs;
mod monster;
mod puppet;
mod space;
mod trade;

use std::sync::Arc;

use annals_def::Schema;
use annals_event::Place;
use annals_ids::{Direction, EntityId, Position, SpaceId, TypeId};
use annals_node::{Behaviour, Bootstrap, Caller, Context, typed::OtherSchema};

use defs::{Dispatcher, Game};

pub use account::CHOICE_MS;
pub use puppet::{BODY_EVERY, CALLS_PER_BODY, EXTRA_MS, EXTRA_TURNS, Puppet, PuppetCounters, ROUND, TURN_MS};
pub use space::{SPACE, WEATHER};
pub use trade::{CARRIED, COIN, FIRST_COINS, FIRST_SWORDS, SWORD, TRADE_MS, WORN, wishes};

/// The only space of the sample world.
pub const WORLD: SpaceId = SpaceId(1);

/// Maximum distance from the origin at which newcomers appear, metres: near enough to see one another, and on both
/// sides of a boundary through the origin.
pub const PLAZA: f32 = 40.0;

/// The game of the sample definitions. An operation that is denied is a bug in this crate: the realm continues without
/// it, and the log reports it.
#[derive(Clone, Copy, Debug)]
pub struct Sample;

impl Game for Sample {
    /// Before the first log-in, a space is created, which makes its monsters and chests.
    fn bootstrap(&self) -> Option<Bootstrap> {
        Some(Bootstrap {
            type_id: defs::space::TYPE,
            properties: Vec::new(),
        })
    }

    /// Spaces follow the weather.
    fn follows_global_data(&self, entity_type: TypeId) -> bool {
        entity_type == defs::space::TYPE
    }
}

/// Seconds of a definition in milliseconds: at least 1 s, at most a day.
fn milliseconds(seconds: f32) -> u64 {
    let seconds = if seconds.is_finite() {
        seconds.clamp(1.0, 86_400.0)
    } else {
        1.0
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it lies between 1 and 86,400"
    )]
    let seconds = seconds as u64;
    seconds * 1_000
}

/// A random number from `least` to `most`.
fn rolled(context: &mut Context<'_>, least: f32, most: f32) -> f32 {
    const STEPS: u16 = 10_000;
    let step = u16::try_from(context.roll() % u64::from(STEPS)).unwrap_or(0);
    least + (most - least) * f32::from(step) / f32::from(STEPS)
}

/// A random place at most `reach` metres from another, along each axis.
fn near(context: &mut Context<'_>, position: Position, reach: f32) -> Place {
    Place {
        space: WORLD,
        position: Position {
            x: position.x + rolled(context, -reach, reach),
            y: position.y,
            z: position.z + rolled(context, -reach, reach),
        },
        direction: Direction {
            yaw: rolled(context, -std::f32::consts::PI, std::f32::consts::PI),
            ..Direction::default()
        },
    }
}

/// Number that identifies a caller to clients: the entity, or the session of a client.
fn called_by(caller: &Caller) -> u64 {
    let entity = caller.link.from.entity().map(|(EntityId(entity), _)| entity);
    let session = caller.client().map(|session| session.0);
    entity.or(session).unwrap_or_default()
}

/// The behaviour for a world's definitions: [`Sample`] for the sample's, and [`Puppet`] for any others.
///
/// # Errors
/// If they are the sample's, but not those that this crate was built from.
pub fn game(schema: &Arc<Schema>) -> Result<Arc<dyn Behaviour>, OtherSchema> {
    let is_sample = ["Account", "Avatar", "Chest", "PatrolNode"].iter().all(|name| {
        let is_object = schema.user_data_objects().iter().any(|object| object.name == *name);
        schema.type_named(name).is_some() || is_object
    });
    if is_sample {
        Ok(Arc::new(Dispatcher::new(schema, Sample)?))
    } else {
        Ok(Arc::new(Puppet::new(Arc::clone(schema))))
    }
}
