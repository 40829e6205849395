//! The model of a store that is restored to an older backup: nothing fails with all rules.

use annals_model::backup::BackupModel;
use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search;
use annals_model::faults::Faults;
use annals_model::rule::Rules;

#[test]
fn a_store_is_restored_beside_an_intact_log() {
    let faults = Faults {
        crashes: 2,
        ..Faults::default()
    }
    .deeper(annals_model::extra_faults());
    let found = search(&BackupModel {
        rules: Rules::ALL,
        faults,
    });
    assert_exhausted("a_store_is_restored_beside_an_intact_log", &found);
}
