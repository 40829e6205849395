//! Encodings of the ledger's types.
//!
//! ```text
//! transfer = asker:number number:number                 trade  = transfer
//! holder   = 0:u8 | 1:u8 database:number | 2:u8 transfer | 3:u8 trade side:u8
//! place    = holder slot:number
//! assets   = count:number (kind:number amount:number)*  count:number (serial:number kind:number)*
//! warrant  = action:16 bytes operator:bytes tool:bytes reason:bytes
//! slots    = count:number (slot:number assets)*
//! order    = tag:u8 fields (in `order.rs`)   outcome = tag:u8 (reason:u8 if refused)        update = tag:u8 fields
//! ```
//! All other types are their fields in the order of their declaration; keys of maps ascend. Amounts that may be
//! negative are zigzag numbers.

use std::collections::BTreeMap;

use annals_ids::{
    ActionId, AssetKind, BatchNumber, DatabaseId, EntityId, EntryNumber, HoldingsVersion, LogPosition, OfferVersion,
    OwnerId, Serial, Slot, TradeId, TransferId, TransferNumber, WallTime,
};

use super::{
    Account, AssetSlot, Assets, Booking, Change, Delivery, Entry, Gift, Goods, Holder, Holdings, LedgerUpdate,
    LedgerView, Notice, Offer, Order, Outcome, Passage, Posting, RefusalReason, Side, Slots, Stage, Statement, Trade,
    Warrant,
};
use crate::{
    encoding::{Malformed, Reader, put_bytes, put_number},
    v1::call::{put_option, take_bool, take_option, take_text},
};

/// The reasons in the order of their numbers, which never change.
const REASONS: [RefusalReason; 20] = [
    RefusalReason::NotStored,
    RefusalReason::NotAlive,
    RefusalReason::Empty,
    RefusalReason::TooMany,
    RefusalReason::LongReason,
    RefusalReason::NotHeld,
    RefusalReason::SameSlot,
    RefusalReason::OtherNature,
    RefusalReason::Supply,
    RefusalReason::Full,
    RefusalReason::TooManyOpen,
    RefusalReason::TableFull,
    RefusalReason::UnknownHolder,
    RefusalReason::Oneself,
    RefusalReason::NotOpen,
    RefusalReason::NotParty,
    RefusalReason::Stale,
    RefusalReason::BadDeadline,
    RefusalReason::BadWarrant,
    RefusalReason::StillHolds,
];

const STAGES: [Stage; 4] = [Stage::Open, Stage::Settled, Stage::Cancelled, Stage::Expired];

pub(crate) fn put_transfer_id(out: &mut Vec<u8>, id: TransferId) {
    put_number(out, id.asker.0);
    put_number(out, id.number.0);
}

pub(crate) fn take_transfer_id(reader: &mut Reader<'_>) -> Result<TransferId, Malformed> {
    Ok(TransferId {
        asker: EntityId(reader.number("asker")?),
        number: TransferNumber(reader.ordinal("transfer number")?),
    })
}

pub(super) fn take_trade_id(reader: &mut Reader<'_>) -> Result<TradeId, Malformed> {
    take_transfer_id(reader).map(TradeId)
}

pub(super) fn take_slot(reader: &mut Reader<'_>) -> Result<Slot, Malformed> {
    Ok(Slot(reader.narrow("slot")?))
}

fn take_kind(reader: &mut Reader<'_>) -> Result<AssetKind, Malformed> {
    Ok(AssetKind(reader.narrow("asset kind")?))
}

pub(super) fn take_database(reader: &mut Reader<'_>) -> Result<DatabaseId, Malformed> {
    Ok(DatabaseId(reader.number("database id")?))
}

impl Holder {
    fn write(self, out: &mut Vec<u8>) {
        match self {
            Holder::World => out.push(0),
            Holder::Stored(database) => {
                out.push(1);
                put_number(out, database.0);
            }
            Holder::Pending(transfer) => {
                out.push(2);
                put_transfer_id(out, transfer);
            }
            Holder::Trade(trade, side) => {
                out.push(3);
                put_transfer_id(out, trade.0);
                out.push(u8::from(side == Side::Partner));
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("holder");
        Ok(match reader.byte("holder")? {
            0 => Holder::World,
            1 => Holder::Stored(take_database(reader)?),
            2 => Holder::Pending(take_transfer_id(reader)?),
            3 => {
                let trade = take_trade_id(reader)?;
                let side = if take_bool(reader)? {
                    Side::Partner
                } else {
                    Side::Proposer
                };
                Holder::Trade(trade, side)
            }
            _ => return Err(wrong),
        })
    }
}

impl AssetSlot {
    /// Appends the place.
    pub fn write(self, out: &mut Vec<u8>) {
        self.holder.write(out);
        put_number(out, u64::from(self.slot.0));
    }

    /// Takes a place.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(AssetSlot {
            holder: Holder::read(reader)?,
            slot: take_slot(reader)?,
        })
    }
}

