//! The rows of the ledger, as read by an audit.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{AssetKind, DatabaseId, Serial, Slot, TransferId};
use annals_store::{KeyRange, Row as Pair, ScanOrder, StoreError, Transaction, key_after, layout::ledger as layout};

use crate::ledger::{
    books::{HolderRow, Item, Open, Row, Supply},
    rows::decode,
};

/// Rows read at a time.
const PAGE: usize = 1024;

/// The rows of a ledger at one moment.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) accounts: BTreeMap<(DatabaseId, Slot, AssetKind), u64>,
    pub(super) items: BTreeMap<Serial, Item>,
    pub(super) held: BTreeMap<(DatabaseId, Slot, Serial), AssetKind>,
    pub(super) supplies: BTreeMap<AssetKind, Supply>,
    pub(super) open: BTreeMap<TransferId, Open>,
    pub(super) deadlines: BTreeSet<(u64, TransferId)>,
    pub(super) parties: BTreeSet<(DatabaseId, TransferId)>,
    pub(super) holders: BTreeMap<DatabaseId, HolderRow>,
}

impl Rows {
    /// Reads all of them.
    pub(super) async fn read(transaction: &Transaction) -> Result<Self, StoreError> {
        let mut rows = Self::default();
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
}

async fn read_all(transaction: &Transaction, mut range: KeyRange) -> Result<Vec<Pair>, StoreError> {
    let mut rows = Vec::new();
    loop {
        let page = transaction
            .snapshot()
            .get_range(&range, PAGE, ScanOrder::Forward)
            .await?;
        let last = page.rows.last().map(|(key, _)| key_after(key));
        rows.extend(page.rows);
        match last.filter(|_| page.more) {
            Some(after) => range = KeyRange::new(after, range.end),
            None => return Ok(rows),
        }
    }
}
