//! What readers may see: the versions that are on disk, back to the oldest that a transaction may still read at.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use crate::embedded::files::RowsSnapshot;
use crate::limits::TRANSACTION_AGE;
use crate::{StoreError, Version};

/// The published versions. The committer adds to them; every reader looks here.
pub(super) struct Published {
    versions: RwLock<Versions>,
    /// Why the store has stopped, once it has.
    poison: OnceLock<Arc<str>>,
}

/// How much a store has written since it was opened; one flush of the disk for each group.
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
    /// When each version but the newest ceased to be that.
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

    /// The version a transaction that begins now reads at.
    pub(super) fn newest(&self) -> Result<Version, StoreError> {
        match self.poison() {
            Some(poison) => Err(poison),
            None => Ok(self.versions.read().unwrap_or_else(PoisonError::into_inner).newest),
        }
    }

    /// The rows at a version that was published.
    pub(super) fn at(&self, version: Version) -> Result<Arc<RowsSnapshot>, StoreError> {
        let versions = self.versions.read().unwrap_or_else(PoisonError::into_inner);
        // A version that is not there was published before the oldest kept, by this process or the one before it.
        versions.snapshots.get(&version).cloned().ok_or(StoreError::TooOld)
    }

    /// How much has been published.
    pub(super) fn written(&self) -> Written {
        self.versions.read().unwrap_or_else(PoisonError::into_inner).written
    }

    /// Publishes a group of so many commits at `now`, as a version, and gives the oldest version that is still kept.
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
        // Letting go of a snapshot may start a collection of what it kept: not under the lock.
        drop(dropped);
        oldest
    }

    /// Stops the store for a reason; the first one stays.
    pub(super) fn set_poison(&self, reason: Arc<str>) {
        let _ = self.poison.set(reason);
    }

    /// The error that everything meets from now on, once the store has stopped.
    pub(super) fn poison(&self) -> Option<StoreError> {
        self.poison.get().map(|reason| StoreError::Poisoned(Arc::clone(reason)))
    }
}
