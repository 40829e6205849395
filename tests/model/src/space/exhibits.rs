//! What S1 to S4 prevent.

use super::{SpaceBounds, SpaceModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{LastWordStays, NothingAges, Progress, VoidStaysAway};
use crate::rule::{Rule, Rules};

const CALM: SpaceBounds = SpaceBounds {
    writes: 2,
    openings: 0,
    owners: 2,
    redrawn: 0,
    moves: 0,
    faults: Faults::NONE,
};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let without = |rule, invariant, bounds| {
        let rules = Rules::ALL.without(rule);
        Exhibit::new(rule, invariant, SpaceModel { rules, bounds })
    };
    let lossy = SpaceBounds {
        writes: 1,
        faults: Faults {
            drops: 1,
            ..Faults::NONE
        },
        ..CALM
    };
    let leaving = SpaceBounds { redrawn: 1, ..lossy };
    let moving = SpaceBounds { moves: 1, ..CALM };
    let opening = SpaceBounds { openings: 1, ..CALM };
    vec![
        without(Rule::S1Higher, NothingAges, CALM),
        without(Rule::S1GameTime, LastWordStays, CALM),
        without(Rule::S2Beat, Progress, lossy),
        without(Rule::S2Leaver, Progress, leaving),
        without(Rule::S3Names, NothingAges, moving),
        without(Rule::S4Lives, VoidStaysAway, opening),
    ]
}
