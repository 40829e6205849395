//! The rows that cannot be derived from a log: reads them from a store, decodes them, and adapts them to a realm that
//! is cut at a leaf.

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals_def::Schema;
use annals_ids::{EntityId, Epoch, Hash, LeafIndex, OwnerId, ProcessId, Shard};
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction, key_after,
    layout::{
        bans, chunks,
        database::{self, Account},
        director::{self, Counter},
        lineage::Lineage,
        migrations::{self, MigrationRecord},
        owners::{self, OpeningRecord, OwnerRecord},
        personal,
        retention::{self, Horizon},
        shards::{self, EndedCell},
    },
};

use super::Extent;
use crate::{
    Migrations, StoredEntity,
    retention::{Kind, read_retained},
    stored,
};

/// Rows read at a time.
const PAGE: usize = 256;

/// Bytes of rows written in one transaction.
const WRITE_BYTES: usize = 1 << 20;

/// Increment of 64-bit counters: more than a realm gives out while any process could still hold one of its numbers, and
/// small enough for 2^20 restores: granted entity ids stay below 2^52 (rule C16).
pub(crate) const RAISE: u64 = 1 << 32;

/// Increment of the counter of owners, which has 32 bits.
pub(crate) const RAISE_OWNERS: u64 = 1 << 12;

/// Increment of the counter of call generations, of which few are ever used.
pub(crate) const RAISE_GENERATIONS: u64 = 16;

/// Increment of epochs.
pub(crate) const RAISE_EPOCHS: u64 = 1 << 20;

/// Tables whose rows cannot be derived from a log. All other tables are written by folding, or hold nothing that
/// outlives a process, except the keys of persons (`2f`), which are kept apart (rule P8). Accounts (`0f`) and bans (`3e`)
/// are read before the records of forgotten persons (`30`): for a person that is forgotten in between, all are read, and
/// account and bans [are removed](without_forgotten). In the opposite order, the record would be missing.
const UNLOGGED: [u8; 14] = [
    0x01, 0x02, 0x03, 0x04, OPENINGS, 0x0f, 0x11, 0x14, 0x22, 0x26, 0x3e, 0x30, 0x39, CHANGES,
];

/// The table of openings.
const OPENINGS: u8 = 0x05;

/// The table of the ledger's changes: folding writes it in the order that it records (rule T5).
const CHANGES: u8 = 0x3c;

/// A row of the store.
pub type Row = (Vec<u8>, Vec<u8>);

/// Reads all rows of a store that its archive does not yield. If they are read after the archive's leaves up to some
/// leaf, they include all that those leaves depend on.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read_unlogged(store: &Store) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for prefix in UNLOGGED {
        read_rows(store, KeyRange::prefix(&[prefix]), &mut rows).await?;
    }
    let mut rows = without_forgotten(rows)?;
    // An account's entity begins outside the log: with its type and nothing else, until it is first stored.
    let migrations = Migrations::read(store).await?;
    let accounts = KeyRange::prefix(&database::account_key(&[]));
    let held: Vec<Row> = rows.iter().filter(|(key, _)| accounts.contains(key)).cloned().collect();
    for (_, value) in held {
        let id = Account::decode(&value)?.database;
        let row = store.read(|transaction| async move { stored::read_row(&transaction, id).await });
        if let Some(row) = row.await? {
            // Uses the type's first name: migrations convert it to the present one.
            let (generation, entity_type) = migrations.first_name(row.generation, &row.entity.entity_type);
            let begun = StoredEntity {
                entity_type,
                ..StoredEntity::default()
            };
            let key = database::entity_key(id);
            let begun = begun.encode(generation);
            rows.extend(chunks(&key, &begun).map(|(key, piece)| (key, piece.to_vec())));
        }
    }
    // The archive yielded these rows once, but their events were deleted.
    for shard in shards_of(&rows)? {
        rows.extend(read_retained(store, shard).await?);
    }
    Ok(rows)
}

/// Horizon of the archive to which these rows belong.
///
/// # Errors
/// When a row cannot be read.
pub fn horizon_of(rows: &[Row], shard: Shard) -> Result<Option<Horizon>, StoreError> {
    let wanted = retention::horizon_key(shard);
    let row = rows.iter().find(|(key, _)| *key == wanted);
    row.map(|(_, value)| Horizon::decode(value)).transpose()
}

/// The shards of the realm to which these rows belong.
///
/// # Errors
/// When their number cannot be read.
pub fn shards_of(rows: &[Row]) -> Result<impl DoubleEndedIterator<Item = Shard> + Clone + use<>, StoreError> {
    let key = shards::count_key();
    let value = rows.iter().find(|(held, _)| *held == key);
    let count = shards::decode_count(value.map(|(_, value)| value.as_slice()))?;
    Ok(shards::all(count))
}

