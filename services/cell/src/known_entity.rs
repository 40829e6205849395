//! Entities as others see them, real here or ghosts.

use std::collections::BTreeMap;

use annals_def::{EntityType, Value};
use annals_event::{Audience, Body, Cause, ClientLink, Driver, Event, Image};
use annals_ids::{EntityId, HistoryNumber, MemberId, TypeId};
use annals_node::OwnerContext;
use annals_wire::bus::Shown;

use crate::{ghost_receiver::Ghost, knowledge::Knowledge, sampling::Whereabouts};

/// A read view of what this cell knows, together with its owner's state.
#[derive(Clone, Copy)]
pub(crate) struct KnowledgeView<'a> {
    pub(crate) cx: &'a OwnerContext,
    pub(crate) known: &'a Knowledge,
}

impl<'a> KnowledgeView<'a> {
    /// An entity, if it is known here.
    pub(crate) fn source(&self, entity: EntityId) -> Option<Source<'a>> {
        match self.cx.image(entity) {
            Some(image) => Some(Source::Real {
                image,
                recent: self.known.recent_events.of(entity),
            }),
            None => self.known.ghosts.get(entity).map(Source::Ghost),
        }
    }

    /// What a client's view needs of an entity, if it is known here.
    pub(crate) fn entity(&self, entity: EntityId) -> Option<KnownEntity<'a>> {
        let source = self.source(entity)?;
        Some(KnownEntity {
            source,
            entity_type: self.cx.type_of(source.type_id())?,
            history: source.history(),
            whereabouts: self.whereabouts(entity)?,
            is_acknowledged: self.cx.is_acknowledged(entity),
        })
    }

    /// The place of an entity.
    fn whereabouts(&self, entity: EntityId) -> Option<Whereabouts> {
        match self.cx.place(entity) {
            Some(place) => {
                let known = self
                    .known
                    .sampling
                    .whereabouts(entity)
                    .filter(|known| known.place == place);
                // What came or moved since the last tick was not sampled yet.
                let since = known.map_or(self.known.sampling.local_tick(), |known| known.since);
                Some(Whereabouts { place, since })
            }
            None => self.known.ghosts.get(entity).map(Ghost::whereabouts),
        }
    }
}

/// An entity as clients' views need it.
#[derive(Clone, Copy)]
pub(crate) struct KnownEntity<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) entity_type: &'a EntityType,
    /// Its newest history number that is known here.
    pub(crate) history: HistoryNumber,
    pub(crate) whereabouts: Whereabouts,
    /// Whether its creation is in the log; only then may unlogged movements of it be sent.
    pub(crate) is_acknowledged: bool,
}

/// All entities, looked up once in a tick for all clients. Each is in as many views as there are clients around it, and
/// mostly only its place is new.
pub(crate) struct KnownEntities<'a> {
    /// Ascending; same length as `entities`.
    ids: Vec<EntityId>,
    entities: Vec<KnownEntity<'a>>,
}

impl<'a> KnownEntities<'a> {
    pub(crate) fn of(view: &KnowledgeView<'a>) -> Self {
        let real = view.cx.places().map(|(entity, _)| entity);
        let ghosts = view.known.ghosts.iter().map(|(entity, _)| entity);
        let mut ids: Vec<EntityId> = real.chain(ghosts).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut entities = Vec::with_capacity(ids.len());
        ids.retain(|id| view.entity(*id).map(|entity| entities.push(entity)).is_some());
        Self { ids, entities }
    }

    pub(crate) fn get(&self, entity: EntityId) -> Option<&KnownEntity<'a>> {
        let at = self.ids.binary_search(&entity).ok()?;
        Some(&self.entities[at])
    }
}

/// Where the state of an entity is known from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// Real here, or leaving for another owner.
    Real {
        /// Its whole state.
        image: &'a Image,
        /// Its events since the last tick.
        recent: &'a [Event],
    },
    /// Real on another owner.
    Ghost(&'a Ghost),
}

impl<'a> Source<'a> {
    pub(crate) fn type_id(&self) -> TypeId {
        match self {
            Source::Real { image, .. } => image.type_id,
            Source::Ghost(ghost) => ghost.type_id(),
        }
    }

    /// Its newest history number that is known here.
    pub(crate) fn history(&self) -> HistoryNumber {
        match self {
            Source::Real { image, .. } => image.history,
            Source::Ghost(ghost) => ghost.history(),
        }
    }

    /// Who moves it.
    pub(crate) fn driver(&self) -> Driver {
        match self {
            Source::Real { image, .. } => driver(image),
            Source::Ghost(ghost) => ghost.driver(),
        }
    }

    pub(crate) fn properties(&self) -> &'a BTreeMap<MemberId, Value> {
        match self {
            Source::Real { image, .. } => &image.properties,
            Source::Ghost(ghost) => ghost.properties(),
        }
    }

    /// The events after `known`, with `None` for those of which there is no copy here. Returns `None` if they are no
    /// longer known, or if nothing in the log can have led to `known`.
    pub(crate) fn since(&self, known: HistoryNumber) -> Option<Vec<(HistoryNumber, Option<&'a Event>)>> {
        match self {
            Source::Real { image, recent } => {
                let events = real_since(image, recent, known)?;
                let numbered = events
                    .into_iter()
                    .filter_map(|event| Some((event.history?, Some(event))));
                Some(numbered.collect())
            }
            Source::Ghost(ghost) => ghost.since(known),
        }
    }
}

/// The events of a real entity after `known`.
pub(crate) fn real_since<'a>(image: &'a Image, recent: &'a [Event], known: HistoryNumber) -> Option<Vec<&'a Event>> {
    if known > image.history {
        return None;
    }
    let ends = (
        recent.first().and_then(|event| event.history),
        recent.last().and_then(|event| event.history),
    );
    if matches!(ends, (Some(first), Some(last)) if first <= known.next() && last == image.history) {
        return Some(recent.iter().filter(|event| event.history > Some(known)).collect());
    }
    image.history_since(known).map(Iterator::collect)
}

/// The form in which an event of an entity, which may have a client of its own, is sent to ghosts.
pub(crate) fn as_ghosts_see(entity_type: &EntityType, own: Option<ClientLink>, event: &Event) -> Shown {
    let has_copy = match &event.body {
        Body::Changed { member, .. } => entity_type
            .property(*member)
            .is_some_and(|property| property.distribution.to_ghosts()),
        Body::Invoked { audience, .. } => *audience != Audience::Own,
        Body::Replied { to, .. } => own.is_none_or(|own| own.session != *to),
        Body::Moved(_) | Body::ControlChanged(_) => true,
        _ => false,
    };
    if !has_copy {
        return Shown::Hidden;
    }
    // The cause is an index into a batch that ghosts do not have.
    let cause = Cause(0);
    Shown::Event(Box::new(Event { cause, ..event.clone() }))
}

/// Who moves a real entity.
pub(crate) fn driver(image: &Image) -> Driver {
    image
        .cell()
        .map_or_else(Driver::default, |cell| cell.movement_control.driver)
}

/// The properties that ghosts have.
pub(crate) fn ghost_properties(entity_type: &EntityType, image: &Image) -> BTreeMap<MemberId, Value> {
    let held = image.properties.iter().filter(|(member, _)| {
        entity_type
            .property(**member)
            .is_some_and(|property| property.distribution.to_ghosts())
    });
    held.map(|(member, value)| (*member, value.clone())).collect()
}
