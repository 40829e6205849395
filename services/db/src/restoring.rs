//! Restoring: a realm's store from its archive, up to a consistent cut, and from the rows that no log yields.
//!
//! [`read_unlogged`] takes those rows from a store, [`ClaimedStore`] puts them into an empty one, and [`Restoring`] folds the
//! archive behind them with the [`Folder`] that folds a realm that runs. What comes of it is the store of a realm that was killed at the
//! cut: no process is alive, the stream is empty, and whoever takes an owner goes on behind its cursor (rule E1). Until then
//! the store says that it is [unfinished](lineage::unfinished_key), and nobody takes it for a realm's.
//!
//! Nothing of the realm that the archive was taken from must be mistaken for the restored one's. So numbers that it may have
//! given out since are never given out again, and each owner's epoch is higher than any that was ever granted of it.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use annals_def::Schema;
use annals_event::{Batch, Malformed, Thinned};
use annals_ids::{BatchNumber, DatabaseId, Hash, LeafIndex, OwnerId, Shard, WallTime};
use annals_proof::Frontier;
use annals_store::{
    ArchivedBatch, KeyRange, Order, Store, StoreError, Transaction, key_after,
    layout::{
        archive::{Tree, tree_key},
        database::{self, Checkout},
        director,
        lineage::{self, Lineage},
        owners,
        retention::Horizon,
    },
    limits::KEYS_END,
};
use thiserror::Error;

pub use rows::{Row, horizon_of, read_unlogged};
pub(crate) use rows::{owners_of, read_rows, records, schemas, write_rows};

use crate::{
    Alarm, FoldError, Folder, Migrations, RecoveryError, Sealer,
    migrating::{MigrateError, convert_all},
    recovery::recover,
    retention::read_parts,
};
pub(crate) use rows::{RAISE, RAISE_EPOCHS, RAISE_OWNERS};
use rows::{adapted, passing};

/// Rows of an unfinished store that are removed in one transaction.
const REMOVED_ROWS: usize = 10_000;

/// Bytes of batches that are offered before they are folded: one transaction's worth.
const FOLD_BYTES: usize = 3 << 20;

/// Why a realm was not restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// There is something in the store.
    #[error("the store is not empty: name an empty data directory, or on a cluster a realm that is not there")]
    NotEmpty,
    /// The store.
    #[error("the store could not be used")]
    Store(#[from] StoreError),
    /// Folding.
    #[error("the archive could not be folded")]
    Fold(#[from] FoldError),
    /// A batch is none.
    #[error("leaf {leaf} of the archive is not a batch: {source}")]
    Malformed {
        /// Which leaf.
        leaf: LeafIndex,
        /// What is wrong.
        source: Malformed,
    },
    /// A leaf is not the one that comes next.
    #[error("leaf {found} of the archive came where leaf {expected} comes next")]
    Order {
        /// What came.
        found: LeafIndex,
        /// What should have.
        expected: LeafIndex,
    },
    /// A batch was written under a schema that is not there.
    #[error("leaf {leaf} was written under schema {schema}, which the backup does not hold")]
    NoSchema {
        /// Which leaf.
        leaf: LeafIndex,
        /// The schema's fingerprint.
        schema: Hash,
    },
    /// The archive does not fold.
    #[error("the archive does not fold: {0}")]
    Unsound(Alarm),
    /// The realm cannot be cut off there.
    #[error(
        "leaf {leaves} lies before the horizon: retention has let go of what cells did in the first {horizon} leaves of the archive (batches up to {wall} ms since 1970), so that this backup is restored to leaf {horizon} or beyond; one that was made earlier may reach further back"
    )]
    BeforeHorizon {
        /// How many leaves were asked for.
        leaves: u64,
        /// How many there have to be at least.
        horizon: u64,
        /// The latest wall time of what was let go.
        wall: WallTime,
    },
    /// A batch has lost its events that must have them.
    #[error("the events of leaf {leaf} are gone, and nothing stands in for them: the backup is damaged")]
    LetGo {
        /// Which leaf.
        leaf: LeafIndex,
    },
    /// Not every leaf became part of the restored archive.
    #[error("only {folded} of {leaves} leaves could be folded: a batch is missing or void")]
    Short {
        /// How many became.
        folded: u64,
        /// How many there are.
        leaves: u64,
    },
    /// The restored archive is another.
    #[error("the restored archive has root {restored}, the one that was backed up {expected}")]
    Root {
        /// What was restored.
        restored: Hash,
        /// What it should be.
        expected: Hash,
    },
    /// What was stored under former definitions.
    #[error("what was stored before the definitions changed could not be converted")]
    Convert(#[from] MigrateError),
    /// A state could not be read back.
    #[error("an owner's state could not be rebuilt")]
    Recovery(#[from] RecoveryError),
}

/// Where a realm was cut off: how many leaves, and how far each log is among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many leaves.
    pub leaves: u64,
    /// The last batch of each log.
    pub logs: BTreeMap<OwnerId, BatchNumber>,
}

