//! Keys of operators' decisions about logs that the store did not know (rule F17). The records belong to db, which
//! knows the event of the same content in the log.

use super::fields::{Fields, key};
use crate::{KeyRange, StoreError};

/// Key of a decision. Decisions are numbered from 0.
#[must_use]
pub fn key_of(number: u32) -> Vec<u8> {
    key(0x31, &[&number.to_be_bytes()])
}

/// All decisions, oldest first.
#[must_use]
pub fn adoptions() -> KeyRange {
    KeyRange::prefix(&[0x31])
}

/// The number of a decision, from its key.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub fn number_of(key: &[u8]) -> Result<u32, StoreError> {
    let mut fields = Fields::of("the key of an adoption", key.get(1..).unwrap_or_default());
    let number = fields.u32()?;
    fields.finish()?;
    Ok(number)
}
