//! How far clients see, and which entities they see by name, as set by behaviour.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::AreaOfInterest;
use annals_ids::EntityId;
use annals_node::{Context, Denied};

use crate::{
    game::{AVATAR, SIGN},
    oracle::{apart, check, within},
    teleport::{ARENA, HALL, at, put, world as with_spaces},
    world::{EAST, HYSTERESIS, MIDDLE, RADIUS, WEST, World, have},
};

/// Time until all consequences of a step are over, milliseconds: hand-overs, and what a new view waits for.
const REST: u64 = 4_500;

fn sees(world: &World, session: u64, entity: EntityId) -> bool {
    world.client(session).known.contains_key(&entity)
}

fn set(world: &mut World, entity: EntityId, radius: f32, hysteresis: f32) {
    have(world, entity, move |context| {
        context
            .set_aoi_radius(radius, hysteresis)
            .expect("the call is permitted");
    });
}

fn go(world: &mut World, entity: EntityId, x: f32, z: f32) {
    have(world, entity, move |context| {
        let mut place = context.place().expect("it is somewhere");
        (place.position.x, place.position.z) = (x, z);
        context.move_to(place).expect("it is a place");
    });
}

#[test]
fn a_client_sees_within_the_radius_of_its_behaviour() {
    let mut world = World::new(1);
    let own = world.spawn(AVATAR, -50.0, Some(1));
    let near = world.spawn(AVATAR, -40.0, None);
    let far = world.spawn(AVATAR, -12.0, None);
    world.run(1_000);
    assert!(sees(&world, 1, near) && sees(&world, 1, far));
    set(&mut world, own, 5.0, 2.0);
    world.run(300);
    assert!(!sees(&world, 1, near) && !sees(&world, 1, far));
    set(&mut world, own, 10.0, 35.0);
    world.run(300);
    assert!(
        sees(&world, 1, near) && !sees(&world, 1, far),
        "an entity that left does not return within the hysteresis"
    );
    set(&mut world, own, 38.5, 0.0);
    world.run(300);
    set(&mut world, own, 1.0, 40.0);
    world.run(300);
    assert!(
        sees(&world, 1, near) && sees(&world, 1, far),
        "an entity in view stays in view"
    );
    have(&mut world, own, |context| {
        let set = Some(AreaOfInterest {
            radius: 1.0,
            hysteresis: 40.0,
        });
        assert_eq!(context.aoi_radius(), set);
        context.reset_aoi_radius().expect("the call is permitted");
        assert_eq!(context.aoi_radius(), None);
    });
    world.run(300);
    check(&world);
}

#[test]
fn invalid_view_settings_are_denied_and_change_nothing() {
    let mut world = World::new(2);
    let own = world.spawn(AVATAR, -50.0, Some(1));
    world.run(500);
    have(&mut world, own, |context| {
        for (radius, hysteresis) in [(f32::NAN, 1.0), (-1.0, 1.0), (1.0, f32::INFINITY)] {
            assert_eq!(context.set_aoi_radius(radius, hysteresis), Err(Denied::Distance));
        }
        // Ghosts reach 50 m, and the entity was 5 m outside when it was handed over.
        let horizon = 45.0;
        let denied = context.set_aoi_radius(44.0, 1.5);
        assert_eq!(denied, Err(Denied::Horizon { reach: 45.5, horizon }));
        context.set_aoi_radius(44.0, 1.0).expect("so far others are known");
        assert_eq!(context.add_to_manual_aoi(context.entity()), Err(Denied::OwnView));
        for entity in 1_000_000..1_000_256 {
            context.add_to_manual_aoi(EntityId(entity)).expect("there is room");
        }
        context
            .add_to_manual_aoi(EntityId(1_000_000))
            .expect("it is there already");
        let denied = context.add_to_manual_aoi(EntityId(1_000_256));
        assert_eq!(denied, Err(Denied::TooManyInView));
        assert_eq!(context.manual_aoi().count(), 256);
        context
            .remove_from_manual_aoi(EntityId(1))
            .expect("there is nothing to be done");
    });
    world.run(500);
    check(&world);
}

