//! Walks one log in the archive, batch by batch, with all its faults. The checker and `annals log` use it.

use async_recursion::async_recursion as boxed;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use annals_db::{RecoveryError, read_archived, read_cursor, read_floor_batch};
use annals_event::{Batch, Header, Malformed, Tail, Thinned};
use annals_ids::{BatchNumber, EventNumber, LeafIndex, OwnerId, Shard};
use annals_store::{
    ArchivedBatch, Store, StoreError, Transaction,
    layout::{
        archive::{self, Tree},
        owners::{self, Cursor},
        shards,
    },
};

/// Batches per read.
const PAGE: usize = 64;

/// Maximum missing batches of one log; after that the rest of it is not read.
const MAX_MISSING: u64 = 10_000;

/// What is wrong with an archived batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is missing.
    Missing,
    /// Too many are missing: the rest of the log was not read.
    TooMany,
    /// Its bytes were changed after it was archived.
    Damaged(String),
    /// Another batch is in its place.
    Misplaced,
    /// Its events are deleted, although it is above the floor of its log, as the floor was when it was read.
    Deleted,
    /// It has the number of the batch of its log's floor, but is a different one.
    Floor,
    /// Its previous hash is not the hash of the batch before it.
    Unchained,
    /// Its events do not continue those of the batch before it.
    Misnumbered {
        /// The number of its first event.
        first: EventNumber,
        /// The number that this event should have.
        expected: EventNumber,
    },
}

/// One step of a walk: a batch that should be in the archive.
#[derive(Clone, Debug)]
pub struct Step {
    /// Number of the batch.
    pub number: BatchNumber,
    /// Its leaf, if the archive has one.
    pub leaf: Option<LeafIndex>,
    /// Its stored bytes, from its header on.
    pub bytes: Vec<u8>,
    /// The batch, if it can be decoded and is the one that belongs there.
    pub batch: Option<Batch>,
    /// Its thinned form, at or below the floor: whether or not its events are still there, nothing may be based on
    /// them.
    pub deleted: Option<Thinned>,
    /// Its fault. A batch may be intact and yet not continue the one before.
    pub fault: Option<Fault>,
}

/// Walks one log of an archive from front to back. Faults are part of the result; after a faulty batch, the next one is
/// trusted as it is.
#[derive(Clone)]
pub struct LogWalk {
    store: Store,
    shard: Shard,
    owner: OwnerId,
    cursor: Cursor,
    /// The last batch visited.
    reached: BatchNumber,
    /// The tail that the next batch must follow, if known.
    tail: Option<Tail>,
    /// The batch of the log's floor, below which events may be deleted (rule F14).
    floor: Option<BatchNumber>,
    read: VecDeque<(LeafIndex, ArchivedBatch)>,
    limit: usize,
    missing: u64,
}

/// Position of a [`LogWalk`] between two batches.
#[derive(Clone, Copy, Debug)]
pub struct WalkPlace {
    reached: BatchNumber,
    tail: Option<Tail>,
}

impl LogWalk {
    /// Begins at the first batch.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[boxed]
    pub async fn begin(store: &Store, shard: Shard, owner: OwnerId) -> Result<Self, StoreError> {
        let mut walk = Self::after(store, shard, owner, BatchNumber(0)).await?;
        walk.tail = Some(Tail::default());
        Ok(walk)
    }

    /// Begins after the batch `reached`, which is trusted as it is.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[boxed]
    pub async fn after(store: &Store, shard: Shard, owner: OwnerId, reached: BatchNumber) -> Result<Self, StoreError> {
        Ok(Self {
            cursor: read_cursor(store, owner).await?,
            floor: read_floor_batch(store, shard, owner).await.map_err(of_recovery)?,
            store: store.clone(),
            shard,
            owner,
            reached,
            tail: None,
            read: VecDeque::new(),
            limit: PAGE,
            missing: 0,
        })
    }