/// A store that is unfinished and holds nothing else: what a realm is restored into.
pub struct ClaimedStore {
    store: Store,
}

/// A store that is being filled.
pub struct Restoring {
    store: Store,
    shard: Shard,
    schemas: BTreeMap<Hash, Arc<Schema>>,
    /// What folds, and seals, batches of this schema.
    folding: Option<(Hash, Folder, Sealer)>,
    /// The tree over what was taken.
    tree: Frontier,
    /// Up to where events may be gone.
    horizon: Option<Horizon>,
    /// The owners whose events may be gone up to there.
    passing: BTreeSet<OwnerId>,
}

impl ClaimedStore {
    /// Makes a store that is empty, or was left unfinished, one that is unfinished and holds nothing else. Whoever fails from
    /// here on leaves what is no realm. `backup` is what the archive is of, for whoever finds the store unfinished.
    ///
    /// # Errors
    /// When the store is not empty, or cannot be used.
    pub async fn claim(store: Store, backup: &str) -> Result<Self, RestoreError> {
        clear_unfinished(&store, backup).await?;
        Ok(Self { store })
    }

    /// Puts the rows that no log yields into it, as they have to be for an archive of this extent.
    ///
    /// # Errors
    /// When the store cannot be written, a row cannot be read, or the realm cannot be cut off there.
    pub async fn begin(self, shard: Shard, rows: &[Row], extent: &Extent) -> Result<Restoring, RestoreError> {
        let horizon = horizon_of(rows, shard)?;
        check_horizon(horizon, extent.leaves)?;
        write_rows(&self.store, &adapted(rows, extent)?).await?;
        Ok(Restoring {
            store: self.store,
            shard,
            schemas: schemas(rows)?,
            folding: None,
            tree: Frontier::new(),
            horizon,
            passing: passing(rows)?,
        })
    }
}

impl Restoring {
    /// Takes the next leaf.
    ///
    /// # Errors
    /// When it is not the next one, or what came before it cannot be folded.
    pub async fn take(&mut self, leaf: LeafIndex, archived: ArchivedBatch) -> Result<(), RestoreError> {
        let expected = LeafIndex(self.tree.size());
        if leaf != expected {
            return Err(RestoreError::Order { found: leaf, expected });
        }
        let batch = self.read(leaf, &archived)?;
        let schema = batch.header.schema;
        self.tree.push(batch.hash);
        if self.folding.as_ref().is_none_or(|(held, ..)| *held != schema) {
            self.fold().await?;
            let known = self.schemas.get(&schema);
            let known = known.ok_or(RestoreError::NoSchema { leaf, schema })?;
            self.convert(known).await?;
            let folder = Folder::begin(self.store.clone(), self.shard, Arc::clone(known)).await?;
            let sealer = folder.sealer();
            self.folding = Some((schema, folder, sealer));
        }
        if let Some((_, folder, _)) = &mut self.folding {
            folder.offer_read(batch.header.owner, batch, archived.stored().into_owned());
            if folder.pending_bytes() >= FOLD_BYTES {
                self.fold().await?;
            }
        }
        match self.horizon.filter(|horizon| horizon.leaf == leaf) {
            Some(horizon) => self.reach(horizon).await,
            None => Ok(()),
        }
    }

    /// What there is of a batch. It is without events where they were let go.
    fn read(&self, leaf: LeafIndex, archived: &ArchivedBatch) -> Result<Batch, RestoreError> {
        let malformed = |source| RestoreError::Malformed { leaf, source };
        let thinned = match archived {
            ArchivedBatch::Whole(bytes) => return Batch::read(bytes).map_err(malformed),
            ArchivedBatch::Thinned(bytes) => Thinned::read(bytes).map_err(malformed)?,
        };
        let is_before = self.horizon.is_some_and(|horizon| leaf <= horizon.leaf);
        if !is_before || !self.passing.contains(&thinned.header.owner) {
            return Err(RestoreError::LetGo { leaf });
        }
        Ok(Batch {
            header: thinned.header,
            hash: thinned.hash,
            events: Vec::new(),
        })
    }

