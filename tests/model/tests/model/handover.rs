//! The model of hand-over: nothing fails with all rules.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::handover::{HandoverBounds, HandoverModel};
use annals_model::rule::Rules;

fn assert_holds(test: &str, bounds: HandoverBounds) {
    let bounds = HandoverBounds {
        faults: bounds.faults.deeper(annals_model::extra_faults()),
        ..bounds
    };
    assert_exhausted(
        test,
        &search_with_progress(&HandoverModel {
            rules: Rules::ALL,
            bounds,
        }),
    );
}

#[test]
fn there_and_back_with_crashes_and_a_refusal() {
    let faults = Faults {
        crashes: 2,
        ..Faults::NONE
    };
    let bounds = HandoverBounds {
        owners: 2,
        moves: 2,
        ring: false,
        refusals: 1,
        faults,
    };
    assert_holds("there_and_back_with_crashes_and_a_refusal", bounds);
}

#[test]
fn there_and_back_with_a_crash_and_a_lost_message() {
    let faults = Faults {
        crashes: 1,
        drops: 1,
        ..Faults::NONE
    };
    let bounds = HandoverBounds {
        owners: 2,
        moves: 2,
        ring: false,
        refusals: 0,
        faults,
    };
    assert_holds("there_and_back_with_a_crash_and_a_lost_message", bounds);
}

#[test]
fn on_to_a_third_owner_with_a_crash() {
    let faults = Faults {
        crashes: 1,
        ..Faults::NONE
    };
    let bounds = HandoverBounds {
        owners: 3,
        moves: 2,
        ring: false,
        refusals: 0,
        faults,
    };
    assert_holds("on_to_a_third_owner_with_a_crash", bounds);
}

#[test]
fn around_three_owners() {
    let bounds = HandoverBounds {
        owners: 3,
        moves: 3,
        ring: true,
        refusals: 0,
        faults: Faults::NONE,
    };
    assert_holds("around_three_owners", bounds);
}
