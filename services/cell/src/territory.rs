//! The map as it concerns this owner: its areas, its neighbours, and the distances of sight.

use std::collections::BTreeSet;

use annals_event::{AreaOfInterest, Place};
use annals_ids::{OwnerId, Position, SpaceId};
use annals_node::{Denied, Region};
use annals_space::Reach;
use annals_wire::{CellArea, HANDOVER_DEPTH, Space, SpaceMap};

/// How far beyond the ghost distance an entity must be to lose an existing ghost, metres: a ghost of an entity that
/// moves along the edge is not created again and again.
const GHOST_HYSTERESIS: f32 = 20.0;

/// The map, as it concerns one owner.
#[derive(Debug)]
pub(crate) struct Territory {
    owner: OwnerId,
    /// `None` until the director has sent one.
    map: Option<SpaceMap>,
    /// Owners that may hold ghosts of entities that are here.
    neighbours: BTreeSet<OwnerId>,
    /// All other owners of the spaces in which this one has an area.
    space_peers: BTreeSet<OwnerId>,
}

impl Territory {
    pub(crate) fn unknown(owner: OwnerId) -> Self {
        Self {
            owner,
            map: None,
            neighbours: BTreeSet::new(),
            space_peers: BTreeSet::new(),
        }
    }

    /// Applies a newer map; drops an older one. Returns whether it is the first.
    pub(crate) fn redraw(&mut self, map: SpaceMap) -> bool {
        let first = self.map.is_none();
        if self.map.as_ref().is_none_or(|known| known.version < map.version) {
            self.neighbours = neighbours(self.owner, &map);
            self.map = Some(map);
            self.space_peers = space_peers(self);
        }
        first
    }

    /// The newest map.
    pub(crate) fn map(&self) -> Option<&SpaceMap> {
        self.map.as_ref()
    }

    pub(crate) fn is_known(&self) -> bool {
        self.map.is_some()
    }

    /// The map's version; 0 until the director has sent one.
    pub(crate) fn version(&self) -> u64 {
        self.map.as_ref().map_or(0, |map| map.version)
    }

    pub(crate) fn neighbours(&self) -> &BTreeSet<OwnerId> {
        &self.neighbours
    }

    /// All other owners of the spaces in which this one has an area.
    pub(crate) fn space_peers(&self) -> &BTreeSet<OwnerId> {
        &self.space_peers
    }

    /// The owner that is responsible for a place.
    pub(crate) fn owner_at(&self, place: &Place) -> Option<OwnerId> {
        self.map.as_ref()?.owner_at(place.space, place.position)
    }

    /// Distance of a place from the areas of this owner, metres; infinite if it has none in that space.
    pub(crate) fn outside(&self, place: &Place) -> f32 {
        self.space(place.space)
            .map_or(f32::INFINITY, |space| distance(space, self.owner, place.position))
    }

    /// The owners that need a ghost of an entity at this place, whose appeal radius is `appeal` metres. `held` says
    /// which owners have one.
    pub(crate) fn ghost_owners(&self, place: &Place, appeal: f32, held: impl Fn(OwnerId) -> bool) -> BTreeSet<OwnerId> {
        let Some(space) = self.space(place.space) else {
            return BTreeSet::new();
        };
        let within = |area: &&CellArea| {
            let slack = if held(area.owner) { GHOST_HYSTERESIS } else { 0.0 };
            area.distance(place.position) <= space.ghost_distance + appeal + slack
        };
        let others = space.cells.iter().filter(|area| area.owner != self.owner);
        others.filter(within).map(|area| area.owner).collect()
    }

    /// Whether this owner keeps a ghost of an entity at this place that is real on another owner.
    pub(crate) fn has_ghosts(&self, place: &Place) -> bool {
        self.space(place.space)
            .is_some_and(|space| self.outside(place) <= space.ghost_distance + GHOST_HYSTERESIS)
    }

    /// The area of interest of a witness in a space: as set for its entity, but within the distance up to which others
    /// are known there.
    pub(crate) fn reach(&self, space: SpaceId, area: Option<AreaOfInterest>) -> Option<Reach> {
        let said = self.space(space).map(|space| Reach {
            radius: space.aoi_radius,
            hysteresis: space.aoi_hysteresis,
        });
        let Some(area) = area else { return said };
        let horizon = self.horizon(space)?;
        let hysteresis = area.hysteresis.min(horizon);
        let radius = area.radius.min(horizon - hysteresis);
        Some(Reach { radius, hysteresis })
    }

