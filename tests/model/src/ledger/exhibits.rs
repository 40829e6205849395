//! What F1, F3 and F7 prevent.

use super::{LedgerBounds, LedgerModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{ChainIsDense, LedgerSaysOnce, Progress, UnitsHaveOneOwner};
use crate::rule::{Rule, Rules};

const CRASH: Faults = Faults {
    crashes: 1,
    ..Faults::NONE
};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let ledger = |rule, invariant, batches| {
        let bounds = LedgerBounds { batches, faults: CRASH };
        Exhibit::new(
            rule,
            invariant,
            LedgerModel {
                rules: Rules::ALL.without(rule),
                bounds,
            },
        )
    };
    vec![
        ledger(Rule::F1Conditional, ChainIsDense, 1),
        ledger(Rule::F3OneTransaction, ChainIsDense, 1),
        ledger(Rule::F7Keyed, UnitsHaveOneOwner, 3),
        ledger(Rule::F7OutboxInFold, Progress, 1),
        ledger(Rule::F7TakenOnce, LedgerSaysOnce, 1),
    ]
}