/// The openings of all owners among these rows.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn openings_of(rows: &[Row]) -> Result<Vec<OpeningRecord>, StoreError> {
    let openings = rows.iter().filter(|(key, _)| key.first() == Some(&OPENINGS));
    openings.map(|(_, value)| OpeningRecord::decode(value)).collect()
}

/// The cell parts among these rows that ended before the horizon of a shard, by the leaf at which they did.
pub(super) fn ended_of(
    rows: &[Row],
    shard: Shard,
) -> Result<BTreeMap<LeafIndex, Vec<(EntityId, EndedCell)>>, StoreError> {
    let all = retention::ended(shard);
    let mut encoded: BTreeMap<(LeafIndex, EntityId), Vec<u8>> = BTreeMap::new();
    for (key, value) in rows.iter().filter(|(key, _)| all.contains(key)) {
        let (entity, leaf) = retention::ended_of(key)?;
        encoded.entry((leaf, entity)).or_default().extend_from_slice(value);
    }
    let mut found: BTreeMap<LeafIndex, Vec<(EntityId, EndedCell)>> = BTreeMap::new();
    for ((leaf, entity), value) in encoded {
        let ended = EndedCell::decode(&value)?;
        found.entry(leaf).or_default().push((entity, ended));
    }
    Ok(found)
}

/// Schemas among these rows, by fingerprint.
///
/// # Errors
/// When one cannot be decoded.
pub(crate) fn schemas(rows: &[Row]) -> Result<BTreeMap<Hash, Arc<Schema>>, StoreError> {
    let all = KeyRange::prefix(&[0x03]);
    let mut encoded: BTreeMap<Hash, Vec<u8>> = BTreeMap::new();
    for (key, value) in rows.iter().filter(|(key, _)| all.contains(key)) {
        let fingerprint = key.get(1..33).and_then(|hash| hash.try_into().ok()).map(Hash);
        let fingerprint = fingerprint.ok_or_else(|| StoreError::Corrupt("the key of a schema".into()))?;
        encoded.entry(fingerprint).or_default().extend_from_slice(value);
    }
    let decode = |(fingerprint, bytes): (Hash, Vec<u8>)| match Schema::decode(&bytes) {
        Ok(schema) => Ok((fingerprint, Arc::new(schema))),
        Err(error) => Err(StoreError::Corrupt(format!("schema {fingerprint}: {error}").into())),
    };
    encoded.into_iter().map(decode).collect()
}

/// Records of migrations among these rows, oldest first.
pub(crate) fn records(rows: &[Row]) -> Result<Vec<MigrationRecord>, StoreError> {
    let all = migrations::migrations();
    let mut encoded: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (key, value) in rows.iter().filter(|(key, _)| all.contains(key)) {
        let number = migrations::number_of(key)?;
        encoded.entry(number).or_default().extend_from_slice(value);
    }
    encoded.values().map(|value| MigrationRecord::decode(value)).collect()
}

/// Owners among these rows whose events may be deleted.
pub(crate) fn passing(rows: &[Row]) -> Result<BTreeSet<OwnerId>, StoreError> {
    let passing = owners_of(rows)?.into_iter();
    let passing = passing.filter(|(_, record)| Kind::of(record.kind) == Kind::Passing);
    Ok(passing.map(|(owner, _)| owner).collect())
}

/// Owners among these rows.
pub(crate) fn owners_of(rows: &[Row]) -> Result<BTreeMap<OwnerId, OwnerRecord>, StoreError> {
    let all = owners::owners();
    let rows = rows.iter().filter(|(key, _)| all.contains(key));
    rows.map(|(key, value)| Ok((owners::owner_of(key)?, OwnerRecord::decode(value)?)))
        .collect()
}

/// The rows without the accounts and bans of forgotten persons, of whom only the record that they were forgotten may
/// remain (rule P7).
fn without_forgotten(rows: Vec<Row>) -> Result<Vec<Row>, StoreError> {
    let (accounts, forgotten) = (KeyRange::prefix(&database::account_key(&[])), personal::forgotten());
    let gone = rows.iter().filter(|(key, _)| forgotten.contains(key));
    let gone: BTreeSet<_> = gone
        .map(|(key, _)| personal::person_of(key))
        .collect::<Result<_, _>>()?;
    let bans = bans::bans();
    let mut left = Vec::with_capacity(rows.len());
    for (key, value) in rows {
        let person = match &key {
            key if accounts.contains(key) => Some(Account::decode(&value)?.database),
            key if bans.contains(key) => Some(bans::record_of(key)?.0),
            _ => None,
        };
        if person.is_none_or(|person| !gone.contains(&person)) {
            left.push((key, value));
        }
    }
    Ok(left)
}