    /// Distance from an entity up to which others are known in a space, metres: the entity may be as deep in another
    /// owner's area as hand-over allows.
    pub(crate) fn horizon(&self, space: SpaceId) -> Option<f32> {
        self.space(space)
            .map(|space| (space.ghost_distance - HANDOVER_DEPTH).max(0.0))
    }

    /// Whether all entities in a region are known here, real or as ghosts.
    ///
    /// # Errors
    /// When they are not.
    pub(crate) fn knows(&self, region: &Region) -> Result<(), Denied> {
        let space = self.space(region.space).ok_or(Denied::NoMap)?;
        let known = space.ghost_distance;
        let own = space.cells.iter().filter(|area| area.owner == self.owner);
        let around: Vec<Ground> = own.map(|area| Ground::around(area, known)).collect();
        let (least, most) = region.shape.ground();
        let is_known = Ground { least, most }.is_covered(&around);
        is_known.then_some(()).ok_or(Denied::Beyond { known })
    }

    /// Whether the map has such a space.
    pub(crate) fn has(&self, space: SpaceId) -> bool {
        self.space(space).is_some()
    }

    pub(crate) fn owner(&self) -> OwnerId {
        self.owner
    }

    /// All spaces of the map.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = (SpaceId, &Space)> {
        let spaces = self.map.iter().flat_map(|map| &map.spaces);
        spaces.map(|(id, space)| (*id, space))
    }

    fn space(&self, space: SpaceId) -> Option<&Space> {
        self.map.as_ref()?.spaces.get(&space)
    }
}

/// A rectangle on the ground, edges included: its least x and z, and its largest.
#[derive(Clone, Copy, Debug)]
struct Ground {
    least: [f32; 2],
    most: [f32; 2],
}

impl Ground {
    fn around(area: &CellArea, metres: f32) -> Self {
        Self {
            least: [area.west - metres, area.south - metres],
            most: [area.east + metres, area.north + metres],
        }
    }

    /// Whether every point of it is in one of these.
    fn is_covered(&self, by: &[Ground]) -> bool {
        if (0..2).any(|axis| self.least[axis] > self.most[axis]) {
            return true;
        }
        let Some((first, rest)) = by.split_first() else {
            return false;
        };
        // The parts beside the first on an axis, and the remainder for the next axis.
        let mut left = *self;
        (0..2).all(|axis| {
            let (mut below, mut above) = (left, left);
            below.most[axis] = left.most[axis].min(first.least[axis].next_down());
            above.least[axis] = left.least[axis].max(first.most[axis].next_up());
            left.least[axis] = left.least[axis].max(first.least[axis]);
            left.most[axis] = left.most[axis].min(first.most[axis]);
            below.is_covered(rest) && above.is_covered(rest)
        })
    }
}

/// Distance of a position from the nearest area of an owner.
fn distance(space: &Space, owner: OwnerId, position: Position) -> f32 {
    space
        .cells
        .iter()
        .filter(|area| area.owner == owner)
        .map(|area| area.distance(position))
        .fold(f32::INFINITY, f32::min)
}

/// Owners with an area within ghost distance of one of `owner`'s.
fn neighbours(owner: OwnerId, map: &SpaceMap) -> BTreeSet<OwnerId> {
    let mut found = BTreeSet::new();
    for space in map.spaces.values() {
        let (own, others): (Vec<&CellArea>, Vec<&CellArea>) = space.cells.iter().partition(|area| area.owner == owner);
        let reach = space.ghost_distance + GHOST_HYSTERESIS;
        let near = |other: &&&CellArea| own.iter().any(|area| gap(area, other) <= reach);
        found.extend(others.iter().filter(near).map(|area| area.owner));
    }
    found
}

fn space_peers(territory: &Territory) -> BTreeSet<OwnerId> {
    let own = territory.own_spaces().into_iter();
    let owners = own.flat_map(|space| territory.owners(space));
    owners.filter(|owner| *owner != territory.owner).collect()
}

