//! Adopting a log that the store does not know (rule F17): a store that was restored from an older backup adopts what
//! the log proves, or gives it up explicitly.
//!
//! A log describes itself: each batch names the hash of the one before, and an `Open` begins each epoch. So the chain
//! from the archive's end to the newest epoch is what the lost store had recorded. A [`Plan`] finds it, without
//! changing anything. [`Adoption::begin`] writes, in one transaction, what the store must know of it: owners, epochs,
//! openings, and counters above every number that may have been given out. From then on the adopted part is an ordinary
//! log beyond its archive, and folds like any other. [`Adoption::finish`] corrects the check-outs of stored entities,
//! which cannot be derived from a log. A db process does not start on a store with an unfinished adoption; requesting
//! the adoption again continues it.

mod record;

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals_def::Schema;
use annals_ids::{BatchNumber, Epoch, Hash, LeafIndex, OwnerId, OwnerKind, ProcessId, Shard, WallTime};
use annals_node::{
    chain::assemble,
    writer::{Opening, Tip},
};
use annals_store::{
    KeyRange, Store, StoreError, Transaction,
    layout::{
        adoptions, archive,
        director::{self, Counter},
        owners::{self, Cursor, OpeningRecord, OwnerRecord},
        shards,
    },
};
use thiserror::Error;

use crate::{
    Alarm, FoldError, Folder, RecoveryError,
    comparison::{
        Beyond, ComparedLog, Known, Numbers, Read, Standing, is_bare_open, kind_of, opening, read_batches, read_known,
    },
    restoring::{RAISE, RAISE_EPOCHS, RAISE_GENERATIONS, RAISE_OWNERS, note_life, read_lives, set_checkouts},
    shards::read_shards,
};

pub use record::{AdoptionRecord, AdoptionStage};

/// Bytes of batches that are offered before they are folded: enough for one transaction.
const FOLD_BYTES: usize = 3 << 20;

/// What to do with a log that the store does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Adopt what its chain proves. Batches behind a hole cannot be adopted; if there are any, nothing is changed.
    Adopt,
    /// Adopt what its chain proves, and give up what lies behind a hole.
    AdoptProvable,
    /// Give up all that the store does not know.
    Discard,
}

/// Plan for one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlan {
    /// Its shard.
    shard: Shard,
    /// The log compared with the store.
    pub log: ComparedLog,
    /// Kind of its owner, if the store or the log has it; an owner of unknown kind has no state.
    pub kind: Option<OwnerKind>,
    /// What is adopted.
    pub adopted: Beyond,
    /// What is given up.
    pub discarded: Beyond,
    /// Openings of the adopted epochs.
    openings: Vec<OpeningRecord>,
    /// Newest batch that stays valid.
    stands: BatchNumber,
    /// The owner's record in the store.
    record: Option<OwnerRecord>,
    /// Highest epoch in the log.
    highest: Epoch,
    numbers: Numbers,
}

