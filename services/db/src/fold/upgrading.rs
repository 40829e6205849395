//! Changing the definitions of a realm that runs (rule M7).

use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;
use std::sync::Arc;

use annals_def::{Plan, RenameError, Schema};
use annals_event::{Impossible, Migration, OwnerState};
use annals_ids::{Hash, LeafIndex, OwnerId, WallTime};
use annals_store::{
    KeyRange, StoreError, Transaction,
    layout::{
        archive::{Tree, lease_key, tree_key},
        director::{self, Realm, Upgrade},
        migrations::{Converting, MigrationRecord, converting_key},
        owners::{self, Cursor, HolderConnection},
    },
};
use thiserror::Error;

use super::{FoldError, Folder, check_lease, log::Log};
use crate::{
    migrating::{self, MigrateError, read_realm, receivers, try_out, write_migration},
    migrations::{Migrations, read_records, read_schema, renames},
};

/// Why the definitions of a running realm do not change.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// No change to these definitions is prepared.
    #[error("no change of the realm's definitions to {0} is prepared")]
    NotPrepared(Hash),
    /// An owner is not released.
    #[error("owner {0} is held, or is being taken over")]
    NotReleased(OwnerId),
    /// Not everything that an owner did is folded.
    #[error("the log of owner {0} is not folded to its end")]
    NotFolded(OwnerId),
    /// A log cannot be folded any more.
    #[error("the log of owner {0} cannot be folded: see the alarm in the log of db")]
    Halted(OwnerId),
    /// Stored entities of an earlier change are not converted yet.
    #[error("stored entities are still being converted to the realm's definitions: try again later")]
    Converting,
    /// A call under way cannot be converted, or a value has no counterpart.
    #[error("something has no counterpart under the new definitions")]
    NoPlace(#[from] Impossible),
    /// The realm cannot run before stored entities are converted.
    #[error("the realm has to be stopped for this change")]
    Stopped(#[source] MigrateError),
    /// The renames do not fit the definitions.
    #[error("invalid renames")]
    Rename(#[from] RenameError),
    /// Another db process folds, or the store cannot be used.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The store cannot be used.
    #[error("the store could not be used")]
    Store(#[from] StoreError),
}

impl Folder {
    /// The definitions under which entities are stored.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Gives the realm the definitions that the director has prepared, once all owners are released and folded (rules M2
    /// and M7). Everything that was offered has been committed.
    ///
    /// # Errors
    /// When something prevents the change; the realm then keeps its definitions. If the store's answer was lost, they
    /// may have changed: a repeated call finds that.
    #[boxed(?Send)]
    pub async fn change_definitions(&mut self, to: Hash, at: WallTime) -> Result<(), ChangeError> {
        self.wait_for_submitted().await?;
        let read = |transaction: Transaction| async move {
            let upgrade = transaction.get(&director::upgrade_key()).await?;
            let upgrade = upgrade.map(|value| Upgrade::decode(&value)).transpose()?;
            Ok::<_, StoreError>((read_realm(&transaction).await?, upgrade))
        };
        let (realm, upgrade) = self.store.read(read).await?;
        if realm.schema == to {
            return Ok(self.adopt(to).await?);
        }
        let upgrade = upgrade.filter(|upgrade| upgrade.to == to);
        let upgrade = upgrade.ok_or(ChangeError::NotPrepared(to))?;
        let (old, new) = (
            read_schema(&self.store, realm.schema).await?,
            read_schema(&self.store, to).await?,
        );
        let plan = Plan::new(&old, &new, &renames((&old, &new), &upgrade.renames)?);
        migrating::may_be_later(&plan).map_err(ChangeError::Stopped)?;
        let mut migration = Migration {
            from: realm.schema,
            to,
            plan,
            receivers: BTreeMap::new(),
        };
        let (mut states, cursors) = self.states_under(realm.schema).await?;
        migration.receivers = receivers(&states, &old);
        for state in &mut states {
            try_out(&migration, state)?;
        }
        let number = u32::try_from(read_records(&self.store).await?.len()).expect("invariant: numbers have 32 bits");
        let record = MigrationRecord {
            from: realm.schema,
            to,
            at,
            leaves: LeafIndex(0),
            renames: upgrade.renames,
            receivers: migration.receivers.into_iter().collect(),
        };
        self.write_change(number, &record, &cursors).await?;
        Ok(self.adopt(to).await?)
    }

    /// Whether the realm still has the definitions under which this folder stores entities.
    pub(super) async fn check_definitions(&self, transaction: &Transaction) -> Result<(), FoldError> {
        let realm = transaction.get(&director::realm_key()).await?;
        match realm.map(|value| Realm::decode(&value)).transpose()? {
            Some(realm) if realm.schema != self.schema.fingerprint() => Err(FoldError::Definitions(realm.schema)),
            _ => Ok(()),
        }
    }

    /// The states of all owners of all shards, converted to the realm's present definitions where their logs have not gone
    /// over yet, and the cursors of their logs.
    async fn states_under(
        &mut self,
        present: Hash,
    ) -> Result<(Vec<OwnerState>, BTreeMap<OwnerId, Cursor>), ChangeError> {
        let listing = |transaction: Transaction| async move { owners::read_owners(&transaction).await };
        let (mut states, mut cursors) = (Vec::new(), BTreeMap::new());
        for (owner, record) in self.store.read(listing).await? {
            let mut of_another_shard = Log::new();
            let log = if record.shard == self.shard {
                self.logs.entry(owner).or_insert_with(Log::new)
            } else {
                &mut of_another_shard
            };
            self.alarms.extend(log.load(&self.store, record.shard, owner).await?);
            let mut state = log.state().ok_or(ChangeError::Halted(owner))?.clone();
            self.migrations.convert(&mut state, present)?;
            cursors.insert(owner, log.cursor());
            states.push(state);
        }
        Ok((states, cursors))
    }

    /// The transaction. It requires that no owner has been granted or has advanced since it was released.
    async fn write_change(
        &self,
        number: u32,
        record: &MigrationRecord,
        cursors: &BTreeMap<OwnerId, Cursor>,
    ) -> Result<(), ChangeError> {
        let (shard, term) = (self.shard, self.term);
        let work = |transaction: Transaction| async move {
            check_lease(&transaction, shard, term).await?;
            let realm = read_realm(&transaction).await?;
            if realm.schema == record.to {
                // The answer to an earlier attempt was lost.
                return Ok(());
            }
            let upgrade = transaction.get(&director::upgrade_key()).await?;
            let upgrade = upgrade.map(|value| Upgrade::decode(&value)).transpose()?;
            if upgrade.is_none_or(|upgrade| upgrade.to != record.to) {
                return Err(ChangeError::NotPrepared(record.to));
            }
            if transaction.get(&converting_key()).await?.is_some() {
                return Err(ChangeError::Converting);
            }
            for (owner, granted) in owners::read_owners(&transaction).await? {
                let held = transaction.get(&owners::connection_key(owner)).await?;
                let held = held.map(|value| HolderConnection::decode(&value)).transpose()?;
                if !held.is_some_and(|held| held.epoch == granted.epoch && held.connection.is_none()) {
                    return Err(ChangeError::NotReleased(owner));
                }
                let cursor = Cursor::decode(transaction.get(&owners::cursor_key(owner)).await?.as_deref())?;
                if cursors.get(&owner) != Some(&cursor) {
                    return Err(ChangeError::NotFolded(owner));
                }
            }
            let tree = Tree::decode(transaction.get(&tree_key(shard)).await?.as_deref())?;
            let record = MigrationRecord {
                leaves: LeafIndex(tree.size),
                ..record.clone()
            };
            // Entities are converted when they are loaded, and in turn; how many there are is not counted meanwhile.
            let converting = Converting {
                later: true,
                ..Converting::default()
            };
            Ok(write_migration(&transaction, realm, (number, &record), &converting)?)
        };
        self.store.run_repeatable(work).await?;
        Ok(())
    }

    /// Stores entities under the realm's new definitions from now on.
    pub(super) async fn adopt(&mut self, to: Hash) -> Result<(), FoldError> {
        // The change may have been read before it was durable. A later commit is durable only behind it.
        let lease = KeyRange::single(&lease_key(self.shard));
        let behind = |transaction: Transaction| {
            let lease = &lease;
            async move { transaction.add_write_conflict(lease) }
        };
        self.store.run_repeatable(behind).await?;
        self.migrations = Migrations::read(&self.store).await?.upto(to);
        self.schema = Arc::new(read_schema(&self.store, to).await?);
        Ok(())
    }
}
