//! Global data: copies that have received the same entries are equal, and each entry has one encoding.

use std::collections::BTreeMap;

use annals_def::{EntityType, Plan, Renames, Schema, Value, split_mix};
use annals_event::{
    Body, Call, Cause, Event, GLOBAL_KEY_BYTES, GLOBAL_VALUE_BYTES, GivenClient, GivenOutcome, GlobalData, GlobalEntry,
    GlobalScope, GlobalVersion, GlobalVersions, Migration, ORDINALS, OwnerState, Reader, Receivers, Registration, Sent,
    Subject, latest::value::value_length,
};
use annals_ids::{Address, CallNumber, EntityId, Mailbox, OwnerId, OwnerKind, Part, SessionId, TypeId, WorldTime};

fn entry(key: &str, (stamp, by): (u64, u32), value: Option<Value>) -> GlobalEntry {
    let by = OwnerId(by);
    GlobalEntry {
        key: key.to_owned(),
        version: GlobalVersion { stamp, by },
        value,
    }
}

fn event(scope: GlobalScope, entry: GlobalEntry) -> Event {
    Event {
        subject: Subject::Owner,
        cause: Cause(0),
        history: None,
        body: Body::GlobalData { scope, entry },
    }
}

/// Entries with few distinct keys and versions, each version with one value, so that many collide.
fn entries(seed: u64) -> Vec<GlobalEntry> {
    let mut dice = split_mix(seed);
    let mut roll = |sides: u64| dice() % sides;
    let some = (0..60).map(|_| {
        let key = ["a", "ab", "b", "ü"][roll(4) as usize];
        let version = (1 + roll(12), 1 + roll(3) as u32);
        let value = (version.0 % 5 > 0).then(|| Value::UInt(version.0 * 10 + u64::from(version.1)));
        entry(key, version, value)
    });
    some.collect()
}

fn oracle(entries: &[GlobalEntry]) -> Vec<GlobalEntry> {
    let mut newest: BTreeMap<String, GlobalEntry> = BTreeMap::new();
    for entry in entries {
        if newest.get(&entry.key).is_none_or(|held| held.version < entry.version) {
            newest.insert(entry.key.clone(), entry.clone());
        }
    }
    newest.into_values().collect()
}

fn state_with(entries: &[GlobalEntry], scope: GlobalScope) -> OwnerState {
    let mut state = OwnerState::new(OwnerId(7), Part::Base);
    for entry in entries {
        state.apply(&event(scope, entry.clone())).expect("it can always be");
    }
    state
}

#[test]
fn the_newest_entries_stay_in_any_order() {
    for seed in 0..300 {
        let mut entries = entries(seed);
        let wanted = oracle(&entries);
        let mut dice = split_mix(seed + 1_000);
        for _ in 0..5 {
            let state = state_with(&entries, GlobalScope::Realm);
            let held: Vec<GlobalEntry> = state.globals[&GlobalScope::Realm].entries().collect();
            assert_eq!(held, wanted, "seed {seed}");
            for at in (1..entries.len()).rev() {
                entries.swap(at, (dice() % (at as u64 + 1)) as usize);
            }
        }
    }
}

#[test]
fn a_comparison_yields_the_union_of_both_copies() {
    for seed in 0..300 {
        let entries = entries(seed);
        let mut dice = split_mix(seed);
        let mut copies = [GlobalData::default(), GlobalData::default()];
        for entry in &entries {
            copies[(dice() % 2) as usize].take(entry.clone());
        }
        let [mut one, mut other] = copies;
        assert_eq!(one.digest() == other.digest(), one == other, "seed {seed}");
        for entry in one.newer_than(&other.versions()) {
            assert!(other.is_news(&entry.key, entry.version), "seed {seed}");
            other.take(entry);
        }
        for entry in other.newer_than(&one.versions()) {
            one.take(entry);
        }
        assert_eq!(one, other, "seed {seed}");
        assert_eq!(one.digest(), other.digest(), "seed {seed}");
        assert_eq!(one.entries().collect::<Vec<_>>(), oracle(&entries), "seed {seed}");
    }
}

