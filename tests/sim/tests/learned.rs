//! Plans that once failed, shrunk to what made them fail, with what was wrong.

use annals_node::writer::Durability;
use annals_sim::{
    fault::Blow,
    plan::{Plan, Planned, Shape},
    run,
};

/// A director draws the map anew while a process does not hear it, and dies before it takes that process for dead. Its
/// successor must tell the map to whoever comes back with an older one. (Seeds 748 and 811, before there were processes that
/// hold the ledger's owner: the simulated director told each map once.)
#[test]
fn who_missed_a_map_is_told_it_later() {
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
    // The dice say whom a strike befalls and for how long: the first a cell, until just after it was taken for dead, so that it
    // gets another owner and the map is drawn anew; the second one of the two other cells, which does not hear of that.
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
            fills: true,
            crossing: None,
            visits: false,
            lets_go_ms: None,
        };
        run(&plan).unwrap_or_else(|failure| panic!("dice {dice}: {failure}"));
    }
}
