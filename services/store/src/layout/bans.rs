//! Keys of operators' bans of accounts, whose records belong to db, and the sessions that a ban ends.

use annals_ids::{DatabaseId, OwnerId, SessionId};

use super::fields::{Fields, key, number};
use crate::{KeyRange, StoreError};

/// Key of a record about an account. The records of an account are numbered from 0.
#[must_use]
pub fn key_of(account: DatabaseId, number: u32) -> Vec<u8> {
    key(0x3e, &[&account.0.to_be_bytes(), &number.to_be_bytes()])
}

/// The records about an account, oldest first.
#[must_use]
pub fn of_account(account: DatabaseId) -> KeyRange {
    KeyRange::prefix(&key(0x3e, &[&account.0.to_be_bytes()]))
}

/// All records, by account.
#[must_use]
pub fn bans() -> KeyRange {
    KeyRange::prefix(&[0x3e])
}

/// The account and the number of a record, from its key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn record_of(key: &[u8]) -> Result<(DatabaseId, u32), StoreError> {
    let mut fields = Fields::of("the key of a ban", key.get(1..).unwrap_or_default());
    let of = (DatabaseId(fields.u64()?), fields.u32()?);
    fields.finish()?;
    Ok(of)
}

/// Key of the newest session on an owner whose client was admitted for an account.
#[must_use]
pub fn session_key(account: DatabaseId, owner: OwnerId) -> Vec<u8> {
    key(0x3f, &[&account.0.to_be_bytes(), &owner.0.to_be_bytes()])
}

/// The stored form of a session.
#[must_use]
pub fn encode_session(session: SessionId) -> [u8; 8] {
    session.0.to_be_bytes()
}

/// Decodes a session.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn decode_session(value: &[u8]) -> Result<SessionId, StoreError> {
    number("a session", value).map(SessionId)
}
