//! Receives ghosts: copies of entities that are real on another owner (rule V2).
//!
//! A ghost is never authoritative. It is built from an image at some history number and the events that follow without
//! gaps, and names the holder of the real entity. Leaving an owner uses up one history number, which only the next
//! holder sends. So of two owners that send an entity, the one with the higher number holds it, however late the
//! messages of the other are.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use annals_def::{EntityType, Replaced, Schema, Value, check};
use annals_event::{Body, Driver, Event, HISTORY_KEPT, Image, Place};
use annals_ids::{EntityId, HistoryNumber, MemberId, OwnerId, Part, SessionId, TypeId};
use annals_node::{
    Behaviour, GhostView, OwnerError, PanicPolicy, Trail, check_args, check_reply, panics::Panic, time::Mono,
};
use annals_wire::bus::{GhostImage, GhostMove, Shown};

use crate::{
    known_entity::{as_ghosts_see, driver, ghost_properties},
    sampling::Whereabouts,
};

/// For this long after an owner first sent an entity, a list without it is ignored: the list may be older than the
/// entity.
const LIST_GRACE: Duration = Duration::from_secs(1);

/// How long a ghost is kept while its holder is silent. Longer than a take-over takes, so that clients do not see
/// everything across the boundary leave and return.
pub(crate) const HOLDER_SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// Maximum number of ghosts of one owner. At a kilobyte each they take 50 MB.
const LIMIT: usize = 50_000;

/// Maximum number of events kept per ghost between two ticks. The oldest are dropped even if a client has not been sent
/// them.
const RECENT_LIMIT: usize = 8 * HISTORY_KEPT;

/// One ghost.
#[derive(Clone, Debug, PartialEq)]
pub struct Ghost {
    holder: OwnerId,
    type_id: TypeId,
    home: OwnerId,
    session: Option<SessionId>,
    history: HistoryNumber,
    driver: Driver,
    properties: BTreeMap<MemberId, Value>,
    /// The newest events, without gaps, up to `history`.
    recent: VecDeque<Shown>,
    whereabouts: Whereabouts,
    /// Sequence number of its newest movement.
    sequence: u64,
    /// When its holder became its holder, as far as this owner knows.
    held: Mono,
    /// When its holder last listed it.
    listed: Mono,
    /// Whether the entity left here for its holder, and the holder has not sent it yet.
    awaits_first_message: bool,
}

/// When a message was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Mono,
    /// The next tick, at which clients are sent what was received.
    pub(crate) local_tick: u64,
}

/// Context for applying messages to ghosts and notifying behaviour of changes.
#[derive(Clone, Copy)]
pub(crate) struct GhostUpdateContext<'a> {
    pub(crate) at: Moment,
    pub(crate) schema: &'a Schema,
    pub(crate) behaviour: &'a dyn Behaviour,
    pub(crate) panics: PanicPolicy,
    /// Collects panics of behaviour.
    pub(crate) panicked: &'a RefCell<Vec<OwnerError>>,
}

/// A request for missing history: an entity, and the newest history number that is known of it.
pub(crate) type MissingHistory = (EntityId, Option<HistoryNumber>);

/// All ghosts on this owner.
#[derive(Debug, Default)]
pub struct GhostReceiver {
    ghosts: BTreeMap<EntityId, Ghost>,
    trail: Trail,
    /// When each owner last sent the list of its ghosts here.
    last_list_at: BTreeMap<OwnerId, Mono>,
}

impl Ghost {
    /// The holder of the real entity, as far as it is known.
    #[must_use]
    pub fn holder(&self) -> OwnerId {
        self.holder
    }

    /// Its entity type.
    #[must_use]
    pub fn type_id(&self) -> TypeId {
        self.type_id
    }

    /// The home of the real entity.
    #[must_use]
    pub fn home(&self) -> OwnerId {
        self.home
    }

    /// The session of its client when its image was made.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// The history number of the real entity for which it stands.
    #[must_use]
    pub fn history(&self) -> HistoryNumber {
        self.history
    }

    /// Who moves the real entity.
    #[must_use]
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// The properties that ghosts have.
    #[must_use]
    pub fn properties(&self) -> &BTreeMap<MemberId, Value> {
        &self.properties
    }

    /// Its place.
    #[must_use]
    pub fn place(&self) -> Place {
        self.whereabouts.place
    }

