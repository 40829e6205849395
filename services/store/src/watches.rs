//! Watches: which waiter waits for a change of which key.
//!
//! Pure. A watch has a key and the value that its owner has seen, and fires once: when a commit leaves a different
//! value there, or immediately if the value is already different. So no change is missed between reading a value and
//! watching it. A value that changes and changes back in between may go unnoticed.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::limits::WATCHES;

/// The watches of one store; `W` is the waiter that its owner fires.
#[derive(Debug)]
pub(crate) struct Watches<W> {
    by_key: BTreeMap<Bytes, Vec<Watch<W>>>,
    count: usize,
}

#[derive(Debug)]
struct Watch<W> {
    seen: Option<Bytes>,
    waiter: W,
}

impl<W> Default for Watches<W> {
    fn default() -> Self {
        Self {
            by_key: BTreeMap::new(),
            count: 0,
        }
    }
}

impl<W> Watches<W> {
    /// Whether no more watches can be added.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= WATCHES
    }

    /// Adds a watch on `key`, whose value is `current`, for a waiter that has seen `seen`. Returns the waiter if it
    /// fires immediately. The caller has checked that there is room.
    pub(crate) fn add(&mut self, key: Bytes, seen: Option<Bytes>, current: Option<&[u8]>, waiter: W) -> Option<W> {
        if seen.as_deref() != current {
            return Some(waiter);
        }
        self.count += 1;
        self.by_key.entry(key).or_default().push(Watch { seen, waiter });
        None
    }

    /// Notifies that `key` now has `value`. Returns the waiters to fire, in order of arrival.
    pub(crate) fn changed(&mut self, key: &[u8], value: Option<&[u8]>) -> Vec<W> {
        let Some(watches) = self.by_key.get_mut(key) else {
            return Vec::new();
        };
        let (fired, waiting): (Vec<_>, Vec<_>) = std::mem::take(watches)
            .into_iter()
            .partition(|watch| watch.seen.as_deref() != value);
        if waiting.is_empty() {
            self.by_key.remove(key);
        } else {
            *watches = waiting;
        }
        self.count -= fired.len();
        fired.into_iter().map(|watch| watch.waiter).collect()
    }

    /// Drops the watches whose waiter fails `wanted`.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(&W) -> bool) {
        self.by_key.retain(|_, watches| {
            watches.retain(|watch| wanted(&watch.waiter));
            !watches.is_empty()
        });
        self.count = self.by_key.values().map(Vec::len).sum();
    }

    /// Number of watches.
    pub(crate) fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(value: &'static [u8]) -> Option<Bytes> {
        Some(Bytes::from_static(value))
    }

    #[test]
    fn a_watch_fires_once_and_only_for_another_value() {
        let mut watches = Watches::default();
        let key = Bytes::from_static(b"k");
        assert_eq!(
            watches.add(key.clone(), None, Some(b"1"), 'a'),
            Some('a'),
            "another value is there already"
        );
        assert_eq!(watches.add(key.clone(), bytes(b"1"), Some(b"1"), 'b'), None);
        assert_eq!(watches.add(key, None, None, 'c'), None);
        assert!(watches.changed(b"other", Some(b"2")).is_empty());
        assert_eq!(watches.changed(b"k", Some(b"1")), ['c']);
        assert_eq!(watches.changed(b"k", None), ['b']);
        assert!(watches.changed(b"k", Some(b"3")).is_empty());
        assert_eq!(watches.count(), 0);
    }

    #[test]
    fn watches_are_bounded_and_dropped_ones_make_room() {
        let mut watches = Watches::default();
        for waiter in 0..WATCHES {
            assert_eq!(watches.add(Bytes::from_static(b"k"), None, None, waiter), None);
        }
        assert!(watches.is_full());
        watches.retain(|waiter| waiter % 2 == 0);
        assert_eq!(watches.count(), WATCHES / 2);
        assert!(!watches.is_full());
    }
}
