//! Movements that a client can predict take few bytes, without loss of precision.

use std::{collections::BTreeMap, sync::Arc};

use annals_def::{DetailedPosition, Reach, Schema, Volatile};
use annals_ids::{EntityId, Position, SessionId, Tick};
use annals_node::Role as _;
use annals_wire::client::{
    Movements,
    volatile::{Facing, Motion, MovementAck, Packing, Placing},
};

use crate::{
    game::{AVATAR, schema},
    home::HomeInput,
    oracle::check_view,
    world::{CALM, ROUGH, WEST, World, place},
};

/// Two positions of each entity per tick: at the end of it and a millisecond before, as a cell samples somewhere
/// between.
type Trail = BTreeMap<(Tick, EntityId), [Position; 2]>;

fn packing(world: &World) -> Packing {
    match world.movements {
        Movements::Predicted(packing) => packing,
        Movements::Plain => panic!("movements are plain"),
    }
}

fn positions(world: &World) -> BTreeMap<EntityId, Position> {
    let places = world.cx(WEST).places();
    places.map(|(entity, place)| (entity, place.position)).collect()
}

/// Lets time pass and records the positions of all entities on the western cell at each tick.
fn follow(world: &mut World, milliseconds: u64, trail: &mut Trail) {
    for _ in 0..milliseconds {
        let (tick, before) = (world.role(WEST).ticks(), positions(world));
        world.run(1);
        let now = world.role(WEST).ticks();
        if now > tick {
            for (entity, position) in positions(world) {
                let before = before.get(&entity).copied().unwrap_or(position);
                trail.insert((now, entity), [before, position]);
            }
        }
    }
}

/// Maximum error: half a step of the packing at this distance, plus rounding to floats.
fn bound(packing: Packing, away: f32) -> f32 {
    let exponent = (away.abs() / packing.scale() + 2.0).log2().floor() - 1.0;
    packing.scale() * exponent.exp2() / 256.0 + 1e-4
}

/// Every movement that a client received was true at its tick, within the bound of the packing.
fn check_received(world: &World, session: u64, trail: &Trail) -> usize {
    let client = world.client(session);
    for (tick, motion) in &client.motions {
        let (Placing::Full(found) | Placing::Exact(found)) = motion.placing else {
            panic!("{motion:?} at {tick:?}");
        };
        let (Some(meant), Some(own)) = (trail.get(&(*tick, motion.entity)), trail.get(&(*tick, client.entity))) else {
            panic!("{} was nowhere at {tick:?}", motion.entity);
        };
        let near = |axis: fn(&Position) -> f32| {
            meant.iter().any(|meant| {
                let away = own.iter().map(|own| (axis(meant) - axis(own).round()).abs());
                (axis(meant) - axis(&found)).abs() <= bound(packing(world), away.fold(0.0, f32::max))
            })
        };
        assert!(
            near(|at| at.x) && near(|at| at.z),
            "{} at {tick:?}: {found:?}, not {meant:?}",
            motion.entity
        );
    }
    client.motions.len()
}

/// Avatars that walk back and forth in the west, independently; which one walks, and where to, is random.
fn walk_about(world: &mut World, count: u64, rounds: u32, mut each: impl FnMut(&mut World)) {
    let mut stand: Vec<(f32, f32)> = (0..count).map(|at| (-20.0 - at as f32, 0.0)).collect();
    let mut step = vec![(0.0, 0.0); stand.len()];
    for _ in 0..rounds {
        for (session, (at, step)) in (1..).zip(stand.iter_mut().zip(&mut step)) {
            if world.roll(8) == 0 {
                let mut stride = || world.roll(13) as f32 / 10.0 - 0.6;
                *step = (stride(), stride());
            }
            *at = ((at.0 + step.0).clamp(-55.0, -2.0), (at.1 + step.1).clamp(-20.0, 20.0));
            world.walk(session, at.0, at.1);
        }
        each(world);
    }
}

fn crowd(world: &mut World, count: u64) {
    for session in 1..=count {
        world.spawn(AVATAR, -20.0 - session as f32, Some(session));
    }
    world.run(500);
}

