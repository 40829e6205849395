//! Keys of operators' changes of settings in running processes. The records belong to db.

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError};

/// Key of a change. Changes are numbered from 0.
#[must_use]
pub fn key_of(number: u64) -> Vec<u8> {
    key(0x38, &[&number.to_be_bytes()])
}

/// All changes, oldest first.
#[must_use]
pub fn changes() -> KeyRange {
    KeyRange::prefix(&[0x38])
}

/// The number of a change, from its key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn number_of(key: &[u8]) -> Result<u64, StoreError> {
    let mut fields = Fields::of("the key of a changed setting", key.get(1..).unwrap_or_default());
    let number = fields.u64()?;
    fields.finish()?;
    Ok(number)
}
