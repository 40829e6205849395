//! Entities that are moved by the client of another entity.

use std::sync::{Arc, atomic::Ordering};

use annals_event::{Driver, Seat};
use annals_ids::{EntityId, HistoryNumber, SessionId};
use annals_wire::client::ViewItem;

use crate::{
    client::Client,
    game::{AVATAR, STATUE},
    home::HomeInput,
    oracle::check,
    world::{CALM, Faults, MIDDLE, ROUGH, WEST, World, have},
};

/// Metres per second.
const TOP: f32 = 6.0;

/// A rider in the west, with client 1, a horse that the client drives, and another player with client 2.
fn ride(seed: u64, horse: f32) -> (World, EntityId, EntityId) {
    let mut world = World::new(seed);
    let rider = world.spawn(AVATAR, -12.0, Some(1));
    let horse = world.spawn(AVATAR, horse, None);
    world.spawn(AVATAR, -20.0, Some(2));
    world.run(1_000);
    set_driver(&mut world, horse, Driver::ClientOf(rider));
    world.run(300);
    assert!(world.client(1).drives(horse));
    (world, rider, horse)
}

fn set_driver(world: &mut World, entity: EntityId, driver: Driver) {
    have(world, entity, move |context| {
        context.set_driver(driver).expect("it is a cell part");
    });
}

fn x_of(world: &World, entity: EntityId) -> f32 {
    world.reals()[&entity].1.position.x
}

#[test]
fn client_drives_another_entity_until_behaviour_ends_it() {
    for kind in [AVATAR, STATUE] {
        let mut world = World::new(1);
        let rider = world.spawn(AVATAR, -12.0, Some(1));
        let horse = world.spawn(kind, -10.0, None);
        world.spawn(AVATAR, -20.0, Some(2));
        world.run(1_000);
        world.drive(1, horse, -9.0, 0.0);
        world.run(300);
        assert_eq!(x_of(&world, horse), -10.0, "nobody has let it drive");

        let before = world.placements(1, horse);
        set_driver(&mut world, horse, Driver::ClientOf(rider));
        world.run(300);
        assert!(world.client(1).drives(horse) && !world.client(2).drives(horse));
        assert_eq!(
            world.placements(1, horse),
            before + 1,
            "it begins where the cell has it"
        );
        let sent = |world: &World| {
            let moves = world.client(1).moves.get(&horse).copied().unwrap_or_default();
            moves + world.placements(1, horse)
        };
        let before = sent(&world);
        for step in 1..=20u8 {
            world.drive(1, horse, -10.0 + f32::from(step) * 0.4, 1.0);
            world.run(100);
        }
        assert_eq!(x_of(&world, horse), -2.0);
        assert_eq!(
            sent(&world),
            before,
            "the client that drives it is not sent its movements"
        );
        let seen = world.client(2).known[&horse].position.x;
        assert!((seen + 2.0).abs() < 0.1, "others see it at {seen}");
        world.run(1_500);
        check(&world);

        // Another client may not drive it; nor the same one when behaviour has ended it.
        world.drive(2, horse, -3.0, 0.0);
        world.run(300);
        assert_eq!(x_of(&world, horse), -2.0);
        let before = world.placements(1, horse);
        set_driver(&mut world, horse, Driver::Client);
        world.drive(1, horse, -1.0, 0.0);
        world.run(300);
        assert_eq!(x_of(&world, horse), -2.0);
        assert_eq!(world.placements(1, horse), before + 1, "it is placed once");
        let client = world.client(1);
        assert!(!client.drives(horse));
        let seen = client.known[&horse].position.x;
        assert!((seen + 2.0).abs() < 0.1, "its client learns where it stands: {seen}");
        world.run(1_500);
        check(&world);
    }
}

