//! One transaction of folding.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use annals_event::{Image, OwnerState, ledger::Order};
use annals_ids::{
    Address, BatchNumber, CallNumber, DatabaseId, EntityId, Hash, LeafIndex, LogPosition, OwnerId, OwnerKind,
    SessionId, Shard, TransferId, WallTime,
};
use annals_node::chain::Step;
use annals_proof::Frontier;
use annals_store::{
    StoreError, Submitted, Transaction,
    layout::{
        archive, bans, chunks, owners,
        shards::{self, LedgerChange, Parting},
    },
    limits,
};

use super::{
    Alarm, FoldError, Folded, Folder, ReceivedBatch, check_lease, crossing,
    effects::{self, Effect, Taking},
    log::Log,
};
use crate::adopting;
use crate::ledger::{Ask, Breach, Failed, LedgerTransaction, Life, is_deleted};
use crate::stored::{self, Written};

/// Bytes of batches and of their database writes in one transaction, give or take one batch.
const FOLD_BYTES: usize = 3 << 20;

/// Bytes of snapshots in one transaction, in addition to those.
const SNAPSHOT_BYTES: usize = 3 << 20;

/// Size of a transaction at which no snapshot is written in addition: keys and conflict ranges need room too.
const FULL_BYTES: usize = 6 << 20;

const _: () = assert!(FULL_BYTES + SNAPSHOT_BYTES < limits::TRANSACTION_BYTES);

/// Work of a transaction so far.
pub(super) struct Attempt {
    transaction: Transaction,
    tree: Frontier,
    bytes: usize,
    /// Maximum batches to fold.
    most: usize,
    ledger: LedgerTransaction,
    /// Contradiction found in the ledger, if any: nothing is folded then.
    pub(super) breach: Option<(OwnerId, BatchNumber, Breach)>,
    /// Number of the realm's shards, once it is needed.
    shards: Option<u16>,
    /// Messages taken from the waiting ones, in order.
    pub(super) taken: Vec<Arc<ReceivedBatch>>,
    /// Logs whose state the transaction depends on and may have changed.
    pub(super) entered: BTreeSet<OwnerId>,
    /// Logs that the next attempt looks at again.
    pub(super) unfinished: VecDeque<OwnerId>,
    /// Batch that was folded last.
    pub(super) last: Option<(OwnerId, BatchNumber)>,
    pub(super) folded: Folded,
}

impl Attempt {
    pub(super) fn new(transaction: Transaction, most: usize) -> Self {
        Self {
            transaction,
            tree: Frontier::new(),
            bytes: 0,
            most,
            ledger: LedgerTransaction::default(),
            breach: None,
            shards: None,
            taken: Vec::new(),
            entered: BTreeSet::new(),
            unfinished: VecDeque::new(),
            last: None,
            folded: Folded::default(),
        }
    }

    fn is_full(&self) -> bool {
        self.bytes + self.ledger.unwritten() >= FOLD_BYTES || self.folded.batches >= self.most
    }

    fn archive(&mut self, shard: Shard, found: &ReceivedBatch) -> Result<(), StoreError> {
        let leaf = LeafIndex(self.tree.size());
        self.tree.push(found.batch.hash);
        for (key, chunk) in chunks(&archive::leaf_key(shard, leaf), &found.bytes) {
            self.transaction.set(&key, chunk)?;
        }
        let number = found.batch.header.number;
        let place = archive::place_key(found.owner, number);
        self.transaction.set(&place, &archive::encode_place(leaf))?;
        self.last = Some((found.owner, number));
        self.bytes += found.bytes.len();
        self.folded.batches += 1;
        self.folded.events += u64::from(found.batch.header.events);
        self.folded.bytes += found.bytes.len() as u64;
        Ok(())
    }
}

impl Attempt {
    async fn shards(&mut self) -> Result<u16, StoreError> {
        if let Some(shards) = self.shards {
            return Ok(shards);
        }
        let shards = shards::read_count(&self.transaction).await?;
        self.shards = Some(shards);
        Ok(shards)
    }

