//! Folding: moves the stream's batches into archive, snapshots and database, in the stream's order (rules F1 to F5).
//!
//! [`Folder::offer`] accepts messages of the stream; [`Folder::commit`] writes a part of them to the store in one
//! transaction. [`Folder::submit`] does the same, and returns when the store has accepted the transaction: the next one is
//! prepared while the store makes it durable. The state in memory is ahead of the store by the transactions that are not
//! durable yet, and nothing of them is announced. When the store rejects a transaction, or its outcome is unknown, the state
//! is read again; after a conflict it may be restored from a copy. A log that cannot advance (a hole, an `Open` that is not
//! recorded, a defect) does not block the others.

mod archiving;
mod attempt;
mod crossing;
pub(crate) mod effects;
mod log;
mod pipeline;
mod replaying;
mod snapshot;
mod upgrading;

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use annals_def::Schema;
use annals_event::{Batch, Body, Event, Malformed};
use annals_ids::{BatchNumber, DatabaseId, Hash, OwnerId, Shard, TypeId};
use annals_store::{
    Retry, Store, StoreError, Transaction,
    layout::{
        archive,
        mark::{self, OtherLayout},
        owners::Cursor,
    },
};
use thiserror::Error;

use crate::{ledger::Breach, migrations::Migrations};
pub use archiving::Archived;
use archiving::Archiving;
use attempt::Attempt;
pub(crate) use attempt::find_cell;
pub use crossing::Round;
pub(crate) use crossing::read_awaiting_all;
use log::Log;
use pipeline::Pipeline;
pub use replaying::Replay;
pub use upgrading::ChangeError;

use crate::{
    retention::{Pace, Retention},
    sealing::Sealer,
    tiling::Tiler,
};

/// Bytes of batches from which on the next transaction is worth submitting before the last is durable. With less, it costs
/// less to wait, and to write all that arrives meanwhile in one transaction.
pub const PIPELINED_FROM: usize = 16 << 10;

/// Maximum attempts of a commit that conflicts with another transaction or whose store does not answer. With the
/// pauses, about half a minute.
const ATTEMPTS: u32 = 40;

/// Conflicts after which a commit is tried with half of its batches.
const CONFLICTS: u32 = 2;

/// Number of commits after a conflict that copy the states that they may change: where other folds write the same rows,
/// the next conflict comes soon, and a copy is faster than reading a state again.
const CONTENDED: u32 = 64;

/// Pause after the first attempt that fails because the store is unavailable; doubled after each further one, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Maximum pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A message of the stream.
#[derive(Debug)]
struct ReceivedBatch {
    /// Owner of the log, by the message's subject.
    owner: OwnerId,
    batch: Batch,
    /// The encoded batch.
    bytes: Vec<u8>,
}

