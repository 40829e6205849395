//! Entities that cross from one owner to another.

use annals_cell::CellInput;
use annals_def::{DataType, Distribution, Property, Value};
use annals_event::{Body, Call};
use annals_ids::{EntityId, MemberId, OwnerId};
use annals_node::outbound::answered;
use annals_wire::{
    SpaceMap,
    load::{ENTITY_UNITS, WITNESS_UNITS},
};

use crate::{
    game::{ACT, AVATAR, ERRAND, Errand, JUMP, NOTE, STATUE},
    oracle::{check, check_logs},
    world::{EAST, MIDDLE, SPACE, WEST, World, creation, place},
};

/// Has `entity` act and be called while its client walks from `from` to `to` in `steps` steps.
fn stroll(world: &mut World, entity: EntityId, (from, to): (f32, f32), steps: u8) {
    for step in 1..=steps {
        let x = from + (to - from) * f32::from(step) / f32::from(steps);
        world.walk(1, x, 0.0);
        world.call(entity, NOTE, Vec::new());
        world.call(entity, ACT, vec![Value::UInt((step % 10).into())]);
        world.run(50);
    }
}

#[test]
fn a_hand_over_keeps_all_state_and_is_invisible_to_the_client() {
    let mut world = World::new(11);
    let entity = world.spawn(AVATAR, -30.0, Some(1));
    let watched = world.spawn(AVATAR, 5.0, None);
    world.run(500);
    stroll(&mut world, entity, (-30.0, 25.0), 60);
    let refreshes = world.client(1).refreshes;
    world.run(3_000);
    assert_eq!(world.holders(entity), [MIDDLE]);
    assert_eq!(world.real(entity).timers.len(), 1);
    check(&world);
    let client = world.client(1);
    assert!(client.known.contains_key(&watched));
    assert_eq!(client.refreshes, refreshes, "the new owner sends only what is missing");
    assert_eq!(refreshes, 0, "everything was seen from its beginning");
}

#[test]
fn a_call_outside_goes_on_after_a_hand_over() {
    let mut world = World::new(13);
    let entity = world.spawn(AVATAR, -30.0, Some(1));
    world.run(500);
    let errand: Errand = Box::new(|context| {
        let called = context.call_outside("shop", vec![7], 60_000, (5, Vec::new()));
        called.expect("it is valid");
    });
    *world.game.errand.lock().expect("the lock is not poisoned") = Some(errand);
    world.call(entity, ACT, vec![Value::UInt(ERRAND)]);
    world.run(500);
    let call = world.outbound.first().expect("it is sent").clone();
    stroll(&mut world, entity, (-30.0, 25.0), 60);
    assert_eq!(world.holders(entity), [MIDDLE]);
    world.outbound.clear();
    world.run(9_000);
    assert!(world.outbound.contains(&call), "the new owner sends the same call");
    for _ in 0..2 {
        world.answer_outbound(&call);
    }
    world.run(1_000);
    let replies = world.game.replies.lock().expect("the lock is not poisoned").clone();
    assert_eq!(replies, [(entity, 5, answered(200, Vec::new()))]);
    world.outbound.clear();
    world.run(9_000);
    assert!(world.outbound.is_empty());
    check_logs(&world);
}

#[test]
fn an_entity_on_the_boundary_stays_where_it_is() {
    let mut world = World::new(12);
    let entity = world.spawn(AVATAR, -3.0, Some(1));
    world.run(300);
    for step in 0..30u8 {
        world.walk(1, if step % 2 == 0 { 4.9 } else { -4.9 }, 0.0);
        world.run(100);
    }
    assert_eq!(world.holders(entity), [WEST]);
    assert_eq!(world.role(WEST).counters().offloaded, 0);
    world.walk(1, 5.1, 0.0);
    world.run(500);
    assert_eq!(world.holders(entity), [MIDDLE]);
}

/// At every moment around a hand-over, either side dies, with or without its last append in the log.
#[test]
fn a_hand_over_survives_the_death_of_either_side_at_any_moment() {
    let mut moved = 0;
    for (seed, after) in (0..130).step_by(5).enumerate() {
        for victim in [WEST, MIDDLE] {
            let mut world = World::new(seed as u64);
            let entity = world.spawn(AVATAR, -3.0, Some(1));
            world.run(500);
            world.walk(1, 20.0, 0.0);
            world.call(entity, NOTE, Vec::new());
            world.run(after);
            world.crash(victim);
            world.call(entity, NOTE, Vec::new());
            world.run(700);
            world.start(victim);
            world.call(entity, NOTE, Vec::new());
            world.run(15_000);
            check(&world);
            moved += usize::from(world.holders(entity) == [MIDDLE]);
        }
    }
    assert!(moved > 20, "only {moved} of these were handed over");
}

