//! What F10 to F13 and F19 prevent.

use super::{TradeBounds, TradeModel};
use crate::exhibit::Exhibit;
use crate::faults::Faults;
use crate::invariant::Invariant::{DeletedHoldNothing, HeldInOneView, TradedAsAccepted, UnitsHaveOneOwner};
use crate::rule::{Rule, Rules};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let trade = |rule, invariant, orders, aside| {
        let bounds = TradeBounds {
            orders,
            aside,
            deletes: invariant == DeletedHoldNothing,
            faults: Faults::default(),
        };
        let rules = Rules::ALL.without(rule);
        Exhibit::new(rule, invariant, TradeModel { rules, bounds })
    };
    vec![
        trade(Rule::F10Escrow, UnitsHaveOneOwner, [2, 1], true),
        trade(Rule::F11Version, TradedAsAccepted, [2, 2], false),
        trade(Rule::F12Cleared, TradedAsAccepted, [2, 2], false),
        trade(Rule::F13PostAfterResult, HeldInOneView, [2, 1], true),
        trade(Rule::F19Empty, DeletedHoldNothing, [2, 2], true),
        trade(Rule::F19Closed, DeletedHoldNothing, [2, 2], true),
    ]
}
