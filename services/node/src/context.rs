//! The interface of behaviour during a call: reads and changes its entity, calls others, sets timers, draws
//! random numbers.

mod controllers;
mod creation;
mod denied;
mod downloads;
mod elsewhere;
mod global;
mod inquiries;
mod ledger;
mod movement_control;
mod others;
mod personal;
mod properties;
mod requests;
mod service;
mod sight;
mod space;

use annals_def::{EntityType, Method, Property, Value, check};
use annals_event::{Audience, Awaiting, Body, Call, Image, Link, Outcome, Place, Timer};
use annals_ids::{
    Address, CallNumber, DatabaseId, EntityId, Mailbox, MemberId, Part, SessionId, TimerId, TypeId, WorldTime,
};

pub use creation::Stored;
pub use denied::Denied;
pub use others::FOUND_LIMIT;
use properties::fits;

use crate::{
    around::Around,
    behaviour::Caller,
    journal::INPUT_LIMIT,
    outbound::{self, MAX_OUTBOUND_BYTES, MAX_SERVICE_NAME, OUTSIDE},
    owner_context::OwnerContext,
    trouble::OwnerError,
};

/// Largest value, bytes as encoded in the log, that a property may hold or a call may carry. One input may record two
/// of them.
pub const MAX_VALUE_BYTES: usize = 2 << 20;
const _: () = assert!(2 * MAX_VALUE_BYTES < INPUT_LIMIT);

/// Default time to wait for a reply.
pub const DEFAULT_TIMEOUT_MS: u64 = 5_000;

/// One entity part, as its behaviour accesses it during one call.
pub struct Context<'a> {
    cx: &'a mut OwnerContext,
    around: &'a dyn Around,
    entity: EntityId,
}

impl<'a> Context<'a> {
    /// `None` unless the entity is real on this owner.
    pub(crate) fn new(cx: &'a mut OwnerContext, around: &'a dyn Around, entity: EntityId) -> Option<Self> {
        let is_real = cx.image(entity).is_some();
        is_real.then_some(Self { cx, around, entity })
    }

    /// The entity.
    #[must_use]
    pub fn entity(&self) -> EntityId {
        self.entity
    }

    /// The part on which behaviour runs.
    #[must_use]
    pub fn part(&self) -> Part {
        self.cx.journal.part()
    }

    /// Its type.
    #[must_use]
    pub fn entity_type(&self) -> &EntityType {
        self.cx
            .entity_type(self.entity)
            .expect("invariant: a real entity has a type of the schema")
    }

    /// Game time.
    #[must_use]
    pub fn now(&self) -> WorldTime {
        self.cx.now.world
    }

    /// A random number.
    pub fn roll(&mut self) -> u64 {
        self.cx.roll()
    }

    /// The storable address of one of the entity's parts.
    #[must_use]
    pub fn mailbox(&self, part: Part) -> Mailbox {
        let image = self.image();
        Mailbox {
            entity: self.entity,
            home: image.home,
            type_id: image.type_id,
            part,
        }
    }

    /// Calls a one-way method of another part, or of another entity. It is executed once, even if either side fails.
    ///
    /// # Errors
    /// If the receiver's type has no such method or the arguments do not fit.
    pub fn call(&mut self, to: Mailbox, method: &str, args: Vec<Value>) -> Result<(), Denied> {
        let (call, bytes) = self.prepare(to, method, args, false)?;
        self.cx.needs(bytes)?;
        let from = self.address();
        let link = Link { from, to: to.address() };
        let caller = Caller {
            link,
            home: self.image().home,
            number: CallNumber(0),
            wants_reply: false,
        };
        if !self.cx.call_direct(self.entity, to.address(), &call, caller) {
            self.cx.call(from, to.address(), to.home, call);
        }
        Ok(())
    }

