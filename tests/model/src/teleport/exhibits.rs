//! What H9 prevents.

use super::{TeleportBounds, TeleportModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{HeldWhereItStands, Progress};
use crate::rule::{Rule, Rules};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let without = |rule, invariant, refusals, crashes| {
        let faults = Faults {
            crashes,
            ..Faults::NONE
        };
        let bounds = TeleportBounds {
            wishes: 1,
            refusals,
            faults,
        };
        let rules = Rules::ALL.without(rule);
        Exhibit::new(rule, invariant, TeleportModel { rules, bounds })
    };
    vec![
        without(Rule::H9OneInput, Progress, 0, 1),
        without(Rule::H9OldPlace, HeldWhereItStands, 1, 0),
        without(Rule::H9Wait, Progress, 1, 1),
        without(Rule::H9EndsWait, Progress, 0, 1),
    ]
}
