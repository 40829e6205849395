//! A realm of one cell's log, a bot's record of it, and ways to damage the archive.

use std::{cell::RefCell, fs, path::Path, sync::Arc};

use annals_bots::{
    checker::{CheckReport, Following, Wrong, check},
    showings::Line,
};
use annals_db::{Folder, RetentionPace, RetentionProgress};
use annals_def::{Change, Form, Located, Schema, Value, check_dir, encode};
use annals_director::{Grants, openings};
use annals_event::{Audience, Body, Cause, CellCreation, Event, FrozenBatch, Gathering, Imprint, Place, Subject, Tail};
use annals_ids::{
    Address, BatchNumber, CallNumber, EntityId, Epoch, Hash, HistoryNumber, LeafIndex, MemberId, OwnerId, Part,
    ProcessId, Shard, Tick, TypeId, WallTime,
};
use annals_proof::Frontier;
use annals_store::{
    KeyRange, MemoryStore, Store, immediate,
    layout::{
        archive::{self, Tree},
        chunks,
        owners::{self, Cursor, OpeningRecord},
    },
};
use annals_wire::client::{args_hash, change_hash, value_hash};
use tempfile::TempDir;

pub(crate) const SHARD: Shard = Shard(0);
pub(crate) const AVATAR: EntityId = EntityId(7);
pub(crate) const CELL: (EntityId, Part) = (AVATAR, Part::Cell);

/// The hole in the history of the avatar's cell part, from the first missing number to the last.
pub(crate) fn hole(first: u64, until: u64) -> Wrong {
    Wrong::Hole {
        entity: AVATAR,
        part: Part::Cell,
        first: HistoryNumber(first),
        until: HistoryNumber(until),
    }
}

/// A realm of one cell's log, and one bot's record.
pub(crate) struct Realm {
    pub(crate) schema: Arc<Schema>,
    pub(crate) store: Store,
    pub(crate) owner: OwnerId,
    pub(crate) imprint: Imprint,
    pub(crate) tail: Tail,
    pub(crate) frozen: Vec<FrozenBatch>,
    pub(crate) lines: Vec<Line>,
    /// The avatar's properties.
    pub(crate) held: Vec<(MemberId, Value)>,
    /// The folder of the bot's record.
    pub(crate) folder: TempDir,
    /// An incremental check that began when a part of the life was archived.
    pub(crate) following: RefCell<Following>,
}

impl Realm {
    pub(crate) fn new() -> Self {
        let defs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
        let schema = Arc::new(check_dir(&defs).0.expect("the sample compiles"));
        let store = MemoryStore::new().store();
        let owner = found(&store, Part::Cell);
        let folder = TempDir::new().unwrap();
        Self {
            following: RefCell::new(Following::new(folder.path())),
            folder,
            imprint: imprint(&schema, owner),
            schema,
            store,
            owner,
            tail: Tail::default(),
            frozen: Vec::new(),
            lines: Vec::new(),
            held: Vec::new(),
        }
    }

    /// An avatar is created, its level rises, its hair changes, it speaks: each in a batch of its own.
    pub(crate) fn with_a_life() -> Self {
        let mut realm = Self::new();
        realm.live();
        realm
    }

    /// Such a life, after the creation of another avatar that did nothing.
    pub(crate) fn with_a_later_life() -> Self {
        let mut realm = Self::new();
        let body = realm.creation(EntityId(8));
        let first = batch(&realm.imprint, &mut realm.tail, (EntityId(8), Part::Cell), None, body);
        realm.frozen.push(first);
        realm.live();
        realm
    }

    fn creation(&self, entity: EntityId) -> Body {
        Body::CellCreated(Box::new(CellCreation {
            entity,
            type_id: self.avatar(),
            home: self.owner,
            based: false,
            place: Place::default(),
            properties: self.defaults(),
            client: None,
            former: None,
        }))
    }

    fn live(&mut self) {
        let type_id = self.avatar();
        self.held = self.defaults();
        self.append(None, self.creation(AVATAR));
        self.change(1, "level", &[], Value::UInt(2));
        self.change(2, "appearance", &[0], Value::UInt(55));
        let method = self
            .schema
            .entity_type(type_id)
            .unwrap()
            .client_method_named("onSay")
            .unwrap()
            .index;
        let args = vec![Value::Unicode("hello".into())];
        let audience = Audience::All;
        self.append(Some(3), Body::Invoked { method, args, audience });
        self.change(4, "level", &[], Value::UInt(3));
    }

    pub(crate) fn avatar(&self) -> TypeId {
        self.schema.type_named("Avatar").expect("the sample has avatars").id
    }

    pub(crate) fn member(&self, name: &str) -> MemberId {
        self.schema
            .type_named("Avatar")
            .unwrap()
            .property_named(name)
            .unwrap()
            .index
    }

