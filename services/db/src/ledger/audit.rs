//! The audit: checks that the ledger's rows match its entries, and that neither contradicts itself.
//!
//! It reads a consistent state of the store as far as entries go: their newest number is read first, and rows are
//! compared with the sums over all entries up to that number. It is one pass, so it takes time in proportion to the
//! ledger's age. db runs it a slice at a time ([`Audit::step`]); the command line runs all of it.

mod compare;
mod report;
mod rows;

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};

use annals_event::ledger::{AssetSlot, Entry, Holder, Order, Outcome};
use annals_ids::{AssetKind, DatabaseId, OfferVersion, Serial, TradeId, TransferId, WallTime};
use annals_store::{
    Store, StoreError,
    layout::ledger::{self as layout, Head},
};

pub use report::{Finding, Report, Sum};

use super::{
    books::Open,
    pages::{next_entries, read_entries},
};
use rows::Rows;

/// Entries read at a time.
const ENTRIES_AT_ONCE: usize = 512;

/// An audit in progress.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    units: BTreeMap<(AssetSlot, AssetKind), i128>,
    items: BTreeMap<Serial, (AssetKind, AssetSlot)>,
    made: BTreeMap<AssetKind, (u128, u128)>,
    open: BTreeMap<TransferId, Terms>,
    deleted: BTreeSet<DatabaseId>,
    report: Report,
}

/// Terms of an open trade or reserved transfer, without its assets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Terms {
    /// Giver and receiver, or proposer and partner.
    parties: [DatabaseId; 2],
    expires: WallTime,
    /// Version of the offer, and which side has accepted it; `None` for a reserved transfer.
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
#[boxed]
pub async fn audit(store: &Store) -> Result<Report, StoreError> {
    let mut audit = Audit::default();
    // Entries may be added meanwhile: the last step reads rows and the remaining entries in one transaction.
    while audit.step(store).await? == Progress::Goes {}
    Ok(audit.report)
}

/// Progress of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to read.
    Goes,
    /// The rows were compared with the entries.
    Done,
}

impl Audit {
    /// Reads the next entries; once there are no more, compares the rows with them.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[boxed]
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

    /// Audits the present ledger without reading again the entries that the previous look has read. Finds a row that is
    /// changed or lost later; a change of an entry before that look is found only by an audit from the beginning.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[boxed]
    pub async fn look(&mut self, store: &Store) -> Result<Report, StoreError> {
        loop {
            let read = match read_entries(store, self.report.entries, ENTRIES_AT_ONCE).await {
                Ok(read) => read,
                // What cannot be read is reported at the end, and left for the next look.
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

    /// Number of accounts and items that it tracks.
    #[must_use]
    pub fn counted(&self) -> usize {
        self.units.len() + self.items.len()
    }

    /// Findings so far.
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
        match Rows::read(&transaction).await {
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

    /// Applies an entry to the open trades and gifts.
    fn take_terms(&mut self, entry: &Entry) {
        let open = |to, expires, table| Terms {
            parties: [entry.holder, to],
            expires,
            table,
        };
        match (&entry.order, entry.outcome) {
            (Some(Order::Give { to, expires, .. }), Outcome::Pending) => {
                self.open.insert(entry.of, open(*to, *expires, None));
            }
            (Some(Order::Propose { with, expires }), Outcome::Pending) => {
                let table = Some((OfferVersion(0), [false; 2]));
                self.open.insert(entry.of, open(*with, *expires, table));
            }
            (Some(Order::Offer { trade, .. } | Order::Withdraw { trade, .. }), Outcome::Posted) => {
                if let Some((version, accepted)) = self.table_of(*trade) {
                    *version = version.next();
                    *accepted = [false; 2];
                }
            }
            (Some(Order::Accept { trade, .. }), Outcome::Posted) => {
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
            (Some(Order::Post { of } | Order::Void { of }), Outcome::Posted | Outcome::Voided) => {
                self.open.remove(of);
            }
            (Some(Order::Cancel { trade }), Outcome::Voided) => drop(self.open.remove(&trade.0)),
            (Some(Order::Delete), Outcome::Posted) => drop(self.deleted.insert(entry.holder)),
            (None, Outcome::Expired) => drop(self.open.remove(&entry.of)),
            _ => {}
        }
    }

    fn table_of(&mut self, trade: TradeId) -> Option<&mut (OfferVersion, [bool; 2])> {
        self.open.get_mut(&trade.0)?.table.as_mut()
    }

    fn note_made(&mut self, kind: AssetKind, amount: i128) {
        let (made, destroyed) = self.made.entry(kind).or_default();
        if amount > 0 {
            *made += amount.unsigned_abs();
        } else {
            *destroyed += amount.unsigned_abs();
        }
    }

    fn find(&mut self, finding: Finding) {
        self.report.note(finding);
    }
}
