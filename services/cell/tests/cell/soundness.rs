//! Invalid numbers, negative speeds and controllers without an end: each is refused with an error that behaviour sees,
//! or reported as a failure, and nothing of it is in the log.

use annals_event::{Body, Ending, Gait, Height, Place, Seat};
use annals_ids::{Direction, EntityId, Mailbox, Part, Position};
use annals_node::{Context, Denied, Request, Shape, TeleportFailed};

use crate::{
    controllers::{Report, controllers, reporting_world, reports},
    game::{AVATAR, CREATURE, STATUE},
    oracle::check,
    world::{HOME, WEST, World, have, place},
};

/// Numbers that are not finite.
const NONE: [f32; 3] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];

/// A place with each of its coordinates and angles in turn made invalid.
fn spoiled(place: Place) -> Vec<Place> {
    let mut spoiled = Vec::new();
    for none in NONE {
        let (mut at, mut looking) = ([place.position; 3], [place.direction; 3]);
        (at[0].x, at[1].y, at[2].z) = (none, none, none);
        (looking[0].yaw, looking[1].pitch, looking[2].roll) = (none, none, none);
        spoiled.extend(at.map(|position| Place { position, ..place }));
        spoiled.extend(looking.map(|direction| Place { direction, ..place }));
    }
    spoiled
}

fn gait(speed: f32, acceleration: f32) -> Gait {
    Gait {
        acceleration,
        ..Gait::at(speed)
    }
}

/// Gaits that are not possible.
fn bad_gaits() -> Vec<Gait> {
    let speeds = [0.0, -0.0, -1.0, -1e-9, 1e-9, f32::MIN_POSITIVE]
        .into_iter()
        .chain(NONE);
    let accelerations = [-1.0, -1e-9, 1e-9, f32::MIN_POSITIVE].into_iter().chain(NONE);
    let slow = speeds.map(|speed| gait(speed, 0.0));
    slow.chain(accelerations.map(|acceleration| gait(3.0, acceleration)))
        .collect()
}

fn refused(denied: &Result<annals_ids::ControllerId, Denied>, what: &str) {
    assert!(matches!(denied, Err(Denied::Controller { .. })), "{what}: {denied:?}");
}

/// Every way to set a controller, with every kind of invalid number.
fn begin_all(context: &mut Context<'_>, other: EntityId) {
    let here = context.place().expect("it is somewhere").position;
    let good = Gait::at(3.0);
    for gait in bad_gaits() {
        let what = format!("{gait:?}");
        refused(&context.move_to_point(here, gait, 1), &what);
        refused(&context.move_along(vec![here], gait, 1), &what);
        refused(&context.patrol(vec![here, Position::default()], gait, 1), &what);
        refused(&context.move_to_entity(other, 1.0, gait, 1), &what);
    }
    for Place {
        position, direction, ..
    } in spoiled(place(1.0, 1.0))
    {
        let seat = Seat { position, direction };
        refused(&context.board(other, seat, 1), &format!("{seat:?}"));
        if !position.is_finite() {
            let what = format!("{position:?}");
            refused(&context.move_to_point(position, good, 1), &what);
            refused(&context.move_along(vec![here, position], good, 1), &what);
            refused(&context.patrol(vec![here, position], good, 1), &what);
        }
    }
    for number in NONE.into_iter().chain([-1.0, -1e-9]) {
        let what = format!("{number}");
        refused(&context.move_to_entity(other, number, good, 1), &what);
        refused(&context.turn_to(1.0, number, 1), &what);
        refused(&context.add_proximity(number, 1), &what);
    }
    for number in NONE {
        refused(&context.turn_to(number, 1.0, 1), &format!("to {number}"));
    }
    for rate in [0.0, 1e-9, f32::MIN_POSITIVE] {
        refused(&context.turn_to(1.0, rate, 1), &format!("at {rate}"));
    }
    refused(&context.move_along(Vec::new(), good, 1), "no place");
    refused(&context.move_along(vec![here; 1_001], good, 1), "too many places");
    refused(&context.patrol(vec![here], good, 1), "a round of one place");
    refused(&context.patrol(vec![here; 3], good, 1), "a round without length");
    let own = context.entity();
    refused(&context.board(own, Seat::default(), 1), "itself");
    assert_eq!(context.controllers().count(), 0);
}