    /// The last archived batch of the log, as the store reported it last.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The batch of the log's floor, if it has one: as read when the walk began, or as set by [`Self::begin_at`] since.
    #[must_use]
    pub fn floor(&self) -> Option<BatchNumber> {
        self.floor
    }

    /// Sets the batch of the log's floor to its current one.
    pub fn begin_at(&mut self, floor: Option<BatchNumber>) {
        self.floor = floor;
    }

    /// The end of the visited log, if its last batch had no fault.
    #[must_use]
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }

    /// The current position.
    pub fn place(&self) -> WalkPlace {
        WalkPlace {
            reached: self.reached,
            tail: self.tail,
        }
    }

    /// Returns to a position, and reads again from there.
    pub fn return_to(&mut self, place: WalkPlace) {
        assert!(place.reached <= self.reached, "the position of the walk is valid");
        (self.reached, self.tail) = (place.reached, place.tail);
        self.read.clear();
    }

    /// Reads how far the log is archived now, and continues from the current position.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[boxed]
    pub async fn extend(&mut self) -> Result<(), StoreError> {
        self.cursor = read_cursor(&self.store, self.owner).await?;
        Ok(())
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// When the store does not answer.
    #[boxed]
    pub async fn next(&mut self) -> Result<Option<Step>, StoreError> {
        loop {
            let next = self.reached.next();
            if let Some((leaf, archived)) = self.read.pop_front() {
                return Ok(Some(self.take(next, leaf, &archived)));
            }
            if self.reached >= self.cursor.batch || self.missing > MAX_MISSING {
                return Ok(None);
            }
            match read_archived(&self.store, self.shard, self.owner, self.reached, self.limit).await {
                Ok(batches) if !batches.is_empty() => {
                    self.read = batches.into();
                    self.limit = PAGE;
                }
                Ok(_) => return Ok(Some(self.lack(next, Fault::Missing))),
                // The batches before it are read first.
                Err(RecoveryError::Missing { batch, .. }) if batch > next => {
                    self.limit = usize::try_from(batch.0 - next.0).unwrap_or(PAGE);
                }
                Err(RecoveryError::Missing { .. }) => return Ok(Some(self.lack(next, Fault::Missing))),
                Err(RecoveryError::Store { source, .. }) => match source {
                    StoreError::Corrupt(what) if self.limit == 1 => {
                        return Ok(Some(self.lack(next, Fault::Damaged(what.to_string()))));
                    }
                    // Reading them one by one shows which of them it is.
                    StoreError::Corrupt(_) => self.limit = 1,
                    source => return Err(source),
                },
                // Reading the archive's rows decodes nothing.
                Err(other) => return Err(StoreError::Corrupt(other.to_string().into())),
            }
        }
    }

    fn lack(&mut self, number: BatchNumber, fault: Fault) -> Step {
        self.missing += 1;
        self.pass(number, None);
        let fault = if self.missing > MAX_MISSING {
            Fault::TooMany
        } else {
            fault
        };
        Step {
            number,
            leaf: None,
            bytes: Vec::new(),
            batch: None,
            deleted: None,
            fault: Some(fault),
        }
    }

    fn take(&mut self, number: BatchNumber, leaf: LeafIndex, archived: &ArchivedBatch) -> Step {
        let is_below = self.floor.is_some_and(|floor| number <= floor);
        let (mut batch, mut deleted, mut tail) = (None, None, None);
        let fault = match Content::read(archived, is_below) {
            Err(malformed) => Some(Fault::Damaged(malformed.to_string())),
            Ok(content) => {
                let (header, end) = content.place();
                if (header.owner, header.number) == (self.owner, number) {
                    tail = Some(end);
                    let fault = self.tail.and_then(|before| discontinuity(header, &before));
                    match content {
                        Content::Whole(whole) => batch = Some(*whole),
                        Content::Deleted(thinned) => deleted = Some(*thinned),
                    }
                    let is_lost = deleted.is_some() && !is_below;
                    is_lost.then_some(Fault::Deleted).or(fault)
                } else {
                    Some(Fault::Misplaced)
                }
            }
        };
        self.pass(number, tail);
        Step {
            number,
            leaf: Some(leaf),
            bytes: archived.header().to_vec(),
            batch,
            deleted,
            fault,
        }
    }

    fn pass(&mut self, number: BatchNumber, tail: Option<Tail>) {
        self.reached = number;
        self.tail = tail;
        // The batches up to this one are read; the next read may be a full page.
        self.limit = PAGE;
    }
}

