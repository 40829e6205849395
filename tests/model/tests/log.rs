//! The model of one log: nothing fails with all rules, and something does without any one of them.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::{search, search_with_progress};
use annals_model::faults::Faults;
use annals_model::log::exhibits::exhibits;
use annals_model::log::{Acknowledged, LogBounds, LogModel};
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

fn model(acknowledged: Acknowledged, bounds: LogBounds) -> LogModel {
    let faults = bounds.faults.deeper(annals_model::extra_faults());
    LogModel {
        rules: Rules::ALL,
        acknowledged,
        bounds: LogBounds { faults, ..bounds },
    }
}

#[test]
fn crashes_and_unanswered_commits() {
    let faults = Faults {
        crashes: 1,
        unknowns: 1,
        ..NONE
    };
    let bounds = LogBounds {
        epochs: 2,
        inputs: 2,
        db: true,
        beats: false,
        faults,
    };
    assert_exhausted(
        "crashes_and_unanswered_commits",
        &search_with_progress(&model(Acknowledged::Log, bounds)),
    );
}

#[test]
fn two_takers_at_once() {
    let bounds = LogBounds {
        epochs: 3,
        inputs: 1,
        db: true,
        beats: false,
        faults: NONE,
    };
    assert_exhausted("two_takers_at_once", &search(&model(Acknowledged::Log, bounds)));
}

#[test]
fn loss_of_the_tail_with_a_crash() {
    let faults = Faults {
        tails: 1,
        crashes: 1,
        ..NONE
    };
    let bounds = LogBounds {
        epochs: 2,
        inputs: 1,
        db: true,
        beats: false,
        faults,
    };
    assert_exhausted(
        "loss_of_the_tail_with_a_crash",
        &search(&model(Acknowledged::Log, bounds)),
    );
}

#[test]
fn loss_of_a_message_in_the_middle() {
    let faults = Faults { holes: 1, ..NONE };
    let bounds = LogBounds {
        epochs: 2,
        inputs: 1,
        db: true,
        beats: true,
        faults,
    };
    assert_exhausted(
        "loss_of_a_message_in_the_middle",
        &search_with_progress(&model(Acknowledged::Log, bounds)),
    );
}

#[test]
fn repeated_appends_and_loss_of_the_tail() {
    let faults = Faults {
        tails: 1,
        repeats: 1,
        ..NONE
    };
    let bounds = LogBounds {
        epochs: 2,
        inputs: 1,
        db: false,
        beats: false,
        faults,
    };
    assert_exhausted(
        "repeated_appends_and_loss_of_the_tail",
        &search(&model(Acknowledged::Log, bounds)),
    );
}

#[test]
fn two_losses_while_db_is_away() {
    let faults = Faults {
        tails: 1,
        holes: 1,
        ..NONE
    };
    let bounds = LogBounds {
        epochs: 2,
        inputs: 1,
        db: false,
        beats: false,
        faults,
    };
    assert_exhausted(
        "two_losses_while_db_is_away",
        &search(&model(Acknowledged::Log, bounds)),
    );
}

#[test]
fn acknowledged_by_the_archive_nothing_is_excused() {
    let faults = Faults {
        tails: 1,
        crashes: 1,
        ..NONE
    };
    let bounds = LogBounds {
        epochs: 2,
        inputs: 1,
        db: true,
        beats: false,
        faults,
    };
    assert_exhausted(
        "acknowledged_by_the_archive_nothing_is_excused",
        &search(&model(Acknowledged::Archive, bounds)),
    );
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
    l2_chain: L2Chain,
    l3_one_in_flight: L3OneInFlight,
    l3_frozen: L3Frozen,
    l4_fence: L4Fence,
    l5_silence: L5Silence,
    l5_replaced: L5Replaced,
    l5_earlier_try: L5EarlierTry,
    l6_kept: L6Kept,
    l7_beat: L7Beat,
    g1_log_before_show: G1LogBeforeShow,
    g2_fresh: G2Fresh,
    g4_emptied: G4Emptied,
    e1_replaced: E1Replaced,
    e3_recorded: E3Recorded,
    e3_granted: E3Granted,
    e3_cursor: E3Cursor,
    e3_second_look: E3SecondLook,
    e3_whole_chain: E3WholeChain,
    e4_gate_after_record: E4GateAfterRecord,
    e5_void: E5Void,
    e6_confirmed: E6Confirmed,
    f2_openings_in_fold: F2OpeningsInFold,
    f2_only_recorded: F2OnlyRecorded,
    f4_filled: F4Filled,
    f4_hash: F4Hash,
    f6_newest_stays: F6NewestStays,
    f6_behind_archive: F6BehindArchive,
    f6_looked_up: F6LookedUp,
}
