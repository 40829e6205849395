//! What V5 prevents.

use super::{AccountBounds, AccountModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{Progress, SeenIsTrue};
use crate::rule::{Rule, Rules};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let without = |rule, invariant, versions, crashes| {
        let faults = Faults {
            crashes,
            ..Faults::default()
        };
        let bounds = AccountBounds { versions, faults };
        let rules = Rules::ALL.without(rule);
        Exhibit::new(rule, invariant, AccountModel { rules, bounds })
    };
    vec![
        without(Rule::V5Restated, Progress, 1, 0),
        without(Rule::V5OneBatch, Progress, 1, 1),
        without(Rule::V5Newest, SeenIsTrue, 2, 0),
    ]
}
