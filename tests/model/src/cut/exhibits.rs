//! What the rules of links on cut logs prevent.

use super::{CutBounds, CutModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::Progress;
use crate::rule::{Rule, Rules};

const TWO_CALLS: CutBounds = CutBounds {
    calls: 2,
    cuts_of_sender: 0,
    cuts_of_receiver: 0,
    faults: Faults::NONE,
};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let cut = |rule, bounds| {
        let rules = Rules::ALL.without(rule);
        Exhibit::new(rule, Progress, CutModel { rules, bounds })
    };
    vec![
        cut(
            Rule::C2OldestSkips,
            CutBounds {
                cuts_of_receiver: 1,
                faults: Faults {
                    drops: 1,
                    ..Faults::NONE
                },
                ..TWO_CALLS
            },
        ),
        cut(
            Rule::C13Renumbered,
            CutBounds {
                cuts_of_sender: 1,
                ..TWO_CALLS
            },
        ),
    ]
}
