//! db's reaction to faults in the stream: it raises an alarm, and everything else continues.

use annals_db::{AcceptError, Alarm, FoldError, Folded, Missing, accept_hole};
use annals_def::Value;
use annals_event::{Batch, Body, Cause, Event, FrozenBatch, Gathering, Imprint, Subject, Tail};
use annals_ids::{BatchNumber, EntityId, Epoch, Hash, OwnerId, Part, Tick, WallTime};
use annals_node::{
    chain,
    writer::{Opening, Tip},
};
use annals_store::{
    Row, ScanOrder, Transaction, immediate,
    layout::{
        archive::{self, Hole},
        owners::{self, OpeningRecord, OwnerRecord},
    },
};

use crate::{
    acts,
    realm::{Realm, SHARD},
    scribe::REALM,
};

/// A realm with a base and a cell owner, completely folded.
fn realm() -> (Realm, OwnerId, OwnerId) {
    let mut realm = Realm::new(0);
    let owners = (realm.found(Part::Base), realm.found(Part::Cell));
    realm.fold(usize::MAX);
    (realm, owners.0, owners.1)
}

/// Commits until there is nothing to do, and ignores alarms.
fn commit_all(realm: &mut Realm) -> Folded {
    let mut all = Folded::default();
    while realm.db.has_work() {
        let folded = immediate(realm.db.commit()).expect("the store answers");
        all.batches += folded.batches;
        all.alarms.extend(folded.alarms);
    }
    all
}

/// Offers the part of the stream that db has not read, and commits.
fn fold_all(realm: &mut Realm) -> Folded {
    for (owner, bytes) in &realm.stream[realm.offered..] {
        realm.db.offer(*owner, bytes.clone());
    }
    realm.offered = realm.stream.len();
    commit_all(realm)
}

/// The next batch of an owner's log, with an impossible event.
fn impossible(realm: &mut Realm, owner: OwnerId) -> FrozenBatch {
    let scribe = realm.scribe(owner);
    let imprint = Imprint {
        realm: REALM.into(),
        owner,
        epoch: scribe.epoch,
        schema: Hash([3; 32]),
    };
    let mut gathering = Gathering::default();
    gathering.record(&Event {
        subject: Subject::Entity(EntityId(99), scribe.state.part().expect("it holds parts")),
        cause: Cause(0),
        history: None,
        body: Body::Destroyed,
    });
    gathering.freeze(&imprint, &mut scribe.tail(), Tick(9), WallTime(9), false)
}

#[test]
fn messages_that_are_not_batches_of_the_log_are_skipped() {
    let (mut realm, one, two) = realm();
    realm.write(one, false);
    let other = realm.stream.last().expect("it was written").1.clone();
    realm.write_strange(two, other);
    realm.write_strange(two, b"garbage".to_vec());
    realm.write(two, false);
    let folded = fold_all(&mut realm);
    assert_eq!(folded.batches, 2);
    let [Alarm::Misplaced { owner, named }, Alarm::Malformed { owner: of, .. }] = folded.alarms[..] else {
        panic!("{:?}", folded.alarms);
    };
    assert_eq!((owner, named, of), (two, one, two));
    realm.check();
}

#[test]
fn batches_of_an_ungranted_epoch_are_rejected() {
    let (mut realm, one, _) = realm();
    realm.write_ungranted(one);
    realm.write(one, false);
    let folded = fold_all(&mut realm);
    let number = BatchNumber(2);
    assert_eq!(folded.alarms, [Alarm::Ungranted { owner: one, number }]);
    assert_eq!(folded.batches, 1);
    realm.check();
}

#[test]
fn an_opening_waits_for_its_record_in_the_store() {
    let (mut realm, one, two) = realm();
    realm.write(one, false);
    realm.take_over(one);
    assert_eq!(fold_all(&mut realm).batches, 1, "what was written before the Open");
    assert!(!realm.db.has_work());
    // The previous holder appends one more batch, and db folds it: the `Open` is given up.
    realm.write(one, false);
    assert_eq!(fold_all(&mut realm).batches, 1);
    realm.record_open(one);
    assert_eq!(fold_all(&mut realm).batches, 0, "neither Open is recorded");
    realm.record_open(one);
    // A message of another log is enough to make db look again.
    realm.write(two, false);
    let folded = fold_all(&mut realm);
    assert_eq!((folded.batches, &folded.alarms[..]), (2, &[][..]));
    realm.check();
    assert_eq!(realm.archived_count(one), realm.owners[&one].chain.len());
}

