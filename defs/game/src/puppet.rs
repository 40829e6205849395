//! Behaviour for any world: it knows nothing but the schema, and drives all of it with generated values.
//!
//! Each entity part has one timer. Every time it fires the part takes its next turn: it assigns some of its properties and
//! calls some of its client methods, so that a round of turns goes through all of them. Which turn is next is the timer's
//! tag, so that nothing is forgotten when the process is lost. Whoever is called answers what the method declares.
//!
//! Clients come in on an entity that may have no place in the world. Such a one makes a *body*, an entity that has, and
//! gives it its client. Whoever has a client also makes *extras*, one of every type in turn, each of which lives for a
//! little more than a round: those with a base part are made by the base, those without by the cell.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use annals_def::{EntityType, Method, Schema, Value, generate};
use annals_event::{Audience, CallError};
use annals_ids::{EntityId, MemberId, Part, Position, TimerId, TypeId};
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

/// The tag's bits that count turns; those above say what the timer is for.
const TURNS: u32 = (1 << 24) - 1;

/// Tag of the timer that makes extras.
const EXTRAS: u32 = 1 << 24;

/// How far from whoever makes it an extra appears, metres.
const EXTRA_REACH: f32 = 10.0;

/// Plays a world whose own behaviour is not there.
#[derive(Debug)]
pub struct Puppet {
    schema: Arc<Schema>,
    counts: Counts,
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
    /// Properties they assigned.
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
            schema,
            counts: Counts::default(),
        }
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

    /// The type of whoever logs in: one that has a base and a client part, and better no cell part, as accounts do.
    #[must_use]
    pub fn account_type(schema: &Schema) -> Option<TypeId> {
        let able = || {
            schema
                .types()
                .iter()
                .filter(|found| found.parts.base && found.parts.client)
        };
        let found = able().find(|found| !found.parts.cell).or_else(|| able().next());
        found.map(|found| found.id)
    }

    /// The type that players walk about as.
    #[must_use]
    pub fn body_type(schema: &Schema) -> Option<TypeId> {
        let all = |found: &&EntityType| found.parts.base && found.parts.cell && found.parts.client;
        let able = || schema.types().iter().filter(all);
        // Whoever has exposed methods was made for players.
        let exposed = |found: &EntityType| found.exposed_base_methods().len() + found.exposed_cell_methods().len();
        let most = able().map(exposed).max()?;
        able().find(|found| exposed(found) == most).map(|found| found.id)
    }

    fn type_of(&self, context: &Context<'_>) -> Option<&EntityType> {
        self.schema.entity_type(context.entity_type().id)
    }

    fn count(&self, count: &AtomicU64, result: &Result<(), Denied>) {
        let count = if result.is_ok() { count } else { &self.counts.denied };
        count.fetch_add(1, Ordering::Relaxed);
        debug_assert!(result.is_ok(), "{result:?}");
    }

    /// Takes turn number `turn`.
    fn take_turn(&self, context: &mut Context<'_>, turn: u32) {
        let Some(own) = self.type_of(context) else { return };
        let part = context.part();
        let held: Vec<_> = own
            .properties
            .iter()
            .filter(|property| match part {
                Part::Base => property.distribution.on_base(),
                Part::Cell => property.distribution.on_cell(),
            })
            .collect();
        let all = held.len() + own.client_methods.len();
        let (turn, round) = (index(turn % ROUND), index(turn / ROUND));
        let share = all.div_ceil(index(ROUND));
        for next in (turn * share..(turn + 1) * share).take_while(|next| *next < all) {
            if let Some(property) = held.get(next) {
                let value = generate(&property.data_type, &mut || context.roll());
                self.count(&self.counts.assigned, &context.set(&property.name, value));
            } else if let Some(method) = own.client_methods.get(next - held.len()) {
                let audiences = [Audience::Own, Audience::Others, Audience::All];
                let args = generated(context, method);
                let audience = audiences[(round + next) % audiences.len()];
                self.count(&self.counts.invoked, &context.invoke(audience, &method.name, args));
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

    /// Makes the next extra. Returns whether there was one to make.
    fn make_extra(&self, context: &mut Context<'_>, turn: u32) {
        let part = context.part();
        let able: Vec<&EntityType> = self
            .schema
            .types()
            .iter()
            .filter(|found| match part {
                Part::Base => found.parts.base,
                Part::Cell => found.parts.cell && !found.parts.base,
            })
            .collect();
        let Some(extra) = able.get(index(turn) % able.len().max(1)) else {
            return;
        };
        let made = match (part, context.place()) {
            (Part::Base, _) => context.create_base(&extra.name, Vec::new()).map(|made| {
                if extra.parts.cell {
                    enter_world(context, made.entity);
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

    /// Has extras made from now on, beginning anywhere among the types.
    fn set_extras_timer(&self, context: &mut Context<'_>) {
        let types = self.schema.types().len().max(1) as u64;
        let first = u32::try_from(context.roll() % types).unwrap_or(0);
        let delay = context.roll() % EXTRA_MS;
        context.set_timer(delay, 0, EXTRAS | first);
    }

    /// Gives the client of an entity that has no place in the world to one that has.
    fn make_body(&self, context: &mut Context<'_>) {
        let body = Self::body_type(&self.schema).and_then(|id| self.schema.entity_type(id));
        let Some(body) = body else { return };
        match context.create_base(&body.name, Vec::new()) {
            Ok(made) => {
                // In this order, so that the cell part begins with its client.
                let (from, to) = (context.entity(), made.entity);
                context.request(Request::GiveClient { from, to });
                enter_world(context, to);
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
            self.set_extras_timer(context);
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
        let turn = tag & TURNS;
        let next = (turn + 1) & TURNS;
        if tag & EXTRAS != 0 {
            if context.part() == Part::Cell || context.client().is_some() {
                self.make_extra(context, turn);
                context.set_timer(EXTRA_MS, 0, EXTRAS | next);
            }
            return;
        }
        if self.is_over(context, turn) {
            let entity = context.entity();
            return context.request(Request::Destroy { entity });
        }
        self.take_turn(context, turn);
        context.set_timer(TURN_MS, 0, next);
    }

    fn client_attached(&self, context: &mut Context<'_>) {
        let has_cell = self.type_of(context).is_some_and(|own| own.parts.cell);
        if is_account(context) && has_cell {
            // It is its own body.
            let entity = context.entity();
            enter_world(context, entity);
        } else if is_account(context) {
            return self.make_body(context);
        }
        self.set_extras_timer(context);
    }

    fn client_lost(&self, context: &mut Context<'_>) {
        let entity = context.entity();
        context.request(Request::Destroy { entity });
    }
}

/// Whether somebody logged in as this entity: then it stands for an entity of the database.
fn is_account(context: &Context<'_>) -> bool {
    context.database().is_some()
}

/// Asks for the cell part of a base entity somewhere near the origin.
fn enter_world(context: &mut Context<'_>, entity: EntityId) {
    let place = near(context, Position::default(), PLAZA);
    context.request(Request::CreateCell {
        entity,
        place,
        properties: Vec::new(),
    });
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn generated(context: &mut Context<'_>, method: &Method) -> Vec<Value> {
    let args = method.args.iter();
    args.map(|argument| generate(&argument.data_type, &mut || context.roll()))
        .collect()
}
