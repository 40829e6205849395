//! Orders commits: checks each against the commits before it, assigns its version, and computes its writes.
//!
//! Pure, and the only place where serializability is decided: the embedded store, the store in memory and the
//! simulation all commit through it. Commits are gathered into a [`Group`], which its owner makes durable in one write:
//!
//! 1. [`Sequencer::admit`] each request of the group, in any order;
//! 2. write `group.writes` and `group.version` durably and atomically;
//! 3. only then answer the requests and let readers see `group.version`, except for those that accept that it may be lost.
//!
//! If step 2 fails, the sequencer has already counted the group: the owner must stop for good.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::limits::{self, CLEARED_KEYS};
use crate::mutation::added;
use crate::resolver::Resolver;
use crate::{CommitRequest, KeyRange, Mutation, StoreError, Version, Versionstamp};

/// The committed data, without the group being gathered.
pub(crate) trait Rows {
    /// The value at `key`.
    ///
    /// # Errors
    /// When the data cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// The first keys of `range` that have a value, at most `limit`.
    ///
    /// # Errors
    /// When the data cannot be read.
    fn keys(&self, range: &KeyRange, limit: usize) -> Result<Vec<Bytes>, StoreError>;
}

/// Version and versionstamp of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The version at which its writes can be read. Other commits may share it.
    pub version: Version,
    /// Its versionstamp, which orders commits; all zeros for a transaction that wrote nothing.
    pub stamp: Versionstamp,
}

impl Committed {
    /// For a transaction that changed nothing, and that read at `version` or committed when it was the newest.
    #[must_use]
    pub fn nothing(version: Version) -> Self {
        Self {
            version,
            stamp: Versionstamp::default(),
        }
    }
}

/// The new value of every written key; none if the key is cleared.
pub(crate) type Writes = BTreeMap<Bytes, Option<Bytes>>;

/// Commits that become durable together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) writes: Writes,
    /// The version of its last commit.
    pub(crate) version: Version,
    /// Number of commits.
    pub(crate) commits: usize,
    /// Bytes of keys and values in `writes`, without those overwritten within the group.
    pub(crate) bytes: usize,
}

/// Assigns the order of commits.
#[derive(Debug)]
pub(crate) struct Sequencer {
    resolver: Resolver,
    /// Stamp of the last commit.
    last: Versionstamp,
    /// Whether the next commit shares the last one's version.
    is_shared: bool,
}

impl Sequencer {
    /// Continues after version `last`. Transactions that read before it are too old: the writes that they may have
    /// missed are not known.
    pub(crate) fn new(last: Version) -> Self {
        Self {
            resolver: Resolver::new(last),
            last: Versionstamp::new(last, 0),
            is_shared: false,
        }
    }

    /// The oldest read version that may still commit.
    pub(crate) fn oldest(&self) -> Version {
        self.resolver.oldest()
    }

    /// Makes transactions that read before `oldest` too old.
    pub(crate) fn forget_before(&mut self, oldest: Version) {
        self.resolver.forget_before(oldest);
    }

    /// Gives the next commit the version of the last one and the next position in it, as FoundationDB does for commits
    /// that it processes together. That version must not have been given out for reading.
    pub(crate) fn share_version(&mut self) {
        self.is_shared = self.last.place() < u16::MAX;
    }

