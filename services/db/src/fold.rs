//! Folding: the stream's batches into archive, snapshots and database, in the stream's order (rules F1 to F5).
//!
//! [`Folder::offer`] takes what the stream holds, [`Folder::commit`] puts a part of it into the store in one transaction.
//! The state in memory is only ever ahead of the store within a commit; when one fails, it is read anew.

mod effects;
mod log;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use annals_def::Schema;
use annals_event::{Batch, Malformed, merkle::Frontier};
use annals_ids::{BatchNumber, Hash, LeafIndex, OwnerId, Shard};
use annals_store::{
    Retry, Store, StoreError, Transaction,
    layout::{archive, chunks, owners::Cursor},
};
use thiserror::Error;

use crate::recovery::RecoveryError;
use effects::Effects;
use log::{Log, Verdict};

/// Bytes of batches that one transaction folds at most: far from the store's limit, with room for snapshots beside them.
const COMMIT_BYTES: usize = 3 << 20;

/// How often a commit that lost against another transaction is tried again.
const ATTEMPTS: usize = 20;

/// A message of the stream.
#[derive(Clone, Debug)]
struct Found {
    /// Whose log, as its subject says.
    owner: OwnerId,
    /// The batch.
    batch: Batch,
    /// Its bytes.
    bytes: Vec<u8>,
}

/// Why folding stops.
#[derive(Debug, Error)]
pub enum FoldError {
    /// Another db folds this shard now.
    #[error("shard {shard} is folded by another db (term {term}); this one stands by")]
    Superseded {
        /// Which shard.
        shard: Shard,
        /// The other's term.
        term: u64,
    },
    /// The store did not answer.
    #[error("the store did not take what was to be folded")]
    Store(#[from] StoreError),
    /// What is archived cannot be read.
    #[error("folding needs what is archived already")]
    Recovery(#[from] RecoveryError),
}

/// Something in the stream that is no part of any log. Alarms: the realm goes on, an operator must look.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Alarm {
    /// A message is no batch.
    #[error("a message of owner {owner}'s log is not a batch: {source}")]
    Malformed {
        /// Whose log.
        owner: OwnerId,
        /// What is wrong.
        source: Malformed,
    },
    /// A batch names another owner than its subject.
    #[error("a batch of owner {named} lies in the log of owner {owner}")]
    Misplaced {
        /// Whose log.
        owner: OwnerId,
        /// Whom the batch names.
        named: OwnerId,
    },
    /// A batch has the right number and does not continue the log.
    #[error("batch {number} of owner {owner} names {named} as the hash before it, where {expected} stands")]
    Contradiction {
        /// Whose log.
        owner: OwnerId,
        /// Which batch.
        number: BatchNumber,
        /// The hash that it names.
        named: Hash,
        /// The hash that is there.
        expected: Hash,
    },
    /// A batch of an epoch that was never granted.
    #[error("batch {number} of owner {owner} is of an epoch that was never granted")]
    Ungranted {
        /// Whose log.
        owner: OwnerId,
        /// Which batch.
        number: BatchNumber,
    },
    /// A batch holds what cannot have happened.
    #[error("{0}")]
    Impossible(String),
    /// An identifier is taken.
    #[error("entity {database} of the database has the identifier of entity {holder} and is found by its id alone")]
    IdentifierTaken {
        /// Which entity.
        database: annals_ids::DatabaseId,
        /// Who has the identifier.
        holder: annals_ids::DatabaseId,
    },
}

/// Batches of a log that are missing before those that are there (rule F4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Whose log.
    pub owner: OwnerId,
    /// The first that is missing.
    pub first: BatchNumber,
    /// The first that is there again.
    pub until: BatchNumber,
    /// The hash of the batch before the hole.
    pub after: Hash,
    /// The hash that the batch behind it names.
    pub named: Hash,
}

/// What one commit did.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    /// The new cursors of the logs that moved on, to be announced (rule F6).
    pub cursors: Vec<(OwnerId, Cursor)>,
    /// How many batches were folded.
    pub batches: usize,
    /// How many events they held.
    pub events: u64,
    /// How many bytes they had.
    pub bytes: u64,
    /// What is wrong with the stream.
    pub alarms: Vec<Alarm>,
}

/// Folds one shard.
pub struct Folder {
    store: Store,
    shard: Shard,
    schema: Arc<Schema>,
    term: u64,
    tree: Frontier,
    logs: BTreeMap<OwnerId, Log>,
    pending: VecDeque<Found>,
    /// Batches that waited behind a hole and are folded by the transaction under way.
    released: Vec<Found>,
    alarms: Vec<Alarm>,
}

