//! The owner context: what a role and a game's behaviour work with while one input is handled.
//!
//! It owns the journal (recorded events and the folded state), the gate (outputs that wait for the log) and soft state:
//! routes, timers, calls to send again. Soft state is rebuilt from the folded state and may be lost at any time.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use annals_def::{EntityType, Schema};
use annals_event::{Body, Call, Event, Image, Link, OwnerState, Place, Subject, Trace};
use annals_ids::{Address, BatchNumber, CallNumber, DatabaseId, EntityId, Epoch, OwnerId, TypeId};
use annals_personal::PersonalKey;
use annals_wire::bus::{CallMessage, Envelope, Message};

use crate::{
    around::Around,
    behaviour::{Behaviour, Caller},
    call_links::CallLinks,
    context::Denied,
    gate::Gate,
    ids::IdBlocks,
    journal::Journal,
    output::{Output, Request},
    routes::Routes,
    schedule::{Due, Schedule},
    tally::{Member, Tally, Way},
    time::Now,
    trail::Trail,
    trouble::{Trouble, Troubles},
};

/// A call within the owner, to be made before the input ends (rule C5).
#[derive(Debug)]
pub(crate) enum Local {
    /// Without a number: nothing of it needs to be kept.
    Direct {
        /// The receiver.
        to: EntityId,
        /// What is asked.
        call: Call,
        /// Who asks.
        caller: Caller,
    },
    /// A numbered one that is taken as if it had come over the bus.
    Numbered(CallMessage),
}

/// The state of one owner that its role and the game's behaviour read and change.
pub struct OwnerContext {
    pub(crate) now: Now,
    pub(crate) schema: Arc<Schema>,
    pub(crate) behaviour: Arc<dyn Behaviour>,
    pub(crate) journal: Journal,
    pub(crate) gate: Gate<Output>,
    pub(crate) routes: Routes,
    pub(crate) schedule: Schedule,
    pub(crate) call_links: CallLinks,
    pub(crate) local: VecDeque<Local>,
    /// What behaviour has asked of the role, and which entity's behaviour that was.
    pub(crate) requests: VecDeque<(EntityId, Request)>,
    pub(crate) ids: IdBlocks,
    pub(crate) dice: Box<dyn FnMut() -> u64 + Send>,
    pub(crate) trace: Trace,
    /// Since which batch each real entity may be shown at all (rule G3).
    pub(crate) shown_since: BTreeMap<EntityId, BatchNumber>,
    /// The newest acknowledged batch, as of the present input.
    pub(crate) acknowledged: BatchNumber,
    pub(crate) troubles: Troubles,
    tally: Tally,
    /// Where the real cell parts are now; the state holds where they were when last logged.
    places: BTreeMap<EntityId, Place>,
    trail: Trail,
    /// The keys of the stored entities that live here (rule P5).
    keys: BTreeMap<DatabaseId, PersonalKey>,
}

/// Arguments of [`OwnerContext::new`].
pub(crate) struct OwnerContextParts {
    pub(crate) schema: Arc<Schema>,
    pub(crate) behaviour: Arc<dyn Behaviour>,
    pub(crate) journal: Journal,
    pub(crate) ids: IdBlocks,
    pub(crate) dice: Box<dyn FnMut() -> u64 + Send>,
    pub(crate) keys: BTreeMap<DatabaseId, PersonalKey>,
}

impl OwnerContext {
    pub(crate) fn new(parts: OwnerContextParts) -> Self {
        let mut cx = Self {
            tally: Tally::new(&parts.schema),
            now: Now::default(),
            schema: parts.schema,
            behaviour: parts.behaviour,
            journal: parts.journal,
            gate: Gate::new(),
            routes: Routes::default(),
            schedule: Schedule::default(),
            call_links: CallLinks::default(),
            local: VecDeque::new(),
            requests: VecDeque::new(),
            ids: parts.ids,
            dice: parts.dice,
            trace: Trace::default(),
            shown_since: BTreeMap::new(),
            acknowledged: BatchNumber(0),
            troubles: Troubles::default(),
            places: BTreeMap::new(),
            trail: Trail::default(),
            keys: parts.keys,
        };
        let entities: Vec<EntityId> = cx.state().entities.keys().copied().collect();
        entities.into_iter().for_each(|entity| cx.adopt(entity));
        let owner = Address::Owner(cx.owner());
        cx.call_links.adopt(owner, &cx.journal.state().links);
        for (entity, links) in &cx.journal.state().estates {
            cx.call_links.adopt(cx.journal.address(*entity), links);
        }
        cx
    }

