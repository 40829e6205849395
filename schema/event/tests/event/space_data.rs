//! Space data: copies that have received the same entries are equal; and the day cycle.

use std::collections::BTreeMap;

use annals_def::split_mix;
use annals_event::{
    Body, Cause, Event, Geometry, ORDINALS, OwnerState, Reader, SPACE_KEYS, SPACE_VALUE_BYTES, SpaceData, SpaceEntry,
    SpaceVersion, SpaceVersions, Subject, TimeOfDay,
    space_data::{FIRST_GEOMETRY, FIRST_OWN_KEY, LIFE},
};
use annals_ids::{OwnerId, Part, SpaceId, WorldTime};

const SPACE: SpaceId = SpaceId(4);

fn entry(key: u16, (stamp, by): (u64, u32), value: &[u8]) -> SpaceEntry {
    let (life, by) = (0, OwnerId(by));
    SpaceEntry {
        key,
        version: SpaceVersion { life, stamp, by },
        value: value.to_vec(),
    }
}

fn in_life(life: u64, entry: SpaceEntry) -> SpaceEntry {
    let version = SpaceVersion { life, ..entry.version };
    SpaceEntry { version, ..entry }
}

fn event(entry: SpaceEntry) -> Event {
    Event {
        subject: Subject::Owner,
        cause: Cause(0),
        history: None,
        body: Body::SpaceData { space: SPACE, entry },
    }
}

/// Entries with few distinct keys, lives and versions, each version with one value, so that many collide. No entries
/// are written in odd lives.
fn entries(seed: u64) -> Vec<SpaceEntry> {
    let mut dice = split_mix(seed);
    let mut roll = |sides: u64| dice() % sides;
    let some = (0..60).map(|_| {
        let key = [0, LIFE, 256, 257, 511][roll(5) as usize];
        let version = (1 + roll(12), 1 + roll(3) as u32);
        let life = roll(6);
        let value: &[u8] = match version.0 % 5 {
            0 => b"",
            _ => &[version.0 as u8, version.1 as u8],
        };
        match key {
            LIFE => SpaceEntry::of_life(life, OwnerId(version.1)),
            _ => in_life(life, entry(key, version, value)),
        }
    });
    some.collect()
}

/// The expected result of these entries, straight from the rule.
fn oracle(entries: &[SpaceEntry]) -> Vec<SpaceEntry> {
    let is_sound = |entry: &&SpaceEntry| entry.key == LIFE || entry.version.life.is_multiple_of(2);
    let life = entries.iter().filter(is_sound).map(|entry| entry.version.life).max();
    let life = life.unwrap_or_default();
    let mut newest: BTreeMap<u16, SpaceEntry> = BTreeMap::new();
    if life > 0 {
        newest.insert(LIFE, SpaceEntry::of_life(life, OwnerId(0)));
    }
    let there = |entry: &&SpaceEntry| is_sound(entry) && entry.key != LIFE && entry.version.life == life;
    for entry in entries.iter().filter(there) {
        if newest.get(&entry.key).is_none_or(|held| held.version < entry.version) {
            newest.insert(entry.key, entry.clone());
        }
    }
    newest.into_values().collect()
}

fn held(data: &SpaceData) -> Vec<SpaceEntry> {
    data.newer_than(&SpaceVersions::default())
}

#[test]
fn the_newest_valid_entries_stay_in_any_order() {
    for seed in 0..300 {
        let mut entries = entries(seed);
        let wanted = oracle(&entries);
        let mut dice = split_mix(seed + 1_000);
        for _ in 0..5 {
            let mut state = OwnerState::new(OwnerId(7), Part::Cell);
            let mut known = SpaceVersions::default();
            for entry in &entries {
                let before = state.spaces.get(&SPACE).cloned().unwrap_or_default();
                assert_eq!(known, before.versions(), "seed {seed}");
                if known.is_news(entry.key, entry.version) {
                    known.note(entry.key, entry.version);
                }
                let is_newer = before.is_news(entry.key, entry.version);
                state.apply(&event(entry.clone())).expect("it can always be");
                assert_eq!(state.spaces[&SPACE] != before, is_newer, "seed {seed}: {entry:?}");
            }
            assert_eq!(held(&state.spaces[&SPACE]), wanted, "seed {seed}");
            for at in (1..entries.len()).rev() {
                entries.swap(at, (dice() % (at as u64 + 1)) as usize);
            }
        }
    }
}