/// A type declared as manual: only clients for which behaviour names it see it.
#[test]
fn a_manual_type_is_seen_only_by_name_at_any_distance() {
    let mut world = World::new(3);
    let own = world.spawn(AVATAR, -50.0, Some(1));
    let other = world.spawn(AVATAR, -49.0, Some(2));
    let sign = world.spawn(SIGN, -48.0, None);
    let remote = world.spawn(SIGN, 40.0, None);
    world.run(1_000);
    assert!(!sees(&world, 1, sign) && !sees(&world, 2, sign));
    have(&mut world, own, move |context| {
        for sign in [sign, remote] {
            context.add_to_manual_aoi(sign).expect("the call is permitted");
        }
    });
    world.run(1_000);
    assert!(sees(&world, 1, sign) && !sees(&world, 2, sign));
    assert!(sees(&world, 1, remote), "90 m away, on another owner, and a ghost here");
    // Beyond what this owner knows, and back.
    go(&mut world, remote, 150.0, 0.0);
    world.run(REST);
    assert!(!sees(&world, 1, remote));
    go(&mut world, remote, 30.0, 0.0);
    world.run(REST);
    assert!(sees(&world, 1, remote), "it is still to be seen");
    check(&world);
    have(&mut world, own, move |context| {
        context.remove_from_manual_aoi(sign).expect("the call is permitted");
    });
    world.run(500);
    assert!(!sees(&world, 1, sign) && sees(&world, 1, remote));
    assert!(sees(&world, 2, own) && sees(&world, 1, other));
    check(&world);
}

#[test]
fn an_entity_removed_by_name_stays_within_the_hysteresis() {
    let mut world = World::new(6);
    let own = world.spawn(AVATAR, -60.0, Some(1));
    let friend = world.spawn(AVATAR, -17.0, None);
    world.run(500);
    for is_named in [true, false] {
        have(&mut world, own, move |context| {
            let changed = match is_named {
                true => context.add_to_manual_aoi(friend),
                false => context.remove_from_manual_aoi(friend),
            };
            changed.expect("the call is permitted");
        });
        world.run(500);
        assert!(sees(&world, 1, friend), "43 m away, which is too far to come into view");
    }
    for (x, is_seen) in [(-15.0, true), (-14.0, false), (-17.0, false), (-20.0, true)] {
        go(&mut world, friend, x, 0.0);
        world.run(500);
        assert_eq!(sees(&world, 1, friend), is_seen, "at {x}");
    }
    check(&world);
}

#[test]
fn an_entity_seen_by_name_is_not_seen_in_another_space() {
    let mut world = with_spaces(4);
    let own = world.spawn(AVATAR, -50.0, Some(1));
    let friend = world.spawn(AVATAR, -120.0, None);
    world.run(1_000);
    have(&mut world, own, move |context| {
        context.add_to_manual_aoi(friend).expect("the call is permitted");
    });
    world.run(500);
    assert!(sees(&world, 1, friend));
    for (space, is_seen) in [(HALL, false), (crate::world::SPACE, true), (ARENA, false)] {
        put(&mut world, friend, at(space, -120.0));
        world.run(REST);
        assert_eq!(sees(&world, 1, friend), is_seen, "in {space}");
        check(&world);
    }
}

#[test]
fn view_settings_survive_hand_over_and_take_over() {
    let mut world = World::new(5);
    let own = world.spawn(AVATAR, -20.0, Some(1));
    let sign = world.spawn(SIGN, 20.0, None);
    let near = world.spawn(AVATAR, -10.0, None);
    world.run(1_000);
    set(&mut world, own, 8.0, 3.0);
    have(&mut world, own, move |context| {
        context.add_to_manual_aoi(sign).expect("the call is permitted");
    });
    world.run(500);
    for (to, holder) in [(30.0, MIDDLE), (90.0, EAST), (30.0, MIDDLE), (-20.0, WEST)] {
        go(&mut world, own, to, 0.0);
        world.run(REST);
        assert_eq!(world.holders(own), [holder]);
        assert!(!sees(&world, 1, near), "at {to}");
        // The east knows of no entity beyond 10.
        assert!(sees(&world, 1, sign), "at {to}");
        world.crash(holder);
        world.run(300);
        world.start(holder);
        world.run(8_000);
        assert!(
            sees(&world, 1, sign) && !sees(&world, 1, near),
            "at {to}, after its cell had died"
        );
        check(&world);
    }
}