/// The stored tree of a shard: the number of leaves of its archive, and their edge.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read_tree(store: &Store, shard: Shard) -> Result<Tree, StoreError> {
    let read = |transaction: Transaction| async move {
        let value = transaction.snapshot().get(&archive::tree_key(shard)).await?;
        Tree::decode(value.as_deref())
    };
    store.read(read).await
}

/// The stored trees of all shards, as they are at the same time. Those that are `known` are included even if the store
/// no longer says that the realm has them.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read_trees(store: &Store, known: &BTreeSet<Shard>) -> Result<BTreeMap<Shard, Tree>, StoreError> {
    let read = |transaction: Transaction| async move {
        let mut trees = BTreeMap::new();
        let count = shards::read_count(&transaction).await?;
        let owners = owners::read_owners(&transaction).await?;
        let all: BTreeSet<Shard> = shards::all(count)
            .chain(owners.values().map(|record| record.shard))
            .chain(known.iter().copied())
            .collect();
        for shard in all {
            let value = transaction.snapshot().get(&archive::tree_key(shard)).await?;
            trees.insert(shard, Tree::decode(value.as_deref())?);
        }
        Ok(trees)
    };
    store.read(read).await
}

/// Contents of an archived batch.
enum Content {
    Whole(Box<Batch>),
    Deleted(Box<Thinned>),
}

impl Content {
    /// Decodes an archived batch. Below a floor, a whole batch is treated as if it were thinned.
    fn read(archived: &ArchivedBatch, is_below: bool) -> Result<Self, Malformed> {
        match archived {
            ArchivedBatch::Thinned(bytes) => Thinned::read(bytes).map(Box::new).map(Self::Deleted),
            ArchivedBatch::Whole(bytes) => {
                let batch = Batch::read(bytes)?;
                Ok(if is_below {
                    Self::Deleted(Box::new(Thinned::of(&batch)))
                } else {
                    Self::Whole(Box::new(batch))
                })
            }
        }
    }

    fn place(&self) -> (&Header, Tail) {
        match self {
            Self::Whole(batch) => (&batch.header, batch.tail()),
            Self::Deleted(thinned) => (&thinned.header, thinned.tail()),
        }
    }
}

/// Separates errors of the store from data that is there and cannot be used.
pub fn of_recovery(error: RecoveryError) -> StoreError {
    match error {
        RecoveryError::Store { source, .. } => source,
        other => StoreError::Corrupt(other.to_string().into()),
    }
}

/// Why a batch does not continue the log that ends in `tail`.
fn discontinuity(header: &Header, tail: &Tail) -> Option<Fault> {
    let (first, expected) = (header.first_event, tail.event.next());
    if header.previous != tail.hash {
        Some(Fault::Unchained)
    } else if first != expected {
        Some(Fault::Misnumbered { first, expected })
    } else {
        None
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing => f.write_str("is missing; restore it from a backup"),
            Fault::TooMany => f.write_str("and later batches were not read: too much of this log is missing"),
            Fault::Damaged(what) => write!(f, "is not what was archived ({what}); restore it from a backup"),
            Fault::Misplaced => f.write_str("is missing: another one is in its place"),
            Fault::Deleted => f.write_str(
                "has no events, and no floor replaces them; if retention has just deleted them, repeat the command",
            ),
            Fault::Floor => f.write_str("does not match its log's floor; restore it from a backup"),
            Fault::Unchained => f.write_str("does not continue the batch before it; one of the two was replaced"),
            Fault::Misnumbered { first, expected } => write!(
                f,
                "begins with event {first}, expected {expected}; it, or the batch before it, was replaced"
            ),
        }
    }
}
