//! Checking a backup: every piece against its name, the Merkle tree against the manifest, the chain of each log, and a
//! full replay.

use std::{collections::BTreeMap, fmt};

use annals_db::{Cuts, Kind, Migrations, floors_of};
use annals_event::{Batch, OwnerState, Thinned};
use annals_host::process::FIRST_SHARD;
use annals_ids::{Hash, LogPosition, OwnerId, OwnerKind};
use annals_proof::Frontier;
use annals_store::{
    ArchivedBatch,
    layout::owners::{self, OwnerRecord},
};

use super::{
    content::{self, ContentError},
    manifest::Manifest,
    target::{Target, TargetError},
};

/// Maximum findings that are reported individually. The rest are counted.
const MAX_NAMED: usize = 100;

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
        tree: Frontier::new(),
    };
    let mut next = 0;
    let mut whole = true;
    for piece in &manifest.segments {
        let leaves = match content::read_next(target, manifest, piece, next).await {
            Ok(leaves) => leaves,
            Err(ContentError::Target(error)) => return Err(error),
            Err(error) => {
                report.find(error.to_string());
                whole = false;
                next = next.max(piece.last + 1);
                continue;
            }
        };
        report.pieces += 1;
        report.bytes += piece.size;
        for leaf in &leaves {
            replay.take(&leaf.archived, whole, &mut report);
        }
        next = next.max(piece.last + 1);
    }
    if next < manifest.leaves {
        report.find(format!(
            "{} lists no segment with leaf {next}, and says that there are {} leaves",
            manifest.path(),
            manifest.leaves
        ));
    } else if whole {
        replay.finish(manifest, &mut report);
    }
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

/// What the rows of a backup contain about its logs.
struct Rows {
    kinds: BTreeMap<OwnerId, OwnerKind>,
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
    let mut kinds = BTreeMap::new();
    for (key, value) in rows.iter().filter(|(key, _)| all.contains(key)) {
        match (owners::owner_of(key), OwnerRecord::decode(value)) {
            (Ok(owner), Ok(record)) if record.shard == FIRST_SHARD => {
                kinds.insert(owner, record.kind);
            }
            (Ok(_), Ok(_)) => {}
            (Err(error), _) | (_, Err(error)) => report.find(format!("the rows of {}: {error}", manifest.path())),
        }
    }
    let floors = match floors_of(&rows, FIRST_SHARD).await {
        Ok(floors) => floors,
        Err(error) => {
            report.find(format!("the floors of {}: {error}", manifest.path()));
            BTreeMap::new()
        }
    };
    Ok(Rows {
        kinds,
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
    tree: Frontier,
}

impl Replay {
    /// `whole` is false if an earlier piece is missing.
    fn take(&mut self, archived: &ArchivedBatch, whole: bool, report: &mut Checked) {
        let leaf = self.tree.size();
        let read = match archived {
            ArchivedBatch::Whole(bytes) => Batch::read(bytes).map(|batch| (batch.hash, Ok(batch))),
            ArchivedBatch::Thinned(bytes) => Thinned::read(bytes).map(|thinned| (thinned.hash, Err(thinned))),
        };
        let batch = match read {
            Ok((hash, batch)) => {
                self.tree.push(hash);
                batch
            }
            Err(error) => {
                self.tree.push(Hash::ZERO);
                return report.find(format!("leaf {leaf} is not a batch: {error}"));
            }
        };
        report.leaves += 1;
        let header = match &batch {
            Ok(batch) => &batch.header,
            Err(thinned) => &thinned.header,
        };
        let owner = header.owner;
        let Some(kind) = self.rows.kinds.get(&owner) else {
            return report.find(format!(
                "leaf {leaf} is of owner {owner}, for which the backup has no row"
            ));
        };
        match &batch {
            Ok(batch) => self.cuts.take(batch),
            Err(thinned) => self.cuts.take_thinned(thinned),
        };
        let floor = self
            .rows
            .floors
            .get(&owner)
            .filter(|_| Kind::of(*kind) == Kind::Passing);
        // Batches below the floor were deleted by retention, or will be.
        if let Some(floor) = floor.filter(|floor| header.number <= floor.tail.batch) {
            let tail = batch.map_or_else(|thinned| thinned.tail(), |batch| batch.tail());
            if tail.batch == floor.tail.batch && tail != floor.tail && whole {
                report.find(format!("the floor of owner {owner} does not match leaf {leaf}"));
            }
            self.states.insert(owner, Some(floor.clone()));
            return;
        }
        match batch {
            Ok(batch) => self.replay((owner, *kind), &batch, whole, report),
            Err(_) => report.find(format!(
                "the events of leaf {leaf} are missing, and no floor replaces them"
            )),
        }
    }

    fn replay(&mut self, (owner, kind): (OwnerId, OwnerKind), batch: &Batch, whole: bool, report: &mut Checked) {
        let leaf = self.tree.size() - 1;
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
                    report.find(format!(
                        "the floor of owner {owner} differs from its state at leaf {leaf}"
                    ));
                }
            }
            Err(error) => {
                *state = None;
                // Gaps after a missing piece were reported with that piece.
                if whole {
                    let number = batch.header.number;
                    report.find(format!(
                        "batch {number} of owner {owner} (leaf {leaf}) does not replay: {error}"
                    ));
                }
            }
        }
    }

    fn finish(&self, manifest: &Manifest, report: &mut Checked) {
        if Some(self.tree.root()) != manifest.root() {
            report.find(format!(
                "the tree over the {} leaves has root {}, and {} says {}",
                self.tree.size(),
                self.tree.root(),
                manifest.path(),
                manifest.root
            ));
        }
        // The batch that made the call may follow the end of the backup, if the log was refilled later; restoring then
        // ends before the call.
        for (link, number) in self.cuts.unmade().take(MAX_NAMED) {
            report.find(format!(
                "call {number} on {link} was received, and no batch of the backup sent it"
            ));
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
