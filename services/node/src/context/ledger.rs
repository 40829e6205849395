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
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.pass(500);
    /// # scene.on_account(|own| {
    /// let holdings = own.context.ledger().and_then(|view| view.holdings.as_ref());
    /// assert!(holdings.is_some_and(|holdings| holdings.slots.is_empty()));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn ledger(&self) -> Option<&LedgerView> {
        self.cx.ledger(self.entity)
    }

    /// Wall-clock time, milliseconds since 1970, in which the ledger's deadlines are expressed.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_account(|own| {
    /// let tomorrow = ids::WallTime(own.context.wall().0 + 86_400_000);
    /// assert!(tomorrow > own.context.wall());
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn wall(&self) -> WallTime {
        self.cx.now.wall
    }

    /// Gives an order to the ledger. It is executed once, even if either side fails; its outcome is reported to
    /// [`Behaviour::booked`](crate::Behaviour::booked), with the transfer's id.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.pass(500);
    /// # scene.on_account(|own| {
    /// let goods = event::ledger::Goods { units: [(kinds::COIN, 5)].into(), items: [(kinds::SWORD, 1)].into() };
    /// let reason = "what everybody begins with".to_owned();
    /// own.context.order(Order::Mint { slot: slots::CARRIED, goods, reason })?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().contains(&"booked Posted".to_owned()));
    /// ```
    ///
    /// # Errors
    /// [`Denied::BaseOnly`] on the cell part; [`Denied::NotStored`] if the entity is not stored;
    /// [`Denied::HoldingsUnknown`] before [`holdings_known`](crate::Behaviour::holdings_known);
    /// [`Denied::TooManyOrders`] if too many of its orders are unanswered; [`Denied::OperatorsOrder`] if the order is
    /// reserved for operators; [`Denied::Order`] if it would be refused whatever the holdings.
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
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let friend = scene.rich_friend();
    /// # scene.on_account(move |own| {
    /// let gift = Assets::units(kinds::COIN, 3);
    /// own.context.give(slots::CARRIED, friend, gift, 60_000)?;
    /// # Ok(()) });
    /// # scene.pass(1_500);
    /// # let called = scene.called();
    /// # assert!(called.contains(&"booked Posted".to_owned()), "{called:?}");
    /// ```
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

    /// Opens a trade with another stored entity. It ends after `within_ms` milliseconds unless it is settled by then.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let friend = scene.rich_friend();
    /// # scene.on_account(move |own| {
    /// let trade = own.context.propose(friend, 300_000)?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().contains(&"booked Pending".to_owned()));
    /// ```
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn propose(&mut self, with: DatabaseId, within_ms: u64) -> Result<TradeId, Denied> {
        let expires = self.deadline(within_ms);
        self.order(Order::Propose { with, expires }).map(TradeId)
    }

    /// Puts assets on the table of a trade. They leave at once, and both acceptances become void.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let friend = scene.rich_friend();
    /// # let trade = scene.on_account(move |own| own.context.propose(friend, 300_000));
    /// # scene.pass(1_000);
    /// # scene.on_account(move |own| {
    /// own.context.offer(trade, slots::CARRIED, Assets::units(kinds::COIN, 3))?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().iter().all(|hook| !hook.contains("Refused")));
    /// ```
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn offer(&mut self, trade: TradeId, slot: Slot, assets: Assets) -> Result<TransferId, Denied> {
        self.order(Order::Offer { trade, slot, assets })
    }

    /// Takes assets back from the table of a trade; `slot` is their origin.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let friend = scene.rich_friend();
    /// # let trade = scene.on_account(move |own| own.context.propose(friend, 300_000));
    /// # scene.pass(1_000);
    /// # scene.on_account(move |own| own.context.offer(trade, slots::CARRIED, Assets::units(kinds::COIN, 3)));
    /// # scene.pass(1_000);
    /// # scene.on_account(move |own| {
    /// own.context.withdraw(trade, slots::CARRIED, Assets::units(kinds::COIN, 3))?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().iter().all(|hook| !hook.contains("Refused")));
    /// ```
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn withdraw(&mut self, trade: TradeId, slot: Slot, assets: Assets) -> Result<TransferId, Denied> {
        self.order(Order::Withdraw { trade, slot, assets })
    }

    /// Accepts the offers of a trade, if `version` is still current: the other party may have changed its offer
    /// meanwhile. Once both have accepted, the offers are exchanged.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let friend = scene.rich_friend();
    /// # let trade = scene.on_account(move |own| own.context.propose(friend, 300_000));
    /// # scene.pass(1_000);
    /// # scene.on_account(move |own| {
    /// let version = own.context.ledger().and_then(|view| view.trades.get(&trade)).map(|trade| trade.version);
    /// own.context.accept(trade, version.unwrap_or_default())?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().iter().all(|hook| !hook.contains("Refused")));
    /// ```
    ///
    /// # Errors
    /// As [`Context::order`].
    pub fn accept(&mut self, trade: TradeId, version: OfferVersion) -> Result<TransferId, Denied> {
        self.order(Order::Accept { trade, version })
    }

    /// Ends a trade: everything on the table goes back.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let friend = scene.rich_friend();
    /// # let trade = scene.on_account(move |own| own.context.propose(friend, 300_000));
    /// # scene.pass(1_000);
    /// # scene.on_account(move |own| {
    /// own.context.cancel(trade)?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().iter().all(|hook| !hook.contains("Refused")));
    /// ```
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
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.pass(500);
    /// # scene.on_account(|own| {
    /// own.context.delete()?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().contains(&"destroyed".to_owned()));
    /// ```
    ///
    /// # Errors
    /// As [`Context::order`]; at once with [`Denied::Order`] of [`RefusalReason::StillHolds`] if the entity knows that
    /// it would be refused.
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