#[test]
fn a_written_value_is_newer_than_what_is_held() {
    let mut data = GlobalData::default();
    let by = OwnerId(3);
    let stamps: Vec<u64> = [(5, 5), (3, 6), (9, 9), (9, 10)]
        .into_iter()
        .map(|(now, expected)| {
            let next = data.next_entry("a", Some(Value::UInt(now)), WorldTime(now), by);
            assert_eq!(next.version.stamp, expected);
            data.take(next);
            expected
        })
        .collect();
    assert_eq!(data.version("a").map(|version| version.stamp), stamps.last().copied());
    assert_eq!(data.get("a"), Some(&Value::UInt(9)));
}

#[test]
fn an_entry_has_these_bytes() {
    let value = Some(Value::UInt(7));
    let cases = [
        (entry("key", (300, 9), value), &b"\x03key\xac\x02\x09\x01\x02\x07"[..]),
        (entry("key", (300, 9), None), &b"\x03key\xac\x02\x09\x00"[..]),
    ];
    for (entry, expected) in cases {
        let mut written = Vec::new();
        entry.write(&mut written);
        assert_eq!(written, expected);
        assert!(written.len() <= entry.length());
        assert_eq!(GlobalEntry::read(&mut Reader::new(&written)), Ok(entry));
        for end in 0..written.len() {
            assert!(GlobalEntry::read(&mut Reader::new(&written[..end])).is_err());
        }
    }
    for (number, scope) in GlobalScope::ALL.into_iter().enumerate() {
        let mut written = Vec::new();
        event(scope, entry("k", (1, 1), None)).write(&mut written);
        assert_eq!(written, [35, 0, 0, 0, number as u8, 1, b'k', 1, 1, 0]);
        assert_eq!(Event::read(&written), Ok(event(scope, entry("k", (1, 1), None))));
    }
    assert!(
        Event::read(&[35, 0, 0, 0, 4, 1, b'k', 1, 1, 0]).is_err(),
        "a scope that is not known"
    );
}

#[test]
fn malformed_entries_are_refused() {
    let read = |entry: GlobalEntry| {
        let mut written = Vec::new();
        entry.write(&mut written);
        GlobalEntry::read(&mut Reader::new(&written))
    };
    let bytes = |length: usize| Some(Value::Bytes(vec![0; length]));
    // Tag and length take three bytes. Values may grow when definitions change.
    let longest = entry("k", (1, 1), bytes(2 * GLOBAL_VALUE_BYTES - 3));
    assert_eq!(read(longest.clone()), Ok(longest));
    assert!(read(entry("k", (1, 1), bytes(2 * GLOBAL_VALUE_BYTES - 2))).is_err());
    let key = "k".repeat(GLOBAL_KEY_BYTES);
    assert!(read(entry(&key, (1, 1), None)).is_ok());
    for key in [String::new(), "k".repeat(GLOBAL_KEY_BYTES + 1)] {
        assert!(read(entry(&key, (1, 1), None)).is_err());
    }
    assert!(read(entry("k", (ORDINALS, 1), None)).is_err());
    assert!(
        GlobalEntry::read(&mut Reader::new(b"\x01\xff\x01\x01\x00")).is_err(),
        "a key is text"
    );
    // Keys ascend.
    let versions = |bytes: &[u8]| GlobalVersions::read(&mut Reader::new(bytes)).is_ok();
    assert!(versions(b"\x02\x01a\x01\x01\x01b\x01\x01"));
    assert!(!versions(b"\x02\x01b\x01\x01\x01a\x01\x01"));
}

