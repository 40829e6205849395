//! Definitions that change while the realm runs (rule M7): the result is that of the migration of a stopped realm, or
//! nothing changes.

use annals_db::{
    ChangeError, Folder, Migrations,
    migrating::{MigrateError, convert_next},
};
use annals_def::{Schema, split_mix};
use annals_director::{GrantError, Grants, openings};
use annals_ids::{Hash, OwnerId, Shard, WallTime};
use annals_store::{Store, immediate, layout::director::Upgrade};

use super::{EDITS, PAIRS, PROCESS, Pair, SHARD, World, dump, dying, pair, prepare, simple};

/// When the definitions change.
const AT: WallTime = WallTime(9_500);

/// Rows that differ between a realm that runs and one that was stopped: the director's term, the lease of folding, the
/// moment of the stop, the holders' connections, and how many stored entities there are to convert.
const OTHER_ROWS: [u8; 5] = [0x10, 0x12, 0x27, 0x28, 0x32];

fn rows(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = dump(store).into_iter();
    all.filter(|(key, _)| !OTHER_ROWS.contains(&key[0])).collect()
}

fn release(world: &World) {
    for log in [&world.base, &world.cell] {
        let released = immediate(openings::release(&world.store, log.owner(), log.epoch));
        assert!(released.expect("the store answers"), "it holds the owner");
    }
}

fn upgrade_of(pair: &Pair) -> Upgrade {
    Upgrade {
        to: pair.new.fingerprint(),
        renames: pair.renames.all().map(|rename| rename.to_string()).collect(),
    }
}

fn change(folder: &mut Folder, pair: &Pair) -> Result<(), ChangeError> {
    immediate(folder.change_definitions(pair.new.fingerprint(), AT))
}

fn folder(store: &Store, schema: &Schema) -> Folder {
    immediate(Folder::begin(store.clone(), SHARD, schema.clone().into())).expect("a store")
}

