//! The versions that readers may see: those on disk, back to the oldest that a transaction may still read at, and the one
//! that is being written, for those that read what is submitted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::embedded::files::RowsSnapshot;
use crate::embedded::view::View;
use crate::limits::TRANSACTION_AGE;
use crate::sequencer::Writes;
use crate::{StoreError, Version};

/// The published versions. The committer adds to them; every reader looks them up.
pub(super) struct Published {
    versions: RwLock<Versions>,
    /// Why the store has stopped, if it has.
    poison: OnceLock<Arc<str>>,
}

/// Amount that a store has written since it was opened. Each group is one flush to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Groups made durable.
    pub groups: u64,
    /// Commits in them.
    pub commits: u64,
}

struct Versions {
    written: Written,
    newest: Version,
    snapshots: BTreeMap<Version, Arc<RowsSnapshot>>,
    /// The version of the group that is being written, and its writes, if it was announced.
    announced: Option<(Version, Arc<Writes>)>,
    /// When each older version stopped being the newest.
    superseded: VecDeque<(Duration, Version)>,
}

impl Published {
    /// Publishes the first version.
    pub(super) fn new(version: Version, rows: RowsSnapshot) -> Self {
        let snapshots = BTreeMap::from([(version, Arc::new(rows))]);
        let versions = Versions {
            written: Written::default(),
            newest: version,
            snapshots,
            announced: None,
            superseded: VecDeque::new(),
        };
        Self {
            versions: RwLock::new(versions),
            poison: OnceLock::new(),
        }
    }

    /// The read version of a transaction that begins now.
    pub(super) fn newest(&self) -> Result<Version, StoreError> {
        self.check_running()?;
        Ok(self.read().newest)
    }

    /// The announced version; the newest if there is none.
    pub(super) fn submitted(&self) -> Result<Version, StoreError> {
        self.check_running()?;
        let versions = self.read();
        let announced = versions.announced.as_ref().map(|(version, _)| *version);
        Ok(announced.unwrap_or(versions.newest))
    }

    /// The rows at a published version, or at the announced one.
    pub(super) fn at(&self, version: Version) -> Result<View, StoreError> {
        let versions = self.read();
        if let Some(rows) = versions.snapshots.get(&version) {
            return Ok(View::of(Arc::clone(rows)));
        }
        match (&versions.announced, versions.snapshots.get(&versions.newest)) {
            (Some((announced, writes)), Some(rows)) if *announced == version => {
                Ok(View::with(Arc::clone(rows), Arc::clone(writes)))
            }
            // It was published before the oldest kept, by this process or its predecessor, or its write has failed.
            _ => Err(self.poison().unwrap_or(StoreError::TooOld)),
        }
    }

    /// Lets transactions that read what is submitted read a group before it is on disk.
    pub(super) fn announce(&self, version: Version, writes: Arc<Writes>) {
        self.write().announced = Some((version, writes));
    }

    /// Amount published so far.
    pub(super) fn written(&self) -> Written {
        self.read().written
    }

    /// Publishes a group of `commits` commits as `version` at time `now`. Returns the oldest version still kept.
    pub(super) fn publish(&self, now: Duration, commits: usize, version: Version, rows: RowsSnapshot) -> Version {
        let mut dropped = Vec::new();
        let mut versions = self.write();
        let announced = versions.announced.take();
        versions.written.groups += 1;
        versions.written.commits += commits as u64;
        let before = std::mem::replace(&mut versions.newest, version);
        versions.superseded.push_back((now, before));
        versions.snapshots.insert(version, Arc::new(rows));
        while let Some(&(since, old)) = versions.superseded.front()
            && now.saturating_sub(since) > TRANSACTION_AGE
        {
            versions.superseded.pop_front();
            dropped.extend(versions.snapshots.remove(&old));
        }
        let oldest = versions.superseded.front().map_or(version, |&(_, oldest)| oldest);
        drop(versions);
        // Dropping a snapshot may start a garbage collection of what it kept: not under the lock.
        drop((dropped, announced));
        oldest
    }

    /// Stops the store with a reason; the first reason is kept.
    pub(super) fn set_poison(&self, reason: Arc<str>) {
        let _ = self.poison.set(reason);
        // It may never be on disk.
        self.write().announced = None;
    }

    /// The error that every call returns once the store has stopped.
    pub(super) fn poison(&self) -> Option<StoreError> {
        self.poison.get().map(|reason| StoreError::Poisoned(Arc::clone(reason)))
    }

    fn check_running(&self) -> Result<(), StoreError> {
        self.poison().map_or(Ok(()), Err)
    }

    fn read(&self) -> RwLockReadGuard<'_, Versions> {
        self.versions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Versions> {
        self.versions.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::embedded::files::Files;

    const KEY: &[u8] = b"k";

    fn value_at(published: &Published, version: Result<Version, StoreError>) -> Result<Option<Bytes>, StoreError> {
        published.at(version?)?.get(KEY)
    }

    #[test]
    fn a_group_that_is_being_written_is_read_by_pipelined_transactions_only() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = Files::open(directory.path()).expect("a new store");
        let published = Published::new(Version(1), files.snapshot());
        let group = |value: &'static [u8]| {
            let write = (Bytes::from_static(KEY), Some(Bytes::from_static(value)));
            Arc::new(Writes::from([write]))
        };
        let read = |pipelined: bool| {
            let version = match pipelined {
                true => published.submitted(),
                false => published.newest(),
            };
            value_at(&published, version).map(|value| value.map(|value| value.to_vec()))
        };

        let first = group(b"1");
        published.announce(Version(2), Arc::clone(&first));
        assert_eq!((read(true), read(false)), (Ok(Some(b"1".to_vec())), Ok(None)));

        files.write(&first, Version(2)).expect("the disk has room");
        published.publish(Duration::ZERO, 1, Version(2), files.snapshot());
        assert_eq!(read(true), Ok(Some(b"1".to_vec())));
        assert_eq!(read(false), read(true));

        published.announce(Version(3), group(b"2"));
        published.set_poison("a disk is full".into());
        let poisoned = Err(StoreError::Poisoned("a disk is full".into()));
        assert_eq!((read(true), read(false)), (poisoned.clone(), poisoned.clone()));
        assert_eq!(published.at(Version(3)).map(drop), poisoned.map(drop));
    }
}
