//! Data of spaces: what one cell writes all of them receive, whatever is lost and whichever process dies.

use annals_cell::CellInput;
use annals_def::Value;
use annals_event::{
    Body, Geometry, SPACE_VALUE_BYTES, SpaceData,
    space_data::{FIRST_OWN_KEY, LIFE},
};
use annals_ids::{EntityId, OwnerId, SpaceId};
use annals_node::{Context, Denied};
use annals_wire::{CellArea, SpaceMap, bus::Message};

use crate::{
    game::{ACT, AVATAR, SCRIBBLE},
    oracle::check,
    teleport::{HALL, at, put, world as with_spaces},
    world::{CALM, EAST, MIDDLE, ROUGH, SPACE, WEST, World, have, place},
};

pub(crate) const KEY: u16 = FIRST_OWN_KEY;
pub(crate) const OWNERS: [OwnerId; 3] = [WEST, MIDDLE, EAST];

/// An avatar on each cell.
pub(crate) fn writers(world: &mut World) -> [EntityId; 3] {
    let writers = [-30.0, 30.0, 90.0].map(|x| world.spawn(AVATAR, x, None));
    world.run(500);
    writers
}

pub(crate) fn write(world: &mut World, who: EntityId, key: u16, value: &'static [u8]) {
    have(world, who, move |context| {
        context
            .set_space_data(key, value.to_vec())
            .expect("the call is permitted");
    });
}

/// The value that each owner that is up has of a key.
pub(crate) fn held(world: &World, key: u16) -> Vec<Option<Vec<u8>>> {
    let data = OWNERS.iter().map(|id| world.cx(*id).space_data(SPACE));
    data.map(|data| data.and_then(|data| data.get(key)).map(<[u8]>::to_vec))
        .collect()
}

pub(crate) fn all(value: &[u8]) -> Vec<Option<Vec<u8>>> {
    vec![Some(value.to_vec()); OWNERS.len()]
}

pub(crate) fn copy(world: &World, id: OwnerId, space: SpaceId) -> SpaceData {
    world.cx(id).space_data(space).cloned().unwrap_or_default()
}

/// The data that follows from everything logged of a space, by any owner.
pub(crate) fn logged(world: &World, space: SpaceId) -> SpaceData {
    let mut data = SpaceData::default();
    for cell in world.cells.values() {
        for event in cell.events() {
            if let Body::SpaceData { space: of, entry } = event.body
                && of == space
            {
                data.take(entry);
            }
        }
    }
    data
}

#[test]
fn space_data_reaches_all_cells_and_the_last_write_wins() {
    let mut world = World::new(1);
    let [west, middle, east] = writers(&mut world);
    write(&mut world, west, KEY, b"dawn");
    world.run(60);
    assert_eq!(held(&world, KEY), all(b"dawn"), "within what a message takes");
    write(&mut world, east, KEY, b"noon");
    write(&mut world, middle, KEY + 1, b"rain");
    world.run(60);
    assert_eq!(held(&world, KEY), all(b"noon"));
    assert_eq!(held(&world, KEY + 1), all(b"rain"));
    have(&mut world, west, |context| {
        assert_eq!(context.space_data(KEY), Some(&b"noon"[..]));
        context.remove_space_data(KEY).expect("the call is permitted");
        assert_eq!(context.space_data(KEY), None, "at once, where it was done");
    });
    world.run(60);
    assert_eq!(held(&world, KEY), [None, None, None]);
    assert!(OWNERS.iter().all(|id| copy(&world, *id, SPACE).version(KEY).is_some()));
    let before = world.cells[&MIDDLE].events().len();
    have(&mut world, middle, |context| {
        context
            .set_space_data(KEY + 1, b"rain".to_vec())
            .expect("the call is permitted");
        context.remove_space_data(KEY).expect("the call is permitted");
    });
    world.run(60);
    let written = |world: &World| {
        let events = world.cells[&MIDDLE].events().into_iter().skip(before);
        events
            .filter(|event| matches!(event.body, Body::SpaceData { .. }))
            .count()
    };
    assert_eq!(written(&world), 2, "an unchanged value is also the last write");
    check(&world);
}

