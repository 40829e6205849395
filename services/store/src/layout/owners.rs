//! Owners: their holders, the openings of their epochs, and how far their logs are folded.

use std::collections::BTreeMap;

use annals_ids::{BatchNumber, Epoch, EventNumber, Hash, OwnerId, OwnerKind, ProcessId, Shard};

use super::fields::{Fields, decode_connection, encode_connection, key};
use crate::{KeyRange, ScanOrder, StoreError, Transaction, key_after};

/// Rows per read.
const PAGE: usize = 256;

/// An owner and its current epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerRecord {
    /// Kind of the owner.
    pub kind: OwnerKind,
    /// The shard, and so the stream, of its log.
    pub shard: Shard,
    /// The granted epoch.
    pub epoch: Epoch,
    /// The process it is granted to.
    pub process: ProcessId,
    /// The generation of its call numbers (rule C13): assigned when its log was last cut at a hole; 0 if it never was.
    pub call_generation: u64,
}

/// The first batch of an epoch (rule E3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningRecord {
    pub epoch: Epoch,
    /// Number of the batch: from there on, batches of lower epochs are void.
    pub number: BatchNumber,
    pub hash: Hash,
}

/// The connection over which the holder of an owner's newest opening receives acknowledgements (rule E8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderConnection {
    /// The epoch of the opening.
    pub epoch: Epoch,
    /// The name that a nats-server's reports give the connection; `None` once the holder has released the owner.
    pub connection: Option<String>,
}

/// How far an owner's log is folded (rule F3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The newest batch folded; 0 for none.
    pub batch: BatchNumber,
    pub hash: Hash,
    /// The newest event folded.
    pub event: EventNumber,
    /// The epoch of that batch.
    pub epoch: Epoch,
}

/// Key of an owner.
#[must_use]
pub fn owner_key(owner: OwnerId) -> Vec<u8> {
    key(0x04, &[&owner.0.to_be_bytes()])
}

/// All owners.
#[must_use]
pub fn owners() -> KeyRange {
    KeyRange::prefix(&[0x04])
}

/// The owner in a key.
///
/// # Errors
/// If it is not an owner's key.
pub fn owner_of(key: &[u8]) -> Result<OwnerId, StoreError> {
    let mut fields = Fields::of("an owner's key", key.get(1..).unwrap_or_default());
    let owner = OwnerId(fields.u32()?);
    fields.finish()?;
    Ok(owner)
}

/// Key of an opening.
#[must_use]
pub fn opening_key(owner: OwnerId, epoch: Epoch) -> Vec<u8> {
    key(0x05, &[&owner.0.to_be_bytes(), &epoch.0.to_be_bytes()])
}

/// All openings of an owner, by epoch.
#[must_use]
pub fn openings(owner: OwnerId) -> KeyRange {
    KeyRange::prefix(&key(0x05, &[&owner.0.to_be_bytes()]))
}

/// All owners of all shards.
///
/// # Errors
/// As [`Transaction::get_range`]; [`StoreError::Corrupt`] if a record is corrupt.
pub async fn read_owners(transaction: &Transaction) -> Result<BTreeMap<OwnerId, OwnerRecord>, StoreError> {
    let mut found = BTreeMap::new();
    let mut range = owners();
    loop {
        let page = transaction.get_range(&range, PAGE, ScanOrder::Forward).await?;
        for (key, value) in &page.rows {
            found.insert(owner_of(key)?, OwnerRecord::decode(value)?);
        }
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => return Ok(found),
        }
    }
}

/// The openings of an owner with epoch `from` or later, by epoch.
///
/// # Errors
/// As [`Transaction::get_range`]; [`StoreError::Corrupt`] if one is corrupt.
pub async fn read_openings(
    transaction: &Transaction,
    owner: OwnerId,
    from: Epoch,
) -> Result<Vec<OpeningRecord>, StoreError> {
    let mut range = KeyRange::new(opening_key(owner, from), openings(owner).end);
    let mut found = Vec::new();
    loop {
        let page = transaction.get_range(&range, PAGE, ScanOrder::Forward).await?;
        for (_, value) in &page.rows {
            found.push(OpeningRecord::decode(value)?);
        }
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => return Ok(found),
        }
    }
}

/// Key of an owner's cursor.
#[must_use]
pub fn cursor_key(owner: OwnerId) -> Vec<u8> {
    key(0x06, &[&owner.0.to_be_bytes()])
}

impl OwnerRecord {
    /// The record after a grant of the next epoch to `process`.
    #[must_use]
    pub fn passed_to(self, process: ProcessId) -> Self {
        Self {
            epoch: self.epoch.next(),
            process,
            ..self
        }
    }

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut value = vec![self.kind.number()];
        value.extend(self.shard.0.to_be_bytes());
        value.extend(self.epoch.0.to_be_bytes());
        value.extend(self.process.0.to_be_bytes());
        if self.call_generation > 0 {
            value.extend(self.call_generation.to_be_bytes());
        }
        value
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("an owner", value);
        let kind = OwnerKind::of_number(fields.u8()?).ok_or_else(|| fields.corrupt())?;
        let (shard, epoch) = (Shard(fields.u16()?), Epoch(fields.u64()?));
        let process = ProcessId(fields.u64()?);
        let call_generation = fields.optional_u64()?;
        let record = Self {
            kind,
            shard,
            epoch,
            process,
            call_generation,
        };
        fields.finish()?;
        Ok(record)
    }
}

impl OpeningRecord {
    /// The record that closes a log before an accepted hole: of an epoch without a holder or an opening batch.
    #[must_use]
    pub fn closing(epoch: Epoch, first: BatchNumber) -> Self {
        Self {
            epoch,
            number: first,
            hash: Hash::ZERO,
        }
    }

    /// Whether it closes an accepted hole: no batch has the hash zero.
    #[must_use]
    pub fn closes_a_hole(&self) -> bool {
        self.hash == Hash::ZERO
    }

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [
            &self.epoch.0.to_be_bytes()[..],
            &self.number.0.to_be_bytes(),
            &self.hash.0,
        ]
        .concat()
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("an opening", value);
        let (epoch, number) = (Epoch(fields.u64()?), BatchNumber(fields.u64()?));
        let record = Self {
            epoch,
            number,
            hash: fields.hash()?,
        };
        fields.finish()?;
        Ok(record)
    }
}

/// Key of the connection of an owner's holder.
#[must_use]
pub fn connection_key(owner: OwnerId) -> Vec<u8> {
    key(0x32, &[&owner.0.to_be_bytes()])
}

impl HolderConnection {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode_connection(self.epoch.0, self.connection.as_deref())
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let (epoch, connection) = decode_connection("the connection of an owner's holder", value)?;
        Ok(Self {
            epoch: Epoch(epoch),
            connection,
        })
    }
}

impl Cursor {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let numbers = [self.batch.0, self.event.0, self.epoch.0];
        let mut value: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        value.extend(self.hash.0);
        value
    }

    /// Decodes the stored form; no value is the cursor of a log of which nothing is folded.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: Option<&[u8]>) -> Result<Self, StoreError> {
        let Some(value) = value else { return Ok(Self::default()) };
        let mut fields = Fields::of("a cursor", value);
        let (batch, event) = (BatchNumber(fields.u64()?), EventNumber(fields.u64()?));
        let cursor = Self {
            batch,
            event,
            epoch: Epoch(fields.u64()?),
            hash: fields.hash()?,
        };
        fields.finish()?;
        Ok(cursor)
    }
}
