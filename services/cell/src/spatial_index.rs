//! Index for queries by region in the middle of a tick.
//!
//! The first query of a tick builds the index; later ones also look at the entities that have moved since. So an answer
//! is current, and a tick without queries builds no index.

use annals_ids::{EntityId, Position};
use annals_node::{OwnerContext, Region};
use annals_space::Census;

use crate::knowledge::Knowledge;

/// Number of moved entities above which rebuilding the index costs less than examining them at each query.
const MOVED: usize = 512;

/// Maximum rounding error of a coordinate, as a share of the numbers from which it was computed.
const ROUNDING: f32 = 4.0 * f32::EPSILON;

/// Index of entities by position, valid within one tick.
#[derive(Debug, Default)]
pub(crate) struct SpatialIndex {
    census: Census,
    /// Lengths of the trails of real entities and of ghosts when the index was built; `None` if it was not built in
    /// this tick.
    taken: Option<[usize; 2]>,
}

impl SpatialIndex {
    /// Invalidates the index: the trails are cleared.
    pub(crate) fn forget(&mut self) {
        self.taken = None;
    }

    /// Adds the entities in a region, ascending.
    pub(crate) fn find(&mut self, cx: &OwnerContext, known: &Knowledge, region: &Region, found: &mut Vec<EntityId>) {
        let moved = |taken: [usize; 2]| {
            let real = cx.trail().since(taken[0])?;
            let ghosts = known.ghosts.trail().since(taken[1])?;
            (real.len() + ghosts.len() <= MOVED).then(|| [real, ghosts].concat())
        };
        let moved = self.taken.and_then(moved).unwrap_or_else(|| {
            self.census.take(known.all_entities(cx));
            self.taken = Some([cx.trail().length(), known.ghosts.trail().length()]);
            Vec::new()
        });
        let (least, most) = region.shape.ground();
        let slack = least
            .iter()
            .chain(&most)
            .map(|at| at.abs() * ROUNDING)
            .fold(0.0, f32::max);
        let corner = |[x, z]: [f32; 2], slack: f32, y: f32| Position {
            x: x + slack,
            y,
            z: z + slack,
        };
        let (least, most) = (
            corner(least, -slack, f32::NEG_INFINITY),
            corner(most, slack, f32::INFINITY),
        );
        self.census.cuboid(region.space, least, most, found);
        found.extend(moved);
        found.sort_unstable();
        found.dedup();
        found.retain(|entity| {
            let place = known.place(cx, *entity);
            place.is_some_and(|place| place.space == region.space && region.shape.holds(place.position))
        });
    }
}
