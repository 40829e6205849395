//! Display names of stored entities, as far as they may be known: the login name of an account, which is sealed in the
//! archive; the identifier of others, which is in the database.

use std::collections::{BTreeMap, BTreeSet};

use annals_db::{
    personal::{self, Person},
    read_stored,
};
use annals_def::{Schema, Value};
use annals_event::{
    Body,
    ledger::{AssetSlot, Entry, Holder},
};
use annals_ids::{DatabaseId, Hash};
use annals_store::{Store, StoreError, Transaction};

use crate::{
    answer::AuditError,
    index::Index,
    rows,
    sessions::{Who, named, read},
};

/// Maximum login records searched for a name, newest first.
const LOOKED_AT: usize = 16;

impl Index {
    /// The names of stored entities, each in the form for display ([`named`]). A forgotten person has none; nor has a
    /// person whose name is sealed under a key that the store does not have.
    ///
    /// # Errors
    /// When a batch is not what was verified, or the store cannot be read.
    pub async fn called(
        &self,
        archive: &Store,
        schemas: &BTreeMap<Hash, Schema>,
        wanted: impl IntoIterator<Item = DatabaseId>,
    ) -> Result<BTreeMap<DatabaseId, String>, AuditError> {
        let mut called = BTreeMap::new();
        for stored in wanted {
            if let Some(name) = self.name_of(archive, schemas, stored).await? {
                called.insert(stored, named(&name));
            }
        }
        Ok(called)
    }

    async fn name_of(
        &self,
        archive: &Store,
        schemas: &BTreeMap<Hash, Schema>,
        stored: DatabaseId,
    ) -> Result<Option<String>, AuditError> {
        let person = personal::person(archive, stored).await.map_err(AuditError::Archive)?;
        if matches!(person, Person::Forgotten(_)) {
            return Ok(None);
        }
        for (key, value) in self.last_rows(rows::admissions(stored), LOOKED_AT).await? {
            let indexed = self.indexed_event(archive, &key, &value).await?;
            let sealed = match indexed.event.body {
                Body::Admitted { person, sealed, .. } if person == stored && !sealed.is_empty() => sealed,
                _ => continue,
            };
            match read(archive, stored, &sealed).await? {
                Who::Known(admission) if admission.account.is_some() => return Ok(admission.account),
                // A returning client; the name is in an earlier record.
                Who::Known(_) | Who::Unwritten(_) => {}
                Who::Redacted(_) | Who::NoKey | Who::Unreadable(_) => return Ok(None),
            }
        }
        let identifier = identifier(archive, schemas, stored).await;
        identifier.map_err(AuditError::Archive)
    }
}

/// The identifier of a stored entity, if its type has one.
async fn identifier(
    store: &Store,
    schemas: &BTreeMap<Hash, Schema>,
    stored: DatabaseId,
) -> Result<Option<String>, StoreError> {
    let read = |transaction: Transaction| async move { read_stored(&transaction, stored).await };
    let Some(entity) = store.read(read).await? else {
        return Ok(None);
    };
    let types = schemas
        .values()
        .filter_map(|schema| schema.type_named(&entity.entity_type));
    let identifiers = types.flat_map(|found| {
        found
            .properties
            .iter()
            .filter(|property| property.identifier && property.personal.is_none())
    });
    let mut values = identifiers.filter_map(|property| entity.properties.get(&property.name));
    Ok(values.find_map(|value| match value {
        Value::Unicode(text) if !text.is_empty() => Some(text.clone()),
        Value::Bytes(bytes) if !bytes.is_empty() => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }))
}

/// The stored entities that an entry mentions.
pub fn holders_of(entry: &Entry) -> BTreeSet<DatabaseId> {
    let mut found = BTreeSet::from([entry.holder]);
    found.extend(entry.order.as_ref().and_then(|order| order.parts().party));
    let postings = entry.postings.iter().map(|posting| posting.account.place);
    let passages = entry.passages.iter().flat_map(|passage| [passage.from, passage.to]);
    found.extend(
        postings
            .chain(passages)
            .filter_map(|AssetSlot { holder, .. }| match holder {
                Holder::Stored(stored) => Some(stored),
                Holder::World | Holder::Pending(_) | Holder::Trade(..) => None,
            }),
    );
    found
}
