//! Recovery: an owner's state from its snapshot and the archive (the first half of rule E1). Takers, replay and db itself
//! all begin here.

use annals_event::{Batch, Image, Impossible, Malformed, OwnerState, Reader};
use annals_ids::{BatchNumber, EntityId, LeafIndex, OwnerId, OwnerKind, Shard};
use annals_store::{
    KeyRange, Order, Store, StoreError, Transaction,
    archive::ArchiveReader,
    key_after,
    layout::{
        archive, owners,
        owners::Cursor,
        read_chunks,
        snapshots::{self, Position},
    },
};
use thiserror::Error;

use crate::migrations::Migrations;

/// Rows read at a time.
const PAGE: usize = 256;

/// Batches read in one transaction: well within the 5 s that one may last.
const BATCHES_AT_ONCE: usize = 64;

/// How often a snapshot is read that is replaced meanwhile, each time by a newer one that takes thousands of batches.
const SNAPSHOT_READINGS: usize = 10;

/// Why an owner's state could not be rebuilt.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// The store did not answer.
    #[error("the store did not give what is archived of owner {owner}")]
    Store {
        /// Whose state.
        owner: OwnerId,
        /// What it said.
        #[source]
        source: StoreError,
    },
    /// Something in the store is not what was put there.
    #[error("{what} of owner {owner} is damaged: restore it from a backup")]
    Damaged {
        /// Whose state.
        owner: OwnerId,
        /// What.
        what: String,
        /// What is wrong.
        #[source]
        source: Malformed,
    },
    /// An archived batch is not there.
    #[error("batch {batch} of owner {owner} is missing from the archive: restore it from a backup")]
    Missing {
        /// Whose state.
        owner: OwnerId,
        /// Which batch.
        batch: BatchNumber,
    },
    /// The archive is not that of one run of one core.
    #[error("the archive contradicts itself; this is a defect, or it was edited")]
    Impossible(#[from] Impossible),
}

/// An owner at its cursor.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Its state.
    pub state: OwnerState,
    /// Up to where it is archived.
    pub cursor: Cursor,
}

/// Rebuilds the state of an owner up to its cursor. It is under the definitions of the log's last batch, not under the
/// realm's present ones where the log has not gone over to them yet.
///
/// # Errors
/// When the store cannot be read or holds something else than db put there.
pub async fn recover(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
    kind: impl Into<OwnerKind>,
) -> Result<Recovered, RecoveryError> {
    let mut state = read_snapshot(store, owner, kind.into()).await?;
    let cursor = read_cursor(store, owner)
        .await
        .map_err(|source| RecoveryError::Store { owner, source })?;
    let mut migrations = None;
    while state.tail.batch < cursor.batch {
        let batches = read_archived(store, shard, owner, state.tail.batch, BATCHES_AT_ONCE).await?;
        let next = state.tail.batch.next();
        if batches.is_empty() {
            return Err(RecoveryError::Missing { owner, batch: next });
        }
        for (_, bytes) in batches {
            // More may have been archived meanwhile. What a batch says its number is does not end this: it may be damaged.
            if state.tail.batch >= cursor.batch {
                break;
            }
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

/// The archived batches of an owner after `after`, in order, with their leaves: some of them, at most `limit`; none only
/// where there are no more.
///
/// # Errors
/// When the store cannot be read or the archive has a gap.
pub async fn read_archived(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
    after: BatchNumber,
    limit: usize,
) -> Result<Vec<(LeafIndex, Vec<u8>)>, RecoveryError> {
    let work = |transaction: Transaction| async move {
        let places = archive::places_after(owner, after);
        let page = transaction
            .snapshot()
            .get_range(&places, limit.min(BATCHES_AT_ONCE), Order::Forward)
            .await?;
        let mut reader = ArchiveReader::new(&transaction, shard);
        let mut batches = Vec::new();
        let mut expected = after;
        for (key, place) in page.rows {
            expected = expected.next();
            let leaf = archive::decode_place(&place)?;
            match reader.batch(leaf, owner, expected).await? {
                Some(bytes) if key == archive::place_key(owner, expected) => batches.push((leaf, bytes)),
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

/// How far an owner's log is folded.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_cursor(store: &Store, owner: OwnerId) -> Result<Cursor, StoreError> {
    store
        .read(|transaction| async move {
            let value = transaction.snapshot().get(&owners::cursor_key(owner)).await?;
            Cursor::decode(value.as_deref())
        })
        .await
}

/// Where an owner's newest snapshot is, if there is one.
///
/// # Errors
/// When the store cannot be read.
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

/// The newest snapshot. It may take several transactions to read: nobody writes into its area before a newer one has taken
/// its place, so it is whole if it has kept its place.
async fn read_snapshot(store: &Store, owner: OwnerId, kind: OwnerKind) -> Result<OwnerState, RecoveryError> {
    let failed = |source| RecoveryError::Store { owner, source };
    let mut position = read_position(store, owner).await.map_err(failed)?;
    for _ in 0..SNAPSHOT_READINGS {
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
    let failed = |source| RecoveryError::Store { owner, source };
    let own_key = &snapshots::own_key(owner, at.area);
    let own = store.read(|transaction| async move { read_chunks(&transaction, own_key).await });
    let own = own.await.map_err(failed)?.unwrap_or_default();
    let damaged = |what: String| move |source| RecoveryError::Damaged { owner, what, source };
    let mut state = OwnerState::read_own(&own).map_err(damaged("the snapshot".into()))?;
    for (entity, bytes) in read_images(store, owner, at).await.map_err(failed)? {
        let mut reader = Reader::new(&bytes);
        let image = Image::read(&mut reader).and_then(|image| reader.finish("end of image").map(|()| image));
        state.restore(entity, image.map_err(damaged(format!("the image of entity {entity}")))?);
    }
    Ok(state)
}

async fn read_images(store: &Store, owner: OwnerId, at: Position) -> Result<Vec<(EntityId, Vec<u8>)>, StoreError> {
    let mut images: Vec<(EntityId, Vec<u8>)> = Vec::new();
    let mut range = snapshots::entities(owner, at.area);
    loop {
        let rows = &range;
        let read = |transaction: Transaction| async move { transaction.get_range(rows, PAGE, Order::Forward).await };
        let page = store.read(read).await?;
        for (key, value) in &page.rows {
            let entity = snapshots::entity_of(key)?;
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
