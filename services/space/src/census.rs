//! Positions at one moment, for spatial queries.

use std::collections::BTreeMap;

use annals_ids::{EntityId, Position, SpaceId};

use crate::{
    interest::Spot,
    squares::{Ring, Squares},
    steps::distance,
};

/// Side of a square, metres: a few squares cover a typical query, and each holds few entities.
const SIDE: f32 = 20.0;

/// Index of the positions at one moment.
///
/// Driving it: [`take`](Self::take) sets all positions; queries answer for that moment. Each query adds its results in
/// ascending order.
#[derive(Clone, Debug, Default)]
pub struct Census {
    spaces: BTreeMap<SpaceId, Plot>,
}

/// The entities of one space.
#[derive(Clone, Debug, Default)]
struct Plot {
    gathered: Vec<(EntityId, Position)>,
    squares: Squares,
    /// Entities and positions, by square.
    sorted: Vec<(EntityId, Position)>,
}

impl Census {
    /// Replaces all positions. Each entity occurs once; an entity that does not occur is gone.
    pub fn take(&mut self, bodies: impl IntoIterator<Item = (EntityId, Spot)>) {
        self.spaces.values_mut().for_each(|plot| plot.gathered.clear());
        for (entity, spot) in bodies {
            let plot = self.spaces.entry(spot.space).or_default();
            plot.gathered.push((entity, spot.position));
        }
        self.spaces.retain(|_, plot| !plot.gathered.is_empty());
        self.spaces.values_mut().for_each(Plot::sort);
    }

    /// Adds the entities in the square around a place: within `range` metres on either axis, at any height.
    pub fn square(&self, centre: Spot, range: f32, found: &mut Vec<EntityId>) {
        let at = flat(centre.position);
        self.search(centre, range, found, |position| distance(flat(position), at) <= range);
    }

    /// Adds the entities within `range` metres of a place in straight distance.
    pub fn ball(&self, centre: Spot, range: f32, found: &mut Vec<EntityId>) {
        let at = centre.position;
        let is_near = |position: Position| {
            let (x, y, z) = (position.x - at.x, position.y - at.y, position.z - at.z);
            x * x + y * y + z * z <= range * range
        };
        self.search(centre, range, found, is_near);
    }

    /// Adds the entities in an axis-aligned box, including its faces.
    pub fn cuboid(&self, space: SpaceId, least: Position, most: Position, found: &mut Vec<EntityId>) {
        let is_in = |at: Position| {
            let axes = [
                (least.x, at.x, most.x),
                (least.y, at.y, most.y),
                (least.z, at.z, most.z),
            ];
            axes.iter().all(|(least, at, most)| least <= at && at <= most)
        };
        let centre = Position {
            x: least.x.midpoint(most.x),
            z: least.z.midpoint(most.z),
            ..least
        };
        let range = (most.x - least.x).max(most.z - least.z) / 2.0;
        let centre = Spot {
            space,
            position: centre,
        };
        self.search(centre, range, found, is_in);
    }

    fn search(&self, centre: Spot, range: f32, found: &mut Vec<EntityId>, is_in: impl Fn(Position) -> bool) {
        let Some(plot) = self.spaces.get(&centre.space) else {
            return;
        };
        let ring = Ring {
            centre: flat(centre.position),
            inner: 0.0,
            outer: range,
        };
        let begin = found.len();
        plot.squares.touch(ring, |range| {
            let within = plot.sorted[range].iter().filter(|(_, position)| is_in(*position));
            found.extend(within.map(|(entity, _)| *entity));
        });
        found[begin..].sort_unstable();
        found.dedup();
    }
}

impl Plot {
    fn sort(&mut self) {
        self.sorted.clone_from(&self.gathered);
        let mut rest = self.gathered.iter();
        let places = self.gathered.iter().map(|(_, position)| flat(*position));
        self.squares.sort(SIDE, places, |at| {
            if let Some(one) = rest.next() {
                self.sorted[at] = *one;
            }
        });
    }
}

fn flat(position: Position) -> [f32; 2] {
    [position.x, position.z]
}