#[test]
fn client_positions_equal_the_cells_despite_loss_and_delay() {
    for seed in 200..204 {
        let mut world = World::new(seed);
        let mut trail = Trail::new();
        follow(&mut world, 1, &mut trail);
        for session in 1..=6 {
            world.spawn(AVATAR, -20.0 - session as f32, Some(session));
        }
        follow(&mut world, 500, &mut trail);
        (world.faults, world.overtaking) = (ROUGH, 10);
        walk_about(&mut world, 6, 120, |world| follow(world, 100, &mut trail));
        (world.faults, world.overtaking) = (CALM, 0);
        follow(&mut world, 8_000, &mut trail);
        for session in 1..=6 {
            let received = check_received(&world, session, &trail);
            assert!(
                received > 200,
                "seed {seed}: client {session} received {received} movements"
            );
            check_view(&world, world.client(session));
        }
    }
}

/// Bytes of datagrams to the first of 20 clients that walk about for ten seconds.
fn bytes(movements: Movements, change: impl FnOnce(&mut World)) -> usize {
    let mut world = World::new(210);
    world.movements = movements;
    change(&mut world);
    crowd(&mut world, 20);
    let before = world.client(1).datagram_bytes;
    walk_about(&mut world, 20, 100, |world| world.run(100));
    let client = world.client(1);
    assert!(client.moves.values().sum::<usize>() > 1_000);
    client.datagram_bytes - before
}

#[test]
fn predicted_movements_take_a_fraction_of_the_bytes() {
    let predicted = World::new(1).movements;
    let (plain, ours) = (bytes(Movements::Plain, |_| ()), bytes(predicted, |_| ()));
    println!("{plain} bytes plain, {ours} predicted");
    assert!(ours * 5 < plain, "{ours} bytes instead of {plain}");
    // A client that never acknowledges is sent more, but nothing wrong.
    let silent = bytes(predicted, |world| world.silent = true);
    assert!(
        silent > 2 * ours && silent * 2 < plain,
        "{silent} bytes where {ours} would do"
    );
}

/// Positions of a type with `DetailedPosition` are not rounded to steps of the packing.
#[test]
fn detailed_positions_are_exact() {
    let mut types = schema().types().to_vec();
    types[usize::from(AVATAR.0)].detailed_position = Some(DetailedPosition { latest_only: false });
    let detailed = Arc::new(Schema::new(types, Vec::new(), Vec::new()));
    for (schema, is_detailed) in [(detailed, true), (schema(), false)] {
        let mut world = World::of(212, schema);
        crowd(&mut world, 4);
        let mut trail = Trail::new();
        walk_about(&mut world, 4, 40, |world| follow(world, 100, &mut trail));
        let mut exact = 0;
        for (tick, motion) in &world.client(1).motions {
            let (Placing::Full(found) | Placing::Exact(found)) = motion.placing else {
                panic!("{motion:?} at {tick:?}");
            };
            let meant = trail.get(&(*tick, motion.entity));
            exact += usize::from(meant.is_some_and(|meant| meant.contains(&found)));
        }
        let all = world.client(1).motions.len();
        assert!(all > 50, "{all} movements");
        assert_eq!(exact == all, is_detailed, "{exact} of {all} are exact");
    }
}

#[test]
fn only_the_client_acknowledges_movements_of_its_view() {
    let mut world = World::new(211);
    crowd(&mut world, 4);
    walk_about(&mut world, 4, 20, |world| world.run(100));
    // The second client receives nothing, and others acknowledge everything.
    world.deaf = Some(SessionId(2));
    walk_about(&mut world, 4, 20, |world| {
        world.run(100);
        let (entity, view) = (world.client(2).entity, world.client(2).view);
        for (session, view) in [(1, view), (9, view), (2, view - 1), (2, view + 1)] {
            world.send_to_home(HomeInput::MovementAck {
                session: SessionId(session),
                entity,
                view,
                ack: MovementAck {
                    tick: world.role(WEST).ticks().0 as u16,
                    before: u16::MAX,
                },
            });
        }
    });
    world.deaf = None;
    let before = world.client(2).motions.len();
    walk_about(&mut world, 4, 10, |world| world.run(100));
    let received = world.client(2).motions.len() - before;
    assert!(received > 5, "it could read {received} movements");
    world.run(4_000);
    for session in 1..=4 {
        check_view(&world, world.client(session));
    }
}

