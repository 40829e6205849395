//! The model of a trade: nothing fails with all rules.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::rule::Rules;
use annals_model::trade::{TradeBounds, TradeModel};

fn assert_holds(test: &str, orders: [u8; 2], (aside, deletes): (bool, bool)) {
    let faults = Faults {
        crashes: 1,
        ..Faults::default()
    }
    .deeper(annals_model::extra_faults());
    let bounds = TradeBounds {
        orders,
        aside,
        deletes,
        faults,
    };
    let rules = Rules::ALL;
    assert_exhausted(test, &search_with_progress(&TradeModel { rules, bounds }));
}

#[test]
fn two_players_trade_and_change_their_minds() {
    assert_holds("two_players_trade_and_change_their_minds", [3, 2], (false, false));
}

#[test]
fn two_players_trade_and_give() {
    assert_holds("two_players_trade_and_give", [2, 2], (true, false));
}

#[test]
fn two_players_give_and_are_deleted() {
    assert_holds("two_players_give_and_are_deleted", [2, 2], (true, true));
}
