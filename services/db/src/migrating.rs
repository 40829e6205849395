//! Migrating a stopped realm to other definitions.
//!
//! [`Preparation::begin`] rejects migrations that are not allowed; [`Preparation::survey`] is a dry run that changes
//! nothing; [`Preparation::decide`] gives the realm the new definitions, in one transaction; [`convert_next`] then
//! rewrites stored entities, a slice at a time. The process may be killed after any of these transactions and run
//! again.
//!
//! Logs are not rewritten, since history does not change. Each log goes over to the new definitions with its next
//! `Open`, and a process that folds it converts its state there ([`Migrations`]).

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};

use annals_def::{Index, MigrationError, Plan, Rename, RenameError, Renames, Schema};
use annals_event::{Call, Impossible, Migration, OwnerState, Receivers, calls_of, types_of};
use annals_ids::{DatabaseId, EntityId, Hash, LeafIndex, WallTime};
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction,
    layout::{
        archive::{Tree, tree_key},
        chunks, database, director,
        migrations::{Converting, MigrationRecord, converting_key, key_of},
        owners, shards,
    },
};
use thiserror::Error;

use crate::{
    migrations::{Migrations, read_records, read_schema},
    recovery::{RecoveryError, recover},
    stored::{self, EntityRow, Taken},
};

/// Rows of stored entities that are read at a time.
const PAGE: usize = 256;

/// Bytes of stored entities that one transaction rewrites, give or take one entity: few enough for a fraction of the
/// time that a transaction may last.
const SLICE_BYTES: usize = 1 << 20;

/// Maximum values without counterpart that a survey names; further ones are counted.
pub const NAMED: usize = 20;

