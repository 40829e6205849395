//! The views of clients.

use annals_def::{Path, Value};
use annals_ids::{EntityId, SessionId};
use annals_node::Context;
use annals_wire::bus::ViewMessage;
use annals_wire::client::{Known, Movements, Shown, Stamp, ViewItem};

use crate::{
    game::{ACT, ALTER, AVATAR, CHATTER, ERRAND, Errand, STATUE, detailed_schema},
    home::HomeInput,
    oracle::{check_shown, check_view},
    world::{MIDDLE, WEST, World, place},
};

fn act(world: &mut World, entity: EntityId, what: u64) {
    world.call(entity, ACT, vec![Value::UInt(what)]);
}

/// What a client received of an entity, by kind.
fn received(world: &World, session: u64, entity: EntityId) -> Vec<&'static str> {
    let items = world
        .client(session)
        .items
        .iter()
        .filter(|item| item.entity() == entity);
    items
        .map(|item| match item {
            ViewItem::Enter { .. } => "enter",
            ViewItem::Leave { .. } => "leave",
            ViewItem::Refresh { .. } => "refresh",
            ViewItem::Update { .. } => "update",
            ViewItem::Placed { .. } => "placed",
            ViewItem::Level { .. } => "level",
            ViewItem::Return { .. } => "return",
            ViewItem::Space { .. } => "space",
            ViewItem::SpaceData { .. } => "space data",
            ViewItem::Drives { .. } => "drives",
        })
        .collect()
}

fn check(world: &World) {
    for client in world.clients.values() {
        check_view(world, client);
        check_shown(world, client);
    }
}

#[test]
fn a_client_sees_what_is_around_it_as_it_is() {
    let mut world = World::new(31);
    let own = world.spawn(AVATAR, -20.0, Some(1));
    let near = world.spawn(AVATAR, 15.0, Some(2));
    let far = world.spawn(AVATAR, 30.0, None);
    world.run(500);
    for what in (0..10).chain(0..10) {
        [own, near, far]
            .into_iter()
            .for_each(|entity| act(&mut world, entity, what));
        world.run(30);
    }
    world.run(500);
    check(&world);
    assert!(!world.client(1).known.contains_key(&far));
    world.walk(1, -8.0, 0.0);
    world.run(500);
    check(&world);
    assert_eq!(received(&world, 1, far), ["enter", "refresh"]);
    world.walk(1, -13.0, 0.0);
    world.run(500);
    assert!(world.client(1).known.contains_key(&far), "it is within the hysteresis");
    world.walk(1, -16.0, 0.0);
    world.run(500);
    assert_eq!(received(&world, 1, far), ["enter", "refresh", "leave"]);
    check(&world);
}

#[test]
fn own_client_calls_reach_no_other_client() {
    let mut world = World::new(32);
    let own = world.spawn(AVATAR, -20.0, Some(1));
    let other = world.spawn(AVATAR, -25.0, Some(2));
    world.run(500);
    for what in [6, 7, 8] {
        act(&mut world, own, what);
        world.run(300);
    }
    let said = |session| {
        let shown = world.client(session).shown.iter();
        let said = shown.filter(|(entity, _, shown)| *entity == own && matches!(shown, Shown::Method { .. }));
        said.map(|(_, number, _)| number.0).collect::<Vec<_>>()
    };
    assert_eq!((said(1), said(2)), (vec![1, 3], vec![1, 2]));
    assert!(world.client(2).known.contains_key(&other));
    check(&world);
}