#[test]
fn a_wrong_fill_raises_an_alarm_and_the_right_fill_is_accepted() {
    let (mut realm, one, _) = realm();
    realm.write(one, true);
    realm.write(one, false);
    assert_eq!(fold_all(&mut realm).batches, 0);
    let (first, chain) = (BatchNumber(2), &realm.owners[&one].chain);
    let hole = Missing {
        owner: one,
        first,
        until: BatchNumber(3),
        after: chain[0].batch.hash,
        named: chain[1].batch.hash,
    };
    assert_eq!(realm.db.missing().collect::<Vec<_>>(), [hole]);

    realm.fill_wrongly(one, first);
    let folded = fold_all(&mut realm);
    let (wrong, expected) = (*realm.forged.first().expect("one was forged"), hole.named);
    let alarm = Alarm::Contradiction {
        owner: one,
        number: first,
        hash: wrong,
        expected,
    };
    assert_eq!((folded.batches, &folded.alarms[..]), (0, &[alarm][..]));

    realm.fill(one, first);
    assert_eq!(fold_all(&mut realm).batches, 2);
    assert_eq!(realm.db.missing().count(), 0);
    realm.check();
}

#[test]
fn a_hole_of_two_batches_is_filled_backwards() {
    let (mut realm, one, _) = realm();
    [true, true, false].into_iter().for_each(|lose| realm.write(one, lose));
    fold_all(&mut realm);
    // Any batch could be the first; only the second is identified, by the batch after the hole.
    realm.fill(one, BatchNumber(2));
    assert_eq!(fold_all(&mut realm).batches, 0);
    let missing: Vec<BatchNumber> = realm.db.missing().map(|hole| hole.first).collect();
    assert_eq!(missing, [BatchNumber(3)]);
    realm.fill(one, BatchNumber(3));
    assert_eq!(fold_all(&mut realm).batches, 3);
    realm.check();
}

#[test]
fn an_unrecorded_opening_shows_no_hole() {
    let (mut realm, one, _) = realm();
    [true, true].into_iter().for_each(|lose| realm.write(one, lose));
    realm.take_over(one);
    let folded = fold_all(&mut realm);
    assert_eq!((folded.batches, folded.alarms.len()), (0, 0));
    assert_eq!(realm.db.missing().count(), 0, "it may follow a discarded batch");

    realm.record_open(one);
    realm.write(one, false);
    assert_eq!(fold_all(&mut realm).batches, 0);
    let missing: Vec<_> = realm.db.missing().map(|hole| (hole.first, hole.until)).collect();
    assert_eq!(missing, [(BatchNumber(2), BatchNumber(4))]);
    [2, 3]
        .into_iter()
        .for_each(|number| realm.fill(one, BatchNumber(number)));
    assert_eq!(fold_all(&mut realm).batches, 4);
    realm.check();
}

/// The holes that the store has recorded for an owner's log, by their first batches.
fn named(realm: &Realm, owner: OwnerId) -> Vec<(BatchNumber, Hole)> {
    let read = |transaction: Transaction| async move {
        let holes = archive::holes_of(owner);
        transaction.get_range(&holes, 100, ScanOrder::Forward).await
    };
    let page = immediate(realm.store.read(read)).expect("the store answers");
    let hole = |(key, value): &Row| {
        let (_, first) = Hole::place(key).expect("a hole's key");
        (first, Hole::decode(value).expect("a hole"))
    };
    page.rows.iter().map(hole).collect()
}

#[test]
fn a_filled_hole_is_unregistered() {
    let (mut realm, one, _) = realm();
    realm.write(one, true);
    realm.write(one, false);
    fold_all(&mut realm);
    let missing = realm.db.missing().next().expect("a hole");
    immediate(realm.db.name_hole(missing)).expect("the store answers");
    let hole = Hole {
        after: missing.after,
        named: missing.named,
        until: BatchNumber(3),
    };
    assert_eq!(named(&realm, one), [(BatchNumber(2), hole)]);

    // Another db process knows the hole too; a superseded one records nothing any more.
    let mut former = realm.begin_db();
    let refused = immediate(former.name_hole(Missing {
        first: BatchNumber(9),
        ..missing
    }));
    assert!(matches!(refused, Err(FoldError::Superseded { .. })), "{refused:?}");
    realm.fill(one, BatchNumber(2));
    assert_eq!(fold_all(&mut realm).batches, 2);
    assert_eq!(named(&realm, one), []);
}

