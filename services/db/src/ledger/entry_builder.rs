//! Builds one entry of the ledger from an order.

mod orders;
mod shifting;

use std::collections::BTreeMap;

use annals_event::ledger::{
    Account, Booking, Change, Delivery, Entry, Gift, LedgerUpdate, Notice, Order, Outcome, Passage, Posting, Trade,
};
use annals_ids::{DatabaseId, EntityId, EntryNumber, HoldingsVersion, LogPosition, OwnerId, TransferId, WallTime};

use super::{
    books::{Books, Breach, Halt, HolderRow, Row, Stop},
    rules::Ask,
};

/// An entry of the ledger that is being built: its postings, changes and the trade or gift that it touches.
pub(super) struct EntryBuilder<'a> {
    books: &'a mut Books,
    at: LogPosition,
    wall: WallTime,
    of: TransferId,
    holder: DatabaseId,
    /// The base part that asked, if any, and its home.
    asker: Option<(EntityId, OwnerId)>,
    postings: BTreeMap<Account, i64>,
    passages: Vec<Passage>,
    changes: BTreeMap<DatabaseId, Change>,
    /// Holders other than the asker's whose activations are notified.
    notified: Vec<DatabaseId>,
    trade: Option<Trade>,
    gift: Option<Gift>,
}

impl<'a> EntryBuilder<'a> {
    pub(super) fn new(
        books: &'a mut Books,
        at: LogPosition,
        wall: WallTime,
        of: TransferId,
        holder: DatabaseId,
    ) -> Self {
        Self {
            books,
            at,
            wall,
            of,
            holder,
            asker: None,
            postings: BTreeMap::new(),
            passages: Vec::new(),
            changes: BTreeMap::new(),
            notified: Vec::new(),
            trade: None,
            gift: None,
        }
    }

    pub(super) fn of(books: &'a mut Books, ask: &Ask) -> Self {
        Self {
            asker: Some((ask.of.asker, ask.at.owner)),
            ..Self::new(books, ask.at, ask.wall, ask.of, ask.holder)
        }
    }

    fn row(&self, holder: DatabaseId) -> Result<HolderRow, Stop> {
        let why = "the holder has assets and no row";
        let row = self.books.holder(holder)?;
        row.ok_or_else(|| breach(Row::Holder(holder), why))
    }

    /// Writes the entry, raises versions, and adds the notices for the parties to the outbox.
    pub(super) fn finish(mut self, order: Option<Order>, outcome: Outcome) -> Result<EntryNumber, Halt> {
        let mut versions = BTreeMap::new();
        for holder in self.changes.keys() {
            let row = Row::Holder(*holder);
            let why = "the holder has assets and no row";
            let mut held = self.books.holder(*holder)?.ok_or(Breach { row, why })?;
            held.version = held.version.next();
            self.books.holders.set(*holder, Some(held));
            versions.insert(*holder, held.version);
        }
        let mut head = self.books.head()?;
        head.entry = head.entry.next();
        self.books.head.set((), Some(head));
        let number = head.entry;
        let deliveries = self.deliveries(number, outcome, &versions)?;
        let entry = Entry {
            number,
            at: self.at,
            wall: self.wall,
            of: self.of,
            holder: self.holder,
            order,
            outcome,
            postings: postings(&self.postings),
            passages: std::mem::take(&mut self.passages),
        };
        self.books.entries.set(number, Some(entry.clone()));
        self.books.put_notice(Notice {
            entry: Some(Box::new(entry)),
            deliveries,
        })?;
        Ok(number)
    }

    /// Deliveries to the asker and to the activations of all other parties.
    fn deliveries(
        &mut self,
        entry: EntryNumber,
        outcome: Outcome,
        versions: &BTreeMap<DatabaseId, HoldingsVersion>,
    ) -> Result<Vec<Delivery>, Halt> {
        let mut to = Vec::new();
        if let Some((asker, home)) = self.asker {
            to.push((self.holder, asker, home));
        }
        let mut others = std::mem::take(&mut self.notified);
        others.sort_unstable();
        others.dedup();
        for other in others {
            let life = self.books.holder(other)?.and_then(|row| row.life);
            if let Some(life) = life.filter(|life| to.iter().all(|(_, notified, _)| *notified != life.entity)) {
                to.push((other, life.entity, life.home));
            }
        }
        let delivery = |(holder, entity, home)| {
            let change = self.changes.get(&holder).zip(versions.get(&holder));
            let booking = Booking {
                entry,
                of: self.of,
                outcome,
                change: change.map(|(change, version)| Change {
                    version: *version,
                    ..change.clone()
                }),
                trade: self.trade.clone(),
                gift: self.gift.clone(),
            };
            Delivery {
                to: entity,
                home,
                update: LedgerUpdate::Booking(Box::new(booking)),
            }
        };
        Ok(to.into_iter().map(delivery).collect())
    }
}

fn postings(sums: &BTreeMap<Account, i64>) -> Vec<Posting> {
    let moved = sums.iter().filter(|(_, amount)| **amount != 0);
    let posting = |(account, amount): (&Account, &i64)| Posting {
        account: *account,
        amount: *amount,
    };
    moved.map(posting).collect()
}

fn breach(row: Row, why: &'static str) -> Stop {
    Stop::Halt(Halt::Breach(Breach { row, why }))
}
