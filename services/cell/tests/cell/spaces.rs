//! Data of spaces: what one cell writes all of them have, whatever gets lost and whoever dies; and spaces that go and come
//! back.

use std::collections::BTreeMap;

use annals_cell::CellInput;
use annals_def::Value;
use annals_event::{
    Body, Geometry, SPACE_VALUE_BYTES, SpaceData,
    space_data::{FIRST_OWN_KEY, LIFE},
};
use annals_ids::{EntityId, OwnerId, SpaceId};
use annals_node::{Context, Denied, TeleportFailed};
use annals_wire::{CellArea, SpaceMap, bus::Message};

use crate::{
    game::{ACT, AVATAR, CREATURE, ERRAND, SCRIBBLE},
    home::HomeInput,
    oracle::check,
    teleport::{ARENA, HALL, at, put, world as with_spaces},
    world::{CALM, EAST, MIDDLE, ROUGH, SPACE, WEST, World, have, place},
};

const KEY: u16 = FIRST_OWN_KEY;
const OWNERS: [OwnerId; 3] = [WEST, MIDDLE, EAST];

/// An avatar on each cell.
fn writers(world: &mut World) -> [EntityId; 3] {
    let writers = [-30.0, 30.0, 90.0].map(|x| world.spawn(AVATAR, x, None));
    world.run(500);
    writers
}

fn write(world: &mut World, who: EntityId, key: u16, value: &'static [u8]) {
    have(world, who, move |context| {
        context.set_space_data(key, value.to_vec()).expect("it can be");
    });
}

/// What each owner that is up holds under a key.
fn held(world: &World, key: u16) -> Vec<Option<Vec<u8>>> {
    let data = OWNERS.iter().map(|id| world.desk(*id).space_data(SPACE));
    data.map(|data| data.and_then(|data| data.get(key)).map(<[u8]>::to_vec))
        .collect()
}

fn all(value: &[u8]) -> Vec<Option<Vec<u8>>> {
    vec![Some(value.to_vec()); OWNERS.len()]
}

fn copy(world: &World, id: OwnerId, space: SpaceId) -> SpaceData {
    world.desk(id).space_data(space).cloned().unwrap_or_default()
}

/// What follows from all that was ever logged of a space, by whomever.
fn logged(world: &World, space: SpaceId) -> SpaceData {
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
fn what_one_cell_writes_all_have_at_once_and_the_last_word_stays() {
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
        context.remove_space_data(KEY).expect("it can be");
        assert_eq!(context.space_data(KEY), None, "at once, where it was done");
    });
    world.run(60);
    assert_eq!(held(&world, KEY), [None, None, None]);
    assert!(OWNERS.iter().all(|id| copy(&world, *id, SPACE).version(KEY).is_some()));
    let before = world.cells[&MIDDLE].events().len();
    have(&mut world, middle, |context| {
        context.set_space_data(KEY + 1, b"rain".to_vec()).expect("it can be");
        context.remove_space_data(KEY).expect("it can be");
    });
    world.run(60);
    let written = |world: &World| {
        let events = world.cells[&MIDDLE].events().into_iter().skip(before);
        events
            .filter(|event| matches!(event.body, Body::SpaceData { .. }))
            .count()
    };
    assert_eq!(written(&world), 2, "what is so already is the last word as well");
    check(&world);
}

#[test]
fn what_got_lost_is_told_again_and_who_dies_has_it_from_its_log() {
    let mut world = World::new(2);
    let [west, middle, _] = writers(&mut world);
    world.cut_off = Some(EAST);
    write(&mut world, west, KEY, b"one");
    world.run(60);
    assert_eq!(held(&world, KEY)[2], None, "it did not hear of it");
    // Whoever wrote it is gone for good: another one that has it tells it.
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
        "each from its own log, before it has heard anybody"
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
    // It is handed over, and all cells die: what it has it is not told again.
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
    // Elsewhere there is something else, or nothing.
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
    // To and fro between two ticks.
    for phase in 0..10 {
        world.run(500 + 9 * phase);
        put(&mut world, own, at(HALL, 0.0));
        world.run(20);
        put(&mut world, own, place(-10.0, 0.0));
        world.run(500);
        assert_eq!(world.client(1).space, Some(SPACE));
        assert_eq!(seen(&world, 1, KEY + 1), Some(b"two".to_vec()), "it is told again");
    }
    check(&world);
}