/// The rider and the horse are on different cells in turn, and messages are lost.
#[test]
fn driven_entity_crosses_boundaries() {
    for seed in 0..10 {
        let (mut world, rider, horse) = ride(seed, -10.0);
        world.faults = ROUGH;
        let mut x = -10.0;
        for step in 0..240u8 {
            // To the east and back, the rider behind the horse.
            x += if step < 120 { 0.25 } else { -0.25 };
            assert!(world.client(1).drives(horse), "seed {seed}, step {step}");
            world.drive(1, horse, x, 0.0);
            world.walk(1, x - 6.0, 0.0);
            world.run(100);
        }
        world.faults = CALM;
        world.run(2_000);
        world.walk(1, 11.0, 0.0);
        world.drive(1, horse, 15.0, 0.0);
        world.run(3_000);
        assert_eq!(world.holders(horse), [MIDDLE], "seed {seed}");
        assert_eq!(x_of(&world, horse), 15.0, "seed {seed}");
        assert_eq!(world.holders(rider), [MIDDLE], "seed {seed}");
        // The rider dismounts on the other side.
        world.walk(1, -12.0, 0.0);
        world.run(2_000);
        assert_eq!(world.holders(rider), [WEST], "seed {seed}");
        world.drive(1, horse, 14.0, 0.0);
        world.run(300);
        assert_eq!(x_of(&world, horse), 14.0, "seed {seed}: forwarded to the other cell");
        assert_eq!(world.rejected_movements(), 0, "seed {seed}");
        check(&world);
    }
}

/// Its own client learns where others have moved it, also if messages are lost, and it is handed over or a cell dies
/// right after that.
#[test]
fn own_client_learns_where_its_entity_was_driven() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        let rider = world.spawn(AVATAR, -12.0, Some(1));
        let horse = world.spawn(AVATAR, -10.0, Some(2));
        world.run(1_000);
        set_driver(&mut world, horse, Driver::ClientOf(rider));
        world.run(300);
        assert!(world.client(1).drives(horse) && !world.client(2).drives(horse));
        let wait = world.roll(100);
        world.run(wait);
        let (to, crashes) = (if seed % 3 == 0 { -4.0 } else { 15.0 }, seed % 3 < 2);
        world.faults = ROUGH;
        world.drive(1, horse, to, 0.0);
        let wait = world.roll(1_200);
        world.run(wait);
        if crashes {
            let holder = if world.roll(2) == 0 { WEST } else { MIDDLE };
            world.crash(holder);
            world.run(300);
            world.start(holder);
        }
        world.run(5_000);
        world.faults = CALM;
        world.run(5_000);
        let known = world.client(2).known[&horse].position.x;
        assert_eq!(known, x_of(&world, horse), "seed {seed}");
        // The only movement of the driver may be lost before anybody notes it.
        world.drive(1, horse, to, 0.0);
        world.run(2_000);
        check(&world);
    }
}

#[test]
fn driven_movement_above_the_top_speed_is_corrected() {
    // The horse is on the rider's cell, and on another one.
    for start in [-6.0, 4.0] {
        let (mut world, _, horse) = ride(2, start);
        have(&mut world, horse, |context| {
            context.set_top_speed(TOP, 0.0).expect("it is a speed");
        });
        world.run(300);
        world.drive(1, horse, start + 0.5, 0.0);
        world.run(300);
        assert_eq!(x_of(&world, horse), start + 0.5);
        let before = world.placements(1, horse);
        world.drive(1, horse, start + 25.0, 0.0);
        // Sent before the client learns that it was put back: near enough for the top speed, and yet ignored.
        let early = world.client(1).known[&horse].history;
        world.run(300);
        assert_eq!(x_of(&world, horse), start + 0.5, "it stays where it was");
        assert_eq!(world.placements(1, horse), before + 1, "its driver is corrected");
        assert_eq!(world.client(1).known[&horse].position.x, start + 0.5);
        assert_eq!(world.rejected_movements(), 1);
        assert!(world.client(1).known[&horse].history > early);
        world.drive_as_of(1, (horse, early), (start + 1.0, 0.0));
        world.run(300);
        assert_eq!(x_of(&world, horse), start + 0.5, "made before the correction was shown");
        assert_eq!(world.rejected_movements(), 2);
        // From where it was put back it goes on.
        for step in 1..=10u8 {
            world.drive(1, horse, start + 0.5 + f32::from(step) * 0.5, 0.0);
            world.run(100);
        }
        assert_eq!(x_of(&world, horse), start + 5.5);
        assert_eq!(world.rejected_movements(), 2);
        world.run(1_500);
        check(&world);
    }
}

