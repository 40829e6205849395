//! Behaviour for any world: from the schema alone, it exercises all properties and methods with generated values.
//!
//! Each entity part has one timer. Each time it fires, the part takes its next turn: it changes some of its properties,
//! as a whole, in a part and in a slice, and calls some of its client methods; a round of turns covers all of them. The
//! number of the next turn is the timer's tag, so that it survives the loss of the process. A part that is called
//! answers what the method declares.
//!
//! Clients log in as an entity that may have no place in the world. Such an entity makes a *body*, an entity that has
//! one, and gives it its client. An entity with a client also makes *extras*, one of each type in turn, each of which
//! lives for a little more than a round: those with a base part are made by the base, those without by the cell. From
//! time to time the client is given to another body, of a type with exposed methods, so that clients call everything.
//! The next type comes from one list for the whole process, in which a type appears the more often the more exposed
//! methods it has: the time until all types were made grows with the world, and shrinks with the number of clients.

use std::borrow::Cow;
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use annals_def::{
    EntityType, Method, Property, Schema, Value, generate, generate_nested, generate_slice, generate_with_parts,
};
use annals_event::{Audience, CallError};
use annals_ids::{EntityId, MemberId, Part, Position, SessionId, TimerId, TypeId};
use annals_node::{Answer, Behaviour, Caller, Context, Denied, Request};

use crate::{PLAZA, near};

/// Interval of a part's turns, milliseconds.
pub const TURN_MS: u64 = 1_000;

/// Turns per round.
pub const ROUND: u32 = 10;

/// Turns in the life of an extra: a full round, and then a moment in which it is seen unchanged.
pub const EXTRA_TURNS: u32 = ROUND + 2;

/// Interval at which an entity with a client makes extras, milliseconds: each client has three of them at a time.
pub const EXTRA_MS: u64 = 4_000;

/// One in this many extras becomes the client's next body.
pub const BODY_EVERY: u64 = 5;

/// Tag of the timer that makes extras. Turn numbers stay below it.
const EXTRAS: u32 = u32::MAX;

/// Minimum calls that a client makes on a body before it is given to another.
pub const CALLS_PER_BODY: usize = 10;

/// Offsets the clocks of clients with consecutive session ids.
const PHASE: u64 = 997;

/// Maximum distance of an extra from its maker, metres.
const EXTRA_REACH: f32 = 10.0;

/// Behaviour for a world whose own behaviour is not present.
#[derive(Debug)]
pub struct Puppet {
    schema: Arc<Schema>,
    counts: Counts,
    extras_of_bases: Rota,
    extras_of_cells: Rota,
    bodies: Rota,
}

/// A cyclic list of entity types.
#[derive(Debug)]
struct Rota {
    types: Vec<TypeId>,
    next: AtomicUsize,
}

impl Rota {
    fn new(types: Vec<TypeId>) -> Self {
        Self {
            types,
            next: AtomicUsize::new(0),
        }
    }

    fn next(&self) -> Option<TypeId> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.types.get(turn.checked_rem(self.types.len())?).copied()
    }
}

/// Counters of this process, for the report.
#[derive(Debug, Default)]
struct Counts {
    called: AtomicU64,
    assigned: AtomicU64,
    invoked: AtomicU64,
    denied: AtomicU64,
}

/// Counters of the puppets of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PuppetCounters {
    /// Methods called on puppets.
    pub called: u64,
    /// Property changes made.
    pub assigned: u64,
    /// Client methods called.
    pub invoked: u64,
    /// Denied operations: must be 0, or the generated values are not valid.
    pub denied: u64,
}

