//! Restoring: rebuilds a realm's store from its archive, up to a consistent cut, and from the rows that cannot be
//! derived from a log.
//!
//! [`read_unlogged`] reads those rows from a store, [`ClaimedStore`] writes them to an empty one, and [`Restoring`]
//! folds the archive on top with the [`Folder`] that a running realm uses. The result is the store of a realm that was
//! killed at the cut: no process is alive, the stream is empty, and a process that takes an owner over continues from
//! its cursor (rule E1). Until the restore is complete the store is marked [unfinished](lineage::unfinished_key), and
//! no process uses it as a realm's.
//!
//! Nothing of the original realm may be mistaken for the restored one's. So numbers that the original may have given
//! out since are never given out again, and each owner's epoch is higher than any that was ever granted for it.

mod rows;

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals_def::Schema;
use annals_event::{Batch, Malformed, Thinned};
use annals_ids::{BatchNumber, DatabaseId, Hash, LeafIndex, OwnerId, Shard, WallTime};
use annals_proof::Frontier;
use annals_store::{
    ArchivedBatch, KeyRange, ScanOrder, Store, StoreError, Transaction, key_after,
    layout::{
        archive::{Tree, tree_key},
        database::{self, Checkout},
        director,
        lineage::{self, Lineage},
        owners,
        retention::Horizon,
        shards::Parting,
    },
    limits::KEYS_END,
};
use thiserror::Error;

pub use rows::{Row, horizon_of, read_unlogged, shards_of};
pub(crate) use rows::{openings_of, owners_of, passing, read_rows, records, schemas, write_rows};

use crate::{
    Alarm, FoldError, Folder, MergedLeaf, Migrations, RecoveryError, Replay, Round, Sealer,
    merging::{Lives, alone_of, changes_of},
    migrating::{MigrateError, convert_all},
    recovery::recover,
    retention::read_parts,
};
pub(crate) use rows::{RAISE, RAISE_EPOCHS, RAISE_GENERATIONS, RAISE_OWNERS};
use rows::{adapted, ended_of};

/// Rows of an unfinished store that one transaction removes.
const REMOVED_ROWS: usize = 10_000;

/// Bytes of batches that are offered before they are folded: enough for one transaction.
const FOLD_BYTES: usize = 3 << 20;