impl Assets {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_units(out, &self.units);
        put_items(out, &self.items);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Assets {
            units: take_units(reader)?,
            items: take_items(reader)?,
        })
    }
}

impl Goods {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_units(out, &self.units);
        put_number(out, self.items.len() as u64);
        for (kind, count) in &self.items {
            put_number(out, u64::from(kind.0));
            put_number(out, u64::from(*count));
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Goods {
            units: take_units(reader)?,
            items: reader.map(2, "items", take_kind, |reader| reader.narrow("count"))?,
        })
    }
}

fn put_units(out: &mut Vec<u8>, units: &BTreeMap<AssetKind, u64>) {
    put_number(out, units.len() as u64);
    for (kind, amount) in units {
        put_number(out, u64::from(kind.0));
        put_number(out, *amount);
    }
}

fn take_units(reader: &mut Reader<'_>) -> Result<BTreeMap<AssetKind, u64>, Malformed> {
    reader.map(2, "units", take_kind, |reader| reader.number("amount"))
}

pub(super) fn put_items(out: &mut Vec<u8>, items: &BTreeMap<Serial, AssetKind>) {
    put_number(out, items.len() as u64);
    for (serial, kind) in items {
        put_number(out, serial.0);
        put_number(out, u64::from(kind.0));
    }
}

pub(super) fn take_items(reader: &mut Reader<'_>) -> Result<BTreeMap<Serial, AssetKind>, Malformed> {
    let serial = |reader: &mut Reader<'_>| Ok(Serial(reader.number("serial")?));
    reader.map(2, "items", serial, take_kind)
}

fn put_slots(out: &mut Vec<u8>, slots: &Slots) {
    put_number(out, slots.len() as u64);
    for (slot, assets) in slots {
        put_number(out, u64::from(slot.0));
        assets.write(out);
    }
}

fn take_slots(reader: &mut Reader<'_>) -> Result<Slots, Malformed> {
    reader.map(3, "slots", take_slot, Assets::read)
}

impl Warrant {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.action.0.to_be_bytes());
        for text in [&self.operator, &self.tool, &self.reason] {
            put_bytes(out, text.as_bytes());
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Warrant {
            action: ActionId(u128::from_be_bytes(reader.array("action")?)),
            operator: take_text(reader)?,
            tool: take_text(reader)?,
            reason: take_text(reader)?,
        })
    }
}

fn put_outcome(out: &mut Vec<u8>, outcome: Outcome) {
    out.push(match outcome {
        Outcome::Posted => 0,
        Outcome::Pending => 1,
        Outcome::Voided => 2,
        Outcome::Expired => 3,
        Outcome::Refused(_) => 4,
    });
    if let Outcome::Refused(reason) = outcome {
        let known = REASONS.iter().position(|known| *known == reason);
        let number = known.and_then(|number| u8::try_from(number).ok());
        out.push(number.expect("invariant: every reason has a number"));
    }
}

fn take_outcome(reader: &mut Reader<'_>) -> Result<Outcome, Malformed> {
    let wrong = reader.malformed("outcome");
    Ok(match reader.byte("outcome")? {
        0 => Outcome::Posted,
        1 => Outcome::Pending,
        2 => Outcome::Voided,
        3 => Outcome::Expired,
        4 => {
            let number = usize::from(reader.byte("refusal")?);
            Outcome::Refused(*REASONS.get(number).ok_or(wrong)?)
        }
        _ => return Err(wrong),
    })
}

fn put_stage(out: &mut Vec<u8>, stage: Stage) {
    out.push(match stage {
        Stage::Open => 0,
        Stage::Settled => 1,
        Stage::Cancelled => 2,
        Stage::Expired => 3,
    });
}

fn take_stage(reader: &mut Reader<'_>) -> Result<Stage, Malformed> {
    let wrong = reader.malformed("stage");
    let number = usize::from(reader.byte("stage")?);
    STAGES.get(number).copied().ok_or(wrong)
}

