//! What M1 to M5 and M7 prevent.

use super::{MigrationBounds, MigrationModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{CallsTakeEffectOnce, Progress, ReadAsWritten};
use crate::rule::{Rule, Rules};

const FAULTS: Faults = Faults {
    crashes: 1,
    tails: 1,
    ..Faults::NONE
};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let migration = |rule, invariant| {
        let bounds = MigrationBounds {
            takers: 2,
            faults: FAULTS,
        };
        let rules = Rules::ALL.without(rule);
        Exhibit::new(rule, invariant, MigrationModel { rules, bounds })
    };
    vec![
        migration(Rule::M1WithItsOpen, ReadAsWritten),
        migration(Rule::M2OneTransaction, Progress),
        migration(Rule::M2PresentOnly, ReadAsWritten),
        migration(Rule::M3TakerConverts, ReadAsWritten),
        migration(Rule::M3FoldConverts, ReadAsWritten),
        migration(Rule::M3OnceItCounts, ReadAsWritten),
        migration(Rule::M4NumbersStay, CallsTakeEffectOnce),
        migration(Rule::M5Generation, ReadAsWritten),
        migration(Rule::M5PresentRows, ReadAsWritten),
        migration(Rule::M7Named, ReadAsWritten),
    ]
}