/// Nobody is told an older value, though its next holder has not heard of the newer one.
#[test]
fn what_a_client_has_stays_where_its_holder_has_less() {
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
fn a_client_with_little_bandwidth_gets_much_data_bit_by_bit() {
    let mut world = World::new(11);
    let [west, ..] = writers(&mut world);
    world.limit(20_000);
    world.run(5_000);
    for key in KEY..KEY + 20 {
        have(&mut world, west, move |context| {
            context.set_space_data(key, vec![7; 500]).expect("it can be");
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

fn east_goes_to(world: &mut World, owner: OwnerId) {
    let mut map: SpaceMap = world.map.clone();
    map.version += 1;
    let space = map.spaces.get_mut(&SPACE).expect("there is such a space");
    for area in &mut space.cells {
        if area.west >= 60.0 {
            *area = CellArea { owner, ..*area };
        }
    }
    for id in OWNERS {
        world.tell_cell(id, CellInput::Map(map.clone()));
    }
    world.map = map;
}

#[test]
fn whoever_gets_an_area_learns_at_once_and_whoever_has_none_any_more_leaves_nothing_untold() {
    let mut world = World::new(3);
    east_goes_to(&mut world, MIDDLE);
    let [west, _, east] = writers(&mut world);
    write(&mut world, west, KEY, b"before");
    world.run(2_000);
    assert_eq!(held(&world, KEY)[2], None, "it has nothing to do with the space");
    east_goes_to(&mut world, EAST);
    world.run(60);
    assert_eq!(held(&world, KEY), all(b"before"));
    world.run(3_000);
    assert_eq!(world.holders(east), [EAST]);
    // It writes, none hears it, and it loses its area: what is only in its log comes out all the same.
    for id in [WEST, MIDDLE] {
        world.crash(id);
    }
    world.run(300);
    write(&mut world, east, KEY, b"after");
    world.run(60);
    let version = copy(&world, EAST, SPACE).version(KEY);
    // Those who start know of no area of its.
    east_goes_to(&mut world, MIDDLE);
    for id in [WEST, MIDDLE] {
        world.start(id);
    }
    world.run(6_000);
    assert_eq!(held(&world, KEY), all(b"after"));
    assert_eq!(copy(&world, WEST, SPACE).version(KEY), version);
    // Then it has nothing to say any more, and follows no further.
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
fn what_goes_beyond_a_limit_is_denied_and_says_why() {
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
        context.add_space_geometry(127, &hill).expect("it can be");
        context.add_space_geometry(3, &hill).expect("it can be");
        context.remove_space_geometry(127).expect("it can be");
        assert_eq!(context.space_geometry().collect::<Vec<_>>(), [(3, hill)]);
    });
    let told = Denied::SpaceKey { key: 7 }.to_string();
    assert_eq!(
        told,
        "a game's own space data has keys from 256 to 511, and 7 is none of them"
    );
    world.run(200);
    check(&world);
}

fn time(world: &mut World, who: EntityId) -> Option<(u64, f64)> {
    let heard = std::sync::Arc::new(std::sync::Mutex::new(None));
    let told = std::sync::Arc::clone(&heard);
    have(world, who, move |context: &mut Context<'_>| {
        *told.lock().expect("nobody panics with it") = Some((context.now().0, context.time_of_day()));
    });
    let (now, time) = heard.lock().expect("nobody panics with it").take()?;
    Some((now, time?))
}

#[test]
fn the_day_goes_on_everywhere_and_through_the_death_of_all_cells() {
    let mut world = World::new(5);
    let [west, _, east] = writers(&mut world);
    assert_eq!(time(&mut world, east), None, "nobody said what time it is");
    have(&mut world, west, |context| {
        context.set_time_of_day(6.0 * 3_600.0, 60.0).expect("it can be");
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

/// Whoever writes what, whatever gets lost, and whoever dies when.
#[test]
fn in_the_end_all_owners_hold_what_follows_from_all_logs() {
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

/// An avatar on each cell, a creature, and a fourth avatar that is in another space.
fn crowd(world: &mut World) -> ([EntityId; 3], EntityId) {
    let three = writers(world);
    let other = world.spawn(AVATAR, -31.0, None);
    world.spawn_creature(91.0);
    world.run(500);
    put(world, other, at(HALL, 0.0));
    world.run(500);
    (three, other)
}

fn gone(world: &World) -> Vec<EntityId> {
    let gone = world.game.gone.lock().expect("nobody panics with it").clone();
    assert!(gone.iter().all(|(_, space)| *space == SPACE));
    let mut gone: Vec<EntityId> = gone.into_iter().map(|(entity, _)| entity).collect();
    gone.sort_unstable();
    gone
}

fn destroy(world: &mut World, who: EntityId) {
    have(world, who, |context| {
        context.destroy_space().expect("it can be");
        assert_eq!(context.set_space_data(KEY, vec![1]), Err(Denied::SpaceGone));
        assert_eq!(context.space_data(KEY), None, "its data is gone with it");
    });
}

fn lost(world: &World) -> Vec<EntityId> {
    let home = world.home.owner.as_ref().expect("it is up");
    let mut lost = home.role().lost.clone();
    lost.sort_unstable();
    lost
}

#[test]
fn who_is_in_a_space_that_is_destroyed_is_told_once_and_ends_and_nobody_else_does() {
    let mut world = with_spaces(6);
    let ([west, middle, east], other) = crowd(&mut world);
    write(&mut world, east, KEY, b"one");
    world.run(100);
    let there: Vec<EntityId> = world.reals().into_keys().filter(|entity| *entity != other).collect();
    assert_eq!(there.len(), 4);
    destroy(&mut world, middle);
    world.run(400);
    assert_eq!(gone(&world), there);
    assert_eq!(world.reals().into_keys().collect::<Vec<_>>(), [other]);
    assert_eq!(lost(&world), [west, middle, east], "their bases heard");
    for id in OWNERS {
        assert!(world.desk(id).is_gone(SPACE));
    }
    // Nobody comes in any more, by whichever way.
    let late = world.spawn(AVATAR, 30.0, None);
    world.spawn_creature(30.0);
    put(&mut world, other, place(-20.0, 0.0));
    world.run(500);
    let why = TeleportFailed::SpaceGone(SPACE);
    let told = world.game.teleports.lock().expect("nobody panics with it").pop();
    assert_eq!(told, Some((other, Err(why))));
    have(&mut world, other, |context| {
        let denied = context.create_cell_only(CREATURE, place(1.0, 1.0), Vec::new());
        assert_eq!(denied, Err(Denied::SpaceGone));
    });
    world.run(300);
    assert!(lost(&world).contains(&late), "its base heard that there is none");
    assert_eq!(world.reals().into_keys().collect::<Vec<_>>(), [other]);
    assert_eq!(gone(&world), there, "and nobody is told who was not there");
}

/// What was written by then is as gone as the space, however much it was written at once.
#[test]
fn nothing_of_a_space_that_is_destroyed_is_left() {
    let mut world = World::new(13);
    let [west, ..] = writers(&mut world);
    have(&mut world, west, |context| {
        for value in 0..5 {
            context.set_space_data(KEY, vec![1 + value]).expect("it can be");
        }
        context.destroy_space().expect("it can be");
    });
    world.run(4_000);
    assert_eq!(held(&world, KEY), [None, None, None]);
    check(&world);
}

/// Who asks to be put into another space that is gone as well, which only its owners know, is told once and ends.
#[test]
fn who_cannot_get_away_ends() {
    let mut world = with_spaces(14);
    let ([west, middle, east], other) = crowd(&mut world);
    put(&mut world, other, at(ARENA, 1.0));
    world.run(500);
    have(&mut world, other, |context| context.destroy_space().expect("it can be"));
    world.run(500);
    *world.game.refuge.lock().expect("nobody panics with it") = Some(at(ARENA, 2.0));
    destroy(&mut world, middle);
    world.run(3_000);
    assert_eq!(world.reals().len(), 0, "{:?}", world.reals());
    assert!(copy(&world, WEST, ARENA).is_gone(), "whoever sent them was told why");
    let told = world.game.gone.lock().expect("nobody panics with it").clone();
    assert_eq!(told.len(), 5, "each is told once: {told:?}");
    let mut ended = lost(&world);
    ended.sort_unstable();
    ended.retain(|entity| [west, middle, east].contains(entity));
    assert_eq!(ended.len(), 3);
}

/// Nor does who is on its way when nobody else is left.
#[test]
fn who_comes_back_into_a_space_that_is_gone_ends() {
    let mut world = with_spaces(19);
    let ([west, middle, _], other) = crowd(&mut world);
    put(&mut world, other, at(ARENA, 1.0));
    world.run(500);
    have(&mut world, other, |context| context.destroy_space().expect("it can be"));
    world.run(500);
    world.crash(EAST);
    *world.game.refuge.lock().expect("nobody panics with it") = Some(at(ARENA, 2.0));
    destroy(&mut world, middle);
    world.run(1_000);
    assert_eq!(world.live(WEST).state().departing.len(), 1, "it waits for an answer");
    world.start(EAST);
    world.run(5_000);
    assert_eq!(world.reals(), BTreeMap::new());
    assert!(lost(&world).contains(&west));
}

/// Whoever sends it there has no area in that space, and knows nothing of it.
#[test]
fn who_is_sent_into_a_space_that_is_gone_is_refused_and_stays() {
    let mut world = with_spaces(12);
    let [west, _, east] = writers(&mut world);
    put(&mut world, east, at(ARENA, 1.0));
    world.run(500);
    have(&mut world, east, |context| context.destroy_space().expect("it can be"));
    world.run(500);
    assert_eq!(world.holders(east), []);
    put(&mut world, west, at(ARENA, 1.0));
    world.run(1_000);
    let told = world.game.teleports.lock().expect("nobody panics with it").pop();
    let why = TeleportFailed::Refused("the space is gone".to_owned());
    assert_eq!(told, Some((west, Err(why))));
    assert_eq!(world.reals()[&west], (WEST, place(-30.0, 0.0)));
}

#[test]
fn a_space_that_is_opened_again_is_empty_and_takes_who_comes() {
    let mut world = with_spaces(7);
    let ([west, ..], other) = crowd(&mut world);
    write(&mut world, west, KEY, b"old");
    have(&mut world, west, |context| {
        context.set_time_of_day(0.0, 1.0).expect("it can be");
    });
    world.run(100);
    destroy(&mut world, west);
    world.run(1_000);
    world.tell_home(HomeInput::Open(west, place(30.0, 0.0)));
    let first = world.spawn(AVATAR, 30.0, None);
    world.run(300);
    assert_eq!(world.holders(first), [MIDDLE], "it comes after the space was opened");
    have(&mut world, first, |context| {
        assert_eq!((context.space_data(KEY), context.time_of_day()), (None, None));
        context.set_space_data(KEY, b"new".to_vec()).expect("it can be");
    });
    world.run(100);
    assert_eq!(held(&world, KEY), all(b"new"));
    put(&mut world, other, place(-20.0, 0.0));
    world.run(500);
    assert_eq!(world.reals()[&other].1.space, SPACE);
    let told = gone(&world).len();
    check(&world);
    // Opened anew, it begins again for those who come then, and ends for those who are in it.
    world.tell_home(HomeInput::Open(first, place(30.0, 0.0)));
    let second = world.spawn(AVATAR, 30.0, None);
    world.run(2_000);
    assert_eq!(held(&world, KEY), [None, None, None]);
    assert_eq!(gone(&world).len(), told + 2);
    assert_eq!(world.reals().into_keys().collect::<Vec<_>>(), [second]);
    check(&world);
}

/// Opened anew before anybody has heard that it was gone, it keeps nothing of before: nobody who was in it, on whichever cell, and
/// nothing that a cell writes which has heard of neither.
#[test]
fn a_space_that_is_opened_anew_keeps_nobody_and_nothing_of_before() {
    let mut world = with_spaces(15);
    let ([west, middle, east], other) = crowd(&mut world);
    let there: Vec<EntityId> = world.reals().into_keys().filter(|entity| *entity != other).collect();
    world.unaware = Some(EAST);
    destroy(&mut world, west);
    world.tell_home(HomeInput::Open(middle, place(30.0, 0.0)));
    let party = world.spawn(AVATAR, 30.0, None);
    world.run(300);
    assert_eq!(world.holders(party), [MIDDLE]);
    // East has heard of neither.
    assert!(world.holders(east).contains(&EAST));
    write(&mut world, east, KEY, b"late");
    world.run(300);
    assert_eq!(copy(&world, EAST, SPACE).get(KEY), Some(&b"late"[..]));
    world.unaware = None;
    world.run(4_000);
    assert_eq!(held(&world, KEY), [None, None, None]);
    assert_eq!(gone(&world), there, "each is told once");
    let mut left: Vec<EntityId> = world.reals().into_keys().collect();
    left.sort_unstable();
    let mut wanted = vec![other, party];
    wanted.sort_unstable();
    assert_eq!(left, wanted);
    check(&world);
}

/// Whoever destroys what another cell has opened anew meanwhile, which it does not know, ends what it knows and no more.
#[test]
fn who_destroys_what_it_knows_does_not_end_what_was_opened_since() {
    let mut world = World::new(16);
    let [_, middle, east] = writers(&mut world);
    world.unaware = Some(EAST);
    world.tell_home(HomeInput::Open(middle, place(30.0, 0.0)));
    let party = world.spawn(AVATAR, 31.0, None);
    world.run(300);
    write(&mut world, party, KEY, b"new");
    destroy(&mut world, east);
    world.run(100);
    world.unaware = None;
    world.run(4_000);
    assert_eq!(held(&world, KEY), all(b"new"));
    assert_eq!(world.reals().into_keys().collect::<Vec<_>>(), [party]);
    check(&world);
}

/// Whoever is left on an owner that has no area in the space any more, and that cannot hand it over, hears of it as well.
#[test]
fn who_is_left_where_the_space_is_no_more_of_the_owners_ends_too() {
    let mut world = World::new(18);
    let [west, _, east] = writers(&mut world);
    world.tell_cell(MIDDLE, CellInput::Close);
    east_goes_to(&mut world, MIDDLE);
    world.run(300);
    assert_eq!(world.holders(east), [EAST], "it was refused, and stays for a while");
    destroy(&mut world, west);
    world.run(3_000);
    assert!(copy(&world, EAST, SPACE).is_gone());
    assert_eq!(world.reals(), BTreeMap::new());
}

/// An entity that is handed over says in which life of its space it came in: who has not heard of that learns it, and who knows of
/// a later one lets it not in.
#[test]
fn a_hand_over_says_of_which_life_it_is() {
    let mut world = World::new(17);
    let [_, middle, _] = writers(&mut world);
    world.unaware = Some(WEST);
    world.tell_home(HomeInput::Open(middle, place(30.0, 0.0)));
    let party = world.spawn(AVATAR, 3.0, Some(1));
    let before = world.spawn(AVATAR, 58.0, Some(2));
    world.run(500);
    assert_eq!(copy(&world, WEST, SPACE).life(), 0);
    assert_eq!(copy(&world, EAST, SPACE).life(), 2);
    let life = |world: &World, who: EntityId| world.real(who).cell().expect("it is one").life;
    assert_eq!((life(&world, party), life(&world, before)), (Some(2), Some(2)));
    world.walk(1, -8.0, 0.0);
    world.run(400);
    assert_eq!(world.holders(party), [WEST]);
    assert_eq!((copy(&world, WEST, SPACE).life(), life(&world, party)), (2, Some(2)));
    // East is opened anew while Middle hears of nothing, and sends it somebody.
    world.unaware = Some(MIDDLE);
    world.tell_home(HomeInput::Open(middle, place(90.0, 0.0)));
    world.run(100);
    assert_eq!(copy(&world, EAST, SPACE).life(), 4);
    assert_eq!(copy(&world, MIDDLE, SPACE).life(), 2);
    world.unaware = None;
    world.walk(2, 70.0, 0.0);
    world.run(3_000);
    assert!(gone(&world).contains(&before));
    assert_eq!(world.reals(), BTreeMap::new());
    check(&world);
}

#[test]
fn who_asks_to_be_put_elsewhere_gets_there_and_who_cannot_ends() {
    for (refuge, stays) in [(at(HALL, 3.0), true), (place(1.0, 1.0), false)] {
        let mut world = with_spaces(8);
        let ([west, middle, east], other) = crowd(&mut world);
        *world.game.refuge.lock().expect("nobody panics with it") = Some(refuge);
        destroy(&mut world, middle);
        world.run(2_000);
        let there: Vec<EntityId> = world.reals().into_keys().collect();
        assert_eq!(gone(&world).len(), 4, "each is told once: {:?}", gone(&world));
        assert_eq!(there.contains(&west), stays);
        if stays {
            assert!(
                world
                    .reals()
                    .values()
                    .all(|(owner, at)| (*owner, at.space) == (WEST, HALL))
            );
            assert_eq!(there.len(), 5);
            assert_eq!(lost(&world), []);
        } else {
            assert_eq!(there, [other]);
            assert_eq!(lost(&world), [west, middle, east]);
        }
    }
}

/// While everything goes wrong a space is destroyed; whoever is in it, on the way within it, or comes to it then, is out in the
/// end, and all owners agree.
#[test]
fn a_space_is_gone_in_the_end_whoever_dies_meanwhile() {
    for seed in 20..32 {
        let mut world = with_spaces(seed);
        let three = writers(&mut world);
        world.set_lively(true);
        for x in [-5.0, 5.0, 55.0, 65.0] {
            world.spawn_creature(x);
        }
        world.run(1_000);
        world.faults = ROUGH;
        let first = usize::try_from(world.roll(3)).expect("it is small");
        *world.game.errand.lock().expect("nobody panics with it") = Some(Box::new(|context| {
            context.destroy_space().expect("it can be");
        }));
        world.call(three[first], ACT, vec![Value::UInt(ERRAND)]);
        for _ in 0..3 {
            let pause = world.roll(400);
            world.run(pause);
            let id = OWNERS[usize::try_from(world.roll(3)).expect("it is small")];
            world.crash(id);
            world.spawn(AVATAR, 10.0, None);
            let pause = world.roll(1_500);
            world.run(pause);
            world.start(id);
        }
        world.run(3_000);
        world.faults = CALM;
        world.run(15_000);
        assert_eq!(world.reals(), BTreeMap::new(), "seed {seed}");
        let wanted = logged(&world, SPACE);
        for id in OWNERS {
            assert_eq!(copy(&world, id, SPACE), wanted, "seed {seed}: owner {id}");
            assert!(world.desk(id).state().departing.is_empty(), "seed {seed}: owner {id}");
        }
        assert!(wanted.is_gone(), "seed {seed}");
    }
}
