//! Receives ghosts: copies of entities that are real on another owner (rule V2).
//!
//! A ghost is never authoritative. It is built from an image at some history number and the dense events that follow, and
//! names the holder of the real entity. Leaving an owner takes a history number of its own, which only the next holder sends;
//! so of two owners that send an entity the one with the higher number holds it, however late the messages of the other are.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use annals_def::{EntityType, Replaced, Schema, Value, check};
use annals_event::{Body, Event, HISTORY_KEPT, Image, Place};
use annals_ids::{EntityId, HistoryNumber, MemberId, OwnerId, SessionId, TypeId};
use annals_node::{Behaviour, GhostView, Trail, check_args, time::Mono};
use annals_wire::bus::{GhostImage, GhostMove, Shown};

use crate::{
    presence::{as_ghosts_see, ghost_properties},
    sampling::Whereabouts,
};

/// For this long after an owner first sent an entity, a list without it is ignored: the list may be older than the entity.
const SETTLED: Duration = Duration::from_secs(1);

/// How long a ghost is kept while its holder says nothing at all: longer than a take-over takes, so that clients do not see
/// everything across the boundary go and come back.
pub(crate) const UNHEARD: Duration = Duration::from_secs(30);

/// Most ghosts of one owner. At a kilobyte each they take 50 MB.
const LIMIT: usize = 50_000;

/// Events kept between two ticks, beyond which the oldest go although somebody may not have been told them.
const RECENT_LIMIT: usize = 8 * HISTORY_KEPT;

/// One ghost.
#[derive(Clone, Debug, PartialEq)]
pub struct Ghost {
    holder: OwnerId,
    type_id: TypeId,
    home: OwnerId,
    session: Option<SessionId>,
    history: HistoryNumber,
    properties: BTreeMap<MemberId, Value>,
    /// The newest events, dense, up to `history`.
    recent: VecDeque<Shown>,
    whereabouts: Whereabouts,
    /// Of its newest movement.
    sequence: u64,
    /// Since when its holder has spoken of it, or could have, and when it named it last.
    held: Mono,
    named: Mono,
    /// Whether its holder has not yet spoken of it since it left for there.
    is_unheard_of: bool,
}

/// When something was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Mono,
    /// The next tick: what is heard is told then.
    pub(crate) beat: u64,
}

/// What it takes to hear of ghosts and to tell the game what is new.
#[derive(Clone, Copy)]
pub(crate) struct Hearing<'a> {
    pub(crate) at: Moment,
    pub(crate) schema: &'a Schema,
    pub(crate) behaviour: &'a dyn Behaviour,
}

/// What a ghost lacks: an entity, and the newest history number that is known of it.
pub(crate) type Lack = (EntityId, Option<HistoryNumber>);

/// All ghosts that this owner has.
#[derive(Debug, Default)]
pub struct GhostReceiver {
    ghosts: BTreeMap<EntityId, Ghost>,
    trail: Trail,
    /// When each owner last sent the list of its ghosts here.
    heard: BTreeMap<OwnerId, Mono>,
}

impl Ghost {
    /// Who holds the real one, as far as is known.
    #[must_use]
    pub fn holder(&self) -> OwnerId {
        self.holder
    }

    /// Its type.
    #[must_use]
    pub fn type_id(&self) -> TypeId {
        self.type_id
    }

    /// The home of the real one.
    #[must_use]
    pub fn home(&self) -> OwnerId {
        self.home
    }

    /// Whose client's entity it was when its image was made.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// For which history number of the real one it stands.
    #[must_use]
    pub fn history(&self) -> HistoryNumber {
        self.history
    }

    /// The properties that ghosts have.
    #[must_use]
    pub fn properties(&self) -> &BTreeMap<MemberId, Value> {
        &self.properties
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> Place {
        self.whereabouts.place
    }

    pub(crate) fn whereabouts(&self) -> Whereabouts {
        self.whereabouts
    }

    /// Whether its holder has not yet spoken of it since it left for there.
    pub(crate) fn is_unheard_of(&self) -> bool {
        self.is_unheard_of
    }

    /// Its holder speaks of it.
    fn hear(&mut self, now: Mono) {
        (self.named, self.is_unheard_of) = (now, false);
    }

    /// What happened after `known`, `None` for an event of which there is no copy here. Nothing if `known` is more than is
    /// known here: the client was shown it by somebody who knew more.
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

    /// Does what an event says, and tells the game. Returns whether it fits.
    fn apply(&mut self, hearing: Hearing<'_>, entity: EntityId, shown: &Shown) -> bool {
        let Shown::Event(event) = shown else { return true };
        let Some(entity_type) = hearing.schema.entity_type(self.type_id) else {
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
                self.tell(hearing, entity, *member, &replaced);
                true
            }
            Body::Invoked { method, args, .. } => {
                let method = entity_type.client_methods.get(usize::from(method.0));
                method.is_some_and(|method| check_args(entity_type, method, args).is_ok())
            }
            Body::Moved(place) => {
                if place.is_sound() {
                    self.whereabouts.note(*place, hearing.at.beat);
                }
                place.is_sound()
            }
            _ => true,
        }
    }

