//! Replay: what an archive's batches fold into, in a process that never ran them (rule F9).

use annals_db::{RecoveryError, read_archived};
use annals_event::{Batch, Impossible, Malformed, OwnerState};
use annals_host::process::SHARD;
use annals_ids::{BatchNumber, Hash, LogPosition, OwnerId};
use annals_store::{Store, StoreError};
use thiserror::Error;

/// Batches read at a time.
const AT_ONCE: usize = 64;

/// Why an archive could not be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The store.
    #[error("the owners could not be read")]
    Store(#[from] StoreError),
    /// The archive.
    #[error("the archive could not be read")]
    Archive(#[from] RecoveryError),
    /// A batch is damaged.
    #[error("the batch after {after} is damaged")]
    Damaged {
        /// The last that was intact.
        after: LogPosition,
        /// What is wrong.
        #[source]
        source: Malformed,
    },
    /// A batch cannot have happened.
    #[error("the archive does not replay")]
    Impossible(#[from] Impossible),
    /// The archive ends before the position that was asked for.
    #[error("the archive of owner {owner} ends at batch {last}; batch {wanted} is not in it")]
    Short {
        /// Whose.
        owner: OwnerId,
        /// Its last batch.
        last: BatchNumber,
        /// The one that was wanted.
        wanted: BatchNumber,
    },
}

/// A replayed owner.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Where the replay stopped.
    pub at: LogPosition,
    /// The state's hash there.
    pub state: Hash,
    /// How many events were applied.
    pub events: u64,
}

/// Replays an owner's whole log up to `until`, or to its end.
///
/// # Errors
/// When the archive cannot be read, or does not replay.
pub async fn replay(store: &Store, owner: OwnerId, until: Option<BatchNumber>) -> Result<Replayed, ReplayError> {
    let records = annals_director::read_owners(store).await?;
    let part = records.get(&owner).map_or(annals_ids::Part::Base, |record| record.part);
    let mut state = OwnerState::new(owner, part);
    'reading: loop {
        let batches = read_archived(store, SHARD, owner, state.tail.batch, AT_ONCE).await?;
        if batches.is_empty() {
            break;
        }
        for (_, bytes) in batches {
            if until.is_some_and(|until| state.tail.batch >= until) {
                break 'reading;
            }
            let after = LogPosition {
                owner,
                batch: state.tail.batch,
            };
            let batch = Batch::read(&bytes).map_err(|source| ReplayError::Damaged { after, source })?;
            state.fold(&batch)?;
        }
    }
    let last = state.tail.batch;
    if let Some(wanted) = until.filter(|wanted| last < *wanted) {
        return Err(ReplayError::Short { owner, last, wanted });
    }
    Ok(Replayed {
        at: LogPosition { owner, batch: last },
        state: state.hash(),
        events: state.tail.event.0,
    })
}

/// All owners of a realm.
///
/// # Errors
/// When the store cannot be read.
pub async fn owners(store: &Store) -> Result<Vec<OwnerId>, StoreError> {
    Ok(annals_director::read_owners(store).await?.into_keys().collect())
}