/// Reason why a log cannot be adopted.
#[derive(Debug, Error)]
pub enum AdoptError {
    /// The log belongs to another realm.
    #[error(
        "the log of owner {0} belongs to another realm and can be neither adopted nor discarded; restore the right \
         files"
    )]
    Foreign(OwnerId),
    /// Something would be lost, and the operator has not permitted that.
    #[error(
        "owner {owner}: {what}; nothing was changed. To adopt the proven batches and discard the rest, add \
         --give-up-unprovable; to discard every batch that the store does not have, add --discard"
    )]
    Unprovable {
        /// Owner of the log.
        owner: OwnerId,
        /// What would be lost.
        what: String,
    },
    /// The store has advanced without this log.
    #[error(
        "owner {0}: the store has recorded openings that the log contradicts: the store advanced without this log. The \
         log can only be discarded, with --discard"
    )]
    Contradiction(OwnerId),
    /// The log uses definitions that the store does not have.
    #[error(
        "owner {owner}: the log switches to definitions {schema}, which the store does not have: the realm was \
         migrated after the backup of this store. Restore a backup from after the migration, or discard the log with \
         --discard"
    )]
    Schema {
        /// Owner of the log.
        owner: OwnerId,
        /// Fingerprint of the definitions.
        schema: Hash,
    },
    /// A message is of a shard that the realm does not have.
    #[error("the realm has no shard {0}, and a log of it was given")]
    NoShard(Shard),
    /// There is nothing to do.
    #[error("the store has every batch of the log: there is nothing to adopt")]
    Nothing,
    /// The store cannot be used.
    #[error("the store could not be used")]
    Store(#[from] StoreError),
    /// A state cannot be rebuilt.
    #[error("an owner's state could not be rebuilt")]
    Recovery(#[from] RecoveryError),
    /// Folding failed.
    #[error("the log could not be folded")]
    Fold(#[from] FoldError),
    /// Not everything was folded.
    #[error(
        "owner {owner}: folded up to batch {folded} of {wanted}; the adoption is unfinished, and its continuation \
         needs the same log"
    )]
    Short {
        /// Owner of the log.
        owner: OwnerId,
        /// Batch that was reached.
        folded: BatchNumber,
        /// Batch that should have been reached.
        wanted: BatchNumber,
    },
}

/// What an adoption would do. Planning changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Logs that the store does not know, or not completely.
    pub logs: BTreeMap<OwnerId, LogPlan>,
    /// Logs that end before what the store knows: the missing part is lost.
    pub behind: Vec<ComparedLog>,
}

impl Plan {
    /// Adds a log. `batches` are its messages and fills, in any order.
    ///
    /// # Errors
    /// When the store cannot be read, or this log can be neither adopted nor given up.
    #[boxed]
    pub async fn add(
        &mut self,
        (store, shard): (&Store, Shard),
        log: ComparedLog,
        batches: &[Vec<u8>],
        choice: Choice,
    ) -> Result<(), AdoptError> {
        let owner = log.owner;
        match log.standing {
            Standing::Agrees => return Ok(()),
            Standing::Foreign { .. } => return Err(AdoptError::Foreign(owner)),
            Standing::Behind { last, known } if choice == Choice::Adopt => {
                let what = format!("the log ends with batch {last}, but the store has batch {known}");
                return Err(AdoptError::Unprovable { owner, what });
            }
            Standing::Behind { .. } => {
                self.behind.push(log);
                return Ok(());
            }
            Standing::Ahead(_) | Standing::Detached { .. } => {}
        }
        let known = read_known(store, shard, owner).await?;
        let read = read_batches(owner, batches);
        let proven = match choice {
            Choice::Discard => {
                let proven = Proven::find(&known.cursor, read.iter().filter(|read| known.has_opened(read)));
                known.check(owner, &read, &proven).map(|()| proven).unwrap_or_default()
            }
            Choice::Adopt | Choice::AdoptProvable => {
                let proven = Proven::find(&known.cursor, read.iter());
                known.check(owner, &read, &proven)?;
                proven
            }
        };
        let plan = LogPlan::new((shard, log), &known, &read, proven);
        if choice == Choice::Adopt && plan.discarded.batches > 0 {
            let what = format!(
                "the log has a hole after batch {}, and {} batches with {} events after it are unproven",
                plan.stands, plan.discarded.batches, plan.discarded.events
            );
            return Err(AdoptError::Unprovable { owner, what });
        }
        check_schemas(store, owner, &read, plan.stands).await?;
        self.logs.insert(owner, plan);
        Ok(())
    }

    /// Total of what is adopted.
    #[must_use]
    pub fn adopted(&self) -> Beyond {
        self.logs
            .values()
            .fold(Beyond::default(), |sum, log| sum.plus(log.adopted))
    }

    /// Total of what is given up.
    #[must_use]
    pub fn discarded(&self) -> Beyond {
        self.logs
            .values()
            .fold(Beyond::default(), |sum, log| sum.plus(log.discarded))
    }
}

/// What the chain of a log proves beyond the archive.
#[derive(Debug, Default)]
struct Proven {
    /// Hashes of its batches, in order.
    path: Vec<Hash>,
    openings: Vec<OpeningRecord>,
}

