//! The ledger's words: who holds what, what is asked for, what came of it, and what those whom it concerns are told.
//!
//! An **account** is a holder, a slot and a kind of asset. Every entry is balanced: what leaves one account comes to another,
//! and what is made comes from the world's, whose balance is minus what exists. What db does with an order is in `annals-db`;
//! `docs/ledger.md` says all of it in one place. The encodings, field by field, are in this module's other file.

mod account;
mod encoding;
mod view;

use std::collections::BTreeMap;

use annals_ids::{
    ActionId, AssetKind, DatabaseId, EntityId, EntryNumber, HoldingsVersion, LogPosition, OfferVersion, OwnerId,
    Serial, Slot, TradeId, TransferId, WallTime,
};
use thiserror::Error;

use crate::encoding::ORDINALS;
pub use view::LedgerView;

/// Most assets that one order names: kinds that are counted, and items. With the limits below it keeps what one order
/// writes to some ten kilobytes.
pub const ASSETS_PER_ORDER: usize = 64;

/// Most assets that one side of a trade may have on the table.
pub const ASSETS_PER_SIDE: usize = 64;

/// Most accounts that are not empty, and items, that one holder can come to by what it or others ask for. What only comes
/// back to it may exceed this by what it had reserved.
pub const HOLDINGS_PER_HOLDER: u32 = 4096;

/// Bytes that a [`Statement`] takes at most while nothing came back beyond [`HOLDINGS_PER_HOLDER`].
pub const STATEMENT_BYTES: usize = 168 << 10;

/// Most trades and reserved transfers that a holder may be party to at a time.
pub const OPEN_PER_HOLDER: u32 = 32;

/// Most units of one kind that may exist, so that no sum overflows anywhere.
pub const UNITS_OF_A_KIND: u64 = i64::MAX as u64;

/// Most bytes of the reason for which something is made or destroyed.
pub const REASON_BYTES: usize = 64;

/// Most bytes of an operator's name, and of the name of a tool.
pub const OPERATOR_BYTES: usize = 64;

/// Most bytes of the reason that an operator gives: some lines.
pub const WARRANT_REASON_BYTES: usize = 500;

/// Longest that a transfer may stay reserved and a trade open, in milliseconds: 30 days.
pub const LONGEST_OPEN: u64 = 30 * 24 * 3600 * 1000;

/// Most orders of a base part that may wait for what comes of them.
pub const ORDERS_WAITING: usize = 64;

/// One of the two sides of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Who proposed it.
    Proposer,
    /// With whom.
    Partner,
}

impl Side {
    /// The one across the table.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Proposer => Side::Partner,
            Side::Partner => Side::Proposer,
        }
    }
}

/// Who can hold assets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// Where assets come from when they are made, and go to when they are destroyed. Its balance is minus what exists.
    World,
    /// An entity of the database, through all its lives.
    Stored(DatabaseId),
    /// A transfer that is reserved: what it is to move has left the giver. Its slot is the one the assets came from.
    Pending(TransferId),
    /// What one side of a trade has on the table. Its slot is the one the assets came from.
    Trade(TradeId, Side),
}

/// Where assets are: holder and slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Who has them.
    pub holder: Holder,
    /// In which of its slots.
    pub slot: Slot,
}

/// Where units of one kind are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    /// Whose, and which slot of it.
    pub place: Place,
    /// Units of which kind.
    pub kind: AssetKind,
}

/// Assets: units that are counted, and items that are named.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Assets {
    /// How many units of which kind.
    pub units: BTreeMap<AssetKind, u64>,
    /// Which items, and of which kind each is.
    pub items: BTreeMap<Serial, AssetKind>,
}

/// What is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goods {
    /// How many units of which kind.
    pub units: BTreeMap<AssetKind, u64>,
    /// How many items of which kind. Their serials are given when they are made.
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

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.units.values().all(|&amount| amount == 0)
    }

    /// How many assets they are, as the limits count them.
    #[must_use]
    pub fn count(&self) -> usize {
        self.units.len() + self.items.len()
    }

    /// Puts others to them.
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

    /// Takes others away from them.
    ///
    /// # Errors
    /// When they are not there; nothing is changed then.
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

    /// Whether others are among them.
    #[must_use]
    pub fn contains(&self, others: &Assets) -> bool {
        let has_units = |(kind, amount): (&AssetKind, &u64)| self.units.get(kind).copied().unwrap_or(0) >= *amount;
        let has_item = |(serial, kind): (&Serial, &AssetKind)| self.items.get(serial) == Some(kind);
        others.units.iter().all(has_units) && others.items.iter().all(has_item)
    }
}