/// Reason why folding stops.
#[derive(Debug, Error)]
pub enum FoldError {
    /// Another db process folds this shard now.
    #[error("shard {shard} is folded by another db process (term {term}); this process is on standby")]
    Superseded {
        shard: Shard,
        /// Term of the other process.
        term: u64,
    },
    /// The realm has other definitions now.
    #[error("the definitions of the realm have changed to {0}")]
    Definitions(Hash),
    /// The store was written with another layout.
    #[error("this store cannot be folded into")]
    Layout(#[from] OtherLayout),
    /// The store did not answer.
    #[error("the store did not accept a transaction of the fold")]
    Store(#[from] StoreError),
}

/// A message of the stream that belongs to no log, or that a log or the database cannot accept. The realm keeps
/// running; an operator must look.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Alarm {
    /// A message is not a batch.
    #[error("a message in the log of owner {owner} is not a batch: {source}")]
    Malformed {
        /// Owner of the log.
        owner: OwnerId,
        /// Decoding error.
        source: Malformed,
    },
    /// A batch names another owner than its subject.
    #[error("the log of owner {owner} contains a batch of owner {named}")]
    Misplaced {
        /// Owner of the log.
        owner: OwnerId,
        /// Owner that the batch names.
        named: OwnerId,
    },
    /// A batch has the right number but does not continue the log, or fills a hole with something other than the
    /// missing batch.
    #[error("batch {number} of owner {owner} (hash {hash}) is out of place: expected {expected} there or before it")]
    Contradiction {
        /// Owner of the log.
        owner: OwnerId,
        /// The batch.
        number: BatchNumber,
        hash: Hash,
        /// Hash of the batch before, or of the batch that is missing in the hole.
        expected: Hash,
    },
    /// A batch of an epoch that was never granted.
    #[error("batch {number} of owner {owner} belongs to an epoch that was never granted")]
    Ungranted {
        /// Owner of the log.
        owner: OwnerId,
        /// The batch.
        number: BatchNumber,
    },
    /// A batch contains an impossible event.
    #[error("the log of owner {owner} is blocked at batch {number}, which is not valid: {why}")]
    Impossible {
        /// Owner of the log.
        owner: OwnerId,
        /// The batch.
        number: BatchNumber,
        /// What it contradicts.
        why: String,
    },
    /// The archived part of a log cannot be read.
    #[error("the log of owner {owner} is blocked: {why}")]
    Unreadable {
        /// Owner of the log.
        owner: OwnerId,
        /// What is wrong.
        why: String,
    },
    /// A batch needs more than one transaction can write.
    #[error(
        "the log of owner {owner} is blocked at batch {number}: it writes {bytes} B to the database, more than the \
         transaction limit"
    )]
    TooLarge {
        /// Owner of the log.
        owner: OwnerId,
        /// The batch.
        number: BatchNumber,
        /// Bytes that the transaction would write.
        bytes: usize,
    },
    /// The ledger contradicts itself.
    #[error("the log of owner {owner} is blocked at batch {number}, which the ledger rejects: {breach}")]
    Ledger {
        /// Owner of the log.
        owner: OwnerId,
        /// The batch.
        number: BatchNumber,
        /// The contradiction.
        breach: Breach,
    },
    /// An entity has a type that the schema does not define.
    #[error("entity {database} of the database was not written: the schema has no type {type_id}")]
    UnknownType {
        /// The entity.
        database: DatabaseId,
        type_id: TypeId,
    },
    /// A write of an entity was requested under former definitions and has no counterpart under the present ones.
    #[error("entity {database} of the database was not written: {why}")]
    Unconverted {
        /// The entity.
        database: DatabaseId,
        /// What has no counterpart.
        why: String,
    },
    /// A unique value belongs to another entity already.
    #[error("entity {database} of the database has the same {property} as entity {holder} and is not indexed by it")]
    IdentifierTaken {
        /// The entity.
        database: DatabaseId,
        /// The property: an identifier, or one with a unique index.
        property: String,
        /// Entity that has the value.
        holder: DatabaseId,
    },
}

/// A gap in a log: batches that are missing before present ones (rule F4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Owner of the log.
    pub owner: OwnerId,
    /// First missing batch.
    pub first: BatchNumber,
    /// First batch after the gap.
    pub until: BatchNumber,
    /// Hash of the last batch before the gap.
    pub after: Hash,
    /// Predecessor hash named by the first batch after the gap.
    pub named: Hash,
}

/// Result of one commit.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    /// New cursors of the logs that advanced, to be announced (rule F6).
    pub cursors: Vec<(OwnerId, Cursor)>,
    /// Number of folded batches.
    pub batches: usize,
    /// Number of their events.
    pub events: u64,
    /// Size of the folded batches.
    pub bytes: u64,
    /// Transactions before it that conflicted with others.
    pub conflicts: u64,
    /// Alarms about the stream.
    pub alarms: Vec<Alarm>,
}

/// Folds one shard.
pub struct Folder {
    store: Store,
    shard: Shard,
    schema: Arc<Schema>,
    migrations: Migrations,
    term: u64,
    logs: BTreeMap<OwnerId, Log>,
    /// Whether `logs` has every owner of the shard of which at least one batch is folded.
    listed: bool,
    /// Whether to take over the realm's definitions when they change.
    follows_definitions: bool,
    /// If an archive is folded again: what its leaves alone do not show.
    replay: Option<Arc<Replay>>,
    /// Shards of owners, as far as they were looked up.
    shards: BTreeMap<OwnerId, Shard>,
    pending: VecDeque<Arc<ReceivedBatch>>,
    pending_bytes: usize,
    /// Logs that may advance without another message: the last transaction was full, or an `Open` may have been
    /// recorded since.
    unfinished: VecDeque<OwnerId>,
    /// Logs of which a snapshot is being written, in the order of their turns.
    snapshots: VecDeque<OwnerId>,
    /// Commits for which states are still copied.
    contended: u32,
    archiving: Archiving,
    alarms: Vec<Alarm>,
    pipeline: Pipeline,
}

