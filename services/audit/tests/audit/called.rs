//! Display names, and the most recent trades.

use std::collections::BTreeMap;

use annals_event::ledger::Outcome;
use annals_ids::{DatabaseId, TradeId};
use annals_personal::{Admission, PersonalKey, seal};
use annals_store::layout::personal;

use crate::game::{Game, commit, definitions, named};

#[tokio::test]
async fn an_account_is_named_by_its_newest_readable_log_in() {
    let mut game = Game::play(400, 40).await;
    let (person, key) = (DatabaseId(100), [3; 32]);
    let admission = |account: Option<&str>| Admission {
        account: account.map(ToOwned::to_owned),
        address: "203.0.113.9:40000".to_owned(),
    };
    // A client that returns to another process is logged without the name.
    for (salt, account) in [Some("anna"), None].into_iter().enumerate() {
        let plain = admission(account).encode();
        game.come_in(0, seal(&PersonalKey::new(key), person, salt as u128, &plain))
            .await;
    }
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let schemas = BTreeMap::from([(definitions().fingerprint(), definitions())]);
    let called = async || {
        let called = index.called(&game.store, &schemas, [100, 101, 7].map(DatabaseId)).await;
        called.expect("it can be said")
    };
    assert_eq!(called().await, BTreeMap::new(), "without the key");
    commit(&game.store, |transaction| {
        transaction.set(&personal::key_key(person), &key)
    })
    .await;
    assert_eq!(called().await, BTreeMap::from([(person, "anna".to_owned())]));
}

#[tokio::test]
async fn cited_entries_name_their_definitions() {
    let mut game = Game::play(410, 60).await;
    let before = game.truths.len() as u64;
    game.rename("ducat").await;
    game.play_on(60).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let owned = index.owned(&game.store, DatabaseId(100)).await.expect("known");
    let mut seen = [0; 2];
    for step in &owned.steps {
        let is_new = step.cited.entry.number.0 > before;
        let name = ["coin", "ducat"][usize::from(is_new)];
        assert_eq!(step.cited.schema, named(name).fingerprint());
        seen[usize::from(is_new)] += 1;
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
}

#[tokio::test]
async fn recent_trades_are_ordered_by_their_last_change() {
    for seed in 0..3 {
        let game = Game::play(420 + seed, 200).await;
        let (_folder, mut index) = game.index().await;
        index.catch_up(&game.store, |_| {}).await.expect("sound");
        let mut all: Vec<TradeId> = Vec::new();
        for truth in &game.truths {
            // The expiry of a trade with empty tables does not name the trade.
            let has_moved = !truth.entry.postings.is_empty() || !truth.entry.passages.is_empty();
            let is_named = truth.entry.order.is_some() || has_moved;
            let is_done = is_named && !matches!(truth.entry.outcome, Outcome::Refused(_));
            if let Some(deal) = truth.deal.as_ref().filter(|_| is_done) {
                all.retain(|known| *known != deal.id);
                all.push(deal.id);
            }
        }
        for most in [0, 1, 5] {
            let found = index.recent_trades(most).await.expect("it can be read");
            assert_eq!(found, all[all.len() - most..], "seed {seed}");
        }
    }
}
