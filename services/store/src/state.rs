//! A whole store as a value: the store of the simulation, wrapped by the store in memory.
//!
//! Pure: time is an argument, everything is ordered, and each call is one step. Commits go through the same
//! [`Sequencer`] as in the embedded store, each in a group of its own.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use crate::backend::PageBuilder;
use crate::limits::{self, PAGE_BYTES, TRANSACTION_AGE};
use crate::sequencer::{Group, Rows, Sequencer};
use crate::watches::Watches;
use crate::{CommitRequest, Committed, KeyRange, Page, RangeRead, ScanOrder, StoreError, Version};

/// Identifies a watch of a [`StoreState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(pub u64);

/// A store in memory.
///
/// [`Self::commit`], [`Self::watch`] and [`Self::unwatch`] change it; after each of them, drain [`Self::poll_fired`].
#[derive(Debug)]
pub struct StoreState {
    sequencer: Sequencer,
    history: History,
    newest: Version,
    /// Whether commits share a version until one is requested for reading.
    shares_versions: bool,
    /// Whether the newest version was given out as a read version.
    is_read: bool,
    /// When each older version stopped being the newest. It can be forgotten [`TRANSACTION_AGE`] later.
    superseded: VecDeque<(Duration, Version)>,
    watches: Watches<WatchId>,
    next_watch: WatchId,
    fired: VecDeque<WatchId>,
}

impl Default for StoreState {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreState {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sequencer: Sequencer::new(Version(0)),
            history: History::default(),
            newest: Version(0),
            shares_versions: false,
            is_read: true,
            superseded: VecDeque::new(),
            watches: Watches::default(),
            next_watch: WatchId(0),
            fired: VecDeque::new(),
        }
    }

    /// An empty store that gives one version to all commits between two requests for a read version, as FoundationDB
    /// does for commits that it processes together.
    #[must_use]
    pub fn sharing_versions() -> Self {
        Self {
            shares_versions: true,
            ..Self::new()
        }
    }

    /// The read version of a transaction that begins now.
    #[must_use]
    pub fn read_version(&mut self) -> Version {
        self.is_read = true;
        self.newest
    }

    /// The value of `key` at a version.
    ///
    /// # Errors
    /// [`StoreError::TooOld`].
    pub fn get(&self, at: Version, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.check_kept(at)?;
        Ok(self.history.get(at, key).cloned())
    }

    /// Rows of a range at a version.
    ///
    /// # Errors
    /// [`StoreError::TooOld`].
    pub fn get_range(&self, at: Version, read: &RangeRead) -> Result<Page, StoreError> {
        self.check_kept(at)?;
        let mut page = PageBuilder::new(read.limit, PAGE_BYTES);
        self.history.scan(at, &read.range, read.order, |key, value| {
            page.push(key.clone(), value.clone())
        });
        Ok(page.finish())
    }

    /// Applies a transaction at time `now`, which must not decrease, or rejects it.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::TooOld`] or a limit; then nothing was applied.
    pub fn commit(&mut self, now: Duration, request: &CommitRequest) -> Result<Committed, StoreError> {
        self.forget(now);
        if request.changes_nothing() {
            limits::check_commit(request, 0)?;
            let version = request.read_version.unwrap_or_else(|| self.read_version());
            return Ok(Committed::nothing(version));
        }
        if self.shares_versions && !self.is_read {
            self.sequencer.share_version();
        }
        let mut group = Group::default();
        let committed = self.sequencer.admit(&mut group, request, &self.history)?;
        if group.version > self.newest {
            self.superseded.push_back((now, self.newest));
            self.newest = group.version;
            self.is_read = false;
        }
        for (key, value) in group.writes {
            self.fired.extend(self.watches.changed(&key, value.as_deref()));
            self.history.write(group.version, key, value);
        }
        Ok(committed)
    }

    /// Registers a watch that fires when `key` has a value other than `seen`.
    ///
    /// # Errors
    /// [`StoreError::TooManyWatches`].
    pub fn watch(&mut self, key: Bytes, seen: Option<Bytes>) -> Result<WatchId, StoreError> {
        if self.watches.is_full() {
            return Err(StoreError::TooManyWatches);
        }
        let watch = self.next_watch;
        let current = self.history.get(self.newest, &key);
        self.fired
            .extend(self.watches.add(key, seen, current.map(AsRef::as_ref), watch));
        self.next_watch = WatchId(watch.0 + 1);
        Ok(watch)
    }

    /// Cancels a watch.
    pub fn unwatch(&mut self, watch: WatchId) {
        self.watches.retain(|&waiting| waiting != watch);
        self.fired.retain(|&fired| fired != watch);
    }

    /// The next watch that has fired. Drain this after every change.
    pub fn poll_fired(&mut self) -> Option<WatchId> {
        self.fired.pop_front()
    }

    /// Number of keys that range reads and range clears have visited so far, including keys deleted within the last
    /// [`TRANSACTION_AGE`]. This is the cost of such a call in a store that keeps deleted keys for a while, as most do.
    #[must_use]
    pub fn walked(&self) -> u64 {
        self.history.walked.get()
    }

    /// All current rows, for checkers.
    #[must_use]
    pub fn rows(&self) -> BTreeMap<Bytes, Bytes> {
        let mut rows = BTreeMap::new();
        self.history.scan(
            self.newest,
            &KeyRange::everything(),
            ScanOrder::Forward,
            |key, value| {
                rows.insert(key.clone(), value.clone());
                true
            },
        );
        rows
    }

    fn check_kept(&self, at: Version) -> Result<(), StoreError> {
        if at < self.sequencer.oldest() {
            return Err(StoreError::TooOld);
        }
        if at > self.newest {
            return Err(StoreError::Corrupt(
                format!("a read at version {at}, and the last is {}", self.newest).into(),
            ));
        }
        Ok(())
    }

    /// Forgets values that no transaction can read any more.
    fn forget(&mut self, now: Duration) {
        let kept = self
            .superseded
            .partition_point(|&(since, _)| now.saturating_sub(since) > TRANSACTION_AGE);
        if kept > 0 {
            self.superseded.drain(..kept);
            let oldest = self.superseded.front().map_or(self.newest, |&(_, version)| version);
            self.sequencer.forget_before(oldest);
            self.history.forget_before(oldest);
        }
    }
}