#[test]
fn a_snapshot_holds_global_data_and_an_empty_one_is_as_before() {
    let empty = OwnerState::new(OwnerId(7), Part::Base);
    let mut before = Vec::new();
    empty.write_own(&mut before);
    assert_eq!(OwnerState::read_own(&before), Ok(empty));
    // A generation of 0 and no data have no bytes.
    for end in [&[0][..], &[0, 0]] {
        assert!(OwnerState::read_own(&[&before, end].concat()).is_err(), "{end:?}");
    }
    for seed in 0..100 {
        let mut state = state_with(&entries(seed), GlobalScope::Realm);
        state
            .globals
            .extend(state_with(&entries(seed + 1), GlobalScope::Registry).globals);
        state.links.generation = seed % 3;
        let mut written = Vec::new();
        state.write_own(&mut written);
        assert_eq!(OwnerState::read_own(&written).as_ref(), Ok(&state), "seed {seed}");
        assert_eq!(&written[..before.len()], before, "seed {seed}: it is appended");
        let mut other = state.clone();
        other.globals.remove(&GlobalScope::Registry);
        assert_ne!(state.hash(), other.hash(), "seed {seed}");
    }
}

#[test]
fn owners_have_the_data_of_their_scopes() {
    let expected = [
        (GlobalScope::Realm, [true, true, false]),
        (GlobalScope::Bases, [true, false, false]),
        (GlobalScope::Cells, [false, true, false]),
        (GlobalScope::Registry, [true, true, false]),
    ];
    for (scope, kinds) in expected {
        for (kind, expected) in OwnerKind::ALL.into_iter().zip(kinds) {
            let mut state = OwnerState::new(OwnerId(7), kind);
            let applied = state.apply(&event(scope, entry("k", (1, 1), None)));
            assert_eq!(applied.is_ok(), expected, "{scope:?} {kind:?}: {applied:?}");
        }
    }
}

#[test]
fn registrations_are_found_by_key_and_entity() {
    let mailbox = |entity| Mailbox {
        entity: EntityId(entity),
        home: OwnerId(1),
        type_id: TypeId(0),
        part: Part::Base,
    };
    let mut data = GlobalData::default();
    for (key, entity) in [("a", 5), ("b", 6), ("c", 5)] {
        data.take(entry(key, (1, 1), Some(Value::Mailbox(Some(mailbox(entity))))));
    }
    data.take(entry("c", (2, 1), None));
    assert_eq!(data.mailbox("b"), Some(mailbox(6)));
    assert_eq!(data.mailbox("c"), None);
    assert_eq!((data.len(), data.values().count()), (3, 2));
}

/// From types Ape, Bee and Cat to Bee and Cat.
fn migration() -> Migration {
    let schema = |names: &[&str]| {
        let types = names.iter().map(|name| EntityType::new(*name)).collect();
        Schema::new(types, Vec::new(), Vec::new())
    };
    let (old, new) = (schema(&["Ape", "Bee", "Cat"]), schema(&["Bee", "Cat"]));
    Migration {
        from: old.fingerprint(),
        to: new.fingerprint(),
        plan: Plan::new(&old, &new, &Renames::default()),
        receivers: Receivers::new(),
    }
}

fn of_type(type_id: u16) -> Mailbox {
    Mailbox {
        entity: EntityId(5),
        home: OwnerId(1),
        type_id: TypeId(type_id),
        part: Part::Base,
    }
}

fn value(type_id: u16) -> Value {
    Value::Mailbox(Some(of_type(type_id)))
}

#[test]
fn mailboxes_in_global_data_are_converted() {
    let migration = migration();
    let nested = |first: Value| Value::Sequence(vec![Value::UInt(2), Value::Dict(vec![first])]);
    let version = (3, 1);
    let mut state = state_with(&[entry("cats", version, Some(nested(value(2))))], GlobalScope::Realm);
    let registry = [
        entry("ape", version, Some(value(0))),
        entry("bee", version, Some(value(1))),
        entry("cat", version, None),
    ];
    state
        .globals
        .extend(state_with(&registry, GlobalScope::Registry).globals);
    state.schema = migration.from;
    let before = state.globals[&GlobalScope::Registry].versions();
    migration.convert(&mut state).expect("it has a counterpart");
    let realm = &state.globals[&GlobalScope::Realm];
    assert_eq!(realm.get("cats"), Some(&nested(value(1))));
    let registry = &state.globals[&GlobalScope::Registry];
    assert_eq!(registry.mailbox("bee"), Some(of_type(0)));
    assert_eq!(registry.mailbox("ape"), None, "its type was removed");
    assert_eq!(registry.versions(), before, "copies that were equal stay so");
}

