//! The stored form of rows that are not plain numbers, and the transfer of rows between books and store.
//!
//! ```text
//! item   = kind:number place       supply = nature:u8 exists:number  open = 0:u8 gift | 1:u8 trade
//! holder = holds version:number held:number open:number
//! holds  = 0:u8  |  1:u8 entity:number home:number checkout:number (its life)  |  2:u8 (it is deleted)
//! ```

use annals_event::{
    Malformed, Reader,
    ledger::{AssetSlot, Entry, Gift, Statement, Trade},
    put_number,
};
use annals_ids::{ActionId, AssetKind, DatabaseId, EntityId, HoldingsVersion, OwnerId, Serial, TransferId, WallTime};
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction,
    layout::ledger::{self as layout, Head},
};
use async_recursion::async_recursion as boxed;

use super::books::{Books, HolderRow, Item, Life, Nature, Once, Open, Row, Supply};
use super::pages;

/// Rows read at a time.
const PAGE: usize = 256;

/// Loads a row.
pub(super) async fn load(transaction: &Transaction, books: &mut Books, row: Row) -> Result<(), StoreError> {
    match row {
        Row::Head => {
            let value = transaction.get(&layout::head_key()).await?;
            books.head.load((), Some(Head::decode(value.as_deref())?));
        }
        Row::Account(holder, slot, kind) => {
            let value = transaction.get(&layout::account_key(holder, slot, kind)).await?;
            let balance = value.as_deref().map(layout::decode_balance).transpose()?;
            books.accounts.load((holder, slot, kind), balance);
        }
        Row::Item(serial) => {
            let item = read(transaction, row, layout::item_key(serial), Item::read).await?;
            books.items.load(serial, item);
        }
        Row::Supply(kind) => {
            let supply = read(transaction, row, layout::supply_key(kind), Supply::read).await?;
            books.supplies.load(kind, supply);
        }
        Row::Open(id) => {
            let open = read(transaction, row, layout::open_key(id), Open::read).await?;
            books.open.load(id, open);
        }
        Row::Done(what) => {
            let value = transaction.get(&done_key(what)).await?;
            let entry = value.as_deref().map(layout::decode_entry_number).transpose()?;
            books.done.load(what, entry);
        }
        Row::Entry(number) => {
            let entry = pages::read_entry(transaction, number).await?;
            books.entries.load(number, entry);
        }
        Row::Holder(holder) => {
            let found = read(transaction, row, layout::holder_key(holder), HolderRow::read).await?;
            books.holders.load(holder, found);
        }
    }
    Ok(())
}

fn done_key(what: Once) -> Vec<u8> {
    match what {
        Once::Order(id) => layout::done_key(id),
        Once::Action(action) => layout::action_key(action),
    }
}

async fn read<T>(
    transaction: &Transaction,
    row: Row,
    key: Vec<u8>,
    read: fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Option<T>, StoreError> {
    decode(row, transaction.get(&key).await?.as_deref(), read)
}

/// Writes the changed rows and their index rows. Returns the bytes written.
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
    for (what, _, entry) in books.done.take_changed() {
        let value = entry.map(|entry| layout::encode_entry_number(entry).to_vec());
        out.put(&done_key(what), value)?;
    }
    for (holder, _, row) in books.holders.take_changed() {
        out.put(
            &layout::holder_key(holder),
            row.map(|row| written(|out| row.write(out))),
        )?;
    }
    if let Some((after, upto)) = books.taken.take() {
        transaction.clear_range(&layout::notices_between(after, upto))?;
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
        // Deadline and parties do not change while it is open.
        let Some(named) = before.or(open) else { return Ok(()) };
        let there = || open.map(|_| Vec::new());
        self.put(&layout::deadline_key(named.expires(), id), there())?;
        for party in named.parties() {
            self.put(&layout::party_key(party, id), there())?;
        }
        Ok(())
    }
}

