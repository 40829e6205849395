//! Comparison of a store with the logs beside it: do they belong together (rule F17)?
//!
//! A store that was restored from an older backup, or a stream of another time or another realm, looks like the traces
//! of a crash. A grant on such a store voids what players were shown. [`compare_log`] distinguishes the cases, log by
//! log, before anything is granted: it compares the stream's messages of a log with the store's records of it. A
//! [`Comparison`] of all logs decides whether the realm may start.
//!
//! A log must be read before it is compared: a holder has its grant recorded in the store before it appends, so a store
//! that is read after the log knows of everything in the log, unless the store is older.

mod mismatch;

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Batch, Body, GlobalScope, Header, Subject};
use annals_ids::{BatchNumber, DatabaseId, Epoch, Hash, LeafIndex, OwnerId, OwnerKind, Part, Shard, WallTime};
use annals_node::{
    chain::assemble,
    writer::{Opening, Tip},
};
use annals_store::{
    ScanOrder, Store, StoreError, Transaction,
    layout::{
        archive,
        director::{self, Counter},
        lineage::{self, Lineage},
        owners::{self, Cursor, OpeningRecord, OwnerRecord},
    },
};

use crate::recovery::{RecoveryError, read_archived};
pub use mismatch::{Direction, Mismatch};

/// Maximum batches of a log whose hashes are compared with the archive before the log counts as another history.
const COMPARED: usize = 64;

/// Reason why the store cannot know a log, or its end: the log contains something that the store gives out first, and
/// has not given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The store has no such owner.
    Owner,
    /// A batch has an epoch that the store has not granted.
    Epoch {
        /// Newest epoch that it has granted.
        granted: Epoch,
        /// Newest epoch in the log.
        found: Epoch,
    },
    /// A batch follows an `Open` that the store has not recorded.
    Opening {
        /// Epoch of the `Open`.
        epoch: Epoch,
        batch: BatchNumber,
    },
    /// An event names an entity, a stored entity or a check-out whose number the store has not given out.
    Number {
        /// The number.
        found: u64,
        /// Next number that the store would give out.
        next: u64,
    },
}

/// Relation of a log to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The log continues where the archive ends, or ends there, as after any crash.
    Agrees,
    /// The log contains more than the store knows: the store is older.
    Ahead(Unknown),
    /// The log begins after the next expected batch: the store is older, or the log has lost its beginning.
    Detached {
        /// First batch that is present.
        first: BatchNumber,
    },
    /// The log ends before something that the store has recorded of it: the log is older, or has lost its end.
    Behind {
        /// Last batch that is present; 0 if there is none.
        last: BatchNumber,
        /// Batch that the store has recorded.
        known: BatchNumber,
    },
    /// The log has another history than the archive: it is of another realm, or of another branch of this one.
    Foreign {
        /// Last batch that is present.
        last: BatchNumber,
    },
}

/// What a log contains beyond the archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Number of batches.
    pub batches: u64,
    /// Number of their events.
    pub events: u64,
    /// When the first of them was closed, by its writer's clock.
    pub from: WallTime,
    /// When the last of them was closed.
    pub to: WallTime,
}

/// A log, compared with the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedLog {
    pub owner: OwnerId,
    /// Its relation to the store.
    pub standing: Standing,
    /// Cursor up to which it is archived.
    pub cursor: Cursor,
    /// What it contains beyond the archive.
    pub beyond: Beyond,
    /// When the newest batch that the store knows was closed, if the log still has a batch that the store knows.
    pub known_to: Option<WallTime>,
    /// Whether the realm was stopped in order, so that the archive has the whole log.
    closed: bool,
}

/// All logs of a shard, compared with the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Each log that the store or the stream knows.
    pub logs: BTreeMap<OwnerId, ComparedLog>,
}

/// A batch of a log, with the fields used here.
pub(crate) struct Read<'a> {
    pub(crate) header: Header,
    pub(crate) hash: Hash,
    pub(crate) bytes: &'a [u8],
}

/// The store's records of a log.
pub(crate) struct Known {
    pub(crate) record: Option<OwnerRecord>,
    pub(crate) cursor: Cursor,
    /// Openings of the cursor's epoch and higher ones.
    pub(crate) openings: Vec<OpeningRecord>,
    next_entity: u64,
    next_checkout: u64,
    closed: bool,
    /// Whether all of its archive was restored from a backup, so that it is in no stream.
    restored: bool,
}

