//! The model of cut logs: nothing fails with all rules.

use annals_model::cut::{CutBounds, CutModel};
use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::rule::Rules;

const FAULTS: Faults = Faults {
    crashes: 1,
    drops: 1,
    ..Faults::NONE
};

fn assert_holds(test: &str, bounds: CutBounds) {
    let bounds = CutBounds {
        faults: bounds.faults.deeper(annals_model::extra_faults()),
        ..bounds
    };
    assert_exhausted(
        test,
        &search_with_progress(&CutModel {
            rules: Rules::ALL,
            bounds,
        }),
    );
}

#[test]
fn the_receivers_log_is_cut_twice() {
    let bounds = CutBounds {
        calls: 3,
        cuts_of_sender: 0,
        cuts_of_receiver: 2,
        faults: FAULTS,
    };
    assert_holds("the_receivers_log_is_cut_twice", bounds);
}

#[test]
fn the_senders_log_is_cut_twice() {
    let bounds = CutBounds {
        calls: 3,
        cuts_of_sender: 2,
        cuts_of_receiver: 0,
        faults: FAULTS,
    };
    assert_holds("the_senders_log_is_cut_twice", bounds);
}

#[test]
fn both_logs_are_cut() {
    let bounds = CutBounds {
        calls: 3,
        cuts_of_sender: 1,
        cuts_of_receiver: 1,
        faults: FAULTS,
    };
    assert_holds("both_logs_are_cut", bounds);
}