impl Proven {
    /// Follows the chain from the archive's end to the newest batch of the newest epoch that it reaches. Batches on
    /// other branches were void when that batch was appended, because the store had granted its writer the epoch.
    fn find<'a, 'b: 'a>(cursor: &Cursor, read: impl Iterator<Item = &'a Read<'b>>) -> Self {
        let read: Vec<&Read<'_>> = read.collect();
        let mut reached: BTreeMap<Hash, usize> = BTreeMap::new();
        let mut best: Option<usize> = None;
        // In order of number, so that each batch comes after the one that it names.
        for (at, one) in read.iter().enumerate() {
            let header = &one.header;
            let before = match reached.get(&header.previous) {
                Some(before) => (read[*before].header.number, read[*before].header.epoch),
                None if header.previous == cursor.hash => (cursor.batch, cursor.epoch),
                None => continue,
            };
            let follows = if header.opens {
                header.epoch > before.1
            } else {
                header.epoch == before.1
            };
            if header.number != before.0.next() || !follows {
                continue;
            }
            reached.insert(one.hash, at);
            // An `Open` that no batch follows may have been given up, and contains no events.
            let place = |at: usize| (read[at].header.epoch, read[at].header.number);
            if !is_bare_open(header) && best.is_none_or(|best| place(at) > place(best)) {
                best = Some(at);
            }
        }
        let mut path = Vec::new();
        let mut openings = Vec::new();
        let mut next = best;
        while let Some(at) = next {
            let Read { header, hash, .. } = read[at];
            path.push(*hash);
            if header.opens {
                openings.push(OpeningRecord {
                    epoch: header.epoch,
                    number: header.number,
                    hash: *hash,
                });
            }
            next = reached.get(&header.previous).copied();
        }
        path.reverse();
        openings.reverse();
        Self { path, openings }
    }
}

impl Known {
    /// Whether a batch is of an epoch that is recorded as opened.
    fn has_opened(&self, read: &Read<'_>) -> bool {
        let epoch = read.header.epoch;
        epoch == self.cursor.epoch || self.openings.iter().any(|opening| opening.epoch == epoch)
    }

    /// Checks that the store accepts the proven path as the log's chain once it has the openings.
    fn check(&self, owner: OwnerId, read: &[Read<'_>], proven: &Proven) -> Result<(), AdoptError> {
        if proven.path.is_empty() {
            return Ok(());
        }
        let recorded = self.openings.iter().chain(&proven.openings);
        let openings: BTreeMap<Epoch, Opening> = recorded.map(|record| (record.epoch, opening(record))).collect();
        let openings: Vec<Opening> = openings.into_values().collect();
        let contradicts = |record: &&OpeningRecord| {
            let of_store = self.openings.iter().find(|held| held.epoch == record.epoch);
            of_store.is_some_and(|held| held != *record)
        };
        if proven.openings.iter().any(|record| contradicts(&record)) {
            return Err(AdoptError::Contradiction(owner));
        }
        let tip = Tip {
            number: self.cursor.batch,
            hash: self.cursor.hash,
        };
        let on_path: BTreeSet<Hash> = proven.path.iter().copied().collect();
        let batches = read.iter().filter(|read| on_path.contains(&read.hash));
        let chain = assemble(owner, tip, &openings, batches.map(|read| read.bytes.to_vec()), 0);
        let chain = chain.map_err(|_| AdoptError::Contradiction(owner))?;
        let found: Vec<Hash> = chain.beyond.iter().map(|batch| batch.hash).collect();
        if found == proven.path {
            Ok(())
        } else {
            Err(AdoptError::Contradiction(owner))
        }
    }
}

impl LogPlan {
    fn new((shard, log): (Shard, ComparedLog), known: &Known, read: &[Read<'_>], proven: Proven) -> Self {
        let on_path: BTreeSet<Hash> = proven.path.iter().copied().collect();
        let beyond = || read.iter().filter(|read| read.header.number > known.cursor.batch);
        let adopted = beyond().filter(|read| on_path.contains(&read.hash));
        let last = read.iter().rfind(|read| on_path.contains(&read.hash));
        let (stands, epoch) = last.map_or((known.cursor.batch, known.cursor.epoch), |last| {
            (last.header.number, last.header.epoch)
        });
        // Batches of an older epoch were void already.
        let is_lost = |read: &&Read<'_>| {
            let is_newer = (read.header.epoch, read.header.number) > (epoch, stands);
            is_newer && !on_path.contains(&read.hash) && !is_bare_open(&read.header)
        };
        let numbers = beyond().fold(Numbers::default(), |numbers, read| numbers.and(read.bytes));
        Self {
            shard,
            adopted: Beyond::of(adopted),
            discarded: Beyond::of(beyond().filter(is_lost)),
            kind: known.record.map(|record| record.kind).or_else(|| kind_of(read)),
            openings: proven.openings,
            stands,
            record: known.record,
            highest: read.iter().map(|read| read.header.epoch).max().unwrap_or_default(),
            numbers,
            log,
        }
    }

