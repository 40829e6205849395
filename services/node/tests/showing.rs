//! What is told of events to whom.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use annals_def::{EntityType, Located, Schema, Tree, Value, compile};
use annals_event::{Audience, Body, Cause, Event, Subject};
use annals_ids::{EntityId, HistoryNumber, Part};
use annals_node::{Eyes, Showing};
use annals_wire::client::{Shown, ShownReader, ViewItem};

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

/// The members and values that are told of these events, by their numbers.
fn told(schema: &Schema, eyes: Eyes, events: &[Event]) -> Vec<(u64, String)> {
    told_from_afar(schema, eyes, 0.0, events)
}

fn told_from_afar(schema: &Schema, eyes: Eyes, distance: f32, events: &[Event]) -> Vec<(u64, String)> {
    let avatar = &schema.types()[0];
    let showing = Showing::new(schema, ENTITY, avatar.id, eyes)
        .unwrap()
        .from_afar(distance);
    let numbered = (1..).map(HistoryNumber).zip(events.iter().map(Some));
    let mut told = Vec::new();
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
            };
            told.push((number.0, text));
        }
    }
    told
}

#[test]
fn of_a_member_that_is_send_latest_only_the_newest_event_is_told_and_of_others_all() {
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
        // Newer, but not for others: of what those see, the one before is the newest.
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
    assert_eq!(told(&schema, Eyes::Others, &events), expected((7, "onEmote [UInt(7)]")));
    assert_eq!(told(&schema, Eyes::Own, &events), expected((9, "onEmote [UInt(9)]")));
}

#[test]
fn of_a_member_that_may_get_lost_the_newest_event_is_told() {
    let schema = schema();
    let avatar = &schema.types()[0];
    let events = [
        set(avatar, "glow", 1),
        invoke(avatar, "onBlink", 2, Audience::All),
        set(avatar, "glow", 3),
        invoke(avatar, "onBlink", 4, Audience::All),
    ];
    let expected = [(3, "glow UInt(3)".to_owned()), (4, "onBlink [UInt(4)]".to_owned())];
    assert_eq!(told(&schema, Eyes::Others, &events), expected);
}

#[test]
fn a_method_with_a_detail_distance_is_told_to_others_within_it_and_to_its_own_client() {
    let schema = schema();
    let avatar = &schema.types()[0];
    let events = [
        invoke(avatar, "onSigh", 1, Audience::All),
        invoke(avatar, "onSay", 2, Audience::All),
    ];
    let told = |eyes, distance| {
        let told = told_from_afar(&schema, eyes, distance, &events);
        told.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    assert_eq!(told(Eyes::Others, 30.0), [1, 2]);
    assert_eq!(told(Eyes::Others, 30.1), [2]);
    assert_eq!(told(Eyes::Own, 30.1), [1, 2]);
}
