//! Balance: how long it takes, after a crowd has gathered in one place, until every cell has its share of the load
//! again, and how many hand-overs. The realm is the model of `services/director/tests/director/balance`: the director's
//! production code, and cells modelled as points and rules. Its seconds are simulated, so they are the same on every
//! machine.

#![allow(
    dead_code,
    reason = "the model has more than is measured here: it is that of the director's tests"
)]

#[path = "../../../services/director/tests/director/balance/dice.rs"]
mod dice;
#[path = "../../../services/director/tests/director/balance/realm.rs"]
mod realm;

use crate::Figure;
use realm::{Realm, SECOND, Shape};

/// The full size.
const ENTITIES: usize = 100_000;
const CELLS: usize = 64;

/// Share of entities that gather, the place, and the seconds until all are there.
const SHARE: f32 = 0.3;
const PLACE: [f32; 2] = [700.0, -900.0];
const RUNS: u64 = 60;

/// Radius of the crowd, metres.
const CROWD: f32 = 400.0;

/// Radius of a crowd that cannot be divided, metres, and its share of all entities.
const SPOT: f32 = 3.0;
const SPOT_SHARE: f32 = 0.05;

/// Maximum deviation of a cell from the average load.
const TARGET: f64 = 0.1;

/// Timeout for reaching balance, and time for which it must last, seconds.
const TIMEOUT: u64 = 600;
const LOOKS: u64 = 60;

/// Measures both crowds.
#[must_use]
pub fn run() -> Vec<Figure> {
    let mut realm = crowded(SHARE, CROWD);
    let there = realm.tick;
    let at_arrival = realm.worst();
    while realm.worst() > TARGET && realm.tick < there + TIMEOUT * SECOND {
        realm.run(1);
    }
    let seconds = (realm.tick - there) / SECOND;
    let handed = realm.handed;
    let mut worst: f64 = 0.0;
    for _ in 0..LOOKS {
        realm.run(1);
        worst = worst.max(realm.worst());
    }
    let later = realm.handed - handed;
    let spot = in_a_spot();
    let what = format!(
        "{ENTITIES} entities, {CELLS} cells, {} of them run to one place in {RUNS} s",
        SHARE
    );
    vec![
        Figure::alone(
            "balance_seconds",
            seconds as f64,
            "s",
            format!("{what}; simulated, from the last one's arrival until all cells are within 10 % (target: found)"),
        ),
        Figure::alone(
            "balance_at_arrival",
            at_arrival * 100.0,
            "%",
            "how far the worst cell was from the average when the last one arrived".to_owned(),
        ),
        Figure::alone(
            "balance_hand_overs",
            handed as f64,
            "entities",
            format!(
                "until then, walks across boundaries included; {} boundaries moved",
                realm.moves
            ),
        ),
        Figure::alone(
            "balance_worst_after",
            worst * 100.0,
            "%",
            format!("the worst cell in the {LOOKS} s after that, {later} hand-overs (target 10)"),
        ),
        spot,
    ]
}

fn crowded(share: f32, radius: f32) -> Realm {
    let mut realm = Realm::new(Shape {
        entities: ENTITIES,
        cells: CELLS,
        owners: CELLS,
        ..Shape::default()
    });
    realm.run(20);
    realm.crowd(share, PLACE, radius);
    realm.run(RUNS);
    realm
}

/// 5,000 within a few metres: more than the average of a cell, in an area that cannot be divided.
fn in_a_spot() -> Figure {
    let mut realm = crowded(SPOT_SHARE, SPOT);
    realm.run(120);
    let (moves, handed) = (realm.moves, realm.handed);
    realm.run(LOOKS);
    let note = format!(
        "5,000 within {SPOT} m cannot be cut: what is left on the worst cell after two minutes; in {LOOKS} s more {} boundaries moved, {} hand-overs",
        realm.moves - moves,
        realm.handed - handed
    );
    Figure::alone("balance_spot", realm.worst() * 100.0, "%", note)
}
