//! What the folds of several shards leave for each other in the store (rules T3 and T4). In a realm of one shard only the
//! end of an activation is written, if its cell part has not ended in the log yet.
//!
//! A shard does not know the logs of the others. So the fold that meets the end of an activation asks every shard to
//! pass it, and the last one that does returns the check-out; and a cell part that ends is kept until then.

use annals_event::Image;
use annals_ids::{DatabaseId, EntityId, Hash, OwnerId, OwnerKind, Shard, TypeId, WallTime};
use annals_store::{
    KeyRange, Retry, ScanOrder, Store, StoreError, Transaction,
    layout::{
        database::{self, Checkout},
        owners::{self, OwnerRecord},
        shards::{self, EndedCell, Parting},
    },
};
use async_recursion::async_recursion as boxed;

use super::{
    Alarm, FoldError, Folder, check_lease,
    effects::{self, Taking},
    find_cell,
};
use crate::{recovery::read_image, restoring::read_rows, retention::ended_cell};

/// Requests of each kind that are answered in one round, and so in one transaction.
const AT_ONCE: usize = 64;

/// The requests of other shards that one round answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Stored entities whose cell part this shard may hold.
    wanted: Vec<EntityId>,
    /// Activations that have ended.
    parting: Vec<EntityId>,
}

impl Round {
    /// The end of one activation.
    pub(crate) fn parting(entity: EntityId) -> Self {
        Self {
            wanted: Vec::new(),
            parting: vec![entity],
        }
    }

    fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.parting.is_empty()
    }
}

/// Notes the end of an activation: in a realm of several shards the check-out is returned once all have passed it.
pub(super) async fn part(
    transaction: &Transaction,
    count: u16,
    entity: EntityId,
    parting: Parting,
) -> Result<(), StoreError> {
    if count == 1 {
        return effects::give_back(transaction, parting.database, parting.life).await;
    }
    for shard in shards::all(count) {
        transaction.set(&shards::parting_key(shard, entity), &parting.encode())?;
        transaction.clear(&shards::wanted_key(shard, entity))?;
    }
    Ok(())
}

/// Notes the end of an activation in a realm of one shard whose cell part has not ended in the log yet (rule F18): the
/// check-out is returned with that end, which completes the entity's row.
pub(super) fn await_cell(
    transaction: &Transaction,
    shard: Shard,
    entity: EntityId,
    parting: Parting,
) -> Result<(), StoreError> {
    transaction.set(&shards::parting_key(shard, entity), &parting.encode())
}

/// The activation that waits for the end of this cell part, if there is one.
pub(super) async fn read_awaiting(
    transaction: &Transaction,
    shard: Shard,
    entity: EntityId,
) -> Result<Option<Parting>, StoreError> {
    let value = transaction.get(&shards::parting_key(shard, entity)).await?;
    value.map(|value| Parting::decode(&value)).transpose()
}

/// All activations of a shard that have ended and whose check-out is not returned yet.
///
/// # Errors
/// As [`Transaction::get_range`]; [`StoreError::Corrupt`].
pub(crate) async fn read_awaiting_all(store: &Store, shard: Shard) -> Result<Vec<Parting>, StoreError> {
    let mut rows = Vec::new();
    read_rows(store, shards::partings(shard), &mut rows).await?;
    rows.iter().map(|(_, value)| Parting::decode(value)).collect()
}

/// Whether the entity of an activation that has ended was activated again.
pub(super) async fn is_replaced(transaction: &Transaction, ended: Parting) -> Result<bool, StoreError> {
    let held = transaction.get(&database::checkout_key(ended.database)).await?;
    let held = held.map(|value| Checkout::decode(&value)).transpose()?;
    Ok(held.is_some_and(|held| held != ended.life))
}

