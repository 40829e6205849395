//! Creation and end of cell parts, and the notification of their homes.

use annals_cell::CellInput;
use annals_def::Value;
use annals_event::{Body, Call, CellCreation, Driver, Link, Place, Trace};
use annals_ids::{Address, CallNumber, EntityId, HistoryNumber, Mailbox, MemberId, OwnerId, Part, TypeId};
use annals_node::{Input, Output, Request};
use annals_wire::bus::{CallMessage, Envelope, GhostImage, GhostMessage, Message};

use crate::{
    game::{ACCOUNT, ACT, AVATAR, CREATURE, DIE, ERRAND, Errand, NOTE, STATUE},
    home::HomeInput,
    world::{EAST, HOME, MIDDLE, WEST, World, creation, place},
};

fn cell_of(world: &World, entity: EntityId) -> Option<OwnerId> {
    world.home.owner.as_ref()?.state().entities[&entity].base()?.cell
}

#[test]
fn a_cell_part_is_created_at_its_place_and_its_home_is_notified() {
    let mut world = World::new(1);
    let entity = world.spawn(AVATAR, 70.0, None);
    world.run(200);
    assert_eq!(world.holders(entity), [EAST]);
    assert_eq!(cell_of(&world, entity), Some(EAST));
    let timers = &world.real(entity).timers;
    assert_eq!(timers.len(), 1, "behaviour was notified of the creation");
}

#[test]
fn an_ended_cell_part_is_removed_and_its_home_is_notified() {
    let mut world = World::new(2);
    let (asked, died) = (world.spawn(AVATAR, -10.0, None), world.spawn(AVATAR, -12.0, None));
    world.run(200);
    world.send_to_home(HomeInput::DestroyCell(asked));
    world.call(died, DIE, Vec::new());
    world.run(500);
    for entity in [asked, died] {
        assert_eq!(world.holders(entity), []);
        assert_eq!(cell_of(&world, entity), None);
    }
    let state = world.live(WEST).state();
    assert!(
        state.estates.is_empty(),
        "what it said last was confirmed: {:?}",
        state.estates
    );
}

/// The state of a cell part returns to its base part only once all its calls are taken: the next cell part continues
/// their numbers (C17). Neither the end of its owner's process nor a second part of the same entity changes that.
#[test]
fn the_state_of_an_ended_cell_part_returns_once_its_calls_are_taken() {
    let mut world = World::new(7);
    let (caller, receiver) = (world.spawn(AVATAR, -10.0, None), world.spawn(AVATAR, 70.0, None));
    world.run(500);
    world.crash(EAST);
    let to = Mailbox {
        entity: receiver,
        home: HOME,
        type_id: AVATAR,
        part: Part::Cell,
    };
    let errand: Errand = Box::new(move |context| {
        context.set("strength", Value::Int(7)).unwrap();
        for number in 1..=3 {
            context.call(to, "note", vec![Value::Int(number)]).unwrap();
        }
        let entity = context.entity();
        context.request(Request::Destroy { entity }).unwrap();
    });
    *world.game.errand.lock().unwrap() = Some(errand);
    world.call(caller, ACT, vec![Value::UInt(ERRAND)]);
    world.run(1_000);
    let returned = |world: &World| world.home.owner.as_ref().unwrap().role().returned.clone();
    assert_eq!((world.holders(caller), cell_of(&world, caller)), (Vec::new(), None));
    assert_eq!(returned(&world), [], "calls of it are under way");
    world.crash(WEST);
    world.run(500);
    world.start(WEST);
    world.run(3_000);
    assert_eq!(world.live(WEST).state().ending.len(), 1);

    world.start(EAST);
    world.run(15_000);
    let noted = &world.real(receiver).properties[&MemberId(5)];
    assert_eq!(*noted, Value::Sequence((1..=3).map(Value::Int).collect()));
    let [(entity, former)] = &returned(&world)[..] else {
        panic!("{:?}", returned(&world))
    };
    assert_eq!(*entity, caller);
    assert_eq!(former.links.sent[&Address::Cell(receiver)].last, CallNumber(3));
    assert!(former.history.0 > 0, "its change had a history number");
    let west = world.live(WEST).state();
    assert!(west.ending.is_empty() && west.estates.is_empty());

    // The next one continues there.
    let creation = CellCreation {
        home: HOME,
        former: Some(Box::new(former.clone())),
        ..creation(caller, AVATAR, 40.0)
    };
    let owner = world.home.owner.as_ref().unwrap().state().entities[&caller].home;
    assert_eq!(owner, HOME);
    world.send_to_home(HomeInput::CreateBaseless {
        entity: caller,
        creation: Box::new(creation),
    });
    world.run(500);
    assert_eq!(world.holders(caller), [MIDDLE]);
    let image = world.real(caller);
    assert_eq!(image.links.next_call(Address::Cell(receiver)), CallNumber(4));
    assert!(image.history >= former.history && image.history_since(HistoryNumber(0)).is_none());
}

