//! The physics check: movements of clients whose top speed is limited.

use std::sync::atomic::Ordering;

use annals_event::{Driver, MovementControl};
use annals_ids::EntityId;
use annals_node::Denied;

use crate::{
    game::AVATAR,
    oracle::check,
    world::{Faults, MIDDLE, ROUGH, WEST, World, have},
};

/// Metres per second.
const TOP: f32 = 6.0;

/// A player in the west, with the top speed of its client.
fn player(seed: u64, x: f32) -> (World, EntityId) {
    let mut world = World::new(seed);
    let entity = world.spawn(AVATAR, x, Some(1));
    world.run(1_000);
    have(&mut world, entity, |context| {
        context.set_top_speed(TOP, 0.0).expect("it is a speed");
    });
    world.run(200);
    (world, entity)
}

fn x_of(world: &World, entity: EntityId) -> f32 {
    world.reals()[&entity].1.position.x
}

#[test]
fn top_speed_over_a_boundary_is_never_corrected() {
    for seed in 0..5 {
        let (mut world, entity) = player(seed, -30.0);
        let before = (world.placements(1, entity), world.rejected_movements());
        // Messages of clients are lost now and then, and all are late.
        world.faults = Faults { lost: 0, ..ROUGH };
        let mut x = -30.0;
        for _ in 0..100 {
            x += TOP / 10.0;
            if world.roll(5) != 0 {
                world.walk(1, x, 0.0);
            }
            world.run(100);
        }
        world.faults = crate::world::CALM;
        world.walk(1, x, 0.0);
        world.run(2_000);
        assert_eq!(
            (world.placements(1, entity), world.rejected_movements()),
            before,
            "seed {seed}"
        );
        assert_eq!(world.holders(entity), [MIDDLE]);
        assert!((x_of(&world, entity) - x).abs() < 1e-3, "seed {seed}");
    }
}

#[test]
fn movement_above_the_top_speed_is_corrected() {
    let (mut world, entity) = player(1, -30.0);
    world.walk(1, -29.5, 0.0);
    world.run(500);
    let before = world.placements(1, entity);
    // 15 m in a tenth of a second: near enough that without the check it would be accepted.
    world.walk(1, -14.5, 0.0);
    world.run(300);
    assert!((x_of(&world, entity) + 29.5).abs() < 1e-3, "it stays where it was");
    assert_eq!(world.placements(1, entity), before + 1, "its client is corrected");
    let seen = world.client(1).known[&entity].position.x;
    assert!((seen + 29.5).abs() < 1e-3, "and the position is right: {seen}");
    assert_eq!(world.rejected_movements(), 1);
    // A client that runs at twice the speed, and ignores corrections, gets half as far.
    let mut x = -29.5;
    for _ in 0..50 {
        x += TOP / 5.0;
        world.walk(1, x, 0.0);
        world.run(100);
        let most = -29.5 + TOP * 1.01 * (5.3 + 5.5) + 0.01;
        assert!(x_of(&world, entity) <= most);
    }
    let far = x_of(&world, entity) + 29.5;
    assert!(far < TOP * 1.01 * 6.5, "{far} m in 5.3 s");
    let corrections = world.placements(1, entity) - before;
    assert!(
        (5..16).contains(&corrections),
        "corrections are sent twice a second: {corrections} times"
    );
    // A client that obeys goes on from where it was put back.
    world.run(2_000);
    let from = x_of(&world, entity);
    let corrections = world.placements(1, entity);
    for step in 1..=20u8 {
        world.walk(1, from - f32::from(step) * 0.5, 0.0);
        world.run(100);
    }
    assert!((x_of(&world, entity) - (from - 10.0)).abs() < 1e-3);
    assert_eq!(world.placements(1, entity), corrections);
    check(&world);
}

/// A hand-over may take a while, during which the client's messages are not received.
#[test]
fn movement_during_a_hand_over_is_not_corrected() {
    let (mut world, entity) = player(6, -10.0);
    let before = (world.placements(1, entity), world.rejected_movements());
    let mut x = -10.0;
    for _ in 0..60 {
        x += TOP / 10.0;
        world.walk(1, x, 0.0);
        world.cut_off = (5.0..8.3).contains(&x).then_some(MIDDLE);
        world.run(100);
    }
    world.run(1_000);
    assert_eq!(world.holders(entity), [MIDDLE]);
    assert!((x_of(&world, entity) - x).abs() < 1e-3);
    assert_eq!((world.placements(1, entity), world.rejected_movements()), before);
}

