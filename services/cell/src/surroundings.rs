//! What is known here of where others are: lent to controllers, and to behaviour while that runs.

use annals_event::Place;
use annals_ids::{EntityId, SpaceId};
use annals_node::{Around, Desk};
use annals_space::Spot;

use crate::{
    ghosts::{Ghost, Ghosts},
    role::CellRole,
    territory::Territory,
};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) ghosts: &'a Ghosts,
    pub(crate) territory: &'a Territory,
}

impl CellRole {
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            ghosts: &self.ghosts,
            territory: &self.territory,
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
}

pub(crate) fn spot(place: &Place) -> Spot {
    Spot {
        space: place.space,
        position: place.position,
    }
}
