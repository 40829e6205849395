//! Controllers on running cells, under crashes and hand-overs.

use std::collections::BTreeMap;

use annals_def::{DataType, Distribution, Property, Sequence, Value};
use annals_event::{Body, ControllerEvent, Controllers, Gait, Seat};
use annals_ids::{Direction, EntityId, OwnerId, Position};
use annals_node::{Context, ControllerSignal, Denied};

use crate::{
    game::{AVATAR, schema_with},
    oracle::{check, check_logs},
    world::{CALM, EAST, Faults, MIDDLE, ROUGH, WEST, World, have, place},
};

/// First tag of the controllers of a tour: each is followed by the next.
const TOUR: u32 = 1_000;

/// A notification of controllers as behaviour records it, in its own state: anything lost or repeated shows there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Report {
    Arrived(u64),
    Passed(u64),
    Failed(u64),
    Turned(u64),
    Entered(u64),
    Left(u64),
    Unseated(u64),
}

const KINDS: [fn(u64) -> Report; 7] = [
    Report::Arrived,
    Report::Passed,
    Report::Failed,
    Report::Turned,
    Report::Entered,
    Report::Left,
    Report::Unseated,
];

/// Above every id in these tests.
const KIND: u64 = 1 << 50;

/// Behaviour of every entity here on notifications of controllers.
pub(crate) fn report(context: &mut Context<'_>, tag: u32, signal: ControllerSignal) {
    let reported_tag = u64::from(tag);
    let (kind, what) = match signal {
        ControllerSignal::Arrived => (0, reported_tag),
        ControllerSignal::Passed { waypoint } => (1, u64::from(waypoint)),
        ControllerSignal::Failed => (2, reported_tag),
        ControllerSignal::Turned => (3, reported_tag),
        ControllerSignal::Entered { who } => (4, who.0),
        ControllerSignal::Left { who } => (5, who.0),
        ControllerSignal::Unseated => (6, reported_tag),
    };
    let Ok(Value::Sequence(mut reports)) = context.get("reports").map(std::borrow::Cow::into_owned) else {
        panic!("avatars of these tests have reports");
    };
    let report = i64::try_from(kind * KIND + what).expect("it is small");
    reports.push(Value::Int(report));
    context.set("reports", Value::Sequence(reports)).expect("it fits");
    if tag >= TOUR && signal == ControllerSignal::Arrived {
        let to = leg(tag + 1);
        context
            .move_to_point(to, Gait::at(12.0), tag + 1)
            .expect("it can go there");
    }
}

/// Back and forth over all cells.
fn leg(tag: u32) -> Position {
    place([-20.0, 15.0, 75.0, 40.0][tag as usize % 4], 3.0).position
}

/// A world whose avatars record the notifications of their controllers.
pub(crate) fn reporting_world(seed: u64) -> World {
    let numbers = DataType::Array(std::sync::Arc::new(Sequence::of(DataType::Int64)));
    let reports = Property::new("reports", numbers, Distribution::CellPrivate);
    World::of(seed, schema_with(&[reports]))
}

pub(crate) fn reports(world: &World, entity: EntityId) -> Vec<Report> {
    let image = world.real(entity);
    let values = image.properties.values().filter_map(|value| match value {
        Value::Sequence(values) => Some(values),
        _ => None,
    });
    let numbers = values.flatten().filter_map(|value| match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    });
    numbers
        .map(|number| KINDS[usize::try_from(number / KIND).expect("it is small")](number % KIND))
        .collect()
}

pub(crate) fn controllers(world: &World, entity: EntityId) -> &Controllers {
    &world.real(entity).cell().expect("it is a cell part").controllers
}

fn x_of(world: &World, entity: EntityId) -> f32 {
    world.reals()[&entity].1.position.x
}

fn at(x: f32) -> Position {
    place(x, 0.0).position
}

/// Crashes one cell after the other and restarts each a moment later, at varying points of the work.
fn disturb(world: &mut World, rounds: u64, down: u64) -> BTreeMap<OwnerId, u32> {
    let mut deaths = BTreeMap::new();
    for round in 0..rounds {
        let victim = [WEST, MIDDLE, EAST][usize::try_from(round % 3).expect("it is small")];
        let pause = 1_000 + world.roll(1_500);
        world.run(pause);
        world.crash(victim);
        *deaths.entry(victim).or_default() += 1;
        world.run(down);
        world.start(victim);
    }
    deaths
}

