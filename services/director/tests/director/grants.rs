//! Grants on a store: every grant raises its owner's epoch, entity ids are given out once, and a director that was
//! replaced changes nothing (rules D1 and E).

use std::{collections::BTreeSet, time::Duration};

use annals_director::{Grant, GrantError, Grants, ID_BLOCK, openings, read_owners};
use annals_ids::{Epoch, Hash, LeafIndex, OwnerId, OwnerKind, ProcessId, Shard, WallTime, WorldTime};
use annals_store::{
    MemoryStore, Store, immediate,
    layout::{
        chunks,
        migrations::{self, Converting, MigrationRecord},
    },
};

const SHARD: Shard = Shard(0);

fn lead(store: &Store, process: u64) -> Grants {
    let seen = immediate(Grants::watch(store)).expect("the store answers");
    immediate(Grants::lead(store.clone(), ProcessId(process), seen, Duration::ZERO))
        .expect("the term is the one that was seen")
}

fn epoch_in_store(store: &Store, owner: OwnerId) -> (Epoch, ProcessId) {
    let record = immediate(read_owners(store)).expect("the store answers")[&owner];
    (record.epoch, record.process)
}

fn is_confirmed(store: &Store, owner: OwnerId, epoch: Epoch) -> bool {
    immediate(openings::confirm(store, owner, epoch, "server:1")).expect("the store answers")
}

#[test]
fn each_grant_raises_the_epoch_and_ends_the_one_before() {
    let store = MemoryStore::new().store();
    let grants = lead(&store, 1);
    let first = immediate(grants.found(OwnerKind::Cell, SHARD, ProcessId(2))).expect("the director leads");
    assert_eq!(first.epoch, Epoch(1));
    let owner = first.owner;
    // To another process, back again, and to the one that holds it already.
    for (times, process) in [3, 2, 2].into_iter().enumerate() {
        let before = Epoch(1 + times as u64);
        let granted = immediate(grants.grant(owner, ProcessId(process), |_| false)).expect("the director leads");
        assert_eq!((granted.owner, granted.epoch), (owner, before.next()));
        assert_eq!(epoch_in_store(&store, owner), (granted.epoch, ProcessId(process)));
        assert!(is_confirmed(&store, owner, granted.epoch));
        assert!(!is_confirmed(&store, owner, before), "its holder is replaced");
    }
    // A realm has one ledger: founding it again grants the existing one.
    let ledgers = [4, 5].map(|process| {
        let founded = grants.found(OwnerKind::Ledger, SHARD, ProcessId(process));
        immediate(founded).expect("the director leads")
    });
    assert_eq!(ledgers[0].owner, ledgers[1].owner);
    assert_eq!(ledgers.each_ref().map(|grant| grant.epoch), [Epoch(1), Epoch(2)]);
    assert_eq!(epoch_in_store(&store, ledgers[0].owner), (Epoch(2), ProcessId(5)));
    let unknown = immediate(grants.grant(OwnerId(99), ProcessId(2), |_| false));
    assert!(
        matches!(unknown, Err(GrantError::UnknownOwner(OwnerId(99)))),
        "{unknown:?}"
    );
    assert!(!is_confirmed(&store, OwnerId(99), Epoch(1)));
}

#[test]
fn each_new_base_and_cell_is_a_separate_owner() {
    let store = MemoryStore::new().store();
    let grants = lead(&store, 1);
    let founded = [OwnerKind::Cell, OwnerKind::Cell, OwnerKind::Base, OwnerKind::Base].map(|kind| {
        let founded = immediate(grants.found(kind, SHARD, ProcessId(2))).expect("the director leads");
        assert_eq!((founded.kind, founded.epoch), (kind, Epoch(1)));
        founded.owner
    });
    assert_eq!(BTreeSet::from(founded).len(), founded.len(), "{founded:?}");
}

