//! Verifies a realm's log: that it is complete, chained, and replays.
//!
//! All logs of the archive are read side by side in the order in which they were archived, and folded as db and a
//! take-over fold them; then what lies beyond the archive. The following are compared: each batch's bytes and its
//! hashes, the chain, the numbers of events, openings, the Merkle tree, history numbers and calls across logs, the
//! newest snapshots, and in a live realm the states of the owners' holders. Each log is folded under the definitions of
//! its time; where these changed, it is converted to the next by what the store records of the change.
//!
//! Where retention has deleted events, their batches' headers, hashes and calls are still verified, and the log
//! continues from its floor (rule F14).
//!
//! Without a checkpoint kept elsewhere, an archive that was rewritten from the beginning cannot be detected.

mod first;
mod leaves;
mod log;
mod numbers;
mod prefix;
mod report;
mod spans;
mod sweep;
mod tree;

use async_recursion::async_recursion as boxed;
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use annals_db::{Migrations, RecoveryError, adopting::AdoptionRecord};
use annals_director::read_owners;
use annals_event::{Batch, Header};
use annals_host::{
    log::{ReadError, Reading},
    log_source::{BeyondError, Source},
    process::request,
};
use annals_ids::{BatchNumber, Hash, LeafIndex, LogPosition, OwnerId, Shard};
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction, key_after,
    layout::archive::{self, Hole},
};
use annals_wire::control::Inspected;
use thiserror::Error;

use crate::archive::{Step, read_trees};

pub use first::{First, Kept, MANY, StrayLeaves, Traced, UNANCHORED, What, find_first};
use leaves::Leaves;
use log::Log;
use numbers::Numbers;
pub use numbers::Taken;
pub use prefix::{PrefixError, VerifiedPrefix};
pub use report::{CheckpointFault, Finding, MAX_NAMED, OpeningFault, OwnerReport, TileFault, VerifyReport};
pub use spans::Occurrence;
pub use sweep::{SweepProgress, Swept, sweep};

/// Rows per read.
const PAGE: usize = 256;

/// Why the log could not be verified.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// Error of the store.
    #[error("the archive cannot be read")]
    Store(#[from] StoreError),
    /// Error of the log.
    #[error("the log beyond the archive cannot be read")]
    Log(#[from] ReadError),
    /// Error of the archive.
    #[error("an owner cannot be rebuilt")]
    Recovery(#[from] RecoveryError),
    /// Error of the progress file.
    #[error("the progress file cannot be used")]
    Prefix(#[from] PrefixError),
    /// The archive is not the one that was verified.
    #[error(
        "the archive's first {leaves} batches have changed since they were verified; keep the archive and the file, \
         and verify everything without the file"
    )]
    Changed {
        /// Number of batches verified.
        leaves: u64,
    },
}

/// Verifies all logs of a realm. Changes nothing.
///
/// # Errors
/// When they cannot be read at all; faults are in the report.
#[boxed]
pub async fn verify(source: &Source) -> Result<VerifyReport, VerifyError> {
    verify_from(source, Checkpoint::default()).await
}

/// As [`verify`], and compares the archive of a shard with checkpoints of it that were kept outside the realm.
///
/// # Errors
/// As there.
#[boxed]
pub async fn verify_against(source: &Source, shard: Shard, kept: &Kept) -> Result<VerifyReport, VerifyError> {
    let mut report = VerifyReport::default();
    let mut whole = Verification::default();
    let mut leaves = Leaves::new(shard, None);
    leaves.keep(kept.heads());
    whole.trees.insert(shard, leaves);
    whole.walk_archive(source, &mut report).await?;
    whole.go_beyond(source, &mut report).await?;
    Ok(report)
}

/// As [`verify`], and checks that the archive up to a checkpoint is unchanged.
///
/// # Errors
/// As there.
#[boxed]
pub async fn verify_from(source: &Source, checkpoint: Checkpoint) -> Result<VerifyReport, VerifyError> {
    let mut report = VerifyReport::default();
    let mut whole = Verification {
        checkpoint,
        ..Verification::default()
    };
    whole.walk_archive(source, &mut report).await?;
    whole.go_beyond(source, &mut report).await?;
    Ok(report)
}

/// The result of a verification at one moment of the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// By shard, the size of its tree in leaves, and the root.
    pub roots: BTreeMap<Shard, (u64, Hash)>,
    /// By owner, the last archived batch and the state to which the log replays there.
    pub states: BTreeMap<OwnerId, (BatchNumber, Hash)>,
}

/// An incremental verification of a realm whose archive grows: each look continues at the archive's end at the last
/// one. Changes to the part already verified are detected only by a whole verification: [`verify_from`] with
/// [`Self::checkpoint`].
#[derive(Clone, Default)]
pub struct Verification {
    logs: BTreeMap<OwnerId, Log>,
    trees: BTreeMap<Shard, Leaves>,
    numbers: Numbers,
    checkpoint: Checkpoint,
}

