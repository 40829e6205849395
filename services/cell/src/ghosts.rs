//! Ghosts: copies of entities that are real on a neighbouring cell, as far as ghosts have copies (rule V2).
//!
//! They hold no truth. Whatever is lost or comes in the wrong order is repaired by history number: a ghost that finds a
//! gap asks the real one, and what its owner no longer names is dropped.

use std::collections::{BTreeMap, VecDeque};

use annals_def::Value;
use annals_event::{Body, Event, HISTORY_KEPT, Place};
use annals_ids::{EntityId, HistoryNumber, MemberId, OwnerId, SessionId, TypeId};
use annals_wire::bus::{GhostImage, GhostMove, Shown};

/// A ghost that its owner did not name so often in a row is dropped: once may be a message that overtook another.
const UNNAMED_LIMIT: u32 = 2;

/// A copy of an entity that is real elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Ghost {
    /// Where it is real, as far as we know.
    pub from: OwnerId,
    /// Its type.
    pub type_id: TypeId,
    /// Its home.
    pub home: OwnerId,
    /// Whose client's entity it is.
    pub session: Option<SessionId>,
    /// The newest history number that it has.
    pub history: HistoryNumber,
    /// Where it is.
    pub place: Place,
    /// The properties that ghosts have.
    pub properties: BTreeMap<MemberId, Value>,
    /// The newest history events; those that ghosts do not see are `None`.
    recent: VecDeque<(HistoryNumber, Option<Event>)>,
    /// The newest movement, by the real one's count.
    moved: u64,
    unnamed: u32,
}

/// What is to be done about a ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Ask its owner for what follows this number, or for all of it.
    Ask(Option<HistoryNumber>),
    /// Nothing.
    None,
}

/// All ghosts of one cell owner.
#[derive(Clone, Debug, Default)]
pub struct Ghosts {
    held: BTreeMap<EntityId, Ghost>,
}

impl Ghost {
    /// The events after `known`, or `None` where they reach no longer back so far.
    #[must_use]
    pub fn history_since(&self, known: HistoryNumber) -> Option<impl Iterator<Item = (HistoryNumber, Option<&Event>)>> {
        let reaches = known >= self.history || self.recent.front().is_some_and(|(first, _)| *first <= known.next());
        let newer = self.recent.iter().skip_while(move |(number, _)| *number <= known);
        (reaches && known <= self.history).then(|| newer.map(|(number, event)| (*number, event.as_ref())))
    }

    fn apply(&mut self, number: HistoryNumber, shown: Shown) {
        let event = match shown {
            Shown::Hidden => None,
            Shown::Event(event) => Some(*event),
        };
        if let Some(Body::Changed { member, path, value }) = event.as_ref().map(|event| &event.body)
            && let Some(held) = self.properties.get_mut(member)
        {
            assign(held, path, value);
        }
        self.history = number;
        if self.recent.len() == HISTORY_KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back((number, event));
    }
}

impl Ghosts {
    /// The ghost of an entity.
    #[must_use]
    pub fn get(&self, entity: EntityId) -> Option<&Ghost> {
        self.held.get(&entity)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (EntityId, &Ghost)> {
        self.held.iter().map(|(entity, ghost)| (*entity, ghost))
    }

    /// The entity has become real here, or is gone.
    pub fn remove(&mut self, entity: EntityId) -> Option<Ghost> {
        self.held.remove(&entity)
    }

    /// An image came: the ghost is made or replaced, unless it knows better already.
    pub fn take_image(&mut self, from: OwnerId, entity: EntityId, image: GhostImage) -> bool {
        if self
            .held
            .get(&entity)
            .is_some_and(|ghost| ghost.history > image.history)
        {
            return false;
        }
        let known = self.held.remove(&entity);
        let (recent, moved) = known
            .filter(|ghost| ghost.history == image.history && ghost.from == from)
            .map(|ghost| (ghost.recent, ghost.moved))
            .unwrap_or_default();
        let ghost = Ghost {
            from,
            type_id: image.type_id,
            home: image.home,
            session: image.session,
            history: image.history,
            place: image.place,
            properties: image.properties.into_iter().collect(),
            recent,
            moved,
            unnamed: 0,
        };
        self.held.insert(entity, ghost);
        true
    }

    /// Events came that follow `after`. Those that are known are passed over; a gap is to be asked for. Returns the number
    /// after which the ghost has new ones.
    pub fn take_events(
        &mut self,
        from: OwnerId,
        entity: EntityId,
        after: HistoryNumber,
        events: Vec<Shown>,
    ) -> (Repair, Option<HistoryNumber>) {
        let Some(ghost) = self.held.get_mut(&entity) else {
            return (Repair::Ask(None), None);
        };
        if after > ghost.history {
            return (Repair::Ask(Some(ghost.history)), None);
        }
        let before = ghost.history;
        let mut number = after;
        for shown in events {
            number = number.next();
            if number > ghost.history {
                ghost.apply(number, shown);
            }
        }
        let news = ghost.history > before;
        if news {
            ghost.from = from;
        }
        (Repair::None, news.then_some(before))
    }

    /// A movement came; one that is older than the newest is dropped.
    pub fn take_move(&mut self, from: OwnerId, moved: GhostMove) {
        if let Some(ghost) = self.held.get_mut(&moved.entity).filter(|ghost| ghost.from == from)
            && moved.sequence > ghost.moved
        {
            ghost.moved = moved.sequence;
            ghost.place = moved.place;
        }
    }

    /// An owner named the newest numbers of all that it haunts here. Returns what to ask it for, and what was dropped.
    pub fn take_heads(
        &mut self,
        from: OwnerId,
        heads: &[(EntityId, HistoryNumber)],
        is_real: impl Fn(EntityId) -> bool,
    ) -> (Vec<(EntityId, Repair)>, Vec<EntityId>) {
        let named: BTreeMap<EntityId, HistoryNumber> = heads.iter().copied().collect();
        let mut dropped = Vec::new();
        self.held.retain(|entity, ghost| {
            if ghost.from != from {
                return true;
            }
            ghost.unnamed = if named.contains_key(entity) {
                0
            } else {
                ghost.unnamed + 1
            };
            let keep = ghost.unnamed < UNNAMED_LIMIT;
            if !keep {
                dropped.push(*entity);
            }
            keep
        });
        let lacking = named
            .iter()
            .filter(|(entity, _)| !is_real(**entity))
            .filter_map(|(entity, head)| {
                let repair = match self.held.get(entity) {
                    None => Repair::Ask(None),
                    Some(ghost) if ghost.history < *head => Repair::Ask(Some(ghost.history)),
                    // Somebody else haunted it here before; from now on this owner does.
                    Some(ghost) if ghost.from != from => Repair::Ask(None),
                    Some(_) => Repair::None,
                };
                (repair != Repair::None).then_some((*entity, repair))
            });
        (lacking.collect(), dropped)
    }
}

/// Assigns within a value; a path that leads nowhere leaves it, and the next image puts it right.
fn assign(held: &mut Value, path: &[u32], value: &Value) {
    let mut place = held;
    for &step in path {
        let (Value::Sequence(values) | Value::Dict(values)) = place else {
            return;
        };
        let Some(next) = values.get_mut(step as usize) else {
            return;
        };
        place = next;
    }
    *place = value.clone();
}
