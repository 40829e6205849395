//! What a client is shown of an entity: `test_data/client/shown.txt` for the definitions in `shown.def`, generated
//! changes of generated types, and hostile bytes. With `ANNALS_WRITE_VECTORS=1` the file is rewritten; any difference
//! is then a change of the protocol.

use std::{fmt::Write, fs, path::PathBuf};

use annals_def::{
    Argument, Change, DataType, Dice, Distribution, Edit, EntityType, Exposure, Form, Located, Method, Path, Property,
    Rule, Schema, Tree, Value, apply, as_shown, change_as_shown, compile, encode, generate, generate_change,
    generate_type, split_mix,
};
use annals_event::CallError;
use annals_ids::{CallNumber, Hash, HistoryNumber, Part};
use annals_wire::client::{
    ClientMember, Reply, Shown, ShownReader, ShownWriter, args_hash, change_hash, read_properties, reply_hash,
};

const SEEDS: u64 = 600;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("test_data/client")
        .join(name)
}

fn defined() -> EntityType {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> </root>");
    tree.insert("entity_defs/Avatar.def", fs::read(file("shown.def")).unwrap());
    let compiled = compile(&tree);
    compiled.schema.expect("the definitions are right").types()[0].clone()
}

fn number(member: Option<u16>) -> ClientMember {
    ClientMember(member.expect("clients see it"))
}

fn defaults(entity_type: &EntityType) -> Vec<Value> {
    let seen = entity_type.client_properties().iter();
    seen.map(|index| entity_type.property(*index).unwrap().default.clone())
        .collect()
}

fn write(writer: &mut ShownWriter<'_>, held: &mut [Value], at: HistoryNumber, shown: &Shown) {
    match shown {
        Shown::Property { member, change } => {
            let held = &mut held[usize::from(member.0)];
            let located = Located::new(change.clone(), held).unwrap();
            writer.change(at, *member, &located).unwrap();
            located.make(held).unwrap();
        }
        Shown::Method { member, args } => writer.method(at, *member, args).unwrap(),
        Shown::Reply(reply) => writer.reply(at, reply).unwrap(),
    }
}

fn cases(avatar: &EntityType) -> Vec<(&'static str, u64, Shown)> {
    [changes(avatar), calls(avatar), replies(avatar)].concat()
}

fn calls(avatar: &EntityType) -> Vec<(&'static str, u64, Shown)> {
    let method = |name, args| Shown::Method {
        member: number(avatar.client_method_named(name).unwrap().client_id),
        args,
    };
    vec![
        (
            "a call of fixed size",
            308,
            method("onHit", vec![Value::UInt(9), Value::Int(-9)]),
        ),
        (
            "a call of variable size",
            309,
            method("onSay", vec![Value::Unicode("hi".into())]),
        ),
    ]
}

fn changes(avatar: &EntityType) -> Vec<(&'static str, u64, Shown)> {
    let property = |name, change| Shown::Property {
        member: number(avatar.property_named(name).unwrap().client_id),
        change,
    };
    let ints = |numbers: &[i64]| numbers.iter().copied().map(Value::Int).collect::<Vec<_>>();
    vec![
        (
            "a whole property of fixed size",
            13,
            property("level", Change::whole(Value::UInt(7))),
        ),
        ("another", 14, property("health", Change::whole(Value::Int(-2)))),
        (
            "one of variable size",
            15,
            property("title", Change::whole(Value::string("Sir"))),
        ),
        (
            "an array",
            16,
            property("marks", Change::whole(Value::Sequence(ints(&[5, 4, 3, 2, 1])))),
        ),
        (
            "an element, after numbers that concern others",
            300,
            property("marks", Change::part(Path(vec![3]), Value::Int(8))),
        ),
        (
            "a part deep inside",
            301,
            property("bags", Change::part(Path(vec![2, 0, 1]), Value::Int(10))),
        ),
        (
            "a field",
            302,
            property("bags", Change::part(Path(vec![0, 1]), Value::string("1st"))),
        ),
        (
            "elements appended",
            303,
            property("marks", Change::splice(Path::WHOLE, 5, 0, ints(&[6, 7]))),
        ),
        (
            "elements deleted",
            304,
            property("marks", Change::splice(Path::WHOLE, 1, 3, Vec::new())),
        ),
        (
            "elements replaced",
            306,
            property("marks", Change::splice(Path::WHOLE, 0, 2, ints(&[-1, -2, -3]))),
        ),
        (
            "an element appended to an array inside",
            307,
            property("bags", Change::splice(Path(vec![1, 0]), 0, 0, ints(&[5]))),
        ),
    ]
}

