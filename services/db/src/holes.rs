//! Accepting a hole that nobody can fill (rule F4).
//!
//! A log is folded batch by batch, so nothing behind a hole can ever be. Whoever accepts one gives up what is missing and
//! what was logged behind it, in that log: a further epoch is granted, to nobody, and recorded as opened at the first missing
//! batch. That makes all of it void by the rule that voids what a replaced holder wrote (E5), for db, takers and readers alike,
//! and whoever is granted the owner next goes on from the last batch before the hole.

use annals_ids::{BatchNumber, Epoch, OwnerId};
use annals_store::{
    Store, StoreError, Transaction,
    layout::{
        archive::{self, Hole},
        owners::{self, Cursor, OpeningRecord, OwnerRecord},
    },
};
use thiserror::Error;

/// A hole that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The last batch that stands.
    pub stands: BatchNumber,
    /// The first batch behind the hole that was there and is void; more may follow it.
    pub until: BatchNumber,
    /// The epoch that closes the log before the hole.
    pub epoch: Epoch,
}

/// Why a hole was not accepted.
#[derive(Debug, Error)]
pub enum AcceptError {
    /// db has not named it.
    #[error(
        "no hole is named at batch {first} of owner {owner}; `annals log verify` lists those that are, and db names one after half a minute"
    )]
    NotNamed {
        /// Whose log.
        owner: OwnerId,
        /// The first missing batch.
        first: BatchNumber,
    },
    /// The log went on, or has another hole before it.
    #[error("the log of owner {owner} does not stand before batch {first} any more: verify it again")]
    Moved {
        /// Whose log.
        owner: OwnerId,
        /// The first missing batch.
        first: BatchNumber,
    },
    /// The store.
    #[error("the store was not reached")]
    Store(#[from] StoreError),
}

/// Accepts the named hole that begins at batch `first`. The owner must have no holder: one that lives may still fill it, and
/// would go on showing what is void.
///
/// # Errors
/// When no such hole is named, the log does not stand there, or the store cannot be used.
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
    // A lost answer closes the log twice at the same batch, which is the same.
    store.run_repeatable(work).await.map(|(accepted, _)| accepted)
}
