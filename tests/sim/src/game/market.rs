//! Trading: an entity that is asked to deal does something random with its holdings, sensible or not.

use annals_event::ledger::{Assets, Booking, Goods, Holdings, Order, Stage, Trade};
use annals_ids::{AssetKind, DatabaseId, Slot, TransferId};
use annals_node::Context;
use std::collections::BTreeMap;

/// A counted asset.
const COIN: AssetKind = AssetKind(1);

/// An asset with individual items.
const RING: AssetKind = AssetKind(2);

/// Game time after which entities no longer react to the ledger's notices, milliseconds.
const LAST_DEAL: u64 = 30_000;

/// The inventory and the worn items.
const SLOTS: [Slot; 2] = [Slot(0), Slot(1)];

/// Partners are stored entities whose numbers differ by at most this much; some of them do not exist.
const NEAR: u64 = 2;

/// Places a random order. A rejection is fine: nothing else depends on it.
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
            // The outcome arrives in `booked`, like all others.
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
        // More than any entity has.
        _ => Order::Give {
            slot: from,
            to: with,
            assets: Assets::units(COIN, 1 << 40),
            expires: context.wall(),
        },
    };
    let _ = context.order(order);
}

/// A stored entity with a nearby number, which may not exist.
fn neighbour(context: &Context<'_>, roll: u64) -> DatabaseId {
    let own = context.database().map_or(0, |own| own.0);
    let distance = 1 + roll % NEAR;
    DatabaseId(match roll >> 4 & 1 {
        0 => own.saturating_sub(distance),
        _ => own + distance,
    })
}

/// Continues a changed trade: accepts, or adds something to the table, or mostly does nothing, so that trading comes to
/// an end.
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

/// Part of a slot's contents; nothing if it is empty, which is rejected.
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

/// The order that takes back its side of the table.
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
