//! The model of the archive's order: a cut while the log loses nothing, and all is archived whatever it loses.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::{Verdict, search_with_progress};
use annals_model::faults::Faults;
use annals_model::order::exhibits::cut_broken_by_a_loss;
use annals_model::order::{OrderBounds, OrderModel};
use annals_model::rule::Rules;

#[test]
fn every_prefix_is_a_cut_while_nothing_is_lost() {
    let bounds = OrderBounds {
        batches: 2,
        losses_excuse: false,
        faults: Faults::NONE,
    };
    let found = search_with_progress(&OrderModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("every_prefix_is_a_cut_while_nothing_is_lost", &found);
}

#[test]
fn lost_batches_are_archived_in_the_end() {
    let faults = Faults {
        tails: 1,
        holes: 1,
        ..Faults::NONE
    }
    .deeper(annals_model::extra_faults());
    let bounds = OrderBounds {
        batches: 2,
        losses_excuse: true,
        faults,
    };
    let found = search_with_progress(&OrderModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("lost_batches_are_archived_in_the_end", &found);
}

/// Why F5 promises no cut behind a loss.
#[test]
fn a_prefix_is_no_cut_when_a_batch_was_appended_again() {
    let found = cut_broken_by_a_loss();
    let Verdict::Broken(schedule) = &found.verdict else {
        panic!("{found:#?}")
    };
    println!("{:#?}", schedule.steps);
    assert_eq!(
        schedule.steps.last().map(String::as_str),
        Some("db reads R1, and folds R1")
    );
}