/// Assets are not where they would have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the assets are not there, or would be there twice")]
pub struct Unbalanced;

/// Assets by the slot they are in, or came from.
pub type Slots = BTreeMap<Slot, Assets>;

/// On whose word an order is made that no behaviour has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warrant {
    /// Which action: an order of one that was executed is not executed again.
    pub action: ActionId,
    /// The operator's name; at most [`OPERATOR_BYTES`].
    pub operator: String,
    /// The tool with which it was asked for; at most [`OPERATOR_BYTES`].
    pub tool: String,
    /// Why; at most [`WARRANT_REASON_BYTES`].
    pub reason: String,
}

/// What a base part asks of the ledger. It can touch what its own entity of the database holds, what it is party to, and
/// nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Make assets.
    Mint {
        /// Into which slot.
        slot: Slot,
        /// What.
        goods: Goods,
        /// Why, for whoever reads the ledger; at most [`REASON_BYTES`].
        reason: String,
    },
    /// Destroy assets.
    Burn {
        /// From which slot.
        slot: Slot,
        /// Which.
        assets: Assets,
        /// Why, for whoever reads the ledger; at most [`REASON_BYTES`].
        reason: String,
    },
    /// Move assets between slots of one's own: equip them, put them into a bank.
    Move {
        /// From which slot.
        from: Slot,
        /// Into which slot.
        to: Slot,
        /// Which.
        assets: Assets,
    },
    /// Reserve a transfer to another: the assets leave at once, and come to the other's inventory with [`Order::Post`].
    Give {
        /// From which slot.
        slot: Slot,
        /// To whom.
        to: DatabaseId,
        /// Which.
        assets: Assets,
        /// When they come back if nothing else has happened.
        expires: WallTime,
    },
    /// Complete a transfer that one has reserved.
    Post {
        /// Which.
        of: TransferId,
    },
    /// End a reserved transfer: the assets go back. The giver may, and so may the one to whom they were to go.
    Void {
        /// Which.
        of: TransferId,
    },
    /// Open a trade.
    Propose {
        /// With whom.
        with: DatabaseId,
        /// When it is cancelled if it was not settled before.
        expires: WallTime,
    },
    /// Put assets on the table: they leave at once.
    Offer {
        /// In which trade.
        trade: TradeId,
        /// From which slot.
        slot: Slot,
        /// Which.
        assets: Assets,
    },
    /// Take assets back from the table.
    Withdraw {
        /// In which trade.
        trade: TradeId,
        /// The slot they came from, and go back to.
        slot: Slot,
        /// Which.
        assets: Assets,
    },
    /// Accept what is on the table. Once both have, it is exchanged.
    Accept {
        /// Which trade.
        trade: TradeId,
        /// Which offers: another version is refused.
        version: OfferVersion,
    },
    /// End a trade: everything goes back.
    Cancel {
        /// Which.
        trade: TradeId,
    },
    /// An operator makes assets, or gives items back that exist no more.
    Grant {
        /// Into which slot.
        slot: Slot,
        /// What is made.
        goods: Goods,
        /// Which items come back, under their serials, and of which kind each is.
        restored: BTreeMap<Serial, AssetKind>,
        /// On whose word.
        warrant: Box<Warrant>,
    },
    /// An operator destroys assets.
    Take {
        /// From which slot.
        slot: Slot,
        /// Which.
        assets: Assets,
        /// On whose word.
        warrant: Box<Warrant>,
    },
}

