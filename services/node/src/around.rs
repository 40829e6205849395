//! An owner's knowledge of the surroundings of its entities, lent to behaviour while it runs.

use annals_def::Schema;
use annals_ids::{EntityId, Position, SpaceId};

use crate::{context::Denied, ghost_view::GhostView, owner_context::OwnerContext};

/// Spatial queries. The defaults are those of an owner without cell parts: it knows nothing.
pub trait Around {
    /// Distance up to which other entities are known around an entity, metres; `None` if nothing is known of the space.
    fn horizon(&self, _space: SpaceId) -> Option<f32> {
        None
    }

    /// Adds the entities in a region, real here or ghosts, ascending.
    ///
    /// # Errors
    /// If some of the region lies farther away than others are known.
    fn find(&self, _cx: &OwnerContext, _region: &Region, _found: &mut Vec<EntityId>) -> Result<(), Denied> {
        Err(Denied::NoMap)
    }

    /// The ghost of an entity that is real elsewhere.
    fn ghost<'a>(&'a self, _schema: &'a Schema, _entity: EntityId) -> Option<GhostView<'a>> {
        None
    }
}

/// The surroundings of an owner without cell parts.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Around for Nowhere {}

/// A part of a space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    pub space: SpaceId,
    pub shape: Shape,
}

/// Shape of a region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A square on the ground, whatever the height, like areas of interest.
    Square {
        centre: Position,
        /// Half its side, metres.
        metres: f32,
    },
    Ball {
        centre: Position,
        /// Its radius, metres.
        metres: f32,
    },
    /// An axis-aligned box, including its faces.
    Cuboid {
        /// The corner with the smallest coordinates.
        least: Position,
        /// The corner with the largest coordinates.
        most: Position,
    },
}

impl Shape {
    /// Whether its numbers are valid.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match self {
            Self::Square { centre, metres } | Self::Ball { centre, metres } => {
                centre.is_finite() && metres.is_finite() && *metres >= 0.0
            }
            Self::Cuboid { least, most } => least.is_finite() && most.is_finite(),
        }
    }

    /// Whether a position is in it.
    #[must_use]
    pub fn holds(&self, at: Position) -> bool {
        match *self {
            Self::Square { centre, metres } => (at.x - centre.x).abs() <= metres && (at.z - centre.z).abs() <= metres,
            Self::Ball { centre, metres } => {
                let (x, y, z) = (at.x - centre.x, at.y - centre.y, at.z - centre.z);
                x * x + y * y + z * z <= metres * metres
            }
            Self::Cuboid { least, most } => {
                let within = |least: f32, at: f32, most: f32| least <= at && at <= most;
                within(least.x, at.x, most.x) && within(least.y, at.y, most.y) && within(least.z, at.z, most.z)
            }
        }
    }

    /// Its extent on the ground: the smallest x and z, and the largest.
    #[must_use]
    pub fn ground(&self) -> ([f32; 2], [f32; 2]) {
        match *self {
            Self::Square { centre, metres } | Self::Ball { centre, metres } => (
                [centre.x - metres, centre.z - metres],
                [centre.x + metres, centre.z + metres],
            ),
            Self::Cuboid { least, most } => ([least.x, least.z], [most.x, most.z]),
        }
    }
}
