//! The ledger: balances, items, open transfers, entries, the outbox. Db's ledger (`annals-db`) defines the meaning of
//! the rows, and the stored form of all values but numbers.

use annals_ids::{
    ActionId, AssetKind, DatabaseId, EntityId, EntryNumber, NoticeNumber, Serial, Slot, TransferId, TransferNumber,
    WallTime,
};

use super::fields::{Fields, key, number};
use crate::{KeyRange, StoreError};

/// Stored form of "nothing will expire".
const NEVER: WallTime = WallTime(u64::MAX);

/// The highest numbers assigned, and when to check for expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The newest entry.
    pub entry: EntryNumber,
    /// The newest notice.
    pub notice: NoticeNumber,
    /// The newest item.
    pub serial: Serial,
    /// Nothing expires before this; `None` if nothing can expire. It may be long before the earliest deadline; it saves
    /// searching for deadlines.
    pub due: Option<WallTime>,
}

/// Key of the [`Head`].
#[must_use]
pub fn head_key() -> Vec<u8> {
    key(0x1f, &[&[0]])
}

/// Key of an account of a stored entity: the units of a kind in a slot.
#[must_use]
pub fn account_key(holder: DatabaseId, slot: Slot, kind: AssetKind) -> Vec<u8> {
    key(
        0x18,
        &[&holder.0.to_be_bytes(), &slot.0.to_be_bytes(), &kind.0.to_be_bytes()],
    )
}

/// The non-empty accounts of a stored entity.
#[must_use]
pub fn accounts_of(holder: DatabaseId) -> KeyRange {
    KeyRange::prefix(&key(0x18, &[&holder.0.to_be_bytes()]))
}

/// All non-empty accounts.
#[must_use]
pub fn accounts() -> KeyRange {
    KeyRange::prefix(&[0x18])
}

/// The account in a key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn account_of(key: &[u8]) -> Result<(DatabaseId, Slot, AssetKind), StoreError> {
    let mut fields = Fields::of("an account's key", key.get(1..).unwrap_or_default());
    let account = (DatabaseId(fields.u64()?), Slot(fields.u16()?), AssetKind(fields.u32()?));
    fields.finish()?;
    Ok(account)
}

/// Key of an item.
#[must_use]
pub fn item_key(serial: Serial) -> Vec<u8> {
    key(0x19, &[&serial.0.to_be_bytes()])
}

/// All items.
#[must_use]
pub fn items() -> KeyRange {
    KeyRange::prefix(&[0x19])
}

/// The item in a key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn item_of(key: &[u8]) -> Result<Serial, StoreError> {
    number("an item's key", key.get(1..).unwrap_or_default()).map(Serial)
}

/// Key of the kind of an item that a stored entity holds.
#[must_use]
pub fn held_key(holder: DatabaseId, slot: Slot, serial: Serial) -> Vec<u8> {
    key(
        0x1a,
        &[&holder.0.to_be_bytes(), &slot.0.to_be_bytes(), &serial.0.to_be_bytes()],
    )
}

/// Keys of the items that a stored entity holds.
#[must_use]
pub fn held_by(holder: DatabaseId) -> KeyRange {
    KeyRange::prefix(&key(0x1a, &[&holder.0.to_be_bytes()]))
}

/// Keys of the items that all stored entities hold.
#[must_use]
pub fn held() -> KeyRange {
    KeyRange::prefix(&[0x1a])
}

/// The holder, slot and item in a key of [`held_key`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn held_of(key: &[u8]) -> Result<(DatabaseId, Slot, Serial), StoreError> {
    let mut fields = Fields::of("the key of an item that is held", key.get(1..).unwrap_or_default());
    let held = (DatabaseId(fields.u64()?), Slot(fields.u16()?), Serial(fields.u64()?));
    fields.finish()?;
    Ok(held)
}

/// Key of the supply of a kind.
#[must_use]
pub fn supply_key(kind: AssetKind) -> Vec<u8> {
    key(0x1b, &[&kind.0.to_be_bytes()])
}

/// The supplies of all kinds.
#[must_use]
pub fn supplies() -> KeyRange {
    KeyRange::prefix(&[0x1b])
}

