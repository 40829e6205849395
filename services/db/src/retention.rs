//! Retention (rule F14): deletes the events of cell logs that are old enough.
//!
//! Deletion follows its replacement: the floors (each owner's state at the horizon) are folded from the archive and
//! written beside the existing rows, then the horizon moves to them in one transaction, and only segments at or below
//! it are thinned, one per transaction. A thinned batch keeps its header, which is its leaf, and the numbers of the
//! calls it made. All of this is conditional on the fold lease, and a crash at any point leaves the state before or
//! after a step.
//!
//! The module has no clock: the caller says which age is old enough.

mod advance;
mod floor;
mod parts;

use async_recursion::async_recursion as boxed;
use std::sync::Arc;

use annals_def::Schema;
use annals_event::{Batch, Thinned};
use annals_ids::{LeafIndex, OwnerKind, Shard, WallTime};
use annals_store::{
    ArchivedBatch, Store, StoreError, Transaction, archive,
    layout::{
        owners,
        retention::{self as layout, Horizon},
    },
    segment::{self, Leaf, Segment},
};

pub(crate) use floor::read_retained;
pub use floor::{floors_of, read_floor, read_floor_batch, read_horizon};
pub(crate) use parts::{Part, ended_cell, read_parts};

use crate::fold::{FoldError, check_lease, unless_superseded};
use advance::Advance;

/// Maximum segments that the horizon passes at once. Bounds what is folded again when db restarts on the way.
const SEGMENTS_AT_ONCE: usize = 64;

/// A segment is rewritten if at least one part in this many of its bytes is deleted.
const WORTH: u64 = 4;

/// Deletes events of a shard's archive for as long as its [`crate::Folder`] folds it.
pub struct Retention {
    store: Store,
    shard: Shard,
    term: u64,
    /// Definitions of the newest batches.
    schema: Arc<Schema>,
    advance: Option<Advance>,
    pace: Pace,
}

/// When the horizon moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// When the segments after it are as large as its floors: keeps writes in proportion to the space freed.
    Worthwhile,
    /// As soon as one more segment is old enough.
    Eager,
}

/// Result of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to do.
    Idle,
    /// A part of the work before the horizon moves.
    Folding,
    /// The horizon has moved.
    Moved(Horizon),
    /// A segment was examined. Its loss is in bytes before compression; 0 if a rewrite was not worthwhile.
    Thinned {
        /// Its last leaf.
        last: LeafIndex,
        /// Bytes deleted.
        bytes: u64,
    },
}

/// Whether retention may delete the events of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its events may be deleted.
    Passing,
    /// The ledger, stored entities and disputes are folded from its events, which are kept for ever.
    Lasting,
}

impl Kind {
    /// Kind of a log, by its owner's kind.
    #[must_use]
    pub fn of(kind: OwnerKind) -> Self {
        match kind {
            OwnerKind::Cell => Self::Passing,
            OwnerKind::Base | OwnerKind::Ledger => Self::Lasting,
        }
    }
}

impl Retention {
    pub(crate) fn new((store, shard, term): (Store, Shard, u64), schema: Arc<Schema>, pace: Pace) -> Self {
        Self {
            store,
            shard,
            term,
            schema,
            advance: None,
            pace,
        }
    }

    /// Takes a turn, which does a bounded amount of work. Events of batches that were closed before `older_than` may be
    /// deleted.
    ///
    /// # Errors
    /// When another db process folds the shard, or the store cannot be used or is damaged; unfinished work is begun
    /// again.
    #[boxed]
    pub async fn turn(&mut self, older_than: WallTime) -> Result<Progress, FoldError> {
        match self.take_turn(older_than).await {
            Err(error) => Err(unless_superseded(&self.store, self.shard, self.term, error).await),
            done => done,
        }
    }

    async fn take_turn(&mut self, older_than: WallTime) -> Result<Progress, FoldError> {
        let advance = self.advance.take();
        if let Some(mut advance) = advance {
            let moved = advance.turn(&self.store, self.term).await?;
            if moved.is_none() {
                self.advance = Some(advance);
            }
            return Ok(moved.map_or(Progress::Folding, Progress::Moved));
        }
        let horizon = read_horizon(&self.store, self.shard).await?;
        if let Some(horizon) = horizon
            && let Some(done) = self.thin_next(horizon).await?
        {
            return Ok(done);
        }
        let Some(until) = self.find_target(horizon, older_than).await? else {
            return Ok(Progress::Idle);
        };
        self.advance = Some(Advance::begin(&self.store, (self.shard, &self.schema), horizon, until).await?);
        Ok(Progress::Folding)
    }

