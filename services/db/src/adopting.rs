//! Adopting a log that the store does not know (rule F17): a store that was restored to an older backup takes up what the log
//! proves, or gives it up by name.
//!
//! A log describes itself: each batch names the hash of the one before, and an `Open` begins each epoch. So from where the
//! archive ends, the chain that reaches the newest epoch is what the lost store had recorded. A [`Plan`] finds it, without
//! changing anything. [`Adoption::begin`] writes, in one transaction, what the store would have to know of it: owners, epochs,
//! openings, and counters beyond everything that can have been given out. From then on what is to be adopted is an ordinary
//! log beyond its archive, and folds as any other. [`Adoption::finish`] sets the check-outs of stored entities right, which no
//! log yields. A db does not start on a store of which an adoption is unfinished; it is gone on with by asking for it again.

mod record;

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
    },
};
use thiserror::Error;

use crate::{
    Alarm, FoldError, Folder, RecoveryError,
    comparison::{
        Beyond, ComparedLog, Known, Numbers, Read, Standing, is_bare_open, kind_of, opening, read_batches, read_known,
    },
    restoring::{RAISE, RAISE_EPOCHS, RAISE_OWNERS, read_lives, set_checkouts},
};

pub use record::{AdoptionRecord, AdoptionStage};

/// Bytes of batches that are offered before they are folded: one transaction's worth.
const FOLD_BYTES: usize = 3 << 20;

/// What becomes of a log that the store does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// What its chain proves is taken up. What lies behind a hole cannot be, and nothing is done while there is such.
    Adopt,
    /// The same, and what lies behind a hole is given up.
    AdoptProvable,
    /// All that the store does not know is given up.
    Discard,
}

/// What is to become of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlan {
    /// How it stands to the store.
    pub log: ComparedLog,
    /// The kind of its owner, if the store or the log tells; an owner of whom nothing does has no state.
    pub kind: Option<OwnerKind>,
    /// What is taken up.
    pub adopted: Beyond,
    /// What is given up.
    pub discarded: Beyond,
    /// The epochs that it was opened in.
    openings: Vec<OpeningRecord>,
    /// The newest batch that stands.
    stands: BatchNumber,
    /// The owner as the store has it.
    record: Option<OwnerRecord>,
    /// The highest epoch in the log.
    highest: Epoch,
    numbers: Numbers,
}

/// Why a log cannot be adopted.
#[derive(Debug, Error)]
pub enum AdoptError {
    /// A log is another realm's.
    #[error(
        "the log of owner {0} is another realm's: nothing of it can be adopted or given up; put the right files back"
    )]
    Foreign(OwnerId),
    /// Something would be lost, and nobody has said that it may.
    #[error(
        "owner {owner}: {what}; nothing was changed. To adopt what the chains prove and give up the rest, add --give-up-unprovable; to \
         give up all that the store does not know, --discard"
    )]
    Unprovable {
        /// Whose log.
        owner: OwnerId,
        /// What would be lost.
        what: String,
    },
    /// The store has gone on by itself.
    #[error(
        "owner {0}: the store has recorded openings that the log contradicts: it has gone on without this log. It can only be given up, \
         with --discard"
    )]
    Contradiction(OwnerId),
    /// Definitions that the store does not have.
    #[error(
        "owner {owner}: the log goes over to definitions {schema}, which the store does not have: the realm was migrated after this \
         store was backed up. Restore a backup from after the migration, or give the log up with --discard"
    )]
    Schema {
        /// Whose log.
        owner: OwnerId,
        /// The fingerprint.
        schema: Hash,
    },
    /// There is nothing to do.
    #[error("the store knows everything that the log holds: there is nothing to adopt")]
    Nothing,
    /// The store.
    #[error("the store could not be used")]
    Store(#[from] StoreError),
    /// A state.
    #[error("an owner's state could not be rebuilt")]
    Recovery(#[from] RecoveryError),
    /// Folding.
    #[error("the log could not be folded")]
    Fold(#[from] FoldError),
    /// Not everything was folded.
    #[error(
        "owner {owner}: folded up to batch {folded} and not to batch {wanted}; the adoption is unfinished, and going on with it needs \
         the same log"
    )]
    Short {
        /// Whose log.
        owner: OwnerId,
        /// How far it is.
        folded: BatchNumber,
        /// How far it should be.
        wanted: BatchNumber,
    },
}

/// What an adoption would do. Nothing is changed by planning it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The logs that the store does not know, or not to their end.
    pub logs: BTreeMap<OwnerId, LogPlan>,
    /// Logs that end before what the store knows: what they lack is lost.
    pub behind: Vec<ComparedLog>,
}