#[test]
fn a_hole_registered_again_while_closing_leaves_no_record() {
    let (mut realm, one, _) = realm();
    [true, true, false].into_iter().for_each(|lose| realm.write(one, lose));
    fold_all(&mut realm);
    for first in [2, 3].map(BatchNumber) {
        let missing = realm.db.missing().next().expect("a hole");
        assert_eq!(missing.first, first);
        immediate(realm.db.name_hole(missing)).expect("the store answers");
        realm.fill(one, first);
        fold_all(&mut realm);
    }
    assert_eq!(realm.archived_count(one), realm.owners[&one].chain.len());
    assert_eq!(named(&realm, one), []);
}

#[test]
fn an_accepted_hole_voids_the_batches_after_it_and_the_log_continues_before_it() {
    let (mut realm, one, two) = realm();
    realm.write(one, false);
    fold_all(&mut realm);
    let stands = Batch::read(&realm.owners[&one].chain.last().expect("it was written").batch.bytes);
    let stands = stands.expect("an intact batch").tail();
    let first = stands.batch.next();
    realm.write(one, true);
    [one, one].into_iter().for_each(|owner| realm.write(owner, false));
    assert_eq!(fold_all(&mut realm).batches, 0);
    let accept = |realm: &Realm, first| immediate(accept_hole(&realm.store, one, first));
    assert!(taken(&realm, one, stands).is_err());
    let refused = accept(&realm, first);
    assert!(matches!(refused, Err(AcceptError::NotNamed { .. })), "{refused:?}");
    let missing = realm.db.missing().next().expect("a hole");
    immediate(realm.db.name_hole(missing)).expect("the store answers");
    let accepted = accept(&realm, first).expect("it is named");
    assert_eq!((accepted.stands, accepted.until), (stands.batch, first.next()));
    assert_eq!([one, two].map(|owner| generation(&realm, owner)), [1, 0], "rule C13");
    // A process that was granted the owner before would have found a hole; now there is none.
    let beyond = taken(&realm, one, stands).expect("the hole is closed");
    assert!(beyond.is_empty(), "{beyond:?}");

    // The previous holder cannot open the owner any more, and batches that it writes after the hole are void.
    realm.write(one, false);
    let open = realm.go_on_behind(one, stands);
    assert_eq!(open.number, first);
    realm.write(two, false);
    let folded = fold_all(&mut realm);
    assert_eq!(
        (folded.batches, &folded.alarms[..]),
        (2, &[][..]),
        "the Open, and the other log"
    );
    assert_eq!((realm.db.missing().count(), named(&realm, one)), (0, Vec::new()));
    // A fill that comes too late is void as well.
    realm.fill(one, first);
    let folded = fold_all(&mut realm);
    assert_eq!((folded.batches, &folded.alarms[..]), (0, &[][..]));
    let again = accept(&realm, first);
    assert!(matches!(again, Err(AcceptError::NotNamed { .. })), "{again:?}");

    // Another db process and a taker find the same.
    realm.begin_db();
    assert_eq!(fold_all(&mut realm).batches, 0);
    assert_eq!(taken(&realm, one, stands), Ok(vec![open]));
}

/// The generation of an owner's call numbers.
fn generation(realm: &Realm, owner: OwnerId) -> u64 {
    let read = |transaction: Transaction| async move { transaction.get(&owners::owner_key(owner)).await };
    let record = immediate(realm.store.read(read)).expect("the store answers");
    let record = OwnerRecord::decode(&record.expect("there is such an owner"));
    record.expect("it is intact").call_generation
}

/// Each accepted hole of a realm begins a generation of its own: parts move between owners.
#[test]
fn no_two_accepted_holes_have_the_same_generation() {
    let (mut realm, one, two) = realm();
    for (number, owner) in (1..).zip([one, two]) {
        realm.write(owner, false);
        fold_all(&mut realm);
        let first = realm.owners[&owner].chain.last().expect("it was written");
        let first = Batch::read(&first.batch.bytes)
            .expect("an intact batch")
            .tail()
            .batch
            .next();
        realm.write(owner, true);
        realm.write(owner, false);
        fold_all(&mut realm);
        let missing = realm
            .db
            .missing()
            .find(|missing| missing.owner == owner)
            .expect("a hole");
        immediate(realm.db.name_hole(missing)).expect("the store answers");
        immediate(accept_hole(&realm.store, owner, first)).expect("it is named");
        assert_eq!(generation(&realm, owner), number);
    }
    assert_eq!(generation(&realm, one), 1, "that of another owner does not change");
}

