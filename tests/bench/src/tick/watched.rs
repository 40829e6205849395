//! What a cell spends on an operator who watches its map: an overview per second, beside its ticks.

use std::time::Duration;

use annals_wire::{
    control::encode,
    overview::{OverviewRequest, WireOverview},
};

use super::crowd::{Crowd, Layout, SPACE, STONE, TICK, WITNESS_EVERY};
use crate::Figure;

/// Sizes of cells in which all entities move, and of one in which none does and nobody sees.
const PLAYED: [usize; 2] = [1_000, 4_000];
const RESTING: usize = 20_000;

/// Warm-up ticks, measured ticks, and measured overviews.
const WARM_UP: usize = 40;
const TICKS: usize = 100;
const OVERVIEWS: usize = 100;

/// Ticks per second.
const PER_SECOND: u128 = Duration::from_secs(1).as_millis() / TICK.as_millis();

/// Maximum share of its ticks that a cell spends on a map.
const TARGET: f64 = 0.01;

/// Measures all sizes.
///
/// # Panics
/// If the cell does not behave as expected.
#[must_use]
pub fn run() -> Vec<Figure> {
    let mut figures: Vec<Figure> = PLAYED
        .iter()
        .map(|size| {
            let mut crowd = Crowd::new(&Layout::of(*size), || 0);
            let about = format!("all move, 1 in {WITNESS_EVERY} has a client");
            measure(&format!("watched_map_{size}"), &mut crowd, &about)
        })
        .collect();
    let mut crowd = Crowd::unwatched(RESTING, STONE);
    figures.push(measure(
        "watched_map_resting",
        &mut crowd,
        "20,000 entities, none moves, no client",
    ));
    figures
}

fn measure(name: &str, crowd: &mut Crowd, about: &str) -> Figure {
    for _ in 0..WARM_UP {
        crowd.tick();
    }
    crowd.forget();
    for _ in 0..TICKS {
        crowd.tick();
    }
    let ticking = crowd.spent().all.as_secs_f64() / TICKS as f64 * PER_SECOND as f64;
    let asked = OverviewRequest::of_space(SPACE);
    let (mut bytes, began) = (0, crate::busy());
    for _ in 0..OVERVIEWS {
        let overview = crowd.overview(&asked).expect("a cell has one");
        assert_eq!(
            overview.entities,
            crowd.state().entities.len() as u64,
            "all are in the space"
        );
        bytes = encode(&WireOverview::from(&overview)).len();
    }
    let overview = (crate::busy() - began).as_secs_f64() / OVERVIEWS as f64;
    Figure::against(
        name,
        overview * 1e6,
        ticking * 1e6,
        "us",
        format!(
            "{about}: {:.2} % of its ticks; an overview of {bytes} B; baseline: the ticks of a second; target {:.0} %",
            overview / ticking * 100.0,
            TARGET * 100.0
        ),
    )
}
