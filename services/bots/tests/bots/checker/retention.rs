//! Events deleted by retention, and losses that only look like that.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use annals_bots::{
    checker::{Fault, Following, Why, check},
    showings::Line,
};
use annals_db::{read_floor, read_horizon};
use annals_def::Value;
use annals_event::{BaseCreation, Body, Call, Cause, Event, FrozenBatch, Gathering, OwnerState, Subject, Tail};
use annals_ids::{
    Address, BatchNumber, CallNumber, DatabaseId, EntityId, Hash, HistoryNumber, LeafIndex, OwnerId, Part, Tick,
    WallTime,
};
use annals_store::{
    faults::{self, FaultyStore},
    immediate,
    layout::{archive, chunks, retention as layout},
};

use crate::checker::realm::{AVATAR, CELL, Realm, SHARD, apply_retention, fold, found, hole, imprint, named};

/// Leaves whose events are deleted: the creation, and the events 1 and 2 of the avatar.
const DELETED_BATCHES: usize = 3;

/// A realm that has deleted the beginning of a life, of which a bot was shown everything.
fn thinned() -> Realm {
    let realm = Realm::with_a_life();
    realm.archive();
    realm.apply_retention(DELETED_BATCHES);
    realm
}

/// The avatar's home is notified of its end; that is its last event.
fn end(realm: &mut Realm) {
    let home = Address::Owner(realm.owner);
    let called = Body::Called {
        to: home,
        home: realm.owner,
        number: CallNumber(1),
        call: Call::Placed(None),
    };
    realm.append(None, called);
    realm.append(None, Body::Destroyed);
    realm.take(Address::Cell(AVATAR), home, 1);
}

fn horizon(realm: &Realm) -> layout::Horizon {
    immediate(read_horizon(&realm.store, SHARD)).unwrap().unwrap()
}

fn floor(realm: &Realm) -> OwnerState {
    let floor = read_floor(&realm.store, SHARD, realm.owner, BatchNumber(0));
    immediate(floor).unwrap().unwrap()
}

#[test]
fn deleted_events_are_counted_and_the_others_checked() {
    let mut realm = Realm::with_a_life();
    realm.refreshed(0, &[("level", Value::UInt(1))]);
    realm.refreshed(2, &[("level", Value::UInt(2))]);
    realm.refreshed(4, &[("level", Value::UInt(3))]);
    realm.archive();
    realm.apply_retention(DELETED_BATCHES);
    let report = realm.check();
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.deleted, report.shown, report.refreshed), (3, 4, 3), "{report}");
    assert_eq!((report.events, report.batches, report.parts), (2, 5, 1), "{report}");
    let said = "3 shown items are before the horizon and were deleted by the setting keep_cell_events; not checked";
    assert!(report.to_string().contains(said), "{report}");
}

#[test]
fn losses_behind_the_horizon_are_reported() {
    let mut realm = thinned();
    realm.clear(&archive::leaf_key(SHARD, LeafIndex(3)));
    realm.refreshed(2, &[("level", Value::UInt(9))]);
    realm.refreshed(5, &[]);
    let report = realm.check();
    assert_eq!(report.deleted, 2, "{report}");
    assert_eq!(report.faults, [(realm.owner, BatchNumber(4), Fault::Missing)]);
    assert_eq!(report.holes, [hole(3, 4)]);
    let newest = HistoryNumber(4);
    let (member, name) = (realm.member("level"), Some("level".to_owned()));
    let whys: Vec<_> = report.lost.iter().map(|lost| lost.why.clone()).collect();
    let expected = [
        Why::Absent { newest },
        Why::Property { member, name },
        Why::Absent { newest },
    ];
    assert_eq!(whys, expected, "{report}");
}

#[test]
fn entities_ended_before_the_horizon_are_expired_and_others_unknown() {
    let mut realm = Realm::with_a_life();
    end(&mut realm);
    let Line::Shown { number, hash, .. } = realm.lines[0] else {
        panic!("a life begins with a change")
    };
    let entity = EntityId(8);
    realm.lines.push(Line::Shown {
        entity,
        part: Part::Cell,
        number,
        hash,
    });
    realm.lines.push(Line::Shown {
        entity: AVATAR,
        part: Part::Base,
        number,
        hash,
    });
    realm.archive();
    realm.apply_retention(realm.frozen.len());
    assert!(!floor(&realm).entities.contains_key(&AVATAR));
    let report = realm.check();
    assert_eq!((report.deleted, report.lost_count), (4, 2), "{report}");
    assert_eq!(report.hole_count + report.fault_count, 0, "{report}");
    assert!(
        report.lost.iter().all(|lost| lost.why == Why::UnknownEntity),
        "{report}"
    );
    assert_eq!(report.lost[0].entity, entity);
}

