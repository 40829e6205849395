//! The tree by itself.

use std::collections::BTreeMap;

use annals_director::division::{Axis, Bounds, CutId, Division, NotATree, Side};
use annals_ids::{OwnerId, SpaceId};
use annals_wire::control::WireNode;

use crate::balance::{check_cover, cuts, dice::Dice, owners};

const SEEDS: u64 = 200;
const STEPS: usize = 60;

/// Tries a random cut in a random cell, which may not be possible.
fn split(division: &mut Division, newcomer: OwnerId, dice: &mut Dice) -> bool {
    let areas = division.areas();
    let area = areas[dice.below(areas.len() as u64) as usize];
    let axis = if dice.below(2) == 0 { Axis::X } else { Axis::Z };
    let bounds = Bounds::from(&area);
    let (low, high) = (bounds.edge(axis, Side::Low), bounds.edge(axis, Side::High));
    let at = dice.between(low.max(-1_000.0), high.min(1_000.0));
    let side = if dice.below(2) == 0 { Side::Low } else { Side::High };
    division.split(area.owner, (axis, at), side, newcomer)
}

#[test]
fn after_any_splits_and_removals_cells_cover_the_plane_once() {
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let mut division = Division::even(&owners(1 + dice.below(9) as u32), 500.0).expect("there are owners");
        let mut next = 100;
        let mut ever: BTreeMap<CutId, (Axis, f32)> = cuts(&division);
        for step in 0..STEPS {
            let before = division.clone();
            let held = division.owners();
            let removes = dice.below(5) < 2;
            let changed = if removes {
                division.remove(held[dice.below(held.len() as u64) as usize])
            } else {
                next += 1;
                split(&mut division, OwnerId(next), &mut dice)
            };
            let what = format!("seed {seed}, step {step}");
            if !changed {
                assert_eq!(division, before, "{what}");
                continue;
            }
            let difference = if removes { held.len() - 1 } else { held.len() + 1 };
            assert_eq!(division.owners().len(), difference, "{what}");
            check_cover(&division.areas(), &mut dice, &what);
            let (old, new) = (cuts(&before), cuts(&division));
            for (id, cut) in &new {
                match old.get(id) {
                    Some(known) => assert_eq!(known, cut, "{what}: a cut that was there has changed"),
                    None => assert!(ever.insert(*id, *cut).is_none(), "{what}: {id:?} was given before"),
                }
            }
            assert_eq!(
                Division::read(&division.flat(SpaceId(1))),
                Ok(division.clone()),
                "{what}"
            );
        }
    }
}

#[test]
fn the_tree_of_given_areas_is_reconstructed() {
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let mut division = Division::whole(OwnerId(1));
        for newcomer in 2..20 {
            split(&mut division, OwnerId(newcomer), &mut dice);
        }
        let mut areas = division.areas();
        let found = Division::of_areas(&areas).expect("there is one");
        let mut again = found.areas();
        areas.sort_by_key(|area| area.owner);
        again.sort_by_key(|area| area.owner);
        assert_eq!(again, areas, "seed {seed}");
    }
    assert_eq!(Division::of_areas(&[]), None);
}

#[test]
fn an_even_division_gives_all_cells_equal_area() {
    for count in [1, 2, 3, 4, 5, 8, 16, 64] {
        let areas = Division::even(&owners(count), 400.0).expect("there are owners").areas();
        assert_eq!(areas.len(), count as usize);
        for area in areas {
            let length = |low: f32, high: f32| f64::from(high.min(400.0) - low.max(-400.0));
            let room = length(area.west, area.east) * length(area.south, area.north);
            let fair = 800.0 * 800.0 / f64::from(count);
            assert!((room - fair).abs() < fair * 1e-3, "{count}: {room} instead of {fair}");
        }
    }
    assert_eq!(Division::even(&[], 400.0), None);
}

#[test]
fn stored_data_that_is_not_a_tree_is_rejected() {
    let division = Division::even(&owners(4), 100.0).expect("there are owners");
    let broken = |change: &dyn Fn(&mut Vec<WireNode>)| {
        let mut tree = division.flat(SpaceId(1));
        change(&mut tree.nodes);
        Division::read(&tree)
    };
    // Cut 1 at 0 and its western side: cut 2 with owners 1 and 2.
    assert!(broken(&|_| {}).is_ok());
    assert_eq!(broken(&|nodes| nodes.clear()), Err(NotATree::Shape));
    assert_eq!(broken(&|nodes| nodes.truncate(6)), Err(NotATree::Shape));
    assert_eq!(broken(&|nodes| nodes.push(nodes[2])), Err(NotATree::Shape));
    assert_eq!(broken(&|nodes| nodes[3].owner = 1), Err(NotATree::Owner(1)));
    assert_eq!(broken(&|nodes| nodes[1].cut = 1), Err(NotATree::Number(1)));
    assert_eq!(broken(&|nodes| nodes[1].cut = 77), Err(NotATree::Number(77)));
    for at in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(broken(&|nodes| nodes[0].at = at), Err(NotATree::Outside(1)));
    }
    let beyond = |nodes: &mut Vec<WireNode>| (nodes[1].along_z, nodes[1].at) = (false, 50.0);
    assert_eq!(broken(&beyond), Err(NotATree::Outside(2)));
    let deep = |nodes: &mut Vec<WireNode>| *nodes = vec![nodes[0]; 100_000];
    assert_eq!(broken(&deep), Err(NotATree::Size));
}
