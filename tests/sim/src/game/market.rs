//! The part of the game that trades: whoever is asked to deal does something at random with what it holds, sensible or not.

use annals_event::ledger::{Assets, Booking, Goods, Holdings, Order, Stage, Trade};
use annals_ids::{AssetKind, DatabaseId, Slot, TransferId};
use annals_node::Context;
use std::collections::BTreeMap;

/// What is counted.
const COIN: AssetKind = AssetKind(1);

/// What is named one by one.
const RING: AssetKind = AssetKind(2);

/// Game time, in milliseconds, after which nobody answers what the ledger tells any more.
const LAST_DEAL: u64 = 30_000;

/// The inventory, and what is worn.
const SLOTS: [Slot; 2] = [Slot(0), Slot(1)];

/// Entities of the database that are dealt with: those whose numbers are at most so much below or above one's own; some of
/// them are nobody.
const NEAR: u64 = 2;

/// Does something with the ledger. What is refused is refused: nothing else depends on it.
pub(super) fn deal(context: &mut Context<'_>) {
    let roll = context.roll();
    let Some(view) = context.ledger() else { return };
    let Some(holdings) = view.holdings.clone() else { return };
    let trades: Vec<Trade> = view.trades.values().cloned().collect();
    let gifts: Vec<TransferId> = view.gifts.keys().copied().collect();
    let with = neighbour(context, roll >> 8);
    let within_ms = 300 + (roll >> 16) % 15_000;
    let (from, to) = if roll >> 32 & 1 == 0 {
        (SLOTS[0], SLOTS[1])
    } else {
        (SLOTS[1], SLOTS[0])
    };
    let assets = some_of(&holdings, from, roll >> 40);
    let trade = pick(&trades, roll >> 24);
    let order = match roll % 16 {
        0 | 1 => mint(roll >> 40),
        2..=4 => {
            // Its outcome is told to `booked`, as of all others.
            let _ = context.give(from, with, assets, within_ms);
            return;
        }
        5..=7 => {
            let _ = context.propose(with, within_ms);
            return;
        }
        8 | 9 => match trade {
            Some(trade) => Order::Offer {
                trade: trade.id,
                slot: from,
                assets,
            },
            None => mint(roll >> 40),
        },
        10 => match trade {
            Some(trade) => Order::Accept {
                trade: trade.id,
                version: trade.version,
            },
            None => Order::Move { from, to, assets },
        },
        11 => match trade {
            Some(trade) => withdrawn(context, trade),
            None => Order::Move { from, to, assets },
        },
        12 => match trade {
            Some(trade) => Order::Cancel { trade: trade.id },
            None => Order::Move { from, to, assets },
        },
        13 => match pick(&gifts, roll >> 24) {
            Some(&of) => Order::Void { of },
            None => Order::Move { from, to, assets },
        },
        14 => Order::Burn {
            slot: from,
            assets,
            reason: "lost".to_owned(),
        },
        // More than anybody has.
        _ => Order::Give {
            slot: from,
            to: with,
            assets: Assets::units(COIN, 1 << 40),
            expires: context.wall(),
        },
    };
    let _ = context.order(order);
}

/// Somebody or nobody whose number is near.
fn neighbour(context: &Context<'_>, roll: u64) -> DatabaseId {
    let own = context.database().map_or(0, |own| own.0);
    let distance = 1 + roll % NEAR;
    DatabaseId(match roll >> 4 & 1 {
        0 => own.saturating_sub(distance),
        _ => own + distance,
    })
}

/// Goes on with a trade that has changed: one accepts, another puts something on the table, and mostly nobody does anything,
/// so that all of it comes to an end.
pub(super) fn booked(context: &mut Context<'_>, booking: &Booking) {
    if context.now().0 > LAST_DEAL {
        return;
    }
    let Some(trade) = booking.trade.as_ref().filter(|trade| trade.stage == Stage::Open) else {
        return;
    };
    let roll = context.roll();
    let holdings = context
        .ledger()
        .and_then(|view| view.holdings.clone())
        .unwrap_or_default();
    let _ = match roll % 8 {
        0..=4 => context.accept(trade.id, trade.version),
        5 => context.offer(trade.id, SLOTS[0], some_of(&holdings, SLOTS[0], roll >> 8)),
        _ => return,
    };
}

fn mint(roll: u64) -> Order {
    Order::Mint {
        slot: SLOTS[0],
        goods: Goods {
            units: BTreeMap::from([(COIN, 1 + roll % 50)]),
            items: match roll % 3 {
                0 => BTreeMap::from([(RING, 1)]),
                _ => BTreeMap::new(),
            },
        },
        reason: "found".to_owned(),
    }
}

/// Some of what is in a slot; nothing if it is empty, which is refused.
fn some_of(holdings: &Holdings, slot: Slot, roll: u64) -> Assets {
    let Some(held) = holdings.slots.get(&slot) else {
        return Assets::default();
    };
    let items: Vec<_> = held.items.iter().collect();
    match (pick(&items, roll >> 1), held.units.get(&COIN)) {
        (Some((serial, kind)), _) if roll & 1 == 0 => Assets::item(**serial, **kind),
        (_, Some(units)) => Assets::units(COIN, 1 + (roll >> 1) % units),
        (Some((serial, kind)), None) => Assets::item(**serial, **kind),
        (None, None) => Assets::default(),
    }
}

/// Takes back what it has on the table.
fn withdrawn(context: &Context<'_>, trade: &Trade) -> Order {
    let own = context.database().and_then(|own| trade.side_of(own));
    let table = own.and_then(|side| trade.side(side).table.iter().next());
    let (slot, assets) = table.map_or_else(Default::default, |(slot, assets)| (*slot, assets.clone()));
    Order::Withdraw {
        trade: trade.id,
        slot,
        assets,
    }
}

fn pick<T>(from: &[T], roll: u64) -> Option<&T> {
    from.get(usize::try_from(roll % from.len().max(1) as u64).ok()?)
}