/// Why an order was refused. Nothing was changed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum RefusalReason {
    /// The asker is no entity of the database.
    #[error("the asker is not an entity of the database: store it first")]
    NotStored,
    /// The asker is not the life that its entity of the database has now.
    #[error("another life of the asker's entity is the living one")]
    NotAlive,
    /// Nothing is named, or none of something.
    #[error("it names no assets, or none of a kind")]
    Empty,
    /// More is named than an order may name.
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
    /// A party has too much open.
    #[error("a party has {OPEN_PER_HOLDER} trades and reserved transfers open already")]
    TooManyOpen,
    /// Too much would be on the table.
    #[error("more than {ASSETS_PER_SIDE} assets of one side would be on the table")]
    TableFull,
    /// Nobody of that id has ever lived.
    #[error("there is no such entity of the database, or it has never lived")]
    UnknownHolder,
    /// One cannot give to oneself or trade with oneself.
    #[error("the other is oneself")]
    Oneself,
    /// There is no such transfer or trade, or it has ended.
    #[error("there is no such transfer or trade, or it has ended")]
    NotOpen,
    /// The asker is not party to it, or it is not for this party to do.
    #[error("it is not the asker's to do")]
    NotParty,
    /// The offers have changed since.
    #[error("the offers have changed since the version that it names")]
    Stale,
    /// It would end at once, or too late.
    #[error("its end has come already, or is further off than {LONGEST_OPEN} ms")]
    BadDeadline,
    /// An operator's order says too little or too much of whose it is.
    #[error(
        "an operator's order names operator and tool, in at most {OPERATOR_BYTES} bytes each, and a reason, in at most {WARRANT_REASON_BYTES}"
    )]
    BadWarrant,
}

/// What came of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It was done.
    Posted,
    /// The transfer is reserved, the trade is open.
    Pending,
    /// The transfer was voided, the trade cancelled: what was reserved has gone back.
    Voided,
    /// The same, because the time was over.
    Expired,
    /// Nothing was changed.
    Refused(RefusalReason),
}

/// Units that one account got, or with a minus gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// Which account.
    pub account: Account,
    /// How many units.
    pub amount: i64,
}

/// An item that changed its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Which item.
    pub serial: Serial,
    /// Of which kind.
    pub kind: AssetKind,
    /// Where it was.
    pub from: Place,
    /// Where it is.
    pub to: Place,
}

/// A line of the ledger, kept for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the ledger.
    pub number: EntryNumber,
    /// The batch in whose folding it was made.
    pub at: LogPosition,
    /// What that batch says of the time.
    pub wall: WallTime,
    /// The order that asked for it; for what expired, the one that had reserved or opened it.
    pub of: TransferId,
    /// The entity of the database for which it was asked; 0 if the asker is none.
    pub holder: DatabaseId,
    /// What was asked for; `None` for what expired.
    pub order: Option<Order>,
    /// What came of it.
    pub outcome: Outcome,
    /// What it did to accounts: per kind, the sum is 0.
    pub postings: Vec<Posting>,
    /// What it did to items.
    pub passages: Vec<Passage>,
}

/// How a trade or a reserved transfer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is open.
    Open,
    /// It was settled, or posted.
    Settled,
    /// It was cancelled, or voided.
    Cancelled,
    /// Its time was over.
    Expired,
}

/// What one side of a trade shows the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Which entity of the database.
    pub holder: DatabaseId,
    /// What it has on the table, by the slot it came from.
    pub table: Slots,
    /// Whether it has accepted what is on the table.
    pub accepted: bool,
}

/// A trade as its parties see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trade {
    /// Which.
    pub id: TradeId,
    /// How it stands.
    pub stage: Stage,
    /// Raised with each change of what is on the table.
    pub version: OfferVersion,
    /// When it expires.
    pub expires: WallTime,
    /// Who proposed it.
    pub proposer: Offer,
    /// With whom.
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

    /// One side of it, to be changed.
    pub fn side_mut(&mut self, side: Side) -> &mut Offer {
        match side {
            Side::Proposer => &mut self.proposer,
            Side::Partner => &mut self.partner,
        }
    }

    /// On which side an entity of the database is.
    #[must_use]
    pub fn side_of(&self, holder: DatabaseId) -> Option<Side> {
        let sides = [Side::Proposer, Side::Partner];
        sides.into_iter().find(|side| self.side(*side).holder == holder)
    }
}

/// A reserved transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gift {
    /// Which.
    pub id: TransferId,
    /// How it stands.
    pub stage: Stage,
    /// Who gives.
    pub from: DatabaseId,
    /// To whom.
    pub to: DatabaseId,
    /// The giver's slot from which it came.
    pub slot: Slot,
    /// What.
    pub assets: Assets,
    /// When it expires.
    pub expires: WallTime,
}

/// What an entity of the database holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// How often that has changed.
    pub version: HoldingsVersion,
    /// What is in which slot.
    pub slots: Slots,
}