#[test]
fn a_resuming_client_receives_only_the_differences() {
    let mut world = World::new(33);
    let own = world.spawn(AVATAR, -20.0, Some(1));
    let near = world.spawn(AVATAR, 5.0, None);
    world.run(500);
    (0..10).for_each(|what| act(&mut world, near, what));
    world.run(500);
    let away = world.clients.remove(&SessionId(1)).expect("it is there");
    for what in 0..10 {
        act(&mut world, near, what);
        act(&mut world, own, what);
    }
    let gone = world.spawn(AVATAR, 0.0, None);
    world.run(500);
    world.send_to_home(HomeInput::DestroyCell(gone));
    let come = world.spawn(AVATAR, 1.0, None);
    world.run(2_500);
    world.clients.insert(away.session, away);
    world.begin_view(SessionId(1));
    world.run(500);
    assert_eq!(received(&world, 1, near), ["enter", "update", "update", "placed"]);
    assert_eq!(received(&world, 1, come), ["enter"]);
    assert!(received(&world, 1, gone).is_empty());
    assert_eq!(world.client(1).refreshes, 0);
    check(&world);
}

#[test]
fn a_client_absent_too_long_receives_a_full_refresh() {
    let mut world = World::new(34);
    let own = world.spawn(AVATAR, -20.0, Some(1));
    let near = world.spawn(AVATAR, 5.0, None);
    world.run(500);
    let away = world.clients.remove(&SessionId(1)).expect("it is there");
    for round in 0..200 {
        act(&mut world, near, round % 10);
        act(&mut world, own, round % 10);
        world.run(5);
    }
    world.clients.insert(away.session, away);
    world.begin_view(SessionId(1));
    world.run(1_000);
    assert_eq!(world.client(1).refreshes, 2);
    check(&world);
}

#[test]
fn a_large_update_is_shown_completely() {
    let mut world = World::new(35);
    let own = world.spawn(AVATAR, -20.0, Some(1));
    let other = world.spawn(AVATAR, -25.0, Some(2));
    let beyond = world.spawn(AVATAR, 10.0, Some(3));
    world.run(500);
    act(&mut world, own, CHATTER);
    world.run(1_000);
    for session in [1, 2, 3] {
        let client = world.client(session);
        assert_eq!(client.refreshes, 0, "client {session}");
        let shown = client.shown.iter().filter(|(entity, ..)| *entity == own).count();
        assert_eq!(shown as u64, CHATTER, "client {session}");
    }
    assert!(world.client(3).known.contains_key(&beyond) && world.client(2).known.contains_key(&other));
    check(&world);
}

#[test]
fn events_of_other_entities_do_not_delay_a_client() {
    let mut world = World::new(36);
    let own = world.spawn(AVATAR, -20.0, Some(1));
    world.spawn(AVATAR, -25.0, Some(2));
    world.run(500);
    for _ in 0..300 {
        act(&mut world, own, 8);
        world.run(10);
    }
    world.run(300);
    check(&world);
    assert!(world.client(2).shown.is_empty());
    world.begin_view(SessionId(2));
    world.run(500);
    assert_eq!(world.client(2).refreshes, 0);
    check(&world);
}

#[test]
fn a_client_detects_the_loss_of_the_last_frame() {
    let mut world = World::new(37);
    let own = world.spawn(AVATAR, -20.0, Some(1));
    let near = world.spawn(AVATAR, -25.0, None);
    world.run(1_000);
    world.cut_off = Some(crate::world::HOME);
    world.set_lively(false);
    // Calls are confirmed to the home, so only what is shown is lost.
    let now = world.now;
    act(&mut world, near, 0);
    act(&mut world, own, 0);
    world.run(400);
    assert!(world.now > now);
    world.cut_off = None;
    let behind = |world: &World| world.client(1).known[&near].history.0 < world.real(near).history.0;
    assert!(behind(&world));
    world.run(3_000);
    assert!(!behind(&world));
    check(&world);
}

