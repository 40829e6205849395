//! The model of the ledger: nothing fails with all rules, and something does without any one of them.

use annals_model::exhibit::assert_exhausted;
use annals_model::explorer::search_with_progress;
use annals_model::faults::Faults;
use annals_model::ledger::exhibits::exhibits;
use annals_model::ledger::{LedgerBounds, LedgerModel};
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

#[test]
fn two_dbs_fold_transfers_that_are_asked_for_twice() {
    let faults = Faults {
        crashes: 2,
        unknowns: 1,
        ..NONE
    }
    .deeper(annals_model::extra_faults());
    let bounds = LedgerBounds { batches: 3, faults };
    let found = search_with_progress(&LedgerModel {
        rules: Rules::ALL,
        bounds,
    });
    assert_exhausted("two_dbs_fold_transfers_that_are_asked_for_twice", &found);
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
    f1_conditional: F1Conditional,
    f3_one_transaction: F3OneTransaction,
    f7_keyed: F7Keyed,
    f7_outbox_in_fold: F7OutboxInFold,
    f7_taken_once: F7TakenOnce,
}
