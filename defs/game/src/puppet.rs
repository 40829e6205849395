//! Behaviour for any world: it knows nothing but the schema, and drives all of it with generated values.
//!
//! Each entity part has one timer. Every time it fires the part takes its next turn: it changes some of its properties, as
//! a whole, in a part and in a slice, and calls some of its client methods, so that a round of turns goes through all of them. Which turn is next is the timer's
//! tag, so that nothing is forgotten when the process is lost. Whoever is called answers what the method declares.
//!
//! Clients come in on an entity that may have no place in the world. Such a one makes a *body*, an entity that has, and
//! gives it its client. Whoever has a client also makes *extras*, one of every type in turn, each of which lives for a
//! little more than a round: those with a base part are made by the base, those without by the cell. Now and then the
//! client is given to another body, of a type that has something to call, so that clients come to call everything. What is
//! made next goes by a list for the whole process, in which a type stands the more often the more there is to call on it:
//! the time until everything was there grows with the world, and shrinks with the clients.

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

/// How often a part takes a turn, milliseconds.
pub const TURN_MS: u64 = 1_000;

/// How many turns a round has.
pub const ROUND: u32 = 10;

/// How many turns an extra lives: it goes through all that it has, and is then seen for a moment as it is.
pub const EXTRA_TURNS: u32 = ROUND + 2;

/// How often whoever has a client makes an extra, milliseconds: each client has three of them at a time.
pub const EXTRA_MS: u64 = 4_000;

/// One extra in so many becomes the client's next body.
pub const BODY_EVERY: u64 = 5;

/// Tag of the timer that makes extras. Turns are counted below it.
const EXTRAS: u32 = u32::MAX;

/// Calls that a client makes on a body, at the least, before it is given to another.
pub const CALLS_PER_BODY: usize = 10;

/// Sets apart the clocks of clients whose sessions follow one another.
const PHASE: u64 = 997;

/// How far from whoever makes it an extra appears, metres.
const EXTRA_REACH: f32 = 10.0;

/// Plays a world whose own behaviour is not there.
#[derive(Debug)]
pub struct Puppet {
    schema: Arc<Schema>,
    counts: Counts,
    extras_of_bases: Rota,
    extras_of_cells: Rota,
    bodies: Rota,
}

/// The types that entities of some kind are made of, in turn.
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

/// What puppets did in this process, for the report.
#[derive(Debug, Default)]
struct Counts {
    called: AtomicU64,
    assigned: AtomicU64,
    invoked: AtomicU64,
    denied: AtomicU64,
}

/// What the puppets of one process did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PuppetCounters {
    /// Methods that were called on them.
    pub called: u64,
    /// Changes of properties they made.
    pub assigned: u64,
    /// Client methods they called.
    pub invoked: u64,
    /// What they wanted and was denied: must be 0, or values are generated that do not fit.
    pub denied: u64,
}

impl Puppet {
    /// For a realm that runs on this schema.
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

    /// The types of the extras that parts of this kind make.
    #[must_use]
    pub fn extras(schema: &Schema, part: Part) -> Vec<TypeId> {
        let able = schema.types().iter().filter(|found| match part {
            Part::Base => found.parts.base,
            Part::Cell => found.parts.cell && !found.parts.base,
        });
        able.map(|found| found.id).collect()
    }

    /// The types of the bodies that clients are given in turn: all that have something to call, each once for every
    /// [`CALLS_PER_BODY`] methods that it exposes. Those that have few do not wait for those that have many.
    #[must_use]
    pub fn bodies(schema: &Schema) -> Vec<TypeId> {
        let able = schema.types().iter().filter(|found| found.parts.base);
        let mut places: Vec<(usize, TypeId)> = able
            .flat_map(|found| (0..exposed(found).div_ceil(CALLS_PER_BODY)).map(|place| (place, found.id)))
            .collect();
        places.sort();
        places.into_iter().map(|(_, body)| body).collect()
    }

    /// What was done so far.
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

    /// The type of whoever logs in. It has a base part; better also a client part, and no cell part, as accounts do.
    #[must_use]
    pub fn account_type(schema: &Schema) -> Option<TypeId> {
        let able = schema.types().iter().filter(|found| found.parts.base);
        let best = able.min_by_key(|found| (!found.parts.client, found.parts.cell, found.id));
        best.map(|found| found.id)
    }

    /// The type that players walk about as. It has a base and a cell part; better also a client part, and the more exposed
    /// methods the better: whoever has many was made for players.
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

    /// Asks for the cell part of a base entity somewhere near the origin.
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

    /// Takes turn number `turn`.
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

    /// Changes a property as a whole, then a part of it and a slice, as far as it has any.
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

    /// Whether this part is an extra whose time is over.
    fn is_over(&self, context: &Context<'_>, turn: u32) -> bool {
        let own = self.type_of(context);
        match context.part() {
            Part::Base => turn >= EXTRA_TURNS && context.client().is_none() && !is_account(context),
            Part::Cell => turn >= EXTRA_TURNS && own.is_some_and(|own| !own.parts.base),
        }
    }

    /// Makes an extra, of the next of the types that this part can make.
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
        // Ids that have run out come again; anything else is a mistake.
        if let Err(denied) = made
            && denied != Denied::NoIds
        {
            self.count(&self.counts.denied, &Err(denied));
        }
    }

    /// Makes what is due at this beat of a client's clock.
    fn make_next(&self, context: &mut Context<'_>, session: SessionId) {
        let (beat, _) = clock(context, session);
        if context.part() == Part::Base && beat % BODY_EVERY == BODY_EVERY - 1 {
            self.change_body(context);
        } else {
            self.make_extra(context);
        }
    }

    /// Gives the client of an account to an entity that has a place in the world.
    fn leave_account(&self, context: &mut Context<'_>) {
        match Self::body_type(&self.schema).and_then(|id| self.schema.entity_type(id)) {
            Some(body) => self.make_body(context, body),
            None => set_extras_timer(context),
        }
    }

    /// Gives the client to an entity of the next type that has something to call.
    fn change_body(&self, context: &mut Context<'_>) {
        if let Some(body) = self.bodies.next().and_then(|id| self.schema.entity_type(id)) {
            self.make_body(context, body);
        }
    }

    /// Makes an entity and gives it the client.
    fn make_body(&self, context: &mut Context<'_>, body: &EntityType) {
        match context.create_base(&body.name, Vec::new()) {
            Ok(made) => {
                // In this order, so that the cell part begins with its client.
                let (from, to) = (context.entity(), made.entity);
                self.ask(context, Request::GiveClient { from, to });
                if body.parts.cell {
                    self.enter_world(context, to);
                }
            }
            Err(denied) => self.count(&self.counts.denied, &Err(denied)),
        }
    }
}

impl Behaviour for Puppet {
    fn created(&self, context: &mut Context<'_>) {
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
            // It is its own body.
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

/// Has the next extra made at the next beat of the client's clock.
fn set_extras_timer(context: &mut Context<'_>) {
    if let Some(session) = context.client() {
        let (_, next) = clock(context, session);
        context.set_timer(next, 0, EXTRAS);
    }
}

/// How often a client's clock has beaten, and in how many milliseconds it beats again. It goes on when the client is given
/// to another body.
fn clock(context: &Context<'_>, session: SessionId) -> (u64, u64) {
    let now = context.now().0.wrapping_add(session.0.wrapping_mul(PHASE) % EXTRA_MS);
    (now / EXTRA_MS, EXTRA_MS - now % EXTRA_MS)
}

/// Whether somebody logged in as this entity: then it stands for an entity of the database.
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