/// Reason why a realm is not migrated.
#[derive(Debug, Error)]
pub enum MigrateError {
    /// There is no realm.
    #[error("this realm was never started: start it with its first definitions")]
    NoRealm,
    /// The realm has these definitions already.
    #[error("the realm already runs on these definitions: there is nothing to migrate")]
    Same,
    /// The realm had these definitions before.
    #[error(
        "this would be a downgrade: the realm was migrated from these definitions to later ones, and the values \
         dropped then are lost; restore a backup from before that migration, or change the current definitions"
    )]
    Downgrade,
    /// The realm was not stopped in order.
    #[error(
        "the realm was not stopped cleanly, so its log may hold batches that its store lacks: start it on the old \
         definitions and stop it with `annals realm stop`"
    )]
    NotStopped,
    /// The realm has changed since the migration was prepared.
    #[error("the realm was started or migrated while this migration was being prepared: run the migration again")]
    Changed,
    /// Another migration is not complete.
    #[error(
        "the migration to definitions {0} is unfinished: finish it first, with `annals realm migrate` and those \
         definitions"
    )]
    Unfinished(Hash),
    /// A given rename is invalid.
    #[error("invalid renames")]
    Rename(#[from] RenameError),
    /// The realm cannot run before everything is converted.
    #[error(
        "indexed values change: {0}; all stored entities have to be converted before the realm runs, without --later"
    )]
    IndexChanges(String),
    /// A stored entity has no counterpart.
    #[error("entity {database} of the database does not fit the new definitions")]
    Entity {
        /// The entity.
        database: DatabaseId,
        /// Why it has no counterpart.
        #[source]
        source: MigrationError,
    },
    /// The store cannot be used.
    #[error("the store could not be used")]
    Store(#[from] StoreError),
    /// An owner's state cannot be rebuilt.
    #[error("an owner's state could not be rebuilt")]
    Recovery(#[from] RecoveryError),
}

/// A migration that is allowed so far.
pub struct Preparation {
    store: Store,
    new: Schema,
    migration: Migration,
    renames: Vec<String>,
    number: u32,
    /// Number of leaves in the archive of each shard; a running realm adds more.
    leaves: Vec<u64>,
}

/// Result of a dry run.
#[derive(Debug, Default)]
pub struct Survey {
    /// Number of owners.
    pub owners: u64,
    /// Number of entity parts on them, or in hand-over.
    pub parts: u64,
    /// Number of calls in transit.
    pub calls: u64,
    /// Number of stored entities by type.
    pub stored: BTreeMap<String, u64>,
    /// The first [`NAMED`] values without counterpart.
    pub refused: Vec<String>,
    /// Number of further ones.
    pub unnamed: u64,
    receivers: Receivers,
}

impl Preparation {
    /// Compares a realm's definitions with new ones, given the renames.
    ///
    /// # Errors
    /// When the realm cannot be migrated to them now.
    #[boxed]
    pub async fn begin(store: Store, new: Schema, said: Vec<Rename>) -> Result<Self, MigrateError> {
        let read = |transaction: Transaction| async move {
            let realm = transaction.get(&director::realm_key()).await?;
            let closed = transaction.get(&director::closed_key()).await?;
            let converting = transaction.get(&converting_key()).await?;
            let realm = realm.map(|value| director::Realm::decode(&value)).transpose()?;
            let leaves = read_leaves(&transaction).await?;
            Ok::<_, StoreError>((realm, closed.is_some(), converting.is_some(), leaves))
        };
        let (realm, is_closed, is_converting, leaves) = store.read(read).await?;
        let realm = realm.ok_or(MigrateError::NoRealm)?;
        let records = read_records(&store).await?;
        let to = new.fingerprint();
        if is_converting {
            return Err(MigrateError::Unfinished(realm.schema));
        }
        if to == realm.schema {
            return Err(MigrateError::Same);
        }
        if records.iter().any(|record| record.from == to) {
            return Err(MigrateError::Downgrade);
        }
        if !is_closed {
            return Err(MigrateError::NotStopped);
        }
        let old = read_schema(&store, realm.schema).await?;
        let renames = Renames::new(&old, &new, said)?;
        let migration = Migration {
            from: realm.schema,
            to,
            plan: Plan::new(&old, &new, &renames),
            receivers: Receivers::new(),
        };
        Ok(Self {
            store,
            new,
            migration,
            renames: renames.all().map(|rename| rename.to_string()).collect(),
            number: u32::try_from(records.len()).expect("invariant: schema numbers have 32 bits"),
            leaves,
        })
    }

    /// The realm's present definitions.
    #[must_use]
    pub fn old(&self) -> &Schema {
        self.migration.plan.old()
    }

    /// Converts everything that the realm has, as a trial. Changes nothing.
    ///
    /// # Errors
    /// When it cannot be read; values without counterpart are in the survey.
    #[boxed(?Send)]
    pub async fn survey(&self) -> Result<Survey, MigrateError> {
        let mut survey = Survey::default();
        let migrations = Migrations::read(&self.store).await?;
        let mut states = Vec::new();
        let listing = |transaction: Transaction| async move { owners::read_owners(&transaction).await };
        for (owner, record) in self.store.read(listing).await? {
            let mut state = recover(&self.store, record.shard, owner, record.kind).await?.state;
            // The log may not have advanced since the migration before.
            match migrations.convert(&mut state, self.migration.from) {
                Ok(()) => states.push(state),
                Err(why) => survey.refuse(why.to_string()),
            }
        }
        survey.receivers = receivers(&states, self.migration.plan.old());
        let migration = Migration {
            receivers: survey.receivers.clone(),
            ..self.migration.clone()
        };
        for state in &mut states {
            survey.owners += 1;
            survey.parts += (state.entities.len() + state.departing.len()) as u64;
            survey.calls += calls_of(state).count() as u64;
            if let Err(why) = try_out(&migration, state) {
                survey.refuse(why.to_string());
            }
        }
        let mut after = DatabaseId(0);
        while let Some(page) = read_page(&self.store, after).await? {
            for (id, row) in &page {
                after = *id;
                let before = migrations.entity(row);
                let converted = before.and_then(|before| {
                    let plan = &self.migration.plan;
                    plan.convert_stored(&before.entity_type, &before.properties)
                });
                *survey.stored.entry(row.entity.entity_type.clone()).or_default() += 1;
                if let Err(error) = converted {
                    survey.refuse(format!("entity {id} of the database: {error}"));
                }
            }
        }
        Ok(survey)
    }

    /// Checks that the realm may run before stored entities are converted: the indexed properties must be the same as
    /// before.
    ///
    /// # Errors
    /// [`MigrateError::IndexChanges`] names the first property that differs.
    pub fn may_be_later(&self) -> Result<(), MigrateError> {
        may_be_later(&self.migration.plan)
    }

    /// Gives the realm the new definitions. This cannot be undone. [`convert_next`] must be called until nothing is
    /// left, before the realm runs or, with `later`, while it runs.
    ///
    /// # Errors
    /// When the realm was started or migrated meanwhile, or the store cannot be used.
    #[boxed]
    pub async fn decide(&self, survey: &Survey, at: WallTime, later: bool) -> Result<(), MigrateError> {
        let record = MigrationRecord {
            from: self.migration.from,
            to: self.migration.to,
            at,
            leaves: LeafIndex(self.leaves.first().copied().unwrap_or_default()),
            renames: self.renames.clone(),
            receivers: survey
                .receivers
                .iter()
                .map(|(entity, found)| (*entity, *found))
                .collect(),
        };
        let converting = Converting {
            of: survey.stored.values().sum(),
            later,
            ..Converting::default()
        };
        let (encoded, record) = (&self.new.encode(), &record);
        let work = |transaction: Transaction| async move {
            let realm = read_realm(&transaction).await?;
            if realm.schema == record.to {
                // The answer to an earlier attempt was lost.
                return Ok(());
            }
            // A director that starts the realm removes this key in a transaction of its own.
            if transaction.get(&director::closed_key()).await?.is_none() {
                return Err(MigrateError::NotStopped);
            }
            let leaves = read_leaves(&transaction).await?;
            let is_converting = transaction.get(&converting_key()).await?.is_some();
            if is_converting || realm.schema != record.from || leaves != self.leaves {
                return Err(MigrateError::Changed);
            }
            for (key, chunk) in chunks(&director::schema_key(record.to), encoded) {
                transaction.set(&key, chunk)?;
            }
            Ok(write_migration(
                &transaction,
                realm,
                (self.number, record),
                &converting,
            )?)
        };
        self.store.run_repeatable(work).await?;
        Ok(())
    }
}

impl Survey {
    /// Whether everything has a counterpart.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.refused.is_empty()
    }

    fn refuse(&mut self, why: String) {
        if self.refused.len() < NAMED {
            self.refused.push(why);
        } else {
            self.unnamed += 1;
        }
    }
}

