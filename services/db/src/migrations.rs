//! The changes of a realm's definitions, and how they convert states and stored entities.
//!
//! Every reader of a log folds it through [`Migrations::fold`]: earlier batches are folded under the definitions of
//! their time, and a log goes over to other definitions with the `Open` that was written under them (rules M1 and M2 of
//! `docs/protocol.md`).

use async_recursion::async_recursion as boxed;
use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use annals_def::{MigrationError, Plan, Rename, Renames, Schema};
use annals_event::{Batch, Image, Impossible, Migration, OwnerState};
use annals_ids::Hash;
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction, key_after,
    layout::{
        director,
        migrations::{self, MigrationRecord},
        read_chunks,
    },
};

use crate::{
    restoring::{self, Row},
    stored::{EntityRow, StoredEntity},
};

/// Rows read at a time.
const PAGE: usize = 256;

/// All changes of a realm's definitions, oldest first. No definitions are migrated to twice, so there is one path from
/// any to the present ones.
#[derive(Clone, Debug, Default)]
pub struct Migrations {
    steps: Vec<Arc<Migration>>,
}

impl Migrations {
    /// Reads a realm's migrations.
    ///
    /// # Errors
    /// When the store cannot be read, or a row is not a migration.
    #[boxed]
    pub async fn read(store: &Store) -> Result<Self, StoreError> {
        let records = read_records(store).await?;
        let mut schemas: BTreeMap<Hash, Schema> = BTreeMap::new();
        let mut steps = Vec::with_capacity(records.len());
        for record in &records {
            for fingerprint in [record.from, record.to] {
                if let Entry::Vacant(missing) = schemas.entry(fingerprint) {
                    missing.insert(read_schema(store, fingerprint).await?);
                }
            }
            steps.push(Arc::new(step(record, (&schemas[&record.from], &schemas[&record.to]))?));
        }
        Ok(Self { steps })
    }

    /// Decodes the migrations among the rows of a backup.
    ///
    /// # Errors
    /// When a row cannot be read.
    pub fn of_rows(rows: &[Row]) -> Result<Self, StoreError> {
        let schemas = restoring::schemas(rows)?;
        let schema = |fingerprint: Hash| {
            let found = schemas.get(&fingerprint);
            found.ok_or_else(|| StoreError::Corrupt(format!("schema {fingerprint} is missing").into()))
        };
        let mut steps = Vec::new();
        for record in restoring::records(rows)? {
            steps.push(Arc::new(step(&record, (schema(record.from)?, schema(record.to)?))?));
        }
        Ok(Self { steps })
    }

    /// All definitions that were migrated from or to, numbered in their order.
    pub(crate) fn generations(&self) -> BTreeMap<Hash, u32> {
        let first = self.steps.first().map(|step| step.from);
        let all = first.into_iter().chain(self.steps.iter().map(|step| step.to));
        all.zip(0..).collect()
    }

    /// The migrations that lead to the definitions with this fingerprint.
    #[must_use]
    pub fn upto(mut self, schema: Hash) -> Self {
        if let Some(at) = self.steps.iter().position(|step| step.from == schema) {
            self.steps.truncate(at);
        }
        self
    }

    /// Number of migrations.
    #[must_use]
    pub fn generation(&self) -> u32 {
        u32::try_from(self.steps.len()).expect("invariant: schema numbers have 32 bits")
    }

    /// Folds a batch. If the log goes over to other definitions with it, the state is converted first.
    ///
    /// # Errors
    /// As [`OwnerState::fold`]; when no migration leads to the batch's definitions, or the state has no counterpart
    /// there.
    pub fn fold(&self, state: &mut OwnerState, batch: &Batch) -> Result<(), Impossible> {
        self.prepare(state, batch)?;
        state.fold(batch)
    }

    /// Converts a state if the batch goes over to other definitions. Returns whether it did.
    ///
    /// # Errors
    /// As [`Migrations::fold`].
    pub fn prepare(&self, state: &mut OwnerState, batch: &Batch) -> Result<bool, Impossible> {
        let goes_over = state.goes_over(&batch.header)?;
        if goes_over {
            self.convert(state, batch.header.schema)?;
        }
        Ok(goes_over)
    }

    /// Converts a state to the definitions with this fingerprint. The state of an empty log has no definitions.
    ///
    /// # Errors
    /// When no migration leads there, or something in the state has no counterpart.
    pub fn convert(&self, state: &mut OwnerState, to: Hash) -> Result<(), Impossible> {
        if state.tail.batch.0 == 0 || state.schema == to {
            return Ok(());
        }
        let begin = self.steps.iter().position(|step| step.from == state.schema);
        let end = self.steps.iter().position(|step| step.to == to);
        let (Some(begin), Some(end)) = (begin, end.filter(|end| begin.is_some_and(|begin| begin <= *end))) else {
            return Err(Impossible {
                owner: state.owner,
                after: state.tail.event,
                subject: "the definitions".to_owned(),
                event: "batch",
                why: format!("no migration leads from {} to {to}", state.schema).into(),
            });
        };
        self.steps[begin..=end].iter().try_for_each(|step| step.convert(state))
    }

