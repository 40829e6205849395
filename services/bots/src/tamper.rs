//! Removes an event from a realm's archive, to show that the check detects it.

use annals_db::{RecoveryError, read_archived};
use annals_director::read_owners;
use annals_event::{Batch, Subject};
use annals_ids::{BatchNumber, EntityId, HistoryNumber, LogPosition, Part};
use annals_store::{KeyRange, Store, StoreError, layout::archive};
use thiserror::Error;

/// Batches per read.
const PAGE: usize = 64;

/// The removed event; its whole batch was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its position.
    pub at: LogPosition,
    pub entity: EntityId,
    /// Its entity part.
    pub part: Part,
    /// Its history number.
    pub number: HistoryNumber,
}

/// Why nothing was removed.
#[derive(Debug, Error)]
pub enum TamperError {
    /// No visible event lies between two others.
    #[error("the archive has no event between two others that is visible to clients")]
    Nothing,
    /// The archive cannot be read.
    #[error("the archive cannot be read")]
    Archive(#[from] RecoveryError),
    /// The store does not answer.
    #[error("the realm's store cannot be used")]
    Store(#[from] StoreError),
}

/// Removes a batch from the archive: of all visible events that lie between two others of their part in other batches,
/// the batch of the middle one. Removing the last event of a part would leave no hole in its numbers.
///
/// # Errors
/// When there is none, or the store does not answer.
pub async fn remove_one_event(store: &Store) -> Result<Removed, TamperError> {
    let mut visible = Vec::new();
    let owners = read_owners(store).await?;
    for (owner, record) in &owners {
        let mut after = BatchNumber(0);
        loop {
            let batches = read_archived(store, record.shard, *owner, after, PAGE).await?;
            if batches.is_empty() {
                break;
            }
            for (_, kept) in &batches {
                after = after.next();
                let events = Batch::read(kept.header()).map(|batch| batch.events).unwrap_or_default();
                visible.extend(events.iter().filter_map(|event| match (event.subject, event.history) {
                    (Subject::Entity(entity, part), Some(number)) => Some(Removed {
                        at: LogPosition {
                            owner: *owner,
                            batch: after,
                        },
                        entity,
                        part,
                        number,
                    }),
                    _ => None,
                }));
            }
        }
    }
    visible.sort_by_key(|event| (event.entity, event.part, event.number));
    let is_between = |three: &&[Removed]| {
        let of = |event: &Removed| (event.entity, event.part);
        let [before, event, after] = three else { return false };
        of(before) == of(event) && of(event) == of(after) && before.at != event.at && event.at != after.at
    };
    let between: Vec<Removed> = visible.windows(3).filter(is_between).map(|three| three[1]).collect();
    let removed = *between.get(between.len() / 2).ok_or(TamperError::Nothing)?;
    let (owner, batch) = (removed.at.owner, removed.at.batch);
    let place = archive::place_key(owner, batch);
    let shard = owners
        .iter()
        .find_map(|(found, record)| (*found == owner).then_some(record.shard))
        .ok_or(TamperError::Nothing)?;
    let transaction = store.begin();
    if let Some(leaf) = transaction.get(&place).await? {
        let leaf = archive::decode_place(&leaf)?;
        transaction.clear_range(&KeyRange::prefix(&archive::leaf_key(shard, leaf)))?;
    }
    transaction.clear(&place)?;
    transaction.commit().await?;
    Ok(removed)
}
