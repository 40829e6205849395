//! Creation and destruction of entities and their cell parts, and hand-over of clients between entities.

use annals_base::BaseInput;
use annals_def::{Edit, Value};
use annals_event::{Body, Call};
use annals_ids::{DatabaseId, EntityId, OwnerId, Part};
use annals_wire::{
    bus::{DrivenMovement, Message, ViewMessage},
    client::{
        CloseReason, Drove, Known, Moved, Movements, Reads, Stamps, ToServer, ToServerDatagram, volatile::MovementAck,
    },
};

use crate::{
    admission::unwritten,
    cell::Cell,
    game::{PLACE, text},
    host::{CELL, Host, Out, open},
    player::{Player, log_in},
};

/// The last logged trail of an entity, also after its end.
pub(crate) fn trail(host: &Host, entity: EntityId) -> String {
    let bodies = host.batches().flat_map(|batch| batch.events);
    let trails = bodies.filter(|event| event.subject == annals_event::Subject::Entity(entity, Part::Base));
    let last = trails.filter_map(|event| match event.body {
        Body::Changed { member, change } if member.0 == 1 => match &change.change().edit {
            Edit::Set(value) => Some(text(value)),
            Edit::Splice { .. } => None,
        },
        _ => None,
    });
    last.last().unwrap_or_default()
}

/// A player whose account has become an avatar with a cell part.
pub(crate) fn avatar(host: &mut Host, cell: &mut Cell) -> (Player, EntityId) {
    let mut player = log_in(host, 5, 1);
    player.call(host, Part::Base, "become", &[Value::UInt(2)]);
    host.settle();
    cell.work(host);
    player.listen(host);
    let avatar = player.entity.unwrap().0;
    (player, avatar)
}

#[test]
fn a_client_passes_to_its_avatar() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    assert_eq!(trail(&host, avatar), "bAg");
    assert_eq!(cell.made, 1, "a second cell part is not made");
    assert_eq!(cell.opened, [(PLACE.space, 0)], "its space was opened before that");
    let client = host.image(avatar).client.expect("it has the client");
    let clients = host
        .owner
        .state()
        .entities
        .values()
        .filter(|image| image.client.is_some());
    assert_eq!(clients.count(), 1, "and no other part has one");
    assert_eq!(cell.parts[&avatar], Some(client), "and its witness serves it");
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.has.as_ref().unwrap().0, avatar);
    assert_eq!(player.shown_calls.len(), 2, "both received a welcome");
    assert_eq!(player.stamps_wanted, 0, "its witness knows what to do");
    let moved = cell.say_placed(avatar, Some(OwnerId(21)));
    host.receive(moved);
    host.settle();
    player.listen(&mut host);
    assert_eq!(player.stamps_wanted, 1, "a new one may have asked too early");

    host.crash();
    player.connect(&mut host, 1);
    player.listen(&mut host);
    assert_eq!(player.entity.unwrap().0, avatar, "it resumes as what it was");
    assert_eq!(
        unwritten(&host),
        [(player.session, DatabaseId(0))],
        "the owner of the avatar is unknown here, but the log-in is logged"
    );
}

#[test]
fn the_cell_part_ends_first() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    player.call(&mut host, Part::Base, "leave", &[]);
    player.call(&mut host, Part::Base, "leave", &[]);
    host.settle();
    assert_eq!(trail(&host, avatar), "bAg", "it waits for its cell part");
    cell.work(&mut host);
    player.listen(&mut host);
    assert_eq!(trail(&host, avatar), "bAgld");
    assert!(cell.parts.is_empty());
    assert_eq!(player.closed, Some(CloseReason::Ended));
    assert!(!host.owner.state().entities.contains_key(&avatar));
    assert_eq!(host.owner.role().sessions(), 0);
}

#[test]
fn an_entity_of_the_database_is_stored_before_it_ends() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let (entity, _) = player.entity.unwrap();
    player.call(&mut host, Part::Base, "leave", &[]);
    host.settle();
    let events = host.batches().flat_map(|batch| batch.events);
    let own = events.filter(|event| event.subject == annals_event::Subject::Entity(entity, Part::Base));
    let bodies: Vec<Body> = own.map(|event| event.body).collect();
    let database = annals_ids::DatabaseId(5);
    assert_eq!(bodies[bodies.len() - 2..], [Body::Stored { database }, Body::Destroyed]);
}

#[test]
fn entities_of_a_type_that_is_not_persistent_are_not_written() {
    for (type_id, letter) in [(crate::game::AVATAR, 'k'), (crate::game::TORCH, 'x')] {
        let mut host = Host::new();
        let ticket = host.secret();
        let mut wanted = open(&host, 1, 5, 1, &ticket);
        wanted.account.type_id = type_id;
        host.role(BaseInput::OpenSession(wanted));
        host.settle();
        let entity = host.owner.state().databases[&annals_ids::DatabaseId(5)];
        let method = |name: &str| {
            let entity_type = host.schema.entity_type(type_id).unwrap();
            entity_type.base_method_named(name).unwrap().index
        };
        let (keep, leave) = (method("keep"), method("leave"));
        host.call(entity, keep);
        host.settle();
        assert_eq!(trail(&host, entity), format!("b{letter}"));
        host.call_again(entity, leave);
        host.settle();
        let events = host.batches().flat_map(|batch| batch.events);
        let stored = events.filter(|event| matches!(event.body, Body::Stored { .. })).count();
        assert_eq!(
            stored,
            if letter == 'k' { 2 } else { 0 },
            "when it is asked for, and at the end"
        );
    }
}

