//! Recovery: rebuilds an owner's state from its snapshot and the archive (the first half of rule E1). Takers, replay
//! and db itself begin here.

use annals_event::{Batch, Image, Impossible, Malformed, OwnerState, Reader};
use annals_ids::{BatchNumber, EntityId, LeafIndex, OwnerId, OwnerKind, Shard};
use annals_store::{
    ArchivedBatch, KeyRange, ScanOrder, Store, StoreError, Transaction,
    archive::ArchiveReader,
    key_after,
    layout::{
        archive, owners,
        owners::Cursor,
        read_chunks,
        snapshots::{self, Position},
    },
};
use async_recursion::async_recursion as boxed;
use thiserror::Error;

use crate::migrations::Migrations;
use crate::retention::read_floor;

/// Rows read at a time.
const PAGE: usize = 256;

/// Batches read in one transaction: far below the 5 s limit of a transaction.
const BATCHES_AT_ONCE: usize = 64;

/// Maximum attempts to read a snapshot or a floor that is replaced meanwhile; each newer one takes thousands of batches
/// to come.
const READINGS: usize = 10;

/// Reason why an owner's state could not be rebuilt.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// The store did not answer.
    #[error("the store did not return the archive of owner {owner}")]
    Store {
        owner: OwnerId,
        /// The store's error.
        #[source]
        source: StoreError,
    },
    /// Data in the store is damaged.
    #[error("{what} of owner {owner} is damaged: restore it from a backup")]
    Damaged {
        owner: OwnerId,
        /// What is damaged.
        what: String,
        /// Decoding error.
        #[source]
        source: Malformed,
    },
    /// An archived batch is missing.
    #[error("batch {batch} of owner {owner} is missing from the archive: restore it from a backup")]
    Missing { owner: OwnerId, batch: BatchNumber },
    /// The events of an archived batch were deleted, and no later floor was found.
    #[error(
        "the events of batch {batch} of owner {owner} were deleted by retention, and no later state is stored: \
         restore it from a backup"
    )]
    Deleted { owner: OwnerId, batch: BatchNumber },
    /// The archive ends before the floor, as it does while a realm is restored.
    #[error("the archive of owner {} ends below its floor, batch {}", .0.owner, .0.tail.batch)]
    BelowFloor(Box<OwnerState>),
    /// The archive is not that of one run of one core.
    #[error("the archive contradicts itself; this is a software defect, or the archive was edited")]
    Impossible(#[from] Impossible),
}

/// An owner at its cursor.
#[derive(Clone, Debug)]
pub struct Recovered {
    pub state: OwnerState,
    /// Cursor up to which it is archived.
    pub cursor: Cursor,
}

/// Rebuilds the state of an owner up to its cursor. The state is under the definitions of the log's last batch; these
/// are not the realm's present ones if the log has not gone over yet.
///
/// # Errors
/// When the store cannot be read or its data is damaged.
pub async fn recover(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
    kind: impl Into<OwnerKind>,
) -> Result<Recovered, RecoveryError> {
    let kind = kind.into();
    for _ in 1..READINGS {
        match recover_once(store, shard, owner, kind).await {
            // The floor has risen since it was read.
            Err(RecoveryError::Deleted { .. }) => {}
            recovered => return recovered,
        }
    }
    recover_once(store, shard, owner, kind).await
}

#[boxed]
async fn recover_once(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
    kind: OwnerKind,
) -> Result<Recovered, RecoveryError> {
    let mut state = read_snapshot(store, owner, kind).await?;
    let failed = |source| RecoveryError::Store { owner, source };
    let cursor = read_cursor(store, owner).await.map_err(failed)?;
    if kind == OwnerKind::Cell
        && let Some(floor) = read_floor(store, shard, owner, state.tail.batch).await?
    {
        if floor.tail.batch > cursor.batch {
            return Err(RecoveryError::BelowFloor(Box::new(floor)));
        }
        state = floor;
    }
    let mut migrations = None;
    while state.tail.batch < cursor.batch {
        let batches = read_archived(store, shard, owner, state.tail.batch, BATCHES_AT_ONCE).await?;
        let next = state.tail.batch.next();
        if batches.is_empty() {
            return Err(RecoveryError::Missing { owner, batch: next });
        }
        for (_, archived) in batches {
            // More may have been archived meanwhile. The number in a batch does not end the loop: the batch may be
            // damaged.
            if state.tail.batch >= cursor.batch {
                break;
            }
            let batch = state.tail.batch.next();
            let bytes = archived.whole().ok_or(RecoveryError::Deleted { owner, batch })?;
            let batch = read_batch(owner, &bytes)?;
            if migrations.is_none() && state.goes_over(&batch.header)? {
                let read = Migrations::read(store).await;
                migrations = Some(read.map_err(|source| RecoveryError::Store { owner, source })?);
            }
            match &migrations {
                None => state.fold(&batch)?,
                Some(migrations) => migrations.fold(&mut state, &batch)?,
            }
        }
    }
    Ok(Recovered { state, cursor })
}

