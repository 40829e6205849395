//! What operators have decided about logs that the store did not know: a store that was restored to an older backup has taken
//! up what such logs prove, or has ended them.

use annals_ids::{LeafIndex, WallTime};

use super::fields::{Fields, key};
use crate::{KeyRange, Order, StoreError, Transaction};

/// One decision. It is made in one transaction, and finished once everything that it takes up is folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdoptionRecord {
    /// When, by the wall clock.
    pub at: WallTime,
    /// Leaves of the archive before it.
    pub leaves: LeafIndex,
    /// The operator's name.
    pub operator: String,
    /// The operator's reason.
    pub reason: String,
    /// Batches that were taken up.
    pub adopted: u64,
    /// Events of those.
    pub events: u64,
    /// Batches that were given up.
    pub discarded: u64,
    /// How far it is.
    pub stage: AdoptionStage,
}

/// How far a decision is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdoptionStage {
    /// Not everything that was taken up is folded: no db starts on the store.
    #[default]
    Unfinished,
    /// It is.
    Finished,
    /// The log `ledger` says so, too.
    Logged,
}

/// Key of a decision; they are numbered from 0.
#[must_use]
pub fn key_of(number: u32) -> Vec<u8> {
    key(0x31, &[&number.to_be_bytes()])
}

/// All decisions, oldest first.
#[must_use]
pub fn adoptions() -> KeyRange {
    KeyRange::prefix(&[0x31])
}

/// The newest decision and its number, if there is one.
///
/// # Errors
/// As [`Transaction::get_range`]; [`StoreError::Corrupt`] where it is damaged.
pub async fn read_newest(transaction: &Transaction) -> Result<Option<(u32, AdoptionRecord)>, StoreError> {
    let page = transaction.get_range(&adoptions(), 1, Order::Reverse).await?;
    page.rows
        .first()
        .map(|(key, value)| Ok((number_of(key)?, AdoptionRecord::decode(value)?)))
        .transpose()
}

/// All decisions, oldest first.
///
/// # Errors
/// As [`Transaction::get_range`]; [`StoreError::Corrupt`] where one is damaged.
pub async fn read_all(transaction: &Transaction) -> Result<Vec<AdoptionRecord>, StoreError> {
    let Some((newest, _)) = read_newest(transaction).await? else {
        return Ok(Vec::new());
    };
    let mut records = Vec::new();
    for number in 0..=newest {
        let value = transaction.get(&key_of(number)).await?;
        records.push(AdoptionRecord::decode(&value.unwrap_or_default())?);
    }
    Ok(records)
}

fn number_of(key: &[u8]) -> Result<u32, StoreError> {
    let mut fields = Fields::of("the key of an adoption", key.get(1..).unwrap_or_default());
    let number = fields.u32()?;
    fields.finish()?;
    Ok(number)
}

impl AdoptionRecord {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let numbers = [self.at.0, self.leaves.0, self.adopted, self.events, self.discarded];
        let mut value: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        value.push(match self.stage {
            AdoptionStage::Unfinished => 0,
            AdoptionStage::Finished => 1,
            AdoptionStage::Logged => 2,
        });
        for text in [&self.operator, &self.reason] {
            let length = u32::try_from(text.len()).expect("invariant: the command line bounds both texts");
            value.extend(length.to_be_bytes());
            value.extend(text.as_bytes());
        }
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("an adoption", value);
        let (at, leaves) = (WallTime(fields.u64()?), LeafIndex(fields.u64()?));
        let (adopted, events, discarded) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let stage = match fields.u8()? {
            0 => AdoptionStage::Unfinished,
            1 => AdoptionStage::Finished,
            2 => AdoptionStage::Logged,
            _ => return Err(fields.corrupt()),
        };
        let mut text = || {
            let length = fields.u32()? as usize;
            let bytes = fields.bytes(length)?.to_vec();
            String::from_utf8(bytes).map_err(|_| fields.corrupt())
        };
        let (operator, reason) = (text()?, text()?);
        fields.finish()?;
        Ok(Self {
            at,
            leaves,
            operator,
            reason,
            adopted,
            events,
            discarded,
            stage,
        })
    }
}
