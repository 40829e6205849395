//! Adoptions in the store: what the log records of one, and its progress. The stored form is
//!
//! ```text
//! wall:u64 leaves:u64 adopted:u64 events:u64 discarded:u64 stage:u8 operator:text reason:text
//! text = bytes:u32 UTF-8
//! ```
//! Numbers are big-endian; the adoption's own number is in the key.

use annals_event::Adoption;
use annals_ids::{LeafIndex, WallTime};
use annals_store::{ScanOrder, StoreError, Transaction, layout::adoptions};
use async_recursion::async_recursion as boxed;

/// An adoption that was decided. The decision is one transaction; the adoption is finished once all that it adopts is
/// folded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdoptionRecord {
    /// What was decided.
    pub adoption: Adoption,
    /// Its progress.
    pub stage: AdoptionStage,
}

/// Progress of an adoption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdoptionStage {
    /// Not everything that was adopted is folded: no db process starts on the store.
    #[default]
    Unfinished,
    /// Everything that was adopted is folded.
    Finished,
    /// The log `ledger` contains the adoption, too.
    Logged,
}

impl AdoptionRecord {
    /// The newest record, if there is one.
    ///
    /// # Errors
    /// As [`Transaction::get_range`]; [`StoreError::Corrupt`] if the record is damaged.
    #[boxed]
    pub async fn read_newest(transaction: &Transaction) -> Result<Option<Self>, StoreError> {
        let page = transaction
            .get_range(&adoptions::adoptions(), 1, ScanOrder::Reverse)
            .await?;
        let newest = page.rows.first();
        newest
            .map(|(key, value)| Self::decode(adoptions::number_of(key)?, value))
            .transpose()
    }

    /// All records, oldest first.
    ///
    /// # Errors
    /// As [`Transaction::get_range`]; [`StoreError::Corrupt`] if a record is damaged.
    #[boxed]
    pub async fn read_all(transaction: &Transaction) -> Result<Vec<Self>, StoreError> {
        let Some(newest) = Self::read_newest(transaction).await? else {
            return Ok(Vec::new());
        };
        let mut records = Vec::new();
        for number in 0..=newest.adoption.number {
            let value = transaction.get(&adoptions::key_of(number)).await?;
            records.push(Self::decode(number, &value.unwrap_or_default())?);
        }
        Ok(records)
    }

    pub(super) fn write(&self, transaction: &Transaction) -> Result<(), StoreError> {
        transaction.set(&adoptions::key_of(self.adoption.number), &self.encode())
    }

    fn encode(&self) -> Vec<u8> {
        let Adoption {
            number: _,
            at,
            leaves,
            operator,
            reason,
            adopted,
            events,
            discarded,
        } = &self.adoption;
        let numbers = [at.0, leaves.0, *adopted, *events, *discarded];
        let mut value: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        value.push(match self.stage {
            AdoptionStage::Unfinished => 0,
            AdoptionStage::Finished => 1,
            AdoptionStage::Logged => 2,
        });
        for text in [operator, reason] {
            let length = u32::try_from(text.len()).expect("invariant: the command line bounds both texts");
            value.extend(length.to_be_bytes());
            value.extend(text.as_bytes());
        }
        value
    }

    /// Decodes the stored form of the adoption with this number.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(number: u32, value: &[u8]) -> Result<Self, StoreError> {
        let damaged = || StoreError::Corrupt(format!("adoption {number} in the store cannot be decoded").into());
        Self::parse(number, value).ok_or_else(damaged)
    }

    fn parse(number: u32, mut rest: &[u8]) -> Option<Self> {
        let mut numbers = [0; 5];
        for number in &mut numbers {
            *number = u64::from_be_bytes(take(&mut rest)?);
        }
        let [at, leaves, adopted, events, discarded] = numbers;
        let stage = match take(&mut rest)? {
            [0] => AdoptionStage::Unfinished,
            [1] => AdoptionStage::Finished,
            [2] => AdoptionStage::Logged,
            _ => return None,
        };
        let (operator, reason) = (take_text(&mut rest)?, take_text(&mut rest)?);
        let adoption = Adoption {
            number,
            at: WallTime(at),
            leaves: LeafIndex(leaves),
            operator,
            reason,
            adopted,
            events,
            discarded,
        };
        rest.is_empty().then_some(Self { adoption, stage })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*field)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let length = u32::from_be_bytes(take(rest)?);
    let (text, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = behind;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_decodes_completely_or_is_rejected() {
        let adoption = Adoption {
            number: 7,
            at: WallTime(u64::MAX),
            leaves: LeafIndex(1 << 40),
            operator: "auditor".to_owned(),
            reason: "the store is older than its log — 旧".to_owned(),
            adopted: 1,
            events: 2,
            discarded: 3,
        };
        for stage in [
            AdoptionStage::Unfinished,
            AdoptionStage::Finished,
            AdoptionStage::Logged,
        ] {
            let adoption = adoption.clone();
            let record = AdoptionRecord { adoption, stage };
            let stored = record.encode();
            assert_eq!(AdoptionRecord::decode(7, &stored), Ok(record));
            for length in 0..stored.len() {
                assert!(
                    AdoptionRecord::decode(7, &stored[..length]).is_err(),
                    "{length} bytes of it"
                );
            }
            assert!(AdoptionRecord::decode(7, &[&stored[..], &[0]].concat()).is_err());
            let mut strange = stored;
            strange[40] = 3;
            assert!(AdoptionRecord::decode(7, &strange).is_err(), "there is no such stage");
        }
    }
}