/// Every other request that takes a place, a distance or a speed.
fn ask_all(context: &mut Context<'_>) {
    let here = context.place().expect("it is somewhere");
    for place in spoiled(here) {
        assert_eq!(context.move_to(place), Err(Denied::Place), "{place:?}");
        assert_eq!(context.open_space(place), Err(Denied::Place), "{place:?}");
        let made = context.create_cell_only(CREATURE, place, Vec::new());
        assert_eq!(made, Err(Denied::Place), "{place:?}");
        let centre = place.position;
        if !centre.is_finite() {
            let around = Shape::Ball { centre, metres: 1.0 };
            assert_eq!(context.entities_in(around, None), Err(Denied::Distance), "{place:?}");
        }
    }
    for number in NONE.into_iter().chain([-1.0]) {
        assert_eq!(context.set_top_speed(number, 0.0), Err(Denied::Speed), "{number}");
        assert_eq!(context.set_top_speed(0.0, number), Err(Denied::Speed), "{number}");
        assert_eq!(context.set_aoi_radius(number, 1.0), Err(Denied::Distance), "{number}");
        assert_eq!(context.set_aoi_radius(1.0, number), Err(Denied::Distance), "{number}");
        assert_eq!(
            context.entities_in_range(number, None),
            Err(Denied::Distance),
            "{number}"
        );
    }
    for number in NONE.map(f64::from) {
        assert_eq!(context.set_time_of_day(number, 1.0), Err(Denied::TimeOfDay), "{number}");
        assert_eq!(context.set_time_of_day(1.0, number), Err(Denied::TimeOfDay), "{number}");
    }
    let elsewhere = Place {
        space: annals_ids::SpaceId(99),
        ..here
    };
    let denied = context.move_to(elsewhere);
    assert_eq!(denied, Err(Denied::OtherSpace { here: here.space }));
}

/// No log contains an invalid place.
fn check_places(world: &World) {
    for event in world.cells.values().flat_map(crate::process::Process::events) {
        match event.body {
            Body::Moved(place) => assert!(place.is_sound(), "{place:?}"),
            Body::CellCreated(creation) => assert!(creation.place.is_sound(), "{creation:?}"),
            Body::Controlled { what, .. } => panic!("{what:?} was recorded"),
            _ => {}
        }
    }
}

#[test]
fn non_finite_numbers_are_refused_by_controllers_and_requests() {
    let mut world = reporting_world(501);
    let (one, other) = (world.spawn(STATUE, -5.0, None), world.spawn(AVATAR, 5.0, None));
    world.run(1_000);
    have(&mut world, one, move |context| begin_all(context, other));
    have(&mut world, one, ask_all);
    world.run(1_000);
    check_places(&world);
    assert_eq!(world.reals()[&one], (WEST, place(-5.0, 0.0)));
    check(&world);
}

#[test]
fn a_teleport_to_an_invalid_place_fails_with_a_reason() {
    let mut world = World::new(502);
    let (one, other) = (world.spawn(STATUE, -5.0, None), world.spawn(STATUE, 5.0, None));
    world.run(1_000);
    let cases = spoiled(place(1.0, 1.0));
    let count = cases.len() + NONE.len();
    have(&mut world, one, move |context| {
        let entity = context.entity();
        for place in cases {
            context
                .request(Request::Teleport { entity, place })
                .expect("it is real here");
        }
        let beside = Mailbox {
            entity: other,
            home: HOME,
            type_id: STATUE,
            part: Part::Cell,
        };
        for x in NONE {
            let offset = Position {
                x,
                ..Position::default()
            };
            context.teleport_near(beside, offset).expect("it is a cell part");
        }
    });
    world.run(2_000);
    let outcomes = world.game.teleports.lock().expect("nobody panics").clone();
    assert_eq!(outcomes, vec![(one, Err(TeleportFailed::NoPlace)); count]);
    check_places(&world);
    assert_eq!(world.reals()[&one], (WEST, place(-5.0, 0.0)));
}

