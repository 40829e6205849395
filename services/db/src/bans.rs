//! Decisions of operators about accounts: bans, which they impose and lift, and accounts that they create. An account has
//! any number of records; the newest one says whether it is banned. The stored form is
//!
//! ```text
//! 1:u8 at until:wall operator reason      a ban; until is 0 if it does not end by itself
//! 2:u8 at operator reason                 its lifting
//! 3:u8 at operator reason                 an operator has created the account
//! at       = wall
//! wall     = ms since 1970:u64
//! operator = text
//! reason   = text
//! text     = bytes:u32 UTF-8
//! ```
//! Numbers are big-endian; account and number of the record are in the key.
//!
//! The store has them, and the log does not: a ban changes nothing that the log records but a session that it ends.

use annals_ids::{DatabaseId, OwnerId, SessionId, WallTime};
use annals_store::{KeyRange, ScanOrder, Store, StoreError, Transaction, key_after, layout::bans};
use annals_wire::client::{Ban, MAX_BAN_REASON_BYTES};
use async_recursion::async_recursion as boxed;
use thiserror::Error;

const _: () = assert!(crate::MAX_REASON_BYTES <= MAX_BAN_REASON_BYTES);

/// Rows read at a time.
const PAGE: usize = 256;

/// An operator's decision about an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanRecord {
    /// When it was made, by the clock of the operator's machine.
    pub at: WallTime,
    pub decision: Decision,
    /// Who made it; at most [`MAX_NAME_BYTES`](crate::MAX_NAME_BYTES).
    pub operator: String,
    /// Why; at most [`MAX_REASON_BYTES`](crate::MAX_REASON_BYTES). The player is sent the reason for a ban.
    pub reason: String,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The account is banned until then; for ever without a time.
    Banned(Option<WallTime>),
    /// It is not banned any more.
    Lifted,
    /// An operator has created it.
    Created,
}

/// Why a decision was not recorded.
#[derive(Debug, Error)]
pub enum NotDecided {
    /// There is nothing to lift.
    #[error("stored entity {0} is not banned")]
    NotBanned(DatabaseId),
    /// The store cannot be used.
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
}

