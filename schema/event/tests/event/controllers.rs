//! Controllers and movement control of a cell part: their transitions and encodings.

use std::collections::BTreeSet;

use annals_event::{
    Body, Cause, CellCreation, Controller, ControllerEvent, Driver, Event, Gait, Image, MovementControl, OwnerState,
    PATH_LIMIT, Place, Reader, Rounds, Seat, Subject, TRAP_LIMIT, Task,
};
use annals_ids::{ControllerId, EntityId, OwnerId, Part, Position, TypeId};

const PLACE: Position = Position {
    x: 1.0,
    y: 0.0,
    z: -1.0,
};

/// An entity that never had a controller.
fn uncontrolled() -> OwnerState {
    let mut state = OwnerState::new(OwnerId(7), Part::Cell);
    let creation = CellCreation {
        entity: EntityId(1),
        type_id: TypeId(2),
        home: OwnerId(8),
        based: true,
        place: Place::default(),
        properties: Vec::new(),
        client: None,
        former: None,
    };
    let created = Event {
        body: Body::CellCreated(Box::new(creation)),
        ..control(1, ControllerEvent::Gone)
    };
    state.apply(&created).expect("it is the first");
    state
}

/// An entity with one controller, as its first event creates it.
fn controlled(task: Task) -> OwnerState {
    let mut state = uncontrolled();
    let (tag, pace) = (0, 0.0);
    let what = ControllerEvent::Set(Box::new(Controller { tag, pace, task }));
    state.apply(&control(1, what)).expect("it is the first");
    state
}

fn control(controller: u32, what: ControllerEvent) -> Event {
    Event {
        subject: Subject::Entity(EntityId(1), Part::Cell),
        cause: Cause(0),
        history: None,
        body: Body::Controlled {
            controller: ControllerId(controller),
            what,
        },
    }
}

#[test]
fn impossible_controller_events_are_refused() {
    let gait = Gait::at(1.0);
    let watch = |inside: u64| Task::Watch {
        range: 1.0,
        inside: (1..=inside).map(EntityId).collect(),
    };
    let turn = || Task::Turn { yaw: 0.0, rate: 1.0 };
    let follow = || Task::Follow {
        path: vec![PLACE; 2],
        leg: 0,
        rounds: Rounds::Once,
        gait,
    };
    let advanced = |leg| ControllerEvent::Advanced { leg, pace: 1.0 };
    let set = || {
        let task = turn();
        ControllerEvent::Set(Box::new(Controller {
            tag: 0,
            pace: 0.0,
            task,
        }))
    };
    let who = EntityId(5);
    for (task, controller, what, why) in [
        (turn(), 1, set(), "a number that was there before"),
        (turn(), 2, ControllerEvent::Gone, "one that was never there"),
        (turn(), 1, advanced(0), "one that goes nowhere"),
        (follow(), 1, advanced(2), "beyond the end of its path"),
        (follow(), 1, ControllerEvent::Caught(who), "one without a trap"),
        (watch(5), 1, ControllerEvent::Caught(who), "an entity already in it"),
        (watch(4), 1, ControllerEvent::Released(who), "an entity not in it"),
        (
            watch(TRAP_LIMIT as u64),
            1,
            ControllerEvent::Caught(EntityId(9_999)),
            "a full trap",
        ),
    ] {
        let mut state = controlled(task);
        let before = state.entities.clone();
        assert!(state.apply(&control(controller, what)).is_err(), "{why}");
        assert_eq!(state.entities, before, "{why}");
    }
    let mut state = controlled(turn());
    state.apply(&control(1, ControllerEvent::Gone)).expect("it is there");
    assert!(
        state.apply(&control(1, set())).is_err(),
        "its number is never given again"
    );
}