    /// Calls a method and waits for its return values: [`Behaviour::replied`](crate::Behaviour::replied) is called with
    /// `then` and `note`, which are kept in the entity's state, so that the wait survives the process.
    ///
    /// # Errors
    /// If the receiver's type has no such method or the arguments do not fit.
    pub fn ask(
        &mut self,
        to: Mailbox,
        method: &str,
        args: Vec<Value>,
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<(), Denied> {
        let (call, bytes) = self.prepare(to, method, args, true)?;
        if then == crate::teleport::LOCATED {
            return Err(self.unknown(format!("continuation {then}: the highest is {}", then - 1)));
        }
        self.cx.needs(bytes.saturating_add(note.len()))?;
        let number = self.cx.call(self.address(), to.address(), to.home, call);
        self.await_reply(to.address(), number, timeout_ms, (then, note));
        Ok(())
    }

    /// Calls a service outside the realm, by the name under which the realm's operators have configured it.
    /// [`Behaviour::replied`](crate::Behaviour::replied) is called with `then` and `note`, and an outcome that
    /// [`read_answer`](crate::outbound::read_answer) reads.
    ///
    /// The call is in the log before it is sent, and is sent until it is answered or the time is over, also by a process
    /// that takes over. The service may so get it several times, each time with the same idempotency key: it must act
    /// once for each key. After the deadline it is not known whether it has acted; ask it by another call.
    ///
    /// # Errors
    /// If the name is empty or too long, or the body is too large.
    pub fn call_outside(
        &mut self,
        service: &str,
        body: Vec<u8>,
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<(), Denied> {
        if service.is_empty() || service.len() > MAX_SERVICE_NAME || body.len() > MAX_OUTBOUND_BYTES {
            let (service, bytes) = (service.chars().take(MAX_SERVICE_NAME).collect(), body.len());
            return Err(Denied::Outbound { service, bytes });
        }
        if then == crate::teleport::LOCATED {
            return Err(self.unknown(format!("continuation {then}: the highest is {}", then - 1)));
        }
        self.cx.needs(body.len().saturating_add(note.len()))?;
        let home = self.image().home;
        let number = self
            .cx
            .call(self.address(), OUTSIDE, home, outbound::recorded(service, body));
        self.await_reply(OUTSIDE, number, timeout_ms, (then, note));
        Ok(())
    }

    /// Records the wait for a reply.
    fn await_reply(&mut self, to: Address, number: CallNumber, timeout_ms: u64, (then, note): (u32, Vec<u8>)) {
        let deadline = WorldTime(self.now().0.saturating_add(timeout_ms));
        let awaiting = Awaiting { deadline, then, note };
        self.cx
            .record_for(self.entity, false, Body::Awaits { to, number, awaiting });
    }

    /// Answers a call for which behaviour returned [`Answer::Later`](crate::Answer::Later).
    pub fn answer(&mut self, caller: &Caller, outcome: Outcome) {
        match self.cx.needs(0) {
            Ok(()) => self.cx.reply(caller, outcome),
            Err(spent) => self.report(spent),
        }
    }

    /// Writes a denial to the process log. For denials that behaviour neither expects nor handles.
    pub fn report(&mut self, denied: Denied) {
        let (entity, part, entity_type) = (self.entity, self.part(), self.entity_type().name.clone());
        self.cx.report(OwnerError::Denied {
            entity,
            part,
            entity_type,
            denied,
        });
    }

    /// Calls a client method on the entity's own client, on the others that see it, or on all.
    ///
    /// # Errors
    /// If the type has no such client method or the arguments do not fit.
    pub fn invoke(&mut self, audience: Audience, method: &str, args: Vec<Value>) -> Result<(), Denied> {
        let entity_type = self.entity_type();
        let found = entity_type.client_method_named(method);
        let found = found.ok_or_else(|| self.unknown(format!("client method {method}")))?;
        let bytes = measure(entity_type, found, &args)?;
        self.cx.needs(bytes)?;
        let body = Body::Invoked {
            method: found.index,
            args,
            audience,
        };
        self.cx.record_for(self.entity, true, body);
        Ok(())
    }

    /// Sets a timer: first after `after_ms`, then every `every_ms` if that is not 0. If the input has reached its limit
    /// of recorded bytes, no timer is set, and that is reported.
    pub fn set_timer(&mut self, after_ms: u64, every_ms: u64, tag: u32) -> TimerId {
        let timer = self.image().last_timer.next();
        if let Err(spent) = self.cx.needs(0) {
            self.report(spent);
            return timer;
        }
        let at = Timer {
            due: WorldTime(self.now().0.saturating_add(after_ms)),
            every: every_ms,
            tag,
        };
        self.cx.record_for(self.entity, false, Body::TimerSet { timer, at });
        timer
    }

    /// Cancels a timer; has no effect if it is not set.
    pub fn cancel_timer(&mut self, timer: TimerId) {
        if self.image().timers.contains_key(&timer) {
            self.cx.record_for(self.entity, false, Body::TimerGone { timer });
        }
    }

    /// Writes the persistent properties of both parts to the database (`writeToDB`). An entity that is not stored yet
    /// becomes a new stored entity.
    ///
    /// # Errors
    /// If this is the cell part, entities of the type are not stored, or no id is left for a new entity.
    pub fn store(&mut self) -> Result<DatabaseId, Denied> {
        let Some(base) = self.image().base() else {
            return Err(Denied::BaseOnly { what: "store" });
        };
        let entity_type = self.entity_type();
        if !entity_type.persistent {
            let entity_type = entity_type.name.clone();
            return Err(Denied::NotPersistent { entity_type });
        }
        self.cx.needs(0)?;
        let database = match base.database {
            DatabaseId(0) => DatabaseId(self.cx.new_entity().ok_or(Denied::NoIds)?.0),
            known => known,
        };
        self.cx.record_for(self.entity, false, Body::Stored { database });
        Ok(database)
    }

    /// The stored entity that this base part stands for; `None` on the cell part.
    #[must_use]
    pub fn database(&self) -> Option<DatabaseId> {
        let base = self.image().base()?;
        Some(base.database).filter(|database| database.0 != 0)
    }

    /// The session of the entity's client.
    #[must_use]
    pub fn client(&self) -> Option<SessionId> {
        self.image().client.map(|client| client.session)
    }

    /// The present place of the cell part; `None` on the base part.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.cx.place(self.entity)
    }

    /// Moves the cell part within its space. Volatile: others see it at once, the log about once a second.
    ///
    /// # Errors
    /// If this is a base part, a coordinate or an angle is not a number, or the place is in another space: use
    /// [`teleport`](Self::teleport) for that.
    pub fn move_to(&mut self, to: Place) -> Result<(), Denied> {
        let place = self.place().ok_or(Denied::CellOnly { what: "move" })?;
        if !to.is_sound() {
            return Err(Denied::Place);
        }
        if place.space != to.space {
            let here = place.space;
            return Err(Denied::OtherSpace { here });
        }
        self.cx.move_to(self.entity, to);
        Ok(())
    }

    /// Creates an entity with a base part on this owner, with these properties and defaults for the others.
    ///
    /// # Errors
    /// If a value does not fit, or no entity id is left.
    pub fn create_base(&mut self, entity_type: &str, properties: Vec<(MemberId, Value)>) -> Result<Mailbox, Denied> {
        let type_id = self.cx.schema.type_named(entity_type).map(|found| found.id);
        let type_id = type_id.ok_or_else(|| self.unknown(format!("entity type {entity_type} beside it")))?;
        let entity = self.cx.create_base(type_id, properties, Stored::default())?;
        Ok(Mailbox {
            entity,
            home: self.cx.owner(),
            type_id,
            part: Part::Base,
        })
    }

    /// Creates an entity that has only a cell part, on this owner.
    ///
    /// # Errors
    /// If a value does not fit, a coordinate is not a number, the space is gone, or no entity id is left.
    pub fn create_cell_only(
        &mut self,
        type_id: TypeId,
        place: Place,
        properties: Vec<(MemberId, Value)>,
    ) -> Result<Mailbox, Denied> {
        let entity = self.cx.create_cell_only(type_id, place, properties, self.around)?;
        Ok(Mailbox {
            entity,
            home: self.cx.owner(),
            type_id,
            part: Part::Cell,
        })
    }

    pub(crate) fn cx(&mut self) -> &mut OwnerContext {
        self.cx
    }

    fn image(&self) -> &Image {
        self.cx
            .image(self.entity)
            .expect("invariant: a context is of a real entity")
    }

    fn address(&self) -> Address {
        Address::of(self.entity, self.part())
    }

    fn property(&self, name: &str) -> Result<&Property, Denied> {
        self.entity_type()
            .property_named(name)
            .ok_or_else(|| self.unknown(format!("property {name}")))
    }

    fn prepare(&self, to: Mailbox, method: &str, args: Vec<Value>, wants_reply: bool) -> Result<(Call, usize), Denied> {
        let receiver = self
            .cx
            .type_of(to.type_id)
            .ok_or_else(|| self.unknown(format!("type {}", to.type_id)))?;
        let found = match to.part {
            Part::Base => receiver.base_method_named(method),
            Part::Cell => receiver.cell_method_named(method),
        };
        let found = found.ok_or_else(|| Denied::Unknown {
            entity_type: receiver.name.clone(),
            what: format!("{} method {method}", to.part),
        })?;
        let bytes = measure(receiver, found, &args)?;
        let call = Call::Method {
            method: found.index,
            args,
            wants_reply,
        };
        Ok((call, bytes))
    }

    fn unknown(&self, what: String) -> Denied {
        Denied::Unknown {
            entity_type: self.entity_type().name.clone(),
            what,
        }
    }

    fn other_part(&self, property: &Property) -> Denied {
        Denied::OtherPart {
            entity_type: self.entity_type().name.clone(),
            property: property.name.clone(),
            flag: property.distribution.flag(),
            part: self.part(),
        }
    }
}

/// Checks arguments against a method.
///
/// # Errors
/// When their number or a type does not fit, or they are too large.
pub fn check_args(entity_type: &EntityType, method: &Method, args: &[Value]) -> Result<(), Denied> {
    measure(entity_type, method, args).map(|_| ())
}

/// As [`check_args`]; returns the size of the arguments, bytes.
fn measure(entity_type: &EntityType, method: &Method, args: &[Value]) -> Result<usize, Denied> {
    let mut bytes = 0;
    let name = || format!("{}.{}", entity_type.name, method.name);
    if args.len() != method.args.len() {
        return Err(Denied::Arguments {
            method: name(),
            wanted: method.args.len(),
            given: args.len(),
        });
    }
    for (argument, value) in method.args.iter().zip(args) {
        check(&argument.data_type, value).map_err(|source| Denied::Mismatch {
            member: format!("{}({})", name(), argument.name),
            source: Box::new(source),
        })?;
        bytes += fits(value).map_err(|bytes| Denied::TooLarge {
            member: format!("{}({})", name(), argument.name),
            bytes,
        })?;
    }
    Ok(bytes)
}
