//! Which events of an entity each client is shown.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use annals_def::{EntityType, Located, Schema, Tree, Value, compile};
use annals_event::{Audience, Body, Cause, Event, Subject};
use annals_ids::{CallNumber, EntityId, HistoryNumber, Part, SessionId};
use annals_node::{Showing, Viewer};
use annals_wire::client::{ClientMember, Reply, Shown, ShownReader, ViewItem, read_properties};

const ENTITY: EntityId = EntityId(7);

const AVATAR: &str = r"<root>
  <Properties>
    <hp>   <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </hp>
    <glow> <Type> UINT8 </Type> <Flags> OTHER_CLIENTS </Flags> <IsReliable> false </IsReliable> </glow>
    <mood> <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> <SendLatestOnly> true </SendLatestOnly> </mood>
  </Properties>
  <ClientMethods>
    <onSay> <Args> <what> UINT8 </what> </Args> </onSay>
    <onEmote> <Args> <what> UINT8 </what> </Args> <SendLatestOnly> true </SendLatestOnly> </onEmote>
    <onBlink> <Args> <what> UINT8 </what> </Args> <IsReliable> false </IsReliable> </onBlink>
    <onSigh> <Args> <what> UINT8 </what> </Args> <DetailDistance> 30 </DetailDistance> </onSigh>
  </ClientMethods>
</root>";

fn schema() -> Schema {
    let mut files = Tree::new();
    files.insert("entities.xml", "<root> <Avatar/> </root>");
    files.insert("entity_defs/Avatar.def", AVATAR);
    compile(&files).schema.unwrap()
}

fn event(body: Body) -> Event {
    Event {
        subject: Subject::Entity(ENTITY, Part::Cell),
        cause: Cause(0),
        history: None,
        body,
    }
}

fn set(avatar: &EntityType, property: &str, value: u64) -> Event {
    event(Body::Changed {
        member: avatar.property_named(property).unwrap().index,
        change: Located::whole(Value::UInt(value)),
    })
}

fn invoke(avatar: &EntityType, method: &str, what: u64, audience: Audience) -> Event {
    event(Body::Invoked {
        method: avatar.client_method_named(method).unwrap().index,
        args: vec![Value::UInt(what)],
        audience,
    })
}

/// The members and values that a client is sent of these events, with their numbers.
fn sent(schema: &Schema, viewer: Viewer, events: &[Event]) -> Vec<(u64, String)> {
    sent_from_afar(schema, viewer, 0.0, events)
}

fn sent_from_afar(schema: &Schema, viewer: Viewer, distance: f32, events: &[Event]) -> Vec<(u64, String)> {
    let avatar = &schema.types()[0];
    let showing = Showing::new(schema, ENTITY, avatar.id, viewer)
        .unwrap()
        .from_afar(distance);
    let numbered = (1..).map(HistoryNumber).zip(events.iter().map(Some));
    let mut sent = Vec::new();
    for item in showing.update(HistoryNumber(0), numbered) {
        let ViewItem::Update { from, upto, events, .. } = item else {
            panic!("only updates are made of events");
        };
        let mut held = vec![Value::UInt(0); avatar.client_properties().len()];
        let mut reader = ShownReader::new(avatar, (from, upto), &events);
        while let Some((number, shown)) = reader.next_event(&held).unwrap() {
            let text = match shown {
                Shown::Property { member, change } => {
                    let held = &mut held[usize::from(member.0)];
                    change.make(held).unwrap();
                    let index = avatar.client_properties()[usize::from(member.0)];
                    format!("{} {held:?}", avatar.property(index).unwrap().name)
                }
                Shown::Method { member, args } => {
                    let index = avatar.client_method_ids()[usize::from(member.0)];
                    format!("{} {args:?}", avatar.client_methods[usize::from(index.0)].name)
                }
                Shown::Reply(reply) => format!("{} {:?}", reply.call, reply.outcome),
            };
            sent.push((number.0, text));
        }
    }
    sent
}