    fn note_session(&mut self, (person, owner): (DatabaseId, OwnerId), session: SessionId) -> Result<(), StoreError> {
        let (key, value) = (bans::session_key(person, owner), bans::encode_session(session));
        self.transaction.set(&key, &value)?;
        self.bytes += key.len() + value.len();
        Ok(())
    }

    async fn begin_life(&mut self, database: DatabaseId, life: Life) -> Result<(), FoldError> {
        let begun = self.ledger.begin(&self.transaction, database, life).await;
        self.bytes += self.check(begun)?;
        Ok(())
    }

    /// Checks the result of a ledger operation. If the ledger contradicts itself, the log whose batch revealed it
    /// stops.
    fn check<T>(&mut self, done: Result<T, Failed>) -> Result<T, FoldError> {
        done.map_err(|failed| match failed {
            Failed::Store(error) => FoldError::Store(error),
            Failed::Breach(breach) => {
                self.breach = self.last.map(|(owner, number)| (owner, number, breach));
                FoldError::Store(StoreError::Conflict)
            }
        })
    }
}

/// Position of a batch in its log, and its wall time.
fn place_of(found: &ReceivedBatch) -> (LogPosition, WallTime) {
    let header = &found.batch.header;
    let at = LogPosition {
        owner: found.owner,
        batch: header.number,
    };
    (at, header.wall)
}

impl Folder {
    /// Reads what the next transaction needs before it begins: the reads may take longer than a transaction may last.
    pub(super) async fn load_needed(&mut self) -> Result<(), FoldError> {
        let mut bytes = 0;
        let next = self.pending.iter().take_while(|found| {
            let fits = bytes < FOLD_BYTES;
            bytes += found.bytes.len();
            fits
        });
        let needed = next.map(|found| found.owner).chain(self.unfinished.iter().copied());
        for owner in needed.collect::<BTreeSet<_>>() {
            self.load(owner).await?;
        }
        Ok(())
    }

    async fn load(&mut self, owner: OwnerId) -> Result<(), FoldError> {
        let log = self.logs.entry(owner).or_insert_with(Log::new);
        self.alarms.extend(log.load(&self.store, self.shard, owner).await?);
        Ok(())
    }

    pub(super) async fn run(&mut self, attempt: &mut Attempt) -> Result<Submitted, FoldError> {
        check_lease(&attempt.transaction, self.shard, self.term).await?;
        if self.follows_definitions {
            self.check_definitions(&attempt.transaction).await?;
        }
        let tree = attempt.transaction.get(&archive::tree_key(self.shard)).await?;
        let tree = archive::Tree::decode(tree.as_deref())?;
        attempt.tree = Frontier::resume(tree.size, tree.peaks).expect("invariant: decoding counts the peaks");
        for owner in self.unfinished.clone() {
            self.enter(attempt, owner).await?;
            self.advance(attempt, owner).await?;
        }
        while !attempt.is_full()
            && let Some(found) = self.pending.pop_front()
        {
            self.pending_bytes -= found.bytes.len();
            attempt.taken.push(Arc::clone(&found));
            self.enter(attempt, found.owner).await?;
            let alarm = self.log(found.owner).take(&found);
            attempt.folded.alarms.extend(alarm);
            self.advance(attempt, found.owner).await?;
        }
        attempt.bytes += attempt.ledger.write(&attempt.transaction)?;
        self.write_cursors(attempt)?;
        self.write_snapshots(attempt)?;
        Ok(attempt.transaction.submit().await?)
    }

    async fn enter(&mut self, attempt: &mut Attempt, owner: OwnerId) -> Result<(), FoldError> {
        if attempt.entered.insert(owner) {
            let log = self.logs.entry(owner).or_insert_with(Log::new);
            let keeps = self.contended > 0;
            log.enter(&attempt.transaction, (self.shard, owner), keeps).await?;
        }
        Ok(())
    }

