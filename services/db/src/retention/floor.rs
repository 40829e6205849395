//! Reading the horizon and what stands at it.

use annals_event::OwnerState;
use annals_ids::{BatchNumber, OwnerId, Shard};
use annals_store::{
    KeyRange, Order, Store, StoreError, Transaction, key_after,
    layout::retention::{self as layout, Horizon},
};

use crate::{
    recovery::{RecoveryError, read_entities, read_own},
    restoring::Row,
};

/// How often something is read from under a horizon that moves meanwhile, each time by segments.
const READINGS: usize = 10;

/// Rows read at a time.
const PAGE: usize = 256;

/// Up to where a shard's archive was let go.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_horizon(store: &Store, shard: Shard) -> Result<Option<Horizon>, StoreError> {
    let read = |transaction: Transaction| async move { transaction.get(&layout::horizon_key(shard)).await };
    let value = store.read(read).await?;
    value.map(|value| Horizon::decode(&value)).transpose()
}

/// The floor of an owner: its state at the horizon, if there is one and it stands behind batch `above`.
///
/// # Errors
/// When it cannot be read.
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
        // Nobody writes into its area before the horizon has moved on.
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

/// The rows of a shard's horizon, of its floors, and of the cell parts before it.
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
        horizon = read_horizon(store, shard).await?;
        if horizon == Some(found) {
            return Ok(rows);
        }
    }
    Err(StoreError::Conflict)
}

async fn read_rows(store: &Store, mut range: KeyRange, rows: &mut Vec<Row>) -> Result<(), StoreError> {
    loop {
        let wanted = &range;
        let read = |transaction: Transaction| async move { transaction.get_range(wanted, PAGE, Order::Forward).await };
        let page = store.read(read).await?;
        rows.extend(page.rows.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => return Ok(()),
        }
    }
}
