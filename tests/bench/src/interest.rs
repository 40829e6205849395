//! Areas of interest: the cost of computing visibility, tick by tick, compared with the two common algorithms: the
//! cross-linked [`list`](list::List) and the uniform [`grid`](grid::Grid).
//!
//! All entities walk and observe. All algorithms process the same ticks of the same worlds in turn; measured is
//! processor time, from the update of positions to the list of bodies that entered and left.

pub mod grid;
pub mod list;
mod worlds;

use std::{hint::black_box, time::Duration};

use annals_ids::{EntityId, Position, SpaceId};
use annals_space::{Body, Change, Interest, Observer, Reach, Spot};

use crate::{Figure, busy};
use grid::Grid;
use list::List;
use worlds::World;

/// A change of visibility: the observer, the body, and whether it entered.
pub type Event = (u32, u32, bool);

/// An algorithm for visibility among entities numbered from zero, in one space.
pub trait Baseline {
    /// Sets a body's position, adding the body if it is new.
    fn place(&mut self, entity: usize, at: [f32; 2]);
    /// Removes a body, if present.
    fn remove(&mut self, entity: usize);
    /// Sets an observer's position and radius, metres.
    fn observe(&mut self, entity: usize, at: [f32; 2], radius: f32, hysteresis: f32);
    /// Removes an observer, if present, without events for the bodies it saw.
    fn forget(&mut self, entity: usize);
    /// Called after all positions of a tick: appends the events, in any order. A body that entered and left again may
    /// be included.
    fn update(&mut self, events: &mut Vec<Event>);
}

/// AoI radius of all observers, metres.
const RADIUS: f32 = 100.0;
const HYSTERESIS: f32 = 5.0;

/// Square sizes tried for the grid, metres; the best counts.
const SIDES: [f32; 5] = [25.0, 50.0, 100.0, 200.0, 400.0];

/// Side of the world of 10,000, metres. Other sizes have the same density.
const UNIFORM: f32 = 2_000.0;
const ENTITIES: usize = 10_000;

/// The dense crowd: number of entities, and side of their square.
const CROWD: (usize, f32) = (5_000, 300.0);

/// Side of a world in which 10,000 rarely meet, metres.
const SPARSE: f32 = 20_000.0;

/// One in this many entities jumps to another place at each tick, in the world with jumps.
const LEAPS: u64 = 100;

/// Sizes at which the cost per entity is reported.
const SIZES: [usize; 4] = [1_000, 4_000, 16_000, 64_000];

/// Ticks of warm-up, and measured ticks, of which the median counts.
const WARM_UP: usize = 5;
const MEASURED: usize = 41;

/// Measures all worlds.
///
/// # Panics
/// If two algorithms disagree on visibility.
#[must_use]
pub fn run() -> Vec<Figure> {
    let mut figures = Vec::new();
    let worlds = [
        ("uniform", World::new(ENTITIES, UNIFORM)),
        ("crowd", World::new(CROWD.0, CROWD.1)),
        ("sparse", World::new(ENTITIES, SPARSE)),
        ("leaping", World::new(ENTITIES, UNIFORM).leaping(LEAPS)),
    ];
    for (name, world) in worlds {
        figures.extend(compare(name, &world));
    }
    let costs = SIZES.map(|size| {
        let side = UNIFORM * (size as f32 / ENTITIES as f32).sqrt();
        measure(&World::new(size, side), vec![Box::new(Ours::new(size))]).remove(0)
    });
    for (size, cost) in SIZES.iter().zip(&costs) {
        figures.push(Figure::against(
            &format!("aoi_cost_per_entity_{size}"),
            cost.per_move(*size),
            costs[1].per_move(SIZES[1]),
            "ns",
            format!("at one density; baseline: {} entities, so 1 is linear", SIZES[1]),
        ));
    }
    figures
}

/// Cost of one algorithm in one world.
struct Cost {
    tick: Duration,
    events: usize,
    /// Bodies in view per observer, on average.
    seen: f64,
}

impl Cost {
    /// Nanoseconds per entity and tick.
    fn per_move(&self, entities: usize) -> f64 {
        self.tick.as_secs_f64() * 1e9 / entities as f64
    }

    fn per_event(&self) -> f64 {
        self.tick.as_secs_f64() * 1e9 / self.events as f64
    }
}