#[test]
fn a_cell_part_begins_with_what_is_stored_of_it() {
    for crashes in [false, true] {
        let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
        let ticket = host.secret();
        let mut wanted = open(&host, 1, 5, 1, &ticket);
        wanted.account.type_id = crate::game::AVATAR;
        let avatar = host.schema.entity_type(wanted.account.type_id).unwrap().clone();
        let member = |name: &str| avatar.property_named(name).unwrap().index;
        let (motto, hp) = (member("motto"), member("hp"));
        wanted.account.properties = vec![(motto, Value::Unicode("slow".into())), (hp, Value::Int(-7))];
        host.role(BaseInput::OpenSession(wanted));
        host.settle();
        if crashes {
            host.crash();
        }
        let entity = host.owner.state().databases[&annals_ids::DatabaseId(5)];
        host.call(entity, avatar.base_method_named("grow").unwrap().index);
        host.settle();
        let begun = host.sent.iter().find_map(|(_, envelope)| match &envelope.message {
            Message::Call(call) => match &call.call {
                Call::CreateCell(creation) => Some(creation.properties.clone()),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(begun, Some(vec![(hp, Value::Int(-7))]), "crashes: {crashes}");
        host.sent.retain(|(to, _)| *to == CELL);
        cell.work(&mut host);
        assert_eq!(text(&host.image(entity).properties[&motto]), "slow");
        let base = host.image(entity).base().unwrap();
        assert!(base.cell_properties.is_empty(), "the cell part has them");
        assert_eq!(host.folded().entities[&entity], *host.image(entity));
    }
}

#[test]
fn an_end_that_began_goes_on_after_a_take_over() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    player.call(&mut host, Part::Base, "leave", &[]);
    host.settle();
    host.sent.clear();
    host.crash();
    host.pass(1_000);
    cell.work(&mut host);
    assert_eq!(trail(&host, avatar), "bAgrld");
    assert!(!host.owner.state().entities.contains_key(&avatar));
}

#[test]
fn a_cell_part_that_was_asked_for_begins_after_a_take_over() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let mut player = log_in(&mut host, 5, 1);
    player.call(&mut host, Part::Base, "become", &[Value::UInt(1)]);
    host.settle();
    player.listen(&mut host);
    let avatar = player.entity.unwrap().0;
    host.sent.clear();
    host.crash();
    host.pass(1_000);
    cell.work(&mut host);
    assert_eq!((trail(&host, avatar).as_str(), cell.made), ("bArg", 1));
    // Repeated reports do not count as a second beginning.
    for envelope in [
        cell.say_placed(avatar, Some(CELL)),
        cell.say_placed(avatar, Some(OwnerId(21))),
    ] {
        host.receive(envelope);
    }
    host.settle();
    assert_eq!(trail(&host, avatar), "bArg");
    assert_eq!(host.image(avatar).base().unwrap().cell, Some(OwnerId(21)));
}

#[test]
fn a_cell_part_waits_for_the_map() {
    let (mut host, mut cell) = (Host::without_map(), Cell::new(CELL));
    let mut player = log_in(&mut host, 5, 1);
    player.call(&mut host, Part::Base, "become", &[Value::UInt(1)]);
    host.settle();
    assert!(host.sent.is_empty());
    host.role(BaseInput::Map(crate::host::map()));
    host.settle();
    cell.work(&mut host);
    assert_eq!(cell.made, 1);
}

#[test]
fn a_shed_part_is_asked_once_to_end() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    player.call(&mut host, Part::Base, "shed", &[]);
    player.call(&mut host, Part::Base, "shed", &[]);
    host.settle();
    let ends = host.batches().flat_map(|batch| batch.events).filter(|event| {
        matches!(
            event.body,
            Body::Called {
                call: Call::DestroyCell,
                ..
            }
        )
    });
    assert_eq!(ends.count(), 1);
    cell.work(&mut host);
    assert_eq!(trail(&host, avatar), "bAgl");
    assert_eq!(host.image(avatar).base().unwrap().cell, None);
    player.call(&mut host, Part::Base, "grow", &[]);
    host.settle();
    cell.work(&mut host);
    assert_eq!((trail(&host, avatar).as_str(), cell.made), ("bAglg", 2));
    player.call(&mut host, Part::Base, "leave", &[]);
    host.settle();
    cell.work(&mut host);
    assert_eq!(trail(&host, avatar), "bAglgld");
}

