//! The keys written recently, which decide whether a transaction conflicts.
//!
//! Pure. A transaction that read at version `v` may commit only if no range that it read was written after `v`. The
//! resolver stores, for every key, the version of its newest write, back to [`Resolver::oldest`]; older writes are
//! forgotten, and a transaction that read before then is too old to check.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::key::up_to;
use crate::{KeyRange, Version};

/// Maximum keys and segments stored: about 100 MB with short keys, and five seconds of 200,000 keys a second. Beyond it
/// the older half is forgotten early, and transactions that read before then are too old.
const KEPT: usize = 1_000_000;

/// Minimum number of them for a sweep.
const SWEEP_MINIMUM: usize = 1_024;

/// Recent writes: single keys, and a step function over all keys for the ranges. The last write of a key is the higher
/// of the two versions.
#[derive(Debug)]
pub(crate) struct Resolver {
    /// The version of the newest single-key write of each key.
    keys: BTreeMap<Box<[u8]>, Version>,
    /// From each key up to the next one in the map, the version of the newest range write. Nothing before the first key
    /// was written as a range.
    segments: BTreeMap<Bytes, Version>,
    oldest: Version,
    /// Number of keys and segments at which unneeded ones are swept: twice what the last sweep left, so that sweeping
    /// costs a constant share of recording.
    sweep_at: usize,
    most: usize,
}

impl Resolver {
    /// A resolver without writes, which checks transactions that read at `oldest` or later.
    pub(crate) fn new(oldest: Version) -> Self {
        Self {
            keys: BTreeMap::new(),
            segments: BTreeMap::new(),
            oldest,
            sweep_at: SWEEP_MINIMUM,
            most: KEPT,
        }
    }

    /// The oldest read version that can still be checked.
    pub(crate) fn oldest(&self) -> Version {
        self.oldest
    }

    /// Whether a key of `read` was written after version `at`, which must not be older than [`Self::oldest`].
    pub(crate) fn conflicts(&self, read: &KeyRange, at: Version) -> bool {
        if read.is_empty() {
            return false;
        }
        if self.version_at(&read.begin) > at {
            return true;
        }
        if let Some(key) = read.as_single() {
            return self.keys.get(key).is_some_and(|&version| version > at);
        }
        let inside = (Bound::Excluded(read.begin.as_ref()), Bound::Excluded(read.end.as_ref()));
        self.segments.range::<[u8], _>(inside).any(|(_, &version)| version > at)
            || self
                .keys
                .range::<[u8], _>(read.bounds())
                .any(|(_, &version)| version > at)
    }

    /// Records a write of `key` at version `at`, which must not be lower than any recorded before.
    pub(crate) fn record_key(&mut self, key: &[u8], at: Version) {
        self.keys.insert(key.into(), at);
        self.sweep_if_due();
    }

    /// Records a write of a range at version `at`, as [`Self::record_key`] does.
    pub(crate) fn record(&mut self, write: &KeyRange, at: Version) {
        if write.is_empty() {
            return;
        }
        if let Some(key) = write.as_single() {
            return self.record_key(key, at);
        }
        let beyond = self.version_at(&write.end);
        let covered: Vec<Bytes> = self
            .segments
            .range::<[u8], _>(write.bounds())
            .map(|(key, _)| key.clone())
            .collect();
        for key in covered {
            self.segments.remove(&key);
        }
        self.segments.insert(write.begin.clone(), at);
        self.segments.entry(write.end.clone()).or_insert(beyond);
        self.sweep_if_due();
    }

    /// Forgets the writes up to and including version `oldest`. Transactions that read before it can no longer be
    /// checked.
    pub(crate) fn forget_before(&mut self, oldest: Version) {
        self.oldest = self.oldest.max(oldest);
    }

    /// The version of the last range write that covers this key.
    fn version_at(&self, key: &[u8]) -> Version {
        self.segments
            .range::<[u8], _>(up_to(key))
            .next_back()
            .map_or(Version(0), |(_, &version)| version)
    }

    fn kept(&self) -> usize {
        self.keys.len() + self.segments.len()
    }