/// An outbound call that nobody answers keeps the state of an ended cell part until its deadline, across a take-over.
#[test]
fn an_outbound_call_delays_the_return_of_a_cell_part_until_its_deadline() {
    for is_answered in [false, true] {
        let mut world = World::new(8);
        let caller = world.spawn(AVATAR, -10.0, None);
        world.run(500);
        let errand: Errand = Box::new(move |context| {
            for timeout in [4_000, 6_000] {
                context.call_outside("shop", vec![7], timeout, (5, Vec::new())).unwrap();
            }
            let entity = context.entity();
            context.request(Request::Destroy { entity }).unwrap();
        });
        *world.game.errand.lock().unwrap() = Some(errand);
        world.call(caller, ACT, vec![Value::UInt(ERRAND)]);
        world.run(1_000);
        let returned = |world: &World| world.home.owner.as_ref().unwrap().role().returned.len();
        assert_eq!((world.holders(caller), returned(&world)), (Vec::new(), 0));
        world.crash(WEST);
        world.run(500);
        world.start(WEST);
        world.run(2_000);
        assert_eq!(returned(&world), 0, "the service may still answer");
        if is_answered {
            let calls = std::mem::take(&mut world.outbound);
            assert!(!calls.is_empty(), "they are performed again");
            calls.iter().for_each(|call| world.answer_outbound(call));
            world.run(700);
        } else {
            world.run(5_000);
        }
        assert_eq!(returned(&world), 1, "is answered: {is_answered}");
        assert!(world.live(WEST).state().ending.is_empty());
    }
}

#[test]
fn a_failed_creation_is_reported_as_ended() {
    let mut world = World::new(3);
    let mut lost = place(0.0, 0.0);
    lost.position.y = f32::NAN;
    let wrong = vec![(MemberId(0), Value::Int(i64::MAX))];
    let strange = TypeId(99);
    let cases = [
        (creation(EntityId(1), strange, 5.0), "an unknown type"),
        (creation(EntityId(2), ACCOUNT, 5.0), "a type without a cell part"),
        (
            annals_event::CellCreation {
                properties: wrong,
                ..creation(EntityId(3), CREATURE, 5.0)
            },
            "a value that does not fit",
        ),
        (
            annals_event::CellCreation {
                place: lost,
                ..creation(EntityId(4), CREATURE, 5.0)
            },
            "an invalid place",
        ),
    ];
    for (creation, what) in cases {
        let entity = creation.entity;
        world.send_to_home(HomeInput::CreateBaseless {
            entity,
            creation: Box::new(creation),
        });
        world.run(100);
        assert_eq!(world.holders(entity), [], "{what}");
        let home = world.home.owner.as_ref().expect("it is up").role();
        assert_eq!(home.lost.last(), Some(&entity), "{what}");
    }
    world.send_to_cell(
        MIDDLE,
        CellInput::Create {
            type_id: CREATURE,
            place: lost,
            properties: Vec::new(),
        },
    );
    assert_eq!(world.role(MIDDLE).counters().denied, 5);
    for event in world.cells.values().flat_map(crate::process::Process::events) {
        if let Body::CellCreated(creation) = event.body {
            assert!(creation.place.is_sound(), "no log has an invalid place: {creation:?}");
        }
    }
}

#[test]
fn the_home_tracks_an_entity_without_a_base() {
    let mut world = World::new(4);
    let entity = EntityId(42);
    let creation = Box::new(creation(entity, CREATURE, 5.0));
    world.send_to_home(HomeInput::CreateBaseless {
        entity,
        creation: creation.clone(),
    });
    world.run(300);
    let placed = |world: &World| {
        world
            .home
            .owner
            .as_ref()
            .expect("it is up")
            .state()
            .placed
            .get(&entity)
            .copied()
    };
    assert_eq!(placed(&world), Some(MIDDLE));

    world.send_to_home(HomeInput::CreateBaseless { entity, creation });
    world.run(300);
    let created = world.cells[&MIDDLE].events();
    let created = created
        .iter()
        .filter(|event| matches!(event.body, Body::CellCreated(_)));
    assert_eq!(created.count(), 1, "one that exists is not made again");
    assert_eq!(world.real(entity).home, HOME);
}