impl Plan {
    /// Adds a log. `batches` are its messages and fills, in any order.
    ///
    /// # Errors
    /// When the store cannot be read, or nothing can be done with this log.
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
                let what = format!("the log ends with batch {last}, and the store knows of batch {known}");
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
        let plan = LogPlan::new(log, &known, &read, proven);
        if choice == Choice::Adopt && plan.discarded.batches > 0 {
            let what = format!(
                "the log has a hole behind batch {}, and {} batches with {} events behind it prove nothing",
                plan.stands, plan.discarded.batches, plan.discarded.events
            );
            return Err(AdoptError::Unprovable { owner, what });
        }
        check_schemas(store, owner, &read, plan.stands).await?;
        self.logs.insert(owner, plan);
        Ok(())
    }

    /// What is taken up in all.
    #[must_use]
    pub fn adopted(&self) -> Beyond {
        self.logs
            .values()
            .fold(Beyond::default(), |sum, log| sum.plus(log.adopted))
    }

    /// What is given up in all.
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
    /// The hashes of its batches, in order.
    path: Vec<Hash>,
    openings: Vec<OpeningRecord>,
}

impl Proven {
    /// Follows the chain from the archive's end to the newest batch of the newest epoch that it reaches: what other branches
    /// hold was void when that batch was appended, for its writer had the store's word.
    fn find<'a, 'b: 'a>(cursor: &Cursor, read: impl Iterator<Item = &'a Read<'b>>) -> Self {
        let read: Vec<&Read<'_>> = read.collect();
        let mut reached: BTreeMap<Hash, usize> = BTreeMap::new();
        let mut best: Option<usize> = None;
        // By number, so that each batch comes behind the one that it names.
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
            // An `Open` that nothing stands on may have been given up, and holds nothing.
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
    /// Whether a batch is of an epoch that the store knows to have been opened.
    fn has_opened(&self, read: &Read<'_>) -> bool {
        let epoch = read.header.epoch;
        epoch == self.cursor.epoch || self.openings.iter().any(|opening| opening.epoch == epoch)
    }

    /// Whether the store, once it knows the openings of what is proven, takes that for the log's chain.
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
    fn new(log: ComparedLog, known: &Known, read: &[Read<'_>], proven: Proven) -> Self {
        let on_path: BTreeSet<Hash> = proven.path.iter().copied().collect();
        let beyond = || read.iter().filter(|read| read.header.number > known.cursor.batch);
        let adopted = beyond().filter(|read| on_path.contains(&read.hash));
        let last = read.iter().rfind(|read| on_path.contains(&read.hash));
        let (stands, epoch) = last.map_or((known.cursor.batch, known.cursor.epoch), |last| {
            (last.header.number, last.header.epoch)
        });
        // What is of an older epoch was void already.
        let is_lost = |read: &&Read<'_>| {
            let is_newer = (read.header.epoch, read.header.number) > (epoch, stands);
            is_newer && !on_path.contains(&read.hash) && !is_bare_open(&read.header)
        };
        let numbers = beyond().fold(Numbers::default(), |numbers, read| numbers.and(read.bytes));
        Self {
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

    /// The owner as the store is to have it: of an epoch above all that were ever granted, held by nobody.
    fn owner(&self, shard: Shard) -> OwnerRecord {
        let granted = self.record.map(|record| record.epoch).unwrap_or_default();
        OwnerRecord {
            kind: self.kind.unwrap_or(OwnerKind::Base),
            shard,
            epoch: Epoch(granted.max(self.highest).0.saturating_add(RAISE_EPOCHS)),
            process: ProcessId(0),
        }
    }

    /// Writes what the store is to know of the log.
    fn write(&self, transaction: &Transaction, shard: Shard) -> Result<(), StoreError> {
        let (owner, record) = (self.log.owner, self.owner(shard));
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

/// Whether the store has the definitions of everything that is to be adopted.
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
            async move { transaction.get_range(&range, 1, annals_store::Order::Forward).await }
        };
        if store.read(look).await?.rows.is_empty() {
            return Err(AdoptError::Schema { owner, schema });
        }
    }
    Ok(())
}

/// Who has decided, when, and why.
#[derive(Clone, Debug)]
pub struct Decision {
    /// When, by the wall clock.
    pub at: WallTime,
    /// The operator's name.
    pub operator: String,
    /// The operator's reason.
    pub reason: String,
}

/// An adoption that was decided and is not finished.
pub struct Adoption {
    store: Store,
    shard: Shard,
    number: u32,
    folder: Folder,
    alarms: Vec<Alarm>,
}

impl Adoption {
    /// The adoption of a store that was begun and is not finished, if there is one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn unfinished(store: &Store) -> Result<Option<AdoptionRecord>, StoreError> {
        let read = |transaction: Transaction| async move { AdoptionRecord::read_newest(&transaction).await };
        let newest = store.read(read).await?;
        Ok(newest.filter(|record| record.stage == AdoptionStage::Unfinished))
    }