/// In all logs, each controller that was set has ended or is still there.
fn check_accounts(world: &World) {
    let (mut set, mut gone) = (0, 0);
    for event in world.cells.values().flat_map(crate::process::Process::events) {
        match event.body {
            Body::Controlled {
                what: ControllerEvent::Set(_),
                ..
            } => set += 1,
            Body::Controlled {
                what: ControllerEvent::Gone,
                ..
            } => gone += 1,
            _ => {}
        }
    }
    let running: usize = world
        .reals()
        .keys()
        .map(|entity| controllers(world, *entity).iter().len())
        .sum();
    assert_eq!(set, gone + running, "{set} were set, {gone} are over");
}

/// A tour in which each leg begins when the one before has ended: a lost end of a leg would stop the tour, and a
/// repeated one would be in the reports.
fn tour(seed: u64, faults: Faults, crashes: u64) -> usize {
    let mut world = reporting_world(seed);
    let tourists: Vec<EntityId> = [-25.0, 3.0, 70.0].map(|x| world.spawn(AVATAR, x, None)).into();
    world.run(500);
    for &entity in &tourists {
        have(&mut world, entity, |context| {
            let first = context.move_to_point(leg(TOUR), Gait::at(12.0), TOUR);
            first.expect("it can go there");
        });
    }
    world.faults = faults;
    if crashes == 0 {
        world.run(60_000);
    } else {
        disturb(&mut world, crashes, 700);
    }
    world.faults = CALM;
    world.run(20_000);
    let mut legs = 0;
    for &entity in &tourists {
        let reports = reports(&world, entity);
        let expected = (TOUR..).map(|tag| Report::Arrived(tag.into())).take(reports.len());
        assert!(expected.eq(reports.iter().copied()), "seed {seed}: {reports:?}");
        let tags: Vec<u32> = controllers(&world, entity)
            .iter()
            .map(|(_, running)| running.tag)
            .collect();
        assert_eq!(tags, [TOUR + u32::try_from(reports.len()).expect("few")], "seed {seed}");
        legs += reports.len();
    }
    for entity in tourists {
        have(&mut world, entity, |context| context.stop_moving());
    }
    world.run(2_000);
    check_accounts(&world);
    check_logs(&world);
    legs
}

#[test]
fn a_tour_over_all_cells_continues() {
    let legs = tour(1, CALM, 0);
    // Each leg is 35 to 60 m at 12 m/s: 80 s would be at least 16 for each of the three if hand-overs took no time.
    assert!(legs > 45, "only {legs} legs");
}

#[test]
fn leg_ends_are_reported_once_despite_crashes() {
    let legs: usize = (0..12).map(|seed| tour(seed, ROUGH, 12)).sum();
    assert!(legs > 200, "only {legs} legs: the tourists do not move");
}

#[test]
fn a_patrol_visits_its_places_in_order_despite_crashes() {
    for seed in 0..6 {
        let mut world = reporting_world(seed);
        let entity = world.spawn(AVATAR, -10.0, None);
        world.run(500);
        have(&mut world, entity, |context| {
            let path = [-15.0, -8.0, 12.0, 13.0].map(at).into();
            let gait = Gait {
                acceleration: 6.0,
                ..Gait::at(9.0)
            };
            context.patrol(path, gait, 1).expect("it can go there");
        });
        world.faults = ROUGH;
        disturb(&mut world, 9, 700);
        world.faults = CALM;
        world.run(20_000);
        let reports = reports(&world, entity);
        let expected = (0..4).cycle().map(Report::Passed).take(reports.len());
        assert!(expected.eq(reports.iter().copied()), "seed {seed}: {reports:?}");
        assert!(reports.len() > 12, "seed {seed}: {reports:?}");
        check_accounts(&world);
    }
}

