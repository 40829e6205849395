//! A generated realm: logs as cores write them, and ways to damage db's archive of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use annals_db::{Folder, RetentionPace, RetentionProgress, ensure_shards};
use annals_def::{Located, Schema, Value, check_dir, split_mix};
use annals_director::{Grants, openings};
use annals_event::{
    Batch, Body, Call, Cause, CellCreation, Event, FrozenBatch, Gathering, Imprint, OwnerState, Place, Subject,
};
use annals_ids::{
    Address, BatchNumber, CallNumber, EntityId, Epoch, HistoryNumber, LeafIndex, MemberId, OwnerId, Part, ProcessId,
    Shard, Tick, TypeId, WallTime,
};
use annals_proof::Frontier;
use annals_store::{
    KeyRange, Store,
    layout::{
        archive::{self, Tree},
        chunks,
        owners::{self, Cursor, OpeningRecord},
    },
};

pub(crate) const SHARD: Shard = Shard(0);
pub(crate) const REALM: &str = "test";

/// Number of owners in a realm, all of them cells.
const OWNERS: usize = 3;

/// A call that was taken: its link and number.
pub(crate) type Taken = (Address, Address, CallNumber);

/// One owner and its log so far.
pub(crate) struct OwnerLog {
    pub(crate) owner: OwnerId,
    pub(crate) shard: Shard,
    pub(crate) imprint: Imprint,
    pub(crate) state: OwnerState,
}

pub(crate) struct World {
    pub(crate) schema: Arc<Schema>,
    pub(crate) store: Store,
    pub(crate) logs: Vec<OwnerLog>,
    /// All batches, in the order in which they were appended.
    pub(crate) frozen: Vec<FrozenBatch>,
    grants: Grants,
    pub(crate) archived: usize,
    openings: BTreeMap<OwnerId, Vec<OpeningRecord>>,
    entities: u64,
}

impl World {
    /// A realm whose owners have opened their logs.
    pub(crate) async fn new(store: Store) -> Self {
        Self::on_shards(store, 1).await
    }

    /// The same, with its owners on so many shards.
    pub(crate) async fn on_shards(store: Store, shards: u16) -> Self {
        ensure_shards(&store, shards).await.unwrap();
        let defs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
        let schema = Arc::new(check_dir(&defs).0.expect("the sample compiles"));
        let seen = Grants::watch(&store).await.unwrap();
        let grants = Grants::lead(store.clone(), ProcessId(1), seen, std::time::Duration::ZERO)
            .await
            .unwrap();
        grants
            .begin_realm(WallTime(1_000), schema.fingerprint(), &schema.encode())
            .await
            .unwrap();
        let mut world = Self {
            logs: Vec::new(),
            frozen: Vec::new(),
            archived: 0,
            openings: BTreeMap::new(),
            entities: 0,
            schema,
            store,
            grants,
        };
        for shard in (0..shards).cycle().map(Shard).take(OWNERS) {
            world.found(shard).await;
        }
        world
    }

    /// Creates another owner on a shard; returns its place among the logs.
    pub(crate) async fn found(&mut self, shard: Shard) -> usize {
        let grant = self.grants.found(Part::Cell, shard, ProcessId(1)).await.unwrap();
        let imprint = Imprint {
            realm: REALM.into(),
            owner: grant.owner,
            epoch: Epoch(0),
            schema: self.schema.fingerprint(),
        };
        self.logs.push(OwnerLog {
            owner: grant.owner,
            shard,
            imprint,
            state: OwnerState::new(grant.owner, Part::Cell),
        });
        let log = self.logs.len() - 1;
        self.open(log);
        log
    }

    /// A realm after `steps` random steps, all of them archived.
    pub(crate) async fn generate(store: Store, seed: u64, steps: usize) -> Self {
        let mut world = Self::new(store).await;
        world.play(seed, steps).await;
        world.archive().await;
        world
    }

    /// Performs random steps.
    pub(crate) async fn play(&mut self, seed: u64, steps: usize) {
        let mut dice = split_mix(seed);
        for log in 0..OWNERS {
            self.create(log);
        }
        for _ in 0..steps {
            let log = dice() as usize % OWNERS;
            let other = (log + 1 + dice() as usize % (OWNERS - 1)) % OWNERS;
            let held: Vec<EntityId> = self.logs[log].state.entities.keys().copied().collect();
            let Some(&entity) = held.get(dice() as usize % held.len().max(1)) else {
                self.create(log);
                continue;
            };
            match dice() % 12 {
                0 => self.create(log),
                1 => self.append(log, &[], &[]),
                2 => self.reopen(log).await,
                3 | 4 => self.hand_over(log, entity, other),
                5..=7 => {
                    let there = self.logs[other].state.entities.keys().next().copied();
                    if let Some(there) = there {
                        self.call(log, entity, other, there);
                    }
                }
                _ => self.change(log, entity, dice() % 200),
            }
        }
    }