/// Whether a process may wait for the transaction that folds this event. It depends on the event alone, so that it is
/// known before the batches in front of it are folded: entities that are not stored count too.
fn is_awaited(event: &Event) -> bool {
    matches!(
        event.body,
        Body::Ordered { .. } | Body::Stored { .. } | Body::BaseCreated(_) | Body::Destroyed
    )
}

impl Folder {
    /// Begins to fold a shard and supersedes the process that folded it before. Records the layout in a store that has
    /// none recorded.
    ///
    /// # Errors
    /// When the store cannot be reached, or has another layout.
    #[boxed]
    pub async fn begin(store: Store, shard: Shard, schema: Arc<Schema>) -> Result<Self, FoldError> {
        let work = |transaction: Transaction| async move {
            mark::mark::<FoldError>(&transaction).await?;
            let key = archive::lease_key(shard);
            let lease = archive::FoldLease::decode(transaction.get(&key).await?.as_deref())?;
            let next = archive::FoldLease { term: lease.term + 1 };
            transaction.set(&key, &next.encode())?;
            Ok::<_, FoldError>(next.term)
        };
        // If the answer is lost, the term is raised twice, which is harmless.
        let (term, _) = store.run_repeatable(work).await?;
        Ok(Self {
            migrations: Migrations::read(&store).await?.upto(schema.fingerprint()),
            store,
            shard,
            schema,
            term,
            logs: BTreeMap::new(),
            listed: false,
            follows_definitions: false,
            replay: None,
            shards: BTreeMap::new(),
            pending: VecDeque::new(),
            pending_bytes: 0,
            unfinished: VecDeque::new(),
            snapshots: VecDeque::new(),
            contended: 0,
            archiving: Archiving::default(),
            alarms: Vec::new(),
            pipeline: Pipeline::default(),
        })
    }

    /// Folds a realm that runs: the fold of another shard may change the realm's definitions (rule M7), and nothing is
    /// stored under the former ones afterwards.
    #[must_use]
    pub fn following_definitions(self) -> Self {
        Self {
            follows_definitions: true,
            ..self
        }
    }

    /// Folds an archive again.
    #[must_use]
    pub fn again(self, replay: Arc<Replay>) -> Self {
        Self {
            replay: Some(replay),
            ..self
        }
    }

    /// Returns the sealer for this folder's shard; it works until this folder is superseded.
    #[must_use]
    pub fn sealer(&self) -> Sealer {
        Sealer::new(self.store.clone(), self.shard, self.term)
    }

    /// Returns the tiler for this folder's shard; it works until this folder is superseded.
    #[must_use]
    pub fn tiler(&self) -> Tiler {
        Tiler::new(self.store.clone(), self.shard, self.term)
    }

    /// Returns the retention of this folder's shard; it works until this folder is superseded.
    #[must_use]
    pub fn retention(&self, pace: Pace) -> Retention {
        let place = (self.store.clone(), self.shard, self.term);
        Retention::new(place, Arc::clone(&self.schema), pace)
    }

    /// Accepts a message of the stream. Messages must be offered in the stream's order. Returns whether a process may
    /// wait for the result of folding it: for the ledger's answer, or for an entity that begins, is stored, or ends.
    pub fn offer(&mut self, owner: OwnerId, bytes: Vec<u8>) -> bool {
        match Batch::read(&bytes) {
            Err(source) => {
                self.alarms.push(Alarm::Malformed { owner, source });
                false
            }
            Ok(batch) => {
                let is_awaited = batch.events.iter().any(is_awaited);
                self.offer_read(owner, batch, bytes);
                is_awaited
            }
        }
    }

    /// Accepts a message that is decoded already, as [`Self::offer`] does: `batch` is the decoded form of `bytes`.
    pub(crate) fn offer_read(&mut self, owner: OwnerId, batch: Batch, bytes: Vec<u8>) {
        let named = batch.header.owner;
        if named == owner {
            self.pending_bytes += bytes.len();
            self.pending.push_back(Arc::new(ReceivedBatch { owner, batch, bytes }));
        } else {
            self.alarms.push(Alarm::Misplaced { owner, named });
        }
    }

