//! The checker against archives that are whole, and archives that somebody or something has damaged.

#![allow(clippy::unwrap_used, reason = "what is missing in a test has failed it")]

use std::{cell::RefCell, fs, path::Path, sync::Arc};

use annals::{
    checker::{CheckError, CheckReport, Fault, Following, Why, Wrong, check},
    showings::Line,
};
use annals_db::Folder;
use annals_def::{Change, Form, Located, Schema, Value, check_dir, encode};
use annals_director::{Grants, openings};
use annals_event::{
    Audience, BaseCreation, Body, Cause, CellCreation, Event, FrozenBatch, Gathering, Imprint, Place, Subject, Tail,
    merkle::Frontier,
};
use annals_ids::{
    BatchNumber, DatabaseId, EntityId, Epoch, Hash, HistoryNumber, LeafIndex, MemberId, OwnerId, Part, ProcessId,
    Shard, Tick, TypeId, WallTime,
};
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

const SHARD: Shard = Shard(0);
const AVATAR: EntityId = EntityId(7);
const CELL: (EntityId, Part) = (AVATAR, Part::Cell);

/// A realm of one cell's log, and what one bot was shown of it.
struct Realm {
    schema: Arc<Schema>,
    store: Store,
    owner: OwnerId,
    imprint: Imprint,
    tail: Tail,
    frozen: Vec<FrozenBatch>,
    lines: Vec<Line>,
    /// What the avatar holds.
    held: Vec<(MemberId, Value)>,
    /// What the bot wrote.
    folder: TempDir,
    /// A check that goes on from where a part of the life was archived.
    following: RefCell<Following>,
}