impl Folder {
    /// Begins to fold a shard; whoever folded it before is superseded.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn begin(store: Store, shard: Shard, schema: Arc<Schema>) -> Result<Self, FoldError> {
        let work = |transaction: Transaction| async move {
            let key = archive::lease_key(shard);
            let lease = archive::FoldLease::decode(transaction.get(&key).await?.as_deref())?;
            let next = archive::FoldLease { term: lease.term + 1 };
            transaction.set(&key, &next.encode())?;
            Ok::<_, StoreError>(next.term)
        };
        // A lost answer raises the term twice, which harms nobody.
        let (term, _) = store.run_repeatable(work).await?;
        let tree = Frontier::new();
        let mut folder = Self {
            store,
            shard,
            schema,
            term,
            tree,
            logs: BTreeMap::new(),
            pending: VecDeque::new(),
            released: Vec::new(),
            alarms: Vec::new(),
        };
        folder.reload().await?;
        Ok(folder)
    }

    /// Takes a message of the stream, in the stream's order.
    pub fn offer(&mut self, owner: OwnerId, bytes: Vec<u8>) {
        match Batch::read(&bytes) {
            Err(source) => self.alarms.push(Alarm::Malformed { owner, source }),
            Ok(batch) if batch.header.owner != owner => {
                self.alarms.push(Alarm::Misplaced {
                    owner,
                    named: batch.header.owner,
                });
            }
            Ok(batch) => self.pending.push_back(Found { owner, batch, bytes }),
        }
    }

    /// Whether there is something to commit.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.pending.is_empty() || !self.alarms.is_empty()
    }

    /// Bytes that wait to be committed: at some point the shell reads no further.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending.iter().map(|found| found.bytes.len()).sum()
    }

    /// What is missing in the logs.
    pub fn missing(&self) -> impl Iterator<Item = Missing> {
        self.logs.iter().filter_map(|(owner, log)| log.missing(*owner))
    }

    /// The folded states, for reading.
    pub fn states(&self) -> impl Iterator<Item = &annals_event::OwnerState> {
        self.logs.values().filter_map(Log::state)
    }

    /// Folds what was offered, as much as one transaction holds.
    ///
    /// # Errors
    /// When another db folds the shard, or the store cannot be used; what was offered is still there then.
    pub async fn commit(&mut self) -> Result<Folded, FoldError> {
        for _ in 0..ATTEMPTS {
            let taken = self.take_pending();
            match self.try_commit(&taken).await {
                Ok(folded) => return Ok(folded),
                Err(error) => {
                    taken.into_iter().rev().for_each(|found| self.pending.push_front(found));
                    let again = matches!(&error, FoldError::Store(source) if source.retry() != Retry::Never);
                    if !again {
                        return Err(error);
                    }
                    self.reload().await?;
                }
            }
        }
        Err(FoldError::Store(StoreError::Conflict))
    }

    /// Records a hole that nobody filled (rule F4).
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn name_hole(&self, missing: Missing) -> Result<(), StoreError> {
        let hole = archive::Hole {
            after: missing.after,
            named: missing.named,
            until: missing.until,
        };
        let key = archive::hole_key(missing.owner, missing.first);
        let work = |transaction: Transaction| {
            let (key, value) = (key.clone(), hole.encode());
            async move { transaction.set(&key, &value) }
        };
        self.store.run_repeatable(work).await.map(drop)
    }

    fn take_pending(&mut self) -> Vec<Found> {
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some(found) = self
            .pending
            .pop_front_if(|found| bytes == 0 || bytes + found.bytes.len() <= COMMIT_BYTES)
        {
            bytes += found.bytes.len();
            taken.push(found);
        }
        taken
    }

    async fn try_commit(&mut self, taken: &[Found]) -> Result<Folded, FoldError> {
        let transaction = self.store.begin();
        self.check_lease(&transaction).await?;
        let mut folded = Folded {
            alarms: std::mem::take(&mut self.alarms),
            ..Folded::default()
        };
        let result = self.write(&transaction, taken, &mut folded).await;
        let result = match result {
            Ok(()) => transaction.commit().await.map(drop).map_err(FoldError::from),
            Err(error) => Err(error),
        };
        let released = std::mem::take(&mut self.released);
        if result.is_err() {
            for found in released {
                self.logs.entry(found.owner).or_default().wait(found);
            }
            self.alarms = std::mem::take(&mut folded.alarms);
        }
        result.map(|()| folded)
    }

    async fn write(
        &mut self,
        transaction: &Transaction,
        taken: &[Found],
        folded: &mut Folded,
    ) -> Result<(), FoldError> {
        let mut ready = BTreeSet::new();
        for found in taken {
            if ready.insert(found.owner) {
                self.ready(transaction, found.owner).await?;
            }
            let log = self.logs.get_mut(&found.owner).expect("invariant: a log is ready");
            match log.judge(found) {
                Verdict::Void => {}
                Verdict::Waits => {
                    log.wait(found.clone());
                    // An opening before it may have been recorded since it was looked at.
                    if let Some(next) = self.next_waiting(found.owner, folded) {
                        self.fold_on(transaction, next, folded).await?;
                    }
                }
                Verdict::Alarm(alarm) => folded.alarms.push(alarm),
                Verdict::Next => self.fold_on(transaction, found.clone(), folded).await?,
            }
        }
        let tree = archive::Tree {
            size: self.tree.size(),
            peaks: self.tree.peaks().to_vec(),
        };
        transaction.set(&archive::tree_key(self.shard), &tree.encode())?;
        for (owner, log) in &mut self.logs {
            if let Some(cursor) = log.write_moved(transaction, *owner)? {
                folded.cursors.push((*owner, cursor));
            }
        }
        Ok(())
    }

    /// Folds a batch, and those that waited for it.
    async fn fold_on(&mut self, transaction: &Transaction, found: Found, folded: &mut Folded) -> Result<(), FoldError> {
        let owner = found.owner;
        let mut next = Some(found);
        while let Some(found) = next.take() {
            self.archive(transaction, &found)?;
            folded.batches += 1;
            folded.events += u64::from(found.batch.header.events);
            folded.bytes += found.bytes.len() as u64;
            let log = self.logs.get_mut(&owner).expect("invariant: a log is ready");
            let mut effects = Effects::default();
            if let Err(impossible) = log.fold(&found.batch, |state, event| effects.note(state, event)) {
                folded.alarms.push(Alarm::Impossible(impossible.to_string()));
            }
            effects
                .write(transaction, &self.schema, &self.logs, &mut folded.alarms)
                .await?;
            next = self.next_waiting(owner, folded);
        }
        Ok(())
    }

    /// Of the batches that wait, the one whose turn has come.
    fn next_waiting(&mut self, owner: OwnerId, folded: &mut Folded) -> Option<Found> {
        let log = self.logs.get_mut(&owner).expect("invariant: a log is ready");
        while let Some(waiting) = log.pop_waiting() {
            match log.judge(&waiting) {
                Verdict::Waits => {
                    log.wait(waiting);
                    return None;
                }
                Verdict::Next => {
                    self.released.push(waiting.clone());
                    return Some(waiting);
                }
                Verdict::Void => self.released.push(waiting),
                Verdict::Alarm(alarm) => {
                    self.released.push(waiting);
                    folded.alarms.push(alarm);
                }
            }
        }
        None
    }

    fn archive(&mut self, transaction: &Transaction, found: &Found) -> Result<(), StoreError> {
        let leaf = LeafIndex(self.tree.size());
        self.tree.push(found.batch.hash);
        for (key, chunk) in chunks(&archive::leaf_key(self.shard, leaf), &found.bytes) {
            transaction.set(&key, chunk)?;
        }
        let place = archive::place_key(found.owner, found.batch.header.number);
        transaction.set(&place, &archive::encode_place(leaf))
    }

    /// Makes sure that a log's state is in memory, and reads what may void its batches in this very transaction.
    async fn ready(&mut self, transaction: &Transaction, owner: OwnerId) -> Result<(), FoldError> {
        let store = self.store.clone();
        let log = self.logs.entry(owner).or_default();
        log.ready(&store, transaction, self.shard, owner).await
    }

    async fn check_lease(&self, transaction: &Transaction) -> Result<(), FoldError> {
        let value = transaction.get(&archive::lease_key(self.shard)).await?;
        let lease = archive::FoldLease::decode(value.as_deref())?;
        if lease.term == self.term {
            Ok(())
        } else {
            Err(FoldError::Superseded {
                shard: self.shard,
                term: lease.term,
            })
        }
    }

    /// Forgets what is in memory and reads the tree again; the logs follow when they are needed.
    async fn reload(&mut self) -> Result<(), FoldError> {
        let shard = self.shard;
        let tree = self
            .store
            .read(|transaction| async move {
                let value = transaction.get(&archive::tree_key(shard)).await?;
                archive::Tree::decode(value.as_deref())
            })
            .await?;
        self.tree = Frontier::resume(tree.size, tree.peaks).expect("invariant: decoding counts the peaks");
        self.logs.values_mut().for_each(Log::forget);
        Ok(())
    }
}