#[test]
fn a_sync_yields_the_union_of_both_copies() {
    for seed in 0..300 {
        let entries = entries(seed);
        let mut dice = split_mix(seed);
        let mut copies = [SpaceData::default(), SpaceData::default()];
        for entry in &entries {
            copies[(dice() % 2) as usize].take(entry.clone());
        }
        let [mut one, mut other] = copies;
        for entry in one.newer_than(&other.versions()) {
            assert!(other.take(entry), "seed {seed}");
        }
        for entry in other.newer_than(&one.versions()) {
            assert!(one.take(entry), "seed {seed}");
        }
        assert_eq!(one, other, "seed {seed}");
        assert_eq!(held(&one), oracle(&entries), "seed {seed}");
    }
}

#[test]
fn new_entries_have_the_highest_stamp() {
    let mut data = SpaceData::default();
    let by = OwnerId(9);
    let version = |data: &SpaceData, key, now| {
        let version = data.next_version(key, WorldTime(now), by);
        assert_eq!(version.by, by);
        (version.life, version.stamp)
    };
    assert_eq!(version(&data, 300, 0), (0, 1));
    assert_eq!(version(&data, 300, 50), (0, 50));
    assert!(data.take(entry(300, (80, 1), b"x")));
    assert_eq!(version(&data, 300, 50), (0, 81));
    assert_eq!(version(&data, 301, 50), (0, 50));
    assert!(data.take(data.destroyed(by).expect("it is there")));
    assert!(data.is_gone() && data.destroyed(by).is_none());
    assert_eq!(data.get(300), None, "what was before the space was destroyed is void");
    assert!(
        !data.take(in_life(1, entry(300, (99, 1), b"x"))),
        "no entry is written meanwhile"
    );
    assert!(data.take(data.opened(WorldTime(0), by)));
    assert_eq!(version(&data, 300, 50), (2, 50));
    assert!(!data.take(entry(300, (99, 1), b"x")), "nor is an earlier entry");
    assert!(data.take(data.opened(WorldTime(1), by)));
    assert_eq!(
        (data.life(), data.is_gone()),
        (4, false),
        "it is another one, though it was not gone"
    );
    // An owner that does not know of that opens it later.
    let late = SpaceData::default().opened(WorldTime(70), by);
    assert_eq!(late.version.life, 140);
    assert!(data.take(data.destroyed(by).expect("it is there")) && data.take(late));
    assert!(!data.is_gone());
}

#[test]
fn entries_and_copies_round_trip_and_invalid_ones_are_refused() {
    let read = |entry: SpaceEntry| {
        let event = event(entry);
        let mut bytes = Vec::new();
        event.write(&mut bytes);
        Event::read(&bytes).map(|read| assert_eq!(read, event))
    };
    read(entry(0, (0, 0), b"")).expect("the call is permitted");
    let largest = vec![7; SPACE_VALUE_BYTES];
    read(entry(SPACE_KEYS - 1, (u64::MAX >> 1, u32::MAX), &largest)).expect("the call is permitted");
    assert!(read(entry(SPACE_KEYS, (1, 1), b"")).is_err(), "no such key");
    assert!(read(entry(1, (u64::MAX, 1), b"")).is_err(), "beyond all stamps");
    assert!(
        read(entry(1, (1, 1), &[largest, vec![7]].concat())).is_err(),
        "too large"
    );
    for seed in 0..50 {
        let mut state = OwnerState::new(OwnerId(7), Part::Cell);
        for entry in entries(seed) {
            state.apply(&event(entry)).expect("it can always be");
        }
        let mut bytes = Vec::new();
        state.write_own(&mut bytes);
        let read = OwnerState::read_own(&bytes).expect("it was written");
        assert_eq!(read, state, "seed {seed}");
        let versions = state.spaces[&SPACE].versions();
        let mut bytes = Vec::new();
        versions.write(&mut bytes);
        assert_eq!(
            SpaceVersions::read(&mut Reader::new(&bytes)),
            Ok(versions),
            "seed {seed}"
        );
    }
}

