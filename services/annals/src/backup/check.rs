//! Checking a backup: every piece against its name, the Merkle tree against the manifest, the chain of each log, and a
//! full replay.

use std::{collections::BTreeMap, fmt};

use annals_db::{Cuts, Kind, Migrations, floors_of};
use annals_event::{Batch, Link, OwnerState, Thinned};
use annals_ids::{CallNumber, Hash, LogPosition, OwnerId, OwnerKind, Shard, WallTime};
use annals_proof::Frontier;
use annals_store::{
    ArchivedBatch,
    layout::owners::{self, OwnerRecord},
    segment::Leaf,
};

use super::{
    content::{self, ContentError, Leaves},
    manifest::Manifest,
    target::{Target, TargetError},
};

/// Maximum findings that are reported individually. The rest are counted.
const MAX_NAMED: usize = 100;

/// Age at the end of a backup of several shards up to which the batch that made a consumed call may be missing, in ms: its
/// shard had not archived it yet.
const OPEN_AT_END: u64 = 60_000;

/// The result of checking a backup.
#[derive(Debug, Default)]
pub struct Checked {
    /// The backup's name.
    pub name: String,
    /// Pieces that were read.
    pub pieces: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Leaves that were replayed.
    pub leaves: u64,
    /// Events that were replayed.
    pub events: u64,
    /// The end of each log, and the hash of its owner's state there.
    pub states: BTreeMap<OwnerId, (LogPosition, Hash)>,
    /// The findings, one line each.
    pub findings: Vec<String>,
    /// Number of further findings.
    pub unnamed: u64,
}

impl Checked {
    /// Whether there are no findings.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn find(&mut self, finding: String) {
        if self.findings.len() < MAX_NAMED {
            self.findings.push(finding);
        } else {
            self.unnamed += 1;
        }
    }
}

/// Reads a whole backup.
///
/// # Errors
/// When the target does not answer. Faults of the backup are in the report.
pub async fn check(target: &Target, manifest: &Manifest) -> Result<Checked, TargetError> {
    let mut report = Checked {
        name: manifest.name(),
        ..Checked::default()
    };
    let rows = check_rows(target, manifest, &mut report).await?;
    let mut replay = Replay {
        rows,
        states: BTreeMap::new(),
        cuts: Cuts::default(),
        open: BTreeMap::new(),
        shards: BTreeMap::new(),
    };
    let mut archives = BTreeMap::new();
    let mut next = BTreeMap::new();
    for (shard, archive) in manifest.archives() {
        replay.shards.insert(shard, Shown::default());
        let mut leaves = Leaves::new(target, archive);
        next.extend(read_next(&mut leaves, shard, &mut replay, &mut report).await?);
        archives.insert(shard, leaves);
    }
    // In the order in which they were closed, so that few calls are open at a time.
    while let Some(shard) = next
        .iter()
        .min_by_key(|(shard, leaf)| (leaf.wall, **shard))
        .map(|(shard, _)| *shard)
    {
        if let Some(leaf) = next.remove(&shard) {
            replay.take(shard, &leaf, &mut report);
        }
        if let Some(leaves) = archives.get_mut(&shard) {
            next.extend(read_next(leaves, shard, &mut replay, &mut report).await?);
        }
    }
    for leaves in archives.values() {
        report.pieces += leaves.used().0;
        report.bytes += leaves.used().1;
    }
    replay.finish(manifest, &mut report);
    let states = replay
        .states
        .into_iter()
        .filter_map(|(owner, state)| Some((owner, state?)));
    report.states = states
        .map(|(owner, state)| {
            let batch = state.tail.batch;
            (owner, (LogPosition { owner, batch }, state.hash()))
        })
        .collect();
    Ok(report)
}

/// Reads the next leaf of a shard, after the pieces that cannot be used, which are reported.
async fn read_next(
    leaves: &mut Leaves<'_>,
    shard: Shard,
    replay: &mut Replay,
    report: &mut Checked,
) -> Result<Option<(Shard, Leaf)>, TargetError> {
    loop {
        match leaves.next().await {
            Ok(leaf) => return Ok(leaf.map(|leaf| (shard, leaf))),
            Err(ContentError::Target(error)) => return Err(error),
            Err(error) => {
                report.find(error.to_string());
                if let Some(shown) = replay.shards.get_mut(&shard) {
                    shown.is_torn = true;
                }
            }
        }
    }
}

