//! Snapshots as db writes them: the changes since the area's previous snapshot, cut into pieces that fit into
//! transactions in addition to the folded batches.

use std::collections::{BTreeSet, VecDeque};

use annals_event::{Batch, OwnerState, Subject};
use annals_ids::{BatchNumber, EntityId, OwnerId};
use annals_store::{
    KeyRange, StoreError, Transaction,
    layout::{
        chunks,
        snapshots::{self, Area, Position},
    },
};

/// Batches after which a snapshot begins: what recovery has to replay of the archive, give or take the batches folded
/// while a snapshot is written.
const SNAPSHOT_BATCHES: u64 = 256;

/// Snapshots of one owner.
#[derive(Default)]
pub(super) struct Snapshots {
    newest: Option<Position>,
    /// By area, the entities that changed since a snapshot was written there; `None` if unknown.
    changed: [Option<BTreeSet<EntityId>>; 2],
    job: Option<Job>,
}

/// A snapshot in progress.
struct Job {
    position: Position,
    rows: VecDeque<Row>,
}

enum Row {
    Clear(KeyRange),
    Set(Vec<u8>, Vec<u8>),
}

impl Snapshots {
    /// Snapshots of an owner that was just read from the store.
    pub(super) fn after(newest: Option<Position>) -> Self {
        Self {
            newest,
            ..Self::default()
        }
    }

    /// Records the changes of a batch.
    pub(super) fn note(&mut self, batch: &Batch) {
        let called = batch.header.consumed.iter().filter_map(|call| call.to.entity());
        let changed = batch.events.iter().filter_map(|event| match event.subject {
            Subject::Entity(entity, _) => Some(entity),
            Subject::Owner => None,
        });
        let entities: Vec<EntityId> = called.map(|(entity, _)| entity).chain(changed).collect();
        for known in self.changed.iter_mut().flatten() {
            known.extend(&entities);
        }
    }

    /// Treats everything as changed.
    pub(super) fn forget(&mut self) {
        self.changed = [None, None];
    }

    /// These snapshots without the one in progress, of which pieces may have been taken: it begins again.
    pub(super) fn without_progress(&self) -> Self {
        if self.is_writing() {
            return Self::after(self.newest);
        }
        Self {
            newest: self.newest,
            changed: self.changed.clone(),
            job: None,
        }
    }

    /// Whether a snapshot is in progress.
    pub(super) fn is_writing(&self) -> bool {
        self.job.is_some()
    }

    /// Begins a snapshot of `state` if one is due. Returns whether it did.
    pub(super) fn begin_if_due(&mut self, state: &OwnerState) -> bool {
        let newest = self.newest.map_or(BatchNumber(0), |newest| newest.batch);
        if self.is_writing() || state.tail.batch.0 - newest.0 < SNAPSHOT_BATCHES {
            return false;
        }
        let area = self.newest.map_or(Area::First, |newest| newest.area.other());
        let changed = self.changed[slot(area)].replace(BTreeSet::new());
        self.job = Some(Job {
            position: Position {
                batch: state.tail.batch,
                area,
            },
            rows: rows(state, area, changed),
        });
        true
    }

    /// Writes a piece of about `budget` bytes of the snapshot in progress; the last piece activates the snapshot.
    /// Returns the bytes written.
    pub(super) fn write_piece(
        &mut self,
        transaction: &Transaction,
        owner: OwnerId,
        budget: usize,
    ) -> Result<usize, StoreError> {
        let Some(job) = &mut self.job else { return Ok(0) };
        let mut written = 0;
        while written < budget {
            match job.rows.pop_front() {
                Some(Row::Clear(range)) => {
                    written += range.begin.len() + range.end.len();
                    transaction.clear_range(&range)?;
                }
                Some(Row::Set(key, value)) => {
                    written += key.len() + value.len();
                    transaction.set(&key, &value)?;
                }
                None => {
                    transaction.set(&snapshots::position_key(owner), &job.position.encode())?;
                    self.newest = Some(job.position);
                    self.job = None;
                    break;
                }
            }
        }
        Ok(written)
    }
}

/// Rows that make `area` contain `state`: the entities in `changed`, or all.
fn rows(state: &OwnerState, area: Area, changed: Option<BTreeSet<EntityId>>) -> VecDeque<Row> {
    let owner = state.owner;
    let mut own = Vec::new();
    state.write_own(&mut own);
    let own_key = snapshots::own_key(owner, area);
    let mut rows = VecDeque::new();
    let entities = match changed {
        Some(changed) => {
            rows.push_back(Row::Clear(KeyRange::prefix(&own_key)));
            let keys = changed.iter().map(|entity| snapshots::entity_key(owner, area, *entity));
            rows.extend(keys.map(|key| Row::Clear(KeyRange::prefix(&key))));
            changed
        }
        None => {
            rows.push_back(Row::Clear(snapshots::area(owner, area)));
            state.entities.keys().copied().collect()
        }
    };
    put(&mut rows, &own_key, &own);
    for (entity, image) in entities
        .iter()
        .filter_map(|entity| state.entities.get_key_value(entity))
    {
        let mut bytes = Vec::new();
        image.write(&mut bytes);
        put(&mut rows, &snapshots::entity_key(owner, area, *entity), &bytes);
    }
    rows
}

fn put(rows: &mut VecDeque<Row>, key: &[u8], value: &[u8]) {
    rows.extend(chunks(key, value).map(|(key, piece)| Row::Set(key, piece.to_vec())));
}

fn slot(area: Area) -> usize {
    match area {
        Area::First => 0,
        Area::Second => 1,
    }
}