#[test]
fn calls_wait_during_a_hand_over_and_the_entity_is_not_reported_lost() {
    let mut world = World::new(13);
    let entity = world.spawn(AVATAR, -3.0, Some(1));
    world.run(500);
    world.cut_off = Some(MIDDLE);
    world.walk(1, 20.0, 0.0);
    world.run(500);
    assert_eq!(world.holders(entity), []);
    assert_eq!(world.live(WEST).state().departing.len(), 1);
    for _ in 0..5 {
        world.call(entity, NOTE, Vec::new());
        world.run(300);
    }
    assert_eq!(world.holders(entity), []);
    world.cut_off = None;
    world.run(12_000);
    assert_eq!(world.holders(entity), [MIDDLE]);
    check(&world);
}

#[test]
fn an_entity_after_several_hand_overs_is_callable_and_ends_everywhere() {
    let mut world = World::new(14);
    let entity = world.spawn(AVATAR, -20.0, Some(1));
    world.run(500);
    stroll(&mut world, entity, (-20.0, 80.0), 60);
    world.run(1_000);
    assert_eq!(world.holders(entity), [EAST]);
    stroll(&mut world, entity, (80.0, -20.0), 60);
    world.run(3_000);
    assert_eq!(world.holders(entity), [WEST]);
    check(&world);
    world.send_to_home(crate::home::HomeInput::DestroyCell(entity));
    world.run(6_000);
    assert_eq!(world.holders(entity), []);
    check_logs(&world);
    assert!(world.role(MIDDLE).ghosts().iter().next().is_none());
}

#[test]
fn a_teleported_entity_arrives_and_its_client_is_notified() {
    let mut world = World::new(15);
    let entity = world.spawn(AVATAR, -20.0, Some(1));
    world.run(500);
    world.walk(1, -19.0, 0.0);
    world.run(200);
    world.call(entity, JUMP, vec![Value::Float32(140.0)]);
    // The client has not received that yet, and reports its old position.
    for _ in 0..3 {
        world.walk(1, -18.0, 0.0);
        world.run(1);
    }
    world.run(2_000);
    assert_eq!(world.holders(entity), [EAST]);
    let shown = world.client(1).known[&entity].position;
    assert_eq!((shown.x, shown.z), (140.0, 0.0));
    world.walk(1, 141.0, 0.0);
    world.run(500);
    assert_eq!(
        world.cx(EAST).place(entity),
        Some(place(141.0, 0.0)),
        "it is believed again"
    );
    check(&world);
}

#[test]
fn the_next_owner_repeats_an_unconfirmed_teleport() {
    let mut world = World::new(16);
    let entity = world.spawn(AVATAR, -20.0, Some(1));
    world.run(500);
    world.call(entity, JUMP, vec![Value::Float32(40.0)]);
    world.run(2);
    // Everything that the first owner sent is lost.
    let lost = world.clients.remove(&annals_ids::SessionId(1)).expect("it is there");
    world.run(1_000);
    assert_eq!(world.holders(entity), [MIDDLE]);
    world.clients.insert(lost.session, lost);
    for _ in 0..3 {
        world.walk(1, -20.0, 0.0);
        world.run(50);
    }
    world.begin_view(annals_ids::SessionId(1));
    for _ in 0..3 {
        world.walk(1, -20.0, 0.0);
        world.run(1);
    }
    world.run(1_000);
    let shown = world.client(1).known[&entity].position;
    assert_eq!((shown.x, shown.z), (40.0, 0.0));
    assert_eq!(world.cx(MIDDLE).place(entity), Some(place(40.0, 0.0)));
}

