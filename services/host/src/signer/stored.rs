//! A signer's checkpoints and records of keys, as the store has them. Nothing is verified here.

use annals_ids::Shard;
use annals_proof::{
    SignedNote, VerifierKey,
    note::{NoteSignature, SIGNATURES},
    succession::KeyRecord,
};
use annals_store::{KeyRange, ScanOrder, Store, StoreError, Transaction, layout::checkpoints};

/// Number of newest checkpoints that stay in the store, cosigned or not: a witness has ten minutes to return its
/// cosignature.
pub const KEPT: usize = 64;

/// The newest checkpoint in a store, unverified, and the size of its tree.
///
/// # Errors
/// When the store does not answer, or it is not a note.
pub async fn newest(store: &Store, shard: Shard) -> Result<Option<(u64, SignedNote)>, StoreError> {
    let read = |transaction: Transaction| async move {
        let page = transaction
            .get_range(&checkpoints::checkpoints(shard), 1, ScanOrder::Reverse)
            .await?;
        let Some((key, value)) = page.rows.first() else {
            return Ok(None);
        };
        Ok(Some((checkpoints::size_of(key)?, stored_note(value)?)))
    };
    store.read(read).await
}

/// The checkpoint of `size` leaves in a store, unverified.
///
/// # Errors
/// When the store does not answer, or it is not a note.
pub async fn of_size(store: &Store, shard: Shard, size: u64) -> Result<Option<SignedNote>, StoreError> {
    let key = &checkpoints::checkpoint_key(shard, size);
    let value = store
        .read(|transaction: Transaction| async move { transaction.get(key).await })
        .await?;
    value.map(|value| stored_note(&value)).transpose()
}

/// The checkpoint of at least `least` leaves in a store that is best shown to others: the newest that is cosigned, or
/// else the newest. If there is none, the size of the newest, or 0.
///
/// # Errors
/// When the store does not answer, or one is not a note.
pub async fn covering(store: &Store, shard: Shard, least: u64) -> Result<Result<SignedNote, u64>, StoreError> {
    let range = &KeyRange::new(
        checkpoints::checkpoint_key(shard, least),
        checkpoints::checkpoints(shard).end,
    );
    let read = |transaction: Transaction| async move {
        let page = transaction.get_range(range, LOOKED_AT, ScanOrder::Reverse).await?;
        let notes = page.rows.iter().map(|(_, value)| stored_note(value));
        notes.collect::<Result<Vec<_>, _>>()
    };
    let mut notes: Vec<SignedNote> = store.read(read).await?;
    // The log's own signatures have its name, which is the first line.
    let is_cosigned = |note: &SignedNote| {
        let origin = note.text().lines().next();
        note.signatures().iter().any(|held| Some(held.name.as_str()) != origin)
    };
    if notes.is_empty() {
        let newest = newest(store, shard).await?;
        return Ok(Err(newest.map_or(0, |(size, _)| size)));
    }
    let best = notes.iter().position(is_cosigned).unwrap_or(0);
    Ok(Ok(notes.swap_remove(best)))
}

/// Adds these witnesses' signatures in `note` to the checkpoint of `size` leaves; returns how many were added. Nothing
/// is added to a checkpoint other than the one they have signed.
///
/// # Errors
/// When the store does not answer.
pub async fn add_cosignatures(
    store: &Store,
    shard: Shard,
    size: u64,
    note: &SignedNote,
    witnesses: &[VerifierKey],
) -> Result<usize, StoreError> {
    let of = |witness: &VerifierKey, signature: &NoteSignature| {
        (witness.name(), witness.id()) == (&signature.name, signature.id)
    };
    let signatures = note.signatures().iter();
    let added: Vec<&NoteSignature> = signatures
        .filter(|signature| witnesses.iter().any(|witness| of(witness, signature)))
        .collect();
    let (key, added) = (&checkpoints::checkpoint_key(shard, size), &added);
    let work = |transaction: Transaction| async move {
        let Some(value) = transaction.get(key).await? else {
            return Ok::<_, StoreError>(0);
        };
        let mut held = stored_note(&value)?;
        if held.text() != note.text() || held.signatures().len() + added.len() > SIGNATURES {
            return Ok(0);
        }
        added.iter().for_each(|signature| held.add((*signature).clone()));
        transaction.set(key, held.to_string().as_bytes())?;
        Ok(added.len())
    };
    store.run_repeatable(work).await.map(|(count, _)| count)
}

fn stored_note(value: &[u8]) -> Result<SignedNote, StoreError> {
    SignedNote::parse(value).map_err(|error| StoreError::Corrupt(error.to_string().into()))
}

/// The records of all keys in a store, unverified.
///
/// # Errors
/// When the store does not answer, or one is not a record.
pub async fn key_records(store: &Store, shard: Shard) -> Result<Vec<(u64, KeyRecord)>, StoreError> {
    let read = |transaction: Transaction| async move {
        let page = transaction
            .get_range(&checkpoints::signers(shard), RECORDS_READ, ScanOrder::Forward)
            .await?;
        let records = page.rows.iter().map(|(key, value)| {
            let record = KeyRecord::parse(value).map_err(|error| StoreError::Corrupt(error.to_string().into()))?;
            Ok((checkpoints::size_of(key)?, record))
        });
        records.collect()
    };
    store.read(read).await
}

/// Maximum keys of a log that are read: one a month for eight decades.
pub(super) const RECORDS_READ: usize = 1_000;

/// Maximum checkpoints that are searched for a cosigned one: all that are kept anyway, and as many besides.
pub(super) const LOOKED_AT: usize = 2 * KEPT;