/// The rows adapted to an archive of this extent, with every counter.
pub(super) fn adapted(rows: &[Row], extent: &Extent) -> Result<Vec<Row>, StoreError> {
    let ahead = ahead(rows, extent)?;
    let mut adapted = Vec::new();
    for (key, value) in &without_forgotten(rows.to_vec())? {
        adapted.extend(adapt(key, value, extent, ahead)?);
    }
    let missing = [
        Counter::Entities,
        Counter::Owners,
        Counter::Processes,
        Counter::Checkouts,
        Counter::CallGenerations,
    ]
    .into_iter()
    .map(director::counter_key)
    .filter(|key| !rows.iter().any(|(held, _)| held == key));
    for key in missing {
        adapted.extend(adapt(&key, &director::encode_counter(1), extent, ahead)?);
    }
    Ok(adapted)
}

/// The first migration that a realm had not gone through yet when its archive ended there, by its number, and the
/// definitions that the realm had.
fn ahead(rows: &[Row], extent: &Extent) -> Result<Option<(u32, Hash)>, StoreError> {
    let records = records(rows)?;
    let later = (0..).zip(records).find(|(_, record)| record.leaves.0 > extent.first());
    Ok(later.map(|(number, record)| (number, record.from)))
}

/// Adapts a row to an archive of this extent, given the first migration that is [`ahead`]; `None` if the row does not
/// belong to it.
fn adapt(key: &[u8], value: &[u8], extent: &Extent, ahead: Option<(u32, Hash)>) -> Result<Option<Row>, StoreError> {
    let value = match key.first() {
        Some(0x02) => {
            let realm = director::Realm::decode(value)?;
            let schema = ahead.map_or(realm.schema, |(_, schema)| schema);
            director::Realm { schema, ..realm }.encode()
        }
        Some(0x01) => {
            let raise = match key {
                key if key == director::counter_key(Counter::Owners) => RAISE_OWNERS,
                key if key == director::counter_key(Counter::CallGenerations) => RAISE_GENERATIONS,
                _ => RAISE,
            };
            let next = director::decode_counter(Some(value))?;
            director::encode_counter(next.saturating_add(raise)).to_vec()
        }
        Some(0x04) => {
            let record = OwnerRecord::decode(value)?;
            let raised = OwnerRecord {
                epoch: Epoch(record.epoch.0.saturating_add(RAISE_EPOCHS)),
                process: ProcessId(0),
                ..record
            };
            raised.encode()
        }
        Some(&OPENINGS) => {
            let owner = key
                .get(1..5)
                .and_then(|bytes| bytes.try_into().ok())
                .map(u32::from_be_bytes);
            let owner = owner.ok_or_else(|| StoreError::Corrupt("the key of an opening".into()))?;
            let last = extent.logs.get(&OwnerId(owner)).copied().unwrap_or_default();
            if OpeningRecord::decode(value)?.number > last {
                return Ok(None);
            }
            value.to_vec()
        }
        Some(0x26) => {
            let number = migrations::number_of(key)?;
            if ahead.is_some_and(|(ahead, _)| number >= ahead) {
                return Ok(None);
            }
            value.to_vec()
        }
        Some(0x22) if Lineage::decode(value)?.leaf.0 > extent.first() => return Ok(None),
        // Folding records every change of the ledger, also those from before there were several shards.
        Some(0x39) => shards::encode_count(shards::decode_count(Some(value))?).to_vec(),
        Some(&CHANGES) => return Ok(None),
        _ => value.to_vec(),
    };
    Ok(Some((key.to_vec(), value)))
}

pub(crate) async fn read_rows(store: &Store, mut range: KeyRange, rows: &mut Vec<Row>) -> Result<(), StoreError> {
    loop {
        let wanted = &range;
        let read =
            |transaction: Transaction| async move { transaction.get_range(wanted, PAGE, ScanOrder::Forward).await };
        let page = store.read(read).await?;
        rows.extend(page.rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => return Ok(()),
        }
    }
}

pub(crate) async fn write_rows(store: &Store, mut rows: &[Row]) -> Result<(), StoreError> {
    while !rows.is_empty() {
        let mut bytes = 0;
        let fits = |(key, value): &&Row| {
            let fits = bytes < WRITE_BYTES;
            bytes += key.len() + value.len();
            fits
        };
        let count = rows.iter().take_while(fits).count();
        let (now, later) = rows.split_at(count);
        let write = |transaction: Transaction| async move {
            now.iter().try_for_each(|(key, value)| transaction.set(key, value))
        };
        store.run_repeatable(write).await?;
        rows = later;
    }
    Ok(())
}