#[test]
fn a_cell_home_knows_its_entitys_owner_after_a_take_over() {
    let mut world = World::new(17);
    world.spawn_creature(-10.0);
    world.run(300);
    let entity = *world.live(WEST).state().entities.keys().next().expect("it was made");
    // Behaviour moves it across.
    world.set_lively(true);
    for _ in 0..200 {
        if world.holders(entity) == [MIDDLE] {
            break;
        }
        world.run(500);
    }
    world.set_lively(false);
    assert_eq!(world.holders(entity), [MIDDLE], "it wandered across");
    world.run(300);
    assert_eq!(world.live(WEST).state().placed.get(&entity), Some(&MIDDLE));
    world.crash(WEST);
    world.run(500);
    world.start(WEST);
    world.run(1_000);
    assert_eq!(world.cx(WEST).placed_for_client(entity), Some(MIDDLE));
}

#[test]
fn the_log_records_the_path_of_an_entity() {
    let mut world = World::new(18);
    let entity = world.spawn(AVATAR, -3.0, Some(1));
    world.run(300);
    world.walk(1, 20.0, 0.0);
    world.run(1_000);
    let said = |id: OwnerId| -> Vec<&'static str> {
        let events = world.cells[&id].events();
        let about = events.iter().filter(|event| match &event.body {
            Body::Called { call, .. } => matches!(call, Call::Onload { .. } | Call::Arrived { .. }),
            Body::Offloaded { .. } | Body::Onloaded { .. } | Body::Departed { .. } => true,
            _ => false,
        });
        about.map(|event| event.body.name()).collect()
    };
    assert_eq!(said(WEST), ["offloaded", "called", "departed"]);
    assert_eq!(said(MIDDLE), ["onloaded", "called"]);
    let places: Vec<Body> = world.cells[&WEST]
        .events()
        .into_iter()
        .map(|event| event.body)
        .collect();
    let moved = places.iter().position(|body| *body == Body::Moved(place(20.0, 0.0)));
    let offloaded = places.iter().position(|body| matches!(body, Body::Offloaded { .. }));
    assert!(moved < offloaded, "it leaves from where it is");
    assert_eq!(world.real(entity).properties[&MemberId(0)], Value::Int(0));
}

#[test]
fn an_onload_without_cell_part_or_of_unknown_type_is_refused() {
    use annals_event::{BaseImage, CellImage, Image, Link, PartImage, Trace};
    use annals_ids::{Address, CallNumber, Epoch, TypeId};
    use annals_wire::bus::{CallMessage, Envelope, Message};

    let mut world = World::new(19);
    let good = creation(EntityId(5), AVATAR, 5.0);
    let cell = |place| {
        PartImage::Cell(CellImage {
            place,
            ..CellImage::default()
        })
    };
    let mut nowhere = good.place;
    nowhere.position.z = f32::INFINITY;
    let images = [
        Image::new(TypeId(77), good.home, &[], cell(good.place)),
        Image::new(AVATAR, good.home, &[], PartImage::Base(BaseImage::default())),
        Image::new(AVATAR, good.home, &[], cell(nowhere)),
    ];
    let now = world.at();
    for (number, image) in (1..).zip(images) {
        let call = CallMessage {
            link: Link {
                from: Address::Owner(EAST),
                to: Address::Owner(MIDDLE),
            },
            from_home: EAST,
            to_home: MIDDLE,
            number: CallNumber(number),
            is_oldest: false,
            trace: Trace::default(),
            call: Call::Onload {
                entity: EntityId(5),
                image: Box::new(image),
            },
        };
        let envelope = Envelope {
            from: EAST,
            epoch: Epoch(1),
            message: Message::Call(call),
        };
        let cell = world.cells.get_mut(&MIDDLE).expect("it is there");
        cell.handle(now, annals_node::Input::Bus(envelope), 1_000);
    }
    assert_eq!(world.role(MIDDLE).counters().refused, 3);
    assert!(world.live(MIDDLE).state().entities.is_empty());
}

#[test]
fn an_entity_with_waiting_calls_is_not_handed_over() {
    use std::sync::atomic::Ordering;

    let mut world = World::new(20);
    let entity = world.spawn(AVATAR, -3.0, Some(1));
    world.spawn(AVATAR, -4.0, None);
    world.run(500);
    world.game.pestered.store(entity.0, Ordering::Relaxed);
    let mut to = 20.0;
    for _ in 0..6 {
        let holder = world.holders(entity)[0];
        // While the owner does not notice time, both a tick and a timer become due: then the timer's call and the
        // hand-over share an input.
        world.drowsy = Some(holder);
        world.walk(1, to, 0.0);
        world.run(350);
        world.drowsy = None;
        world.run(2_000);
        to = if to > 0.0 { -20.0 } else { 20.0 };
    }
    world.game.pestered.store(0, Ordering::Relaxed);
    world.run(2_000);
    assert!(world.role(WEST).counters().offloaded >= 3);
    let calls = i64::try_from(world.game.last.load(Ordering::Relaxed)).expect("there are few");
    let notes = Value::Sequence((1..=calls).map(Value::Int).collect());
    assert_eq!(world.real(entity).properties[&MemberId(5)], notes);
}

