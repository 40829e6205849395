//! What this cell knows: the map, the entities that are real here and the ghosts of others, their recent history, and
//! the data of spaces.
//!
//! The modules that act on entities change this; those that make messages read it through a [`KnowledgeView`].

use std::cell::RefCell;

use annals_def::Schema;
use annals_event::{Body, Event, OwnerState, Place, Subject};
use annals_ids::{EntityId, OwnerId, Part, SpaceId};
use annals_node::{Around, Denied, GhostView, OwnerContext, Region, time::Mono};
use annals_space::Spot;
use annals_wire::bus::{GhostMessage, Message, Shown};

use crate::{
    ghost_receiver::{Ghost, GhostReceiver, GhostUpdateContext, MissingHistory, Moment},
    history::{PropertyHistory, RecentEvents},
    known_entity::KnowledgeView,
    sampling::{SECOND, Sampling},
    spaces::Spaces,
    spatial_index::SpatialIndex,
    territory::Territory,
};

/// Everything that this cell knows beyond the state of its owner.
#[derive(Debug)]
pub(crate) struct Knowledge {
    pub(crate) territory: Territory,
    pub(crate) sampling: Sampling,
    pub(crate) ghosts: GhostReceiver,
    pub(crate) recent_events: RecentEvents,
    pub(crate) property_history: PropertyHistory,
    pub(crate) spaces: Spaces,
    spatial_index: RefCell<SpatialIndex>,
}

impl Knowledge {
    /// What is known at a take-over: nothing but the owner's state, until the map and the neighbours' messages come.
    pub(crate) fn take_over(state: &OwnerState, now: Mono) -> Self {
        Self {
            territory: Territory::unknown(state.owner),
            sampling: Sampling::new(state.tick, now),
            ghosts: GhostReceiver::default(),
            recent_events: RecentEvents::default(),
            property_history: PropertyHistory::default(),
            spaces: Spaces::default(),
            spatial_index: RefCell::default(),
        }
    }

    /// A read view, together with the owner's state.
    pub(crate) fn view<'a>(&'a self, cx: &'a OwnerContext) -> KnowledgeView<'a> {
        KnowledgeView { cx, known: self }
    }

    pub(crate) fn moment(&self, cx: &OwnerContext) -> Moment {
        Moment {
            now: cx.now().mono,
            local_tick: self.sampling.local_tick() + 1,
        }
    }

    /// The place of an entity, as far as it is known here.
    pub(crate) fn place(&self, cx: &OwnerContext, entity: EntityId) -> Option<Place> {
        let ghost = || self.ghosts.get(entity).map(Ghost::place);
        cx.place(entity).or_else(ghost)
    }

    /// All entities here, real or ghost, each once.
    pub(crate) fn all_entities(&self, cx: &OwnerContext) -> impl Iterator<Item = (EntityId, Spot)> {
        let elsewhere = self.ghosts.iter().filter(|(entity, _)| cx.image(*entity).is_none());
        let ghosts = elsewhere.map(|(entity, ghost)| (entity, ghost.place()));
        let all = cx.places().chain(ghosts);
        all.map(|(entity, place)| (entity, spot(&place)))
    }

    /// Records what was logged of real entities.
    pub(crate) fn note(&mut self, cx: &mut OwnerContext, recorded: &[Event]) {
        self.recent_events.note(recorded);
        self.spaces.note(cx, &self.territory, recorded);
        for event in recorded {
            let Subject::Entity(entity, Part::Cell) = event.subject else {
                continue;
            };
            let is_new = matches!(
                event.body,
                Body::CellCreated(_) | Body::Onloaded { .. } | Body::Returned { .. }
            );
            if is_new {
                self.ghosts.remove(entity);
            }
            let Some(image) = cx.image(entity) else { continue };
            if is_new {
                self.property_history.begin_with(cx.schema(), entity, image);
            }
            if event.history.is_some() {
                self.property_history.note(cx.schema(), (entity, image.type_id), event);
            }
        }
    }

