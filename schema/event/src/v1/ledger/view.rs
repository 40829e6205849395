//! The ledger view of a base part: it belongs to the part's folded state.

use std::collections::BTreeMap;

use annals_ids::{EntityId, TradeId, TransferId, TransferNumber};

use super::{
    ASSETS_PER_ORDER, ASSETS_PER_SIDE, Assets, Booking, Change, Gift, Goods, Holdings, LedgerUpdate, OpenPart, Order,
    Slots, Stage, Trade, UnknownTransfer,
};

/// Size of an order's entry, its notice with two tables for two parties, and the rows of the parties (bytes).
const ORDER_BYTES: usize = 8 << 10;

/// Size that each of its assets adds (bytes): in order, entry and update, its own row and the rows that index it.
const ASSET_BYTES: usize = 400;

/// What a base part knows of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerView {
    /// The number of its last order.
    pub last: TransferNumber,
    /// Orders without a result so far.
    pub orders: BTreeMap<TransferNumber, Order>,
    /// The holdings of its stored entity; `None` until the first statement has arrived.
    pub holdings: Option<Holdings>,
    /// The open trades.
    pub trades: BTreeMap<TradeId, Trade>,
    /// The transfers that it has reserved for others.
    pub gifts: BTreeMap<TransferId, Gift>,
}

impl LedgerView {
    /// Records an order.
    ///
    /// # Errors
    /// When its number is not the next.
    pub fn order(&mut self, number: TransferNumber, order: &Order) -> Result<(), &'static str> {
        if number != self.last.next() {
            return Err("it is not the next order");
        }
        self.last = number;
        self.orders.insert(number, order.clone());
        Ok(())
    }

    /// Upper bound of the bytes that db writes when it executes an order: the batch with the order must fit into one
    /// transaction together with all of that. The parties know the content of open trades and transfers, except for
    /// recent changes.
    #[must_use]
    pub fn weight(&self, order: &Order) -> usize {
        let parts = order.parts();
        let goods = parts.goods.map_or(0, Goods::count);
        let restored = parts.restored.map_or(0, BTreeMap::len);
        let named = parts.assets.map_or(0, Assets::count);
        let moved = match parts.open {
            Some(OpenPart::Transfer(of, unknown)) => match (self.gifts.get(&of), unknown) {
                (Some(gift), _) => gift.assets.count(),
                (None, UnknownTransfer::IsMoved) => ASSETS_PER_ORDER,
                (None, UnknownTransfer::IsRefused) => 0,
            },
            // An acceptance of another version than the known one is refused, or cannot be foreseen here.
            Some(OpenPart::Table(_)) => 2 * ASSETS_PER_SIDE,
            Some(OpenPart::Trade(_)) | None => 0,
        };
        let assets = goods
            .saturating_add(restored)
            .saturating_add(named)
            .saturating_add(moved);
        ORDER_BYTES + assets * ASSET_BYTES
    }

    /// Applies an update from the ledger for the base part of `entity`.
    ///
    /// # Errors
    /// When it does not follow the earlier update; the view must then be discarded.
    pub fn book(&mut self, entity: EntityId, update: &LedgerUpdate) -> Result<(), &'static str> {
        match update {
            LedgerUpdate::Statement(statement) => {
                self.holdings = Some(statement.holdings.clone());
                self.trades = statement.trades.clone();
                self.gifts = statement.gifts.clone();
                Ok(())
            }
            LedgerUpdate::Booking(booking) => self.book_entry(entity, booking),
        }
    }

    fn book_entry(&mut self, entity: EntityId, booking: &Booking) -> Result<(), &'static str> {
        if booking.of.asker == entity {
            self.orders.remove(&booking.of.number);
        }
        if let Some(change) = &booking.change {
            let holdings = self.holdings.as_mut().ok_or("no statement came before")?;
            holdings.change(change)?;
        }
        if let Some(trade) = &booking.trade {
            match trade.stage {
                Stage::Open => self.trades.insert(trade.id, trade.clone()),
                Stage::Settled | Stage::Cancelled | Stage::Expired => self.trades.remove(&trade.id),
            };
        }
        if let Some(gift) = &booking.gift {
            match gift.stage {
                Stage::Open => self.gifts.insert(gift.id, gift.clone()),
                Stage::Settled | Stage::Cancelled | Stage::Expired => self.gifts.remove(&gift.id),
            };
        }
        Ok(())
    }
}

impl Holdings {
    /// Applies a change.
    ///
    /// # Errors
    /// When it is not the next, or removes assets that are not held.
    pub fn change(&mut self, change: &Change) -> Result<(), &'static str> {
        if self.version.0.checked_add(1) != Some(change.version.0) {
            return Err("it is not the next change of the holdings");
        }
        for (slot, assets) in &change.gone {
            let held = self
                .slots
                .get_mut(slot)
                .ok_or("the holder does not have the removed asset")?;
            held.take(assets)
                .map_err(|_| "the holder does not have the removed asset")?;
        }
        add(&mut self.slots, &change.come)?;
        self.slots.retain(|_, held| !held.is_empty());
        self.version = change.version;
        Ok(())
    }
}

fn add(slots: &mut Slots, others: &Slots) -> Result<(), &'static str> {
    for (slot, assets) in others {
        let held = slots.entry(*slot).or_default();
        held.add(assets).map_err(|_| "the holder already has the added asset")?;
    }
    Ok(())
}