impl Verification {
    /// Verifies what has been added since the last look, and what lies beyond the archive. Figures in the report are
    /// totals. After a look with findings or an error, the next one starts from the beginning: a log that was being
    /// refilled may be complete by then.
    ///
    /// # Errors
    /// As [`verify`].
    #[boxed]
    pub async fn look(&mut self, source: &Source) -> Result<VerifyReport, VerifyError> {
        let mut going = std::mem::take(self);
        let mut report = VerifyReport::default();
        going.walk_archive(source, &mut report).await?;
        going.clone().go_beyond(source, &mut report).await?;
        if report.is_clean() {
            *self = going;
        }
        Ok(report)
    }

    /// The state at the archive's end at the last look.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        let roots = self.trees.iter().map(|(&shard, leaves)| (shard, leaves.root()));
        let states = self.logs.iter().filter_map(|(&owner, log)| Some((owner, log.state()?)));
        Checkpoint {
            roots: roots.collect(),
            states: states.collect(),
        }
    }

    /// Reads the part of the archive that was not read before.
    async fn walk_archive(&mut self, source: &Source, report: &mut VerifyReport) -> Result<(), VerifyError> {
        let shards: BTreeSet<Shard> = read_owners(&source.store)
            .await?
            .values()
            .map(|record| record.shard)
            .collect();
        for &shard in &shards {
            let expected = self.checkpoint.roots.get(&shard).copied();
            let leaves = self.trees.entry(shard).or_insert_with(|| Leaves::new(shard, expected));
            leaves.refresh(&source.store, report).await?;
        }
        // Read before the owners and their cursors, so that every leaf of it is in some log that is read.
        let mut trees = read_trees(&source.store, &shards).await?;
        let owners = read_owners(&source.store).await?;
        let migrations = Arc::new(Migrations::read(&source.store).await?);
        let adoptions = |transaction: Transaction| async move { AdoptionRecord::read_all(&transaction).await };
        report.adoptions = source.store.read(adoptions).await?;
        for (&owner, record) in &owners {
            let log = match self.logs.entry(owner) {
                Entry::Occupied(log) => log.into_mut(),
                Entry::Vacant(place) => {
                    let expected = self.checkpoint.states.get(&owner).copied();
                    place.insert(Log::begin(source, owner, record, expected).await?)
                }
            };
            log.go_on(record, Arc::clone(&migrations), report).await?;
            log.hold(inspect(source, owner).await, report);
        }
        for shard in shards {
            let Some(leaves) = self.trees.get_mut(&shard) else {
                continue;
            };
            leaves.go_on(trees.remove(&shard).unwrap_or_default(), report);
            walk_shard(&source.store, &mut self.logs, leaves, &mut self.numbers, report).await?;
        }
        for log in self.logs.values_mut() {
            log.end_archive(report);
        }
        self.numbers.forget_made();
        name_holes(&source.store, report).await?;
        Ok(())
    }

    /// Continues with the logs beyond the archive, and finishes.
    async fn go_beyond(mut self, source: &Source, report: &mut VerifyReport) -> Result<(), VerifyError> {
        for log in self.logs.values_mut() {
            go_on(source, log, &mut self.numbers, report).await?;
        }
        if source.live.is_some() && self.numbers.is_unsettled() {
            // Logs were read one after the other while all of them grew: the batches on which later logs depend are
            // there by now.
            for log in self.logs.values_mut() {
                read_later(source, log, &mut self.numbers, report).await?;
            }
        }
        self.numbers.finish(report);
        for (owner, log) in self.logs {
            let summary = log.finish(&source.store, report).await?;
            report.owners.insert(owner, summary);
        }
        Ok(())
    }
}

