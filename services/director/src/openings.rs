//! Openings: what a new holder writes into the store before its gate may open (rules E3, E6). The holders call this,
//! not the director; it is conditional on the director's grants.

use annals_ids::{Epoch, OwnerId, Shard};
use annals_store::{
    Store, StoreError, Transaction,
    archive::ArchiveReader,
    layout::{
        archive,
        owners::{self, Cursor, OpeningRecord, OwnerRecord},
    },
};

/// Result of recording an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It is recorded.
    Yes,
    /// A higher epoch is granted.
    Superseded,
    /// db has archived another batch of that number since: the log has lost the opening.
    CursorPassed,
}

/// Writes openings, oldest first; the last is the new holder's own.
///
/// `hash_of` gives the hash of a batch's bytes: the cursor may be past an opening if the archived batch is that
/// opening.
///
/// # Errors
/// When the store cannot be used.
pub async fn record(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
    openings: &[OpeningRecord],
    hash_of: fn(&[u8]) -> Option<annals_ids::Hash>,
) -> Result<Recorded, StoreError> {
    let Some(own) = openings.last() else {
        return Ok(Recorded::Yes);
    };
    let work = |transaction: Transaction| async move {
        if granted(&transaction, owner).await? != Some(own.epoch) {
            return Ok(Recorded::Superseded);
        }
        let cursor = Cursor::decode(transaction.get(&owners::cursor_key(owner)).await?.as_deref())?;
        for opening in openings {
            let key = owners::opening_key(owner, opening.epoch);
            if transaction
                .get(&key)
                .await?
                .is_some_and(|value| *value == opening.encode())
            {
                continue;
            }
            if opening.number <= cursor.batch {
                let place = transaction.get(&archive::place_key(owner, opening.number)).await?;
                let leaf = place.map(|place| archive::decode_place(&place)).transpose()?;
                let kept = match leaf {
                    Some(leaf) => {
                        let mut reader = ArchiveReader::new(&transaction, shard);
                        reader.batch(leaf, owner, opening.number).await?
                    }
                    None => None,
                };
                if kept.and_then(|kept| hash_of(kept.header())) != Some(opening.hash) {
                    return Ok(Recorded::CursorPassed);
                }
            }
            transaction.set(&key, &opening.encode())?;
        }
        Ok::<_, StoreError>(Recorded::Yes)
    };
    store.run_repeatable(work).await.map(|(recorded, _)| recorded)
}

/// Whether the store still grants this epoch (rule E6).
///
/// # Errors
/// When the store cannot be read.
pub async fn confirm(store: &Store, owner: OwnerId, epoch: Epoch) -> Result<bool, StoreError> {
    store
        .read(|transaction| async move { Ok(granted(&transaction, owner).await? == Some(epoch)) })
        .await
}

async fn granted(transaction: &Transaction, owner: OwnerId) -> Result<Option<Epoch>, StoreError> {
    let value = transaction.get(&owners::owner_key(owner)).await?;
    value
        .map(|value| OwnerRecord::decode(&value).map(|record| record.epoch))
        .transpose()
}