/// All values of each key, back to the oldest readable version.
#[derive(Debug, Default)]
struct History {
    /// The values of each key, oldest first, each with the version that wrote it.
    values: BTreeMap<Bytes, Vec<(Version, Option<Bytes>)>>,
    /// Keys that were overwritten, and at which version: their earlier values can be dropped later.
    rewritten: VecDeque<(Version, Bytes)>,
    /// Number of keys that scans have visited.
    walked: Cell<u64>,
}

impl History {
    fn get(&self, at: Version, key: &[u8]) -> Option<&Bytes> {
        self.values.get(key).and_then(|values| value_at(values, at))
    }

    /// Passes the rows at a version to `take` until it returns false.
    fn scan(&self, at: Version, range: &KeyRange, order: ScanOrder, mut take: impl FnMut(&Bytes, &Bytes) -> bool) {
        if range.is_empty() {
            return;
        }
        let rows = self.values.range::<[u8], _>(range.bounds());
        let rows = rows.inspect(|_| self.walked.set(self.walked.get() + 1));
        let rows = rows.filter_map(|(key, values)| value_at(values, at).map(|value| (key, value)));
        match order {
            ScanOrder::Forward => rows.take_while(|(key, value)| take(key, value)).for_each(drop),
            ScanOrder::Reverse => rows.rev().take_while(|(key, value)| take(key, value)).for_each(drop),
        }
    }

    fn write(&mut self, version: Version, key: Bytes, value: Option<Bytes>) {
        let values = self.values.entry(key.clone()).or_default();
        if !values.is_empty() || value.is_none() {
            self.rewritten.push_back((version, key));
        }
        values.push((version, value));
    }

    fn forget_before(&mut self, oldest: Version) {
        while let Some((version, _)) = self.rewritten.front()
            && *version <= oldest
        {
            let Some((_, key)) = self.rewritten.pop_front() else {
                break;
            };
            let Some(values) = self.values.get_mut(&key) else {
                continue;
            };
            // The newest value that every remaining reader can see. Earlier values are dropped; so is this one if it is
            // a deletion.
            let visible = values
                .partition_point(|(version, _)| *version <= oldest)
                .saturating_sub(1);
            values.drain(..visible);
            if let [(version, None)] = values[..]
                && version <= oldest
            {
                self.values.remove(&key);
            }
        }
    }
}

fn value_at(values: &[(Version, Option<Bytes>)], at: Version) -> Option<&Bytes> {
    values
        .iter()
        .rev()
        .find(|(version, _)| *version <= at)
        .and_then(|(_, value)| value.as_ref())
}

impl Rows for History {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.get(Version(u64::MAX), key).cloned())
    }

    fn keys(&self, range: &KeyRange, limit: usize) -> Result<Vec<Bytes>, StoreError> {
        let mut keys = Vec::new();
        self.scan(Version(u64::MAX), range, ScanOrder::Forward, |key, _| {
            keys.push(key.clone());
            keys.len() < limit
        });
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mutation;

    fn set(key: &'static [u8], value: &'static [u8]) -> CommitRequest {
        let mutation = Mutation::Set {
            key: Bytes::from_static(key),
            value: Bytes::from_static(value),
        };
        CommitRequest {
            mutations: vec![mutation],
            ..CommitRequest::default()
        }
    }

    fn clear(key: &'static [u8]) -> CommitRequest {
        let mutation = Mutation::Clear {
            key: Bytes::from_static(key),
        };
        CommitRequest {
            mutations: vec![mutation],
            ..CommitRequest::default()
        }
    }

    #[test]
    fn old_versions_are_readable_for_five_seconds() {
        let mut state = StoreState::new();
        let at = |seconds| Duration::from_secs(seconds);
        let first = state.commit(at(0), &set(b"k", b"1")).unwrap().version;
        state.commit(at(1), &clear(b"k")).unwrap();
        state.commit(at(2), &set(b"other", b"1")).unwrap();
        assert_eq!(state.get(first, b"k").unwrap().as_deref(), Some(&b"1"[..]));

        state.commit(at(6), &set(b"other", b"2")).unwrap();
        assert!(state.get(first, b"k").is_ok(), "it was the newest until second 1");
        state.commit(at(8), &set(b"other", b"3")).unwrap();
        assert_eq!(state.get(first, b"k"), Err(StoreError::TooOld));
        let newest = state.read_version();
        assert_eq!(state.get(newest, b"k"), Ok(None));
        assert!(
            !state.history.values.contains_key(&b"k"[..]),
            "a cleared key leaves nothing behind"
        );
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_commits() {
        let mut state = StoreState::new();
        for second in 0..1_000 {
            state.commit(Duration::from_secs(second), &set(b"k", b"1")).unwrap();
            state.commit(Duration::from_secs(second), &clear(b"k")).unwrap();
        }
        assert!(state.history.values.values().map(Vec::len).sum::<usize>() < 20);
        assert!(state.history.rewritten.len() < 20 && state.superseded.len() < 20);
    }
}