#[test]
fn lost_space_data_is_resent_and_recovered_from_the_log() {
    let mut world = World::new(2);
    let [west, middle, _] = writers(&mut world);
    world.cut_off = Some(EAST);
    write(&mut world, west, KEY, b"one");
    world.run(60);
    assert_eq!(held(&world, KEY)[2], None, "the notification did not arrive");
    // The writer is gone for good: another owner that has the value sends it.
    world.crash(WEST);
    world.cut_off = None;
    world.run(2_500);
    assert_eq!(copy(&world, EAST, SPACE).get(KEY), Some(&b"one"[..]));
    write(&mut world, middle, KEY, b"two");
    world.run(500);
    world.start(WEST);
    world.run(6_000);
    assert_eq!(held(&world, KEY), all(b"two"), "a successor learns what it missed");
    for id in OWNERS {
        world.crash(id);
    }
    world.run(2_000);
    for id in OWNERS {
        world.start(id);
    }
    assert_eq!(
        held(&world, KEY),
        all(b"two"),
        "each from its own log, before it has received from others"
    );
    world.run(5_000);
    check(&world);
}

fn seen(world: &World, session: u64, key: u16) -> Option<Vec<u8>> {
    world.client(session).data.get(key).map(<[u8]>::to_vec)
}

#[test]
fn a_client_has_the_data_of_the_space_in_which_its_entity_is() {
    let mut world = with_spaces(9);
    let [west, middle, _] = writers(&mut world);
    write(&mut world, west, KEY, b"one");
    write(&mut world, middle, KEY + 1, b"two");
    let own = world.spawn(AVATAR, -10.0, Some(1));
    world.run(500);
    assert_eq!(seen(&world, 1, KEY), Some(b"one".to_vec()), "as its view begins");
    assert_eq!(seen(&world, 1, KEY + 1), Some(b"two".to_vec()));
    write(&mut world, middle, KEY, b"three");
    world.run(300);
    assert_eq!(seen(&world, 1, KEY), Some(b"three".to_vec()), "as it changes");
    assert_eq!(world.client(1).entries, 3);
    // It is handed over, and all cells die: the client is not sent again what it has.
    world.walk(1, 20.0, 0.0);
    world.run(3_000);
    assert_eq!(world.holders(own), [MIDDLE]);
    for id in OWNERS {
        world.crash(id);
    }
    world.run(1_000);
    for id in OWNERS {
        world.start(id);
    }
    world.run(8_000);
    assert_eq!(world.client(1).entries, 3);
    write(&mut world, west, KEY, b"");
    world.run(300);
    assert_eq!((seen(&world, 1, KEY), world.client(1).entries), (None, 4));
    // Other spaces have other data, or none.
    put(&mut world, own, at(HALL, 0.0));
    world.run(500);
    assert_eq!(world.client(1).space, Some(HALL));
    assert_eq!(seen(&world, 1, KEY + 1), None);
    put(&mut world, own, place(-10.0, 0.0));
    world.run(500);
    assert_eq!(
        seen(&world, 1, KEY + 1),
        Some(b"two".to_vec()),
        "it has forgotten it meanwhile"
    );
    // Back and forth between two ticks.
    for phase in 0..10 {
        world.run(500 + 9 * phase);
        put(&mut world, own, at(HALL, 0.0));
        world.run(20);
        put(&mut world, own, place(-10.0, 0.0));
        world.run(500);
        assert_eq!(world.client(1).space, Some(SPACE));
        assert_eq!(seen(&world, 1, KEY + 1), Some(b"two".to_vec()), "it is sent again");
    }
    check(&world);
}

