//! Accounts and check-outs: who may log in, and on which owner an account's entity is activated.

use annals_def::{EntityType, Schema};
use annals_ids::{DatabaseId, Mailbox, OwnerId, Part, TypeId, WallTime};
use annals_node::inquiry::{Known, Life};
use annals_store::{
    Store, StoreError, Transaction,
    layout::{
        database::{self, Account, Checkout},
        director::{self, Counter},
    },
};
use annals_wire::client::Ban;
use async_recursion::async_recursion as boxed;

use crate::{
    bans,
    ledger::{is_deleted, read_life},
    migrations::{Migrations, read_records},
    stored::{self, StoredEntity},
};

/// Prefix that marks the number of a stored entity where a name could stand as well.
pub const STORED: &str = "stored:";

/// Whether an account can have this name. A name that could be taken for a [stored entity](STORED) is rejected: a
/// command about the account would apply to another one. So is a name with control characters, which change how the
/// text around them is displayed.
#[must_use]
pub fn can_be_named(name: &str) -> bool {
    !name.starts_with(STORED) && !name.contains(char::is_control)
}

/// The type of the entity of a new account: `Account` if it exists, else one of those that a client can have, by the
/// account's name. `None` if there is none.
#[must_use]
pub fn entity_type<'s>(schema: &'s Schema, name: &str) -> Option<&'s EntityType> {
    if let Some(account) = schema.type_named("Account").filter(|found| found.parts.base) {
        return Some(account);
    }
    let able: Vec<&EntityType> = schema.types().iter().filter(|found| found.parts.base).collect();
    let sum = |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte));
    able.get(name.bytes().fold(0, sum) % able.len().max(1)).copied()
}

/// Returns the key under which the realm's account names are hashed. The first call creates it from `fresh`, which must
/// be random; all calls return the same key.
///
/// # Errors
/// When the store cannot be used.
#[boxed]
pub async fn name_key(store: &Store, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
    let key = database::name_key_key();
    let work = |transaction: Transaction| {
        let key = key.clone();
        async move {
            if let Some(value) = transaction.get(&key).await? {
                return database::decode_name_key(&value);
            }
            transaction.set(&key, &fresh)?;
            Ok(fresh)
        }
    };
    store.run_repeatable(work).await.map(|(name_key, _)| name_key)
}

/// Finds the account with this hashed name. An account whose entity was deleted is not found: its name is free.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn find(store: &Store, hashed_name: &[u8]) -> Result<Option<Account>, StoreError> {
    let read = |transaction: Transaction| async move {
        let account = read_account(&transaction, hashed_name).await?;
        without_deleted(&transaction, account).await
    };
    store.read(read).await
}

async fn read_account(transaction: &Transaction, hashed_name: &[u8]) -> Result<Option<Account>, StoreError> {
    let value = transaction.get(&database::account_key(hashed_name)).await?;
    value.map(|value| Account::decode(&value)).transpose()
}

async fn without_deleted(transaction: &Transaction, account: Option<Account>) -> Result<Option<Account>, StoreError> {
    match account {
        Some(account) if is_deleted(transaction, account.database).await? => Ok(None),
        account => Ok(account),
    }
}

/// Finds the account that logs in by this name, or did so before its entity was deleted.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn named(store: &Store, name: &str) -> Result<Option<Account>, StoreError> {
    let read = |transaction: Transaction| async move {
        let value = transaction.get(&database::name_key_key()).await?;
        value.map(|value| database::decode_name_key(&value)).transpose()
    };
    let name_key: Option<[u8; 32]> = store.read::<_, StoreError, _, _>(read).await?;
    match name_key {
        Some(name_key) => {
            let hashed_name = &database::hashed_name(&name_key, name);
            let read = |transaction: Transaction| async move { read_account(&transaction, hashed_name).await };
            store.read(read).await
        }
        None => Ok(None),
    }
}

/// Creates an account whose entity begins as `entity`, which has a type of `schema`: definitions that the realm has or
/// had. If an account of this name exists already, returns that one.
///
/// # Errors
/// When the store cannot be used.
#[boxed]
pub async fn create(
    store: &Store,
    hashed_name: &[u8],
    password: &str,
    entity: &StoredEntity,
    schema: &Schema,
) -> Result<Account, StoreError> {
    let key = database::account_key(hashed_name);
    let records = read_records(store).await?;
    let past = records.iter().position(|record| record.from == schema.fingerprint());
    let generation = u32::try_from(past.unwrap_or(records.len())).expect("invariant: generations have 32 bits");
    let work = |transaction: Transaction| {
        let key = key.clone();
        async move {
            let account = read_account(&transaction, hashed_name).await?;
            if let Some(account) = without_deleted(&transaction, account).await? {
                return Ok(account);
            }
            let database = DatabaseId(take(&transaction, Counter::Entities).await?);
            let account = Account {
                database,
                password: password.to_owned(),
            };
            transaction.set(&key, &account.encode())?;
            stored::write(&transaction, (schema, generation), database, None, entity).await?;
            Ok(account)
        }
    };
    store.run_repeatable(work).await.map(|(account, _)| account)
}