/// Reason why a realm was not restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The store is not empty.
    #[error("the store is not empty: name an empty data directory or, on a cluster, a realm that does not exist")]
    NotEmpty,
    /// The store cannot be used.
    #[error("the store could not be used")]
    Store(#[from] StoreError),
    /// Folding failed.
    #[error("the archive could not be folded")]
    Fold(#[from] FoldError),
    /// A leaf is not a batch.
    #[error("leaf {leaf} of the archive is not a batch: {source}")]
    Malformed {
        leaf: LeafIndex,
        /// Decoding error.
        source: Malformed,
    },
    /// A leaf is not the next one.
    #[error("expected leaf {expected} of the archive, found leaf {found}")]
    Order {
        /// Leaf that was given.
        found: LeafIndex,
        /// Leaf that was expected.
        expected: LeafIndex,
    },
    /// A log has a gap.
    #[error("the last activations of entities cannot be ended: a batch of shard {shard} is missing or void")]
    Unanswered { shard: Shard },
    /// The realm does not have the shard of a leaf.
    #[error("the realm has no shard {shard}, and the backup has leaves of it")]
    NoShard { shard: Shard },
    /// A batch was written under a schema that is missing.
    #[error("leaf {leaf} was written under schema {schema}, which the backup does not contain")]
    NoSchema {
        leaf: LeafIndex,
        /// Fingerprint of the schema.
        schema: Hash,
    },
    /// The archive cannot be folded.
    #[error("the archive does not fold: {0}")]
    Unsound(Alarm),
    /// The realm cannot be cut at this leaf.
    #[error(
        "leaf {leaves} is before the horizon: retention has deleted the cell events in the first {horizon} leaves of \
         the archive of shard {shard} (batches up to {wall} ms since 1970), so this backup can be restored to leaf {horizon} or later; \
         an earlier backup may reach further back"
    )]
    BeforeHorizon {
        shard: Shard,
        /// Number of leaves requested.
        leaves: u64,
        /// Minimum number of leaves.
        horizon: u64,
        /// Latest wall time of the deleted events.
        wall: WallTime,
    },
    /// A batch lacks its events, and is of a log that must have them.
    #[error("the events of leaf {leaf} were deleted, and no floor replaces them: the backup is damaged")]
    Deleted { leaf: LeafIndex },
    /// Not every leaf of the cut became part of the restored archive.
    #[error("only {folded} of {leaves} leaves of shard {shard} could be folded: a batch is missing or void")]
    Short {
        shard: Shard,
        /// Number of leaves restored.
        folded: u64,
        /// Number of leaves of the cut.
        leaves: u64,
    },
    /// The restored archive has another root.
    #[error("the restored archive of shard {shard} has root {restored}, but that in the backup has {expected}")]
    Root {
        shard: Shard,
        /// Root of the restored archive.
        restored: Hash,
        /// Expected root.
        expected: Hash,
    },
    /// Data stored under former definitions cannot be converted.
    #[error("entities stored under earlier definitions could not be converted")]
    Convert(#[from] MigrateError),
    /// A state could not be read back.
    #[error("an owner's state could not be rebuilt")]
    Recovery(#[from] RecoveryError),
}

/// Extent of the archives at a cut: the number of leaves of each shard, and the last batch of each log among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Number of leaves.
    pub leaves: BTreeMap<Shard, u64>,
    /// Last batch of each log.
    pub logs: BTreeMap<OwnerId, BatchNumber>,
}

impl Extent {
    /// Number of leaves of a shard.
    #[must_use]
    pub fn of(&self, shard: Shard) -> u64 {
        self.leaves.get(&shard).copied().unwrap_or_default()
    }

    /// Number of leaves of the first shard, by which the moments of a realm are recorded.
    fn first(&self) -> u64 {
        self.of(Shard(0))
    }
}

/// A store that contains only the mark that it is unfinished: the target of a restore.
pub struct ClaimedStore {
    store: Store,
}

/// A restore in progress.
pub struct Restoring {
    store: Store,
    schemas: BTreeMap<Hash, Arc<Schema>>,
    /// Schema of the batches that are folded.
    folded: Option<Hash>,
    shards: BTreeMap<Shard, RestoredShard>,
    /// The shard, if any, with leaves that are not folded yet and whose folds write rows of all shards.
    unfolded: Option<Shard>,
    lives: Lives,
    /// Owners whose events up to the horizon may have been deleted.
    passing: BTreeSet<OwnerId>,
}

/// A shard that is being restored.
struct RestoredShard {
    shard: Shard,
    /// Number of leaves to restore.
    leaves: u64,
    /// Tree over the leaves taken so far.
    tree: Frontier,
    /// Horizon up to which events may have been deleted.
    horizon: Option<Horizon>,
    replay: Arc<Replay>,
    folding: Option<(Folder, Sealer)>,
}

impl ClaimedStore {
    /// Claims a store that is empty or was left unfinished, so that it contains only the mark that it is unfinished. A
    /// failure from here on leaves a store that no process uses as a realm's. `backup` names the source of the archive,
    /// for an operator who finds the store unfinished.
    ///
    /// # Errors
    /// When the store is not empty, or cannot be used.
    #[boxed]
    pub async fn claim(store: Store, backup: &str) -> Result<Self, RestoreError> {
        clear_unfinished(&store, backup).await?;
        Ok(Self { store })
    }

