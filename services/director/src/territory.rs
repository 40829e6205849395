//! Territory: how a space is divided among cell owners: in equal strips from west to east. The map's shape allows any
//! division; whoever reads it depends on none.

use annals_ids::{OwnerId, SpaceId};
use annals_wire::{CellArea, Space, SpaceMap};

/// What a space is like, beside its division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpacePlan {
    /// Which space.
    pub space: SpaceId,
    /// How far from the origin, east and west, strips are cut, metres; the outermost go on without end.
    pub extent: f32,
    /// Half the side of the square within which a witness sees others, metres.
    pub aoi_radius: f32,
    /// How much further out somebody in view must be to leave it, metres.
    pub aoi_hysteresis: f32,
}

/// Divides a space among cell owners in equal strips. An owner that had an area keeps its place in the row.
#[must_use]
pub fn divide(plan: SpacePlan, owners: &[OwnerId], before: &SpaceMap) -> SpaceMap {
    let mut map = before.clone();
    map.version += 1;
    let old = before.spaces.get(&plan.space).map_or(&[][..], |space| &space.cells[..]);
    let mut row: Vec<OwnerId> = old
        .iter()
        .map(|cell| cell.owner)
        .filter(|owner| owners.contains(owner))
        .collect();
    row.extend(
        owners
            .iter()
            .filter(|owner| old.iter().all(|cell| cell.owner != **owner)),
    );
    let width = 2.0 * plan.extent / row.len().max(1) as f32;
    let cut = |place: usize| -plan.extent + width * place as f32;
    let last = row.len().saturating_sub(1);
    let cells = row.iter().enumerate().map(|(place, owner)| {
        let everywhere = CellArea::everywhere(*owner);
        let west = if place == 0 { everywhere.west } else { cut(place) };
        let east = if place == last { everywhere.east } else { cut(place + 1) };
        CellArea {
            west,
            east,
            ..everywhere
        }
    });
    let space = Space {
        cells: cells.collect(),
        aoi_radius: plan.aoi_radius,
        aoi_hysteresis: plan.aoi_hysteresis,
        ghost_distance: plan.aoi_radius + plan.aoi_hysteresis,
    };
    map.spaces.insert(plan.space, space);
    map
}

#[cfg(test)]
mod tests {
    use annals_ids::Position;

    use super::*;

    #[test]
    fn strips_cover_the_plane_without_overlap_and_stay_where_they_are() {
        let plan = SpacePlan {
            space: SpaceId(1),
            extent: 500.0,
            aoi_radius: 100.0,
            aoi_hysteresis: 5.0,
        };
        let mut map = SpaceMap::default();
        for count in 1..=7 {
            let owners: Vec<OwnerId> = (1..=count).map(OwnerId).collect();
            let before = map.clone();
            map = divide(plan, &owners, &map);
            assert_eq!(map.version, before.version + 1);
            for step in -60..=60 {
                let position = Position {
                    x: step as f32 * 10.0,
                    y: 0.0,
                    z: step as f32,
                };
                let cells = &map.spaces[&plan.space].cells;
                assert_eq!(
                    cells.iter().filter(|cell| cell.contains(position)).count(),
                    1,
                    "{position:?}"
                );
            }
            assert_eq!(map.spaces[&plan.space].cells[0].owner, OwnerId(1));
        }
    }
}