/// A rider is always within the trap of its vehicle. The trap reports it once as entered, and never as left: hand-overs
/// of either, and crashes, do not count as entering or leaving.
#[test]
fn a_rider_in_a_trap_is_caught_once() {
    let mut carried = 0;
    for (seed, crashes) in (0..10).zip([0, 9].into_iter().cycle()) {
        let mut world = reporting_world(seed);
        let coach = world.spawn(AVATAR, -12.0, None);
        let riders: Vec<EntityId> = (0..4).map(|_| world.spawn(AVATAR, -12.0, None)).collect();
        world.run(500);
        for (seat, &rider) in (-2i8..).zip(&riders) {
            let mut place = Seat::default();
            place.position.z = f32::from(seat) * 3.0;
            have(&mut world, rider, move |context| {
                context.board(coach, place, 5).expect("there is a seat");
            });
        }
        have(&mut world, coach, |context| {
            context.add_proximity(30.0, 7).expect("it can watch");
            let path = [-15.0, 30.0].map(at).into();
            context.patrol(path, Gait::at(4.0), 8).expect("it can go there");
        });
        world.run(500);
        world.faults = ROUGH;
        if crashes == 0 {
            world.run(50_000);
        } else {
            disturb(&mut world, crashes, 300);
            world.run(20_000);
        }
        world.faults = CALM;
        world.run(2_000);
        let mut reported = reports(&world, coach);
        reported.retain(|report| !matches!(report, Report::Passed(_)));
        reported.sort_unstable();
        let expected: Vec<Report> = riders.iter().map(|rider| Report::Entered(rider.0)).collect();
        assert_eq!(reported, expected, "seed {seed}");
        for &rider in &riders {
            assert_eq!(reports(&world, rider), [], "seed {seed}: no rider lost its seat");
            let apart = (x_of(&world, rider) - x_of(&world, coach)).abs();
            assert!(apart < 9.0, "seed {seed}: {apart} m from the coach");
        }
        let handed: u64 = [WEST, MIDDLE]
            .map(|id| world.role(id).counters().offloaded)
            .iter()
            .sum();
        carried += handed;
        check_accounts(&world);
    }
    assert!(carried > 50, "only {carried} hand-overs");
}

/// A cell that was taken over has no ghosts at first: that an entity in a trap is unknown there does not mean that it
/// left.
#[test]
fn a_trap_releases_no_entity_at_a_take_over() {
    for seed in 0..10 {
        let mut world = reporting_world(seed);
        let (bearer, there) = (world.spawn(AVATAR, -3.0, None), world.spawn(AVATAR, 9.0, None));
        world.run(500);
        have(&mut world, bearer, |context| {
            context.add_proximity(20.0, 1).expect("it can watch");
        });
        world.run(500);
        world.faults = ROUGH;
        world.crash(WEST);
        world.run(300);
        world.start(WEST);
        world.run(8_000);
        assert_eq!(reports(&world, bearer), [Report::Entered(there.0)], "seed {seed}");
        // An entity that is really gone by then is reported, late rather than not at all.
        world.crash(WEST);
        world.send_to_home(crate::home::HomeInput::DestroyCell(there));
        world.run(1_000);
        world.start(WEST);
        world.run(45_000);
        let reported = [Report::Entered(there.0), Report::Left(there.0)];
        assert_eq!(reports(&world, bearer), reported, "seed {seed}");
    }
}

/// The same after a hand-over, when the other cell has not yet received an entity that had just entered.
#[test]
fn a_trap_releases_no_entity_at_a_hand_over() {
    for seed in 0..40 {
        let mut world = reporting_world(seed);
        let bearer = world.spawn(AVATAR, -3.0, None);
        world.run(500);
        have(&mut world, bearer, |context| {
            context.add_proximity(30.0, 1).expect("it can watch");
        });
        world.faults = ROUGH;
        let guest = world.spawn(AVATAR, -6.0, None);
        for _ in 0..500 {
            if !reports(&world, bearer).is_empty() {
                break;
            }
            world.run(10);
        }
        have(&mut world, bearer, |context| {
            let mut place = context.place().expect("it is somewhere");
            place.position.x = 12.0;
            context.move_to(place).expect("it is a place");
        });
        world.run(10_000);
        assert_eq!(world.holders(bearer), [MIDDLE], "seed {seed}");
        assert_eq!(reports(&world, bearer), [Report::Entered(guest.0)], "seed {seed}");
    }
}

