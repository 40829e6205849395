//! Keys and ranges of keys.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::limits::KEYS_END;

/// The keys from `begin` (inclusive) to `end` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRange {
    /// First key in the range.
    pub begin: Bytes,
    /// First key after the range.
    pub end: Bytes,
}

impl KeyRange {
    /// The range from `begin` (inclusive) to `end` (exclusive).
    #[must_use]
    pub fn new(begin: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        Self {
            begin: begin.into(),
            end: end.into(),
        }
    }

    /// The range of a single key.
    #[must_use]
    pub fn single(key: &[u8]) -> Self {
        Self {
            begin: Bytes::copy_from_slice(key),
            end: key_after(key),
        }
    }

    /// All keys that start with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        Self {
            begin: Bytes::copy_from_slice(prefix),
            end: prefix_end(prefix),
        }
    }

    /// All possible keys.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            begin: Bytes::new(),
            end: Bytes::from_static(KEYS_END),
        }
    }

    /// The key, if this is the range of a [single](Self::single) key.
    pub(crate) fn as_single(&self) -> Option<&[u8]> {
        let key = self.end.strip_suffix(&[0])?;
        (self.begin == key).then_some(key)
    }

    /// Whether the range contains no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.begin >= self.end
    }

    /// Whether `key` lies in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.begin <= key && self.end > key
    }

    /// Whether the two ranges share a key.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        !self.is_empty() && !other.is_empty() && self.begin < other.end && other.begin < self.end
    }

    /// The range in the form that `BTreeMap::range` takes. It must not be empty: that method panics on an inverted
    /// range.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(&self.begin), Bound::Excluded(&self.end))
    }
}

/// The smallest key greater than `key`.
#[must_use]
pub fn key_after(key: &[u8]) -> Bytes {
    let mut after = Vec::with_capacity(key.len() + 1);
    after.extend_from_slice(key);
    after.push(0);
    Bytes::from(after)
}

/// The smallest key greater than every key that starts with `prefix`; the end of all keys if there is none.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Bytes {
    match prefix.iter().rposition(|&byte| byte != 0xff) {
        Some(last) => {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            Bytes::from(end)
        }
        None => Bytes::from_static(KEYS_END),
    }
}

/// The keys up to and including `key`, in the form that `BTreeMap::range` takes.
pub(crate) fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

/// A set of keys, stored as ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeSet {
    /// Begin and end of each range.
    ranges: BTreeMap<Bytes, Bytes>,
}

impl RangeSet {
    /// Adds all keys of `range`, merging it with the ranges that it overlaps or touches.
    pub(crate) fn insert(&mut self, range: &KeyRange) {
        if range.is_empty() {
            return;
        }
        let KeyRange { mut begin, mut end } = range.clone();
        // The ranges are disjoint, so a walk back from `end` finds those that reach `begin`.
        while let Some((other_begin, other_end)) = self.ranges.range::<[u8], _>(up_to(&end)).next_back() {
            if *other_end < begin {
                break;
            }
            let (other_begin, other_end) = (other_begin.clone(), other_end.clone());
            self.ranges.remove(&other_begin);
            begin = begin.min(other_begin);
            end = end.max(other_end);
        }
        self.ranges.insert(begin, end);
    }

    /// Whether `key` is in the set.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.ranges
            .range::<[u8], _>(up_to(key))
            .next_back()
            .is_some_and(|(_, end)| end > key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_end_of_a_prefix_skips_trailing_ff() {
        assert_eq!(prefix_end(b"ab").as_ref(), b"ac");
        assert_eq!(prefix_end(b"a\xff\xff").as_ref(), b"b");
        assert_eq!(prefix_end(b"").as_ref(), KEYS_END);
        assert_eq!(prefix_end(b"\xff").as_ref(), KEYS_END);
    }

    proptest! {
        #[test]
        fn a_range_set_agrees_with_a_set_of_keys(ranges in prop::collection::vec((0u8..40, 0u8..40), 0..12)) {
            let mut set = RangeSet::default();
            let mut model = BTreeSet::new();
            for (begin, end) in ranges {
                set.insert(&KeyRange::new(vec![begin], vec![end]));
                model.extend(begin..end);
            }
            for key in 0u8..41 {
                prop_assert_eq!(set.contains(&[key]), model.contains(&key), "key {}", key);
            }
            // Fully merged: no range begins where another ends.
            for end in set.ranges.values() {
                prop_assert!(!set.ranges.contains_key(end));
            }
        }

        #[test]
        fn a_prefix_range_holds_exactly_what_begins_with_it(prefix in prop::collection::vec(0xfcu8..=0xff, 0..4), key in prop::collection::vec(0xfcu8..=0xfe, 1..5)) {
            prop_assert_eq!(KeyRange::prefix(&prefix).contains(&key), key.starts_with(&prefix));
        }
    }
}