/// Returns the check-out of an activation whose cell part has ended.
pub(super) async fn end_wait(
    transaction: &Transaction,
    shard: Shard,
    entity: EntityId,
    parting: Parting,
) -> Result<(), StoreError> {
    transaction.clear(&shards::parting_key(shard, entity))?;
    effects::give_back(transaction, parting.database, parting.life).await
}

/// Keeps a cell part that has ended until its activation has ended. Returns the bytes written.
pub(super) async fn keep_ended(
    transaction: &Transaction,
    entity: EntityId,
    (wall, schema): (WallTime, Hash),
    cell: &Image,
) -> Result<usize, StoreError> {
    if let Some(kept) = shards::read_ended(transaction, entity).await? {
        // History numbers rise from one cell part to the next.
        let history = read_ended_image(entity, &kept)?.history;
        if (history, kept.wall) > (cell.history, wall) {
            return Ok(0);
        }
    }
    let ended = ended_cell((wall, schema), cell);
    shards::write_ended(transaction, entity, &ended)
}

/// The image of a cell part that has ended.
pub(super) fn read_ended_image(entity: EntityId, ended: &EndedCell) -> Result<Image, StoreError> {
    let damaged = |error| StoreError::Corrupt(format!("the last cell part of entity {entity}: {error}").into());
    read_image(&ended.image).map_err(damaged)
}

impl Folder {
    /// Whether entities of this type may be stored; an unknown type counts as one.
    pub(super) fn may_be_stored(&self, type_id: TypeId) -> bool {
        self.schema.entity_type(type_id).is_none_or(|found| found.persistent)
    }

    /// The shard of an owner's log, if it is another one.
    pub(super) async fn other_shard(&mut self, owner: OwnerId) -> Result<Option<Shard>, FoldError> {
        if let Some(known) = self.shards.get(&owner) {
            return Ok(Some(*known).filter(|shard| *shard != self.shard));
        }
        let read = |transaction: Transaction| async move { transaction.get(&owners::owner_key(owner)).await };
        let record = self.store.read(read).await?;
        let Some(record) = record.map(|value| OwnerRecord::decode(&value)).transpose()? else {
            return Ok(None);
        };
        // An owner never changes its shard.
        self.shards.insert(owner, record.shard);
        Ok(Some(record.shard).filter(|shard| *shard != self.shard))
    }

    /// The cell part of an entity, if this shard has it; otherwise the shard that has it by what the base part knows is
    /// asked to write it.
    pub(super) async fn cell_or_request(
        &mut self,
        transaction: &Transaction,
        (entity, database): (EntityId, DatabaseId),
        at: OwnerId,
    ) -> Result<Option<(Hash, Image)>, FoldError> {
        let cell = self.find_cell(entity, at).await?;
        if cell.is_none()
            && let Some(other) = self.other_shard(at).await?
        {
            let key = shards::wanted_key(other, entity);
            transaction.set(&key, &database::encode_id(database))?;
        }
        Ok(cell)
    }

    /// Reads what other shards ask of this one. The caller then folds the stream up to what was its end after this call,
    /// and [answers](Self::end_round). `None` if nothing is asked.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[boxed(?Send)]
    pub async fn begin_round(&self) -> Result<Option<Round>, FoldError> {
        let shard = self.shard;
        let read = |transaction: Transaction| async move {
            let wanted = read_entities(&transaction, &shards::wanted(shard)).await?;
            let parting = read_entities(&transaction, &shards::partings(shard)).await?;
            Ok::<_, StoreError>(Round { wanted, parting })
        };
        let round = self.store.read(read).await?;
        Ok(Some(round).filter(|round| !round.is_empty()))
    }

