//! Stored entities: the properties of an entity that outlive its activations, by name, so that they survive a changed
//! schema.
//!
//! ```text
//! stored = generation:number type:bytes count:number (property:bytes value)*      properties ordered by name
//! ```
//! The generation is the number of the realm's definitions under which the entity was written ([`migrations`]). A
//! reader converts an entity of a former generation; so does the bulk conversion of a migration ([`crate::migrating`]).

use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;

use annals_def::{EntityType, Mismatch, Property, Schema, Value, check};
use annals_event::{
    Image, Malformed, Reader,
    latest::value::{put_value, take_value},
    put_bytes, put_number,
};
use annals_ids::{DatabaseId, MemberId, Part};
use annals_store::{
    KeyRange, StoreError, Transaction,
    layout::{chunks, database, migrations, read_chunks},
};

use crate::index;

/// A stored entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredEntity {
    /// Name of its type.
    pub entity_type: String,
    /// Its persistent properties by name.
    pub properties: BTreeMap<String, Value>,
}

/// A stored value does not fit the property of its name: it was stored under other definitions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entity_type}.{property} was stored under other definitions: migrate it, or restore its former type")]
pub struct Unfit {
    /// Name of the type.
    pub entity_type: String,
    /// Name of the property.
    pub property: String,
    /// The mismatch.
    #[source]
    pub source: Box<Mismatch>,
}

impl StoredEntity {
    /// Checks that all stored properties that are still persistent fit their types. A process that loaded an entity
    /// that does not fit would begin with defaults in place of the values, and its next write would store the defaults.
    ///
    /// # Errors
    /// The first property, in the order of the type, that does not fit.
    pub fn fits(&self, entity_type: &EntityType) -> Result<(), Unfit> {
        let held = |property: &&Property| property.distribution.on_base() || property.distribution.on_cell();
        let persistent = entity_type.properties.iter().filter(|property| property.persistent);
        for property in persistent.filter(held) {
            let Some(value) = self.properties.get(&property.name) else {
                continue;
            };
            check(&property.data_type, value).map_err(|source| Unfit {
                entity_type: self.entity_type.clone(),
                property: property.name.clone(),
                source: Box::new(source),
            })?;
        }
        Ok(())
    }

    /// Replaces properties by the persistent properties of a part; of dictionaries in them, by the persistent fields.
    pub fn take_in(&mut self, entity_type: &EntityType, image: &Image) {
        self.entity_type.clone_from(&entity_type.name);
        let persistent = entity_type.properties.iter().filter(|property| property.persistent);
        for property in persistent {
            if let Some(value) = image.properties.get(&property.index) {
                let value = property.data_type.stored_value(value);
                self.properties.insert(property.name.clone(), value);
            }
        }
    }

    /// Initial properties of a part: the stored properties that the part has and that still [fit](StoredEntity::fits)
    /// their types.
    #[must_use]
    pub fn properties_of(&self, entity_type: &EntityType, part: Part) -> Vec<(MemberId, Value)> {
        let held = |property: &&Property| match part {
            Part::Base => property.distribution.on_base(),
            Part::Cell => property.distribution.on_cell(),
        };
        let stored = |property: &Property| {
            let value = self.properties.get(&property.name)?;
            check(&property.data_type, value)
                .is_ok()
                .then(|| (property.index, value.clone()))
        };
        let persistent = entity_type.properties.iter().filter(|property| property.persistent);
        persistent.filter(held).filter_map(stored).collect()
    }

    /// Encodes the entity, as written under the definitions of a generation.
    #[must_use]
    pub fn encode(&self, generation: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_number(&mut bytes, u64::from(generation));
        put_bytes(&mut bytes, self.entity_type.as_bytes());
        put_number(&mut bytes, self.properties.len() as u64);
        for (name, value) in &self.properties {
            put_bytes(&mut bytes, name.as_bytes());
            put_value(&mut bytes, value);
        }
        bytes
    }

    /// Decodes an entity, and its generation.
    ///
    /// # Errors
    /// When the bytes are not an encoding by [`StoredEntity::encode`].
    pub fn decode(bytes: &[u8]) -> Result<(u32, Self), Malformed> {
        let reader = &mut Reader::new(bytes);
        let generation = reader.narrow("generation")?;
        let entity = Self {
            entity_type: take_name(reader)?,
            properties: reader.map(2, "properties", take_name, take_value)?,
        };
        reader.finish("end of stored entity")?;
        Ok((generation, entity))
    }
}