#[test]
fn driver_is_sent_where_behaviour_moves_the_entity() {
    // The horse is on the rider's cell, and on another one.
    for start in [-6.0, 4.0] {
        let (mut world, _, horse) = ride(7, start);
        world.drive(1, horse, start + 0.5, 0.0);
        world.run(300);
        let early = world.client(1).known[&horse].history;
        have(&mut world, horse, |context| {
            let mut place = context.place().expect("it is somewhere");
            place.position.x -= 3.0;
            context.move_to(place).expect("it is a place");
        });
        world.drive_as_of(1, (horse, early), (start + 0.6, 0.0));
        world.run(500);
        assert_eq!(
            x_of(&world, horse),
            start - 2.5,
            "it was sent before the client was shown that"
        );
        assert_eq!(world.client(1).known[&horse].position.x, start - 2.5);
        world.drive(1, horse, start - 2.0, 0.0);
        world.run(500);
        assert_eq!(x_of(&world, horse), start - 2.0);
        let before = world.real(horse).history;
        world.run(2_000);
        assert_eq!(world.real(horse).history, before, "it is placed once");
        check(&world);
    }
    // It is moved over a border, and handed over at once.
    let (mut world, _, horse) = ride(7, -6.0);
    world.run(1_000);
    let early = world.client(1).known[&horse].history;
    have(&mut world, horse, |context| {
        let mut place = context.place().expect("it is somewhere");
        place.position.x = 15.0;
        context.move_to(place).expect("it is a place");
    });
    while world.holders(horse) != [MIDDLE] {
        world.run(10);
    }
    world.drive_as_of(1, (horse, early), (-5.0, 0.0));
    world.run(1_000);
    assert_eq!(x_of(&world, horse), 15.0);
    assert_eq!(world.client(1).known[&horse].position.x, 15.0);
}

#[test]
fn older_movements_are_ignored() {
    let (mut world, _, horse) = ride(3, -6.0);
    (world.faults, world.overtaking) = (Faults { delay: 300_000, ..CALM }, 50);
    for step in 1..=40u8 {
        world.drive(1, horse, -6.0 + f32::from(step) * 0.1, 0.0);
        world.run(20);
    }
    world.run(1_500);
    assert_eq!(x_of(&world, horse), -2.0);
    assert_eq!(world.rejected_movements(), 0);
}

#[test]
fn driver_survives_the_death_of_a_cell() {
    for dead in [WEST, MIDDLE] {
        let (mut world, _, horse) = ride(4, 4.0);
        world.drive(1, horse, 5.0, 0.0);
        world.run(1_500);
        world.crash(dead);
        // It is lost on its way.
        world.drive(1, horse, 5.5, 0.0);
        world.run(300);
        world.start(dead);
        world.run(5_000);
        assert!(world.client(1).drives(horse), "{dead} died");
        assert_eq!(x_of(&world, horse), 5.0, "{dead} died");
        let seen = world.client(1).known[&horse].position.x;
        assert_eq!(seen, 5.0, "{dead} died: its client learns that");
        world.drive(1, horse, 6.0, 0.0);
        world.run(300);
        assert_eq!(x_of(&world, horse), 6.0, "{dead} died");
        check(&world);
    }
}

#[test]
fn entity_out_of_view_is_not_driven() {
    let (mut world, _, horse) = ride(5, -6.0);
    world.walk(1, -70.0, 0.0);
    world.run(2_000);
    let client = world.client(1);
    assert!(!client.known.contains_key(&horse) && !client.drives(horse));
    world.drive(1, horse, -5.0, 0.0);
    world.run(300);
    assert_eq!(x_of(&world, horse), -6.0);
    // It comes back into view.
    world.walk(1, -12.0, 0.0);
    world.run(2_000);
    assert!(world.client(1).drives(horse));
    world.drive(1, horse, -5.0, 0.0);
    world.run(300);
    assert_eq!(x_of(&world, horse), -5.0);
    check(&world);
}