/// Progress of the conversion of stored entities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Number converted since it began.
    pub converted: u64,
    /// Number of stored entities when it began.
    pub of: u64,
    /// Entities of the last slice that cannot be found by a unique value, because another entity has it.
    pub taken: Vec<String>,
    /// Whether nothing is left.
    pub is_done: bool,
}

/// Progress of the conversion, if stored entities of the realm are still to be converted.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read_converting(store: &Store) -> Result<Option<Converting>, StoreError> {
    let read = |transaction: Transaction| async move { transaction.get(&converting_key()).await };
    let value = store.read(read).await?;
    value.map(|value| Converting::decode(&value)).transpose()
}

/// Converts the next slice of stored entities, in one transaction. `present` are the realm's definitions.
///
/// # Errors
/// When an entity has no counterpart, which a survey would have reported; or the store cannot be used.
#[boxed]
pub async fn convert_next(store: &Store, present: &Schema, migrations: &Migrations) -> Result<Converted, MigrateError> {
    let work = |transaction: Transaction| async move {
        let key = converting_key();
        let Some(value) = transaction.get(&key).await? else {
            return Ok(Converted {
                is_done: true,
                ..Converted::default()
            });
        };
        let mut converting = Converting::decode(&value)?;
        let slice = convert_slice(&transaction, (present, migrations), converting.upto).await?;
        converting.converted += slice.converted;
        match slice.upto {
            Some(upto) => {
                converting.upto = upto;
                transaction.set(&key, &converting.encode())?;
            }
            None => transaction.clear(&key)?,
        }
        Ok::<_, MigrateError>(Converted {
            converted: converting.converted,
            of: converting.of,
            taken: slice.taken,
            is_done: slice.upto.is_none(),
        })
    };
    Ok(store.run_repeatable(work).await?.0)
}