/// How holdings changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The version that they have now; one more than before.
    pub version: HoldingsVersion,
    /// What left, by slot.
    pub gone: Slots,
    /// What came, by slot.
    pub come: Slots,
}

/// Everything that a life has to know when it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Of which entity of the database.
    pub holder: DatabaseId,
    /// What it holds.
    pub holdings: Holdings,
    /// The trades that it is party to.
    pub trades: BTreeMap<TradeId, Trade>,
    /// What it has reserved for others.
    pub gifts: BTreeMap<TransferId, Gift>,
}

/// What an entry means to one of those whom it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    /// Which entry.
    pub entry: EntryNumber,
    /// The order that it answers; for what expired, the one that had reserved or opened it.
    pub of: TransferId,
    /// What came of it.
    pub outcome: Outcome,
    /// What that did to the receiver's holdings, if it did anything.
    pub change: Option<Change>,
    /// The trade that it is about, as it is now.
    pub trade: Option<Trade>,
    /// The reserved transfer that it is about, as it is now.
    pub gift: Option<Gift>,
}

/// What the ledger tells a base part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// All that is: the first that a life hears.
    Statement(Box<Statement>),
    /// What an entry did.
    Booking(Box<Booking>),
}

/// News for one base part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Whose base part.
    pub to: EntityId,
    /// Its home.
    pub home: OwnerId,
    /// What it is told.
    pub news: News,
}

/// What the outbox holds for the log `ledger`: an entry, unless it is a statement; and who is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// The entry.
    pub entry: Option<Box<Entry>>,
    /// Whom it concerns, in the order in which they are told.
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

impl Order {
    /// On whose word it is made, if an operator has asked for it.
    #[must_use]
    pub fn warrant(&self) -> Option<&Warrant> {
        match self {
            Order::Grant { warrant, .. } | Order::Take { warrant, .. } => Some(warrant),
            _ => None,
        }
    }

    /// Whether it can be executed as far as that can be seen from itself. Whoever records an order checks this first.
    ///
    /// # Errors
    /// Why it would be refused whatever the ledger holds.
    pub fn check(&self) -> Result<(), RefusalReason> {
        self.check_named()?;
        self.warrant().map_or(Ok(()), Warrant::check)?;
        let (assets, reason) = match self {
            Order::Mint { goods, reason, .. } => return goods.check_with(0).and_then(|()| check_reason(reason)),
            Order::Grant { goods, restored, .. } => return goods.check_with(restored.len()),
            Order::Burn { assets, reason, .. } => (assets, reason.as_str()),
            Order::Move { from, to, .. } if from == to => return Err(RefusalReason::SameSlot),
            Order::Move { assets, .. }
            | Order::Give { assets, .. }
            | Order::Offer { assets, .. }
            | Order::Withdraw { assets, .. }
            | Order::Take { assets, .. } => (assets, ""),
            Order::Post { .. }
            | Order::Void { .. }
            | Order::Propose { .. }
            | Order::Accept { .. }
            | Order::Cancel { .. } => return Ok(()),
        };
        check_count(assets.count(), assets.units.values().any(|&amount| amount == 0))?;
        check_reason(reason)
    }

    /// Whether what it is about has a number that anything can have. Players name these, and an order with another number
    /// would be recorded and never read again.
    fn check_named(&self) -> Result<(), RefusalReason> {
        let of = match self {
            Order::Mint { .. }
            | Order::Burn { .. }
            | Order::Move { .. }
            | Order::Give { .. }
            | Order::Propose { .. }
            | Order::Grant { .. }
            | Order::Take { .. } => {
                return Ok(());
            }
            Order::Accept { version, .. } if version.0 >= ORDINALS => return Err(RefusalReason::Stale),
            Order::Post { of } | Order::Void { of } => of,
            Order::Offer { trade, .. }
            | Order::Withdraw { trade, .. }
            | Order::Accept { trade, .. }
            | Order::Cancel { trade } => &trade.0,
        };
        if of.number.0 < ORDINALS {
            Ok(())
        } else {
            Err(RefusalReason::NotOpen)
        }
    }
}

impl Goods {
    /// How many assets they are, as the limits count them.
    #[must_use]
    pub fn count(&self) -> usize {
        let items = self.items.values().map(|&count| u64::from(count)).sum::<u64>();
        usize::try_from(items)
            .unwrap_or(usize::MAX)
            .saturating_add(self.units.len())
    }

    /// With so many assets besides.
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
