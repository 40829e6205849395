//! The index of stored entities: finds entities by the value of a property. Types and properties are identified by
//! name, so the index stays valid when types are renumbered.

use annals_def::{EntityType, INDEXED_BYTES, Index, Property, Schema, Value};
use annals_ids::DatabaseId;
use annals_store::{
    ScanOrder, StoreError, Transaction,
    layout::database::{self, IndexedValue},
};
use async_recursion::async_recursion as boxed;
use thiserror::Error;

use crate::stored::{self, StoredEntity};

/// Maximum entities that one lookup returns.
pub const FOUND_AT_ONCE: usize = 256;

/// Reason why a lookup fails.
#[derive(Debug, Error)]
pub enum FindError {
    /// The type has no such property.
    #[error("{entity_type} has no property {property}")]
    Unknown {
        entity_type: String,
        /// The name that was given.
        property: String,
    },
    /// The property has no index.
    #[error("{entity_type}.{property} has no index; give it one with <Indexed> true </Indexed>")]
    NotIndexed { entity_type: String, property: String },
    /// The store did not answer.
    #[error("the index could not be read")]
    Store(#[from] StoreError),
}

/// Index entry of one property of a stored entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) property: String,
    pub(crate) key: Vec<u8>,
    pub(crate) unique: bool,
}

/// All index entries of a stored entity.
pub(crate) fn places(schema: &Schema, id: DatabaseId, entity: &StoredEntity) -> Vec<IndexEntry> {
    let Some(entity_type) = schema.type_named(&entity.entity_type) else {
        return Vec::new();
    };
    let indexed = entity_type.properties.iter().filter(|property| is_indexed(property));
    let place = |property: &Property| {
        let value = indexed_value(entity.properties.get(&property.name)?)?;
        let unique = property.indexed == Index::Unique;
        let names = (entity_type.name.as_str(), property.name.as_str());
        let key = if unique {
            if value.is_empty() {
                return None;
            }
            database::unique_key(names, &value)
        } else {
            database::indexed_key(names, &value, id)
        };
        let property = property.name.clone();
        Some(IndexEntry { property, key, unique })
    };
    indexed.filter_map(place).collect()
}

/// Returns the entities of a type whose property has this value, ordered by id: at most `limit` and at most
/// [`FOUND_AT_ONCE`], beginning after `after` if it is given.
///
/// # Errors
/// When there is no such index, or the store cannot be read.
#[boxed]
pub async fn find_indexed(
    transaction: &Transaction,
    entity_type: &EntityType,
    property: &str,
    value: &Value,
    (after, limit): (DatabaseId, usize),
) -> Result<Vec<DatabaseId>, FindError> {
    let named = || (entity_type.name.clone(), property.to_owned());
    let Some(found) = entity_type.property_named(property) else {
        let (entity_type, property) = named();
        return Err(FindError::Unknown { entity_type, property });
    };
    if !is_indexed(found) {
        let (entity_type, property) = named();
        return Err(FindError::NotIndexed { entity_type, property });
    }
    let Some(place) = indexed_value(value) else {
        return Ok(Vec::new());
    };
    let names = (entity_type.name.as_str(), property);
    let limit = limit.min(FOUND_AT_ONCE);
    if found.indexed == Index::Unique {
        let holder = holder(transaction, &database::unique_key(names, &place)).await?;
        let ids = holder.filter(|id| *id > after).into_iter().collect();
        return Ok(confirmed(transaction, (property, value), ids).await?);
    }
    let (mut ids, mut after) = (Vec::new(), after);
    while ids.len() < limit {
        let range = database::indexed_range(names, &place, after);
        let page = transaction.get_range(&range, limit, ScanOrder::Forward).await?;
        let named = page.rows.iter().map(|(key, _)| database::indexed_id(key));
        let named = named.collect::<Result<Vec<_>, _>>()?;
        let Some(last) = named.last().copied() else { break };
        after = last;
        ids.extend(confirmed(transaction, (property, value), named).await?);
        if !page.more {
            break;
        }
    }
    ids.truncate(limit);
    Ok(ids)
}

/// Those of `ids` that have the value: the index stores only a prefix of a long value.
async fn confirmed(
    transaction: &Transaction,
    (property, value): (&str, &Value),
    ids: Vec<DatabaseId>,
) -> Result<Vec<DatabaseId>, StoreError> {
    if !is_cut(value) {
        return Ok(ids);
    }
    let mut same = Vec::new();
    for id in ids {
        let entity = stored::read(transaction, id).await?;
        if entity.is_some_and(|entity| entity.properties.get(property) == Some(value)) {
            same.push(id);
        }
    }
    Ok(same)
}

/// Returns the properties by which a stored entity cannot be found, because another entity has the unique value.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn taken_from(
    transaction: &Transaction,
    schema: &Schema,
    database: DatabaseId,
) -> Result<Vec<String>, StoreError> {
    let Some(entity) = stored::read(transaction, database).await? else {
        return Ok(Vec::new());
    };
    let mut taken = Vec::new();
    for place in places(schema, database, &entity)
        .into_iter()
        .filter(|place| place.unique)
    {
        if holder(transaction, &place.key).await? != Some(database) {
            taken.push(place.property);
        }
    }
    Ok(taken)
}

/// Finds the entity of a type by its identifier.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn find(
    transaction: &Transaction,
    entity_type: &EntityType,
    identifier: &Value,
) -> Result<Option<DatabaseId>, StoreError> {
    let named = entity_type.identifier().map(|property| property.name.as_str());
    let (Some(property), Some(value)) = (named, indexed_value(identifier)) else {
        return Ok(None);
    };
    holder(
        transaction,
        &database::unique_key((entity_type.name.as_str(), property), &value),
    )
    .await
}

/// The entity that has this unique index entry.
pub(crate) async fn holder(transaction: &Transaction, key: &[u8]) -> Result<Option<DatabaseId>, StoreError> {
    let value = transaction.get(key).await?;
    value.map(|value| database::decode_id(&value)).transpose()
}

fn is_indexed(property: &Property) -> bool {
    property.persistent && property.indexed != Index::None
}

/// Whether the index has all entities with this value in this property. It lacks entities whose property was never
/// stored and so has its default, and empty texts in a unique index; and it distinguishes 0.0 from -0.0.
pub(crate) fn names_all(property: &Property, value: &Value) -> bool {
    let is_named = match indexed_value(value) {
        None => false,
        Some(IndexedValue::Float(number)) => number != 0.0,
        Some(value) => property.indexed != Index::Unique || !value.is_empty(),
    };
    is_indexed(property) && is_named && property.default != *value
}

fn is_cut(value: &Value) -> bool {
    match value {
        Value::Unicode(text) => text.len() > INDEXED_BYTES,
        Value::Bytes(bytes) => bytes.len() > INDEXED_BYTES,
        _ => false,
    }
}

/// Form of a value in the index; `None` for a value that has no order.
fn indexed_value(value: &Value) -> Option<IndexedValue<'_>> {
    Some(match value {
        Value::Int(number) => IndexedValue::Signed(*number),
        Value::UInt(number) => IndexedValue::Unsigned(*number),
        Value::Float32(number) => IndexedValue::Float(f64::from(*number)),
        Value::Float64(number) => IndexedValue::Float(*number),
        Value::Bytes(bytes) => IndexedValue::Bytes(&bytes[..bytes.len().min(INDEXED_BYTES)]),
        Value::Unicode(text) => IndexedValue::Bytes(&text.as_bytes()[..text.len().min(INDEXED_BYTES)]),
        _ => return None,
    })
}
