//! Zones: what authors place in a space, checked against the definitions.

use std::sync::Arc;

use annals_def::{PlacedEntity, PlacedObject, Schema, Severity, Tree, Value, Zone, compile, typed::UdoRef};
use annals_ids::{Direction, MemberId, Position};

/// A world with a type that has both parts, one without a cell part, and user data objects.
fn world(zones: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Guard/> <Ledger/> <Rock/> </root>");
    tree.insert(
        "entity_defs/Guard.def",
        "<root> <Properties>
            <post> <Type> UDO_REF </Type> <Flags> CELL_PRIVATE </Flags> </post>
            <pay> <Type> INT32 </Type> <Flags> BASE </Flags> <Default> 5 </Default> </pay>
            <mood> <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </mood>
            <friend> <Type> MAILBOX </Type> <Flags> CELL_PRIVATE </Flags> </friend>
        </Properties> </root>",
    );
    tree.insert(
        "entity_defs/Ledger.def",
        "<root> <BaseMethods> <sum> </sum> </BaseMethods> </root>",
    );
    tree.insert(
        "entity_defs/Rock.def",
        "<root> <Distribution> <Cell> true </Cell> </Distribution> <CellMethods> <roll> </roll> </CellMethods> </root>",
    );
    tree.insert("user_data_objects.xml", "<root> <Lamp/> <Post/> </root>");
    tree.insert(
        "user_data_object_defs/Lamp.def",
        "<root> <Domain> BASE </Domain> </root>",
    );
    tree.insert(
        "user_data_object_defs/Post.def",
        "<root> <Domain> CELL </Domain> <Properties>
            <next> <Type> ARRAY <of> UDO_REF </of> </Type> </next>
            <wait> <Type> FLOAT32 </Type> <Default> 2 </Default> </wait>
        </Properties> </root>",
    );
    for (name, text) in zones {
        tree.insert(format!("zones/{name}.xml"), *text);
    }
    tree
}

fn post(guid: &str, properties: &str) -> String {
    format!(
        "<UserDataObject> <type> Post </type> <guid> {guid} </guid> <position> 1 2 3 </position> \
         <properties> {properties} </properties> </UserDataObject>"
    )
}

const FIRST: &str = "00000001.00000002.00000003.00000004";
const SECOND: &str = "11111111.22222222.33333333.44444444";

/// The code and the line of each finding, and the schema if there is one.
fn checked(zones: &[(&str, &str)]) -> (Vec<(String, Severity)>, Option<Schema>) {
    let compiled = compile(&world(zones));
    let found = compiled.diagnostics.iter();
    let found = found.map(|found| (found.rule.to_string(), found.severity)).collect();
    (found, compiled.schema)
}

fn error(code: &str) -> (String, Severity) {
    (code.to_owned(), Severity::Error)
}

#[test]
fn placed_things_have_the_values_of_the_zone_and_the_defaults_of_their_types() {
    let there = format!(
        "<root> {} <entity> <type> Guard </type> <position> -4.5 0 8 </position> <yaw> 1.5 </yaw> <roll> -1 </roll> \
         <properties> <post> {FIRST} </post> <pay> 9 </pay> </properties> </entity> \
         <entity> <type> Guard </type> <position> 0 0 0 </position> <hasBase> false </hasBase> </entity> \
         <entity> <type> Rock </type> <position> 0 0 0 </position> </entity> </root>",
        post(
            SECOND,
            &format!("<next> <item> {FIRST} </item> <item> {SECOND} </item> </next>")
        )
    );
    let here = format!("<root> {} </root>", post(FIRST, "<wait> 7.5 </wait>"));
    let (found, schema) = checked(&[("there", &there), ("here", &here)]);
    assert_eq!(found, []);
    let schema = schema.expect("nothing is wrong");
    let zones = schema.zones();
    assert_eq!(
        zones.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        ["here", "there"]
    );
    let guid = |numbers: [u32; 4]| -> [u8; 16] {
        let bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.try_into().expect("four numbers")
    };
    let (first, second) = (
        UdoRef(guid([1, 2, 3, 4])),
        UdoRef(guid([0x1111_1111, 0x2222_2222, 0x3333_3333, 0x4444_4444])),
    );
    let expected = PlacedObject {
        guid: second,
        kind: 1,
        position: Position { x: 1.0, y: 2.0, z: 3.0 },
        direction: Direction::default(),
        properties: vec![
            Value::Sequence(vec![Value::UdoRef(first.0), Value::UdoRef(second.0)]),
            Value::Float32(2.0),
        ],
    };
    assert_eq!(zones.object(second), Some(&expected));
    let other = zones.object(first).expect("it is in the other zone");
    assert_eq!(other.properties, [Value::Sequence(Vec::new()), Value::Float32(7.5)]);
    assert_eq!(zones.object(UdoRef([0; 16])), None);

    let guard = schema.type_named("Guard").expect("it is listed").id;
    let Zone { entities, .. } = zones.get("there").expect("it is there");
    let expected = PlacedEntity {
        type_id: guard,
        position: Position {
            x: -4.5,
            y: 0.0,
            z: 8.0,
        },
        direction: Direction {
            yaw: 1.5,
            pitch: 0.0,
            roll: -1.0,
        },
        based: true,
        properties: vec![(MemberId(0), Value::UdoRef(first.0)), (MemberId(1), Value::Int(9))],
    };
    assert_eq!(entities[0], expected);
    assert_eq!(entities[1].properties, []);
    assert_eq!(
        entities.iter().map(|entity| entity.based).collect::<Vec<_>>(),
        [true, false, false]
    );
    assert_eq!(zones.get("elsewhere"), None);
}

