//! The stored form of what is not a number, and rows on their way between books and store.
//!
//! ```text
//! item   = kind:number place          supply = nature:u8 exists:number         open = 0:u8 gift | 1:u8 trade
//! holder = life:option version:number held:number open:number                  life = entity:number home:number checkout:number
//! ```

use annals_event::{
    Malformed, Reader,
    ledger::{Entry, Gift, Notice, Place, Statement, Trade},
    put_number,
};
use annals_ids::{
    AssetKind, DatabaseId, EntityId, EntryNumber, HoldingsVersion, NoticeNumber, OwnerId, TransferId, WallTime,
};
use annals_store::{
    KeyRange, Order, Store, StoreError, Transaction, key_after,
    layout::{
        chunks,
        ledger::{self as layout, Head},
    },
};

use super::books::{Books, HolderRow, Item, Life, Nature, Open, Row, Supply};

/// Rows read at a time.
const PAGE: usize = 256;

/// Loads a row.
pub(super) async fn load(transaction: &Transaction, books: &mut Books, row: Row) -> Result<(), StoreError> {
    let value = transaction.get(&key(row)).await?;
    let value = value.as_deref();
    match row {
        Row::Head => books.head.load((), Some(Head::decode(value)?)),
        Row::Account(holder, slot, kind) => {
            let balance = value.map(layout::decode_balance).transpose()?;
            books.accounts.load((holder, slot, kind), balance);
        }
        Row::Item(serial) => books.items.load(serial, decode(row, value, Item::read)?),
        Row::Supply(kind) => books.supplies.load(kind, decode(row, value, Supply::read)?),
        Row::Open(id) => books.open.load(id, decode(row, value, Open::read)?),
        Row::Done(id) => {
            let entry = value.map(layout::decode_entry_number).transpose()?;
            books.done.load(id, entry);
        }
        Row::Entry(number) => books.entries.load(number, decode(row, value, Entry::read)?),
        Row::Holder(holder) => books.holders.load(holder, decode(row, value, HolderRow::read)?),
    }
    Ok(())
}

fn key(row: Row) -> Vec<u8> {
    match row {
        Row::Head => layout::head_key(),
        Row::Account(holder, slot, kind) => layout::account_key(holder, slot, kind),
        Row::Item(serial) => layout::item_key(serial),
        Row::Supply(kind) => layout::supply_key(kind),
        Row::Open(id) => layout::open_key(id),
        Row::Done(id) => layout::done_key(id),
        Row::Entry(number) => layout::entry_key(number),
        Row::Holder(holder) => layout::holder_key(holder),
    }
}

/// Writes what has changed, and what is found through it. Says how many bytes that takes.
pub(super) fn write(transaction: &Transaction, books: &mut Books) -> Result<usize, StoreError> {
    let mut out = Out { transaction, bytes: 0 };
    for ((), _, head) in books.head.take_changed() {
        out.put(&layout::head_key(), head.map(|head| head.encode()))?;
    }
    for ((holder, slot, kind), _, units) in books.accounts.take_changed() {
        let value = units.map(|units| layout::encode_balance(units).to_vec());
        out.put(&layout::account_key(holder, slot, kind), value)?;
    }
    for (serial, before, item) in books.items.take_changed() {
        out.put(
            &layout::item_key(serial),
            item.map(|item| written(|out| item.write(out))),
        )?;
        let held = |item: Item| {
            item.holder()
                .map(|holder| layout::held_key(holder, item.place.slot, serial))
        };
        if let Some(key) = before.and_then(held) {
            out.put(&key, None)?;
        }
        if let Some((key, item)) = item.and_then(|item| Some((held(item)?, item))) {
            out.put(&key, Some(layout::encode_kind(item.kind).to_vec()))?;
        }
    }
    for (kind, _, supply) in books.supplies.take_changed() {
        let value = supply.map(|supply| written(|out| supply.write(out)));
        out.put(&layout::supply_key(kind), value)?;
    }
    for (id, before, open) in books.open.take_changed() {
        out.put_open(id, before.as_ref(), open.as_ref())?;
    }
    for (id, _, entry) in books.done.take_changed() {
        let value = entry.map(|entry| layout::encode_entry_number(entry).to_vec());
        out.put(&layout::done_key(id), value)?;
    }
    for (number, _, entry) in books.entries.take_changed() {
        out.put(
            &layout::entry_key(number),
            entry.map(|entry| written(|out| entry.write(out))),
        )?;
    }
    for (holder, _, row) in books.holders.take_changed() {
        out.put(
            &layout::holder_key(holder),
            row.map(|row| written(|out| row.write(out))),
        )?;
    }
    for (number, _, notice) in books.notices.take_changed() {
        out.put_notice(number, notice.as_ref())?;
    }
    for number in std::mem::take(&mut books.taken) {
        out.put_notice(number, None)?;
    }
    Ok(out.bytes)
}

