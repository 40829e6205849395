//! Generated histories of bodies and observers, with an oracle that compares every observer with every body.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{EntityId, Position, SpaceId};
use annals_space::{Body, Change, Observer, Reach, Sighting, Spot};

/// Maximum entities in a small history.
pub(crate) const FEW: u16 = 40;

/// `SplitMix64`.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u16) -> u16 {
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

    /// A coordinate within `span` metres of `centre`, on a grid that puts many exactly on edges.
    fn near(&mut self, centre: f32, span: u16) -> f32 {
        centre - f32::from(span) + f32::from(self.roll(span * 4 + 1)) / 2.0
    }
}

/// A history in which bodies appear, walk, teleport, change space, gain appeal and vanish, and observers do the same.
pub(crate) struct History {
    dice: Dice,
    /// Maximum entities.
    entities: u16,
    /// Whether there is more than one space, and appeal.
    varied: bool,
    bodies: BTreeMap<EntityId, Body>,
    observers: BTreeMap<EntityId, Observer>,
}

impl History {
    /// A history with varied spaces and appeal, or one with a single space and no appeal.
    pub(crate) fn new(seed: u64, entities: u16, varied: bool) -> Self {
        Self {
            dice: Dice(seed),
            entities,
            varied,
            bodies: BTreeMap::new(),
            observers: BTreeMap::new(),
        }
    }

    /// All bodies and observers after some more steps.
    pub(crate) fn next(&mut self) -> (Vec<Body>, Vec<Observer>) {
        let steps = match self.dice.roll(20) {
            0 => 0,
            1 => 80,
            _ => self.dice.roll(10) + 1,
        };
        let steps = u32::from(steps) * u32::from(self.entities / FEW);
        (0..steps).for_each(|_| self.step());
        (
            self.bodies.values().copied().collect(),
            self.observers.values().copied().collect(),
        )
    }

    /// Pairs of an observer and a body for [`Oracle::keep`].
    #[allow(dead_code, reason = "baselines keep no entities")]
    pub(crate) fn kept(&mut self) -> Vec<(EntityId, EntityId)> {
        let pairs = usize::from(self.dice.roll(4));
        let mut entity = || EntityId(self.dice.roll(self.entities).into());
        std::iter::repeat_with(|| (entity(), entity())).take(pairs).collect()
    }

    fn step(&mut self) {
        let entity = EntityId(self.dice.roll(self.entities).into());
        match self.dice.roll(12) {
            0..=4 => self.walk(entity),
            5 => {
                let (spot, appeal) = (self.spot(), self.appeal());
                self.bodies.insert(entity, Body { entity, spot, appeal });
            }
            6 => {
                self.bodies.remove(&entity);
            }
            7 | 8 => {
                let standing = self.bodies.get(&entity).map(|body| body.spot);
                let spot = standing.unwrap_or_else(|| self.spot());
                let reach = self.reach();
                self.observers.insert(entity, Observer { entity, spot, reach });
            }
            // An observer moves with its body, as a player's does.
            9 | 10 => {
                if let (Some(body), Some(observer)) = (self.bodies.get(&entity), self.observers.get_mut(&entity)) {
                    observer.spot = body.spot;
                }
            }
            _ => {
                self.observers.remove(&entity);
            }
        }
    }

    /// Moves an entity one step if it exists; else it appears.
    fn walk(&mut self, entity: EntityId) {
        let known = self.bodies.get(&entity).copied();
        let mut body = known.unwrap_or_else(|| Body {
            entity,
            spot: self.spot(),
            appeal: self.appeal(),
        });
        let position = &mut body.spot.position;
        position.x = self.dice.near(position.x, 8);
        position.z = self.dice.near(position.z, 8);
        self.bodies.insert(entity, body);
    }

    fn spot(&mut self) -> Spot {
        // Far from the origin floats are coarse, and no crossing may be missed there either. Baselines add radii to
        // coordinates, and are tested only where such a sum is exact.
        let origin = match self.varied {
            true => self.dice.pick([0.0, 0.0, 0.0, 0.0, -700.0, 3.0e6, 1.0e10, 3.0e38]),
            false => self.dice.pick([0.0, 0.0, 0.0, -700.0, 3.0e6]),
        };
        Spot {
            space: SpaceId(if self.varied { self.dice.roll(2).into() } else { 0 }),
            position: Position {
                x: self.dice.near(origin, 300),
                y: self.dice.near(0.0, 500),
                z: self.dice.near(-origin, 300),
            },
        }
    }

    fn reach(&mut self) -> Reach {
        Reach {
            radius: self.dice.pick([0.0, 10.0, 80.0, 250.0]),
            hysteresis: self.dice.pick([0.0, 5.0, 40.0]),
        }
    }

    fn appeal(&mut self) -> f32 {
        let appeal = self.dice.pick([0.0, 0.0, 0.0, 0.0, 15.0, 300.0]);
        if self.varied { appeal } else { 0.0 }
    }
}

/// Compares every observer with every body.
#[derive(Default)]
pub(crate) struct Oracle {
    /// The bodies that each observer sees.
    pub(crate) seen: BTreeMap<EntityId, BTreeSet<EntityId>>,
}

impl Oracle {
    /// The expected reports of [`annals_space::Interest::update`].
    pub(crate) fn update(&mut self, bodies: &[Body], observers: &[Observer]) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        let mut all = BTreeMap::new();
        for observer in observers {
            let before = self.seen.get(&observer.entity).cloned().unwrap_or_default();
            let Reach { radius, hysteresis } = observer.reach;
            let others = bodies.iter().filter(|body| body.entity != observer.entity);
            let seen = others.filter(|body| {
                let stays = before.contains(&body.entity) && within(observer, body, radius + hysteresis);
                stays || within(observer, body, radius)
            });
            let now: BTreeSet<EntityId> = seen.map(|body| body.entity).collect();
            let sighting = |change, body| Sighting {
                observer: observer.entity,
                change,
                body,
            };
            sightings.extend(before.difference(&now).map(|&body| sighting(Change::Left, body)));
            sightings.extend(now.difference(&before).map(|&body| sighting(Change::Entered, body)));
            all.insert(observer.entity, now);
        }
        self.seen = all;
        sightings
    }

    /// The expected result of [`annals_space::Interest::keep`].
    #[allow(dead_code, reason = "baselines keep no entities")]
    pub(crate) fn keep(&mut self, bodies: &[Body], observers: &[Observer], observer: EntityId, body: EntityId) -> bool {
        let by = observers.iter().find(|known| known.entity == observer);
        let of = bodies.iter().find(|known| known.entity == body);
        let kept = by
            .zip(of)
            .is_some_and(|(by, of)| observer != body && within(by, of, by.reach.radius + by.reach.hysteresis));
        if kept {
            self.seen.entry(observer).or_default().insert(body);
        }
        kept
    }
}

fn within(observer: &Observer, body: &Body, radius: f32) -> bool {
    let (own, other) = (observer.spot.position, body.spot.position);
    let (dx, dz) = (own.x - other.x, own.z - other.z);
    let radius = radius + body.appeal;
    observer.spot.space == body.spot.space && dx.abs() <= radius && dz.abs() <= radius
}