/// No client is sent an older value, even if its next holder has not received the newer one.
#[test]
fn a_client_keeps_space_data_that_its_holder_lacks() {
    let mut world = World::new(10);
    let [west, ..] = writers(&mut world);
    write(&mut world, west, KEY, b"one");
    let own = world.spawn(AVATAR, -10.0, Some(1));
    world.run(3_000);
    world.cut_off = Some(MIDDLE);
    write(&mut world, west, KEY, b"two");
    world.run(300);
    assert_eq!(seen(&world, 1, KEY), Some(b"two".to_vec()));
    // Its holder has written it and is gone.
    world.walk(1, 20.0, 0.0);
    world.run(150);
    world.crash(WEST);
    world.cut_off = None;
    world.run(100);
    let stale = copy(&world, MIDDLE, SPACE);
    assert_eq!(stale.get(KEY), Some(&b"one"[..]));
    world.crash(EAST);
    world.run(100);
    world.start(WEST);
    world.run(6_000);
    world.start(EAST);
    world.run(8_000);
    assert_eq!(world.holders(own), [MIDDLE]);
    assert_eq!(seen(&world, 1, KEY), Some(b"two".to_vec()));
    assert_eq!(held(&world, KEY), all(b"two"));
}

#[test]
fn a_slow_client_receives_space_data_incrementally() {
    let mut world = World::new(11);
    let [west, ..] = writers(&mut world);
    world.limit(20_000);
    world.run(5_000);
    for key in KEY..KEY + 20 {
        have(&mut world, west, move |context| {
            context
                .set_space_data(key, vec![7; 500])
                .expect("the call is permitted");
        });
    }
    world.spawn(AVATAR, -10.0, Some(1));
    world.run(600);
    let (first, bytes) = (world.client(1).entries, world.client(1).bytes);
    assert!((1..10).contains(&first), "{first} entries in {bytes} bytes");
    world.run(6_000);
    assert_eq!(world.client(1).entries, 20);
    // 10 kB at 222 B a tick take 4.5 s.
    assert!(world.client(1).bytes < 70 * 222 + 600, "{}", world.client(1).bytes);
}

pub(crate) fn east_goes_to(world: &mut World, owner: OwnerId) {
    let mut map: SpaceMap = world.map.clone();
    map.version += 1;
    let space = map.spaces.get_mut(&SPACE).expect("there is such a space");
    for area in &mut space.cells {
        if area.west >= 60.0 {
            *area = CellArea { owner, ..*area };
        }
    }
    for id in OWNERS {
        world.send_to_cell(id, CellInput::Map(map.clone()));
    }
    world.map = map;
}

#[test]
fn space_data_survives_area_changes() {
    let mut world = World::new(3);
    east_goes_to(&mut world, MIDDLE);
    let [west, _, east] = writers(&mut world);
    write(&mut world, west, KEY, b"before");
    world.run(2_000);
    assert_eq!(held(&world, KEY)[2], None, "it has no area of the space");
    east_goes_to(&mut world, EAST);
    world.run(60);
    assert_eq!(held(&world, KEY), all(b"before"));
    world.run(3_000);
    assert_eq!(world.holders(east), [EAST]);
    // It writes, no other owner receives it, and it loses its area: what is only in its log is sent all the same.
    for id in [WEST, MIDDLE] {
        world.crash(id);
    }
    world.run(300);
    write(&mut world, east, KEY, b"after");
    world.run(60);
    let version = copy(&world, EAST, SPACE).version(KEY);
    // The processes that start have a map in which East has no area.
    east_goes_to(&mut world, MIDDLE);
    for id in [WEST, MIDDLE] {
        world.start(id);
    }
    world.run(6_000);
    assert_eq!(held(&world, KEY), all(b"after"));
    assert_eq!(copy(&world, WEST, SPACE).version(KEY), version);
    // After that East has nothing left to send, and asks no further.
    world.sent = Some(Vec::new());
    world.run(3_000);
    let chatter = world.sent.take().expect("it was kept");
    assert!(
        chatter
            .iter()
            .all(|envelope| { envelope.from != EAST || !matches!(envelope.message, Message::Space(..)) })
    );
}

