//! A transaction before its commit: its writes, its reads, and the overlay of its writes on the stored rows.
//!
//! Pure. [`crate::Transaction`] does the reading; this computes how its own writes change what it reads.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::backend::Row;
use crate::key::RangeSet;
use crate::limits::{self, TRANSACTION_BYTES};
use crate::mutation::{added, range_bytes};
use crate::{CommitRequest, KeyRange, Mutation, Page, ScanOrder, StoreError, key_after};

/// What the transaction's own writes determine about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// Nothing: the stored value applies.
    Stored,
    /// The key has this value.
    Known(Option<Bytes>),
    /// The key has the stored value plus this.
    Plus(i64),
    /// The key will have a value that contains a versionstamp.
    Unreadable,
}

/// The writes and conflict ranges of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// Length of the prefix before each key in the store, in bytes.
    prefix: usize,
    mutations: Vec<Mutation>,
    read_conflicts: Vec<KeyRange>,
    write_conflicts: Vec<KeyRange>,
    bytes: usize,
    /// Effect of the mutations on single keys; never [`Own::Stored`].
    own: BTreeMap<Bytes, Own>,
    /// Ranges that were cleared; `own` takes precedence.
    cleared: RangeSet,
    /// Ranges of keys that will contain a versionstamp.
    stamped: Vec<KeyRange>,
}

impl Draft {
    /// An empty draft, for a store that puts `prefix` bytes before each key.
    pub(crate) fn new(prefix: usize) -> Self {
        Self {
            prefix,
            ..Self::default()
        }
    }

    /// Adds a mutation, unless it changes nothing.
    pub(crate) fn mutate(&mut self, mutation: Mutation) -> Result<(), StoreError> {
        limits::check_mutation(&mutation)?;
        if mutation.changes_nothing() {
            return Ok(());
        }
        self.grow(mutation.bytes(self.prefix))?;
        self.note(&mutation);
        self.mutations.push(mutation);
        Ok(())
    }

    /// Makes commits that write to `range` conflict with this transaction.
    pub(crate) fn add_read_conflict(&mut self, range: KeyRange) -> Result<(), StoreError> {
        limits::check_range(&range)?;
        if !range.is_empty() && self.read_conflicts.last() != Some(&range) {
            self.grow(range_bytes(&range, self.prefix))?;
            self.read_conflicts.push(range);
        }
        Ok(())
    }

    /// Makes this transaction conflict with transactions that read `range`.
    pub(crate) fn add_write_conflict(&mut self, range: KeyRange) -> Result<(), StoreError> {
        limits::check_range(&range)?;
        if !range.is_empty() {
            self.grow(range_bytes(&range, self.prefix))?;
            self.write_conflicts.push(range);
        }
        Ok(())
    }

    /// Whether a commit would do nothing.
    pub(crate) fn writes_nothing(&self) -> bool {
        self.mutations.is_empty() && self.write_conflicts.is_empty()
    }

    /// Whether the commit depends on a read.
    pub(crate) fn has_read_conflicts(&self) -> bool {
        !self.read_conflicts.is_empty()
    }

    /// The commit request, without a read version.
    pub(crate) fn into_request(self) -> CommitRequest {
        CommitRequest {
            read_version: None,
            read_conflicts: self.read_conflicts,
            write_conflicts: self.write_conflicts,
            mutations: self.mutations,
        }
    }

    /// What the transaction's own writes determine about `key`.
    pub(crate) fn own(&self, key: &[u8]) -> Own {
        if let Some(own) = self.own.get(key) {
            return own.clone();
        }
        if self.stamped.iter().any(|range| range.contains(key)) {
            return Own::Unreadable;
        }
        if self.cleared.contains(key) {
            Own::Known(None)
        } else {
            Own::Stored
        }
    }

