//! What V1 to V3, and E7, prevent.

use super::{ViewBounds, ViewModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{Progress, SeenIsTrue};
use crate::rule::{Rule, Rules};

const DROP: Faults = Faults {
    drops: 1,
    ..Faults::NONE
};

const STILL: ViewBounds = ViewBounds {
    events: 2,
    turns: 0,
    moves: 0,
    takeovers: 0,
    trims: false,
    faults: Faults::NONE,
};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let view = |rule, invariant, bounds: ViewBounds, faults| {
        let bounds = ViewBounds { faults, ..bounds };
        Exhibit::new(
            rule,
            invariant,
            ViewModel {
                rules: Rules::ALL.without(rule),
                bounds,
            },
        )
    };
    let moving = ViewBounds { moves: 1, ..STILL };
    let turning = ViewBounds {
        turns: 1,
        events: 1,
        ..STILL
    };
    let trimming = ViewBounds { trims: true, ..STILL };
    let taken_over = ViewBounds {
        takeovers: 1,
        ..turning
    };
    vec![
        view(Rule::V1Continued, Progress, moving, Faults::NONE),
        view(Rule::V2Gap, SeenIsTrue, STILL, Faults::NONE),
        view(Rule::V2Beat, Progress, STILL, DROP),
        view(Rule::V3Frames, Progress, turning, DROP),
        view(Rule::V3Beat, Progress, turning, DROP),
        view(Rule::V3Stamps, Progress, STILL, DROP),
        view(Rule::V3Refresh, SeenIsTrue, trimming, Faults::NONE),
        view(Rule::E7LowerDropped, Progress, taken_over, Faults::NONE),
    ]
}
