//! Shards: how many a realm has, what their folds leave for each other (rules T3 and T4), and the order in which they
//! changed the ledger (rule T5).
//!
//! An activation whose base part has ended is *parting* until every shard has folded what it had logged by then.
//! A cell part that has ended is kept beside the entity's row until that moment.

use annals_ids::{CallNumber, DatabaseId, EntityId, Hash, LeafIndex, NoticeNumber, OwnerId, Shard, WallTime};

use super::database::Checkout;
use super::fields::{Fields, chunks, key, number, read_chunks};
use crate::{KeyRange, StoreError, Transaction};

/// Maximum shards of a realm. The end of an activation writes a row for each of them.
pub const SHARDS: u16 = 64;

/// The end of an activation, as a shard has to pass it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parting {
    /// The stored entity; 0 if it was never stored.
    pub database: DatabaseId,
    /// The check-out to return.
    pub life: Checkout,
    /// If it had several cell parts: the number of the call with which the last one reported its end; 0 otherwise.
    pub last_cell: CallNumber,
}

/// The newest cell part of an entity that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedCell {
    /// Wall time of the batch in which it ended.
    pub wall: WallTime,
    /// Fingerprint of the definitions that it conforms to.
    pub schema: Hash,
    /// Its encoded image.
    pub image: Vec<u8>,
}

/// The leaf at which a fold changed the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerChange {
    pub shard: Shard,
    /// The leaf of the batch.
    pub leaf: LeafIndex,
}

/// The part of the first shard's archive from before the realm had others: it changed the ledger in the order of its
/// leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AloneUntil {
    /// Number of its leaves.
    pub leaves: u64,
    /// The last notice that it created.
    pub notice: NoticeNumber,
}

/// Key of the number of shards.
#[must_use]
pub fn count_key() -> Vec<u8> {
    key(0x39, &[])
}

/// The stored form of the number of shards.
#[must_use]
pub fn encode_count(shards: u16) -> [u8; 2] {
    shards.to_be_bytes()
}

/// The stored form of the number of shards of a realm that has had one for a time.
#[must_use]
pub fn encode_grown(shards: u16, alone: AloneUntil) -> Vec<u8> {
    let numbers = [alone.leaves, alone.notice.0];
    let numbers = numbers.iter().flat_map(|number| number.to_be_bytes());
    encode_count(shards).into_iter().chain(numbers).collect()
}

/// Decodes the number of shards: one, if there is no value.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_count(value: Option<&[u8]>) -> Result<u16, StoreError> {
    decode_grown(value).map(|(shards, _)| shards)
}

/// Decodes the number of shards, and how far the first shard was alone, if it was for a time.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_grown(value: Option<&[u8]>) -> Result<(u16, Option<AloneUntil>), StoreError> {
    let Some(value) = value else { return Ok((1, None)) };
    let mut fields = Fields::of("the number of shards", value);
    let shards = fields.u16()?;
    if !(1..=SHARDS).contains(&shards) {
        return Err(fields.corrupt());
    }
    let alone = match value.len() {
        2 => None,
        _ => Some(AloneUntil {
            leaves: fields.u64()?,
            notice: NoticeNumber(fields.u64()?),
        }),
    };
    fields.finish()?;
    Ok((shards, alone))
}

/// Reads the number of shards.
///
/// # Errors
/// As [`Transaction::get`]; [`StoreError::Corrupt`].
pub async fn read_count(transaction: &Transaction) -> Result<u16, StoreError> {
    decode_count(transaction.get(&count_key()).await?.as_deref())
}

/// All shards of a realm that has so many.
pub fn all(count: u16) -> impl DoubleEndedIterator<Item = Shard> + Clone {
    (0..count).map(Shard)
}

/// Key of the end of an activation that a shard has to pass.
#[must_use]
pub fn parting_key(shard: Shard, entity: EntityId) -> Vec<u8> {
    errand_key(shard, 0, entity)
}

/// All ends of activations that a shard has to pass.
#[must_use]
pub fn partings(shard: Shard) -> KeyRange {
    KeyRange::prefix(&key(0x3a, &[&shard.0.to_be_bytes(), &[0]]))
}

/// Key of a request to a shard for the cell part of a stored entity. The value is the entity's database id.
#[must_use]
pub fn wanted_key(shard: Shard, entity: EntityId) -> Vec<u8> {
    errand_key(shard, 1, entity)
}

