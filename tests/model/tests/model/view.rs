//! The model of views: nothing fails with all rules, nor without one that is a second line.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::rule::{Rule, Rules};
use annals_model::view::{ViewBounds, ViewModel};

const PLAIN: ViewBounds = ViewBounds {
    events: 2,
    turns: 1,
    moves: 1,
    takeovers: 0,
    trims: false,
    faults: Faults {
        drops: 1,
        ..Faults::NONE
    },
};

fn assert_holds(test: &str, rules: Rules, bounds: ViewBounds) {
    let bounds = ViewBounds {
        faults: bounds.faults.deeper(annals_model::extra_faults()),
        ..bounds
    };
    assert_exhausted(test, &search_with_progress(&ViewModel { rules, bounds }));
}

#[test]
fn lost_frames_and_a_new_holder() {
    assert_holds("lost_frames_and_a_new_holder", Rules::ALL, PLAIN);
}

#[test]
fn a_witness_is_taken_over() {
    assert_holds(
        "a_witness_is_taken_over",
        Rules::ALL,
        ViewBounds { takeovers: 1, ..PLAIN },
    );
}

#[test]
fn three_events_and_a_trimmed_history() {
    assert_holds(
        "three_events_and_a_trimmed_history",
        Rules::ALL,
        ViewBounds {
            events: 3,
            turns: 0,
            trims: true,
            ..PLAIN
        },
    );
}

#[test]
fn away_and_back_during_a_take_over() {
    assert_holds(
        "away_and_back_during_a_take_over",
        Rules::ALL,
        ViewBounds {
            turns: 2,
            takeovers: 1,
            ..PLAIN
        },
    );
}

/// `from` in an update is a second line behind the numbers of frames: without it nothing fails.
#[test]
fn v3_from_is_a_second_line() {
    let bounds = ViewBounds {
        takeovers: 1,
        trims: true,
        ..PLAIN
    };
    assert_holds("v3_from_is_a_second_line", Rules::ALL.without(Rule::V3From), bounds);
}
