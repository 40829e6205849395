//! What is known here of where others are: lent to controllers, and to behaviour while that runs.

use std::cell::RefCell;

use annals_def::Schema;
use annals_event::Place;
use annals_ids::{EntityId, SpaceId};
use annals_node::{Around, Denied, Desk, GhostView, Region};
use annals_space::Spot;

use crate::{
    gazetteer::Gazetteer,
    ghosts::{Ghost, Ghosts},
    role::CellRole,
    territory::Territory,
};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) ghosts: &'a Ghosts,
    pub(crate) territory: &'a Territory,
    pub(crate) gazetteer: &'a RefCell<Gazetteer>,
}

impl CellRole {
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            ghosts: &self.ghosts,
            territory: &self.territory,
            gazetteer: &self.gazetteer,
        }
    }
}

impl Surroundings<'_> {
    /// Where an entity is, as far as is known here.
    pub(crate) fn place(self, desk: &Desk, entity: EntityId) -> Option<Place> {
        let ghost = || self.ghosts.get(entity).map(Ghost::place);
        desk.place(entity).or_else(ghost)
    }

    /// Everybody there is here, real or ghost, each once.
    pub(crate) fn everybody<'d>(self, desk: &'d Desk) -> impl Iterator<Item = (EntityId, Spot)>
    where
        Self: 'd,
    {
        let elsewhere = self.ghosts.iter().filter(|(entity, _)| desk.image(*entity).is_none());
        let ghosts = elsewhere.map(|(entity, ghost)| (entity, ghost.place()));
        let all = desk.places().chain(ghosts);
        all.map(|(entity, place)| (entity, spot(&place)))
    }
}

impl Around for Surroundings<'_> {
    fn horizon(&self, space: SpaceId) -> Option<f32> {
        self.territory.horizon(space)
    }

    fn find(&self, desk: &Desk, region: &Region, found: &mut Vec<EntityId>) -> Result<(), Denied> {
        self.territory.knows(region)?;
        self.gazetteer.borrow_mut().find(desk, *self, region, found);
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