/// The kind in a supply's key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn supply_of(key: &[u8]) -> Result<AssetKind, StoreError> {
    let mut fields = Fields::of("the key of a kind's supply", key.get(1..).unwrap_or_default());
    let kind = AssetKind(fields.u32()?);
    fields.finish()?;
    Ok(kind)
}

/// Key of an open trade or reserved transfer.
#[must_use]
pub fn open_key(id: TransferId) -> Vec<u8> {
    key(0x1c, &[&transfer(id)])
}

/// All open trades and reserved transfers.
#[must_use]
pub fn open() -> KeyRange {
    KeyRange::prefix(&[0x1c])
}

/// The transfer in a key of [`open_key`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn open_of(key: &[u8]) -> Result<TransferId, StoreError> {
    ending("the key of what is open", key, 1)
}

/// Key of the expiry of an open trade or reserved transfer.
#[must_use]
pub fn deadline_key(at: WallTime, id: TransferId) -> Vec<u8> {
    key(0x1d, &[&at.0.to_be_bytes(), &transfer(id)])
}

/// All deadlines, earliest first.
#[must_use]
pub fn deadlines() -> KeyRange {
    KeyRange::prefix(&[0x1d])
}

/// The deadlines at `from` or later, before `until`.
#[must_use]
pub fn deadlines_between(from: WallTime, until: WallTime) -> KeyRange {
    let first = |at| deadline_key(at, TransferId::default());
    KeyRange::new(first(from), first(until))
}

/// The deadline in a key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn deadline_of(key: &[u8]) -> Result<(WallTime, TransferId), StoreError> {
    let mut fields = Fields::of("a deadline's key", key.get(1..).unwrap_or_default());
    Ok((WallTime(fields.u64()?), ending("a deadline's key", key, 9)?))
}

/// Key prefix of the chunks of a page of entries, by its last entry. A page contains the entries that one batch has
/// made.
#[must_use]
pub fn entries_key(last: EntryNumber) -> Vec<u8> {
    key(0x1e, &[&last.0.to_be_bytes()])
}

/// The chunks of the pages that contain the entries after `after`.
#[must_use]
pub fn entries_after(after: EntryNumber) -> KeyRange {
    KeyRange::new(entries_key(after.next()), KeyRange::prefix(&[0x1e]).end)
}

/// The last entry of a chunk's page.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn entries_of(key: &[u8]) -> Result<EntryNumber, StoreError> {
    page_of("the key of a page of entries", key, 1).map(EntryNumber)
}

/// Key prefix of the chunks of a page of notices, by its last notice. A page contains the notices that one batch has
/// made.
#[must_use]
pub fn notices_key(last: NoticeNumber) -> Vec<u8> {
    key(0x1f, &[&[1], &last.0.to_be_bytes()])
}

/// The chunks of the pages that contain the notices after `after`.
#[must_use]
pub fn notices_after(after: NoticeNumber) -> KeyRange {
    KeyRange::new(notices_key(after.next()), KeyRange::prefix(&[0x1f, 1]).end)
}

/// The chunks of the pages whose last notice is after `after`, and not after `upto`.
#[must_use]
pub fn notices_between(after: NoticeNumber, upto: NoticeNumber) -> KeyRange {
    KeyRange::new(notices_key(after.next()), notices_key(upto.next()))
}

/// The last notice of a chunk's page.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn notices_of(key: &[u8]) -> Result<NoticeNumber, StoreError> {
    page_of("the key of a page of notices", key, 2).map(NoticeNumber)
}

/// Key of the entry of an order.
#[must_use]
pub fn done_key(id: TransferId) -> Vec<u8> {
    key(0x1f, &[&[2], &transfer(id)])
}

/// Key of the entry of an operator's action.
#[must_use]
pub fn action_key(action: ActionId) -> Vec<u8> {
    key(0x1f, &[&[5], &action.0.to_be_bytes()])
}

/// Key of the record of a stored entity as a holder.
#[must_use]
pub fn holder_key(holder: DatabaseId) -> Vec<u8> {
    key(0x1f, &[&[3], &holder.0.to_be_bytes()])
}