/// Distance between two areas along the axis on which it is larger.
fn gap(one: &CellArea, other: &CellArea) -> f32 {
    let between = |a: f32, b: f32| (a - b).max(0.0);
    let x = between(one.west, other.east).max(between(other.west, one.east));
    let z = between(one.south, other.north).max(between(other.south, one.north));
    x.max(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(owner: u32, west: f32, east: f32) -> CellArea {
        CellArea {
            west,
            east,
            ..CellArea::everywhere(OwnerId(owner))
        }
    }

    fn territory(owner: u32) -> Territory {
        let least = f32::NEG_INFINITY;
        let space = Space {
            cells: vec![
                area(1, least, 0.0),
                area(2, 0.0, 50.0),
                area(3, 50.0, 900.0),
                area(4, 900.0, f32::INFINITY),
            ],
            aoi_radius: 80.0,
            aoi_hysteresis: 5.0,
            ghost_distance: 100.0,
        };
        let mut territory = Territory::unknown(OwnerId(owner));
        assert!(territory.redraw(SpaceMap {
            version: 3,
            spaces: [(SpaceId(1), space)].into(),
            ..SpaceMap::default()
        }));
        territory
    }

    fn at(x: f32) -> Place {
        let mut place = Place {
            space: SpaceId(1),
            ..Place::default()
        };
        place.position.x = x;
        place
    }

    fn owners(found: BTreeSet<OwnerId>) -> Vec<u32> {
        found.into_iter().map(|owner| owner.0).collect()
    }

    #[test]
    fn an_entity_has_ghosts_on_every_owner_within_ghost_distance_and_loses_them_farther_out() {
        let territory = territory(2);
        assert_eq!(owners(territory.ghost_owners(&at(10.0), 0.0, |_| false)), [1, 3]);
        assert_eq!(owners(territory.ghost_owners(&at(-110.0), 0.0, |_| false)), [1]);
        assert_eq!(owners(territory.ghost_owners(&at(160.0), 0.0, |_| false)), [3]);
        assert_eq!(
            owners(territory.ghost_owners(&at(115.0), 0.0, |owner| owner.0 == 1)),
            [1, 3]
        );
        assert_eq!(
            owners(territory.ghost_owners(&at(125.0), 0.0, |owner| owner.0 == 1)),
            [3]
        );
        assert_eq!(owners(territory.ghost_owners(&at(125.0), 30.0, |_| false)), [1, 3]);
    }

    #[test]
    fn neighbours_are_those_whose_areas_are_within_ghost_distance() {
        let of = |owner| {
            territory(owner)
                .neighbours()
                .iter()
                .map(|owner| owner.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(1), [2, 3]);
        assert_eq!(of(2), [1, 3]);
        assert_eq!(of(3), [1, 2, 4]);
        assert_eq!(of(4), [3]);
    }

    #[test]
    fn a_place_is_outside_as_far_as_the_nearest_area_is_away() {
        let territory = territory(2);
        assert_eq!(territory.outside(&at(25.0)).to_bits(), 0.0f32.to_bits());
        assert_eq!(territory.outside(&at(-3.0)).to_bits(), 3.0f32.to_bits());
        let elsewhere = Place {
            space: SpaceId(9),
            ..at(25.0)
        };
        assert!(territory.outside(&elsewhere).is_infinite());
        assert_eq!(territory.owner_at(&elsewhere), None);
    }

    #[test]
    fn a_witness_sees_within_its_radius_and_the_horizon() {
        let territory = territory(2);
        let reach = |area: Option<(f32, f32)>| {
            let area = area.map(|(radius, hysteresis)| AreaOfInterest { radius, hysteresis });
            let reach = territory.reach(SpaceId(1), area).expect("the space exists");
            (reach.radius, reach.hysteresis)
        };
        assert_eq!(reach(None), (80.0, 5.0));
        assert_eq!(reach(Some((20.0, 1.0))), (20.0, 1.0));
        // Ghosts reach 100 m, and an entity may be 5 m outside.
        assert_eq!(territory.horizon(SpaceId(1)), Some(95.0));
        assert_eq!(reach(Some((90.0, 5.0))), (90.0, 5.0));
        assert_eq!(reach(Some((500.0, 5.0))), (90.0, 5.0));
        assert_eq!(reach(Some((500.0, 500.0))), (0.0, 95.0));
        assert!(territory.reach(SpaceId(2), None).is_none());
    }

    #[test]
    fn an_older_map_is_dropped() {
        let mut territory = territory(2);
        assert!(!territory.redraw(SpaceMap {
            version: 2,
            ..SpaceMap::default()
        }));
        assert_eq!(territory.owner_at(&at(25.0)), Some(OwnerId(2)));
    }
}
