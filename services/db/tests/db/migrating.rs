//! Migrated realms: whatever the old and new definitions are, states and rows become what the plan says, on load as in
//! bulk, and the past stays unchanged. The schemas and their edits are those of the comparison's own tests.

mod retention;

mod killed;

mod running;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::worlds::{Pair, pair, sample};
use annals_db::{
    ClaimedStore, Extent, Folder, Migrations, accounts, ensure_shards, find_indexed,
    migrating::{MigrateError, Preparation, convert_next},
    read_archived, read_unlogged, recover,
};
use annals_def::{EntityType, Index, Located, MethodKind, Property, Renames, Schema, Value, split_mix};
use annals_director::{GrantError, Grants};
use annals_event::{BaseCreation, Batch, Body, Call, CellCreation, FrozenBatch, Image, Imprint, OwnerState, Place};
use annals_ids::{
    Address, BatchNumber, CallNumber, DatabaseId, EntityId, Epoch, Hash, LeafIndex, MemberId, OwnerId, Part, ProcessId,
    Shard, Tick, WallTime,
};
use annals_node::journal::Journal;
use annals_store::{
    ArchivedBatch, KeyRange, MemoryStore, ScanOrder, Store, StoreError, Transaction,
    faults::{self, Fault, FaultyStore},
    immediate,
    layout::{
        archive::{Tree, tree_key},
        director::Term,
        lineage::Lineage,
        owners::{OpeningRecord, opening_key},
    },
    limits::KEYS_END,
};

const SHARD: Shard = Shard(0);
const PROCESS: ProcessId = ProcessId(1);
const PAIRS: u64 = 250;
const EDITS: u64 = 3;

/// An owner's log while it is written.
struct Log {
    journal: Journal,
    epoch: Epoch,
}

/// A realm in which an entity of each type is active, is stored, and is called.
struct World {
    store: Store,
    base: Log,
    cell: Log,
    /// The stored entities, with the type under the old definitions.
    stored: BTreeMap<DatabaseId, String>,
}

impl Log {
    fn found((grants, shard): (&Grants, Shard), part: Part, schema: &Schema) -> Self {
        let grant = immediate(grants.found(part, shard, PROCESS)).expect("the director leads");
        Self::go_on(OwnerState::new(grant.owner, part), grant.epoch, schema)
    }

    fn go_on(state: OwnerState, epoch: Epoch, schema: &Schema) -> Self {
        let imprint = Imprint {
            realm: "test".into(),
            owner: state.owner,
            epoch,
            schema: schema.fingerprint(),
        };
        let journal = Journal::new(state, imprint);
        Self { journal, epoch }
    }

    fn owner(&self) -> OwnerId {
        self.journal.state().owner
    }

    /// Closes a batch and folds it.
    fn write(&mut self, folder: &mut Folder, store: &Store, opens: bool) {
        let batch = self.journal.freeze(Tick(1), WallTime(5_000), opens);
        if opens {
            record_opening(store, self.epoch, &batch);
        }
        folder.offer(batch.owner, batch.bytes);
        while folder.has_work() {
            let folded = immediate(folder.commit()).expect("the store answers");
            assert!(folded.alarms.is_empty(), "{:?}", folded.alarms);
        }
    }

    fn record(&mut self, entity: EntityId, shown: bool, body: Body) {
        let subject = self.journal.subject(entity);
        self.journal.record(subject, shown, body);
    }

    /// Calls each method that the other entity has there, with some arguments.
    fn call(
        &mut self,
        from: EntityId,
        (to, home): (Address, OwnerId),
        methods: &[annals_def::Method],
        dice: &mut dyn FnMut() -> u64,
    ) {
        for (number, method) in (1..).zip(methods) {
            let args = method
                .args
                .iter()
                .map(|argument| sample(&argument.data_type, dice))
                .collect();
            let call = Call::Method {
                method: method.index,
                args,
                wants_reply: false,
            };
            let number = CallNumber(number);
            self.record(from, false, Body::Called { to, home, number, call });
        }
    }
}

fn record_opening(store: &Store, epoch: Epoch, batch: &FrozenBatch) {
    let record = OpeningRecord {
        epoch,
        number: batch.number,
        hash: batch.hash,
    };
    let key = &opening_key(batch.owner, epoch);
    let value = &record.encode();
    let work = |transaction: Transaction| async move { transaction.set(key, value) };
    immediate(store.run_repeatable(work)).expect("the store answers");
}

