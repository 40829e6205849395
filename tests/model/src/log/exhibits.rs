//! What each rule of the sections L, G, E and F prevents.

use super::{Acknowledged, LogBounds, LogModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{
    AlarmsAreTrue, Progress, ReplacedAppendsNothing, ReplacedShowsNothing, ShownIsNeverLost,
};
use crate::rule::{Rule, Rules};

const CRASH: Faults = Faults {
    crashes: 1,
    ..Faults::NONE
};
const TAIL: Faults = Faults {
    tails: 1,
    ..Faults::NONE
};
const HOLE: Faults = Faults {
    holes: 1,
    ..Faults::NONE
};

/// One holder, one taker, one input.
const PAIR: LogBounds = LogBounds {
    epochs: 2,
    inputs: 1,
    db: true,
    beats: false,
    faults: Faults::NONE,
};
/// The same bounds with two inputs.
const BUSY: LogBounds = LogBounds { inputs: 2, ..PAIR };
/// The same bounds while db is down.
const UNFOLDED: LogBounds = LogBounds { db: false, ..BUSY };
/// One holder without successors, two inputs.
const ALONE: LogBounds = LogBounds {
    epochs: 1,
    beats: true,
    ..BUSY
};
/// Two concurrent takers, while db is down.
const RIVALS: LogBounds = LogBounds {
    epochs: 3,
    db: false,
    ..PAIR
};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let log = |rule, invariant, bounds: LogBounds, faults| {
        let bounds = LogBounds { faults, ..bounds };
        let rules = Rules::ALL.without(rule);
        Exhibit::new(
            rule,
            invariant,
            LogModel {
                rules,
                acknowledged: Acknowledged::Log,
                bounds,
            },
        )
    };
    let damage = Faults { damages: 1, ..HOLE };
    let closed = Faults { disconnects: 1, ..TAIL };
    let tail_and_crash = Faults { crashes: 1, ..TAIL };
    vec![
        log(Rule::L2Chain, ShownIsNeverLost, PAIR, CRASH),
        log(Rule::L3OneInFlight, ShownIsNeverLost, ALONE, CRASH),
        log(Rule::L3Frozen, ShownIsNeverLost, ALONE, CRASH),
        log(Rule::L4Fence, ReplacedAppendsNothing, PAIR, Faults::NONE),
        log(Rule::L5Silence, ShownIsNeverLost, ALONE, CRASH),
        log(Rule::L5Replaced, ReplacedAppendsNothing, PAIR, Faults::NONE),
        log(Rule::L5EarlierTry, AlarmsAreTrue, UNFOLDED, TAIL),
        log(Rule::L6Kept, ShownIsNeverLost, ALONE, HOLE),
        log(Rule::L7Beat, Progress, ALONE, HOLE),
        log(Rule::G1LogBeforeShow, ShownIsNeverLost, ALONE, CRASH),
        log(Rule::G2Fresh, ReplacedShowsNothing, PAIR, Faults::NONE),
        log(Rule::G4Emptied, ShownIsNeverLost, PAIR, Faults::NONE),
        log(Rule::E1Replaced, ReplacedAppendsNothing, RIVALS, Faults::NONE),
        log(Rule::E3Recorded, ShownIsNeverLost, PAIR, TAIL),
        log(Rule::E3Granted, ReplacedShowsNothing, RIVALS, Faults::NONE),
        log(Rule::E3Cursor, ShownIsNeverLost, BUSY, Faults::NONE),
        log(Rule::E3SecondLook, ShownIsNeverLost, PAIR, TAIL),
        log(Rule::E3WholeChain, ShownIsNeverLost, PAIR, TAIL),
        log(Rule::E4GateAfterRecord, ShownIsNeverLost, BUSY, HOLE),
        log(Rule::E5Void, ShownIsNeverLost, BUSY, HOLE),
        log(Rule::E6Confirmed, ShownIsNeverLost, PAIR, TAIL),
        log(Rule::E6Reconnected, ShownIsNeverLost, PAIR, closed),
        log(Rule::E8AtGrant, ShownIsNeverLost, PAIR, closed),
        log(Rule::E8SameConnection, ShownIsNeverLost, PAIR, closed),
        log(Rule::F2OpeningsInFold, ShownIsNeverLost, BUSY, HOLE),
        log(Rule::F2OnlyRecorded, ShownIsNeverLost, PAIR, TAIL),
        log(Rule::F4Filled, Progress, ALONE, HOLE),
        log(Rule::F4Hash, ShownIsNeverLost, ALONE, damage),
        log(Rule::F6NewestStays, ReplacedAppendsNothing, PAIR, Faults::NONE),
        log(Rule::F6BehindArchive, ShownIsNeverLost, BUSY, CRASH),
        log(Rule::F6LookedUp, ShownIsNeverLost, PAIR, tail_and_crash),
    ]
}