impl Puppet {
    /// Puppets for a realm with this schema.
    #[must_use]
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            counts: Counts::default(),
            extras_of_bases: Rota::new(Self::extras(&schema, Part::Base)),
            extras_of_cells: Rota::new(Self::extras(&schema, Part::Cell)),
            bodies: Rota::new(Self::bodies(&schema)),
            schema,
        }
    }

    /// Types of the extras that parts of this kind make.
    #[must_use]
    pub fn extras(schema: &Schema, part: Part) -> Vec<TypeId> {
        let able = schema.types().iter().filter(|found| match part {
            Part::Base => found.parts.base,
            Part::Cell => found.parts.cell && !found.parts.base,
        });
        able.map(|found| found.id).collect()
    }

    /// Types of the bodies that clients are given in turn: all with exposed methods, each once per [`CALLS_PER_BODY`]
    /// exposed methods. Types with few methods come first, and do not wait for those with many.
    #[must_use]
    pub fn bodies(schema: &Schema) -> Vec<TypeId> {
        let able = schema.types().iter().filter(|found| found.parts.base);
        let mut places: Vec<(usize, TypeId)> = able
            .flat_map(|found| (0..exposed(found).div_ceil(CALLS_PER_BODY)).map(|place| (place, found.id)))
            .collect();
        places.sort();
        places.into_iter().map(|(_, body)| body).collect()
    }

    /// Current counters.
    #[must_use]
    pub fn counters(&self) -> PuppetCounters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        PuppetCounters {
            called: read(&self.counts.called),
            assigned: read(&self.counts.assigned),
            invoked: read(&self.counts.invoked),
            denied: read(&self.counts.denied),
        }
    }

    /// Entity type for log-ins. It has a base part; preferably also a client part and no cell part, as accounts do.
    #[must_use]
    pub fn account_type(schema: &Schema) -> Option<TypeId> {
        let able = schema.types().iter().filter(|found| found.parts.base);
        let best = able.min_by_key(|found| (!found.parts.client, found.parts.cell, found.id));
        best.map(|found| found.id)
    }

    /// Entity type that players control in the world. It has a base and a cell part; preferably also a client part and
    /// many exposed methods, as a type with many was made for players.
    #[must_use]
    pub fn body_type(schema: &Schema) -> Option<TypeId> {
        let able = schema
            .types()
            .iter()
            .filter(|found| found.parts.base && found.parts.cell);
        let best = able.min_by_key(|found| (!found.parts.client, usize::MAX - exposed(found), found.id));
        best.map(|found| found.id)
    }

    fn type_of(&self, context: &Context<'_>) -> Option<&EntityType> {
        self.schema.entity_type(context.entity_type().id)
    }

    fn count(&self, count: &AtomicU64, result: &Result<(), Denied>) {
        let count = if result.is_ok() { count } else { &self.counts.denied };
        count.fetch_add(1, Ordering::Relaxed);
        debug_assert!(result.is_ok(), "{result:?}");
    }

    fn ask(&self, context: &mut Context<'_>, request: Request) {
        if let Err(denied) = context.request(request) {
            self.count(&self.counts.denied, &Err(denied));
        }
    }

    /// Requests the cell part of a base entity, at a place near the origin.
    fn enter_world(&self, context: &mut Context<'_>, entity: EntityId) {
        let place = near(context, Position::default(), PLAZA);
        let properties = Vec::new();
        self.ask(
            context,
            Request::CreateCell {
                entity,
                place,
                properties,
            },
        );
    }

    /// Performs turn number `turn`.
    fn take_turn(&self, context: &mut Context<'_>, turn: u32) {
        let Some(own) = self.type_of(context) else { return };
        let part = context.part();
        let held: Vec<_> = own
            .properties
            .iter()
            .filter(|property| property.is_held_by(part))
            .collect();
        let all = held.len() + own.client_methods.len();
        let (turn, round) = (index(turn % ROUND), index(turn / ROUND));
        let share = all.div_ceil(index(ROUND));
        for next in (turn * share..(turn + 1) * share).take_while(|next| *next < all) {
            if let Some(property) = held.get(next) {
                self.change(context, property);
            } else if let Some(method) = own.client_methods.get(next - held.len()) {
                let audiences = [Audience::Own, Audience::Others, Audience::All];
                let args = generated(context, method);
                let audience = audiences[(round + next) % audiences.len()];
                self.count(&self.counts.invoked, &context.invoke(audience, &method.name, args));
            }
        }
    }

    /// Changes a property as a whole, then a part of it and a slice, if its type has any.
    fn change(&self, context: &mut Context<'_>, property: &Property) {
        let (name, data_type) = (&property.name, &property.data_type);
        let value = generate_with_parts(data_type, &mut || context.roll());
        self.count(&self.counts.assigned, &context.set(name, value));
        for generated in [generate_nested, generate_slice] {
            let Some(value) = context.get(name).ok().map(Cow::into_owned) else {
                return;
            };
            if let Some(change) = generated(data_type, &value, &mut || context.roll()) {
                self.count(&self.counts.assigned, &context.change(name, change));
            }
        }
    }

    /// Whether this part is an extra at the end of its life.
    fn is_over(&self, context: &Context<'_>, turn: u32) -> bool {
        let own = self.type_of(context);
        match context.part() {
            Part::Base => turn >= EXTRA_TURNS && context.client().is_none() && !is_account(context),
            Part::Cell => turn >= EXTRA_TURNS && own.is_some_and(|own| !own.parts.base),
        }
    }

    /// Creates an extra, of the next type that this part can make.
    fn make_extra(&self, context: &mut Context<'_>) {
        let part = context.part();
        let next = match part {
            Part::Base => self.extras_of_bases.next(),
            Part::Cell => self.extras_of_cells.next(),
        };
        let Some(extra) = next.and_then(|id| self.schema.entity_type(id)) else {
            return;
        };
        let made = match (part, context.place()) {
            (Part::Base, _) => context.create_base(&extra.name, Vec::new()).map(|made| {
                if extra.parts.cell {
                    self.enter_world(context, made.entity);
                }
            }),
            (Part::Cell, Some(place)) => {
                let place = near(context, place.position, EXTRA_REACH);
                context.create_cell_only(extra.id, place, Vec::new()).map(drop)
            }
            (Part::Cell, None) => return,
        };
        // A lack of ids is temporary; any other denial is a bug.
        if let Err(denied) = made
            && denied != Denied::NoIds
        {
            self.count(&self.counts.denied, &Err(denied));
        }
    }

    /// Creates what is due at this beat of a client's clock: an extra, or the client's next body.
    fn make_next(&self, context: &mut Context<'_>, session: SessionId) {
        let (beat, _) = clock(context, session);
        if context.part() == Part::Base && beat % BODY_EVERY == BODY_EVERY - 1 {
            self.change_body(context);
        } else {
            self.make_extra(context);
        }
    }

    /// Gives the client of an account to an entity with a place in the world.
    fn leave_account(&self, context: &mut Context<'_>) {
        match Self::body_type(&self.schema).and_then(|id| self.schema.entity_type(id)) {
            Some(body) => self.make_body(context, body),
            None => set_extras_timer(context),
        }
    }

    /// Gives the client to a new entity of the next type with exposed methods.
    fn change_body(&self, context: &mut Context<'_>) {
        if let Some(body) = self.bodies.next().and_then(|id| self.schema.entity_type(id)) {
            self.make_body(context, body);
        }
    }

    /// Creates an entity and gives it the client.
    fn make_body(&self, context: &mut Context<'_>, body: &EntityType) {
        match context.create_base(&body.name, Vec::new()) {
            Ok(made) => {
                // The order matters: the cell part must start with its client.
                let (from, to) = (context.entity(), made);
                self.ask(context, Request::GiveClient { from, to });
                if body.parts.cell {
                    self.enter_world(context, made.entity);
                }
            }
            Err(denied) => self.count(&self.counts.denied, &Err(denied)),
        }
    }
}