    /// Folds the next batches of a log while there are any.
    async fn advance(&mut self, attempt: &mut Attempt, owner: OwnerId) -> Result<(), FoldError> {
        while !attempt.is_full() {
            match self.log(owner).step() {
                Step::Next(_, found) => self.fold(attempt, &found).await?,
                Step::Wrong { claim, expected } => attempt.folded.alarms.push(Alarm::Contradiction {
                    owner,
                    number: claim.number,
                    hash: claim.hash,
                    expected,
                }),
                Step::Missing { .. } | Step::End => break,
            }
        }
        let again = attempt.is_full() || self.log(owner).awaits_opening();
        if again && !attempt.unfinished.contains(&owner) {
            attempt.unfinished.push_back(owner);
        }
        Ok(())
    }

    async fn fold(&mut self, attempt: &mut Attempt, found: &Arc<ReceivedBatch>) -> Result<(), FoldError> {
        let mut effects = Vec::new();
        let log = self.logs.entry(found.owner).or_insert_with(Log::new);
        let taken = log.fold(&self.migrations, found, |state, event| {
            effects.extend(Effect::of(state, event));
        });
        if let Err(impossible) = taken {
            log.halt();
            attempt.folded.alarms.push(Alarm::Impossible {
                owner: found.owner,
                number: found.batch.header.number,
                why: impossible.to_string(),
            });
            return Ok(());
        }
        self.archiving.note(&found.batch);
        attempt.archive(self.shard, found)?;
        let (at, wall) = place_of(found);
        let leaf = LeafIndex(attempt.tree.size() - 1);
        if self.replay.as_ref().is_none_or(|replay| replay.may_change(leaf)) {
            let decides = effects.iter().any(Effect::is_of_ledger);
            let expired = attempt.ledger.expire(&attempt.transaction, (at, wall), decides).await;
            attempt.bytes += attempt.check(expired)?;
        }
        for effect in effects {
            self.carry_out(attempt, found, effect).await?;
        }
        let (bytes, last) = attempt.ledger.end_batch(&attempt.transaction)?;
        attempt.bytes += bytes;
        if let Some(last) = last
            && attempt.shards().await? > 1
        {
            let change = LedgerChange {
                shard: self.shard,
                leaf,
            };
            attempt.transaction.set(&shards::change_key(last), &change.encode())?;
        }
        self.take_kept(attempt, leaf).await
    }

    /// When an archive is folded again: writes the cell parts that the former fold wrote at this leaf, if the events that
    /// led to them were deleted (rule F14).
    async fn take_kept(&mut self, attempt: &mut Attempt, leaf: LeafIndex) -> Result<(), FoldError> {
        let Some(replay) = self.replay.clone() else {
            return Ok(());
        };
        for (database, part) in replay.parts_at(leaf) {
            self.write_entity(attempt, *database, &[(part.schema, &part.image)])
                .await?;
        }
        for (entity, ended) in replay.ended_at(leaf) {
            let cell = crossing::read_ended_image(*entity, ended)?;
            let written = (ended.wall, ended.schema);
            attempt.bytes += crossing::keep_ended(&attempt.transaction, *entity, written, &cell).await?;
        }
        Ok(())
    }

