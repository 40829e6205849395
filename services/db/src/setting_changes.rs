//! Changes of settings in running processes, which operators make: who, when, why, from what to what. The stored form is
//!
//! ```text
//! wall:u64 process:text path:text before:text after:text operator:text reason:text
//! text = bytes:u32 UTF-8
//! ```
//! Numbers are big-endian; the change's own number is in the key.
//!
//! The store has them, and the log does not: they change nothing that the log records.

use annals_ids::WallTime;
use annals_store::{ScanOrder, Store, StoreError, Transaction, layout::setting_changes};
use async_recursion::async_recursion as boxed;

/// Maximum bytes of an operator's name, and of a process's.
pub const MAX_NAME_BYTES: usize = 64;

/// Maximum bytes of a reason.
pub const MAX_REASON_BYTES: usize = 500;

/// Maximum bytes of a path, and of a value.
pub const MAX_VALUE_BYTES: usize = 1_000;

/// A changed setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingChange {
    /// When it was recorded, by the wall clock of the process.
    pub at: WallTime,
    /// The process: its service and its name among the processes of that service.
    pub process: String,
    /// Path of the setting within the process.
    pub path: String,
    /// The value before.
    pub before: String,
    /// The value from then on, until the process ends.
    pub after: String,
    /// Who changed it.
    pub operator: String,
    pub reason: String,
}

/// The newest changes, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewestChanges {
    /// Oldest first, with their numbers.
    pub changes: Vec<(u64, SettingChange)>,
    /// The number of all changes.
    pub all: u64,
}

/// Records a change, and returns its number. A change that was recorded twice, because the store did not say whether
/// it had the first, has two numbers.
///
/// # Errors
/// When the store cannot be used.
#[boxed]
pub async fn record_change(store: &Store, change: &SettingChange) -> Result<u64, StoreError> {
    let value = &change.encode();
    let work = |transaction: Transaction| async move {
        let newest = transaction
            .get_range(&setting_changes::changes(), 1, ScanOrder::Reverse)
            .await?;
        let newest = newest.rows.first().map(|(key, _)| setting_changes::number_of(key));
        let number = newest.transpose()?.map_or(0, |newest| newest + 1);
        transaction.set(&setting_changes::key_of(number), value)?;
        Ok(number)
    };
    store.run_repeatable(work).await.map(|(number, _)| number)
}

/// Reads the newest `most` changes.
///
/// # Errors
/// When the store cannot be read; [`StoreError::Corrupt`] if a record is damaged.
#[boxed]
pub async fn newest_changes(store: &Store, most: usize) -> Result<NewestChanges, StoreError> {
    let work = |transaction: Transaction| async move {
        transaction
            .get_range(&setting_changes::changes(), most, ScanOrder::Reverse)
            .await
    };
    let page = store.read(work).await?;
    let decoded = page.rows.iter().rev().map(|(key, value)| {
        let number = setting_changes::number_of(key)?;
        Ok((number, SettingChange::decode(number, value)?))
    });
    let changes: Vec<(u64, SettingChange)> = decoded.collect::<Result<_, StoreError>>()?;
    let all = changes.last().map_or(0, |(number, _)| number + 1);
    Ok(NewestChanges { changes, all })
}

impl SettingChange {
    fn encode(&self) -> Vec<u8> {
        let mut value = self.at.0.to_be_bytes().to_vec();
        let Self {
            at: _,
            process,
            path,
            before,
            after,
            operator,
            reason,
        } = self;
        for text in [process, path, before, after, operator, reason] {
            let length = u32::try_from(text.len()).expect("invariant: the process that records it bounds all texts");
            value.extend(length.to_be_bytes());
            value.extend(text.as_bytes());
        }
        value
    }

    fn decode(number: u64, value: &[u8]) -> Result<Self, StoreError> {
        let damaged = || StoreError::Corrupt(format!("change {number} of a setting cannot be decoded").into());
        Self::parse(value).ok_or_else(damaged)
    }

    fn parse(mut rest: &[u8]) -> Option<Self> {
        let (at, behind) = rest.split_first_chunk()?;
        rest = behind;
        let mut texts: [String; 6] = Default::default();
        for text in &mut texts {
            let (length, behind) = rest.split_first_chunk()?;
            let (bytes, behind) = behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
            *text = String::from_utf8(bytes.to_vec()).ok()?;
            rest = behind;
        }
        let [process, path, before, after, operator, reason] = texts;
        rest.is_empty().then_some(Self {
            at: WallTime(u64::from_be_bytes(*at)),
            process,
            path,
            before,
            after,
            operator,
            reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use annals_store::{MemoryStore, immediate};

    use super::*;

    fn change(reason: &str) -> SettingChange {
        SettingChange {
            at: WallTime(u64::MAX),
            process: "login/3".to_owned(),
            path: "logins/paused".to_owned(),
            before: "false".to_owned(),
            after: "true".to_owned(),
            operator: "Grace".to_owned(),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn a_change_decodes_completely_or_is_rejected() {
        let change = change("case 9 — 旧");
        let stored = change.encode();
        assert_eq!(SettingChange::decode(7, &stored), Ok(change));
        for length in 0..stored.len() {
            assert!(SettingChange::decode(7, &stored[..length]).is_err(), "{length} bytes");
        }
        assert!(SettingChange::decode(7, &[&stored[..], &[0]].concat()).is_err());
    }

    #[test]
    fn changes_are_numbered_and_the_newest_are_read() {
        let store = MemoryStore::new().store();
        assert_eq!(immediate(newest_changes(&store, 3)).unwrap(), NewestChanges::default());
        for number in 0..5 {
            let recorded = immediate(record_change(&store, &change(&number.to_string()))).unwrap();
            assert_eq!(recorded, number);
        }
        let newest = immediate(newest_changes(&store, 3)).unwrap();
        assert_eq!(newest.all, 5);
        let reasons: Vec<(u64, &str)> = newest
            .changes
            .iter()
            .map(|(number, change)| (*number, change.reason.as_str()))
            .collect();
        assert_eq!(reasons, [(2, "2"), (3, "3"), (4, "4")]);
    }
}
