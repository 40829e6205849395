//! The model of a trade: nothing fails with all rules, and something does without any one of them.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::rule::{Rule, Rules};
use annals_model::trade::exhibits::exhibits;
use annals_model::trade::{TradeBounds, TradeModel};

fn assert_holds(test: &str, orders: [u8; 2], aside: bool) {
    let faults = Faults {
        crashes: 1,
        ..Faults::default()
    }
    .deeper(annals_model::extra_faults());
    let bounds = TradeBounds { orders, aside, faults };
    let rules = Rules::ALL;
    assert_exhausted(test, &search_with_progress(&TradeModel { rules, bounds }));
}

#[test]
fn two_players_trade_and_change_their_minds() {
    assert_holds("two_players_trade_and_change_their_minds", [3, 2], false);
}

#[test]
fn two_players_trade_and_give() {
    assert_holds("two_players_trade_and_give", [2, 2], true);
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
    f10_escrow: F10Escrow,
    f11_version: F11Version,
    f12_cleared: F12Cleared,
    f13_post_after_result: F13PostAfterResult,
}
