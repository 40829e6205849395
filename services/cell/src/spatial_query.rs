//! Spatial queries over the entities that this cell knows, real and ghost: for controllers, and for behaviour while it
//! runs.

mod index;

use std::cell::RefCell;

use annals_def::Schema;
use annals_event::Place;
use annals_ids::{EntityId, SpaceId};
use annals_node::{Around, Denied, GhostView, OwnerContext, Region};
use annals_space::Spot;

use crate::{
    ghost_receiver::{Ghost, GhostReceiver},
    role::CellRole,
    territory::Territory,
};

pub(crate) use index::SpatialIndex;

/// Everything that a spatial query reads.
#[derive(Clone, Copy)]
pub(crate) struct SpatialQuery<'a> {
    pub(crate) ghosts: &'a GhostReceiver,
    pub(crate) territory: &'a Territory,
    pub(crate) spatial_index: &'a RefCell<SpatialIndex>,
}

impl CellRole {
    pub(crate) fn spatial_query(&self) -> SpatialQuery<'_> {
        SpatialQuery {
            ghosts: &self.ghosts,
            territory: &self.territory,
            spatial_index: &self.spatial_index,
        }
    }
}

impl SpatialQuery<'_> {
    /// The place of an entity, as far as it is known here.
    pub(crate) fn place(self, cx: &OwnerContext, entity: EntityId) -> Option<Place> {
        let ghost = || self.ghosts.get(entity).map(Ghost::place);
        cx.place(entity).or_else(ghost)
    }

    /// All entities here, real or ghost, each once.
    pub(crate) fn everybody<'d>(self, cx: &'d OwnerContext) -> impl Iterator<Item = (EntityId, Spot)>
    where
        Self: 'd,
    {
        let elsewhere = self.ghosts.iter().filter(|(entity, _)| cx.image(*entity).is_none());
        let ghosts = elsewhere.map(|(entity, ghost)| (entity, ghost.place()));
        let all = cx.places().chain(ghosts);
        all.map(|(entity, place)| (entity, spot(&place)))
    }
}

impl Around for SpatialQuery<'_> {
    fn horizon(&self, space: SpaceId) -> Option<f32> {
        self.territory.horizon(space)
    }

    fn find(&self, cx: &OwnerContext, region: &Region, found: &mut Vec<EntityId>) -> Result<(), Denied> {
        self.territory.knows(region)?;
        self.spatial_index.borrow_mut().find(cx, *self, region, found);
        Ok(())
    }

    fn ghost<'a>(&'a self, schema: &'a Schema, entity: EntityId) -> Option<GhostView<'a>> {
        let ghost = self.ghosts.get(entity)?;
        Some(ghost.view(entity, schema.entity_type(ghost.type_id())?))
    }
}

pub(crate) fn spot(place: &Place) -> Spot {
    Spot {
        space: place.space,
        position: place.position,
    }
}
