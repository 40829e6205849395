//! Orders to the ledger: what each asks for, what it names, and its encoding. All other code that treats orders alike
//! derives from [`Order::parts`].

use std::collections::BTreeMap;

use annals_ids::{AssetKind, DatabaseId, OfferVersion, Serial, Slot, TradeId, TransferId, WallTime};

use super::{
    Assets, Goods, RefusalReason, Warrant, check_count, check_reason,
    encoding::{put_items, put_transfer_id, take_database, take_items, take_slot, take_trade_id, take_transfer_id},
};
use crate::{
    encoding::{Malformed, ORDINALS, Reader, put_bytes, put_number},
    v1::call::take_text,
};

/// An order from a base part to the ledger. It can affect only the holdings of its own stored entity, and the trades
/// and transfers that this entity is party to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Makes assets.
    Mint {
        /// The receiving slot.
        slot: Slot,
        /// The assets to make.
        goods: Goods,
        /// The reason, for readers of the ledger; at most [`REASON_BYTES`](super::REASON_BYTES).
        reason: String,
    },
    /// Destroys assets.
    Burn {
        /// The slot they are in.
        slot: Slot,
        assets: Assets,
        /// The reason, for readers of the ledger; at most [`REASON_BYTES`](super::REASON_BYTES).
        reason: String,
    },
    /// Moves assets between slots of the same holder: to equip them, or put them into a bank.
    Move {
        /// The slot they are in.
        from: Slot,
        /// The receiving slot.
        to: Slot,
        assets: Assets,
    },
    /// Reserves a transfer to another holder: the assets leave at once, and enter the other's inventory with
    /// [`Order::Post`].
    Give {
        /// The slot they are in.
        slot: Slot,
        /// The receiver.
        to: DatabaseId,
        assets: Assets,
        /// Time of their return, unless the transfer was posted or voided before.
        expires: WallTime,
    },
    /// Completes a transfer that the same holder has reserved.
    Post {
        /// The transfer.
        of: TransferId,
    },
    /// Ends a reserved transfer: the assets go back. Allowed for the giver and the receiver.
    Void {
        /// The transfer.
        of: TransferId,
    },
    /// Opens a trade.
    Propose {
        /// The other party.
        with: DatabaseId,
        /// Time of its cancellation, unless it was settled before.
        expires: WallTime,
    },
    /// Puts assets on the table: they leave their slot at once.
    Offer {
        trade: TradeId,
        /// The slot they are in.
        slot: Slot,
        assets: Assets,
    },
    /// Takes assets back from the table.
    Withdraw {
        trade: TradeId,
        /// The slot that they came from and return to.
        slot: Slot,
        assets: Assets,
    },
    /// Accepts what is on the table. Once both sides have accepted, it is exchanged.
    Accept {
        trade: TradeId,
        /// The accepted version of the offers: any other is refused.
        version: OfferVersion,
    },
    /// Ends a trade: all assets go back.
    Cancel { trade: TradeId },
    /// An operator makes assets, or restores items that no longer exist.
    Grant {
        /// The receiving slot.
        slot: Slot,
        /// The assets to make.
        goods: Goods,
        /// The items to restore, under their serials, with their kinds.
        restored: BTreeMap<Serial, AssetKind>,
        /// The operator's authority.
        warrant: Box<Warrant>,
    },
    /// An operator destroys assets.
    Take {
        /// The slot they are in.
        slot: Slot,
        assets: Assets,
        /// The operator's authority.
        warrant: Box<Warrant>,
    },
    /// Deletes the stored entity from the database, if it holds nothing and is party to nothing that is open.
    Delete,
}

/// What an order names, whatever it asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderParts<'a> {
    /// The slot that its assets leave.
    pub from: Option<Slot>,
    /// The slot that its assets enter.
    pub to: Option<Slot>,
    /// The assets that it makes.
    pub goods: Option<&'a Goods>,
    /// The items that it restores.
    pub restored: Option<&'a BTreeMap<Serial, AssetKind>>,
    /// The assets that it moves or destroys.
    pub assets: Option<&'a Assets>,
    /// Another stored entity that is to be a party.
    pub party: Option<DatabaseId>,
    /// The open transfer or trade that it acts on.
    pub open: Option<OpenPart>,
    /// Whether it opens a trade.
    pub opens_trade: bool,
    /// The version of the offers.
    pub version: Option<OfferVersion>,
    /// The reason, for readers of the ledger.
    pub reason: Option<&'a str>,
    /// The operator's authority.
    pub warrant: Option<&'a Warrant>,
}

