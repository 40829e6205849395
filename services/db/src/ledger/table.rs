//! A table of rows, partly loaded from the store and with uncommitted changes.

use std::collections::BTreeMap;

/// Rows of one kind. `None` is a row that is known not to exist.
#[derive(Clone, Debug)]
pub(super) struct Table<K, V> {
    /// Values in the store.
    stored: BTreeMap<K, Option<V>>,
    /// Kept changes, to be written.
    kept: BTreeMap<K, Option<V>>,
    /// Changes of the current rule.
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
    /// Returns a row as the current rule sees it; the outer `None` if it is not loaded.
    pub(super) fn get(&self, key: K) -> Option<Option<&V>> {
        let latest = self.draft.get(&key).or_else(|| self.kept.get(&key));
        latest.or_else(|| self.stored.get(&key)).map(Option::as_ref)
    }

    /// Changes a row.
    pub(super) fn set(&mut self, key: K, value: Option<V>) {
        self.draft.insert(key, value);
    }

    /// Keeps the changes of the current rule.
    pub(super) fn keep(&mut self) {
        // Inserted one by one: a rule changes few rows, and `append` would walk through all kept ones.
        for (key, value) in std::mem::take(&mut self.draft) {
            self.kept.insert(key, value);
        }
    }

    /// Discards the changes of the current rule.
    pub(super) fn forget(&mut self) {
        self.draft.clear();
    }

    /// Loads a row from the store.
    pub(super) fn load(&mut self, key: K, value: Option<V>) {
        self.stored.insert(key, value);
    }

    /// Takes the changed rows with their former and present values. A row that was never loaded counts as absent.
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

    /// Takes the changed rows that exist, and forgets them.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let kept = std::mem::take(&mut self.kept).into_iter();
        kept.filter_map(|(key, value)| value.map(|value| (key, value)))
    }

    /// Maximum number of rows to write.
    pub(super) fn changes(&self) -> usize {
        self.kept.len()
    }
}
