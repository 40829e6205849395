//! Amounts at every bound: zero, the maximum, and above it.

use annals_event::ledger::{Assets, Order, Outcome, RefusalReason, UNITS_OF_A_KIND};
use annals_ids::{DatabaseId, OfferVersion, Slot, TradeId};
use annals_store::MemoryStore;

use crate::traders::{GOLD, Traders, gold};

const ALL: u64 = UNITS_OF_A_KIND;

/// More than any holder can have: one above the maximum, above the signed range, and where a carry would wrap to zero.
const TOO_MUCH: [u64; 5] = [ALL + 1, ALL + 2, u64::MAX / 2 + 2, u64::MAX - 1, u64::MAX];

fn refused(reason: RefusalReason) -> Outcome {
    Outcome::Refused(reason)
}

/// Two holders, of which the first has the maximum amount of gold.
fn rich() -> Traders {
    let mut two = Traders::begin(MemoryStore::new().store(), 2, 2);
    let all = two.mint(1, gold(ALL));
    two.turn();
    assert_eq!(two.outcome(all), Outcome::Posted);
    two
}

fn give(traders: &Traders, from: u64, to: u64, amount: u64) -> Order {
    Order::Give {
        slot: Slot(0),
        to: DatabaseId(to),
        assets: Assets::units(GOLD, amount),
        expires: traders.later(from, 50),
    }
}

/// Gold of both, in their inventories.
fn both(traders: &Traders) -> [u64; 2] {
    [1, 2].map(|holder| traders.held(holder).units.get(&GOLD).copied().unwrap_or(0))
}

#[test]
fn transfers_conserve_the_gold() {
    let mut two = rich();
    for round in 0..40 {
        let (from, to) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
        let (of, given) = two.ask(from, give(&two, from, to, ALL));
        assert_eq!(given, Outcome::Pending, "round {round}");
        assert_eq!(both(&two), [0, 0], "round {round}: it is reserved");
        // Every third comes back, through either of them.
        if round % 3 == 2 {
            let by = [from, to][round % 2];
            assert_eq!(two.ask(by, Order::Void { of }).1, Outcome::Voided);
            let (of, _) = two.ask(from, give(&two, from, to, ALL));
            assert_eq!(two.ask(from, Order::Post { of }).1, Outcome::Posted);
        } else {
            assert_eq!(two.ask(from, Order::Post { of }).1, Outcome::Posted);
        }
        let expected = if to == 1 { [ALL, 0] } else { [0, ALL] };
        assert_eq!(both(&two), expected, "round {round}");
    }
    two.check();
}

#[test]
fn trades_conserve_both_kinds() {
    const SILVER: annals_ids::AssetKind = annals_ids::AssetKind(7);
    let mut two = rich();
    let silver = annals_event::ledger::Goods {
        units: [(SILVER, ALL)].into(),
        ..Default::default()
    };
    two.mint(2, silver);
    two.turn();
    for round in 0..10 {
        let expires = two.later(1, 50);
        let with = DatabaseId(2);
        let (id, _) = two.ask(1, Order::Propose { with, expires });
        let trade = TradeId(id);
        for (holder, kind) in [(1, [GOLD, SILVER][round % 2]), (2, [SILVER, GOLD][round % 2])] {
            // In two parts; the second is added to an offer of all but one unit.
            for amount in [ALL - 1, 1] {
                let (slot, assets) = (Slot(0), Assets::units(kind, amount));
                assert_eq!(two.ask(holder, Order::Offer { trade, slot, assets }).1, Outcome::Posted);
            }
        }
        let version = OfferVersion(4);
        two.ask(1, Order::Accept { trade, version });
        assert_eq!(two.ask(2, Order::Accept { trade, version }).1, Outcome::Posted);
        let expected = if round % 2 == 0 { [0, ALL] } else { [ALL, 0] };
        assert_eq!(both(&two), expected, "round {round}");
    }
    two.check();
}

fn mint(amount: u64) -> Order {
    Order::Mint {
        slot: Slot(0),
        goods: gold(amount),
        reason: "test".to_owned(),
    }
}

/// A trade of the first with the second, in which the first offers `amount`.
fn open_trade(two: &mut Traders, amount: u64) -> TradeId {
    let (with, expires) = (DatabaseId(2), two.later(1, 200));
    let (id, _) = two.ask(1, Order::Propose { with, expires });
    let (trade, slot) = (TradeId(id), Slot(0));
    let assets = Assets::units(GOLD, amount);
    two.ask(1, Order::Offer { trade, slot, assets });
    trade
}

/// Every order of the first that names an amount of its assets.
fn orders(traders: &Traders, trade: TradeId, amount: u64) -> [Order; 5] {
    let (slot, to) = (Slot(0), Slot(1));
    let assets = || Assets::units(GOLD, amount);
    let reason = "test".to_owned();
    [
        give(traders, 1, 2, amount),
        Order::Burn {
            slot,
            assets: assets(),
            reason,
        },
        Order::Move {
            from: slot,
            to,
            assets: assets(),
        },
        Order::Offer {
            trade,
            slot,
            assets: assets(),
        },
        Order::Withdraw {
            trade,
            slot,
            assets: assets(),
        },
    ]
}

#[test]
fn empty_and_excessive_orders_are_refused_with_a_reason() {
    let mut two = rich();
    let (slot, empty) = (Slot(0), refused(RefusalReason::Empty));
    let trade = open_trade(&mut two, 5);
    let orders = |traders: &Traders, amount: u64| orders(traders, trade, amount);
    for order in orders(&two, 0) {
        assert_eq!(two.ask(1, order.clone()).1, empty, "{order:?}");
    }
    assert_eq!(two.ask(1, mint(0)).1, empty);
    let not_held = refused(RefusalReason::NotHeld);
    for amount in TOO_MUCH.into_iter().chain([ALL - 4]) {
        for order in orders(&two, amount) {
            assert_eq!(two.ask(1, order.clone()).1, not_held, "{order:?}");
        }
    }
    let supply = refused(RefusalReason::Supply);
    for amount in TOO_MUCH.into_iter().chain([1, ALL]) {
        for holder in [1, 2] {
            assert_eq!(two.ask(holder, mint(amount)).1, supply, "{amount}");
        }
    }
    assert_eq!(both(&two), [ALL - 5, 0]);
    assert_eq!(two.ask(1, Order::Cancel { trade }).1, Outcome::Voided);
    assert_eq!(both(&two), [ALL, 0]);
    // All of it can be destroyed and made again.
    let burn = Order::Burn {
        slot,
        assets: Assets::units(GOLD, ALL),
        reason: "test".to_owned(),
    };
    assert_eq!(two.ask(1, burn).1, Outcome::Posted);
    assert_eq!(two.ask(2, mint(ALL)).1, Outcome::Posted);
    assert_eq!(both(&two), [0, ALL]);
    two.check();
}