    /// Creates an avatar.
    pub(crate) fn create(&mut self, log: usize) {
        self.entities += 1;
        let entity = EntityId(100 + self.entities);
        let creation = self.creation(log, entity);
        self.append(log, &[], &[self.event(entity, None, 0, creation)]);
    }

    pub(crate) fn creation(&self, log: usize, entity: EntityId) -> Body {
        let properties = &self.schema.type_named("Avatar").unwrap().properties;
        let on_cell = properties.iter().filter(|property| property.distribution.on_cell());
        Body::CellCreated(Box::new(CellCreation {
            entity,
            type_id: self.avatar(),
            home: self.logs[log].owner,
            based: false,
            place: Place::default(),
            properties: on_cell
                .map(|property| (property.index, property.default.clone()))
                .collect(),
            client: None,
            former: None,
        }))
    }

    /// Changes an avatar's level.
    pub(crate) fn change(&mut self, log: usize, entity: EntityId, level: u64) {
        let history = self.next_history(log, entity);
        let change = self.changed("level", level);
        self.append(log, &[], &[self.event(entity, Some(history), 0, change)]);
    }

    /// Changes the level of an avatar, which is created first if there is none.
    pub(crate) fn change_somebody(&mut self, log: usize) -> EntityId {
        if self.logs[log].state.entities.is_empty() {
            self.create(log);
        }
        let entity = *self.logs[log].state.entities.keys().next().unwrap();
        self.change(log, entity, 42);
        entity
    }

    pub(crate) fn changed(&self, property: &str, value: u64) -> Body {
        Body::Changed {
            member: self.member(property),
            change: Located::whole(Value::UInt(value)),
        }
    }

    /// An avatar makes a call to one elsewhere; returns its number.
    pub(crate) fn make(&mut self, log: usize, caller: EntityId, other: usize, called: EntityId) -> CallNumber {
        let to = Address::Cell(called);
        let number = next_call(&self.logs[log].state, Address::Cell(caller), to);
        let method = self.schema.type_named("Avatar").unwrap().cell_methods[0].index;
        let call = Body::Called {
            to,
            home: self.logs[other].owner,
            number,
            call: Call::Method {
                method,
                args: Vec::new(),
                wants_reply: false,
            },
        };
        self.append(log, &[], &[self.event(caller, None, 0, call)]);
        number
    }

    /// An avatar calls one elsewhere, whose level then changes; the caller receives the acknowledgement.
    pub(crate) fn call(&mut self, log: usize, caller: EntityId, other: usize, called: EntityId) {
        let (from, to) = (Address::Cell(caller), Address::Cell(called));
        let number = self.make(log, caller, other, called);
        let history = self.next_history(other, called);
        let change = self.changed("level", number.0 % 200);
        self.append(
            other,
            &[(from, to, number)],
            &[self.event(called, Some(history), 1, change)],
        );
        let confirmed = Body::Confirmed {
            to,
            upto: number,
            lost: false,
        };
        self.append(log, &[], &[self.event(caller, None, 0, confirmed)]);
    }

    /// Hands an avatar over (rules H1 to H4).
    pub(crate) fn hand_over(&mut self, log: usize, entity: EntityId, other: usize) {
        let (from, to) = (self.logs[log].owner, self.logs[other].owner);
        let (here, there) = (Address::Owner(from), Address::Owner(to));
        let number = next_call(&self.logs[log].state, here, there);
        let history = self.next_history(log, entity);
        let offloaded = self.event(entity, Some(history), 0, Body::Offloaded { to, number });
        let mut ahead = self.logs[log].state.clone();
        ahead.apply(&offloaded).unwrap();
        let image = Box::new(ahead.departing[&(to, number)].1.clone());
        let carried = Call::Onload {
            entity,
            image: image.clone(),
        };
        self.append(log, &[], &[offloaded, owners_call(there, to, number, carried)]);
        let onloaded = self.event(entity, None, 1, Body::Onloaded { from, number, image });
        let answer = next_call(&self.logs[other].state, there, here);
        let arrived = owners_call(here, from, answer, Call::Arrived { of: number });
        self.append(other, &[(here, there, number)], &[onloaded, arrived]);
        let departed = self.event(entity, None, 1, Body::Departed { to, number });
        let confirmed = Event {
            subject: Subject::Owner,
            cause: Cause(0),
            history: None,
            body: Body::Confirmed {
                to: there,
                upto: number,
                lost: false,
            },
        };
        self.append(log, &[(there, here, answer)], &[departed, confirmed]);
    }