    /// What the game does.
    #[must_use]
    pub fn behaviour(&self) -> &Arc<dyn Behaviour> {
        &self.behaviour
    }

    /// The owner's id.
    #[must_use]
    pub fn owner(&self) -> OwnerId {
        self.journal.state().owner
    }

    /// The current epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.journal.imprint().epoch
    }

    /// The moment of the present input.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// The schema the realm runs on.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The owner's state.
    #[must_use]
    pub fn state(&self) -> &OwnerState {
        self.journal.state()
    }

    /// The part of an entity that is real here.
    #[must_use]
    pub fn image(&self, entity: EntityId) -> Option<&Image> {
        self.state().entities.get(&entity)
    }

    /// The type of an entity that is real here.
    #[must_use]
    pub fn entity_type(&self, entity: EntityId) -> Option<&EntityType> {
        self.type_of(self.image(entity)?.type_id)
    }

    /// A type of the schema.
    #[must_use]
    pub fn type_of(&self, type_id: TypeId) -> Option<&EntityType> {
        self.schema.entity_type(type_id)
    }

    /// Where a real cell part is now.
    #[must_use]
    pub fn place(&self, entity: EntityId) -> Option<Place> {
        self.places.get(&entity).copied()
    }

    /// The real cell parts and where they are now.
    pub fn places(&self) -> impl Iterator<Item = (EntityId, Place)> {
        self.places.iter().map(|(entity, place)| (*entity, *place))
    }

    /// Moves a real cell part to a sound place in its space. Volatile: sampled into the log by the cell, not here.
    pub fn move_to(&mut self, entity: EntityId, to: Place) {
        debug_assert!(to.is_sound(), "entity {entity} is moved to {to:?}");
        if let Some(place) = self.places.get_mut(&entity) {
            *place = to;
            self.trail.note(entity);
        }
    }

    /// Which cell parts have come, gone or moved since that was last forgotten.
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.trail
    }

    /// Forgets it.
    pub fn clear_trail(&mut self) {
        self.trail.clear();
    }

    /// An entity id that nothing ever had; `None` when the granted block is used up.
    pub fn new_entity(&mut self) -> Option<EntityId> {
        let id = self.ids.take();
        if self.ids.wants_more() {
            self.emit(Output::WantIds);
        }
        id
    }

    /// A random number.
    pub fn roll(&mut self) -> u64 {
        (self.dice)()
    }

    /// Has the key of a person who lives here, or is about to (rule P5).
    pub fn learn_key(&mut self, person: DatabaseId, key: PersonalKey) {
        self.keys.insert(person, key);
    }

    /// The stored entity that a base part stands for.
    #[must_use]
    pub fn person(&self, entity: EntityId) -> Option<DatabaseId> {
        let database = self.image(entity)?.base()?.database;
        Some(database).filter(|database| database.0 != 0)
    }

    /// The key of a person; `None` where there is none, because the person was forgotten, or has not been checked out yet.
    pub(crate) fn key(&self, person: DatabaseId) -> Option<&PersonalKey> {
        self.keys.get(&person)
    }

    /// Seals what is known of a person; `None` where there is no key.
    pub fn seal(&mut self, person: DatabaseId, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(person)?.clone();
        let salt = u128::from(self.roll()) << 64 | u128::from(self.roll());
        Some(annals_personal::seal(&key, person, salt, plain))
    }

    /// Records an event, and keeps the soft state beside it true. `shown` gives it a history number.
    pub fn record(&mut self, subject: Subject, shown: bool, body: Body) {
        let entity = match subject {
            Subject::Entity(entity, _) => Some(entity),
            Subject::Owner => None,
        };
        if let Some(entity) = entity {
            self.before(entity, &body);
        }
        if let (Some(entity), Body::Destroyed) = (entity, &body)
            && let Some(person) = self.person(entity)
        {
            self.keys.remove(&person);
        }
        let begins = matches!(
            body,
            Body::BaseCreated(_) | Body::CellCreated(_) | Body::Onloaded { .. } | Body::Returned { .. }
        );
        let placed = matches!(body, Body::Placed(Some(_)));
        if let (Some(entity), Body::Placed(None)) = (entity, &body) {
            self.routes.forget(entity);
        }
        let counted = entity.zip(Member::changed_by(&body));
        let bytes = self.journal.record(subject, shown, body);
        if let Some((entity, member)) = counted
            && let Some(image) = self.image(entity)
        {
            self.tally.add(image.type_id, member, Way::Changes, 1);
            self.tally.add(image.type_id, member, Way::Log, bytes);
        }
        if let (Some(entity), true) = (entity, placed) {
            self.follow(entity);
        }
        if let (Some(entity), true) = (entity, begins) {
            self.shown_since.insert(entity, self.journal.label());
            self.adopt(entity);
        }
    }

    /// Records an event of an entity that is real here.
    pub fn record_for(&mut self, entity: EntityId, shown: bool, body: Body) {
        self.record(self.journal.subject(entity), shown, body);
    }

    /// What was recorded since this was last asked, in order.
    pub fn take_recorded(&mut self) -> Vec<Event> {
        self.journal.take_recorded()
    }

    /// Sends a message to another owner once what it rests on is in the log. It may be lost.
    pub fn tell(&mut self, to: OwnerId, message: Message) {
        let envelope = self.envelope(message);
        self.emit(Output::Send { to, envelope });
    }

    /// Sends a volatile message about an entity that is real here: now or never.
    pub fn tell_volatile(&mut self, about: EntityId, to: OwnerId, message: Message) {
        let envelope = self.envelope(message);
        self.emit_volatile(about, Output::Send { to, envelope });
    }

    /// Lets an output leave once what it rests on is in the log.
    pub fn emit(&mut self, output: Output) {
        self.gate.push(self.journal.label(), output);
    }

    /// Lets a volatile output about an entity leave now or never (rules G2, G3).
    pub fn emit_volatile(&mut self, about: EntityId, output: Output) {
        let since = self.shown_since.get(&about).copied().unwrap_or_default();
        self.gate.push_volatile(since, output);
    }

    /// Whether the beginning of an entity that is real here is acknowledged, so that it may be told of at all (rule G3).
    #[must_use]
    pub fn is_acknowledged(&self, entity: EntityId) -> bool {
        self.shown_since
            .get(&entity)
            .is_none_or(|since| *since <= self.acknowledged)
    }

    /// How many outputs wait at the gate.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.gate.waiting()
    }

    /// How many bytes more the present input may record. What is beyond that is to be denied, or left for later.
    #[must_use]
    pub fn room(&self) -> usize {
        self.journal.room()
    }

    /// Has the shell say what went wrong.
    pub fn report(&mut self, trouble: Trouble) {
        self.troubles.push(trouble);
    }

    /// How often something went wrong since the take-over.
    #[must_use]
    pub fn troubles(&self) -> u64 {
        self.troubles.count()
    }

    /// What members of types have cost since the take-over.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether the present input has nothing left to do: no call within the owner and no request waits. Only then may an
    /// entity leave, or what is waiting for it would find nobody.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.local.is_empty() && self.requests.is_empty()
    }

    /// A cell part was heard of on another owner: calls for it are sent there, and callers that ask here are told.
    pub fn heard_of(&mut self, entity: EntityId, at: OwnerId) {
        self.routes.moved(entity, at);
    }

    /// Asks the role for something that only it can do, once the present call is over. `by` is the entity whose behaviour
    /// asks.
    pub fn request(&mut self, by: EntityId, request: Request) {
        self.requests.push_back((by, request));
    }

    /// Whether behaviour has asked for something else that concerns this entity and is done after what is done now.
    #[must_use]
    pub fn has_requests(&self, entity: EntityId) -> bool {
        self.requests.iter().any(|(_, request)| request.entity() == entity)
    }

    /// Tells the entity whose behaviour made a request that it was not done.
    pub fn deny(&mut self, by: EntityId, around: &dyn Around, request: &Request, why: &Denied) {
        self.run(by, around, |behaviour, context| {
            behaviour.request_denied(context, request, why);
        });
    }

    /// The number that the next call from one address to another has.
    #[must_use]
    pub fn next_call(&self, from: Address, to: Address) -> CallNumber {
        let sent = self.state().links(from).and_then(|links| links.sent.get(&to));
        sent.map_or(CallNumber(1), |sent| sent.last.next())
    }

    /// Calls from one address to another; `from` is real here or this owner itself.
    pub fn call(&mut self, from: Address, to: Address, to_home: OwnerId, call: Call) -> CallNumber {
        let link = Link { from, to };
        let number = self.next_call(from, to);
        let subject = from
            .entity()
            .map_or(Subject::Owner, |(entity, part)| Subject::Entity(entity, part));
        self.record(
            subject,
            false,
            Body::Called {
                to,
                home: to_home,
                number,
                call,
            },
        );
        self.call_links.watch(link, self.now.mono);
        self.dispatch(link, number);
        number
    }

    /// Takes a call for a part that is real here, as if it had come over the bus: what the role hears from a client.
    pub fn deliver(&mut self, call: CallMessage) {
        self.local.push_back(Local::Numbered(call));
    }

    fn envelope(&self, message: Message) -> Envelope {
        Envelope {
            from: self.owner(),
            epoch: self.epoch(),
            message,
        }
    }

    /// Takes away the soft state of what is about to end or change.
    fn before(&mut self, entity: EntityId, body: &Body) {
        let Some(image) = self.journal.state().entities.get(&entity) else {
            return;
        };
        match body {
            Body::Destroyed | Body::Offloaded { .. } => {
                self.schedule.forget(entity, image);
                self.places.remove(&entity);
                self.trail.note(entity);
                self.shown_since.remove(&entity);
                if let Body::Offloaded { to, .. } = body {
                    self.call_links.forget(self.journal.address(entity));
                    self.routes.moved(entity, *to);
                }
            }
            Body::TimerSet { timer, at } => {
                if let Some(old) = image.timers.get(timer) {
                    self.schedule.remove(old.due, Due::Timer(entity, *timer));
                }
                self.schedule.add(at.due, Due::Timer(entity, *timer));
            }
            Body::TimerGone { timer } => {
                if let Some(old) = image.timers.get(timer) {
                    self.schedule.remove(old.due, Due::Timer(entity, *timer));
                }
            }
            Body::Awaits { to, number, awaiting } => {
                self.schedule.add(awaiting.deadline, Due::Reply(entity, *to, *number));
            }
            Body::Resumed { to, number } => {
                if let Some(wait) = image.links.awaiting.get(&(*to, *number)) {
                    self.schedule.remove(wait.deadline, Due::Reply(entity, *to, *number));
                }
            }
            _ => {}
        }
    }

    /// Derives the soft state of an entity that has become real here.
    fn adopt(&mut self, entity: EntityId) {
        let state = self.journal.state();
        let Some(image) = state.entities.get(&entity) else {
            return;
        };
        self.schedule.adopt(entity, image);
        self.call_links.adopt(self.journal.address(entity), &image.links);
        if let Some(cell) = image.cell() {
            self.places.insert(entity, cell.place);
            self.trail.note(entity);
        }
    }
}
