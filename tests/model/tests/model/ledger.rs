//! The model of the ledger: nothing fails with all rules.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::ledger::{LedgerBounds, LedgerModel};
use annals_model::rule::Rules;

#[test]
fn two_dbs_fold_transfers_that_are_requested_twice() {
    let faults = Faults {
        crashes: 2,
        unknowns: 1,
        ..Faults::NONE
    }
    .deeper(annals_model::extra_faults());
    let bounds = LedgerBounds { batches: 3, faults };
    let found = search_with_progress(&LedgerModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("two_dbs_fold_transfers_that_are_requested_twice", &found);
}