#[test]
fn false_acknowledgements_affect_only_their_client() {
    let mut world = World::new(215);
    crowd(&mut world, 3);
    walk_about(&mut world, 3, 50, |world| {
        world.run(100);
        for _ in 0..5 {
            let near = world.role(WEST).ticks().0 as u16;
            let (tick, before) = (near.wrapping_sub(world.roll(200) as u16), world.roll(1 << 16) as u16);
            let (entity, view) = (world.client(1).entity, world.client(1).view);
            world.send_to_home(HomeInput::MovementAck {
                session: SessionId(1),
                entity,
                view,
                ack: MovementAck { tick, before },
            });
        }
    });
    world.run(4_000);
    for session in 1..=3 {
        check_view(&world, world.client(session));
        assert!(world.client(session).moves.values().sum::<usize>() > 20);
    }
}

/// The game's definitions, with other volatile settings of avatars.
fn schema_with(volatile: Volatile) -> Arc<Schema> {
    let mut types = schema().types().to_vec();
    types[usize::from(AVATAR.0)].volatile = volatile;
    Arc::new(Schema::new(types, Vec::new(), Vec::new()))
}

#[test]
fn only_due_movements_are_sent() {
    let volatile = Volatile {
        position: Reach::Within(20.0),
        yaw: Reach::Always,
        pitch: Reach::Within(10.0),
        ..Volatile::default()
    };
    let mut world = World::of(212, schema_with(volatile));
    let sees = world.spawn(AVATAR, -50.0, Some(1));
    for (session, x) in [(2, -45.0), (3, -35.0), (4, -20.0)] {
        world.spawn(AVATAR, x, Some(session));
    }
    world.run(500);
    for step in 0..20u8 {
        for (session, x) in [(2, -45.0), (3, -35.0), (4, -20.0)] {
            let step = f32::from(step) / 20.0;
            let mut to = place(x + step, 0.0);
            (to.direction.yaw, to.direction.pitch, to.direction.roll) = (step, step / 2.0, 0.3);
            world.look(session, to);
        }
        world.run(100);
    }
    let received = |session: u64| -> Vec<Motion> {
        let entity = world.client(session).entity;
        let motions = world.client(1).motions.iter().map(|(_, motion)| *motion);
        motions.filter(|motion| motion.entity == entity).collect()
    };
    assert_ne!(sees, world.client(2).entity);
    let near = |motion: &Motion| {
        matches!(
            (motion.placing, motion.facing),
            (Placing::Full(_), Facing::YawPitch(..))
        )
    };
    let farther = |motion: &Motion| matches!((motion.placing, motion.facing), (Placing::Full(_), Facing::Yaw(_)));
    let far = |motion: &Motion| matches!((motion.placing, motion.facing), (Placing::Unsaid, Facing::Yaw(_)));
    for (session, is_so) in [(2, &near as &dyn Fn(&Motion) -> bool), (3, &farther), (4, &far)] {
        let received = received(session);
        assert!(
            received.len() > 5 && received.iter().all(is_so),
            "{session}: {received:?}"
        );
    }
    // Parts that are not sent at that distance stay as they were.
    let stands = world.client(1).known[&world.client(4).entity].position;
    assert_eq!((stands.x, stands.z), (-20.0, 0.0));
}

#[test]
fn a_minimal_bandwidth_still_carries_movements() {
    let mut world = World::new(214);
    world.limit(300);
    crowd(&mut world, 3);
    world.run(60_000);
    let before = world.client(1).moves.values().sum::<usize>();
    walk_about(&mut world, 3, 300, |world| world.run(100));
    let received = world.client(1).moves.values().sum::<usize>() - before;
    assert!((5..100).contains(&received), "{received} movements in half a minute");
}

#[test]
fn nothing_is_sent_when_nothing_is_due() {
    let volatile = Volatile {
        position: Reach::Within(20.0),
        ..Volatile::default()
    };
    let mut world = World::of(213, schema_with(volatile));
    world.spawn(AVATAR, -50.0, Some(1));
    world.spawn(AVATAR, -20.0, Some(2));
    world.run(500);
    for step in 0..20u8 {
        world.walk(2, -20.0 + f32::from(step) / 20.0, 0.0);
        world.run(100);
    }
    assert!(world.client(1).motions.is_empty());
    world.walk(2, -35.0, 0.0);
    world.run(500);
    assert!(!world.client(1).motions.is_empty());
}