/// All entities have a trap, wander about, die and are created. In the end each behaviour was notified of entering and
/// leaving in alternation, and the remainder is the set of entities that are in the trap.
#[test]
fn trap_reports_add_up_to_the_trap_contents() {
    let mut reported = 0;
    for seed in 0..8 {
        let mut world = reporting_world(seed);
        let mut entities = Vec::new();
        for _ in 0..8 {
            let x = -40.0 + f32::from(u8::try_from(world.roll(80)).expect("small"));
            entities.push(world.spawn(AVATAR, x, None));
        }
        world.run(500);
        for &entity in &entities {
            let path: Vec<Position> = (0..3)
                .map(|_| place(-40.0 + world.roll(90) as f32, world.roll(20) as f32).position)
                .collect();
            have(&mut world, entity, move |context| {
                context.add_proximity(15.0, 1).expect("it can watch");
                context.patrol(path, Gait::at(7.0), 2).expect("it can go there");
            });
        }
        world.faults = ROUGH;
        disturb(&mut world, 6, 700);
        let dead = entities.remove(0);
        world.send_to_home(crate::home::HomeInput::DestroyCell(dead));
        disturb(&mut world, 3, 700);
        world.faults = CALM;
        world.run(10_000);
        for &entity in &entities {
            have(&mut world, entity, |context| context.stop_moving());
        }
        // By then, ghosts that were requested in vain have expired.
        world.run(35_000);
        let reals = world.reals();
        for &entity in &entities {
            let mut inside = std::collections::BTreeSet::new();
            for report in reports(&world, entity) {
                let is_news = match report {
                    Report::Entered(who) => inside.insert(EntityId(who)),
                    Report::Left(who) => inside.remove(&EntityId(who)),
                    _ => continue,
                };
                assert!(is_news, "seed {seed}: {report:?} was reported to {entity} twice");
                reported += 1;
            }
            let from = reals[&entity].1.position;
            let near = |position: Position| (position.x - from.x).abs().max((position.z - from.z).abs()) <= 15.0;
            let there = reals
                .iter()
                .filter(|(other, (_, place))| **other != entity && near(place.position));
            assert!(
                there.map(|(other, _)| other).eq(&inside),
                "seed {seed}: {entity} has {inside:?}"
            );
        }
        check_logs(&world);
    }
    assert!(reported > 300, "only {reported} entries and exits");
}

#[test]
fn a_chase_crosses_boundaries_and_ends_with_its_target() {
    let mut world = reporting_world(5);
    let (hunter, prey) = (world.spawn(AVATAR, -30.0, None), world.spawn(AVATAR, 0.0, None));
    world.run(500);
    have(&mut world, prey, |context| {
        context.move_to_point(at(30.0), Gait::at(4.0), 1).expect("it can flee");
    });
    have(&mut world, hunter, move |context| {
        context
            .move_to_entity(prey, 2.0, Gait::at(9.0), 2)
            .expect("it can hunt");
    });
    world.run(9_000);
    assert_eq!(reports(&world, hunter), [Report::Arrived(2)]);
    let apart = x_of(&world, prey) - x_of(&world, hunter);
    assert!((1.0..20.0).contains(&apart), "{apart} m apart");
    assert_eq!(world.holders(hunter), [MIDDLE]);
    have(&mut world, prey, |context| {
        context
            .move_to_point(at(300.0), Gait::at(50.0), 3)
            .expect("it can flee");
    });
    have(&mut world, hunter, move |context| {
        context
            .move_to_entity(prey, 2.0, Gait::at(3.0), 4)
            .expect("it can hunt");
    });
    world.run(1_000);
    world.send_to_home(crate::home::HomeInput::DestroyCell(prey));
    world.run(8_000);
    assert_eq!(reports(&world, hunter), [Report::Arrived(2), Report::Failed(4)]);
    assert_eq!(controllers(&world, hunter).iter().len(), 0);
    check(&world);
}

