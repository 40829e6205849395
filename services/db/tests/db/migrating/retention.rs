//! Retention before and after a migration: states, rows and backups are those of a realm that keeps everything.

use annals_db::{RetentionPace, RetentionProgress, read_floor};
use annals_event::Header;
use annals_ids::Hash;

use super::*;

/// Number of pairs of definitions tried; about half of them can be migrated.
const TRIED: u64 = 40;

/// When a realm deletes all events that it may.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LetsGo {
    Never,
    Before,
    After,
    BeforeAndAfter,
}

/// Result of a run: the realm's states, the recovered states, and the rows.
struct Outcome {
    states: [Hash; 2],
    /// Number of leaves.
    leaves: usize,
    /// Number of leaves without events.
    thinned: usize,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
}

#[test]
fn retention_before_or_after_a_migration_gives_the_same_realm() {
    let (mut migrated, mut thinned) = (0, [0; 3]);
    for seed in 0..TRIED {
        let Some(kept) = outcome(seed, LetsGo::Never) else {
            continue;
        };
        migrated += 1;
        assert_eq!(kept.thinned, 0, "seed {seed}");
        let ways = [LetsGo::Before, LetsGo::After, LetsGo::BeforeAndAfter];
        for (lets_go, thinned) in ways.into_iter().zip(&mut thinned) {
            let left = outcome(seed, lets_go).expect("it is migrated, whatever it keeps");
            *thinned += left.thinned;
            assert_eq!(left.states, kept.states, "seed {seed}");
            assert_eq!(left.leaves, kept.leaves, "seed {seed}");
            assert!(left.rows == kept.rows, "seed {seed}: rows of stored entities");
        }
    }
    println!("{migrated} were migrated, {thinned:?} leaves thinned before, after, and both");
    assert!(migrated > TRIED / 4, "{migrated} were migrated");
    assert!(thinned.iter().all(|thinned| *thinned > 0), "{thinned:?}");
}

/// Runs a realm through a migration and for a while after it; `None` if it cannot be migrated.
fn outcome(seed: u64, lets_go: LetsGo) -> Option<Outcome> {
    let dice = &mut split_mix(seed);
    let pair = pair(EDITS, dice);
    let world = World::live(&pair.old, dice);
    let store = &world.store;
    if matches!(lets_go, LetsGo::Before | LetsGo::BeforeAndAfter) {
        deleted(store, &pair.old);
    }
    let preparation = match prepare(store, &pair) {
        Ok(preparation) => preparation,
        Err(MigrateError::Same) => return None,
        Err(error) => panic!("seed {seed}: {error}"),
    };
    let survey = immediate(preparation.survey()).expect("readable");
    if !survey.is_clean() {
        return None;
    }
    immediate(preparation.decide(&survey, WallTime(9_500), false)).expect("the store answers");
    let migrations = immediate(Migrations::read(store)).expect("readable");
    while !immediate(convert_next(store, &pair.new, &migrations))
        .expect("a clean survey")
        .is_done
    {}
    let states = lives_on(&world, &pair, &migrations);
    if matches!(lets_go, LetsGo::After | LetsGo::BeforeAndAfter) {
        deleted(store, &pair.new);
        let cell = world.cell.owner();
        let floor = immediate(read_floor(store, SHARD, cell, BatchNumber(0))).expect("readable");
        let floor = floor.expect("it was just written");
        assert_eq!(floor.hash(), states[1], "seed {seed}: the floor went over too");
    }
    let recovered = [&world.base, &world.cell].map(|log| state_of(store, log).hash());
    assert_eq!(recovered, states, "seed {seed}: recovery");
    let leaves = leaves(store);
    let thinned = leaves.values().filter(|(_, archived)| archived.is_thinned()).count();
    let rows = rows_of(store);
    assert!(
        rows_of(&restored(seed, store, &leaves)) == rows,
        "seed {seed}: restored"
    );
    let leaves = leaves.len();
    Some(Outcome {
        states,
        leaves,
        thinned,
        rows,
    })
}

