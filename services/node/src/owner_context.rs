//! The owner context: state that a role and a game's behaviour use while one input is handled.
//!
//! It owns the journal (recorded events and the folded state), the gate (outputs that wait for the log) and soft state:
//! routes, timers, calls to resend. Soft state is rebuilt from the folded state and may be lost at any time.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use annals_def::{EntityType, Schema};
use annals_event::{Body, Call, Event, GlobalEntry, GlobalScope, Image, Link, OwnerState, Place, Subject, Trace};
use annals_ids::{Address, BatchNumber, CallNumber, DatabaseId, EntityId, Epoch, OwnerId, TypeId};
use annals_personal::PersonalKey;
use annals_wire::bus::{CallMessage, Envelope, Message};

use crate::{
    around::Around,
    behaviour::{Behaviour, Caller},
    call_limits::CallLimits,
    call_links::CallLinks,
    context::Denied,
    gate::Gate,
    ids::IdBlocks,
    journal::Journal,
    output::{Output, Request},
    panics::PanicPolicy,
    routes::Routes,
    schedule::{Due, Schedule},
    tally::{CostKind, Member, Tally},
    temporaries::Temporaries,
    time::Now,
    trail::Trail,
    trouble::{OwnerError, Troubles},
};

/// A call within the owner, executed before the input ends (rule C5).
#[derive(Debug)]
pub(crate) enum Local {
    /// Without a number: nothing of it is kept.
    Direct {
        /// The receiver.
        to: EntityId,
        call: Call,
        caller: Caller,
    },
    /// A numbered call, consumed as if it had come over the bus.
    Numbered(CallMessage),
}

/// Something about global data that the parts that follow it are notified of, before the input ends.
#[derive(Debug)]
pub(crate) enum GlobalNotice {
    /// An entry was recorded.
    Changed(GlobalScope, GlobalEntry),
    /// A follower came here, or came back. It may lack changes that were recorded here before, and not yet where it was.
    Arrived(EntityId),
}

/// The state of one owner that its role and the game's behaviour read and change.
pub struct OwnerContext {
    pub(crate) now: Now,
    pub(crate) schema: Arc<Schema>,
    pub(crate) behaviour: Arc<dyn Behaviour>,
    panics: PanicPolicy,
    /// Whether an event is being recorded: the log may have less than the state.
    is_recording: bool,
    pub(crate) journal: Journal,
    pub(crate) gate: Gate<Output>,
    pub(crate) routes: Routes,
    pub(crate) schedule: Schedule,
    pub(crate) call_links: CallLinks,
    pub(crate) call_limits: CallLimits,
    /// Cell parts that have ended, all of whose calls are confirmed.
    pub(crate) ended_cells: BTreeSet<EntityId>,
    pub(crate) local: VecDeque<Local>,
    /// Requests of behaviour to the role, each with the entity that made it.
    pub(crate) requests: VecDeque<(EntityId, Request)>,
    /// All base owners, by the newest map.
    pub(crate) bases: BTreeSet<OwnerId>,
    /// The parts here that follow global data.
    pub(crate) followers: BTreeSet<EntityId>,
    /// What followers of global data have not been notified of.
    pub(crate) global_notices: VecDeque<GlobalNotice>,
    pub(crate) ids: IdBlocks,
    pub(crate) dice: Box<dyn FnMut() -> u64 + Send>,
    pub(crate) trace: Trace,
    /// First batch since which each real entity may be shown (rule G3).
    pub(crate) shown_since: BTreeMap<EntityId, BatchNumber>,
    /// Newest acknowledged batch at the start of the present input.
    pub(crate) acknowledged: BatchNumber,
    pub(crate) troubles: Troubles,
    tally: Tally,
    /// Current places of the real cell parts; the state holds the last logged ones.
    places: BTreeMap<EntityId, Place>,
    trail: Trail,
    pub(crate) temporaries: Temporaries,
    /// Keys of the stored entities that are active here (rule P5).
    keys: BTreeMap<DatabaseId, PersonalKey>,
}