    /// Writes the rows that cannot be derived from a log, adapted to archives of this extent.
    ///
    /// # Errors
    /// When the store cannot be written, a row cannot be read, or the realm cannot be cut there.
    #[boxed]
    pub async fn begin(self, rows: &[Row], extent: &Extent) -> Result<Restoring, RestoreError> {
        let all = shards_of(rows)?;
        for shard in all.clone() {
            check_horizon(shard, horizon_of(rows, shard)?, extent.of(shard))?;
        }
        write_rows(&self.store, &adapted(rows, extent)?).await?;
        let mut shards = BTreeMap::new();
        for shard in all {
            let leaves = extent.of(shard);
            shards.insert(shard, RestoredShard::begin(&self.store, rows, (shard, leaves)).await?);
        }
        Ok(Restoring {
            store: self.store,
            schemas: schemas(rows)?,
            folded: None,
            shards,
            unfolded: None,
            lives: Lives::default(),
            passing: passing(rows)?,
        })
    }
}

impl Restoring {
    /// Adds the next leaf of a shard. In a realm of several shards, the leaves of all are added in an order of
    /// [`crate::Merging`].
    ///
    /// # Errors
    /// When it is not the next one, or what came before it cannot be folded.
    #[boxed(?Send)]
    pub async fn take(&mut self, shard: Shard, leaf: LeafIndex, archived: ArchivedBatch) -> Result<(), RestoreError> {
        let held = self.shards.get(&shard).ok_or(RestoreError::NoShard { shard })?;
        let expected = LeafIndex(held.tree.size());
        if leaf != expected {
            return Err(RestoreError::Order { found: leaf, expected });
        }
        let batch = held.read(leaf, &archived, &self.passing)?;
        self.change_schema(leaf, batch.header.schema).await?;
        if self.shards.len() > 1 {
            self.fold_before(shard, &MergedLeaf::of(leaf, &batch)).await?;
        }
        let held = self.shards.get_mut(&shard).ok_or(RestoreError::NoShard { shard })?;
        held.take(batch, archived).await
    }

    /// Folds batches of this schema from here on.
    async fn change_schema(&mut self, leaf: LeafIndex, schema: Hash) -> Result<(), RestoreError> {
        if self.folded == Some(schema) {
            return Ok(());
        }
        self.fold_all().await?;
        let known = self.schemas.get(&schema);
        let known = known.ok_or(RestoreError::NoSchema { leaf, schema })?;
        self.convert(known).await?;
        for (shard, held) in &mut self.shards {
            let folder = Folder::begin(self.store.clone(), *shard, Arc::clone(known)).await?;
            let folder = folder.again(Arc::clone(&held.replay));
            let sealer = folder.sealer();
            held.folding = Some((folder, sealer));
        }
        self.folded = Some(schema);
        Ok(())
    }

    /// Folds what has to be in the store before the fold of a leaf reads it.
    async fn fold_before(&mut self, shard: Shard, next: &MergedLeaf) -> Result<(), RestoreError> {
        let replay = self.shards.get(&shard).map(|held| &held.replay);
        if !next.is_shared() && !replay.is_some_and(|replay| replay.is_shared(next.leaf())) {
            return Ok(());
        }
        if let Some(before) = self.unfolded.replace(shard).filter(|before| *before != shard)
            && let Some(before) = self.shards.get_mut(&before)
        {
            before.fold().await?;
        }
        // The former activation was over on all shards when this one began (rule T4).
        for replaced in self.lives.pass(next) {
            self.fold_all().await?;
            for held in self.shards.values_mut() {
                held.answer(&Round::parting(replaced)).await?;
            }
        }
        Ok(())
    }

    /// Answers what the folds of the shards have left for each other.
    async fn answer_all(&mut self) -> Result<(), RestoreError> {
        self.fold_all().await?;
        for held in self.shards.values_mut() {
            held.answer_all().await?;
        }
        Ok(())
    }