#[test]
fn the_departure_from_home_is_logged_with_the_hand_over() {
    let mut world = World::new(21);
    world.spawn_creature(-2.0);
    world.run(300);
    let entity = *world.live(WEST).state().entities.keys().next().expect("it was made");
    world.cut_off = Some(WEST);
    world.set_lively(true);
    for _ in 0..20_000 {
        if world.holders(entity).is_empty() {
            break;
        }
        world.run(10);
    }
    world.set_lively(false);
    world.run(100);
    let state = world.cells[&WEST].folded();
    assert_eq!(state.departing.len(), 1, "it is under way");
    assert_eq!(state.placed.get(&entity), Some(&MIDDLE));
}

#[test]
fn owners_with_different_maps_do_not_toss_an_entity() {
    let mut world = World::new(22);
    let entity = world.spawn(AVATAR, -20.0, Some(1));
    world.run(500);
    // Middle does not know that it is responsible for what is west of it.
    let mut map = world.map.clone();
    map.version += 1;
    let cells = &mut map.spaces.get_mut(&crate::world::SPACE).expect("it is there").cells;
    (cells[0].east, cells[1].west) = (-100.0, -100.0);
    world.send_to_cell(WEST, annals_cell::CellInput::Map(map.clone()));
    world.run(5_000);
    let tossed = world.role(WEST).counters().offloaded;
    assert!((1..=4).contains(&tossed), "it was handed over {tossed} times in 5 s");
    world.send_to_cell(MIDDLE, annals_cell::CellInput::Map(map));
    world.run(3_000);
    assert_eq!(world.holders(entity), [MIDDLE]);
    assert!(world.role(WEST).counters().offloaded <= tossed + 1);
    check_logs(&world);
}

#[test]
fn forwarded_calls_do_not_multiply() {
    for seed in 0..6 {
        let mut world = World::new(seed);
        let entity = world.spawn(AVATAR, -20.0, Some(1));
        world.run(500);
        world.faults.delay = 60_000;
        let mut to = 20.0;
        for _ in 0..6 {
            world.walk(1, to, 0.0);
            for _ in 0..15 {
                (0..4).for_each(|_| world.call(entity, NOTE, Vec::new()));
                let before = world.posted;
                world.run(100);
                let posted = world.posted - before;
                assert!(posted < 1_500, "seed {seed}: {posted} messages in a tenth of a second");
            }
            to = if to > 0.0 { -20.0 } else { 20.0 };
        }
        world.faults = crate::world::CALM;
        world.run(10_000);
        println!("seed {seed}");
        check(&world);
    }
}

#[test]
fn a_home_ignores_outdated_locations() {
    use annals_node::{Input, Output};
    use annals_wire::bus::{Envelope, Message};

    let mut world = World::new(23);
    let entity = world.spawn(AVATAR, -20.0, None);
    world.run(500);
    world.cut_off = Some(WEST);
    (0..20).for_each(|_| world.call(entity, NOTE, Vec::new()));
    world.run(20);
    let (now, epoch) = (world.at(), world.cx(WEST).epoch());
    for _ in 0..10 {
        let message = Message::Moved { entity, to: MIDDLE };
        let envelope = Envelope {
            from: WEST,
            epoch,
            message,
        };
        let said = world.home.handle(now, Input::Bus(envelope), 1_000);
        let calls = said
            .iter()
            .filter(|output| matches!(output, Output::Send { .. }))
            .count();
        assert_eq!(calls, 0, "it knows that the entity is in the west");
    }
}

/// The map with another boundary between West and Middle, of this version.
fn redrawn(world: &World, version: u64, edge: f32) -> SpaceMap {
    let mut map = SpaceMap {
        version,
        ..world.map.clone()
    };
    let space = map.spaces.get_mut(&SPACE).expect("the space");
    (space.cells[0].east, space.cells[1].west) = (edge, edge);
    map
}