#[test]
fn events_have_the_bytes_in_the_file() {
    let avatar = defined();
    let mut held = defaults(&avatar);
    let mut last = HistoryNumber(12);
    let (mut rendered, mut whole) = (String::new(), ShownWriter::new(&avatar, last));
    for (name, at, shown) in cases(&avatar) {
        let mut writer = ShownWriter::new(&avatar, last);
        write(&mut whole, &mut held.clone(), HistoryNumber(at), &shown);
        write(&mut writer, &mut held, HistoryNumber(at), &shown);
        let hex: String = writer.finish().iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(rendered, "{name}\n  {at}: {shown:?}\n  {hex}").unwrap();
        last = HistoryNumber(at);
    }
    if std::env::var_os("ANNALS_WRITE_VECTORS").is_some() {
        fs::write(file("shown.txt"), &rendered).unwrap();
    }
    assert_eq!(
        fs::read_to_string(file("shown.txt")).unwrap(),
        rendered,
        "shown.txt differs"
    );

    // They are in sequence.
    let bytes = whole.finish();
    let mut reader = ShownReader::new(&avatar, (HistoryNumber(12), HistoryNumber(320)), &bytes);
    let mut held = defaults(&avatar);
    for (name, at, shown) in cases(&avatar) {
        assert_eq!(
            reader.next_event(&held),
            Ok(Some((HistoryNumber(at), shown.clone()))),
            "{name}"
        );
        make(&avatar, &mut held, &shown);
    }
    assert_eq!(reader.next_event(&held), Ok(None));
}

#[test]
fn hand_computed_encodings_match() {
    let avatar = defined();
    let mut held = defaults(&avatar);
    let mut last = HistoryNumber(12);
    let expected: &[&[u8]] = &[
        // Ids from 3 on: level, health, title, marks, bags; then onHit, onSay.
        &[3, 7],
        &[4, 0xfe, 0xff, 0xff, 0xff],
        &[5, 3, b'S', b'i', b'r'],
        &[6, 5, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0],
        // A gap of 283 numbers; then, of five properties, 1 011 (marks), of five elements 0 011.
        &[2, 0x9b, 2, 0, 0b1011_0011, 8, 0],
        // 1 100 (bags), of three 1 10, of two 1 0, of two 0 1.
        &[0, 0b1100_1101, 0b0010_0000, 10, 0, 0, 0],
    ];
    for ((_, at, shown), expected) in cases(&avatar).iter().zip(expected) {
        let mut writer = ShownWriter::new(&avatar, last);
        write(&mut writer, &mut held, HistoryNumber(*at), shown);
        assert_eq!(writer.finish(), *expected, "{shown:?}");
        last = HistoryNumber(*at);
    }
}

fn make(entity_type: &EntityType, held: &mut [Value], shown: &Shown) {
    if let Shown::Property { member, change } = shown {
        let index = entity_type.client_properties()[usize::from(member.0)];
        let data_type = &entity_type.property(index).unwrap().data_type;
        apply(data_type, &mut held[usize::from(member.0)], change).unwrap();
    }
}

