//! The model of space data: no copy gets older, the last write wins, and in the end every owner has it.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::rule::Rules;
use annals_model::space::{SpaceBounds, SpaceModel};

const PLAIN: SpaceBounds = SpaceBounds {
    writes: 2,
    openings: 0,
    owners: 2,
    redrawn: 1,
    moves: 1,
    faults: Faults {
        crashes: 1,
        drops: 1,
        ..Faults::NONE
    },
};

fn assert_holds(test: &str, bounds: SpaceBounds) {
    let bounds = SpaceBounds {
        faults: bounds.faults.deeper(annals_model::extra_faults()),
        ..bounds
    };
    let rules = Rules::ALL;
    assert_exhausted(test, &search_with_progress(&SpaceModel { rules, bounds }));
}

#[test]
fn two_owners_write_and_one_comes_or_goes() {
    assert_holds("two_owners_write_and_one_comes_or_goes", PLAIN);
}

#[test]
fn three_owners_write() {
    let bounds = SpaceBounds {
        owners: 3,
        redrawn: 0,
        ..PLAIN
    };
    assert_holds("three_owners_write", bounds);
}

#[test]
fn a_space_is_opened_anew_between_two_values() {
    let bounds = SpaceBounds {
        writes: 3,
        openings: 1,
        redrawn: 0,
        moves: 0,
        ..PLAIN
    };
    assert_holds("a_space_is_opened_anew_between_two_values", bounds);
}