#[test]
fn a_part_that_its_base_still_has_has_not_ended() {
    let mut realm = Realm::with_a_life();
    let home = found(&realm.store, Part::Base);
    let called = Body::Called {
        to: Address::Base(AVATAR),
        home,
        number: CallNumber(1),
        call: Call::Placed(Some(realm.owner)),
    };
    realm.append(None, called);
    let base = home_of_the_avatar(&realm, home);
    realm.archive();
    fold(&realm.store, &realm.schema, &[base]);
    realm.apply_retention(realm.frozen.len());
    let report = realm.check();
    assert!(report.is_clean() && report.deleted == 4, "{report}");
    // Without its row in the floor nothing is left of it, though its base knows that it should exist.
    realm.clear(&layout::entities(SHARD, horizon(&realm).area, realm.owner).begin);
    let report = realm.check_whole();
    assert_eq!((report.deleted, report.lost_count), (0, 4), "{report}");
}

/// The base's log of an avatar whose cell part has reported its place.
fn home_of_the_avatar(realm: &Realm, home: OwnerId) -> FrozenBatch {
    let creation = BaseCreation {
        type_id: realm.avatar(),
        database: DatabaseId(0),
        checkout: 0,
        properties: Vec::new(),
        cell_properties: Vec::new(),
    };
    let mut gathering = Gathering::default();
    let subject = Subject::Entity(AVATAR, Part::Base);
    for body in [Body::BaseCreated(Box::new(creation)), Body::Placed(Some(realm.owner))] {
        gathering.record(&Event {
            subject,
            cause: Cause(0),
            history: None,
            body,
        });
    }
    gathering.consume(Address::Cell(AVATAR), Address::Base(AVATAR), CallNumber(1), [0; 16]);
    let imprint = imprint(&realm.schema, home);
    gathering.freeze(&imprint, &mut Tail::default(), Tick(1), WallTime(1), true)
}

#[test]
fn an_entity_missing_from_a_floor_has_a_gap_in_its_history() {
    let realm = thinned();
    realm.clear(&layout::entities(SHARD, horizon(&realm).area, realm.owner).begin);
    let report = realm.check_whole();
    assert_eq!(report.holes, [hole(1, 3)], "{report}");
    assert_eq!((report.deleted, report.lost_count), (0, 4), "{report}");
}

#[test]
fn events_deleted_without_a_horizon_are_faults() {
    let realm = Realm::with_a_life();
    realm.archive();
    // In a segment of its own the creation is worth thinning.
    realm.apply_retention(1);
    assert!(realm.check().is_clean());
    realm.clear(&layout::horizon_key(SHARD));
    let report = realm.check_whole();
    assert!(
        report.faults.contains(&(realm.owner, BatchNumber(1), Fault::Deleted)),
        "{report}"
    );
    assert_eq!((report.deleted, report.lost_count), (0, 4), "{report}");
}

#[test]
fn a_misplaced_floor_is_named() {
    let realm = thinned();
    let key = layout::own_key(SHARD, horizon(&realm).area, realm.owner);
    let put = |state: &OwnerState| {
        let mut own = Vec::new();
        state.write_own(&mut own);
        let transaction = realm.store.begin();
        for (key, piece) in chunks(&key, &own) {
            transaction.set(&key, piece).unwrap();
        }
        immediate(transaction.commit()).unwrap();
    };
    let mut other = floor(&realm);
    other.tail.hash.0[0] ^= 1;
    put(&other);
    let report = realm.check();
    assert_eq!(report.faults, [(realm.owner, BatchNumber(3), Fault::Floor)], "{report}");
    other.tail.batch = BatchNumber(9);
    put(&other);
    let report = realm.check();
    assert!(
        report.faults.contains(&(realm.owner, BatchNumber(9), Fault::Missing)),
        "{report}"
    );
}