/// A player controls another player's avatar.
#[test]
fn client_learns_that_another_one_moves_its_entity() {
    let mut world = World::new(6);
    let [witch, victim] = [1, 2].map(|session| world.spawn(AVATAR, -12.0 + session as f32, Some(session)));
    world.run(1_000);
    let before = world.placements(2, victim);
    set_driver(&mut world, victim, Driver::ClientOf(witch));
    world.run(300);
    assert!(world.client(1).drives(victim) && !world.client(2).drives(victim));
    assert_eq!(
        world.placements(2, victim),
        before + 1,
        "its last movements may be lost"
    );
    world.walk(2, -9.0, 0.0);
    world.run(300);
    assert_eq!(x_of(&world, victim), -10.0);
    world.drive(1, victim, -11.0, 0.0);
    world.run(300);
    assert_eq!(x_of(&world, victim), -11.0);
    assert_eq!(
        world.client(2).known[&victim].position.x,
        -11.0,
        "its own client is sent its place"
    );
    check(&world);
    world.begin_view(SessionId(2));
    world.run(1_000);
    assert!(!world.client(2).drives(victim), "its view began anew");
    // To name an entity as its own driver is to give it back to its client.
    set_driver(&mut world, victim, Driver::ClientOf(victim));
    world.run(300);
    assert!(!world.client(1).drives(victim) && world.client(2).drives(victim));
    world.walk(2, -10.5, 0.0);
    world.run(300);
    assert_eq!(x_of(&world, victim), -10.5);
    check(&world);
}

/// Without messages lost, a rider that crosses borders is neither put back nor ceases to drive.
#[test]
fn hand_overs_of_the_rider_do_not_interrupt() {
    let (mut world, rider, horse) = ride(8, -6.0);
    world.run(1_000);
    let begin = world.client(1).items.len();
    let (mut x, mut held) = (-6.0, Vec::new());
    for step in 0..200u8 {
        x += if step < 100 { 0.4 } else { -0.4 };
        world.drive(1, horse, x, 0.0);
        world.walk(1, x - 3.0, 0.0);
        world.run(100);
        held.extend(world.holders(rider));
    }
    world.run(5_000);
    held.dedup();
    assert_eq!(held, [WEST, MIDDLE, WEST]);
    let items = &world.client(1).items[begin..];
    let about_driving = items
        .iter()
        .filter(|item| matches!(item, ViewItem::Drives { .. } | ViewItem::Placed { .. } if item.entity() == horse));
    assert_eq!(about_driving.count(), 0);
    assert_eq!((x_of(&world, horse), world.rejected_movements()), (x, 0));
    check(&world);
}

/// What the client sends late, before it is shown where the cell has the entity, does not part the two for long.
#[test]
fn client_and_cell_agree_after_a_late_movement() {
    for late in [0, 500, 900, 1_100, 1_500] {
        let (mut world, _, horse) = ride(9, 4.0);
        world.run(1_500);
        // Lost on its way to the other cell; and once more, much later, it is not.
        world.cut_off = Some(MIDDLE);
        world.drive(1, horse, 7.0, 0.0);
        let early = world.client(1).known[&horse].history;
        world.run(100);
        world.cut_off = None;
        world.run(late);
        world.drive_as_of(1, (horse, early), (7.0, 0.0));
        world.run(4_000);
        let seen = world.client(1).known[&horse].position.x;
        assert_eq!(seen, x_of(&world, horse), "{late} ms later");
        check(&world);
    }
}

#[test]
fn behaviour_has_the_final_decision() {
    let (mut world, _, horse) = ride(10, -36.0);
    // Behaviour of this game allows nothing beyond this line.
    world.game.fence.store(-29, Ordering::Relaxed);
    for (to, is) in [(-32.0, -32.0), (-28.0, -32.0), (-30.0, -30.0)] {
        let before = world.placements(1, horse);
        world.drive(1, horse, to, 0.0);
        world.run(700);
        assert_eq!(x_of(&world, horse), is, "to {to}");
        assert_eq!(world.placements(1, horse), before + usize::from(to != is), "to {to}");
    }
}