fn replies(avatar: &EntityType) -> Vec<(&'static str, u64, Shown)> {
    let reply = |part, name, call, outcome| {
        let member = match part {
            Part::Base => avatar.base_method_named(name).unwrap().client_id,
            Part::Cell => avatar.cell_method_named(name).unwrap().client_id,
        };
        Shown::Reply(Reply {
            part,
            call: CallNumber(call),
            member: number(member),
            outcome,
        })
    };
    let price = |call, outcome| reply(Part::Base, "price", call, outcome);
    let text = str::to_owned;
    vec![
        (
            "an answer",
            310,
            price(1, Ok(vec![Value::UInt(70_000), Value::Unicode("Ann".into())])),
        ),
        (
            "an answer behind a gap",
            313,
            reply(Part::Cell, "inspect", 300, Ok(vec![Value::Int(-2)])),
        ),
        ("not allowed", 314, price(2, Err(CallError::Authenticate(text("no"))))),
        ("a failure", 315, price(3, Err(CallError::Internal(String::new())))),
        (
            "wrong arguments",
            316,
            price(4, Err(CallError::InvalidArgs(text("kind")))),
        ),
        ("no answer", 317, price(5, Err(CallError::NoReply))),
        ("no entity", 318, price(6, Err(CallError::NoSuchEntity))),
        ("no cell part", 319, price(7, Err(CallError::NoSuchCellEntity))),
        (
            "an error of the game",
            320,
            price(8, Err(CallError::Custom(text("Poor"), text("70 are missing")))),
        ),
    ]
}

/// A type with this many properties and methods that clients see.
fn random_type(members: u64, dice: &mut Dice<'_>) -> EntityType {
    let mut entity_type = EntityType::new("Any");
    entity_type.properties = (0..1 + dice() % members)
        .map(|i| {
            let data_type = generate_type(4, dice);
            let default = as_shown(generate(&data_type, dice));
            let property = Property::new(format!("p{i}"), data_type, Distribution::AllClients);
            Property { default, ..property }
        })
        .collect();
    entity_type.client_methods = (0..1 + dice() % members)
        .map(|i| {
            let args = (0..dice() % 3).map(|_| Argument::new("a", generate_type(3, dice)));
            Method::new(format!("m{i}"), args.collect())
        })
        .collect();
    let exposed = |name: &str, dice: &mut Dice<'_>| {
        let methods = (0..1 + dice() % members).map(|i| {
            let mut method = Method::new(format!("{name}{i}"), Vec::new());
            method.exposed = Exposure::AllClients;
            let returns = (0..1 + dice() % 3).map(|_| Argument::new("r", generate_type(3, dice)));
            method.returns = returns.collect();
            method
        });
        methods.collect::<Vec<Method>>()
    };
    entity_type.base_methods = exposed("b", dice);
    entity_type.cell_methods = exposed("c", dice);
    Schema::new(vec![entity_type], Vec::new(), Vec::new()).types()[0].clone()
}

fn exposed(entity_type: &EntityType, part: Part, member: ClientMember) -> &Method {
    let (methods, exposed) = match part {
        Part::Base => (&entity_type.base_methods, entity_type.exposed_base_methods()),
        Part::Cell => (&entity_type.cell_methods, entity_type.exposed_cell_methods()),
    };
    &methods[usize::from(exposed[usize::from(member.0)].0)]
}

fn random_reply(entity_type: &EntityType, dice: &mut Dice<'_>) -> Reply {
    let (part, methods) = match dice() % 2 {
        0 => (Part::Base, &entity_type.base_methods),
        _ => (Part::Cell, &entity_type.cell_methods),
    };
    let member = ClientMember((dice() % methods.len() as u64) as u16);
    let mut text = || "\u{e9}".repeat((dice() % 3) as usize);
    let error = [
        CallError::Authenticate(text()),
        CallError::Internal(text()),
        CallError::InvalidArgs(text()),
        CallError::NoReply,
        CallError::NoSuchEntity,
        CallError::NoSuchCellEntity,
        CallError::Custom(text(), text()),
    ];
    let outcome = match error.get((dice() % 14) as usize) {
        Some(error) => Err(error.clone()),
        None => {
            let returns = exposed(entity_type, part, member).returns.iter();
            Ok(returns
                .map(|argument| as_shown(generate(&argument.data_type, dice)))
                .collect())
        }
    };
    let call = CallNumber(1 + dice() % 300);
    Reply {
        part,
        call,
        member,
        outcome,
    }
}

