//! What C20 prevents.

use super::{GivingBounds, GivingModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::ClientIsAdmitted;
use crate::rule::{Rule, Rules};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let without = |rule, renewals, pauses| {
        let bounds = GivingBounds {
            renewals,
            pauses,
            refusals: 0,
            faults: Faults::NONE,
        };
        let rules = Rules::ALL.without(rule);
        Exhibit::new(rule, ClientIsAdmitted, GivingModel { rules, bounds })
    };
    vec![
        without(Rule::C20Keeps, 0, 0),
        without(Rule::C20Token, 1, 0),
        without(Rule::C20InTime, 0, 1),
    ]
}
