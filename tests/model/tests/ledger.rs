//! The model of the ledger: nothing fails with all rules.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::ledger::{LedgerBounds, LedgerModel};
use annals_model::rule::Rules;

const NONE: Faults = Faults {
    crashes: 0,
    tails: 0,
    holes: 0,
    repeats: 0,
    drops: 0,
    unknowns: 0,
    damages: 0,
};

#[test]
fn two_dbs_fold_transfers_that_are_asked_for_twice() {
    let faults = Faults {
        crashes: 2,
        unknowns: 1,
        ..NONE
    }
    .deeper(annals_model::extra_faults());
    let bounds = LedgerBounds { batches: 3, faults };
    let found = search_with_progress(&LedgerModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("two_dbs_fold_transfers_that_are_asked_for_twice", &found);
}