fn compare(name: &str, world: &World) -> Vec<Figure> {
    let entities = world.places.len();
    let mut ways: Vec<Box<dyn Baseline>> = vec![Box::new(Ours::new(entities)), Box::new(List::new(entities))];
    for side in SIDES {
        ways.push(Box::new(Grid::new(entities, world.side, side)));
    }
    let costs = measure(world, ways);
    let (ours, list) = (&costs[0], &costs[1]);
    let grids = SIDES.iter().zip(&costs[2..]);
    let (side, grid) = grids.min_by_key(|(_, cost)| cost.tick).expect("there are sides to try");
    let figure = |baseline: &Cost, what: &str, of: String| Figure {
        // Speed-up: the baseline's time divided by ours.
        ratio: Some(baseline.tick.as_secs_f64() / ours.tick.as_secs_f64()),
        ..Figure::against(
            &format!("aoi_{name}_vs_{what}"),
            ours.per_move(entities),
            baseline.per_move(entities),
            "ns/move",
            format!(
                "{entities} walk and look, {:.0} in view of each; {:.0} ns per enter or leave ({} a tick); baseline: {of}, \
                 {:.0} ns; ratio: times as fast",
                ours.seen,
                ours.per_event(),
                ours.events,
                baseline.per_event(),
            ),
        )
    };
    vec![
        figure(list, "list", "cross-linked list".to_owned()),
        figure(grid, "grid", format!("grid of {side} m, the best of {SIDES:?}")),
    ]
}

/// Runs all algorithms through the same ticks.
fn measure(world: &World, mut ways: Vec<Box<dyn Baseline>>) -> Vec<Cost> {
    let mut world = world.clone();
    let mut spent: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    let mut counts = vec![0; ways.len()];
    let mut pairs = vec![0_i64; ways.len()];
    let mut sums = vec![0_u64; ways.len()];
    let mut events = Vec::new();
    for tick in 0..WARM_UP + MEASURED {
        for (way, index) in ways.iter_mut().enumerate() {
            events.clear();
            let began = busy();
            for (entity, at) in world.places.iter().enumerate() {
                index.place(entity, *at);
            }
            for (entity, at) in world.places.iter().enumerate() {
                index.observe(entity, *at, RADIUS, HYSTERESIS);
            }
            index.update(&mut events);
            let took = busy() - began;
            black_box(&events);
            for (observer, body, came) in &events {
                let pair = mixed(*observer, *body);
                (pairs[way], sums[way]) = match came {
                    true => (pairs[way] + 1, sums[way].wrapping_add(pair)),
                    false => (pairs[way] - 1, sums[way].wrapping_sub(pair)),
                };
            }
            if tick >= WARM_UP {
                spent[way].push(took);
                counts[way] += events.len();
            }
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "all see the same");
        world.walk();
    }
    let middle = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let costs = spent.into_iter().zip(counts).zip(pairs);
    costs
        .map(|((times, events), pairs)| Cost {
            tick: middle(times),
            events: events / MEASURED,
            seen: pairs as f64 / world.places.len() as f64,
        })
        .collect()
}

/// A hash of a visible pair, to be summed in any order.
fn mixed(observer: u32, body: u32) -> u64 {
    let pair = u64::from(observer) << 32 | u64::from(body);
    let mixed = (pair ^ (pair >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 32)
}

/// The algorithm of Annals.
struct Ours {
    interest: Interest,
    bodies: Vec<Body>,
    observers: Vec<Observer>,
}

impl Ours {
    fn new(entities: usize) -> Self {
        Self {
            interest: Interest::default(),
            bodies: Vec::with_capacity(entities),
            observers: Vec::with_capacity(entities),
        }
    }
}

fn spot([x, z]: [f32; 2]) -> Spot {
    Spot {
        space: SpaceId(1),
        position: Position { x, y: 0.0, z },
    }
}

/// All measured entities are present, in order, and none leaves.
impl Baseline for Ours {
    fn place(&mut self, entity: usize, at: [f32; 2]) {
        let body = Body {
            entity: EntityId(entity as u64),
            spot: spot(at),
            appeal: 0.0,
        };
        match self.bodies.get_mut(entity) {
            Some(known) => *known = body,
            None => self.bodies.push(body),
        }
    }

    fn remove(&mut self, _: usize) {
        unreachable!("no entity leaves during the measurement");
    }

    fn observe(&mut self, entity: usize, at: [f32; 2], radius: f32, hysteresis: f32) {
        let observer = Observer {
            entity: EntityId(entity as u64),
            spot: spot(at),
            reach: Reach { radius, hysteresis },
        };
        match self.observers.get_mut(entity) {
            Some(known) => *known = observer,
            None => self.observers.push(observer),
        }
    }

    fn forget(&mut self, _: usize) {
        unreachable!("no entity leaves during the measurement");
    }

    fn update(&mut self, events: &mut Vec<Event>) {
        let number = |entity: EntityId| u32::try_from(entity.0).unwrap_or(u32::MAX);
        self.interest.update(&self.bodies, &self.observers, |update| {
            events.push((
                number(update.observer),
                number(update.body),
                update.change == Change::Entered,
            ));
        });
    }
}