#[test]
fn movement_control_is_kept_and_an_invalid_one_is_not_decoded() {
    let controlled = |top_speed, top_speed_y| Event {
        body: Body::ControlChanged(MovementControl {
            driver: Driver::ClientOf(EntityId(700)),
            top_speed,
            top_speed_y,
        }),
        ..control(1, ControllerEvent::Gone)
    };
    let read = |event: &Event| {
        let mut bytes = Vec::new();
        event.write(&mut bytes);
        Event::read(&bytes)
    };
    let event = controlled(6.0, 0.0);
    assert_eq!(read(&event).as_ref(), Ok(&event));
    for unsound in [
        controlled(-1.0, 0.0),
        controlled(1.0, f32::INFINITY),
        controlled(f32::NAN, 0.0),
    ] {
        assert!(read(&unsound).is_err(), "{unsound:?}");
    }
    let mut state = uncontrolled();
    state.apply(&event).expect("it is a cell part");
    let cell = state.entities[&EntityId(1)].cell().expect("it is a cell part");
    assert_eq!(
        (cell.movement_control.driver, cell.movement_control.top_speed),
        (Driver::ClientOf(EntityId(700)), 6.0)
    );
}

#[test]
fn invalid_controllers_are_not_decoded() {
    let gait = Gait::at(1.0);
    let follow = |places: usize, leg, gait| Task::Follow {
        path: vec![PLACE; places],
        leg,
        rounds: Rounds::Endless,
        gait,
    };
    let read = |task: Task| {
        let (tag, pace) = (0, 0.0);
        let event = control(1, ControllerEvent::Set(Box::new(Controller { tag, pace, task })));
        let mut bytes = Vec::new();
        event.write(&mut bytes);
        Event::read(&bytes).map(|read| assert_eq!(read, event))
    };
    for sound in [
        follow(PATH_LIMIT, 999, gait),
        Task::Turn { yaw: 9.0, rate: 0.1 },
        Task::Watch {
            range: 0.0,
            inside: (0..TRAP_LIMIT as u64).map(EntityId).collect(),
        },
    ] {
        read(sound).expect("the call is permitted");
    }
    let mut seat = Seat::default();
    seat.direction.roll = f32::NAN;
    for unsound in [
        follow(0, 0, gait),
        follow(3, 3, gait),
        follow(PATH_LIMIT + 1, 0, gait),
        follow(1, 0, Gait::at(0.0)),
        follow(
            1,
            0,
            Gait {
                acceleration: -1.0,
                ..gait
            },
        ),
        Task::Turn {
            yaw: 0.0,
            rate: f32::INFINITY,
        },
        Task::Watch {
            range: -0.5,
            inside: BTreeSet::new(),
        },
        Task::Watch {
            range: 1.0,
            inside: (0..=TRAP_LIMIT as u64).map(EntityId).collect(),
        },
        Task::Ride {
            vehicle: EntityId(1),
            seat,
        },
    ] {
        assert!(read(unsound.clone()).is_err(), "{unsound:?}");
    }
}

/// An image without any controllers ever takes no bytes for them, and has the encoding from before controllers existed.
#[test]
fn an_image_has_one_encoding_with_and_without_controllers() {
    let without = uncontrolled().entities[&EntityId(1)].clone();
    let mut with = controlled(Task::Turn { yaw: 0.0, rate: 1.0 });
    with.apply(&control(1, ControllerEvent::Gone)).expect("it is there");
    let bytes = |image: &Image| {
        let mut bytes = Vec::new();
        image.write(&mut bytes);
        bytes
    };
    let (plain, used) = (bytes(&without), bytes(&with.entities[&EntityId(1)]));
    // The highest number, and a count of zero.
    assert_eq!(used.len(), plain.len() + 2);
    let differs = plain
        .iter()
        .zip(&used)
        .position(|(plain, used)| plain != used)
        .expect("a kind");
    assert_eq!((plain[differs], used[differs]), (1, 3));
    let mut claimed = plain.clone();
    claimed[differs] = 2;
    claimed.extend([0, 0]);
    assert!(
        Image::read(&mut Reader::new(&claimed)).is_err(),
        "none, and the form for some"
    );
}