    pub(crate) fn defaults(&self) -> Vec<(MemberId, Value)> {
        let properties = &self.schema.type_named("Avatar").unwrap().properties;
        let on_cell = properties.iter().filter(|property| property.distribution.on_cell());
        on_cell
            .map(|property| (property.index, property.default.clone()))
            .collect()
    }

    pub(crate) fn change(&mut self, history: u64, name: &str, path: &[u32], value: Value) {
        let member = self.member(name);
        let change = Change::part(annals_def::Path(path.to_vec()), value);
        let (_, held) = self.held.iter_mut().find(|(held, _)| *held == member).unwrap();
        let located = Located::new(change, held).unwrap();
        located.make(held).unwrap();
        self.append(
            Some(history),
            Body::Changed {
                member,
                change: located,
            },
        );
    }

    /// Adds a batch with one event of the avatar, and the line for a client that sees it.
    pub(crate) fn append(&mut self, history: Option<u64>, body: Body) {
        if let Some(number) = history {
            self.lines.push(Line::Shown {
                entity: AVATAR,
                part: Part::Cell,
                number: HistoryNumber(number),
                hash: self.hash(&body),
            });
        }
        let batch = batch(&self.imprint, &mut self.tail, CELL, history, body);
        self.frozen.push(batch);
    }

    /// Adds a batch in which the owner takes a call.
    pub(crate) fn take(&mut self, from: Address, to: Address, number: u64) {
        let mut gathering = Gathering::default();
        gathering.consume(from, to, CallNumber(number), [0; 16]);
        let frozen = gathering.freeze(&self.imprint, &mut self.tail, Tick(1), WallTime(1), false);
        self.frozen.push(frozen);
    }

    /// Lets db seal the archive into segments of `most` leaves, as far as they are full, and delete their events.
    pub(crate) fn apply_retention(&self, most: usize) {
        apply_retention(&self.store, &self.schema, most);
    }

    /// The hash of what clients receive of it.
    pub(crate) fn hash(&self, body: &Body) -> Hash {
        let avatar = self.schema.entity_type(self.avatar()).unwrap();
        match body {
            Body::Changed { member, change } => {
                change_hash(&avatar.property(*member).unwrap().data_type, change.change()).unwrap()
            }
            Body::Invoked { method, args, .. } => {
                args_hash(&avatar.client_methods[usize::from(method.0)], args).unwrap()
            }
            other => panic!("{} is not shown", other.name()),
        }
    }

    pub(crate) fn refreshed(&mut self, upto: u64, shown: &[(&str, Value)]) {
        let avatar = self.schema.entity_type(self.avatar()).unwrap();
        let properties = shown.iter().map(|(name, value)| {
            let property = avatar.property_named(name).unwrap();
            let mut bytes = Vec::new();
            encode(&property.data_type, value, Form::Whole, &mut bytes).unwrap();
            (property.index, value_hash(&bytes))
        });
        self.lines.push(Line::Refreshed {
            entity: AVATAR,
            part: Part::Cell,
            upto: HistoryNumber(upto),
            properties: properties.collect(),
        });
    }

    /// Archives all batches; the incremental check has seen the creation.
    pub(crate) fn archive(&self) {
        self.archive_after(1, 0);
    }

    /// Archives all batches; the incremental check has seen some of them, and some of the bot's lines.
    pub(crate) fn archive_after(&self, batches: usize, lines: usize) {
        fold(&self.store, &self.schema, &self.frozen[..batches]);
        self.write(&self.lines[..lines]);
        let report = self.go_on();
        assert!(report.is_clean(), "{report}");
        fold(&self.store, &self.schema, &self.frozen[batches..]);
    }