    /// Whether a commit has work that needs no further message.
    #[must_use]
    pub fn has_work(&self) -> bool {
        let goes_on = |owner| self.logs.get(owner).is_some_and(|log| !log.awaits_opening());
        !self.pending.is_empty()
            || !self.alarms.is_empty()
            || !self.snapshots.is_empty()
            || self.unfinished.iter().any(goes_on)
    }

    /// Bytes that wait to be committed. The shell stops reading at a limit.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Gaps in the logs.
    pub fn missing(&self) -> impl Iterator<Item = Missing> {
        self.logs.iter().filter_map(|(owner, log)| log.missing(*owner))
    }

    /// The folded states, for reading.
    pub fn states(&self) -> impl Iterator<Item = &annals_event::OwnerState> {
        self.logs.values().filter_map(Log::state)
    }

    /// Folds what was offered, as much as one transaction holds. No transaction may be submitted.
    ///
    /// # Errors
    /// When another db process folds the shard, or the store cannot be used; what was offered is kept then.
    ///
    /// # Panics
    /// If the result of a submitted transaction was not taken.
    #[boxed(?Send)]
    pub async fn commit(&mut self) -> Result<Folded, FoldError> {
        assert_eq!(
            self.pipeline.len(),
            0,
            "the results of submitted transactions are taken first"
        );
        self.submit().await?;
        let folded = self.next_folded().await?;
        Ok(folded.expect("invariant: a transaction was just submitted"))
    }

    /// Number of submitted transactions whose result was not taken.
    #[must_use]
    pub fn submitted(&self) -> usize {
        self.pipeline.len()
    }

    /// Waits until the first of the submitted transactions is durable, and returns its result; `None` if there is none. Can
    /// be cancelled and called again.
    ///
    /// # Errors
    /// When the store failed to write it. The folder cannot be used any more.
    #[boxed(?Send)]
    pub async fn next_folded(&mut self) -> Result<Option<Folded>, FoldError> {
        match self.pipeline.next().await {
            Ok(folded) => Ok(folded),
            Err(error) => Err(self.why_lost(error).await),
        }
    }

