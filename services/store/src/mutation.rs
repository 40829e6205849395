//! What a transaction sends to a store: mutations, in order, and conflict ranges.

use bytes::Bytes;

use crate::limits::{CONFLICT_BYTES, MUTATION_BYTES, STAMP_PLACE_BYTES};
use crate::{KeyRange, Version, Versionstamp};

/// One change. A transaction's changes are applied in the order in which it made them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Sets `key` to `value`.
    Set {
        key: Bytes,
        /// Its new value.
        value: Bytes,
    },
    /// Deletes `key`.
    Clear { key: Bytes },
    /// Deletes all keys of the range.
    ClearRange {
        /// The keys.
        range: KeyRange,
    },
    /// Adds `delta` to the eight bytes at `key`, a little-endian integer (0 if the key is absent), wrapping. The
    /// transaction does not read them, so two additions do not conflict.
    Add {
        key: Bytes,
        /// The amount to add.
        delta: i64,
    },
    /// Sets a key that contains the versionstamp of this commit to `value`.
    SetStampedKey {
        /// The key, with a gap for the stamp.
        key: Stamped,
        value: Bytes,
    },
    /// Sets `key` to a value that contains the versionstamp of this commit.
    SetStampedValue {
        key: Bytes,
        /// Its value, with a gap for the stamp.
        value: Stamped,
    },
}

/// Bytes with a gap for the versionstamp of the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The bytes before the stamp.
    pub before: Bytes,
    /// The bytes after it.
    pub after: Bytes,
}

impl Stamped {
    /// The bytes with `stamp` in the gap.
    #[must_use]
    pub fn with(&self, stamp: Versionstamp) -> Bytes {
        [&self.before[..], &stamp.0, &self.after].concat().into()
    }

    /// The bytes with an arbitrary stamp in the gap, to measure them.
    pub(crate) fn sample(&self) -> Bytes {
        self.with(Versionstamp::default())
    }

    /// A range that contains the bytes for every possible stamp.
    pub(crate) fn span(&self) -> KeyRange {
        KeyRange::prefix(&self.before)
    }
}

/// A transaction as sent to the store. It is checked and applied atomically.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitRequest {
    /// The version it read at; none if it read nothing, and then it cannot conflict.
    pub read_version: Option<Version>,
    /// The keys it depends on: it fails if a commit after `read_version` wrote one of them.
    pub read_conflicts: Vec<KeyRange>,
    /// Keys that count as written, in addition to those of its mutations.
    pub write_conflicts: Vec<KeyRange>,
    /// Its changes, in order.
    pub mutations: Vec<Mutation>,
}

impl CommitRequest {
    /// Its size as [`crate::limits::TRANSACTION_BYTES`] counts it, in a store that puts `prefix` bytes before each key:
    /// the same as in FoundationDB's client, or slightly more. Besides keys and values it counts their structures,
    /// every conflict range, and for each mutation the range that it writes. Mutations that change nothing are not
    /// counted.
    #[must_use]
    pub fn bytes(&self, prefix: usize) -> usize {
        let ranges = self.read_conflicts.iter().chain(&self.write_conflicts);
        let mutations = self.mutations.iter().map(|mutation| mutation.bytes(prefix));
        ranges.map(|range| range_bytes(range, prefix)).chain(mutations).sum()
    }

    /// Whether applying it changes nothing, whatever it read. A store assigns no version to such a commit: see
    /// [`Committed::nothing`](crate::Committed::nothing).
    #[must_use]
    pub fn changes_nothing(&self) -> bool {
        self.mutations.iter().all(Mutation::changes_nothing) && self.write_conflicts.iter().all(KeyRange::is_empty)
    }
}

impl Mutation {
    /// Whether it changes nothing regardless of the stored data: it clears an empty range.
    #[must_use]
    pub fn changes_nothing(&self) -> bool {
        matches!(self, Self::ClearRange { range } if range.is_empty())
    }

    /// Its share of the size of a transaction, in a store that puts `prefix` bytes before each key.
    #[must_use]
    pub fn bytes(&self, prefix: usize) -> usize {
        if self.changes_nothing() {
            return 0;
        }
        let (key, value) = match self {
            Self::Set { key, value } => (prefix + key.len(), value.len()),
            // The end of the range of a single key is the key with one more byte.
            Self::Clear { key } => (prefix + key.len(), prefix + key.len() + 1),
            Self::ClearRange { range } => return MUTATION_BYTES + keys_of(range, prefix) + range_bytes(range, prefix),
            Self::Add { key, .. } => (prefix + key.len(), size_of::<i64>()),
            Self::SetStampedKey { key, value } => (prefix + stamped_bytes(key), value.len()),
            Self::SetStampedValue { key, value } => (prefix + key.len(), stamped_bytes(value)),
        };
        MUTATION_BYTES + key + value + CONFLICT_BYTES + 2 * key + 1
    }
}

/// A range's share of the size of a transaction, in a store that puts `prefix` bytes before each key.
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

/// The value after adding `delta` to the previous one. A value of another length counts as its first eight bytes,
/// padded with zeros, as in FoundationDB.
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