#[test]
fn a_resumed_check_skips_to_a_horizon_that_has_overtaken_it() {
    let mut realm = Realm::with_a_life();
    realm.archive_after(realm.frozen.len(), realm.lines.len());
    realm.apply_retention(DELETED_BATCHES);
    realm.change(5, "level", &[], Value::UInt(4));
    fold(&realm.store, &realm.schema, &realm.frozen[5..]);
    realm.refreshed(1, &[("level", Value::UInt(2))]);
    realm.refreshed(5, &[("level", Value::UInt(4))]);
    realm.write(&realm.lines);
    let going_on = realm.go_on();
    // The incremental check read the events before they were deleted.
    assert!(going_on.is_clean() && going_on.deleted == 0, "{going_on}");
    let following = realm.following.borrow();
    let whole = immediate(following.check_whole(&realm.store, &realm.schema)).unwrap();
    assert!(whole.is_clean() && whole.deleted == 3, "{whole}");
    assert_eq!(named(&going_on), named(&whole));
    // A part that ended and was deleted is not missed either.
    drop(following);
    end(&mut realm);
    fold(&realm.store, &realm.schema, &realm.frozen[6..]);
    realm.apply_retention(1);
    let going_on = realm.go_on();
    assert!(going_on.is_clean(), "{going_on}");
    let following = realm.following.borrow();
    let whole = immediate(following.check_whole(&realm.store, &realm.schema)).unwrap();
    assert!(whole.is_clean() && whole.deleted == 7, "{whole}");
    // What was read before its deletion is known, and what differs was not deleted.
    drop(following);
    realm.refreshed(5, &[("level", Value::UInt(9))]);
    let (number, hash) = (HistoryNumber(5), Hash([9; 32]));
    let (entity, part) = CELL;
    realm.lines.push(Line::Shown {
        entity,
        part,
        number,
        hash,
    });
    realm.write(&realm.lines);
    let going_on = realm.go_on();
    let whys: Vec<_> = going_on.lost.iter().map(|lost| lost.why.clone()).collect();
    let (member, name) = (realm.member("level"), Some("level".to_owned()));
    assert_eq!(whys, [Why::Property { member, name }, Why::Different], "{going_on}");
}

#[test]
fn batches_read_ahead_are_read_again_when_a_horizon_overtakes_them() {
    for reads in 0.. {
        let realm = Realm::with_a_later_life();
        fold(&realm.store, &realm.schema, &realm.frozen[..1]);
        let (store, schema, frozen) = (realm.store.clone(), Arc::clone(&realm.schema), realm.frozen.clone());
        let (moved, left) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(u64::MAX)));
        let (has_moved, counted) = (Arc::clone(&moved), Arc::clone(&left));
        let moving = FaultyStore::wrap(&realm.store, move |_| {
            let before = counted.load(Ordering::Relaxed);
            counted.store(before.saturating_sub(1), Ordering::Relaxed);
            if before == 0 && !has_moved.swap(true, Ordering::Relaxed) {
                fold(&store, &schema, &frozen[1..]);
                apply_retention(&store, &schema, 1);
            }
            faults::Fault::None
        });
        let mut following = Following::new(realm.folder.path());
        let mut go_on = |lines| {
            realm.write(lines);
            following.look().unwrap();
            immediate(following.check(&moving, &realm.schema)).unwrap()
        };
        let first = go_on(&[]);
        left.store(reads, Ordering::Relaxed);
        let passed = go_on(&[]);
        if !moved.load(Ordering::Relaxed) {
            break;
        }
        left.store(u64::MAX, Ordering::Relaxed);
        let last = go_on(&realm.lines);
        for report in [first, passed, last] {
            assert!(report.is_clean(), "before read {reads}: {report}");
        }
    }
}

#[test]
fn a_horizon_that_moves_during_a_check_restarts_it() {
    let (mut counts, mut reads) = (BTreeSet::new(), 0u64);
    loop {
        let realm = Realm::with_a_life();
        realm.archive();
        realm.write(&realm.lines);
        let (store, schema) = (realm.store.clone(), Arc::clone(&realm.schema));
        let moved = Arc::new(AtomicBool::new(false));
        let (has_moved, mut left) = (Arc::clone(&moved), reads);
        let moving = FaultyStore::wrap(&realm.store, move |_| {
            if left == 0 && !has_moved.swap(true, Ordering::Relaxed) {
                apply_retention(&store, &schema, 1);
            }
            left = left.saturating_sub(1);
            faults::Fault::None
        });
        let report = immediate(check(realm.folder.path(), &moving, &realm.schema)).unwrap();
        assert!(report.is_clean(), "before read {reads}: {report}");
        counts.insert(report.deleted);
        if !moved.load(Ordering::Relaxed) {
            break;
        }
        reads += 1;
    }
    assert_eq!(
        counts,
        BTreeSet::from([0, 4]),
        "it moved before and behind what was read"
    );
}
