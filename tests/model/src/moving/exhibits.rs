//! What D9 prevents.

use super::{MovingBounds, MovingModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::MovedIsServed;
use crate::rule::{Rule, Rules};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let without = |rule, drains, lags, directors| {
        let bounds = MovingBounds {
            drains,
            lags,
            directors,
            faults: Faults::NONE,
        };
        let rules = Rules::ALL.without(rule);
        Exhibit::new(rule, MovedIsServed, MovingModel { rules, bounds })
    };
    vec![
        without(Rule::D9Ready, false, 0, 0),
        without(Rule::D9Granted, false, 0, 0),
        without(Rule::D9Keeps, true, 0, 1),
        without(Rule::D9Found, false, 0, 1),
        without(Rule::D9Waits, false, 0, 1),
        without(Rule::D9WaitsToGrant, false, 0, 1),
        without(Rule::D9Behind, true, 1, 0),
    ]
}
