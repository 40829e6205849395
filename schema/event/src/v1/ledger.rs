//! The ledger's types: holdings, orders, entries, and notices to the parties concerned.
//!
//! An **account** is a holder, a slot and a kind of asset. Every entry is balanced: what leaves one account enters
//! another, and assets are made from the world's account, whose balance is minus what exists. How db executes an order
//! is in `annals-db`; `docs/ledger.md` describes the whole. The encodings, field by field, are in this module's other
//! file.

mod account;
mod encoding;
mod order;
mod view;

use std::collections::BTreeMap;

use annals_ids::{
    ActionId, AssetKind, DatabaseId, EntityId, EntryNumber, HoldingsVersion, LogPosition, OfferVersion, OwnerId,
    Serial, Slot, TradeId, TransferId, WallTime,
};
use thiserror::Error;

pub use order::{OpenPart, Order, OrderParts, UnknownTransfer};
pub use view::LedgerView;

/// Maximum number of assets in one order: counted kinds, and items. With the limits below it keeps what one order
/// writes to some ten kilobytes.
pub const ASSETS_PER_ORDER: usize = 64;

/// Maximum number of assets that one side of a trade may have on the table.
pub const ASSETS_PER_SIDE: usize = 64;

/// Maximum number of non-empty accounts, and of items, that one holder can reach by its own or others' orders. Assets
/// that are returned to it may exceed this by the amount it had reserved.
pub const HOLDINGS_PER_HOLDER: u32 = 4096;

/// Maximum size of a [`Statement`] (bytes) while no returned assets exceed [`HOLDINGS_PER_HOLDER`].
pub const STATEMENT_BYTES: usize = 168 << 10;

/// Maximum number of open trades and reserved transfers of a holder.
pub const OPEN_PER_HOLDER: u32 = 32;

/// Maximum number of units of one kind that may exist, so that no sum overflows.
pub const UNITS_OF_A_KIND: u64 = i64::MAX as u64;

/// Maximum length of the reason for making or destroying assets (bytes).
pub const REASON_BYTES: usize = 64;

/// Maximum length of an operator's name, and of the name of a tool (bytes).
pub const OPERATOR_BYTES: usize = 64;

/// Maximum length of the reason that an operator gives (bytes): some lines.
pub const WARRANT_REASON_BYTES: usize = 500;

/// Maximum time that a transfer may stay reserved and a trade open (ms): 30 days.
pub const LONGEST_OPEN: u64 = 30 * 24 * 3600 * 1000;

/// Maximum number of a base part's orders without a result.
pub const ORDERS_WAITING: usize = 64;

/// One of the two sides of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The side that proposed it.
    Proposer,
    /// The side to which it was proposed.
    Partner,
}

impl Side {
    /// The opposite side.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Proposer => Side::Partner,
            Side::Partner => Side::Proposer,
        }
    }
}

/// A holder of assets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// Where assets come from when they are made, and go to when they are destroyed. Its balance is minus what exists.
    World,
    /// A stored entity, through all its activations.
    Stored(DatabaseId),
    /// A reserved transfer: its assets have left the giver. Its slot is the one the assets came from.
    Pending(TransferId),
    /// One side's assets on the table of a trade. Its slot is the one the assets came from.
    Trade(TradeId, Side),
}

/// A place of assets: holder and slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssetSlot {
    pub holder: Holder,
    pub slot: Slot,
}

/// The place of units of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    /// Holder and slot.
    pub place: AssetSlot,
    /// The kind of the units.
    pub kind: AssetKind,
}

/// Assets: units that are counted, and items that are identified.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Assets {
    /// Number of units by kind.
    pub units: BTreeMap<AssetKind, u64>,
    /// The items, with their kinds.
    pub items: BTreeMap<Serial, AssetKind>,
}

/// Assets to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goods {
    /// Number of units by kind.
    pub units: BTreeMap<AssetKind, u64>,
    /// Number of items by kind. Their serials are assigned when they are made.
    pub items: BTreeMap<AssetKind, u32>,
}

impl Assets {
    /// Units of one kind.
    #[must_use]
    pub fn units(kind: AssetKind, amount: u64) -> Self {
        Self {
            units: BTreeMap::from([(kind, amount)]),
            items: BTreeMap::new(),
        }
    }