impl World {
    /// A realm that was stopped.
    fn live(old: &Schema, dice: &mut dyn FnMut() -> u64) -> Self {
        let (world, grants, _) = Self::running(old, dice);
        immediate(grants.close_realm(WallTime(9_000))).expect("it leads");
        world
    }

    /// A realm that runs, with its director's grants and its folder.
    fn running(old: &Schema, dice: &mut dyn FnMut() -> u64) -> (Self, Grants, Folder) {
        let (world, grants, folder, _) = Self::running_on(SHARD, old, dice);
        (world, grants, folder)
    }

    /// The same, with the cell's owner on a shard. If that is another one, it has a folder of its own.
    fn running_on(
        of_cell: Shard,
        old: &Schema,
        dice: &mut dyn FnMut() -> u64,
    ) -> (Self, Grants, Folder, Option<Folder>) {
        let store = MemoryStore::new().store();
        let grants = immediate(Grants::lead(
            store.clone(),
            PROCESS,
            Term::default(),
            std::time::Duration::ZERO,
        ))
        .expect("no other director leads");
        immediate(grants.begin_realm(WallTime(1_000), old.fingerprint(), &old.encode())).expect("a new realm");
        let mut folder = immediate(Folder::begin(store.clone(), SHARD, Arc::new(old.clone()))).expect("a store");
        let mut other = (of_cell != SHARD).then(|| {
            immediate(ensure_shards(&store, of_cell.0 + 1)).expect("the store answers");
            let folder = immediate(Folder::begin(store.clone(), of_cell, Arc::new(old.clone())));
            folder.expect("a store").following_definitions()
        });
        let mut base = Log::found((&grants, SHARD), Part::Base, old);
        let mut cell = Log::found((&grants, of_cell), Part::Cell, old);
        base.write(&mut folder, &store, true);
        cell.write(other.as_mut().unwrap_or(&mut folder), &store, true);
        let mut stored = BTreeMap::new();
        for (number, entity_type) in (1..).zip(old.types()) {
            let (entity, database) = (EntityId(1_000 + number), DatabaseId(number));
            if entity_type.parts.cell {
                begin_cell(&mut cell, entity, entity_type, base.owner(), dice);
            }
            if entity_type.parts.base {
                begin_base(&mut base, entity, entity_type, dice);
                stored.insert(database, entity_type.name.clone());
                let at = entity_type.parts.cell.then(|| cell.owner());
                base.record(entity, false, Body::Placed(at));
                cell.write(other.as_mut().unwrap_or(&mut folder), &store, false);
                base.record(entity, false, Body::Stored { database });
                base.call(
                    entity,
                    (Address::Base(entity), base.owner()),
                    &entity_type.base_methods,
                    dice,
                );
                base.call(
                    entity,
                    (Address::Cell(entity), base.owner()),
                    &entity_type.cell_methods,
                    dice,
                );
            }
            base.write(&mut folder, &store, false);
        }
        cell.write(other.as_mut().unwrap_or(&mut folder), &store, false);
        let world = Self {
            store,
            base,
            cell,
            stored,
        };
        (world, grants, folder, other)
    }
}

fn held(entity_type: &EntityType, part: Part) -> impl Iterator<Item = &Property> {
    let all = entity_type.properties.iter();
    all.filter(move |property| property.is_held_by(part))
}

fn set(log: &mut Log, entity: EntityId, entity_type: &EntityType, part: Part, dice: &mut dyn FnMut() -> u64) {
    for property in held(entity_type, part) {
        if dice().is_multiple_of(4) {
            continue;
        }
        let change = Located::whole(sample(&property.data_type, dice));
        let member = property.index;
        log.record(entity, true, Body::Changed { member, change });
    }
}

fn begin_base(log: &mut Log, entity: EntityId, entity_type: &EntityType, dice: &mut dyn FnMut() -> u64) {
    let defaults = held(entity_type, Part::Base).map(|property| (property.index, property.default.clone()));
    let creation = BaseCreation {
        type_id: entity_type.id,
        database: DatabaseId(0),
        checkout: 0,
        properties: defaults.collect(),
        cell_properties: Vec::new(),
    };
    log.record(entity, false, Body::BaseCreated(Box::new(creation)));
    set(log, entity, entity_type, Part::Base, dice);
}

