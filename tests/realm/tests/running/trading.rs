//! Trading in a live realm, by honest players and by players that try to duplicate assets: known exploits of other
//! worlds, each tried on this one, while bots trade. Afterwards the ledger is audited: nothing was gained or lost.

use std::time::{Duration, Instant};

use annals_audit::archive::LogWalk;
use annals_def::Value;
use annals_director::read_owners;
use annals_event::{Body, Subject};
use annals_host::nats::ServerCount;
use annals_ids::{DatabaseId, Direction, EntityId, OwnerId, Part, Position};
use annals_sample::{FIRST_COINS, FIRST_SWORDS, TRADE_MS};
use annals_store::{
    Store, Transaction,
    layout::database::{Checkout, checkout_key},
};

use crate::{
    accounts::{Shown, assert_equal_to_ledger},
    crowd::{boundary, cells},
    hands::{Assets, Hand, TradeId, written},
    played::{Played, are_built, within},
};

/// Number of times a player logs in again to see the account.
const LOG_IN_ROUNDS: usize = 3;

/// Steps of an avatar that walks to the other cell, and how far beyond the boundary it stops, metres.
const STRIDE: f32 = 4.0;
const STRIDE_INTERVAL: Duration = Duration::from_millis(40);
const BEYOND: f32 = 40.0;

/// Timeout for that, on a machine that is busy with tests.
const CROSSING_TIMEOUT: Duration = Duration::from_secs(60);

/// The base owner of an account.
async fn home(realm: &Played, trader: u64) -> OwnerId {
    let (_, _, store) = realm.bus();
    let read = |transaction: Transaction| async move {
        let value = transaction.get(&checkout_key(DatabaseId(trader))).await?;
        value.map(|value| Checkout::decode(&value)).transpose()
    };
    let checkout = store.read(read).await.expect("the store answers");
    checkout.expect("it is in the world").owner
}

/// A player on another base than the first. Players that were placed on the same base stay online until one is not.
async fn on_another_base(realm: &Played, first: &Hand) -> Hand {
    const NAMES: [&str; 16] = [
        "bob", "ben", "bill", "bert", "bart", "boris", "barb", "bea", "bess", "beth", "babs", "bram", "bruno", "basil",
        "baldur", "bodo",
    ];
    let base = home(realm, first.id()).await;
    let mut neighbours = Vec::new();
    for name in NAMES {
        let hand = Hand::log_in(realm, name).await;
        if home(realm, hand.id()).await != base {
            return hand;
        }
        neighbours.push(hand);
    }
    panic!("all players were placed on {base}");
}

/// Both offer something, both accept, both receive it.
pub(crate) async fn exchange(first: &Hand, second: &Hand) -> TradeId {
    let trade = first.propose(second).await;
    let (before, theirs) = (first.carried().coins, second.carried().coins);
    first.offer(trade, &Assets::coins(3));
    second.offer(trade, &Assets::coins(1));
    accept_both(first, second, trade, 2).await;
    first
        .until("for what it got", |hand| hand.carried().coins == before - 2)
        .await;
    second
        .until("for what it got", |hand| hand.carried().coins == theirs + 2)
        .await;
    trade
}