#[test]
fn non_volatile_movements_are_sent_reliably() {
    let mut world = World::new(38);
    world.spawn(AVATAR, -20.0, Some(1));
    let statue = world.spawn(STATUE, -25.0, Some(2));
    world.run(500);
    world.faults.lost = 0;
    for step in 0..5u8 {
        world.walk(2, -25.0 - f32::from(step), 1.0);
        world.run(100);
    }
    world.run(300);
    assert!(
        received(&world, 1, statue)
            .iter()
            .filter(|kind| **kind == "placed")
            .count()
            >= 4
    );
    assert!(
        !received(&world, 2, statue).contains(&"placed"),
        "its own client moved it"
    );
    check(&world);
}

#[test]
fn a_crowd_that_moves_fits_datagrams() {
    let mut world = World::new(39);
    let sessions = 1..=60u64;
    for session in sessions.clone() {
        world.spawn(AVATAR, -10.0, Some(session));
    }
    world.run(1_000);
    for step in 0..5u8 {
        for session in sessions.clone() {
            world.walk(session, -10.0 - f32::from(step), 0.0);
        }
        world.run(100);
    }
    world.run(300);
    check(&world);
}

#[test]
fn invalid_client_movements_are_ignored() {
    let mut world = World::new(40);
    let entity = world.spawn(AVATAR, -20.0, Some(1));
    let other = world.spawn(AVATAR, -25.0, Some(2));
    world.run(500);
    world.walk(1, -21.0, 0.0);
    world.run(200);
    let moved = |session, entity, sequence, x: f32, z: f32| {
        let moved = ViewMessage::Moved {
            session: SessionId(session),
            entity,
            sequence,
            place: place(x, z),
        };
        HomeInput::Moved(entity, moved)
    };
    for nonsense in [
        moved(1, entity, 5, f32::NAN, 0.0),
        moved(1, entity, 6, 0.0, f32::INFINITY),
        moved(1, other, 7, -22.0, 0.0),
        moved(9, entity, 8, -22.0, 0.0),
        moved(1, entity, 1, -22.0, 0.0),
        moved(1, EntityId(12), 9, -22.0, 0.0),
    ] {
        world.send_to_home(nonsense);
        world.run(50);
    }
    assert_eq!(world.cx(WEST).place(entity), Some(place(-21.0, 0.0)));
    assert_eq!(world.cx(WEST).place(other), Some(place(-25.0, 0.0)));
    // No owner is responsible any more for what is north of here.
    let mut map = world.map.clone();
    map.version = 2;
    for area in &mut map.spaces.get_mut(&crate::world::SPACE).expect("it is there").cells {
        area.north = 100.0;
    }
    world.send_to_cell(WEST, annals_cell::CellInput::Map(map));
    world.send_to_home(moved(1, entity, 20, -22.0, 101.0));
    world.run(50);
    assert_eq!(world.cx(WEST).place(entity), Some(place(-21.0, 0.0)));
    world.send_to_home(moved(1, entity, 21, -22.0, 99.0));
    world.run(50);
    assert_eq!(world.cx(WEST).place(entity), Some(place(-22.0, 99.0)));
}

#[test]
fn there_is_a_witness_only_while_there_is_a_client() {
    let mut world = World::new(41);
    let entity = world.spawn(AVATAR, -20.0, Some(1));
    world.run(500);
    assert_eq!(world.role(WEST).witnesses(), 1);
    world.send_to_home(HomeInput::Attach(entity, None));
    world.run(300);
    assert_eq!(world.role(WEST).witnesses(), 0);
    let seen = world.client(1).items.len();
    act(&mut world, entity, 0);
    world.run(300);
    assert_eq!(world.client(1).items.len(), seen);

    world.send_to_home(HomeInput::Attach(entity, Some(SessionId(1))));
    act(&mut world, entity, 1);
    world.run(2_500);
    assert_eq!(world.role(WEST).witnesses(), 1);
    check(&world);
}