/// All requests to a shard for cell parts.
#[must_use]
pub fn wanted(shard: Shard) -> KeyRange {
    KeyRange::prefix(&key(0x3a, &[&shard.0.to_be_bytes(), &[1]]))
}

fn errand_key(shard: Shard, what: u8, entity: EntityId) -> Vec<u8> {
    key(0x3a, &[&shard.0.to_be_bytes(), &[what], &entity.0.to_be_bytes()])
}

/// The entity in a key of [`partings`] or [`wanted`].
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn entity_of(key: &[u8]) -> Result<EntityId, StoreError> {
    let mut fields = Fields::of("the key of a request between shards", key.get(4..).unwrap_or_default());
    let entity = EntityId(fields.u64()?);
    fields.finish()?;
    Ok(entity)
}

/// Key prefix of the chunks of the cell part of an entity that has ended.
#[must_use]
pub fn ended_key(entity: EntityId) -> Vec<u8> {
    key(0x3b, &[&entity.0.to_be_bytes()])
}

/// Reads the cell part of an entity that has ended, if one is kept.
///
/// # Errors
/// As [`Transaction::get_range`]; [`StoreError::Corrupt`].
pub async fn read_ended(transaction: &Transaction, entity: EntityId) -> Result<Option<EndedCell>, StoreError> {
    let value = read_chunks(transaction, &ended_key(entity)).await?;
    value.map(|value| EndedCell::decode(&value)).transpose()
}

/// Writes the cell part of an entity that has ended. Returns the bytes written.
///
/// # Errors
/// As [`Transaction::set`].
pub fn write_ended(transaction: &Transaction, entity: EntityId, cell: &EndedCell) -> Result<usize, StoreError> {
    let key = ended_key(entity);
    transaction.clear_range(&KeyRange::prefix(&key))?;
    let value = cell.encode();
    for (key, chunk) in chunks(&key, &value) {
        transaction.set(&key, chunk)?;
    }
    Ok(value.len())
}

/// Key of a change of the ledger, by the last notice of its batch. The order of these keys is that of the changes.
#[must_use]
pub fn change_key(last: NoticeNumber) -> Vec<u8> {
    key(0x3c, &[&last.0.to_be_bytes()])
}

/// All changes of the ledger.
#[must_use]
pub fn changes() -> KeyRange {
    KeyRange::prefix(&key(0x3c, &[]))
}

/// All changes of the ledger after the one with this last notice.
#[must_use]
pub fn changes_after(last: NoticeNumber) -> KeyRange {
    KeyRange::new(change_key(last.next()), key(0x3d, &[]))
}

/// The last notice in the key of a change.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn change_of(key: &[u8]) -> Result<NoticeNumber, StoreError> {
    number("the key of a change of the ledger", key.get(1..).unwrap_or_default()).map(NoticeNumber)
}

impl LedgerChange {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.shard.0.to_be_bytes()[..], &self.leaf.0.to_be_bytes()].concat()
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a change of the ledger", value);
        let (shard, leaf) = (Shard(fields.u16()?), LeafIndex(fields.u64()?));
        fields.finish()?;
        Ok(Self { shard, leaf })
    }
}

impl Parting {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = [&self.database.0.to_be_bytes()[..], &self.life.encode()].concat();
        if self.last_cell != CallNumber(0) {
            bytes.extend(self.last_cell.0.to_be_bytes());
        }
        bytes
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("the end of an activation", value);
        let database = DatabaseId(fields.u64()?);
        let owner = OwnerId(fields.u32()?);
        let number = fields.u64()?;
        let mut parting = Self {
            database,
            life: Checkout { owner, number },
            last_cell: CallNumber(0),
        };
        if !fields.is_finished() {
            parting.last_cell = CallNumber(fields.u64()?);
            if parting.last_cell == CallNumber(0) {
                return Err(fields.corrupt());
            }
        }
        fields.finish()?;
        Ok(parting)
    }
}

impl EndedCell {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.wall.0.to_be_bytes()[..], &self.schema.0, &self.image].concat()
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a cell part that has ended", value);
        let (wall, schema) = (WallTime(fields.u64()?), fields.hash()?);
        let image = fields.rest().to_vec();
        Ok(Self { wall, schema, image })
    }
}
