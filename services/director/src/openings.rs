//! Openings: what a new holder writes into the store before its gate may open (rules E3, E6), and the connection over
//! which it receives acknowledgements (rule E8). The holders call this,
//! not the director; it is conditional on the director's grants.

use annals_ids::{Epoch, OwnerId, Shard};
use annals_store::{
    Store, StoreError, Transaction,
    archive::ArchiveReader,
    layout::{
        archive,
        owners::{self, Cursor, HolderConnection, OpeningRecord, OwnerRecord},
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

/// Writes openings, oldest first; the last is the new holder's own, which receives acknowledgements over `connection`.
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
    connection: &str,
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
        attach(&transaction, owner, own.epoch, Some(connection)).await?;
        Ok::<_, StoreError>(Recorded::Yes)
    };
    store.run_repeatable(work).await.map(|(recorded, _)| recorded)
}

/// Whether the store still grants this epoch (rule E6), to a holder that receives acknowledgements over `connection`.
///
/// # Errors
/// When the store cannot be used.
pub async fn confirm(store: &Store, owner: OwnerId, epoch: Epoch, connection: &str) -> Result<bool, StoreError> {
    attached(store, owner, epoch, Some(connection)).await
}

/// Records that the holder of this epoch has ended: everything it did has left, and it appends and shows nothing more
/// (rule E8). Returns whether the store still grants it the epoch.
///
/// # Errors
/// When the store cannot be used.
pub async fn release(store: &Store, owner: OwnerId, epoch: Epoch) -> Result<bool, StoreError> {
    attached(store, owner, epoch, None).await
}

async fn attached(store: &Store, owner: OwnerId, epoch: Epoch, connection: Option<&str>) -> Result<bool, StoreError> {
    let work = |transaction: Transaction| async move {
        let holds = granted(&transaction, owner).await? == Some(epoch);
        if holds {
            attach(&transaction, owner, epoch, connection).await?;
        }
        Ok::<_, StoreError>(holds)
    };
    store.run_repeatable(work).await.map(|(holds, _)| holds)
}

/// Writes the connection, if it is not there yet: most confirmations change nothing.
async fn attach(
    transaction: &Transaction,
    owner: OwnerId,
    epoch: Epoch,
    connection: Option<&str>,
) -> Result<(), StoreError> {
    let key = owners::connection_key(owner);
    let held = HolderConnection {
        epoch,
        connection: connection.map(str::to_owned),
    }
    .encode();
    if transaction.get(&key).await?.is_none_or(|known| *known != held) {
        transaction.set(&key, &held)?;
    }
    Ok(())
}

async fn granted(transaction: &Transaction, owner: OwnerId) -> Result<Option<Epoch>, StoreError> {
    let value = transaction.get(&owners::owner_key(owner)).await?;
    value
        .map(|value| OwnerRecord::decode(&value).map(|record| record.epoch))
        .transpose()
}
