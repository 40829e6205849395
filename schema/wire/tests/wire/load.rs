//! Owners' reports of their loads.
#![allow(clippy::float_cmp, reason = "what is sent is to arrive as it was")]

use std::collections::BTreeMap;

use annals_def::split_mix;
use annals_ids::{OwnerId, SpaceId};
use annals_wire::{
    control::{ControlError, decode, encode},
    load::{Levels, Load, SpaceSurvey, Survey, WireLoad},
};

const SEEDS: u64 = 300;

/// Positions, some of them clustered, with loads.
fn points(dice: &mut dyn FnMut() -> u64) -> Vec<(f32, f64)> {
    let count = 1 + dice() % 400;
    let heap = (dice() % 1_000) as f32;
    let point = |_| {
        let at = if dice().is_multiple_of(4) {
            heap
        } else {
            (dice() % 100_000) as f32 / 50.0 - 1_000.0
        };
        let load = if dice().is_multiple_of(9) { 11.0 } else { 1.0 };
        (at, load)
    };
    (0..count).map(point).collect()
}

#[test]
fn levels_give_the_load_below_any_position() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let points = points(&mut dice);
        let total: f64 = points.iter().map(|(_, load)| load).sum();
        let levels = Levels::of(points.clone());
        let mut last = 0.0;
        for step in -110..=110 {
            let at = step as f32 * 10.0 + 0.5;
            let truth = points
                .iter()
                .filter(|(x, _)| *x < at)
                .map(|(_, load)| load)
                .sum::<f64>()
                / total;
            let said = levels.below(at);
            // Between two levels lies at most an eighth; close to an edge, as much as lies beyond.
            let edge = truth.min(1.0 - truth);
            let one = 11.0 / total;
            assert!(
                (said - truth).abs() <= (edge * 0.6 + one).min(0.13 + one),
                "seed {seed} at {at}: {said}, {truth}"
            );
            assert!(said >= last, "seed {seed}: it falls at {at}");
            last = said;
        }
        let (least, most) = levels.ends().expect("something stands there");
        assert_eq!(least, points.iter().map(|(x, _)| *x).fold(f32::INFINITY, f32::min));
        assert_eq!(most, points.iter().map(|(x, _)| *x).fold(f32::NEG_INFINITY, f32::max));
        assert_eq!((levels.below(least), levels.below(most + 1.0)), (0.0, 1.0));
        assert_eq!(Levels::read(levels.as_slice()), Some(levels));
    }
}

#[test]
fn without_entities_there_are_no_levels() {
    assert_eq!(Levels::of(Vec::new()), Levels::default());
    assert_eq!(Levels::of(vec![(f32::NAN, 1.0), (3.0, 0.0)]), Levels::default());
    assert_eq!(Levels::default().ends(), None);
    assert_eq!(Levels::of(vec![(7.0, 1.0)]).ends(), Some((7.0, 7.0)));
}

fn load() -> Load {
    let levels = |shift: f32| Levels::of((0..50).map(|nth| (nth as f32 + shift, 1.0)).collect());
    let space = SpaceSurvey {
        entities: 50,
        witnesses: 2,
        units: 70.0,
        leaving: BTreeMap::from([(OwnerId(4), 3.5)]),
        x: levels(0.5),
        z: levels(-40.0),
    };
    Load {
        busy: 0.25,
        survey: Survey {
            map: 12,
            spaces: BTreeMap::from([(SpaceId(2), space), (SpaceId(9), SpaceSurvey::default())]),
        },
    }
}

#[test]
fn a_load_round_trips() {
    let wire: WireLoad = decode(&encode(&WireLoad::from(&load()))).expect("own bytes");
    assert_eq!(Load::try_from(&wire).expect("a load"), load());
}

#[test]
fn an_invalid_load_is_refused() {
    let broken: [fn(&mut WireLoad, f64); 3] = [
        |load, amount| load.busy = amount,
        |load, amount| load.spaces[0].units = amount,
        |load, amount| load.spaces[0].leaving[0].units = amount,
    ];
    for (place, set) in broken.iter().enumerate() {
        for amount in [f64::NAN, f64::INFINITY, -1.0] {
            let mut wire = WireLoad::from(&load());
            set(&mut wire, amount);
            let refused = Load::try_from(&wire);
            assert!(
                matches!(refused, Err(ControlError::Load(_))),
                "amount {place}, {amount}: {refused:?}"
            );
        }
    }
    let broken: [fn(&mut Vec<f32>); 5] = [
        |levels| levels.truncate(5),
        |levels| levels.push(1_000.0),
        |levels| levels[3] = f32::NAN,
        |levels| levels[0] = f32::NEG_INFINITY,
        |levels| levels.swap(2, 30),
    ];
    for (place, spoil) in broken.iter().enumerate() {
        let mut wire = WireLoad::from(&load());
        spoil(&mut wire.spaces[0].z);
        assert!(Load::try_from(&wire).is_err(), "levels {place}");
    }
}
