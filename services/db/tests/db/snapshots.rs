//! Snapshots: recovery needs the archive only from the newest one on, whatever its size and whenever db dies.

use annals_db::recover;
use annals_def::Value;
use annals_event::Image;
use annals_ids::{BatchNumber, EntityId, OwnerId, Part};
use annals_store::{
    KeyRange, Transaction, immediate,
    layout::{
        archive,
        snapshots::{self, Area, Position},
    },
};

use crate::{
    acts,
    realm::{Realm, SHARD},
};

/// More batches than there are between two snapshots.
const PERIOD: usize = 300;

fn position(realm: &Realm, owner: OwnerId) -> Option<Position> {
    let read = |transaction: Transaction| async move { transaction.get(&snapshots::position_key(owner)).await };
    let value = immediate(realm.store.read(read)).expect("the store answers");
    value.map(|value| Position::decode(&value).expect("a position"))
}

/// Deletes the archive up to a batch.
fn forget_archive(realm: &Realm, owner: OwnerId, upto: BatchNumber) {
    let places = KeyRange::new(
        archive::place_key(owner, BatchNumber(1)),
        archive::place_key(owner, upto.next()),
    );
    let work = |transaction: Transaction| {
        let places = places.clone();
        async move { transaction.clear_range(&places) }
    };
    immediate(realm.store.run_repeatable(work)).expect("the store answers");
}

/// An owner with `count` entities of `size` bytes each.
fn crowded(realm: &mut Realm, count: u64, size: usize) -> OwnerId {
    let (base, cell) = (realm.found(Part::Base), realm.found(Part::Cell));
    for entity in (1..=count).map(EntityId) {
        acts::begin_cell(realm, cell, entity, base);
        acts::set(realm, cell, entity, "baggage", Value::Bytes(vec![1; size]));
        realm.write(cell, false);
    }
    cell
}

/// Changes some of the owner's entities, batch by batch, and folds in small portions.
fn live(realm: &mut Realm, owner: OwnerId, batches: usize) {
    for turn in 0..batches {
        let entities: Vec<EntityId> = realm.scribe(owner).state.entities.keys().copied().collect();
        if let Some(entity) = realm.pick(&entities).filter(|_| turn % 3 == 0) {
            acts::set(realm, owner, entity, "hp", Value::Int(turn as i64));
        }
        realm.write(owner, false);
        if turn % 20 == 19 {
            realm.fold(usize::MAX);
        }
    }
    realm.fold(usize::MAX);
}

#[test]
fn recovery_needs_nothing_before_the_snapshot() {
    let mut realm = Realm::new(3);
    let cell = crowded(&mut realm, 30, 1_000);
    let mut areas = Vec::new();
    for _ in 0..4 {
        live(&mut realm, cell, PERIOD);
        let newest = position(&realm, cell).expect("a snapshot");
        areas.push(newest.area);
        realm.check();
        assert!(
            realm.archived_count(cell) as u64 - newest.batch.0 <= 2 * PERIOD as u64,
            "{newest:?}"
        );
    }
    assert_eq!(areas, [Area::First, Area::Second, Area::First, Area::Second]);
    let newest = position(&realm, cell).expect("a snapshot");
    forget_archive(&realm, cell, newest.batch);
    let recovered = immediate(recover(&realm.store, SHARD, cell, Part::Cell)).expect("the snapshot suffices");
    assert_eq!(recovered.state.hash(), realm.scribe(cell).state.hash());
    forget_archive(&realm, cell, newest.batch.next());
    assert!(immediate(recover(&realm.store, SHARD, cell, Part::Cell)).is_err());
}

#[test]
fn a_snapshot_larger_than_a_transaction_is_written_in_pieces() {
    let mut realm = Realm::new(4);
    // Sixteen megabytes of state.
    let cell = crowded(&mut realm, 80, 200_000);
    live(&mut realm, cell, PERIOD);
    let newest = position(&realm, cell).expect("a snapshot");
    realm.check();
    forget_archive(&realm, cell, newest.batch);
    let recovered = immediate(recover(&realm.store, SHARD, cell, Part::Cell)).expect("the snapshot suffices");
    assert_eq!(recovered.state.hash(), realm.scribe(cell).state.hash());
}

#[test]
fn an_unfinished_snapshot_is_ignored() {
    for seed in 0..2 {
        let mut realm = Realm::new(seed);
        let cell = crowded(&mut realm, 40, 100_000);
        live(&mut realm, cell, PERIOD);
        let mut positions = 0;
        // A commit or two at a time, and then another db process: pieces of the next snapshot are written repeatedly.
        for turn in 0..40 {
            let before = position(&realm, cell);
            let entity = EntityId(1 + turn % 40);
            match turn % 7 {
                0 => acts::end(&mut realm, cell, EntityId(1 + turn)),
                _ if realm.scribe(cell).state.entities.contains_key(&entity) => {
                    acts::set(&mut realm, cell, entity, "hp", Value::Int(turn as i64));
                }
                _ => {}
            }
            (0..10).for_each(|_| realm.write(cell, false));
            for (owner, bytes) in realm.stream[realm.offered..].iter().cloned() {
                realm.db.offer(owner, bytes);
            }
            realm.offered = realm.stream.len();
            for _ in 0..1 + realm.roll(3) {
                realm.commit().expect("the store answers");
            }
            if turn % 8 == 7 {
                realm.check();
            }
            if realm.roll(2) == 0 {
                realm.begin_db();
            }
            positions += usize::from(position(&realm, cell) != before);
        }
        realm.fold(usize::MAX);
        realm.check();
        assert!(positions > 0, "seed {seed}: a snapshot was finished now and then");
    }
}

#[test]
fn unchanged_snapshot_rows_are_not_rewritten() {
    let mut realm = Realm::new(5);
    let cell = crowded(&mut realm, 3, 100);
    let spend = |realm: &mut Realm| {
        for turn in 0..PERIOD {
            acts::set(realm, cell, EntityId(1), "hp", Value::Int(turn as i64));
            realm.write(cell, false);
            realm.fold(usize::MAX);
        }
    };
    // Both areas are complete after two.
    spend(&mut realm);
    spend(&mut realm);
    let (quiet, newest) = (EntityId(2), position(&realm, cell).expect("a snapshot"));
    // Damage that only another write of the area would correct.
    let next = newest.area.other();
    let mut image: Image = realm.scribe(cell).state.entities[&quiet].clone();
    image.properties.insert(crate::game::member("hp"), Value::Int(-7));
    let mut bytes = Vec::new();
    image.write(&mut bytes);
    let key = [&snapshots::entity_key(cell, next, quiet)[..], &[0, 0]].concat();
    let spoil = |transaction: Transaction| {
        let (key, bytes) = (key.clone(), bytes.clone());
        async move { transaction.set(&key, &bytes) }
    };
    immediate(realm.store.run_repeatable(spoil)).expect("the store answers");
    spend(&mut realm);
    assert_eq!(position(&realm, cell).map(|newest| newest.area), Some(next));
    let recovered = immediate(recover(&realm.store, SHARD, cell, Part::Cell)).expect("a state");
    let hp = |entity| recovered.state.entities[&EntityId(entity)].properties[&crate::game::member("hp")].clone();
    assert_eq!([hp(1), hp(2)], [Value::Int(PERIOD as i64 - 1), Value::Int(-7)]);
}