/// All holders.
#[must_use]
pub fn holders() -> KeyRange {
    KeyRange::prefix(&[0x1f, 3])
}

/// The holder in a key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn holder_of(key: &[u8]) -> Result<DatabaseId, StoreError> {
    number("a holder's key", key.get(2..).unwrap_or_default()).map(DatabaseId)
}

/// Key that marks a holder as a party to an open trade or reserved transfer.
#[must_use]
pub fn party_key(holder: DatabaseId, id: TransferId) -> Vec<u8> {
    key(0x1f, &[&[4], &holder.0.to_be_bytes(), &transfer(id)])
}

/// The open trades and reserved transfers that a holder is a party to.
#[must_use]
pub fn party_to(holder: DatabaseId) -> KeyRange {
    KeyRange::prefix(&key(0x1f, &[&[4], &holder.0.to_be_bytes()]))
}

/// The open trades and reserved transfers of all holders.
#[must_use]
pub fn parties() -> KeyRange {
    KeyRange::prefix(&[0x1f, 4])
}

/// The holder and the transfer in a key of [`party_key`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn party_of(key: &[u8]) -> Result<(DatabaseId, TransferId), StoreError> {
    let mut fields = Fields::of("a party's key", key.get(2..).unwrap_or_default());
    Ok((DatabaseId(fields.u64()?), ending("a party's key", key, 10)?))
}

/// All rows of the ledger.
#[must_use]
pub fn everything() -> KeyRange {
    KeyRange::new(vec![0x18], vec![0x20])
}

/// The stored form of an entry's number.
#[must_use]
pub fn encode_entry_number(entry: EntryNumber) -> [u8; 8] {
    entry.0.to_be_bytes()
}

/// Decodes an entry's number.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_entry_number(value: &[u8]) -> Result<EntryNumber, StoreError> {
    number("the entry of an order", value).map(EntryNumber)
}

/// The stored form of a balance.
#[must_use]
pub fn encode_balance(units: u64) -> [u8; 8] {
    units.to_be_bytes()
}

/// Decodes a balance.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_balance(value: &[u8]) -> Result<u64, StoreError> {
    number("a balance", value)
}

/// The stored form of a kind.
#[must_use]
pub fn encode_kind(kind: AssetKind) -> [u8; 4] {
    kind.0.to_be_bytes()
}

/// Decodes a kind.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_kind(value: &[u8]) -> Result<AssetKind, StoreError> {
    let mut fields = Fields::of("a kind of assets", value);
    let kind = AssetKind(fields.u32()?);
    fields.finish()?;
    Ok(kind)
}

impl Head {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let due = self.due.unwrap_or(NEVER);
        let numbers = [self.entry.0, self.notice.0, self.serial.0, due.0];
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    /// Decodes the stored form; no value is the head of an unused ledger.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: Option<&[u8]>) -> Result<Self, StoreError> {
        let Some(value) = value else { return Ok(Self::default()) };
        let mut fields = Fields::of("the ledger's head", value);
        let head = Self {
            entry: EntryNumber(fields.u64()?),
            notice: NoticeNumber(fields.u64()?),
            serial: Serial(fields.u64()?),
            due: Some(WallTime(fields.u64()?)).filter(|due| *due != NEVER),
        };
        fields.finish()?;
        Ok(head)
    }
}

fn transfer(id: TransferId) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.asker.0.to_be_bytes());
    bytes[8..].copy_from_slice(&id.number.0.to_be_bytes());
    bytes
}

/// The last number of a chunk's page, at offset `at` of its key.
fn page_of(what: &'static str, key: &[u8], at: usize) -> Result<u64, StoreError> {
    let mut fields = Fields::of(what, key.get(at..).unwrap_or_default());
    let last = fields.u64()?;
    fields.u16()?;
    fields.finish()?;
    Ok(last)
}

/// The transfer at the end of a key, from offset `at` on.
fn ending(what: &'static str, key: &[u8], at: usize) -> Result<TransferId, StoreError> {
    let mut fields = Fields::of(what, key.get(at..).unwrap_or_default());
    let id = TransferId {
        asker: EntityId(fields.u64()?),
        number: TransferNumber(fields.u64()?),
    };
    fields.finish()?;
    Ok(id)
}
