//! Origin of a restored realm.

use annals_ids::{LeafIndex, WallTime};

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError, Transaction};

/// One restoration: of another realm, or of an earlier state of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// The first leaf that is not from the original realm.
    pub leaf: LeafIndex,
    /// Time, by the wall clock.
    pub restored: WallTime,
    /// The name of the realm of the backup, which its batches carry.
    pub from: String,
    /// The name of the restored realm, which the batches from `leaf` on carry.
    pub to: String,
    /// The backup's name.
    pub backup: String,
}

/// Key of the restoration at a leaf.
#[must_use]
pub fn key_of(leaf: LeafIndex) -> Vec<u8> {
    key(0x22, &[&leaf.0.to_be_bytes()])
}

/// All restorations, oldest first.
#[must_use]
pub fn restorations() -> KeyRange {
    KeyRange::prefix(&[0x22])
}

/// Key of the name of the backup that is being restored into this store. While it is there, the store belongs to no
/// realm.
#[must_use]
pub fn unfinished_key() -> Vec<u8> {
    key(0x2c, &[])
}

/// The backup that is being restored into this store, if any.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_unfinished(transaction: &Transaction) -> Result<Option<String>, StoreError> {
    let name = transaction.get(&unfinished_key()).await?;
    Ok(name.map(|name| String::from_utf8_lossy(&name).into_owned()))
}

impl Lineage {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut value = [self.leaf.0.to_be_bytes(), self.restored.0.to_be_bytes()].concat();
        for text in [&self.from, &self.to, &self.backup] {
            let length = u32::try_from(text.len()).expect("invariant: names are short");
            value.extend(length.to_be_bytes());
            value.extend(text.as_bytes());
        }
        value
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let mut fields = Fields::of("a restoration", value);
        let (leaf, restored) = (LeafIndex(fields.u64()?), WallTime(fields.u64()?));
        let mut text = || {
            let length = fields.u32()? as usize;
            let bytes = fields.bytes(length)?.to_vec();
            String::from_utf8(bytes).map_err(|_| fields.corrupt())
        };
        let lineage = Self {
            leaf,
            restored,
            from: text()?,
            to: text()?,
            backup: text()?,
        };
        fields.finish()?;
        Ok(lineage)
    }
}