/// Converts all stored entities of former definitions. No other process may use the store.
pub(crate) async fn convert_all(store: &Store, present: &Schema, migrations: &Migrations) -> Result<(), MigrateError> {
    let mut after = Some(DatabaseId(0));
    while let Some(from) = after {
        let work =
            |transaction: Transaction| async move { convert_slice(&transaction, (present, migrations), from).await };
        after = store.run_repeatable(work).await?.0.upto;
    }
    Ok(())
}

/// Result of one transaction.
struct Slice {
    /// Last entity examined; `None` if there are no more.
    upto: Option<DatabaseId>,
    converted: u64,
    taken: Vec<String>,
}

async fn convert_slice(
    transaction: &Transaction,
    (present, migrations): (&Schema, &Migrations),
    after: DatabaseId,
) -> Result<Slice, MigrateError> {
    let mut slice = Slice {
        upto: None,
        converted: 0,
        taken: Vec::new(),
    };
    let mut bytes = 0;
    for id in page_after(transaction, after).await? {
        slice.upto = Some(id);
        let Some(row) = stored::read_row(transaction, id).await? else {
            continue;
        };
        if row.generation >= migrations.generation() {
            continue;
        }
        let entity = migrations.entity(&row);
        let entity = entity.map_err(|source| MigrateError::Entity { database: id, source })?;
        let before = (migrations.schema_of(row.generation, present), &row.entity);
        let definitions = (present, migrations.generation());
        let written = stored::write(transaction, definitions, id, Some(before), &entity).await?;
        let taken = |Taken { property, holder }: &Taken| {
            format!("entity {id} of the database has the same {property} as entity {holder} and is not indexed by it")
        };
        slice.taken.extend(written.taken.iter().map(taken));
        slice.converted += 1;
        bytes += written.bytes;
        if bytes >= SLICE_BYTES {
            break;
        }
    }
    Ok(slice)
}

/// Some of the next stored entities.
async fn page_after(transaction: &Transaction, after: DatabaseId) -> Result<Vec<DatabaseId>, StoreError> {
    let all = database::entities();
    let begin = KeyRange::prefix(&database::entity_key(after)).end;
    let range = KeyRange::new(begin, all.end);
    let page = transaction
        .snapshot()
        .get_range(&range, PAGE, ScanOrder::Forward)
        .await?;
    let ids: Result<BTreeSet<DatabaseId>, StoreError> =
        page.rows.iter().map(|(key, _)| database::entity_of(key)).collect();
    Ok(ids?.into_iter().collect())
}

async fn read_page(store: &Store, after: DatabaseId) -> Result<Option<Vec<(DatabaseId, EntityRow)>>, StoreError> {
    let read = |transaction: Transaction| async move {
        let mut page = Vec::new();
        for id in page_after(&transaction, after).await? {
            page.extend(stored::read_row(&transaction, id).await?.map(|row| (id, row)));
        }
        Ok::<_, StoreError>(page)
    };
    Ok(Some(store.read(read).await?).filter(|page| !page.is_empty()))
}