#[test]
fn no_entity_id_is_allocated_twice() {
    let store = MemoryStore::new().store();
    let mut grants = lead(&store, 1);
    let mut blocks = Vec::new();
    for round in 0..3 {
        let Grant { owner, ids, .. } =
            immediate(grants.found(OwnerKind::Base, SHARD, ProcessId(round))).expect("the director leads");
        blocks.push(ids);
        blocks.push(
            immediate(grants.grant(owner, ProcessId(9), |_| false))
                .expect("the director leads")
                .ids,
        );
        blocks.push(immediate(grants.more_ids()).expect("the director leads"));
        grants = lead(&store, 2 + round);
    }
    let starts: BTreeSet<u64> = blocks.iter().map(|ids| ids.start).collect();
    assert_eq!(starts.len(), blocks.len());
    for ids in &blocks {
        assert_eq!(ids.end - ids.start, ID_BLOCK);
        assert!(starts.iter().all(|start| *start == ids.start || !ids.contains(start)));
    }
}

#[test]
fn a_superseded_director_changes_nothing() {
    let memory = MemoryStore::new();
    let store = memory.store();
    let mut former = lead(&store, 1);
    let owner = immediate(former.found(OwnerKind::Base, SHARD, ProcessId(5)))
        .expect("it leads")
        .owner;
    immediate(former.begin_realm(WallTime(1), Hash([1; 32]), b"schema")).expect("it leads");
    // A standby that saw an older heartbeat does not get the term; one that saw the newest does.
    let seen = immediate(Grants::watch(&store)).expect("the store answers");
    immediate(former.beat(WorldTime(5_000))).expect("it leads");
    let early = immediate(Grants::lead(store.clone(), ProcessId(2), seen, Duration::ZERO)).err();
    assert!(matches!(early, Some(GrantError::Superseded { .. })), "{early:?}");
    let mut next = lead(&store, 2);

    let rows = memory.rows();
    let refused = [
        immediate(former.beat(WorldTime(5_000))).err(),
        immediate(former.grant(owner, ProcessId(6), |_| false)).err(),
        immediate(former.found(OwnerKind::Cell, SHARD, ProcessId(6))).err(),
        immediate(former.found(OwnerKind::Ledger, SHARD, ProcessId(6))).err(),
        immediate(former.more_ids()).err(),
        immediate(former.register()).err(),
        immediate(former.write_map(b"map")).err(),
        immediate(former.begin_realm(WallTime(2), Hash([1; 32]), b"schema")).err(),
        immediate(former.close_realm(WallTime(3))).err(),
        immediate(former.open_realm(WallTime(3))).err(),
    ];
    for error in refused {
        let leader = match error {
            Some(GrantError::Superseded { leader, .. }) => leader,
            other => panic!("{other:?}"),
        };
        assert_eq!(leader, ProcessId(2));
    }
    assert!(memory.rows() == rows, "nothing was written");
    immediate(next.beat(WorldTime(6_000))).expect("it leads");
    immediate(next.grant(owner, ProcessId(6), |_| false)).expect("it leads");
}

#[test]
fn game_time_continues_from_the_last_heartbeat_of_the_term_before() {
    let store = MemoryStore::new().store();
    let watch = || immediate(Grants::watch(&store)).expect("the store answers");
    let lead = |process, watched| {
        let grants = Grants::lead(
            store.clone(),
            ProcessId(process),
            watch(),
            Duration::from_millis(watched),
        );
        immediate(grants).expect("the term is the one that was seen")
    };
    let mut first = lead(1, 0);
    assert_eq!(first.world(), WorldTime(0));
    immediate(first.beat(WorldTime(7_000))).expect("it leads");
    let second = lead(2, 3_000);
    assert_eq!(second.world(), WorldTime(10_000), "and the silence that was watched");
    assert_eq!(lead(3, 500).world(), WorldTime(10_500), "a term without a heartbeat");
    assert!(immediate(first.beat(WorldTime(99_000))).is_err(), "it does not lead");
    assert_eq!(watch().world, WorldTime(10_500));
}

