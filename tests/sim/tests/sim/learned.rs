//! Plans that once failed, shrunk to the faults that matter, with the defect that each found.

use annals_node::writer::Durability;
use annals_sim::{
    fault::Blow,
    plan::{Plan, Planned, Shape},
    run,
};

/// A director draws a new map while it has lost contact with a process, and crashes before it declares that process
/// dead. Its successor must send the map to a process that returns with an older one. (Seeds 748 and 811, before there
/// were processes that hold the ledger's owner: the simulated director sent each map once.)
#[test]
fn a_process_that_missed_a_map_receives_it_from_the_next_director() {
    let shape = Shape {
        bases: 1,
        cells: 3,
        ledgers: 1,
        clients: 7,
        play_ms: 10_101,
        settle_ms: 45_000,
        durability: Durability::Log,
        append_us: 40_000,
        patience_us: 120_000,
        look_us: 100_000,
        trim_every: 1,
        beat_us: 300_000,
        pace_us: 60_000,
        sight: 60.0,
        downstream: None,
    };
    // The dice select the target of a strike and its duration: the first hits a cell until just after it is declared
    // dead, so that it gets another owner and the map is drawn again; the second hits one of the two other cells, which
    // does not receive that map.
    for dice in [3_597, 3_176] {
        let strikes = [
            (3_624, Blow::CutFromDirector, 8_331_887_543_146_536_546),
            (6_428, Blow::CutFromDirector, dice),
            (7_823, Blow::CrashDirector, 16_607_634_921_055_084_195),
        ];
        let plan = Plan {
            seed: 811,
            shape,
            faults: strikes
                .map(|(at_ms, blow, dice)| Planned::Strike { at_ms, blow, dice })
                .into(),
            shards: 1,
            fills: true,
            crossing: None,
            visits: false,
            lets_go_ms: None,
        };
        run(&plan).unwrap_or_else(|failure| panic!("dice {dice}: {failure}"));
    }
}

/// Seed 12 with two shards: an entity walks out of a client's view, and is back where it was when its holder dies, since
/// that place was not in the log. The checker must know of the place, although no sample was due.
#[test]
fn a_place_that_is_lost_with_its_holder_was_shown() {
    let plan = Plan {
        shards: 2,
        ..Plan::of(12)
    };
    run(&plan).unwrap_or_else(|failure| panic!("{failure}"));
}

/// Seed 93: an entity ended far from its home, and its last calls were resent after the home had learned it. The home
/// answered callers with the route that these calls restored, and not that the entity is gone.
#[test]
fn a_home_answers_that_an_entity_is_gone_after_late_calls() {
    run(&Plan::of(93)).unwrap_or_else(|failure| panic!("{failure}"));
}