/// A player went on while its cell was dead. It is not put back for that.
#[test]
fn movement_during_a_cell_outage_is_not_corrected() {
    for seed in 0..5 {
        let (mut world, entity) = player(seed, -60.0);
        let (mut x, mut placements) = (-60.0, 0);
        for step in 0..80 {
            match step {
                20 => {
                    world.run(1_200);
                    world.crash(WEST);
                    placements = world.placements(1, entity);
                }
                26 => world.start(WEST),
                _ => {}
            }
            x += TOP / 10.0;
            world.walk(1, x, 0.0);
            world.run(100);
        }
        world.run(1_000);
        assert!((x_of(&world, entity) - x).abs() < 1e-3, "seed {seed}");
        assert_eq!(world.rejected_movements(), 0, "seed {seed}");
        assert!(
            world.placements(1, entity) <= placements + 1,
            "seed {seed}: only its position is sent"
        );
    }
}

#[test]
fn limits_survive_hand_over_and_death() {
    let (mut world, entity) = player(2, -3.0);
    have(&mut world, entity, |context| {
        context.set_top_speed(TOP, 9.0).expect("it is a speed");
        let mut place = context.place().expect("it is somewhere");
        place.position.x = 12.0;
        context.move_to(place).expect("it is a place");
    });
    world.run(1_500);
    assert_eq!(world.holders(entity), [MIDDLE]);
    world.crash(MIDDLE);
    world.run(300);
    world.start(MIDDLE);
    world.run(5_000);
    let held = MovementControl {
        driver: Driver::Client,
        top_speed: TOP,
        top_speed_y: 9.0,
    };
    assert_eq!(
        world.real(entity).cell().expect("it is a cell part").movement_control,
        held
    );
    world.walk(1, 13.0, 0.0);
    world.run(300);
    assert!((x_of(&world, entity) - 13.0).abs() < 1e-3);
    // Farther than it can have gone while its cell was dead.
    world.walk(1, 55.0, 0.0);
    world.run(300);
    assert!((x_of(&world, entity) - 13.0).abs() < 1e-3, "it is as slow as before");
}

#[test]
fn an_entity_under_server_control_ignores_client_movement() {
    let (mut world, entity) = player(3, -30.0);
    have(&mut world, entity, |context| {
        context.set_driver(Driver::Server).expect("it is a cell part");
    });
    let before = world.placements(1, entity);
    world.walk(1, -29.9, 0.0);
    world.run(300);
    assert!((x_of(&world, entity) + 30.0).abs() < 1e-6);
    assert_eq!(world.placements(1, entity), before + 1);
    have(&mut world, entity, |context| {
        let mut place = context.place().expect("it is somewhere");
        place.position.x = -25.0;
        context.move_to(place).expect("it is a place");
    });
    world.run(300);
    assert!(
        (world.client(1).known[&entity].position.x + 25.0).abs() < 1e-6,
        "its client receives its position"
    );
    have(&mut world, entity, |context| {
        context.set_driver(Driver::Client).expect("it is a cell part");
    });
    world.walk(1, -24.8, 0.0);
    world.run(300);
    assert!((x_of(&world, entity) + 24.8).abs() < 1e-6);
}

#[test]
fn game_positions_override_client_movement() {
    let (mut world, entity) = player(4, -30.0);
    // Behaviour of this game allows nothing beyond this line.
    world.game.fence.store(-29, Ordering::Relaxed);
    for (to, is) in [(-29.6, -29.6), (-28.8, -29.6), (-29.2, -29.2)] {
        let before = world.placements(1, entity);
        world.walk(1, to, 0.0);
        world.run(700);
        assert!((x_of(&world, entity) - is).abs() < 1e-6, "to {to}");
        let refused = usize::from((to - is).abs() > 1e-6);
        assert_eq!(world.placements(1, entity), before + refused, "to {to}");
    }
}

#[test]
fn an_invalid_speed_is_denied() {
    let (mut world, entity) = player(5, -30.0);
    have(&mut world, entity, |context| {
        for (top, top_y) in [(-1.0, 0.0), (1.0, f32::NAN), (f32::INFINITY, 0.0)] {
            assert!(matches!(context.set_top_speed(top, top_y), Err(Denied::Speed)));
        }
        assert_eq!(
            context
                .movement_control()
                .map(|movement_control| movement_control.top_speed),
            Some(TOP)
        );
    });
}