    /// Completes the restore when all leaves were added. The root of a shard's restored archive must be the one in
    /// `roots`, if there is one. Ends what was in progress at the cut, and records the origin of the realm.
    ///
    /// # Errors
    /// When something is missing, or the store cannot be used.
    #[boxed(?Send)]
    pub async fn finish(
        mut self,
        roots: &BTreeMap<Shard, Hash>,
        lineage: &Lineage,
    ) -> Result<BTreeMap<OwnerId, Hash>, RestoreError> {
        self.fold_all().await?;
        if self.shards.len() > 1 {
            self.answer_all().await?;
        }
        for (shard, held) in &self.shards {
            held.check(&self.store, roots.get(shard).copied()).await?;
        }
        if let Some(present) = self.read_present().await? {
            self.convert(&present).await?;
        }
        let (mut states, mut lives) = (BTreeMap::new(), BTreeMap::new());
        for shard in self.shards.keys() {
            let (found, living) = read_lives(&self.store, *shard).await?;
            states.extend(found);
            for (database, life) in living {
                note_life(&mut lives, database, life);
            }
        }
        set_checkouts(&self.store, &lives).await?;
        // From here on the store is a realm's.
        let end = |transaction: Transaction| async move {
            transaction.set(&lineage::key_of(lineage.leaf), &lineage.encode())?;
            transaction.clear(&lineage::unfinished_key())
        };
        self.store.run_repeatable(end).await?;
        Ok(states)
    }

    /// Converts what was stored under earlier definitions.
    async fn convert(&self, present: &Schema) -> Result<(), RestoreError> {
        let migrations = Migrations::read(&self.store).await?.upto(present.fingerprint());
        Ok(convert_all(&self.store, present, &migrations).await?)
    }

    async fn fold_all(&mut self) -> Result<(), RestoreError> {
        for held in self.shards.values_mut() {
            held.fold().await?;
        }
        Ok(())
    }

    /// Definitions of the restored realm.
    async fn read_present(&self) -> Result<Option<Arc<Schema>>, RestoreError> {
        let read = |transaction: Transaction| async move { transaction.get(&director::realm_key()).await };
        let realm = self.store.read(read).await?;
        let realm = realm.map(|value| director::Realm::decode(&value)).transpose()?;
        Ok(realm.and_then(|realm| self.schemas.get(&realm.schema).cloned()))
    }
}

impl RestoredShard {
    async fn begin(store: &Store, rows: &[Row], (shard, leaves): (Shard, u64)) -> Result<Self, RestoreError> {
        let horizon = horizon_of(rows, shard)?;
        let mut replay = Replay::default();
        if shards_of(rows)?.count() > 1 {
            let changes = changes_of(rows)?.into_iter().map(|(_, change)| change);
            let at = changes.filter(|change| change.shard == shard).map(|change| change.leaf);
            let alone = alone_of(rows)?.filter(|_| shard == Shard(0));
            replay = Replay::of_shard(at.collect(), alone.map_or(0, |alone| alone.leaves));
        }
        if let Some(horizon) = horizon {
            let parts = read_parts(store, shard, horizon).await?;
            replay = replay.with_kept(parts, ended_of(rows, shard)?);
        }
        Ok(Self {
            shard,
            leaves,
            tree: Frontier::new(),
            horizon,
            replay: Arc::new(replay),
            folding: None,
        })
    }

    /// Decodes a batch; without events if they were deleted.
    fn read(
        &self,
        leaf: LeafIndex,
        archived: &ArchivedBatch,
        passing: &BTreeSet<OwnerId>,
    ) -> Result<Batch, RestoreError> {
        let malformed = |source| RestoreError::Malformed { leaf, source };
        let thinned = match archived {
            ArchivedBatch::Whole(bytes) => return Batch::read(bytes).map_err(malformed),
            ArchivedBatch::Thinned(bytes) => Thinned::read(bytes).map_err(malformed)?,
        };
        let is_before = self.horizon.is_some_and(|horizon| leaf <= horizon.leaf);
        if !is_before || !passing.contains(&thinned.header.owner) {
            return Err(RestoreError::Deleted { leaf });
        }
        Ok(Batch {
            header: thinned.header,
            hash: thinned.hash,
            events: Vec::new(),
        })
    }

