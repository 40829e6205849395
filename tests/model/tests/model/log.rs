//! The model of one log: nothing fails with all rules.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::{search, search_with_progress};
use annals_model::faults::Faults;
use annals_model::log::{Acknowledged, LogBounds, LogModel};
use annals_model::rule::Rules;

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
        ..Faults::NONE
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
        faults: Faults::NONE,
    };
    assert_exhausted("two_takers_at_once", &search(&model(Acknowledged::Log, bounds)));
}

#[test]
fn loss_of_the_tail_with_a_crash() {
    let faults = Faults {
        tails: 1,
        crashes: 1,
        ..Faults::NONE
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
    let faults = Faults {
        holes: 1,
        ..Faults::NONE
    };
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
        ..Faults::NONE
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
        ..Faults::NONE
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
fn a_closed_connection_with_loss_of_the_tail() {
    let faults = Faults {
        tails: 1,
        disconnects: 1,
        ..Faults::NONE
    };
    let bounds = LogBounds {
        epochs: 2,
        inputs: 1,
        db: true,
        beats: false,
        faults,
    };
    assert_exhausted(
        "a_closed_connection_with_loss_of_the_tail",
        &search(&model(Acknowledged::Log, bounds)),
    );
}

#[test]
fn a_closed_connection_and_two_takers() {
    let faults = Faults {
        disconnects: 1,
        ..Faults::NONE
    };
    let bounds = LogBounds {
        epochs: 3,
        inputs: 1,
        db: false,
        beats: false,
        faults,
    };
    assert_exhausted(
        "a_closed_connection_and_two_takers",
        &search(&model(Acknowledged::Log, bounds)),
    );
}

#[test]
fn acknowledged_by_the_archive_nothing_is_excused() {
    let faults = Faults {
        tails: 1,
        crashes: 1,
        ..Faults::NONE
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