fn put_signed(out: &mut Vec<u8>, amount: i64) {
    put_number(out, ((amount << 1) ^ (amount >> 63)).cast_unsigned());
}

fn take_signed(reader: &mut Reader<'_>) -> Result<i64, Malformed> {
    let zigzag = reader.number("amount")?;
    Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
}

impl Posting {
    fn write(&self, out: &mut Vec<u8>) {
        self.account.place.write(out);
        put_number(out, u64::from(self.account.kind.0));
        put_signed(out, self.amount);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Posting {
            account: Account {
                place: AssetSlot::read(reader)?,
                kind: take_kind(reader)?,
            },
            amount: take_signed(reader)?,
        })
    }
}

impl Passage {
    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.serial.0);
        put_number(out, u64::from(self.kind.0));
        self.from.write(out);
        self.to.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Passage {
            serial: Serial(reader.number("serial")?),
            kind: take_kind(reader)?,
            from: AssetSlot::read(reader)?,
            to: AssetSlot::read(reader)?,
        })
    }
}

impl Entry {
    /// Appends the entry.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.number.0);
        put_number(out, u64::from(self.at.owner.0));
        put_number(out, self.at.batch.0);
        put_number(out, self.wall.0);
        put_transfer_id(out, self.of);
        put_number(out, self.holder.0);
        put_option(out, self.order.as_ref(), |out, order| order.write(out));
        put_outcome(out, self.outcome);
        put_number(out, self.postings.len() as u64);
        self.postings.iter().for_each(|posting| posting.write(out));
        put_number(out, self.passages.len() as u64);
        self.passages.iter().for_each(|passage| passage.write(out));
    }

    /// Takes an entry.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Entry {
            number: EntryNumber(reader.ordinal("entry number")?),
            at: LogPosition {
                owner: OwnerId(reader.narrow("owner")?),
                batch: BatchNumber(reader.number("batch number")?),
            },
            wall: WallTime(reader.number("wall time")?),
            of: take_transfer_id(reader)?,
            holder: take_database(reader)?,
            order: take_option(reader, Order::read)?,
            outcome: take_outcome(reader)?,
            postings: take_list(reader, 4, "postings", Posting::read)?,
            passages: take_list(reader, 6, "passages", Passage::read)?,
        })
    }
}

fn take_list<T>(
    reader: &mut Reader<'_>,
    least: usize,
    what: &'static str,
    take: fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = reader.count(least, what)?;
    (0..count).map(|_| take(reader)).collect()
}

impl Offer {
    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.holder.0);
        put_slots(out, &self.table);
        out.push(u8::from(self.accepted));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Offer {
            holder: take_database(reader)?,
            table: take_slots(reader)?,
            accepted: take_bool(reader)?,
        })
    }
}

impl Trade {
    /// Appends the trade.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_transfer_id(out, self.id.0);
        put_stage(out, self.stage);
        put_number(out, self.version.0);
        put_number(out, self.expires.0);
        self.proposer.write(out);
        self.partner.write(out);
    }

    /// Takes a trade.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Trade {
            id: take_trade_id(reader)?,
            stage: take_stage(reader)?,
            version: OfferVersion(reader.ordinal("offer version")?),
            expires: WallTime(reader.number("deadline")?),
            proposer: Offer::read(reader)?,
            partner: Offer::read(reader)?,
        })
    }
}

impl Gift {
    /// Appends the transfer.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_transfer_id(out, self.id);
        put_stage(out, self.stage);
        put_number(out, self.from.0);
        put_number(out, self.to.0);
        put_number(out, u64::from(self.slot.0));
        self.assets.write(out);
        put_number(out, self.expires.0);
    }

    /// Takes a transfer.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Gift {
            id: take_transfer_id(reader)?,
            stage: take_stage(reader)?,
            from: take_database(reader)?,
            to: take_database(reader)?,
            slot: take_slot(reader)?,
            assets: Assets::read(reader)?,
            expires: WallTime(reader.number("deadline")?),
        })
    }
}

impl Holdings {
    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.version.0);
        put_slots(out, &self.slots);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Holdings {
            version: HoldingsVersion(reader.ordinal("holdings version")?),
            slots: take_slots(reader)?,
        })
    }
}

impl Change {
    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.version.0);
        put_slots(out, &self.gone);
        put_slots(out, &self.come);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Change {
            version: HoldingsVersion(reader.ordinal("holdings version")?),
            gone: take_slots(reader)?,
            come: take_slots(reader)?,
        })
    }
}