/// Reads archived batches of an owner after `after`, in order, with their leaves: at most `limit`, and none only if
/// there are no more.
///
/// # Errors
/// When the store cannot be read or the archive has a gap.
#[boxed]
pub async fn read_archived(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
    after: BatchNumber,
    limit: usize,
) -> Result<Vec<(LeafIndex, ArchivedBatch)>, RecoveryError> {
    let work = |transaction: Transaction| async move {
        let places = archive::places_after(owner, after);
        let page = transaction
            .snapshot()
            .get_range(&places, limit.min(BATCHES_AT_ONCE), ScanOrder::Forward)
            .await?;
        let mut reader = ArchiveReader::new(&transaction, shard);
        let mut batches = Vec::new();
        let mut expected = after;
        for (key, place) in page.rows {
            expected = expected.next();
            let leaf = archive::decode_place(&place)?;
            match reader.batch(leaf, owner, expected).await? {
                Some(archived) if key == archive::place_key(owner, expected) => batches.push((leaf, archived)),
                _ => return Ok(Err(expected)),
            }
        }
        Ok::<_, StoreError>(Ok(batches))
    };
    let read = store
        .read(work)
        .await
        .map_err(|source| RecoveryError::Store { owner, source })?;
    read.map_err(|batch| RecoveryError::Missing { owner, batch })
}

/// Cursor up to which an owner's log is folded.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read_cursor(store: &Store, owner: OwnerId) -> Result<Cursor, StoreError> {
    store
        .read(|transaction| async move {
            let value = transaction.snapshot().get(&owners::cursor_key(owner)).await?;
            Cursor::decode(value.as_deref())
        })
        .await
}

/// Position of an owner's newest snapshot, if there is one.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read_position(store: &Store, owner: OwnerId) -> Result<Option<Position>, StoreError> {
    store
        .read(|transaction| async move {
            let value = transaction.snapshot().get(&snapshots::position_key(owner)).await?;
            value.map(|value| Position::decode(&value)).transpose()
        })
        .await
}

fn read_batch(owner: OwnerId, bytes: &[u8]) -> Result<Batch, RecoveryError> {
    Batch::read(bytes).map_err(|source| RecoveryError::Damaged {
        owner,
        what: "an archived batch".into(),
        source,
    })
}

/// Reads the newest snapshot. It may take several transactions: its area is not written before a newer snapshot has
/// replaced it, so it is complete if it is still the newest afterwards.
async fn read_snapshot(store: &Store, owner: OwnerId, kind: OwnerKind) -> Result<OwnerState, RecoveryError> {
    let failed = |source| RecoveryError::Store { owner, source };
    let mut position = read_position(store, owner).await.map_err(failed)?;
    for _ in 0..READINGS {
        let Some(found) = position else {
            return Ok(OwnerState::new(owner, kind));
        };
        let state = read_area(store, owner, found).await;
        position = read_position(store, owner).await.map_err(failed)?;
        if position == Some(found) {
            return state;
        }
    }
    Err(failed(StoreError::Conflict))
}

async fn read_area(store: &Store, owner: OwnerId, at: Position) -> Result<OwnerState, RecoveryError> {
    let batch = at.batch;
    let own = read_own(store, owner, &snapshots::own_key(owner, at.area)).await?;
    let own = own.ok_or(RecoveryError::Missing { owner, batch })?;
    read_entities(store, own, snapshots::entities(owner, at.area), snapshots::entity_of).await
}

/// An owner's own state as stored under `key`, if there is one.
pub(crate) async fn read_own(store: &Store, owner: OwnerId, key: &[u8]) -> Result<Option<OwnerState>, RecoveryError> {
    let own = store.read(|transaction| async move { read_chunks(&transaction, key).await });
    let own = own.await.map_err(|source| RecoveryError::Store { owner, source })?;
    let damaged = |source| RecoveryError::Damaged {
        owner,
        what: "a stored state".into(),
        source,
    };
    own.map(|own| OwnerState::read_own(&own)).transpose().map_err(damaged)
}

/// Adds the entities in `range` to an owner's own state.
pub(crate) async fn read_entities(
    store: &Store,
    mut state: OwnerState,
    range: KeyRange,
    entity_of: fn(&[u8]) -> Result<EntityId, StoreError>,
) -> Result<OwnerState, RecoveryError> {
    let owner = state.owner;
    let failed = |source| RecoveryError::Store { owner, source };
    for (entity, bytes) in read_images(store, range, entity_of).await.map_err(failed)? {
        let image = read_image(&bytes).map_err(|source| RecoveryError::Damaged {
            owner,
            what: format!("the image of entity {entity}"),
            source,
        })?;
        state.restore(entity, image);
    }
    Ok(state)
}

/// Decodes an image that is stored by itself.
pub(crate) fn read_image(bytes: &[u8]) -> Result<Image, Malformed> {
    let mut reader = Reader::new(bytes);
    let image = Image::read(&mut reader)?;
    reader.finish("end of image")?;
    Ok(image)
}

async fn read_images(
    store: &Store,
    mut range: KeyRange,
    entity_of: fn(&[u8]) -> Result<EntityId, StoreError>,
) -> Result<Vec<(EntityId, Vec<u8>)>, StoreError> {
    let mut images: Vec<(EntityId, Vec<u8>)> = Vec::new();
    loop {
        let rows = &range;
        let read =
            |transaction: Transaction| async move { transaction.get_range(rows, PAGE, ScanOrder::Forward).await };
        let page = store.read(read).await?;
        for (key, value) in &page.rows {
            let entity = entity_of(key)?;
            match images.last_mut().filter(|(last, _)| *last == entity) {
                Some((_, bytes)) => bytes.extend_from_slice(value),
                None => images.push((entity, value.to_vec())),
            }
        }
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => return Ok(images),
        }
    }
}
