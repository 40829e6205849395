//! The model of teleports: real entities are in spaces of their owner, and behaviour receives each outcome.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::rule::Rules;
use annals_model::teleport::{TeleportBounds, TeleportModel};

#[test]
fn an_entity_is_teleported_and_refused() {
    let faults = Faults {
        crashes: 2,
        ..Faults::NONE
    }
    .deeper(annals_model::extra_faults());
    let bounds = TeleportBounds {
        wishes: 2,
        refusals: 2,
        faults,
    };
    let found = search_with_progress(&TeleportModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("an_entity_is_teleported_and_refused", &found);
}