    /// Whether a migration converts `state` to one with this hash: a process that takes an owner over has the converted
    /// state before it has written anything.
    #[must_use]
    pub fn leads_from(&self, state: &OwnerState, hash: Hash) -> bool {
        let newest = self.steps.last().filter(|newest| newest.to != state.schema);
        newest.is_some_and(|newest| {
            let mut converted = state.clone();
            self.convert(&mut converted, newest.to).is_ok() && converted.hash() == hash
        })
    }

    /// Converts an entity part from the definitions with this fingerprint to the present ones.
    ///
    /// # Errors
    /// If something in it has no counterpart.
    pub fn image<'a>(&self, schema: Hash, image: &'a Image) -> Result<Cow<'a, Image>, MigrationError> {
        let past = self.steps.iter().position(|step| step.from == schema);
        let mut image = Cow::Borrowed(image);
        for step in past.map_or(&[][..], |begin| &self.steps[begin..]) {
            image = Cow::Owned(step.image(&image)?);
        }
        Ok(image)
    }

    /// Converts a stored entity to the present definitions.
    pub(crate) fn entity(&self, row: &EntityRow) -> Result<StoredEntity, MigrationError> {
        let mut entity = row.entity.clone();
        for step in self.steps.get(row.generation as usize..).unwrap_or_default() {
            let (entity_type, properties) = step.plan.convert_stored(&entity.entity_type, &entity.properties)?;
            entity = StoredEntity {
                entity_type,
                properties,
            };
        }
        Ok(entity)
    }

    /// The definitions of a generation; `present` are those of the newest.
    pub(crate) fn schema_of<'a>(&'a self, generation: u32, present: &'a Schema) -> &'a Schema {
        self.steps
            .get(generation as usize)
            .map_or(present, |step| step.plan.old())
    }

    /// The first name of a type of this generation, and the generation in which the type was added.
    pub(crate) fn first_name(&self, generation: u32, name: &str) -> (u32, String) {
        let (mut generation, mut name) = (generation.min(self.generation()), name.to_owned());
        while let Some(before) = generation.checked_sub(1) {
            let plan = &self.steps[before as usize].plan;
            let now = plan.new_schema().type_named(&name);
            let Some(old) = now.and_then(|now| plan.old_of(now.id)) else {
                break;
            };
            (generation, name) = (before, old.name.clone());
        }
        (generation, name)
    }
}

/// Reads all records of migrations, oldest first.
///
/// # Errors
/// When the store cannot be read, or a row is not such a record.
#[boxed]
pub async fn read_records(store: &Store) -> Result<Vec<MigrationRecord>, StoreError> {
    let mut encoded: Vec<Vec<u8>> = Vec::new();
    let mut range = migrations::migrations();
    loop {
        let rows = &range;
        let read =
            |transaction: Transaction| async move { transaction.get_range(rows, PAGE, ScanOrder::Forward).await };
        let page = store.read(read).await?;
        for (key, value) in &page.rows {
            let number = migrations::number_of(key)? as usize;
            if number > encoded.len() {
                return Err(StoreError::Corrupt(
                    format!("migration {} is missing", encoded.len()).into(),
                ));
            }
            if number == encoded.len() {
                encoded.push(Vec::new());
            }
            encoded[number].extend_from_slice(value);
        }
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => return encoded.iter().map(|value| MigrationRecord::decode(value)).collect(),
        }
    }
}

/// Reads the schema with this fingerprint.
///
/// # Errors
/// When the store cannot be read, or does not have it.
#[boxed]
pub async fn read_schema(store: &Store, fingerprint: Hash) -> Result<Schema, StoreError> {
    let key = &director::schema_key(fingerprint);
    let bytes = store.read(|transaction| async move { read_chunks(&transaction, key).await });
    let bytes = bytes.await?;
    let bytes = bytes.ok_or_else(|| StoreError::Corrupt(format!("schema {fingerprint} is missing").into()))?;
    Schema::decode(&bytes).map_err(|error| StoreError::Corrupt(format!("schema {fingerprint}: {error}").into()))
}

/// The present definitions of a realm that has begun.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn present_schema(store: &Store) -> Result<Option<Schema>, StoreError> {
    let read = |transaction: Transaction| async move { transaction.get(&director::realm_key()).await };
    let Some(value) = store.read(read).await? else {
        return Ok(None);
    };
    let present = director::Realm::decode(&value)?.schema;
    read_schema(store, present).await.map(Some)
}

fn step(record: &MigrationRecord, (old, new): (&Schema, &Schema)) -> Result<Migration, StoreError> {
    let damaged = |error: String| StoreError::Corrupt(format!("the migration to {}: {error}", record.to).into());
    let renames = renames((old, new), &record.renames).map_err(|error| damaged(error.to_string()))?;
    Ok(Migration {
        from: record.from,
        to: record.to,
        plan: Plan::new(old, new, &renames),
        receivers: record.receivers.iter().copied().collect(),
    })
}

/// The renames as they were given.
pub(crate) fn renames((old, new): (&Schema, &Schema), said: &[String]) -> Result<Renames, annals_def::RenameError> {
    let all: Vec<Rename> = said.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    Renames::new(old, new, all)
}