/// Open trades and transfers, by their own id, which is therefore not written twice.
fn put_open(out: &mut Vec<u8>, trades: &TradeMap, gifts: &GiftMap) {
    put_number(out, trades.len() as u64);
    trades.values().for_each(|trade| trade.write(out));
    put_number(out, gifts.len() as u64);
    gifts.values().for_each(|gift| gift.write(out));
}

type TradeMap = std::collections::BTreeMap<TradeId, Trade>;
type GiftMap = std::collections::BTreeMap<TransferId, Gift>;

fn take_open(reader: &mut Reader<'_>) -> Result<(TradeMap, GiftMap), Malformed> {
    let wrong = reader.malformed("order of trades");
    let trades = take_list(reader, 11, "trades", Trade::read)?;
    let gifts = take_list(reader, 9, "reserved transfers", Gift::read)?;
    let sorted = trades.is_sorted_by(|one, next| one.id < next.id) && gifts.is_sorted_by(|one, next| one.id < next.id);
    if !sorted {
        return Err(wrong);
    }
    let trades = trades.into_iter().map(|trade| (trade.id, trade)).collect();
    Ok((trades, gifts.into_iter().map(|gift| (gift.id, gift)).collect()))
}

impl LedgerUpdate {
    /// Appends the update.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            LedgerUpdate::Statement(statement) => {
                out.push(0);
                put_number(out, statement.holder.0);
                statement.holdings.write(out);
                put_open(out, &statement.trades, &statement.gifts);
            }
            LedgerUpdate::Booking(booking) => {
                out.push(1);
                put_number(out, booking.entry.0);
                put_transfer_id(out, booking.of);
                put_outcome(out, booking.outcome);
                put_option(out, booking.change.as_ref(), |out, change| change.write(out));
                put_option(out, booking.trade.as_ref(), |out, trade| trade.write(out));
                put_option(out, booking.gift.as_ref(), |out, gift| gift.write(out));
            }
        }
    }

    /// Takes an update.
    ///
    /// # Errors
    /// When they are not in their one encoding.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("update");
        Ok(match reader.byte("update")? {
            0 => {
                let (holder, holdings) = (take_database(reader)?, Holdings::read(reader)?);
                let (trades, gifts) = take_open(reader)?;
                LedgerUpdate::Statement(Box::new(Statement {
                    holder,
                    holdings,
                    trades,
                    gifts,
                }))
            }
            1 => LedgerUpdate::Booking(Box::new(Booking {
                entry: EntryNumber(reader.ordinal("entry number")?),
                of: take_transfer_id(reader)?,
                outcome: take_outcome(reader)?,
                change: take_option(reader, Change::read)?,
                trade: take_option(reader, Trade::read)?,
                gift: take_option(reader, Gift::read)?,
            })),
            _ => return Err(wrong),
        })
    }
}

impl Notice {
    /// Appends the notice.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_option(out, self.entry.as_deref(), |out, entry| entry.write(out));
        put_number(out, self.deliveries.len() as u64);
        for delivery in &self.deliveries {
            put_number(out, delivery.to.0);
            put_number(out, u64::from(delivery.home.0));
            delivery.update.write(out);
        }
    }

    /// Takes a notice that fills `bytes`.
    ///
    /// # Errors
    /// When it is not in its one encoding.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let reader = &mut Reader::new(bytes);
        let entry = take_option(reader, Entry::read)?.map(Box::new);
        let deliveries = take_list(reader, 6, "deliveries", |reader| {
            Ok(Delivery {
                to: EntityId(reader.number("entity")?),
                home: OwnerId(reader.narrow("owner")?),
                update: LedgerUpdate::read(reader)?,
            })
        })?;
        reader.finish("end of notice")?;
        Ok(Notice { entry, deliveries })
    }
}

impl LedgerView {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.last.0);
        put_number(out, self.orders.len() as u64);
        for (number, order) in &self.orders {
            put_number(out, number.0);
            order.write(out);
        }
        put_option(out, self.holdings.as_ref(), |out, holdings| holdings.write(out));
        put_open(out, &self.trades, &self.gifts);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = |reader: &mut Reader<'_>| Ok(TransferNumber(reader.ordinal("transfer number")?));
        let last = number(reader)?;
        let orders = reader.map(3, "orders", number, Order::read)?;
        let holdings = take_option(reader, Holdings::read)?;
        let (trades, gifts) = take_open(reader)?;
        Ok(LedgerView {
            last,
            orders,
            holdings,
            trades,
            gifts,
        })
    }
}