#[test]
fn send_latest_only_members_send_the_newest_event_and_others_all() {
    let schema = schema();
    let avatar = &schema.types()[0];
    let events = [
        set(avatar, "hp", 1),
        set(avatar, "mood", 2),
        invoke(avatar, "onEmote", 3, Audience::All),
        set(avatar, "hp", 4),
        set(avatar, "mood", 5),
        invoke(avatar, "onSay", 6, Audience::All),
        invoke(avatar, "onEmote", 7, Audience::All),
        invoke(avatar, "onSay", 8, Audience::All),
        // Newer, but not for others: for them, the newest is the one before.
        invoke(avatar, "onEmote", 9, Audience::Own),
    ];
    let common = ["hp UInt(1)", "hp UInt(4)", "mood UInt(5)", "onSay [UInt(6)]"].map(str::to_owned);
    let expected = |emote: (u64, &str)| {
        let mut expected: Vec<(u64, String)> = [1, 4, 5, 6].into_iter().zip(common.clone()).collect();
        expected.push((8, "onSay [UInt(8)]".to_owned()));
        expected.push((emote.0, emote.1.to_owned()));
        expected.sort();
        expected
    };
    assert_eq!(
        sent(&schema, Viewer::Others, &events),
        expected((7, "onEmote [UInt(7)]"))
    );
    assert_eq!(sent(&schema, Viewer::Own, &events), expected((9, "onEmote [UInt(9)]")));
}

#[test]
fn unreliable_members_send_the_newest_event() {
    let schema = schema();
    let avatar = &schema.types()[0];
    let events = [
        set(avatar, "glow", 1),
        invoke(avatar, "onBlink", 2, Audience::All),
        set(avatar, "glow", 3),
        invoke(avatar, "onBlink", 4, Audience::All),
    ];
    let expected = [(3, "glow UInt(3)".to_owned()), (4, "onBlink [UInt(4)]".to_owned())];
    assert_eq!(sent(&schema, Viewer::Others, &events), expected);
}

