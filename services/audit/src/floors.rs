//! Batches whose events retention may have deleted.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;

use annals_db::{Kind, read_floor_batch};
use annals_director::read_owners;
use annals_ids::{BatchNumber, LogPosition, OwnerId, Shard};
use annals_store::{Store, StoreError};

use crate::archive::of_recovery;

/// The floors of a shard's logs, below which events may have been deleted (rule F14), as they were when each was read.
#[derive(Debug)]
pub struct Floors {
    shard: Shard,
    known: BTreeMap<OwnerId, BatchNumber>,
}

impl Floors {
    /// No floors read yet.
    #[must_use]
    pub fn new(shard: Shard) -> Self {
        let known = BTreeMap::new();
        Self { shard, known }
    }

    /// Whether retention may have deleted a batch's events: its log is that of a cell, and its floor is at the batch or
    /// after it.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[boxed]
    pub async fn are_below(&mut self, store: &Store, at: LogPosition) -> Result<bool, StoreError> {
        let LogPosition { owner, batch } = at;
        if self.known.get(&owner).is_some_and(|floor| batch <= *floor) {
            return Ok(true);
        }
        // They may have been deleted since the floor was read.
        let owners = read_owners(store).await?;
        let is_passing = owners
            .get(&owner)
            .is_some_and(|record| Kind::of(record.kind) == Kind::Passing);
        let floor = read_floor_batch(store, self.shard, owner).await.map_err(of_recovery)?;
        let floor = floor.filter(|_| is_passing).unwrap_or(BatchNumber(0));
        self.known.insert(owner, floor);
        Ok(batch <= floor)
    }
}