    pub(crate) fn write(&self, lines: &[Line]) {
        let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.folder.path().join("bot-000.shown"), lines.concat()).unwrap();
    }

    pub(crate) fn go_on(&self) -> CheckReport {
        let mut following = self.following.borrow_mut();
        following.look().unwrap();
        immediate(following.check(&self.store, &self.schema)).unwrap()
    }

    /// Appends a batch to the archive: db itself rejects one that cannot have happened.
    pub(crate) fn force(&self, batch: &FrozenBatch, tail: Tail) {
        let leaf = LeafIndex(self.frozen.len() as u64);
        let cursor = Cursor {
            batch: tail.batch,
            hash: tail.hash,
            event: tail.event,
            epoch: batch.epoch,
        };
        let transaction = self.store.begin();
        let stored = immediate(transaction.get(&archive::tree_key(SHARD))).unwrap();
        let Tree { size, peaks } = Tree::decode(stored.as_deref()).unwrap();
        let mut tree = Frontier::resume(size, peaks).unwrap();
        tree.push(batch.hash);
        let (size, peaks) = (tree.size(), tree.peaks().to_vec());
        transaction
            .set(&archive::tree_key(SHARD), &Tree { size, peaks }.encode())
            .unwrap();
        for (key, chunk) in chunks(&archive::leaf_key(SHARD, leaf), &batch.bytes) {
            transaction.set(&key, chunk).unwrap();
        }
        let place = archive::place_key(batch.owner, batch.number);
        transaction.set(&place, &archive::encode_place(leaf)).unwrap();
        let key = owners::cursor_key(batch.owner);
        transaction.set(&key, &cursor.encode()).unwrap();
        immediate(transaction.commit()).unwrap();
    }

    /// Deletes the rows below a key.
    pub(crate) fn clear(&self, key: &[u8]) {
        let transaction = self.store.begin();
        transaction.clear_range(&KeyRange::prefix(key)).unwrap();
        immediate(transaction.commit()).unwrap();
    }

    /// Replaces a batch by other bytes.
    pub(crate) fn replace(&self, leaf: u64, bytes: &[u8]) {
        let key = archive::leaf_key(SHARD, LeafIndex(leaf));
        let transaction = self.store.begin();
        for (key, chunk) in chunks(&key, bytes) {
            transaction.set(&key, chunk).unwrap();
        }
        immediate(transaction.commit()).unwrap();
    }

    /// The result of a check from the beginning; an incremental check must find the same in what was added since.
    pub(crate) fn check(&self) -> CheckReport {
        let whole = self.check_whole();
        let before = self.following.borrow().clone();
        let going_on = self.go_on();
        assert_eq!(named(&going_on), named(&whole));
        if whole.is_clean() {
            assert_eq!((going_on.events, going_on.batches), (whole.events, whole.batches));
            let following = self.following.borrow();
            let agreed = immediate(following.check_whole(&self.store, &self.schema)).unwrap();
            assert!(agreed.is_clean(), "{agreed}");
        }
        self.following.replace(before);
        whole
    }

    pub(crate) fn check_whole(&self) -> CheckReport {
        self.write(&self.lines);
        immediate(check(self.folder.path(), &self.store, &self.schema)).unwrap()
    }
}

/// Everything that a report names.
pub(crate) fn named(report: &CheckReport) -> String {
    let CheckReport {
        lost, holes, faults, ..
    } = report;
    format!(
        "{lost:?} {holes:?} {faults:?} {} {} {}",
        report.lost_count, report.hole_count, report.fault_count
    )
}

pub(crate) fn found(store: &Store, part: Part) -> OwnerId {
    let seen = immediate(Grants::watch(store)).unwrap();
    let grants = immediate(Grants::lead(
        store.clone(),
        ProcessId(1),
        seen,
        std::time::Duration::ZERO,
    ))
    .unwrap();
    immediate(grants.found(part, SHARD, ProcessId(1))).unwrap().owner
}

pub(crate) fn imprint(schema: &Schema, owner: OwnerId) -> Imprint {
    Imprint {
        realm: "test".into(),
        owner,
        epoch: Epoch(1),
        schema: schema.fingerprint(),
    }
}

pub(crate) fn batch(
    imprint: &Imprint,
    tail: &mut Tail,
    (entity, part): (EntityId, Part),
    history: Option<u64>,
    body: Body,
) -> FrozenBatch {
    let mut gathering = Gathering::default();
    gathering.record(&Event {
        subject: Subject::Entity(entity, part),
        cause: Cause(0),
        history: history.map(HistoryNumber),
        body,
    });
    let opens = tail.batch == BatchNumber(0);
    gathering.freeze(imprint, tail, Tick(1), WallTime(1), opens)
}

pub(crate) fn fold(store: &Store, schema: &Arc<Schema>, batches: &[FrozenBatch]) {
    let mut folder = immediate(Folder::begin(store.clone(), SHARD, Arc::clone(schema))).unwrap();
    for batch in batches {
        if batch.opens {
            let opening = OpeningRecord {
                epoch: batch.epoch,
                number: batch.number,
                hash: batch.hash,
            };
            immediate(openings::record(
                store,
                SHARD,
                batch.owner,
                &[opening],
                "server:1",
                |_| None,
            ))
            .unwrap();
        }
        folder.offer(batch.owner, batch.bytes.clone());
    }
    while folder.has_work() {
        immediate(folder.commit()).unwrap();
    }
}

/// Seals the archive into segments of `most` leaves, as far as they are full, and deletes their events by retention.
pub(crate) fn apply_retention(store: &Store, schema: &Arc<Schema>, most: usize) {
    let folder = immediate(Folder::begin(store.clone(), SHARD, Arc::clone(schema))).unwrap();
    let mut sealer = folder.sealer().of_leaves(most);
    while immediate(sealer.seal_next()).unwrap().is_some() {}
    let mut retention = folder.retention(RetentionPace::Eager);
    while immediate(retention.turn(WallTime(u64::MAX))).unwrap() != RetentionProgress::Idle {}
}
