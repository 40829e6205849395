//! The rows at one version, as a transaction reads them.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;

use crate::backend::PageBuilder;
use crate::embedded::files::RowsSnapshot;
use crate::limits::PAGE_BYTES;
use crate::sequencer::Writes;
use crate::{Page, RangeRead, Row, ScanOrder, StoreError};

/// The rows on disk, and what a group changes that is being written.
pub(super) struct View {
    rows: Arc<RowsSnapshot>,
    changes: Option<Arc<Writes>>,
}

impl View {
    /// The rows on disk.
    pub(super) fn of(rows: Arc<RowsSnapshot>) -> Self {
        Self { rows, changes: None }
    }

    /// The rows on disk with the changes of a group.
    pub(super) fn with(rows: Arc<RowsSnapshot>, changes: Arc<Writes>) -> Self {
        let changes = Some(changes);
        Self { rows, changes }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        match self.changes.as_ref().and_then(|changes| changes.get(key)) {
            Some(value) => Ok(value.clone()),
            None => self.rows.get(key),
        }
    }

    /// A page of a range.
    pub(super) fn get_range(&self, read: &RangeRead) -> Result<Page, StoreError> {
        let mut page = PageBuilder::new(read.limit, PAGE_BYTES);
        if !read.range.is_empty() {
            let rows = self.rows.range(&read.range);
            let changes = self.changes.iter();
            let changes = changes.flat_map(|changes| changes.range::<[u8], _>(read.range.bounds()));
            match read.order {
                ScanOrder::Forward => fill(&mut page, rows, changes, Bytes::cmp)?,
                ScanOrder::Reverse => fill(&mut page, rows.rev(), changes.rev(), |one, other| other.cmp(one))?,
            }
        }
        Ok(page.finish())
    }
}

/// Fills a page with rows, replaced by the changes of the same keys. Both are in the order of `compare`. Reads no row
/// beyond the first that the page has no room for: there may be many deleted ones behind it.
fn fill<'a>(
    page: &mut PageBuilder,
    rows: impl Iterator<Item = Result<Row, StoreError>>,
    changes: impl Iterator<Item = (&'a Bytes, &'a Option<Bytes>)>,
    compare: impl Fn(&Bytes, &Bytes) -> Ordering,
) -> Result<(), StoreError> {
    let (mut rows, mut changes) = (rows.peekable(), changes.peekable());
    loop {
        let order = match (rows.peek(), changes.peek()) {
            (Some(Ok((key, _))), Some((changed, _))) => compare(key, changed),
            (Some(_), _) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return Ok(()),
        };
        let row = rows.next_if(|_| order != Ordering::Greater).transpose()?;
        let next = match changes.next_if(|_| order != Ordering::Less) {
            Some((key, value)) => value.as_ref().map(|value| (key.clone(), value.clone())),
            None => row,
        };
        if let Some((key, value)) = next
            && !page.push(key, value)
        {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::embedded::files::Files;
    use crate::{KeyRange, Version};

    fn key(number: u8) -> Bytes {
        Bytes::copy_from_slice(&[number])
    }

    /// Rows with numbers as keys; a value of `None` deletes a row.
    fn writes() -> impl Strategy<Value = Writes> {
        let rows = prop::collection::btree_map(0_u8..12, prop::option::of(any::<u8>()), 0..12);
        rows.prop_map(|rows| {
            rows.into_iter()
                .map(|(row, value)| (key(row), value.map(key)))
                .collect()
        })
    }

    fn read() -> impl Strategy<Value = RangeRead> {
        (0_u8..13, 0_u8..13, 1_usize..6, any::<bool>()).prop_map(|(one, other, limit, forward)| RangeRead {
            range: KeyRange::new(key(one.min(other)), key(one.max(other))),
            limit,
            order: if forward {
                ScanOrder::Forward
            } else {
                ScanOrder::Reverse
            },
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_view_is_the_rows_with_the_changes(
            stored in writes(),
            changes in writes(),
            reads in prop::collection::vec(read(), 1..20),
        ) {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let files = Files::open(directory.path()).expect("a new store");
            files.write(&stored, Version(1)).expect("the disk has room");
            let view = View::with(Arc::new(files.snapshot()), Arc::new(changes.clone()));
            let mut expected: BTreeMap<Bytes, Option<Bytes>> = stored;
            expected.extend(changes);
            expected.retain(|_, value| value.is_some());

            for row in 0..13 {
                let row = key(row);
                prop_assert_eq!(view.get(&row).expect("readable"), expected.get(&row).cloned().flatten());
            }
            for read in reads {
                let mut rows: Vec<Row> = expected
                    .iter()
                    .filter_map(|(key, value)| Some((key.clone(), value.clone()?)))
                    .filter(|(key, _)| read.range.contains(key))
                    .collect();
                if read.order == ScanOrder::Reverse {
                    rows.reverse();
                }
                let more = rows.len() > read.limit;
                rows.truncate(read.limit);
                prop_assert_eq!(view.get_range(&read).expect("readable"), Page { rows, more });
            }
        }
    }
}