impl BanRecord {
    /// The ban, if this record is one that is in force.
    #[must_use]
    pub fn ban(&self, now: WallTime) -> Option<Ban> {
        match self.decision {
            Decision::Banned(until) if until.is_none_or(|until| now < until) => Some(Ban {
                until,
                reason: self.reason.clone(),
            }),
            Decision::Banned(_) | Decision::Lifted | Decision::Created => None,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let (kind, until) = match self.decision {
            Decision::Banned(until) => (1, Some(until.unwrap_or(WallTime(0)))),
            Decision::Lifted => (2, None),
            Decision::Created => (3, None),
        };
        let mut value = vec![kind];
        value.extend(self.at.0.to_be_bytes());
        value.extend(until.into_iter().flat_map(|until| until.0.to_be_bytes()));
        for text in [&self.operator, &self.reason] {
            let length = u32::try_from(text.len()).expect("invariant: the tool bounds all texts");
            value.extend(length.to_be_bytes());
            value.extend(text.as_bytes());
        }
        value
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        let damaged = || StoreError::Corrupt(format!("the ban with the key {key:02x?} cannot be decoded").into());
        Self::parse(value).ok_or_else(damaged)
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let (kind, rest) = value.split_first()?;
        let (at, mut rest) = rest.split_first_chunk()?;
        let decision = match kind {
            1 => {
                let (until, behind) = rest.split_first_chunk()?;
                rest = behind;
                Decision::Banned(
                    Some(u64::from_be_bytes(*until))
                        .filter(|until| *until > 0)
                        .map(WallTime),
                )
            }
            2 => Decision::Lifted,
            3 => Decision::Created,
            _ => return None,
        };
        let mut texts: [String; 2] = Default::default();
        for text in &mut texts {
            let (length, behind) = rest.split_first_chunk()?;
            let (bytes, behind) = behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
            *text = String::from_utf8(bytes.to_vec()).ok()?;
            rest = behind;
        }
        let [operator, reason] = texts;
        rest.is_empty().then_some(Self {
            at: WallTime(u64::from_be_bytes(*at)),
            decision,
            operator,
            reason,
        })
    }
}

/// Records a decision about an account, and returns its number. A decision that is recorded already, because the store
/// did not say so the first time, is not recorded again.
///
/// # Errors
/// When there is no ban to lift, or the store cannot be used.
#[boxed]
pub async fn decide(store: &Store, account: DatabaseId, record: &BanRecord) -> Result<u32, NotDecided> {
    let work = |transaction: Transaction| async move {
        let newest = newest(&transaction, account).await?;
        let (number, is_banned) = match &newest {
            Some((number, held)) if held == record => return Ok(*number),
            Some((number, held)) => (number + 1, held.ban(record.at).is_some()),
            None => (0, false),
        };
        if record.decision == Decision::Lifted && !is_banned {
            return Err(NotDecided::NotBanned(account));
        }
        transaction.set(&bans::key_of(account, number), &record.encode())?;
        Ok(number)
    };
    store.run_repeatable(work).await.map(|(number, _)| number)
}

/// The ban of an account that is in force.
///
/// # Errors
/// When the store cannot be read; [`StoreError::Corrupt`] if a record is damaged.
#[boxed]
pub async fn in_force(store: &Store, account: DatabaseId, now: WallTime) -> Result<Option<Ban>, StoreError> {
    store
        .read(|transaction| async move { read(&transaction, account, now).await })
        .await
}

/// Like [`in_force`], in a transaction.
pub(crate) async fn read(
    transaction: &Transaction,
    account: DatabaseId,
    now: WallTime,
) -> Result<Option<Ban>, StoreError> {
    let newest = newest(transaction, account).await?;
    Ok(newest.and_then(|(_, record)| record.ban(now)))
}

async fn newest(transaction: &Transaction, account: DatabaseId) -> Result<Option<(u32, BanRecord)>, StoreError> {
    let newest = transaction
        .get_range(&bans::of_account(account), 1, ScanOrder::Reverse)
        .await?;
    let decoded = newest.rows.first().map(|(key, value)| {
        let (_, number) = bans::record_of(key)?;
        Ok((number, BanRecord::decode(key, value)?))
    });
    decoded.transpose()
}

/// All records about an account, or about all accounts, each with its account and number: by account, oldest first.
///
/// # Errors
/// When the store cannot be read; [`StoreError::Corrupt`] if a record is damaged.
#[boxed]
pub async fn records(
    store: &Store,
    account: Option<DatabaseId>,
) -> Result<Vec<(DatabaseId, u32, BanRecord)>, StoreError> {
    let mut range = account.map_or_else(bans::bans, bans::of_account);
    let mut records = Vec::new();
    loop {
        let read = |transaction: Transaction| {
            let range = range.clone();
            async move { transaction.get_range(&range, PAGE, ScanOrder::Forward).await }
        };
        let page = store.read::<_, StoreError, _, _>(read).await?;
        for (key, value) in &page.rows {
            let (account, number) = bans::record_of(key)?;
            records.push((account, number, BanRecord::decode(key, value)?));
        }
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end.clone()),
            None => return Ok(records),
        }
    }
}

/// The newest session on an owner whose client was admitted for an account, as far as the owner's log is folded.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn session_on(store: &Store, account: DatabaseId, owner: OwnerId) -> Result<Option<SessionId>, StoreError> {
    let read = |transaction: Transaction| async move {
        let value = transaction.get(&bans::session_key(account, owner)).await?;
        value.map(|value| bans::decode_session(&value)).transpose()
    };
    store.read(read).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_decodes_completely_or_is_rejected() {
        for decision in [
            Decision::Banned(Some(WallTime(u64::MAX))),
            Decision::Banned(None),
            Decision::Lifted,
            Decision::Created,
        ] {
            let record = BanRecord {
                at: WallTime(7),
                decision,
                operator: "Grace".to_owned(),
                reason: "case 9 — 旧".to_owned(),
            };
            let stored = record.encode();
            assert_eq!(BanRecord::decode(&[], &stored), Ok(record));
            for length in 0..stored.len() {
                assert!(BanRecord::decode(&[], &stored[..length]).is_err(), "{length} bytes");
            }
            assert!(BanRecord::decode(&[], &[&stored[..], &[0]].concat()).is_err());
            assert!(BanRecord::decode(&[], &[&[4], &stored[1..]].concat()).is_err());
        }
    }
}
