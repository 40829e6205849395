//! The model of hand-over: nothing fails with all rules, and something does without any one of them.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::handover::exhibits::exhibits;
use annals_model::handover::{HandoverBounds, HandoverModel};
use annals_model::rule::{Rule, Rules};

const NONE: Faults = Faults {
    crashes: 0,
    tails: 0,
    holes: 0,
    repeats: 0,
    drops: 0,
    unknowns: 0,
    damages: 0,
};

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
    let faults = Faults { crashes: 2, ..NONE };
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
        ..NONE
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
    let faults = Faults { crashes: 1, ..NONE };
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
        faults: NONE,
    };
    assert_holds("around_three_owners", bounds);
}

fn fails_without(rule: Rule) {
    let exhibit = exhibits()
        .into_iter()
        .find(|exhibit| exhibit.rule == rule)
        .expect("every rule here has an exhibit");
    exhibit.assert_documented();
}

macro_rules! fails_without {
    ($($name:ident: $rule:ident),+ $(,)?) => {$(
        #[test]
        fn $name() {
            fails_without(Rule::$rule);
        }
    )+};
}

fails_without! {
    h1_logged: H1Logged,
    h1_one_input: H1OneInput,
    h2_resent: H2Resent,
    h3_answer_is_call: H3AnswerIsCall,
    h3_once: H3Once,
    h4_that_one: H4ThatOne,
    h4_returned: H4Returned,
    h4_only_refused: H4OnlyRefused,
    h6_ordered: H6Ordered,
}