struct Out<'a> {
    transaction: &'a Transaction,
    bytes: usize,
}

impl Out<'_> {
    fn put(&mut self, key: &[u8], value: Option<Vec<u8>>) -> Result<(), StoreError> {
        self.bytes += key.len();
        match value {
            Some(value) => {
                self.bytes += value.len();
                self.transaction.set(key, &value)
            }
            None => self.transaction.clear(key),
        }
    }

    fn put_open(&mut self, id: TransferId, before: Option<&Open>, open: Option<&Open>) -> Result<(), StoreError> {
        self.put(&layout::open_key(id), open.map(|open| written(|out| open.write(out))))?;
        if before.is_some() == open.is_some() {
            return Ok(());
        }
        // Deadline and parties stay as they are for as long as it is open.
        let Some(named) = before.or(open) else { return Ok(()) };
        let there = || open.map(|_| Vec::new());
        self.put(&layout::deadline_key(named.expires(), id), there())?;
        for party in named.parties() {
            self.put(&layout::party_key(party, id), there())?;
        }
        Ok(())
    }

    fn put_notice(&mut self, number: NoticeNumber, notice: Option<&Notice>) -> Result<(), StoreError> {
        let key = layout::notice_key(number);
        let Some(notice) = notice else {
            self.bytes += key.len();
            return self.transaction.clear_range(&KeyRange::prefix(&key));
        };
        let bytes = written(|out| notice.write(out));
        for (key, chunk) in chunks(&key, &bytes) {
            self.put(&key, Some(chunk.to_vec()))?;
        }
        Ok(())
    }
}

/// Everything that a holder has and is party to. What has changed in the books is written before.
pub(super) async fn read_statement(
    transaction: &Transaction,
    holder: DatabaseId,
    row: HolderRow,
) -> Result<Statement, StoreError> {
    let mut statement = Statement {
        holder,
        ..Statement::default()
    };
    statement.holdings.version = row.version;
    let slots = &mut statement.holdings.slots;
    for (key, value) in read_all(transaction, layout::accounts_of(holder)).await? {
        let (_, slot, kind) = layout::account_of(&key)?;
        let units = layout::decode_balance(&value)?;
        slots.entry(slot).or_default().units.insert(kind, units);
    }
    for (key, value) in read_all(transaction, layout::held_by(holder)).await? {
        let (_, slot, serial) = layout::held_of(&key)?;
        let kind = layout::decode_kind(&value)?;
        slots.entry(slot).or_default().items.insert(serial, kind);
    }
    for (key, _) in read_all(transaction, layout::party_to(holder)).await? {
        let (_, id) = layout::party_of(&key)?;
        let value = transaction.get(&layout::open_key(id)).await?;
        match decode(Row::Open(id), value.as_deref(), Open::read)? {
            Some(Open::Gift(gift)) => drop(statement.gifts.insert(id, gift)),
            Some(Open::Trade(trade)) => drop(statement.trades.insert(trade.id, trade)),
            None => return Err(corrupt(Row::Open(id), "it has a party and is not there")),
        }
    }
    Ok(statement)
}

async fn read_all(transaction: &Transaction, mut range: KeyRange) -> Result<Vec<annals_store::Row>, StoreError> {
    let mut rows = Vec::new();
    loop {
        let page = transaction.get_range(&range, PAGE, Order::Forward).await?;
        let last = page.rows.last().map(|(key, _)| key_after(key));
        rows.extend(page.rows);
        match last.filter(|_| page.more) {
            Some(after) => range = KeyRange::new(after, range.end),
            None => return Ok(rows),
        }
    }
}

/// The earliest deadline that was not passed by, if there is one.
pub(super) async fn first_deadline(transaction: &Transaction) -> Result<Option<(WallTime, TransferId)>, StoreError> {
    let page = transaction.get_range(&layout::deadlines(), 1, Order::Forward).await?;
    page.rows.first().map(|(key, _)| layout::deadline_of(key)).transpose()
}

/// The life that an entity of the database has now, as far as it is folded.
///
/// # Errors
/// When the store cannot be read, or holds something else there.
pub async fn read_life(transaction: &Transaction, holder: DatabaseId) -> Result<Option<Life>, StoreError> {
    let row = Row::Holder(holder);
    let value = transaction.get(&key(row)).await?;
    let holder = decode(row, value.as_deref(), HolderRow::read)?;
    Ok(holder.and_then(|holder| holder.life))
}

