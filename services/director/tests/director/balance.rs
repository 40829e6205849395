//! Division of spaces: the tree by itself, the director's decisions under any reports, and a realm of points that walk
//! and are handed over.

mod crowds;
mod dice;
mod judgement;
mod realm;
mod rest;
mod rules;
mod staff;
mod tree;

use std::collections::BTreeMap;

use annals_director::division::{Axis, CutId, Division};
use annals_ids::{OwnerId, Position};
use annals_wire::CellArea;

use dice::Dice;

/// Every place is in exactly one area, in particular where areas meet.
fn check_cover(areas: &[CellArea], dice: &mut Dice, what: &str) {
    let mut places: Vec<[f32; 2]> = (0..40)
        .map(|_| [0, 1].map(|_| dice.between(-2_000.0, 2_000.0)))
        .collect();
    for area in areas {
        let edge = |low: f32, high: f32| if low.is_finite() { low } else { high };
        let (x, z) = (edge(area.west, area.east), edge(area.south, area.north));
        if x.is_finite() && z.is_finite() {
            places.extend([
                [x, z],
                [x.next_down(), z],
                [x, z.next_down()],
                [x.next_down(), z.next_down()],
            ]);
        }
    }
    for [x, z] in places {
        let position = Position { x, y: 0.0, z };
        let holders = areas.iter().filter(|area| area.contains(position)).count();
        assert_eq!(holders, 1, "{what}: {holders} cells at {x}, {z}");
    }
}

/// Axis and position of each cut.
fn cuts(division: &Division) -> BTreeMap<CutId, (Axis, f32)> {
    let cuts = division.cuts();
    cuts.iter().map(|cut| (cut.id, (cut.axis, cut.at))).collect()
}

fn owners(count: u32) -> Vec<OwnerId> {
    (1..=count).map(OwnerId).collect()
}