#[test]
fn a_day_advances_from_the_time_it_was_set() {
    let day = TimeOfDay {
        initial: 23.0 * 3_600.0,
        rate: 60.0,
        set: WorldTime(5_000),
    };
    let at = |now| day.at(WorldTime(now));
    assert!((at(5_000) - 82_800.0).abs() < 1e-9);
    // An hour of the day passes in a minute.
    assert!((at(35_000) - 84_600.0).abs() < 1e-9);
    assert!((at(65_000) - 0.0).abs() < 1e-9, "midnight");
    assert!((at(95_000) - 1_800.0).abs() < 1e-9);
    assert!((at(0) - 82_500.0).abs() < 1e-9, "before it was set");
    let back = TimeOfDay { rate: -1e-13, ..day };
    for now in [5_001, 6_000, 1 << 50] {
        let time = TimeOfDay { initial: 0.0, ..back }.at(WorldTime(now));
        assert!((0.0..86_400.0).contains(&time), "{time} at {now}");
    }
    assert_eq!(TimeOfDay::read(&day.to_value()), Ok(day));
    assert!(TimeOfDay::read(b"").is_err());
    let unsound = TimeOfDay { rate: f64::NAN, ..day };
    assert!(TimeOfDay::read(&unsound.to_value()).is_err());
}

#[test]
fn geometry_is_listed_by_its_number() {
    let mut data = SpaceData::default();
    let mut transform = [[0.0; 3]; 4];
    transform[0] = [1.0, 0.0, 0.0];
    transform[3] = [5.0, -1.0, 1e9];
    let geometry = Geometry {
        path: "spaces/höhle".to_owned(),
        transform,
    };
    for (key, value) in [
        (FIRST_OWN_KEY - 1, geometry.to_value()),
        (FIRST_GEOMETRY, geometry.to_value()),
        (FIRST_GEOMETRY + 1, Vec::new()),
        (FIRST_GEOMETRY + 2, b"nothing of the kind".to_vec()),
        (FIRST_OWN_KEY, geometry.to_value()),
    ] {
        data.take(entry(key, (1, 1), &value));
    }
    let found: Vec<(u8, Geometry)> = data.geometry().collect();
    assert_eq!(found, [(0, geometry.clone()), (127, geometry)]);
}

/// Another process may send anything. Lives and stamps accepted from a message can be counted on from, and what is then
/// logged can be decoded.
#[test]
fn sequence_numbers_from_messages_are_loggable() {
    let read = |entry: &SpaceEntry, of_message: bool| {
        let mut bytes = Vec::new();
        entry.write(&mut bytes);
        let mut reader = if of_message {
            Reader::of_message(&bytes)
        } else {
            Reader::new(&bytes)
        };
        SpaceEntry::read(&mut reader)
    };
    let by = OwnerId(3);
    let most = ORDINALS / 2 - 1;
    let live = most & !1;
    let said = in_life(live, entry(FIRST_OWN_KEY, (most, 2), b"x"));
    assert_eq!(read(&said, true).as_ref(), Ok(&said));
    for beyond in [most + 1, ORDINALS - 1, ORDINALS, u64::MAX] {
        for bad in [SpaceEntry::of_life(beyond, by), entry(FIRST_OWN_KEY, (beyond, 2), b"x")] {
            assert!(read(&bad, true).is_err(), "{bad:?} was taken from a message");
        }
    }
    let mut state = OwnerState::new(OwnerId(1), annals_ids::OwnerKind::Cell);
    state.apply(&event(said)).expect("it can be taken");
    let data = |state: &OwnerState| state.spaces[&SPACE].clone();
    for _ in 0..1_000 {
        let held = data(&state);
        let now = WorldTime(5);
        let version = held.next_version(FIRST_OWN_KEY, now, by);
        let value = b"y".to_vec();
        let key = FIRST_OWN_KEY;
        let written = SpaceEntry { key, version, value };
        let opened = held.opened(now, by);
        for entry in [Some(written), held.destroyed(by), Some(opened)].into_iter().flatten() {
            assert_eq!(read(&entry, false).as_ref(), Ok(&entry));
            state.apply(&event(entry)).expect("it follows");
        }
    }
    let mut bytes = Vec::new();
    state.write_own(&mut bytes);
    assert_eq!(OwnerState::read_own(&bytes).map(|read| data(&read)), Ok(data(&state)));
}
