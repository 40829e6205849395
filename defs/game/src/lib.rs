//! The sample world's behaviour: what the entities described in `defs/` do.
//!
//! A game is a crate of its own that depends on ours; this is one, and shows what one looks like. [`Sample`] is the game of
//! the sample definitions, a module per kind of entity. [`Puppet`] plays any world, knowing nothing but its schema.
//!
//! Behaviour keeps nothing between calls: what has to last is in properties, timers and the notes of awaited replies.

mod account;
mod avatar;
mod combat;
mod monster;
mod note;
mod puppet;
mod space;

use std::sync::Arc;

use annals_def::{Schema, Value};
use annals_event::{CallError, Outcome, Place};
use annals_ids::{Direction, EntityId, MemberId, Part, Position, SpaceId, TimerId, TypeId};
use annals_node::{Answer, Behaviour, Bootstrap, Caller, Context, Denied};

pub use account::CHOICE_MS;
pub use puppet::{BODY_EVERY, EXTRA_MS, EXTRA_TURNS, Puppet, PuppetCounters, ROUND, TURN_MS};

/// The space in which everything happens.
pub const WORLD: SpaceId = SpaceId(1);

/// Newcomers appear at most this far from the origin, metres: near enough to see one another, and on both sides of a
/// boundary through the origin.
pub const PLAZA: f32 = 40.0;

/// The game of the sample definitions.
#[derive(Debug)]
pub struct Sample {
    schema: Arc<Schema>,
}

/// The kinds of entities that do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Account,
    Avatar,
    Monster,
    Chest,
    Space,
    SpawnPoint,
    Other,
}

impl Sample {
    /// For a realm that runs on the sample's definitions.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Self {
        Self { schema }
    }

    fn kind(&self, context: &Context<'_>) -> (Kind, Part) {
        let kind = match context.entity_type().name.as_str() {
            "Account" => Kind::Account,
            "Avatar" => Kind::Avatar,
            "Monster" => Kind::Monster,
            "Chest" => Kind::Chest,
            "Space" => Kind::Space,
            "SpawnPoint" => Kind::SpawnPoint,
            _ => Kind::Other,
        };
        (kind, context.part())
    }

    fn method_name(&self, type_id: TypeId, part: Part, method: MemberId) -> &str {
        let entity_type = self.schema.entity_type(type_id);
        let methods = entity_type.map(|found| match part {
            Part::Base => &found.base_methods,
            Part::Cell => &found.cell_methods,
        });
        let found = methods.and_then(|methods| methods.get(usize::from(method.0)));
        found.map_or("", |method| method.name.as_str())
    }
}

impl Behaviour for Sample {
    /// The world is there before anybody comes: a space, which makes its monsters and chests.
    fn bootstrap(&self) -> Option<Bootstrap> {
        let space = self.schema.type_named("Space")?;
        Some(Bootstrap {
            type_id: space.id,
            properties: Vec::new(),
        })
    }

    fn created(&self, context: &mut Context<'_>) {
        let result = match self.kind(context) {
            (Kind::Avatar, Part::Base) => avatar::base_created(context),
            (Kind::Avatar, Part::Cell) => avatar::cell_created(context),
            (Kind::Monster, Part::Cell) => monster::created(context),
            (Kind::Space, Part::Base) => space::created(context),
            (Kind::SpawnPoint, Part::Cell) => space::spawn_point_created(&self.schema, context),
            _ => Ok(()),
        };
        done(result, context);
    }

    fn destroyed(&self, context: &mut Context<'_>) {
        if self.kind(context) == (Kind::Avatar, Part::Base) {
            done(avatar::destroyed(context), context);
        }
    }

    fn call(&self, context: &mut Context<'_>, method: MemberId, args: &[Value], caller: &Caller) -> Answer {
        let (kind, part) = self.kind(context);
        let name = self.method_name(context.entity_type().id, part, method);
        let answer = match (kind, part) {
            (Kind::Account, Part::Base) => account::call(&self.schema, context, name, args),
            (Kind::Avatar, Part::Base) => avatar::base_call(context, name, args, caller),
            (Kind::Avatar, Part::Cell) => avatar::cell_call(context, name, args, caller),
            (Kind::Monster, Part::Cell) => monster::call(context, name, args, caller),
            (Kind::Chest, Part::Cell) => space::chest_call(context, name, args),
            (Kind::Space, Part::Base) => space::call(&self.schema, context, name, args),
            (Kind::Space, Part::Cell) => space::cell_call(context, name, args),
            (Kind::SpawnPoint, Part::Cell) => space::spawn_point_call(context, name),
            _ => Ok(unknown(name)),
        };
        answer.unwrap_or_else(|denied| {
            let error = CallError::Internal(denied.to_string());
            if !caller.wants_reply {
                context.report(denied);
            }
            Answer::Fail(error)
        })
    }

