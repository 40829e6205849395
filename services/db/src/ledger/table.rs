//! A table of rows, of which some are in memory and some are about to change.

use std::collections::BTreeMap;

/// Rows of one sort. `None` is a row that is known not to be there.
#[derive(Clone, Debug)]
pub(super) struct Table<K, V> {
    /// As the store has them.
    stored: BTreeMap<K, Option<V>>,
    /// As they are to be.
    kept: BTreeMap<K, Option<V>>,
    /// As the rule that runs would have them.
    draft: BTreeMap<K, Option<V>>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self {
            stored: BTreeMap::new(),
            kept: BTreeMap::new(),
            draft: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Copy, V: Clone + PartialEq> Table<K, V> {
    /// The row, as the rule that runs sees it; the outer `None` if it was not loaded.
    pub(super) fn get(&self, key: K) -> Option<Option<&V>> {
        let latest = self.draft.get(&key).or_else(|| self.kept.get(&key));
        latest.or_else(|| self.stored.get(&key)).map(Option::as_ref)
    }

    /// Changes a row.
    pub(super) fn set(&mut self, key: K, value: Option<V>) {
        self.draft.insert(key, value);
    }

    /// The rule has done what it should.
    pub(super) fn keep(&mut self) {
        // One after the other: a rule changes few rows, and appending would walk through all that are kept.
        for (key, value) in std::mem::take(&mut self.draft) {
            self.kept.insert(key, value);
        }
    }

    /// The rule has done nothing.
    pub(super) fn forget(&mut self) {
        self.draft.clear();
    }

    /// A row as the store has it.
    pub(super) fn load(&mut self, key: K, value: Option<V>) {
        self.stored.insert(key, value);
    }

    /// Takes the rows that have changed, as they were and as they are. A row that was never loaded was not there.
    pub(super) fn take_changed(&mut self) -> Vec<(K, Option<V>, Option<V>)> {
        let mut changed = Vec::new();
        for (key, value) in std::mem::take(&mut self.kept) {
            let before = self.stored.insert(key, value.clone()).flatten();
            if before != value {
                changed.push((key, before, value));
            }
        }
        changed
    }

    /// Takes the rows that have changed and are there, and remembers nothing of them.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let kept = std::mem::take(&mut self.kept).into_iter();
        kept.filter_map(|(key, value)| value.map(|value| (key, value)))
    }

    /// How many rows are to be written at most.
    pub(super) fn changes(&self) -> usize {
        self.kept.len()
    }
}
