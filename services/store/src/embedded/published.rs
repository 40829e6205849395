//! The versions that readers may see: those on disk, back to the oldest that a transaction may still read at.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use crate::embedded::files::RowsSnapshot;
use crate::limits::TRANSACTION_AGE;
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
            superseded: VecDeque::new(),
        };
        Self {
            versions: RwLock::new(versions),
            poison: OnceLock::new(),
        }
    }

    /// The read version of a transaction that begins now.
    pub(super) fn newest(&self) -> Result<Version, StoreError> {
        match self.poison() {
            Some(poison) => Err(poison),
            None => Ok(self.versions.read().unwrap_or_else(PoisonError::into_inner).newest),
        }
    }

    /// The rows at a published version.
    pub(super) fn at(&self, version: Version) -> Result<Arc<RowsSnapshot>, StoreError> {
        let versions = self.versions.read().unwrap_or_else(PoisonError::into_inner);
        // A version that is not there was published before the oldest kept, by this process or its predecessor.
        versions.snapshots.get(&version).cloned().ok_or(StoreError::TooOld)
    }

    /// Amount published so far.
    pub(super) fn written(&self) -> Written {
        self.versions.read().unwrap_or_else(PoisonError::into_inner).written
    }

    /// Publishes a group of `commits` commits as `version` at time `now`. Returns the oldest version still kept.
    pub(super) fn publish(&self, now: Duration, commits: usize, version: Version, rows: RowsSnapshot) -> Version {
        let mut dropped = Vec::new();
        let mut versions = self.versions.write().unwrap_or_else(PoisonError::into_inner);
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
        drop(dropped);
        oldest
    }

    /// Stops the store with a reason; the first reason is kept.
    pub(super) fn set_poison(&self, reason: Arc<str>) {
        let _ = self.poison.set(reason);
    }

    /// The error that every call returns once the store has stopped.
    pub(super) fn poison(&self) -> Option<StoreError> {
        self.poison.get().map(|reason| StoreError::Poisoned(Arc::clone(reason)))
    }
}
