//! Checking a backup: every piece against its name, the Merkle tree against the manifest, each log's chain, and that all of
//! it replays.

use std::{collections::BTreeMap, fmt};

use annals_db::{Cuts, Kind, Migrations, floors_of};
use annals_event::{Batch, OwnerState, Thinned};
use annals_host::process::SHARD;
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

/// Findings that are named. The rest are counted.
const MAX_NAMED: usize = 100;

/// What was found in a backup.
#[derive(Debug, Default)]
pub struct Checked {
    /// The backup's name.
    pub name: String,
    /// Pieces that were read.
    pub pieces: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Leaves that were replayed.
    pub leaves: u64,
    /// Events that were replayed.
    pub events: u64,
    /// Where each log ends, and the hash of its owner's state there.
    pub states: BTreeMap<OwnerId, (LogPosition, Hash)>,
    /// What is wrong, a line each.
    pub findings: Vec<String>,
    /// How many more findings there are.
    pub unnamed: u64,
}

impl Checked {
    /// Whether nothing is wrong.
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

/// Reads all of a backup.
///
/// # Errors
/// When the target does not answer; what is wrong with the backup is in the report.
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

/// What the rows of a backup say of its logs.
struct Rows {
    kinds: BTreeMap<OwnerId, OwnerKind>,
    migrations: Migrations,
    /// The states at the horizon of what was let go.
    floors: BTreeMap<OwnerId, OwnerState>,
}

/// Checks the packs of rows: what each owner holds, how the definitions changed, and from where on logs are replayed.
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
            (Ok(owner), Ok(record)) if record.shard == SHARD => {
                kinds.insert(owner, record.kind);
            }
            (Ok(_), Ok(_)) => {}
            (Err(error), _) | (_, Err(error)) => report.find(format!("the rows of {}: {error}", manifest.path())),
        }
    }
    let floors = match floors_of(&rows, SHARD).await {
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

/// The logs, while they are replayed.
struct Replay {
    rows: Rows,
    /// `None` where something stands against replaying any further.
    states: BTreeMap<OwnerId, Option<OwnerState>>,
    cuts: Cuts,
    tree: Frontier,
}

impl Replay {
    /// `whole` says whether nothing was missing before.
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
                "leaf {leaf} is of owner {owner}, of whom the backup has no row"
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
        // What is below its floor was let go, or will be.
        if let Some(floor) = floor.filter(|floor| header.number <= floor.tail.batch) {
            let tail = batch.map_or_else(|thinned| thinned.tail(), |batch| batch.tail());
            if tail.batch == floor.tail.batch && tail != floor.tail && whole {
                report.find(format!("the floor of owner {owner} is not that of leaf {leaf}"));
            }
            self.states.insert(owner, Some(floor.clone()));
            return;
        }
        match batch {
            Ok(batch) => self.replay((owner, *kind), &batch, whole, report),
            Err(_) => report.find(format!(
                "the events of leaf {leaf} are gone, and nothing stands in for them"
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
                    report.find(format!("the floor of owner {owner} is not its state at leaf {leaf}"));
                }
            }
            Err(error) => {
                *state = None;
                // What follows a missing piece was named with it.
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
        // Its maker may come behind the end of the backup, where the log was put back; restoring ends before it then.
        for (link, number) in self.cuts.unmade().take(MAX_NAMED) {
            report.find(format!(
                "call {number} on {link} was taken, and no batch of the backup made it"
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
