//! The checker against intact and damaged archives.

mod realm;
mod retention;

use std::fs;

use annals_bots::{
    checker::{CheckError, Fault, Why, Wrong, check},
    showings::Line,
};
use annals_def::{Located, Value};
use annals_event::{BaseCreation, Body, Tail};
use annals_ids::{BatchNumber, DatabaseId, EntityId, HistoryNumber, LeafIndex, Part};
use annals_store::{immediate, layout::archive};
use tempfile::TempDir;

use realm::{AVATAR, CELL, Realm, SHARD, batch, found, hole, imprint};

#[test]
fn an_intact_archive_has_no_losses() {
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
fn a_removed_batch_is_named_with_its_event() {
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
    assert_eq!(report.holes, [hole(2, 3)]);
}

#[test]
fn a_truncated_log_lacks_its_shown_events() {
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
fn an_edited_event_is_named_even_if_its_batch_is_consistent() {
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
fn a_gap_in_history_numbers_is_named_even_if_it_was_never_shown() {
    let mut realm = Realm::with_a_life();
    realm.lines.truncate(1);
    realm.archive();
    let (member, change) = (realm.member("level"), Located::whole(Value::UInt(4)));
    let body = Body::Changed { member, change };
    let late = batch(&realm.imprint, &mut realm.tail, CELL, Some(6), body);
    realm.force(&late, realm.tail);
    let report = realm.check();
    assert_eq!((report.lost_count, report.fault_count), (0, 0), "{report}");
    assert_eq!(report.holes, [hole(5, 6)]);
    assert!(!report.is_clean());
}

#[test]
fn a_duplicate_history_number_is_named_with_both_places() {
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
fn a_state_that_never_existed_is_reported_with_its_property() {
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
fn parts_are_distinguished_and_missing_ones_are_unknown() {
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
fn an_empty_folder_and_a_truncated_line_are_errors() {
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
fn the_full_check_reports_what_the_incremental_check_missed() {
    let realm = Realm::with_a_life();
    realm.archive_after(3, 2);
    realm.write(&realm.lines);
    assert!(realm.go_on().is_clean());
    let whole = || immediate(realm.following.borrow().check_whole(&realm.store, &realm.schema)).unwrap();
    assert!(whole().is_clean());
    // One line more than was seen.
    let more = [&realm.lines[..], &realm.lines[3..]].concat();
    realm.write(&more);
    let report = whole();
    assert_eq!((report.passed_over, report.otherwise), (1, 0), "{report}");
    assert!(!report.is_clean());
    realm.write(&realm.lines);
    // Another level than was read: the last batch is intact, and nothing else reveals it.
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
