//! Moving the horizon: folds the floors forward through the archive, writes them, then moves the horizon to them.

use std::collections::{BTreeMap, VecDeque, btree_map::Entry};
use std::sync::Arc;

use annals_def::Schema;
use annals_event::{Batch, OwnerState};
use annals_ids::{BatchNumber, DatabaseId, EntityId, Hash, LeafIndex, OwnerId, OwnerKind, Shard};
use annals_store::{
    KeyRange, Store, StoreError, Transaction, archive,
    layout::{
        chunks, owners,
        retention::{self as layout, Horizon},
        shards,
        snapshots::Area,
    },
    segment::{Leaf, Segment},
};

use super::{
    behind,
    floor::read_floor,
    parts::{Part, ended_cell, read_part},
};
use crate::{
    fold::{
        FoldError, check_lease,
        effects::{Effect, is_former},
        find_cell,
    },
    migrations::{Migrations, read_schema},
    recovery::RecoveryError,
};

/// Bytes of rows written in one transaction, give or take one row.
const WRITE_BYTES: usize = 2 << 20;

/// A move of the horizon in progress.
pub(super) struct Advance {
    shard: Shard,
    /// Horizon before the move.
    former: Option<Horizon>,
    /// Horizon after the move.
    next: Horizon,
    /// Segments that are left to fold.
    segments: VecDeque<Segment>,
    migrations: Migrations,
    kinds: BTreeMap<OwnerId, OwnerKind>,
    states: BTreeMap<OwnerId, OwnerState>,
    /// Cell parts that the folded batches wrote.
    parts: BTreeMap<DatabaseId, Part>,
    /// In a realm of several shards, the cell parts that ended: their base part may be on another shard.
    ended: Option<Vec<(EntityId, LeafIndex, Vec<u8>)>>,
    /// Definitions that the folded batches name.
    schemas: BTreeMap<Hash, Arc<Schema>>,
    /// Rows that are left to write, once everything is folded.
    rows: Option<VecDeque<Row>>,
}

enum Row {
    Clear(KeyRange),
    Set(Vec<u8>, Vec<u8>),
    Part(DatabaseId, Box<Part>),
}

impl Advance {
    /// Begins a move from the present horizon to the end of these segments.
    pub(super) async fn begin(
        store: &Store,
        (shard, schema): (Shard, &Arc<Schema>),
        former: Option<Horizon>,
        segments: Vec<Segment>,
    ) -> Result<Self, FoldError> {
        let listing = |transaction: Transaction| async move {
            let records = owners::read_owners(&transaction).await?;
            Ok::<_, StoreError>((records, shards::read_count(&transaction).await?))
        };
        let (records, count) = store.read(listing).await?;
        let mine = records.into_iter().filter(|(_, record)| record.shard == shard);
        let kinds: BTreeMap<OwnerId, OwnerKind> = mine.map(|(owner, record)| (owner, record.kind)).collect();
        let mut states = BTreeMap::new();
        for owner in kinds.keys() {
            let floor = read_floor(store, shard, *owner, BatchNumber(0))
                .await
                .map_err(of_recovery)?;
            states.extend(floor.map(|floor| (*owner, floor)));
        }
        let walls = segments.iter().map(|segment| segment.latest);
        let wall = walls.chain(former.map(|former| former.wall)).max();
        let last = segments.last().map(|segment| segment.last);
        let (Some(wall), Some(leaf)) = (wall, last) else {
            unreachable!("invariant: a horizon moves over segments")
        };
        Ok(Self {
            shard,
            former,
            next: Horizon {
                leaf,
                wall,
                area: former.map_or(Area::First, |former| former.area.other()),
                bytes: 0,
            },
            segments: segments.into(),
            migrations: Migrations::read(store).await?,
            kinds,
            states,
            parts: BTreeMap::new(),
            ended: (count > 1).then(Vec::new),
            schemas: BTreeMap::from([(schema.fingerprint(), Arc::clone(schema))]),
            rows: None,
        })
    }

