//! The model of planned hand-overs: the client that a draining process sends away is served where it was sent.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::moving::{MovingBounds, MovingModel};
use annals_model::rule::Rules;

#[test]
fn an_owner_is_handed_over_by_two_processes_that_drain() {
    let faults = Faults {
        crashes: 1,
        drops: 1,
        ..Faults::NONE
    }
    .deeper(annals_model::extra_faults());
    let bounds = MovingBounds {
        drains: true,
        lags: 1,
        directors: 1,
        faults,
    };
    let found = search_with_progress(&MovingModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("an_owner_is_handed_over_by_two_processes_that_drain", &found);
}