/// What a taker finds in an owner's log beyond its archive (rule E1).
fn taken(realm: &Realm, owner: OwnerId, archived: Tail) -> Result<Vec<FrozenBatch>, chain::Hole> {
    let recorded =
        immediate(realm.store.read(|transaction: Transaction| async move {
            owners::read_openings(&transaction, owner, Epoch(0)).await
        }));
    let opening = |OpeningRecord { epoch, number, hash }| Opening { epoch, number, hash };
    let openings: Vec<Opening> = recorded.expect("the store answers").into_iter().map(opening).collect();
    let log = realm.stream.iter().filter(|(found, _)| *found == owner);
    let tip = Tip {
        number: archived.batch,
        hash: archived.hash,
    };
    chain::assemble(owner, tip, &openings, log.map(|(_, bytes)| bytes.clone()), 1).map(|chain| chain.beyond)
}

#[test]
fn only_the_log_with_an_impossible_event_is_blocked() {
    let (mut realm, one, two) = realm();
    realm.write(one, false);
    let batch = impossible(&mut realm, one);
    realm.stream.push((one, batch.bytes));
    realm.write(two, false);
    let folded = fold_all(&mut realm);
    assert_eq!(folded.batches, 2, "what came before it, and the other log");
    let [Alarm::Impossible { owner, number, why }] = &folded.alarms[..] else {
        panic!("{:?}", folded.alarms);
    };
    assert_eq!((*owner, *number), (one, BatchNumber(3)));
    assert!(why.contains("there is no such entity"), "{why}");
    realm.check();
    // The log stays halted, without a further alarm, until another db process begins.
    realm.write(two, false);
    let folded = fold_all(&mut realm);
    assert_eq!((folded.batches, folded.alarms.len()), (1, 0));
    realm.begin_db();
    assert_eq!(fold_all(&mut realm).alarms.len(), 1);
    realm.check();
}

#[test]
fn a_log_with_a_damaged_archive_is_blocked_until_restored() {
    let (mut realm, one, two) = realm();
    [one, one, two].into_iter().for_each(|owner| realm.write(owner, false));
    fold_all(&mut realm);
    let key = archive::place_key(one, BatchNumber(2));
    let change = |realm: &Realm, value: Option<Vec<u8>>| {
        let work = |transaction: Transaction| {
            let (key, value) = (key.clone(), value.clone());
            async move {
                match value {
                    Some(value) => transaction.set(&key, &value),
                    None => transaction.clear(&key),
                }
            }
        };
        immediate(realm.store.run_repeatable(work)).expect("the store answers");
    };
    let read = |transaction: Transaction| {
        let key = key.clone();
        async move { transaction.get(&key).await }
    };
    let place = immediate(realm.store.read(read))
        .expect("the store answers")
        .expect("it is archived");
    change(&realm, None);
    realm.begin_db();
    [one, two].into_iter().for_each(|owner| realm.write(owner, false));
    let folded = fold_all(&mut realm);
    assert_eq!(folded.batches, 1);
    let [Alarm::Unreadable { owner, why }] = &folded.alarms[..] else {
        panic!("{:?}", folded.alarms);
    };
    assert_eq!(*owner, one);
    assert!(why.contains("batch 2 of owner 1 is missing from the archive"), "{why}");

    change(&realm, Some(place.to_vec()));
    realm.begin_db();
    let folded = fold_all(&mut realm);
    assert_eq!((folded.batches, folded.alarms.len()), (1, 0));
    realm.check();
}

/// Gives `count` entities, beginning with `first`, a cell part of 200 kB, and stores each in the database.
fn burden(realm: &mut Realm, (base, cell): (OwnerId, OwnerId), first: u64, count: u64) {
    for entity in (first..first + count).map(EntityId) {
        acts::begin_base(realm, base, entity, "", (0, 0));
        acts::placed(realm, base, entity, Some(cell));
        acts::begin_cell(realm, cell, entity, base);
        acts::set(realm, cell, entity, "baggage", Value::Bytes(vec![1; 200_000]));
        realm.write(cell, false);
    }
    realm.write(base, false);
}

