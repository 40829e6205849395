//! The reported costs of a schema: ids against an oracle, sizes against the encoded bytes, and the output for the
//! sample world.

use std::{fs, path::Path};

use annals_authoring::{Description, describe, description_to_json, to_table};
use annals_def::{
    Argument, DataType, Diagnostic, Distribution, EntityType, Exposure, Form, MessageRange, Method, Property, Schema,
    Size, Style, Tree, Value, encode, generate, generate_type, split_mix, survey, survey_dir,
};
use annals_ids::Part;
use serde_json::Value as Json;

const SEED: u64 = 0x0d12;
const SCHEMAS: u64 = 60;

fn random_method(name: String, dice: &mut dyn FnMut() -> u64) -> Method {
    let args = (0..dice() % 4).map(|i| Argument::new(format!("arg{i}"), generate_type(3, dice)));
    let mut method = Method::new(name, args.collect());
    method.exposed = [Exposure::No, Exposure::OwnClient, Exposure::AllClients][dice() as usize % 3];
    method
}

/// A schema of one type, which sometimes has more members than single-byte ids.
fn random_schema(seed: u64) -> Schema {
    let mut dice = split_mix(seed);
    let mut one = EntityType::new("Thing");
    let many = if seed.is_multiple_of(10) { 700 } else { 30 };
    for i in 0..dice() % many {
        let distribution = Distribution::ALL[dice() as usize % Distribution::ALL.len()];
        let data_type = generate_type(3, &mut dice);
        let mut property = Property::new(format!("p{i}"), data_type, distribution);
        property.default = generate(&property.data_type, &mut dice);
        property.persistent = dice().is_multiple_of(2);
        one.properties.push(property);
    }
    for methods in [&mut one.base_methods, &mut one.cell_methods, &mut one.client_methods] {
        methods.extend((0..dice() % 20).map(|i| random_method(format!("m{i}"), &mut dice)));
    }
    Schema::new(vec![one], Vec::new(), Vec::new())
}

/// Oracle for the order of ids: fixed sizes ascending, then the others, equal sizes in declaration order. Repeatedly
/// picks the least remaining member.
fn in_id_order(members: impl Iterator<Item = (String, Option<usize>)>) -> Vec<(String, Option<usize>)> {
    let mut left: Vec<_> = members.collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let mut least = 0;
        for at in 1..left.len() {
            let comes_first = match (left[at].1, left[least].1) {
                (Some(a), Some(b)) => a < b,
                (Some(_), None) => true,
                (None, _) => false,
            };
            least = if comes_first { at } else { least };
        }
        order.push(left.remove(least));
    }
    order
}

/// Bytes of a method's arguments, if every argument has a fixed size.
fn size_of(method: &Method) -> Option<usize> {
    method.args.iter().map(|arg| arg.data_type.stream_size()).sum()
}

fn listed(json: &Json, key: &str) -> Vec<(String, Option<usize>)> {
    let entries = json[key].as_array().expect("a list").iter().enumerate();
    let entry = |(id, entry): (usize, &Json)| {
        assert_eq!(entry["id"], id, "{key}");
        let size = entry["stream_size"]
            .as_u64()
            .map(|size| usize::try_from(size).expect("small"));
        assert!(size.is_some() || entry["stream_size"].is_null(), "{key}");
        (entry["name"].as_str().expect("a name").to_owned(), size)
    };
    entries.map(entry).collect()
}

#[test]
fn members_are_listed_in_id_order() {
    for seed in SEED..SEED + SCHEMAS {
        let schema = random_schema(seed);
        let json: Json = serde_json::from_str(&description_to_json(&describe(&schema))).expect("JSON");
        let (one, json) = (&schema.types()[0], &json["types"][0]);
        let seen = one
            .properties
            .iter()
            .filter(|property| property.distribution.to_clients());
        let seen = in_id_order(seen.map(|property| (property.name.clone(), property.data_type.stream_size())));
        assert_eq!(listed(json, "client_properties"), seen, "seed {seed}");
        let named = |method: &Method| (method.name.clone(), size_of(method));
        let exposed = |methods: &[Method]| {
            let exposed = methods.iter().filter(|method| method.exposed != Exposure::No);
            in_id_order(exposed.map(named))
        };
        assert_eq!(
            listed(json, "exposed_base_methods"),
            exposed(&one.base_methods),
            "seed {seed}"
        );
        assert_eq!(
            listed(json, "exposed_cell_methods"),
            exposed(&one.cell_methods),
            "seed {seed}"
        );
        let methods = in_id_order(one.client_methods.iter().map(named));
        assert_eq!(listed(json, "client_methods"), methods, "seed {seed}");
    }
}