/// Checks a stored entity out to `preferred`. If it is checked out already, returns the existing check-out. `None` if
/// it was deleted.
///
/// # Errors
/// When the store cannot be used.
#[boxed]
pub async fn check_out(
    store: &Store,
    database: DatabaseId,
    preferred: OwnerId,
) -> Result<Option<Checkout>, StoreError> {
    let work = |transaction: Transaction| async move { take_out(&transaction, database, preferred).await };
    store.run_repeatable(work).await.map(|(checkout, _)| checkout)
}

/// Like [`check_out`], for a player. Returns the ban instead if the account is banned at `now`. A ban that is recorded
/// later finds the check-out.
///
/// # Errors
/// When the store cannot be used.
#[boxed]
pub async fn check_out_to_play(
    store: &Store,
    database: DatabaseId,
    preferred: OwnerId,
    now: WallTime,
) -> Result<Result<Option<Checkout>, Ban>, StoreError> {
    let work = |transaction: Transaction| async move {
        match bans::read(&transaction, database, now).await? {
            Some(ban) => Ok(Err(ban)),
            None => take_out(&transaction, database, preferred).await.map(Ok),
        }
    };
    store.run_repeatable(work).await.map(|(checkout, _)| checkout)
}

async fn take_out(
    transaction: &Transaction,
    database: DatabaseId,
    preferred: OwnerId,
) -> Result<Option<Checkout>, StoreError> {
    let key = database::checkout_key(database);
    if let Some(value) = transaction.get(&key).await? {
        return Checkout::decode(&value).map(Some);
    }
    if is_deleted(transaction, database).await? {
        return Ok(None);
    }
    let number = take(transaction, Counter::Checkouts).await?;
    let checkout = Checkout {
        owner: preferred,
        number,
    };
    transaction.set(&key, &checkout.encode())?;
    Ok(Some(checkout))
}

/// The check-out of a stored entity, if it is checked out.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn checkout_of(store: &Store, database: DatabaseId) -> Result<Option<Checkout>, StoreError> {
    let read = |transaction: Transaction| async move {
        let value = transaction.get(&database::checkout_key(database)).await?;
        value.map(|value| Checkout::decode(&value)).transpose()
    };
    store.read(read).await
}

/// State of a stored entity as far as its log is folded.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn known(transaction: &Transaction, type_id: TypeId, database: DatabaseId) -> Result<Known, StoreError> {
    let checkout = transaction.get(&database::checkout_key(database)).await?;
    let checkout = checkout.map(|value| Checkout::decode(&value)).transpose()?;
    let life = read_life(transaction, database).await?;
    let life = match (checkout, life) {
        (None, _) => Life::Offline,
        (Some(checkout), Some(life)) if (life.home, life.checkout) == (checkout.owner, checkout.number) => {
            Life::Active(Mailbox {
                entity: life.entity,
                home: life.home,
                type_id,
                part: Part::Base,
            })
        }
        (Some(_), _) => Life::Beginning,
    };
    Ok(Known { database, life })
}

/// Loads a stored entity. Converts one that was written under former definitions and that the bulk conversion has not
/// reached yet.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn load(store: &Store, database: DatabaseId) -> Result<Option<StoredEntity>, StoreError> {
    let read = |transaction: Transaction| async move {
        let Some(row) = stored::read_row(&transaction, database).await? else {
            return Ok(None);
        };
        let is_present = stored::is_present(&transaction, row.generation).await?;
        Ok::<_, StoreError>(Some((row, is_present)))
    };
    match store.read(read).await? {
        None => Ok(None),
        Some((row, true)) => Ok(Some(row.entity)),
        Some((row, false)) => {
            let converted = Migrations::read(store).await?.entity(&row);
            converted
                .map(Some)
                .map_err(|error| StoreError::Corrupt(format!("entity {database} of the database: {error}").into()))
        }
    }
}

/// Returns the next number of a counter.
async fn take(transaction: &Transaction, counter: Counter) -> Result<u64, StoreError> {
    let key = director::counter_key(counter);
    let next = director::decode_counter(transaction.get(&key).await?.as_deref())?;
    transaction.set(&key, &director::encode_counter(next + 1))?;
    Ok(next)
}