#[test]
fn registrations_under_way_are_converted() {
    let registered = |outcome| Call::Registered {
        by: EntityId(5),
        of: CallNumber(8),
        outcome,
    };
    let register = |type_id| Call::Register {
        by: EntityId(5),
        of: CallNumber(8),
        key: "k".to_owned(),
        type_id: TypeId(type_id),
    };
    let calls = |type_id, last: Registration| {
        [
            register(type_id),
            registered(Registration::Taken(of_type(type_id))),
            registered(Registration::Done(entry("k", (3, 1), Some(value(type_id))))),
            registered(last),
        ]
    };
    let sent = |calls: [Call; 4]| Sent {
        home: OwnerId(2),
        last: CallNumber(4),
        unconfirmed: (1..).map(CallNumber).zip(calls).collect(),
    };
    let peer = Address::Owner(OwnerId(2));
    let migration = migration();
    let mut state = OwnerState::new(OwnerId(7), Part::Base);
    state.schema = migration.from;
    let by_ape = Registration::Taken(of_type(0));
    state.links.sent.insert(peer, sent(calls(1, by_ape)));
    migration.convert(&mut state).expect("it has a counterpart");
    let removed = Registration::Refused("it is registered by an entity whose type was removed".to_owned());
    assert_eq!(state.links.sent[&peer], sent(calls(0, removed)));
}

#[test]
fn clients_that_are_being_given_away_are_converted() {
    let calls = |type_id| {
        let to = of_type(type_id);
        let given = GivenClient {
            from: EntityId(5),
            to,
            session: SessionId(6),
            token: [7; 32],
            former_token: None,
            account: None,
            opened: WorldTime(8),
            gives_way: false,
        };
        let taken = Call::ClientTaken {
            from: EntityId(5),
            to,
            session: SessionId(6),
            outcome: GivenOutcome::InUse,
        };
        Sent {
            home: OwnerId(2),
            last: CallNumber(2),
            unconfirmed: [
                (CallNumber(1), Call::GiveClient(Box::new(given))),
                (CallNumber(2), taken),
            ]
            .into(),
        }
    };
    let peer = Address::Owner(OwnerId(2));
    // A receiver is found by its entity: of a type that was removed, its mailbox stays.
    for (before, after) in [(1, 0), (0, 0)] {
        let migration = migration();
        let mut state = OwnerState::new(OwnerId(7), Part::Base);
        state.schema = migration.from;
        state.links.sent.insert(peer, calls(before));
        migration.convert(&mut state).expect("it has a counterpart");
        assert_eq!(state.links.sent[&peer], calls(after));
    }
}

#[test]
fn a_value_that_grows_in_a_conversion_can_be_read() {
    let types = |first: usize| {
        (first..200)
            .map(|number| EntityType::new(format!("T{number}")))
            .collect()
    };
    let old = Schema::new(types(100), Vec::new(), Vec::new());
    let new = Schema::new(types(0), Vec::new(), Vec::new());
    let migration = Migration {
        from: old.fingerprint(),
        to: new.fingerprint(),
        plan: Plan::new(&old, &new, &Renames::default()),
        receivers: Receivers::new(),
    };
    let mut list = Vec::new();
    while value_length(&Value::Sequence(list.clone())) + 6 <= GLOBAL_VALUE_BYTES {
        list.push(value(99));
    }
    let mut state = state_with(&[entry("k", (1, 1), Some(Value::Sequence(list)))], GlobalScope::Realm);
    state.schema = migration.from;
    migration.convert(&mut state).expect("it has a counterpart");
    let converted = state.globals[&GlobalScope::Realm].get("k").expect("it is there");
    assert!(value_length(converted) > GLOBAL_VALUE_BYTES);
    let mut written = Vec::new();
    state.write_own(&mut written);
    assert_eq!(OwnerState::read_own(&written), Ok(state));
}