    async fn carry_out(
        &mut self,
        attempt: &mut Attempt,
        found: &ReceivedBatch,
        effect: Effect,
    ) -> Result<(), FoldError> {
        let schema = found.batch.header.schema;
        match effect {
            Effect::Write {
                entity,
                database,
                life,
                base,
            } => {
                let at = base.base().and_then(|base| base.cell);
                let transaction = attempt.transaction.clone();
                let cell = match at {
                    Some(at) => self.cell_or_request(&transaction, (entity, database), at).await?,
                    None => None,
                };
                let cell = cell.as_ref().map(|(schema, image)| (*schema, image));
                let parts: Vec<(Hash, &Image)> = [Some((schema, &*base)), cell].into_iter().flatten().collect();
                self.write_entity(attempt, database, &parts).await?;
                effects::check_out_new(&attempt.transaction, database, life).await?;
                if base.base().is_some_and(|base| base.database != database) {
                    let life = Life {
                        entity,
                        home: life.owner,
                        checkout: life.number,
                    };
                    attempt.begin_life(database, life).await?;
                }
            }
            Effect::Live { database, life } => attempt.begin_life(database, life).await?,
            Effect::GiveBack {
                entity,
                parting,
                without_cell,
            } => {
                self.end_activation(attempt, (entity, parting), without_cell).await?;
                let ended = attempt.ledger.end(&attempt.transaction, parting.database, entity).await;
                attempt.check(ended)?;
            }
            Effect::Ask { of, holder, order } => self.execute(attempt, found, (of, holder), order).await?,
            Effect::Took(after, upto) => attempt.ledger.took(after, upto),
            Effect::Adopted(number) => adopting::note_logged(&attempt.transaction, number).await?,
            Effect::Admitted { person, session } => attempt.note_session((person, found.owner), session)?,
            Effect::EndUnstored { entity, type_id, life } => {
                let count = attempt.shards().await?;
                if count > 1 && self.may_be_stored(type_id) {
                    let database = DatabaseId(0);
                    let parting = Parting {
                        database,
                        life,
                        last_cell: CallNumber(0),
                    };
                    crossing::part(&attempt.transaction, count, entity, parting).await?;
                }
            }
            Effect::LeaveCell { entity, home } => self.leave_cell(attempt, entity, home).await?,
            Effect::EndCell { entity, home, cell } => self.end_cell(attempt, found, (entity, home), &cell).await?,
        }
        Ok(())
    }

    /// Executes an order to the ledger.
    async fn execute(
        &mut self,
        attempt: &mut Attempt,
        found: &ReceivedBatch,
        (of, holder): (TransferId, DatabaseId),
        order: Order,
    ) -> Result<(), FoldError> {
        let (at, wall) = place_of(found);
        let deletes = order == Order::Delete;
        let ask = Ask {
            at,
            wall,
            of,
            holder,
            order,
        };
        let executed = attempt.ledger.execute(&attempt.transaction, &ask).await;
        attempt.check(executed)?;
        if deletes {
            self.delete_if_closed(attempt, holder).await?;
        }
        Ok(())
    }

    /// Returns the check-out of an activation that has ended, or leaves it to the fold of what is still missing.
    async fn end_activation(
        &mut self,
        attempt: &mut Attempt,
        (entity, parting): (EntityId, Parting),
        without_cell: bool,
    ) -> Result<(), FoldError> {
        let count = attempt.shards().await?;
        if count == 1 && without_cell && self.has_cell(entity).await? {
            // The end of the cell part was acknowledged before, and then lost: the log has a hole there, even if nothing
            // that was read so far shows it.
            crossing::await_cell(&attempt.transaction, self.shard, entity, parting)?;
        } else {
            crossing::part(&attempt.transaction, count, entity, parting).await?;
        }
        Ok(())
    }

    /// The last properties of a cell part go to the row of its entity: at once if the base part is on this shard, and in a
    /// realm of several shards when the activation has ended.
    async fn end_cell(
        &mut self,
        attempt: &mut Attempt,
        found: &ReceivedBatch,
        (entity, home): (EntityId, OwnerId),
        cell: &Image,
    ) -> Result<(), FoldError> {
        let schema = found.batch.header.schema;
        let is_alone = attempt.shards().await? == 1;
        if !is_alone && self.may_be_stored(cell.type_id) {
            let written = (found.batch.header.wall, schema);
            attempt.bytes += crossing::keep_ended(&attempt.transaction, entity, written, cell).await?;
            if self.other_shard(home).await?.is_some() {
                return Ok(());
            }
        }
        self.load(home).await?;
        let base = self.log(home).state().and_then(|state| state.entities.get(&entity));
        if base.is_some_and(|base| effects::is_former(entity, base, cell)) {
            return Ok(());
        }
        let database = base.and_then(Image::base).map(|base| base.database);
        if let Some(database) = database.filter(|database| database.0 != 0) {
            return self.write_entity(attempt, database, &[(schema, cell)]).await;
        }
        if !is_alone {
            // The activation has ended: its check-out is returned in a round of all shards.
            return Ok(());
        }
        let Some(parting) = crossing::read_awaiting(&attempt.transaction, self.shard, entity).await? else {
            return Ok(());
        };
        let is_last = [CallNumber(0), effects::report_of_end(entity, cell)].contains(&parting.last_cell);
        if is_last && !crossing::is_replaced(&attempt.transaction, parting).await? {
            self.write_entity(attempt, parting.database, &[(schema, cell)]).await?;
        }
        self.end_wait_without_cell(attempt, entity, parting).await
    }

