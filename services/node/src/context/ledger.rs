//! What behaviour can do with the ledger: read what its entity holds, and order.

use annals_event::{
    Body,
    ledger::{Assets, LONGEST_OPEN, LedgerView, ORDERS_WAITING, Order},
};
use annals_ids::{DatabaseId, EntityId, OfferVersion, Slot, TradeId, TransferId, WallTime};

use super::{Context, Denied};
use crate::owner_context::OwnerContext;

impl OwnerContext {
    /// What the base part of an entity knows of the ledger.
    #[must_use]
    pub fn ledger(&self, entity: EntityId) -> Option<&LedgerView> {
        Some(&self.image(entity)?.base()?.ledger)
    }

    /// Records an order of the base part of an entity; whoever calls has seen to it that it may order.
    pub fn order(&mut self, entity: EntityId, order: Order) -> Option<TransferId> {
        let number = self.ledger(entity)?.last.next();
        self.record_for(entity, false, Body::Ordered { number, order });
        Some(TransferId { asker: entity, number })
    }
}

impl Context<'_> {
    /// What the entity knows of the ledger: what it holds, its open trades, what it has reserved for others, and the orders
    /// that it has not heard of yet. It lags behind the ledger by what is on its way, and never shows what another may see at
    /// the same time. `None` for a cell part.
    #[must_use]
    pub fn ledger(&self) -> Option<&LedgerView> {
        self.cx.ledger(self.entity)
    }

    /// Wall-clock time: in this the ledger's deadlines are.
    #[must_use]
    pub fn wall(&self) -> WallTime {
        self.cx.now.wall
    }

    /// Asks something of the ledger. It is executed once, even if either side dies; what came of it is told to
    /// [`Behaviour::booked`](crate::Behaviour::booked), with the transfer's id.
    ///
    /// # Errors
    /// When this is the cell part, the entity is none of the database's, what it holds is not known yet, too many of its
    /// orders wait, the order is an operator's, or it would be refused whatever anybody holds.
    pub fn order(&mut self, order: Order) -> Result<TransferId, Denied> {
        let Some(view) = self.ledger() else {
            return Err(Denied::BaseOnly { what: "order" });
        };
        if self.database().is_none() {
            return Err(Denied::NotStored);
        }
        if order.warrant().is_some() {
            return Err(Denied::OperatorsOrder);
        }
        if view.holdings.is_none() {
            return Err(Denied::HoldingsUnknown);
        }
        if view.orders.len() >= ORDERS_WAITING {
            return Err(Denied::TooManyOrders);
        }
        order.check().map_err(Denied::Order)?;
        let mut bytes = Vec::new();
        order.write(&mut bytes);
        self.cx.needs(bytes.len())?;
        let ordered = self.cx.order(self.entity, order);
        Ok(ordered.expect("invariant: the entity has a base part"))
    }

    /// Gives assets to another entity of the database. They leave at once; the other gets them when the entity has heard
    /// that they left, or the entity gets them back after `within_ms`, whichever comes first.
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn give(&mut self, slot: Slot, to: DatabaseId, assets: Assets, within_ms: u64) -> Result<TransferId, Denied> {
        let expires = self.deadline(within_ms);
        self.order(Order::Give {
            slot,
            to,
            assets,
            expires,
        })
    }

    /// Opens a trade with another entity of the database, which ends after `within_ms` if it was not settled by then.
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn propose(&mut self, with: DatabaseId, within_ms: u64) -> Result<TradeId, Denied> {
        let expires = self.deadline(within_ms);
        self.order(Order::Propose { with, expires }).map(TradeId)
    }

    /// Puts assets on the table of a trade. They leave at once, and both acceptances are void.
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn offer(&mut self, trade: TradeId, slot: Slot, assets: Assets) -> Result<TransferId, Denied> {
        self.order(Order::Offer { trade, slot, assets })
    }

    /// Takes assets back from the table of a trade; `slot` is where they came from.
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn withdraw(&mut self, trade: TradeId, slot: Slot, assets: Assets) -> Result<TransferId, Denied> {
        self.order(Order::Withdraw { trade, slot, assets })
    }

    /// Accepts what is on the table of a trade, if that is still what `version` names.
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn accept(&mut self, trade: TradeId, version: OfferVersion) -> Result<TransferId, Denied> {
        self.order(Order::Accept { trade, version })
    }

    /// Ends a trade: everything on the table goes back.
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn cancel(&mut self, trade: TradeId) -> Result<TransferId, Denied> {
        self.order(Order::Cancel { trade })
    }

    fn deadline(&self, within_ms: u64) -> WallTime {
        WallTime(self.wall().0.saturating_add(within_ms.min(LONGEST_OPEN)))
    }
}
