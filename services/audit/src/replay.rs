//! Replay: folds a log in a process that never ran it (rule F9).

use annals_db::{Kind, Migrations, RecoveryError, read_floor, read_horizon};
use annals_director::read_owners;
use annals_event::{Batch, Impossible, Malformed, OwnerState};
use annals_host::{
    log::{ReadError, Reading},
    log_source::{BeyondError, Source},
};
use annals_ids::{BatchNumber, Hash, LogPosition, OwnerId, OwnerKind, Shard, WallTime};
use annals_store::{Store, StoreError};
use async_recursion::async_recursion as boxed;
use thiserror::Error;

use crate::archive::{Fault, LogWalk};

/// How much of a log is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The batches that db has archived.
    Archive,
    /// Those, and the batches of the log beyond them.
    Log,
}

/// Why a log could not be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The store cannot be read.
    #[error("the archive cannot be read")]
    Store(#[from] StoreError),
    /// The log cannot be read.
    #[error("the log beyond the archive cannot be read")]
    Log(#[from] ReadError),
    /// The batches beyond the archive cannot be read.
    #[error("the log beyond the archive cannot be assembled")]
    Beyond(#[from] BeyondError),
    /// There is no such owner.
    #[error("the realm has no owner {0}; `annals log verify` lists its owners")]
    UnknownOwner(OwnerId),
    /// A batch of the archive has a fault.
    #[error("the archive does not replay: batch {} of owner {} {fault}", at.batch, at.owner)]
    Faulty {
        /// The batch.
        at: LogPosition,
        fault: Fault,
    },
    /// A batch beyond the archive is malformed.
    #[error("batch {} of owner {}, beyond the archive, is damaged", .at.batch, .at.owner)]
    Damaged {
        /// The batch.
        at: LogPosition,
        /// What is wrong with it.
        #[source]
        source: Malformed,
    },
    /// A batch whose events cannot have happened.
    #[error("the log does not replay")]
    Impossible(#[from] Impossible),
    /// The position is below the state that the log is folded from.
    #[error(
        "batch {wanted} of owner {owner} is before batch {floor}: events up to there (none after @{} since 1970) \
         were deleted by retention, and the state is known from there on",
        wall.0 / 1_000
    )]
    Deleted {
        owner: OwnerId,
        /// The requested batch.
        wanted: BatchNumber,
        /// The first batch with a known state.
        floor: BatchNumber,
        /// The latest wall time of the deleted events.
        wall: WallTime,
    },
    /// The owner's floor cannot be read.
    #[error("the state from which the log continues cannot be read")]
    Floor(#[from] RecoveryError),
    /// The log ends before the requested position.
    #[error("the {what} of owner {owner} ends at batch {last}; batch {wanted} is not in it")]
    Short {
        /// What was replayed.
        what: &'static str,
        owner: OwnerId,
        /// Its last batch.
        last: BatchNumber,
        /// The requested batch.
        wanted: BatchNumber,
    },
}

/// A replayed owner.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Where the replay ended.
    pub at: LogPosition,
    /// The last archived batch replayed.
    pub archived: BatchNumber,
    /// Hash of the state there.
    pub state: Hash,
    /// Number of events applied.
    pub events: u64,
}

/// Replays an owner's log from its beginning, or from its floor if earlier events were deleted, up to `until`, or to
/// its end.
///
/// # Errors
/// When the log cannot be read, or does not replay.
#[boxed]
pub async fn replay(
    source: &Source,
    owner: OwnerId,
    until: Option<BatchNumber>,
    extent: Extent,
) -> Result<Replayed, ReplayError> {
    let records = read_owners(&source.store).await?;
    let record = records.get(&owner).ok_or(ReplayError::UnknownOwner(owner))?;
    let migrations = Migrations::read(&source.store).await?;
    let mut reading = Reading::default();
    if extent == Extent::Log {
        source.read_log((record.shard, owner), &mut reading).await?;
    }
    // Begins after the log was read: batches trimmed from the log are archived by now.
    let mut walk = LogWalk::begin(&source.store, record.shard, owner).await?;
    let mut state = begin(&source.store, (record.shard, owner), record.kind, until).await?;
    let is_there = |state: &OwnerState| until.is_some_and(|until| state.tail.batch >= until);
    fold_archived(&mut walk, &mut state, &migrations, until, |_| {}).await?;
    let archived = state.tail.batch;
    if extent == Extent::Log && !is_there(&state) {
        for frozen in source.beyond(owner, walk.cursor(), &reading).await? {
            if is_there(&state) {
                break;
            }
            if frozen.number > state.tail.batch {
                let at = LogPosition {
                    owner,
                    batch: frozen.number,
                };
                let batch = Batch::read(&frozen.bytes).map_err(|source| ReplayError::Damaged { at, source })?;
                migrations.fold(&mut state, &batch)?;
            }
        }
    }
    let last = state.tail.batch;
    if let Some(wanted) = until.filter(|wanted| last < *wanted) {
        let what = match extent {
            Extent::Archive => "archive",
            Extent::Log => "log",
        };
        return Err(ReplayError::Short {
            what,
            owner,
            last,
            wanted,
        });
    }
    Ok(Replayed {
        at: LogPosition { owner, batch: last },
        archived,
        state: state.hash(),
        events: state.tail.event.0,
    })
}

/// Folds the batches of `walk` into a state, up to `until` or to the end of the archive. `each` is called with every
/// batch before it is folded.
pub(crate) async fn fold_archived(
    walk: &mut LogWalk,
    state: &mut OwnerState,
    migrations: &Migrations,
    until: Option<BatchNumber>,
    mut each: impl FnMut(&Batch),
) -> Result<(), ReplayError> {
    let owner = state.owner;
    while until.is_none_or(|until| state.tail.batch < until)
        && let Some(step) = walk.next().await?
    {
        let at = LogPosition {
            owner,
            batch: step.number,
        };
        match (step.fault, step.batch) {
            (None, Some(batch)) => {
                each(&batch);
                migrations.fold(state, &batch)?;
            }
            // Its floor includes the effect of its events.
            (None, None) if step.deleted.is_some() && step.number <= state.tail.batch => {}
            (fault, _) => {
                let fault = fault.unwrap_or(Fault::Missing);
                return Err(ReplayError::Faulty { at, fault });
            }
        }
    }
    Ok(())
}

/// The state at which a replay begins: the floor of the log, if it has one, otherwise the state before its first batch.
pub(crate) async fn begin(
    store: &Store,
    (shard, owner): (Shard, OwnerId),
    kind: OwnerKind,
    until: Option<BatchNumber>,
) -> Result<OwnerState, ReplayError> {
    let horizon = read_horizon(store, shard).await?;
    let floor = match Kind::of(kind) {
        Kind::Passing => read_floor(store, shard, owner, BatchNumber(0)).await?,
        Kind::Lasting => None,
    };
    match (floor, until, horizon) {
        (Some(floor), Some(wanted), Some(horizon)) if wanted < floor.tail.batch => Err(ReplayError::Deleted {
            owner,
            wanted,
            floor: floor.tail.batch,
            wall: horizon.wall,
        }),
        (floor, ..) => Ok(floor.unwrap_or_else(|| OwnerState::new(owner, kind))),
    }
}

/// All owners of a realm.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn owners(store: &Store) -> Result<Vec<OwnerId>, StoreError> {
    Ok(read_owners(store).await?.into_keys().collect())
}