/// Compares the stream's messages of a log, its batches and fills in any order, with the store's records of it.
///
/// # Errors
/// When the store cannot be read.
#[boxed(?Send)]
pub async fn compare_log(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
    batches: &[Vec<u8>],
) -> Result<ComparedLog, RecoveryError> {
    let known = read_known(store, shard, owner).await;
    let known = known.map_err(|source| RecoveryError::Store { owner, source })?;
    let read = read_batches(owner, batches);
    let foreign = is_foreign(store, shard, &known.cursor, &read).await?;
    let standing = if foreign {
        let last = read.iter().map(|read| read.header.number).max();
        Standing::Foreign {
            last: last.unwrap_or_default(),
        }
    } else {
        known.judge(owner, &read)
    };
    let cursor = known.cursor;
    let walls = read.iter().filter(|read| read.header.number <= cursor.batch);
    Ok(ComparedLog {
        owner,
        standing,
        cursor,
        beyond: Beyond::of(read.iter().filter(|read| read.header.number > cursor.batch)),
        known_to: walls.map(|read| read.header.wall).max(),
        closed: known.closed,
    })
}

/// The batches among the messages of a log, each once, by number. Messages that are no batch of this owner are left to
/// db to report.
pub(crate) fn read_batches(owner: OwnerId, batches: &[Vec<u8>]) -> Vec<Read<'_>> {
    let read = batches.iter().filter_map(|bytes| {
        let (header, hash) = Header::read(bytes).ok()?;
        (header.owner == owner).then_some(Read { header, hash, bytes })
    });
    let mut read: Vec<Read<'_>> = read.collect();
    read.sort_by_key(|read| (read.header.number, read.header.epoch, read.hash));
    read.dedup_by_key(|read| read.hash);
    read
}

pub(crate) async fn read_known(store: &Store, shard: Shard, owner: OwnerId) -> Result<Known, StoreError> {
    let read = |transaction: Transaction| async move {
        let record = transaction.get(&owners::owner_key(owner)).await?;
        let record = record.map(|value| OwnerRecord::decode(&value)).transpose()?;
        let cursor = Cursor::decode(transaction.get(&owners::cursor_key(owner)).await?.as_deref())?;
        let openings = owners::read_openings(&transaction, owner, cursor.epoch).await?;
        let counter = |counter| {
            let transaction = &transaction;
            async move {
                let value = transaction.get(&director::counter_key(counter)).await?;
                director::decode_counter(value.as_deref())
            }
        };
        Ok(Known {
            record: record.filter(|record| record.shard == shard),
            openings,
            next_entity: counter(Counter::Entities).await?,
            next_checkout: counter(Counter::Checkouts).await?,
            closed: transaction.get(&director::closed_key()).await?.is_some(),
            restored: is_restored(&transaction, (shard, owner), cursor).await?,
            cursor,
        })
    };
    store.read(read).await
}

/// Whether a log's newest archived batch came into the archive from a backup.
async fn is_restored(
    transaction: &Transaction,
    (shard, owner): (Shard, OwnerId),
    cursor: Cursor,
) -> Result<bool, StoreError> {
    let page = transaction
        .get_range(&lineage::restorations(), 1, ScanOrder::Reverse)
        .await?;
    let last = page.rows.first().map(|(_, value)| Lineage::decode(value)).transpose()?;
    let place = transaction.get(&archive::place_key(owner, cursor.batch)).await?;
    let leaf: Option<LeafIndex> = place.map(|place| archive::decode_place(&place)).transpose()?;
    Ok(last.is_some_and(|last| leaf.is_none_or(|leaf| leaf < last.leaf_of(shard))))
}

