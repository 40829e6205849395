//! The tick: its cost per entity as a cell grows, at constant density.
//!
//! One production cell core runs in isolation ([`crowd`]): its log acknowledges at once, and the bench advances time.
//! Everything the core does within a tick period counts: clients' movements, timers and behaviour, the tick with its
//! areas of interest and views, the closing of batches, and the gate. Measured is processor time.

mod crowd;
pub mod unwatched;
pub mod watched;

use std::{hint::black_box, time::Duration};

use crate::Figure;
use crowd::{Crowd, Layout, SIGHT, TICK, WITNESS_EVERY};

/// Measured sizes; the others are compared with the first.
const SIZES: [usize; 5] = [1_000, 2_000, 4_000, 8_000, 16_000];

/// Warm-up ticks: by then every entity's position was logged, and every client's view has settled.
const WARM_UP: usize = 40;

/// Entities times ticks measured at each size, so that each takes about as long.
const MEASURED: usize = 400_000;

/// The same when allocations are counted, which are identical in each run.
const COUNTED: usize = 40_000;

/// Ticks of the bare loop, of which the shortest counts.
const BARE_TICKS: usize = 50;

/// Measurements of each size, in turn; the minimum counts, since other load on the machine only adds time.
const TURNS: usize = 2;

/// Measures all sizes, and the largest against a lower bound.
///
/// # Panics
/// If the cell does not behave as expected.
#[must_use]
pub fn run() -> Vec<Figure> {
    let mut measured: Vec<Option<Cost>> = SIZES.map(|_| None).into();
    for _ in 0..TURNS {
        for (size, known) in SIZES.iter().zip(&mut measured) {
            let cost = measure(*size);
            if known.as_ref().is_none_or(|known| cost.per_entity < known.per_entity) {
                *known = Some(cost);
            }
        }
    }
    let costs: Vec<Cost> = measured.into_iter().flatten().collect();
    let first = costs[0].per_entity;
    let mut figures: Vec<Figure> = SIZES
        .iter()
        .zip(&costs)
        .map(|(size, cost)| row(*size, cost, first))
        .collect();
    let (largest, cost) = (SIZES[SIZES.len() - 1], &costs[SIZES.len() - 1]);
    figures.push(against_limit(largest, cost));
    figures
}

/// Cost of one size.
struct Cost {
    /// Microseconds per entity and tick.
    per_entity: f64,
    /// Milliseconds of a whole tick period, and of the longest step within one, which is the tick itself.
    period: f64,
    longest: f64,
    /// Bytes sent and logged per tick period, and entities in a client's view.
    sent: f64,
    logged: f64,
    seen: f64,
}

fn measure(size: usize) -> Cost {
    let mut crowd = Crowd::new(&Layout::of(size), || 0);
    for _ in 0..WARM_UP {
        crowd.tick();
    }
    crowd.forget();
    let ticks = MEASURED / size;
    for _ in 0..ticks {
        crowd.tick();
    }
    let (spent, per_tick) = (crowd.spent(), ticks as f64);
    Cost {
        per_entity: spent.all.as_secs_f64() * 1e6 / per_tick / size as f64,
        period: spent.all.as_secs_f64() * 1e3 / per_tick,
        longest: spent.longest.as_secs_f64() * 1e3,
        sent: spent.sent as f64 / per_tick,
        logged: spent.logged as f64 / per_tick,
        seen: spent.moves as f64 / per_tick / (size / WITNESS_EVERY) as f64,
    }
}

/// Allocations of the core per entity and tick in a crowd of that size, given a counter of all allocations.
#[must_use]
pub fn allocations(size: usize, counter: fn() -> usize) -> f64 {
    let mut crowd = Crowd::new(&Layout::of(size), counter);
    for _ in 0..WARM_UP {
        crowd.tick();
    }
    crowd.forget();
    let ticks = COUNTED / size;
    for _ in 0..ticks {
        crowd.tick();
    }
    crowd.spent().allocations as f64 / ticks as f64 / size as f64
}

fn row(size: usize, cost: &Cost, first: f64) -> Figure {
    Figure::against(
        &format!("tick_cost_per_entity_{size}"),
        cost.per_entity,
        first,
        "us",
        format!(
            "all move at every tick, 1 in {WITNESS_EVERY} has a client, which sees {:.0}; {:.1} ms of {} ms, longest step {:.1} ms, \
             {:.0} kB sent and {:.0} kB logged per tick; baseline: {} entities, so 1 is linear",
            cost.seen,
            cost.period,
            TICK.as_millis(),
            cost.longest,
            cost.sent * 1e-3,
            cost.logged * 1e-3,
            SIZES[0]
        ),
    )
}

/// The largest crowd against a loop over positions only.
fn against_limit(size: usize, cost: &Cost) -> Figure {
    let (bare, seen) = bare(size);
    Figure::against(
        "tick_cost_vs_bare_loop",
        cost.per_entity,
        bare,
        "us",
        format!(
            "{size} entities; baseline: a loop over flat arrays moves them, puts them into squares, and copies id and place of \
             what each client sees ({seen:.0}) into a buffer: no log, no gate, no histories, no frames"
        ),
    )
}