#[test]
fn only_the_present_witness_reaches_the_client() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    host.settle();
    player.listen(&mut host);
    let session = player.session;
    let frames = |mark: u8| {
        Message::View(ViewMessage::Frames {
            session,
            frames: vec![vec![mark]],
        })
    };
    let reached = |host: &mut Host, cell: &Cell, mark: u8| {
        host.receive(cell.envelope(frames(mark)));
        host.settle();
        let found = host
            .out
            .iter()
            .any(|out| matches!(out, Out::Frame(_, bytes) if *bytes == [mark]));
        host.out.clear();
        found
    };
    let other = Cell::new(OwnerId(21));
    assert!(reached(&mut host, &cell, 101));
    assert!(!reached(&mut host, &other, 102), "it does not hold the part");
    let moved = cell.say_placed(avatar, Some(OwnerId(21)));
    host.receive(moved);
    host.settle();
    assert!(reached(&mut host, &other, 103));
    assert!(!reached(&mut host, &cell, 104), "it no longer holds the part");
    let mut restarted = other.envelope(frames(105));
    restarted.epoch = restarted.epoch.next();
    host.receive(restarted);
    host.out.clear();
    assert!(!reached(&mut host, &other, 106), "its epoch has ended");
}

#[test]
fn movement_and_stamps_reach_the_witness() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (player, avatar) = avatar(&mut host, &mut cell);
    let known: Known = [(avatar, annals_ids::HistoryNumber(4))].into_iter().collect();
    let stamps = Stamps {
        source: Part::Cell,
        view: 3,
        known: known.clone(),
    };
    player.send(&mut host, &ToServer::Stamps(stamps));
    let moved = Moved {
        sequence: 9,
        position: annals_ids::Position { x: 4.0, y: 0.0, z: 5.0 },
        direction: annals_ids::Direction::default(),
    };
    let connection = player.connection;
    let datagram = ToServerDatagram::Moved(moved);
    host.role(BaseInput::Datagram { connection, datagram });
    let (entity, upto) = (annals_ids::EntityId(700), annals_ids::HistoryNumber(12));
    let datagram = ToServerDatagram::Drove(Drove { entity, upto, moved });
    host.role(BaseInput::Datagram { connection, datagram });
    host.settle();
    cell.work(&mut host);
    let session = player.session;
    let (position, direction) = (moved.position, moved.direction);
    let expected = [
        ViewMessage::Drove(DrivenMovement {
            session,
            driver: avatar,
            driven: entity,
            upto,
            sequence: 9,
            place: annals_event::Place {
                position,
                direction,
                ..annals_event::Place::default()
            },
        }),
        ViewMessage::Moved {
            session,
            entity: avatar,
            sequence: 9,
            place: annals_event::Place {
                position,
                direction,
                ..annals_event::Place::default()
            },
        },
        ViewMessage::Stamps {
            session,
            entity: avatar,
            view: 3,
            known,
            movements: Movements::Plain,
        },
    ];
    for view in expected {
        assert!(cell.views.contains(&view), "{view:?} in {:?}", cell.views);
    }
}

#[test]
fn the_movement_encoding_is_negotiated_per_connection() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    assert_eq!(player.movements, Movements::Plain, "it reads no others");
    // Observers see 100 m, and 5 m of hysteresis.
    let predicted = Movements::choose(Reads::Predicted, 105.0);
    for (connection, reads, expected) in [
        (21, Reads::Predicted, predicted),
        (22, Reads::Plain, Movements::Plain),
        (23, Reads::Predicted, predicted),
    ] {
        player.reads = reads;
        player.connect(&mut host, connection);
        player.listen(&mut host);
        assert_eq!(player.movements, expected);
        let stamps = Stamps {
            source: Part::Cell,
            view: connection,
            known: Known::default(),
        };
        player.send(&mut host, &ToServer::Stamps(stamps));
        let (view, ack) = (connection, MovementAck { tick: 5, before: 1 });
        let (connection, session) = (player.connection, player.session);
        let datagram = ToServerDatagram::MovementAck { view, ack };
        host.role(BaseInput::Datagram { connection, datagram });
        host.settle();
        cell.work(&mut host);
        let entity = avatar;
        let stamps = ViewMessage::Stamps {
            session,
            entity,
            view,
            known: Known::default(),
            movements: expected,
        };
        let acknowledgement = ViewMessage::MovementAck {
            session,
            entity,
            view,
            ack,
        };
        assert!(
            cell.views.contains(&stamps) && cell.views.contains(&acknowledgement),
            "{:?}",
            cell.views
        );
    }
}

#[test]
fn an_entity_that_leaves_is_no_longer_seen() {
    let (mut host, mut cell) = (Host::new(), Cell::new(CELL));
    let (mut player, avatar) = avatar(&mut host, &mut cell);
    player.send(&mut host, &ToServer::Bye);
    host.settle();
    cell.work(&mut host);
    player.listen(&mut host);
    assert_eq!(player.closed, Some(CloseReason::Finished));
    assert_eq!(trail(&host, avatar), "bAgL");
    assert_eq!(cell.parts[&avatar], None, "its witness has ended");
    assert_eq!(host.image(avatar).client, None);
}