impl Behaviour for Puppet {
    fn created(&self, context: &mut Context<'_>) {
        // A fragment only answers.
        if context.entity().fragment().is_some() {
            return;
        }
        let first = context.roll() % TURN_MS;
        context.set_timer(first, 0, 0);
        let is_bodied = self.type_of(context).is_some_and(|own| own.parts.base);
        if context.part() == Part::Cell && is_bodied && context.client().is_some() {
            set_extras_timer(context);
        }
    }

    fn call(&self, context: &mut Context<'_>, method: MemberId, _args: &[Value], _caller: &Caller) -> Answer {
        let methods = self.type_of(context).map(|own| match context.part() {
            Part::Base => &own.base_methods,
            Part::Cell => &own.cell_methods,
        });
        let Some(method) = methods.and_then(|methods| methods.get(usize::from(method.0))) else {
            return Answer::Fail(CallError::Internal("the schema has no such method".to_owned()));
        };
        self.counts.called.fetch_add(1, Ordering::Relaxed);
        let returns = method.returns.iter();
        Answer::Return(
            returns
                .map(|returned| generate(&returned.data_type, &mut || context.roll()))
                .collect(),
        )
    }

    fn timer(&self, context: &mut Context<'_>, _timer: TimerId, tag: u32) {
        match (tag, context.client()) {
            (EXTRAS, Some(session)) => {
                self.make_next(context, session);
                set_extras_timer(context);
            }
            (EXTRAS, None) => {}
            (turn, _) if self.is_over(context, turn) => {
                let entity = context.entity();
                self.ask(context, Request::Destroy { entity });
            }
            (turn, _) => {
                self.take_turn(context, turn);
                context.set_timer(TURN_MS, 0, (turn + 1) % EXTRAS);
            }
        }
    }

    fn client_attached(&self, context: &mut Context<'_>) {
        let has_cell = self.type_of(context).is_some_and(|own| own.parts.cell);
        if is_account(context) && has_cell {
            // The account is its own body.
            let entity = context.entity();
            self.enter_world(context, entity);
        } else if is_account(context) {
            return self.leave_account(context);
        }
        set_extras_timer(context);
    }

    fn client_lost(&self, context: &mut Context<'_>) {
        let entity = context.entity();
        self.ask(context, Request::Destroy { entity });
    }
}

/// Sets the timer for the next extra, at the next beat of the client's clock.
fn set_extras_timer(context: &mut Context<'_>) {
    if let Some(session) = context.client() {
        let (_, next) = clock(context, session);
        context.set_timer(next, 0, EXTRAS);
    }
}

/// Number of beats of a client's clock, and milliseconds until the next. The clock continues when the client is given
/// to another body.
fn clock(context: &Context<'_>, session: SessionId) -> (u64, u64) {
    let now = context.now().0.wrapping_add(session.0.wrapping_mul(PHASE) % EXTRA_MS);
    (now / EXTRA_MS, EXTRA_MS - now % EXTRA_MS)
}

/// Whether a client logged in as this entity: it is then a stored entity.
fn is_account(context: &Context<'_>) -> bool {
    context.database().is_some()
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn exposed(found: &EntityType) -> usize {
    found.exposed_base_methods().len() + found.exposed_cell_methods().len()
}

fn generated(context: &mut Context<'_>, method: &Method) -> Vec<Value> {
    let args = method.args.iter();
    args.map(|argument| generate(&argument.data_type, &mut || context.roll()))
        .collect()
}