    /// One item.
    #[must_use]
    pub fn item(serial: Serial, kind: AssetKind) -> Self {
        Self {
            units: BTreeMap::new(),
            items: BTreeMap::from([(serial, kind)]),
        }
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.units.values().all(|&amount| amount == 0)
    }

    /// Number of assets, as the limits count them.
    #[must_use]
    pub fn count(&self) -> usize {
        self.units.len() + self.items.len()
    }

    /// Adds others.
    ///
    /// # Errors
    /// When a sum overflows, or an item is there already; nothing is changed then.
    pub fn add(&mut self, others: &Assets) -> Result<(), Unbalanced> {
        let overflows = |(kind, amount): (&AssetKind, &u64)| {
            let held = self.units.get(kind).copied().unwrap_or(0);
            held.checked_add(*amount).is_none()
        };
        if others.units.iter().any(overflows) || others.items.keys().any(|serial| self.items.contains_key(serial)) {
            return Err(Unbalanced);
        }
        for (kind, amount) in others.units.iter().filter(|(_, amount)| **amount > 0) {
            *self.units.entry(*kind).or_default() += amount;
        }
        self.items.extend(&others.items);
        Ok(())
    }

    /// Removes others.
    ///
    /// # Errors
    /// When they are not all there; nothing is changed then.
    pub fn take(&mut self, others: &Assets) -> Result<(), Unbalanced> {
        if !self.contains(others) {
            return Err(Unbalanced);
        }
        for (kind, amount) in others.units.iter().filter(|(_, amount)| **amount > 0) {
            let held = self.units.get_mut(kind).ok_or(Unbalanced)?;
            *held -= amount;
            if *held == 0 {
                self.units.remove(kind);
            }
        }
        self.items.retain(|serial, _| !others.items.contains_key(serial));
        Ok(())
    }

    /// Whether others are all included.
    #[must_use]
    pub fn contains(&self, others: &Assets) -> bool {
        let has_units = |(kind, amount): (&AssetKind, &u64)| self.units.get(kind).copied().unwrap_or(0) >= *amount;
        let has_item = |(serial, kind): (&Serial, &AssetKind)| self.items.get(serial) == Some(kind);
        others.units.iter().all(has_units) && others.items.iter().all(has_item)
    }
}

/// Assets are missing, or would be there twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the assets are missing, or would exist twice")]
pub struct Unbalanced;

/// Assets by the slot that they are in, or came from.
pub type Slots = BTreeMap<Slot, Assets>;

/// An operator's authority for an order that no behaviour has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warrant {
    /// The action: the order of an executed action is not executed again.
    pub action: ActionId,
    /// The operator's name; at most [`OPERATOR_BYTES`].
    pub operator: String,
    /// The tool that the operator used; at most [`OPERATOR_BYTES`].
    pub tool: String,
    /// The reason; at most [`WARRANT_REASON_BYTES`].
    pub reason: String,
}

