//! Every envelope survives a round trip, and other bytes are rejected.

use annals_def::{Change, Located, Path, Value};
use annals_event::{Body, Cause, GlobalData, GlobalEntry, GlobalScope, GlobalVersion, SpaceVersion, Subject};
use annals_ids::{MemberId, Part, Position, SpaceId};

use super::*;
use crate::{
    bus::{DrivenMovement, GlobalMessage, ViewMessage},
    client::{Known, Movements, Stamp, volatile::MovementAck},
};

const ENTITY: EntityId = EntityId(u64::MAX);
const SESSION: SessionId = SessionId(4);

fn known(upto: HistoryNumber) -> Known {
    Known {
        seen: vec![Stamp::new(ENTITY, upto)],
        kept: vec![Stamp {
            entity: EntityId(1),
            upto: HistoryNumber(9),
            finer: vec![HistoryNumber(0), upto],
        }],
        space: Some((
            SpaceId(3),
            [(0, version(1)), (511, version(upto.0))].into_iter().collect(),
        )),
        unusual_drivers: vec![ENTITY],
    }
}

fn every_message() -> Vec<Message> {
    let ghosts = every_ghost_message().into_iter().map(Message::Ghost);
    let views = every_view_message().into_iter().map(Message::View);
    let spaces = every_space_message().into_iter();
    let spaces = spaces.map(|message| Message::Space(SpaceId(u32::MAX), message));
    let globals = every_global_message().into_iter();
    let globals = GlobalScope::ALL.into_iter().cycle().zip(globals);
    let globals = globals.map(|(scope, message)| Message::Global(scope, message));
    let calls = every_call_message().into_iter();
    calls.chain(ghosts).chain(spaces).chain(globals).chain(views).collect()
}

fn version(stamp: u64) -> SpaceVersion {
    let (life, by) = (stamp / 2, OwnerId(u32::MAX));
    SpaceVersion { life, stamp, by }
}

fn every_space_message() -> Vec<SpaceMessage> {
    let entry = |key, value| SpaceEntry {
        key,
        version: version(7),
        value,
    };
    let have = [(0, version(1)), (300, version(0))].into_iter().collect();
    vec![
        SpaceMessage::Versions { have, is_answer: true },
        SpaceMessage::Versions {
            have: SpaceVersions::default(),
            is_answer: false,
        },
        SpaceMessage::Entries(vec![entry(0, vec![1, 2]), entry(511, Vec::new())]),
        SpaceMessage::Entries(Vec::new()),
    ]
}

fn every_global_message() -> Vec<GlobalMessage> {
    let entry = |key: &str, value| GlobalEntry {
        key: key.to_owned(),
        version: GlobalVersion {
            stamp: 7,
            by: OwnerId(u32::MAX),
        },
        value,
    };
    let mut data = GlobalData::default();
    data.take(entry("season", Some(Value::Int(4))));
    data.take(entry("moon", None));
    let versions = |data: &GlobalData, is_answer| GlobalMessage::Versions {
        have: data.versions(),
        is_answer,
    };
    vec![
        GlobalMessage::Digest(data.digest()),
        versions(&data, true),
        versions(&GlobalData::default(), false),
        GlobalMessage::Entries(data.entries().collect()),
        GlobalMessage::Entries(Vec::new()),
    ]
}

fn place() -> Place {
    let position = Position {
        x: 1.0,
        y: -2.0,
        z: 3.5,
    };
    Place {
        space: SpaceId(1),
        position,
        ..Place::default()
    }
}

fn every_call_message() -> Vec<Message> {
    let link = Link {
        from: Address::Base(EntityId(7)),
        to: Address::Client(SessionId(9)),
    };
    let call = Call::Method {
        method: MemberId(1),
        args: vec![Value::UInt(1)],
        wants_reply: true,
    };
    let number = CallNumber(6);
    vec![
        Message::Call(call_message(link, number, call)),
        Message::Took { link, upto: number },
        Message::Gap { link, have: number },
        Message::Moved {
            entity: ENTITY,
            to: OwnerId(9),
        },
        Message::Gone { link },
        Message::Refused {
            link,
            number,
            reason: CallRefusal::BadArguments,
        },
    ]
}

