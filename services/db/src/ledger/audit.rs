//! The audit: whether the ledger's rows are what its entries come to, and neither contradicts itself.
//!
//! It reads everything at one moment of the store as far as entries go (their newest number is read first, and rows are held
//! against the sums over all entries up to the same number), in one pass: so it takes as long as the ledger is old. db runs it
//! a slice at a time ([`Audit::step`]); the command line runs all of it.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::ledger::{Entry, Holder, Order as Asked, Outcome, Place};
use annals_ids::{AssetKind, DatabaseId, EntryNumber, OfferVersion, Serial, Slot, TradeId, TransferId, WallTime};
use annals_store::{
    KeyRange, Order, Row as Pair, Store, StoreError, Transaction, key_after,
    layout::ledger::{self as layout, Head},
};
use thiserror::Error;

use super::{
    books::{HolderRow, Item, Nature, Open, Row, Supply},
    pages::{next_entries, read_entries},
    rows::decode,
};

/// Entries read at a time.
const ENTRIES_AT_ONCE: usize = 512;

/// Rows read at a time.
const PAGE: usize = 1024;

/// Most findings that are kept: beyond that only their number grows.
const FINDINGS_KEPT: usize = 1000;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Finding {
    /// An entry gives and takes different amounts of a kind.
    #[error("unbalanced: entry {entry} makes {sum} units of kind {kind} out of nothing")]
    Unbalanced {
        /// Which entry.
        entry: EntryNumber,
        /// Of which kind.
        kind: AssetKind,
        /// By how much.
        sum: i128,
    },
    /// An account other than the world's is below nothing.
    #[error("negative: entry {entry} leaves {balance} units of kind {kind} with {place:?}")]
    Negative {
        /// After which entry.
        entry: EntryNumber,
        /// Where.
        place: Place,
        /// Of which kind.
        kind: AssetKind,
        /// How many.
        balance: i128,
    },
    /// An item moved from where it was not.
    #[error("misplaced: entry {entry} moves item {serial} from {from:?}, where it was not")]
    Misplaced {
        /// In which entry.
        entry: EntryNumber,
        /// Which item.
        serial: Serial,
        /// From where.
        from: Place,
    },
    /// A row is not what the entries come to.
    #[error("differs: {row} is {found}, and the entries come to {expected}")]
    Differs {
        /// Which row.
        row: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A row that finds another is missing, or finds nothing.
    #[error("index: {what}")]
    Index {
        /// What is wrong.
        what: String,
    },
    /// An entry is missing, or what is there cannot be read.
    #[error("unreadable: {what}")]
    Unreadable {
        /// What is wrong.
        what: String,
    },
}

impl Finding {
    /// Its name, in a word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Finding::Unbalanced { .. } => "unbalanced",
            Finding::Negative { .. } => "negative",
            Finding::Misplaced { .. } => "misplaced",
            Finding::Differs { .. } => "differs",
            Finding::Index { .. } => "index",
            Finding::Unreadable { .. } => "unreadable",
        }
    }
}

/// How much there is of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// What was ever made.
    pub made: u128,
    /// What was destroyed.
    pub destroyed: u128,
    /// What entities of the database hold.
    pub held: u128,
    /// What is reserved or on a table.
    pub in_escrow: u128,
}

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The newest entry that was looked at.
    pub entries: EntryNumber,
    /// How much there is of each kind.
    pub sums: BTreeMap<AssetKind, Sum>,
    /// What must not be, at most [`FINDINGS_KEPT`].
    pub findings: Vec<Finding>,
    /// How many of that there are.
    pub found: u64,
}

/// An audit under way.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    units: BTreeMap<(Place, AssetKind), i128>,
    items: BTreeMap<Serial, (AssetKind, Place)>,
    made: BTreeMap<AssetKind, (u128, u128)>,
    open: BTreeMap<TransferId, Terms>,
    report: Report,
}

/// How something that is open stands, beside what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Terms {
    /// Giver and receiver, or proposer and partner.
    parties: [DatabaseId; 2],
    expires: WallTime,
    /// How often what is on the table has changed, and who has accepted it; `None` for a reserved transfer.
    table: Option<(OfferVersion, [bool; 2])>,
}

impl Terms {
    fn of(open: &Open) -> Self {
        match open {
            Open::Gift(gift) => Self {
                parties: [gift.from, gift.to],
                expires: gift.expires,
                table: None,
            },
            Open::Trade(trade) => Self {
                parties: [trade.proposer.holder, trade.partner.holder],
                expires: trade.expires,
                table: Some((trade.version, [trade.proposer.accepted, trade.partner.accepted])),
            },
        }
    }
}

