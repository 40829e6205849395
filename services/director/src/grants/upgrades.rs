//! The director's records of a change of definitions (rule M7).

use annals_ids::Hash;
use annals_store::{
    KeyRange, Store, StoreError, Transaction,
    layout::{
        chunks,
        director::{self, Realm, Upgrade},
    },
};

use super::{GrantError, Grants, read_converting, was_migrated_from};

impl Grants {
    /// Prepares a change of the realm's definitions: from now on, processes with these are accepted.
    ///
    /// # Errors
    /// [`GrantError::SameSchema`], [`GrantError::FormerSchema`] or [`GrantError::Converting`] when the realm cannot
    /// change to them, and [`GrantError::OtherUpgrade`] when another change is prepared.
    pub async fn prepare_upgrade(&self, upgrade: &Upgrade, encoded: &[u8]) -> Result<(), GrantError> {
        let work = |transaction: Transaction| async move {
            let stored = stored_realm(&transaction).await?.schema;
            let given = upgrade.to;
            if stored == given {
                return Err(GrantError::SameSchema);
            }
            if was_migrated_from(&transaction, given).await? {
                return Err(GrantError::FormerSchema { stored, given });
            }
            if read_converting(&transaction).await?.is_some() {
                return Err(GrantError::Converting);
            }
            match read_upgrade(&transaction).await? {
                Some(other) if other.to != given => return Err(GrantError::OtherUpgrade(other.to)),
                _ => {}
            }
            transaction.set(&director::upgrade_key(), &upgrade.encode())?;
            for (key, chunk) in chunks(&director::schema_key(given), encoded) {
                transaction.set(&key, chunk)?;
            }
            Ok(())
        };
        self.run(work).await
    }

    /// Forgets the prepared change, if it is to these definitions.
    ///
    /// # Errors
    /// [`GrantError::DefinitionsChanged`] when the realm has them by now; when this director does not lead, or the store
    /// cannot be used.
    pub async fn roll_back_upgrade(&self, to: Hash) -> Result<(), GrantError> {
        let work = |transaction: Transaction| async move {
            let stored = stored_realm(&transaction).await?.schema;
            if stored == to {
                return Err(GrantError::DefinitionsChanged(stored));
            }
            if is_next(&transaction, to).await? {
                transaction.clear(&director::upgrade_key())?;
                transaction.clear_range(&KeyRange::prefix(&director::schema_key(to)))?;
            }
            Ok(())
        };
        self.run(work).await
    }

    /// The realm's record as it is in the store, and the definitions to which a change is prepared. This director grants
    /// under the realm's definitions from now on.
    ///
    /// # Errors
    /// [`GrantError::Unconverted`] when a migration is not complete; when the store cannot be read, or has no realm.
    pub async fn read_realm(&mut self) -> Result<(Realm, Option<Hash>), GrantError> {
        let read = |transaction: Transaction| async move {
            let realm = stored_realm(&transaction).await?;
            match read_converting(&transaction).await? {
                Some(converting) if !converting.later => Err(GrantError::Unconverted(realm.schema)),
                _ => Ok((realm, read_upgrade(&transaction).await?.map(|upgrade| upgrade.to))),
            }
        };
        let (realm, next) = self.store.read(read).await?;
        self.definitions = Some(realm.schema);
        Ok((realm, next))
    }

    /// Whether a realm runs on these definitions, or is to change to them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn knows(store: &Store, schema: Hash) -> Result<bool, StoreError> {
        let read = |transaction: Transaction| async move {
            let Some(value) = transaction.get(&director::realm_key()).await? else {
                return Ok(false);
            };
            Ok(Realm::decode(&value)?.schema == schema || is_next(&transaction, schema).await?)
        };
        store.read(read).await
    }
}

/// Whether a change to these definitions is prepared.
pub(super) async fn is_next(transaction: &Transaction, schema: Hash) -> Result<bool, StoreError> {
    Ok(read_upgrade(transaction)
        .await?
        .is_some_and(|upgrade| upgrade.to == schema))
}

async fn read_upgrade(transaction: &Transaction) -> Result<Option<Upgrade>, StoreError> {
    let value = transaction.get(&director::upgrade_key()).await?;
    value.map(|value| Upgrade::decode(&value)).transpose()
}

async fn stored_realm(transaction: &Transaction) -> Result<Realm, StoreError> {
    let value = transaction.get(&director::realm_key()).await?;
    let value = value.ok_or_else(|| StoreError::Corrupt("the realm's record is missing".into()))?;
    Realm::decode(&value)
}
