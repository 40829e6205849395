//! A small game: players walk about in a garden, talk, and pick berries.
//!
//! The entities are described in `defs/`. What they do is here, with a module per kind of entity, against the types in
//! [`defs`], which `annals defs generate` writes from the descriptions. After a change of a `.def` file run
//! `make defs`; the compiler then names what the behaviour lacks.
//!
//! Behaviour keeps no state between calls: the process may be killed at any time, and another one continues. What must
//! last is in properties, timers and controllers of entities.

mod account;
mod avatar;
mod bush;
#[rustfmt::skip]
pub mod defs;

use std::sync::Arc;

use annals_game::{
    def::Schema,
    event::Place,
    ids::{Direction, Position},
    node::{Behaviour, Bootstrap, Context, typed::OtherSchema},
};

use defs::{Dispatcher, Game};

/// The game. It implements the behaviour of each part of each entity type.
#[derive(Clone, Copy, Debug)]
pub struct Rules;

impl Game for Rules {
    /// The entity that a new realm creates before the first log-in.
    fn bootstrap(&self) -> Option<Bootstrap> {
        Some(Bootstrap {
            type_id: defs::garden::TYPE,
            properties: Vec::new(),
        })
    }
}

/// The behaviour for a realm's definitions.
///
/// # Errors
/// If they are not those that `defs.rs` was generated from.
pub fn game(schema: &Arc<Schema>) -> Result<Arc<dyn Behaviour>, OtherSchema> {
    Ok(Arc::new(Dispatcher::new(schema, Rules)?))
}

/// A random place in the first space, at most `reach` metres from its origin along each axis.
fn somewhere(context: &mut Context<'_>, reach: f32) -> Place {
    Place {
        space: annals_game::FIRST_SPACE,
        position: Position {
            x: rolled(context, reach),
            y: 0.0,
            z: rolled(context, reach),
        },
        direction: Direction::default(),
    }
}

/// A random number from `-most` to `most`.
fn rolled(context: &mut Context<'_>, most: f32) -> f32 {
    const STEPS: u16 = 10_000;
    let step = u16::try_from(context.roll() % u64::from(STEPS)).unwrap_or(0);
    most * (2.0 * f32::from(step) / f32::from(STEPS) - 1.0)
}