fn random_event(entity_type: &EntityType, held: &[Value], dice: &mut Dice<'_>) -> Shown {
    if dice().is_multiple_of(5) {
        return Shown::Reply(random_reply(entity_type, dice));
    }
    if dice().is_multiple_of(4) {
        let member = ClientMember((dice() % entity_type.client_methods.len() as u64) as u16);
        let method = &entity_type.client_methods[usize::from(entity_type.client_method_ids()[usize::from(member.0)].0)];
        let args = method
            .args
            .iter()
            .map(|argument| as_shown(generate(&argument.data_type, dice)))
            .collect();
        return Shown::Method { member, args };
    }
    let member = ClientMember((dice() % held.len() as u64) as u16);
    let index = entity_type.client_properties()[usize::from(member.0)];
    let data_type = &entity_type.property(index).unwrap().data_type;
    let change = change_as_shown(generate_change(data_type, &held[usize::from(member.0)], dice));
    Shown::Property { member, change }
}

/// A generated type, a client's values of it, and events that follow number 9.
fn generated(seed: u64) -> (EntityType, Vec<(HistoryNumber, Shown)>, Vec<u8>) {
    let mut dice = split_mix(seed);
    let members = if seed.is_multiple_of(10) { 300 } else { 8 };
    let entity_type = random_type(members, &mut dice);
    let mut held = defaults(&entity_type);
    let mut at = HistoryNumber(9);
    let mut writer = ShownWriter::new(&entity_type, at);
    let mut events = Vec::new();
    for _ in 0..12 {
        let shown = random_event(&entity_type, &held, &mut dice);
        at = HistoryNumber(at.0 + 1 + [0, 0, 1, 300][(dice() % 4) as usize]);
        write(&mut writer, &mut held, at, &shown);
        events.push((at, shown));
    }
    let bytes = writer.finish();
    (entity_type, events, bytes)
}

fn hash_of(entity_type: &EntityType, shown: &Shown) -> Option<Hash> {
    match shown {
        Shown::Property { member, change } => {
            let index = entity_type.client_properties()[usize::from(member.0)];
            change_hash(&entity_type.property(index).unwrap().data_type, change)
        }
        Shown::Method { member, args } => {
            let index = entity_type.client_method_ids()[usize::from(member.0)];
            args_hash(&entity_type.client_methods[usize::from(index.0)], args)
        }
        Shown::Reply(reply) => {
            let method = exposed(entity_type, reply.part, reply.member);
            reply_hash(method, (reply.call, method.index), &reply.outcome)
        }
    }
}

#[test]
fn changes_round_trip_one_by_one() {
    let mut slices = 0;
    for seed in 0..SEEDS {
        let (entity_type, events, bytes) = generated(seed);
        let upto = events.last().unwrap().0;
        let mut held = defaults(&entity_type);
        let mut reader = ShownReader::new(&entity_type, (HistoryNumber(9), upto), &bytes);
        for (at, shown) in &events {
            let read = reader.next_event(&held).expect("own bytes").expect("one more");
            assert_eq!(read, (*at, shown.clone()), "seed {seed}");
            make(&entity_type, &mut held, shown);
            if let Shown::Property { change, .. } = shown {
                slices += u64::from(matches!(change.edit, Edit::Splice { .. }));
            }
            assert!(hash_of(&entity_type, shown).is_some(), "seed {seed}");
        }
        assert_eq!(reader.next_event(&held), Ok(None), "seed {seed}");
        // One event fewer is allowed.
        let mut reader = ShownReader::new(&entity_type, (HistoryNumber(9), HistoryNumber(upto.0 - 1)), &bytes);
        let mut held = defaults(&entity_type);
        let refused = loop {
            match reader.next_event(&held) {
                Ok(Some((_, shown))) => make(&entity_type, &mut held, &shown),
                other => break other,
            }
        };
        assert!(refused.is_err(), "seed {seed}: an event beyond the last number");
    }
    assert!(slices > SEEDS / 2, "{slices}");
}

