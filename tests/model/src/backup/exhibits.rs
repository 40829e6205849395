//! What F17 prevents.

use super::BackupModel;
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::ShownIsNeverLost;
use crate::rule::{Rule, Rules};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let backup = |rule| {
        let model = BackupModel {
            rules: Rules::ALL.without(rule),
            faults: Faults {
                crashes: 2,
                ..Faults::NONE
            },
        };
        Exhibit::new(rule, ShownIsNeverLost, model)
    };
    vec![
        backup(Rule::F17Compared),
        backup(Rule::F17Openings),
        backup(Rule::F17Adopted),
    ]
}
