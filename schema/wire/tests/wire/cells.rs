//! Encoding of the report on cells for operators.

use std::time::Duration;

use annals_ids::{OwnerId, SpaceId};
use annals_wire::{
    CellArea,
    cells::{CellList, CellReport, WireCellList, WireCellReport},
    control::{ControlError, WireCell, decode, encode},
};

fn list() -> CellList {
    let report = CellReport {
        space: SpaceId(3),
        area: CellArea {
            east: 12.5,
            ..CellArea::everywhere(OwnerId(4))
        },
        load: 0.75,
        entities: 12,
        witnesses: 5,
        retires: true,
        unmoved: Some(Duration::ZERO),
    };
    let other = CellReport {
        area: CellArea {
            west: 12.5,
            ..CellArea::everywhere(OwnerId(6))
        },
        retires: false,
        unmoved: None,
        ..report
    };
    CellList {
        map: 7,
        cells: vec![report, other],
    }
}

#[test]
fn a_list_round_trips() {
    let wire: WireCellList = decode(&encode(&WireCellList::from(&list()))).expect("own bytes");
    assert_eq!(CellList::try_from(&wire).expect("a list"), list());
}

#[test]
fn an_invalid_area_or_load_is_refused() {
    let broken = |change: fn(&mut WireCellReport)| {
        let mut wire = WireCellList::from(&list());
        change(&mut wire.cells[1]);
        CellList::try_from(&wire)
    };
    let areas: [fn(&mut WireCellReport); 2] = [
        |cell| cell.area = None,
        |cell| {
            let area = cell.area.unwrap_or_default();
            cell.area = Some(WireCell { west: f32::NAN, ..area });
        },
    ];
    for area in areas {
        let refused = broken(area);
        assert!(matches!(refused, Err(ControlError::Area { .. })), "{refused:?}");
    }
    let loads: [fn(&mut WireCellReport); 2] = [|cell| cell.load = f64::NAN, |cell| cell.load = -1.0];
    for load in loads {
        let refused = broken(load);
        assert!(matches!(refused, Err(ControlError::Load(_))), "{refused:?}");
    }
}