    /// Everything up to the horizon was taken: the database's rows take in what cells held there.
    async fn reach(&mut self, horizon: Horizon) -> Result<(), RestoreError> {
        self.fold().await?;
        let parts = read_parts(&self.store, self.shard, horizon).await?;
        if let Some((_, folder, _)) = &mut self.folding {
            judge(folder.take_in(&parts).await?)?;
        }
        Ok(())
    }

    /// Everything was taken: the restored archive must be that of `root`, if one is given. Ends what was under way at the
    /// cut, and notes where the realm comes from.
    ///
    /// # Errors
    /// When something is missing, or the store cannot be used.
    pub async fn finish(
        mut self,
        root: Option<Hash>,
        lineage: &Lineage,
    ) -> Result<BTreeMap<OwnerId, Hash>, RestoreError> {
        self.fold().await?;
        let shard = self.shard;
        let tree = |transaction: Transaction| async move {
            let value = transaction.get(&tree_key(shard)).await?;
            Tree::decode(value.as_deref())
        };
        let folded = self.store.read(tree).await?;
        if folded.size != self.tree.size() {
            return Err(RestoreError::Short {
                folded: folded.size,
                leaves: self.tree.size(),
            });
        }
        let restored = Frontier::resume(folded.size, folded.peaks).unwrap_or_default().root();
        let expected = root.unwrap_or_else(|| self.tree.root());
        if restored != expected {
            return Err(RestoreError::Root { restored, expected });
        }
        if let Some(present) = self.read_present().await? {
            self.convert(&present).await?;
        }
        let (states, lives) = read_lives(&self.store, self.shard).await?;
        set_checkouts(&self.store, &lives).await?;
        // From here on it is a realm.
        let end = |transaction: Transaction| async move {
            transaction.set(&lineage::key_of(lineage.leaf), &lineage.encode())?;
            transaction.clear(&lineage::unfinished_key())
        };
        self.store.run_repeatable(end).await?;
        Ok(states)
    }

    /// Converts what was stored before the definitions became these.
    async fn convert(&self, present: &Schema) -> Result<(), RestoreError> {
        let migrations = Migrations::read(&self.store).await?.upto(present.fingerprint());
        Ok(convert_all(&self.store, present, &migrations).await?)
    }

    async fn fold(&mut self) -> Result<(), RestoreError> {
        let Some((_, folder, sealer)) = &mut self.folding else {
            return Ok(());
        };
        while folder.has_work() {
            judge(folder.commit().await?.alarms)?;
        }
        while sealer.seal_next().await?.is_some() {}
        Ok(())
    }

    /// The definitions that the restored realm has.
    async fn read_present(&self) -> Result<Option<Arc<Schema>>, RestoreError> {
        let read = |transaction: Transaction| async move { transaction.get(&director::realm_key()).await };
        let realm = self.store.read(read).await?;
        let realm = realm.map(|value| director::Realm::decode(&value)).transpose()?;
        Ok(realm.and_then(|realm| self.schemas.get(&realm.schema).cloned()))
    }
}

/// The hash of each owner's state, and the lives of the database's entities that exist.
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
            let held: &mut Checkout = lives.entry(base.database).or_insert(life);
            if held.number < life.number {
                *held = life;
            }
        }
    }
    Ok((states, lives))
}

/// Has each stored entity checked out to the life that it has, and no other.
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

fn judge(alarms: Vec<Alarm>) -> Result<(), RestoreError> {
    for alarm in alarms {
        match alarm {
            // It was so when it happened, too.
            Alarm::UnknownType { .. } | Alarm::IdentifierTaken { .. } => {}
            alarm => return Err(RestoreError::Unsound(alarm)),
        }
    }
    Ok(())
}

/// Whether a realm with such a horizon can be restored to so many leaves.
///
/// # Errors
/// When it cannot.
pub fn check_horizon(horizon: Option<Horizon>, leaves: u64) -> Result<(), RestoreError> {
    match horizon {
        Some(Horizon { leaf, wall, .. }) if leaves <= leaf.0 => Err(RestoreError::BeforeHorizon {
            leaves,
            horizon: leaf.0 + 1,
            wall,
        }),
        _ => Ok(()),
    }
}

/// Leaves nothing in a store that is empty or unfinished but the mark that it is unfinished.
async fn clear_unfinished(store: &Store, backup: &str) -> Result<(), RestoreError> {
    let everything = KeyRange::new(vec![], KEYS_END.to_vec());
    let mark = lineage::unfinished_key();
    let (everything, mark) = (&everything, &mark);
    let clear = |transaction: Transaction| async move {
        let is_unfinished = lineage::read_unfinished(&transaction).await?.is_some();
        let page = transaction.get_range(everything, REMOVED_ROWS, Order::Forward).await?;
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