    /// Overlays the transaction's own writes on `page`, stored rows read from the near end of `range` in `order`.
    /// Returns the rows that this page settles, and the part of the range that no page has covered yet, if any.
    pub(crate) fn overlay(
        &self,
        range: &KeyRange,
        order: ScanOrder,
        page: Page,
    ) -> Result<(Vec<Row>, Option<KeyRange>), StoreError> {
        let (covered, rest) = split_covered(range, order, &page);
        if self.stamped.iter().any(|stamped| stamped.intersects(&covered)) {
            return Err(StoreError::Unreadable);
        }
        let mut rows: BTreeMap<Bytes, Bytes> = page
            .rows
            .into_iter()
            .filter(|(key, _)| !self.cleared.contains(key))
            .collect();
        if !covered.is_empty() {
            for (key, own) in self.own.range::<[u8], _>(covered.bounds()) {
                let value = match own {
                    Own::Stored => continue,
                    Own::Known(value) => value.clone(),
                    Own::Plus(delta) => Some(added(rows.get(key).map(AsRef::as_ref), *delta)),
                    Own::Unreadable => return Err(StoreError::Unreadable),
                };
                match value {
                    Some(value) => rows.insert(key.clone(), value),
                    None => rows.remove(key),
                };
            }
        }
        let rows = match order {
            ScanOrder::Forward => rows.into_iter().collect(),
            ScanOrder::Reverse => rows.into_iter().rev().collect(),
        };
        Ok((rows, rest))
    }

    fn grow(&mut self, bytes: usize) -> Result<(), StoreError> {
        let total = self.bytes + bytes;
        if total > TRANSACTION_BYTES {
            return Err(StoreError::TransactionTooLarge { bytes: total });
        }
        self.bytes = total;
        Ok(())
    }

    fn note(&mut self, mutation: &Mutation) {
        match mutation {
            Mutation::Set { key, value } => {
                self.own.insert(key.clone(), Own::Known(Some(value.clone())));
            }
            Mutation::Clear { key } => {
                self.own.insert(key.clone(), Own::Known(None));
            }
            Mutation::ClearRange { range } => self.note_cleared(range),
            Mutation::Add { key, delta } => {
                let own = match self.own(key) {
                    Own::Stored => Own::Plus(*delta),
                    Own::Known(value) => Own::Known(Some(added(value.as_deref(), *delta))),
                    Own::Plus(before) => Own::Plus(before.wrapping_add(*delta)),
                    Own::Unreadable => Own::Unreadable,
                };
                self.own.insert(key.clone(), own);
            }
            Mutation::SetStampedKey { key, .. } => self.stamped.push(key.span()),
            Mutation::SetStampedValue { key, .. } => {
                self.own.insert(key.clone(), Own::Unreadable);
            }
        }
    }

    fn note_cleared(&mut self, range: &KeyRange) {
        if range.is_empty() {
            return;
        }
        let gone: Vec<Bytes> = self
            .own
            .range::<[u8], _>(range.bounds())
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.own.remove(&key);
        }
        self.cleared.insert(range);
    }
}

/// The part of `range` covered by a read from its near end that returned `rows`: up to the last row, or all of it if
/// there are no more.
pub(crate) fn seen(range: &KeyRange, order: ScanOrder, rows: &[Row], more: bool) -> KeyRange {
    match (rows.last(), order) {
        (Some((last, _)), ScanOrder::Forward) if more => KeyRange {
            begin: range.begin.clone(),
            end: key_after(last),
        },
        (Some((last, _)), ScanOrder::Reverse) if more => KeyRange {
            begin: last.clone(),
            end: range.end.clone(),
        },
        _ => range.clone(),
    }
}

fn split_covered(range: &KeyRange, order: ScanOrder, page: &Page) -> (KeyRange, Option<KeyRange>) {
    let covered = seen(range, order, &page.rows, page.more);
    let rest = match order {
        ScanOrder::Forward => KeyRange {
            begin: covered.end.clone(),
            end: range.end.clone(),
        },
        ScanOrder::Reverse => KeyRange {
            begin: range.begin.clone(),
            end: covered.begin.clone(),
        },
    };
    let rest = (page.more && !rest.is_empty()).then_some(rest);
    (covered, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_without_effect_are_neither_kept_nor_counted() {
        let mut draft = Draft::new(64);
        let none = KeyRange::new(&b"k"[..], &b"k"[..]);
        let clear = || Mutation::ClearRange { range: none.clone() };
        draft.mutate(clear()).expect("within limits");
        draft.add_write_conflict(none.clone()).expect("within limits");
        draft.add_read_conflict(none.clone()).expect("within limits");
        assert!(draft.writes_nothing() && !draft.has_read_conflicts());
        let key = Bytes::from_static(b"k");
        let set = Mutation::Clear { key };
        draft.mutate(set.clone()).expect("within limits");
        draft.mutate(clear()).expect("within limits");
        assert_eq!(draft.bytes, set.bytes(64));
        assert_eq!(draft.into_request().mutations, [set]);
    }
}
