//! Folding: the stream's batches into archive, snapshots and database, in the stream's order (rules F1 to F5).
//!
//! [`Folder::offer`] takes what the stream holds, [`Folder::commit`] puts a part of it into the store in one transaction.
//! The state in memory is only ever ahead of the store within a commit; when one fails, or nobody knows whether it did, it
//! is read anew. A log that cannot go on (a hole, an `Open` that is not recorded, a defect) waits by itself.

mod archiving;
mod attempt;
pub(crate) mod effects;
mod log;
mod snapshot;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use annals_def::Schema;
use annals_event::{Batch, Malformed};
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
use log::Log;

use crate::{
    retention::{Pace, Retention},
    sealing::Sealer,
    tiling::Tiler,
};

/// How often a commit is tried that lost against another transaction, or whose store did not answer. With the pauses it is
/// half a minute.
const ATTEMPTS: u32 = 40;

/// Pause after the first attempt that failed because the store was away; doubled with each further one, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A message of the stream.
#[derive(Debug)]
struct Found {
    /// Whose log, as its subject says.
    owner: OwnerId,
    /// The batch.
    batch: Batch,
    /// Its bytes.
    bytes: Vec<u8>,
}

/// Why folding stops.
#[derive(Debug, Error)]
pub enum FoldError {
    /// Another db folds this shard now.
    #[error("shard {shard} is folded by another db (term {term}); this one stands by")]
    Superseded {
        /// Which shard.
        shard: Shard,
        /// The other's term.
        term: u64,
    },
    /// The store was written by a program that knows another layout.
    #[error("nothing can be folded into this store")]
    Layout(#[from] OtherLayout),
    /// The store did not answer.
    #[error("the store did not take what was to be folded")]
    Store(#[from] StoreError),
}

/// Something in the stream that is no part of any log, or that a log or the database cannot take. Alarms: the realm goes
/// on, an operator must look.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Alarm {
    /// A message is no batch.
    #[error("a message of owner {owner}'s log is not a batch: {source}")]
    Malformed {
        /// Whose log.
        owner: OwnerId,
        /// What is wrong.
        source: Malformed,
    },
    /// A batch names another owner than its subject.
    #[error("a batch of owner {named} lies in the log of owner {owner}")]
    Misplaced {
        /// Whose log.
        owner: OwnerId,
        /// Whom the batch names.
        named: OwnerId,
    },
    /// A batch has the right number and does not continue the log, or fills a hole and is not what is missing there.
    #[error(
        "batch {number} of owner {owner} (hash {hash}) is not what belongs there: {expected} should stand there or before it"
    )]
    Contradiction {
        /// Whose log.
        owner: OwnerId,
        /// Which batch.
        number: BatchNumber,
        /// Its hash.
        hash: Hash,
        /// The hash of the batch before, or of the one that belongs in the hole.
        expected: Hash,
    },
    /// A batch of an epoch that was never granted.
    #[error("batch {number} of owner {owner} is of an epoch that was never granted")]
    Ungranted {
        /// Whose log.
        owner: OwnerId,
        /// Which batch.
        number: BatchNumber,
    },
    /// A batch holds what cannot have happened.
    #[error("owner {owner}'s log stands still before batch {number}, which cannot have happened: {why}")]
    Impossible {
        /// Whose log.
        owner: OwnerId,
        /// Which batch.
        number: BatchNumber,
        /// What stands against it.
        why: String,
    },
    /// What is archived of a log cannot be read.
    #[error("owner {owner}'s log stands still: {why}")]
    Unreadable {
        /// Whose log.
        owner: OwnerId,
        /// What is wrong.
        why: String,
    },
    /// A batch asks for more than a transaction can do.
    #[error(
        "owner {owner}'s log stands still before batch {number}: it writes {bytes} B to the database, more than one transaction takes"
    )]
    TooLarge {
        /// Whose log.
        owner: OwnerId,
        /// Which batch.
        number: BatchNumber,
        /// What the transaction would take.
        bytes: usize,
    },
    /// The ledger contradicts itself.
    #[error("owner {owner}'s log stands still before batch {number}, which the ledger cannot take: {breach}")]
    Ledger {
        /// Whose log.
        owner: OwnerId,
        /// Which batch.
        number: BatchNumber,
        /// What is wrong with the ledger.
        breach: Breach,
    },
    /// An entity is of a type that the schema does not have.
    #[error("entity {database} of the database was not written: the schema has no type {type_id}")]
    UnknownType {
        /// Which entity.
        database: DatabaseId,
        /// Its type.
        type_id: TypeId,
    },
    /// An entity was to be written that was asked for under former definitions, and has no counterpart under the present ones.
    #[error("entity {database} of the database was not written: {why}")]
    Unconverted {
        /// Which entity.
        database: DatabaseId,
        /// What has no counterpart.
        why: String,
    },
    /// A value that only one entity may have is taken.
    #[error("entity {database} of the database has the {property} of entity {holder} and is not found by it")]
    IdentifierTaken {
        /// Which entity.
        database: DatabaseId,
        /// Which property: an identifier, or one with a unique index.
        property: String,
        /// Who has the identifier.
        holder: DatabaseId,
    },
}

/// Batches of a log that are missing before those that are there (rule F4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Whose log.
    pub owner: OwnerId,
    /// The first that is missing.
    pub first: BatchNumber,
    /// The first that is there again.
    pub until: BatchNumber,
    /// The hash of the batch before the hole.
    pub after: Hash,
    /// The hash that the batch behind it names.
    pub named: Hash,
}

