//! The rows that rules read and change, and what they have made so far.

use annals_event::ledger::{Assets, Entry, Gift, Holder, Notice, Place, RefusalReason, Side, Trade};
use annals_ids::{
    ActionId, AssetKind, DatabaseId, EntityId, EntryNumber, HoldingsVersion, NoticeNumber, OwnerId, Serial, Slot,
    TransferId, WallTime,
};
use annals_store::layout::ledger::Head;
use thiserror::Error;

use super::table::Table;

/// A row of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// The highest numbers that were given.
    Head,
    /// How many units of a kind are in a slot of an entity of the database.
    Account(DatabaseId, Slot, AssetKind),
    /// An item.
    Item(Serial),
    /// What exists of a kind.
    Supply(AssetKind),
    /// A trade or a reserved transfer that is open.
    Open(TransferId),
    /// The entry that was made of what is done once.
    Done(Once),
    /// An entry.
    Entry(EntryNumber),
    /// An entity of the database, as a holder.
    Holder(DatabaseId),
}

/// What is done once, however often it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Once {
    /// An order of a base part.
    Order(TransferId),
    /// What an operator asked for, by whichever order that came.
    Action(ActionId),
}

/// An item, whether or not it still exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Of which kind.
    pub kind: AssetKind,
    /// Where it is: with the world when it was destroyed.
    pub place: Place,
}

/// Whether a kind is counted or made of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nature {
    /// Units that are all alike.
    Units,
    /// Items, each with its serial.
    Items,
}

/// What exists of a kind: the world's balance, with its sign turned round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Which nature the kind has had since the first of it was made.
    pub nature: Nature,
    /// How many units or items.
    pub exists: u64,
}

/// The life that an entity of the database has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Which entity.
    pub entity: EntityId,
    /// The owner of its base part.
    pub home: OwnerId,
    /// Which check-out it holds: a later life has a higher one.
    pub checkout: u64,
}

/// What is known of a holder. There is a row for whoever has lived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HolderRow {
    /// Who is told of its affairs.
    pub life: Option<Life>,
    /// How often its holdings have changed.
    pub version: HoldingsVersion,
    /// How many accounts that are not empty, and items, it has.
    pub held: u32,
    /// How many trades and reserved transfers of its own are open.
    pub open: u32,
}

/// Something that is open, with what it holds: the accounts of its holder are in here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// A reserved transfer.
    Gift(Gift),
    /// A trade.
    Trade(Trade),
}

/// The rows contradict one another: the ledger is damaged, or its rules have a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the ledger contradicts itself at {row:?}: {why}")]
pub struct Breach {
    /// Where that showed.
    pub row: Row,
    /// What is wrong.
    pub why: &'static str,
}

/// Why a rule came to no end. Nothing was changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Halt {
    /// A row has to be loaded first.
    #[error("row {0:?} was not loaded")]
    Needs(Row),
    /// The rows contradict one another.
    #[error(transparent)]
    Breach(#[from] Breach),
}

/// Why a rule does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Halt(Halt),
    Refused(RefusalReason),
}

impl From<RefusalReason> for Stop {
    fn from(reason: RefusalReason) -> Self {
        Stop::Refused(reason)
    }
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Self {
        Stop::Halt(halt)
    }
}

/// See the module above.
#[derive(Clone, Debug, Default)]
pub struct Books {
    pub(super) head: Table<(), Head>,
    pub(super) accounts: Table<(DatabaseId, Slot, AssetKind), u64>,
    pub(super) items: Table<Serial, Item>,
    pub(super) supplies: Table<AssetKind, Supply>,
    pub(super) open: Table<TransferId, Open>,
    pub(super) done: Table<Once, EntryNumber>,
    pub(super) entries: Table<EntryNumber, Entry>,
    pub(super) holders: Table<DatabaseId, HolderRow>,
    /// What goes to the outbox.
    pub(super) notices: Table<NoticeNumber, Notice>,
    /// What is to be taken out of it: the notices after the first of these, up to the second.
    pub(super) taken: Option<(NoticeNumber, NoticeNumber)>,
}

impl Books {
    /// What was done is to last.
    pub(super) fn keep(&mut self) {
        self.head.keep();
        self.accounts.keep();
        self.items.keep();
        self.supplies.keep();
        self.open.keep();
        self.done.keep();
        self.entries.keep();
        self.holders.keep();
        self.notices.keep();
    }

    /// What was done since something was [kept](Books::keep) is forgotten.
    pub(super) fn forget(&mut self) {
        self.head.forget();
        self.accounts.forget();
        self.items.forget();
        self.supplies.forget();
        self.open.forget();
        self.done.forget();
        self.entries.forget();
        self.holders.forget();
        self.notices.forget();
    }