#[test]
fn owners_with_different_maps_do_not_exchange_an_entity_repeatedly() {
    for seed in 0..5 {
        let mut world = World::new(seed);
        let entities: Vec<EntityId> = (0..3).map(|nth| world.spawn(AVATAR, 8.0 + nth as f32, None)).collect();
        world.run(500);
        let handed = |world: &World| {
            let sent = [WEST, MIDDLE].map(|owner| world.role(owner).counters().offloaded);
            sent[0] + sent[1]
        };
        // For MIDDLE these are in the west now; WEST does not have that map, and uses the old one.
        let map = redrawn(&world, 2, 20.0);
        world.send_to_cell(MIDDLE, CellInput::Map(map));
        world.run(60_000);
        let tossed = handed(&world);
        println!(
            "seed {seed}: {tossed} hand-overs of {} entities in a minute",
            entities.len()
        );
        assert!(tossed >= 3, "no entity was handed over: the maps do not differ");
        assert!(
            tossed <= 10 * 3,
            "seed {seed}: {tossed} hand-overs of three entities in a minute"
        );
        check(&world);

        // As soon as both have one map, every entity goes where that says, without waiting for the end of a stay.
        let map = redrawn(&world, 3, 20.0);
        world.map = map.clone();
        for owner in [WEST, MIDDLE, EAST] {
            world.send_to_cell(owner, CellInput::Map(map.clone()));
        }
        world.run(2_000);
        for entity in entities {
            assert_eq!(world.holders(entity), [WEST], "seed {seed}");
        }
        let settled = handed(&world);
        world.run(10_000);
        assert_eq!(handed(&world), settled, "seed {seed}");
        check(&world);
    }
}

#[test]
fn a_survey_reports_entities_and_pending_hand_overs() {
    let mut world = World::new(3);
    for x in [10.0, 20.0, 30.0, 40.0] {
        world.spawn(AVATAR, x, None);
    }
    world.spawn(AVATAR, 50.0, Some(1));
    world.run(1_000);
    let survey = |world: &World| {
        world.cells[&MIDDLE]
            .owner
            .as_ref()
            .expect("it is up")
            .survey()
            .expect("a cell has one")
    };
    let space = |world: &World| survey(world).spaces[&SPACE].clone();
    let before = space(&world);
    assert_eq!((before.entities, before.witnesses), (5, 1));
    assert!((before.units - (5.0 * ENTITY_UNITS + WITNESS_UNITS)).abs() < 1e-9);
    assert_eq!(before.x.ends(), Some((10.0, 50.0)));
    assert!(
        (before.x.below(45.0) - 4.0 / 15.0).abs() < 0.1,
        "{}",
        before.x.below(45.0)
    );
    assert_eq!(survey(&world).map, 1);

    // Those at 10 and 20 are WEST's now; 27 is not deep enough in the west to be handed over.
    world.cut_off = Some(WEST);
    let map = redrawn(&world, 2, 32.0);
    world.send_to_cell(MIDDLE, CellInput::Map(map));
    let after = space(&world);
    assert_eq!(after.entities, 5, "no entity has left yet");
    assert!(
        (after.leaving[&WEST] - 2.0 * ENTITY_UNITS).abs() < 1e-9,
        "{:?}",
        after.leaving
    );
    assert_eq!(after.x.ends(), Some((30.0, 50.0)));
    assert_eq!(survey(&world).map, 2);
}

/// An entity that is too large for one message stays where it is, and holds up no other.
#[test]
fn an_entity_above_the_size_of_a_message_stays_beyond_the_border() {
    for (bytes, is_large) in [(4 << 20, true), ((4 << 20) - 4_096, false)] {
        let baggage = Property {
            default: Value::Bytes(vec![7; bytes]),
            ..Property::new("baggage", DataType::Blob, Distribution::CellPrivate)
        };
        let mut world = World::of(31, crate::game::schema_with(&[baggage]));
        let (laden, light) = (world.spawn(AVATAR, -20.0, None), world.spawn(STATUE, -20.0, None));
        world.run(500);
        for entity in [laden, light] {
            world.call(entity, JUMP, vec![Value::Float32(20.0)]);
        }
        world.run(8_000);
        assert_eq!(world.holders(light), [MIDDLE]);
        assert_eq!(
            world.holders(laden),
            [if is_large { WEST } else { MIDDLE }],
            "{bytes} B"
        );
        let place = world.real(laden).cell().expect("a cell part").place;
        assert!(place.position.x > 10.0, "it went on: {place:?}");
    }
}
