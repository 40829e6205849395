//! The model of retention: nothing fails with all rules.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::retention::RetentionModel;
use annals_model::rule::Rules;

#[test]
fn events_are_deleted_while_the_owner_is_taken_over() {
    let faults = Faults {
        crashes: 2,
        ..Faults::default()
    }
    .deeper(annals_model::extra_faults());
    let found = search_with_progress(&RetentionModel {
        rules: Rules::ALL,
        faults,
    });
    assert_exhausted("events_are_deleted_while_the_owner_is_taken_over", &found);
}