#[test]
fn a_view_survives_a_take_over_without_leave_and_enter() {
    let mut world = World::new(42);
    let own = world.spawn(AVATAR, -20.0, Some(1));
    let (near, beyond) = (world.spawn(AVATAR, -30.0, None), world.spawn(AVATAR, 15.0, None));
    world.run(500);
    for what in 0..10 {
        [own, near, beyond]
            .into_iter()
            .for_each(|entity| act(&mut world, entity, what));
    }
    world.run(500);
    // The neighbours send their lists of ghosts at one moment of each second; the take-overs happen at several.
    for (phase, victim) in (0..).zip([WEST, MIDDLE, WEST, WEST, WEST]) {
        world.crash(victim);
        world.run(2_000 + 230 * phase);
        world.start(victim);
        world.run(3_000);
        for what in 0..10 {
            [own, near, beyond]
                .into_iter()
                .for_each(|entity| act(&mut world, entity, what));
        }
        world.run(6_000);
        check(&world);
    }
    for entity in [near, beyond] {
        let received = received(&world, 1, entity);
        assert!(
            !received.contains(&"leave") && !received.contains(&"refresh"),
            "{entity}: {received:?}"
        );
    }
}

#[test]
fn entities_within_the_hysteresis_stay_in_view_at_a_take_over() {
    let mut world = World::new(44);
    world.spawn(AVATAR, -30.0, Some(1));
    let (own_side, beyond) = (world.spawn(AVATAR, -68.0, None), world.spawn(AVATAR, 8.0, None));
    world.run(500);
    world.walk(1, -27.0, 0.0);
    world.run(500);
    world.walk(1, -34.5, 0.0);
    world.run(1_500);
    assert!(world.client(1).known.contains_key(&beyond), "42.5 m away");
    world.crash(WEST);
    world.run(500);
    world.start(WEST);
    world.run(5_000);
    assert!(world.client(1).known.contains_key(&own_side));
    assert!(!received(&world, 1, beyond).contains(&"leave"));
}

#[test]
fn a_resting_position_is_resent() {
    let mut world = World::new(45);
    world.spawn(AVATAR, -20.0, Some(1));
    world.spawn(AVATAR, -25.0, Some(2));
    world.run(500);
    world.walk(2, -28.0, 2.0);
    world.run(3);
    let lossless = world.faults;
    world.faults.lost = 100;
    world.run(110);
    world.faults = lossless;
    world.run(2_500);
    check(&world);
}

#[test]
fn stamps_of_another_client_or_an_earlier_view_are_ignored() {
    let mut world = World::new(43);
    let entity = world.spawn(AVATAR, -20.0, Some(1));
    world.run(500);
    let (view, items) = (world.client(1).view, world.client(1).items.len());
    for (session, view) in [(1, view), (1, view - 1), (7, view + 5)] {
        world.send_to_home(HomeInput::Stamps {
            session: SessionId(session),
            entity,
            view,
            known: Known {
                seen: vec![Stamp::new(EntityId(999), annals_ids::HistoryNumber(3))],
                ..Known::default()
            },
            movements: world.movements,
        });
        world.run(500);
    }
    assert_eq!(world.client(1).items.len(), items);
    act(&mut world, entity, 0);
    world.run(300);
    check(&world);
}

/// 20,000 bit/s leave 222 bytes of a tick for anything but headers.
#[test]
fn bandwidth_limits_updates_nearest_first_and_all_arrive() {
    fill_lines(Movements::Plain, 20_000, 222);
}

/// 4,800 bit/s leave 32 bytes, which is too little for the movements of 60 entities even in the compact format.
#[test]
fn bandwidth_limits_hold_for_predicted_movements() {
    let predicted = World::new(1).movements;
    fill_lines(predicted, 4_800, 32);
}