#[test]
fn space_data_beyond_a_limit_is_denied_with_a_reason() {
    let mut world = World::new(4);
    let [west, ..] = writers(&mut world);
    have(&mut world, west, |context| {
        for key in [0, LIFE, FIRST_OWN_KEY - 1, 512, u16::MAX] {
            assert_eq!(context.set_space_data(key, vec![1]), Err(Denied::SpaceKey { key }));
        }
        let bytes = SPACE_VALUE_BYTES + 1;
        assert_eq!(
            context.set_space_data(KEY, vec![1; bytes]),
            Err(Denied::SpaceValue { bytes })
        );
        context
            .set_space_data(511, vec![1; bytes - 1])
            .expect("as large as one may be");
        assert_eq!(context.set_time_of_day(f64::NAN, 1.0), Err(Denied::TimeOfDay));
        let hill = Geometry {
            path: "hill".to_owned(),
            transform: [[0.0; 3]; 4],
        };
        assert_eq!(context.add_space_geometry(128, &hill), Err(Denied::Geometry));
        let mut lost = hill.clone();
        lost.transform[3][1] = f32::INFINITY;
        assert_eq!(context.add_space_geometry(0, &lost), Err(Denied::Geometry));
        let long = Geometry {
            path: "x".repeat(SPACE_VALUE_BYTES),
            ..hill.clone()
        };
        assert!(matches!(
            context.add_space_geometry(0, &long),
            Err(Denied::SpaceValue { .. })
        ));
        context.add_space_geometry(127, &hill).expect("the call is permitted");
        context.add_space_geometry(3, &hill).expect("the call is permitted");
        context.remove_space_geometry(127).expect("the call is permitted");
        assert_eq!(context.space_geometry().collect::<Vec<_>>(), [(3, hill)]);
    });
    let text = Denied::SpaceKey { key: 7 }.to_string();
    assert_eq!(
        text,
        "a game's own space data has keys from 256 to 511, and 7 is out of range"
    );
    world.run(200);
    check(&world);
}

fn time(world: &mut World, who: EntityId) -> Option<(u64, f64)> {
    let result = std::sync::Arc::new(std::sync::Mutex::new(None));
    let shared = std::sync::Arc::clone(&result);
    have(world, who, move |context: &mut Context<'_>| {
        *shared.lock().expect("the lock is not poisoned") = Some((context.now().0, context.time_of_day()));
    });
    let (now, time) = result.lock().expect("the lock is not poisoned").take()?;
    Some((now, time?))
}

#[test]
fn the_time_of_day_survives_the_death_of_all_cells() {
    let mut world = World::new(5);
    let [west, _, east] = writers(&mut world);
    assert_eq!(time(&mut world, east), None, "no time of day was set");
    have(&mut world, west, |context| {
        context
            .set_time_of_day(6.0 * 3_600.0, 60.0)
            .expect("the call is permitted");
    });
    let (set, first) = time(&mut world, west).expect("it was set");
    world.run(60);
    let goes_on = |world: &mut World, who| {
        let (now, time) = time(world, who).expect("it was set");
        let wanted = first + (now - set) as f64 / 1_000.0 * 60.0;
        assert!((time - wanted.rem_euclid(86_400.0)).abs() < 1e-6, "{time} for {wanted}");
    };
    goes_on(&mut world, east);
    world.run(20_000);
    goes_on(&mut world, east);
    for id in OWNERS {
        world.crash(id);
    }
    world.run(3_000);
    for id in OWNERS {
        world.start(id);
    }
    world.run(8_000);
    goes_on(&mut world, east);
    goes_on(&mut world, west);
}

/// Random writes, under message loss and crashes.
#[test]
fn all_owners_converge_to_the_state_of_all_logs() {
    for seed in 0..12 {
        let mut world = World::new(seed);
        let writers = writers(&mut world);
        world.faults = ROUGH;
        let mut dead = None;
        for _ in 0..40 {
            let who = writers[usize::try_from(world.roll(3)).expect("it is small")];
            world.call(who, ACT, vec![Value::UInt(SCRIBBLE)]);
            match world.roll(5) {
                0 if dead.is_none() => {
                    let id = OWNERS[usize::try_from(world.roll(3)).expect("it is small")];
                    world.crash(id);
                    dead = Some(id);
                }
                1 => dead.take().into_iter().for_each(|id| world.start(id)),
                _ => {}
            }
            let pause = 20 + world.roll(600);
            world.run(pause);
        }
        dead.into_iter().for_each(|id| world.start(id));
        world.faults = CALM;
        world.run(12_000);
        let wanted = logged(&world, SPACE);
        assert!(!wanted.is_empty(), "seed {seed}: something was written");
        for id in OWNERS {
            assert_eq!(copy(&world, id, SPACE), wanted, "seed {seed}: owner {id}");
        }
    }
}
