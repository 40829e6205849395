//! Areas of interest against a brute-force oracle, over generated histories.

use crate::histories::{FEW, History, Oracle};
use annals_ids::{EntityId, Position, SpaceId};
use annals_space::{Body, Interest, Observer, Reach, Spot};

const ROUNDS: usize = 200;

/// Runs histories of that many entities, and returns the number of sightings.
fn equals_the_oracle(entities: u16, seeds: u64) -> usize {
    let mut sightings = 0;
    for seed in 0..seeds {
        let (mut interest, mut oracle) = (Interest::default(), Oracle::default());
        let mut history = History::new(seed, entities, true);
        for round in 0..ROUNDS {
            let (bodies, observers) = history.next();
            let expected = oracle.update(&bodies, &observers);
            let mut found = Vec::new();
            interest.update(&bodies, &observers, |sighting| found.push(sighting));
            assert_eq!(found, expected, "{entities} entities, seed {seed}, round {round}");
            sightings += found.len();
            for (observer, body) in history.kept() {
                let kept = interest.keep(observer, body);
                assert_eq!(
                    kept,
                    oracle.keep(&bodies, &observers, observer, body),
                    "{entities} entities, seed {seed}, round {round}, observer {observer}, body {body}"
                );
            }
            for (observer, seen) in &oracle.seen {
                let found = interest.seen(*observer).iter();
                assert!(
                    found.eq(seen),
                    "{entities} entities, seed {seed}, round {round}, observer {observer}"
                );
            }
        }
    }
    sightings
}

#[test]
fn areas_of_interest_equal_the_oracle_after_every_round() {
    let sightings = equals_the_oracle(FEW, 40);
    assert!(
        sightings > 10_000,
        "only {sightings} sightings: the generator makes too little happen"
    );
}

#[test]
fn areas_of_interest_equal_the_oracle_in_crowds() {
    let sightings = equals_the_oracle(FEW * 10, 3);
    assert!(
        sightings > 100_000,
        "only {sightings} sightings: the generator makes too little happen"
    );
}

fn at(x: f32, z: f32) -> Spot {
    Spot {
        space: SpaceId(1),
        position: Position { x, y: 0.0, z },
    }
}

fn body(entity: EntityId, spot: Spot) -> Body {
    let appeal = 0.0;
    Body { entity, spot, appeal }
}

fn observer(radius: f32, hysteresis: f32) -> Observer {
    Observer {
        entity: EntityId(1),
        spot: at(0.0, 0.0),
        reach: Reach { radius, hysteresis },
    }
}

#[test]
fn a_body_in_the_hysteresis_is_kept_only_if_seen_before() {
    let (own, near, edge, far) = (EntityId(1), EntityId(2), EntityId(3), EntityId(4));
    let mut interest = Interest::default();
    let bodies = [
        body(near, at(100.0, -100.0)),
        body(edge, at(105.0, 0.0)),
        body(far, at(0.0, 110.5)),
    ];
    let observers = [observer(100.0, 10.0)];
    interest.update(&bodies, &observers, |_| ());
    assert_eq!(interest.seen(own), [near]);

    assert!(interest.keep(own, edge));
    assert!(!interest.keep(own, far));
    assert!(!interest.keep(own, own));
    interest.update(&bodies, &observers, |sighting| {
        panic!("kept entities stay: {sighting:?}")
    });
    assert_eq!(interest.seen(own), [near, edge]);
}

#[test]
fn height_does_not_matter() {
    let mut interest = Interest::default();
    let mut above = at(0.0, 0.0);
    above.position.y = 10_000.0;
    interest.update(&[body(EntityId(2), above)], &[observer(1.0, 0.0)], |_| ());
    assert_eq!(interest.seen(EntityId(1)), [EntityId(2)]);
}
