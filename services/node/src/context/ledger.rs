//! Ledger operations of behaviour: reading the entity's holdings, and giving orders.

use annals_event::{
    Body,
    ledger::{Assets, LONGEST_OPEN, LedgerView, ORDERS_WAITING, Order, RefusalReason},
};
use annals_ids::{DatabaseId, EntityId, OfferVersion, Slot, TradeId, TransferId, WallTime};

use super::{Context, Denied};
use crate::owner_context::OwnerContext;

impl OwnerContext {
    /// The ledger view of an entity's base part.
    #[must_use]
    pub fn ledger(&self, entity: EntityId) -> Option<&LedgerView> {
        Some(&self.image(entity)?.base()?.ledger)
    }

    /// Records an order of an entity's base part; the caller has checked that the entity may give it.
    pub fn order(&mut self, entity: EntityId, order: Order) -> Option<TransferId> {
        let number = self.ledger(entity)?.last.next();
        self.record_for(entity, false, Body::Ordered { number, order });
        Some(TransferId { asker: entity, number })
    }
}

impl Context<'_> {
    /// The entity's view of the ledger: its holdings, its open trades, its reservations for others, and its unanswered
    /// orders. It lags behind the ledger by the messages in flight, and never shows what another may see at the same
    /// time. `None` for a cell part.
    #[must_use]
    pub fn ledger(&self) -> Option<&LedgerView> {
        self.cx.ledger(self.entity)
    }

    /// Wall-clock time, in which the ledger's deadlines are expressed.
    #[must_use]
    pub fn wall(&self) -> WallTime {
        self.cx.now.wall
    }

    /// Gives an order to the ledger. It is executed once, even if either side fails; its outcome is reported to
    /// [`Behaviour::booked`](crate::Behaviour::booked), with the transfer's id.
    ///
    /// # Errors
    /// If this is the cell part, the entity is not stored, its holdings are not known yet, too many of its orders are
    /// unanswered, the order is reserved for operators, or it would be refused whatever the holdings.
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

    /// Gives assets to another stored entity. They leave at once. The receiver gets them when it has been notified that
    /// they left, or the giver gets them back after `within_ms`, whichever comes first.
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

    /// Opens a trade with another stored entity. It ends after `within_ms` unless it is settled by then.
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn propose(&mut self, with: DatabaseId, within_ms: u64) -> Result<TradeId, Denied> {
        let expires = self.deadline(within_ms);
        self.order(Order::Propose { with, expires }).map(TradeId)
    }

    /// Puts assets on the table of a trade. They leave at once, and both acceptances become void.
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn offer(&mut self, trade: TradeId, slot: Slot, assets: Assets) -> Result<TransferId, Denied> {
        self.order(Order::Offer { trade, slot, assets })
    }

    /// Takes assets back from the table of a trade; `slot` is their origin.
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn withdraw(&mut self, trade: TradeId, slot: Slot, assets: Assets) -> Result<TransferId, Denied> {
        self.order(Order::Withdraw { trade, slot, assets })
    }

    /// Accepts the offers of a trade, if `version` is still current.
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

    /// Deletes the stored entity from the database and ends it (`destroy` with `deleteFromDB`). Its row, and all index
    /// entries by which it is found, are deleted once, and it is never activated again. The log, the archive and the
    /// ledger keep its past. What changes between this call and the end is lost.
    ///
    /// Assets are never destroyed with their holder. If the ledger has any, or a trade or reserved transfer of the
    /// entity is open, [`Behaviour::booked`](crate::Behaviour::booked) is called with
    /// [`RefusalReason::StillHolds`], and nothing is changed. A gift that is on its way to it goes back to the giver.
    ///
    /// # Errors
    /// As [`Context::order`]; at once with [`RefusalReason::StillHolds`] if the entity knows that it would be refused.
    pub fn delete(&mut self) -> Result<TransferId, Denied> {
        let holds = |view: &LedgerView| {
            let held = view.holdings.as_ref().is_some_and(|held| !held.slots.is_empty());
            held || !view.trades.is_empty() || !view.gifts.is_empty()
        };
        if self.ledger().is_some_and(holds) {
            return Err(Denied::Order(RefusalReason::StillHolds));
        }
        self.order(Order::Delete)
    }

    fn deadline(&self, within_ms: u64) -> WallTime {
        WallTime(self.wall().0.saturating_add(within_ms.min(LONGEST_OPEN)))
    }
}
