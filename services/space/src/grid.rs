//! A uniform grid over one space: finds what may be near a position. It never misses anything, and whoever asks compares
//! exactly.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{EntityId, Position};

/// Side of a square of the grid, metres. An area of interest of 500 m then covers about a thousand squares, of which only
/// those that hold something are looked at, and a crowd of one per 10 m² puts a hundred into each.
const SIDE: f32 = 32.0;

/// Squares that hold something, by column (x) and row (z).
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    columns: BTreeMap<i32, BTreeMap<i32, BTreeSet<EntityId>>>,
}

impl Grid {
    pub(crate) fn insert(&mut self, entity: EntityId, at: Position) {
        let (column, row) = square(at);
        self.columns
            .entry(column)
            .or_default()
            .entry(row)
            .or_default()
            .insert(entity);
    }

    pub(crate) fn remove(&mut self, entity: EntityId, at: Position) {
        let (column, row) = square(at);
        let Some(rows) = self.columns.get_mut(&column) else {
            return;
        };
        if let Some(held) = rows.get_mut(&row) {
            held.remove(&entity);
            if held.is_empty() {
                rows.remove(&row);
            }
        }
        if rows.is_empty() {
            self.columns.remove(&column);
        }
    }

    pub(crate) fn relocate(&mut self, entity: EntityId, from: Position, to: Position) {
        if square(from) != square(to) {
            self.remove(entity, from);
            self.insert(entity, to);
        }
    }

    /// Everything within `reach` metres on both axes, and some of what is beyond.
    pub(crate) fn near(&self, at: Position, reach: f32) -> impl Iterator<Item = EntityId> {
        // One square more on each side makes up for rounding far from the origin.
        let least = |axis: f32| index(axis - reach).saturating_sub(1);
        let most = |axis: f32| index(axis + reach).saturating_add(1);
        let rows = least(at.z)..=most(at.z);
        self.columns
            .range(least(at.x)..=most(at.x))
            .flat_map(move |(_, column)| column.range(rows.clone()))
            .flat_map(|(_, held)| held.iter().copied())
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