    /// The segments that the horizon passes next: those that are old enough, as far as they are worth the floors that
    /// have to be written for them.
    async fn find_target(
        &self,
        horizon: Option<Horizon>,
        older_than: WallTime,
    ) -> Result<Option<Vec<Segment>>, StoreError> {
        let shard = self.shard;
        let mut next = behind(horizon);
        let mut found: Vec<Segment> = Vec::new();
        while found.len() < SEGMENTS_AT_ONCE {
            let find = |transaction: Transaction| async move { archive::find_segment(&transaction, shard, next).await };
            let segment = self.store.read(find).await?;
            let Some(segment) = segment.filter(|segment| segment.latest < older_than) else {
                break;
            };
            next = LeafIndex(segment.last.0 + 1);
            found.push(segment);
        }
        let bytes: u64 = found.iter().map(|segment| segment.bytes).sum();
        let least = match self.pace {
            Pace::Worthwhile => horizon.map_or(0, |horizon| horizon.bytes),
            Pace::Eager => 0,
        };
        let is_worth_it = bytes >= least || found.len() == SEGMENTS_AT_ONCE;
        Ok((!found.is_empty() && is_worth_it).then_some(found))
    }

    /// Thins the next segment at or below the horizon that was not examined yet, if there is one.
    async fn thin_next(&self, horizon: Horizon) -> Result<Option<Progress>, FoldError> {
        let shard = self.shard;
        let find = |transaction: Transaction| async move {
            let next = transaction.get(&layout::thinned_key(shard)).await?;
            let next = layout::decode_thinned(next.as_deref())?;
            archive::find_segment(&transaction, shard, next).await
        };
        let Some(former) = self.store.read(find).await? else {
            return Ok(None);
        };
        if former.last > horizon.leaf {
            return Ok(None);
        }
        let leaves = self.thin(archive::read_leaves(&self.store, &former).await?).await?;
        let size: u64 = leaves.iter().map(|leaf| leaf.archived.size() as u64).sum();
        let bytes = former.bytes.saturating_sub(size);
        let is_worth_it = bytes > 0 && bytes >= former.bytes / WORTH;
        let thinned = if is_worth_it {
            Some(segment::seal(shard, leaves)?)
        } else {
            None
        };
        let (term, former, thinned) = (self.term, &former, thinned.as_ref());
        let work = |transaction: Transaction| async move {
            check_lease(&transaction, shard, term).await?;
            if let Some((segment, blocks)) = thinned {
                archive::replace_segment(&transaction, former, segment, blocks).await?;
            }
            let next = LeafIndex(former.last.0 + 1);
            transaction.set(&layout::thinned_key(shard), &layout::encode_thinned(next))?;
            Ok::<_, FoldError>(())
        };
        self.store.run_repeatable(work).await?;
        let bytes = if is_worth_it { bytes } else { 0 };
        let last = former.last;
        Ok(Some(Progress::Thinned { last, bytes }))
    }

    /// The leaves, without the events of logs of kind [`Kind::Passing`].
    async fn thin(&self, leaves: Vec<Leaf>) -> Result<Vec<Leaf>, StoreError> {
        let listing = |transaction: Transaction| async move { owners::read_owners(&transaction).await };
        let records = self.store.read(listing).await?;
        let thin = |leaf: Leaf| {
            let passes = |owner| records.get(owner).map(|record| Kind::of(record.kind)) == Some(Kind::Passing);
            match &leaf.archived {
                ArchivedBatch::Whole(bytes) if passes(&leaf.owner) => {
                    let archived = ArchivedBatch::Thinned(thinned(leaf.leaf, bytes)?);
                    Ok(Leaf { archived, ..leaf })
                }
                _ => Ok(leaf),
            }
        };
        leaves.into_iter().map(thin).collect()
    }
}

/// The thinned form of a batch. Fails for a damaged batch, whose events are kept.
fn thinned(leaf: LeafIndex, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
    let damaged = |error| StoreError::Corrupt(format!("leaf {leaf} of the archive is not a batch: {error}").into());
    let batch = Batch::read(bytes).map_err(damaged)?;
    let thinned = Thinned::of(&batch).write();
    let again = Thinned::read(&thinned).map_err(damaged)?;
    assert_eq!(again.hash, batch.hash, "a thinned batch is the same leaf");
    Ok(thinned)
}

fn behind(horizon: Option<Horizon>) -> LeafIndex {
    horizon.map_or(LeafIndex(0), |horizon| LeafIndex(horizon.leaf.0 + 1))
}
