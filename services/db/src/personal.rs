//! Keys of persons (rule P5), and forgetting persons (rule P7).
//!
//! A person is a stored entity with personal members, such as an account. Its key is created at its first activation
//! and is one row of the store. Sealed data (docs/personal-data.md) stays wherever it was hashed; once the row is
//! deleted, it can no longer be read.

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{DatabaseId, LeafIndex, ProcessId, Shard};
use annals_personal::PersonalKey;
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction, key_after,
    layout::{
        archive::{self, Tree},
        bans,
        database::{self, Account, Checkout},
        owners::{self, OwnerRecord},
        personal::{self, Forgotten},
    },
};
use thiserror::Error;

use crate::stored;

/// Rows read at a time.
const PAGE: usize = 256;

/// What the store has about a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Person {
    /// Nothing: it was never activated, or its key was not restored.
    Unknown,
    /// The key.
    Known(PersonalKey),
    /// It was forgotten.
    Forgotten(Forgotten),
}

/// Reason why a person was not forgotten.
#[derive(Debug, Error)]
pub enum NotForgotten {
    /// The store cannot be used.
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
    /// There is no such person.
    #[error("there is no stored entity {0}, and no account with that database id")]
    Unknown(DatabaseId),
    /// It is active: its holder has the key in memory and goes on sealing.
    #[error(
        "stored entity {0} is activated; wait until its client has left, or end its session, and try again; if the \
         realm is not running, start it, so that activations from before its stop can end"
    )]
    Lives(DatabaseId),
}

/// Returns the key of a person that is about to be activated. If there is none, creates it from `fresh`, which must be
/// random. Returns `None` for a forgotten person.
///
/// # Errors
/// When the store cannot be used.
#[boxed]
pub async fn key(store: &Store, person: DatabaseId, fresh: [u8; 32]) -> Result<Option<PersonalKey>, StoreError> {
    let work = |transaction: Transaction| async move {
        match read(&transaction, person).await? {
            Person::Known(key) => Ok(Some(key)),
            Person::Forgotten(_) => Ok(None),
            Person::Unknown => {
                transaction.set(&personal::key_key(person), &fresh)?;
                Ok(Some(PersonalKey::new(fresh)))
            }
        }
    };
    store.run_repeatable(work).await.map(|(key, _)| key)
}

/// Reads what the store has about a person.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn person(store: &Store, person: DatabaseId) -> Result<Person, StoreError> {
    store
        .read(|transaction| async move { read(&transaction, person).await })
        .await
}

/// Like [`person`], in a transaction.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read(transaction: &Transaction, person: DatabaseId) -> Result<Person, StoreError> {
    if let Some(value) = transaction.get(&personal::forgotten_key(person)).await? {
        return Forgotten::decode(&value).map(Person::Forgotten);
    }
    let key = transaction.get(&personal::key_key(person)).await?;
    let key = key.map(|value| personal::decode_key(&value)).transpose()?;
    Ok(key.map_or(Person::Unknown, |key| Person::Known(PersonalKey::new(key))))
}

/// Forgets a person: deletes the key and prevents a new one, ends logins to its account and frees the account's name.
/// Returns the time of the forgetting, which may be an earlier one. A key need not exist: a realm that was restored
/// without its keys still has the account, and may have sealed data, which a key that is imported later could open.
///
/// # Errors
/// When it is active, there is no such entity, or the store cannot be used.
#[boxed]
pub async fn forget(
    store: &Store,
    shard: Shard,
    person: DatabaseId,
    (at, by, reason): (u64, &str, &str),
) -> Result<Forgotten, NotForgotten> {
    let account = account_of(store, person).await?;
    let account = account.as_deref();
    let work = |transaction: Transaction| async move {
        match read(&transaction, person).await? {
            Person::Forgotten(before) => {
                clear_account(&transaction, person, account).await?;
                return Ok(before);
            }
            Person::Unknown if account.is_none() && stored::read_row(&transaction, person).await?.is_none() => {
                return Err(NotForgotten::Unknown(person));
            }
            Person::Unknown | Person::Known(_) => {}
        }
        if is_held(&transaction, person).await? {
            return Err(NotForgotten::Lives(person));
        }
        // db writes the tree with every fold: a read that conflicts would rarely commit in a busy realm.
        let tree = transaction.snapshot().get(&archive::tree_key(shard)).await?;
        let forgotten = Forgotten {
            at,
            leaves: LeafIndex(Tree::decode(tree.as_deref())?.size),
            by: by.to_owned(),
            reason: reason.to_owned(),
        };
        remove(&transaction, person, &forgotten)?;
        clear_account(&transaction, person, account).await?;
        Ok(forgotten)
    };
    store.run_repeatable(work).await.map(|(forgotten, _)| forgotten)
}

/// Returns all keys and all forgotten persons, to be kept apart from backups.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn export(store: &Store) -> Result<BTreeMap<DatabaseId, Person>, StoreError> {
    let mut persons = BTreeMap::new();
    for (key, value) in rows(store, personal::keys()).await? {
        let known = PersonalKey::new(personal::decode_key(&value)?);
        persons.insert(personal::person_of(&key)?, Person::Known(known));
    }
    for (key, value) in rows(store, personal::forgotten()).await? {
        persons.insert(
            personal::person_of(&key)?,
            Person::Forgotten(Forgotten::decode(&value)?),
        );
    }
    Ok(persons)
}

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of keys added.
    pub keys: u64,
    /// Number of persons forgotten by the import.
    pub forgotten: u64,
    /// Keys that were not imported because another key is in use. Data sealed under the imported key stays unreadable.
    pub differing: u64,
    /// Persons that were not forgotten again because they are active.
    pub living: BTreeSet<DatabaseId>,
}