/// Reads all holdings and open trades or gifts of a holder, as many as its row counts. Changes in the books must be
/// written before.
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
    let (mut held, open) = (row.held as usize, row.open as usize);
    for (key, value) in read_last(transaction, layout::accounts_of(holder), held).await? {
        held -= 1;
        let (_, slot, kind) = layout::account_of(&key)?;
        let units = layout::decode_balance(&value)?;
        slots.entry(slot).or_default().units.insert(kind, units);
    }
    for (key, value) in read_last(transaction, layout::held_by(holder), held).await? {
        let (_, slot, serial) = layout::held_of(&key)?;
        let kind = layout::decode_kind(&value)?;
        slots.entry(slot).or_default().items.insert(serial, kind);
    }
    for (key, _) in read_last(transaction, layout::party_to(holder), open).await? {
        let (_, id) = layout::party_of(&key)?;
        let value = transaction.get(&layout::open_key(id)).await?;
        match decode(Row::Open(id), value.as_deref(), Open::read)? {
            Some(Open::Gift(gift)) => drop(statement.gifts.insert(id, gift)),
            Some(Open::Trade(trade)) => drop(statement.trades.insert(trade.id, trade)),
            None => return Err(corrupt(Row::Open(id), "it has a party and does not exist")),
        }
    }
    Ok(statement)
}

/// Reads at most `most` rows from the end of a range. A reader that knows their number does not scan the deleted rows
/// before them, which are all that the holder once had.
async fn read_last(
    transaction: &Transaction,
    mut range: KeyRange,
    most: usize,
) -> Result<Vec<annals_store::Row>, StoreError> {
    let mut rows = Vec::new();
    loop {
        let limit = PAGE.min(most - rows.len());
        let page = transaction.get_range(&range, limit, ScanOrder::Reverse).await?;
        let first = page.rows.last().map(|(key, _)| key.clone());
        rows.extend(page.rows);
        match first.filter(|_| page.more && rows.len() < most) {
            Some(first) => range = KeyRange::new(range.begin, first),
            None => return Ok(rows),
        }
    }
}

/// The earliest of some deadlines, if there is one.
pub(super) async fn first_deadline(
    transaction: &Transaction,
    deadlines: &KeyRange,
) -> Result<Option<(WallTime, TransferId)>, StoreError> {
    let page = transaction.get_range(deadlines, 1, ScanOrder::Forward).await?;
    page.rows.first().map(|(key, _)| layout::deadline_of(key)).transpose()
}

/// Reads the present activation of a stored entity, as far as its log is folded.
///
/// # Errors
/// When the store cannot be read, or the row is damaged.
#[boxed]
pub async fn read_life(transaction: &Transaction, holder: DatabaseId) -> Result<Option<Life>, StoreError> {
    let key = layout::holder_key(holder);
    let holder = read(transaction, Row::Holder(holder), key, HolderRow::read).await?;
    Ok(holder.and_then(|holder| holder.life))
}

/// Whether a stored entity was deleted from the database.
pub(crate) async fn is_deleted(transaction: &Transaction, holder: DatabaseId) -> Result<bool, StoreError> {
    let key = layout::holder_key(holder);
    let holder = read(transaction, Row::Holder(holder), key, HolderRow::read).await?;
    Ok(holder.is_some_and(|holder| holder.deleted))
}

/// Reads an item, whether or not it still exists.
///
/// # Errors
/// When the store cannot be read, or the row is damaged.
#[boxed]
pub async fn read_item(store: &Store, serial: Serial) -> Result<Option<Item>, StoreError> {
    let item = |transaction: Transaction| async move {
        read(&transaction, Row::Item(serial), layout::item_key(serial), Item::read).await
    };
    store.read(item).await
}

/// Reads the entry of an operator's action, if there is one.
///
/// # Errors
/// When the store cannot be read, or the row is damaged.
#[boxed]
pub async fn read_action(store: &Store, action: ActionId) -> Result<Option<Entry>, StoreError> {
    let entry = |transaction: Transaction| async move {
        let value = transaction.get(&layout::action_key(action)).await?;
        let number = value.as_deref().map(layout::decode_entry_number).transpose()?;
        match number {
            Some(number) => pages::read_entry(&transaction, number).await,
            None => Ok(None),
        }
    };
    store.read(entry).await
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
            place: AssetSlot::read(reader)?,
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
        out.push(match self.life {
            _ if self.deleted => 2,
            Some(_) => 1,
            None => 0,
        });
        if let Some(life) = self.life.filter(|_| !self.deleted) {
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
        let tag = reader.byte("life")?;
        let life = match tag {
            0 | 2 => None,
            1 => Some(Life {
                entity: EntityId(reader.number("entity")?),
                home: OwnerId(reader.narrow("owner")?),
                checkout: reader.number("check-out")?,
            }),
            _ => return Err(wrong),
        };
        Ok(HolderRow {
            life,
            deleted: tag == 2,
            version: HoldingsVersion(reader.ordinal("holdings version")?),
            held: reader.narrow("held")?,
            open: reader.narrow("open")?,
        })
    }
}
