//! What a transaction asks of a store: mutations, in order, and the ranges it must not have misread.

use bytes::Bytes;

use crate::limits::{CONFLICT_BYTES, MUTATION_BYTES, STAMP_PLACE_BYTES};
use crate::{KeyRange, Version, Versionstamp};

/// One change, applied in the order the transaction made them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// `key` holds `value`.
    Set {
        /// The key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
    },
    /// `key` holds nothing.
    Clear {
        /// The key.
        key: Bytes,
    },
    /// No key of the range holds anything.
    ClearRange {
        /// The keys.
        range: KeyRange,
    },
    /// The eight bytes at `key`, as a little-endian integer (0 where there is nothing), grow by `delta`, wrapping. The
    /// transaction does not read them, so two that add do not conflict.
    Add {
        /// The key.
        key: Bytes,
        /// What is added.
        delta: i64,
    },
    /// A key that holds the versionstamp of this commit is set to `value`.
    SetStampedKey {
        /// The key, around the stamp.
        key: Stamped,
        /// Its value.
        value: Bytes,
    },
    /// `key` is set to a value that holds the versionstamp of this commit.
    SetStampedValue {
        /// The key.
        key: Bytes,
        /// Its value, around the stamp.
        value: Stamped,
    },
}

/// Bytes with a gap for the versionstamp of the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// What stands before the stamp.
    pub before: Bytes,
    /// What stands after it.
    pub after: Bytes,
}

impl Stamped {
    /// The bytes with `stamp` in their gap.
    #[must_use]
    pub fn with(&self, stamp: Versionstamp) -> Bytes {
        [&self.before[..], &stamp.0, &self.after].concat().into()
    }

    /// The bytes with some stamp in their gap, to measure them.
    pub(crate) fn sample(&self) -> Bytes {
        self.with(Versionstamp::default())
    }

    /// Every result the gap can have lies in this range.
    pub(crate) fn span(&self) -> KeyRange {
        KeyRange::prefix(&self.before)
    }
}

/// A transaction as it reaches the store. What it read and what it does are judged and applied at once or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitRequest {
    /// The version it read at; none when it read nothing, and then nothing can conflict with it.
    pub read_version: Option<Version>,
    /// The keys it depends on: a commit after `read_version` that wrote one of them makes this one fail.
    pub read_conflicts: Vec<KeyRange>,
    /// Keys it counts as written, beyond those its mutations write.
    pub write_conflicts: Vec<KeyRange>,
    /// Its changes, in order.
    pub mutations: Vec<Mutation>,
}

impl CommitRequest {
    /// Its size as [`crate::limits::TRANSACTION_BYTES`] counts it, in a store that puts `prefix` bytes before each key: as
    /// FoundationDB's client does, or a little more. Beside keys and values that is their structure, every conflict range,
    /// and for each mutation the range that it writes. What changes nothing is not counted.
    #[must_use]
    pub fn bytes(&self, prefix: usize) -> usize {
        let ranges = self.read_conflicts.iter().chain(&self.write_conflicts);
        let mutations = self.mutations.iter().map(|mutation| mutation.bytes(prefix));
        ranges.map(|range| range_bytes(range, prefix)).chain(mutations).sum()
    }

    /// Whether applying it changes nothing, whatever it read. A store gives no version to such a commit: see
    /// [`Committed::nothing`](crate::Committed::nothing).
    #[must_use]
    pub fn changes_nothing(&self) -> bool {
        self.mutations.iter().all(Mutation::changes_nothing) && self.write_conflicts.iter().all(KeyRange::is_empty)
    }
}

impl Mutation {
    /// Whether it changes nothing, whatever is stored: it clears a range in which there is no key.
    #[must_use]
    pub fn changes_nothing(&self) -> bool {
        matches!(self, Self::ClearRange { range } if range.is_empty())
    }

    /// Its share in the size of a transaction, in a store that puts `prefix` bytes before each key.
    #[must_use]
    pub fn bytes(&self, prefix: usize) -> usize {
        if self.changes_nothing() {
            return 0;
        }
        let (key, value) = match self {
            Self::Set { key, value } => (prefix + key.len(), value.len()),
            // The end of a range of one key is the key with a byte more.
            Self::Clear { key } => (prefix + key.len(), prefix + key.len() + 1),
            Self::ClearRange { range } => return MUTATION_BYTES + keys_of(range, prefix) + range_bytes(range, prefix),
            Self::Add { key, .. } => (prefix + key.len(), size_of::<i64>()),
            Self::SetStampedKey { key, value } => (prefix + stamped_bytes(key), value.len()),
            Self::SetStampedValue { key, value } => (prefix + key.len(), stamped_bytes(value)),
        };
        MUTATION_BYTES + key + value + CONFLICT_BYTES + 2 * key + 1
    }
}

/// A range's share in the size of a transaction, in a store that puts `prefix` bytes before each key.
pub(crate) fn range_bytes(range: &KeyRange, prefix: usize) -> usize {
    if range.is_empty() {
        return 0;
    }
    CONFLICT_BYTES + keys_of(range, prefix)
}

fn keys_of(range: &KeyRange, prefix: usize) -> usize {
    2 * prefix + range.begin.len() + range.end.len()
}

fn stamped_bytes(stamped: &Stamped) -> usize {
    stamped.before.len() + Versionstamp::BYTES + stamped.after.len() + STAMP_PLACE_BYTES
}

/// The value after adding `delta` to what was there. A value of another length counts as its first eight bytes, padded with
/// zeros, as FoundationDB has it.
pub(crate) fn added(value: Option<&[u8]>, delta: i64) -> Bytes {
    let mut word = [0; size_of::<i64>()];
    let value = value.unwrap_or_default();
    let kept = value.len().min(word.len());
    word[..kept].copy_from_slice(&value[..kept]);
    Bytes::copy_from_slice(&i64::from_le_bytes(word).wrapping_add(delta).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_wraps_and_reads_short_and_long_values_as_eight_bytes() {
        assert_eq!(added(None, -1).as_ref(), [0xff; 8]);
        assert_eq!(added(Some(&[0xff; 8]), 1).as_ref(), [0; 8]);
        assert_eq!(added(Some(&[1, 1]), 1).as_ref(), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            added(Some(&[1, 0, 0, 0, 0, 0, 0, 0, 9]), 1).as_ref(),
            [2, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn a_stamp_fills_its_gap() {
        let stamped = Stamped {
            before: Bytes::from_static(b"a"),
            after: Bytes::from_static(b"z"),
        };
        let stamp = Versionstamp::new(Version(0x0102), 3);
        assert_eq!(stamped.with(stamp).as_ref(), b"a\0\0\0\0\0\0\x01\x02\0\x03z");
        assert_eq!(stamp.version(), Version(0x0102));
    }
}