#[test]
fn properties_round_trip_and_must_ascend() {
    for seed in 0..SEEDS / 2 {
        let mut dice = split_mix(seed);
        let entity_type = random_type(if seed.is_multiple_of(10) { 300 } else { 8 }, &mut dice);
        let properties: Vec<(ClientMember, Value)> = (0..)
            .map(ClientMember)
            .zip(entity_type.client_properties())
            .filter(|_| dice().is_multiple_of(2))
            .map(|(member, index)| (member, entity_type.property(*index).unwrap().default.clone()))
            .collect();
        let write = |properties: &[(ClientMember, Value)]| {
            let mut writer = ShownWriter::new(&entity_type, HistoryNumber(0));
            for (member, value) in properties {
                writer.property(*member, value).unwrap();
            }
            writer.finish()
        };
        assert_eq!(
            read_properties(&entity_type, &write(&properties)),
            Ok(properties.clone()),
            "seed {seed}"
        );
        if properties.len() > 1 {
            let backwards: Vec<_> = properties.into_iter().rev().collect();
            assert!(
                read_properties(&entity_type, &write(&backwards)).is_err(),
                "seed {seed}"
            );
        }
    }
}

/// A type with mailboxes that clients see, which its `allow D0306` comments permit.
fn type_with_mailboxes() -> EntityType {
    let allowed = "<!-- allow D0306: answered by the server only -->";
    let mailboxes = "ARRAY <of> MAILBOX </of>";
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> </root>");
    tree.insert(
        "entity_defs/Avatar.def",
        format!(
            "<root> <Properties>
            {allowed} <friend> <Type> MAILBOX </Type> <Flags> ALL_CLIENTS </Flags> </friend>
            {allowed} <friends> <Type> {mailboxes} </Type> <Flags> ALL_CLIENTS </Flags> </friends>
            </Properties> <ClientMethods>
            {allowed} <onMet> <Arg> MAILBOX </Arg> <Arg> {mailboxes} </Arg> </onMet>
            </ClientMethods> </root>"
        ),
    );
    let compiled = compile(&tree);
    assert!(
        compiled
            .diagnostics
            .iter()
            .all(|found| found.rule == Rule::ClientMailbox)
    );
    assert_eq!(compiled.diagnostics.len(), 3);
    compiled.schema.expect("allowed").types()[0].clone()
}