    /// Checks `request` against every commit before it and adds its writes to `group`; `rows` is the data before the
    /// group.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::TooOld`], a limit, or the read error of `rows`; then nothing was added.
    pub(crate) fn admit(
        &mut self,
        group: &mut Group,
        request: &CommitRequest,
        rows: &impl Rows,
    ) -> Result<Committed, StoreError> {
        let is_shared = std::mem::take(&mut self.is_shared);
        limits::check_commit(request, 0)?;
        self.judge(request)?;

        let last = self.last.version();
        let stamp = if is_shared {
            Versionstamp::new(last, self.last.place() + 1)
        } else {
            Versionstamp::new(Version(last.0 + 1), 0)
        };
        let version = stamp.version();
        let mut overlay = Overlay {
            rows,
            group: &group.writes,
            writes: Writes::new(),
        };
        for mutation in &request.mutations {
            overlay.apply(mutation, stamp)?;
        }
        let writes = overlay.writes;

        self.last = stamp;
        for mutation in &request.mutations {
            self.note(mutation, version, stamp);
        }
        for range in &request.write_conflicts {
            self.resolver.record(range, version);
        }
        group.bytes += writes
            .iter()
            .map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len))
            .sum::<usize>();
        if group.writes.is_empty() {
            group.writes = writes;
        } else {
            group.writes.extend(writes);
        }
        group.version = version;
        group.commits += 1;
        Ok(Committed { version, stamp })
    }

    /// Records the keys that a mutation writes.
    fn note(&mut self, mutation: &Mutation, version: Version, stamp: Versionstamp) {
        match mutation {
            Mutation::Set { key, .. }
            | Mutation::Clear { key }
            | Mutation::Add { key, .. }
            | Mutation::SetStampedValue { key, .. } => self.resolver.record_key(key, version),
            Mutation::SetStampedKey { key, .. } => self.resolver.record_key(&key.with(stamp), version),
            Mutation::ClearRange { range } => self.resolver.record(range, version),
        }
    }

    fn judge(&self, request: &CommitRequest) -> Result<(), StoreError> {
        let Some(at) = request.read_version else {
            return Ok(());
        };
        if at < self.resolver.oldest() {
            return Err(StoreError::TooOld);
        }
        let last = self.last.version();
        if at > last {
            return Err(StoreError::Corrupt(
                format!("a read at version {at}, and the last is {last}").into(),
            ));
        }
        // Nothing was written since `at` if that is the last version: so it is of most transactions that are pipelined.
        if at < last
            && request
                .read_conflicts
                .iter()
                .any(|range| self.resolver.conflicts(range, at))
        {
            return Err(StoreError::Conflict);
        }
        Ok(())
    }
}

/// One transaction's writes on top of its group's, on top of the rows.
struct Overlay<'a, R> {
    rows: &'a R,
    group: &'a Writes,
    writes: Writes,
}

impl<R: Rows> Overlay<'_, R> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        match self.writes.get(key).or_else(|| self.group.get(key)) {
            Some(value) => Ok(value.clone()),
            None => self.rows.get(key),
        }
    }

    fn apply(&mut self, mutation: &Mutation, stamp: Versionstamp) -> Result<(), StoreError> {
        match mutation {
            Mutation::Set { key, value } => self.writes.insert(key.clone(), Some(value.clone())),
            Mutation::Clear { key } => self.writes.insert(key.clone(), None),
            Mutation::ClearRange { range } => return self.clear_range(range),
            Mutation::Add { key, delta } => {
                let value = added(self.get(key)?.as_deref(), *delta);
                self.writes.insert(key.clone(), Some(value))
            }
            Mutation::SetStampedKey { key, value } => self.writes.insert(key.with(stamp), Some(value.clone())),
            Mutation::SetStampedValue { key, value } => self.writes.insert(key.clone(), Some(value.with(stamp))),
        };
        Ok(())
    }

    fn clear_range(&mut self, range: &KeyRange) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let stored = self.rows.keys(range, CLEARED_KEYS + 1)?;
        let grouped = self.group.range::<[u8], _>(range.bounds()).map(|(key, _)| key.clone());
        let own: Vec<Bytes> = self
            .writes
            .range::<[u8], _>(range.bounds())
            .map(|(key, _)| key.clone())
            .collect();
        self.writes
            .extend(stored.into_iter().chain(grouped).chain(own).map(|key| (key, None)));
        if self.writes.len() > CLEARED_KEYS {
            return Err(StoreError::ClearTooWide);
        }
        Ok(())
    }
}