fn begin_cell(log: &mut Log, entity: EntityId, entity_type: &EntityType, home: OwnerId, dice: &mut dyn FnMut() -> u64) {
    let defaults = held(entity_type, Part::Cell).map(|property| (property.index, property.default.clone()));
    let creation = CellCreation {
        entity,
        type_id: entity_type.id,
        home,
        based: entity_type.parts.base,
        place: Place::default(),
        properties: defaults.collect(),
        client: None,
        former: None,
    };
    log.record(entity, false, Body::CellCreated(Box::new(creation)));
    set(log, entity, entity_type, Part::Cell, dice);
}

/// All rows of a store.
fn dump(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let everything = &KeyRange::new(vec![], KEYS_END.to_vec());
    let read =
        |transaction: Transaction| async move { transaction.get_range(everything, 100_000, ScanOrder::Forward).await };
    let page = immediate(store.read(read)).expect("the store answers");
    assert!(!page.more, "a small store");
    page.rows
        .iter()
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

/// The rows of stored entities, and of their index.
fn rows_of(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    dump(store)
        .into_iter()
        .filter(|(key, _)| matches!(key[0], 0x0c | 0x0d))
        .collect()
}

fn state_of(store: &Store, log: &Log) -> OwnerState {
    let state = log.journal.state();
    immediate(recover(store, SHARD, state.owner, state.kind))
        .expect("it recovers")
        .state
}

fn prepare(store: &Store, pair: &Pair) -> Result<Preparation, MigrateError> {
    let said = pair.renames.all().collect();
    immediate(Preparation::begin(store.clone(), pair.new.clone(), said))
}

/// Whether the plan has a counterpart for all that is active and stored.
fn has_place(world: &World, pair: &Pair, plan: &annals_def::Plan) -> bool {
    let parts = [(Part::Base, &world.base), (Part::Cell, &world.cell)];
    let lives = parts.iter().all(|(part, log)| {
        let mut images = log.journal.state().entities.values();
        images.all(|image| plan.convert_held(image.type_id, *part, &image.properties).is_ok())
    });
    let base = world.base.journal.state();
    let called = base.entities.values().all(|image| {
        image.links.sent.iter().all(|(to, sent)| {
            let kind = match to {
                Address::Base(_) => MethodKind::Base,
                _ => MethodKind::Cell,
            };
            sent.unconfirmed.values().all(|call| match call {
                Call::Method { method, args, .. } => plan.convert_call(image.type_id, kind, *method, args).is_ok(),
                _ => true,
            })
        })
    });
    let stored = world.stored.iter().all(|(id, name)| {
        let entity = immediate(accounts::load(&world.store, *id))
            .expect("readable")
            .expect("stored");
        assert_eq!(entity.entity_type, *name, "{}", pair.old.fingerprint());
        plan.convert_stored(&entity.entity_type, &entity.properties).is_ok()
    });
    lives && called && stored
}

#[test]
fn lazy_and_bulk_migration_follow_the_plan_or_change_nothing() {
    let (mut migrated, mut refused) = (0, 0);
    for seed in 0..PAIRS {
        let dice = &mut split_mix(seed);
        let pair = pair(EDITS, dice);
        let world = World::live(&pair.old, dice);
        let before = dump(&world.store);
        let preparation = match prepare(&world.store, &pair) {
            Ok(preparation) => preparation,
            Err(MigrateError::Same) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let survey = immediate(preparation.survey()).expect("readable");
        assert!(dump(&world.store) == before, "seed {seed}: a survey changes nothing");
        let plan = annals_def::Plan::new(&pair.old, &pair.new, &pair.renames);
        let clean = survey.is_clean();
        assert_eq!(
            clean,
            has_place(&world, &pair, &plan),
            "seed {seed}: {:?}",
            survey.refused
        );
        if !clean {
            refused += 1;
            continue;
        }
        migrated += 1;
        let (base, cell) = (state_of(&world.store, &world.base), state_of(&world.store, &world.cell));
        let read = |id: &DatabaseId| {
            immediate(accounts::load(&world.store, *id))
                .expect("readable")
                .expect("stored")
        };
        let expected: BTreeMap<DatabaseId, _> = world
            .stored
            .keys()
            .map(|id| {
                let old = read(id);
                (
                    *id,
                    plan.convert_stored(&old.entity_type, &old.properties)
                        .expect("a clean survey"),
                )
            })
            .collect();
        immediate(preparation.decide(&survey, WallTime(9_500), false)).expect("the store answers");
        // On load, before anything was converted.
        check_loaded(seed, &world.store, &expected);
        let migrations = immediate(Migrations::read(&world.store)).expect("readable");
        while !immediate(convert_next(&world.store, &pair.new, &migrations))
            .expect("a clean survey")
            .is_done
        {}
        check_loaded(seed, &world.store, &expected);
        check_index(seed, &world.store, &pair.new, &expected);
        check_states(seed, &world, &pair, &plan, &migrations, [base, cell]);
        check_restored(seed, &world.store, &pair);
    }
    println!("{migrated} migrated, {refused} refused");
    assert!(
        migrated > PAIRS / 4 && refused > PAIRS / 20,
        "{migrated} migrated, {refused} refused"
    );
}

/// Checks that every stored entity is loaded as the plan says.
fn check_loaded(seed: u64, store: &Store, expected: &BTreeMap<DatabaseId, (String, BTreeMap<String, Value>)>) {
    for (id, (name, properties)) in expected {
        let loaded = immediate(accounts::load(store, *id))
            .expect("readable")
            .expect("stored");
        assert_eq!(
            (&loaded.entity_type, &loaded.properties),
            (name, properties),
            "seed {seed}"
        );
    }
}

/// Checks that every stored entity is found by its present values.
fn check_index(
    seed: u64,
    store: &Store,
    new: &Schema,
    expected: &BTreeMap<DatabaseId, (String, BTreeMap<String, Value>)>,
) {
    for (id, (name, properties)) in expected {
        let entity_type = new.type_named(name).expect("of the new definitions");
        let indexed = |property: &&Property| property.persistent && property.indexed != Index::None;
        for property in entity_type.properties.iter().filter(indexed) {
            // The compiler refuses an index of values without an order.
            let is_ordered = |value: &&Value| {
                matches!(
                    value,
                    Value::Int(_)
                        | Value::UInt(_)
                        | Value::Float32(_)
                        | Value::Float64(_)
                        | Value::Bytes(_)
                        | Value::Unicode(_)
                )
            };
            let Some(value) = properties.get(&property.name).filter(is_ordered) else {
                continue;
            };
            let (name, range) = (property.name.as_str(), (DatabaseId(0), 10));
            let find = |transaction: Transaction| async move {
                Ok::<_, StoreError>(find_indexed(&transaction, entity_type, name, value, range).await)
            };
            let found = immediate(store.read(find)).expect("readable").expect("it has an index");
            let is_empty = matches!(value, Value::Bytes(bytes) if bytes.is_empty())
                || matches!(value, Value::Unicode(text) if text.is_empty());
            let is_nameless = is_empty && property.indexed == Index::Unique;
            assert_eq!(found.contains(id), !is_nameless, "seed {seed}: {name} of {id}: {value}");
        }
    }
}

/// Checks that a reader converts the states where the logs go over, and that the past is unchanged.
fn check_states(
    seed: u64,
    world: &World,
    pair: &Pair,
    plan: &annals_def::Plan,
    migrations: &Migrations,
    before: [OwnerState; 2],
) {
    let grants = immediate(Grants::lead(
        world.store.clone(),
        PROCESS,
        Term::default(),
        std::time::Duration::ZERO,
    ));
    // The first director of the test leads for good; the next takes the term that it left.
    let term = immediate(Grants::watch(&world.store)).expect("readable");
    let grants = match grants {
        Ok(grants) => grants,
        Err(_) => immediate(Grants::lead(
            world.store.clone(),
            PROCESS,
            term,
            std::time::Duration::ZERO,
        ))
        .expect("it has seen the term"),
    };
    let mut folder = immediate(Folder::begin(world.store.clone(), SHARD, Arc::new(pair.new.clone()))).expect("a store");
    for (log, before) in [&world.base, &world.cell].into_iter().zip(before) {
        let mut state = state_of(&world.store, log);
        assert_eq!(state.hash(), before.hash(), "seed {seed}: the log is unchanged");
        migrations
            .convert(&mut state, pair.new.fingerprint())
            .expect("a clean survey");
        for (entity, image) in &state.entities {
            let old = &before.entities[entity];
            let part = log.journal.state().part().expect("it holds parts");
            let converted = plan
                .convert_held(old.type_id, part, &old.properties)
                .expect("a clean survey");
            assert_eq!(
                (image.type_id, &image.properties),
                (converted.0, &converted.1),
                "seed {seed}"
            );
            assert_eq!(image.history, old.history, "seed {seed}: history numbers continue");
            check_calls(seed, plan, old, image);
        }
        let grant = immediate(grants.grant(log.owner(), PROCESS, |_| false)).expect("it leads");
        let mut taken = Log::go_on(state, grant.epoch, &pair.new);
        taken.write(&mut folder, &world.store, true);
        // The owner continues: all of its properties can be set, and are stored.
        let entities: Vec<EntityId> = taken.journal.state().entities.keys().copied().collect();
        for entity in entities {
            let image = &taken.journal.state().entities[&entity];
            let set: Vec<(MemberId, Value)> = image.properties.clone().into_iter().collect();
            let database = image.base().map(|base| base.database);
            for (member, value) in set {
                let change = Located::whole(value);
                taken.record(entity, true, Body::Changed { member, change });
            }
            if let Some(database) = database {
                taken.record(entity, false, Body::Stored { database });
            }
        }
        taken.write(&mut folder, &world.store, false);
        let recovered = state_of(&world.store, &taken);
        assert_eq!(recovered.hash(), taken.journal.state().hash(), "seed {seed}: recovery");
        check_past(seed, &world.store, migrations, &before, &recovered);
    }
}

/// Checks that the whole past replays, under the definitions of each time.
fn check_past(seed: u64, store: &Store, migrations: &Migrations, before: &OwnerState, recovered: &OwnerState) {
    // The whole past, under both definitions.
    let mut replayed = OwnerState::new(recovered.owner, recovered.kind);
    let archived = immediate(read_archived(store, SHARD, recovered.owner, BatchNumber(0), 64));
    for (_, archived) in archived.expect("an archive") {
        let batch = Batch::read(archived.header()).expect("a batch");
        assert!(
            !batch.header.opens || batch.header.number.0 == 1 || replayed.fold(&batch).is_err(),
            "seed {seed}: no db folds it without converting"
        );
        migrations.fold(&mut replayed, &batch).expect("it replays");
        if replayed.tail == before.tail {
            assert_eq!(replayed.hash(), before.hash(), "seed {seed}: the past");
        }
    }
    assert_eq!(replayed.hash(), recovered.hash(), "seed {seed}: replay");
}

fn check_calls(seed: u64, plan: &annals_def::Plan, old: &Image, new: &Image) {
    for (to, sent) in &old.links.sent {
        for (number, call) in &sent.unconfirmed {
            let (
                Call::Method { method, args, .. },
                Call::Method {
                    method: now,
                    args: given,
                    ..
                },
            ) = (call, &new.links.sent[to].unconfirmed[number])
            else {
                continue;
            };
            let kind = match to {
                Address::Base(_) => MethodKind::Base,
                _ => MethodKind::Cell,
            };
            // Those that have no cell part cannot be called there.
            if let Ok(converted) = plan.convert_call(old.type_id, kind, *method, args) {
                assert_eq!((*now, given), (converted.0, &converted.1), "seed {seed}");
            }
        }
    }
}

/// Checks that the realm's backup gives the same rows: at its end, and as it was before the migration.
fn check_restored(seed: u64, store: &Store, pair: &Pair) {
    let rows = immediate(read_unlogged(store)).expect("readable");
    let mut leaves: BTreeMap<LeafIndex, (OwnerId, ArchivedBatch)> = BTreeMap::new();
    for owner in immediate(annals_director::read_owners(store))
        .expect("readable")
        .into_keys()
    {
        let archived = immediate(read_archived(store, SHARD, owner, BatchNumber(0), 64)).expect("an archive");
        leaves.extend(archived.into_iter().map(|(leaf, archived)| (leaf, (owner, archived))));
    }
    let schema_of = |archived: &ArchivedBatch| Batch::read(archived.header()).expect("a batch").header.schema;
    let old = leaves
        .values()
        .filter(|(_, bytes)| schema_of(bytes) == pair.old.fingerprint())
        .count() as u64;
    let restore = |upto: u64| {
        let taken = leaves.range(..LeafIndex(upto));
        let logs = taken
            .clone()
            .map(|(_, (owner, bytes))| (*owner, Batch::read(bytes.header()).expect("a batch").header.number));
        let extent = Extent {
            leaves: BTreeMap::from([(SHARD, upto)]),
            logs: logs.collect(),
        };
        let restored = MemoryStore::new().store();
        immediate(async {
            let claimed = ClaimedStore::claim(restored.clone(), "old-5").await?;
            let mut restoring = claimed.begin(&rows, &extent).await?;
            for (leaf, (_, bytes)) in taken {
                restoring.take(SHARD, *leaf, bytes.clone()).await?;
            }
            let lineage = Lineage {
                leaf: LeafIndex(upto),
                others: Vec::new(),
                restored: WallTime(5),
                from: "old".into(),
                to: "new".into(),
                backup: "old-5".into(),
            };
            restoring.finish(&BTreeMap::new(), &lineage).await
        })
        .unwrap_or_else(|error| {
            panic!(
                "seed {seed}: {error}: {:?}",
                std::error::Error::source(&error).map(ToString::to_string)
            )
        });
        restored
    };
    assert!(
        rows_of(&restore(leaves.len() as u64)) == rows_of(store),
        "seed {seed}: restored"
    );
    check_former(seed, &restore(old.saturating_sub(1)), pair);
}

/// Checks that before the migration it is a realm of the old definitions.
fn check_former(seed: u64, former: &Store, pair: &Pair) {
    let begun = |schema: &Schema| {
        let grants = immediate(async {
            let term = Grants::watch(former).await.expect("readable");
            Grants::lead(former.clone(), PROCESS, term, std::time::Duration::ZERO).await
        });
        immediate(grants.expect("no other director leads").begin_realm(
            WallTime(9),
            schema.fingerprint(),
            &schema.encode(),
        ))
    };
    assert!(
        begun(&pair.old).is_ok(),
        "seed {seed}: before the migration it is a realm of the old definitions"
    );
    assert!(
        matches!(begun(&pair.new), Err(GrantError::OtherSchema { .. })),
        "seed {seed}"
    );
}

/// A pair of definitions whose migration changes every stored entity of one type.
fn simple() -> (Pair, EntityType) {
    let build = |name: &str, data_type| {
        let mut entity_type = EntityType::new("Avatar".to_owned());
        let mut property = Property::new(name.to_owned(), data_type, annals_def::Distribution::ALL[0]);
        property.persistent = true;
        property.indexed = Index::Plain;
        entity_type.properties.push(property);
        Schema::new(vec![entity_type], Vec::new(), Vec::new())
    };
    let old = build("level", annals_def::DataType::UInt8);
    let new = build("rank", annals_def::DataType::Int32);
    let rename = "Avatar.level=rank".parse().expect("a rename");
    let renames = Renames::new(&old, &new, [rename]).expect("both are there");
    let entity_type = new.type_named("Avatar").expect("it has one").clone();
    (Pair { old, new, renames }, entity_type)
}

/// The steps of the command, on a store that may fail. It is called again after a failure.
fn migrate(store: &Store, pair: &Pair) -> Result<(), MigrateError> {
    match prepare(store, pair) {
        Ok(preparation) => {
            let survey = immediate(preparation.survey())?;
            assert!(survey.is_clean());
            immediate(preparation.decide(&survey, WallTime(9_500), false))?;
        }
        Err(MigrateError::Unfinished(schema)) if schema == pair.new.fingerprint() => {}
        Err(MigrateError::Same) => return Ok(()),
        Err(error) => return Err(error),
    }
    let migrations = immediate(Migrations::read(store))?;
    while !immediate(convert_next(store, &pair.new, &migrations))?.is_done {}
    Ok(())
}

/// A store whose user dies in its commit after `at`, which is applied or not.
fn dying(store: &Store, at: u64, applied: bool) -> Store {
    let mut commits = 0;
    FaultyStore::wrap(store, move |call| {
        let dies = commits > at;
        match call {
            _ if dies => Fault::Unavailable,
            faults::Call::Commit => {
                commits += 1;
                match (commits > at, applied) {
                    (true, true) => Fault::AnswerLost,
                    (true, false) => Fault::RequestLost,
                    (false, _) => Fault::None,
                }
            }
            _ => Fault::None,
        }
    })
}

#[test]
fn a_batch_of_any_shard_overtakes_a_migration() {
    let (pair, _) = simple();
    let world = World::live(&pair.old, &mut split_mix(2));
    assert_eq!(immediate(ensure_shards(&world.store, 2)), Ok(2));
    let overtaken = prepare(&world.store, &pair).expect("no survey finding prevents it");
    let survey = immediate(overtaken.survey()).expect("readable");
    let tree = Tree {
        size: 1,
        peaks: vec![Hash([1; 32])],
    };
    let tree = &tree.encode();
    let archive = |transaction: Transaction| async move { transaction.set(&tree_key(Shard(1)), tree) };
    immediate(world.store.run_repeatable(archive)).expect("the store answers");
    let decided = immediate(overtaken.decide(&survey, WallTime(9_999), false));
    assert!(matches!(decided, Err(MigrateError::Changed)), "{decided:?}");
    migrate(&world.store, &pair).expect("nothing has changed since it was prepared again");
}

#[test]
fn invalid_migrations_are_refused_with_a_reason() {
    let (pair, _) = simple();
    let world = World::live(&pair.old, &mut split_mix(1));
    let again = Pair {
        old: pair.new.clone(),
        new: pair.old.clone(),
        renames: Renames::default(),
    };
    assert!(matches!(prepare(&world.store, &again), Err(MigrateError::Same)));
    let preparation = prepare(&world.store, &pair).expect("no survey finding prevents it");
    assert!(
        matches!(preparation.may_be_later(), Err(MigrateError::IndexChanges(what)) if what == "Avatar.level"),
        "no entity would be found by a rank"
    );
    let begin = |schema: &Schema| {
        immediate(async {
            let term = Grants::watch(&world.store).await.expect("readable");
            let grants = Grants::lead(world.store.clone(), PROCESS, term, std::time::Duration::ZERO)
                .await
                .expect("a term");
            grants
                .begin_realm(WallTime(1), schema.fingerprint(), &schema.encode())
                .await
        })
    };
    assert!(
        matches!(begin(&pair.new), Err(GrantError::OtherSchema { .. })),
        "not migrated yet"
    );
    let bare = Schema::new(vec![EntityType::new("Avatar".to_owned())], Vec::new(), Vec::new());
    let elsewhere = Pair {
        old: pair.old.clone(),
        new: bare.clone(),
        renames: Renames::default(),
    };
    let overtaken = prepare(&world.store, &elsewhere).expect("no survey finding prevents it yet");
    let surveyed = immediate(overtaken.survey()).expect("readable");
    migrate(&world.store, &pair).expect("nothing fails");
    let decided = immediate(overtaken.decide(&surveyed, WallTime(9_999), false));
    assert!(
        matches!(decided, Err(MigrateError::Changed)),
        "another transaction committed first: {decided:?}"
    );
    assert!(begin(&pair.new).is_ok());
    let former = begin(&pair.old).expect_err("it has other definitions now");
    assert!(matches!(former, GrantError::FormerSchema { .. }), "{former}");
    assert!(matches!(prepare(&world.store, &again), Err(MigrateError::Downgrade)));
    // A realm that runs, or was killed.
    let third = Pair { new: bare, ..again };
    let still_closed = prepare(&world.store, &third).expect("it is still closed");
    let survey = immediate(still_closed.survey()).expect("readable");
    immediate(async {
        let term = Grants::watch(&world.store).await.expect("readable");
        let grants = Grants::lead(world.store.clone(), PROCESS, term, std::time::Duration::ZERO)
            .await
            .expect("a term");
        grants.open_realm(WallTime(10_000)).await.expect("it leads")
    });
    assert!(matches!(prepare(&world.store, &third), Err(MigrateError::NotStopped)));
    // The realm was started during the survey.
    let decided = immediate(still_closed.decide(&survey, WallTime(10_001), false));
    assert!(matches!(decided, Err(MigrateError::NotStopped)));
}