    /// Applies what another owner has sent of its entities. [`GhostMessage::Ask`] is for the sending side.
    pub(crate) fn take_ghosts(&mut self, cx: &mut OwnerContext, from: OwnerId, message: GhostMessage) {
        let at = self.moment(cx);
        let schema = std::sync::Arc::clone(cx.schema());
        let behaviour = std::sync::Arc::clone(cx.behaviour());
        let panicked = RefCell::default();
        let context = GhostUpdateContext {
            at,
            schema: &schema,
            behaviour: behaviour.as_ref(),
            panics: cx.panics(),
            panicked: &panicked,
        };
        match message {
            GhostMessage::Image { entity, image } => {
                let (type_id, home, newest) = (image.type_id, image.home, image.history);
                if cx.image(entity).is_none() && self.ghosts.take_image(context, from, entity, *image) {
                    cx.record_location((entity, home), from);
                    self.property_history.begin(&schema, (entity, type_id), newest);
                }
            }
            GhostMessage::Events { entity, after, events } => {
                if cx.image(entity).is_none() {
                    self.note_shown(&schema, entity, &events);
                    let lack = self.ghosts.take_events(context, from, (entity, after), events);
                    if let Some(ghost) = self.ghosts.get(entity).filter(|ghost| ghost.holder() == from) {
                        cx.record_location((entity, ghost.home()), from);
                    }
                    ask_for(cx, from, lack);
                }
            }
            GhostMessage::Moves(moves) => self.ghosts.take_moves(at, from, &moves),
            GhostMessage::Heads(heads) => {
                let lacks = self.ghosts.take_heads(at, from, &heads, |entity| is_own(cx, entity));
                ask_for(cx, from, lacks);
            }
            GhostMessage::Ask { .. } => {}
        }
        panicked
            .into_inner()
            .into_iter()
            .for_each(|panicked| cx.report(panicked));
    }

    /// Records property changes of a ghost.
    fn note_shown(&mut self, schema: &Schema, entity: EntityId, events: &[Shown]) {
        let Some(type_id) = self.ghosts.get(entity).map(Ghost::type_id) else {
            return;
        };
        for shown in events {
            if let Shown::Event(event) = shown {
                self.property_history.note(schema, (entity, type_id), event);
            }
        }
    }

    /// Drops what is needed only within a tick, and what is no longer known.
    pub(crate) fn end_tick(&mut self, cx: &OwnerContext) {
        self.recent_events.forget();
        if self.sampling.local_tick().is_multiple_of(SECOND) {
            let ghosts = &self.ghosts;
            self.property_history
                .forget(|entity| cx.image(entity).is_some() || ghosts.get(entity).is_some());
        }
        self.ghosts.age(cx.now().mono, |entity| is_own(cx, entity));
        self.ghosts.clear_trail();
        self.spatial_index.get_mut().forget();
    }
}

/// Spatial queries of controllers, and of behaviour while it runs.
impl Around for Knowledge {
    fn horizon(&self, space: SpaceId) -> Option<f32> {
        self.territory.horizon(space)
    }

    fn find(&self, cx: &OwnerContext, region: &Region, found: &mut Vec<EntityId>) -> Result<(), Denied> {
        self.territory.knows(region)?;
        self.spatial_index.borrow_mut().find(cx, self, region, found);
        Ok(())
    }

    fn ghost<'a>(&'a self, schema: &'a Schema, entity: EntityId) -> Option<GhostView<'a>> {
        let ghost = self.ghosts.get(entity)?;
        Some(ghost.view(entity, schema.entity_type(ghost.type_id())?))
    }
}

/// Asks an owner for what is lacking of its entities.
fn ask_for(cx: &mut OwnerContext, from: OwnerId, lacks: impl IntoIterator<Item = MissingHistory>) {
    for (entity, have) in lacks {
        cx.send(from, Message::Ghost(GhostMessage::Ask { entity, have }));
    }
}

/// Whether an entity is real here, or leaving.
fn is_own(cx: &OwnerContext, entity: EntityId) -> bool {
    let mut leaving = cx.state().departing.values();
    cx.image(entity).is_some() || leaving.any(|(leaving, _)| *leaving == entity)
}

pub(crate) fn spot(place: &Place) -> Spot {
    Spot {
        space: place.space,
        position: place.position,
    }
}