#[test]
fn reported_sizes_equal_the_encoded_sizes() {
    for seed in SEED..SEED + SCHEMAS {
        let mut dice = split_mix(seed);
        let schema = random_schema(seed);
        let description = describe(&schema);
        for (property, described) in schema.types()[0]
            .properties
            .iter()
            .zip(&description.types[0].properties)
        {
            let bytes = |value: &Value| {
                let mut bytes = Vec::new();
                encode(&property.data_type, value, Form::Whole, &mut bytes).expect("fits");
                bytes.len()
            };
            let any = bytes(&generate(&property.data_type, &mut dice));
            let of_default = bytes(&property.default);
            match described.size {
                Size::Fixed(size) => assert_eq!((any, of_default), (size, size), "seed {seed}"),
                Size::Variable {
                    least,
                    of_default: described,
                } => {
                    assert!(
                        any >= least && of_default >= least,
                        "seed {seed}: {}",
                        property.data_type
                    );
                    assert_eq!(described, of_default, "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn totals_are_the_sums_per_receiver() {
    for seed in SEED..SEED + SCHEMAS {
        let schema = random_schema(seed);
        let (one, totals) = (&schema.types()[0], describe(&schema).types[0].totals);
        let default_bytes = |has: fn(&Distribution) -> bool| {
            let properties = one.properties.iter().filter(|property| has(&property.distribution));
            let mut bytes = Vec::new();
            properties.for_each(|property| {
                encode(&property.data_type, &property.default, Form::Whole, &mut bytes).expect("fits");
            });
            bytes.len()
        };
        assert_eq!(
            totals.own_client.of_defaults,
            default_bytes(|to| to.to_own_client()),
            "seed {seed}"
        );
        assert_eq!(
            totals.other_clients.of_defaults,
            default_bytes(|to| to.to_other_clients()),
            "seed {seed}"
        );
        assert_eq!(
            totals.ghosts.of_defaults,
            default_bytes(|to| to.to_ghosts()),
            "seed {seed}"
        );
    }
}

/// Describes a type with `count` properties that clients see.
fn with_client_properties(count: usize) -> Description {
    let mut one = EntityType::new("Thing");
    let property = |i| Property::new(format!("p{i}"), DataType::Int8, Distribution::AllClients);
    one.properties = (0..count).map(property).collect();
    describe(&Schema::new(vec![one], Vec::new(), Vec::new()))
}

#[test]
fn members_with_ids_beyond_one_byte_are_counted() {
    for (count, over) in [(0, 0), (252, 0), (253, 0), (254, 2), (507, 255), (508, 257), (509, 258)] {
        let description = with_client_properties(count);
        assert_eq!(description.types[0].client_properties.overflowing(), over, "{count}");
    }
}

/// A type with this many properties that clients see, client methods and exposed cell methods.
fn crowded(properties: u16, methods: u16) -> Schema {
    let mut one = EntityType::new("Thing");
    let property = |i| Property::new(format!("p{i}"), DataType::Int8, Distribution::AllClients);
    one.properties = (0..properties).map(property).collect();
    let method = |i| Method::new(format!("m{i}"), Vec::new());
    one.client_methods = (0..methods).map(method).collect();
    one.cell_methods = (0..methods).map(method).collect();
    one.cell_methods
        .iter_mut()
        .for_each(|method| method.exposed = Exposure::AllClients);
    Schema::new(vec![one], Vec::new(), Vec::new())
}

#[test]
fn reported_id_lengths_equal_those_in_messages() {
    for (properties, methods) in [
        (0, 0),
        (3, 5),
        (253, 0),
        (254, 0),
        (200, 100),
        (100, 200),
        (127, 126),
        (600, 600),
        (0, 257),
        (40_000, 300),
    ] {
        let schema = crowded(properties, methods);
        let (one, described) = (&schema.types()[0], &describe(&schema).types[0]);
        let (shown_properties, shown_methods) = MessageRange::of_shown(one);
        for (ids, range) in [
            (&described.client_properties, shown_properties),
            (&described.client_method_ids, shown_methods),
            (&described.exposed_cell_methods, MessageRange::of_calls(one, Part::Cell)),
        ] {
            for id in 0..ids.members.len() {
                let mut bytes = Vec::new();
                range.put(u16::try_from(id).expect("small"), &mut bytes);
                assert_eq!(bytes.len() == 1, id < ids.single_byte, "{properties}, {methods}: {id}");
                let length = ids.length(u16::try_from(id).expect("small"));
                assert_eq!(length, bytes.len(), "{properties}, {methods}: {id}");
            }
        }
    }
}

fn sample() -> Description {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
    Description::of_survey(&survey_dir(&folder)).expect("the sample world has no errors")
}

/// `UPDATE_EXPECT=1 cargo test -p annals-authoring --test authoring describe` rewrites the expectations.
fn compare(said: &str, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data").join(name);
    #[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(&path, said).expect("writable");
    }
    assert_eq!(said, fs::read_to_string(&path).unwrap_or_default(), "{name}");
}

#[test]
fn the_sample_world_description_matches_the_golden_file() {
    compare(&description_to_json(&sample()), "sample_world.describe.json");
    compare(&to_table(&sample(), Style::Plain), "sample_world.describe.txt");
}

#[test]
fn the_table_fits_a_terminal_and_is_coloured_only_on_request() {
    let plain = to_table(&sample(), Style::Plain);
    assert!(!plain.contains('\u{1b}'));
    for line in plain.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let coloured = to_table(&sample(), Style::Coloured);
    assert!(coloured.contains('\u{1b}'));
    let stripped: Vec<&str> = coloured.split('\u{1b}').collect();
    let stripped = stripped[1..]
        .iter()
        .map(|part| part.split_once('m').expect("a sequence").1);
    assert_eq!(
        format!(
            "{}{}",
            coloured.split('\u{1b}').next().expect("a part"),
            stripped.collect::<String>()
        ),
        plain
    );
}

#[test]
fn advice_is_shown_at_its_member() {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <Avatar/> <Monster/> </root>");
    tree.insert("entity_defs/alias.xml", "<root> <GOLD> UINT32 </GOLD> </root>");
    let levels = "<LoDLevels> <level> 20 <label> NEAR </label> </level> </LoDLevels>";
    let share = "<share> <Type> FLOAT64 </Type> <Flags> OWN_CLIENT </Flags> </share>";
    let say = "<onSay> <Arg> STRING </Arg> </onSay>";
    tree.insert(
        "entity_defs/Avatar.def",
        format!("<root> {levels} <Properties> <hp> <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> </hp> {share} </Properties> <ClientMethods> {say} </ClientMethods> </root>"),
    );
    tree.insert("entity_defs/Monster.def", "<root> <Parent> Avatar </Parent> </root>");
    let description = Description::of_survey(&survey(&tree)).expect("no errors");
    let codes = |advice: &[Diagnostic]| {
        advice
            .iter()
            .map(|one| one.rule.to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    for one in &description.types {
        assert_eq!(codes(&one.properties[0].advice), "", "{}", one.name);
        assert_eq!(codes(&one.properties[1].advice), "D0702", "{}", one.name);
        assert_eq!(codes(&one.client_methods[0].advice), "D0718 D0709", "{}", one.name);
    }
    assert_eq!(codes(&description.types[0].advice), "D0719");
    assert_eq!(
        codes(&description.types[1].advice),
        "",
        "the advice on the parent is there"
    );
    assert_eq!(codes(&description.aliases[0].advice), "D0723");
    assert!(to_table(&description, Style::Plain).contains("  D0702  `share` is sent to clients with 64 bits; "));
    let json: Json = serde_json::from_str(&description_to_json(&description)).expect("JSON");
    assert_eq!(json["types"][0]["properties"][1]["advice"][0]["code"], "D0702");
}

#[test]
fn members_have_their_origin_and_comments() {
    let description = sample();
    let avatar = description
        .types
        .iter()
        .find(|one| one.name == "Avatar")
        .expect("listed");
    let origin = |name: &str| {
        let property = avatar.properties.iter().find(|property| property.name == name);
        property.and_then(|property| property.origin.clone()).expect("declared")
    };
    let hp = origin("hp");
    assert_eq!(hp.from.to_string(), "interface Combat");
    assert_eq!(hp.place.to_string(), "entity_defs/interfaces/Combat.def:4");
    assert_eq!(hp.written, ["HEALTH"]);
    assert_eq!(
        origin("heldItem").documentation.as_deref(),
        Some("What others see in the hand; one's own client knows it already.")
    );
    assert_eq!(origin("level").documentation, None);
    assert_eq!(origin("friends").written, ["ARRAY of UNICODE_STRING"]);
    let combat = description
        .definitions
        .iter()
        .find(|one| one.definition.name == "Combat")
        .expect("used");
    assert_eq!(combat.heirs, ["Avatar", "Monster"]);
    assert_eq!(combat.documentation.as_deref(), Some("Who can be hurt."));
    let home = description
        .aliases
        .iter()
        .find(|alias| alias.name == "HOME")
        .expect("declared");
    assert_eq!((home.size.fixed(), home.written.as_str()), (None, "FIXED_DICT {…}"));
    assert_eq!(home.documentation.as_deref(), Some("A place to come back to."));
}