#[test]
fn zones_are_no_part_of_the_meaning_of_a_schema() {
    let zone = format!("<root> {} </root>", post(FIRST, ""));
    let (_, with) = checked(&[("here", &zone)]);
    let (_, without) = checked(&[]);
    let (with, without) = (with.expect("a schema"), without.expect("a schema"));
    assert_eq!(with.fingerprint(), without.fingerprint());
    let stored = Schema::decode(&with.encode()).expect("it was encoded");
    assert_eq!(stored.zones().iter().count(), 0);
}

#[test]
fn each_mistake_in_a_zone_is_found() {
    let entity = |inside: &str| format!("<root> <entity> {inside} </entity> </root>");
    let at = "<position> 0 0 0 </position>";
    let cases = [
        (entity(&format!("<type> Gard </type> {at}")), "D0801"),
        (entity(&format!("<type> Post </type> {at}")), "D0801"),
        // It has no cell part, and so no place.
        (entity(&format!("<type> Ledger </type> {at}")), "D0801"),
        (
            entity(&format!("<type> Rock </type> {at} <hasBase> true </hasBase>")),
            "D0801",
        ),
        // Only its base part has it.
        (
            entity(&format!(
                "<type> Guard </type> {at} <hasBase> false </hasBase> <properties> <pay> 1 </pay> </properties>"
            )),
            "D0802",
        ),
        (
            entity(&format!(
                "<type> Guard </type> {at} <properties> <rank> 1 </rank> </properties>"
            )),
            "D0802",
        ),
        (entity("<type> Guard </type>"), "D0110"),
        (entity(at), "D0110"),
        (entity("<type> Guard </type> <position> 0 0 </position>"), "D0107"),
        (entity("<type> Guard </type> <position> 0 nan 0 </position>"), "D0107"),
        (entity("<type> Guard </type> <position> 0 1e39 0 </position>"), "D0107"),
        (
            entity(&format!("<type> Guard </type> {at} <yaw> north </yaw>")),
            "D0107",
        ),
        (
            entity(&format!(
                "<type> Guard </type> {at} <properties> <mood> 256 </mood> </properties>"
            )),
            "D0318",
        ),
        (
            entity(&format!(
                "<type> Guard </type> {at} <properties> <post> 1 </post> </properties>"
            )),
            "D0318",
        ),
        (
            format!("<root> {} {} </root>", post(FIRST, ""), post(FIRST, "")),
            "D0803",
        ),
        (
            format!("<root> {} </root>", post("00000000.00000000.00000000.00000000", "")),
            "D0803",
        ),
        (format!("<root> {} </root>", post("00000001", "")), "D0803"),
        (format!("<root> {} </root>", post(FIRST, "<nxt> 1 </nxt>")), "D0802"),
    ];
    for (zone, code) in cases {
        let (found, schema) = checked(&[("here", &zone)]);
        assert_eq!(found, [error(code)], "{zone}");
        assert_eq!(schema, None, "{zone}");
    }
}