/// Sixty entities move and change in view of a client with this downstream limit.
fn fill_lines(movements: Movements, bits: u32, per_tick: usize) {
    let mut world = World::new(46);
    world.movements = movements;
    world.limit(bits);
    world.spawn(AVATAR, -20.0, Some(1));
    let others: Vec<EntityId> = (0..60u8)
        .map(|at| world.spawn(AVATAR, -20.0 + 0.6 * f32::from(at), Some(u64::from(at) + 2)))
        .collect();
    world.run(30_000);
    world.clients.values_mut().for_each(|client| client.moves.clear());
    let before = world.client(1).bytes;
    let ticks = 150;
    for round in 0..ticks {
        for (at, other) in (0..60u8).zip(&others) {
            let step = if round % 2 == 0 { 0.4 } else { -0.4 };
            world.walk(u64::from(at) + 2, -20.0 + 0.6 * f32::from(at), step);
            if (round + usize::from(at)).is_multiple_of(50) {
                act(&mut world, *other, 0);
            }
        }
        world.run(100);
    }
    let client = world.client(1);
    let shown = client.bytes - before;
    assert!(
        shown <= (ticks + 3) * per_tick + client.largest,
        "{shown} bytes in {ticks} ticks"
    );
    assert!(
        shown > ticks * per_tick * 9 / 10,
        "{shown} bytes in {ticks} ticks: there was more to show"
    );
    let moves = |at: std::ops::Range<usize>| -> usize { others[at].iter().map(|other| client.moves[other]).sum() };
    let (near, middle, far) = (moves(0..20), moves(20..40), moves(40..60));
    assert!(near > middle && middle > far && far > 0, "{near}, {middle}, {far}");
    assert!(
        others.iter().all(|other| client.moves.contains_key(other)),
        "an entity is starved"
    );
    world.set_lively(false);
    world.run(60_000);
    check(&world);
}

/// Has an entity change a property that others see only from near by.
fn set(world: &mut World, entity: EntityId, property: &'static str, value: i64) {
    let errand = move |context: &mut Context<'_>| context.set(property, Value::Int(value)).expect("the method exists");
    run(world, entity, Box::new(errand));
}

/// The same for an array.
fn append(world: &mut World, entity: EntityId, property: &'static str, value: i64) {
    let errand = move |context: &mut Context<'_>| {
        let appended = context.append(property, &Path::default(), Value::Int(value));
        appended.expect("the method exists");
    };
    run(world, entity, Box::new(errand));
}

fn run(world: &mut World, entity: EntityId, errand: Errand) {
    *world.game.errand.lock().expect("the lock is not poisoned") = Some(errand);
    act(world, entity, ERRAND);
    world.run(300);
}

#[test]
fn details_are_sent_within_their_distance_and_refreshed_on_approach() {
    let mut world = World::of(47, detailed_schema());
    world.spawn(AVATAR, -40.0, Some(1));
    let other = world.spawn(AVATAR, -15.0, Some(2));
    world.run(500);
    let has = |world: &World| {
        let client = world.client(1);
        let entity_type = world.cx(WEST).type_of(AVATAR).expect("it is there").clone();
        let held = |name| {
            let property = entity_type.property_named(name).expect("it is there").index;
            client.known[&other].property(&entity_type, property)
        };
        (
            held("badge"),
            held("scar"),
            client.known[&other].finer.len(),
            client.detailed,
        )
    };
    let int = Value::Int;
    set(&mut world, other, "badge", 1);
    set(&mut world, other, "scar", 2);
    assert_eq!(has(&world), (int(0), int(0), 2, 0));
    for (x, expected) in [
        (-25.1, (int(1), int(0), 1, 1)),
        (-35.1, (int(1), int(2), 0, 2)),
        // Within the hysteresis of the nearest level, then beyond it and back: nothing has changed.
        (-33.5, (int(1), int(2), 0, 2)),
        (-32.5, (int(1), int(2), 1, 2)),
        (-36.0, (int(1), int(2), 0, 2)),
        (-32.0, (int(1), int(2), 1, 2)),
    ] {
        world.walk(2, x, 0.0);
        world.run(500);
        assert_eq!(has(&world), expected, "at {x}");
        check(&world);
    }
    set(&mut world, other, "scar", 3);
    set(&mut world, other, "badge", 4);
    assert_eq!(has(&world), (int(4), int(2), 1, 2));
    // A new view begins with what the client reports that it has.
    world.begin_view(SessionId(1));
    world.run(500);
    assert_eq!(has(&world), (int(4), int(2), 1, 2));
    world.walk(2, -39.0, 0.0);
    world.run(500);
    assert_eq!(has(&world), (int(4), int(3), 0, 3));
    // Far away at once, and back: the client is sent what changed meanwhile, and nothing else.
    world.walk(2, -10.0, 0.0);
    world.run(500);
    set(&mut world, other, "scar", 5);
    world.walk(2, -39.0, 0.0);
    world.run(500);
    assert_eq!(has(&world), (int(4), int(5), 0, 4));
    assert_eq!(world.client(1).refreshes, 1);
    check(&world);
}

