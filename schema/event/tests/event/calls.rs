//! Kinds of calls, orders and audiences that were added after the first release: each has one encoding, byte for byte,
//! so that logs of a later release can be read by those that know it, and are refused by those that do not.

use annals_def::Value;
use annals_event::{
    Audience, BaseImage, Body, Call, CallError, Cause, CellCreation, Event, FormerCell, GivenClient, GivenOutcome,
    GlobalEntry, GlobalVersion, Image, Links, PartImage, Place, Reader, Registration, RequestedBase, Sent, Subject,
    ledger::Order,
};
use annals_ids::{
    Address, CallNumber, DatabaseId, EntityId, HistoryNumber, Mailbox, MemberId, OwnerId, Part, SessionId, SpaceId,
    TypeId, WorldTime,
};

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
    assert_eq!(read_call(&[26, 0, 0]), None, "a kind that is not known is refused");
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
fn an_answer_to_a_client_names_its_call() {
    let event = |outcome| Event {
        subject: Subject::Entity(EntityId(6), Part::Base),
        cause: Cause(1),
        history: Some(HistoryNumber(8)),
        body: Body::Replied {
            to: SessionId(70),
            number: CallNumber(3),
            method: MemberId(2),
            outcome,
        },
    };
    let value = bytes(|out| annals_event::latest::value::put_values(out, &[Value::UInt(9)]));
    for (outcome, bytes_of_it) in [
        (Ok(vec![Value::UInt(9)]), [&[0][..], &value].concat()),
        (Err(CallError::NoSuchEntity), vec![5]),
        (
            Err(CallError::Custom("A".into(), "bc".into())),
            vec![7, 1, b'A', 2, b'b', b'c'],
        ),
    ] {
        let event = event(outcome);
        let written = bytes(|out| event.write(out));
        assert_eq!(written, [&[38, 1, 6, 1, 8, 70, 3, 2][..], &bytes_of_it].concat());
        assert_eq!(Event::read(&written).as_ref(), Ok(&event));
    }
    assert!(Event::read(&[38, 1, 6, 1, 8, 70, 3, 2, 8]).is_err());
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

/// The numbers of a cell part that has ended, and their bytes.
fn former_cell() -> (FormerCell, Vec<u8>) {
    let base = Address::Base(EntityId(9));
    let sent = Sent {
        home: OwnerId(3),
        last: CallNumber(4),
        ..Sent::default()
    };
    let links = Links {
        sent: [(base, sent)].into(),
        taken: [(base, CallNumber(6))].into(),
        generation: 2,
        ..Links::default()
    };
    let history = HistoryNumber(8);
    let bytes = [8, 1, 1, 9, 3, 4, 0, 1, 1, 9, 6, 0, 2];
    (FormerCell { history, links }, bytes.to_vec())
}

#[test]
fn the_state_of_a_cell_part_returns_in_these_bytes() {
    let (former, former_bytes) = former_cell();
    let value = bytes(|out| annals_event::latest::value::put_value(out, &Value::UInt(7)));
    let properties = [&[1, 1][..], &value].concat();
    let held = [(MemberId(1), Value::UInt(7))];
    let ended = Call::CellEnded {
        entity: EntityId(9),
        type_id: TypeId(2),
        former: Box::new(former.clone()),
        properties: held.clone().into(),
    };
    let creation = |based, former| {
        Call::CreateCell(Box::new(CellCreation {
            entity: EntityId(9),
            type_id: TypeId(2),
            home: OwnerId(3),
            based,
            place: Place {
                space: SpaceId(1),
                ..Place::default()
            },
            properties: held.to_vec(),
            client: None,
            former,
        }))
    };
    let created = |kind: u8, rest: &[u8]| [&[3, 9, 2, 3, kind, 1][..], &[0; 24], &properties, &[0], rest].concat();
    check([
        (ended, [&[22, 9, 2][..], &former_bytes, &properties].concat()),
        (creation(false, None), created(0, &[])),
        (creation(true, None), created(1, &[])),
        (
            creation(true, Some(Box::new(former.clone()))),
            created(2, &former_bytes),
        ),
    ]);

    let event = |part, body| Event {
        subject: Subject::Entity(EntityId(9), part),
        cause: Cause(0),
        history: None,
        body,
    };
    let returned = Body::CellReturned {
        former: Box::new(former),
        properties: held.into(),
    };
    for (event, expected) in [
        (event(Part::Cell, Body::CellEnding), vec![36, 2, 9, 0, 0]),
        (
            event(Part::Base, returned),
            [&[37, 1, 9, 0, 0][..], &former_bytes, &properties].concat(),
        ),
    ] {
        let written = bytes(|out| event.write(out));
        assert_eq!(written, expected);
        assert_eq!(Event::read(&written).as_ref(), Ok(&event));
    }
    let unconfirmed = [
        &[22, 9, 2, 8, 1, 1, 9, 3, 4, 1, 4, 4][..],
        &former_bytes[7..],
        &properties,
    ]
    .concat();
    assert_eq!(read_call(&unconfirmed), None, "its calls are confirmed");
}

#[test]
fn a_base_part_that_had_a_cell_part_has_its_numbers() {
    let image = |cell_history, cell_links| {
        let base = BaseImage {
            cell_history,
            cell_links,
            ..BaseImage::default()
        };
        Image::new(TypeId(2), OwnerId(3), &[], PartImage::Base(base))
    };
    let (former, former_bytes) = former_cell();
    let without = bytes(|out| image(None, None).write(out));
    for (links, rest) in [
        (None, vec![8, 0]),
        (Some(former.links), [&[8, 1][..], &former_bytes[1..]].concat()),
    ] {
        let image = image(Some(HistoryNumber(8)), links);
        let written = bytes(|out| image.write(out));
        assert_eq!(written.len(), without.len() + rest.len());
        assert!(written.ends_with(&rest), "{written:?}");
        assert_eq!(Image::read(&mut Reader::new(&written)).as_ref(), Ok(&image));
        for end in 0..written.len() {
            assert!(Image::read(&mut Reader::new(&written[..end])).is_err(), "cut at {end}");
        }
    }
}

#[test]
fn calls_that_give_a_client_away_have_these_bytes() {
    let to = Mailbox {
        entity: EntityId(6),
        home: OwnerId(2),
        type_id: TypeId(4),
        part: Part::Base,
    };
    let given = |former_token, account, gives_way| {
        Call::GiveClient(Box::new(GivenClient {
            from: EntityId(9),
            to,
            session: SessionId(7),
            token: [8; 32],
            former_token,
            account,
            opened: WorldTime(11),
            gives_way,
        }))
    };
    let taken = |outcome| Call::ClientTaken {
        from: EntityId(9),
        to,
        session: SessionId(7),
        outcome,
    };
    let mailbox = [0, 6, 2, 4];
    let with = |kind: u8, rest: &[u8]| [&[kind, 9][..], &mailbox, &[7], rest].concat();
    check([
        (Call::Store, vec![23]),
        (
            given(None, None, false),
            with(24, &[&[8; 32][..], &[0, 0, 11, 0]].concat()),
        ),
        (
            given(Some([3; 32]), Some(DatabaseId(5)), true),
            with(24, &[&[8; 32][..], &[1], &[3; 32], &[1, 5, 11, 1]].concat()),
        ),
        (
            taken(GivenOutcome::Taken { token: [8; 32] }),
            with(25, &[&[0][..], &[8; 32]].concat()),
        ),
        (taken(GivenOutcome::InUse), with(25, &[1])),
        (
            taken(GivenOutcome::Refused("no".to_owned())),
            with(25, &[2, 2, b'n', b'o']),
        ),
    ]);
    assert_eq!(
        read_call(&with(25, &[3])),
        None,
        "an outcome that is not known is refused"
    );
}
