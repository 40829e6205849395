//! Cell parts that are created near another entity: its cell part is asked for its place first.

use annals_base::BaseInput;
use annals_def::Value;
use annals_event::{Body, Call, CallError, CellCreation, Link, Outcome, Place, RequestedBase, Subject};
use annals_ids::{Address, CallNumber, Direction, EntityId, Epoch, Mailbox, MemberId, OwnerId, Part, Position};
use annals_node::{Context, Request};
use annals_wire::bus::{CallMessage, Envelope, Message};

use crate::{
    game::{AVATAR, Game, PLACE},
    host::{BASE, Host, OTHER, call_of_other, map},
    lifecycle::trail,
};

/// The entity near which cell parts are created; its home is elsewhere.
const FRIEND: EntityId = EntityId(1);
const HP: MemberId = MemberId(4);

fn create_near(context: &mut Context<'_>) {
    let hp = context
        .entity_type()
        .property_named("hp")
        .map(|property| property.index);
    let beside = Mailbox {
        entity: FRIEND,
        home: OTHER,
        type_id: AVATAR,
        part: Part::Base,
    };
    let request = Request::CreateCellNear {
        entity: context.entity(),
        beside,
        offset: Position {
            x: 1.0,
            y: 0.5,
            z: -2.0,
        },
        properties: vec![(hp.unwrap(), Value::Int(77))],
    };
    context.request(request).unwrap();
}

/// A host with an avatar that has no cell part, and requests one.
fn host() -> (Host, EntityId) {
    let mut host = Host::of(Game {
        errand: Some(create_near),
        ..Game::default()
    });
    host.role(BaseInput::Map(map()));
    let wanted = RequestedBase {
        by: FRIEND,
        of: CallNumber(1),
        type_id: AVATAR,
        properties: Vec::new(),
    };
    host.receive(call_of_other(1, Call::CreateBase(Box::new(wanted))));
    host.settle();
    let events = host.batches().flat_map(|batch| batch.events);
    let made = events.filter(|event| matches!(&event.body, Body::BaseCreated(made) if made.type_id == AVATAR));
    let made: Vec<Subject> = made.map(|event| event.subject).collect();
    let [Subject::Entity(avatar, _)] = made[..] else {
        panic!("{made:?}")
    };
    let method = host.schema.entity_type(AVATAR).unwrap().base_method_named("run_errand");
    let method = method.unwrap().index;
    host.call(avatar, method);
    host.settle();
    (host, avatar)
}

/// The number of the call by which the friend's cell part is asked for its place.
fn asked(host: &Host, avatar: EntityId) -> CallNumber {
    let link = Link {
        from: Address::Base(avatar),
        to: Address::Cell(FRIEND),
    };
    let sent = host.sent.iter().find_map(|(_, envelope)| match &envelope.message {
        Message::Call(call) if call.link == link && call.call == Call::Locate => Some(call.number),
        _ => None,
    });
    sent.expect("it is asked")
}

/// The friend's cell part answers.
fn answer(host: &mut Host, avatar: EntityId, outcome: Outcome) {
    let call = CallMessage {
        link: Link {
            from: Address::Cell(FRIEND),
            to: Address::Base(avatar),
        },
        from_home: OTHER,
        to_home: BASE,
        number: CallNumber(1),
        is_oldest: true,
        trace: [0; 16],
        call: Call::Reply {
            of: asked(host, avatar),
            outcome,
        },
    };
    host.receive(Envelope {
        from: OwnerId(OTHER.0),
        epoch: Epoch(1),
        message: Message::Call(call),
    });
    host.settle();
}

fn at(x: f32, z: f32) -> Outcome {
    Ok(vec![
        Value::UInt(PLACE.space.0.into()),
        Value::Vector3([x, 0.0, z]),
        Value::Vector3([1.5, 0.0, 0.0]),
    ])
}

/// The cell parts that were requested.
fn created(host: &Host) -> Vec<CellCreation> {
    let events = host.batches().flat_map(|batch| batch.events);
    let created = events.filter_map(|event| match event.body {
        Body::Called {
            call: Call::CreateCell(creation),
            ..
        } => Some(*creation),
        _ => None,
    });
    created.collect()
}

#[test]
fn a_cell_part_is_created_at_an_offset_from_another_entity() {
    for crashes in [false, true] {
        let (mut host, avatar) = host();
        if crashes {
            host.crash();
            host.role(BaseInput::Map(map()));
            host.settle();
        }
        assert_eq!(created(&host), []);
        answer(&mut host, avatar, at(10.0, 20.0));
        let made = created(&host);
        assert_eq!(made.len(), 1);
        let expected = Place {
            space: PLACE.space,
            position: Position {
                x: 11.0,
                y: 0.5,
                z: 18.0,
            },
            direction: Direction {
                yaw: 1.5,
                ..Direction::default()
            },
        };
        assert_eq!((made[0].entity, made[0].place), (avatar, expected));
        assert!(
            made[0].properties.contains(&(HP, Value::Int(77))),
            "{:?}",
            made[0].properties
        );
    }
}

#[test]
fn an_entity_without_a_place_is_reported() {
    let strange = Ok(vec![Value::UInt(1)]);
    for outcome in [Err(CallError::NoSuchCellEntity), strange] {
        let (mut host, avatar) = host();
        answer(&mut host, avatar, outcome);
        assert_eq!(trail(&host, avatar), "bF");
        assert_eq!(created(&host), []);
    }
    let (mut host, avatar) = host();
    host.pass(20_000);
    assert_eq!(trail(&host, avatar), "bF", "no answer came");
    answer(&mut host, avatar, at(0.0, 0.0));
    assert_eq!(created(&host), [], "it came too late");
}