    pub(crate) fn view<'a>(&'a self, entity: EntityId, entity_type: &'a EntityType) -> GhostView<'a> {
        let stands = (self.home, self.whereabouts.place);
        GhostView::new((entity, entity_type), stands, &self.properties)
    }

    /// Tells the game that a property has changed.
    fn tell(&self, hearing: Hearing<'_>, entity: EntityId, property: MemberId, replaced: &Replaced) {
        if let Some(entity_type) = hearing.schema.entity_type(self.type_id) {
            let view = self.view(entity, entity_type);
            hearing.behaviour.ghost_changed(&view, property, replaced);
        }
    }
}

impl GhostReceiver {
    /// The ghost of an entity.
    #[must_use]
    pub fn get(&self, entity: EntityId) -> Option<&Ghost> {
        self.ghosts.get(&entity)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (EntityId, &Ghost)> {
        self.ghosts.iter().map(|(entity, ghost)| (*entity, ghost))
    }

    /// Which have come or moved since that was last forgotten. Those that have gone are found to be no more.
    pub(crate) fn trail(&self) -> &Trail {
        &self.trail
    }

    pub(crate) fn clear_trail(&mut self) {
        self.trail.clear();
    }

    /// The entity is real here, or is not to be seen any more.
    pub(crate) fn remove(&mut self, entity: EntityId) {
        self.ghosts.remove(&entity);
    }

    /// Keeps a ghost of an entity that has just left for `holder`.
    pub(crate) fn leave(&mut self, at: Moment, schema: &Schema, (entity, image): (EntityId, &Image), holder: OwnerId) {
        let (Some(entity_type), Some(cell)) = (schema.entity_type(image.type_id), image.cell()) else {
            return;
        };
        let recent = image.recent.iter().map(|event| as_ghosts_see(entity_type, event));
        let ghost = Ghost {
            holder,
            type_id: image.type_id,
            home: image.home,
            session: image.client.map(|client| client.session),
            history: image.history,
            properties: ghost_properties(entity_type, image),
            recent: recent.collect(),
            whereabouts: Whereabouts {
                place: cell.place,
                since: at.beat,
            },
            sequence: 0,
            held: at.now,
            named: at.now,
            is_unheard_of: true,
        };
        self.ghosts.insert(entity, ghost);
        self.trail.note(entity);
    }

    /// What left for `holder` has arrived there: what that said of its ghosts until now may come later, and be older.
    pub(crate) fn arrive(&mut self, now: Mono, entity: EntityId, holder: OwnerId) {
        if let Some(ghost) = self.ghosts.get_mut(&entity).filter(|ghost| ghost.holder == holder) {
            (ghost.held, ghost.named) = (now, now);
        }
    }

    /// When the one of these owners that has been silent for longest sent its list of ghosts: not later than `now`, and
    /// never if one of them has said nothing.
    pub(crate) fn all_heard(&self, now: Mono, owners: &BTreeSet<OwnerId>) -> Option<Mono> {
        let mut heard = owners.iter().map(|owner| self.heard.get(owner).copied());
        heard.try_fold(now, |least, heard| Some(least.min(heard?)))
    }

    /// Takes an image, unless more is known already. Returns whether `from` holds the entity, as far as is known now.
    pub(crate) fn take_image(
        &mut self,
        hearing: Hearing<'_>,
        from: OwnerId,
        entity: EntityId,
        image: GhostImage,
    ) -> bool {
        if !fits(hearing.schema, &image) {
            return false;
        }
        let old = self.ghosts.remove(&entity);
        let newer = old
            .as_ref()
            .is_none_or(|old| image.history > old.history || (image.history == old.history && old.holder == from));
        let ghost = match old {
            Some(old) if !newer => old,
            None if self.ghosts.len() >= LIMIT => return false,
            None => renew(None, hearing.at, from, image),
            Some(mut old) => {
                let before = std::mem::take(&mut old.properties);
                let ghost = renew(Some(old), hearing.at, from, image);
                for (member, old) in before {
                    if ghost.properties.get(&member).is_some_and(|new| *new != old) {
                        ghost.tell(hearing, entity, member, &Replaced::Whole { old });
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

    /// Takes events. Returns what is missing before them.
    pub(crate) fn take_events(
        &mut self,
        hearing: Hearing<'_>,
        from: OwnerId,
        (entity, after): (EntityId, HistoryNumber),
        events: Vec<Shown>,
    ) -> Option<Lack> {
        let at = hearing.at;
        let Some(ghost) = self.ghosts.get_mut(&entity) else {
            return (self.ghosts.len() < LIMIT).then_some((entity, None));
        };
        let upto = HistoryNumber(after.0.saturating_add(events.len() as u64));
        if upto <= ghost.history {
            if upto == ghost.history && ghost.holder == from {
                ghost.hear(at.now);
            }
            return None;
        }
        let Some(known) = ghost.history.0.checked_sub(after.0) else {
            return Some((entity, Some(ghost.history)));
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        self.trail.note(entity);
        for shown in events.into_iter().skip(known) {
            if !ghost.apply(hearing, entity, &shown) {
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
        ghost.hear(at.now);
        None
    }

    /// Takes movements; the newest wins.
    pub(crate) fn take_moves(&mut self, at: Moment, from: OwnerId, moves: &[GhostMove]) {
        for movement in moves {
            let Some(ghost) = self.ghosts.get_mut(&movement.entity) else {
                continue;
            };
            if ghost.holder == from && ghost.sequence < movement.sequence && movement.place.is_sound() {
                ghost.sequence = movement.sequence;
                ghost.whereabouts.note(movement.place, at.beat);
                self.trail.note(movement.entity);
            }
        }
    }

    /// Takes the list of the ghosts that `from` has here, with their newest history numbers. Ghosts held by `from` that are
    /// not in it are removed. Entities
    /// that are `own` here, or on their way from here, are passed over. Returns what is missing.
    pub(crate) fn take_heads(
        &mut self,
        at: Moment,
        from: OwnerId,
        heads: &[(EntityId, HistoryNumber)],
        own: impl Fn(EntityId) -> bool,
    ) -> Vec<Lack> {
        self.heard.insert(from, at.now);
        let mut lacks = Vec::new();
        let mut room = LIMIT.saturating_sub(self.ghosts.len());
        let mut named = BTreeSet::new();
        for &(entity, newest) in heads.iter().filter(|(entity, _)| !own(*entity)) {
            named.insert(entity);
            match self.ghosts.get_mut(&entity) {
                None if room == 0 => {}
                None => {
                    room -= 1;
                    lacks.push((entity, None));
                }
                Some(ghost) => {
                    if ghost.holder == from {
                        ghost.hear(at.now);
                    }
                    if newest > ghost.history {
                        lacks.push((entity, Some(ghost.history)));
                    }
                }
            }
        }
        self.ghosts.retain(|entity, ghost| {
            let gone = ghost.holder == from && !named.contains(entity) && at.now.since(ghost.held) > SETTLED;
            !gone || own(*entity)
        });
        lacks
    }

    /// Ends a tick: forgets history that everybody was told, and ghosts whose holder has been silent for too long. `own`
    /// says which entities are on their way from here.
    pub(crate) fn age(&mut self, now: Mono, own: impl Fn(EntityId) -> bool) {
        self.ghosts
            .retain(|entity, ghost| now.since(ghost.named) <= UNHEARD || own(*entity));
        for ghost in self.ghosts.values_mut() {
            let excess = ghost.recent.len().saturating_sub(HISTORY_KEPT);
            ghost.recent.drain(..excess);
        }
    }
}

/// Makes a ghost of an image, keeping of the old one what the image does not know better.
fn renew(old: Option<Ghost>, at: Moment, from: OwnerId, image: GhostImage) -> Ghost {
    let mut ghost = Ghost {
        holder: from,
        type_id: image.type_id,
        home: image.home,
        session: image.session,
        history: image.history,
        properties: image.properties.into_iter().collect(),
        recent: VecDeque::new(),
        whereabouts: Whereabouts {
            place: image.place,
            since: at.beat,
        },
        sequence: 0,
        held: at.now,
        named: at.now,
        is_unheard_of: false,
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
        // Movements wait for no log, so they are newer than any image that comes after them.
        (ghost.whereabouts, ghost.sequence) = (old.whereabouts, old.sequence);
    } else if old.whereabouts.place == ghost.whereabouts.place {
        ghost.whereabouts.since = since;
    }
    ghost
}

/// Whether the image is one of an entity of the schema: what is wrong must not reach clients.
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
