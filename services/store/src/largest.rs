//! How close transactions come to the store's limits.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::CommitRequest;

/// Largest transactions committed through a [`crate::Store`] and its clones. Each figure is a separate maximum, not
/// necessarily of the same transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Largest {
    /// Bytes as counted by [`CommitRequest::bytes`]; the limit is [`crate::limits::TRANSACTION_BYTES`].
    pub bytes: u64,
    /// Mutations, each of one key or range.
    pub mutations: u64,
    /// Conflict ranges, without those of the mutations.
    pub ranges: u64,
}

/// Records the size of each attempted commit.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    bytes: AtomicU64,
    mutations: AtomicU64,
    ranges: AtomicU64,
}

impl Gauge {
    /// Records `request`, to a store that puts `prefix` bytes before each key.
    pub(crate) fn note(&self, request: &CommitRequest, prefix: usize) {
        let ranges = request.read_conflicts.len() + request.write_conflicts.len();
        self.bytes.fetch_max(request.bytes(prefix) as u64, Ordering::Relaxed);
        self.mutations
            .fetch_max(request.mutations.len() as u64, Ordering::Relaxed);
        self.ranges.fetch_max(ranges as u64, Ordering::Relaxed);
    }

    /// The maxima so far.
    pub(crate) fn largest(&self) -> Largest {
        Largest {
            bytes: self.bytes.load(Ordering::Relaxed),
            mutations: self.mutations.load(Ordering::Relaxed),
            ranges: self.ranges.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::{CONFLICT_BYTES, MUTATION_BYTES};
    use crate::{MemoryStore, immediate};

    #[test]
    fn the_maximum_of_each_figure_is_kept() {
        let store = MemoryStore::new().store();
        let commit = |rows: u8, value: &[u8], read: bool| {
            let transaction = store.begin();
            for row in 0..rows {
                transaction.set(&[row], value).expect("within limits");
            }
            if read {
                immediate(transaction.get(b"k")).expect("readable");
            }
            immediate(transaction.commit()).expect("committed");
        };
        commit(3, b"", true);
        commit(1, &[7; 900], false);
        let largest = store.clone().largest();
        assert_eq!((largest.mutations, largest.ranges), (3, 1));
        let bytes = 900 + 1 + MUTATION_BYTES + 3 + CONFLICT_BYTES;
        assert_eq!(largest.bytes, bytes as u64);
    }
}