    /// Answers a round, once everything that the stream held when the round began is folded. While a log has a hole,
    /// nothing is answered: a cell part may have ended in what is missing. Returns whether the round was answered;
    /// otherwise its requests come again.
    ///
    /// # Errors
    /// When another db process folds the shard.
    #[boxed(?Send)]
    pub async fn end_round(&mut self, round: &Round) -> Result<bool, FoldError> {
        self.wait_for_submitted().await?;
        // A log that is not in memory, since a commit failed, shows no hole.
        self.load_all().await?;
        if self.has_work() || self.missing().next().is_some() {
            return Ok(false);
        }
        let transaction = self.store.begin();
        let (answered, alarms) = match self.answer(&transaction, round).await {
            Ok(alarms) => (true, alarms),
            Err(FoldError::Store(error)) if error.retry() != Retry::Never => (false, Vec::new()),
            Err(error) => return Err(error),
        };
        self.alarms.extend(alarms);
        Ok(answered)
    }

    async fn answer(&mut self, transaction: &Transaction, round: &Round) -> Result<Vec<Alarm>, FoldError> {
        check_lease(transaction, self.shard, self.term).await?;
        let count = shards::read_count(transaction).await?;
        let mut alarms = Vec::new();
        for entity in &round.wanted {
            let key = shards::wanted_key(self.shard, *entity);
            let Some(value) = transaction.get(&key).await? else {
                continue;
            };
            transaction.clear(&key)?;
            let cells = || self.states().filter(|state| state.kind == OwnerKind::Cell);
            if let Some((state, image)) = find_cell(cells, *entity, OwnerId(0)) {
                let part = (state.schema, image);
                let database = database::decode_id(&value)?;
                alarms.extend(self.write_cell(transaction, database, part).await?);
            }
        }
        for entity in &round.parting {
            let key = shards::parting_key(self.shard, *entity);
            let Some(value) = transaction.get(&key).await? else {
                continue;
            };
            transaction.clear(&key)?;
            if self.is_last(transaction, count, *entity).await? {
                let parting = Parting::decode(&value)?;
                alarms.extend(self.complete(transaction, *entity, parting).await?);
            }
        }
        transaction.commit().await?;
        Ok(alarms)
    }

    /// Whether no other shard has to pass the end of this activation any more.
    async fn is_last(&self, transaction: &Transaction, count: u16, entity: EntityId) -> Result<bool, StoreError> {
        for other in shards::all(count).filter(|other| *other != self.shard) {
            if transaction.get(&shards::parting_key(other, entity)).await?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the last cell part to the entity's row, and returns the check-out.
    async fn complete(
        &self,
        transaction: &Transaction,
        entity: EntityId,
        Parting { database, life, .. }: Parting,
    ) -> Result<Vec<Alarm>, FoldError> {
        let mut alarms = Vec::new();
        if let Some(ended) = shards::read_ended(transaction, entity).await? {
            transaction.clear_range(&KeyRange::prefix(&shards::ended_key(entity)))?;
            let image = read_ended_image(entity, &ended)?;
            if database != DatabaseId(0) {
                alarms = self.write_cell(transaction, database, (ended.schema, &image)).await?;
            }
        }
        if database != DatabaseId(0) {
            effects::give_back(transaction, database, life).await?;
        }
        Ok(alarms)
    }

    /// Merges a cell part into the row of its stored entity.
    async fn write_cell(
        &self,
        transaction: &Transaction,
        database: DatabaseId,
        part: (Hash, &Image),
    ) -> Result<Vec<Alarm>, FoldError> {
        let definitions = (&*self.schema, &self.migrations);
        match Taking::read(transaction, definitions, database, &[part]).await? {
            Ok(taking) if taking.is_there() => Ok(Vec::new()),
            Ok(taking) => Ok(taking.write(transaction, definitions, database).await?.1),
            Err(alarm) => Ok(vec![alarm]),
        }
    }
}

async fn read_entities(transaction: &Transaction, range: &KeyRange) -> Result<Vec<EntityId>, StoreError> {
    let page = transaction.get_range(range, AT_ONCE, ScanOrder::Forward).await?;
    page.rows.iter().map(|(key, _)| shards::entity_of(key)).collect()
}
