//! Queries over stored entities: read-only, bounded, page by page.

use annals_def::{Schema, Value};
use annals_ids::DatabaseId;
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction, key_after,
    layout::database::{self, Checkout},
};
use async_recursion::async_recursion as boxed;
use thiserror::Error;

use crate::{
    index::{self, FindError},
    migrations::Migrations,
    stored::{self, EntityRow, StoredEntity},
};

/// Rows read in one transaction: some milliseconds of work, far below the 5 s limit of a transaction.
const PAGE: usize = 256;

/// Stored entities that one transaction reads when an index names them.
const NAMED_AT_ONCE: usize = 64;

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Name of the type.
    pub entity_type: String,
    /// Properties and the values they must have. A property that was never stored has its default.
    pub conditions: Vec<(String, Value)>,
    /// Maximum entities in the answer.
    pub limit: usize,
    /// Maximum entities, of any type, that are scanned when no index applies.
    pub scanned: usize,
}

/// A matching entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its id.
    pub database: DatabaseId,
    /// Its stored properties.
    pub entity: StoredEntity,
    /// Its check-out, if it is checked out.
    pub checkout: Option<Checkout>,
}

/// Answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Matching entities, ordered by id.
    pub found: Vec<Found>,
    /// Number of entities scanned.
    pub scanned: usize,
    /// Whether there may be more.
    pub more: bool,
    /// Indexed property that was used for the lookup, if any.
    pub index: Option<String>,
}