    async fn take(&mut self, batch: Batch, archived: ArchivedBatch) -> Result<(), RestoreError> {
        self.tree.push(batch.hash);
        if let Some((folder, _)) = &mut self.folding {
            folder.offer_read(batch.header.owner, batch, archived.stored().into_owned());
            if folder.pending_bytes() >= FOLD_BYTES {
                self.fold_but(1).await?;
            }
        }
        Ok(())
    }

    /// Folds everything that was taken.
    async fn fold(&mut self) -> Result<(), RestoreError> {
        self.fold_but(0).await
    }

    /// Folds everything that was taken; at most `in_flight` transactions may not be durable yet.
    async fn fold_but(&mut self, in_flight: usize) -> Result<(), RestoreError> {
        let Some((folder, sealer)) = &mut self.folding else {
            return Ok(());
        };
        while folder.has_work() {
            folder.submit().await?;
            judge_folded(folder, 1).await?;
        }
        judge_folded(folder, in_flight).await?;
        while sealer.seal_next().await?.is_some() {}
        Ok(())
    }

    /// Answers what the folds of other shards have left, once all are folded.
    async fn answer_all(&mut self) -> Result<(), RestoreError> {
        while let Some((folder, _)) = &self.folding
            && let Some(round) = folder.begin_round().await?
        {
            self.answer(&round).await?;
        }
        Ok(())
    }

    async fn answer(&mut self, round: &Round) -> Result<(), RestoreError> {
        if let Some((folder, _)) = &mut self.folding
            && !folder.end_round(round).await?
        {
            return Err(RestoreError::Unanswered { shard: self.shard });
        }
        // Alarms.
        self.fold().await
    }

    /// Checks the archive that was folded.
    async fn check(&self, store: &Store, root: Option<Hash>) -> Result<(), RestoreError> {
        let shard = self.shard;
        let tree = |transaction: Transaction| async move {
            let value = transaction.get(&tree_key(shard)).await?;
            Tree::decode(value.as_deref())
        };
        let folded = store.read(tree).await?;
        if folded.size != self.leaves {
            return Err(RestoreError::Short {
                shard,
                folded: folded.size,
                leaves: self.leaves,
            });
        }
        let restored = Frontier::resume(folded.size, folded.peaks).unwrap_or_default().root();
        match root.unwrap_or_else(|| self.tree.root()) {
            expected if restored != expected => Err(RestoreError::Root {
                shard,
                restored,
                expected,
            }),
            _ => Ok(()),
        }
    }
}

/// The hash of each owner's state, and the present activations of stored entities.
pub(crate) async fn read_lives(
    store: &Store,
    shard: Shard,
) -> Result<(BTreeMap<OwnerId, Hash>, BTreeMap<DatabaseId, Checkout>), RecoveryError> {
    let listing = |transaction: Transaction| async move { owners::read_owners(&transaction).await };
    let listed = store.read(listing).await;
    let listed = listed.map_err(|source| RecoveryError::Store {
        owner: OwnerId(0),
        source,
    })?;
    let (mut states, mut lives) = (BTreeMap::new(), BTreeMap::new());
    for (owner, record) in listed.into_iter().filter(|(_, record)| record.shard == shard) {
        let state = recover(store, shard, owner, record.kind).await?.state;
        states.insert(owner, state.hash());
        let bases = state.entities.values().filter_map(|image| image.base());
        for base in bases.filter(|base| base.database.0 != 0) {
            let life = Checkout {
                owner,
                number: base.checkout,
            };
            note_life(&mut lives, base.database, life);
        }
    }
    // Activations that have ended and wait for the end of their cell part (rule F18) are not replaced meanwhile.
    let awaiting = crate::fold::read_awaiting_all(store, shard).await;
    let awaiting = awaiting.map_err(|source| RecoveryError::Store {
        owner: OwnerId(0),
        source,
    })?;
    for Parting { database, life, .. } in awaiting {
        lives.entry(database).or_insert(life);
    }
    Ok((states, lives))
}