/// An open transfer or trade that an order acts on, and which of its assets the order moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenPart {
    /// The reserved assets of a transfer. A party that does not know the transfer may have to assume as many assets.
    Transfer(TransferId, UnknownTransfer),
    /// Nothing but the assets that the order names.
    Trade(TradeId),
    /// Everything that is on the table of a trade.
    Table(TradeId),
}

/// What an order does if the requester does not know the transfer that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownTransfer {
    /// It is refused: only the giver may order it, and the giver knows its transfers.
    IsRefused,
    /// It moves the assets of another giver.
    IsMoved,
}

impl OrderParts<'_> {
    fn acting_on(open: OpenPart) -> Self {
        Self {
            open: Some(open),
            ..Self::default()
        }
    }
}

impl OpenPart {
    /// The id of the transfer, or of the trade as a transfer.
    #[must_use]
    pub fn id(self) -> TransferId {
        match self {
            Self::Transfer(of, _) => of,
            Self::Trade(trade) | Self::Table(trade) => trade.0,
        }
    }
}

impl Order {
    /// What the order names.
    #[must_use]
    pub fn parts(&self) -> OrderParts<'_> {
        let none = OrderParts::default();
        match self {
            Order::Mint { slot, goods, reason } => OrderParts {
                to: Some(*slot),
                goods: Some(goods),
                reason: Some(reason),
                ..none
            },
            Order::Burn { slot, assets, reason } => OrderParts {
                from: Some(*slot),
                assets: Some(assets),
                reason: Some(reason),
                ..none
            },
            Order::Move { from, to, assets } => OrderParts {
                from: Some(*from),
                to: Some(*to),
                assets: Some(assets),
                ..none
            },
            Order::Give { slot, to, assets, .. } => OrderParts {
                from: Some(*slot),
                assets: Some(assets),
                party: Some(*to),
                ..none
            },
            Order::Post { of } => OrderParts::acting_on(OpenPart::Transfer(*of, UnknownTransfer::IsRefused)),
            Order::Void { of } => OrderParts::acting_on(OpenPart::Transfer(*of, UnknownTransfer::IsMoved)),
            Order::Propose { with, .. } => OrderParts {
                party: Some(*with),
                opens_trade: true,
                ..none
            },
            Order::Offer { trade, slot, assets } => OrderParts {
                from: Some(*slot),
                assets: Some(assets),
                ..OrderParts::acting_on(OpenPart::Trade(*trade))
            },
            Order::Withdraw { trade, slot, assets } => OrderParts {
                to: Some(*slot),
                assets: Some(assets),
                ..OrderParts::acting_on(OpenPart::Trade(*trade))
            },
            Order::Accept { trade, version } => OrderParts {
                version: Some(*version),
                ..OrderParts::acting_on(OpenPart::Table(*trade))
            },
            Order::Cancel { trade } => OrderParts::acting_on(OpenPart::Table(*trade)),
            Order::Grant {
                slot,
                goods,
                restored,
                warrant,
            } => OrderParts {
                to: Some(*slot),
                goods: Some(goods),
                restored: Some(restored),
                warrant: Some(warrant),
                ..none
            },
            Order::Take { slot, assets, warrant } => OrderParts {
                from: Some(*slot),
                assets: Some(assets),
                warrant: Some(warrant),
                ..none
            },
            Order::Delete => none,
        }
    }

    /// The operator's authority, if it is an operator's order.
    #[must_use]
    pub fn warrant(&self) -> Option<&Warrant> {
        self.parts().warrant
    }

    /// The trade that it opens or acts on, given the order's own id.
    #[must_use]
    pub fn trade(&self, own: TransferId) -> Option<TradeId> {
        let parts = self.parts();
        match parts.open {
            Some(OpenPart::Trade(trade) | OpenPart::Table(trade)) => Some(trade),
            Some(OpenPart::Transfer(..)) => None,
            None => parts.opens_trade.then_some(TradeId(own)),
        }
    }

    /// Checks everything that does not depend on the ledger's state. Must be called before an order is recorded.
    ///
    /// # Errors
    /// Why it would be refused in any state of the ledger.
    pub fn check(&self) -> Result<(), RefusalReason> {
        let parts = self.parts();
        // Players choose these ids, and an order with any other would be recorded and could never be decoded.
        if parts.version.is_some_and(|version| version.0 >= ORDINALS) {
            return Err(RefusalReason::Stale);
        }
        if parts.open.is_some_and(|open| open.id().number.0 >= ORDINALS) {
            return Err(RefusalReason::NotOpen);
        }
        parts.warrant.map_or(Ok(()), Warrant::check)?;
        if parts.from.is_some() && parts.from == parts.to {
            return Err(RefusalReason::SameSlot);
        }
        if let Some(goods) = parts.goods {
            goods.check_with(parts.restored.map_or(0, BTreeMap::len))?;
        }
        if let Some(assets) = parts.assets {
            check_count(assets.count(), assets.units.values().any(|&amount| amount == 0))?;
        }
        parts.reason.map_or(Ok(()), check_reason)
    }

    /// Appends the order.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Order::Mint { slot, goods, reason } => {
                put_tag(out, 0, *slot);
                goods.write(out);
                put_bytes(out, reason.as_bytes());
            }
            Order::Burn { slot, assets, reason } => {
                put_tag(out, 1, *slot);
                assets.write(out);
                put_bytes(out, reason.as_bytes());
            }
            Order::Move { from, to, assets } => {
                put_tag(out, 2, *from);
                put_number(out, u64::from(to.0));
                assets.write(out);
            }
            Order::Give {
                slot,
                to,
                assets,
                expires,
            } => {
                put_tag(out, 3, *slot);
                put_number(out, to.0);
                assets.write(out);
                put_number(out, expires.0);
            }
            Order::Post { of } => put_about(out, 4, *of),
            Order::Void { of } => put_about(out, 5, *of),
            Order::Propose { with, expires } => {
                out.push(6);
                put_number(out, with.0);
                put_number(out, expires.0);
            }
            Order::Offer { trade, slot, assets } => {
                put_about(out, 7, trade.0);
                put_number(out, u64::from(slot.0));
                assets.write(out);
            }
            Order::Withdraw { trade, slot, assets } => {
                put_about(out, 8, trade.0);
                put_number(out, u64::from(slot.0));
                assets.write(out);
            }
            Order::Accept { trade, version } => {
                put_about(out, 9, trade.0);
                put_number(out, version.0);
            }
            Order::Cancel { trade } => put_about(out, 10, trade.0),
            Order::Grant {
                slot,
                goods,
                restored,
                warrant,
            } => {
                put_tag(out, 11, *slot);
                goods.write(out);
                put_items(out, restored);
                warrant.write(out);
            }
            Order::Take { slot, assets, warrant } => {
                put_tag(out, 12, *slot);
                assets.write(out);
                warrant.write(out);
            }
            Order::Delete => out.push(13),
        }
    }

    /// Takes an order.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("order");
        Ok(match reader.byte("order")? {
            0 => Order::Mint {
                slot: take_slot(reader)?,
                goods: Goods::read(reader)?,
                reason: take_text(reader)?,
            },
            1 => Order::Burn {
                slot: take_slot(reader)?,
                assets: Assets::read(reader)?,
                reason: take_text(reader)?,
            },
            2 => Order::Move {
                from: take_slot(reader)?,
                to: take_slot(reader)?,
                assets: Assets::read(reader)?,
            },
            3 => Order::Give {
                slot: take_slot(reader)?,
                to: take_database(reader)?,
                assets: Assets::read(reader)?,
                expires: WallTime(reader.number("deadline")?),
            },
            4 => Order::Post {
                of: take_transfer_id(reader)?,
            },
            5 => Order::Void {
                of: take_transfer_id(reader)?,
            },
            6 => Order::Propose {
                with: take_database(reader)?,
                expires: WallTime(reader.number("deadline")?),
            },
            tag @ 7..=10 => Self::read_about_trade(tag, reader)?,
            11 => Order::Grant {
                slot: take_slot(reader)?,
                goods: Goods::read(reader)?,
                restored: take_items(reader)?,
                warrant: Box::new(Warrant::read(reader)?),
            },
            12 => Order::Take {
                slot: take_slot(reader)?,
                assets: Assets::read(reader)?,
                warrant: Box::new(Warrant::read(reader)?),
            },
            13 => Order::Delete,
            _ => return Err(wrong),
        })
    }

    fn read_about_trade(tag: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let trade = take_trade_id(reader)?;
        Ok(match tag {
            7 => Order::Offer {
                trade,
                slot: take_slot(reader)?,
                assets: Assets::read(reader)?,
            },
            8 => Order::Withdraw {
                trade,
                slot: take_slot(reader)?,
                assets: Assets::read(reader)?,
            },
            9 => Order::Accept {
                trade,
                version: OfferVersion(reader.ordinal("offer version")?),
            },
            _ => Order::Cancel { trade },
        })
    }
}

fn put_tag(out: &mut Vec<u8>, tag: u8, slot: Slot) {
    out.push(tag);
    put_number(out, u64::from(slot.0));
}

fn put_about(out: &mut Vec<u8>, tag: u8, of: TransferId) {
    out.push(tag);
    put_transfer_id(out, of);
}