/// Audits the whole ledger.
///
/// # Errors
/// When the store cannot be read.
pub async fn audit(store: &Store) -> Result<Report, StoreError> {
    let mut audit = Audit::default();
    // Entries may be made meanwhile: the last pass reads rows and the rest of the entries at one moment.
    while audit.step(store).await? == Progress::Goes {}
    Ok(audit.report)
}

/// Whether an audit has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to be read.
    Goes,
    /// The rows were held against the entries.
    Done,
}

/// The rows of a ledger at one moment.
#[derive(Default)]
struct Rows {
    accounts: BTreeMap<(DatabaseId, Slot, AssetKind), u64>,
    items: BTreeMap<Serial, Item>,
    held: BTreeMap<(DatabaseId, Slot, Serial), AssetKind>,
    supplies: BTreeMap<AssetKind, Supply>,
    open: BTreeMap<TransferId, Open>,
    deadlines: BTreeSet<(u64, TransferId)>,
    parties: BTreeSet<(DatabaseId, TransferId)>,
    holders: BTreeMap<DatabaseId, HolderRow>,
}

impl Audit {
    /// Reads the next entries; once there are no more, holds the rows against them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn step(&mut self, store: &Store) -> Result<Progress, StoreError> {
        let read = match read_entries(store, self.report.entries, ENTRIES_AT_ONCE).await {
            Ok(read) => read,
            Err(StoreError::Corrupt(what)) => {
                let what = what.to_string();
                self.find(Finding::Unreadable { what });
                return Ok(Progress::Done);
            }
            Err(other) => return Err(other),
        };
        if read.len() < ENTRIES_AT_ONCE {
            return self.finish(store).await.map(|()| Progress::Done);
        }
        read.iter().for_each(|entry| self.take(entry));
        Ok(Progress::Goes)
    }

    /// Audits the ledger as it is now, of which the entries up to the last look are not read again: a row that is changed or
    /// lost later is found, an entry behind that look only by an audit from nothing.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn look(&mut self, store: &Store) -> Result<Report, StoreError> {
        loop {
            let read = match read_entries(store, self.report.entries, ENTRIES_AT_ONCE).await {
                Ok(read) => read,
                // What cannot be read is named at the end, and left for the next look.
                Err(StoreError::Corrupt(_)) => break,
                Err(other) => return Err(other),
            };
            read.iter().for_each(|entry| self.take(entry));
            if read.len() < ENTRIES_AT_ONCE {
                break;
            }
        }
        let mut now = self.clone();
        now.finish(store).await?;
        Ok(now.report)
    }

    /// How many accounts and items it keeps count of.
    #[must_use]
    pub fn counted(&self) -> usize {
        self.units.len() + self.items.len()
    }

    /// What was found so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    async fn finish(&mut self, store: &Store) -> Result<(), StoreError> {
        let transaction = store.begin();
        let head = Head::decode(transaction.snapshot().get(&layout::head_key()).await?.as_deref())?;
        loop {
            match next_entries(&transaction, self.report.entries).await {
                Ok((entries, more)) => {
                    entries.iter().for_each(|entry| self.take(entry));
                    if !more {
                        break;
                    }
                }
                Err(StoreError::Corrupt(what)) => {
                    self.find(Finding::Unreadable { what: what.to_string() });
                    break;
                }
                Err(other) => return Err(other),
            }
        }
        if self.report.entries != head.entry {
            self.differ("the newest entry", &self.report.entries.clone(), &head.entry);
        }
        match read_rows(&transaction).await {
            Ok(rows) => {
                self.check_due(&rows, head.due);
                self.compare(&rows);
            }
            Err(StoreError::Corrupt(what)) => self.find(Finding::Unreadable { what: what.to_string() }),
            Err(other) => return Err(other),
        }
        Ok(())
    }

    fn take(&mut self, entry: &Entry) {
        if entry.number != self.report.entries.next() {
            let what = format!("entry {} follows entry {}", entry.number, self.report.entries);
            self.find(Finding::Unreadable { what });
        }
        self.report.entries = entry.number;
        self.take_terms(entry);
        let mut sums: BTreeMap<AssetKind, i128> = BTreeMap::new();
        for posting in &entry.postings {
            let (place, kind) = (posting.account.place, posting.account.kind);
            let amount = i128::from(posting.amount);
            *sums.entry(kind).or_default() += amount;
            let balance = self.units.entry((place, kind)).or_default();
            *balance += amount;
            let balance = *balance;
            if place.holder == Holder::World {
                self.note_made(kind, -amount);
            } else if balance < 0 {
                self.find(Finding::Negative {
                    entry: entry.number,
                    place,
                    kind,
                    balance,
                });
            }
            if balance == 0 {
                self.units.remove(&(place, kind));
            }
        }
        for (kind, sum) in sums.into_iter().filter(|(_, sum)| *sum != 0) {
            let entry = entry.number;
            self.find(Finding::Unbalanced { entry, kind, sum });
        }
        for passage in &entry.passages {
            let was = self.items.insert(passage.serial, (passage.kind, passage.to));
            let is_new = was.is_none() && passage.from.holder == Holder::World;
            if !is_new && was != Some((passage.kind, passage.from)) {
                self.find(Finding::Misplaced {
                    entry: entry.number,
                    serial: passage.serial,
                    from: passage.from,
                });
            }
            for (place, one) in [(passage.from, 1), (passage.to, -1)] {
                if place.holder == Holder::World {
                    self.note_made(passage.kind, one);
                }
            }
        }
    }

    /// What an entry did to what is open.
    fn take_terms(&mut self, entry: &Entry) {
        let open = |to, expires, table| Terms {
            parties: [entry.holder, to],
            expires,
            table,
        };
        match (&entry.order, entry.outcome) {
            (Some(Asked::Give { to, expires, .. }), Outcome::Pending) => {
                self.open.insert(entry.of, open(*to, *expires, None));
            }
            (Some(Asked::Propose { with, expires }), Outcome::Pending) => {
                let table = Some((OfferVersion(0), [false; 2]));
                self.open.insert(entry.of, open(*with, *expires, table));
            }
            (Some(Asked::Offer { trade, .. } | Asked::Withdraw { trade, .. }), Outcome::Posted) => {
                if let Some((version, accepted)) = self.table_of(*trade) {
                    *version = version.next();
                    *accepted = [false; 2];
                }
            }
            (Some(Asked::Accept { trade, .. }), Outcome::Posted) => {
                let side = self
                    .open
                    .get(&trade.0)
                    .map(|terms| usize::from(terms.parties[1] == entry.holder));
                let table = self.table_of(*trade);
                if let Some(((_, accepted), side)) = table.zip(side) {
                    accepted[side] = true;
                    if *accepted == [true; 2] {
                        self.open.remove(&trade.0);
                    }
                }
            }
            (Some(Asked::Post { of } | Asked::Void { of }), Outcome::Posted | Outcome::Voided) => {
                self.open.remove(of);
            }
            (Some(Asked::Cancel { trade }), Outcome::Voided) => drop(self.open.remove(&trade.0)),
            (None, Outcome::Expired) => drop(self.open.remove(&entry.of)),
            _ => {}
        }
    }

    fn table_of(&mut self, trade: TradeId) -> Option<&mut (OfferVersion, [bool; 2])> {
        self.open.get_mut(&trade.0)?.table.as_mut()
    }

    fn check_terms(&mut self, rows: &Rows) {
        let expected = std::mem::take(&mut self.open);
        let ids: BTreeSet<TransferId> = expected.keys().chain(rows.open.keys()).copied().collect();
        for id in ids {
            let (terms, row) = (expected.get(&id), rows.open.get(&id).map(Terms::of));
            if terms != row.as_ref() {
                let name = format!("how transfer {id} stands");
                self.differ(&name, &format!("{terms:?}"), &format!("{row:?}"));
            }
        }
    }

    fn note_made(&mut self, kind: AssetKind, amount: i128) {
        let (made, destroyed) = self.made.entry(kind).or_default();
        if amount > 0 {
            *made += amount.unsigned_abs();
        } else {
            *destroyed += amount.unsigned_abs();
        }
    }

    fn compare(&mut self, rows: &Rows) {
        let mut found: BTreeMap<(Place, AssetKind), i128> = BTreeMap::new();
        for ((holder, slot, kind), units) in &rows.accounts {
            found.insert((stored(*holder, *slot), *kind), i128::from(*units));
        }
        let mut escrow: BTreeMap<Serial, Place> = BTreeMap::new();
        for (id, open) in &rows.open {
            for (place, assets) in open.places() {
                for (kind, units) in &assets.units {
                    *found.entry((place, *kind)).or_default() += i128::from(*units);
                }
                escrow.extend(assets.items.keys().map(|serial| (*serial, place)));
            }
            self.check_open(rows, *id, open);
        }
        for (kind, supply) in &rows.supplies {
            if supply.nature == Nature::Units && supply.exists > 0 {
                found.insert((world(), *kind), -i128::from(supply.exists));
            }
        }
        let units = std::mem::take(&mut self.units);
        let places: BTreeSet<_> = units.keys().chain(found.keys()).copied().collect();
        for (place, kind) in places {
            let of = |map: &BTreeMap<_, i128>| map.get(&(place, kind)).copied().unwrap_or(0);
            if of(&units) != of(&found) {
                let row = format!("the balance of kind {kind} at {place:?}");
                self.differ(&row, &of(&units), &of(&found));
            }
            self.add_to_sum(place, kind, of(&found));
        }
        self.check_items(rows, &escrow);
        self.check_holders(rows);
        self.check_terms(rows);
        self.check_stray(rows);
        for (kind, (made, destroyed)) in std::mem::take(&mut self.made) {
            let sum = self.report.sums.entry(kind).or_default();
            (sum.made, sum.destroyed) = (made, destroyed);
            let (exists, there) = (made.saturating_sub(destroyed), sum.held + sum.in_escrow);
            if exists != there {
                self.differ(&format!("what exists of kind {kind}"), &exists, &there);
            }
            let supply = rows.supplies.get(&kind).map_or(0, |supply| u128::from(supply.exists));
            if exists != supply {
                self.differ(&format!("the supply of kind {kind}"), &exists, &supply);
            }
        }
    }

    fn check_items(&mut self, rows: &Rows, escrow: &BTreeMap<Serial, Place>) {
        let items = std::mem::take(&mut self.items);
        let serials: BTreeSet<Serial> = items.keys().chain(rows.items.keys()).copied().collect();
        for serial in serials {
            let expected = items.get(&serial).copied();
            let row = rows.items.get(&serial).map(|item| (item.kind, item.place));
            if expected != row {
                self.differ(&format!("item {serial}"), &format!("{expected:?}"), &format!("{row:?}"));
            }
            let Some((kind, place)) = row else { continue };
            match place.holder {
                Holder::World => {}
                Holder::Stored(holder) => {
                    self.add_to_sum(place, kind, 1);
                    if rows.held.get(&(holder, place.slot, serial)) != Some(&kind) {
                        let what = format!("item {serial} is not found with entity {holder} of the database");
                        self.find(Finding::Index { what });
                    }
                }
                Holder::Pending(_) | Holder::Trade(..) => {
                    self.add_to_sum(place, kind, 1);
                    if escrow.get(&serial) != Some(&place) {
                        let what = format!("item {serial} is reserved at {place:?}, which does not have it");
                        self.find(Finding::Index { what });
                    }
                }
            }
        }
        for (holder, slot, serial) in rows.held.keys() {
            let place = rows.items.get(serial).map(|item| item.place);
            if place != Some(stored(*holder, *slot)) {
                let what = format!("item {serial} is found with entity {holder} of the database and is elsewhere");
                self.find(Finding::Index { what });
            }
        }
        for (serial, place) in escrow {
            if rows.items.get(serial).map(|item| item.place) != Some(*place) {
                let what = format!("item {serial} is reserved at {place:?} and is elsewhere");
                self.find(Finding::Index { what });
            }
        }
    }

    fn check_open(&mut self, rows: &Rows, id: TransferId, open: &Open) {
        let has_deadline = rows.deadlines.contains(&(open.expires().0, id));
        let has_parties = open.parties().iter().all(|party| rows.parties.contains(&(*party, id)));
        if !has_deadline || !has_parties {
            let what = format!("transfer {id} is open, and its deadline or a party does not say so");
            self.find(Finding::Index { what });
        }
    }

    /// What the head says of when to look for what expires.
    fn check_due(&mut self, rows: &Rows, due: Option<WallTime>) {
        if let Some((earliest, id)) = rows.deadlines.first()
            && due.is_none_or(|due| due.0 > *earliest)
        {
            let what = format!("transfer {id} expires before anything is said to");
            self.find(Finding::Index { what });
        }
    }

    /// What rows say of what is not there.
    fn check_stray(&mut self, rows: &Rows) {
        for (deadline, id) in &rows.deadlines {
            if rows.open.get(id).is_none_or(|open| open.expires().0 != *deadline) {
                let what = format!("transfer {id} has a deadline and is not open");
                self.find(Finding::Index { what });
            }
        }
        for (party, id) in &rows.parties {
            if rows.open.get(id).is_none_or(|open| !open.parties().contains(party)) {
                let what = format!("entity {party} of the database is party to transfer {id}, which is not open");
                self.find(Finding::Index { what });
            }
        }
    }

    fn check_holders(&mut self, rows: &Rows) {
        let mut held: BTreeMap<DatabaseId, (u32, u32)> = BTreeMap::new();
        let holding = rows.accounts.keys().map(|(holder, _, _)| *holder);
        for holder in holding.chain(rows.held.keys().map(|(holder, _, _)| *holder)) {
            held.entry(holder).or_default().0 += 1;
        }
        for (holder, _) in &rows.parties {
            held.entry(*holder).or_default().1 += 1;
        }
        let all: BTreeSet<DatabaseId> = held.keys().chain(rows.holders.keys()).copied().collect();
        for holder in all {
            let counted = held.get(&holder).copied().unwrap_or_default();
            let row = rows.holders.get(&holder).map(|row| (row.held, row.open));
            if row.unwrap_or_default() != counted {
                let name = format!("how much entity {holder} of the database holds and has open");
                self.differ(&name, &format!("{counted:?}"), &format!("{row:?}"));
            }
        }
    }

    fn add_to_sum(&mut self, place: Place, kind: AssetKind, amount: i128) {
        let amount = u128::try_from(amount).unwrap_or(0);
        let sum = self.report.sums.entry(kind).or_default();
        match place.holder {
            Holder::World => {}
            Holder::Stored(_) => sum.held += amount,
            Holder::Pending(_) | Holder::Trade(..) => sum.in_escrow += amount,
        }
    }

    fn differ(&mut self, row: &str, expected: &impl ToString, found: &impl ToString) {
        self.find(Finding::Differs {
            row: row.to_owned(),
            found: found.to_string(),
            expected: expected.to_string(),
        });
    }

    fn find(&mut self, finding: Finding) {
        self.report.found += 1;
        if self.report.findings.len() < FINDINGS_KEPT {
            self.report.findings.push(finding);
        }
    }
}

