//! What F1 prevents in the order of the archive; and what F5 does not guarantee when the log loses a message.

use super::{OrderBounds, OrderModel};
use crate::exhibit::Exhibit;
use crate::explorer::{Search, search};
use crate::faults::Faults;
use crate::invariant::Invariant::ArchiveIsACut;
use crate::rule::{Rule, Rules};

/// One exhibit for each rule of this model.
pub fn exhibits() -> Vec<Exhibit> {
    let bounds = OrderBounds {
        batches: 1,
        losses_excuse: true,
        faults: Faults::NONE,
    };
    let rules = Rules::ALL.without(Rule::F1InOrder);
    vec![Exhibit::new(
        Rule::F1InOrder,
        ArchiveIsACut,
        OrderModel { rules, bounds },
    )]
}

/// Searches for a prefix of the archive that is no cut although no hole is known, after one loss: the reason for the
/// exception that F5 makes for resent batches.
pub fn cut_broken_by_a_loss() -> Search {
    let bounds = OrderBounds {
        batches: 1,
        losses_excuse: false,
        faults: Faults {
            tails: 1,
            ..Faults::NONE
        },
    };
    search(&OrderModel {
        rules: Rules::ALL,
        bounds,
    })
}
