//! Restoring a backup into an empty store.

use std::collections::BTreeMap;

use annals_db::{ClaimedStore, Cuts, Extent, RecoveryError, RestoreError, Restoring, Row};
use annals_event::{Batch, Thinned};
use annals_host::process::FIRST_SHARD;
use annals_ids::{BatchNumber, Hash, LeafIndex, LogPosition, OwnerId, Shard, WallTime};
use annals_store::{ArchivedBatch, Store, layout::lineage::Lineage, segment::Leaf};
use thiserror::Error;

use super::{
    content::{self, ContentError, Leaves},
    manifest::{ArchiveOfShard, Manifest},
    merged::{MergedLeaves, survey},
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
    /// This number of leaves, in a realm of one shard.
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
    /// The rows of the backup do not say in which order its leaves are folded.
    #[error("the rows of the backup cannot be used")]
    Rows(#[source] RecoveryError),
    /// Leaves of several shards have no common number.
    #[error(
        "the backup has leaves of {0} shards, and --leaves counts those of one: say where to end with --moment or --at"
    )]
    SeveralShards(usize),
    /// The requested end lies beyond the backup.
    #[error("the backup ends at leaf {leaves}, before {what}")]
    Beyond {
        /// The requested end.
        what: String,
        /// Number of leaves in the backup.
        leaves: u64,
    },
    /// No prefix of the backup is a consistent cut.
    #[error(
        "no prefix of the backup is a consistent cut: a received call is in the log of no sender, or a call is confirmed \
         that no receiver has in its log"
    )]
    NoCut,
    /// No cut contains the requested batch.
    #[error(
        "no consistent cut of the backup contains batch {} of owner {}: what it depends on was not archived on another \
         shard yet; name an earlier batch, or restore a later backup", .0.batch, .0.owner
    )]
    NotInCut(LogPosition),
}

/// The result of a restoration.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The name of the backup.
    pub backup: String,
    /// Number of leaves restored, of all shards.
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
    let rows = content::read_rows(target, manifest).await?;
    let (found, restoring) = fold((target, manifest), &rows, claimed, until).await?;
    let ends = &found.extent;
    let whole = manifest
        .archives()
        .filter(|(shard, archive)| ends.of(*shard) == archive.leaves);
    let roots: BTreeMap<Shard, Hash> = whole
        .filter_map(|(shard, archive)| Some((shard, archive.root()?)))
        .collect();
    let lineage = Lineage {
        leaf: LeafIndex(ends.of(FIRST_SHARD)),
        others: ends
            .leaves
            .iter()
            .filter(|(shard, _)| **shard != FIRST_SHARD)
            .map(|(_, leaves)| LeafIndex(*leaves))
            .collect(),
        restored: now,
        from: manifest.realm.clone(),
        to: name.to_owned(),
        backup,
    };
    let states = restoring.finish(&roots, &lineage).await?;
    let position = |owner| LogPosition {
        owner,
        batch: ends.logs.get(&owner).copied().unwrap_or_default(),
    };
    Ok(Restored {
        backup: manifest.name(),
        leaves: ends.leaves.values().sum(),
        wanted: found.wanted,
        bytes: found.bytes,
        latest: found.latest,
        states: states
            .into_iter()
            .map(|(owner, state)| (owner, (position(owner), state)))
            .collect(),
    })
}

/// Finds the cut, and folds the leaves before it.
async fn fold(
    (target, manifest): (&Target, &Manifest),
    rows: &[Row],
    claimed: ClaimedStore,
    until: Until,
) -> Result<(Cut, Restoring), RestoreFailed> {
    match &manifest.shards[..] {
        [only] => {
            let found = find_cut(target, (manifest, only), until).await?;
            let restoring = claimed.begin(rows, &found.extent).await?;
            let count = found.extent.of(FIRST_SHARD);
            Ok((found, fold_one(target, only, restoring, count).await?))
        }
        several => {
            if matches!(until, Until::Leaves(_)) {
                return Err(RestoreFailed::SeveralShards(several.len()));
            }
            let source = (target, manifest);
            let survey = survey(target, manifest).await?;
            let ends = manifest
                .archives()
                .map(|(shard, archive)| (shard, archive.leaves))
                .collect();
            let merged = MergedLeaves::begin(source, rows, survey.clone(), &ends).await?;
            let found = find_merged_cut(merged, manifest, until).await?;
            let restoring = claimed.begin(rows, &found.extent).await?;
            let merged = MergedLeaves::begin(source, rows, survey, &found.extent.leaves).await?;
            Ok((found, fold_merged(merged, restoring).await?))
        }
    }
}

/// Folds the first leaves of a realm of one shard.
async fn fold_one(
    target: &Target,
    archive: &ArchiveOfShard,
    mut restoring: Restoring,
    count: u64,
) -> Result<Restoring, RestoreFailed> {
    let mut leaves = Leaves::new(target, archive);
    for _ in 0..count {
        let Some(leaf) = leaves.next().await? else { break };
        restoring.take(FIRST_SHARD, leaf.leaf, leaf.archived).await?;
    }
    Ok(restoring)
}

