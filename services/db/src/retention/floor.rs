//! Reading the horizon and the floors at it.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;

use annals_event::OwnerState;
use annals_ids::{BatchNumber, OwnerId, Shard};
use annals_store::{
    MemoryStore, Store, StoreError, Transaction,
    layout::retention::{self as layout, Horizon},
};

use super::Kind;
use crate::{
    recovery::{RecoveryError, read_entities, read_own},
    restoring::{Row, owners_of, read_rows, write_rows},
};

/// Maximum attempts of a read while the horizon moves; each move takes whole segments.
const READINGS: usize = 10;

/// Reads a shard's horizon: the end of the part of the archive whose events may have been deleted.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read_horizon(store: &Store, shard: Shard) -> Result<Option<Horizon>, StoreError> {
    let read = |transaction: Transaction| async move { transaction.get(&layout::horizon_key(shard)).await };
    let value = store.read(read).await?;
    value.map(|value| Horizon::decode(&value)).transpose()
}

/// Batch of an owner's floor, if it has one and events below it may have been deleted.
///
/// # Errors
/// When it cannot be read.
#[boxed]
pub async fn read_floor_batch(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
) -> Result<Option<BatchNumber>, RecoveryError> {
    let failed = |source| RecoveryError::Store { owner, source };
    for _ in 0..READINGS {
        let Some(horizon) = read_horizon(store, shard).await.map_err(failed)? else {
            return Ok(None);
        };
        let own = read_own(store, owner, &layout::own_key(shard, horizon.area, owner)).await;
        if read_horizon(store, shard).await.map_err(failed)? == Some(horizon) {
            let passing = own?.filter(|own| Kind::of(own.kind) == Kind::Passing);
            return Ok(passing.map(|own| own.tail.batch));
        }
    }
    Err(failed(StoreError::Conflict))
}

/// Reads the floor of an owner (its state at the horizon), if there is one and it is after batch `above`.
///
/// # Errors
/// When it cannot be read.
#[boxed]
pub async fn read_floor(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
    above: BatchNumber,
) -> Result<Option<OwnerState>, RecoveryError> {
    let failed = |source| RecoveryError::Store { owner, source };
    let mut horizon = read_horizon(store, shard).await.map_err(failed)?;
    for _ in 0..READINGS {
        let Some(found) = horizon else { return Ok(None) };
        let floor = read_floor_in(store, shard, owner, found, above).await;
        horizon = read_horizon(store, shard).await.map_err(failed)?;
        // The area is not written again before the horizon has moved on.
        if horizon == Some(found) {
            return floor;
        }
    }
    Err(failed(StoreError::Conflict))
}

async fn read_floor_in(
    store: &Store,
    shard: Shard,
    owner: OwnerId,
    horizon: Horizon,
    above: BatchNumber,
) -> Result<Option<OwnerState>, RecoveryError> {
    let own = read_own(store, owner, &layout::own_key(shard, horizon.area, owner)).await?;
    let Some(own) = own.filter(|own| own.tail.batch > above) else {
        return Ok(None);
    };
    let entities = layout::entities(shard, horizon.area, owner);
    read_entities(store, own, entities, layout::entity_of).await.map(Some)
}

/// Reads the rows of a shard's horizon, of its floors, and of the cell parts before it.
pub(crate) async fn read_retained(store: &Store, shard: Shard) -> Result<Vec<Row>, StoreError> {
    let mut horizon = read_horizon(store, shard).await?;
    for _ in 0..READINGS {
        let Some(found) = horizon else { return Ok(Vec::new()) };
        let mut rows = vec![(layout::horizon_key(shard), found.encode())];
        read_rows(store, layout::floors(shard, found.area), &mut rows).await?;
        let mut parts = Vec::new();
        read_rows(store, layout::parts(shard), &mut parts).await?;
        for row in parts {
            if layout::part_of(&row.0)?.1 <= found.leaf {
                rows.push(row);
            }
        }
        let mut ended = Vec::new();
        read_rows(store, layout::ended(shard), &mut ended).await?;
        for row in ended {
            if layout::ended_of(&row.0)?.1 <= found.leaf {
                rows.push(row);
            }
        }
        horizon = read_horizon(store, shard).await?;
        if horizon == Some(found) {
            return Ok(rows);
        }
    }
    Err(StoreError::Conflict)
}

/// Decodes the floors among rows of [`crate::read_unlogged`].
///
/// # Errors
/// When one cannot be read.
#[boxed]
pub async fn floors_of(rows: &[Row], shard: Shard) -> Result<BTreeMap<OwnerId, OwnerState>, RecoveryError> {
    let failed = |source| RecoveryError::Store {
        owner: OwnerId(0),
        source,
    };
    // Reads them as from a store.
    let store = MemoryStore::new().store();
    let tables = layout::horizon_key(shard)[0]..layout::parts(shard).begin[0];
    let is_needed = |(key, _): &&Row| key.first().is_some_and(|table| tables.contains(table));
    let needed: Vec<Row> = rows.iter().filter(is_needed).cloned().collect();
    write_rows(&store, &needed).await.map_err(failed)?;
    let mut floors = BTreeMap::new();
    for owner in owners_of(rows).map_err(failed)?.into_keys() {
        let floor = read_floor(&store, shard, owner, BatchNumber(0)).await?;
        floors.extend(floor.map(|floor| (owner, floor)));
    }
    Ok(floors)
}
