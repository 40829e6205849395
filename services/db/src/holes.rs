//! Accepting a hole that no holder can fill (rule F4).
//!
//! A log is folded batch by batch, so no batch behind a hole can ever be folded. Accepting a hole gives up the missing
//! batches and everything logged behind them in that log: a further epoch is granted, to no process, and recorded as
//! opened at the first missing batch. That voids all of it by the rule that voids the batches of a replaced holder
//! (E5), for db, takers and readers alike. The process that is granted the owner next continues from the last batch
//! before the hole, and gives its calls numbers of a new generation, since the void batches may have used the next ones
//! (rule C13).

use annals_ids::{BatchNumber, Epoch, OwnerId};
use annals_store::{
    Store, StoreError, Transaction,
    layout::{
        archive::{self, Hole},
        director::{self, Counter},
        owners::{self, Cursor, OpeningRecord, OwnerRecord},
    },
};
use async_recursion::async_recursion as boxed;
use thiserror::Error;

/// An accepted hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Last batch that stays valid.
    pub stands: BatchNumber,
    /// First void batch after the hole; more may follow it.
    pub until: BatchNumber,
    /// The epoch that closes the log before the hole.
    pub epoch: Epoch,
}

/// Reason why a hole was not accepted.
#[derive(Debug, Error)]
pub enum AcceptError {
    /// db has not recorded the hole.
    #[error(
        "no hole is registered at batch {first} of owner {owner}; `annals log verify` lists registered holes, and db \
         registers a hole after half a minute"
    )]
    NotNamed {
        /// Owner of the log.
        owner: OwnerId,
        /// First missing batch.
        first: BatchNumber,
    },
    /// The log has advanced, or has another hole before this one.
    #[error("the log of owner {owner} is no longer blocked at batch {first}: verify it again")]
    Moved {
        /// Owner of the log.
        owner: OwnerId,
        /// First missing batch.
        first: BatchNumber,
    },
    /// The store cannot be used.
    #[error("the store cannot be reached")]
    Store(#[from] StoreError),
}

/// Accepts the recorded hole that begins at batch `first`. The owner must have no holder: a running one may still fill
/// the hole, and would go on showing void events.
///
/// # Errors
/// When no such hole is recorded, the log does not end before it, or the store cannot be used.
#[boxed]
pub async fn accept_hole(store: &Store, owner: OwnerId, first: BatchNumber) -> Result<Accepted, AcceptError> {
    let work = |transaction: Transaction| async move {
        let named = transaction.get(&archive::hole_key(owner, first)).await?;
        let record = transaction.get(&owners::owner_key(owner)).await?;
        let (Some(hole), Some(record)) = (named, record) else {
            return Err(AcceptError::NotNamed { owner, first });
        };
        let (hole, record) = (Hole::decode(&hole)?, OwnerRecord::decode(&record)?);
        let cursor = Cursor::decode(transaction.get(&owners::cursor_key(owner)).await?.as_deref())?;
        if cursor.batch.next() != first || cursor.hash != hole.after {
            return Err(AcceptError::Moved { owner, first });
        }
        let closing = OwnerRecord {
            epoch: record.epoch.next(),
            call_generation: director::assign(&transaction, Counter::CallGenerations, 1).await?.start,
            ..record
        };
        let opening = OpeningRecord::closing(closing.epoch, first);
        transaction.set(&owners::owner_key(owner), &closing.encode())?;
        transaction.set(&owners::opening_key(owner, opening.epoch), &opening.encode())?;
        Ok(Accepted {
            stands: cursor.batch,
            until: hole.until,
            epoch: closing.epoch,
        })
    };
    // If the answer is lost, the log is closed twice at the same batch, to the same effect.
    store.run_repeatable(work).await.map(|(accepted, _)| accepted)
}
