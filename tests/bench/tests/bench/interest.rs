//! Tests the baselines of areas of interest against the oracle of the `Interest` tests.

use std::collections::BTreeSet;

use crate::histories::{FEW, History, Oracle};
use annals_bench::interest::{Baseline, Event, grid::Grid, list::List};
use annals_ids::EntityId;
use annals_space::{Body, Observer};

const SEEDS: u64 = 20;
const ROUNDS: usize = 200;

/// Drives a baseline as `Interest` is driven: with the current positions.
struct Driven<B> {
    baseline: B,
    bodies: BTreeSet<EntityId>,
    observers: BTreeSet<EntityId>,
    /// Visible pairs.
    pairs: BTreeSet<(u32, u32)>,
}

impl<B: Baseline> Driven<B> {
    fn new(baseline: B) -> Self {
        Self {
            baseline,
            bodies: BTreeSet::new(),
            observers: BTreeSet::new(),
            pairs: BTreeSet::new(),
        }
    }

    fn update(&mut self, bodies: &[Body], observers: &[Observer]) {
        let here: BTreeSet<EntityId> = bodies.iter().map(|body| body.entity).collect();
        let looking: BTreeSet<EntityId> = observers.iter().map(|observer| observer.entity).collect();
        for gone in self.observers.difference(&looking) {
            self.baseline.forget(index(*gone));
            self.pairs.retain(|(observer, _)| u64::from(*observer) != gone.0);
        }
        for gone in self.bodies.difference(&here) {
            self.baseline.remove(index(*gone));
        }
        for body in bodies {
            let at = body.spot.position;
            self.baseline.place(index(body.entity), [at.x, at.z]);
        }
        for observer in observers {
            let (at, reach) = (observer.spot.position, observer.reach);
            let entity = index(observer.entity);
            self.baseline
                .observe(entity, [at.x, at.z], reach.radius, reach.hysteresis);
        }
        (self.bodies, self.observers) = (here, looking);
        let mut events: Vec<Event> = Vec::new();
        self.baseline.update(&mut events);
        for (observer, body, came) in events {
            let changed = match came {
                true => self.pairs.insert((observer, body)),
                false => self.pairs.remove(&(observer, body)),
            };
            assert!(changed, "who comes was not there, and who goes was");
        }
    }
}

fn index(entity: EntityId) -> usize {
    usize::try_from(entity.0).expect("there are few")
}

fn equals_the_oracle<B: Baseline>(baseline: impl Fn() -> B) {
    for seed in 0..SEEDS {
        let (mut driven, mut oracle) = (Driven::new(baseline()), Oracle::default());
        let mut history = History::new(seed, FEW, false);
        for round in 0..ROUNDS {
            let (bodies, observers) = history.next();
            driven.update(&bodies, &observers);
            oracle.update(&bodies, &observers);
            let seen = oracle.seen.iter();
            let expected = seen.flat_map(|(observer, seen)| seen.iter().map(|body| (*observer, *body)));
            let found = driven.pairs.iter();
            let found = found.map(|(observer, body)| (EntityId((*observer).into()), EntityId((*body).into())));
            assert!(found.eq(expected), "seed {seed}, round {round}");
        }
    }
}

#[test]
fn the_list_equals_the_oracle() {
    equals_the_oracle(|| List::new(FEW.into()));
}

#[test]
fn the_grid_equals_the_oracle() {
    for side in [7.0, 100.0] {
        equals_the_oracle(|| Grid::new(FEW.into(), 600.0, side));
    }
}