    fn replied(&self, context: &mut Context<'_>, _then: u32, note: &[u8], outcome: &Outcome) {
        if self.kind(context) == (Kind::Avatar, Part::Base) {
            avatar::replied(context, note, outcome);
        }
    }

    fn timer(&self, context: &mut Context<'_>, _timer: TimerId, tag: u32) {
        let result = match self.kind(context) {
            (Kind::Account, Part::Base) => account::timer(&self.schema, context),
            (Kind::Avatar, Part::Base) => avatar::base_timer(context),
            (Kind::Avatar, Part::Cell) => avatar::cell_timer(context, tag),
            (Kind::Monster, Part::Cell) => monster::timer(context, tag),
            (Kind::Space, Part::Base) => space::timer(context),
            (Kind::SpawnPoint, Part::Cell) => space::spawn(&self.schema, context),
            _ => Ok(()),
        };
        done(result, context);
    }

    fn client_attached(&self, context: &mut Context<'_>) {
        if self.kind(context) == (Kind::Account, Part::Base) {
            done(account::client_attached(context), context);
        }
    }

    fn client_lost(&self, context: &mut Context<'_>) {
        let result = match self.kind(context) {
            (Kind::Account, Part::Base) => account::client_lost(context),
            (Kind::Avatar, Part::Base) => avatar::client_lost(context),
            _ => Ok(()),
        };
        done(result, context);
    }

    fn cell_gained(&self, context: &mut Context<'_>) {
        if self.kind(context) == (Kind::Space, Part::Base) {
            let result = space::populate(&self.schema, context, space::MONSTERS_AT_FIRST);
            done(result, context);
        }
    }
}

/// What is denied here is a mistake in the definitions or in this crate: a realm goes on without, and its log says so.
fn done(result: Result<(), Denied>, context: &mut Context<'_>) {
    if let Err(denied) = result {
        context.report(denied);
    }
}

/// The answer to a method that has no behaviour.
fn unknown(name: &str) -> Answer {
    Answer::Fail(CallError::Internal(format!("the sample has no behaviour for {name}")))
}

/// A number from `least` to `most`.
fn rolled(context: &mut Context<'_>, least: f32, most: f32) -> f32 {
    const STEPS: u16 = 10_000;
    let step = u16::try_from(context.roll() % u64::from(STEPS)).unwrap_or(0);
    least + (most - least) * f32::from(step) / f32::from(STEPS)
}

/// A place at most `reach` metres from another, along each axis.
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

/// Properties of a type by name, as creation wants them. A name that the type does not have is left out: creation then uses
/// the default of what it does have.
fn properties(schema: &Schema, entity_type: &str, values: Vec<(&str, Value)>) -> Vec<(MemberId, Value)> {
    let found = schema.type_named(entity_type);
    let id = |name: &str| {
        found
            .and_then(|found| found.property_named(name))
            .map(|property| property.index)
    };
    values
        .into_iter()
        .filter_map(|(name, value)| Some((id(name)?, value)))
        .collect()
}

/// The number in a value; 0 if there is none.
fn unsigned(value: &Value) -> u64 {
    match value {
        Value::UInt(number) => *number,
        _ => 0,
    }
}

/// The number in a value; 0 if there is none.
fn signed(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        _ => 0,
    }
}

/// The elements of a value; none if it has none.
fn elements(value: &Value) -> Vec<Value> {
    match value {
        Value::Sequence(values) => values.clone(),
        _ => Vec::new(),
    }
}

/// How a text is told to clients.
fn text(text: &str) -> Value {
    Value::Unicode(text.to_owned())
}

/// Who called, as clients are told: the entity, or the session of a client.
fn called_by(caller: &Caller) -> Value {
    let entity = caller.link.from.entity().map(|(EntityId(entity), _)| entity);
    let session = caller.client().map(|session| session.0);
    Value::UInt(entity.or(session).unwrap_or_default())
}

/// The behaviour for a world's definitions: the sample's for the sample, and for any other world [`Puppet`].
#[must_use]
pub fn game(schema: &Arc<Schema>) -> Arc<dyn Behaviour> {
    let is_sample = ["Account", "Avatar", "Chest", "PatrolNode"].iter().all(|name| {
        let is_object = schema.user_data_objects().iter().any(|object| object.name == *name);
        schema.type_named(name).is_some() || is_object
    });
    if is_sample {
        Arc::new(Sample::new(Arc::clone(schema)))
    } else {
        Arc::new(Puppet::new(Arc::clone(schema)))
    }
}