/// Of several activations of a stored entity the newest counts.
pub(crate) fn note_life(lives: &mut BTreeMap<DatabaseId, Checkout>, database: DatabaseId, life: Checkout) {
    let held = lives.entry(database).or_insert(life);
    if held.number < life.number {
        *held = life;
    }
}

/// Checks each stored entity out to its present activation, and to no other.
pub(crate) async fn set_checkouts(store: &Store, lives: &BTreeMap<DatabaseId, Checkout>) -> Result<(), StoreError> {
    let rows: Vec<Row> = lives
        .iter()
        .map(|(database, life)| (database::checkout_key(*database), life.encode()))
        .collect();
    let stale = KeyRange::prefix(&database::checkout_key(DatabaseId(0))[..1]);
    let clear = |transaction: Transaction| {
        let stale = stale.clone();
        async move { transaction.clear_range(&stale) }
    };
    store.run_repeatable(clear).await?;
    write_rows(store, &rows).await
}

/// Waits until at most `left` of a folder's transactions are not durable yet, and judges the others.
async fn judge_folded(folder: &mut Folder, left: usize) -> Result<(), RestoreError> {
    while folder.submitted() > left {
        let folded = folder.next_folded().await?;
        judge(folded.unwrap_or_default().alarms)?;
    }
    Ok(())
}

fn judge(alarms: Vec<Alarm>) -> Result<(), RestoreError> {
    for alarm in alarms {
        match alarm {
            // The same alarm was raised when the original realm folded it.
            Alarm::UnknownType { .. } | Alarm::IdentifierTaken { .. } => {}
            alarm => return Err(RestoreError::Unsound(alarm)),
        }
    }
    Ok(())
}

/// Checks that a realm with such a horizon of a shard can be restored to this number of leaves.
///
/// # Errors
/// When it cannot.
pub fn check_horizon(shard: Shard, horizon: Option<Horizon>, leaves: u64) -> Result<(), RestoreError> {
    match horizon {
        Some(Horizon { leaf, wall, .. }) if leaves <= leaf.0 => Err(RestoreError::BeforeHorizon {
            shard,
            leaves,
            horizon: leaf.0 + 1,
            wall,
        }),
        _ => Ok(()),
    }
}

/// Removes everything but the mark that it is unfinished from a store that is empty or unfinished.
async fn clear_unfinished(store: &Store, backup: &str) -> Result<(), RestoreError> {
    let everything = KeyRange::new(vec![], KEYS_END.to_vec());
    let mark = lineage::unfinished_key();
    let (everything, mark) = (&everything, &mark);
    let clear = |transaction: Transaction| async move {
        let is_unfinished = lineage::read_unfinished(&transaction).await?.is_some();
        let page = transaction
            .get_range(everything, REMOVED_ROWS, ScanOrder::Forward)
            .await?;
        if let (Some((first, _)), Some((last, _)), true) = (page.rows.first(), page.rows.last(), is_unfinished) {
            transaction.clear_range(&KeyRange::new(first.to_vec(), key_after(last)))?;
        }
        if is_unfinished || page.rows.is_empty() {
            transaction.set(mark, backup.as_bytes())?;
        }
        let others = page.rows.iter().any(|(key, _)| *key != *mark);
        Ok::<_, StoreError>((others, is_unfinished))
    };
    loop {
        match store.run_repeatable(clear).await?.0 {
            (false, _) => return Ok(()),
            (true, false) => return Err(RestoreError::NotEmpty),
            (true, true) => {}
        }
    }
}
