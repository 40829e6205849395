//! Views equal those of a brute-force oracle after every step, whatever entities do.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{EntityId, Position, SpaceId};
use annals_space::{Change, Interest, Sight, Spot};

fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |sides| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    }
}

fn sight(space: SpaceId) -> Option<Sight> {
    match space.0 {
        1 => Some(Sight {
            radius: 20.0,
            hysteresis: 5.0,
        }),
        2 => Some(Sight {
            radius: 3.0,
            hysteresis: 0.0,
        }),
        _ => None,
    }
}

/// The rule, word for word.
fn expected(spots: &BTreeMap<EntityId, Spot>, observer: EntityId, before: &BTreeSet<EntityId>) -> BTreeSet<EntityId> {
    let Some((own, sight)) = spots.get(&observer).and_then(|spot| Some((spot, sight(spot.space)?))) else {
        return BTreeSet::new();
    };
    let sees = |(entity, spot): &(&EntityId, &Spot)| {
        let reach = if before.contains(entity) {
            sight.radius + sight.hysteresis
        } else {
            sight.radius
        };
        let (dx, dz) = (
            (spot.position.x - own.position.x).abs(),
            (spot.position.z - own.position.z).abs(),
        );
        **entity != observer && spot.space == own.space && dx <= reach && dz <= reach
    };
    spots.iter().filter(sees).map(|(entity, _)| *entity).collect()
}

#[test]
fn views_equal_the_oracle() {
    for seed in 0..40 {
        let mut roll = dice(seed);
        let mut spots: BTreeMap<EntityId, Spot> = BTreeMap::new();
        let mut interest = Interest::default();
        let mut oracle: BTreeMap<EntityId, BTreeSet<EntityId>> = BTreeMap::new();
        for step in 0..150 {
            for _ in 0..=roll(6) {
                let entity = EntityId(roll(60));
                let at = Position {
                    x: roll(2_000) as f32 / 10.0 - 100.0,
                    y: roll(50) as f32,
                    z: roll(2_000) as f32 / 10.0 - 100.0,
                };
                match roll(10) {
                    0 => drop(spots.remove(&entity)),
                    1 => {
                        interest.observe(entity);
                        oracle.entry(entity).or_default();
                    }
                    2 => {
                        interest.forget(entity);
                        oracle.remove(&entity);
                    }
                    3 => drop(spots.insert(
                        entity,
                        Spot {
                            space: SpaceId(1 + roll(3) as u32),
                            position: at,
                        },
                    )),
                    _ => {
                        let spot = spots.entry(entity).or_insert(Spot {
                            space: SpaceId(1),
                            position: at,
                        });
                        spot.position.x += roll(100) as f32 / 10.0 - 5.0;
                        spot.position.z += roll(100) as f32 / 10.0 - 5.0;
                    }
                }
            }
            let changes = interest.update(&spots, sight);
            assert!(
                changes.is_sorted_by_key(|change| (change.observer, change.entity)),
                "seed {seed} step {step}"
            );
            for Change {
                observer,
                entity,
                enters,
            } in changes
            {
                let view = oracle.get_mut(&observer).expect("only observers see");
                let new = if enters {
                    view.insert(entity)
                } else {
                    view.remove(&entity)
                };
                assert!(new, "seed {seed} step {step}: {observer} is told twice of {entity}");
            }
            for (observer, told) in &oracle {
                let seen = interest.view(*observer).expect("it observes");
                assert_eq!(seen, told, "seed {seed} step {step}: what {observer} was told");
            }
            // What was told equals the rule applied to what was in view before this step; the rule is stable, so applying
            // it to its own result changes nothing.
            for (observer, told) in &oracle {
                assert_eq!(
                    &expected(&spots, *observer, told),
                    told,
                    "seed {seed} step {step}: the view of {observer}"
                );
            }
        }
    }
}

#[test]
fn hysteresis_keeps_who_is_in_and_does_not_let_in_who_is_out() {
    let mut interest = Interest::default();
    interest.observe(EntityId(1));
    let mut spots = BTreeMap::from([(
        EntityId(1),
        Spot {
            space: SpaceId(1),
            position: Position::default(),
        },
    )]);
    let mut at = |x: f32| {
        spots.insert(
            EntityId(2),
            Spot {
                space: SpaceId(1),
                position: Position { x, y: 1_000.0, z: 0.0 },
            },
        );
        interest
            .update(&spots, sight)
            .iter()
            .map(|change| change.enters)
            .collect::<Vec<_>>()
    };
    assert_eq!(at(21.0), [], "beyond the radius");
    assert_eq!(at(20.0), [true], "at the radius; height does not count");
    assert_eq!(at(25.0), [], "within the hysteresis");
    assert_eq!(at(25.1), [false], "beyond it");
    assert_eq!(at(24.0), [], "not in again before the radius");
}