/// Types of all receivers of calls in transit.
pub(crate) fn receivers(states: &[OwnerState], old: &Schema) -> Receivers {
    let called: BTreeSet<EntityId> = states
        .iter()
        .flat_map(calls_of)
        .filter(|(_, call)| matches!(call, Call::Method { .. } | Call::InvokeFor { .. }))
        .filter_map(|(to, _)| Some(to.entity()?.0))
        .collect();
    // A fragment may not be there yet.
    let named = |entity: EntityId| old.fragment_with_id(entity).map(|found| found.id);
    let mut found: Receivers = called.into_iter().map(|entity| (entity, named(entity))).collect();
    for (entity, type_id) in states.iter().flat_map(types_of) {
        if let Some(receiver) = found.get_mut(&entity) {
            *receiver = Some(type_id);
        }
    }
    found
}

/// Number of leaves in the archive of each shard.
async fn read_leaves(transaction: &Transaction) -> Result<Vec<u64>, StoreError> {
    let mut leaves = Vec::new();
    for shard in shards::all(shards::read_count(transaction).await?) {
        leaves.push(Tree::decode(transaction.get(&tree_key(shard)).await?.as_deref())?.size);
    }
    Ok(leaves)
}

/// The realm's record.
pub(crate) async fn read_realm(transaction: &Transaction) -> Result<director::Realm, StoreError> {
    let realm = transaction.get(&director::realm_key()).await?;
    let realm = realm.map(|value| director::Realm::decode(&value)).transpose()?;
    realm.ok_or_else(|| StoreError::Corrupt("the realm's record is missing".into()))
}

/// Gives the realm the definitions of a migration (rule M2). Their schema is in the store.
pub(crate) fn write_migration(
    transaction: &Transaction,
    realm: director::Realm,
    (number, record): (u32, &MigrationRecord),
    converting: &Converting,
) -> Result<(), StoreError> {
    let schema = record.to;
    transaction.set(&director::realm_key(), &director::Realm { schema, ..realm }.encode())?;
    for (key, chunk) in chunks(&key_of(number), &record.encode()) {
        transaction.set(&key, chunk)?;
    }
    transaction.set(&converting_key(), &converting.encode())?;
    // Whatever was prepared was compared with the former definitions.
    transaction.clear(&director::upgrade_key())
}

/// Checks that a realm may run before stored entities are converted by this plan: the indexed properties must be the
/// same as before.
///
/// # Errors
/// [`MigrateError::IndexChanges`] names the first property that differs.
pub fn may_be_later(plan: &Plan) -> Result<(), MigrateError> {
    let is_indexed = |property: &annals_def::Property| property.persistent && property.indexed != Index::None;
    for old in plan.old().types() {
        let Some(new) = plan.new_type(old.id) else { continue };
        let plans = &plan.of_type(old.id).properties;
        for (property, plan) in old
            .properties
            .iter()
            .zip(plans)
            .filter(|(property, _)| is_indexed(property))
        {
            let now = plan.new.and_then(|id| new.property(id));
            let same = now.is_some_and(|now| {
                let names = (&old.name, &property.name) == (&new.name, &now.name);
                names && now.persistent && now.indexed == property.indexed && now.data_type == property.data_type
            });
            if !same {
                return Err(MigrateError::IndexChanges(format!("{}.{}", old.name, property.name)));
            }
        }
        let was = |name: &str| old.property_named(name).is_some_and(is_indexed);
        if let Some(added) = new.properties.iter().find(|now| is_indexed(now) && !was(&now.name)) {
            return Err(MigrateError::IndexChanges(format!("{}.{}", new.name, added.name)));
        }
    }
    Ok(())
}

pub(crate) fn try_out(migration: &Migration, state: &mut OwnerState) -> Result<(), Impossible> {
    if state.tail.batch.0 == 0 {
        return Ok(());
    }
    migration.convert(state)
}
