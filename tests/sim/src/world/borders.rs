//! Moving borders: in plans with crossings the cells of the map are divided again and again, in strips or in two
//! dimensions, so that even stationary entities change owners; and another space moves from owner to owner.

use annals_ids::OwnerId;
use annals_wire::{CellArea, Space, SpaceMap};

use super::World;
use crate::{
    game::{ARENA, EXTENT, SPACE},
    plan::{Crossing, Division},
};

/// Minimum distance of a cut from the edge of the divided extent, as a share of it. Cells may become very thin.
const LEAST_SHARE: f32 = 0.1;

/// The current cuts of the plane.
#[derive(Debug, Default)]
pub(super) struct Borders {
    /// Position of each cut, by its place in the tree, as a share of the divided extent.
    cuts: Vec<f32>,
    /// The map as last cut here; any other map was drawn by the director, or read by a director that does not know of
    /// these cuts.
    map: SpaceMap,
    /// Time of the next move.
    due: u64,
}

impl World {
    /// Moves the borders while clients play, and repeats the cuts on a map that the director has drawn.
    pub(super) fn move_borders(&mut self) {
        let Some(crossing) = self.plan.crossing else { return };
        let is_due = self.is_playing() && self.now >= self.borders.due;
        if is_due || self.map != self.borders.map {
            self.cut_plane(crossing, if is_due { crossing.stride } else { 0.0 });
            self.borders.due = self.now + crossing.pause_ms * 1_000;
        }
    }

    /// Moves the borders once.
    pub(super) fn shift_borders(&mut self) {
        if let Some(crossing) = self.plan.crossing {
            self.cut_plane(crossing, crossing.stride);
        }
    }

    /// Divides the plane among its owners; each cut moves by at most `stride` of the divided extent.
    fn cut_plane(&mut self, crossing: Crossing, stride: f32) {
        let Some(space) = self.map.spaces.get(&SPACE) else {
            return;
        };
        let owners: Vec<OwnerId> = space.cells.iter().map(|cell| cell.owner).collect();
        // A tree of `n` leaves whose depths differ by at most one has fewer than `4 n` places.
        self.borders.cuts.resize(4 * owners.len(), 0.5);
        for place in 0..self.borders.cuts.len() {
            let step = ((self.roll() % 2_001) as f32 / 1_000.0 - 1.0) * stride;
            let cut = &mut self.borders.cuts[place];
            *cut = (*cut + step).clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
        }
        let host = owners[(self.roll() % owners.len() as u64) as usize];
        let mut cells = Vec::new();
        let everywhere = CellArea::everywhere(OwnerId(0));
        divide(
            &owners,
            everywhere,
            (0, crossing.division),
            &self.borders.cuts,
            &mut cells,
        );
        if let Some(space) = self.map.spaces.get_mut(&SPACE) {
            let arena = Space {
                cells: vec![CellArea::everywhere(host)],
                ..space.clone()
            };
            space.cells = cells;
            self.map.spaces.insert(ARENA, arena);
            // A new leader continues from the stored map, which is older than the last cut.
            self.map.version = self.map.version.max(self.borders.map.version) + 1;
            self.borders.map = self.map.clone();
        }
    }
}

/// Divides an area among owners: in two at the cut of this place in the tree, then each half recursively.
fn divide(
    owners: &[OwnerId],
    area: CellArea,
    (place, division): (usize, Division),
    cuts: &[f32],
    cells: &mut Vec<CellArea>,
) {
    if let [owner] = *owners {
        cells.push(CellArea { owner, ..area });
        return;
    }
    let across = division == Division::Plane && depth(place) % 2 == 1;
    let (least, most) = if across {
        (area.south, area.north)
    } else {
        (area.west, area.east)
    };
    let (least, most) = (least.max(-EXTENT), most.min(EXTENT));
    let cut = least + (most - least) * cuts[place];
    let (low, high) = if across {
        (CellArea { north: cut, ..area }, CellArea { south: cut, ..area })
    } else {
        (CellArea { east: cut, ..area }, CellArea { west: cut, ..area })
    };
    let (some, others) = owners.split_at(owners.len() / 2);
    divide(some, low, (2 * place + 1, division), cuts, cells);
    divide(others, high, (2 * place + 2, division), cuts, cells);
}

fn depth(place: usize) -> u32 {
    (place + 1).ilog2()
}

#[cfg(test)]
mod tests {
    use annals_ids::Position;

    use super::*;

    #[test]
    fn cells_cover_the_plane_without_overlap() {
        let mut dice = annals_def::split_mix(7);
        for count in 2..=17 {
            let owners: Vec<OwnerId> = (1..=count).map(OwnerId).collect();
            let share = |roll: u64| LEAST_SHARE + (roll % 801) as f32 / 1_000.0;
            let cuts: Vec<f32> = (0..4 * owners.len()).map(|_| share(dice())).collect();
            for division in [Division::Strips, Division::Plane] {
                let mut cells = Vec::new();
                divide(
                    &owners,
                    CellArea::everywhere(OwnerId(0)),
                    (0, division),
                    &cuts,
                    &mut cells,
                );
                let mut drawn: Vec<OwnerId> = cells.iter().map(|cell| cell.owner).collect();
                drawn.sort_unstable();
                assert_eq!(drawn, owners);
                let flat = cells
                    .iter()
                    .all(|cell| cell.south.is_infinite() && cell.north.is_infinite());
                assert_eq!(flat, division == Division::Strips || count == 2);
                for _ in 0..200 {
                    let mut somewhere = || (dice() % 400) as f32 - 200.0;
                    let position = Position {
                        x: somewhere(),
                        y: 0.0,
                        z: somewhere(),
                    };
                    let count = cells.iter().filter(|cell| cell.contains(position)).count();
                    assert_eq!(count, 1, "{position:?}");
                }
            }
        }
    }
}