/// A later session of the rider counts its movements from 1 again; another rider follows.
#[test]
fn driver_and_session_change() {
    let (mut world, rider, horse) = ride(11, -6.0);
    for step in 1..=20u8 {
        world.drive(1, horse, -6.0 + f32::from(step) * 0.1, 0.0);
        world.run(50);
    }
    assert_eq!(x_of(&world, horse), -4.0);
    let again = Client::new(SessionId(3), rider, Arc::clone(world.cx(WEST).schema()));
    world.clients.insert(SessionId(3), again);
    world.send_to_home(HomeInput::Attach(rider, Some(SessionId(3))));
    world.begin_view(SessionId(3));
    world.run(2_000);
    assert!(world.client(3).drives(horse));
    world.drive(3, horse, -5.0, 0.0);
    world.run(300);
    assert_eq!(x_of(&world, horse), -5.0);
    // The former session has no say any more, and neither has the former rider.
    world.drive_as_of(1, (horse, world.client(3).known[&horse].history), (-9.0, 0.0));
    world.run(300);
    assert_eq!(x_of(&world, horse), -5.0);
    world.clients.remove(&SessionId(1));
    let other = world.client(2).entity;
    set_driver(&mut world, horse, Driver::ClientOf(other));
    world.drive(3, horse, -6.0, 0.0);
    world.run(300);
    assert!(world.client(2).drives(horse) && !world.client(3).drives(horse));
    assert_eq!((x_of(&world, horse), rider == other), (-5.0, false));
    world.drive(2, horse, -7.0, 0.0);
    world.run(1_500);
    assert_eq!(x_of(&world, horse), -7.0);
    check(&world);
}

/// The rider sits on the horse that its client drives.
#[test]
fn rider_is_carried_by_what_it_drives() {
    let (mut world, rider, horse) = ride(12, -10.0);
    have(&mut world, rider, move |context| {
        context.board(horse, Seat::default(), 1).expect("the horse is known");
    });
    for step in 1..=60u8 {
        world.drive(1, horse, -10.0 + f32::from(step) * 0.5, 0.0);
        world.run(100);
    }
    world.run(2_000);
    assert_eq!((x_of(&world, horse), x_of(&world, rider)), (20.0, 20.0));
    assert_eq!(world.holders(rider), [MIDDLE]);
    let client = world.client(1);
    assert!(client.drives(horse));
    assert_eq!(
        client.known[&rider].position.x, 20.0,
        "its client is sent where it is carried"
    );
    check(&world);
}

#[test]
fn forged_movements_are_rejected() {
    let (mut world, _, horse) = ride(13, -6.0);
    let newest = world.client(1).known[&horse].history;
    let future = world.real(horse).history.next();
    for upto in [HistoryNumber(u64::MAX >> 2), future] {
        world.drive_as_of(1, (horse, upto), (-5.0, 0.0));
        world.run(300);
        assert_eq!(x_of(&world, horse), -6.0, "{upto:?}");
    }
    let elsewhere = [EntityId(0), EntityId(u64::MAX), world.client(2).entity];
    for entity in elsewhere {
        world.drive_as_of(1, (entity, newest), (-5.0, 0.0));
    }
    world.run(300);
    assert_eq!(world.rejected_movements(), 5);
    world.drive(1, horse, -5.0, 0.0);
    world.run(1_500);
    assert_eq!(x_of(&world, horse), -5.0);
    check(&world);
}

/// An entity's own client cannot keep its driver from being put back by movements that are refused.
#[test]
fn each_client_is_put_back_in_its_own_time() {
    let mut world = World::new(14);
    let [witch, victim] = [1, 2].map(|session| world.spawn(AVATAR, -12.0 + session as f32, Some(session)));
    world.run(1_000);
    set_driver(&mut world, victim, Driver::ClientOf(witch));
    have(&mut world, victim, |context| {
        context.set_top_speed(TOP, 0.0).expect("it is a speed");
    });
    world.run(1_000);
    for _ in 0..20 {
        world.walk(2, -9.0, 0.0);
        world.run(20);
    }
    let before = world.placements(1, victim);
    world.drive(1, victim, -40.0, 0.0);
    for _ in 0..20 {
        world.run(20);
        world.walk(2, -9.0, 0.0);
    }
    assert_eq!(world.placements(1, victim), before + 1);
    assert_eq!(world.client(1).known[&victim].position.x, -10.0);
}

/// Movements that a former driver sends before it learns that, from another cell, leave no trace.
#[test]
fn former_driver_is_not_put_back_again() {
    let (mut world, _, horse) = ride(15, 4.0);
    set_driver(&mut world, horse, Driver::Server);
    let newest = world.real(horse).history;
    for step in 0..20u8 {
        world.drive_as_of(1, (horse, newest), (4.0 + f32::from(step), 0.0));
        world.run(5);
    }
    world.run(1_000);
    assert_eq!((x_of(&world, horse), world.real(horse).history), (4.0, newest));
    check(&world);
}