    /// Grants and opens the next epoch.
    pub(crate) async fn reopen(&mut self, log: usize) {
        let owner = self.logs[log].owner;
        self.grants.grant(owner, ProcessId(1), |_| false).await.unwrap();
        self.open(log);
    }

    fn open(&mut self, log: usize) {
        let imprint = &mut self.logs[log].imprint;
        imprint.epoch = imprint.epoch.next();
        let batch = self.freeze(log, &[], &[], true);
        self.openings.entry(batch.owner).or_default().push(OpeningRecord {
            epoch: batch.epoch,
            number: batch.number,
            hash: batch.hash,
        });
        self.keep(log, batch);
    }

    /// Appends a batch, which must be one that can have happened.
    pub(crate) fn append(&mut self, log: usize, taken: &[Taken], events: &[Event]) {
        let batch = self.freeze(log, taken, events, false);
        self.keep(log, batch);
    }

    /// A batch that continues a log; the log itself is not changed.
    pub(crate) fn freeze(&self, log: usize, taken: &[Taken], events: &[Event], opens: bool) -> FrozenBatch {
        let OwnerLog { imprint, state, .. } = &self.logs[log];
        let mut gathering = Gathering::default();
        for &(from, to, number) in taken {
            gathering.consume(from, to, number, [0; 16]);
        }
        events.iter().for_each(|event| gathering.record(event));
        let wall = WallTime(1_000 + 50 * self.frozen.len() as u64);
        gathering.freeze(imprint, &mut state.tail.clone(), Tick(1), wall, opens)
    }

    fn keep(&mut self, log: usize, batch: FrozenBatch) {
        self.logs[log].state.fold(&Batch::read(&batch.bytes).unwrap()).unwrap();
        self.frozen.push(batch);
    }

    /// Lets db archive everything, shard by shard.
    pub(crate) async fn archive(&mut self) {
        self.record_openings().await;
        let shards: BTreeMap<OwnerId, Shard> = self.logs.iter().map(|log| (log.owner, log.shard)).collect();
        for shard in shards.values().copied().collect::<BTreeSet<_>>() {
            let mut folder = Folder::begin(self.store.clone(), shard, Arc::clone(&self.schema))
                .await
                .unwrap();
            for batch in &self.frozen[self.archived..] {
                if shards[&batch.owner] == shard {
                    folder.offer(batch.owner, batch.bytes.clone());
                }
            }
            while folder.has_work() {
                let folded = folder.commit().await.unwrap();
                assert_eq!(folded.alarms, [], "the generated logs are as they should be");
            }
        }
        self.archived = self.frozen.len();
    }

    /// Lets db seal the archive into segments of `most` leaves, as far as they are full; returns their number.
    pub(crate) async fn seal(&self, most: usize) -> usize {
        let folder = Folder::begin(self.store.clone(), SHARD, Arc::clone(&self.schema));
        let mut sealer = folder.await.unwrap().sealer().of_leaves(most);
        let mut sealed = 0;
        while sealer.seal_next().await.unwrap().is_some() {
            sealed += 1;
        }
        sealed
    }

    /// Lets db write the tiles of the archive's tree.
    pub(crate) async fn tile(&self) {
        let folder = Folder::begin(self.store.clone(), SHARD, Arc::clone(&self.schema));
        let mut tiler = folder.await.unwrap().tiler();
        while tiler.tile_next().await.unwrap().is_some() {}
    }

    /// Lets db delete the events of all sealed batches; returns the number of bytes of these batches.
    pub(crate) async fn apply_retention(&self) -> u64 {
        let folder = Folder::begin(self.store.clone(), SHARD, Arc::clone(&self.schema));
        let mut retention = folder.await.unwrap().retention(RetentionPace::Eager);
        let mut bytes = 0;
        loop {
            match retention.turn(WallTime(u64::MAX)).await.unwrap() {
                RetentionProgress::Idle => return bytes,
                RetentionProgress::Thinned { bytes: lost, .. } => bytes += lost,
                RetentionProgress::Folding | RetentionProgress::Moved(_) => {}
            }
        }
    }

    pub(crate) async fn record_openings(&self) {
        for (&owner, records) in &self.openings {
            let log = self.logs.iter().find(|log| log.owner == owner).unwrap();
            openings::record(&self.store, log.shard, owner, records, "server:1", |bytes| {
                Batch::read(bytes).ok().map(|batch| batch.hash)
            })
            .await
            .unwrap();
        }
    }