/// A stored entity's row, with its generation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EntityRow {
    pub(crate) generation: u32,
    pub(crate) entity: StoredEntity,
}

impl EntityRow {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (generation, entity) = StoredEntity::decode(bytes)?;
        Ok(Self { generation, entity })
    }
}

/// Reads a stored entity's row.
pub(crate) async fn read_row(transaction: &Transaction, id: DatabaseId) -> Result<Option<EntityRow>, StoreError> {
    let Some(bytes) = read_chunks(transaction, &database::entity_key(id)).await? else {
        return Ok(None);
    };
    let decoded = EntityRow::decode(&bytes);
    decoded
        .map(Some)
        .map_err(|error| StoreError::Corrupt(format!("entity {id} of the database: {error}").into()))
}

/// Reads a stored entity, under the definitions under which it was written.
///
/// # Errors
/// When the store cannot be read, or the row is not a stored entity.
#[boxed]
pub async fn read(transaction: &Transaction, id: DatabaseId) -> Result<Option<StoredEntity>, StoreError> {
    Ok(read_row(transaction, id).await?.map(|row| row.entity))
}

/// Whether the generation is that of the realm's present definitions.
pub(crate) async fn is_present(transaction: &Transaction, generation: u32) -> Result<bool, StoreError> {
    Ok(generation >= migrations::generation(transaction).await?)
}

/// Result of writing an entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes written.
    pub(crate) bytes: usize,
    /// Properties by which the entity cannot be found, because another one has the unique value.
    pub(crate) taken: Vec<Taken>,
}

/// A unique value that another entity has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) property: String,
    /// Entity that has the value.
    pub(crate) holder: DatabaseId,
}

/// Writes a stored entity and its index entries, under these definitions and this generation. `before` is the present
/// row, and the definitions under which it was written.
///
/// # Errors
/// As the transaction's reads and writes.
pub(crate) async fn write(
    transaction: &Transaction,
    (schema, generation): (&Schema, u32),
    id: DatabaseId,
    before: Option<(&Schema, &StoredEntity)>,
    stored: &StoredEntity,
) -> Result<Written, StoreError> {
    let key = database::entity_key(id);
    let encoded = stored.encode(generation);
    transaction.clear_range(&KeyRange::prefix(&key))?;
    for (key, chunk) in chunks(&key, &encoded) {
        transaction.set(&key, chunk)?;
    }
    let now = index::places(schema, id, stored);
    let former = before
        .map(|(schema, before)| index::places(schema, id, before))
        .unwrap_or_default();
    for place in former.iter().filter(|place| !now.contains(place)) {
        if !place.unique || index::holder(transaction, &place.key).await? == Some(id) {
            transaction.clear(&place.key)?;
        }
    }
    let mut taken = Vec::new();
    for place in now {
        if !place.unique {
            transaction.set(&place.key, &[])?;
            continue;
        }
        match index::holder(transaction, &place.key).await? {
            None => transaction.set(&place.key, &database::encode_id(id))?,
            Some(holder) if holder == id => {}
            Some(holder) => {
                let property = place.property;
                taken.push(Taken { property, holder });
            }
        }
    }
    let bytes = encoded.len();
    Ok(Written { bytes, taken })
}

/// Deletes a stored entity and its index entries; `before` is its present row, and the definitions under which it was
/// written.
///
/// # Errors
/// As the transaction's reads and writes.
pub(crate) async fn delete(
    transaction: &Transaction,
    id: DatabaseId,
    (schema, before): (&Schema, &StoredEntity),
) -> Result<(), StoreError> {
    for place in index::places(schema, id, before) {
        if !place.unique || index::holder(transaction, &place.key).await? == Some(id) {
            transaction.clear(&place.key)?;
        }
    }
    transaction.clear_range(&KeyRange::prefix(&database::entity_key(id)))
}

fn take_name(reader: &mut Reader<'_>) -> Result<String, Malformed> {
    let wrong = reader.malformed("name");
    std::str::from_utf8(reader.bytes("name")?)
        .map(str::to_owned)
        .map_err(|_| wrong)
}
