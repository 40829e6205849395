//! Teleports: within a space, into another space on this cell, into a space of another owner, and next to another
//! entity.

use annals_cell::CellInput;
use annals_def::Value;
use annals_event::{Image, Place};
use annals_ids::{EntityId, Mailbox, OwnerId, Part, Position, SessionId, SpaceId};
use annals_node::{Context, TeleportFailed};
use annals_wire::{CellArea, Space, client::ViewItem};

use crate::{
    game::{ACT, AVATAR, ERRAND, LEAP, NOTE, STATUE},
    home::HomeInput,
    oracle::check,
    world::{CALM, EAST, HOME, MIDDLE, ROUGH, SPACE, WEST, World, place},
};

/// A space of the west cell.
pub(crate) const HALL: SpaceId = SpaceId(8);
/// A space of the east cell.
pub(crate) const ARENA: SpaceId = SpaceId(9);
/// A space that no cell has.
const NOWHERE: SpaceId = SpaceId(10);

pub(crate) fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    let mut map = world.map.clone();
    map.version += 1;
    for (space, owner) in [(HALL, WEST), (ARENA, EAST)] {
        let cells = vec![CellArea::everywhere(owner)];
        let like = map.spaces[&SPACE].clone();
        map.spaces.insert(space, Space { cells, ..like });
    }
    for id in [WEST, MIDDLE, EAST] {
        world.send_to_cell(id, CellInput::Map(map.clone()));
    }
    world.map = map;
    world
}

pub(crate) fn at(space: SpaceId, x: f32) -> Place {
    Place { space, ..place(x, 3.0) }
}

