//! Areas of interest against a brute-force oracle, over generated histories in which bodies appear, walk, teleport, change
//! space, gain appeal and die, and observers do the same.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{EntityId, Position, SpaceId};
use annals_space::{Change, Interest, Reach, Sighting, Spot};

const STEPS: usize = 200;
const BODIES: u16 = 40;
const SPACES: u16 = 2;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u16) -> u16 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let rest = (z ^ (z >> 31)) % u64::from(sides);
        u16::try_from(rest).expect("a remainder is below its divisor")
    }

    fn pick<const N: usize>(&mut self, from: [f32; N]) -> f32 {
        let sides = u16::try_from(N).expect("there are few");
        from[usize::from(self.roll(sides))]
    }

    /// A coordinate within `span` metres of `centre`, on a raster that puts many exactly on the edges.
    fn near(&mut self, centre: f32, span: u16) -> f32 {
        centre - f32::from(span) + f32::from(self.roll(span * 4 + 1)) / 2.0
    }

    fn spot(&mut self) -> Spot {
        // Far from the origin floats are coarse, and the grid must not miss anything there either.
        let origin = self.pick([0.0, 0.0, 0.0, -700.0, 3.0e6]);
        Spot {
            space: SpaceId(self.roll(SPACES).into()),
            position: Position {
                x: self.near(origin, 300),
                y: self.near(0.0, 500),
                z: self.near(-origin, 300),
            },
        }
    }

    fn reach(&mut self) -> Reach {
        Reach {
            radius: self.pick([0.0, 10.0, 80.0, 250.0]),
            hysteresis: self.pick([0.0, 5.0, 40.0]),
        }
    }

    fn appeal(&mut self) -> f32 {
        self.pick([0.0, 0.0, 0.0, 0.0, 15.0, 300.0])
    }
}

/// Everything compared with everything.
#[derive(Default)]
struct Oracle {
    bodies: BTreeMap<EntityId, (Spot, f32)>,
    observers: BTreeMap<EntityId, (Spot, Reach)>,
    seen: BTreeMap<EntityId, BTreeSet<EntityId>>,
}

impl Oracle {
    fn within(&self, observer: EntityId, body: EntityId, radius: f32) -> bool {
        let (own, _) = self.observers[&observer];
        let (other, appeal) = self.bodies[&body];
        let (dx, dz) = (own.position.x - other.position.x, own.position.z - other.position.z);
        own.space == other.space && dx.abs() <= radius + appeal && dz.abs() <= radius + appeal
    }

    fn update(&mut self) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        let mut all = BTreeMap::new();
        for (&observer, (_, reach)) in &self.observers {
            let before = self.seen.get(&observer).cloned().unwrap_or_default();
            let now: BTreeSet<EntityId> = self
                .bodies
                .keys()
                .copied()
                .filter(|&body| body != observer)
                .filter(|&body| {
                    let stays = before.contains(&body) && self.within(observer, body, reach.radius + reach.hysteresis);
                    stays || self.within(observer, body, reach.radius)
                })
                .collect();
            let told = |change, body| Sighting { observer, change, body };
            sightings.extend(before.difference(&now).map(|&body| told(Change::Left, body)));
            sightings.extend(now.difference(&before).map(|&body| told(Change::Entered, body)));
            all.insert(observer, now);
        }
        self.seen = all;
        sightings
    }
}

fn step(dice: &mut Dice, interest: &mut Interest, oracle: &mut Oracle) {
    let entity = EntityId(dice.roll(BODIES).into());
    match dice.roll(10) {
        0..=4 => {
            // A step, if it is there; else it appears.
            let known = oracle.bodies.get(&entity).copied();
            let (mut spot, appeal) = known.unwrap_or_else(|| (dice.spot(), dice.appeal()));
            spot.position.x = dice.near(spot.position.x, 8);
            spot.position.z = dice.near(spot.position.z, 8);
            interest.place(entity, spot, appeal);
            oracle.bodies.insert(entity, (spot, appeal));
        }
        5 => {
            let (spot, appeal) = (dice.spot(), dice.appeal());
            interest.place(entity, spot, appeal);
            oracle.bodies.insert(entity, (spot, appeal));
        }
        6 => {
            interest.remove(entity);
            oracle.bodies.remove(&entity);
        }
        7 | 8 => {
            let standing = oracle.bodies.get(&entity).map(|(spot, _)| *spot);
            let (spot, reach) = (standing.unwrap_or_else(|| dice.spot()), dice.reach());
            interest.observe(entity, spot, reach);
            oracle.observers.insert(entity, (spot, reach));
        }
        _ => {
            interest.forget(entity);
            oracle.observers.remove(&entity);
            oracle.seen.remove(&entity);
        }
    }
}

#[test]
fn areas_of_interest_equal_the_oracle_after_every_step() {
    let mut told = 0;
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let (mut interest, mut oracle) = (Interest::default(), Oracle::default());
        for round in 0..STEPS {
            for _ in 0..=dice.roll(10) {
                step(&mut dice, &mut interest, &mut oracle);
            }
            let (found, expected) = (interest.update(), oracle.update());
            assert_eq!(found, expected, "seed {seed}, round {round}");
            told += found.len();
            for (observer, seen) in &oracle.seen {
                let found: BTreeSet<EntityId> = interest.seen(*observer).collect();
                assert_eq!(&found, seen, "seed {seed}, round {round}, observer {observer}");
            }
        }
    }
    assert!(
        told > 3_000,
        "only {told} sightings: the generator makes too little happen"
    );
}

fn at(x: f32, z: f32) -> Spot {
    Spot {
        space: SpaceId(1),
        position: Position { x, y: 0.0, z },
    }
}

#[test]
fn a_body_in_the_hysteresis_is_kept_only_if_it_is_said_to_have_been_seen() {
    let (observer, near, edge, far) = (EntityId(1), EntityId(2), EntityId(3), EntityId(4));
    let mut interest = Interest::default();
    let reach = Reach {
        radius: 100.0,
        hysteresis: 10.0,
    };
    interest.observe(observer, at(0.0, 0.0), reach);
    interest.place(near, at(100.0, -100.0), 0.0);
    interest.place(edge, at(105.0, 0.0), 0.0);
    interest.place(far, at(0.0, 110.5), 0.0);
    interest.update();
    assert_eq!(interest.seen(observer).collect::<Vec<_>>(), [near]);

    assert!(interest.keep(observer, edge));
    assert!(!interest.keep(observer, far));
    assert!(!interest.keep(observer, observer));
    assert_eq!(interest.update(), [], "what was kept stays");
    assert_eq!(interest.seen(observer).collect::<Vec<_>>(), [near, edge]);
}

#[test]
fn height_does_not_matter() {
    let mut interest = Interest::default();
    let reach = Reach {
        radius: 1.0,
        hysteresis: 0.0,
    };
    interest.observe(EntityId(1), at(0.0, 0.0), reach);
    let mut spot = at(0.0, 0.0);
    spot.position.y = 10_000.0;
    interest.place(EntityId(2), spot, 0.0);
    assert_eq!(interest.update().len(), 1);
}