#[test]
fn a_rider_is_carried_turned_and_released() {
    let mut world = reporting_world(6);
    let (coach, rider) = (world.spawn(AVATAR, -20.0, None), world.spawn(AVATAR, -25.0, None));
    world.run(500);
    have(&mut world, rider, move |context| {
        let mut seat = Seat::default();
        (seat.position.x, seat.position.y) = (1.0, 2.0);
        context.board(coach, seat, 1).expect("there is a seat");
    });
    have(&mut world, coach, move |context| {
        let denied = context.board(rider, Seat::default(), 2);
        assert!(
            matches!(denied, Err(Denied::Controller { .. })),
            "an entity cannot ride on a rider: {denied:?}"
        );
        context.move_to_point(at(30.0), Gait::at(10.0), 3).expect("it can go");
    });
    for _ in 0..70 {
        world.run(100);
        if world.holders(coach) == world.holders(rider) && world.holders(coach).len() == 1 {
            let apart = (x_of(&world, rider) - x_of(&world, coach)).abs();
            assert!(
                apart < 1e-3,
                "it is carried in the tick in which the coach moves: {apart} m"
            );
        }
    }
    assert_eq!(
        (world.holders(coach), world.holders(rider)),
        (vec![MIDDLE], vec![MIDDLE])
    );
    // It faces east, so its right is south.
    let place = world.reals()[&rider].1;
    assert!(
        (place.position.x - 30.0).abs() < 1e-3 && (place.position.z + 1.0).abs() < 1e-3,
        "{place:?}"
    );
    assert!((place.position.y - 2.0).abs() < 1e-3, "{place:?}");
    have(&mut world, rider, |context| context.alight());
    have(&mut world, coach, |context| {
        context.move_to_point(at(10.0), Gait::at(10.0), 4).expect("it can go");
    });
    world.run(4_000);
    assert!((x_of(&world, rider) - 30.0).abs() < 1e-3, "it stays where it alit");
    have(&mut world, rider, move |context| {
        context.board(coach, Seat::default(), 5).expect("there is a seat");
    });
    world.run(500);
    assert!((x_of(&world, rider) - 10.0).abs() < 1e-3, "it is on board again");
    world.send_to_home(crate::home::HomeInput::DestroyCell(coach));
    world.run(1_000);
    assert_eq!(reports(&world, rider), [Report::Unseated(5)]);
    check(&world);
}

#[test]
fn one_move_and_one_turn_run_at_a_time_and_cancelled_ones_report_nothing() {
    let mut world = reporting_world(7);
    let entity = world.spawn(AVATAR, -20.0, None);
    world.run(500);
    have(&mut world, entity, |context| {
        let first = context.move_to_point(at(-40.0), Gait::at(1.0), 1).expect("it can go");
        let turn = context.turn_to(1.0, 0.5, 2).expect("it can turn");
        let watch = context.add_proximity(5.0, 3).expect("it can watch");
        let second = context.move_to_point(at(-18.0), Gait::at(2.0), 4).expect("it can go");
        let running: Vec<_> = context.controllers().map(|(controller, _)| controller).collect();
        assert_eq!(running, [turn, watch, second], "{first} was replaced");
        context.cancel_controller(watch);
        context.cancel_controller(first);
    });
    world.run(4_000);
    // It faces where it goes as long as it moves, and goes on turning from there.
    assert_eq!(reports(&world, entity), [Report::Arrived(4), Report::Turned(2)]);
    let Direction { yaw, .. } = world.reals()[&entity].1.direction;
    assert!((yaw - 1.0).abs() < 1e-6, "it looks to {yaw}");
    assert!((x_of(&world, entity) + 18.0).abs() < 1e-6);
    check_accounts(&world);
}

#[test]
fn invalid_controllers_are_denied_and_change_nothing() {
    let mut world = reporting_world(8);
    let entity = world.spawn(AVATAR, -20.0, None);
    world.run(500);
    have(&mut world, entity, |context| {
        let own = context.entity();
        let nowhere = at(f32::NAN);
        let denied = [
            context.move_to_point(nowhere, Gait::at(1.0), 0),
            context.move_to_point(at(1.0), Gait::at(0.0), 0),
            context.move_to_point(at(1.0), Gait::at(f32::INFINITY), 0),
            context.move_along(Vec::new(), Gait::at(1.0), 0),
            context.move_along(vec![at(1.0); 1_001], Gait::at(1.0), 0),
            context.turn_to(1.0, -1.0, 0),
            context.add_proximity(-1.0, 0),
            context.board(own, Seat::default(), 0),
        ];
        for denied in denied {
            assert!(matches!(denied, Err(Denied::Controller { .. })), "{denied:?}");
        }
        assert_eq!(context.controllers().count(), 0);
        for _ in 0..64 {
            context.add_proximity(1.0, 0).expect("there is room");
        }
        let denied = context.turn_to(1.0, 1.0, 0);
        assert!(matches!(denied, Err(Denied::Controller { .. })), "{denied:?}");
    });
    world.run(1_000);
    assert_eq!(reports(&world, entity), []);
    check_accounts(&world);
}