    /// Appends a batch to the archive as db does: db itself rejects one that cannot have happened.
    pub(crate) async fn force(&mut self, batch: &FrozenBatch) {
        let read = Batch::read(&batch.bytes).unwrap();
        let transaction = self.store.begin();
        let stored = transaction.get(&archive::tree_key(SHARD)).await.unwrap();
        let Tree { size, peaks } = Tree::decode(stored.as_deref()).unwrap();
        let mut tree = Frontier::resume(size, peaks).unwrap();
        tree.push(batch.hash);
        let tree = Tree {
            size: tree.size(),
            peaks: tree.peaks().to_vec(),
        };
        transaction.set(&archive::tree_key(SHARD), &tree.encode()).unwrap();
        for (key, chunk) in chunks(&archive::leaf_key(SHARD, LeafIndex(size)), &batch.bytes) {
            transaction.set(&key, chunk).unwrap();
        }
        let place = archive::place_key(batch.owner, batch.number);
        transaction
            .set(&place, &archive::encode_place(LeafIndex(size)))
            .unwrap();
        let cursor = Cursor {
            batch: batch.number,
            hash: batch.hash,
            event: read.tail().event,
            epoch: batch.epoch,
        };
        transaction
            .set(&owners::cursor_key(batch.owner), &cursor.encode())
            .unwrap();
        transaction.commit().await.unwrap();
    }

    /// Changes a row of the store, or deletes all rows with that prefix.
    pub(crate) async fn edit(&self, key: &[u8], value: Option<&[u8]>) {
        let transaction = self.store.begin();
        transaction.clear_range(&KeyRange::prefix(key)).unwrap();
        if let Some(value) = value {
            transaction.set(key, value).unwrap();
        }
        transaction.commit().await.unwrap();
    }

    /// Replaces a leaf by other bytes.
    pub(crate) async fn replace(&self, leaf: LeafIndex, bytes: &[u8]) {
        let key = archive::leaf_key(SHARD, leaf);
        let transaction = self.store.begin();
        transaction.clear_range(&KeyRange::prefix(&key)).unwrap();
        for (key, chunk) in chunks(&key, bytes) {
            transaction.set(&key, chunk).unwrap();
        }
        transaction.commit().await.unwrap();
    }

    pub(crate) async fn row(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.store.begin().get(key).await.unwrap().map(|value| value.to_vec())
    }

    pub(crate) async fn leaf(&self, batch: &FrozenBatch) -> LeafIndex {
        let row = self.row(&archive::place_key(batch.owner, batch.number)).await;
        archive::decode_place(&row.unwrap()).unwrap()
    }

    /// An archived batch in the middle of the visible events, which changes one avatar's level.
    pub(crate) fn a_change(&self) -> (FrozenBatch, EntityId, HistoryNumber) {
        let changes = self.frozen.iter().filter_map(|frozen| {
            let batch = Batch::read(&frozen.bytes).unwrap();
            match batch.events.as_slice() {
                [
                    Event {
                        subject: Subject::Entity(entity, _),
                        history: Some(number),
                        body: Body::Changed { .. },
                        ..
                    },
                ] => Some((frozen.clone(), *entity, *number)),
                _ => None,
            }
        });
        let changes: Vec<_> = changes.collect();
        changes[changes.len() / 2].clone()
    }

    pub(crate) fn event(&self, entity: EntityId, history: Option<HistoryNumber>, cause: u32, body: Body) -> Event {
        Event {
            subject: Subject::Entity(entity, Part::Cell),
            cause: Cause(cause),
            history,
            body,
        }
    }

    pub(crate) fn next_history(&self, log: usize, entity: EntityId) -> HistoryNumber {
        self.logs[log].state.entities[&entity].history.next()
    }

    /// The last batch of an owner.
    pub(crate) fn last(&self, owner: OwnerId) -> BatchNumber {
        let last = self.frozen.iter().rev().find(|batch| batch.owner == owner);
        last.unwrap().number
    }

    fn avatar(&self) -> TypeId {
        self.schema.type_named("Avatar").expect("the sample has avatars").id
    }

    fn member(&self, name: &str) -> MemberId {
        let avatar = self.schema.type_named("Avatar").unwrap();
        avatar.property_named(name).unwrap().index
    }
}

fn next_call(state: &OwnerState, from: Address, to: Address) -> CallNumber {
    state.links(from).map_or(CallNumber(1), |links| links.next_call(to))
}

fn owners_call(to: Address, home: OwnerId, number: CallNumber, call: Call) -> Event {
    Event {
        subject: Subject::Owner,
        cause: Cause(0),
        history: None,
        body: Body::Called { to, home, number, call },
    }
}
