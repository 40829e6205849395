//! Retention (rule F14): letting go of the events of cell logs that are old enough.
//!
//! What goes first is never what is there: the floors (each owner's state at the horizon) are folded from the archive and
//! written beside everything else, then the horizon moves to them in one transaction, and only what lies at or below it is
//! thinned, a segment in a transaction. A thinned batch keeps its header, which is its leaf, and which calls it made. All of
//! it is conditional on the fold lease, and a crash anywhere leaves what was, or what was to be.
//!
//! There is no clock in here: whoever drives this says how old is old enough.

mod advance;
mod floor;
mod parts;

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
pub(crate) use parts::{Part, read_parts};

use crate::fold::{FoldError, check_lease};
use advance::Advance;

/// Most segments that the horizon passes at once: what has to be folded again when db is restarted on the way.
const SEGMENTS_AT_ONCE: usize = 64;

/// A segment is written anew where so much of it goes: one part in so many of its bytes.
const WORTH: u64 = 4;

/// Lets go of a shard's archive for as long as its [`crate::Folder`] folds it.
pub struct Retention {
    store: Store,
    shard: Shard,
    term: u64,
    advance: Option<Advance>,
    pace: Pace,
}

/// When the horizon moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Once what lies behind it is as large as its floors: what is written stays in proportion to what is freed.
    Worthwhile,
    /// As soon as one more segment is old enough.
    Eager,
}

/// What a turn did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to do.
    Idle,
    /// A part of what has to be done before the horizon moves.
    Folding,
    /// The horizon has moved.
    Moved(Horizon),
    /// A segment was looked at, and this is what it lost, in bytes before compression; nothing where that was not worth it.
    Thinned {
        /// Its last leaf.
        last: LeafIndex,
        /// How much it lost.
        bytes: u64,
    },
}

/// What kind of log a batch belongs to, as far as retention goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its events may be let go.
    Passing,
    /// The ledger, stored entities and disputes are folded from its events, for ever.
    Lasting,
}

impl Kind {
    /// That of an owner's log.
    #[must_use]
    pub fn of(kind: OwnerKind) -> Self {
        match kind {
            OwnerKind::Cell => Self::Passing,
            OwnerKind::Base | OwnerKind::Ledger => Self::Lasting,
        }
    }
}

impl Retention {
    pub(crate) fn new(store: Store, shard: Shard, term: u64, pace: Pace) -> Self {
        Self {
            store,
            shard,
            term,
            advance: None,
            pace,
        }
    }

    /// Takes a turn: what is done in it is bounded. Batches may be let go that were closed before `older_than`.
    ///
    /// # Errors
    /// When another db folds the shard, or the store cannot be used or is damaged; what was not done is begun anew.
    pub async fn turn(&mut self, older_than: WallTime) -> Result<Progress, FoldError> {
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
        self.advance = Some(Advance::begin(&self.store, self.shard, horizon, until).await?);
        Ok(Progress::Folding)
    }

    /// The segments that the horizon passes next: those that are old enough, as far as they are worth the floors that have to
    /// be written for them.
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

    /// Thins the next segment at or below the horizon, if there is one that was not looked at.
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

    /// The leaves, without the events of those that pass.
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

/// What is kept of a batch. What is damaged is not let go.
fn thinned(leaf: LeafIndex, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
    let damaged = |error| StoreError::Corrupt(format!("leaf {leaf} of the archive is no batch: {error}").into());
    let batch = Batch::read(bytes).map_err(damaged)?;
    let thinned = Thinned::of(&batch).write();
    let again = Thinned::read(&thinned).map_err(damaged)?;
    assert_eq!(again.hash, batch.hash, "a thinned batch is the same leaf");
    Ok(thinned)
}

fn behind(horizon: Option<Horizon>) -> LeafIndex {
    horizon.map_or(LeafIndex(0), |horizon| LeafIndex(horizon.leaf.0 + 1))
}
