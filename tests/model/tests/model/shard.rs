//! The model of several shards: the next activation begins with everything that the one before has logged.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::rule::Rules;
use annals_model::shard::{ShardBounds, ShardModel};

#[test]
fn an_activation_ends_on_three_shards() {
    let faults = Faults {
        crashes: 2,
        ..Faults::NONE
    }
    .deeper(annals_model::extra_faults());
    let found = search_with_progress(&ShardModel {
        rules: Rules::ALL,
        bounds: ShardBounds { faults },
    });
    assert_exhausted("an_activation_ends_on_three_shards", &found);
}
