//! Kinds of calls, orders and audiences that were added after the first release: each has one encoding, byte for byte,
//! so that logs of a later release can be read by those that know it, and are refused by those that do not.

use annals_def::Value;
use annals_event::{
    Audience, Body, Call, Cause, Event, GlobalEntry, GlobalVersion, Reader, Registration, RequestedBase, Subject,
    ledger::Order,
};
use annals_ids::{CallNumber, EntityId, HistoryNumber, Mailbox, MemberId, OwnerId, Part, TypeId};

fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

fn read_call(bytes: &[u8]) -> Option<Call> {
    let mut reader = Reader::new(bytes);
    let call = Call::read(&mut reader).ok()?;
    reader.finish("end of call").ok()?;
    Some(call)
}

/// Checks that each call has these bytes, and is not read from fewer.
fn check(cases: impl IntoIterator<Item = (Call, Vec<u8>)>) {
    for (call, expected) in cases {
        let written = bytes(|out| call.write(out));
        assert_eq!(written, expected, "{call:?}");
        assert_eq!(read_call(&written), Some(call.clone()));
        for end in 0..written.len() {
            assert_eq!(read_call(&written[..end]), None, "{call:?} cut at {end}");
        }
    }
}

#[test]
fn calls_between_owners_have_these_bytes() {
    let wanted = RequestedBase {
        by: EntityId(9),
        of: CallNumber(5),
        type_id: TypeId(2),
        properties: vec![(MemberId(1), Value::UInt(7))],
    };
    let text = |why: &[u8]| [&[17, 9, 5, 0, 2][..], why].concat();
    let value = bytes(|out| annals_event::latest::value::put_value(out, &Value::UInt(7)));
    let created = |created| Call::Created {
        by: EntityId(9),
        of: CallNumber(5),
        created,
    };
    let cases = [
        (
            Call::CreateBase(Box::new(wanted)),
            [&[16, 9, 5, 2, 1, 1][..], &value].concat(),
        ),
        (created(Ok((EntityId(3), TypeId(2)))), vec![17, 9, 5, 1, 3, 2]),
        (created(Err("no".to_owned())), text(b"no")),
        (
            Call::InvokeFor {
                method: MemberId(4),
                args: vec![Value::UInt(7)],
            },
            [&[18, 4, 1][..], &value].concat(),
        ),
    ];
    check(cases);
    assert_eq!(read_call(&[22, 0, 0]), None, "a kind that is not known is refused");
    assert_eq!(read_call(&text(b"\xff\xfe")), None, "a reason is text");
}

#[test]
fn a_deletion_is_one_byte() {
    let written = bytes(|out| Order::Delete.write(out));
    assert_eq!(written, [13]);
    assert_eq!(Order::read(&mut Reader::new(&written)).as_ref(), Ok(&Order::Delete));
    assert!(Order::read(&mut Reader::new(&[14])).is_err());
}

#[test]
fn an_audience_of_one_names_its_entity() {
    let event = |audience| Event {
        subject: Subject::Entity(EntityId(6), Part::Cell),
        cause: Cause(0),
        history: Some(HistoryNumber(8)),
        body: Body::Invoked {
            method: MemberId(0),
            args: Vec::new(),
            audience,
        },
    };
    for (audience, bytes_of_it) in [
        (Audience::Own, &[0][..]),
        (Audience::Others, &[1]),
        (Audience::All, &[2]),
        (Audience::Of(EntityId(70)), &[3, 70]),
    ] {
        let event = event(audience);
        let written = bytes(|out| event.write(out));
        let expected = [&[5, 2, 6, 0, 8, 0][..], bytes_of_it, &[0]].concat();
        assert_eq!(written, expected, "{audience:?}");
        assert_eq!(Event::read(&written).as_ref(), Ok(&event));
    }
    assert!(Event::read(&[5, 2, 6, 0, 8, 0, 4, 0]).is_err());
}

#[test]
fn registrations_have_these_bytes() {
    let by_key = |kind: u8, rest: &[u8]| [&[kind, 9, 5][..], rest].concat();
    let registered = |outcome| Call::Registered {
        by: EntityId(9),
        of: CallNumber(5),
        outcome,
    };
    let mailbox = Mailbox {
        entity: EntityId(9),
        home: OwnerId(3),
        type_id: TypeId(2),
        part: Part::Base,
    };
    let entry = GlobalEntry {
        key: "nest".to_owned(),
        version: GlobalVersion {
            stamp: 4,
            by: OwnerId(3),
        },
        value: Some(Value::Mailbox(Some(mailbox))),
    };
    let entry_bytes = b"\x04nest\x04\x03\x01\x0b\x00\x09\x03\x02";
    check([
        (
            Call::Register {
                by: EntityId(9),
                of: CallNumber(5),
                key: "nest".to_owned(),
                type_id: TypeId(2),
            },
            by_key(19, b"\x04nest\x02"),
        ),
        (
            registered(Registration::Done(entry)),
            by_key(20, &[&[0][..], entry_bytes].concat()),
        ),
        (registered(Registration::Taken(mailbox)), by_key(20, &[1, 0, 9, 3, 2])),
        (
            registered(Registration::Refused("no".to_owned())),
            by_key(20, b"\x02\x02no"),
        ),
        (
            Call::Deregister {
                entity: EntityId(9),
                key: "nest".to_owned(),
            },
            b"\x15\x09\x04nest".to_vec(),
        ),
    ]);
}
