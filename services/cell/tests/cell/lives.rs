//! Spaces that are destroyed and opened again: entities of an earlier life of a space end, and nothing of that life is
//! left.

use std::collections::BTreeMap;

use annals_cell::CellInput;
use annals_def::Value;
use annals_ids::EntityId;
use annals_node::{Denied, TeleportFailed};

use crate::{
    game::{ACT, AVATAR, CREATURE, ERRAND},
    home::HomeInput,
    oracle::check,
    spaces::{KEY, OWNERS, all, copy, east_goes_to, held, logged, write, writers},
    teleport::{ARENA, HALL, at, put, where_is, world as with_spaces},
    world::{CALM, EAST, MIDDLE, ROUGH, SPACE, WEST, World, have, place},
};

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
    let gone = world.game.gone.lock().expect("the lock is not poisoned").clone();
    assert!(gone.iter().all(|(_, space)| *space == SPACE));
    let mut gone: Vec<EntityId> = gone.into_iter().map(|(entity, _)| entity).collect();
    gone.sort_unstable();
    gone
}

fn destroy(world: &mut World, who: EntityId) {
    have(world, who, |context| {
        context.destroy_space().expect("the call is permitted");
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
fn only_entities_in_a_destroyed_space_are_notified_once_and_end() {
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
    assert_eq!(lost(&world), [west, middle, east], "their bases were notified");
    for id in OWNERS {
        assert!(world.cx(id).is_gone(SPACE));
    }
    // No entity enters any more, by any way.
    let late = world.spawn(AVATAR, 30.0, None);
    world.spawn_creature(30.0);
    put(&mut world, other, place(-20.0, 0.0));
    world.run(500);
    let why = TeleportFailed::SpaceGone(SPACE);
    let outcome = world.game.teleports.lock().expect("the lock is not poisoned").pop();
    assert_eq!(outcome, Some((other, Err(why))));
    have(&mut world, other, |context| {
        let denied = context.create_cell_only(CREATURE, place(1.0, 1.0), Vec::new());
        assert_eq!(denied, Err(Denied::SpaceGone));
    });
    world.run(300);
    assert!(lost(&world).contains(&late), "its base received the loss");
    assert_eq!(world.reals().into_keys().collect::<Vec<_>>(), [other]);
    assert_eq!(gone(&world), there, "and no absent entity is notified");
}

/// Data written by then is gone with the space, even if much was written at once.
#[test]
fn a_destroyed_space_leaves_no_state() {
    let mut world = World::new(13);
    let [west, ..] = writers(&mut world);
    have(&mut world, west, |context| {
        for value in 0..5 {
            context
                .set_space_data(KEY, vec![1 + value])
                .expect("the call is permitted");
        }
        context.destroy_space().expect("the call is permitted");
    });
    world.run(4_000);
    assert_eq!(held(&world, KEY), [None, None, None]);
    check(&world);
}

/// An entity that asks for a teleport into another space that is gone as well, which only its owners know, is notified
/// once and ends.
#[test]
fn an_entity_that_cannot_leave_ends() {
    let mut world = with_spaces(14);
    let ([west, middle, east], other) = crowd(&mut world);
    put(&mut world, other, at(ARENA, 1.0));
    world.run(500);
    have(&mut world, other, |context| {
        context.destroy_space().expect("the call is permitted");
    });
    world.run(500);
    *world.game.refuge.lock().expect("the lock is not poisoned") = Some(at(ARENA, 2.0));
    destroy(&mut world, middle);
    world.run(3_000);
    assert_eq!(world.reals().len(), 0, "{:?}", world.reals());
    assert!(copy(&world, WEST, ARENA).is_gone(), "the sender received the reason");
    let notifications = world.game.gone.lock().expect("the lock is not poisoned").clone();
    assert_eq!(notifications.len(), 5, "each is notified once: {notifications:?}");
    let mut ended = lost(&world);
    ended.sort_unstable();
    ended.retain(|entity| [west, middle, east].contains(entity));
    assert_eq!(ended.len(), 3);
}

/// An entity that was leaving, and returns when no other is left, ends as well.
#[test]
fn an_entity_that_returns_to_a_destroyed_space_ends() {
    let mut world = with_spaces(19);
    let ([west, middle, _], other) = crowd(&mut world);
    put(&mut world, other, at(ARENA, 1.0));
    world.run(500);
    have(&mut world, other, |context| {
        context.destroy_space().expect("the call is permitted");
    });
    world.run(500);
    world.crash(EAST);
    *world.game.refuge.lock().expect("the lock is not poisoned") = Some(at(ARENA, 2.0));
    destroy(&mut world, middle);
    world.run(1_000);
    assert_eq!(world.live(WEST).state().departing.len(), 1, "it waits for an answer");
    world.start(EAST);
    world.run(5_000);
    assert_eq!(world.reals(), BTreeMap::new());
    assert!(lost(&world).contains(&west));
}

/// The sending owner has no area in that space, and does not know that it is gone.
#[test]
fn a_teleport_to_a_destroyed_space_is_refused() {
    let mut world = with_spaces(12);
    let [west, _, east] = writers(&mut world);
    put(&mut world, east, at(ARENA, 1.0));
    world.run(500);
    have(&mut world, east, |context| {
        context.destroy_space().expect("the call is permitted");
    });
    world.run(500);
    assert_eq!(world.holders(east), []);
    put(&mut world, west, at(ARENA, 1.0));
    world.run(1_000);
    let outcome = world.game.teleports.lock().expect("the lock is not poisoned").pop();
    let why = TeleportFailed::Refused("the space was destroyed".to_owned());
    assert_eq!(outcome, Some((west, Err(why))));
    assert_eq!(world.reals()[&west], (WEST, place(-30.0, 0.0)));
}

#[test]
fn a_reopened_space_is_empty_and_accepts_entities() {
    let mut world = with_spaces(7);
    let ([west, ..], other) = crowd(&mut world);
    write(&mut world, west, KEY, b"old");
    have(&mut world, west, |context| {
        context.set_time_of_day(0.0, 1.0).expect("the call is permitted");
    });
    world.run(100);
    destroy(&mut world, west);
    world.run(1_000);
    world.send_to_home(HomeInput::Open(west, place(30.0, 0.0)));
    let first = world.spawn(AVATAR, 30.0, None);
    world.run(300);
    assert_eq!(world.holders(first), [MIDDLE], "it comes after the space was opened");
    have(&mut world, first, |context| {
        assert_eq!((context.space_data(KEY), context.time_of_day()), (None, None));
        context
            .set_space_data(KEY, b"new".to_vec())
            .expect("the call is permitted");
    });
    world.run(100);
    assert_eq!(held(&world, KEY), all(b"new"));
    put(&mut world, other, place(-20.0, 0.0));
    world.run(500);
    assert_eq!(world.reals()[&other].1.space, SPACE);
    let notified = gone(&world).len();
    check(&world);
    // Opened again, the space starts empty for new entities, and can be destroyed again with those in it.
    world.send_to_home(HomeInput::Open(first, place(30.0, 0.0)));
    let second = world.spawn(AVATAR, 30.0, None);
    world.run(2_000);
    assert_eq!(held(&world, KEY), [None, None, None]);
    assert_eq!(gone(&world).len(), notified + 2);
    assert_eq!(world.reals().into_keys().collect::<Vec<_>>(), [second]);
    check(&world);
}

/// Opened again before any other owner has learned that it was gone, a space keeps nothing of before: no entity that
/// was in it, on any cell, and nothing written by a cell that has learned of neither.
#[test]
fn a_reopened_space_keeps_no_earlier_entities_or_data() {
    let mut world = with_spaces(15);
    let ([west, middle, east], other) = crowd(&mut world);
    let there: Vec<EntityId> = world.reals().into_keys().filter(|entity| *entity != other).collect();
    world.unaware = Some(EAST);
    destroy(&mut world, west);
    world.send_to_home(HomeInput::Open(middle, place(30.0, 0.0)));
    let party = world.spawn(AVATAR, 30.0, None);
    world.run(300);
    assert_eq!(world.holders(party), [MIDDLE]);
    // East has learned of neither.
    assert!(world.holders(east).contains(&EAST));
    write(&mut world, east, KEY, b"late");
    world.run(300);
    assert_eq!(copy(&world, EAST, SPACE).get(KEY), Some(&b"late"[..]));
    world.unaware = None;
    world.run(4_000);
    assert_eq!(held(&world, KEY), [None, None, None]);
    assert_eq!(gone(&world), there, "each is notified once");
    let mut left: Vec<EntityId> = world.reals().into_keys().collect();
    left.sort_unstable();
    let mut wanted = vec![other, party];
    wanted.sort_unstable();
    assert_eq!(left, wanted);
    check(&world);
}

/// An owner that destroys a space without knowing that another cell has opened it again ends the life that it knows,
/// and no later one.
#[test]
fn a_late_destroy_does_not_end_a_reopened_space() {
    let mut world = World::new(16);
    let [_, middle, east] = writers(&mut world);
    world.unaware = Some(EAST);
    world.send_to_home(HomeInput::Open(middle, place(30.0, 0.0)));
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

/// An entity on an owner that has no area in the space any more, and that cannot hand it over, is notified as well.
#[test]
fn entities_outside_the_owners_areas_end_with_the_space() {
    let mut world = World::new(18);
    let [west, _, east] = writers(&mut world);
    world.send_to_cell(MIDDLE, CellInput::Close);
    east_goes_to(&mut world, MIDDLE);
    world.run(300);
    assert_eq!(world.holders(east), [EAST], "it was refused, and stays for a while");
    destroy(&mut world, west);
    world.run(3_000);
    assert!(copy(&world, EAST, SPACE).is_gone());
    assert_eq!(world.reals(), BTreeMap::new());
}

/// A space that is opened where its former lives are unknown still starts a life of its own.
#[test]
fn a_late_opening_does_not_restore_the_earlier_space() {
    let mut world = World::new(20);
    let [west, middle, east] = writers(&mut world);
    world.unaware = Some(EAST);
    for _ in 0..2 {
        world.send_to_home(HomeInput::Open(west, place(-30.0, 0.0)));
        let guest = world.spawn(AVATAR, -30.0, None);
        world.run(100);
        write(&mut world, guest, KEY, b"first");
        destroy(&mut world, guest);
        world.run(500);
    }
    assert_eq!(copy(&world, EAST, SPACE).life(), 0);
    world.send_to_home(HomeInput::Open(middle, place(90.0, 0.0)));
    let party = world.spawn(AVATAR, 90.0, None);
    world.run(100);
    world.unaware = None;
    world.run(4_000);
    assert_eq!(world.reals().into_keys().collect::<Vec<_>>(), [party]);
    assert_eq!(held(&world, KEY), [None, None, None]);
    assert!(gone(&world).contains(&east));
    check(&world);
}

/// An entity that got away once is notified again when its next space is gone.
#[test]
fn an_entity_that_escaped_is_notified_again() {
    let mut world = with_spaces(21);
    let own = world.spawn(AVATAR, -30.0, None);
    world.run(500);
    *world.game.refuge.lock().expect("the lock is not poisoned") = Some(at(ARENA, 2.0));
    // It is leaving for a while.
    world.crash(EAST);
    have(&mut world, own, |context| {
        context.destroy_space().expect("the call is permitted");
    });
    world.run(1_000);
    world.start(EAST);
    world.run(2_000);
    assert_eq!(where_is(&world, own), (EAST, at(ARENA, 2.0)));
    put(&mut world, own, at(HALL, 3.0));
    world.run(1_000);
    assert_eq!(where_is(&world, own), (WEST, at(HALL, 3.0)));
    have(&mut world, own, |context| {
        context.destroy_space().expect("the call is permitted");
    });
    world.run(1_000);
    let notifications = world.game.gone.lock().expect("the lock is not poisoned").clone();
    assert_eq!(notifications, [(own, SPACE), (own, HALL)]);
    assert_eq!(where_is(&world, own), (EAST, at(ARENA, 2.0)), "it got away again");
}

/// The image of an entity that is handed over names the life of its space. A receiver that does not know that life
/// learns it; one that knows a later life refuses the entity.
#[test]
fn a_hand_over_carries_the_life_of_its_space() {
    let mut world = World::new(17);
    let [_, middle, _] = writers(&mut world);
    world.unaware = Some(WEST);
    world.send_to_home(HomeInput::Open(middle, place(30.0, 0.0)));
    let party = world.spawn(AVATAR, 3.0, Some(1));
    let before = world.spawn(AVATAR, 58.0, Some(2));
    world.run(500);
    assert_eq!(copy(&world, WEST, SPACE).life(), 0);
    let first = copy(&world, EAST, SPACE).life();
    assert!(first > 0 && first.is_multiple_of(2));
    let life = |world: &World, who: EntityId| world.real(who).cell().expect("it is one").life;
    assert_eq!((life(&world, party), life(&world, before)), (Some(first), Some(first)));
    world.walk(1, -8.0, 0.0);
    world.run(400);
    assert_eq!(world.holders(party), [WEST]);
    assert_eq!(
        (copy(&world, WEST, SPACE).life(), life(&world, party)),
        (first, Some(first))
    );
    // East is opened again while Middle does not learn of it, and sends it an entity.
    world.unaware = Some(MIDDLE);
    world.send_to_home(HomeInput::Open(middle, place(90.0, 0.0)));
    world.run(100);
    assert!(copy(&world, EAST, SPACE).life() > first);
    assert_eq!(copy(&world, MIDDLE, SPACE).life(), first);
    world.unaware = None;
    world.walk(2, 70.0, 0.0);
    world.run(3_000);
    assert!(gone(&world).contains(&before));
    assert_eq!(world.reals(), BTreeMap::new());
    check(&world);
    // An entity from a space that is open again is admitted where only the space's end is known.
    world.unaware = Some(WEST);
    world.send_to_home(HomeInput::Open(middle, place(30.0, 0.0)));
    let guest = world.spawn(AVATAR, 3.0, Some(3));
    world.run(500);
    world.unaware = None;
    world.crash(EAST);
    have(&mut world, guest, |context| {
        context.destroy_space().expect("the call is permitted");
    });
    world.run(1_000);
    assert!(copy(&world, WEST, SPACE).is_gone());
    world.unaware = Some(WEST);
    world.send_to_home(HomeInput::Open(middle, place(30.0, 0.0)));
    let guest = world.spawn(AVATAR, 3.0, Some(4));
    world.run(500);
    world.walk(4, -8.0, 0.0);
    world.run(400);
    assert_eq!(world.holders(guest), [WEST]);
    assert!(!copy(&world, WEST, SPACE).is_gone());
}

#[test]
fn entities_that_teleport_away_survive_and_others_end() {
    for (refuge, stays) in [(at(HALL, 3.0), true), (place(1.0, 1.0), false)] {
        let mut world = with_spaces(8);
        let ([west, middle, east], other) = crowd(&mut world);
        *world.game.refuge.lock().expect("the lock is not poisoned") = Some(refuge);
        destroy(&mut world, middle);
        world.run(2_000);
        let there: Vec<EntityId> = world.reals().into_keys().collect();
        assert_eq!(gone(&world).len(), 4, "each is notified once: {:?}", gone(&world));
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

/// A space is destroyed under all faults. In the end every entity that was in it, was on its way within it, or entered
/// it then is out, and all owners agree.
#[test]
fn a_space_is_destroyed_despite_crashes() {
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
        *world.game.errand.lock().expect("the lock is not poisoned") = Some(Box::new(|context| {
            context.destroy_space().expect("the call is permitted");
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
            assert!(world.cx(id).state().departing.is_empty(), "seed {seed}: owner {id}");
        }
        assert!(wanted.is_gone(), "seed {seed}");
    }
}