    /// A cell part has left for another owner. Around a hole this may be found after it ended there, and after the end of
    /// its activation, which then waited for a cell part that seemed to be real here.
    async fn leave_cell(&mut self, attempt: &mut Attempt, entity: EntityId, home: OwnerId) -> Result<(), FoldError> {
        if attempt.shards().await? > 1 {
            return Ok(());
        }
        self.load(home).await?;
        let is_active = self
            .log(home)
            .state()
            .is_some_and(|state| state.entities.contains_key(&entity));
        if is_active {
            return Ok(());
        }
        match crossing::read_awaiting(&attempt.transaction, self.shard, entity).await? {
            Some(parting) => self.end_wait_without_cell(attempt, entity, parting).await,
            None => Ok(()),
        }
    }

    /// Returns the check-out of an activation that has ended, unless the cell part still seems to be real somewhere. Around
    /// a hole it may seem to be real on two owners: the last one counts.
    async fn end_wait_without_cell(
        &mut self,
        attempt: &mut Attempt,
        entity: EntityId,
        parting: Parting,
    ) -> Result<(), FoldError> {
        if !self.has_cell(entity).await? {
            crossing::end_wait(&attempt.transaction, self.shard, entity, parting).await?;
        }
        Ok(())
    }

    async fn write_entity(
        &mut self,
        attempt: &mut Attempt,
        database: DatabaseId,
        parts: &[(Hash, &Image)],
    ) -> Result<(), FoldError> {
        let definitions = (&*self.schema, &self.migrations);
        let taking = Taking::read(&attempt.transaction, definitions, database, parts).await?;
        let (written, alarms) = match taking {
            Ok(taking) if taking.is_deleted => return Ok(()),
            Ok(taking) => taking.write(&attempt.transaction, definitions, database).await?,
            Err(alarm) => (Written::default(), vec![alarm]),
        };
        attempt.bytes += written.bytes;
        attempt.folded.alarms.extend(alarms);
        Ok(())
    }

    /// Deletes a stored entity if the ledger has closed its account. Whatever is folded of it later is not written.
    async fn delete_if_closed(&self, attempt: &mut Attempt, database: DatabaseId) -> Result<(), FoldError> {
        let transaction = attempt.transaction.clone();
        attempt.bytes += attempt.ledger.write(&transaction)?;
        if is_deleted(&transaction, database).await?
            && let Some(row) = stored::read_row(&transaction, database).await?
        {
            let schema = self.migrations.schema_of(row.generation, &self.schema);
            stored::delete(&transaction, database, (schema, &row.entity)).await?;
        }
        Ok(())
    }

    /// Finds the cell part of an entity that its base believes to be at `at`: where it is real, or otherwise in
    /// hand-over. Around a hole it may seem to be real twice: then the newer one counts. Also returns the definitions
    /// under which it is stored there.
    pub(super) async fn find_cell(
        &mut self,
        entity: EntityId,
        at: OwnerId,
    ) -> Result<Option<(Hash, Image)>, FoldError> {
        self.load_all().await?;
        let found = find_cell(|| self.cells(), entity, at);
        Ok(found.map(|(state, image)| (state.schema, image.clone())))
    }