    pub(crate) fn whereabouts(&self) -> Whereabouts {
        self.whereabouts
    }

    /// Whether the entity left here for its holder, and the holder has not sent it yet.
    pub(crate) fn awaits_first_message(&self) -> bool {
        self.awaits_first_message
    }

    /// Records that its holder sent or listed it.
    fn record_contact(&mut self, now: Mono) {
        (self.listed, self.awaits_first_message) = (now, false);
    }

    /// The events after `known`; `None` for an event of which there is no copy here. Returns nothing if `known` is
    /// newer than what is known here: the client was sent it by another owner that knew more.
    pub(crate) fn since(&self, known: HistoryNumber) -> Option<Vec<(HistoryNumber, Option<&Event>)>> {
        let missing = usize::try_from(self.history.0.saturating_sub(known.0)).ok()?;
        let skipped = self.recent.len().checked_sub(missing)?;
        let numbers = (1..).map(|nth| HistoryNumber(known.0.saturating_add(nth)));
        let events = self.recent.iter().skip(skipped).map(|shown| match shown {
            Shown::Hidden => None,
            Shown::Event(event) => Some(event.as_ref()),
        });
        Some(numbers.zip(events).collect())
    }

    /// Applies an event and notifies behaviour. Returns whether the event is valid for this ghost.
    fn apply(&mut self, context: GhostUpdateContext<'_>, entity: EntityId, shown: &Shown) -> bool {
        let Shown::Event(event) = shown else { return true };
        let Some(entity_type) = context.schema.entity_type(self.type_id) else {
            return false;
        };
        match &event.body {
            Body::Changed { member, change } => {
                let property = entity_type.property(*member);
                let (Some(property), Some(held)) = (property, self.properties.get_mut(member)) else {
                    return false;
                };
                if change.change().check(&property.data_type, held).is_err() {
                    return false;
                }
                let Ok(replaced) = change.make(held) else {
                    return false;
                };
                self.notify_changed(context, entity, *member, &replaced);
                true
            }
            Body::Invoked { method, args, .. } => {
                let method = entity_type.client_methods.get(usize::from(method.0));
                method.is_some_and(|method| check_args(entity_type, method, args).is_ok())
            }
            Body::Replied { method, outcome, .. } => check_reply(entity_type, (Part::Cell, *method), outcome).is_ok(),
            Body::Moved(place) => {
                if place.is_sound() {
                    self.whereabouts.note(*place, context.at.local_tick);
                }
                place.is_sound()
            }
            Body::ControlChanged(movement_control) => {
                self.driver = movement_control.driver;
                true
            }
            _ => true,
        }
    }

    pub(crate) fn view<'a>(&'a self, entity: EntityId, entity_type: &'a EntityType) -> GhostView<'a> {
        let stands = (self.home, self.whereabouts.place);
        GhostView::new((entity, entity_type), stands, &self.properties)
    }

    /// Notifies behaviour that a property has changed.
    fn notify_changed(
        &self,
        context: GhostUpdateContext<'_>,
        entity: EntityId,
        property: MemberId,
        replaced: &Replaced,
    ) {
        if let Some(entity_type) = context.schema.entity_type(self.type_id) {
            let view = self.view(entity, entity_type);
            let notified = || context.behaviour.ghost_changed(&view, property, replaced);
            if let Err(Panic { message }) = context.panics.run(notified) {
                context.panicked.borrow_mut().push(OwnerError::Panicked {
                    entity,
                    part: Part::Cell,
                    entity_type: entity_type.name.clone(),
                    message,
                });
            }
        }
    }
}

impl GhostReceiver {
    /// The ghost of an entity.
    #[must_use]
    pub fn get(&self, entity: EntityId) -> Option<&Ghost> {
        self.ghosts.get(&entity)
    }

    /// All ghosts.
    pub fn iter(&self) -> impl Iterator<Item = (EntityId, &Ghost)> {
        self.ghosts.iter().map(|(entity, ghost)| (*entity, ghost))
    }

    /// The ghosts that came or moved since the trail was last cleared. Removed ones stay in it; a lookup does not find
    /// them.
    pub(crate) fn trail(&self) -> &Trail {
        &self.trail
    }

    pub(crate) fn clear_trail(&mut self) {
        self.trail.clear();
    }

    /// Removes a ghost: the entity is real here, or out of sight.
    pub(crate) fn remove(&mut self, entity: EntityId) {
        self.ghosts.remove(&entity);
    }