/// Arguments of [`OwnerContext::new`].
pub(crate) struct OwnerContextParts {
    pub(crate) schema: Arc<Schema>,
    pub(crate) behaviour: Arc<dyn Behaviour>,
    pub(crate) panics: PanicPolicy,
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
            panics: parts.panics,
            is_recording: false,
            journal: parts.journal,
            gate: Gate::new(),
            routes: Routes::default(),
            schedule: Schedule::default(),
            call_links: CallLinks::default(),
            call_limits: CallLimits::default(),
            ended_cells: BTreeSet::new(),
            local: VecDeque::new(),
            requests: VecDeque::new(),
            bases: BTreeSet::new(),
            followers: BTreeSet::new(),
            global_notices: VecDeque::new(),
            ids: parts.ids,
            dice: parts.dice,
            trace: Trace::default(),
            shown_since: BTreeMap::new(),
            acknowledged: BatchNumber(0),
            troubles: Troubles::default(),
            places: BTreeMap::new(),
            trail: Trail::default(),
            temporaries: Temporaries::default(),
            keys: parts.keys,
        };
        let entities: Vec<EntityId> = cx.state().entities.keys().copied().collect();
        entities.into_iter().for_each(|entity| cx.adopt(entity));
        let owner = Address::Owner(cx.owner());
        cx.call_links.adopt(owner, &cx.journal.state().links);
        for (entity, links) in &cx.journal.state().estates {
            cx.call_links.adopt(cx.journal.address(*entity), links);
        }
        let ending: Vec<EntityId> = cx.state().ending.keys().copied().collect();
        for entity in ending {
            let links = &cx.journal.state().ending[&entity].links;
            cx.call_links.adopt(Address::Cell(entity), links);
            cx.adopt_ended(entity);
        }
        cx
    }

    /// The game's behaviour.
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

    /// The time of the present input.
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

    /// The image of an entity that is real here.
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

    /// The current place of a real cell part.
    #[must_use]
    pub fn place(&self, entity: EntityId) -> Option<Place> {
        self.places.get(&entity).copied()
    }

    /// The real cell parts and their current places.
    pub fn places(&self) -> impl Iterator<Item = (EntityId, Place)> {
        self.places.iter().map(|(entity, place)| (*entity, *place))
    }

    /// Moves a real cell part to a valid place in its space. Volatile: the cell samples it into the log.
    pub fn move_to(&mut self, entity: EntityId, to: Place) {
        debug_assert!(to.is_sound(), "entity {entity} is moved to {to:?}");
        if let Some(place) = self.places.get_mut(&entity) {
            *place = to;
            self.trail.note(entity);
        }
    }

    /// Cell parts created, removed or moved since [`clear_trail`](Self::clear_trail).
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.trail
    }

    /// Clears the trail.
    pub fn clear_trail(&mut self) {
        self.trail.clear();
    }

    /// Allocates an entity id that was never used; `None` when the granted block is used up.
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

    /// Adds the key of a person who is active here, or is about to be (rule P5).
    pub fn learn_key(&mut self, person: DatabaseId, key: PersonalKey) {
        self.keys.insert(person, key);
    }

    /// The stored entity that a base part stands for.
    #[must_use]
    pub fn person(&self, entity: EntityId) -> Option<DatabaseId> {
        let database = self.image(entity)?.base()?.database;
        Some(database).filter(|database| database.0 != 0)
    }

    /// The key of a person; `None` if there is none, because the person was forgotten, or was never checked out.
    pub(crate) fn key(&self, person: DatabaseId) -> Option<&PersonalKey> {
        self.keys.get(&person)
    }

    /// Seals personal data; `None` if the person has no key.
    pub fn seal(&mut self, person: DatabaseId, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(person)?.clone();
        let salt = u128::from(self.roll()) << 64 | u128::from(self.roll());
        Some(annals_personal::seal(&key, person, salt, plain))
    }

    /// Records an event, and updates soft state accordingly. `shown` gives it a history number.
    pub fn record(&mut self, subject: Subject, shown: bool, body: Body) {
        self.is_recording = true;
        self.record_whole(subject, shown, body);
        self.is_recording = false;
    }

    fn record_whole(&mut self, subject: Subject, shown: bool, body: Body) {
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
        let returns = matches!(body, Body::Onloaded { .. } | Body::Returned { .. });
        let placed = matches!(body, Body::Placed(Some(_)));
        if let (Some(entity), Body::Placed(None)) = (entity, &body) {
            self.routes.forget(entity);
        }
        let counted = entity.zip(Member::changed_by(subject, &body));
        // The call was counted when it came.
        let is_answer = matches!(body, Body::Replied { .. });
        let ended = Self::ended_cell_of(subject, &body);
        let bytes = self.journal.record(subject, shown, body);
        if let Some((entity, member)) = counted
            && let Some(image) = self.image(entity)
        {
            if !is_answer {
                self.tally.add(image.type_id, member, CostKind::Changes, 1);
            }
            self.tally.add(image.type_id, member, CostKind::Log, bytes);
        }
        if let (Some(entity), true) = (entity, placed) {
            self.follow(entity);
        }
        if let Some(entity) = ended {
            self.note_ended_cell(entity);
        }
        if let Some(entity) = entity
            && (begins || self.image(entity).is_none())
        {
            self.temporaries.forget(entity);
        }
        if let (Some(entity), true) = (entity, begins) {
            self.shown_since.insert(entity, self.journal.label());
            self.adopt(entity);
            if returns && self.followers.contains(&entity) {
                self.global_notices.push_back(GlobalNotice::Arrived(entity));
            }
        }
    }

    /// Records an event of an entity that is real here.
    pub fn record_for(&mut self, entity: EntityId, shown: bool, body: Body) {
        self.record(self.journal.subject(entity), shown, body);
    }

    /// Takes the events recorded since the last call, in order.
    pub fn take_recorded(&mut self) -> Vec<Event> {
        self.journal.take_recorded()
    }

    /// Sends a message to another owner once the events that it depends on are in the log. It may be lost.
    pub fn send(&mut self, to: OwnerId, message: Message) {
        let envelope = self.envelope(message);
        self.emit(Output::Send { to, envelope });
    }

    /// Sends a volatile message about an entity that is real here: it leaves at the next release, or is dropped.
    pub fn send_volatile(&mut self, about: EntityId, to: OwnerId, message: Message) {
        let envelope = self.envelope(message);
        self.emit_volatile(about, Output::Send { to, envelope });
    }

    /// Queues an output until the events that it depends on are in the log.
    pub fn emit(&mut self, output: Output) {
        self.gate.push(self.journal.label(), output);
    }

    /// Queues a volatile output about an entity: it leaves at the next release, or is dropped (rules G2, G3).
    pub fn emit_volatile(&mut self, about: EntityId, output: Output) {
        let since = self.shown_since.get(&about).copied().unwrap_or_default();
        self.gate.push_volatile(since, output);
    }

    /// Whether the creation of an entity that is real here is acknowledged, so that others may be notified of it (rule
    /// G3).
    #[must_use]
    pub fn is_acknowledged(&self, entity: EntityId) -> bool {
        self.shown_since
            .get(&entity)
            .is_none_or(|since| *since <= self.acknowledged)
    }

    /// Number of outputs at the gate.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.gate.waiting()
    }

    /// Bytes that the present input may still record. Anything larger has to be denied or postponed.
    #[must_use]
    pub fn room(&self) -> usize {
        self.journal.room()
    }

    /// Queues an error for the process log.
    pub fn report(&mut self, trouble: OwnerError) {
        self.troubles.push(self.journal.label(), trouble);
    }

    /// Whether a panic has left an event half recorded.
    pub(crate) fn is_recording(&self) -> bool {
        self.is_recording
    }

    /// What to do when behaviour panics.
    #[must_use]
    pub fn panics(&self) -> PanicPolicy {
        self.panics
    }

    /// Costs of members of entity types since the take-over.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether the present input has no pending calls within the owner, requests, or notices of global data. An entity
    /// may leave only then, or pending work for it would not find it.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.local.is_empty() && self.requests.is_empty() && self.global_notices.is_empty()
    }

    /// A cell part was found on another owner: calls for it are sent there, and callers that ask here are redirected.
    /// The home of the entity is notified by the cell part itself: there a hint would outlive the part.
    pub fn record_location(&mut self, (entity, home): (EntityId, OwnerId), at: OwnerId) {
        if home != self.owner() {
            self.routes.moved(entity, at);
        }
    }

    /// Requests something that only the role can do, executed after the present call. `by` is the entity whose
    /// behaviour asks.
    pub fn request(&mut self, by: EntityId, request: Request) {
        self.requests.push_back((by, request));
    }

    /// Whether other requests of behaviour that concern this entity are still pending.
    #[must_use]
    pub fn has_requests(&self, entity: EntityId) -> bool {
        self.requests.iter().any(|(_, request)| request.entity() == entity)
    }

    /// Notifies the entity whose behaviour made a request that it was denied.
    pub fn deny(&mut self, by: EntityId, around: &dyn Around, request: &Request, why: &Denied) {
        self.run(by, around, |behaviour, context| {
            behaviour.request_denied(context, request, why);
        });
    }

    /// Records that the entity of a base part here is stored. One that is not stored yet becomes a new stored entity.
    ///
    /// # Errors
    /// [`Denied::NoIds`] if no id is left for a new stored entity; [`Denied::Elsewhere`] if there is no such base part.
    pub fn store(&mut self, entity: EntityId) -> Result<DatabaseId, Denied> {
        let what = "store";
        let base = self.image(entity).and_then(Image::base);
        let database = match base.ok_or(Denied::Elsewhere { entity, what })?.database {
            DatabaseId(0) => DatabaseId(self.new_entity().ok_or(Denied::NoIds)?.0),
            known => known,
        };
        self.record_for(entity, false, Body::Stored { database });
        Ok(database)
    }

    /// The number of the next call from one address to another.
    #[must_use]
    pub fn next_call(&self, from: Address, to: Address) -> CallNumber {
        self.state()
            .links(from)
            .map_or(CallNumber(1), |links| links.next_call(to))
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

    /// Takes a call for a part that is real here, as if it had come over the bus: used by the role for calls of a
    /// client.
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

    /// Removes the soft state of an entity that is about to end or change.
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
                self.followers.remove(&entity);
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
        if self.behaviour.follows_global_data(image.type_id) {
            self.followers.insert(entity);
        }
        self.routes.forget(entity);
        self.schedule.adopt(entity, image);
        self.call_links.adopt(self.journal.address(entity), &image.links);
        if let Some(cell) = image.cell() {
            self.places.insert(entity, cell.place);
            self.trail.note(entity);
        }
    }
}
