//! Execution of each order, and expiry. The functions are in the order of [`Order`].

use std::collections::BTreeMap;

use annals_event::ledger::{
    ASSETS_PER_SIDE, AssetSlot, Assets, Gift, Goods, Holder, LONGEST_OPEN, OPEN_PER_HOLDER, Offer, Order, Outcome,
    RefusalReason, Side, Stage, Trade,
};
use annals_ids::{AssetKind, DatabaseId, OfferVersion, Serial, Slot, TradeId, TransferId, WallTime};
use annals_store::layout::ledger::Head;

use super::{EntryBuilder, breach};
use crate::ledger::{
    books::{HolderRow, Item, Open, Row, Stop},
    rules::Ask,
};

/// Slot for assets that are received, bought or made without a slot.
const INVENTORY: Slot = Slot(0);

impl EntryBuilder<'_> {
    pub(in crate::ledger) fn carry_out(&mut self, ask: &Ask) -> Result<Outcome, Stop> {
        if ask.holder == DatabaseId(0) {
            return Err(RefusalReason::NotStored.into());
        }
        let life = self.books.holder(ask.holder)?.and_then(|row| row.life);
        if life.is_none_or(|life| life.entity != ask.of.asker) {
            return Err(RefusalReason::NotAlive.into());
        }
        ask.order.check()?;
        match &ask.order {
            Order::Mint { slot, goods, .. } => self.mint(*slot, goods, &BTreeMap::new()),
            Order::Grant {
                slot, goods, restored, ..
            } => self.mint(*slot, goods, restored),
            Order::Burn { slot, assets, .. } | Order::Take { slot, assets, .. } => {
                self.shift(self.own(*slot), WORLD, assets)?;
                Ok(Outcome::Posted)
            }
            Order::Move { from, to, assets } => {
                let before = self.row(self.holder)?.held;
                self.shift(self.own(*from), self.own(*to), assets)?;
                if self.row(self.holder)?.held > before {
                    self.check_room(self.holder)?;
                }
                Ok(Outcome::Posted)
            }
            Order::Give {
                slot,
                to,
                assets,
                expires,
            } => self.give(*slot, *to, assets, *expires),
            Order::Post { of } => self.post(*of),
            Order::Void { of } => self.void(*of),
            Order::Propose { with, expires } => self.propose(*with, *expires),
            Order::Offer { trade, slot, assets } => self.offer(*trade, *slot, assets),
            Order::Withdraw { trade, slot, assets } => self.withdraw(*trade, *slot, assets),
            Order::Accept { trade, version } => self.accept(*trade, *version),
            Order::Cancel { trade } => self.cancel(*trade),
            Order::Delete => self.delete(),
        }
    }

    /// Creates goods, and restores items that went to the world.
    fn mint(&mut self, slot: Slot, goods: &Goods, restored: &BTreeMap<Serial, AssetKind>) -> Result<Outcome, Stop> {
        // Before anything is created: no serial that is about to be given may have been one of these.
        for (serial, kind) in restored {
            let item = Item {
                kind: *kind,
                place: WORLD,
            };
            if self.books.item(*serial)? != Some(item) {
                return Err(RefusalReason::NotHeld.into());
            }
        }
        let mut assets = Assets {
            units: goods.units.clone(),
            items: restored.clone(),
        };
        let mut head = self.books.head()?;
        for (kind, count) in &goods.items {
            for _ in 0..*count {
                head.serial = head.serial.next();
                let item = Item {
                    kind: *kind,
                    place: WORLD,
                };
                self.books.items.set(head.serial, Some(item));
                assets.items.insert(head.serial, *kind);
            }
        }
        self.books.head.set((), Some(head));
        self.shift(WORLD, self.own(slot), &assets)?;
        self.check_room(self.holder)?;
        Ok(Outcome::Posted)
    }

    fn give(&mut self, slot: Slot, to: DatabaseId, assets: &Assets, expires: WallTime) -> Result<Outcome, Stop> {
        self.check_other(to)?;
        self.check_deadline(expires)?;
        self.enter_into(self.holder)?;
        let pending = AssetSlot {
            holder: Holder::Pending(self.of),
            slot,
        };
        self.shift(self.own(slot), pending, assets)?;
        let gift = Gift {
            id: self.of,
            stage: Stage::Open,
            from: self.holder,
            to,
            slot,
            assets: assets.clone(),
            expires,
        };
        self.books.open.set(self.of, Some(Open::Gift(gift.clone())));
        self.note_deadline(expires)?;
        self.gift = Some(gift);
        Ok(Outcome::Pending)
    }

    fn post(&mut self, of: TransferId) -> Result<Outcome, Stop> {
        let mut gift = self.open_gift(of)?;
        if gift.from != self.holder {
            return Err(RefusalReason::NotParty.into());
        }
        if gift.expires <= self.wall {
            return Err(RefusalReason::NotOpen.into());
        }
        if self.row(gift.to)?.deleted {
            return Err(RefusalReason::UnknownHolder.into());
        }
        self.shift(pending(&gift), inventory(gift.to), &gift.assets)?;
        self.check_room(gift.to)?;
        gift.stage = Stage::Settled;
        self.close(of, [gift.from])?;
        self.notified.push(gift.to);
        self.gift = Some(gift);
        Ok(Outcome::Posted)
    }

    fn void(&mut self, of: TransferId) -> Result<Outcome, Stop> {
        let gift = self.open_gift(of)?;
        if ![gift.from, gift.to].contains(&self.holder) {
            return Err(RefusalReason::NotParty.into());
        }
        self.return_gift(gift, Stage::Cancelled)?;
        Ok(Outcome::Voided)
    }

    fn propose(&mut self, with: DatabaseId, expires: WallTime) -> Result<Outcome, Stop> {
        self.check_other(with)?;
        self.check_deadline(expires)?;
        self.enter_into(self.holder)?;
        self.enter_into(with)?;
        let side = |holder| Offer {
            holder,
            ..Offer::default()
        };
        let trade = Trade {
            id: TradeId(self.of),
            stage: Stage::Open,
            version: OfferVersion(0),
            expires,
            proposer: side(self.holder),
            partner: side(with),
        };
        self.show(trade);
        self.note_deadline(expires)?;
        Ok(Outcome::Pending)
    }

    fn offer(&mut self, id: TradeId, slot: Slot, assets: &Assets) -> Result<Outcome, Stop> {
        let (mut trade, side) = self.open_trade(id)?;
        let on_table = trade.side(side).table.values().map(Assets::count).sum::<usize>();
        if on_table + assets.count() > ASSETS_PER_SIDE {
            return Err(RefusalReason::TableFull.into());
        }
        self.shift(self.own(slot), table(id, side, slot), assets)?;
        let held = trade.side_mut(side).table.entry(slot).or_default();
        held.add(assets)
            .map_err(|_| breach(Row::Open(id.0), "an item is on the table twice"))?;
        renew(&mut trade);
        self.show(trade);
        Ok(Outcome::Posted)
    }

    fn withdraw(&mut self, id: TradeId, slot: Slot, assets: &Assets) -> Result<Outcome, Stop> {
        let (mut trade, side) = self.open_trade(id)?;
        let on_table = &mut trade.side_mut(side).table;
        let held = on_table.get_mut(&slot).ok_or(RefusalReason::NotHeld)?;
        held.take(assets).map_err(|_| RefusalReason::NotHeld)?;
        on_table.retain(|_, held| !held.is_empty());
        self.shift(table(id, side, slot), self.own(slot), assets)?;
        renew(&mut trade);
        self.show(trade);
        Ok(Outcome::Posted)
    }

    fn accept(&mut self, id: TradeId, version: OfferVersion) -> Result<Outcome, Stop> {
        let (mut trade, side) = self.open_trade(id)?;
        if trade.version != version {
            return Err(RefusalReason::Stale.into());
        }
        trade.side_mut(side).accepted = true;
        if !trade.side(side.other()).accepted {
            self.show(trade);
            return Ok(Outcome::Posted);
        }
        for side in [Side::Proposer, Side::Partner] {
            let to = inventory(trade.side(side.other()).holder);
            for (slot, assets) in &trade.side(side).table {
                self.shift(table(id, side, *slot), to, assets)?;
            }
        }
        let parties = [trade.proposer.holder, trade.partner.holder];
        for party in parties {
            self.check_room(party)?;
        }
        trade.stage = Stage::Settled;
        self.close(id.0, parties)?;
        self.notified.extend(parties);
        self.trade = Some(trade);
        Ok(Outcome::Posted)
    }

    fn cancel(&mut self, id: TradeId) -> Result<Outcome, Stop> {
        let trade = self.find_trade(id)?;
        if trade.side_of(self.holder).is_none() {
            return Err(RefusalReason::NotParty.into());
        }
        self.return_trade(trade, Stage::Cancelled)?;
        Ok(Outcome::Voided)
    }

    /// Closes the holder for ever. Assets are never destroyed with their holder.
    fn delete(&mut self) -> Result<Outcome, Stop> {
        let row = self.row(self.holder)?;
        if row.held > 0 || row.open > 0 {
            return Err(RefusalReason::StillHolds.into());
        }
        let row = HolderRow {
            life: None,
            deleted: true,
            ..row
        };
        self.books.holders.set(self.holder, Some(row));
        Ok(Outcome::Posted)
    }

    pub(in crate::ledger) fn return_gift(&mut self, mut gift: Gift, stage: Stage) -> Result<(), Stop> {
        let back = AssetSlot {
            holder: Holder::Stored(gift.from),
            slot: gift.slot,
        };
        self.shift(pending(&gift), back, &gift.assets)?;
        self.close(gift.id, [gift.from])?;
        gift.stage = stage;
        self.notified.push(gift.from);
        self.gift = Some(gift);
        Ok(())
    }

    pub(in crate::ledger) fn return_trade(&mut self, mut trade: Trade, stage: Stage) -> Result<(), Stop> {
        for side in [Side::Proposer, Side::Partner] {
            for (slot, assets) in &trade.side(side).table {
                let back = AssetSlot {
                    holder: Holder::Stored(trade.side(side).holder),
                    slot: *slot,
                };
                self.shift(table(trade.id, side, *slot), back, assets)?;
            }
        }
        let parties = [trade.proposer.holder, trade.partner.holder];
        self.close(trade.id.0, parties)?;
        trade.stage = stage;
        self.notified.extend(parties);
        self.trade = Some(trade);
        Ok(())
    }

    fn check_other(&self, other: DatabaseId) -> Result<(), Stop> {
        if other == self.holder {
            return Err(RefusalReason::Oneself.into());
        }
        match self.books.holder(other)? {
            Some(row) if !row.deleted => Ok(()),
            _ => Err(RefusalReason::UnknownHolder.into()),
        }
    }

    fn check_deadline(&self, expires: WallTime) -> Result<(), Stop> {
        match expires.0.checked_sub(self.wall.0) {
            Some(1..=LONGEST_OPEN) => Ok(()),
            _ => Err(RefusalReason::BadDeadline.into()),
        }
    }

    /// Notes a deadline, so that expiry is checked from then on.
    fn note_deadline(&mut self, expires: WallTime) -> Result<(), Stop> {
        let head = self.books.head()?;
        let due = head.due.map_or(expires, |due| due.min(expires));
        self.books.head.set((), Some(Head { due: Some(due), ..head }));
        Ok(())
    }

    /// Adds one to a holder's open trades and gifts.
    fn enter_into(&mut self, holder: DatabaseId) -> Result<(), Stop> {
        let mut row = self.row(holder)?;
        if row.open >= OPEN_PER_HOLDER {
            return Err(RefusalReason::TooManyOpen.into());
        }
        row.open += 1;
        self.books.holders.set(holder, Some(row));
        Ok(())
    }

    fn close<const N: usize>(&mut self, id: TransferId, parties: [DatabaseId; N]) -> Result<(), Stop> {
        self.books.open.set(id, None);
        for party in parties {
            let mut row = self.row(party)?;
            let open = row.open.checked_sub(1);
            row.open = open.ok_or_else(|| {
                breach(
                    Row::Holder(party),
                    "it has fewer open trades and transfers than have ended",
                )
            })?;
            self.books.holders.set(party, Some(row));
        }
        Ok(())
    }

    fn open_gift(&self, of: TransferId) -> Result<Gift, Stop> {
        match self.books.opened(of)? {
            Some(Open::Gift(gift)) => Ok(gift.clone()),
            Some(Open::Trade(_)) | None => Err(RefusalReason::NotOpen.into()),
        }
    }

    fn find_trade(&self, id: TradeId) -> Result<Trade, Stop> {
        match self.books.opened(id.0)? {
            Some(Open::Trade(trade)) => Ok(trade.clone()),
            Some(Open::Gift(_)) | None => Err(RefusalReason::NotOpen.into()),
        }
    }

    /// Returns an open trade, and the asker's side of it.
    fn open_trade(&self, id: TradeId) -> Result<(Trade, Side), Stop> {
        let trade = self.find_trade(id)?;
        let side = trade.side_of(self.holder).ok_or(RefusalReason::NotParty)?;
        if trade.expires <= self.wall {
            return Err(RefusalReason::NotOpen.into());
        }
        Ok((trade, side))
    }

    /// Stores the trade and notifies both sides.
    fn show(&mut self, trade: Trade) {
        self.notified.extend([trade.proposer.holder, trade.partner.holder]);
        self.books.open.set(trade.id.0, Some(Open::Trade(trade.clone())));
        self.trade = Some(trade);
    }

    fn own(&self, slot: Slot) -> AssetSlot {
        AssetSlot {
            holder: Holder::Stored(self.holder),
            slot,
        }
    }
}

const WORLD: AssetSlot = AssetSlot {
    holder: Holder::World,
    slot: INVENTORY,
};

fn inventory(holder: DatabaseId) -> AssetSlot {
    AssetSlot {
        holder: Holder::Stored(holder),
        slot: INVENTORY,
    }
}

fn pending(gift: &Gift) -> AssetSlot {
    AssetSlot {
        holder: Holder::Pending(gift.id),
        slot: gift.slot,
    }
}

fn table(id: TradeId, side: Side, slot: Slot) -> AssetSlot {
    AssetSlot {
        holder: Holder::Trade(id, side),
        slot,
    }
}

/// Resets both acceptances, because the offer has changed.
fn renew(trade: &mut Trade) {
    trade.version = trade.version.next();
    trade.proposer.accepted = false;
    trade.partner.accepted = false;
}