    /// Takes a turn. Returns the horizon once it has moved.
    pub(super) async fn turn(&mut self, store: &Store, term: u64) -> Result<Option<Horizon>, FoldError> {
        if let Some(segment) = self.segments.pop_front() {
            let begin = behind(self.former);
            for leaf in archive::read_leaves(store, &segment).await? {
                if leaf.leaf >= begin {
                    self.fold(store, &leaf).await?;
                }
            }
            return Ok(None);
        }
        if self.rows.is_none() {
            self.rows = Some(self.rows());
        }
        if !self.write(store, term).await? {
            return Ok(None);
        }
        self.name(store, term).await?;
        Ok(Some(self.next))
    }

    async fn fold(&mut self, store: &Store, leaf: &Leaf) -> Result<(), StoreError> {
        let owner = leaf.owner;
        let damaged = |why: String| StoreError::Corrupt(format!("leaf {} of the archive: {why}", leaf.leaf).into());
        let Some(&kind) = self.kinds.get(&owner) else {
            return Err(damaged(format!("there is no owner {owner}")));
        };
        if kind == OwnerKind::Ledger {
            return Ok(());
        }
        let bytes = leaf.archived.clone().whole();
        let bytes = bytes.ok_or_else(|| damaged("its events were deleted, and it is after the horizon".to_owned()))?;
        let batch = Batch::read(&bytes).map_err(|error| damaged(error.to_string()))?;
        let state = self.states.entry(owner).or_insert_with(|| OwnerState::new(owner, kind));
        let impossible = |error: annals_event::Impossible| damaged(error.to_string());
        self.migrations.prepare(state, &batch).map_err(impossible)?;
        let mut effects = Vec::new();
        let folded = state.fold_with(&batch, |state, event| effects.extend(Effect::of(state, event)));
        folded.map_err(impossible)?;
        for effect in effects {
            self.keep_ended(store, (leaf.leaf, &batch), &effect).await?;
            if let Some((database, part)) = self.part_of(leaf.leaf, &batch, effect) {
                self.put(store, database, part).await?;
            }
        }
        Ok(())
    }