    /// Keeps a ghost of an entity that has just left for `holder`.
    pub(crate) fn leave(&mut self, at: Moment, schema: &Schema, (entity, image): (EntityId, &Image), holder: OwnerId) {
        let (Some(entity_type), Some(cell)) = (schema.entity_type(image.type_id), image.cell()) else {
            return;
        };
        let recent = image
            .recent
            .iter()
            .map(|event| as_ghosts_see(entity_type, image.client, event));
        let ghost = Ghost {
            holder,
            type_id: image.type_id,
            home: image.home,
            session: image.client.map(|client| client.session),
            history: image.history,
            driver: driver(image),
            properties: ghost_properties(entity_type, image),
            recent: recent.collect(),
            whereabouts: Whereabouts {
                place: cell.place,
                since: at.local_tick,
            },
            sequence: 0,
            held: at.now,
            listed: at.now,
            awaits_first_message: true,
        };
        self.ghosts.insert(entity, ghost);
        self.trail.note(entity);
    }

    /// Records that an entity which left for `holder` has arrived there. A list that `holder` sent before may be
    /// received later, and not contain it.
    pub(crate) fn arrive(&mut self, now: Mono, entity: EntityId, holder: OwnerId) {
        if let Some(ghost) = self.ghosts.get_mut(&entity).filter(|ghost| ghost.holder == holder) {
            (ghost.held, ghost.listed) = (now, now);
        }
    }

    /// When the longest silent of these owners last sent its list of ghosts: at most `now`; `None` if one of them has
    /// not sent any.
    pub(crate) fn oldest_list_at(&self, now: Mono, owners: &BTreeSet<OwnerId>) -> Option<Mono> {
        let mut lists = owners.iter().map(|owner| self.last_list_at.get(owner).copied());
        lists.try_fold(now, |least, list| Some(least.min(list?)))
    }

    /// Applies an image, unless newer state is known. Returns whether `from` holds the entity, as far as it is known
    /// then.
    pub(crate) fn take_image(
        &mut self,
        context: GhostUpdateContext<'_>,
        from: OwnerId,
        entity: EntityId,
        image: GhostImage,
    ) -> bool {
        if !fits(context.schema, &image) {
            return false;
        }
        let old = self.ghosts.remove(&entity);
        let newer = old
            .as_ref()
            .is_none_or(|old| image.history > old.history || (image.history == old.history && old.holder == from));
        let ghost = match old {
            Some(old) if !newer => old,
            None if self.ghosts.len() >= LIMIT => return false,
            None => renew(None, context.at, from, image),
            Some(mut old) => {
                let before = std::mem::take(&mut old.properties);
                let ghost = renew(Some(old), context.at, from, image);
                for (member, old) in before {
                    if ghost.properties.get(&member).is_some_and(|new| *new != old) {
                        ghost.notify_changed(context, entity, member, &Replaced::Whole { old });
                    }
                }
                ghost
            }
        };
        let held = ghost.holder == from;
        self.ghosts.insert(entity, ghost);
        self.trail.note(entity);
        held
    }