/// Folds the leaves of all shards in their order.
async fn fold_merged(mut merged: MergedLeaves<'_>, mut restoring: Restoring) -> Result<Restoring, RestoreFailed> {
    while let Some(passed) = merged.pass(None).await? {
        restoring
            .take(passed.shard, passed.leaf.leaf, passed.leaf.archived)
            .await?;
    }
    Ok(restoring)
}

/// A cut, and the prefix before it.
#[derive(Clone, Debug, Default)]
struct Cut {
    extent: Extent,
    wanted: u64,
    bytes: u64,
    latest: WallTime,
}

impl Cut {
    fn add(&mut self, shard: Shard, (owner, batch): (OwnerId, BatchNumber), wall: WallTime, bytes: u64) {
        *self.extent.leaves.entry(shard).or_default() += 1;
        self.extent.logs.insert(owner, batch);
        self.bytes += bytes;
        self.latest = self.latest.max(wall);
    }
}

/// Finds the cut of a backup of several shards (rule T6): the largest one, the largest before a moment, or the first one
/// with a batch.
async fn find_merged_cut(
    mut merged: MergedLeaves<'_>,
    manifest: &Manifest,
    until: Until,
) -> Result<Cut, RestoreFailed> {
    let moment = match until {
        Until::Moment(moment) => Some(moment),
        _ => None,
    };
    let empty: BTreeMap<Shard, u64> = manifest.archives().map(|(shard, _)| (shard, 0)).collect();
    let mut cut = Cut::default();
    cut.extent.leaves = empty;
    let (mut behind, mut found, mut wanted) = (Vec::new(), None, 0);
    while let Some(passed) = merged.pass(moment).await? {
        let leaf = &passed.leaf;
        let (owner, batch) = (leaf.owner, leaf.batch);
        if until == Until::Batch(LogPosition { owner, batch }) {
            found = Some(behind.len());
        }
        wanted += u64::from(passed.is_wanted);
        behind.push((passed.shard, (owner, batch), leaf.wall, leaf.archived.size() as u64));
        if passed.is_cut {
            for (shard, at, wall, bytes) in behind.drain(..) {
                cut.add(shard, at, wall, bytes);
            }
            if found.is_some() {
                break;
            }
        }
    }
    for ((shard, at, wall, bytes), is_in) in behind.into_iter().zip(merged.in_cut(found)) {
        if is_in {
            cut.add(shard, at, wall, bytes);
        }
    }
    let leaves: u64 = cut.extent.leaves.values().sum();
    match until {
        Until::Batch(at) if found.is_none() => {
            let what = format!("batch {} of owner {}", at.batch, at.owner);
            return Err(RestoreFailed::Beyond { what, leaves });
        }
        Until::Batch(at) if cut.extent.logs.get(&at.owner) < Some(&at.batch) => {
            return Err(RestoreFailed::NotInCut(at));
        }
        Until::End => cut.wanted = manifest.leaves(),
        _ => cut.wanted = wanted,
    }
    match leaves == 0 && manifest.leaves() > 0 {
        true => Err(RestoreFailed::NoCut),
        false => Ok(cut),
    }
}

/// Finds the consistent cut for `until` in a realm of one shard: the first at or after it, else the last before it (rule
/// F5).
async fn find_cut(
    target: &Target,
    (manifest, archive): (&Manifest, &ArchiveOfShard),
    until: Until,
) -> Result<Cut, RestoreFailed> {
    let mut search = Search::new(until, manifest);
    let mut leaves = Leaves::new(target, archive);
    while let Some(leaf) = leaves.next().await? {
        if search.take(&leaf).map_err(|why| ContentError::Damaged {
            piece: leaves.piece().map(|piece| piece.path()).unwrap_or_default(),
            why,
        })? {
            return Ok(search.cut);
        }
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
            Until::End => Some(manifest.leaves()),
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
                self.cut.add(FIRST_SHARD, (owner, batch), wall, bytes);
            }
        }
        Ok(false)
    }

    /// Ends the search at the end of the backup.
    fn end(mut self, manifest: &Manifest) -> Result<Cut, RestoreFailed> {
        let cut = self.cut.extent.of(FIRST_SHARD);
        let leaves = cut + self.behind.len() as u64;
        let beyond = |what: String| RestoreFailed::Beyond { what, leaves };
        if leaves < manifest.leaves() {
            return Err(ContentError::Missing(format!("the segment of leaf {leaves}")).into());
        }
        self.cut.wanted = match (self.until, self.wanted) {
            (Until::Batch(at), None) => return Err(beyond(format!("batch {} of owner {}", at.batch, at.owner))),
            (Until::Leaves(wanted), _) if wanted > leaves => return Err(beyond(format!("leaf {wanted}"))),
            (_, wanted) => wanted.unwrap_or(leaves),
        };
        if cut == 0 && leaves > 0 {
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
