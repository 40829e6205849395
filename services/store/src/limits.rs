//! The store's limits. They are FoundationDB's, so that data that fits into the embedded store also fits into the
//! production one.

use std::time::Duration;

use crate::{CommitRequest, KeyRange, Mutation, StoreError};

/// Maximum key length, in bytes. FoundationDB accepts 10,000 B: the remainder is for the realm's prefix, the byte that
/// ends the range of a single key, and the position of a versionstamp.
pub const KEY_BYTES: usize = 9_900;

/// Maximum length of a realm's key prefix in a shared store, in bytes.
pub const PREFIX_BYTES: usize = 64;

/// Maximum value length, in bytes.
pub const VALUE_BYTES: usize = 100_000;

/// Maximum size of one transaction in bytes, as counted by [`CommitRequest::bytes`]. A store's key prefixes count too.
pub const TRANSACTION_BYTES: usize = 10_000_000;

/// Overhead of a mutation in a transaction beside its key and value, in bytes: the size of its structure in
/// FoundationDB's client, which includes a checksum in later releases of 7.3 (40 B before).
pub const MUTATION_BYTES: usize = 56;

/// Overhead of a conflict range in a transaction beside its two keys, in bytes: the size of its structure in the
/// client.
pub const CONFLICT_BYTES: usize = 32;

/// Size of the offset of a versionstamp in a key or value, in bytes. A value that will contain a stamp must be shorter
/// by that much.
pub const STAMP_PLACE_BYTES: usize = 4;

/// Age, counted from its read version, at which a [`Transaction`](crate::Transaction) can no longer read or commit. It
/// bounds how long a store must keep old values and the record of recent writes; a store may keep them longer, or less
/// long.
pub const TRANSACTION_AGE: Duration = Duration::from_secs(5);

/// Every key lies below this one.
pub const KEYS_END: &[u8] = b"\xff";

/// Maximum number of keys that one `clear_range` may remove. The embedded store writes a tombstone for each, in the
/// same write as the rest of its group: a million short keys are some 50 MB of journal.
pub const CLEARED_KEYS: usize = 1_000_000;

/// Maximum watches waiting on one store at a time (FoundationDB's default).
pub const WATCHES: usize = 10_000;

/// Maximum bytes of rows in one page of a range read, structure included. A page then fits into one NATS message of
/// default size (1 MiB) with room to spare, and no read occupies the store for long.
pub const PAGE_BYTES: usize = 512 * 1024;

/// Maximum bytes of keys and values that one range read of a transaction collects before it returns.
pub const RANGE_BYTES: usize = 10_000_000;

const _: () = assert!(KEY_BYTES + PREFIX_BYTES + 1 + STAMP_PLACE_BYTES <= 10_000);

// A page holds at least one row, whatever its size.
const _: () = assert!(PAGE_BYTES >= KEY_BYTES + VALUE_BYTES);

/// Checks a key to be read or written.
///
/// # Errors
/// [`StoreError::KeyTooLarge`], [`StoreError::KeyReserved`].
pub fn check_key(key: &[u8]) -> Result<(), StoreError> {
    if key.len() > KEY_BYTES {
        return Err(StoreError::KeyTooLarge { bytes: key.len() });
    }
    if key >= KEYS_END {
        return Err(StoreError::KeyReserved);
    }
    Ok(())
}

/// Checks a value to be written.
///
/// # Errors
/// [`StoreError::ValueTooLarge`].
pub fn check_value(value: &[u8]) -> Result<(), StoreError> {
    value_within(value.len())
}

fn value_within(bytes: usize) -> Result<(), StoreError> {
    if bytes > VALUE_BYTES {
        return Err(StoreError::ValueTooLarge { bytes });
    }
    Ok(())
}

/// Checks a range to be read, cleared or added to the conflicts. Its end may be one byte longer than a key, as in a
/// range of only the longest key.
///
/// # Errors
/// [`StoreError::RangeInverted`], [`StoreError::KeyTooLarge`], [`StoreError::KeyReserved`].
pub fn check_range(range: &KeyRange) -> Result<(), StoreError> {
    if range.begin > range.end {
        return Err(StoreError::RangeInverted);
    }
    if let Some(long) = [&range.begin, &range.end]
        .into_iter()
        .find(|key| key.len() > KEY_BYTES + 1)
    {
        return Err(StoreError::KeyTooLarge { bytes: long.len() });
    }
    if range.end.as_ref() > KEYS_END {
        return Err(StoreError::KeyReserved);
    }
    Ok(())
}

/// Checks a whole commit that a store received from another process. The store puts `prefix` bytes before each key.
///
/// # Errors
/// The limit that is exceeded.
pub fn check_commit(request: &CommitRequest, prefix: usize) -> Result<(), StoreError> {
    for range in request.read_conflicts.iter().chain(&request.write_conflicts) {
        check_range(range)?;
    }
    for mutation in &request.mutations {
        check_mutation(mutation)?;
    }
    let bytes = request.bytes(prefix);
    if bytes > TRANSACTION_BYTES {
        return Err(StoreError::TransactionTooLarge { bytes });
    }
    Ok(())
}

/// Checks one mutation; a versionstamped one at its size after stamping.
///
/// # Errors
/// The limit that is exceeded.
pub fn check_mutation(mutation: &Mutation) -> Result<(), StoreError> {
    match mutation {
        Mutation::Set { key, value } => {
            check_key(key)?;
            check_value(value)
        }
        Mutation::Clear { key } | Mutation::Add { key, .. } => check_key(key),
        Mutation::ClearRange { range } => check_range(range),
        Mutation::SetStampedKey { key, value } => {
            check_key(&key.sample())?;
            check_value(value)
        }
        Mutation::SetStampedValue { key, value } => {
            check_key(key)?;
            value_within(value.sample().len() + STAMP_PLACE_BYTES)
        }
    }
}
