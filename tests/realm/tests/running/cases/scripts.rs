//! The events of each case, by players and operators.

use std::time::{Duration, Instant};

use annals_def::Value;
use annals_sample::TRADE_MS;
use tokio::time::sleep;

use super::Case;
use crate::{
    hands::{Assets, Hand, TradeId, written},
    operators::Operator,
    played::Played,
};

/// The operator who makes the grants and seizures of the cases.
const OPERATOR: &str = "Grace Hopper";

fn named((asker, number): TradeId) -> String {
    format!("{asker}/{number}")
}

/// Two players log in, one after the other, so that their order is known.
async fn log_in_both(realm: &Played, names: [&'static str; 2]) -> (Hand, Hand) {
    (Hand::log_in(realm, names[0]).await, Hand::log_in(realm, names[1]).await)
}

/// Waits until both sides see a version of a trade's offers.
async fn wait_for_both(version: u64, trade: TradeId, hands: [&Hand; 2]) {
    for hand in hands {
        hand.until("for an offer", |hand| hand.tables[&trade].version == version)
            .await;
    }
}

/// Gives an item, and waits until it has left.
async fn give(from: &Hand, to: u64, sword: u64) {
    from.send_call("give", &[Value::UInt(to), Assets::item(sword).value()]);
    from.until("for what is given to leave", |hand| {
        !hand.carried().items.contains(&sword)
    })
    .await;
}

/// A sword is offered, withdrawn, and replaced by another; the partner, who looks only once, pays for that one.
pub(super) async fn swapped_offer(realm: &Played) -> Case {
    let (alice, mara) = log_in_both(realm, ["alice", "mara"]).await;
    let swords = mara.carried().items;
    let trade = mara.propose(&alice).await;
    mara.offer(trade, &Assets::item(swords[0]));
    wait_for_both(1, trade, [&alice, &mara]).await;
    alice.offer(trade, &Assets::coins(20));
    wait_for_both(2, trade, [&alice, &mara]).await;
    alice.accept(trade, 2);
    mara.until("for the other player to accept", |hand| {
        hand.tables[&trade].they_accepted
    })
    .await;
    mara.send_call("withdraw", &[written(trade), Assets::item(swords[0]).value()]);
    wait_for_both(3, trade, [&alice, &mara]).await;
    mara.offer(trade, &Assets::item(swords[1]));
    wait_for_both(4, trade, [&alice, &mara]).await;
    // She has seen that she must accept again, and does not check why.
    alice.accept(trade, 4);
    mara.until("for the other player to accept", |hand| {
        hand.tables[&trade].they_accepted
    })
    .await;
    mara.accept(trade, 4);
    alice
        .until("for the sword", |hand| hand.carried().items.contains(&swords[1]))
        .await;
    let trade = named(trade);
    let (shown, given) = (swords[0], swords[1]);
    Case::new(
        "swapped-offer",
        &[
            &format!("audit|trade|{trade}"),
            &format!("audit|item|{shown}"),
            &format!("audit|item|{given}"),
        ],
    )
}

/// A player sells a sword and holds another one of its kind.
pub(super) async fn duplicated_sword(realm: &Played) -> Case {
    let (eve, finn) = log_in_both(realm, ["eve", "finn"]).await;
    let swords = eve.carried().items;
    let trade = eve.propose(&finn).await;
    eve.offer(trade, &Assets::item(swords[0]));
    wait_for_both(1, trade, [&eve, &finn]).await;
    finn.offer(trade, &Assets::coins(30));
    wait_for_both(2, trade, [&eve, &finn]).await;
    finn.accept(trade, 2);
    eve.until("for the other player to accept", |hand| {
        hand.tables[&trade].they_accepted
    })
    .await;
    eve.accept(trade, 2);
    finn.until("for the sword", |hand| hand.carried().items.contains(&swords[0]))
        .await;
    let (sold, kept) = (swords[0], swords[1]);
    Case::new(
        "duplicated-sword",
        &[
            &format!("audit|item|{sold}"),
            &format!("audit|item|{kept}"),
            "audit|account|eve",
        ],
    )
}

/// A player logs in to another's account and gives away its assets; an operator returns them.
pub(super) async fn stolen_account(realm: &Played, operator: &Operator<'_>) -> Case {
    let (gus, hal) = log_in_both(realm, ["gus", "hal"]).await;
    let sword = gus.carried().items[0];
    gus.leave().await;
    let thief = Hand::log_in(realm, "gus").await;
    give(&thief, hal.id(), sword).await;
    hal.until("for the sword", |hand| hand.carried().items.contains(&sword))
        .await;
    thief.leave().await;
    let session = last_session(operator, "gus").await;
    let serial = sword.to_string();
    let word = |reason: &'static str| ["--item", serial.as_str(), "--by", OPERATOR, "--reason", reason];
    let take = [
        &["realm", "take", "hal"][..],
        &word("case 412: it is gus's, whose account was stolen"),
    ]
    .concat();
    operator.run_expecting(0, &take).await;
    let back = [&["realm", "grant", "gus"][..], &word("case 412: back to its owner")].concat();
    operator.run_expecting(0, &back).await;
    Case::new(
        "stolen-account",
        &[
            "audit|account|gus",
            "audit|lives|gus",
            &format!("audit|session|{session}"),
            &format!("audit|item|{sword}"),
        ],
    )
}

/// The last session that placed an order for an account.
async fn last_session(operator: &Operator<'_>, name: &str) -> String {
    let account = operator.object(0, &["audit", "account", name]).await;
    let steps = account["steps"].as_array().expect("steps");
    let mut sessions = steps
        .iter()
        .filter_map(|step| step["asked"]["from"].as_str()?.strip_prefix("client session "));
    let session = sessions.next_back().expect("a client asked");
    session.to_owned()
}

/// An operator intends one account and names another.
pub(super) async fn wrong_grant(realm: &Played, operator: &Operator<'_>) -> Case {
    let (ivan, ivana) = log_in_both(realm, ["ivan", "ivana"]).await;
    let coins = ivan.carried().coins;
    let word = |reason: &'static str| ["--units", "1=50", "--by", OPERATOR, "--reason", reason];
    let wrong = [
        &["realm", "grant", "ivan"][..],
        &word("case 98: for the quest that broke off"),
    ]
    .concat();
    operator.run_expecting(0, &wrong).await;
    ivan.until("for what is not his", |hand| hand.carried().coins == coins + 50)
        .await;
    let back = [&["realm", "take", "ivan"][..], &word("case 98: was meant for ivana")].concat();
    operator.run_expecting(0, &back).await;
    let right = [
        &["realm", "grant", "ivana"][..],
        &word("case 98: for the quest that broke off"),
    ]
    .concat();
    operator.run_expecting(0, &right).await;
    ivana
        .until("for what is hers", |hand| hand.carried().coins == coins + 50)
        .await;
    Case::new("wrong-grant", &["audit|account|ivana", "audit|account|ivan"])
}

/// An asset is given, and then every process that holds players is killed.
pub(super) async fn lost_at_a_crash(realm: &mut Played) -> Case {
    let (ben, dora) = log_in_both(realm, ["ben", "dora"]).await;
    let sword = ben.carried().items[0];
    give(&ben, dora.id(), sword).await;
    let bases = ["base-1", "base-2"];
    for name in bases {
        assert!(realm.realm.kill(name).expect("it can be killed"));
    }
    for name in bases {
        assert!(realm.realm.start_again(name).expect("it starts"));
    }
    realm.assert_playing("all bases were killed").await;
    dora.until("for the sword", |hand| hand.carried().items.contains(&sword))
        .await;
    Case::new(
        "lost-at-a-crash",
        &[&format!("audit|item|{sword}"), "audit|account|ben"],
    )
}

/// Coins on the table of a trade of which one party is offline.
pub(super) struct Waiting {
    trade: TradeId,
    since: Instant,
    lou: Hand,
}

/// A player puts coins on a table and leaves.
pub(super) async fn expired_escrow(realm: &Played) -> Waiting {
    let (kim, lou) = log_in_both(realm, ["kim", "lou"]).await;
    let trade = kim.propose(&lou).await;
    let since = Instant::now();
    kim.offer(trade, &Assets::coins(30));
    wait_for_both(1, trade, [&kim, &lou]).await;
    kim.leave().await;
    Waiting { trade, since, lou }
}

impl Waiting {
    /// The trade expires, and then the owner of the coins returns.
    pub(super) async fn after_expiry(self, realm: &Played) -> Case {
        let trade = self.trade;
        sleep(Duration::from_millis(TRADE_MS).saturating_sub(self.since.elapsed())).await;
        self.lou
            .until("for the end of the trade", |hand| hand.tables[&trade].stage == 3)
            .await;
        let kim = Hand::log_in(realm, "kim").await;
        kim.until("for her coins", |hand| {
            hand.carried().coins == annals_sample::FIRST_COINS
        })
        .await;
        let trade = named(trade);
        Case::new(
            "expired-escrow",
            &[&format!("audit|trade|{trade}"), "audit|account|kim"],
        )
    }
}