/// Imports keys, and forgets again the persons that were forgotten at the export (rule P8). A person that is forgotten
/// here stays forgotten whatever is imported, and its account, if any, is deleted. Meant for a realm that was just
/// restored: active persons are left alone and reported.
///
/// # Errors
/// When the store cannot be used.
#[boxed]
pub async fn import(store: &Store, persons: &BTreeMap<DatabaseId, Person>) -> Result<Imported, StoreError> {
    let mut accounts = BTreeMap::new();
    for (key, value) in rows(store, KeyRange::prefix(&database::account_key(&[]))).await? {
        accounts.insert(Account::decode(&value)?.database, key);
    }
    // Persons that are forgotten here but not in the import are included, to delete their accounts.
    let mut persons = persons.clone();
    for (key, _) in rows(store, personal::forgotten()).await? {
        persons.entry(personal::person_of(&key)?).or_insert(Person::Unknown);
    }
    let mut imported = Imported::default();
    for (person, brought) in persons {
        let brought = &brought;
        let account = accounts.get(&person).map(Vec::as_slice);
        // Read first, for the counts: a transaction whose answer is lost finds its own work done when it is retried.
        let held = self::person(store, person).await?;
        let work = |transaction: Transaction| async move { bring(&transaction, person, brought, account).await };
        if !store.run_repeatable(work).await?.0 {
            imported.living.insert(person);
            continue;
        }
        match (held, brought) {
            (Person::Unknown, Person::Known(_)) => imported.keys += 1,
            (Person::Unknown | Person::Known(_), Person::Forgotten(_)) => imported.forgotten += 1,
            (Person::Known(held), Person::Known(key)) => imported.differing += u64::from(held != *key),
            (Person::Forgotten(_), _) | (_, Person::Unknown) => {}
        }
    }
    Ok(imported)
}

/// Imports one person; does nothing if it was forgotten and is active.
async fn bring(
    transaction: &Transaction,
    person: DatabaseId,
    brought: &Person,
    account: Option<&[u8]>,
) -> Result<bool, StoreError> {
    match (read(transaction, person).await?, brought) {
        (Person::Unknown, Person::Known(key)) => transaction.set(&personal::key_key(person), key.bytes())?,
        (Person::Unknown | Person::Known(_), Person::Forgotten(forgotten)) => {
            if is_held(transaction, person).await? {
                return Ok(false);
            }
            remove(transaction, person, forgotten)?;
            clear_account(transaction, person, account).await?;
        }
        (Person::Forgotten(_), _) => clear_account(transaction, person, account).await?,
        (Person::Known(_), _) | (Person::Unknown, Person::Unknown) => {}
    }
    Ok(true)
}

/// Whether a process may have the entity, and its key in memory. A restore checks out the entities that were active at
/// the cut, and leaves each owner without a holder: until an owner is granted, no process has an entity that was active
/// there. A process that is granted the owner reads the keys afterwards.
async fn is_held(transaction: &Transaction, person: DatabaseId) -> Result<bool, StoreError> {
    let Some(checkout) = transaction.get(&database::checkout_key(person)).await? else {
        return Ok(false);
    };
    let owner = Checkout::decode(&checkout)?.owner;
    let record = transaction.get(&owners::owner_key(owner)).await?;
    let record = record.map(|value| OwnerRecord::decode(&value)).transpose()?;
    Ok(record.is_none_or(|record| record.process != ProcessId(0)))
}

fn remove(transaction: &Transaction, person: DatabaseId, forgotten: &Forgotten) -> Result<(), StoreError> {
    transaction.clear(&personal::key_key(person))?;
    transaction.clear_range(&bans::of_account(person))?;
    transaction.set(&personal::forgotten_key(person), &forgotten.encode())
}

/// Deletes the row that was a person's account when it was looked up. Another account may have taken the name since.
async fn clear_account(
    transaction: &Transaction,
    person: DatabaseId,
    account: Option<&[u8]>,
) -> Result<(), StoreError> {
    let Some(key) = account else { return Ok(()) };
    let value = transaction.get(key).await?;
    let held = value.map(|value| Account::decode(&value)).transpose()?;
    match held {
        Some(held) if held.database == person => transaction.clear(key),
        _ => Ok(()),
    }
}

/// Finds the row of this stored entity's account, if there is one. Account rows name their entity, but not the other
/// way round, so all are read.
async fn account_of(store: &Store, person: DatabaseId) -> Result<Option<Vec<u8>>, StoreError> {
    for (key, value) in rows(store, KeyRange::prefix(&database::account_key(&[]))).await? {
        if Account::decode(&value)?.database == person {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

async fn rows(store: &Store, mut range: KeyRange) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StoreError> {
    let mut rows = Vec::new();
    loop {
        let read = |transaction: Transaction| {
            let range = range.clone();
            async move { transaction.get_range(&range, PAGE, ScanOrder::Forward).await }
        };
        let page = store.read::<_, StoreError, _, _>(read).await?;
        rows.extend(page.rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end.clone()),
            None => return Ok(rows),
        }
    }
}
