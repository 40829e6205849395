//! The rows that rules read and change, and the entries and notices created so far.

use annals_event::ledger::{AssetSlot, Assets, Entry, Gift, Holder, Notice, RefusalReason, Side, Trade};
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
    /// The highest numbers that were given out.
    Head,
    /// Units of a kind in a slot of a stored entity.
    Account(DatabaseId, Slot, AssetKind),
    Item(Serial),
    /// The supply of a kind.
    Supply(AssetKind),
    /// An open trade or reserved transfer.
    Open(TransferId),
    /// The entry of an action that is done only once.
    Done(Once),
    Entry(EntryNumber),
    /// A stored entity, as a holder.
    Holder(DatabaseId),
}

/// Identity of an action that is done once, even if it is requested repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Once {
    /// An order of a base part.
    Order(TransferId),
    /// An operator's action, whichever order carries it.
    Action(ActionId),
}

/// An item, whether or not it still exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its asset kind.
    pub kind: AssetKind,
    /// Its place; the world's if it was destroyed.
    pub place: AssetSlot,
}

/// Whether a kind consists of units or of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nature {
    /// Interchangeable units.
    Units,
    /// Items, each with its serial.
    Items,
}

/// The supply of a kind: the world's balance, negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Nature of the kind since the first of it was made.
    pub nature: Nature,
    /// Number of units or items.
    pub exists: u64,
}

/// The present activation of a stored entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    pub entity: EntityId,
    /// The owner of its base part.
    pub home: OwnerId,
    /// Its check-out: a later activation has a higher number.
    pub checkout: u64,
}

/// The ledger's record of a holder. Every stored entity that was ever activated has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HolderRow {
    /// The activation that is notified; none once it is deleted.
    pub life: Option<Life>,
    /// Whether it was deleted from the database. Then it never receives anything again, and is never written.
    pub deleted: bool,
    /// Number of changes of its holdings.
    pub version: HoldingsVersion,
    /// Number of its items and of its accounts that are not empty.
    pub held: u32,
    /// Number of its own open trades and reserved transfers.
    pub open: u32,
}

/// An open trade or reserved transfer with its assets: the accounts of its place are stored in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// A reserved transfer.
    Gift(Gift),
    Trade(Trade),
}

/// The rows contradict each other: the ledger is damaged, or its rules have a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the ledger contradicts itself at {row:?}: {why}")]
pub struct Breach {
    /// Row at which the contradiction was found.
    pub row: Row,
    /// What is wrong.
    pub why: &'static str,
}

/// Reason why a rule did not complete. Nothing was changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Halt {
    /// A row has to be loaded first.
    #[error("row {0:?} was not loaded")]
    Needs(Row),
    /// The rows contradict each other.
    #[error(transparent)]
    Breach(#[from] Breach),
}

/// Reason why a rule stops.
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

/// The ledger's rows as tables, with uncommitted changes; the rules are its methods.
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
    /// Notices to add to the outbox.
    pub(super) notices: Table<NoticeNumber, Notice>,
    /// Notices to remove from the outbox: those after the first number, up to and including the second.
    pub(super) taken: Option<(NoticeNumber, NoticeNumber)>,
}

impl Books {
    /// Keeps the changes of the current rule.
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

    /// Discards the changes since the last [`Books::keep`].
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

    /// Whether a row is loaded, including one that is known not to exist.
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

    /// Number of rows to write.
    pub(super) fn changes(&self) -> usize {
        let numbers = self.accounts.changes() + self.items.changes() + self.supplies.changes() + self.done.changes();
        // Entries, notices and open trades or gifts are larger than rows with only a number.
        numbers + self.holders.changes() + 4 * (self.open.changes() + self.entries.changes() + self.notices.changes())
    }
}

impl Item {
    /// The stored entity that has it, if any.
    #[must_use]
    pub fn holder(&self) -> Option<DatabaseId> {
        match self.place.holder {
            Holder::Stored(holder) => Some(holder),
            Holder::World | Holder::Pending(_) | Holder::Trade(..) => None,
        }
    }
}

impl Open {
    /// Its deadline.
    #[must_use]
    pub fn expires(&self) -> WallTime {
        match self {
            Open::Gift(gift) => gift.expires,
            Open::Trade(trade) => trade.expires,
        }
    }

    /// Its parties: the giver alone, or both sides.
    #[must_use]
    pub fn parties(&self) -> Vec<DatabaseId> {
        match self {
            Open::Gift(gift) => vec![gift.from],
            Open::Trade(trade) => vec![trade.proposer.holder, trade.partner.holder],
        }
    }

    /// Its places, with the assets in each.
    #[must_use]
    pub fn places(&self) -> Vec<(AssetSlot, &Assets)> {
        match self {
            Open::Gift(gift) => {
                let holder = Holder::Pending(gift.id);
                vec![(
                    AssetSlot {
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
                    table.map(move |(slot, assets)| (AssetSlot { holder, slot: *slot }, assets))
                });
                tables.collect()
            }
        }
    }
}