/// Whether a log has another history than its archive. The newest of its batches that the archive should have decides:
/// it is in the archive, unless it was void because its epoch is older than that of the archived batch.
async fn is_foreign(store: &Store, shard: Shard, cursor: &Cursor, read: &[Read<'_>]) -> Result<bool, RecoveryError> {
    let continues = |read: &Read<'_>| read.header.number == cursor.batch.next() && read.header.previous == cursor.hash;
    if cursor.batch == BatchNumber(0) || read.iter().any(continues) {
        return Ok(false);
    }
    let older = read.iter().filter(|read| read.header.number <= cursor.batch);
    let numbers: BTreeSet<BatchNumber> = older.map(|read| read.header.number).collect();
    for number in numbers.iter().rev().take(COMPARED) {
        let mut here = read.iter().filter(|read| read.header.number == *number).peekable();
        let Some(owner) = here.peek().map(|read| read.header.owner) else {
            continue;
        };
        let archived = read_archived(store, shard, owner, BatchNumber(number.0 - 1), 1).await?;
        let archived = archived
            .first()
            .and_then(|(_, archived)| Header::read(archived.header()).ok());
        let Some((header, hash)) = archived else {
            return Ok(true);
        };
        if here.clone().any(|read| read.hash == hash) {
            return Ok(false);
        }
        if here.any(|read| read.header.epoch >= header.epoch && !is_bare_open(&read.header)) {
            return Ok(true);
        }
    }
    let next = read.iter().any(|read| read.header.number == cursor.batch.next());
    Ok(!numbers.is_empty() || next)
}

/// Whether a batch only opens an epoch. Such a batch may have been given up, and so may be anywhere.
pub(crate) fn is_bare_open(header: &Header) -> bool {
    header.opens && header.events == 0 && header.consumed.is_empty()
}

impl Known {
    fn judge(&self, owner: OwnerId, read: &[Read<'_>]) -> Standing {
        if let Some(unknown) = self.unknown(read) {
            return Standing::Ahead(unknown);
        }
        if self.record.is_none() {
            return Standing::Agrees;
        }
        let last = read.last().map(|read| read.header.number).unwrap_or_default();
        let recorded = self.openings.iter().filter(|opening| !opening.closes_a_hole());
        let known = recorded.map(|opening| opening.number).chain([self.cursor.batch]).max();
        let known = known.unwrap_or_default();
        if last < known && !self.restored {
            return Standing::Behind { last, known };
        }
        match self.first_missing(owner, read) {
            Some(first) => Standing::Detached { first },
            None => Standing::Agrees,
        }
    }

    /// What the log contains that the store would know of unless it is older.
    fn unknown(&self, read: &[Read<'_>]) -> Option<Unknown> {
        let found = read.iter().map(|read| read.header.epoch).max()?;
        let Some(record) = self.record else {
            return Some(Unknown::Owner);
        };
        if found > record.epoch {
            let granted = record.epoch;
            return Some(Unknown::Epoch { granted, found });
        }
        let beyond = || read.iter().filter(|read| read.header.number > self.cursor.batch);
        let unrecorded = beyond().find(|read| self.is_unrecorded(&read.header));
        if let Some(read) = unrecorded {
            return Some(Unknown::Opening {
                epoch: read.header.epoch,
                batch: read.header.number,
            });
        }
        let numbers = beyond().fold(Numbers::default(), |numbers, read| numbers.and(read.bytes));
        let given = [
            (numbers.entity, self.next_entity),
            (numbers.checkout, self.next_checkout),
        ];
        let ungiven = given.into_iter().find(|(found, next)| found >= next);
        ungiven.map(|(found, next)| Unknown::Number { found, next })
    }

    /// Whether a batch follows an `Open` that is not recorded: a writer appends nothing after an `Open` before it is
    /// recorded (rule E3).
    fn is_unrecorded(&self, header: &Header) -> bool {
        let is_recorded = self.openings.iter().any(|opening| opening.epoch == header.epoch);
        let is_void = |opening: &OpeningRecord| opening.epoch > header.epoch && opening.number <= header.number;
        !header.opens && header.epoch > self.cursor.epoch && !is_recorded && !self.openings.iter().any(is_void)
    }

    /// First batch that is present, if the one after the cursor is not.
    fn first_missing(&self, owner: OwnerId, read: &[Read<'_>]) -> Option<BatchNumber> {
        let tip = Tip {
            number: self.cursor.batch,
            hash: self.cursor.hash,
        };
        let openings: Vec<Opening> = self.openings.iter().map(opening).collect();
        let batches = read.iter().map(|read| read.bytes.to_vec());
        let hole = assemble(owner, tip, &openings, batches, 0).err()?;
        (hole.missing == self.cursor.batch.next()).then_some(hole.successor)
    }
}

/// Converts an opening to the type of the chain's rules.
pub(crate) fn opening(record: &OpeningRecord) -> Opening {
    let OpeningRecord { epoch, number, hash } = *record;
    Opening { epoch, number, hash }
}

/// Highest numbers that a log's events name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Highest number of an entity or stored entity; these share a counter.
    pub(crate) entity: u64,
    /// Highest number of a check-out.
    pub(crate) checkout: u64,
    /// Highest generation of call numbers.
    pub(crate) call_generation: u64,
}

impl Numbers {
    /// Maximum of these numbers and those in the events of a batch. A batch that cannot be read is left to db to
    /// report.
    pub(crate) fn and(mut self, bytes: &[u8]) -> Self {
        let Ok(batch) = Batch::read(bytes) else { return self };
        for event in &batch.events {
            let subject = match event.subject {
                // No counter gives out the ids of fragments (rule C16).
                Subject::Entity(entity, _) if entity.fragment().is_none() => entity.0,
                Subject::Entity(..) | Subject::Owner => 0,
            };
            let (database, checkout) = match &event.body {
                Body::BaseCreated(creation) => (creation.database, creation.checkout),
                Body::Stored { database } => (*database, 0),
                _ => (DatabaseId(0), 0),
            };
            if let Body::CallsRenumbered { generation } = event.body {
                self.call_generation = self.call_generation.max(generation);
            }
            self.entity = self.entity.max(subject).max(database.0);
            self.checkout = self.checkout.max(checkout);
        }
        self
    }
}

/// Kind of the owner that writes this log; `None` if nothing in it determines the kind.
pub(crate) fn kind_of(read: &[Read<'_>]) -> Option<OwnerKind> {
    let events = read.iter().filter_map(|read| Batch::read(read.bytes).ok());
    let mut kinds = events
        .flat_map(|batch| batch.events)
        .filter_map(|event| match event.subject {
            Subject::Entity(_, Part::Base) => Some(OwnerKind::Base),
            Subject::Entity(_, Part::Cell) => Some(OwnerKind::Cell),
            Subject::Owner => match event.body {
                Body::Entered { .. } => Some(OwnerKind::Ledger),
                Body::Bootstrapped { .. } => Some(OwnerKind::Base),
                Body::GlobalData {
                    scope: GlobalScope::Bases,
                    ..
                } => Some(OwnerKind::Base),
                Body::SpaceData { .. }
                | Body::GlobalData {
                    scope: GlobalScope::Cells,
                    ..
                } => Some(OwnerKind::Cell),
                _ => None,
            },
        });
    kinds.next()
}

impl Beyond {
    pub(crate) fn of<'a, 'b: 'a>(read: impl Iterator<Item = &'a Read<'b>>) -> Self {
        read.fold(Self::default(), |beyond, read| {
            beyond.and(read.header.events, read.header.wall)
        })
    }

    fn and(self, events: u32, wall: WallTime) -> Self {
        Self {
            batches: self.batches + 1,
            events: self.events + u64::from(events),
            from: if self.batches == 0 { wall } else { self.from.min(wall) },
            to: self.to.max(wall),
        }
    }

    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self.batches, other.batches) {
            (_, 0) => self,
            (0, _) => other,
            _ => Self {
                batches: self.batches + other.batches,
                events: self.events + other.events,
                from: self.from.min(other.from),
                to: self.to.max(other.to),
            },
        }
    }
}

impl Comparison {
    /// Adds a log.
    pub fn add(&mut self, log: ComparedLog) {
        self.logs.insert(log.owner, log);
    }

    /// Returns the reason why the realm must not start, if there is one. `is_held` says that a process holds an owner:
    /// it restores what the stream has lost, so a stream that ends too early or begins too late is then no sign of
    /// another time.
    #[must_use]
    pub fn mismatch(&self, is_held: bool) -> Option<Mismatch> {
        let stands = |log: &&ComparedLog| match log.standing {
            Standing::Agrees => false,
            Standing::Ahead(_) | Standing::Foreign { .. } => true,
            Standing::Detached { .. } => !is_held,
            Standing::Behind { .. } => !is_held && !log.closed,
        };
        let logs: Vec<ComparedLog> = self.logs.values().filter(stands).cloned().collect();
        Mismatch::of(logs)
    }
}
