//! The model of calls: nothing fails with all rules.

use annals_model::calls::{CallsBounds, CallsModel};
use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::rule::Rules;

const PLAIN: CallsBounds = CallsBounds {
    calls: 2,
    moves_of_caller: 0,
    moves_of_receiver: 0,
    answers: false,
    caller_dies: false,
    receiver_dies: false,
    further_callers: 0,
    further_receivers: 0,
    faults: Faults {
        crashes: 1,
        drops: 1,
        ..Faults::NONE
    },
};

fn assert_holds(test: &str, bounds: CallsBounds) {
    let bounds = CallsBounds {
        faults: bounds.faults.deeper(annals_model::extra_faults()),
        ..bounds
    };
    assert_exhausted(
        test,
        &search_with_progress(&CallsModel {
            rules: Rules::ALL,
            bounds,
        }),
    );
}

#[test]
fn three_calls() {
    assert_holds("three_calls", CallsBounds { calls: 3, ..PLAIN });
}

#[test]
fn two_calls_and_their_answers() {
    assert_holds("two_calls_and_their_answers", CallsBounds { answers: true, ..PLAIN });
}

#[test]
fn both_ends_move() {
    assert_holds(
        "both_ends_move",
        CallsBounds {
            moves_of_caller: 1,
            moves_of_receiver: 1,
            ..PLAIN
        },
    );
}

#[test]
fn both_ends_move_during_a_call_that_is_answered() {
    let bounds = CallsBounds {
        calls: 1,
        answers: true,
        moves_of_caller: 1,
        moves_of_receiver: 1,
        ..PLAIN
    };
    assert_holds("both_ends_move_during_a_call_that_is_answered", bounds);
}

#[test]
fn the_receiver_moves_there_and_back() {
    assert_holds(
        "the_receiver_moves_there_and_back",
        CallsBounds {
            moves_of_receiver: 2,
            ..PLAIN
        },
    );
}

#[test]
fn the_caller_is_destroyed_on_its_way() {
    assert_holds(
        "the_caller_is_destroyed_on_its_way",
        CallsBounds {
            caller_dies: true,
            moves_of_caller: 1,
            ..PLAIN
        },
    );
}

#[test]
fn the_receiver_is_destroyed_on_its_way() {
    let bounds = CallsBounds {
        receiver_dies: true,
        moves_of_receiver: 1,
        ..PLAIN
    };
    assert_holds("the_receiver_is_destroyed_on_its_way", bounds);
}

#[test]
fn the_caller_has_several_parts() {
    let bounds = CallsBounds {
        calls: 3,
        caller_dies: true,
        further_callers: 2,
        ..PLAIN
    };
    assert_holds("the_caller_has_several_parts", bounds);
}

#[test]
fn the_receiver_has_several_parts() {
    let bounds = CallsBounds {
        receiver_dies: true,
        further_receivers: 2,
        ..PLAIN
    };
    assert_holds("the_receiver_has_several_parts", bounds);
}

#[test]
fn the_answering_receiver_has_several_parts() {
    let bounds = CallsBounds {
        calls: 1,
        answers: true,
        receiver_dies: true,
        further_receivers: 1,
        ..PLAIN
    };
    assert_holds("the_answering_receiver_has_several_parts", bounds);
}
