//! `16 <key>`: the records of [`crate::Store::run_once`], one per idempotency key.
//!
//! A value is the read version of the applied run (8 bytes, big-endian), the run's number within its call (4 bytes,
//! big-endian), and the versionstamp of its commit.

use bytes::Bytes;

use crate::limits;
use crate::{StoreError, Version, Versionstamp};

/// Prefix of all these keys.
pub const PREFIX: &[u8] = &[0x16];

/// Maximum length of an idempotency key, in bytes.
pub const KEY_BYTES: usize = limits::KEY_BYTES - PREFIX.len();

/// The run that was applied: its read version and its number. Two runs that share both did the same work on the same
/// data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) read_version: Version,
    pub(crate) attempt: u32,
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) run: Run,
    pub(crate) stamp: Versionstamp,
}

/// The key of the record for an idempotency key.
pub(crate) fn record_key(key: &[u8]) -> Result<Bytes, StoreError> {
    if key.len() > KEY_BYTES {
        return Err(StoreError::KeyTooLarge { bytes: key.len() });
    }
    Ok([PREFIX, key].concat().into())
}

impl Run {
    const BYTES: usize = size_of::<u64>() + size_of::<u32>();

    /// The value up to the stamp.
    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.read_version.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.attempt.to_be_bytes());
        bytes
    }
}

impl Record {
    /// Decodes a record's value.
    pub(crate) fn decode(value: &[u8]) -> Result<Self, StoreError> {
        let corrupt = || StoreError::Corrupt(format!("an idempotency record of {} B", value.len()).into());
        let (version, rest) = value.split_first_chunk().ok_or_else(corrupt)?;
        let (attempt, stamp) = rest.split_first_chunk().ok_or_else(corrupt)?;
        let run = Run {
            read_version: Version(u64::from_be_bytes(*version)),
            attempt: u32::from_be_bytes(*attempt),
        };
        Ok(Self {
            run,
            stamp: Versionstamp(stamp.try_into().map_err(|_| corrupt())?),
        })
    }
}