fn every_ghost_message() -> Vec<GhostMessage> {
    let held = Value::Sequence(vec![Value::Unicode("a".into()), Value::Unicode("b".into())]);
    let change = Change::part(Path(vec![1]), Value::Unicode("ü".into()));
    let body = Body::Changed {
        member: MemberId(3),
        change: Located::new(change, &held).expect("it has two parts"),
    };
    let event = Event {
        subject: Subject::Entity(ENTITY, Part::Cell),
        cause: Cause(1),
        history: Some(HistoryNumber(5)),
        body,
    };
    let image = GhostImage {
        type_id: TypeId(2),
        home: OwnerId(3),
        session: Some(SESSION),
        history: HistoryNumber(8),
        place: place(),
        driver: Driver::ClientOf(EntityId(300)),
        properties: vec![(MemberId(0), Value::Int(-1))],
    };
    let moved = GhostMove {
        entity: ENTITY,
        sequence: 3,
        place: place(),
    };
    let ask = |have| GhostMessage::Ask { entity: ENTITY, have };
    vec![
        GhostMessage::Image {
            entity: ENTITY,
            image: Box::new(image),
        },
        GhostMessage::Events {
            entity: ENTITY,
            after: HistoryNumber(4),
            events: vec![Shown::Event(Box::new(event)), Shown::Hidden],
        },
        GhostMessage::Moves(vec![moved]),
        GhostMessage::Heads(vec![(ENTITY, HistoryNumber(1)), (EntityId(0), HistoryNumber(0))]),
        ask(None),
        ask(Some(HistoryNumber(0))),
    ]
}

fn every_view_message() -> Vec<ViewMessage> {
    vec![
        ViewMessage::Frames {
            session: SESSION,
            frames: vec![vec![1], vec![]],
        },
        ViewMessage::Datagram {
            session: SESSION,
            bytes: vec![2, 3],
        },
        ViewMessage::Stamps {
            session: SESSION,
            entity: ENTITY,
            view: 2,
            known: known(HistoryNumber(3)),
            movements: Movements::Plain,
        },
        ViewMessage::Stamps {
            session: SESSION,
            entity: ENTITY,
            view: 3,
            known: known(HistoryNumber(3)),
            movements: Movements::with_scale(0.5).expect("a scale"),
        },
        ViewMessage::MovementAck {
            session: SESSION,
            entity: ENTITY,
            view: 3,
            ack: MovementAck {
                tick: u16::MAX,
                before: 5,
            },
        },
        ViewMessage::Moved {
            session: SESSION,
            entity: ENTITY,
            sequence: 8,
            place: place(),
        },
        ViewMessage::Drove(DrivenMovement {
            session: SESSION,
            driver: ENTITY,
            driven: EntityId(300),
            upto: HistoryNumber(5),
            sequence: 9,
            place: place(),
        }),
    ]
}

fn stamped(stamp: u64) -> SpaceEntry {
    let (life, by) = (0, OwnerId(1));
    SpaceEntry {
        key: 300,
        version: SpaceVersion { life, stamp, by },
        value: vec![1],
    }
}

fn global(stamp: u64) -> GlobalEntry {
    GlobalEntry {
        key: "season".to_owned(),
        version: GlobalVersion { stamp, by: OwnerId(1) },
        value: None,
    }
}

fn call_message(link: Link, number: CallNumber, call: Call) -> CallMessage {
    CallMessage {
        link,
        from_home: OwnerId(1),
        to_home: OwnerId(2),
        number,
        is_oldest: number.0.is_multiple_of(2),
        trace: [5; 16],
        call,
    }
}

#[test]
fn sequence_numbers_beyond_the_log_limit_are_refused() {
    let link = Link {
        from: Address::Base(EntityId(7)),
        to: Address::Cell(EntityId(9)),
    };
    let messages = |number: u64| {
        let (call, history) = (CallNumber(number), HistoryNumber(number));
        let image = GhostImage {
            type_id: TypeId(2),
            home: OwnerId(3),
            session: None,
            history,
            place: place(),
            driver: Driver::Client,
            properties: Vec::new(),
        };
        let events = GhostMessage::Events {
            entity: ENTITY,
            after: history,
            events: vec![Shown::Hidden],
        };
        let ask = GhostMessage::Ask {
            entity: ENTITY,
            have: Some(history),
        };
        let image = GhostMessage::Image {
            entity: ENTITY,
            image: Box::new(image),
        };
        let stamps = ViewMessage::Stamps {
            session: SESSION,
            entity: ENTITY,
            view: 2,
            known: known(history),
            movements: Movements::Plain,
        };
        [
            Message::Call(call_message(link, call, Call::DestroyCell)),
            Message::Took { link, upto: call },
            Message::Gap { link, have: call },
            Message::Ghost(image),
            Message::Ghost(events),
            Message::Ghost(ask),
            Message::Ghost(GhostMessage::Heads(vec![(ENTITY, history)])),
            Message::View(stamps),
            Message::Space(
                SpaceId(1),
                SpaceMessage::Entries(vec![SpaceEntry::of_life(number, OwnerId(1))]),
            ),
            Message::Space(SpaceId(1), SpaceMessage::Entries(vec![stamped(number)])),
            Message::Global(GlobalScope::Realm, GlobalMessage::Entries(vec![global(number)])),
        ]
    };
    let half = ORDINALS / 2;
    let numbers = [half - 1, half, ORDINALS - 1, ORDINALS, u64::MAX];
    for (number, is_read) in numbers.into_iter().map(|number| (number, number < half)) {
        for message in messages(number) {
            let (from, epoch) = (OwnerId(1), Epoch(2));
            let envelope = Envelope { from, epoch, message };
            let read = Envelope::decode(&envelope.encode());
            assert_eq!(read.is_ok(), is_read, "{envelope:?}");
        }
    }
}

