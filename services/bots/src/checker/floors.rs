//! Where the histories of cell parts begin after retention (rule F14): the floors at the horizon.

use std::collections::{BTreeMap, BTreeSet};

use annals_audit::archive::of_recovery;
use annals_db::{Kind, read_floor, read_horizon};
use annals_def::Value;
use annals_event::{Image, OwnerState, Tail};
use annals_ids::{BatchNumber, EntityId, HistoryNumber, LeafIndex, MemberId, OwnerId, Shard, TypeId};
use annals_store::{
    Store, StoreError,
    layout::{owners::OwnerRecord, retention::Horizon},
};

/// Maximum attempts to read floors while the horizon moves; it moves by segments.
const READINGS: usize = 10;

/// The state of a cell part at the horizon: its earlier events were deleted.
#[derive(Clone, Debug)]
pub(super) struct Floor {
    pub(super) type_id: TypeId,
    pub(super) number: HistoryNumber,
    pub(super) properties: BTreeMap<MemberId, Value>,
}

/// Where the logs of cells begin, and the histories of the parts in them.
#[derive(Clone, Default)]
pub(super) struct Floors {
    horizons: BTreeMap<Shard, Option<Horizon>>,
    tails: BTreeMap<OwnerId, Tail>,
    cells: BTreeMap<EntityId, Floor>,
    /// The cell parts that had ended there while their homes were not notified yet.
    ended: BTreeSet<EntityId>,
}

impl Floors {
    /// Reads the floors of all owners, consistent per shard.
    pub(super) async fn read(store: &Store, owners: &BTreeMap<OwnerId, OwnerRecord>) -> Result<Self, StoreError> {
        for _ in 0..READINGS {
            let mut floors = Self::default();
            for record in owners.values() {
                let horizon = read_horizon(store, record.shard).await?;
                floors.horizons.insert(record.shard, horizon);
            }
            for (&owner, record) in owners {
                if Kind::of(record.kind) == Kind::Passing && floors.horizons[&record.shard].is_some() {
                    let floor = read_floor(store, record.shard, owner, BatchNumber(0)).await;
                    floor
                        .map_err(of_recovery)?
                        .into_iter()
                        .for_each(|floor| floors.take(floor));
                }
            }
            if !floors.have_moved(store).await? {
                return Ok(floors);
            }
        }
        Err(StoreError::Conflict)
    }

    /// Whether the floors in the store have changed since.
    pub(super) async fn have_moved(&self, store: &Store) -> Result<bool, StoreError> {
        for (shard, horizon) in &self.horizons {
            if read_horizon(store, *shard).await? != *horizon {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The end of an owner's log at the horizon, if batches before it may be gone.
    pub(super) fn tail(&self, owner: OwnerId) -> Option<Tail> {
        self.tails.get(&owner).copied()
    }

    /// The cell parts that existed at the horizon.
    pub(super) fn cells(&self) -> &BTreeMap<EntityId, Floor> {
        &self.cells
    }

    /// Whether any shard has deleted events.
    pub(super) fn are_any(&self) -> bool {
        self.horizons.values().any(Option::is_some)
    }

    /// Whether a leaf lies at the horizon or before it.
    pub(super) fn have_passed(&self, (shard, leaf): (Shard, LeafIndex)) -> bool {
        let horizon = self.horizons.get(&shard).and_then(Option::as_ref);
        horizon.is_some_and(|horizon| leaf <= horizon.leaf)
    }

    /// Whether a cell part had ended at the horizon while its home was not notified yet.
    pub(super) fn has_ended(&self, entity: EntityId) -> bool {
        self.ended.contains(&entity)
    }

    fn take(&mut self, state: OwnerState) {
        self.tails.insert(state.owner, state.tail);
        self.ended
            .extend(state.estates.into_keys().chain(state.ending.into_keys()));
        let departing = state.departing.into_values();
        for (entity, image) in state.entities.into_iter().chain(departing) {
            let floor = Floor::of(image);
            // A part in hand-over may have arrived: the owner with the higher number has it.
            let is_newer = |held: &Floor| held.number <= floor.number;
            if self.cells.get(&entity).is_none_or(is_newer) {
                self.cells.insert(entity, floor);
            }
        }
    }
}

impl Floor {
    fn of(image: Image) -> Self {
        Self {
            type_id: image.type_id,
            number: image.history,
            properties: image.properties,
        }
    }
}