fn stored(holder: DatabaseId, slot: Slot) -> Place {
    Place {
        holder: Holder::Stored(holder),
        slot,
    }
}

fn world() -> Place {
    Place {
        holder: Holder::World,
        slot: Slot(0),
    }
}

async fn read_rows(transaction: &Transaction) -> Result<Rows, StoreError> {
    let mut rows = Rows::default();
    for (key, value) in read_all(transaction, layout::accounts()).await? {
        rows.accounts
            .insert(layout::account_of(&key)?, layout::decode_balance(&value)?);
    }
    for (key, value) in read_all(transaction, layout::items()).await? {
        let serial = layout::item_of(&key)?;
        rows.items
            .extend(decode(Row::Item(serial), Some(&value), Item::read)?.map(|item| (serial, item)));
    }
    for (key, value) in read_all(transaction, layout::held()).await? {
        rows.held.insert(layout::held_of(&key)?, layout::decode_kind(&value)?);
    }
    for (key, value) in read_all(transaction, layout::supplies()).await? {
        let kind = layout::supply_of(&key)?;
        rows.supplies
            .extend(decode(Row::Supply(kind), Some(&value), Supply::read)?.map(|supply| (kind, supply)));
    }
    for (key, value) in read_all(transaction, layout::open()).await? {
        let id = layout::open_of(&key)?;
        rows.open
            .extend(decode(Row::Open(id), Some(&value), Open::read)?.map(|open| (id, open)));
    }
    for (key, _) in read_all(transaction, layout::deadlines()).await? {
        let (deadline, id) = layout::deadline_of(&key)?;
        rows.deadlines.insert((deadline.0, id));
    }
    for (key, _) in read_all(transaction, layout::parties()).await? {
        rows.parties.insert(layout::party_of(&key)?);
    }
    for (key, value) in read_all(transaction, layout::holders()).await? {
        let holder = layout::holder_of(&key)?;
        let row = decode(Row::Holder(holder), Some(&value), HolderRow::read)?;
        rows.holders.extend(row.map(|row| (holder, row)));
    }
    Ok(rows)
}

async fn read_all(transaction: &Transaction, mut range: KeyRange) -> Result<Vec<Pair>, StoreError> {
    let mut rows = Vec::new();
    loop {
        let page = transaction.snapshot().get_range(&range, PAGE, Order::Forward).await?;
        let last = page.rows.last().map(|(key, _)| key_after(key));
        rows.extend(page.rows);
        match last.filter(|_| page.more) {
            Some(after) => range = KeyRange::new(after, range.end),
            None => return Ok(rows),
        }
    }
}