/// Reason why a query fails.
#[derive(Debug, Error)]
pub enum QueryError {
    /// There is no such type.
    #[error("the realm has no entity type {0}")]
    UnknownType(String),
    /// The type has no such stored property.
    #[error("{entity_type} stores no property {property}")]
    NotStored {
        entity_type: String,
        /// The name that was given.
        property: String,
    },
    /// The index cannot be used.
    #[error("the index could not be read")]
    Index(#[from] FindError),
    /// The store did not answer.
    #[error("the stored entities could not be read")]
    Store(#[from] StoreError),
}

/// Answers a query. Each page is one transaction: a write during the query may or may not be in the answer.
///
/// # Errors
/// When the type or a property is not in the schema, or the store cannot be read.
#[boxed]
pub async fn query(store: &Store, schema: &Schema, query: &Query) -> Result<Answer, QueryError> {
    let entity_type = schema.type_named(&query.entity_type);
    let entity_type = entity_type.ok_or_else(|| QueryError::UnknownType(query.entity_type.clone()))?;
    for (property, _) in &query.conditions {
        if entity_type
            .property_named(property)
            .is_none_or(|found| !found.persistent)
        {
            return Err(QueryError::NotStored {
                entity_type: entity_type.name.clone(),
                property: property.clone(),
            });
        }
    }
    let fits = |entity: &StoredEntity| {
        let holds = |(property, wanted): &(String, Value)| {
            let default = entity_type.property_named(property).map(|found| &found.default);
            entity.properties.get(property).or(default) == Some(wanted)
        };
        entity.entity_type == entity_type.name && query.conditions.iter().all(holds)
    };
    let indexed = |(property, value): &&(String, Value)| {
        let found = entity_type.property_named(property);
        found.is_some_and(|found| index::names_all(found, value))
    };
    let migrations = Migrations::read(store).await?;
    let mut answer = Answer::default();
    let mut after = DatabaseId(0);
    if let Some((property, value)) = query.conditions.iter().find(indexed) {
        answer.index = Some(property.clone());
        loop {
            let place = (after, NAMED_AT_ONCE);
            let ids = index::find_indexed(&store.begin(), entity_type, property, value, place).await?;
            let Some(last) = ids.last().copied() else {
                return Ok(answer);
            };
            for id in ids {
                if let Some(entity) = read_one(store, &migrations, id).await? {
                    answer.take(store, (id, entity), &fits).await?;
                }
                if answer.is_full(query) {
                    answer.more = true;
                    return Ok(answer);
                }
            }
            after = last;
        }
    }
    loop {
        let page = scan(store, &migrations, after).await?;
        let Some((last, _)) = page.last() else {
            return Ok(answer);
        };
        after = *last;
        for found in page {
            if answer.is_full(query) {
                answer.more = true;
                return Ok(answer);
            }
            answer.take(store, found, &fits).await?;
        }
    }
}

impl Answer {
    fn is_full(&self, query: &Query) -> bool {
        self.found.len() >= query.limit || self.scanned >= query.scanned
    }

    async fn take(
        &mut self,
        store: &Store,
        (database, entity): (DatabaseId, StoredEntity),
        fits: &impl Fn(&StoredEntity) -> bool,
    ) -> Result<(), StoreError> {
        self.scanned += 1;
        if fits(&entity) {
            let checkout = read_checkout(store, database).await?;
            self.found.push(Found {
                database,
                entity,
                checkout,
            });
        }
        Ok(())
    }
}

/// Reads one page of stored entities after `after`, ordered by id, under the present definitions. The page is empty if
/// there are none.
///
/// # Errors
/// When the store cannot be read, or a row is not a stored entity.
async fn scan(
    store: &Store,
    migrations: &Migrations,
    after: DatabaseId,
) -> Result<Vec<(DatabaseId, StoredEntity)>, StoreError> {
    let first = database::entity_key(DatabaseId(after.0.saturating_add(1)));
    let range = &KeyRange::new(first, database::entities().end);
    let read = |transaction: Transaction| async move {
        let transaction = transaction.snapshot();
        let mut entities: Vec<(DatabaseId, Vec<u8>)> = Vec::new();
        let page = transaction.get_range(range, PAGE, ScanOrder::Forward).await?;
        for (key, value) in &page.rows {
            let id = database::entity_of(key)?;
            match entities.last_mut().filter(|(last, _)| *last == id) {
                Some((_, bytes)) => bytes.extend_from_slice(value),
                None => entities.push((id, value.to_vec())),
            }
        }
        // The last entity may continue on the next page.
        let Some((last, _)) = page.rows.last().filter(|_| page.more) else {
            return Ok::<_, StoreError>(entities);
        };
        let mut rest = KeyRange::new(key_after(last), range.end.clone());
        let id = database::entity_of(last)?;
        loop {
            let page = transaction.get_range(&rest, PAGE, ScanOrder::Forward).await?;
            for (key, value) in &page.rows {
                match entities.last_mut() {
                    Some((_, bytes)) if database::entity_of(key)? == id => bytes.extend_from_slice(value),
                    _ => return Ok(entities),
                }
            }
            match page.rows.last().filter(|_| page.more) {
                Some((last, _)) => rest = KeyRange::new(key_after(last), range.end.clone()),
                None => return Ok(entities),
            }
        }
    };
    let rows = store.read(read).await?;
    rows.into_iter()
        .map(|(id, bytes)| {
            let row = EntityRow::decode(&bytes).map_err(|error| corrupt(id, &error))?;
            Ok((id, present(migrations, id, &row)?))
        })
        .collect()
}

async fn read_one(store: &Store, migrations: &Migrations, id: DatabaseId) -> Result<Option<StoredEntity>, StoreError> {
    let row = store.read(|transaction| async move { stored::read_row(&transaction, id).await });
    row.await?.map(|row| present(migrations, id, &row)).transpose()
}

fn present(migrations: &Migrations, id: DatabaseId, row: &EntityRow) -> Result<StoredEntity, StoreError> {
    migrations.entity(row).map_err(|error| corrupt(id, &error))
}

fn corrupt(id: DatabaseId, error: &dyn std::error::Error) -> StoreError {
    StoreError::Corrupt(format!("entity {id} of the database: {error}").into())
}

async fn read_checkout(store: &Store, id: DatabaseId) -> Result<Option<Checkout>, StoreError> {
    let read = |transaction: Transaction| async move {
        let value = transaction.get(&database::checkout_key(id)).await?;
        value.map(|value| Checkout::decode(&value)).transpose()
    };
    store.read(read).await
}
