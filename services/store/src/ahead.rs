//! Reading ahead: what a transaction that conflicted has read, read again at one version and all at the same time.
//!
//! Each read of a transaction waits for the one before it. Where a store is a network away, a transaction with many reads
//! lasts long, and under contention one that is shorter always commits first. A repetition knows what it will read.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};

use crate::{Backend, Page, RangeRead, Version};

/// Maximum keys that are noted: more would be a transaction that no repetition makes short.
const MAX_KEYS: usize = 1_024;

/// Maximum ranges that are noted.
const MAX_RANGES: usize = 32;

/// Maximum reads sent at the same time: their answers, each as large as a page can be, have to fit into the memory that a
/// remote store has for requests.
const MAX_AT_ONCE: usize = 64;

/// The reads of a transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    keys: BTreeSet<Bytes>,
    ranges: Vec<RangeRead>,
}

impl Reads {
    pub(crate) fn note_key(&mut self, key: &[u8]) {
        if self.keys.len() < MAX_KEYS && !self.keys.contains(key) {
            self.keys.insert(Bytes::copy_from_slice(key));
        }
    }

    pub(crate) fn note_range(&mut self, read: &RangeRead) {
        if self.ranges.len() < MAX_RANGES && !self.ranges.contains(read) {
            self.ranges.push(read.clone());
        }
    }
}

/// Answers of the store at one version.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    values: HashMap<Bytes, Option<Bytes>>,
    pages: Vec<(RangeRead, Page)>,
}

impl Ahead {
    /// Reads at a version. A read that fails is left out: the transaction sends it itself.
    pub(crate) fn read<'a>(backend: &'a dyn Backend, at: Version, reads: &'a Reads) -> BoxFuture<'a, Self> {
        let keys = reads.keys.iter().map(|key| read_key(backend, at, key).boxed());
        let ranges = reads.ranges.iter().map(|read| read_range(backend, at, read).boxed());
        let answers: Vec<BoxFuture<'_, _>> = keys.chain(ranges).collect();
        let mut answers = stream::iter(answers).buffer_unordered(MAX_AT_ONCE);
        async move {
            let mut ahead = Self::default();
            while let Some(answer) = answers.next().await {
                match answer {
                    Some(Answer::Value(key, value)) => drop(ahead.values.insert(key, value)),
                    Some(Answer::Page(read, page)) => ahead.pages.push((read, page)),
                    None => {}
                }
            }
            ahead
        }
        .boxed()
    }

    /// The value of a key, if it was read.
    pub(crate) fn value(&self, key: &[u8]) -> Option<&Option<Bytes>> {
        self.values.get(key)
    }

    /// The answer to a read of a range, if the same was read.
    pub(crate) fn page(&self, read: &RangeRead) -> Option<&Page> {
        self.pages
            .iter()
            .find_map(|(held, page)| (held == read).then_some(page))
    }
}

enum Answer {
    Value(Bytes, Option<Bytes>),
    Page(RangeRead, Page),
}

async fn read_key(backend: &dyn Backend, at: Version, key: &Bytes) -> Option<Answer> {
    let value = backend.get(at, key).await.ok()?;
    Some(Answer::Value(key.clone(), value))
}

async fn read_range(backend: &dyn Backend, at: Version, read: &RangeRead) -> Option<Answer> {
    let page = backend.get_range(at, read.clone()).await.ok()?;
    Some(Answer::Page(read.clone(), page))
}
