//! The model of account views: a client sees values that the ledger had, and in the end the newest one.

use annals_model::account::{AccountBounds, AccountModel};
use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::rule::Rules;

#[test]
fn a_balance_changes_under_a_client() {
    let faults = Faults {
        crashes: 1,
        drops: 1,
        ..Faults::default()
    }
    .deeper(annals_model::extra_faults());
    let bounds = AccountBounds { versions: 3, faults };
    let found = search_with_progress(&AccountModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("a_balance_changes_under_a_client", &found);
}
