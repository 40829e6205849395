//! The model of clients that are given to another owner: one of the two owners admits the client.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::giving::{GivingBounds, GivingModel};
use annals_model::rule::Rules;

#[test]
fn a_client_is_given_away_and_refused() {
    let faults = Faults {
        crashes: 2,
        ..Faults::NONE
    }
    .deeper(annals_model::extra_faults());
    let bounds = GivingBounds {
        renewals: 2,
        pauses: 2,
        refusals: 1,
        faults,
    };
    let found = search_with_progress(&GivingModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("a_client_is_given_away_and_refused", &found);
}