/// Entries after `after`, in order: at most so many.
///
/// # Errors
/// When the store cannot be read, or holds something else there.
pub async fn read_entries(store: &Store, after: EntryNumber, limit: usize) -> Result<Vec<Entry>, StoreError> {
    let read = |transaction: Transaction| async move {
        let range = layout::entries_after(after);
        transaction.snapshot().get_range(&range, limit, Order::Forward).await
    };
    let mut next = after.next();
    let mut entries = Vec::new();
    for (key, value) in store.read(read).await?.rows {
        let row = Row::Entry(next);
        let entry = decode(row, Some(&value), Entry::read)?.filter(|entry| entry.number == next);
        let entry = entry.filter(|_| key == layout::entry_key(next));
        entries.push(entry.ok_or_else(|| corrupt(row, "another entry is in its place"))?);
        next = next.next();
    }
    Ok(entries)
}

/// Notices in the outbox after `after`, in order: at most so many, none only where there are no more.
///
/// # Errors
/// When the store cannot be read, or holds something else there.
pub async fn read_notices(
    store: &Store,
    after: NoticeNumber,
    limit: usize,
) -> Result<Vec<(NoticeNumber, Notice)>, StoreError> {
    // A notice that is larger than a row has several; those that are cut off are read the next time.
    let read = |transaction: Transaction| async move {
        let range = layout::notices_after(after);
        transaction
            .snapshot()
            .get_range(&range, limit.max(PAGE), Order::Forward)
            .await
    };
    let page = store.read(read).await?;
    let mut pieces: Vec<(NoticeNumber, Vec<u8>)> = Vec::new();
    for (key, value) in &page.rows {
        let number = layout::notice_of(key)?;
        match pieces.last_mut().filter(|(last, _)| *last == number) {
            Some((_, bytes)) => bytes.extend_from_slice(value),
            None => pieces.push((number, value.to_vec())),
        }
    }
    if page.more {
        pieces.pop();
    }
    pieces.truncate(limit);
    let read = |(number, bytes): (NoticeNumber, Vec<u8>)| {
        let unreadable = |error| StoreError::Corrupt(format!("notice {number} of the ledger: {error}").into());
        Ok((number, Notice::read(&bytes).map_err(unreadable)?))
    };
    pieces.into_iter().map(read).collect()
}

pub(super) fn decode<T>(
    row: Row,
    value: Option<&[u8]>,
    read: fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Option<T>, StoreError> {
    let Some(value) = value else { return Ok(None) };
    let mut reader = Reader::new(value);
    let decoded = read(&mut reader).and_then(|decoded| reader.finish("end of row").map(|()| decoded));
    let unreadable = |error: Malformed| StoreError::Corrupt(format!("row {row:?} of the ledger: {error}").into());
    decoded.map(Some).map_err(unreadable)
}

fn corrupt(row: Row, why: &str) -> StoreError {
    StoreError::Corrupt(format!("row {row:?} of the ledger: {why}").into())
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

impl Item {
    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.kind.0));
        self.place.write(out);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Item {
            kind: AssetKind(reader.narrow("asset kind")?),
            place: Place::read(reader)?,
        })
    }
}

impl Supply {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(match self.nature {
            Nature::Units => 0,
            Nature::Items => 1,
        });
        put_number(out, self.exists);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("nature");
        let nature = match reader.byte("nature")? {
            0 => Nature::Units,
            1 => Nature::Items,
            _ => return Err(wrong),
        };
        Ok(Supply {
            nature,
            exists: reader.number("supply")?,
        })
    }
}

impl Open {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Open::Gift(gift) => {
                out.push(0);
                gift.write(out);
            }
            Open::Trade(trade) => {
                out.push(1);
                trade.write(out);
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("what is open");
        Ok(match reader.byte("what is open")? {
            0 => Open::Gift(Gift::read(reader)?),
            1 => Open::Trade(Trade::read(reader)?),
            _ => return Err(wrong),
        })
    }
}

impl HolderRow {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.life.is_some()));
        if let Some(life) = self.life {
            put_number(out, life.entity.0);
            put_number(out, u64::from(life.home.0));
            put_number(out, life.checkout);
        }
        put_number(out, self.version.0);
        put_number(out, u64::from(self.held));
        put_number(out, u64::from(self.open));
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("life");
        let life = match reader.byte("life")? {
            0 => None,
            1 => Some(Life {
                entity: EntityId(reader.number("entity")?),
                home: OwnerId(reader.narrow("owner")?),
                checkout: reader.number("check-out")?,
            }),
            _ => return Err(wrong),
        };
        Ok(HolderRow {
            life,
            version: HoldingsVersion(reader.ordinal("holdings version")?),
            held: reader.narrow("held")?,
            open: reader.narrow("open")?,
        })
    }
}
