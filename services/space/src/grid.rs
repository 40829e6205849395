//! A uniform grid over one space: finds what may be near a position. It never misses anything, and whoever asks compares
//! exactly; for that, what is compared stands in the grid itself.

use std::collections::BTreeMap;

use annals_ids::{EntityId, Position};

/// Side of a square of the grid, metres. An area of interest of 500 m then covers about a thousand squares, of which only
/// those that hold something are looked at, and a crowd of one per 10 m² puts a hundred into each.
const SIDE: f32 = 32.0;

/// What a coordinate or a distance may be off by rounding, as a share of the largest number that it was made of: some half
/// units in the last place.
const ROUNDING: f32 = 4.0 * f32::EPSILON;

/// Squares that hold something, by column (x) and row (z).
#[derive(Clone, Debug)]
pub(crate) struct Grid<T> {
    columns: BTreeMap<i32, BTreeMap<i32, BTreeMap<EntityId, T>>>,
}

impl<T> Default for Grid<T> {
    fn default() -> Self {
        Self {
            columns: BTreeMap::new(),
        }
    }
}

impl<T> Grid<T> {
    /// Puts an entity, which is nowhere yet, at a position.
    pub(crate) fn insert(&mut self, entity: EntityId, at: Position, what: T) {
        let (column, row) = square(at);
        self.columns
            .entry(column)
            .or_default()
            .entry(row)
            .or_default()
            .insert(entity, what);
    }

    /// Everything within `reach` metres on both axes, and some of what is beyond.
    pub(crate) fn near(&self, at: Position, reach: f32) -> impl Iterator<Item = (EntityId, &T)> {
        let slack = |axis: f32| (axis.abs() + reach) * ROUNDING;
        let least = |axis: f32| index(axis - reach - slack(axis));
        let most = |axis: f32| index(axis + reach + slack(axis));
        let rows = least(at.z)..=most(at.z);
        self.columns
            .range(least(at.x)..=most(at.x))
            .flat_map(move |(_, column)| column.range(rows.clone()))
            .flat_map(|(_, held)| held.iter().map(|(entity, what)| (*entity, what)))
    }
}

fn square(at: Position) -> (i32, i32) {
    (index(at.x), index(at.z))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float cast to an integer saturates: what is so far out shares the outermost squares"
)]
fn index(axis: f32) -> i32 {
    (axis / SIDE).floor() as i32
}
