//! Plans that once failed, shrunk to what made them fail, with what was wrong.

use annals_node::writer::Durability;
use annals_sim::{
    fault::Blow,
    plan::{Plan, Planned, Shape},
    run,
};

/// A director draws the map anew while a process does not hear it, and dies before it takes that process for dead. Its
/// successor must tell the map to whoever comes back with an older one. (Seeds 748 and 811: the simulated director told each
/// map once.)
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
    };
    // Which processes they strike is theirs to say.
    for dice in 0..2 {
        let strikes = [
            (3_624, Blow::CutFromDirector, 8_331_887_543_146_536_546 ^ dice),
            (6_428, Blow::CutFromDirector, 9_927_440_305_254_866_031),
            (7_823, Blow::CrashDirector, 16_607_634_921_055_084_195),
        ];
        let plan = Plan {
            seed: 811,
            shape,
            faults: strikes
                .map(|(at_ms, blow, dice)| Planned::Strike { at_ms, blow, dice })
                .into(),
            fills: true,
        };
        run(&plan).unwrap_or_else(|failure| panic!("dice {dice}: {failure}"));
    }
}
