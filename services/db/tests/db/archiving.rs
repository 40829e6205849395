//! Archiving: rows follow activated entities without a request, a few at a time, and unchanged ones are skipped.

use annals_db::{Archived, accounts};
use annals_def::Value;
use annals_ids::{DatabaseId, EntityId, OwnerId, Part};
use annals_store::immediate;

use crate::{acts, realm::Realm};

/// Activated stored entities; every second one has a cell part.
const ENTITIES: u64 = 24;

/// Turns of a round.
const TURNS: u32 = 6;

/// Turns within which everything is written although the store fails.
const MANY: usize = 2_000;

fn row(number: u64) -> DatabaseId {
    DatabaseId(900 + number)
}

/// A realm with a base and a cell owner, all of its entities stored.
fn realm(seed: u64) -> (Realm, OwnerId, OwnerId) {
    let mut realm = Realm::new(seed);
    let (base, cell) = (realm.found(Part::Base), realm.found(Part::Cell));
    for number in 1..=ENTITIES {
        let entity = EntityId(number);
        acts::begin_base(&mut realm, base, entity, &format!("n{number}"), (0, 0));
        if number % 2 == 0 {
            acts::begin_cell(&mut realm, cell, entity, base);
            acts::placed(&mut realm, base, entity, Some(cell));
        }
        realm.write(cell, false);
        acts::store(&mut realm, base, entity, row(number).0);
        realm.write(base, false);
    }
    realm.fold(usize::MAX);
    // A db process that has just begun does not know what was written, and examines everything once.
    let round = archive_round(&mut realm);
    assert_eq!((looked_at(&round), written(&round)), (ENTITIES as usize, 0));
    (realm, base, cell)
}

fn archive_round(realm: &mut Realm) -> Vec<Archived> {
    let turn = |_| immediate(realm.db.archive(TURNS)).expect("the store answers");
    (0..TURNS).map(turn).collect()
}

fn looked_at(round: &[Archived]) -> usize {
    round.iter().map(|turn| turn.looked_at).sum()
}

fn written(round: &[Archived]) -> usize {
    round.iter().map(|turn| turn.written).sum()
}

/// An entity's gold and hp in the database.
fn held(realm: &Realm, number: u64) -> [Option<Value>; 2] {
    let stored = immediate(accounts::load(&realm.store, row(number))).expect("the store answers");
    let stored = stored.expect("it was stored");
    ["gold", "hp"].map(|name| stored.properties.get(name).cloned())
}

/// Changes entities without requesting a write.
fn change(realm: &mut Realm, (base, cell): (OwnerId, OwnerId), numbers: impl Iterator<Item = u64>, value: i64) {
    for number in numbers {
        acts::set(realm, base, EntityId(number), "gold", Value::Int(value));
        if number % 2 == 0 {
            acts::set(realm, cell, EntityId(number), "hp", Value::Int(value + 1));
        }
    }
    realm.write(base, false);
    realm.write(cell, false);
    realm.fold(usize::MAX);
}

fn check(realm: &Realm, number: u64, value: i64) {
    let hp = number.is_multiple_of(2).then(|| Value::Int(value + 1));
    assert_eq!(held(realm, number), [Some(Value::Int(value)), hp], "entity {number}");
}

#[test]
fn changes_are_written_within_a_round_spread_over_turns() {
    let (mut realm, base, cell) = realm(1);
    change(&mut realm, (base, cell), 1..=ENTITIES, 5);
    let round = archive_round(&mut realm);
    assert_eq!(written(&round), ENTITIES as usize);
    let share = (ENTITIES as usize).div_ceil(TURNS as usize);
    assert!(round.iter().all(|turn| turn.looked_at <= share), "{round:?}");
    (1..=ENTITIES).for_each(|number| check(&realm, number, 5));
}

#[test]
fn unchanged_entities_are_not_written() {
    let (mut realm, base, cell) = realm(2);
    assert_eq!(looked_at(&archive_round(&mut realm)), 0, "nothing has changed");
    change(&mut realm, (base, cell), 3..=4, 5);
    assert_eq!(written(&archive_round(&mut realm)), 2);
    change(&mut realm, (base, cell), 3..=4, 6);
    change(&mut realm, (base, cell), 3..=4, 5);
    let round = archive_round(&mut realm);
    assert_eq!(
        (looked_at(&round), written(&round)),
        (2, 0),
        "it came back to what is stored"
    );
}

#[test]
fn ended_and_unstored_entities_are_skipped() {
    let (mut realm, base, cell) = realm(3);
    let stranger = EntityId(77);
    acts::begin_base(&mut realm, base, stranger, "stranger", (0, 0));
    acts::set(&mut realm, base, stranger, "gold", Value::Int(1));
    change(&mut realm, (base, cell), 1..=1, 5);
    acts::end(&mut realm, base, EntityId(1));
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert_eq!(written(&archive_round(&mut realm)), 0);
    assert_eq!(
        held(&realm, 1)[0],
        Some(Value::Int(0)),
        "a later activation may have it"
    );
}

#[test]
fn store_failures_and_db_restarts_lose_no_writes() {
    for seed in 10..20 {
        let (mut realm, base, cell) = realm(seed);
        change(&mut realm, (base, cell), 1..=ENTITIES, 5);
        if seed % 2 == 0 {
            realm.begin_db();
            realm.offered = realm.stream.len();
        }
        realm.fail_one_in(25);
        for turn in 0.. {
            assert!(turn < MANY, "seed {seed}: rows stay old");
            // A failed turn is retried.
            let _ = immediate(realm.db.archive(TURNS));
            if (1..=ENTITIES).all(|number| held(&realm, number)[0] == Some(Value::Int(5))) {
                break;
            }
        }
        realm.fail_one_in(0);
        (1..=ENTITIES).for_each(|number| check(&realm, number, 5));
    }
}

#[test]
fn a_superseded_db_writes_nothing() {
    let (mut realm, base, cell) = realm(4);
    change(&mut realm, (base, cell), 1..=ENTITIES, 5);
    let mut former = realm.begin_db();
    assert!(immediate(former.archive(1)).is_err(), "another db folds the shard");
    assert_eq!(held(&realm, 1)[0], Some(Value::Int(0)));
}