/// Microseconds per entity and tick of the lower bound, and entities in a client's view.
fn bare(size: usize) -> (f64, f64) {
    let Layout {
        mut homes,
        clients,
        side,
    } = Layout::of(size);
    let places = &mut homes;
    let mut squares = Squares::new(side);
    let (mut out, mut copied) = (Vec::new(), 0);
    let mut least = Duration::MAX;
    for _ in 0..BARE_TICKS {
        let began = crate::busy();
        places.iter_mut().for_each(crowd::step);
        squares.fill(places);
        out.clear();
        copied = clients.iter().map(|own| squares.look(places, *own, &mut out)).sum();
        black_box(&out);
        least = least.min(crate::busy() - began);
    }
    let seen = copied as f64 / clients.len() as f64;
    (least.as_secs_f64() * 1e6 / size as f64, seen)
}

/// Indices of entities by square; the side of a square is a client's AoI radius.
struct Squares {
    across: usize,
    /// Start of each square's entities in `sorted`.
    begins: Vec<usize>,
    sorted: Vec<usize>,
}

impl Squares {
    fn new(side: f32) -> Self {
        Self {
            across: index(side) + 1,
            begins: Vec::new(),
            sorted: Vec::new(),
        }
    }

    fn fill(&mut self, places: &[[f32; 3]]) {
        self.begins.clear();
        self.begins.resize(self.across * self.across + 1, 0);
        for place in places {
            self.begins[square(self.across, place)] += 1;
        }
        let mut before = 0;
        for begins in &mut self.begins {
            before += *begins;
            *begins = before;
        }
        self.sorted.resize(places.len(), 0);
        for (entity, place) in places.iter().enumerate() {
            let begins = &mut self.begins[square(self.across, place)];
            *begins -= 1;
            self.sorted[*begins] = entity;
        }
    }

    /// Copies the positions in view of one entity; returns their number.
    fn look(&self, places: &[[f32; 3]], own: usize, out: &mut Vec<u8>) -> usize {
        let [x, z, _] = places[own];
        let mut seen = 0;
        for row in index(z).saturating_sub(1)..=(index(z) + 1).min(self.across - 1) {
            let first = row * self.across + index(x).saturating_sub(1);
            let last = row * self.across + (index(x) + 1).min(self.across - 1);
            for &entity in &self.sorted[self.begins[first]..self.begins[last + 1]] {
                let place = &places[entity];
                if entity != own && (place[0] - x).abs() <= SIGHT && (place[1] - z).abs() <= SIGHT {
                    out.extend((entity as u64).to_le_bytes());
                    place.iter().for_each(|axis| out.extend(axis.to_le_bytes()));
                    seen += 1;
                }
            }
        }
        seen
    }
}

fn square(across: usize, place: &[f32; 3]) -> usize {
    index(place[1]) * across + index(place[0])
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions in the bench are small and positive"
)]
fn index(axis: f32) -> usize {
    (axis / SIGHT) as usize
}

#[cfg(test)]
mod tests {
    use annals_space::PriorityQueue;

    use super::*;

    #[test]
    fn the_core_shows_the_same_entities_as_the_bare_loop() {
        let size = 500;
        let mut crowd = Crowd::new(&Layout::of(size), || 0);
        for _ in 0..WARM_UP {
            crowd.tick();
        }
        crowd.forget();
        let ticks = 20;
        (0..ticks).for_each(|_| crowd.tick());
        let spent = crowd.spent();
        let (_, bare) = bare(size);
        let clients = (size / WITNESS_EVERY) as f64;
        let (seen, expected) = (spent.moves as f64 / ticks as f64 / clients, turns(size) / clients);
        assert!(bare > 40.0, "{bare} in view");
        assert!(
            (seen / expected - 1.0).abs() < 0.2,
            "{seen} are shown, {expected} have a turn, {bare} are in view"
        );
        assert!(spent.logged > 0 && spent.sent > 0);
    }

    /// Updates due per tick while the byte budget is not exhausted: each entity in view is due once in as many ticks as
    /// the cap divided by the delta. Summed over all clients.
    fn turns(size: usize) -> f64 {
        let Layout { homes, clients, .. } = Layout::of(size);
        let turn = |own: &[f32; 3], other: &[f32; 3]| {
            let (dx, dz) = ((own[0] - other[0]).abs(), (own[1] - other[1]).abs());
            let delta = f64::from(dx.hypot(dz)) * 0.2 + 1.0;
            if dx.max(dz) <= SIGHT {
                (PriorityQueue::CAP / delta).min(1.0)
            } else {
                0.0
            }
        };
        let of = |own: &usize| -> f64 { homes.iter().map(|other| turn(&homes[*own], other)).sum::<f64>() - 1.0 };
        clients.iter().map(of).sum()
    }
}