#[test]
fn every_message_round_trips_and_damaged_ones_do_not_panic() {
    for message in every_message() {
        let envelope = Envelope {
            from: OwnerId(1),
            epoch: Epoch(2),
            message,
        };
        let bytes = envelope.encode();
        assert_eq!(Envelope::decode(&bytes).expect("intact"), envelope);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let _ = Envelope::decode(&damaged);
        }
        for cut in 0..bytes.len() {
            let _ = Envelope::decode(&bytes[..cut]);
        }
    }
}

#[test]
fn a_packet_under_other_definitions_is_recognised_and_one_that_names_none_is_read() {
    let (present, former) = (Hash([1; 32]), Hash([2; 32]));
    for message in every_message() {
        let bytes = PacketBuilder::new(&message).finish(OwnerId(1), Epoch(2), present);
        assert_eq!(messages_of(&bytes, present), std::slice::from_ref(&message));
        let refused = Packet::decode(&bytes, former);
        assert!(matches!(refused, Err(EnvelopeError::OtherDefinitions)), "{refused:?}");
        let envelope = Envelope {
            from: OwnerId(1),
            epoch: Epoch(2),
            message,
        };
        assert_eq!(
            Envelope::decode(&bytes).expect("as a release without packets reads it"),
            envelope
        );
        assert_eq!(messages_of(&envelope.encode(), former), [envelope.message]);
    }
}

#[test]
fn a_packet_keeps_its_messages_in_order() {
    let definitions = Hash([1; 32]);
    let messages: Vec<Message> = every_message().into_iter().chain(every_message()).collect();
    let mut builder = PacketBuilder::new(&messages[0]);
    for message in &messages[1..] {
        builder.push(message);
    }
    let size = builder.bytes();
    let bytes = builder.finish(OwnerId(7), Epoch(8), definitions);
    assert!(bytes.len() >= size, "{} bytes for {size}", bytes.len());
    let packet = Packet::decode(&bytes, definitions).expect("intact");
    let sender = (packet.from, packet.epoch, packet.reads_packets);
    assert_eq!(sender, (OwnerId(7), Epoch(8), true));
    assert_eq!(messages_of(&bytes, definitions), messages);
}

#[test]
fn one_message_of_a_newer_kind_is_an_error_and_the_others_are_read() {
    let definitions = Hash([1; 32]);
    let known = every_message().remove(0);
    let mut builder = PacketBuilder::new(&known);
    builder.push(&known);
    builder.push(&known);
    let mut wire = WireEnvelope::decode(&*builder.finish(OwnerId(7), Epoch(8), definitions)).expect("intact");
    wire.more[0].message = None;
    let packet = Packet::decode(&wire.encode_to_vec(), definitions).expect("the others are intact");
    let [Ok(_), Err(EnvelopeError::Missing(_)), Ok(_)] = &packet.messages[..] else {
        panic!("{:?}", packet.messages)
    };
}

/// The messages of a packet that is intact.
fn messages_of(bytes: &[u8], definitions: Hash) -> Vec<Message> {
    let packet = Packet::decode(bytes, definitions).expect("intact");
    let messages = packet.messages.into_iter();
    messages.map(|message| message.expect("intact")).collect()
}

#[test]
fn entries_are_divided_into_runs_of_limited_size() {
    let run = |lengths: &[usize]| -> Vec<Vec<usize>> {
        let runs = crate::bus::runs(lengths, 10, |length| *length);
        runs.map(<[usize]>::to_vec).collect()
    };
    assert_eq!(run(&[]), Vec::<Vec<usize>>::new());
    assert_eq!(run(&[10, 1]), [vec![10], vec![1]]);
    assert_eq!(run(&[4, 6, 1, 9, 1]), [vec![4, 6], vec![1, 9], vec![1]]);
    // One that is larger goes alone.
    assert_eq!(run(&[3, 99, 3]), [vec![3], vec![99], vec![3]]);
}