#[test]
fn detail_changes_before_the_refresh_are_not_resent() {
    let mut world = World::of(50, detailed_schema());
    world.spawn(AVATAR, -40.0, Some(1));
    let other = world.spawn(AVATAR, -30.0, Some(2));
    world.run(500);
    for round in 0..3 {
        append(&mut world, other, "wounds", round);
        world.walk(2, -38.0, 0.0);
        world.run(500);
        append(&mut world, other, "wounds", 10 + round);
        check(&world);
        world.walk(2, -30.0, 0.0);
        world.run(500);
    }
}

#[test]
fn a_returning_entity_is_shown_with_its_differences() {
    let mut world = World::of(48, detailed_schema());
    world.spawn(AVATAR, -80.0, Some(1));
    let other = world.spawn(AVATAR, -78.0, Some(2));
    world.run(500);
    set(&mut world, other, "scar", 1);
    let away = |world: &mut World, meanwhile: i64| {
        world.walk(2, -20.0, 0.0);
        world.run(500);
        assert!(!world.client(1).known.contains_key(&other));
        set(world, other, "badge", meanwhile);
        world.begin_view(SessionId(1));
        world.run(300);
        world.walk(2, -78.0, 0.0);
        world.run(500);
        check(world);
    };
    for meanwhile in 1..4 {
        away(&mut world, meanwhile);
    }
    let received = received(&world, 1, other);
    assert_eq!(
        received.iter().filter(|kind| **kind == "enter").count(),
        1,
        "{received:?}"
    );
    assert_eq!(
        received.iter().filter(|kind| **kind == "return").count(),
        3,
        "{received:?}"
    );
    assert!(!received.contains(&"refresh"), "{received:?}");
}

#[test]
fn details_are_correct_under_movement_and_crashes() {
    let mut world = World::of(49, detailed_schema());
    let count = 12u8;
    let all: Vec<EntityId> = (0..count)
        .map(|at| world.spawn(AVATAR, -30.0 + 5.0 * f32::from(at), Some(u64::from(at) + 1)))
        .collect();
    world.run(500);
    for round in 0..8 {
        world.set_lively(true);
        for step in 0..10 {
            for session in 1..=u64::from(count) {
                let (x, z) = (world.roll(90) as f32 - 40.0, world.roll(30) as f32);
                world.walk(session, x, z);
            }
            let entity = all[world.roll(all.len() as u64) as usize];
            act(&mut world, entity, ALTER);
            if step == 5 && round % 4 == 3 {
                world.crash(WEST);
                world.run(1_000);
                world.start(WEST);
            }
            world.run(150);
        }
        world.set_lively(false);
        world.run(8_000);
        check(&world);
    }
    let detailed: usize = world.clients.values().map(|client| client.detailed).sum();
    let items = world.clients.values().flat_map(|client| &client.items);
    let returned = items.filter(|item| matches!(item, ViewItem::Return { .. })).count();
    assert!(
        detailed > 30 && returned > 10,
        "{detailed} details, {returned} came back"
    );
}