/// Clients see every mailbox as None, wherever it is nested.
#[test]
fn clients_receive_no_mailbox_address() {
    let avatar = type_with_mailboxes();
    let mut dice = split_mix(1);
    let mut any = std::iter::repeat_with(|| generate(&DataType::Mailbox, &mut dice));
    let address = any.find(|value| *value != Value::Mailbox(None)).unwrap();
    let address = || address.clone();
    let [friend, friends] = ["friend", "friends"].map(|name| number(avatar.property_named(name).unwrap().client_id));
    let met = number(avatar.client_method_named("onMet").unwrap().client_id);
    let list = |of: Vec<Value>| Value::Sequence(of);
    let events = [
        (friend, Change::whole(address())),
        (friends, Change::whole(list(vec![address(), address()]))),
        (friends, Change::part(Path(vec![1]), address())),
        (friends, Change::splice(Path::WHOLE, 2, 0, vec![address()])),
    ];
    let (mut held, mut seen) = (defaults(&avatar), defaults(&avatar));
    let mut writer = ShownWriter::new(&avatar, HistoryNumber(0));
    for (at, (member, change)) in (1..).map(HistoryNumber).zip(events.clone()) {
        write(&mut writer, &mut held, at, &Shown::Property { member, change });
    }
    let args = vec![address(), list(vec![address()])];
    let call = Shown::Method { member: met, args };
    write(&mut writer, &mut held, HistoryNumber(5), &call);
    let bytes = writer.finish();
    let mut reader = ShownReader::new(&avatar, (HistoryNumber(0), HistoryNumber(5)), &bytes);
    let mut hashes = Vec::new();
    while let Some((_, shown)) = reader.next_event(&seen).expect("own bytes") {
        make(&avatar, &mut seen, &shown);
        hashes.push(hash_of(&avatar, &shown));
        if let Shown::Method { args, .. } = shown {
            let none = Value::Mailbox(None);
            assert_eq!(args, vec![none.clone(), list(vec![none])]);
        }
    }
    assert_eq!(held[1], list(vec![address(), address(), address()]));
    assert_eq!(seen, held.into_iter().map(as_shown).collect::<Vec<_>>());
    // The recorded hash of an event is the same on both sides.
    let written = events.map(|(member, change)| hash_of(&avatar, &Shown::Property { member, change }));
    assert_eq!(hashes, [&written[..], &[hash_of(&avatar, &call)]].concat());

    // An address that a sender includes nonetheless is rejected.
    let mut whole = Vec::new();
    let data_type = &avatar.property_named("friend").unwrap().data_type;
    encode(data_type, &address(), Form::Whole, &mut whole).unwrap();
    let forged = [&[friend.0 as u8 + 3][..], &whole].concat();
    let mut reader = ShownReader::new(&avatar, (HistoryNumber(0), HistoryNumber(1)), &forged);
    assert!(reader.next_event(&seen).is_err());
}

/// Anything that can be read is written in the same bytes again, and nothing panics.
#[test]
fn damaged_events_are_refused_or_canonical() {
    let mut read_on = 0;
    for seed in 0..SEEDS {
        let mut dice = split_mix(!seed);
        let (entity_type, _, good) = generated(seed);
        for _ in 0..20 {
            let mut bytes = good.clone();
            match dice() % 3 {
                0 => bytes.truncate(dice() as usize % bytes.len()),
                1 => {
                    let at = dice() as usize % bytes.len();
                    bytes[at] ^= 1 << (dice() % 8);
                }
                _ => bytes = (0..dice() % 60).map(|_| (dice() >> (dice() % 8)) as u8).collect(),
            }
            let mut held = defaults(&entity_type);
            let mut copy = held.clone();
            let mut writer = ShownWriter::new(&entity_type, HistoryNumber(9));
            let mut reader = ShownReader::new(&entity_type, (HistoryNumber(9), HistoryNumber(u64::MAX >> 1)), &bytes);
            while let Ok(Some((at, shown))) = reader.next_event(&held) {
                read_on += 1;
                if let Shown::Property { member, change } = &shown {
                    let index = entity_type.client_properties()[usize::from(member.0)];
                    let data_type = &entity_type.property(index).unwrap().data_type;
                    if apply(data_type, &mut held[usize::from(member.0)], change).is_err() {
                        // An array of fixed size that would change its length, or a part of a tuple.
                        break;
                    }
                }
                write(&mut writer, &mut copy, at, &shown);
            }
            let again = writer.finish();
            assert_eq!(again, bytes[..again.len()], "seed {seed}");
        }
    }
    assert!(read_on > 10 * SEEDS, "{read_on}");
}

#[test]
fn a_false_number_of_elements_allocates_nothing() {
    let avatar = defined();
    let held = defaults(&avatar);
    let among = u32::try_from(held.len()).unwrap();
    let marks = number(avatar.property_named("marks").unwrap().client_id);
    let append = Change::splice(Path::WHOLE, 5, 0, Vec::new());
    let mut bytes = vec![1];
    let located = Located::new(append, &held[usize::from(marks.0)]).unwrap();
    located.pack((marks.0.into(), among), &mut bytes);
    for count in [&[0xff, 0xff, 0xff, 0xff][..], &[0xfe], &[0xff, 3, 0, 0]] {
        let bytes = [&bytes, count, &[1, 0]].concat();
        let mut reader = ShownReader::new(&avatar, (HistoryNumber(0), HistoryNumber(9)), &bytes);
        let refused = reader.next_event(&held).expect_err("there are fewer");
        assert_eq!(refused.to_string(), "malformed elements at byte 3");
    }
}