/// What one commit did.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    /// The new cursors of the logs that moved on, to be announced (rule F6).
    pub cursors: Vec<(OwnerId, Cursor)>,
    /// How many batches were folded.
    pub batches: usize,
    /// How many events they held.
    pub events: u64,
    /// How many bytes they had.
    pub bytes: u64,
    /// What is wrong with the stream.
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
    /// Whether `logs` has every owner of the shard of which anything is folded.
    listed: bool,
    pending: VecDeque<Arc<Found>>,
    pending_bytes: usize,
    /// Logs that may go on without another message: the last transaction was full, or an `Open` may be recorded by now.
    unfinished: VecDeque<OwnerId>,
    /// Logs of which a snapshot is being written, in their turn.
    snapshots: VecDeque<OwnerId>,
    archiving: Archiving,
    alarms: Vec<Alarm>,
}

impl Folder {
    /// Begins to fold a shard; whoever folded it before is superseded. A store that does not say its layout says it from then on.
    ///
    /// # Errors
    /// When the store cannot be reached, or is of another layout.
    pub async fn begin(store: Store, shard: Shard, schema: Arc<Schema>) -> Result<Self, FoldError> {
        let work = |transaction: Transaction| async move {
            mark::mark::<FoldError>(&transaction).await?;
            let key = archive::lease_key(shard);
            let lease = archive::FoldLease::decode(transaction.get(&key).await?.as_deref())?;
            let next = archive::FoldLease { term: lease.term + 1 };
            transaction.set(&key, &next.encode())?;
            Ok::<_, FoldError>(next.term)
        };
        // A lost answer raises the term twice, which harms nobody.
        let (term, _) = store.run_repeatable(work).await?;
        Ok(Self {
            migrations: Migrations::read(&store).await?.upto(schema.fingerprint()),
            store,
            shard,
            schema,
            term,
            logs: BTreeMap::new(),
            listed: false,
            pending: VecDeque::new(),
            pending_bytes: 0,
            unfinished: VecDeque::new(),
            snapshots: VecDeque::new(),
            archiving: Archiving::default(),
            alarms: Vec::new(),
        })
    }

    /// Seals what this one archives, for as long as nobody supersedes it.
    #[must_use]
    pub fn sealer(&self) -> Sealer {
        Sealer::new(self.store.clone(), self.shard, self.term)
    }

    /// Writes the tiles of what this one archives, for as long as nobody supersedes it.
    #[must_use]
    pub fn tiler(&self) -> Tiler {
        Tiler::new(self.store.clone(), self.shard, self.term)
    }

    /// Lets go of what this one archives, for as long as nobody supersedes it.
    #[must_use]
    pub fn retention(&self, pace: Pace) -> Retention {
        Retention::new(self.store.clone(), self.shard, self.term, pace)
    }

    /// Takes a message of the stream, in the stream's order.
    pub fn offer(&mut self, owner: OwnerId, bytes: Vec<u8>) {
        match Batch::read(&bytes) {
            Err(source) => self.alarms.push(Alarm::Malformed { owner, source }),
            Ok(batch) => self.offer_read(owner, batch, bytes),
        }
    }

    /// Takes a message that is read already, as [`Self::offer`] does: this is the batch in these bytes.
    pub(crate) fn offer_read(&mut self, owner: OwnerId, batch: Batch, bytes: Vec<u8>) {
        let named = batch.header.owner;
        if named == owner {
            self.pending_bytes += bytes.len();
            self.pending.push_back(Arc::new(Found { owner, batch, bytes }));
        } else {
            self.alarms.push(Alarm::Misplaced { owner, named });
        }
    }

    /// Whether a commit has something to do that is there already.
    #[must_use]
    pub fn has_work(&self) -> bool {
        let goes_on = |owner| self.logs.get(owner).is_some_and(|log| !log.awaits_opening());
        !self.pending.is_empty()
            || !self.alarms.is_empty()
            || !self.snapshots.is_empty()
            || self.unfinished.iter().any(goes_on)
    }

    /// Bytes that wait to be committed: at some point the shell reads no further.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// What is missing in the logs.
    pub fn missing(&self) -> impl Iterator<Item = Missing> {
        self.logs.iter().filter_map(|(owner, log)| log.missing(*owner))
    }

    /// The folded states, for reading.
    pub fn states(&self) -> impl Iterator<Item = &annals_event::OwnerState> {
        self.logs.values().filter_map(Log::state)
    }

    /// Folds what was offered, as much as one transaction holds.
    ///
    /// # Errors
    /// When another db folds the shard, or the store cannot be used; what was offered is still there then.
    pub async fn commit(&mut self) -> Result<Folded, FoldError> {
        let mut most = usize::MAX;
        let mut failures = 0;
        loop {
            self.load_needed().await?;
            let mut attempt = Attempt::new(self.store.begin(), most);
            let Err(error) = self.run(&mut attempt).await else {
                return Ok(self.settle(attempt));
            };
            let last = self.undo(&mut attempt);
            if let Some((owner, number, breach)) = attempt.breach {
                self.halt(Alarm::Ledger { owner, number, breach }, owner);
                continue;
            }
            failures += 1;
            match (&error, last) {
                (FoldError::Store(StoreError::TransactionTooLarge { .. }), Some(_)) if attempt.folded.batches > 1 => {
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

    /// Records a hole that nobody filled (rule F4).
    ///
    /// # Errors
    /// When another db folds the shard, or the store cannot be used.
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

    /// Puts everything back as it was before the attempt; what is folded has to be read again. Says which batch the attempt
    /// folded last.
    fn undo(&mut self, attempt: &mut Attempt) -> Option<(OwnerId, BatchNumber)> {
        for owner in std::mem::take(&mut attempt.entered) {
            if let Some(log) = self.logs.get_mut(&owner) {
                log.undo();
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