#[test]
fn invalid_positions_from_clients_are_ignored() {
    let mut world = World::new(503);
    let entity = world.spawn(STATUE, -20.0, Some(1));
    world.run(1_000);
    world.walk(1, -21.0, 1.0);
    world.run(200);
    let before = world.role(WEST).counters().rejected_movements;
    let cases = spoiled(place(-22.0, 2.0));
    let count = cases.len() as u64;
    for place in cases {
        world.look(1, place);
        world.run(50);
    }
    world.run(1_500);
    assert_eq!(world.role(WEST).counters().rejected_movements - before, count);
    assert_eq!(world.reals()[&entity], (WEST, place(-21.0, 1.0)));
    check_places(&world);
    world.walk(1, -22.0, 2.0);
    world.run(500);
    assert_eq!(world.reals()[&entity].1, place(-22.0, 2.0), "its movements count again");
    check(&world);
}

type Course = fn(&mut Context<'_>, Position, u32);

/// Courses that do not end by themselves so far away, by the tag that each is given.
fn courses() -> [(u32, Course); 6] {
    [
        (1, |context, at, tag| {
            begin(context.move_to_point(at, Gait::at(2.0), tag));
        }),
        (2, |context, at, tag| {
            begin(context.move_to_point(at, gait(2.0, 0.5), tag));
        }),
        (3, |context, at, tag| {
            let running = Gait {
                ending: Ending::Running,
                height: Height::Changed,
                ..gait(2.0, 0.5)
            };
            begin(context.move_to_point(at, running, tag));
        }),
        (4, |context, at, tag| {
            let on = Position { x: 3.3e38, ..at };
            begin(context.move_to_point(on, Gait::at(2.0), tag));
        }),
        (5, |context, at, tag| {
            let here = context.place().expect("it is somewhere").position;
            begin(context.patrol(vec![here, at], Gait::at(2.0), tag));
        }),
        (6, |context, _, tag| {
            let here = context.place().expect("it is somewhere").position;
            begin(context.move_to_point(here, gait(2.0, 0.5), tag));
        }),
    ]
}

/// Where steps are lost in rounding, and where a path has no length, each controller ends.
#[test]
fn a_controller_without_progress_ends() {
    let far = 3.0e7;
    let mut world = reporting_world(504);
    let entity = world.spawn(AVATAR, 70.0, None);
    world.run(500);
    have(&mut world, entity, move |context| {
        let place = Place {
            position: Position {
                x: far,
                ..Position::default()
            },
            ..context.place().expect("it is somewhere")
        };
        context.move_to(place).expect("it is a place");
    });
    for (tag, step) in courses() {
        have(&mut world, entity, move |context| {
            let at = Position {
                x: far + 40.0,
                ..Position::default()
            };
            step(context, at, tag);
        });
        world.run(8_000);
        assert_eq!(
            controllers(&world, entity).iter().len(),
            0,
            "controller {tag} continues"
        );
    }
    let reported = reports(&world, entity);
    let failed = |tag| Report::Failed(tag);
    let passed: Vec<Report> = reported
        .iter()
        .copied()
        .filter(|report| matches!(report, Report::Passed(_)))
        .collect();
    assert_eq!(passed, [Report::Passed(0)], "it stands where its round begins");
    let rest: Vec<Report> = reported
        .into_iter()
        .filter(|report| !matches!(report, Report::Passed(_)))
        .collect();
    let expected = [
        failed(1),
        failed(2),
        failed(3),
        failed(4),
        failed(5),
        Report::Arrived(6),
    ];
    assert_eq!(rest, expected);
}

fn begin(begun: Result<annals_ids::ControllerId, Denied>) {
    begun.expect("there can be such a controller");
}

/// A rider whose seat leads to invalid coordinates is unseated.
#[test]
fn an_invalid_seat_is_ignored() {
    let mut world = reporting_world(505);
    let (coach, rider) = (world.spawn(AVATAR, -20.0, None), world.spawn(AVATAR, -25.0, None));
    world.run(500);
    have(&mut world, coach, |context| {
        let mut place = context.place().expect("it is somewhere");
        place.direction.pitch = f32::MAX;
        context.move_to(place).expect("it is a place");
    });
    have(&mut world, rider, move |context| {
        let direction = Direction {
            pitch: f32::MAX,
            ..Direction::default()
        };
        let seat = Seat {
            direction,
            ..Seat::default()
        };
        context.board(coach, seat, 7).expect("it is near");
    });
    world.run(500);
    assert_eq!(reports(&world, rider), [Report::Failed(7)]);
    assert_eq!(world.reals()[&rider].1, place(-25.0, 0.0));
    assert!(world.reals().values().all(|(_, place)| place.is_sound()));
}