    /// Whether the cell part of an entity is real, or in a hand-over whose receiver has not consumed it yet, as far as the
    /// logs are folded.
    async fn has_cell(&mut self, entity: EntityId) -> Result<bool, FoldError> {
        self.load_all().await?;
        let has_taken = |to: OwnerId, from: OwnerId, number: CallNumber| {
            let receiver = self.logs.get(&to).and_then(Log::state);
            let taken = receiver.and_then(|state| state.links.taken.get(&Address::Owner(from)));
            taken.is_some_and(|taken| *taken >= number)
        };
        Ok(self.cells().any(|state| {
            let departing = state.departing.iter().filter(|(_, (id, _))| *id == entity);
            let mut under_way = departing.filter(|((to, number), _)| !has_taken(*to, state.owner, *number));
            state.entities.contains_key(&entity) || under_way.next().is_some()
        }))
    }

    /// States of cell owners.
    fn cells(&self) -> impl Iterator<Item = &OwnerState> {
        self.states().filter(|state| state.kind == OwnerKind::Cell)
    }

    /// Reads every log of the shard that is not in memory.
    pub(super) async fn load_all(&mut self) -> Result<(), FoldError> {
        if !self.listed {
            let listing = |transaction: Transaction| async move { owners::read_owners(&transaction).await };
            for (owner, record) in self.store.read(listing).await? {
                if record.shard == self.shard {
                    self.log(owner);
                }
            }
            // Owners created from here on have nothing folded before their first batch arrives.
            self.listed = true;
        }
        let known: Vec<OwnerId> = self.logs.keys().copied().collect();
        for owner in known {
            self.load(owner).await?;
        }
        Ok(())
    }

    fn write_cursors(&mut self, attempt: &mut Attempt) -> Result<(), FoldError> {
        for owner in &attempt.entered {
            let log = self
                .logs
                .get_mut(owner)
                .expect("invariant: the log was inserted before");
            let Some(cursor) = log.write_moved(&attempt.transaction, *owner)? else {
                continue;
            };
            attempt.folded.cursors.push((*owner, cursor));
            if log.begin_snapshot() {
                self.snapshots.push_back(*owner);
            }
        }
        if attempt.folded.batches > 0 {
            let tree = archive::Tree {
                size: attempt.tree.size(),
                peaks: attempt.tree.peaks().to_vec(),
            };
            attempt
                .transaction
                .set(&archive::tree_key(self.shard), &tree.encode())?;
        }
        Ok(())
    }

    fn write_snapshots(&mut self, attempt: &mut Attempt) -> Result<(), FoldError> {
        let mut left = SNAPSHOT_BYTES;
        for owner in &self.snapshots {
            if left == 0 || attempt.bytes >= FULL_BYTES {
                break;
            }
            if let Some(log) = self.logs.get_mut(owner).filter(|log| log.snapshots.is_writing()) {
                attempt.entered.insert(*owner);
                let written = log.snapshots.write_piece(&attempt.transaction, *owner, left)?;
                left = left.saturating_sub(written);
            }
        }
        Ok(())
    }

    fn log(&mut self, owner: OwnerId) -> &mut Log {
        self.logs.entry(owner).or_insert_with(Log::new)
    }
}

/// Like [`Folder::find_cell`], among these states of cell owners; also returns the owner that has the part.
pub(crate) fn find_cell<'a, I: Iterator<Item = &'a OwnerState>>(
    cells: impl Fn() -> I,
    entity: EntityId,
    at: OwnerId,
) -> Option<(&'a OwnerState, &'a Image)> {
    let real = cells().filter_map(|state| Some((state, state.entities.get(&entity)?)));
    let newest = real.max_by_key(|(state, image)| (image.history, state.owner == at));
    let mut departing = cells().flat_map(|state| state.departing.values().map(move |departing| (state, departing)));
    newest.or_else(|| departing.find_map(|(state, (id, image))| (*id == entity).then_some((state, image))))
}
