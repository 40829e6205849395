//! What F14 prevents.

use super::RetentionModel;
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{ArchiveIsACut, LeavesAreProved, RecoveredAsWritten, RestoredAsWritten};
use crate::rule::{Rule, Rules};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let retention = |rule, invariant| {
        let model = RetentionModel {
            rules: Rules::ALL.without(rule),
            faults: Faults {
                crashes: 1,
                ..Faults::NONE
            },
        };
        Exhibit::new(rule, invariant, model)
    };
    vec![
        retention(Rule::F14FloorFirst, RestoredAsWritten),
        retention(Rule::F14TwoAreas, RestoredAsWritten),
        retention(Rule::F14Below, RestoredAsWritten),
        retention(Rule::F14Header, LeavesAreProved),
        retention(Rule::F14Calls, ArchiveIsACut),
        retention(Rule::F14Lasting, RestoredAsWritten),
        retention(Rule::F14CellParts, RestoredAsWritten),
        retention(Rule::F14BeginAgain, RecoveredAsWritten),
    ]
}
