//! Restoring a backup into an empty store.

use std::collections::BTreeMap;

use annals_db::{ClaimedStore, Cuts, Extent, RestoreError};
use annals_event::{Batch, Thinned};
use annals_host::process::FIRST_SHARD;
use annals_ids::{BatchNumber, Hash, LeafIndex, LogPosition, OwnerId, WallTime};
use annals_store::{ArchivedBatch, Store, layout::lineage::Lineage, segment::Leaf};
use thiserror::Error;

use super::{
    content::{self, ContentError},
    manifest::Manifest,
    target::Target,
};

/// The end of a restoration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The end of the backup.
    End,
    /// The first batch that was closed after this moment, by its writer's clock; it is not included.
    Moment(WallTime),
    /// This batch; it is included.
    Batch(LogPosition),
    /// This number of leaves.
    Leaves(u64),
}

/// Why a backup was not restored.
#[derive(Debug, Error)]
pub enum RestoreFailed {
    /// Error in the content of the backup.
    #[error("the backup cannot be used; `annals backup verify` lists its faults")]
    Content(#[from] ContentError),
    /// Error of the store.
    #[error("the store cannot be written")]
    Store(#[from] RestoreError),
    /// The requested end lies beyond the backup.
    #[error("the backup ends at leaf {leaves}, before {what}")]
    Beyond {
        /// The requested end.
        what: String,
        /// Number of leaves in the backup.
        leaves: u64,
    },
    /// No prefix of the backup is a consistent cut.
    #[error("no prefix of the backup is a consistent cut: a received call is in the log of no sender")]
    NoCut,
}

/// The result of a restoration.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The name of the backup.
    pub backup: String,
    /// Number of leaves restored.
    pub leaves: u64,
    /// Number of leaves requested: the consistent cut may be later (rule F5), or earlier if the backup ends before it.
    pub wanted: u64,
    /// Size of the batches in bytes.
    pub bytes: u64,
    /// Wall time of the newest batch.
    pub latest: WallTime,
    /// The end of each log, and the hash of its owner's state there.
    pub states: BTreeMap<OwnerId, (LogPosition, Hash)>,
}

/// Restores a backup into a store that is empty or holds an unfinished restoration. The realm may get another name.
///
/// # Errors
/// When the backup is damaged or ends before the requested point, or the store is not empty or cannot be written. An
/// unfinished store is marked as such and is no realm.
pub async fn restore(
    target: &Target,
    manifest: &Manifest,
    until: Until,
    (name, now): (&str, WallTime),
    store: Store,
) -> Result<Restored, RestoreFailed> {
    let backup = manifest.name();
    let claimed = ClaimedStore::claim(store, &backup).await?;
    let found = find_cut(target, manifest, until).await?;
    let rows = content::read_rows(target, manifest).await?;
    let mut restoring = claimed.begin(FIRST_SHARD, &rows, &found.extent).await?;
    let leaves = found.extent.leaves;
    let mut next = 0;
    for piece in &manifest.segments {
        for leaf in content::read_next(target, manifest, piece, next).await? {
            if leaf.leaf.0 < leaves {
                restoring.take(leaf.leaf, leaf.archived).await?;
            }
        }
        next = next.max(piece.last + 1);
        if next >= leaves {
            break;
        }
    }
    let lineage = Lineage {
        leaf: LeafIndex(leaves),
        restored: now,
        from: manifest.realm.clone(),
        to: name.to_owned(),
        backup,
    };
    let root = manifest.root().filter(|_| leaves == manifest.leaves);
    let states = restoring.finish(root, &lineage).await?;
    let ends = found.extent.logs;
    let position = |owner| LogPosition {
        owner,
        batch: ends.get(&owner).copied().unwrap_or_default(),
    };
    Ok(Restored {
        backup: manifest.name(),
        leaves,
        wanted: found.wanted,
        bytes: found.bytes,
        latest: found.latest,
        states: states
            .into_iter()
            .map(|(owner, state)| (owner, (position(owner), state)))
            .collect(),
    })
}

/// A cut, and the prefix before it.
#[derive(Clone, Debug, Default)]
struct Cut {
    extent: Extent,
    wanted: u64,
    bytes: u64,
    latest: WallTime,
}

/// Finds the consistent cut for `until`: the first at or after it, else the last before it (rule F5).
async fn find_cut(target: &Target, manifest: &Manifest, until: Until) -> Result<Cut, RestoreFailed> {
    let mut search = Search::new(until, manifest);
    let mut next = 0;
    for piece in &manifest.segments {
        for leaf in content::read_next(target, manifest, piece, next).await? {
            if search.take(&leaf).map_err(|why| ContentError::Damaged {
                piece: piece.path(),
                why,
            })? {
                return Ok(search.cut);
            }
        }
        next = next.max(piece.last + 1);
    }
    search.end(manifest)
}

/// The search for a cut, leaf by leaf.
struct Search {
    until: Until,
    cuts: Cuts,
    /// The newest consistent cut. The number of leaves wanted is known only when they are passed.
    cut: Cut,
    wanted: Option<u64>,
    /// Leaves after that cut.
    behind: Vec<(OwnerId, BatchNumber, WallTime, u64)>,
}

impl Search {
    fn new(until: Until, manifest: &Manifest) -> Self {
        let wanted = match until {
            Until::Leaves(leaves) => Some(leaves),
            Until::End => Some(manifest.leaves),
            Until::Moment(_) | Until::Batch(_) => None,
        };
        Self {
            until,
            cuts: Cuts::default(),
            cut: Cut::default(),
            wanted,
            behind: Vec::new(),
        }
    }