/// What the rows of a backup contain about its logs.
struct Rows {
    /// Kind and shard of each owner.
    owners: BTreeMap<OwnerId, OwnerRecord>,
    migrations: Migrations,
    /// The states at the retention horizon.
    floors: BTreeMap<OwnerId, OwnerState>,
}

/// Checks the packs of rows: the contents of each owner, the changes of definitions, and where replay of each log
/// begins.
async fn check_rows(target: &Target, manifest: &Manifest, report: &mut Checked) -> Result<Rows, TargetError> {
    let mut rows = Vec::new();
    for piece in &manifest.rows {
        match content::read_pack(target, piece).await {
            Ok(pack) => {
                report.pieces += 1;
                report.bytes += piece.size;
                rows.extend(pack);
            }
            Err(ContentError::Target(error)) => return Err(error),
            Err(error) => report.find(error.to_string()),
        }
    }
    let migrations = match Migrations::of_rows(&rows) {
        Ok(migrations) => migrations,
        Err(error) => {
            report.find(format!("the rows of {}: {error}", manifest.path()));
            Migrations::default()
        }
    };
    let all = owners::owners();
    let mut found = BTreeMap::new();
    for (key, value) in rows.iter().filter(|(key, _)| all.contains(key)) {
        match (owners::owner_of(key), OwnerRecord::decode(value)) {
            (Ok(owner), Ok(record)) => {
                found.insert(owner, record);
            }
            (Err(error), _) | (_, Err(error)) => report.find(format!("the rows of {}: {error}", manifest.path())),
        }
    }
    let mut floors = BTreeMap::new();
    for (shard, _) in manifest.archives() {
        match floors_of(&rows, shard).await {
            Ok(of_shard) => floors.extend(of_shard),
            Err(error) => report.find(format!("the floors of {}: {error}", manifest.path())),
        }
    }
    Ok(Rows {
        owners: found,
        migrations,
        floors,
    })
}

/// The logs during replay.
struct Replay {
    rows: Rows,
    /// `None` once a finding prevents further replay.
    states: BTreeMap<OwnerId, Option<OwnerState>>,
    cuts: Cuts,
    /// When batches that consumed calls which no batch has made so far were closed.
    open: BTreeMap<(Link, CallNumber), WallTime>,
    shards: BTreeMap<Shard, Shown>,
}

/// What is known of a shard's archive.
#[derive(Default)]
struct Shown {
    tree: Frontier,
    /// Whether an earlier piece is missing.
    is_torn: bool,
}

