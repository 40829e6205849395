//! Origin of a restored realm.

use annals_ids::{LeafIndex, Shard, WallTime};

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError, Transaction};

/// One restoration: of another realm, or of an earlier state of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// The first leaf of the first shard that is not from the original realm.
    pub leaf: LeafIndex,
    /// The same of the other shards, in their order.
    pub others: Vec<LeafIndex>,
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
    /// The first leaf of a shard that is not from the original realm.
    #[must_use]
    pub fn leaf_of(&self, shard: Shard) -> LeafIndex {
        match usize::from(shard.0).checked_sub(1) {
            None => self.leaf,
            Some(other) => self.others.get(other).copied().unwrap_or_default(),
        }
    }

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut value = [self.leaf.0.to_be_bytes(), self.restored.0.to_be_bytes()].concat();
        for text in [&self.from, &self.to, &self.backup] {
            let length = u32::try_from(text.len()).expect("invariant: names are short");
            value.extend(length.to_be_bytes());
            value.extend(text.as_bytes());
        }
        if !self.others.is_empty() {
            let count = u16::try_from(self.others.len()).expect("invariant: a realm has few shards");
            value.extend(count.to_be_bytes());
            value.extend(self.others.iter().flat_map(|leaf| leaf.0.to_be_bytes()));
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
        let (from, to, backup) = (text()?, text()?, text()?);
        let mut others = Vec::new();
        if !fields.is_empty() {
            let count = fields.u16()?;
            for _ in 0..count {
                others.push(LeafIndex(fields.u64()?));
            }
            if count == 0 {
                return Err(fields.corrupt());
            }
        }
        fields.finish()?;
        Ok(Self {
            leaf,
            others,
            restored,
            from,
            to,
            backup,
        })
    }
}