#[test]
fn a_closed_realm_continues_where_it_stopped() {
    let store = MemoryStore::new().store();
    let grants = lead(&store, 1);
    let schema = Hash([1; 32]);
    let begin = |now| immediate(grants.begin_realm(WallTime(now), schema, b"schema")).expect("it leads");
    let is_closed = || immediate(Grants::is_closed(&store)).expect("the store answers");
    let open = |now| immediate(grants.open_realm(WallTime(now))).expect("it leads");
    let close = |now| immediate(grants.close_realm(WallTime(now))).expect("it leads");
    assert_eq!(begin(1_000).began, WallTime(1_000));
    assert_eq!(begin(2_000).began, WallTime(1_000), "it has begun already");
    assert!(!is_closed() && !open(3_000), "it was not stopped cleanly");
    assert_eq!(begin(3_000).began, WallTime(1_000));
    close(5_000);
    close(6_000);
    assert!(is_closed());
    assert!(open(9_000));
    assert!(!is_closed() && !open(9_000));
    assert_eq!(begin(9_000).began, WallTime(5_000), "it stood for 4 s");
    close(20_000);
    assert!(open(17_000));
    assert_eq!(
        begin(17_000).began,
        WallTime(2_000),
        "the clock was set back by more than it stood"
    );
    let other = immediate(grants.begin_realm(WallTime(9_000), Hash([2; 32]), b"other")).err();
    assert!(matches!(other, Some(GrantError::OtherSchema { .. })), "{other:?}");
}

#[test]
fn maps_round_trip() {
    let store = MemoryStore::new().store();
    let grants = lead(&store, 1);
    let read = || immediate(grants.read_map()).expect("the store answers");
    assert_eq!(read(), None);
    // The second is shorter: nothing of the first is left after it.
    for map in [vec![7; 300_000], b"map".to_vec()] {
        immediate(grants.write_map(&map)).expect("it leads");
        assert_eq!(read(), Some(map));
    }
}

/// The store of a realm whose migration is complete or not (rules M2 and M5).
#[test]
fn a_realm_with_an_incomplete_migration_or_former_definitions_does_not_start() {
    let store = MemoryStore::new().store();
    let grants = lead(&store, 1);
    let (former, present) = (Hash([1; 32]), Hash([2; 32]));
    let begin = |schema| immediate(grants.begin_realm(WallTime(1), schema, b"schema"));
    begin(present).expect("it leads");
    let write = |key: Vec<u8>, value: Option<Vec<u8>>| {
        let transaction = store.begin();
        match value {
            Some(value) => transaction.set(&key, &value).expect("a small row"),
            None => transaction.clear(&key).expect("a small row"),
        }
        immediate(transaction.commit()).expect("it commits");
    };
    let other = begin(former).err();
    assert!(matches!(other, Some(GrantError::OtherSchema { .. })), "{other:?}");
    let record = MigrationRecord {
        from: former,
        to: present,
        at: WallTime(2),
        leaves: LeafIndex(0),
        renames: Vec::new(),
        receivers: Vec::new(),
    };
    for (key, chunk) in chunks(&migrations::key_of(0), &record.encode()) {
        write(key, Some(chunk.to_vec()));
    }
    let other = begin(former).err();
    assert!(matches!(other, Some(GrantError::FormerSchema { .. })), "{other:?}");
    let unknown = begin(Hash([3; 32])).err();
    assert!(matches!(unknown, Some(GrantError::OtherSchema { .. })), "{unknown:?}");
    for (later, expected) in [(false, false), (true, true)] {
        let converting = Converting {
            later,
            ..Converting::default()
        };
        write(migrations::converting_key(), Some(converting.encode()));
        let begun = begin(present);
        let refused = matches!(begun, Err(GrantError::Unconverted(schema)) if schema == present);
        assert_eq!((begun.is_ok(), refused), (expected, !expected), "{begun:?}");
    }
    write(migrations::converting_key(), None);
    begin(present).expect("it is converted");
}

#[test]
fn a_standby_need_not_wait_for_a_director_that_has_left() {
    let store = MemoryStore::new().store();
    let is_closed = |connection: &str| connection == "server:1";
    let has_left = || {
        let term = immediate(Grants::watch(&store)).expect("the store answers");
        immediate(Grants::has_left(&store, term, is_closed)).expect("the store answers")
    };
    let first = lead(&store, 1);
    assert!(!has_left(), "it has not said over which connection it leads");
    immediate(first.attach(Some("server:9"))).expect("it leads");
    assert!(!has_left());
    immediate(first.attach(Some("server:1"))).expect("it leads");
    assert!(has_left(), "its connection is closed");

    let second = lead(&store, 2);
    assert!(!has_left(), "the closed connection is that of the term before");
    assert!(
        immediate(first.attach(Some("server:9"))).is_err(),
        "it does not lead any more"
    );
    immediate(second.attach(Some("server:2"))).expect("it leads");
    assert!(!has_left());
    immediate(second.attach(None)).expect("it leads");
    assert!(has_left(), "it has resigned");
}