/// Entities that must be seen once a step is over: those nearby, those seen before and within the hysteresis, and those
/// named and known.
fn expected(world: &World, own: EntityId, before: &BTreeSet<EntityId>) -> BTreeSet<EntityId> {
    let reals = world.reals();
    let is_seen = |entity: EntityId| {
        let apart = apart(&reals[&entity].1, &reals[&own].1);
        let (enter, hold) = within(world, own, entity);
        apart <= enter || (apart <= hold && before.contains(&entity))
    };
    reals.keys().copied().filter(|entity| is_seen(*entity)).collect()
}

fn seen(world: &World, session: u64) -> BTreeSet<EntityId> {
    world.client(session).known.keys().copied().collect()
}

fn metres(world: &mut World, span: u16) -> f32 {
    let steps = world.roll(u64::from(span) * 2 + 1);
    f32::from(u16::try_from(steps).expect("it is small")) - f32::from(span)
}

/// One random change of who sees whom: an entity moves, changes its area of interest, or names another.
fn step(world: &mut World, players: &[EntityId], all: &[EntityId]) {
    let pick = |world: &mut World, from: &[EntityId]| {
        let sides = u64::try_from(from.len()).expect("there are few");
        from[usize::try_from(world.roll(sides)).expect("there are few")]
    };
    match world.roll(10) {
        0..=4 => {
            let (who, x, z) = (pick(world, all), metres(world, 100), metres(world, 30));
            go(world, who, x + 30.0, z);
        }
        5 | 6 => {
            let who = pick(world, players);
            let radius = f32::from(u8::try_from(world.roll(41)).expect("it is small"));
            let hysteresis = (45.0 - radius).min(f32::from(u8::try_from(world.roll(20)).expect("it is small")));
            set(world, who, radius, hysteresis);
        }
        7 => {
            let who = pick(world, players);
            have(world, who, |context| {
                context.reset_aoi_radius().expect("the call is permitted");
            });
        }
        _ => {
            let (who, named) = (pick(world, players), pick(world, all));
            have(world, who, move |context: &mut Context<'_>| {
                let is_named = context.manual_aoi().any(|entity| entity == named);
                let done = match is_named {
                    true => context.remove_from_manual_aoi(named),
                    false if named == context.entity() => Ok(()),
                    false => context.add_to_manual_aoi(named),
                };
                done.expect("the call is permitted");
            });
        }
    }
}

#[test]
fn views_equal_brute_force_for_all_settings() {
    let mut changes = BTreeMap::<&str, usize>::new();
    for seed in 100..110 {
        let mut world = World::new(seed);
        let mut all = Vec::new();
        for session in 1..=3u8 {
            let x = f32::from(session) * 50.0 - 70.0;
            all.push(world.spawn(AVATAR, x, Some(session.into())));
        }
        let players = all.clone();
        for nth in 0..4u8 {
            let x = f32::from(nth) * 40.0 - 40.0;
            all.push(world.spawn(AVATAR, x, None));
            all.push(world.spawn(SIGN, x + 7.0, None));
        }
        world.run(REST);
        let mut before: Vec<BTreeSet<EntityId>> = (1..=3).map(|session| seen(&world, session)).collect();
        for round in 0..40 {
            // Where an entity was a moment before its cell died is not recorded, so what came into view there may be
            // undone.
            if world.roll(10) > 0 {
                step(&mut world, &players, &all);
            } else {
                let dead = [WEST, MIDDLE, EAST][usize::try_from(world.roll(3)).expect("it is small")];
                world.crash(dead);
                world.run(300);
                world.start(dead);
                world.run(REST);
            }
            world.run(REST);
            for (nth, before) in before.iter_mut().enumerate() {
                let session = u64::try_from(nth).expect("there are few") + 1;
                let (is, expected) = (seen(&world, session), expected(&world, players[nth], before));
                assert_eq!(is, expected, "seed {seed}, round {round}, client {session}");
                *changes.entry("came").or_default() += is.difference(before).count();
                *changes.entry("left").or_default() += before.difference(&is).count();
                *before = is;
            }
        }
        check(&world);
    }
    assert!(
        changes.values().all(|count| *count > 100),
        "too little happens: {changes:?}"
    );
    const { assert!(RADIUS + HYSTERESIS <= 45.0, "steps go as far as the horizon") };
}