impl Replay {
    fn take(&mut self, shard: Shard, next: &Leaf, report: &mut Checked) {
        let shown = self.shards.entry(shard).or_default();
        let (leaf, whole) = (shown.tree.size(), !shown.is_torn);
        let read = match &next.archived {
            ArchivedBatch::Whole(bytes) => Batch::read(bytes).map(|batch| (batch.hash, Ok(batch))),
            ArchivedBatch::Thinned(bytes) => Thinned::read(bytes).map(|thinned| (thinned.hash, Err(thinned))),
        };
        let batch = match read {
            Ok((hash, batch)) => {
                shown.tree.push(hash);
                batch
            }
            Err(error) => {
                shown.tree.push(Hash::ZERO);
                return report.find(format!("leaf {leaf} of shard {shard} is not a batch: {error}"));
            }
        };
        report.leaves += 1;
        let header = match &batch {
            Ok(batch) => &batch.header,
            Err(thinned) => &thinned.header,
        };
        let owner = header.owner;
        let record = self.rows.owners.get(&owner).filter(|record| record.shard == shard);
        let Some(kind) = record.map(|record| record.kind) else {
            return report.find(format!(
                "leaf {leaf} of shard {shard} is of owner {owner}, for which the backup has no row"
            ));
        };
        match &batch {
            Ok(batch) => self.cuts.take(batch),
            Err(thinned) => self.cuts.take_thinned(thinned),
        };
        for consumed in &header.consumed {
            let link = Link {
                from: consumed.from,
                to: consumed.to,
            };
            if self.cuts.is_open(link, consumed.number) {
                self.open.insert((link, consumed.number), header.wall);
            }
        }
        if self.open.len() > 2 * self.cuts.open_calls() {
            self.open.retain(|(link, number), _| self.cuts.is_open(*link, *number));
        }
        let floor = self.rows.floors.get(&owner).filter(|_| Kind::of(kind) == Kind::Passing);
        // Batches below the floor were deleted by retention, or will be.
        if let Some(floor) = floor.filter(|floor| header.number <= floor.tail.batch) {
            let tail = batch.map_or_else(|thinned| thinned.tail(), |batch| batch.tail());
            if tail.batch == floor.tail.batch && tail != floor.tail && whole {
                report.find(format!(
                    "the floor of owner {owner} does not match leaf {leaf} of shard {shard}"
                ));
            }
            self.states.insert(owner, Some(floor.clone()));
            return;
        }
        match batch {
            Ok(batch) => self.replay(
                (owner, kind),
                (&batch, &format!("leaf {leaf} of shard {shard}")),
                whole,
                report,
            ),
            Err(_) => report.find(format!(
                "the events of leaf {leaf} of shard {shard} are missing, and no floor replaces them"
            )),
        }
    }

    fn replay(
        &mut self,
        (owner, kind): (OwnerId, OwnerKind),
        (batch, leaf): (&Batch, &str),
        whole: bool,
        report: &mut Checked,
    ) {
        let state = self
            .states
            .entry(owner)
            .or_insert_with(|| Some(OwnerState::new(owner, kind)));
        let Some(held) = state else { return };
        match self.rows.migrations.fold(held, batch) {
            Ok(()) => {
                report.events += batch.events.len() as u64;
                let floor = self.rows.floors.get(&owner).filter(|floor| floor.tail == held.tail);
                if floor.is_some_and(|floor| floor.hash() != held.hash()) {
                    report.find(format!("the floor of owner {owner} differs from its state at {leaf}"));
                }
            }
            Err(error) => {
                *state = None;
                // Gaps after a missing piece were reported with that piece.
                if whole {
                    let number = batch.header.number;
                    report.find(format!(
                        "batch {number} of owner {owner} ({leaf}) does not replay: {error}"
                    ));
                }
            }
        }
    }

    fn finish(&self, manifest: &Manifest, report: &mut Checked) {
        for (shard, archive) in manifest.archives() {
            let Some(shown) = self.shards.get(&shard).filter(|shown| !shown.is_torn) else {
                continue;
            };
            if Some(shown.tree.root()) != archive.root() {
                report.find(format!(
                    "the tree over the {} leaves of shard {shard} has root {}, and {} says {}",
                    shown.tree.size(),
                    shown.tree.root(),
                    manifest.path(),
                    archive.root
                ));
            }
        }
        if self.shards.values().any(|shown| shown.is_torn) {
            return;
        }
        // The batch that made the call may follow the end of the backup, if the log was refilled later; restoring then
        // ends before the call. So it is between shards, which archive in an order of their own.
        let is_of_end = |wall: &WallTime| self.shards.len() > 1 && wall.0 + OPEN_AT_END >= manifest.latest();
        for (link, number) in self.cuts.unmade().take(MAX_NAMED) {
            if !self.open.get(&(link, number)).is_some_and(is_of_end) {
                report.find(format!(
                    "call {number} on {link} was received, and no batch of the backup sent it"
                ));
            }
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "WRONG: {finding}")?;
        }
        if self.unnamed > 0 {
            writeln!(f, "and {} more", self.unnamed)?;
        }
        for (at, state) in self.states.values() {
            writeln!(f, "{at} {state}")?;
        }
        write!(
            f,
            "backup {}: {} pieces of {} B, {} leaves with {} events replayed: {}",
            self.name,
            self.pieces,
            self.bytes,
            self.leaves,
            self.events,
            if self.is_clean() { "whole and intact" } else { "damaged" }
        )
    }
}
