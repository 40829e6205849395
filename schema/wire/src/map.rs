//! The map: which owners there are, which cell owner is responsible for which area of each space, and on which base
//! owner the realm begins. The director creates it, all others follow the newest version they have received; correctness
//! does not require that all have the same one.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{OwnerId, Position, SpaceId};

/// How far inside another owner's area an entity must be to be handed over (m): two steps of a runner, so an entity
/// that walks along the boundary is not handed over back and forth.
pub const HANDOVER_DEPTH: f32 = 5.0;

/// The map of all spaces and owners.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpaceMap {
    /// Incremented with each change; a lower version is out of date.
    pub version: u64,
    pub spaces: BTreeMap<SpaceId, Space>,
    /// The base owner that creates the realm's first entity. Every version that names one names the same.
    pub bootstrap: Option<OwnerId>,
    /// All base owners, with and without a holder. None is ever removed.
    pub bases: BTreeSet<OwnerId>,
    /// All cell owners, with and without a holder or an area. None is ever removed.
    pub cells: BTreeSet<OwnerId>,
}

/// One space.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// Its cells: areas that together cover the plane and do not overlap.
    pub cells: Vec<CellArea>,
    /// Half the side of the square within which a witness sees other entities (m).
    pub aoi_radius: f32,
    /// Additional distance at which an entity leaves the view (m).
    pub aoi_hysteresis: f32,
    /// Distance from another cell's area within which an entity has a ghost there (m); at least radius plus hysteresis,
    /// or witnesses would miss entities across the boundary.
    pub ghost_distance: f32,
}

/// A cell: its area, half-open, possibly unbounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellArea {
    /// The responsible owner.
    pub owner: OwnerId,
    /// West edge, included.
    pub west: f32,
    /// East edge, excluded.
    pub east: f32,
    /// South edge, included.
    pub south: f32,
    /// North edge, excluded.
    pub north: f32,
}

impl SpaceMap {
    /// The owner responsible for a position.
    #[must_use]
    pub fn owner_at(&self, space: SpaceId, position: Position) -> Option<OwnerId> {
        let cells = &self.spaces.get(&space)?.cells;
        cells.iter().find(|cell| cell.contains(position)).map(|cell| cell.owner)
    }
}

impl CellArea {
    /// The whole plane.
    #[must_use]
    pub fn everywhere(owner: OwnerId) -> Self {
        let (least, most) = (f32::NEG_INFINITY, f32::INFINITY);
        Self {
            owner,
            west: least,
            east: most,
            south: least,
            north: most,
        }
    }

    /// Whether a position lies within the area.
    #[must_use]
    pub fn contains(&self, position: Position) -> bool {
        (self.west..self.east).contains(&position.x) && (self.south..self.north).contains(&position.z)
    }

    /// Distance of a position from the area, along the axis on which it is farther out; 0 within. The metric of areas
    /// of interest: a square.
    #[must_use]
    pub fn distance(&self, position: Position) -> f32 {
        let outside = |value: f32, least: f32, most: f32| (least - value).max(value - most).max(0.0);
        outside(position.x, self.west, self.east).max(outside(position.z, self.south, self.north))
    }
}
