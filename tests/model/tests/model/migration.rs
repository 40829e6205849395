//! The model of a migration: nothing fails with all rules.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::migration::{MigrationBounds, MigrationModel};
use annals_model::rule::Rules;

#[test]
fn a_realm_is_migrated_while_its_owner_is_taken_over_twice() {
    let faults = Faults {
        crashes: 1,
        tails: 1,
        ..Faults::default()
    }
    .deeper(annals_model::extra_faults());
    let bounds = MigrationBounds { takers: 2, faults };
    let found = search_with_progress(&MigrationModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("a_realm_is_migrated_while_its_owner_is_taken_over_twice", &found);
}