    /// Takes the next leaf, unless the cut lies before it. Returns whether it does.
    fn take(&mut self, leaf: &Leaf) -> Result<bool, String> {
        let before = leaf.leaf.0;
        if matches!(self.until, Until::Moment(moment) if leaf.wall > moment) {
            self.wanted.get_or_insert(before);
        }
        if let Some(wanted) = self.wanted.filter(|wanted| *wanted <= before && self.behind.is_empty()) {
            self.cut.wanted = wanted;
            return Ok(true);
        }
        let at = LogPosition {
            owner: leaf.owner,
            batch: leaf.batch,
        };
        if self.until == Until::Batch(at) {
            self.wanted.get_or_insert(before + 1);
        }
        self.behind
            .push((leaf.owner, leaf.batch, leaf.wall, leaf.archived.size() as u64));
        let is_cut = match &leaf.archived {
            ArchivedBatch::Whole(bytes) => Batch::read(bytes).map(|batch| self.cuts.take(&batch)),
            ArchivedBatch::Thinned(bytes) => Thinned::read(bytes).map(|batch| self.cuts.take_thinned(&batch)),
        };
        if is_cut.map_err(|error| format!("leaf {}: {error}", leaf.leaf))? {
            for (owner, batch, wall, bytes) in self.behind.drain(..) {
                self.cut.extent.leaves += 1;
                self.cut.extent.logs.insert(owner, batch);
                self.cut.bytes += bytes;
                self.cut.latest = self.cut.latest.max(wall);
            }
        }
        Ok(false)
    }

    /// Ends the search at the end of the backup.
    fn end(mut self, manifest: &Manifest) -> Result<Cut, RestoreFailed> {
        let leaves = self.cut.extent.leaves + self.behind.len() as u64;
        let beyond = |what: String| RestoreFailed::Beyond { what, leaves };
        if leaves < manifest.leaves {
            return Err(ContentError::Missing(format!("the segment of leaf {leaves}")).into());
        }
        self.cut.wanted = match (self.until, self.wanted) {
            (Until::Batch(at), None) => return Err(beyond(format!("batch {} of owner {}", at.batch, at.owner))),
            (Until::Leaves(wanted), _) if wanted > leaves => return Err(beyond(format!("leaf {wanted}"))),
            (_, wanted) => wanted.unwrap_or(leaves),
        };
        if self.cut.extent.leaves == 0 && leaves > 0 {
            return Err(RestoreFailed::NoCut);
        }
        Ok(self.cut)
    }
}

impl Restored {
    /// The last batch of a log that was restored.
    #[must_use]
    pub fn end_of(&self, owner: OwnerId) -> BatchNumber {
        self.states.get(&owner).map(|(at, _)| at.batch).unwrap_or_default()
    }
}