/// Whatever arrives late at the home of an entity that has ended, the home answers that it is gone (C6): a route that
/// it restored would send callers in a circle.
#[test]
fn a_home_answers_that_an_entity_is_gone_whatever_arrives_late() {
    let mut world = World::new(6);
    let witness = world.spawn(AVATAR, 10.0, None);
    world.spawn_creature(5.0);
    world.run(500);
    let is_creature = |(entity, (owner, _)): (EntityId, (OwnerId, Place))| {
        (owner == MIDDLE && world.real(entity).home == MIDDLE).then_some(entity)
    };
    let entity = world.reals().into_iter().find_map(is_creature).expect("it was created");
    let call = |from: Address, (from_home, to): (OwnerId, Address), number, call| {
        Message::Call(CallMessage {
            link: Link { from, to },
            from_home,
            to_home: MIDDLE,
            number: CallNumber(number),
            is_oldest: false,
            trace: Trace::default(),
            call,
        })
    };
    let (caller, receiver) = (Address::Cell(EntityId(999)), Address::Cell(entity));
    receive(&mut world, MIDDLE, call(caller, (EAST, receiver), 1, Call::DestroyCell));
    world.run(500);
    assert_eq!(world.holders(entity), []);

    let image = GhostImage {
        type_id: CREATURE,
        home: MIDDLE,
        session: None,
        history: HistoryNumber(900),
        place: place(40.0, 0.0),
        driver: Driver::Client,
        properties: Vec::new(),
    };
    let image = GhostMessage::Image {
        entity,
        image: Box::new(image),
    };
    let estate = call(receiver, (EAST, Address::Cell(witness)), 1, Call::Placed(None));
    let moved = Message::Moved { entity, to: EAST };
    for late in [estate, moved, Message::Ghost(image)] {
        let about = format!("{late:?}");
        receive(&mut world, MIDDLE, late);
        world.run(50);
        let said = receive(&mut world, MIDDLE, call(caller, (EAST, receiver), 2, Call::DestroyCell));
        let is_gone = |output: &Output| matches!(output, Output::Send { to: EAST, envelope } if matches!(envelope.message, Message::Gone { .. }));
        assert!(said.iter().any(is_gone), "after {about}: {said:?}");
    }
}

/// Delivers a message of the owner in the east.
fn receive(world: &mut World, to: OwnerId, message: Message) -> Vec<Output> {
    let (now, epoch) = (world.at(), world.cx(EAST).epoch());
    let envelope = Envelope {
        from: EAST,
        epoch,
        message,
    };
    let cell = world.cells.get_mut(&to).expect("it is there");
    cell.handle(now, Input::Bus(envelope), 1_000)
}

#[test]
fn a_closing_cell_refuses_entities() {
    let mut world = World::new(5);
    world.send_to_cell(MIDDLE, CellInput::Close);
    let entity = world.spawn(AVATAR, 30.0, None);
    let neighbour = world.spawn(AVATAR, -6.0, Some(1));
    world.run(300);
    assert_eq!(world.holders(entity), []);
    assert_eq!(cell_of(&world, entity), None);

    world.walk(1, 20.0, 0.0);
    world.run(1_000);
    assert_eq!(world.holders(neighbour), [WEST], "it stays where it was");
    assert_eq!(world.role(WEST).counters().returned, 1);
    assert_eq!(world.role(MIDDLE).counters().refused, 1);
    world.call(neighbour, NOTE, Vec::new());
    world.run(300);
    assert_eq!(
        world.real(neighbour).properties[&MemberId(5)],
        Value::Sequence(vec![Value::Int(1)])
    );
}

#[test]
fn a_restored_cell_has_all_entities_in_place() {
    let mut world = World::new(6);
    let entity = world.spawn(STATUE, -40.0, Some(1));
    world.run(500);
    for step in 0..15u8 {
        world.walk(1, -40.0 + f32::from(step), 3.0);
        world.run(100);
    }
    world.run(1_500);
    let before = world.real(entity).clone();
    world.crash(WEST);
    world.run(1_000);
    world.start(WEST);
    world.run(1_000);
    assert_eq!(world.real(entity), &before);
    let place: Place = world.cx(WEST).place(entity).expect("it is real here");
    assert_eq!(
        place,
        self::place(-26.0, 3.0),
        "what has come to rest is where it came to rest"
    );
}