/// Why an order was refused. A refused order changes nothing. These texts are part of the reports in evidence, which a
/// verifier derives again from the events and compares: a changed text makes earlier evidence fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum RefusalReason {
    /// The requester is not a stored entity.
    #[error("the asker is not an entity of the database: store it first")]
    NotStored,
    /// The requester is not the current activation of its stored entity.
    #[error("another life of the asker's entity is the living one")]
    NotAlive,
    /// The order names nothing, or a zero amount of something.
    #[error("it names no assets, or none of a kind")]
    Empty,
    /// The order names more assets than allowed.
    #[error("it names more than {ASSETS_PER_ORDER} assets")]
    TooMany,
    /// The reason is too long.
    #[error("its reason is longer than {REASON_BYTES} bytes")]
    LongReason,
    /// The assets are not in that slot.
    #[error("the assets are not there")]
    NotHeld,
    /// Both slots are the same.
    #[error("it moves from a slot to the same slot")]
    SameSlot,
    /// A kind is either counted or made of items.
    #[error("the kind is counted in units where items are asked for, or the other way round")]
    OtherNature,
    /// There would be too many units of the kind.
    #[error("more than {UNITS_OF_A_KIND} units of a kind would exist")]
    Supply,
    /// The receiver would hold too many assets.
    #[error("the receiver would hold more than {HOLDINGS_PER_HOLDER} assets")]
    Full,
    /// A party has too many open trades and transfers.
    #[error("a party has {OPEN_PER_HOLDER} trades and reserved transfers open already")]
    TooManyOpen,
    /// Too many assets would be on the table.
    #[error("more than {ASSETS_PER_SIDE} assets of one side would be on the table")]
    TableFull,
    /// No entity with that id has ever existed.
    #[error("there is no such entity of the database, or it has never lived")]
    UnknownHolder,
    /// Giver and receiver, or both sides of a trade, are the same.
    #[error("the other is oneself")]
    Oneself,
    /// There is no such transfer or trade, or it has ended.
    #[error("there is no such transfer or trade, or it has ended")]
    NotOpen,
    /// The requester is not party to it, or this party may not do it.
    #[error("it is not the asker's to do")]
    NotParty,
    /// The offers have changed since.
    #[error("the offers have changed since the version that it names")]
    Stale,
    /// It would end at once, or too late.
    #[error("its end has come already, or is further off than {LONGEST_OPEN} ms")]
    BadDeadline,
    /// An operator's order has missing or overlong warrant fields.
    #[error(
        "an operator's order names operator and tool, in at most {OPERATOR_BYTES} bytes each, and a reason, in at most {WARRANT_REASON_BYTES}"
    )]
    BadWarrant,
    /// A stored entity that has something, or is party to something that is open, is not deleted.
    #[error("the entity holds assets, or has trades or reserved transfers open")]
    StillHolds,
}

/// The result of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It was executed.
    Posted,
    /// The transfer is reserved, or the trade is open.
    Pending,
    /// The transfer was voided, or the trade cancelled: reserved assets have gone back.
    Voided,
    /// The same, because of expiry.
    Expired,
    /// Nothing was changed.
    Refused(RefusalReason),
}

/// Units that one account received, or, if negative, gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    pub account: Account,
    /// Number of units.
    pub amount: i64,
}

/// An item that changed its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The item.
    pub serial: Serial,
    pub kind: AssetKind,
    /// Its former place.
    pub from: AssetSlot,
    /// Its new place.
    pub to: AssetSlot,
}

/// A line of the ledger, kept for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the ledger.
    pub number: EntryNumber,
    /// The batch whose folding created it.
    pub at: LogPosition,
    /// The wall time of that batch.
    pub wall: WallTime,
    /// The order that caused it; for an expiry, the order that reserved the transfer or opened the trade.
    pub of: TransferId,
    /// The stored entity for which the order was made; 0 if the requester is none.
    pub holder: DatabaseId,
    /// The order; `None` for an expiry.
    pub order: Option<Order>,
    /// The result.
    pub outcome: Outcome,
    /// Its effects on accounts: per kind, the sum is 0.
    pub postings: Vec<Posting>,
    /// Its effects on items.
    pub passages: Vec<Passage>,
}

/// The stage of a trade or reserved transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is open.
    Open,
    /// It was settled, or posted.
    Settled,
    /// It was cancelled, or voided.
    Cancelled,
    /// It expired.
    Expired,
}

/// One side of a trade, as the other sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The stored entity.
    pub holder: DatabaseId,
    /// The assets on the table, by the slot they came from.
    pub table: Slots,
    /// Whether it has accepted what is on the table.
    pub accepted: bool,
}

/// A trade as its parties see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trade {
    pub id: TradeId,
    pub stage: Stage,
    /// Incremented with each change of what is on the table.
    pub version: OfferVersion,
    /// When it expires.
    pub expires: WallTime,
    /// The side that proposed it.
    pub proposer: Offer,
    /// The side to which it was proposed.
    pub partner: Offer,
}

impl Trade {
    /// One side of it.
    #[must_use]
    pub fn side(&self, side: Side) -> &Offer {
        match side {
            Side::Proposer => &self.proposer,
            Side::Partner => &self.partner,
        }
    }

    /// One side of it, mutable.
    pub fn side_mut(&mut self, side: Side) -> &mut Offer {
        match side {
            Side::Proposer => &mut self.proposer,
            Side::Partner => &mut self.partner,
        }
    }