/// Runs a closure as behaviour of an entity.
fn have(world: &mut World, entity: EntityId, errand: impl FnOnce(&mut Context<'_>) + Send + 'static) {
    *world.game.errand.lock().expect("the lock is not poisoned") = Some(Box::new(errand));
    world.call(entity, ACT, vec![Value::UInt(ERRAND)]);
}

pub(crate) fn put(world: &mut World, entity: EntityId, to: Place) {
    world
        .game
        .destinations
        .lock()
        .expect("the lock is not poisoned")
        .insert(entity, to);
    world.call(entity, ACT, vec![Value::UInt(LEAP)]);
}

fn outcomes(world: &World) -> Vec<(EntityId, Result<SpaceId, TeleportFailed>)> {
    world.game.teleports.lock().expect("the lock is not poisoned").clone()
}

pub(crate) fn where_is(world: &World, entity: EntityId) -> (OwnerId, Place) {
    world.reals()[&entity]
}

/// Everything of an image but its history and calls: what a teleport must not change.
fn kept(image: &Image) -> String {
    let timers: Vec<_> = image
        .timers
        .iter()
        .map(|(timer, at)| (*timer, at.every, at.tag))
        .collect();
    let kept = (image.type_id, &image.properties, timers, image.last_timer, image.client);
    format!("{kept:?}")
}

#[test]
fn a_teleport_to_a_space_on_the_same_cell_is_immediate() {
    let mut world = world(71);
    let (entity, other) = (world.spawn(AVATAR, -20.0, Some(1)), world.spawn(AVATAR, -25.0, Some(2)));
    world.run(1_000);
    assert!(world.client(1).known.contains_key(&other) && world.client(2).known.contains_key(&entity));
    assert_eq!(world.client(1).space, Some(SPACE));
    put(&mut world, entity, at(HALL, -21.0));
    world.run(50);
    assert_eq!(where_is(&world, entity), (WEST, at(HALL, -21.0)));
    assert_eq!(outcomes(&world), [(entity, Ok(SPACE))]);
    assert_eq!(world.client(1).space, Some(HALL));
    assert_eq!(
        world.client(1).known.keys().collect::<Vec<_>>(),
        [&entity],
        "at once, not at the next tick"
    );
    let stands = world.client(1).known[&entity].position;
    assert_eq!((stands.x, stands.z), (-21.0, 3.0));
    world.run(2_500);
    assert!(
        !world.client(2).known.contains_key(&entity),
        "the client that stayed does not see it"
    );
    check(&world);
    put(&mut world, other, at(HALL, -21.0));
    world.run(1_000);
    assert!(
        world.client(1).known.contains_key(&other),
        "an entity that follows is seen"
    );
    check(&world);
    // It is logged: a successor finds it there.
    world.crash(WEST);
    world.run(500);
    world.start(WEST);
    world.run(8_000);
    assert_eq!(where_is(&world, entity), (WEST, at(HALL, -21.0)));
    check(&world);
}

#[test]
fn a_teleport_to_another_owner_keeps_the_entitys_state() {
    let mut world = world(72);
    let (entity, third) = (world.spawn(AVATAR, -20.0, Some(1)), world.spawn(AVATAR, -25.0, Some(2)));
    let there = world.spawn(AVATAR, 80.0, None);
    // Views have settled by then.
    world.run(5_000);
    put(&mut world, there, at(ARENA, 5.0));
    for what in 0..9 {
        world.call(entity, ACT, vec![Value::UInt(what)]);
        world.call(entity, NOTE, Vec::new());
    }
    world.run(1_000);
    let before = kept(world.real(entity));
    assert!(world.role(MIDDLE).ghosts().get(entity).is_some());
    put(&mut world, entity, at(ARENA, 7.0));
    world.run(600);
    assert_eq!(where_is(&world, entity), (EAST, at(ARENA, 7.0)));
    assert_eq!(kept(world.real(entity)), before);
    assert_eq!(outcomes(&world), [(there, Ok(SPACE)), (entity, Ok(SPACE))]);
    assert!(
        world.role(MIDDLE).ghosts().get(entity).is_none(),
        "no ghost of it is left behind"
    );
    assert!(!world.client(2).known.contains_key(&entity));
    let client = world.client(1);
    assert_eq!(client.space, Some(ARENA));
    assert_eq!(client.known.keys().collect::<Vec<_>>(), [&entity, &there]);
    let stands = client.known[&entity].position;
    assert_eq!((stands.x, stands.z), (7.0, 3.0));
    let items = client.items.iter();
    let updates = items.skip_while(|item| **item != ViewItem::Leave { entity: third });
    let space = ViewItem::Space { entity, space: ARENA };
    assert!(
        updates.clone().any(|item| *item == space),
        "the other entities leave the view before: {updates:?}"
    );
    // Its client moves it there, and it is not put back.
    world.walk(1, 9.0, 3.0);
    world.call(entity, NOTE, Vec::new());
    world.run(3_000);
    assert_eq!(where_is(&world, entity), (EAST, at(ARENA, 9.0)));
    assert!(world.holders(third) == [WEST]);
    check(&world);
}

#[test]
fn a_failed_teleport_is_reported_and_changes_nothing() {
    let mut world = world(73);
    let entity = world.spawn(STATUE, -20.0, Some(1));
    world.run(1_000);
    world.walk(1, -21.0, 2.0);
    world.run(1_500);
    let (before, state) = (where_is(&world, entity), kept(world.real(entity)));
    let mut lost = at(ARENA, 0.0);
    lost.position.y = f32::NAN;
    put(&mut world, entity, at(NOWHERE, 0.0));
    world.run(100);
    put(&mut world, entity, lost);
    world.run(100);
    have(&mut world, entity, |context| {
        context.teleport(at(ARENA, 1.0)).expect("it is a cell part");
        context.teleport(at(NOWHERE, 1.0)).expect("it is a cell part");
    });
    world.run(100);
    let why = |why| (entity, Err(why));
    assert_eq!(
        outcomes(&world),
        [
            why(TeleportFailed::NoSpace(NOWHERE)),
            why(TeleportFailed::NoPlace),
            why(TeleportFailed::Superseded),
            why(TeleportFailed::NoSpace(NOWHERE)),
        ]
    );
    world.run(1_000);
    assert_eq!(where_is(&world, entity), before);
    assert_eq!(kept(world.real(entity)), state);
    assert_eq!(world.client(1).space, Some(SPACE));
    check(&world);
}

#[test]
fn a_refused_entity_is_restored_and_notified() {
    let mut world = world(74);
    let (entity, other) = (world.spawn(AVATAR, -20.0, Some(1)), world.spawn(AVATAR, -25.0, Some(2)));
    world.run(1_000);
    world.walk(1, -22.0, 2.0);
    world.run(1_000);
    world.send_to_cell(EAST, CellInput::Close);
    let (before, state) = (where_is(&world, entity), kept(world.real(entity)));
    world.cut_off = Some(EAST);
    put(&mut world, entity, at(ARENA, 7.0));
    world.run(200);
    assert_eq!(world.holders(entity), [], "it is under way");
    // Its holder dies meanwhile: the old place is in the log.
    world.crash(WEST);
    world.run(500);
    world.start(WEST);
    world.cut_off = None;
    world.run(12_000);
    assert_eq!(where_is(&world, entity), before);
    assert_eq!(kept(world.real(entity)), state);
    let [(who, Err(TeleportFailed::Refused(why)))] = &outcomes(&world)[..] else {
        panic!("{:?}", outcomes(&world));
    };
    assert_eq!((*who, why.as_str()), (entity, "the process is shutting down"));
    assert!(world.real(entity).links.awaiting.is_empty(), "no state of it is left");
    assert!(world.client(2).known.contains_key(&entity), "it is seen again");
    assert!(world.client(1).known.contains_key(&other));
    check(&world);
}

/// At every moment around a teleport either side dies, with or without its last append in the log; and its client
/// leaves in the middle.
#[test]
fn a_teleport_survives_the_death_of_either_side_at_any_moment() {
    let (mut arrived, mut stayed) = (0, 0);
    for (seed, after) in (0..110).step_by(5).enumerate() {
        for victim in [WEST, EAST, MIDDLE] {
            let mut world = world(seed as u64);
            let entity = world.spawn(AVATAR, -20.0, Some(1));
            world.run(1_500);
            put(&mut world, entity, at(ARENA, 7.0));
            world.call(entity, NOTE, Vec::new());
            world.run(after);
            let drops = victim == MIDDLE;
            if drops {
                world.clients.remove(&SessionId(1));
                world.send_to_home(HomeInput::Attach(entity, None));
            } else {
                world.crash(victim);
            }
            world.call(entity, NOTE, Vec::new());
            world.run(700);
            if !drops {
                world.start(victim);
            }
            world.call(entity, NOTE, Vec::new());
            world.run(15_000);
            println!("seed {seed}, after {after} ms, victim {victim}");
            check(&world);
            let (holder, stands) = where_is(&world, entity);
            match stands.space {
                ARENA => {
                    assert_eq!((holder, stands), (EAST, at(ARENA, 7.0)));
                    arrived += 1;
                }
                _ => {
                    assert_eq!((holder, stands), (WEST, place(-20.0, 0.0)));
                    stayed += 1;
                }
            }
            assert!(world.real(entity).links.awaiting.is_empty());
            assert_eq!(
                world.real(entity).client.is_some(),
                !drops,
                "its client's leaving followed it"
            );
            assert_eq!(world.role(holder).witnesses(), usize::from(!drops));
        }
    }
    // A request of behaviour is lost with a process that had not logged it.
    assert!(arrived > 50, "{arrived} arrived, {stayed} stayed");
}

#[test]
fn a_teleport_to_an_entity_finds_it_on_any_owner() {
    let mut world = world(76);
    let (entity, friend) = (world.spawn(AVATAR, -20.0, Some(1)), world.spawn(AVATAR, 80.0, None));
    world.run(1_000);
    put(&mut world, friend, at(ARENA, 30.0));
    world.run(1_000);
    let beside = |entity, part| Mailbox {
        entity,
        home: HOME,
        type_id: AVATAR,
        part,
    };
    let offset = Position {
        x: 2.0,
        y: 0.0,
        z: -1.0,
    };
    have(&mut world, entity, move |context| {
        let wrong = context.teleport_near(beside(friend, Part::Base), offset);
        assert!(wrong.is_err(), "a base part has no position");
        context
            .teleport_near(beside(friend, Part::Cell), offset)
            .expect("it is another cell part");
    });
    world.run(1_000);
    let (_, stands) = where_is(&world, entity);
    assert_eq!((stands.space, stands.position.x, stands.position.z), (ARENA, 32.0, 2.0));
    assert!(world.client(1).known.contains_key(&friend));
    world.send_to_home(HomeInput::DestroyCell(friend));
    world.run(1_000);
    have(&mut world, entity, move |context| {
        context
            .teleport_near(beside(friend, Part::Cell), offset)
            .expect("the position is not known yet");
    });
    world.run(8_000);
    let last = outcomes(&world).pop();
    assert!(
        matches!(last, Some((who, Err(TeleportFailed::NoEntity(_)))) if who == entity),
        "{last:?}"
    );
    assert_eq!(where_is(&world, entity).1, stands);
    check(&world);
}

/// During a teleport a client disconnects and the game ends its entity, or the home dies at that moment and its
/// successor ends it. At every moment, and whichever cell dies as well, no cell part, ghost or view is left anywhere,
/// and the home knows.
#[test]
fn an_entity_that_ends_during_a_teleport_leaves_no_state() {
    let mut underway = 0;
    for (seed, after) in (0..120).step_by(8).enumerate() {
        for (home_dies, victim) in [(false, None), (true, None), (false, Some(WEST)), (true, Some(EAST))] {
            println!("seed {seed}, after {after} ms, home dies: {home_dies}, victim {victim:?}");
            let mut world = world(seed as u64);
            let entity = world.spawn(AVATAR, -20.0, Some(1));
            world.run(1_500);
            world.faults = ROUGH;
            put(&mut world, entity, at(ARENA, 7.0));
            world.run(after);
            underway += usize::from(world.holders(entity).is_empty());
            world.clients.remove(&SessionId(1));
            victim.into_iter().for_each(|victim| world.crash(victim));
            if home_dies {
                world.crash(HOME);
                world.run(900);
                world.start_home();
                world.run(500);
            }
            world.send_to_home(HomeInput::Attach(entity, None));
            world.send_to_home(HomeInput::DestroyCell(entity));
            world.run(500);
            victim.into_iter().for_each(|victim| world.start(victim));
            world.faults = CALM;
            world.run(22_000);
            assert_eq!(world.holders(entity), [], "it is not real on any owner");
            for id in [WEST, MIDDLE, EAST] {
                let state = world.live(id).state();
                assert!(state.departing.is_empty() && state.estates.is_empty(), "on {id}");
                assert!(world.role(id).ghosts().get(entity).is_none(), "on {id}");
                assert_eq!(world.role(id).witnesses(), 0, "on {id}");
            }
            let home = world.home.owner.as_ref().expect("it is up");
            let base = home.state().entities[&entity].base().expect("it has a base part");
            assert_eq!(base.cell, None, "its home was notified");
        }
    }
    assert!(underway > 5, "it was under way only {underway} times");
}