/// After a crash, an entity is where its behaviour was notified that it is.
#[test]
fn an_arrived_entity_stays_there_after_a_take_over() {
    let mut world = reporting_world(12);
    let (entity, near) = (world.spawn(AVATAR, -40.0, None), world.spawn(AVATAR, -20.0, None));
    world.run(500);
    have(&mut world, near, |context| {
        context.add_proximity(4.0, 1).expect("it can watch");
    });
    for (nth, (to, seen)) in [(-21.0, 1), (-33.0, 2), (-22.5, 3), (-30.3, 4)].into_iter().enumerate() {
        have(&mut world, entity, move |context| {
            context.move_to_point(at(to), Gait::at(9.0), 2).expect("it can go");
        });
        for _ in 0..1_000 {
            if reports(&world, entity).len() > nth {
                break;
            }
            world.run(5);
        }
        // Until that is in the log.
        world.run(20);
        world.crash(WEST);
        world.run(300);
        world.start(WEST);
        world.run(2_500);
        assert_eq!(reports(&world, entity).len(), nth + 1);
        assert!(
            (x_of(&world, entity) - to).abs() < 1e-6,
            "it arrived at {to}, and is elsewhere"
        );
        assert_eq!(
            reports(&world, near).len(),
            seen,
            "no entity left or entered a second time"
        );
    }
}

#[test]
fn a_move_out_of_the_world_fails() {
    let mut world = reporting_world(9);
    let entity = world.spawn(AVATAR, -20.0, None);
    world.run(500);
    for area in &mut world.map.spaces.values_mut().next().expect("there is one").cells {
        area.west = area.west.max(-100.0);
    }
    world.map.version += 1;
    let map = world.map.clone();
    world.send_to_cell(WEST, annals_cell::CellInput::Map(map));
    have(&mut world, entity, |context| {
        context
            .move_to_point(at(-150.0), Gait::at(30.0), 1)
            .expect("it can try");
    });
    world.run(5_000);
    assert_eq!(reports(&world, entity), [Report::Failed(1)]);
    assert!(x_of(&world, entity) >= -100.0);
}

/// Its progress and its speed are in the image when it is handed over.
#[test]
fn an_accelerating_entity_keeps_its_speed_over_a_boundary() {
    let mut world = reporting_world(10);
    let entity = world.spawn(AVATAR, -60.0, None);
    world.run(500);
    have(&mut world, entity, |context| {
        let gait = Gait {
            acceleration: 2.0,
            ..Gait::at(30.0)
        };
        context.move_to_point(at(50.0), gait, 1).expect("it can go");
    });
    let (mut last, mut fastest, mut slowest_there) = (x_of(&world, entity), 0.0f32, f32::INFINITY);
    for _ in 0..150 {
        world.run(100);
        let reals = world.reals();
        let Some((owner, place)) = reals.get(&entity) else {
            continue;
        };
        let step = place.position.x - last;
        last = place.position.x;
        fastest = fastest.max(step);
        if *owner == MIDDLE && (10.0..25.0).contains(&last) && step > 0.0 {
            slowest_there = slowest_there.min(step);
        }
    }
    assert_eq!(reports(&world, entity), [Report::Arrived(1)]);
    // It reaches 14.8 m/s half-way, at the boundary's western side; from rest it would reach some 6 m/s in 10 m.
    assert!(
        slowest_there > 0.8,
        "it went {slowest_there} m in a tick behind the boundary"
    );
    assert!(fastest > 1.2, "it never went faster than {fastest} m in a tick");
    let advanced = world.cells[&WEST].events().into_iter().any(|event| {
        matches!(event.body, Body::Controlled { what: ControllerEvent::Advanced { pace, .. }, .. } if pace > 10.0)
    });
    assert!(advanced, "its pace was logged when it left");
    assert_eq!(controllers(&world, entity).iter().len(), 0);
}