/// Takes the logs over, which converts them; changes and stores everything in them.
fn lives_on(world: &World, pair: &Pair, migrations: &Migrations) -> [Hash; 2] {
    let term = immediate(Grants::watch(&world.store)).expect("readable");
    let grants = immediate(Grants::lead(
        world.store.clone(),
        PROCESS,
        term,
        std::time::Duration::ZERO,
    ))
    .expect("it has seen the term");
    let mut folder = immediate(Folder::begin(world.store.clone(), SHARD, Arc::new(pair.new.clone()))).expect("a store");
    [&world.base, &world.cell].map(|log| {
        let mut state = state_of(&world.store, log);
        let converted = migrations.convert(&mut state, pair.new.fingerprint());
        converted.expect("a clean survey");
        let grant = immediate(grants.grant(log.owner(), PROCESS, |_| false)).expect("it leads");
        let mut taken = Log::go_on(state, grant.epoch, &pair.new);
        taken.write(&mut folder, &world.store, true);
        let entities: Vec<EntityId> = taken.journal.state().entities.keys().copied().collect();
        for entity in entities {
            let image = taken.journal.state().entities[&entity].clone();
            let database = image.base().map(|base| base.database);
            for (member, value) in image.properties {
                let change = Located::whole(value);
                taken.record(entity, true, Body::Changed { member, change });
            }
            if let Some(database) = database {
                taken.record(entity, false, Body::Stored { database });
            }
        }
        taken.write(&mut folder, &world.store, false);
        taken.journal.state().hash()
    })
}

/// Deletes all archived events: each leaf is a segment of its own.
fn deleted(store: &Store, schema: &Schema) {
    let begun = Folder::begin(store.clone(), SHARD, Arc::new(schema.clone()));
    let folder = immediate(begun).expect("a store");
    let mut sealer = folder.sealer().of_leaves(1);
    while immediate(sealer.seal_next()).expect("the store answers").is_some() {}
    let mut retention = folder.retention(RetentionPace::Eager);
    let late = WallTime(u64::MAX);
    while immediate(retention.turn(late)).expect("the store answers") != RetentionProgress::Idle {}
}

fn leaves(store: &Store) -> BTreeMap<LeafIndex, (OwnerId, ArchivedBatch)> {
    let mut leaves = BTreeMap::new();
    let owners = immediate(annals_director::read_owners(store)).expect("readable");
    for owner in owners.into_keys() {
        let archived = immediate(read_archived(store, SHARD, owner, BatchNumber(0), 64)).expect("an archive");
        leaves.extend(archived.into_iter().map(|(leaf, batch)| (leaf, (owner, batch))));
    }
    leaves
}

/// The store of a realm that is restored from everything available.
fn restored(seed: u64, store: &Store, leaves: &BTreeMap<LeafIndex, (OwnerId, ArchivedBatch)>) -> Store {
    let rows = immediate(read_unlogged(store)).expect("readable");
    let number = |archived: &ArchivedBatch| Header::read(archived.header()).expect("a header").0.number;
    let extent = Extent {
        leaves: BTreeMap::from([(SHARD, leaves.len() as u64)]),
        logs: leaves
            .values()
            .map(|(owner, archived)| (*owner, number(archived)))
            .collect(),
    };
    let lineage = Lineage {
        leaf: LeafIndex(leaves.len() as u64),
        others: Vec::new(),
        restored: WallTime(5),
        from: "old".into(),
        to: "new".into(),
        backup: "old-5".into(),
    };
    let restored = MemoryStore::new().store();
    let restoring = async {
        let claimed = ClaimedStore::claim(restored.clone(), "old-5").await?;
        let mut restoring = claimed.begin(&rows, &extent).await?;
        for (leaf, (_, archived)) in leaves {
            restoring.take(SHARD, *leaf, archived.clone()).await?;
        }
        restoring.finish(&BTreeMap::new(), &lineage).await
    };
    immediate(restoring).unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
    restored
}