    /// Applies events. Returns what is missing before them.
    pub(crate) fn take_events(
        &mut self,
        context: GhostUpdateContext<'_>,
        from: OwnerId,
        (entity, after): (EntityId, HistoryNumber),
        events: Vec<Shown>,
    ) -> Option<MissingHistory> {
        let at = context.at;
        let Some(ghost) = self.ghosts.get_mut(&entity) else {
            return (self.ghosts.len() < LIMIT).then_some((entity, None));
        };
        let upto = HistoryNumber(after.0.saturating_add(events.len() as u64));
        if upto <= ghost.history {
            if upto == ghost.history && ghost.holder == from {
                ghost.record_contact(at.now);
            }
            return None;
        }
        let Some(known) = ghost.history.0.checked_sub(after.0) else {
            return Some((entity, Some(ghost.history)));
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        self.trail.note(entity);
        for shown in events.into_iter().skip(known) {
            if !ghost.apply(context, entity, &shown) {
                self.ghosts.remove(&entity);
                return Some((entity, None));
            }
            ghost.history = ghost.history.next();
            ghost.recent.push_back(shown);
        }
        let excess = ghost.recent.len().saturating_sub(RECENT_LIMIT);
        ghost.recent.drain(..excess);
        if ghost.holder != from {
            (ghost.holder, ghost.sequence, ghost.held) = (from, 0, at.now);
        }
        ghost.record_contact(at.now);
        None
    }

    /// Applies movements; the newest wins.
    pub(crate) fn take_moves(&mut self, at: Moment, from: OwnerId, moves: &[GhostMove]) {
        for movement in moves {
            let Some(ghost) = self.ghosts.get_mut(&movement.entity) else {
                continue;
            };
            if ghost.holder == from && ghost.sequence < movement.sequence && movement.place.is_sound() {
                ghost.sequence = movement.sequence;
                ghost.whereabouts.note(movement.place, at.local_tick);
                self.trail.note(movement.entity);
            }
        }
    }

    /// Applies the list of the ghosts that `from` has here, with their newest history numbers. Removes ghosts held by
    /// `from` that are not in it. Skips entities that are `own`: real here, or leaving. Returns what is missing.
    pub(crate) fn take_heads(
        &mut self,
        at: Moment,
        from: OwnerId,
        heads: &[(EntityId, HistoryNumber)],
        own: impl Fn(EntityId) -> bool,
    ) -> Vec<MissingHistory> {
        self.last_list_at.insert(from, at.now);
        let mut lacks = Vec::new();
        let mut room = LIMIT.saturating_sub(self.ghosts.len());
        let mut listed = BTreeSet::new();
        for &(entity, newest) in heads.iter().filter(|(entity, _)| !own(*entity)) {
            listed.insert(entity);
            match self.ghosts.get_mut(&entity) {
                None if room == 0 => {}
                None => {
                    room -= 1;
                    lacks.push((entity, None));
                }
                Some(ghost) => {
                    if ghost.holder == from {
                        ghost.record_contact(at.now);
                    }
                    if newest > ghost.history {
                        lacks.push((entity, Some(ghost.history)));
                    }
                }
            }
        }
        self.ghosts.retain(|entity, ghost| {
            let gone = ghost.holder == from && !listed.contains(entity) && at.now.since(ghost.held) > LIST_GRACE;
            !gone || own(*entity)
        });
        lacks
    }

    /// Ends a tick: drops history that all clients were sent, and ghosts whose holder has been silent for longer than
    /// [`HOLDER_SILENCE_LIMIT`]. `own` says which entities are leaving here.
    pub(crate) fn age(&mut self, now: Mono, own: impl Fn(EntityId) -> bool) {
        self.ghosts
            .retain(|entity, ghost| now.since(ghost.listed) <= HOLDER_SILENCE_LIMIT || own(*entity));
        for ghost in self.ghosts.values_mut() {
            let excess = ghost.recent.len().saturating_sub(HISTORY_KEPT);
            ghost.recent.drain(..excess);
        }
    }
}

/// Makes a ghost of an image, keeping from the old ghost what is newer than the image.
fn renew(old: Option<Ghost>, at: Moment, from: OwnerId, image: GhostImage) -> Ghost {
    let mut ghost = Ghost {
        holder: from,
        type_id: image.type_id,
        home: image.home,
        session: image.session,
        history: image.history,
        driver: image.driver,
        properties: image.properties.into_iter().collect(),
        recent: VecDeque::new(),
        whereabouts: Whereabouts {
            place: image.place,
            since: at.local_tick,
        },
        sequence: 0,
        held: at.now,
        listed: at.now,
        awaits_first_message: false,
    };
    let Some(old) = old else { return ghost };
    if old.history == ghost.history {
        ghost.recent = old.recent;
    }
    if old.holder == from {
        ghost.held = old.held;
    }
    let since = old.whereabouts.since;
    if old.holder == from && old.sequence > 0 {
        // Movements do not wait for the log, so they are newer than any image received after them.
        (ghost.whereabouts, ghost.sequence) = (old.whereabouts, old.sequence);
    } else if old.whereabouts.place == ghost.whereabouts.place {
        ghost.whereabouts.since = since;
    }
    ghost
}

/// Whether the image is valid for its type in the schema: an invalid one must not reach clients.
fn fits(schema: &Schema, image: &GhostImage) -> bool {
    let Some(entity_type) = schema.entity_type(image.type_id) else {
        return false;
    };
    let values = image.properties.iter().all(|(member, value)| {
        entity_type
            .property(*member)
            .is_some_and(|property| property.distribution.to_ghosts() && check(&property.data_type, value).is_ok())
    });
    values && image.place.is_sound()
}