async fn accept_both(first: &Hand, second: &Hand, trade: TradeId, version: u64) {
    for hand in [first, second] {
        hand.until("for both offers", |hand| hand.tables[&trade].version >= version)
            .await;
        hand.accept_now(trade);
    }
    for hand in [first, second] {
        hand.until("for the settlement", |hand| hand.tables[&trade].stage == 1)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_exploit_duplicates_or_loses_assets() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let mut ann = Hand::log_in(&realm, "ann").await;
    assert_eq!(ann.carried().coins, FIRST_COINS);
    assert_eq!(ann.carried().items.len(), FIRST_SWORDS as usize);
    let mut bob = on_another_base(&realm, &ann).await;
    let mut eve = Hand::log_in(&realm, "eve").await;

    // Abandoned, and checked again at the end.
    let forgotten = eve.propose(&bob).await;
    let began = Instant::now();
    eve.offer(forgotten, &Assets::coins(7));
    eve.until("for its offer", |hand| hand.carried().coins == FIRST_COINS - 7)
        .await;

    exchange(&ann, &bob).await;
    said("a trade across two bases");
    changed_after_acceptance(&ann, &bob).await;
    said("an offer changed after it was accepted");
    double_click(&ann, &bob).await;
    said("the same click twice");
    spoofed(&eve, &ann, &bob).await;
    said("packets of somebody who is no party");
    ann = container_swap(&realm, ann).await;
    said("an item swapped between containers, and a new log-in");
    bob = partner_away(&realm, &ann, bob).await;
    said("a partner who logs out midway");
    across_a_boundary(&realm, &ann, &bob).await;
    said("a trade while the avatar is handed over");
    base_killed(&mut realm, &ann, &bob).await;
    said("all bases killed between offer and acceptance");
    all_killed(&mut realm, &ann, &bob).await;
    said("bases and store killed at the settlement");
    bob = db_killed(&mut realm, &ann, bob).await;
    said("the store killed while something is given, and a new log-in");

    tokio::time::sleep(Duration::from_millis(TRADE_MS).saturating_sub(began.elapsed())).await;
    eve.until("for what it had offered to come back", |hand| {
        hand.tables[&forgotten].stage == 3 && hand.carried().coins == FIRST_COINS
    })
    .await;
    said("a trade whose time was over");
    assert_conserved([&ann, &bob, &eve]);
    realm.wait_for_holdings(3).await;
    let mut shown = [&ann, &bob, &eve].map(|hand| hand.look().views.clone()).concat();
    for hand in [ann, bob] {
        hand.leave().await;
    }
    // On a busy machine the second in which an avatar is chosen may end before the ledger's notice arrives.
    for _ in 0..LOG_IN_ROUNDS {
        eve = eve.relog(&realm).await;
        shown.extend(eve.look().views.clone());
    }
    eve.leave().await;
    realm.assert_playing("all of it").await;
    assert_account_views_match(&realm, &shown).await;
    realm.stop_and_verify().await;
}

/// Together they have what they began with, and each item once.
fn assert_conserved(hands: [&Hand; 3]) {
    let coins: u64 = hands.map(|hand| hand.carried().coins).iter().sum();
    assert_eq!(coins, 3 * FIRST_COINS);
    let mut items: Vec<u64> = hands
        .iter()
        .flat_map(|hand| [hand.carried().items, hand.look().worn.items.clone()].concat())
        .collect();
    items.sort_unstable();
    let whole = items.len();
    items.dedup();
    assert_eq!(
        (items.len(), whole),
        (3 * FIRST_SWORDS as usize, 3 * FIRST_SWORDS as usize)
    );
}

/// The account views shown while avatars were chosen match the ledger.
async fn assert_account_views_match(realm: &Played, shown: &[Shown]) {
    let (_, _, store) = realm.bus();
    let coins = assert_equal_to_ledger(&realm.schema, &store, shown).await;
    assert!(coins.iter().any(|seen| *seen > 0), "no view showed a coin: {shown:?}");
    println!("{} values of accounts shown, each as the ledger said", shown.len());
}

fn said(what: &str) {
    println!("{what}: assets conserved");
}

/// An acceptance does not cover later additions or withdrawals.
async fn changed_after_acceptance(ann: &Hand, bob: &Hand) {
    let trade = ann.propose(bob).await;
    let (before, theirs) = (ann.carried(), bob.carried());
    ann.offer(trade, &Assets::item(before.items[0]));
    bob.offer(trade, &Assets::coins(20));
    bob.until("for both offers", |hand| hand.tables[&trade].version == 2)
        .await;
    bob.accept(trade, 2);
    ann.until("for the other player to accept", |hand| {
        hand.tables[&trade].they_accepted
    })
    .await;
    // The sword is withdrawn, counting on the other's earlier acceptance, which is void.
    ann.send_call("withdraw", &[written(trade), Assets::item(before.items[0]).value()]);
    ann.accept(trade, 2);
    ann.until("to have its sword back", |hand| hand.carried().items == before.items)
        .await;
    ann.settle().await;
    let table = ann.table(trade);
    assert_eq!(
        (table.stage, table.accepted, table.they_accepted),
        (0, false, false),
        "{table:?}"
    );
    ann.send_call("cancelTrade", &[written(trade)]);
    for (hand, before) in [(ann, before), (bob, theirs)] {
        hand.until("for the end of the trade", |hand| {
            hand.tables[&trade].stage == 2 && *hand.carried() == before
        })
        .await;
    }
}

/// Every request twice, in rapid succession.
async fn double_click(ann: &Hand, bob: &Hand) {
    let trade = ann.propose(bob).await;
    let (before, theirs) = (ann.carried(), bob.carried());
    let sword = before.items[0];
    for _ in 0..2 {
        ann.offer(trade, &Assets::item(sword));
    }
    let id = bob.id();
    ann.send_call("give", &[Value::UInt(id), Assets::item(sword).value()]);
    ann.until("for three answers", |hand| hand.refusals() >= 3).await;
    for hand in [ann, bob] {
        hand.until("for one offer", |hand| hand.tables[&trade].version == 1)
            .await;
        for _ in 0..2 {
            hand.accept(trade, 1);
        }
    }
    bob.until("for the sword", |hand| hand.carried().items.contains(&sword))
        .await;
    ann.settle().await;
    bob.settle().await;
    assert_eq!(ann.carried().items.len() + 1, before.items.len());
    assert_eq!(bob.carried().items.len(), theirs.items.len() + 1);
    // It is given back, for the next test.
    let id = ann.id();
    bob.send_call("give", &[Value::UInt(id), Assets::item(sword).value()]);
    ann.until("for its sword", |hand| hand.carried().items == before.items)
        .await;
    bob.until("for its sword to leave", |hand| *hand.carried() == theirs)
        .await;
}

/// Requests by a player that is no party, and by one that does not hold the named assets.
async fn spoofed(eve: &Hand, ann: &Hand, bob: &Hand) {
    let trade = ann.propose(bob).await;
    let before = [eve.carried(), ann.carried(), bob.carried()];
    let sword = before[1].items[0];
    ann.offer(trade, &Assets::item(sword));
    bob.until("for the offer", |hand| hand.tables[&trade].version == 1)
        .await;
    let refused = eve.refusals();
    eve.offer(trade, &Assets::coins(1));
    eve.send_call("withdraw", &[written(trade), Assets::item(sword).value()]);
    eve.accept(trade, 1);
    eve.send_call("cancelTrade", &[written(trade)]);
    let own = eve.id();
    eve.send_call("give", &[Value::UInt(own), Assets::coins(1).value()]);
    let id = bob.id();
    eve.send_call("give", &[Value::UInt(id), Assets::item(sword).value()]);
    eve.send_call("give", &[Value::UInt(id), Assets::coins(u64::MAX).value()]);
    eve.send_call("give", &[Value::UInt(u64::MAX), Assets::coins(1).value()]);
    eve.send_call("give", &[Value::UInt(id), Assets::default().value()]);
    eve.send_call("wear", &[Assets::item(sword).value()]);
    // A trade number that cannot exist.
    eve.send_call("cancelTrade", &[written((trade.0, u64::MAX))]);
    eve.until("for refusals of all requests", |hand| hand.refusals() == refused + 11)
        .await;
    // The partner cannot withdraw another's assets from the table either.
    bob.send_call("withdraw", &[written(trade), Assets::item(sword).value()]);
    bob.settle().await;
    assert_eq!((bob.table(trade).stage, bob.table(trade).version), (0, 1));
    assert_eq!(bob.table(trade).theirs, Assets::item(sword));
    ann.send_call("cancelTrade", &[written(trade)]);
    for (hand, before) in [eve, ann, bob].into_iter().zip(before) {
        hand.until("for unchanged holdings", |hand| *hand.carried() == before)
            .await;
    }
}

/// An item is moved between two containers and back while a new log-in begins.
async fn container_swap(realm: &Played, ann: Hand) -> Hand {
    let before = ann.carried();
    let sword = before.items[0];
    for _ in 0..5 {
        ann.send_call("wear", &[Assets::item(sword).value()]);
        ann.send_call("takeOff", &[Assets::item(sword).value()]);
        // The same from the wrong container.
        ann.send_call("takeOff", &[Assets::item(sword).value()]);
    }
    ann.send_call("wear", &[Assets::item(sword).value()]);
    let ann = ann.relog(realm).await;
    ann.until("to wear its sword", |hand| hand.worn == Assets::item(sword))
        .await;
    assert_eq!(ann.carried().items.len() + 1, before.items.len());
    ann.send_call("takeOff", &[Assets::item(sword).value()]);
    ann.until("to carry it again", |hand| *hand.carried() == before).await;
    ann
}

async fn partner_away(realm: &Played, ann: &Hand, bob: Hand) -> Hand {
    let trade = ann.propose(&bob).await;
    let (before, theirs) = (ann.carried().coins, bob.carried().coins);
    bob.offer(trade, &Assets::coins(2));
    bob.until("for its offer", |hand| hand.carried().coins == theirs - 2)
        .await;
    let id = bob.id();
    let name = bob.leave().await;
    ann.offer(trade, &Assets::coins(4));
    // Assets can be given to an offline player too.
    ann.send_call("give", &[Value::UInt(id), Assets::coins(1).value()]);
    ann.until("for both offers", |hand| hand.tables[&trade].version == 2)
        .await;
    ann.accept(trade, 2);
    ann.until("for its acceptance", |hand| hand.tables[&trade].accepted)
        .await;
    let bob = Hand::log_in(realm, name).await;
    bob.until("to be shown the trade", |hand| {
        hand.tables.get(&trade).is_some_and(|table| table.they_accepted)
    })
    .await;
    assert_eq!(bob.table(trade).own, Assets::coins(2));
    bob.accept(trade, 2);
    ann.until("for what it got", |hand| hand.carried().coins == before - 3)
        .await;
    bob.until("for what it got", |hand| hand.carried().coins == theirs + 3)
        .await;
    bob
}

/// Moves from one cell to the other with assets on the table.
async fn across_a_boundary(realm: &Played, ann: &Hand, bob: &Hand) {
    let (avatar, _) = ann.look().avatar.expect("it is in the world");
    let start = position(ann).0.x;
    let trade = ann.propose(bob).await;
    let (before, theirs) = (ann.carried().coins, bob.carried().coins);
    ann.offer(trade, &Assets::coins(6));
    bob.offer(trade, &Assets::coins(6));
    let (_, _, store) = realm.bus();
    let crossing = async {
        // Balancing moves the boundary, and near it an avatar may be on either cell: if one side was the wrong one, the
        // other is right.
        let mut side = (boundary(&cells(realm).await) as f32 - start).signum();
        loop {
            let goal = boundary(&cells(realm).await) as f32 + side * BEYOND;
            walk_to(ann, goal).await;
            if was_handed_over(&store, avatar).await {
                break;
            }
            side = -side;
        }
    };
    within(CROSSING_TIMEOUT, "a hand-over to the other cell", crossing).await;
    let (own, others) = (ann.table(trade).own, bob.table(trade).own);
    assert_eq!(
        (own, others),
        (Assets::coins(6), Assets::coins(6)),
        "it is still on the table"
    );
    accept_both(ann, bob, trade, 2).await;
    for (hand, before) in [(ann, before), (bob, theirs)] {
        hand.settle().await;
        assert_eq!(hand.carried().coins, before);
    }
}

/// Position and direction of a player's avatar.
fn position(hand: &Hand) -> (Position, Direction) {
    let player = hand.look();
    let (avatar, _) = player.avatar.expect("it is in the world");
    let seen = player.client.core().entity(avatar);
    seen.and_then(|seen| seen.place).expect("it stands somewhere")
}

/// Walks west or east until a position is reached.
async fn walk_to(hand: &Hand, x: f32) {
    loop {
        // The cell may have moved it back: it goes on from where it is.
        let (mut position, direction) = position(hand);
        let left = x - position.x;
        if left.abs() < STRIDE {
            break;
        }
        position.x += STRIDE.copysign(left);
        hand.look().client.move_to(position, direction);
        tokio::time::sleep(STRIDE_INTERVAL).await;
    }
}

/// Whether an avatar's cell part was handed over.
async fn was_handed_over(store: &Store, avatar: EntityId) -> bool {
    for (owner, record) in read_owners(store).await.expect("the store answers") {
        let walk = LogWalk::begin(store, record.shard, owner).await;
        let mut walk = walk.expect("the store answers");
        while let Some(step) = walk.next().await.expect("the store answers") {
            let batch = step.batch.expect("the archive is whole");
            let leaves = |event: &annals_event::Event| {
                event.subject == Subject::Entity(avatar, Part::Cell) && matches!(event.body, Body::Offloaded { .. })
            };
            if batch.events.iter().any(leaves) {
                return true;
            }
        }
    }
    false
}

/// Offered assets are on the table, and nowhere else, when the players' bases are killed.
async fn base_killed(realm: &mut Played, ann: &Hand, bob: &Hand) {
    let trade = ann.propose(bob).await;
    let (before, theirs) = (ann.carried(), bob.carried());
    ann.offer(trade, &Assets::item(before.items[0]));
    bob.offer(trade, &Assets::coins(1));
    bob.until("for both offers", |hand| hand.tables[&trade].version == 2)
        .await;
    let bases = ["base-1", "base-2"];
    for name in bases {
        assert!(realm.realm.kill(name).expect("it can be killed"));
    }
    // The next request is sent by a client whose base is gone.
    ann.offer(trade, &Assets::item(before.items[0]));
    for name in bases {
        assert!(realm.realm.start_again(name).expect("it starts"));
    }
    realm.assert_playing("all bases were killed").await;
    ann.until("for both offers", |hand| hand.tables[&trade].version == 2)
        .await;
    ann.accept(trade, 2);
    bob.accept(trade, 2);
    let taken = before.items[0];
    bob.until("for the sword", |hand| hand.carried().items.contains(&taken))
        .await;
    ann.until("for the coin", |hand| hand.carried().coins == before.coins + 1)
        .await;
    assert!(!ann.carried().items.contains(&taken));
    let id = ann.id();
    bob.send_call("give", &[Value::UInt(id), Assets::item(taken).value()]);
    ann.until("for its sword", |hand| hand.carried().items == before.items)
        .await;
    bob.until("for its sword to leave", |hand| hand.carried().items == theirs.items)
        .await;
}

/// Both bases and db are killed at the moment both players accept: afterwards both have received the assets, not only
/// one.
async fn all_killed(realm: &mut Played, ann: &Hand, bob: &Hand) {
    let trade = ann.propose(bob).await;
    let (before, theirs) = (ann.carried(), bob.carried());
    let sword = before.items[0];
    ann.offer(trade, &Assets::item(sword));
    bob.offer(trade, &Assets::coins(9));
    for hand in [ann, bob] {
        hand.until("for both offers", |hand| hand.tables[&trade].version == 2)
            .await;
        hand.accept(trade, 2);
    }
    let all = ["base-1", "base-2", "db"];
    for name in all {
        assert!(realm.realm.kill(name).expect("it can be killed"));
    }
    for name in all {
        assert!(realm.realm.start_again(name).expect("it starts"));
    }
    realm.assert_playing("bases and store were killed").await;
    ann.until("for the coins, and to be without the sword", |hand| {
        let held = hand.carried();
        held.coins == before.coins + 9 && !held.items.contains(&sword)
    })
    .await;
    bob.until("for the sword, and to be without the coins", |hand| {
        let held = hand.carried();
        held.coins == theirs.coins - 9 && held.items.contains(&sword)
    })
    .await;
    // All of it is given back, for the next test.
    let (to_ann, to_bob) = (ann.id(), bob.id());
    bob.send_call("give", &[Value::UInt(to_ann), Assets::item(sword).value()]);
    ann.send_call("give", &[Value::UInt(to_bob), Assets::coins(9).value()]);
    for (hand, before) in [(ann, before), (bob, theirs)] {
        hand.until("for unchanged holdings", |hand| *hand.carried() == before)
            .await;
    }
}

/// Assets are given at a moment when nothing can be stored, and the giver logs in again.
async fn db_killed(realm: &mut Played, ann: &Hand, bob: Hand) -> Hand {
    let (before, theirs) = (ann.carried().coins, bob.carried().coins);
    let id = ann.id();
    assert!(realm.realm.kill("db").expect("it can be killed"));
    for _ in 0..2 {
        bob.send_call("give", &[Value::UInt(id), Assets::coins(5).value()]);
    }
    let name = bob.leave().await;
    assert!(realm.realm.start_again("db").expect("it starts"));
    realm.assert_playing("a store that was killed").await;
    let bob = Hand::log_in(realm, name).await;
    ann.until("for both gifts", |hand| hand.carried().coins == before + 10)
        .await;
    bob.until("for both to have left", |hand| hand.carried().coins == theirs - 10)
        .await;
    bob
}
