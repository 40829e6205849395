//! Encoding of the map of spaces.

use std::collections::BTreeMap;

use annals_ids::{OwnerId, SpaceId};
use annals_wire::{
    CellArea, Space, SpaceMap,
    control::{ControlError, WireCell, WireMap, WireSpace, decode, encode},
};

fn map() -> SpaceMap {
    let west = CellArea {
        east: 12.5,
        ..CellArea::everywhere(OwnerId(4))
    };
    let east = CellArea {
        west: 12.5,
        south: -8.0,
        ..CellArea::everywhere(OwnerId(6))
    };
    let space = Space {
        cells: vec![west, east],
        aoi_radius: 80.0,
        aoi_hysteresis: 0.0,
        ghost_distance: 85.0,
    };
    SpaceMap {
        version: 9,
        spaces: BTreeMap::from([(SpaceId(3), space)]),
        bootstrap: Some(OwnerId(2)),
        bases: [OwnerId(2), OwnerId(3)].into(),
        cells: [OwnerId(4), OwnerId(6), OwnerId(u32::MAX)].into(),
    }
}

fn broken(change: impl Fn(&mut WireSpace)) -> Result<SpaceMap, ControlError> {
    let mut wire = WireMap::from(&map());
    change(&mut wire.spaces[0]);
    SpaceMap::try_from(&wire)
}

#[test]
fn a_map_round_trips() {
    let wire: WireMap = decode(&encode(&WireMap::from(&map()))).expect("own bytes");
    assert_eq!(SpaceMap::try_from(&wire).expect("a map"), map());
}

#[test]
fn a_map_with_an_invalid_distance_is_refused() {
    let set: [fn(&mut WireSpace, f32); 3] = [
        |space, metres| space.aoi_radius = metres,
        |space, metres| space.aoi_hysteresis = metres,
        |space, metres| space.ghost_distance = metres,
    ];
    for (place, set) in set.iter().enumerate() {
        for metres in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0] {
            let refused = broken(|space| set(space, metres));
            assert!(
                matches!(refused, Err(ControlError::Distance { .. })),
                "distance {place}, {metres}: {refused:?}"
            );
        }
        assert!(broken(|space| set(space, 0.0)).is_ok());
    }
}

#[test]
fn a_map_with_an_empty_area_is_refused() {
    let set: [fn(&mut WireCell, f32); 4] = [
        |cell, edge| cell.west = edge,
        |cell, edge| cell.east = edge,
        |cell, edge| cell.south = edge,
        |cell, edge| cell.north = edge,
    ];
    let refused = |place: usize, edge: f32| {
        let refused = broken(|space| set[place](&mut space.cells[0], edge));
        assert!(
            matches!(refused, Err(ControlError::Area { owner: OwnerId(4), .. })),
            "edge {place}, {edge}: {refused:?}"
        );
    };
    (0..4).for_each(|place| refused(place, f32::NAN));
    for (place, edge) in [
        (0, 12.5),
        (0, f32::INFINITY),
        (1, f32::NEG_INFINITY),
        (2, f32::INFINITY),
        (3, f32::NEG_INFINITY),
    ] {
        refused(place, edge);
    }
}