#[test]
fn a_method_with_a_detail_distance_reaches_near_clients_and_its_own() {
    let schema = schema();
    let avatar = &schema.types()[0];
    let events = [
        invoke(avatar, "onSigh", 1, Audience::All),
        invoke(avatar, "onSay", 2, Audience::All),
    ];
    let sent = |viewer, distance| {
        let sent = sent_from_afar(&schema, viewer, distance, &events);
        sent.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    assert_eq!(sent(Viewer::Others, 30.0), [1, 2]);
    assert_eq!(sent(Viewer::Others, 30.1), [2]);
    assert_eq!(sent(Viewer::Own, 30.1), [1, 2]);
}

/// Each distribution once, in a part that clients know under its own type.
const SECRETS: &str = r"<root>
  <Properties>
    <baseOnly>   <Type> UINT8 </Type> <Flags> BASE </Flags> </baseOnly>
    <baseClient> <Type> UINT8 </Type> <Flags> BASE_AND_CLIENT </Flags> </baseClient>
    <private>    <Type> UINT8 </Type> <Flags> CELL_PRIVATE </Flags> </private>
    <public>     <Type> UINT8 </Type> <Flags> CELL_PUBLIC </Flags> </public>
    <publicOwn>  <Type> UINT8 </Type> <Flags> CELL_PUBLIC_AND_OWN </Flags> </publicOwn>
    <own>        <Type> UINT8 </Type> <Flags> OWN_CLIENT </Flags> </own>
    <others>     <Type> UINT8 </Type> <Flags> OTHER_CLIENTS </Flags> </others>
    <all>        <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </all>
  </Properties>
</root>";

/// The type under which clients know a chest: it has the same members, and shows only one of them.
const MIMIC: &str = r"<root>
  <ClientName> Chest </ClientName>
  <Properties>
    <lid>    <Type> UINT8 </Type>  <Flags> ALL_CLIENTS </Flags> </lid>
    <hunger> <Type> UINT8 </Type>  <Flags> CELL_PRIVATE </Flags> </hunger>
    <prey>   <Type> UINT8 </Type>  <Flags> OWN_CLIENT </Flags> </prey>
    <hidden> <Type> UINT8 </Type>  <Flags> ALL_CLIENTS </Flags> </hidden>
    <weight> <Type> UINT16 </Type> <Flags> ALL_CLIENTS </Flags> </weight>
  </Properties>
</root>";

const CHEST: &str = r"<root>
  <Properties>
    <lid>    <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </lid>
    <hunger> <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </hunger>
    <prey>   <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </prey>
    <hidden> <Type> UINT8 </Type> <Flags> CELL_PRIVATE </Flags> </hidden>
    <weight> <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </weight>
  </Properties>
</root>";

/// The names of the shown properties of a type, all of which hold 9: in a full refresh, and when each of them changes.
fn shown(schema: &Schema, name: &str, viewer: Viewer) -> (Vec<String>, Vec<String>) {
    let entity_type = schema.type_named(name).unwrap();
    let showing = Showing::new(schema, ENTITY, entity_type.id, viewer).unwrap();
    let seen_as = schema.entity_type(showing.client_type()).unwrap();
    let name_of = |member: ClientMember| {
        let index = seen_as.client_properties()[usize::from(member.0)];
        seen_as.property(index).unwrap().name.clone()
    };
    let nine = Value::UInt(9);
    let held = entity_type.properties.iter().map(|property| (&property.index, &nine));
    let ViewItem::Refresh { properties, .. } = showing.refresh(HistoryNumber(1), held) else {
        panic!("a refresh is asked for");
    };
    let values = read_properties(seen_as, &properties).unwrap();
    assert!(values.iter().all(|(_, value)| *value == nine));
    let whole = values.into_iter().map(|(member, _)| name_of(member)).collect();

    let events: Vec<Event> = entity_type
        .properties
        .iter()
        .map(|p| set(entity_type, &p.name, 9))
        .collect();
    let numbered = (1..).map(HistoryNumber).zip(events.iter().map(Some));
    let mut changed = Vec::new();
    for item in showing.update(HistoryNumber(0), numbered) {
        let ViewItem::Update { from, upto, events, .. } = item else {
            panic!("only updates are made of events");
        };
        let held = vec![Value::UInt(0); seen_as.client_properties().len()];
        let mut reader = ShownReader::new(seen_as, (from, upto), &events);
        while let Some((_, event)) = reader.next_event(&held).unwrap() {
            let Shown::Property { member, .. } = event else {
                panic!("no method was called");
            };
            changed.push(name_of(member));
        }
    }
    changed.sort();
    (whole, changed)
}

fn expect_shown(schema: &Schema, name: &str, viewer: Viewer, expected: &[&str]) {
    let (mut whole, changed) = shown(schema, name, viewer);
    whole.sort();
    assert_eq!(whole, expected, "{name} as a whole, with {viewer:?}");
    assert_eq!(changed, expected, "changes of {name}, with {viewer:?}");
}

fn compile_types(types: &[(&str, &str)]) -> Schema {
    let mut files = Tree::new();
    let names: String = types.iter().map(|(name, _)| format!("<{name}/>")).collect();
    files.insert("entities.xml", format!("<root> {names} </root>"));
    for (name, definition) in types {
        files.insert(format!("entity_defs/{name}.def"), *definition);
    }
    let compiled = compile(&files);
    compiled.schema.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

#[test]
fn a_property_is_shown_according_to_its_distribution() {
    let schema = compile_types(&[("Secrets", SECRETS)]);
    let secrets = schema.type_named("Secrets").unwrap();
    let visible = [
        ("baseOnly", false, false),
        ("baseClient", true, false),
        ("private", false, false),
        ("public", false, false),
        ("publicOwn", true, false),
        ("own", true, false),
        ("others", false, true),
        ("all", true, true),
    ];
    for (viewer, is_seen) in [(Viewer::Own, 1), (Viewer::Others, 2)] {
        let showing = Showing::new(&schema, ENTITY, secrets.id, viewer).unwrap();
        let mut expected = Vec::new();
        for (name, own, others) in visible {
            let seen = if is_seen == 1 { own } else { others };
            let member = secrets.property_named(name).unwrap().index;
            assert_eq!(showing.sees(member), seen, "{name} with {viewer:?}");
            expected.extend(seen.then_some(name));
        }
        expected.sort_unstable();
        expect_shown(&schema, "Secrets", viewer, &expected);
    }
}

/// A private member stays private even if the client's type shows it, and one that only the client's type hides has no
/// number there.
#[test]
fn a_client_name_exposes_no_private_member() {
    let schema = compile_types(&[("Chest", CHEST), ("Mimic", MIMIC)]);
    expect_shown(&schema, "Mimic", Viewer::Others, &["lid"]);
    expect_shown(&schema, "Mimic", Viewer::Own, &["lid", "prey"]);
}

/// A type, as which clients know another one: of its two methods one returns other values there, and one is not there.
fn answering() -> Schema {
    let methods = |price: &str, rest: &str| {
        format!(
            "<root> <BaseMethods> {rest} <price> <Exposed/> <ReturnValues> {price} </ReturnValues> </price> \
             <mood> <Exposed/> <ReturnValues> <mood> INT8 </mood> </ReturnValues> </mood> </BaseMethods> </root>"
        )
    };
    let mut files = Tree::new();
    files.insert("entities.xml", "<root> <Known/> <Real/> </root>");
    files.insert("entity_defs/Known.def", methods("<gold> UINT16 </gold>", ""));
    let secret = "<secret> <Exposed/> <ReturnValues> <a> INT8 </a> </ReturnValues> </secret>";
    let real = methods("<gold> UINT32 </gold>", secret)
        .replace("<mood> INT8", "<temper> INT8")
        .replace("</mood> </ReturnValues>", "</temper> </ReturnValues>");
    files.insert(
        "entity_defs/Real.def",
        real.replacen("<root>", "<root> <ClientName> Known </ClientName>", 1),
    );
    let compiled = compile(&files);
    compiled.schema.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

#[test]
fn an_answer_is_shown_as_the_clients_type_declares_the_method() {
    let schema = answering();
    let (known, real) = (schema.type_named("Known").unwrap(), schema.type_named("Real").unwrap());
    let replied = |method: &str, value: Value, to: u64| Event {
        subject: Subject::Entity(ENTITY, Part::Base),
        ..event(Body::Replied {
            to: SessionId(to),
            number: CallNumber(3),
            method: real.base_method_named(method).unwrap().index,
            outcome: Ok(vec![value]),
        })
    };
    let events = [
        replied("secret", Value::Int(1), 7),
        replied("price", Value::UInt(2), 7),
        replied("mood", Value::Int(3), 7),
        replied("mood", Value::Int(4), 8),
    ];
    let shown = |showing: Showing<'_>| -> Vec<(u64, Reply)> {
        let numbered = (1..).map(HistoryNumber).zip(events.iter().map(Some));
        let mut shown = Vec::new();
        for item in showing.update(HistoryNumber(0), numbered) {
            let ViewItem::Update { from, upto, events, .. } = item else {
                panic!("only updates are made of events");
            };
            let mut reader = ShownReader::new(known, (from, upto), &events);
            while let Some((number, event)) = reader.next_event(&[]).unwrap() {
                let Shown::Reply(reply) = event else {
                    panic!("{event:?}")
                };
                shown.push((number.0, reply));
            }
        }
        shown
    };
    let showing = Showing::new(&schema, ENTITY, real.id, Viewer::Own).unwrap();
    let expected = Reply {
        part: Part::Base,
        call: CallNumber(3),
        member: ClientMember(known.base_method_named("mood").unwrap().client_id.unwrap()),
        outcome: Ok(vec![Value::Int(3)]),
    };
    assert_eq!(shown(showing.seen_by(ENTITY, SessionId(7))), [(3, expected)]);
    assert_eq!(shown(showing.seen_by(ENTITY, SessionId(9))), [], "another session");
    assert_eq!(shown(showing), [], "nobody");
}