    fn sweep_if_due(&mut self) {
        if self.kept() >= self.sweep_at {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        self.drop_forgotten();
        if self.kept() > self.most {
            // Gaps between ranges are segments too, already forgotten; the median is taken without them.
            let versions = self.keys.values().chain(self.segments.values()).copied();
            let mut kept: Vec<Version> = versions.filter(|&version| version > self.oldest).collect();
            kept.sort_unstable();
            self.forget_before(kept.get(kept.len() / 2).copied().unwrap_or_default());
            self.drop_forgotten();
        }
        self.sweep_at = (self.kept() * 2).clamp(SWEEP_MINIMUM, self.most + SWEEP_MINIMUM);
    }

    /// Drops forgotten keys, and joins adjacent segments that are both forgotten: they give the same answers.
    fn drop_forgotten(&mut self) {
        let oldest = self.oldest;
        self.keys.retain(|_, version| *version > oldest);
        let mut before_is_forgotten = true;
        self.segments.retain(|_, version| {
            let forgotten = *version <= oldest;
            let keep = !(forgotten && before_is_forgotten);
            before_is_forgotten = forgotten;
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A range, or every other time a single key.
    fn any_range() -> impl Strategy<Value = KeyRange> {
        prop_oneof![
            (0u8..30, 0u8..30).prop_map(|(begin, end)| KeyRange::new(vec![begin], vec![end])),
            (0u8..30).prop_map(|key| KeyRange::single(&[key])),
        ]
    }

    #[test]
    fn a_read_conflicts_with_later_writes_only() {
        let mut resolver = Resolver::new(Version(0));
        resolver.record(&KeyRange::single(b"k"), Version(5));
        assert!(resolver.conflicts(&KeyRange::single(b"k"), Version(4)));
        assert!(!resolver.conflicts(&KeyRange::single(b"k"), Version(5)));
        assert!(!resolver.conflicts(&KeyRange::single(b"j"), Version(4)));
        assert!(!resolver.conflicts(&KeyRange::single(b"k\0"), Version(4)));
        assert!(resolver.conflicts(&KeyRange::prefix(b""), Version(4)));
    }

    #[test]
    fn at_the_bound_old_writes_are_evicted_and_later_ones_still_conflict() {
        let mut resolver = Resolver {
            most: 4_000,
            ..Resolver::new(Version(0))
        };
        for write in 1..=20_000_u64 {
            resolver.record(&KeyRange::single(&write.to_be_bytes()), Version(write));
            assert!(resolver.kept() <= 4_000 + 2 * SWEEP_MINIMUM, "{} keys", resolver.kept());
        }
        assert!(resolver.oldest() > Version(0), "something was forgotten");
        let oldest = resolver.oldest();
        for write in oldest.0 + 1..=20_000 {
            assert!(
                resolver.conflicts(&KeyRange::single(&write.to_be_bytes()), oldest),
                "write {write}"
            );
        }
    }

    proptest! {
        /// Compares with the simplest model, a list of all writes. The end of a range may be the key after its
        /// beginning.
        #[test]
        fn agrees_with_a_list_of_writes(
            writes in prop::collection::vec(any_range(), 1..60),
            forget in prop::collection::vec(0u64..60, 0..4),
            reads in prop::collection::vec((any_range(), 0u64..60), 1..40),
        ) {
            let mut resolver = Resolver::new(Version(0));
            let mut model: Vec<(KeyRange, Version)> = Vec::new();
            for (index, write) in writes.into_iter().enumerate() {
                let at = Version(index as u64 + 1);
                resolver.record(&write, at);
                model.push((write, at));
            }
            for version in forget {
                resolver.forget_before(Version(version));
                resolver.sweep();
            }
            for (read, at) in reads {
                let at = Version(at).max(resolver.oldest());
                let expected = model.iter().any(|(write, version)| *version > at && write.intersects(&read));
                prop_assert_eq!(resolver.conflicts(&read, at), expected, "{:?} at {}", read, at);
            }
        }
    }
}