    /// Decides: from here on the store knows what the plan adopts, and what it gives up is void.
    ///
    /// # Errors
    /// When there is nothing to do, or the store cannot be used; nothing was changed then, unless the store did not answer.
    pub async fn begin(
        store: Store,
        shard: Shard,
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
        // Nobody holds anything: what was last written is when the realm stood still.
        let newest = [adopted.to, discarded.to].into_iter().max().filter(|wall| wall.0 > 0);
        let rested = newest.unwrap_or(decision.at);
        let decided = &decided;
        let decide = |transaction: Transaction| async move {
            let tree = transaction.get(&archive::tree_key(shard)).await?;
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
                // The answer to an earlier try was lost.
                return Ok(last);
            }
            let next = last.map_or(0, |last| last + 1);
            plan.logs.values().try_for_each(|log| log.write(&transaction, shard))?;
            raise_counters(&transaction, plan).await?;
            transaction.set(&director::closed_key(), &director::encode_closed(rested))?;
            decided(next).write(&transaction)?;
            Ok::<_, StoreError>(next)
        };
        let (number, _) = store.run_repeatable(decide).await?;
        let folder = Folder::begin(store.clone(), shard, schema).await?;
        Ok(Self {
            store,
            shard,
            number,
            folder,
            alarms: Vec::new(),
        })
    }

    /// Goes on with an adoption that is unfinished; `None` if there is none.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn resume(store: Store, shard: Shard, schema: Arc<Schema>) -> Result<Option<Self>, AdoptError> {
        let Some(unfinished) = Self::unfinished(&store).await? else {
            return Ok(None);
        };
        let folder = Folder::begin(store.clone(), shard, schema).await?;
        Ok(Some(Self {
            store,
            shard,
            number: unfinished.adoption.number,
            folder,
            alarms: Vec::new(),
        }))
    }

    /// Takes the stream's next message: all of them have to be taken, in the stream's order.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn take(&mut self, owner: OwnerId, bytes: Vec<u8>) -> Result<(), AdoptError> {
        self.folder.offer(owner, bytes);
        if self.folder.pending_bytes() >= FOLD_BYTES {
            self.fold().await?;
        }
        Ok(())
    }

    async fn fold(&mut self) -> Result<(), AdoptError> {
        while self.folder.has_work() {
            let folded = self.folder.commit().await?;
            self.alarms.extend(folded.alarms);
        }
        Ok(())
    }

    /// The stream has ended: sets right what no log yields, and ends the adoption. What db would have raised an alarm about.
    ///
    /// # Errors
    /// When the store cannot be used, or not everything that was to be adopted is folded. `upto` says up to which batch each
    /// log was to be, where that is known.
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
        let (_, lives) = read_lives(&self.store, self.shard).await?;
        set_checkouts(&self.store, &lives).await?;
        let number = self.number;
        let end =
            |transaction: Transaction| async move { advance(&transaction, number, AdoptionStage::Finished).await };
        self.store.run_repeatable(end).await?;
        Ok(self.alarms)
    }
}

impl Plan {
    /// Up to which batch each log is to be folded.
    #[must_use]
    pub fn ends(&self) -> BTreeMap<OwnerId, BatchNumber> {
        let logs = self.logs.iter();
        logs.map(|(owner, log)| (*owner, log.stands)).collect()
    }
}

/// Raises each counter beyond all numbers that the lost store can have given out.
async fn raise_counters(transaction: &Transaction, plan: &Plan) -> Result<(), StoreError> {
    let seen = plan.logs.values().fold(Numbers::default(), |seen, log| Numbers {
        entity: seen.entity.max(log.numbers.entity),
        checkout: seen.checkout.max(log.numbers.checkout),
    });
    let owner = plan.logs.keys().next_back().map_or(0, |owner| u64::from(owner.0));
    let raised = [
        (Counter::Entities, seen.entity, RAISE),
        (Counter::Owners, owner, RAISE_OWNERS),
        (Counter::Processes, 0, RAISE),
        (Counter::Checkouts, seen.checkout, RAISE),
    ];
    for (counter, seen, raise) in raised {
        let key = director::counter_key(counter);
        let next = director::decode_counter(transaction.get(&key).await?.as_deref())?;
        let next = next.max(seen.saturating_add(1)).saturating_add(raise);
        transaction.set(&key, &director::encode_counter(next))?;
    }
    Ok(())
}

/// What the log `ledger` does not say yet of the store's adoptions, oldest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_unlogged_adoptions(store: &Store) -> Result<Vec<annals_event::Adoption>, StoreError> {
    let read = |transaction: Transaction| async move { AdoptionRecord::read_all(&transaction).await };
    let records = store.read(read).await?.into_iter();
    let unlogged = records.filter(|record| record.stage == AdoptionStage::Finished);
    Ok(unlogged.map(|record| record.adoption).collect())
}

/// The log `ledger` says so.
pub(crate) async fn note_logged(transaction: &Transaction, number: u32) -> Result<(), StoreError> {
    advance(transaction, number, AdoptionStage::Logged).await
}

/// Brings the record of an adoption to a stage. A realm that was restored from a backup has no record of what it folds.
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