    /// The side on which a stored entity is.
    #[must_use]
    pub fn side_of(&self, holder: DatabaseId) -> Option<Side> {
        let sides = [Side::Proposer, Side::Partner];
        sides.into_iter().find(|side| self.side(*side).holder == holder)
    }
}

/// A reserved transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gift {
    pub id: TransferId,
    pub stage: Stage,
    /// The giver.
    pub from: DatabaseId,
    /// The receiver.
    pub to: DatabaseId,
    /// The giver's slot from which it came.
    pub slot: Slot,
    pub assets: Assets,
    /// When it expires.
    pub expires: WallTime,
}

/// The holdings of a stored entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Number of changes so far.
    pub version: HoldingsVersion,
    /// The assets by slot.
    pub slots: Slots,
}

/// A change of holdings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The new version; one more than before.
    pub version: HoldingsVersion,
    /// The assets that left, by slot.
    pub gone: Slots,
    /// The assets that entered, by slot.
    pub come: Slots,
}

/// Everything that an activation must know of the ledger when it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// The stored entity.
    pub holder: DatabaseId,
    pub holdings: Holdings,
    /// The trades that it is party to.
    pub trades: BTreeMap<TradeId, Trade>,
    /// The transfers that it has reserved for others.
    pub gifts: BTreeMap<TransferId, Gift>,
}

/// The meaning of an entry for one of the parties concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    pub entry: EntryNumber,
    /// The order that it answers; for an expiry, the order that reserved the transfer or opened the trade.
    pub of: TransferId,
    /// The result.
    pub outcome: Outcome,
    /// The change of the receiver's holdings, if any.
    pub change: Option<Change>,
    /// The trade concerned, in its new state.
    pub trade: Option<Trade>,
    /// The reserved transfer concerned, in its new state.
    pub gift: Option<Gift>,
}

/// Notifications from the ledger to a base part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerUpdate {
    /// The whole state: the first update of an activation.
    Statement(Box<Statement>),
    /// The effects of an entry.
    Booking(Box<Booking>),
}

/// Update for one base part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The entity of the base part.
    pub to: EntityId,
    pub home: OwnerId,
    pub update: LedgerUpdate,
}

/// An item of the outbox for the log `ledger`: an entry (none for a statement), and its deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    pub entry: Option<Box<Entry>>,
    /// The deliveries, in their order.
    pub deliveries: Vec<Delivery>,
}

impl Warrant {
    fn check(&self) -> Result<(), RefusalReason> {
        let limits = [
            (&self.operator, OPERATOR_BYTES),
            (&self.tool, OPERATOR_BYTES),
            (&self.reason, WARRANT_REASON_BYTES),
        ];
        let fits = |(text, most): &(&String, usize)| !text.trim().is_empty() && text.len() <= *most;
        if limits.iter().all(fits) {
            Ok(())
        } else {
            Err(RefusalReason::BadWarrant)
        }
    }
}

impl Goods {
    /// Number of assets, as the limits count them.
    #[must_use]
    pub fn count(&self) -> usize {
        let items = self.items.values().map(|&count| u64::from(count)).sum::<u64>();
        usize::try_from(items)
            .unwrap_or(usize::MAX)
            .saturating_add(self.units.len())
    }

    /// Checks the count together with `others` more assets.
    fn check_with(&self, others: usize) -> Result<(), RefusalReason> {
        let count = self.count().saturating_add(others);
        let none = self.units.values().any(|&amount| amount == 0) || self.items.values().any(|&count| count == 0);
        check_count(count, none)
    }
}

fn check_count(count: usize, none_of_something: bool) -> Result<(), RefusalReason> {
    match count {
        0 => Err(RefusalReason::Empty),
        _ if none_of_something => Err(RefusalReason::Empty),
        1..=ASSETS_PER_ORDER => Ok(()),
        _ => Err(RefusalReason::TooMany),
    }
}

fn check_reason(reason: &str) -> Result<(), RefusalReason> {
    if reason.len() <= REASON_BYTES {
        Ok(())
    } else {
        Err(RefusalReason::LongReason)
    }
}