#[test]
fn what_has_no_effect_in_a_zone_is_a_warning() {
    let guard = "<type> Guard </type> <position> 0 0 0 </position>";
    let cases = [
        (
            format!("<root> <entity> {guard} <colour> 1 </colour> </entity> </root>"),
            "D0101",
        ),
        (
            format!("<root> <tree> </tree> <entity> {guard} </entity> </root>"),
            "D0101",
        ),
        (
            format!("<root> <entity> {guard} <properties> <post> {SECOND} </post> </properties> </entity> </root>"),
            "D0804",
        ),
    ];
    for (zone, code) in cases {
        let (found, schema) = checked(&[("here", &zone)]);
        assert_eq!(found, [(code.to_owned(), Severity::Warning)], "{zone}");
        let schema = schema.unwrap_or_else(|| panic!("{zone}"));
        assert_eq!(
            schema.zones().get("here").map(|zone| zone.entities.len()),
            Some(1),
            "{zone}"
        );
    }
}

/// The first value of a property counts, as for all sections; what a zone cannot set is reported.
#[test]
fn properties_of_a_placed_thing_are_set_once() {
    let guard = |properties: &str| {
        let placed =
            format!("<type> Guard </type> <position> 0 0 0 </position> <properties> {properties} </properties>");
        format!("<root> <entity> {placed} </entity> </root>")
    };
    let (found, schema) = checked(&[("here", &guard("<pay> 1 </pay> <pay> 2 </pay>"))]);
    assert_eq!(found, [("D0103".to_owned(), Severity::Warning)]);
    let zones = Arc::clone(schema.expect("a warning").zones());
    let entities = &zones.get("here").expect("it is there").entities;
    assert_eq!(entities[0].properties, [(MemberId(1), Value::Int(1))]);
    let (found, _) = checked(&[("here", &guard("<friend> 1 </friend>"))]);
    assert_eq!(found, [error("D0802")], "a mailbox");
}

#[test]
fn files_among_zones_that_are_none_are_reported() {
    let mut tree = world(&[]);
    for path in ["zones/town/plaza.xml", "zones/plaza.XML", "zones/plaza.def"] {
        tree.insert(path, "<root> </root>");
    }
    let compiled = compile(&tree);
    let found: Vec<String> = compiled
        .diagnostics
        .iter()
        .map(|found| found.rule.to_string())
        .collect();
    assert_eq!(found, ["D0104"; 3]);
}

/// Zones are in one notation. Where KBEngine would replace a wrong default and go on, a wrong value is an error.
#[test]
fn zones_of_a_world_in_kbengine_dialect_are_checked_alike() {
    let mut tree = Tree::new();
    tree.insert(
        "entities.xml",
        "<root> <Guard hasBase=\"true\" hasCell=\"true\"/> </root>",
    );
    tree.insert("entity_defs/types.xml", "<root> </root>");
    tree.insert(
        "entity_defs/Guard.def",
        "<root> <Properties>
            <post> <Type> VECTOR3 </Type> <Flags> CELL_PRIVATE </Flags> </post>
        </Properties> </root>",
    );
    let zone = |post: &str| {
        let placed = format!(
            "<type> Guard </type> <position> 0 0 0 </position> <properties> <post> {post} </post> </properties>"
        );
        format!("<root> <entity> {placed} </entity> </root>")
    };
    tree.insert("zones/here.xml", zone("1 2 3"));
    let sound = compile(&tree);
    assert_eq!(sound.diagnostics, []);
    let zones = Arc::clone(sound.schema.expect("it is sound").zones());
    let entities = &zones.get("here").expect("it is there").entities;
    assert_eq!(entities[0].properties, [(MemberId(0), Value::Vector3([1.0, 2.0, 3.0]))]);
    tree.insert("zones/here.xml", zone("1"));
    let wrong = compile(&tree);
    assert_eq!(wrong.schema, None);
    assert_eq!(wrong.diagnostics.len(), 1);
    assert_eq!(wrong.diagnostics[0].severity, Severity::Error);
}

/// A repeated GUID in another zone is found too, and a zone that is not well-formed is an error.
#[test]
fn zones_are_checked_together() {
    let zone = format!("<root> {} </root>", post(FIRST, ""));
    let (found, _) = checked(&[("here", &zone), ("there", &zone)]);
    assert_eq!(found, [error("D0803")]);
    let (found, schema) = checked(&[("here", "<root> <entity> </root>")]);
    assert_eq!(found, [error("D0005")]);
    assert_eq!(schema, None);
}