/// Reads the archived logs of a shard side by side, in the order of their leaves.
async fn walk_shard(
    store: &Store,
    logs: &mut BTreeMap<OwnerId, Log>,
    leaves: &mut Leaves,
    numbers: &mut Numbers,
    report: &mut VerifyReport,
) -> Result<(), VerifyError> {
    let mut due: Vec<OwnerId> = logs
        .iter()
        .filter(|(_, log)| log.shard == leaves.shard())
        .map(|(owner, _)| *owner)
        .collect();
    // A step without a leaf is taken at once.
    let mut heads: BTreeMap<(Option<LeafIndex>, OwnerId), Step> = BTreeMap::new();
    loop {
        while let Some(owner) = due.pop() {
            let log = logs.get_mut(&owner).expect("invariant: an owner that is due has a log");
            if let Some(step) = log.walk.next().await? {
                heads.insert((step.leaf, owner), step);
            }
        }
        let Some(((leaf, owner), step)) = heads.pop_first() else {
            break;
        };
        due.push(owner);
        let at = LogPosition {
            owner,
            batch: step.number,
        };
        // A batch whose events were changed still has its leaf, the header.
        if let (Some(leaf), Ok((_, hash))) = (leaf, Header::read(&step.bytes)) {
            leaves.take(leaf, hash, at, report);
            leaves.compare_tiles(store, report).await?;
        }
        if let Some(batch) = &step.batch {
            numbers.take(owner, batch, report);
        }
        let log = logs.get_mut(&owner).expect("invariant: a batch was read from a log");
        if let Some(thinned) = &step.deleted {
            numbers.take_thinned(owner, thinned, report);
            if let Some(floor) = log.floor_at(step.number) {
                numbers.take_floor(floor);
            }
        }
        log.take_archived(&step, report).await?;
    }
    leaves.compare(store, report).await?;
    Ok(())
}

/// Continues with a log beyond the archive, if it can be read.
async fn go_on(
    source: &Source,
    log: &mut Log,
    numbers: &mut Numbers,
    report: &mut VerifyReport,
) -> Result<(), VerifyError> {
    if source.logs.is_empty() {
        return Ok(());
    }
    let mut reading = Reading::default();
    source.read_log((log.shard, log.owner), &mut reading).await?;
    // Batches trimmed from the log are archived by now.
    log.walk.extend().await?;
    while let Some(step) = log.walk.next().await? {
        if let Some(batch) = &step.batch {
            numbers.take(log.owner, batch, report);
        }
        log.take_archived(&step, report).await?;
    }
    let beyond = match source.beyond(log.owner, log.walk.cursor(), &reading).await {
        Ok(beyond) => beyond,
        Err(BeyondError::Log(error)) => return Err(error.into()),
        Err(BeyondError::Store(error)) => return Err(error.into()),
        Err(BeyondError::Hole(hole)) => {
            let (owner, why) = (log.owner, hole.to_string());
            report.find(Finding::Beyond { owner, why });
            return Ok(());
        }
    };
    // A page of the archive may contain more than the cursor named.
    let reached = log.reached();
    for frozen in beyond.iter().filter(|frozen| frozen.number > reached) {
        match Batch::read(&frozen.bytes) {
            Ok(batch) => {
                numbers.take(log.owner, &batch, report);
                log.take_beyond(&batch, report).await?;
            }
            Err(malformed) => {
                let (owner, why) = (log.owner, format!("batch {}: {malformed}", frozen.number));
                report.find(Finding::Beyond { owner, why });
                break;
            }
        }
    }
    Ok(())
}

/// Reads on in a log, for batches on which others depend.
async fn read_later(
    source: &Source,
    log: &mut Log,
    numbers: &mut Numbers,
    report: &mut VerifyReport,
) -> Result<(), VerifyError> {
    let mut reached = log.reached();
    let mut reading = Reading::default();
    source.read_log((log.shard, log.owner), &mut reading).await?;
    log.walk.extend().await?;
    while let Some(step) = log.walk.next().await? {
        if let Some(batch) = step.batch.filter(|_| step.number > reached) {
            numbers.take_later(log.owner, &batch, report);
        }
        reached = reached.max(step.number);
    }
    // A hole was reported when the log was read first, or will be at the next look.
    let beyond = source.beyond(log.owner, log.walk.cursor(), &reading).await;
    for frozen in beyond
        .unwrap_or_default()
        .iter()
        .filter(|frozen| frozen.number > reached)
    {
        if let Ok(batch) = Batch::read(&frozen.bytes) {
            numbers.take_later(log.owner, &batch, report);
        }
    }
    Ok(())
}

/// The state of an owner according to its holder; `None` if none answers.
async fn inspect(source: &Source, owner: OwnerId) -> Option<(BatchNumber, Hash)> {
    let (bus, subjects) = source.live.as_ref()?;
    let inspected = request::<Inspected>(bus, "the owner's holder", subjects.inspect(owner), &()).await;
    let inspected = inspected.ok()?;
    Some((BatchNumber(inspected.batch), Hash(inspected.state.try_into().ok()?)))
}

/// Rule F4: every reader reports losses.
async fn name_holes(store: &Store, report: &mut VerifyReport) -> Result<(), StoreError> {
    let mut range = archive::holes();
    loop {
        let rows = &range;
        let read =
            |transaction: Transaction| async move { transaction.get_range(rows, PAGE, ScanOrder::Forward).await };
        let page = store.read(read).await?;
        for (key, value) in &page.rows {
            let (owner, first) = Hole::place(key)?;
            let until = Hole::decode(value)?.until;
            report.find(Finding::NamedHole { owner, first, until });
        }
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => return Ok(()),
        }
    }
}
