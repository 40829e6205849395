//! A realm as it was: the state of every owner at one place of the archive, rebuilt from what the archive has and from nothing
//! else.
//!
//! A place is a number of leaves, in the archive's order, so that whatever depends on one another is before it or behind it
//! together (rule F5). Each log is folded up to there as db folds it, and its last batch is held against the hash with which
//! the index verified it: as every batch names the one before, all of them are.

mod books;
mod difference;
mod parts;

use std::collections::{BTreeMap, BTreeSet};

use annals_db::{Migrations, read_floor_batch};
use annals_director::read_owners;
use annals_event::{Body, OwnerState};
use annals_ids::{BatchNumber, EntityId, Hash, LogPosition, OwnerId, OwnerKind};
use annals_store::{Store, StoreError, layout::owners::OwnerRecord};
use thiserror::Error;

pub use self::{
    books::Books,
    difference::{Change, Difference},
    parts::{PartAt, PartOf},
};
use crate::{
    AuditError, Index,
    archive::{LogWalk, of_recovery},
    replay::{ReplayError, begin, fold_archived},
};

/// Why a past state could not be rebuilt.
#[derive(Debug, Error)]
pub enum PastError {
    /// The store does not answer.
    #[error("the archive could not be read")]
    Store(#[from] StoreError),
    /// The index does not answer, or has something to say.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A log does not replay.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The store does not say what this is the log of.
    #[error("the archive has a log of owner {0}, and the realm has no such owner: its row was removed")]
    NoOwner(OwnerId),
    /// A log was replaced since it was verified.
    #[error("the log of owner {} up to batch {} is not what it was when the index verified it", .0.owner, .0.batch)]
    Replaced(LogPosition),
}

impl PastError {
    /// Whether something is not as it was, and not merely unknown or out of reach.
    #[must_use]
    pub fn is_finding(&self) -> bool {
        match self {
            Self::Store(error) => matches!(error, StoreError::Corrupt(_)),
            Self::Audit(error) => error.is_finding(),
            Self::NoOwner(_) | Self::Replaced(_) => true,
            Self::Replay(error) => matches!(
                error,
                ReplayError::Faulty { .. } | ReplayError::Impossible(_) | ReplayError::Short { .. }
            ),
        }
    }
}

/// See the module. It can be moved on to a later place, never back.
#[derive(Clone)]
pub struct Past {
    leaves: u64,
    owners: BTreeMap<OwnerId, OwnerState>,
    books: Books,
    migrations: Migrations,
    /// Whose logs are folded; all, if nothing is said.
    meant: Option<BTreeSet<OwnerId>>,
}

impl Past {
    /// The definitions under which the log of the ledger was written last, before this place; the names of kinds and slots are
    /// theirs.
    #[must_use]
    pub fn ledger_schema(&self) -> Hash {
        let mut ledger = self.owners.values().filter(|state| state.kind == OwnerKind::Ledger);
        ledger.next().map_or(Hash::default(), |state| state.schema)
    }

    /// The realm as it was when its archive had so many leaves.
    ///
    /// # Errors
    /// When the archive cannot be read, does not replay, or is not what the index verified; when what was then was let go.
    pub async fn at(index: &Index, store: &Store, leaves: u64) -> Result<Self, PastError> {
        Self::of(index, store, leaves, None).await
    }

    /// As far as an entity is concerned: only the logs in which it has events are folded, and those that have a floor, which may
    /// hold it though its events were let go. What [`Self::books`] has is not all that was.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub async fn around(index: &Index, store: &Store, leaves: u64, entity: EntityId) -> Result<Self, PastError> {
        let mut meant = index.owners_of(entity).await?;
        for (owner, record) in read_owners(store).await? {
            let floor = read_floor_batch(store, record.shard, owner)
                .await
                .map_err(of_recovery)?;
            if floor.is_some() {
                meant.insert(owner);
            }
        }
        Self::of(index, store, leaves, Some(meant)).await
    }

    async fn of(
        index: &Index,
        store: &Store,
        leaves: u64,
        meant: Option<BTreeSet<OwnerId>>,
    ) -> Result<Self, PastError> {
        let mut past = Self {
            leaves: 0,
            owners: BTreeMap::new(),
            books: Books::default(),
            migrations: Migrations::read(store).await?,
            meant,
        };
        past.advance(index, store, leaves).await?;
        Ok(past)
    }

    /// Goes on to where the archive has so many leaves.
    ///
    /// # Errors
    /// As [`Self::at`]; it is not to be used any more then.
    pub async fn advance(&mut self, index: &Index, store: &Store, leaves: u64) -> Result<(), PastError> {
        let records = read_owners(store).await?;
        for (owner, end) in index.ends(leaves).await? {
            if self.meant.as_ref().is_some_and(|meant| !meant.contains(&owner)) {
                continue;
            }
            let record = records.get(&owner).ok_or(PastError::NoOwner(owner))?;
            self.advance_owner((index, store), (owner, record), end).await?;
        }
        self.leaves = self.leaves.max(leaves);
        Ok(())
    }

    /// How many leaves the archive had.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        self.leaves
    }

    /// The owners whose logs had begun.
    #[must_use]
    pub fn owners(&self) -> &BTreeMap<OwnerId, OwnerState> {
        &self.owners
    }

    /// Who had what.
    #[must_use]
    pub fn books(&self) -> &Books {
        &self.books
    }

    async fn advance_owner(
        &mut self,
        (index, store): (&Index, &Store),
        (owner, record): (OwnerId, &OwnerRecord),
        (batch, hash): (BatchNumber, Hash),
    ) -> Result<(), PastError> {
        let mut state = match self.owners.remove(&owner) {
            Some(state) => state,
            None => {
                let state = begin(store, (record.shard, owner), record.kind, Some(batch)).await?;
                let floor = state.tail;
                // What the realm keeps in place of what was let go has to stand on what was verified.
                if floor.batch.0 > 0 && index.verified(owner, floor.batch).await? != Some(floor.hash) {
                    let batch = floor.batch;
                    return Err(PastError::Replaced(LogPosition { owner, batch }));
                }
                state
            }
        };
        let mut walk = LogWalk::after(store, record.shard, owner, state.tail.batch).await?;
        let books = &mut self.books;
        let enter = |batch: &annals_event::Batch| {
            for event in &batch.events {
                if let Body::Entered { entry: Some(entry), .. } = &event.body {
                    books.enter(entry);
                }
            }
        };
        fold_archived(&mut walk, &mut state, &self.migrations, Some(batch), enter).await?;
        if (state.tail.batch, state.tail.hash) != (batch, hash) {
            return Err(PastError::Replaced(LogPosition { owner, batch }));
        }
        self.owners.insert(owner, state);
        Ok(())
    }
}