    /// The owner's record after the adoption: its epoch is above all that were ever granted, and it has no holder.
    fn owner(&self) -> OwnerRecord {
        let granted = self.record.map(|record| record.epoch).unwrap_or_default();
        OwnerRecord {
            kind: self.kind.unwrap_or(OwnerKind::Base),
            shard: self.shard,
            epoch: Epoch(granted.max(self.highest).0.saturating_add(RAISE_EPOCHS)),
            process: ProcessId(0),
            call_generation: self.record.map(|record| record.call_generation).unwrap_or_default(),
        }
    }

    /// Writes what the store must know of the log.
    async fn write(&self, transaction: &Transaction) -> Result<(), StoreError> {
        let (owner, mut record) = (self.log.owner, self.owner());
        if self.discarded.batches > 0 {
            record.call_generation = director::assign(transaction, Counter::CallGenerations, 1).await?.start;
        }
        transaction.set(&owners::owner_key(owner), &record.encode())?;
        for opening in &self.openings {
            transaction.set(&owners::opening_key(owner, opening.epoch), &opening.encode())?;
        }
        if self.discarded.batches > 0 {
            let closing = OpeningRecord::closing(record.epoch, self.stands.next());
            transaction.set(&owners::opening_key(owner, closing.epoch), &closing.encode())?;
        }
        Ok(())
    }
}

/// Checks that the store has the definitions of everything that is adopted.
async fn check_schemas(
    store: &Store,
    owner: OwnerId,
    read: &[Read<'_>],
    stands: BatchNumber,
) -> Result<(), AdoptError> {
    let adopted = read.iter().filter(|read| read.header.number <= stands);
    let schemas: BTreeSet<Hash> = adopted.map(|read| read.header.schema).collect();
    for schema in schemas {
        let key = director::schema_key(schema);
        let look = |transaction: Transaction| {
            let range = KeyRange::prefix(&key);
            async move { transaction.get_range(&range, 1, annals_store::ScanOrder::Forward).await }
        };
        if store.read(look).await?.rows.is_empty() {
            return Err(AdoptError::Schema { owner, schema });
        }
    }
    Ok(())
}

/// An operator's decision.
#[derive(Clone, Debug)]
pub struct Decision {
    /// When it was made, by the wall clock.
    pub at: WallTime,
    /// The operator's name.
    pub operator: String,
    /// The operator's reason.
    pub reason: String,
}

/// An adoption that was decided and is not finished.
pub struct Adoption {
    store: Store,
    number: u32,
    folders: BTreeMap<Shard, Folder>,
    alarms: Vec<Alarm>,
}

impl Adoption {
    /// The store's unfinished adoption, if there is one.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[boxed]
    pub async fn unfinished(store: &Store) -> Result<Option<AdoptionRecord>, StoreError> {
        let read = |transaction: Transaction| async move { AdoptionRecord::read_newest(&transaction).await };
        let newest = store.read(read).await?;
        Ok(newest.filter(|record| record.stage == AdoptionStage::Unfinished))
    }

    /// Decides the adoption: from here on the store knows what the plan adopts, and what the plan gives up is void.
    ///
    /// # Errors
    /// When there is nothing to do, or the store cannot be used. Nothing was changed then, unless the store did not
    /// answer.
    #[boxed]
    pub async fn begin(
        store: Store,
        schema: Arc<Schema>,
        plan: &Plan,
        decision: &Decision,
    ) -> Result<Self, AdoptError> {
        if plan.logs.is_empty() && plan.behind.is_empty() {
            return Err(AdoptError::Nothing);
        }
        let (adopted, discarded) = (plan.adopted(), plan.discarded());
        let decided = annals_event::Adoption {
            number: 0,
            at: decision.at,
            leaves: LeafIndex(0),
            operator: decision.operator.clone(),
            reason: decision.reason.clone(),
            adopted: adopted.batches,
            events: adopted.events,
            discarded: discarded.batches,
        };
        // No process holds anything: the time of the newest batch is when the realm stopped.
        let newest = [adopted.to, discarded.to].into_iter().max().filter(|wall| wall.0 > 0);
        let rested = newest.unwrap_or(decision.at);
        let decided = &decided;
        let decide = |transaction: Transaction| async move {
            let tree = transaction.get(&archive::tree_key(Shard(0))).await?;
            let leaves = LeafIndex(archive::Tree::decode(tree.as_deref())?.size);
            let newest = AdoptionRecord::read_newest(&transaction).await?;
            let decided = |number| AdoptionRecord {
                adoption: annals_event::Adoption {
                    number,
                    leaves,
                    ..decided.clone()
                },
                stage: AdoptionStage::Unfinished,
            };
            let last = newest.as_ref().map(|record| record.adoption.number);
            if let (Some(last), Some(newest)) = (last, newest)
                && newest == decided(last)
            {
                // The answer to an earlier attempt was lost.
                return Ok(last);
            }
            let next = last.map_or(0, |last| last + 1);
            raise_counters(&transaction, plan).await?;
            for log in plan.logs.values() {
                log.write(&transaction).await?;
            }
            transaction.set(&director::closed_key(), &director::encode_closed(rested))?;
            decided(next).write(&transaction)?;
            Ok::<_, StoreError>(next)
        };
        let (number, _) = store.run_repeatable(decide).await?;
        Self::fold_from(store, number, &schema).await
    }

    async fn fold_from(store: Store, number: u32, schema: &Arc<Schema>) -> Result<Self, AdoptError> {
        let mut folders = BTreeMap::new();
        for shard in shards::all(read_shards(&store).await?) {
            let folder = Folder::begin(store.clone(), shard, Arc::clone(schema)).await?;
            folders.insert(shard, folder);
        }
        Ok(Self {
            store,
            number,
            folders,
            alarms: Vec::new(),
        })
    }

    /// Continues an unfinished adoption; `None` if there is none.
    ///
    /// # Errors
    /// When the store cannot be used.
    #[boxed]
    pub async fn resume(store: Store, schema: Arc<Schema>) -> Result<Option<Self>, AdoptError> {
        let Some(unfinished) = Self::unfinished(&store).await? else {
            return Ok(None);
        };
        let number = unfinished.adoption.number;
        Self::fold_from(store, number, &schema).await.map(Some)
    }

    /// Accepts the next message of a shard's stream. All messages of all shards must be given, those of each in the stream's
    /// order.
    ///
    /// # Errors
    /// When the store cannot be used, or the realm does not have the shard.
    #[boxed(?Send)]
    pub async fn take(&mut self, shard: Shard, owner: OwnerId, bytes: Vec<u8>) -> Result<(), AdoptError> {
        let folder = self.folders.get_mut(&shard).ok_or(AdoptError::NoShard(shard))?;
        folder.offer(owner, bytes);
        if folder.pending_bytes() >= FOLD_BYTES {
            self.fold().await?;
        }
        Ok(())
    }

    async fn fold(&mut self) -> Result<(), AdoptError> {
        for folder in self.folders.values_mut() {
            while folder.has_work() {
                let folded = folder.commit().await?;
                self.alarms.extend(folded.alarms);
            }
        }
        Ok(())
    }

    /// Completes the adoption at the end of all streams: corrects what cannot be derived from a log. Returns the alarms
    /// that db would have raised.
    ///
    /// # Errors
    /// When the store cannot be used, or not everything that is adopted was folded. `upto` is the batch that each log
    /// should have reached, where it is known.
    #[boxed(?Send)]
    pub async fn finish(mut self, upto: &BTreeMap<OwnerId, BatchNumber>) -> Result<Vec<Alarm>, AdoptError> {
        self.fold().await?;
        for (owner, wanted) in upto {
            let folded = crate::read_cursor(&self.store, *owner).await?.batch;
            if folded < *wanted {
                return Err(AdoptError::Short {
                    owner: *owner,
                    folded,
                    wanted: *wanted,
                });
            }
        }
        let mut lives = BTreeMap::new();
        for shard in self.folders.keys() {
            for (database, life) in read_lives(&self.store, *shard).await?.1 {
                note_life(&mut lives, database, life);
            }
        }
        set_checkouts(&self.store, &lives).await?;
        let number = self.number;
        let end =
            |transaction: Transaction| async move { advance(&transaction, number, AdoptionStage::Finished).await };
        self.store.run_repeatable(end).await?;
        Ok(self.alarms)
    }
}

impl Plan {
    /// Batch up to which each log must be folded.
    #[must_use]
    pub fn ends(&self) -> BTreeMap<OwnerId, BatchNumber> {
        let logs = self.logs.iter();
        logs.map(|(owner, log)| (*owner, log.stands)).collect()
    }
}

/// Raises each counter above all numbers that the lost store may have given out.
async fn raise_counters(transaction: &Transaction, plan: &Plan) -> Result<(), StoreError> {
    let seen = plan.logs.values().fold(Numbers::default(), |seen, log| Numbers {
        entity: seen.entity.max(log.numbers.entity),
        checkout: seen.checkout.max(log.numbers.checkout),
        call_generation: seen.call_generation.max(log.numbers.call_generation),
    });
    let owner = plan.logs.keys().next_back().map_or(0, |owner| u64::from(owner.0));
    let raised = [
        (Counter::Entities, seen.entity, RAISE),
        (Counter::Owners, owner, RAISE_OWNERS),
        (Counter::Processes, 0, RAISE),
        (Counter::Checkouts, seen.checkout, RAISE),
        (Counter::CallGenerations, seen.call_generation, RAISE_GENERATIONS),
    ];
    for (counter, seen, raise) in raised {
        let key = director::counter_key(counter);
        let next = director::decode_counter(transaction.get(&key).await?.as_deref())?;
        let next = next.max(seen.saturating_add(1)).saturating_add(raise);
        transaction.set(&key, &director::encode_counter(next))?;
    }
    Ok(())
}

/// The store's adoptions that are not in the log `ledger` yet, oldest first.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read_unlogged_adoptions(store: &Store) -> Result<Vec<annals_event::Adoption>, StoreError> {
    let read = |transaction: Transaction| async move { AdoptionRecord::read_all(&transaction).await };
    let records = store.read(read).await?.into_iter();
    let unlogged = records.filter(|record| record.stage == AdoptionStage::Finished);
    Ok(unlogged.map(|record| record.adoption).collect())
}

/// Notes that the log `ledger` contains the adoption.
pub(crate) async fn note_logged(transaction: &Transaction, number: u32) -> Result<(), StoreError> {
    advance(transaction, number, AdoptionStage::Logged).await
}

/// Advances the record of an adoption to a stage. A realm that was restored from a backup may fold an adoption that it
/// has no record of.
async fn advance(transaction: &Transaction, number: u32, stage: AdoptionStage) -> Result<(), StoreError> {
    let Some(value) = transaction.get(&adoptions::key_of(number)).await? else {
        return Ok(());
    };
    let record = AdoptionRecord {
        stage,
        ..AdoptionRecord::decode(number, &value)?
    };
    record.write(transaction)
}