#[test]
fn members_unknown_to_the_type_are_errors_and_write_nothing() {
    let avatar = defined();
    let held = defaults(&avatar);
    let (at, none) = (HistoryNumber(9), ClientMember(5));
    let mut writer = ShownWriter::new(&avatar, HistoryNumber(3));
    let hit = number(avatar.client_method_named("onHit").unwrap().client_id);
    let marks = number(avatar.property_named("marks").unwrap().client_id);
    let whole = Located::whole(Value::UInt(1));
    let beyond = Change::part(Path(vec![0, 0]), Value::Int(1));
    let beyond = Located::with_parts(beyond, vec![5, 1]).unwrap();
    let called = |writer: &mut ShownWriter<'_>, member, args: &[Value]| {
        writer.method(at, member, args).map_err(|error| error.to_string())
    };
    let (one, two) = (vec![Value::UInt(9)], vec![Value::UInt(9), Value::Int(-9)]);
    let three = vec![Value::UInt(9), Value::Int(-9), Value::Int(0)];
    for (refused, said) in [
        (called(&mut writer, hit, &one), "onHit has 2 values, not 1"),
        (called(&mut writer, hit, &three), "onHit has 2 values, not 3"),
        (called(&mut writer, hit, &[]), "onHit has 2 values, not 0"),
        (called(&mut writer, none, &two), "Avatar has no client method 5"),
        (
            writer.property(none, &held[0]).map_err(|error| error.to_string()),
            "Avatar has no client property 5",
        ),
        (
            writer.change(at, none, &whole).map_err(|error| error.to_string()),
            "Avatar has no client property 5",
        ),
        (
            writer.change(at, marks, &beyond).map_err(|error| error.to_string()),
            "client property 3 of Avatar has no part at [0, 0]",
        ),
    ] {
        let error = refused.expect_err(said);
        assert!(error.contains(said), "no {said:?} in {error}");
    }
    assert!(writer.is_empty());
    // The gap before the rejected event must still be written.
    writer.method(at, hit, &two).unwrap();
    let bytes = writer.finish();
    let mut reader = ShownReader::new(&avatar, (HistoryNumber(3), at), &bytes);
    let shown = Shown::Method {
        member: hit,
        args: two.clone(),
    };
    assert_eq!(reader.next_event(&held), Ok(Some((at, shown))));

    let method = avatar.client_method_named("onHit").unwrap();
    assert!(args_hash(method, &two).is_some());
    for args in [one, three, Vec::new()] {
        assert_eq!(args_hash(method, &args), None);
    }
}

#[test]
fn paths_count_the_properties_of_the_type_not_the_held_ones() {
    let avatar = defined();
    let held = defaults(&avatar);
    let marks = number(avatar.property_named("marks").unwrap().client_id);
    let change = Change::part(Path(vec![3]), Value::Int(8));
    let mut writer = ShownWriter::new(&avatar, HistoryNumber(0));
    let located = Located::new(change.clone(), &Value::Sequence(vec![Value::Int(0); 5])).unwrap();
    writer.change(HistoryNumber(1), marks, &located).unwrap();
    let bytes = writer.finish();
    let mut held: Vec<Value> = held[..=usize::from(marks.0)].to_vec();
    held[usize::from(marks.0)] = Value::Sequence(vec![Value::Int(0); 5]);
    let read = |held: &[Value]| {
        let mut reader = ShownReader::new(&avatar, (HistoryNumber(0), HistoryNumber(1)), &bytes);
        reader.next_event(held)
    };
    let shown = Shown::Property { member: marks, change };
    assert_eq!(read(&held), Ok(Some((HistoryNumber(1), shown))));
    assert!(read(&held[..usize::from(marks.0)]).is_err());
}
