//! Parses the holder that a user asks about.

use async_recursion::async_recursion as boxed;
use std::{fmt, str::FromStr};

use annals_db::accounts;
use annals_ids::DatabaseId;
use annals_store::{Store, StoreError};
use thiserror::Error;

/// A stored entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The account with this login name.
    Named(String),
    /// The stored entity with this number.
    Stored(DatabaseId),
}

/// Why the holder cannot be determined.
#[derive(Debug, Error)]
pub enum Unclear {
    /// The store cannot be read.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// It is both a number and a login name. Such accounts can no longer be created, but an old one may exist.
    #[error(
        "stored:{meant} is ambiguous: an account logs in by that name, stored entity {account}. While it exists, \
         name stored entity {meant} by its own name"
    )]
    Both {
        /// The number.
        meant: DatabaseId,
        /// The stored entity of the account with that name.
        account: DatabaseId,
    },
}

impl FromStr for Who {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_prefix(accounts::STORED) else {
            return Ok(Self::Named(text.to_owned()));
        };
        // Only the printed form counts: exactly one login name can be mistaken for it.
        match number.parse::<u64>() {
            Ok(read) if read.to_string() == number => Ok(Self::Stored(DatabaseId(read))),
            _ => Err("write stored: and the number of a stored entity, such as stored:17".to_owned()),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::Stored(number) => write!(f, "{}{number}", accounts::STORED),
        }
    }
}

impl Who {
    /// Its number; `None` if no account has that name.
    ///
    /// # Errors
    /// When it is ambiguous, or the store cannot be read.
    #[boxed]
    pub async fn find(&self, store: &Store) -> Result<Option<DatabaseId>, Unclear> {
        let account = accounts::named(store, &self.to_string()).await?;
        let account = account.map(|account| account.database);
        match (self, account) {
            (Self::Named(_), account) => Ok(account),
            (Self::Stored(meant), Some(account)) if account != *meant => Err(Unclear::Both { meant: *meant, account }),
            (Self::Stored(meant), _) => Ok(Some(*meant)),
        }
    }
}

#[cfg(test)]
mod tests {
    use annals_store::{MemoryStore, Transaction, immediate, layout::database};

    use super::*;

    /// A store with accounts, by their names.
    fn store_with(accounts: &[(&str, u64)]) -> Store {
        let (store, key) = (MemoryStore::new().store(), [7; 32]);
        let work = |transaction: Transaction| async move {
            transaction.set(&database::name_key_key(), &key)?;
            for (name, number) in accounts {
                let account = database::Account {
                    database: DatabaseId(*number),
                    password: String::new(),
                };
                let hashed = database::hashed_name(&key, name);
                transaction.set(&database::account_key(&hashed), &account.encode())?;
            }
            Ok::<_, StoreError>(())
        };
        immediate(store.run_repeatable(work)).expect("this store has no faults");
        store
    }

    #[test]
    fn an_account_named_like_a_stored_number_is_ambiguous() {
        let store = store_with(&[("merlin", 17), ("stored:17", 40), ("stored:41", 41)]);
        let find = |text: &str| immediate(text.parse::<Who>().expect("it can be read").find(&store));
        assert!(matches!(find("merlin"), Ok(Some(DatabaseId(17)))));
        assert!(matches!(
            find("stored:17"),
            Err(Unclear::Both {
                meant: DatabaseId(17),
                account: DatabaseId(40)
            })
        ));
        for (text, number) in [("stored:40", 40), ("stored:41", 41), ("stored:5", 5)] {
            assert!(
                matches!(find(text), Ok(Some(DatabaseId(found))) if found == number),
                "{text}"
            );
        }
        assert!(matches!(find("gandalf"), Ok(None)));
    }

    #[test]
    fn names_and_stored_numbers_are_distinguished() {
        assert_eq!("stored:17".parse(), Ok(Who::Stored(DatabaseId(17))));
        assert_eq!("merlin".parse(), Ok(Who::Named("merlin".to_owned())));
        for neither in [
            "stored:merlin",
            "stored:",
            "stored:+17",
            "stored:017",
            "stored:-1",
            "stored:17 ",
        ] {
            assert!(neither.parse::<Who>().is_err(), "{neither}");
        }
    }
}
