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
mod replies;
mod requests;
mod service;
mod sight;
mod space;
mod zones;

use annals_def::{Argument, EntityType, Method, Property, Value, check};
use annals_event::{Audience, Awaiting, Body, Call, Image, Link, Outcome, Place, Timer};
use annals_ids::{
    Address, CallNumber, DatabaseId, EntityId, Mailbox, MemberId, Part, SessionId, TimerId, TypeId, WorldTime,
};

pub use creation::Stored;
pub use denied::Denied;
pub use global::{SPACE_CLAIM, space_key};
pub use others::FOUND_LIMIT;
use properties::fits;
pub use replies::check_reply;

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
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let me = own.context.entity();
    /// assert_eq!(own.context.mailbox(Part::Base).entity, me);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn entity(&self) -> EntityId {
        self.entity
    }

    /// The part on which behaviour runs.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// assert_eq!(own.context.part(), Part::Cell);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn part(&self) -> Part {
        self.cx.journal.part()
    }

    /// Its type.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// assert_eq!(own.context.entity_type().name, "Avatar");
    /// assert_eq!(own.context.entity_type().id, avatar::TYPE);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn entity_type(&self) -> &EntityType {
        self.cx
            .entity_type(self.entity)
            .expect("invariant: a real entity has a type of the schema")
    }

    /// Game time, milliseconds. It advances while the realm runs.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let in_a_minute = own.context.now().0 + 60_000;
    /// assert!(in_a_minute > own.context.now().0);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn now(&self) -> WorldTime {
        self.cx.now.world
    }

    /// A random number, uniform over all of `u64`.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let dice = own.context.roll() % 6 + 1;
    /// assert!((1..=6).contains(&dice));
    /// # Ok(()) });
    /// ```
    pub fn roll(&mut self) -> u64 {
        self.cx.roll()
    }

    /// The address of one of the entity's parts. It can be stored in a property of type `MAILBOX`, passed to others,
    /// and stays valid as long as the entity exists, wherever its cell part moves.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let base = own.context.mailbox(Part::Base);
    /// assert_eq!(base, avatar::BaseMailbox::of(own.context).0);
    /// # Ok(()) });
    /// ```
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
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let me = own.context.mailbox(Part::Cell);
    /// own.context.call(me, "heal", vec![Value::Int(5)])?;
    /// // The same, by generated code:
    /// avatar::CellMailbox::of(own.context).heal(own.context, 5)?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] if the receiver's type has no such method; [`Denied::Arguments`], [`Denied::Mismatch`] or
    /// [`Denied::TooLarge`] if the arguments do not fit. If the receiver has ended,
    /// [`calls_lost`](crate::Behaviour::calls_lost) is called later.
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
            method: None,
        };
        if !self.cx.call_direct(self.entity, to.address(), &call, caller) {
            self.cx.call(from, to.address(), to.home, call);
        }
        Ok(())
    }

    /// Calls a method and waits for its return values, at most `timeout_ms` milliseconds of game time:
    /// [`Behaviour::replied`](crate::Behaviour::replied) is called with `then` and `note`, which are kept in the
    /// entity's state, so that the wait survives the process. Without an answer in time, `replied` gets
    /// [`CallError::NoReply`](annals_event::CallError::NoReply).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// const HIT: u32 = 1;
    /// own.context.ask(monster, "takeDamage", vec![Value::Int(4)], 2_000, (HIT, Vec::new()))?;
    /// // The same, by generated code:
    /// monster::CellMailbox(monster).ask_take_damage(own.context, 4, Wait::then(HIT, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called(), ["replied 1 Ok([Int(26)])", "replied 1 Ok([Int(22)])"]);
    /// ```
    ///
    /// # Errors
    /// As [`Context::call`]; also [`Denied::Unknown`] if `then` is `u32::MAX`.
    pub fn ask(
        &mut self,
        to: Mailbox,
        method: &str,
        args: Vec<Value>,
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<(), Denied> {
        let (call, bytes) = self.prepare(to, method, args, true)?;
        if then == crate::near::LOCATED {
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
    /// The call is in the log before it is sent, and is sent until it is answered or `timeout_ms` milliseconds are
    /// over, also by a process that takes over. The service may so get it several times, each time with the same
    /// idempotency key: it must act once for each key. After the deadline, `replied` gets
    /// [`CallError::NoReply`](annals_event::CallError::NoReply), and it is not known whether the service has acted; ask
    /// it by another call.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| {
    /// const PAID: u32 = 1;
    /// own.context.call_outside("payments", b"order 17".to_vec(), 30_000, (PAID, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(100);
    /// # let call = scene.realm.outbound().remove(0);
    /// # assert_eq!((call.service.as_str(), call.body.as_slice()), ("payments", b"order 17".as_slice()));
    /// # scene.realm.answer_outbound(&call, 200, b"paid");
    /// # scene.pass(100);
    /// # assert_eq!(scene.called().len(), 1);
    /// ```
    ///
    /// # Errors
    /// [`Denied::Outbound`] if the name is empty or has more than 64 bytes, or the body has more than 256 KiB;
    /// [`Denied::Unknown`] if `then` is `u32::MAX`.
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
        if then == crate::near::LOCATED {
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

    /// Answers a call for which behaviour returned [`Answer::Later`](crate::Answer::Later). Generated code has
    /// [`Later`](crate::typed::Later) for this, which also keeps the caller until then. An answer after the caller's
    /// deadline has no effect.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// # let link = event::Link { from: monster.address(), to: own.context.mailbox(Part::Cell).address() };
    /// # let caller = Caller { link, home: monster.home, number: ids::CallNumber(0), wants_reply: false, method: None };
    /// own.context.answer(&caller, Ok(vec![Value::Int(3)]));
    /// # Ok(()) });
    /// ```
    pub fn answer(&mut self, caller: &Caller, outcome: Outcome) {
        match self.cx.needs(0) {
            Ok(()) => self.cx.reply(caller, outcome),
            Err(spent) => self.report(spent),
        }
    }

    /// Writes a denial to the process log, with the entity. For denials that behaviour neither expects nor handles;
    /// what a hook of generated code returns as an error is reported so.
    ///
    /// ```no_run
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// if let Err(denied) = own.context.set_top_speed(-1.0, 0.0) {
    ///     own.context.report(denied);
    /// }
    /// # Ok(()) });
    /// ```
    pub fn report(&mut self, denied: Denied) {
        let (entity, part, entity_type) = (self.entity, self.part(), self.entity_type().name.clone());
        self.cx.report(OwnerError::Denied {
            entity,
            part,
            entity_type,
            denied,
        });
    }

    /// Calls a client method on the entity's own client ([`Audience::Own`]), on the other clients that see it
    /// ([`Audience::Others`]), on both ([`Audience::All`]), or on that of one other entity ([`Audience::Of`]). A method
    /// with a `DetailDistance` (m) reaches clients within that distance. A base part reaches its own client.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// own.context.invoke(Audience::All, "onSay", vec![Value::Unicode("Hello".to_owned())])?;
    /// // The same, by generated code:
    /// own.to_all_clients().on_say("Hello".to_owned())?;
    /// # Ok(()) });
    /// # scene.pass(300);
    /// # assert_eq!(scene.realm.received(scene.player, scene.avatar, "onSay").len(), 2);
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] if the type has no such client method; [`Denied::Arguments`], [`Denied::Mismatch`] or
    /// [`Denied::TooLarge`] if the arguments do not fit.
    pub fn invoke(&mut self, audience: Audience, method: &str, args: Vec<Value>) -> Result<(), Denied> {
        let entity_type = self.entity_type();
        let found = entity_type.client_method_named(method);
        let found = found.ok_or_else(|| self.unknown(format!("client method {method}")))?;
        let bytes = measure(entity_type, found, &found.args, &args)?;
        self.cx.needs(bytes)?;
        let body = Body::Invoked {
            method: found.index,
            args,
            audience,
        };
        self.cx.record_for(self.entity, true, body);
        Ok(())
    }

    /// Sets a timer: [`Behaviour::timer`](crate::Behaviour::timer) is called after `after_ms` milliseconds of game
    /// time, then every `every_ms` if that is not 0. The timer is state of the part: it survives the process and goes
    /// with a cell part from cell to cell. If the input has reached its limit of recorded bytes, no timer is set, and
    /// that is reported.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// const POISON: u32 = 7;
    /// // In half a second, and then once a second.
    /// let poison = own.context.set_timer(500, 1_000, POISON);
    /// # Ok(()) });
    /// # scene.pass(1_700);
    /// # assert_eq!(scene.called(), ["timer 7", "timer 7"]);
    /// ```
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
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// let timer = own.context.set_timer(500, 0, 1);
    /// own.context.cancel_timer(timer);
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().is_empty());
    /// ```
    pub fn cancel_timer(&mut self, timer: TimerId) {
        if self.image().timers.contains_key(&timer) {
            self.cx.record_for(self.entity, false, Body::TimerGone { timer });
        }
    }

    /// The timers that are set, ascending, with their next time, interval and tag.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// const POISON: u32 = 7;
    /// let poison = own.context.set_timer(500, 0, POISON);
    /// let set: Vec<TimerId> = own.context.timers().map(|(timer, _)| timer).collect();
    /// assert_eq!(set, [poison]);
    /// let is_poisoned = own.context.timers().any(|(_, timer)| timer.tag == POISON);
    /// assert!(is_poisoned);
    /// # Ok(()) });
    /// ```
    pub fn timers(&self) -> impl Iterator<Item = (TimerId, &Timer)> {
        self.image().timers.iter().map(|(timer, at)| (*timer, at))
    }

    /// Writes the persistent properties of both parts to the database (`writeToDB`). An entity that is not stored yet
    /// becomes a new stored entity.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_account(|own| {
    /// let database = own.context.store()?;
    /// assert_eq!(own.context.database(), Some(database));
    /// # Ok(()) });
    /// ```
    ///
    /// A cell part requests it with [`Request::Store`](crate::Request::Store).
    ///
    /// # Errors
    /// [`Denied::BaseOnly`] on the cell part; [`Denied::NotPersistent`] if entities of the type are not stored;
    /// [`Denied::NoIds`] if no id is left for a new stored entity.
    pub fn store(&mut self) -> Result<DatabaseId, Denied> {
        self.needs_base("store")?;
        let entity_type = self.entity_type();
        if !entity_type.persistent {
            let entity_type = entity_type.name.clone();
            return Err(Denied::NotPersistent { entity_type });
        }
        self.cx.needs(0)?;
        self.cx.store(self.entity)
    }

    /// The stored entity that this base part stands for; `None` on the cell part.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_account(|own| {
    /// assert!(own.context.database().is_some());
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn database(&self) -> Option<DatabaseId> {
        let base = self.image().base()?;
        Some(base.database).filter(|database| database.0 != 0)
    }

    /// The session of the entity's client; `None` without a client, on both parts.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_base(|own| {
    /// let is_played = own.context.client().is_some();
    /// assert!(is_played);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn client(&self) -> Option<SessionId> {
        self.image().client.map(|client| client.session)
    }

    /// The present place of the cell part, in metres and radians; `None` on the base part.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let place = own.context.place().expect("a cell part has a place");
    /// assert_eq!(place.position.x, 5.0);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.cx.place(self.entity)
    }

    /// Moves the cell part within its space. Volatile: others see it at once, the log about once a second.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let place = own.context.place().unwrap_or_default();
    /// let position = Position { x: place.position.x + 1.0, ..place.position };
    /// own.context.move_to(Place { position, ..place })?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::Place`] if a coordinate or an angle is not finite;
    /// [`Denied::OtherSpace`] if the place is in another space: use [`teleport`](Self::teleport) for that.
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

    /// Creates an entity with a base part on this owner, with these properties and defaults for the others. It exists
    /// at once: [`Behaviour::created`](crate::Behaviour::created) of it has run when this function returns. Without
    /// [`store`](Self::store) it is not a stored entity, but lasts over the death of its process like any other.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_base(|own| {
    /// let pet = own.context.create_base("Hero", Vec::new())?;
    /// // The same, by generated code, which also names properties:
    /// let named = hero::NewBase { title: Some("Squire".to_owned()) };
    /// let pet = hero::BaseMailbox::create(own.context, named)?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::BaseOnly`] on a cell part; [`Denied::Unknown`] without such an entity type; [`Denied::Mismatch`] or
    /// [`Denied::OtherPart`] if a value does not fit; [`Denied::NoIds`] if no entity id is left.
    pub fn create_base(&mut self, entity_type: &str, properties: Vec<(MemberId, Value)>) -> Result<Mailbox, Denied> {
        self.needs_base("create an entity with a base part")?;
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

    /// Creates an entity that has only a cell part, on this owner. If the place is in the area of another cell, it is
    /// handed over to that at the next tick.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let place = own.context.place().unwrap_or_default();
    /// let monster = own.context.create_cell_only(monster::TYPE, place, Vec::new())?;
    /// // The same, by generated code, which also names properties:
    /// monster::CellMailbox::create_alone(own.context, place, monster::NewCell { hp: Some(3) })?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::Place`] if a coordinate is not finite; [`Denied::SpaceGone`] if
    /// the space is destroyed; [`Denied::Unknown`], [`Denied::Mismatch`] or [`Denied::OtherPart`] if type or values do
    /// not fit; [`Denied::NoIds`] if no entity id is left.
    pub fn create_cell_only(
        &mut self,
        type_id: TypeId,
        place: Place,
        properties: Vec<(MemberId, Value)>,
    ) -> Result<Mailbox, Denied> {
        if self.part() == Part::Base {
            let what = "create an entity without a base part";
            return Err(Denied::CellOnly { what });
        }
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
        let bytes = measure(receiver, found, &found.args, &args)?;
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
    measure(entity_type, method, &method.args, args).map(|_| ())
}

/// Checks arguments or return values of a method, and returns their size, bytes.
fn measure(
    entity_type: &EntityType,
    method: &Method,
    declared: &[Argument],
    values: &[Value],
) -> Result<usize, Denied> {
    let mut bytes = 0;
    let name = || format!("{}.{}", entity_type.name, method.name);
    if values.len() != declared.len() {
        return Err(Denied::Arguments {
            method: name(),
            wanted: declared.len(),
            given: values.len(),
        });
    }
    for (argument, value) in declared.iter().zip(values) {
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