#[test]
fn a_running_realm_changes_as_a_stopped_one_is_migrated() {
    let (mut changed, mut refused) = (0, 0);
    for seed in 0..PAIRS {
        let dice = &mut split_mix(seed);
        let pair = pair(EDITS, dice);
        let content = dice();
        let stopped = World::live(&pair.old, &mut split_mix(content));
        let (world, grants, mut folder) = World::running(&pair.old, &mut split_mix(content));
        let preparation = match prepare(&stopped.store, &pair) {
            Ok(preparation) => preparation,
            Err(MigrateError::Same) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let survey = immediate(preparation.survey()).expect("readable");
        immediate(grants.prepare_upgrade(&upgrade_of(&pair), &pair.new.encode())).expect("it leads");
        release(&world);
        let before = rows(&world.store);
        let done = change(&mut folder, &pair);
        let of_rows = |why: &String| why.contains("of the database");
        if survey.refused.iter().any(of_rows) || survey.unnamed > 0 {
            // Stored entities are tried only in a realm that is stopped: the command refuses such a change.
            continue;
        }
        if !survey.is_clean() || preparation.may_be_later().is_err() {
            refused += 1;
            let error = done.expect_err("something has no counterpart");
            let is_expected = match &error {
                ChangeError::NoPlace(_) => !survey.is_clean(),
                ChangeError::Stopped(MigrateError::IndexChanges(_)) => preparation.may_be_later().is_err(),
                _ => false,
            };
            assert!(is_expected, "seed {seed}: {error:?}");
            assert!(rows(&world.store) == before, "seed {seed}: nothing changes");
            continue;
        }
        changed += 1;
        done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(folder.schema().fingerprint(), pair.new.fingerprint());
        immediate(preparation.decide(&survey, AT, true)).expect("the store answers");
        assert!(rows(&world.store) == rows(&stopped.store), "seed {seed}");
    }
    println!("{changed} changed, {refused} refused");
    assert!(
        changed > PAIRS / 8 && refused > PAIRS / 20,
        "{changed} changed, {refused} refused"
    );
}

/// The owners of other shards are tried as well, and their folds store nothing under the former definitions.
#[test]
fn a_change_concerns_all_shards() {
    let other = Shard(1);
    let (mut changed, mut refused) = (0, 0);
    for seed in 0..PAIRS {
        let dice = &mut split_mix(seed);
        let pair = pair(EDITS, dice);
        let content = dice();
        let (alone, grants, mut folder) = World::running(&pair.old, &mut split_mix(content));
        if immediate(grants.prepare_upgrade(&upgrade_of(&pair), &pair.new.encode())).is_err() {
            continue;
        }
        release(&alone);
        let expected = change(&mut folder, &pair).map_err(|error| error.to_string());

        let (world, grants, mut first, second) = World::running_on(other, &pair.old, &mut split_mix(content));
        let mut second = second.expect("a folder of its own");
        immediate(grants.prepare_upgrade(&upgrade_of(&pair), &pair.new.encode())).expect("it leads");
        let held = change(&mut first, &pair);
        assert!(held.is_err(), "seed {seed}: the owners are held");
        release(&world);
        let done = change(&mut first, &pair).map_err(|error| error.to_string());
        assert_eq!(done, expected, "seed {seed}");
        immediate(second.commit()).expect("the store answers");
        if done.is_ok() {
            changed += 1;
            assert_eq!(second.schema().fingerprint(), pair.new.fingerprint(), "seed {seed}");
        } else {
            refused += 1;
            assert_eq!(second.schema().fingerprint(), pair.old.fingerprint(), "seed {seed}");
        }
    }
    println!("{changed} changed, {refused} refused");
    assert!(
        changed > PAIRS / 8 && refused > PAIRS / 20,
        "{changed} changed, {refused} refused"
    );
}

#[test]
fn definitions_change_only_when_they_are_prepared_and_every_owner_is_released() {
    let (pair, world, grants, mut folder) = renamed();
    let to = pair.new.fingerprint();
    release(&world);
    let unprepared = change(&mut folder, &pair);
    assert!(
        matches!(unprepared, Err(ChangeError::NotPrepared(of)) if of == to),
        "{unprepared:?}"
    );
    immediate(grants.prepare_upgrade(&upgrade_of(&pair), &pair.new.encode())).expect("it leads");
    let other = immediate(folder.change_definitions(Hash([9; 32]), AT));
    assert!(matches!(other, Err(ChangeError::NotPrepared(_))), "{other:?}");

    // Granted again since: the holder may open at any time.
    let granted: OwnerId = world.cell.owner();
    let grant = immediate(grants.grant(granted, PROCESS, |_| false)).expect("it leads");
    let held = change(&mut folder, &pair);
    assert!(
        matches!(held, Err(ChangeError::NotReleased(owner)) if owner == granted),
        "{held:?}"
    );
    assert!(immediate(openings::release(&world.store, granted, grant.epoch)).expect("the store answers"));
    let superseded = &mut folder;
    let mut folder = self::folder(&world.store, &pair.old);
    let late = change(superseded, &pair);
    assert!(matches!(late, Err(ChangeError::Fold(_))), "{late:?}");
    change(&mut folder, &pair).expect("everything is released");
    change(&mut folder, &pair).expect("a repetition changes nothing");
    assert_eq!(
        immediate(Migrations::read(&world.store))
            .expect("readable")
            .generation(),
        1
    );
}

#[test]
fn a_director_that_does_not_know_of_the_change_grants_nothing() {
    let (pair, world, mut grants, mut folder) = renamed();
    immediate(grants.read_realm()).expect("a realm");
    immediate(grants.prepare_upgrade(&upgrade_of(&pair), &pair.new.encode())).expect("it leads");
    let (_, next) = immediate(grants.read_realm()).expect("a realm");
    assert_eq!(next, Some(pair.new.fingerprint()));
    release(&world);
    change(&mut folder, &pair).expect("everything is released");
    let granted = immediate(grants.grant(world.base.owner(), PROCESS, |_| false));
    assert!(
        matches!(granted, Err(GrantError::DefinitionsChanged(to)) if to == pair.new.fingerprint()),
        "{granted:?}"
    );
    let rolled_back = immediate(grants.roll_back_upgrade(pair.new.fingerprint()));
    assert!(
        matches!(rolled_back, Err(GrantError::DefinitionsChanged(_))),
        "{rolled_back:?}"
    );
    let (realm, next) = immediate(grants.read_realm()).expect("a realm");
    assert_eq!((realm.schema, next), (pair.new.fingerprint(), None), "it is made");
    immediate(grants.grant(world.base.owner(), PROCESS, |_| false)).expect("it knows now");
    // Stored entities are still to be converted.
    let next = Upgrade {
        to: Hash([7; 32]),
        renames: Vec::new(),
    };
    let early = immediate(grants.prepare_upgrade(&next, b"later"));
    assert!(matches!(early, Err(GrantError::Converting)), "{early:?}");
    let back = Upgrade {
        to: pair.old.fingerprint(),
        renames: Vec::new(),
    };
    let back = immediate(grants.prepare_upgrade(&back, &pair.old.encode()));
    assert!(matches!(back, Err(GrantError::FormerSchema { .. })), "{back:?}");
}

#[test]
fn what_was_prepared_is_taken_back_without_a_trace() {
    let (pair, world, mut grants, _) = renamed();
    let before = dump(&world.store);
    immediate(grants.prepare_upgrade(&upgrade_of(&pair), &pair.new.encode())).expect("it leads");
    let other = Upgrade {
        to: Hash([7; 32]),
        renames: Vec::new(),
    };
    let second = immediate(grants.prepare_upgrade(&other, b"another"));
    assert!(
        matches!(second, Err(GrantError::OtherUpgrade(to)) if to == pair.new.fingerprint()),
        "{second:?}"
    );
    let begun = immediate(grants.begin_realm(WallTime(2), pair.new.fingerprint(), &[])).expect("it may lead");
    assert_eq!(begun.schema, pair.old.fingerprint(), "the realm keeps its definitions");
    immediate(grants.roll_back_upgrade(other.to)).expect("another is not prepared");
    let (_, next) = immediate(grants.read_realm()).expect("a realm");
    assert_eq!(next, Some(pair.new.fingerprint()));
    immediate(grants.roll_back_upgrade(pair.new.fingerprint())).expect("it leads");
    assert!(dump(&world.store) == before);
}

#[test]
fn a_director_does_not_lead_before_a_migration_is_complete_and_nothing_stays_prepared() {
    let (pair, world, mut grants, _) = renamed();
    immediate(grants.prepare_upgrade(&upgrade_of(&pair), &pair.new.encode())).expect("it leads");
    immediate(grants.close_realm(WallTime(9_000))).expect("it leads");
    let preparation = prepare(&world.store, &pair).expect("it was stopped");
    let survey = immediate(preparation.survey()).expect("readable");
    immediate(preparation.decide(&survey, AT, false)).expect("the store answers");
    let early = immediate(grants.read_realm());
    assert!(matches!(early, Err(GrantError::Unconverted(_))), "{early:?}");
    let migrations = immediate(Migrations::read(&world.store)).expect("readable");
    while !immediate(convert_next(&world.store, &pair.new, &migrations))
        .expect("it converts")
        .is_done
    {}
    let (realm, next) = immediate(grants.read_realm()).expect("it is complete");
    assert_eq!((realm.schema, next), (pair.new.fingerprint(), None));
}

/// Wherever the store fails, the definitions have changed or not, and a db process that is started again finds out.
#[test]
fn a_change_that_fails_is_made_or_not() {
    let (mut before, mut after) = (0, 0);
    for applied in [false, true] {
        // The first commit begins folding.
        for at in 1..3 {
            let (pair, world, grants, _) = renamed();
            immediate(grants.prepare_upgrade(&upgrade_of(&pair), &pair.new.encode())).expect("it leads");
            release(&world);
            let mut failing = folder(&dying(&world.store, at, applied), &pair.old);
            let ended = change(&mut failing, &pair);
            let mut again = folder(&world.store, &pair.old);
            let generation = immediate(Migrations::read(&world.store))
                .expect("readable")
                .generation();
            assert!(ended.is_err() || generation == 1);
            if generation == 1 {
                after += 1;
            } else {
                before += 1;
            }
            change(&mut again, &pair).expect("faults have ended");
            assert_eq!(again.schema().fingerprint(), pair.new.fingerprint());
            assert_eq!(
                immediate(Migrations::read(&world.store))
                    .expect("readable")
                    .generation(),
                1
            );
        }
    }
    assert!(before > 0 && after > 0, "{before} before, {after} after");
}

/// A realm that runs and the definitions that it can change to: a property has another name and a wider type.
fn renamed() -> (Pair, World, Grants, Folder) {
    let (mut pair, _) = simple();
    for schema in [&mut pair.old, &mut pair.new] {
        let mut types = schema.types().to_vec();
        types[0].properties[0].indexed = annals_def::Index::None;
        *schema = Schema::new(types, Vec::new(), Vec::new());
    }
    let (world, grants, folder) = World::running(&pair.old, &mut split_mix(1));
    (pair, world, grants, folder)
}