#[test]
fn large_work_is_split_into_several_transactions() {
    let (mut realm, base, cell) = realm();
    // Twelve megabytes of batches, then as much again that small batches write to the database.
    burden(&mut realm, (base, cell), 1, 60);
    for entity in 1..=60 {
        acts::store(&mut realm, base, EntityId(entity), 1_000 + entity);
        realm.write(base, false);
    }
    let batches = realm.stream.len() - realm.offered;
    let folded = fold_all(&mut realm);
    assert_eq!((folded.batches, folded.alarms.len()), (batches, 0));
    let archive = realm.check();
    realm.check_database(&archive);
}

#[test]
fn the_backlog_after_a_hole_is_folded_in_several_transactions() {
    let (mut realm, base, cell) = realm();
    realm.write(cell, true);
    burden(&mut realm, (base, cell), 1, 60);
    assert_eq!(fold_all(&mut realm).batches, 1);
    realm.fill(cell, BatchNumber(2));
    assert_eq!(fold_all(&mut realm).batches, 61);
    realm.check();
}

#[test]
fn a_batch_above_the_transaction_limit_is_reported() {
    let (mut realm, base, cell) = realm();
    burden(&mut realm, (base, cell), 1, 60);
    fold_all(&mut realm);
    (1..=60).for_each(|entity| acts::store(&mut realm, base, EntityId(entity), 1_000 + entity));
    realm.write(base, false);
    realm.write(cell, false);
    let folded = fold_all(&mut realm);
    assert_eq!(folded.batches, 1, "that of the other log");
    let [Alarm::TooLarge { owner, number, bytes }] = folded.alarms[..] else {
        panic!("{:?}", folded.alarms);
    };
    assert_eq!((owner, number), (base, BatchNumber(3)));
    assert!(bytes > 10_000_000, "{bytes}");
    realm.check();
}

#[test]
fn a_log_of_another_shard_is_not_folded() {
    let (mut realm, one, _) = realm();
    let elsewhere = immediate(annals_db::Folder::begin(
        realm.store.clone(),
        annals_ids::Shard(SHARD.0 + 1),
        crate::game::schema(),
    ));
    realm.write(one, false);
    realm.db = elsewhere.expect("the store answers");
    let folded = fold_all(&mut realm);
    assert_eq!(folded.batches, 0);
    assert!(
        matches!(folded.alarms[..], [Alarm::Ungranted { .. }]),
        "{:?}",
        folded.alarms
    );
}

#[test]
fn alarms_are_raised_once_despite_failed_commits() {
    let (mut realm, one, _) = realm();
    realm.write(one, true);
    realm.write(one, false);
    realm.fill_wrongly(one, BatchNumber(2));
    realm.write_strange(one, b"garbage".to_vec());
    realm.write_ungranted(one);
    let mut raised = Vec::new();
    realm.fail_one_in(2);
    for (owner, bytes) in realm.stream[realm.offered..].iter().cloned() {
        realm.db.offer(owner, bytes);
    }
    for _ in 0..50 {
        if let Ok(folded) = immediate(realm.db.commit()) {
            raised.extend(folded.alarms);
        }
    }
    let kinds: Vec<&str> = raised
        .iter()
        .map(|alarm| match alarm {
            Alarm::Malformed { .. } => "malformed",
            Alarm::Contradiction { .. } => "contradiction",
            Alarm::Ungranted { .. } => "ungranted",
            _ => "another",
        })
        .collect();
    assert_eq!(kinds, ["malformed", "contradiction", "ungranted"]);
}

#[test]
fn queued_work_survives_a_store_outage() {
    let (mut realm, one, _) = realm();
    realm.write(one, false);
    realm.fail_one_in(1);
    let bytes = realm.stream.last().expect("it was written").1.clone();
    realm.db.offer(one, bytes.clone());
    for _ in 0..3 {
        let refused = immediate(realm.db.commit());
        assert!(matches!(refused, Err(FoldError::Store(_))), "{refused:?}");
        assert_eq!(realm.db.pending_bytes(), bytes.len());
    }
    realm.fail_one_in(0);
    assert_eq!(commit_all(&mut realm).batches, 1);
    assert_eq!(realm.db.pending_bytes(), 0);
    realm.check();
}

#[test]
fn an_empty_store_has_an_empty_archive() {
    let realm = Realm::new(0);
    assert!(realm.check().leaves.is_empty());
}
