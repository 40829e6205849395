//! Which keys were written lately: what decides whether a transaction conflicts.
//!
//! Pure. A transaction that read at version `v` may commit only if none of the ranges it read was written after `v`. The
//! resolver remembers, for every key, the version of the newest write that touched it, back to [`Resolver::oldest`]; what is
//! older is forgotten, and a transaction that read before it is too old to judge.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::key::up_to;
use crate::{KeyRange, Version};

/// Most segments kept: about 100 MB with short keys, and five seconds of 100,000 single-key commits a second. Beyond it the
/// older half is forgotten early, and transactions that read before it are too old.
const SEGMENTS: usize = 1_000_000;

/// Fewest segments worth a sweep.
const SWEEP_MINIMUM: usize = 1_024;

/// Recent writes, as a step function over the keys.
#[derive(Debug)]
pub(crate) struct Resolver {
    /// From each key up to the next one in the map, the version of the newest write. Keys before the first were never written.
    segments: BTreeMap<Bytes, Version>,
    oldest: Version,
    /// Number of segments at which those no longer needed are swept out; twice what the last sweep left, so that sweeping
    /// costs a constant share of recording.
    sweep_at: usize,
    most: usize,
}

impl Resolver {
    /// A resolver that knows no writes and judges transactions that read at `oldest` or later.
    pub(crate) fn new(oldest: Version) -> Self {
        Self {
            segments: BTreeMap::new(),
            oldest,
            sweep_at: SWEEP_MINIMUM,
            most: SEGMENTS,
        }
    }

    /// The oldest read version that can still be judged.
    pub(crate) fn oldest(&self) -> Version {
        self.oldest
    }

    /// Whether a key of `read` was written after version `at`, which must not be older than [`Self::oldest`].
    pub(crate) fn conflicts(&self, read: &KeyRange, at: Version) -> bool {
        if read.is_empty() {
            return false;
        }
        let inside = (Bound::Excluded(read.begin.as_ref()), Bound::Excluded(read.end.as_ref()));
        self.version_at(&read.begin) > at || self.segments.range::<[u8], _>(inside).any(|(_, &version)| version > at)
    }

    /// Notes that the keys of `write` were written at version `at`, which must not be lower than any noted before.
    pub(crate) fn record(&mut self, write: &KeyRange, at: Version) {
        if write.is_empty() {
            return;
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
        if self.segments.len() >= self.sweep_at {
            self.sweep();
        }
    }

    /// Forgets the writes up to and including version `oldest`: no transaction that read before it will be judged.
    pub(crate) fn forget_before(&mut self, oldest: Version) {
        self.oldest = self.oldest.max(oldest);
    }

    fn version_at(&self, key: &[u8]) -> Version {
        self.segments
            .range::<[u8], _>(up_to(key))
            .next_back()
            .map_or(Version(0), |(_, &version)| version)
    }

    fn sweep(&mut self) {
        self.drop_forgotten();
        if self.segments.len() > self.most {
            // Gaps between writes are segments too, and forgotten already: the half is taken of what is not.
            let mut kept: Vec<Version> = self
                .segments
                .values()
                .copied()
                .filter(|&version| version > self.oldest)
                .collect();
            kept.sort_unstable();
            self.forget_before(kept.get(kept.len() / 2).copied().unwrap_or_default());
            self.drop_forgotten();
        }
        self.sweep_at = (self.segments.len() * 2).clamp(SWEEP_MINIMUM, self.most + SWEEP_MINIMUM);
    }

    /// Joins neighbouring segments that are both forgotten: they answer every question alike.
    fn drop_forgotten(&mut self) {
        let oldest = self.oldest;
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

    fn range(begin: u8, end: u8) -> KeyRange {
        KeyRange::new(vec![begin], vec![end])
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
    fn at_the_bound_the_older_half_is_forgotten_and_never_misjudged() {
        let mut resolver = Resolver {
            most: 4_000,
            ..Resolver::new(Version(0))
        };
        for write in 1..=20_000_u64 {
            resolver.record(&KeyRange::single(&write.to_be_bytes()), Version(write));
            assert!(
                resolver.segments.len() <= 4_000 + 2 * SWEEP_MINIMUM,
                "{} segments",
                resolver.segments.len()
            );
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
        /// Against the obvious model: the list of all writes.
        #[test]
        fn agrees_with_a_list_of_writes(
            writes in prop::collection::vec((0u8..30, 0u8..30), 1..60),
            forget in prop::collection::vec(0u64..60, 0..4),
            reads in prop::collection::vec((0u8..30, 0u8..30, 0u64..60), 1..40),
        ) {
            let mut resolver = Resolver::new(Version(0));
            let mut model: Vec<(KeyRange, Version)> = Vec::new();
            for (index, &(begin, end)) in writes.iter().enumerate() {
                let (write, at) = (range(begin, end), Version(index as u64 + 1));
                resolver.record(&write, at);
                model.push((write, at));
            }
            for version in forget {
                resolver.forget_before(Version(version));
                resolver.sweep();
            }
            for (begin, end, at) in reads {
                let (read, at) = (range(begin, end), Version(at).max(resolver.oldest()));
                let expected = model.iter().any(|(write, version)| *version > at && write.intersects(&read));
                prop_assert_eq!(resolver.conflicts(&read, at), expected, "{:?} at {}", read, at);
            }
        }
    }
}
