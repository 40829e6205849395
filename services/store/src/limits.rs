//! The store's limits, which are FoundationDB's: what fits into the embedded store must fit into the one of production.

use std::time::Duration;

use crate::{CommitRequest, KeyRange, Mutation, StoreError};

/// Longest key, in bytes. FoundationDB takes 10,000 B: the rest is for the realm's prefix, for the byte that ends the range of
/// a single key and for the place of a versionstamp.
pub const KEY_BYTES: usize = 9_900;

/// Longest prefix under which a realm's keys lie in a store that it shares, in bytes.
pub const PREFIX_BYTES: usize = 64;

/// Longest value, in bytes.
pub const VALUE_BYTES: usize = 100_000;

/// Most bytes of one transaction, as [`CommitRequest::bytes`] counts them; what a store puts before each key counts too.
pub const TRANSACTION_BYTES: usize = 10_000_000;

/// What a mutation takes in a transaction beside its key and value, in bytes: its structure in FoundationDB's client, which
/// holds a checksum too in later releases of 7.3 (40 B before).
pub const MUTATION_BYTES: usize = 56;

/// What a conflict range takes in a transaction beside its two keys, in bytes: likewise.
pub const CONFLICT_BYTES: usize = 32;

/// What says where in a key or value the versionstamp goes, in bytes; a value that will hold one is as much shorter.
pub const STAMP_PLACE_BYTES: usize = 4;

/// Age, from its read version on, at which a [`Transaction`](crate::Transaction) can no longer read or commit. It bounds how
/// long a store has to keep old values and the record of recent writes; one may keep them longer, or not as long.
pub const TRANSACTION_AGE: Duration = Duration::from_secs(5);

/// Every key lies below this one.
pub const KEYS_END: &[u8] = b"\xff";

/// Most keys that one `clear_range` may remove. The embedded store writes a tombstone for each, in the same write as the
/// rest of its group: a million short keys are some 50 MB of journal.
pub const CLEARED_KEYS: usize = 1_000_000;

/// Most watches waiting on one store at a time (FoundationDB's default).
pub const WATCHES: usize = 10_000;

/// Most bytes of rows in one page of a range read, structure included: a page then fits into one NATS message of default size (1 MiB)
/// with room to spare, and no read holds the store for long.
pub const PAGE_BYTES: usize = 512 * 1024;

/// Most bytes of keys and values that one range read of a transaction gathers before it returns what it has.
pub const RANGE_BYTES: usize = 10_000_000;

const _: () = assert!(KEY_BYTES + PREFIX_BYTES + 1 + STAMP_PLACE_BYTES <= 10_000);

// A page holds at least one row, whatever its size.
const _: () = assert!(PAGE_BYTES >= KEY_BYTES + VALUE_BYTES);

/// Checks a key that is to be read or written.
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

/// Checks a value that is to be written.
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

/// Checks a range that is to be read, cleared or made to conflict. Its end may be one byte longer than a key, as the end of
/// a range that holds just the longest key is.
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

/// Checks a whole commit, as a store must that got it from elsewhere. It puts `prefix` bytes before each key.
///
/// # Errors
/// Whichever limit it breaks.
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

/// Checks one mutation; of versionstamped ones, what they will be once stamped.
///
/// # Errors
/// Whichever limit it breaks.
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