    /// Waits until all submitted transactions are durable.
    async fn wait_for_submitted(&mut self) -> Result<(), FoldError> {
        match self.pipeline.wait().await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.why_lost(error).await),
        }
    }

    /// Why a submitted transaction may not be durable: a store that fails to write one stops, and says why.
    async fn why_lost(&self, error: StoreError) -> FoldError {
        let stopped = self.store.begin().read_version().await.err();
        stopped.unwrap_or(error).into()
    }

    /// Folds what was offered, as much as one transaction holds, and submits the transaction: it may not be durable yet when
    /// this returns. Its result is to be taken with [`Self::next_folded`].
    ///
    /// # Errors
    /// When another db process folds the shard, or the store cannot be used; what was offered is kept then.
    #[boxed(?Send)]
    pub async fn submit(&mut self) -> Result<(), FoldError> {
        let mut most = usize::MAX;
        let (mut failures, mut conflicts) = (0, 0);
        let mut transaction = self.store.begin_pipelined();
        loop {
            self.load_needed().await?;
            let mut attempt = Attempt::new(transaction.clone(), most);
            let error = match self.run(&mut attempt).await {
                Ok(submitted) => {
                    self.contended = self.contended.saturating_sub(1);
                    attempt.folded.conflicts = conflicts;
                    let folded = self.settle(attempt);
                    self.pipeline.push(submitted, folded);
                    return Ok(());
                }
                Err(error) => error,
            };
            // States that have to be read again are read as the transactions before this one leave them.
            let before = self.wait_for_submitted().await;
            transaction = transaction.repeat();
            // Otherwise the transaction may have been applied, and the copies may be older than the store.
            let is_conflict = matches!(error, FoldError::Store(StoreError::Conflict));
            if is_conflict {
                self.contended = CONTENDED;
                conflicts += 1;
            }
            let last = self.undo(&mut attempt, is_conflict);
            before?;
            if let FoldError::Definitions(to) = error {
                self.adopt(to).await?;
                continue;
            }
            if let Some((owner, number, breach)) = attempt.breach {
                self.halt(Alarm::Ledger { owner, number, breach }, owner);
                continue;
            }
            failures += 1;
            match (&error, last) {
                (FoldError::Store(StoreError::TransactionTooLarge { .. }), Some(_)) if attempt.folded.batches > 1 => {
                    most = attempt.folded.batches / 2;
                }
                // The fold of another shard changes the ledger at the same time: a shorter transaction gets through.
                (FoldError::Store(StoreError::Conflict), _) if failures > CONFLICTS && attempt.folded.batches > 1 => {
                    most = attempt.folded.batches / 2;
                }
                (FoldError::Store(StoreError::TransactionTooLarge { bytes }), Some((owner, number))) => {
                    let bytes = *bytes;
                    self.halt(Alarm::TooLarge { owner, number, bytes }, owner);
                }
                (FoldError::Store(source), _) if source.retry() != Retry::Never && failures < ATTEMPTS => {
                    if *source != StoreError::Conflict {
                        let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE);
                        self.store.backend().wait(pause).await;
                    }
                }
                _ => return Err(error),
            }
        }
    }

    /// Records a hole that no holder has filled (rule F4).
    ///
    /// # Errors
    /// When another db process folds the shard, or the store cannot be used.
    #[boxed]
    pub async fn name_hole(&mut self, missing: Missing) -> Result<(), FoldError> {
        let hole = archive::Hole {
            after: missing.after,
            named: missing.named,
            until: missing.until,
        };
        let key = archive::hole_key(missing.owner, missing.first);
        let (key, value) = (key.as_slice(), hole.encode());
        let (term, shard, value) = (self.term, self.shard, value.as_slice());
        let work = |transaction: Transaction| async move {
            check_lease(&transaction, shard, term).await?;
            Ok::<_, FoldError>(transaction.set(key, value)?)
        };
        self.store.run_repeatable(work).await?;
        if let Some(log) = self.logs.get_mut(&missing.owner) {
            log.name(missing.first);
        }
        Ok(())
    }

    fn settle(&mut self, attempt: Attempt) -> Folded {
        for owner in &attempt.entered {
            if let Some(log) = self.logs.get_mut(owner) {
                log.keep();
            }
        }
        self.unfinished = attempt.unfinished;
        self.drop_idle_snapshots();
        let mut folded = attempt.folded;
        folded.alarms.splice(0..0, self.alarms.drain(..));
        folded
    }

    /// Restores the state before the attempt: with `restores`, folded states of which there is a copy; the others have to be
    /// read again. Returns the batch that the attempt folded last.
    fn undo(&mut self, attempt: &mut Attempt, restores: bool) -> Option<(OwnerId, BatchNumber)> {
        for owner in std::mem::take(&mut attempt.entered) {
            if let Some(log) = self.logs.get_mut(&owner) {
                log.undo(restores);
            }
        }
        for found in attempt.taken.drain(..).rev() {
            self.pending_bytes += found.bytes.len();
            self.pending.push_front(found);
        }
        self.drop_idle_snapshots();
        attempt.last
    }

    fn drop_idle_snapshots(&mut self) {
        let logs = &self.logs;
        let is_writing = |owner: &OwnerId| logs.get(owner).is_some_and(|log| log.snapshots.is_writing());
        self.snapshots.retain(is_writing);
    }

    fn halt(&mut self, alarm: Alarm, owner: OwnerId) {
        self.alarms.push(alarm);
        if let Some(log) = self.logs.get_mut(&owner) {
            log.halt();
            log.keep();
        }
    }
}

/// The error to report for one that a db met in this term. Its successor may change the archive between two of its
/// transactions, so what looks like damage counts only while the db holds the lease.
pub(crate) async fn unless_superseded(store: &Store, shard: Shard, term: u64, error: FoldError) -> FoldError {
    if !matches!(error, FoldError::Store(StoreError::Corrupt(_))) {
        return error;
    }
    let check = |transaction: Transaction| async move { check_lease(&transaction, shard, term).await };
    // Without an answer the lease is not known to be held.
    store.read(check).await.err().unwrap_or(error)
}

pub(crate) async fn check_lease(transaction: &Transaction, shard: Shard, term: u64) -> Result<(), FoldError> {
    let value = transaction.get(&archive::lease_key(shard)).await?;
    let lease = archive::FoldLease::decode(value.as_deref())?;
    if lease.term == term {
        Ok(())
    } else {
        Err(FoldError::Superseded {
            shard,
            term: lease.term,
        })
    }
}
