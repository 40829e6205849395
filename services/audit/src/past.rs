//! A past realm: the state of every owner at one position of the archive, rebuilt from the archive alone.
//!
//! A position is a prefix of the archive of each shard, in the archive's order, so that events of one shard that depend on
//! one another are on the same side of it (rule F5). Each log is folded up to there as db folds it, and the hash of its last batch is compared with
//! the one that the index verified: as every batch contains the hash of the one before, this verifies all of them.

mod books;
mod difference;
mod parts;

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};

use annals_db::{Migrations, read_floor_batch};
use annals_director::read_owners;
use annals_event::{Body, OwnerState};
use annals_evidence::Cut;
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
    /// The store cannot be read.
    #[error("the archive cannot be read")]
    Store(#[from] StoreError),
    /// The index cannot be read, or reports an error.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A log does not replay.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The store has no record of the owner of this log.
    #[error("the archive has a log of owner {0}, and the realm has no such owner: its row was removed")]
    NoOwner(OwnerId),
    /// A log was replaced after it was verified.
    #[error("the log of owner {} up to batch {} has changed since the index verified it", .0.owner, .0.batch)]
    Replaced(LogPosition),
}

impl PastError {
    /// Whether the error shows that data was changed, and not merely that it is unknown or unavailable.
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

/// The realm at one position of its archives. It can be advanced to a later position, never back.
#[derive(Clone)]
pub struct Past {
    cut: Cut,
    owners: BTreeMap<OwnerId, OwnerState>,
    books: Books,
    migrations: Migrations,
    /// The owners whose logs are folded; all if none.
    meant: Option<BTreeSet<OwnerId>>,
}

impl Past {
    /// The definitions of the last batch of the ledger's log before this position, which name its kinds and slots.
    #[must_use]
    pub fn ledger_schema(&self) -> Hash {
        let mut ledger = self.owners.values().filter(|state| state.kind == OwnerKind::Ledger);
        ledger.next().map_or(Hash::default(), |state| state.schema)
    }

    /// The realm when its archives had these leaves.
    ///
    /// # Errors
    /// When the archive cannot be read, does not replay, or is not what the index verified; when retention has deleted
    /// that state.
    #[boxed]
    pub async fn at(index: &Index, store: &Store, cut: &Cut) -> Result<Self, PastError> {
        Self::of(index, store, cut, None).await
    }

    /// The realm as far as it concerns an entity: folds only the logs in which it has events, and those with a floor,
    /// which may contain it even if its events were deleted. [`Self::books`] is then incomplete.
    ///
    /// # Errors
    /// As [`Self::at`].
    #[boxed]
    pub async fn around(index: &Index, store: &Store, cut: &Cut, entity: EntityId) -> Result<Self, PastError> {
        let mut meant = index.owners_of(entity).await?;
        for (owner, record) in read_owners(store).await? {
            let floor = read_floor_batch(store, record.shard, owner)
                .await
                .map_err(of_recovery)?;
            if floor.is_some() {
                meant.insert(owner);
            }
        }
        Self::of(index, store, cut, Some(meant)).await
    }

    async fn of(index: &Index, store: &Store, cut: &Cut, meant: Option<BTreeSet<OwnerId>>) -> Result<Self, PastError> {
        let mut past = Self {
            cut: Cut::default(),
            owners: BTreeMap::new(),
            books: Books::default(),
            migrations: Migrations::read(store).await?,
            meant,
        };
        past.advance(index, store, cut).await?;
        Ok(past)
    }

    /// Advances to where the archives have these leaves.
    ///
    /// # Errors
    /// As [`Self::at`]; after an error it must not be used any more.
    #[boxed]
    pub async fn advance(&mut self, index: &Index, store: &Store, cut: &Cut) -> Result<(), PastError> {
        let records = read_owners(store).await?;
        for (owner, end) in index.ends(cut).await? {
            if self.meant.as_ref().is_some_and(|meant| !meant.contains(&owner)) {
                continue;
            }
            let record = records.get(&owner).ok_or(PastError::NoOwner(owner))?;
            self.advance_owner((index, store), (owner, record), end).await?;
        }
        self.cut.include(cut);
        Ok(())
    }

    /// The leaves of the archives.
    #[must_use]
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// State of each owner whose log had begun.
    #[must_use]
    pub fn owners(&self) -> &BTreeMap<OwnerId, OwnerState> {
        &self.owners
    }

    /// The holdings of all accounts.
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
                // A floor, which replaces deleted events, must match the verified batch at which it stands.
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