    pub(super) fn head(&self) -> Result<Head, Halt> {
        let head = self.head.get(()).ok_or(Halt::Needs(Row::Head))?;
        Ok(head.copied().unwrap_or_default())
    }

    pub(super) fn balance(&self, holder: DatabaseId, slot: Slot, kind: AssetKind) -> Result<u64, Halt> {
        let row = Row::Account(holder, slot, kind);
        let balance = self.accounts.get((holder, slot, kind)).ok_or(Halt::Needs(row))?;
        Ok(balance.copied().unwrap_or(0))
    }

    pub(super) fn item(&self, serial: Serial) -> Result<Option<Item>, Halt> {
        let item = self.items.get(serial).ok_or(Halt::Needs(Row::Item(serial)))?;
        Ok(item.copied())
    }

    pub(super) fn supply(&self, kind: AssetKind) -> Result<Option<Supply>, Halt> {
        let supply = self.supplies.get(kind).ok_or(Halt::Needs(Row::Supply(kind)))?;
        Ok(supply.copied())
    }

    pub(super) fn opened(&self, id: TransferId) -> Result<Option<&Open>, Halt> {
        self.open.get(id).ok_or(Halt::Needs(Row::Open(id)))
    }

    pub(super) fn done(&self, what: Once) -> Result<Option<EntryNumber>, Halt> {
        let done = self.done.get(what).ok_or(Halt::Needs(Row::Done(what)))?;
        Ok(done.copied())
    }

    pub(super) fn entry(&self, number: EntryNumber) -> Result<&Entry, Halt> {
        let row = Row::Entry(number);
        let entry = self.entries.get(number).ok_or(Halt::Needs(row))?;
        let why = "an entry is missing";
        Ok(entry.ok_or(Breach { row, why })?)
    }

    pub(super) fn holder(&self, holder: DatabaseId) -> Result<Option<HolderRow>, Halt> {
        let row = self.holders.get(holder).ok_or(Halt::Needs(Row::Holder(holder)))?;
        Ok(row.copied())
    }

    /// Whether it is known what is in a row.
    pub(super) fn has(&self, row: Row) -> bool {
        match row {
            Row::Head => self.head.get(()).is_some(),
            Row::Account(holder, slot, kind) => self.accounts.get((holder, slot, kind)).is_some(),
            Row::Item(serial) => self.items.get(serial).is_some(),
            Row::Supply(kind) => self.supplies.get(kind).is_some(),
            Row::Open(id) => self.open.get(id).is_some(),
            Row::Done(what) => self.done.get(what).is_some(),
            Row::Entry(number) => self.entries.get(number).is_some(),
            Row::Holder(holder) => self.holders.get(holder).is_some(),
        }
    }

    /// How many rows are to be written.
    pub(super) fn changes(&self) -> usize {
        let numbers = self.accounts.changes() + self.items.changes() + self.supplies.changes() + self.done.changes();
        // An entry and its notice take more than what a number does, and so does what is open.
        numbers + self.holders.changes() + 4 * (self.open.changes() + self.entries.changes() + self.notices.changes())
    }
}

impl Item {
    /// Which entity of the database has it, if one does.
    #[must_use]
    pub fn holder(&self) -> Option<DatabaseId> {
        match self.place.holder {
            Holder::Stored(holder) => Some(holder),
            Holder::World | Holder::Pending(_) | Holder::Trade(..) => None,
        }
    }
}

impl Open {
    /// When its time is over.
    #[must_use]
    pub fn expires(&self) -> WallTime {
        match self {
            Open::Gift(gift) => gift.expires,
            Open::Trade(trade) => trade.expires,
        }
    }

    /// Whose it is: the giver alone, or both sides.
    #[must_use]
    pub fn parties(&self) -> Vec<DatabaseId> {
        match self {
            Open::Gift(gift) => vec![gift.from],
            Open::Trade(trade) => vec![trade.proposer.holder, trade.partner.holder],
        }
    }

    /// The places whose accounts are in it, and what is there.
    #[must_use]
    pub fn places(&self) -> Vec<(Place, &Assets)> {
        match self {
            Open::Gift(gift) => {
                let holder = Holder::Pending(gift.id);
                vec![(
                    Place {
                        holder,
                        slot: gift.slot,
                    },
                    &gift.assets,
                )]
            }
            Open::Trade(trade) => {
                let sides = [Side::Proposer, Side::Partner].into_iter();
                let tables = sides.flat_map(|side| {
                    let holder = Holder::Trade(trade.id, side);
                    let table = trade.side(side).table.iter();
                    table.map(move |(slot, assets)| (Place { holder, slot: *slot }, assets))
                });
                tables.collect()
            }
        }
    }
}
