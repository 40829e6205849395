//! Who is in a part of a space, for behaviour that asks in the middle of a tick.
//!
//! The first question of a tick takes a census; from then on those are looked at besides whom something has moved since.
//! So an answer is as of now, and nobody pays for an index who asks nothing.

use annals_ids::{EntityId, Position};
use annals_node::{Desk, Region};
use annals_space::Census;

use crate::surroundings::Surroundings;

/// When so many have moved, a further census is less work than to look at them at each question.
const MOVED: usize = 512;

/// What a coordinate may be off by rounding, as a share of the numbers that it was made of.
const ROUNDING: f32 = 4.0 * f32::EPSILON;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Gazetteer {
    census: Census,
    /// How long the trails of what is real here and of ghosts were then; `None` if there was none in this tick.
    taken: Option<[usize; 2]>,
}

impl Gazetteer {
    /// The trails are begun anew.
    pub(crate) fn forget(&mut self) {
        self.taken = None;
    }

    /// Adds who is in a region, ascending.
    pub(crate) fn find(&mut self, desk: &Desk, around: Surroundings<'_>, region: &Region, found: &mut Vec<EntityId>) {
        let moved = |taken: [usize; 2]| {
            let real = desk.trail().since(taken[0])?;
            let ghosts = around.ghosts.trail().since(taken[1])?;
            (real.len() + ghosts.len() <= MOVED).then(|| [real, ghosts].concat())
        };
        let moved = self.taken.and_then(moved).unwrap_or_else(|| {
            self.census.take(around.everybody(desk));
            self.taken = Some([desk.trail().length(), around.ghosts.trail().length()]);
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
            let place = around.place(desk, *entity);
            place.is_some_and(|place| place.space == region.space && region.shape.holds(place.position))
        });
    }
}
