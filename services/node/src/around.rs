//! What an owner knows of the world around its entities, lent to behaviour while that runs.

use annals_def::Schema;
use annals_ids::{EntityId, Position, SpaceId};

use crate::{behaviour::GhostView, context::Denied, owner_context::OwnerContext};

/// See the module. Whoever holds no cell parts knows nothing, and that is the default of everything here.
pub trait Around {
    /// How far in a space others are known from where an entity stands, metres; `None` if nothing is known of the space.
    fn horizon(&self, _space: SpaceId) -> Option<f32> {
        None
    }

    /// Adds who is in a region now, real here or a ghost, ascending.
    ///
    /// # Errors
    /// When some of it lies farther away than others are known.
    fn find(&self, _cx: &OwnerContext, _region: &Region, _found: &mut Vec<EntityId>) -> Result<(), Denied> {
        Err(Denied::NoMap)
    }

    /// What is known here of an entity that is real elsewhere.
    fn ghost<'a>(&'a self, _schema: &'a Schema, _entity: EntityId) -> Option<GhostView<'a>> {
        None
    }
}

/// Where nothing is around.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl Around for Nowhere {}

/// A part of a space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Of which space.
    pub space: SpaceId,
    /// Which part.
    pub shape: Shape,
}

/// Where to look for entities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Within so many metres on either axis, whatever the height: as areas of interest are.
    Square {
        /// Of where.
        centre: Position,
        /// How many.
        metres: f32,
    },
    /// Within so many metres as the crow flies.
    Ball {
        /// Of where.
        centre: Position,
        /// How many.
        metres: f32,
    },
    /// In a box that lies along the axes, its faces included.
    Cuboid {
        /// The corner with the least coordinates.
        least: Position,
        /// The one with the largest.
        most: Position,
    },
}

impl Shape {
    /// Whether its numbers are some.
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

    /// What it covers of the ground: the least x and z, and the largest.
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