    /// Keeps a cell part that ended, as the fold does until its activation ends (rule T4).
    async fn keep_ended(
        &mut self,
        store: &Store,
        (leaf, batch): (LeafIndex, &Batch),
        effect: &Effect,
    ) -> Result<(), StoreError> {
        let (Some(ended), Effect::EndCell { entity, cell, .. }) = (&mut self.ended, effect) else {
            return Ok(());
        };
        let fingerprint = batch.header.schema;
        let schema = match self.schemas.entry(fingerprint) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(missing) => missing.insert(Arc::new(read_schema(store, fingerprint).await?)),
        };
        // An unknown type counts as one that may be stored.
        if schema.entity_type(cell.type_id).is_none_or(|found| found.persistent) {
            let cell = ended_cell((batch.header.wall, fingerprint), cell);
            ended.push((*entity, leaf, cell.encode()));
        }
        Ok(())
    }

    /// The cell part that an effect writes to the database, found in the same way as by folding.
    fn part_of(&self, leaf: LeafIndex, batch: &Batch, effect: Effect) -> Option<(DatabaseId, Part)> {
        match effect {
            Effect::Write {
                entity, database, base, ..
            } => {
                let at = base.base().and_then(|base| base.cell)?;
                let cells = || self.states.values().filter(|state| state.kind == OwnerKind::Cell);
                let (state, image) = find_cell(cells, entity, at)?;
                Some((database, Part::new(leaf, state.schema, image)))
            }
            Effect::EndCell { entity, home, cell } => {
                let base = self.states.get(&home)?.entities.get(&entity)?;
                let database = base.base()?.database;
                let is_last = !is_former(entity, base, &cell);
                (is_last && database.0 != 0).then(|| (database, Part::new(leaf, batch.header.schema, &cell)))
            }
            _ => None,
        }
    }

    async fn put(&mut self, store: &Store, database: DatabaseId, part: Part) -> Result<(), StoreError> {
        let former = match self.parts.remove(&database) {
            Some(former) => Some(former),
            None => read_part(store, (self.shard, database), self.former).await?,
        };
        let part = match former {
            Some(former) => part.over(&former, &self.migrations),
            None => part,
        };
        self.parts.insert(database, part);
        Ok(())
    }

    /// Rows to write before the horizon moves.
    fn rows(&mut self) -> VecDeque<Row> {
        let (shard, area) = (self.shard, self.next.area);
        let mut rows = VecDeque::from([Row::Clear(layout::floors(shard, area))]);
        let mut bytes = 0;
        let mut put = |key: Vec<u8>, value: Vec<u8>| {
            bytes += value.len() as u64;
            rows.extend(chunks(&key, &value).map(|(key, piece)| Row::Set(key, piece.to_vec())));
        };
        for (owner, state) in std::mem::take(&mut self.states) {
            let mut own = Vec::new();
            state.write_own(&mut own);
            put(layout::own_key(shard, area, owner), own);
            for (entity, image) in &state.entities {
                let mut value = Vec::new();
                image.write(&mut value);
                put(layout::entity_key(shard, area, owner, *entity), value);
            }
        }
        let parts = std::mem::take(&mut self.parts);
        rows.extend(
            parts
                .into_iter()
                .map(|(database, part)| Row::Part(database, Box::new(part))),
        );
        for (entity, leaf, value) in self.ended.iter_mut().flat_map(std::mem::take) {
            let key = layout::ended_key(shard, entity, leaf);
            rows.extend(chunks(&key, &value).map(|(key, piece)| Row::Set(key, piece.to_vec())));
        }
        self.next.bytes = bytes;
        rows
    }

    /// Writes some of the rows. Returns whether all are written.
    async fn write(&mut self, store: &Store, term: u64) -> Result<bool, FoldError> {
        let Some(rows) = &mut self.rows else { return Ok(false) };
        let (shard, former) = (self.shard, self.former);
        let (now, mut count) = (&*rows, 0);
        let mut bytes = 0;
        for row in now {
            if bytes >= WRITE_BYTES {
                break;
            }
            bytes += row.size();
            count += 1;
        }
        let work = |transaction: Transaction| async move {
            check_lease(&transaction, shard, term).await?;
            for row in now.iter().take(count) {
                match row {
                    Row::Clear(range) => transaction.clear_range(range)?,
                    Row::Set(key, value) => transaction.set(key, value)?,
                    Row::Part(database, part) => {
                        part.write(&transaction, (shard, *database), former).await?;
                    }
                }
            }
            Ok::<_, FoldError>(())
        };
        store.run_repeatable(work).await?;
        rows.drain(..count);
        Ok(rows.is_empty())
    }

    async fn name(&self, store: &Store, term: u64) -> Result<(), FoldError> {
        let (shard, next) = (self.shard, self.next.encode());
        let next = next.as_slice();
        let work = |transaction: Transaction| async move {
            check_lease(&transaction, shard, term).await?;
            transaction.set(&layout::horizon_key(shard), next)?;
            Ok::<_, FoldError>(())
        };
        store.run_repeatable(work).await?;
        Ok(())
    }
}

impl Row {
    fn size(&self) -> usize {
        match self {
            Self::Clear(range) => range.begin.len() + range.end.len(),
            Self::Set(key, value) => key.len() + value.len(),
            // An estimate: the size of the properties is known only when they are written.
            Self::Part(..) => 32 << 10,
        }
    }
}

fn of_recovery(error: RecoveryError) -> FoldError {
    FoldError::Store(match error {
        RecoveryError::Store { source, .. } => source,
        other => StoreError::Corrupt(other.to_string().into()),
    })
}