impl Realm {
    fn new() -> Self {
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

    /// An avatar is made, its level rises, its hair changes, it speaks: each in a batch of its own.
    fn with_a_life() -> Self {
        let mut realm = Self::new();
        let type_id = realm.avatar();
        let properties = realm.defaults();
        realm.held.clone_from(&properties);
        let creation = CellCreation {
            entity: AVATAR,
            type_id,
            home: realm.owner,
            based: false,
            place: Place::default(),
            properties,
            client: None,
        };
        realm.append(None, Body::CellCreated(Box::new(creation)));
        realm.change(1, "level", &[], Value::UInt(2));
        realm.change(2, "appearance", &[0], Value::UInt(55));
        let method = realm
            .schema
            .entity_type(type_id)
            .unwrap()
            .client_method_named("onSay")
            .unwrap()
            .index;
        let args = vec![Value::Unicode("hello".into())];
        let audience = Audience::All;
        realm.append(Some(3), Body::Invoked { method, args, audience });
        realm.change(4, "level", &[], Value::UInt(3));
        realm
    }

    fn avatar(&self) -> TypeId {
        self.schema.type_named("Avatar").expect("the sample has avatars").id
    }

    fn member(&self, name: &str) -> MemberId {
        self.schema
            .type_named("Avatar")
            .unwrap()
            .property_named(name)
            .unwrap()
            .index
    }

    fn defaults(&self) -> Vec<(MemberId, Value)> {
        let properties = &self.schema.type_named("Avatar").unwrap().properties;
        let on_cell = properties.iter().filter(|property| property.distribution.on_cell());
        on_cell
            .map(|property| (property.index, property.default.clone()))
            .collect()
    }

    fn change(&mut self, history: u64, name: &str, path: &[u32], value: Value) {
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

    /// Adds a batch with one event of the avatar, and what a client that sees it would be told.
    fn append(&mut self, history: Option<u64>, body: Body) {
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

    /// The hash of what clients are sent of it.
    fn hash(&self, body: &Body) -> Hash {
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

    fn refreshed(&mut self, upto: u64, told: &[(&str, Value)]) {
        let avatar = self.schema.entity_type(self.avatar()).unwrap();
        let properties = told.iter().map(|(name, value)| {
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

    /// Archives all batches; a check that goes on has seen the creation.
    fn archive(&self) {
        self.archive_after(1, 0);
    }

    /// Archives all batches; a check that goes on has seen some of them, and some of what the bot wrote.
    fn archive_after(&self, batches: usize, lines: usize) {
        fold(&self.store, &self.schema, &self.frozen[..batches]);
        self.write(&self.lines[..lines]);
        let report = self.go_on();
        assert!(report.is_clean(), "{report}");
        fold(&self.store, &self.schema, &self.frozen[batches..]);
    }

    fn write(&self, lines: &[Line]) {
        let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.folder.path().join("bot-000.shown"), lines.concat()).unwrap();
    }

    fn go_on(&self) -> CheckReport {
        let mut following = self.following.borrow_mut();
        following.look().unwrap();
        immediate(following.check(&self.store, &self.schema)).unwrap()
    }

    /// Puts a batch behind what is archived: db itself takes none that cannot have happened.
    fn force(&self, batch: &FrozenBatch, tail: Tail) {
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

    /// Takes rows out of the store.
    fn clear(&self, key: &[u8]) {
        let transaction = self.store.begin();
        transaction.clear_range(&KeyRange::prefix(key)).unwrap();
        immediate(transaction.commit()).unwrap();
    }

    /// Puts other bytes in a batch's place.
    fn replace(&self, leaf: u64, bytes: &[u8]) {
        let key = archive::leaf_key(SHARD, LeafIndex(leaf));
        let transaction = self.store.begin();
        for (key, chunk) in chunks(&key, bytes) {
            transaction.set(&key, chunk).unwrap();
        }
        immediate(transaction.commit()).unwrap();
    }

    /// What a check from nothing finds: one that goes on finds the same, in what came since.
    fn check(&self) -> CheckReport {
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

    fn check_whole(&self) -> CheckReport {
        self.write(&self.lines);
        immediate(check(self.folder.path(), &self.store, &self.schema)).unwrap()
    }
}

/// All that a report names.
fn named(report: &CheckReport) -> String {
    let CheckReport {
        lost, holes, faults, ..
    } = report;
    format!(
        "{lost:?} {holes:?} {faults:?} {} {} {}",
        report.lost_count, report.hole_count, report.fault_count
    )
}

fn found(store: &Store, part: Part) -> OwnerId {
    let seen = immediate(Grants::watch(store)).unwrap();
    let grants = immediate(Grants::lead(store.clone(), ProcessId(1), seen)).unwrap();
    immediate(grants.found(part, SHARD, ProcessId(1))).unwrap().owner
}

fn imprint(schema: &Schema, owner: OwnerId) -> Imprint {
    Imprint {
        realm: "test".into(),
        owner,
        epoch: Epoch(1),
        schema: schema.fingerprint(),
    }
}

fn batch(
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

fn fold(store: &Store, schema: &Arc<Schema>, batches: &[FrozenBatch]) {
    let mut folder = immediate(Folder::begin(store.clone(), SHARD, Arc::clone(schema))).unwrap();
    for batch in batches {
        if batch.opens {
            let opening = OpeningRecord {
                epoch: batch.epoch,
                number: batch.number,
                hash: batch.hash,
            };
            immediate(openings::record(store, SHARD, batch.owner, &[opening], |_| None)).unwrap();
        }
        folder.offer(batch.owner, batch.bytes.clone());
    }
    while folder.has_work() {
        immediate(folder.commit()).unwrap();
    }
}

#[test]
fn a_whole_archive_loses_nothing() {
    let mut realm = Realm::with_a_life();
    realm.refreshed(0, &[("level", Value::UInt(1))]);
    realm.refreshed(3, &[("level", Value::UInt(2))]);
    let hair = Value::Dict(vec![
        Value::UInt(55),
        Value::UInt(3),
        Value::Sequence(vec![Value::UInt(0); 4]),
    ]);
    realm.refreshed(4, &[("level", Value::UInt(3)), ("appearance", hair)]);
    realm.archive_after(3, 2);
    let report = realm.check();
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.shown, report.refreshed, report.properties), (4, 3, 4));
    assert_eq!((report.events, report.batches, report.parts), (4, 5, 1));
}

#[test]
fn a_batch_that_was_taken_out_is_named_with_its_event() {
    let realm = Realm::with_a_life();
    realm.archive();
    realm.clear(&archive::leaf_key(SHARD, LeafIndex(2)));
    let report = realm.check();
    assert_eq!(report.faults, [(realm.owner, BatchNumber(3), Fault::Missing)]);
    let [lost] = &report.lost[..] else { panic!("{report}") };
    assert_eq!(
        (lost.entity, lost.part, lost.number, lost.line),
        (AVATAR, Part::Cell, HistoryNumber(2), 2)
    );
    assert_eq!(
        lost.why,
        Why::Absent {
            newest: HistoryNumber(4)
        }
    );
    assert!(
        report
            .to_string()
            .contains("bot-000.shown:2: event 2 of the cell of entity 7: "),
        "{report}"
    );
    let hole = Wrong::Hole {
        entity: AVATAR,
        part: Part::Cell,
        first: HistoryNumber(2),
        until: HistoryNumber(3),
    };
    assert_eq!(report.holes, [hole]);
}

#[test]
fn a_log_whose_end_was_taken_off_lacks_what_was_shown_of_it() {
    let realm = Realm::with_a_life();
    realm.archive();
    for number in [4, 5] {
        realm.clear(&archive::leaf_key(SHARD, LeafIndex(number - 1)));
        realm.clear(&archive::place_key(realm.owner, BatchNumber(number)));
    }
    let report = realm.check();
    let missing = |number| (realm.owner, BatchNumber(number), Fault::Missing);
    assert_eq!(report.faults, [missing(4), missing(5)]);
    let lost: Vec<_> = report.lost.iter().map(|lost| lost.number).collect();
    assert_eq!(lost, [HistoryNumber(3), HistoryNumber(4)]);
}

#[test]
fn an_edited_event_is_named_even_if_its_batch_agrees_with_itself() {
    let realm = Realm::with_a_life();
    realm.archive();
    let before = &realm.frozen[0];
    let mut tail = Tail {
        batch: before.number,
        hash: before.hash,
        event: annals_ids::EventNumber(1),
    };
    let (member, change) = (realm.member("level"), Located::whole(Value::UInt(99)));
    let forged = batch(
        &realm.imprint,
        &mut tail,
        CELL,
        Some(1),
        Body::Changed { member, change },
    );
    realm.replace(1, &forged.bytes);
    let report = realm.check();
    let [lost] = &report.lost[..] else { panic!("{report}") };
    assert_eq!((lost.number, &lost.why), (HistoryNumber(1), &Why::Different));
    assert_eq!(report.faults, [(realm.owner, BatchNumber(3), Fault::Unchained)]);
}

#[test]
fn a_flipped_bit_anywhere_in_a_batch_is_found() {
    let realm = Realm::with_a_life();
    realm.archive();
    let bytes = &realm.frozen[3].bytes;
    for place in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        realm.replace(3, &flipped);
        let report = realm.check();
        assert!(report.fault_count > 0, "byte {place}: {report}");
    }
    realm.replace(3, bytes);
    assert!(realm.check().is_clean());
}

#[test]
fn a_hole_in_the_history_numbers_is_named_though_nobody_was_shown_it() {
    let mut realm = Realm::with_a_life();
    realm.lines.truncate(1);
    realm.archive();
    let (member, change) = (realm.member("level"), Located::whole(Value::UInt(4)));
    let body = Body::Changed { member, change };
    let late = batch(&realm.imprint, &mut realm.tail, CELL, Some(6), body);
    realm.force(&late, realm.tail);
    let report = realm.check();
    assert_eq!((report.lost_count, report.fault_count), (0, 0), "{report}");
    let hole = Wrong::Hole {
        entity: AVATAR,
        part: Part::Cell,
        first: HistoryNumber(5),
        until: HistoryNumber(6),
    };
    assert_eq!(report.holes, [hole]);
    assert!(!report.is_clean());
}

#[test]
fn a_number_with_two_events_is_named_with_both_places() {
    let realm = Realm::with_a_life();
    let twin = found(&realm.store, Part::Cell);
    let (member, change) = (realm.member("level"), Located::whole(Value::UInt(2)));
    let imprint = imprint(&realm.schema, twin);
    let body = Body::Changed { member, change };
    realm.archive();
    let mut tail = Tail::default();
    let second = batch(&imprint, &mut tail, CELL, Some(1), body);
    realm.force(&second, tail);
    let report = realm.check();
    let twice = Wrong::Twice {
        entity: AVATAR,
        part: Part::Cell,
        number: HistoryNumber(1),
        places: [(realm.owner, BatchNumber(2)), (twin, BatchNumber(1))],
    };
    assert_eq!(report.holes, [twice]);
}

#[test]
fn a_state_that_never_was_is_lost_and_names_the_property() {
    let mut realm = Realm::with_a_life();
    realm.lines.clear();
    realm.refreshed(2, &[("level", Value::UInt(3))]);
    realm.refreshed(5, &[]);
    realm.archive();
    let report = realm.check();
    let [stale, ahead] = &report.lost[..] else {
        panic!("{report}")
    };
    let name = Some("level".to_owned());
    let member = realm.member("level");
    assert_eq!(stale.why, Why::Property { member, name });
    assert_eq!(
        ahead.why,
        Why::Absent {
            newest: HistoryNumber(4)
        }
    );
}

#[test]
fn parts_are_told_apart_and_what_never_was_is_unknown() {
    let mut realm = Realm::with_a_life();
    let base = found(&realm.store, Part::Base);
    let imprint = imprint(&realm.schema, base);
    let creation = BaseCreation {
        type_id: realm.avatar(),
        database: DatabaseId(0),
        checkout: 0,
        properties: Vec::new(),
        cell_properties: Vec::new(),
    };
    let body = Body::BaseCreated(Box::new(creation));
    let subject = (AVATAR, Part::Base);
    realm
        .frozen
        .push(batch(&imprint, &mut Tail::default(), subject, None, body));
    realm.archive();
    let Line::Shown { number, hash, .. } = realm.lines[0] else {
        panic!("a life begins with a change")
    };
    let shown = |entity, part| Line::Shown {
        entity,
        part,
        number,
        hash,
    };
    realm.lines = vec![shown(AVATAR, Part::Base), shown(EntityId(8), Part::Cell)];
    let report = realm.check();
    let whys: Vec<_> = report.lost.iter().map(|lost| lost.why.clone()).collect();
    let newest = HistoryNumber(0);
    assert_eq!(whys, [Why::Absent { newest }, Why::UnknownEntity]);
}

#[test]
fn a_folder_without_files_and_a_line_that_was_cut_off_are_errors() {
    let realm = Realm::with_a_life();
    realm.archive();
    let folder = TempDir::new().unwrap();
    let run = || immediate(check(folder.path(), &realm.store, &realm.schema));
    assert!(matches!(run(), Err(CheckError::NoFiles(_))));
    let line = realm.lines[0].to_string();
    fs::write(
        folder.path().join("bot-000.shown"),
        format!("{line}\n{}", &line[..line.len() - 3]),
    )
    .unwrap();
    assert!(matches!(run(), Err(CheckError::Line { line: 2, .. })));
}

#[test]
fn what_was_changed_or_not_checked_on_the_way_the_whole_check_tells() {
    let realm = Realm::with_a_life();
    realm.archive_after(3, 2);
    realm.write(&realm.lines);
    assert!(realm.go_on().is_clean());
    let whole = || immediate(realm.following.borrow().check_whole(&realm.store, &realm.schema)).unwrap();
    assert!(whole().is_clean());
    // A line more than was seen.
    let more = [&realm.lines[..], &realm.lines[3..]].concat();
    realm.write(&more);
    let report = whole();
    assert_eq!((report.passed_over, report.otherwise), (1, 0), "{report}");
    assert!(!report.is_clean());
    realm.write(&realm.lines);
    // Another level than was read: the last batch is as whole, and nothing else tells.
    let before = &realm.frozen[3];
    let mut tail = Tail {
        batch: before.number,
        hash: before.hash,
        event: annals_ids::EventNumber(4),
    };
    let (member, change) = (realm.member("level"), Located::whole(Value::UInt(99)));
    let body = Body::Changed { member, change };
    let forged = batch(&realm.imprint, &mut tail, CELL, Some(4), body);
    realm.replace(4, &forged.bytes);
    let report = whole();
    assert_eq!(
        (report.passed_over, report.otherwise, report.fault_count),
        (0, 1, 0),
        "{report}"
    );
}
