//! `annals defs describe` on the command line, and its stored sizes compared with the bytes that the store receives.

use std::fs;

use annals_authoring::{StoredIndex, describe};
use annals_db::StoredEntity;
use annals_def::{DataType, Distribution, EntityType, Property, Schema, generate, split_mix};
use serde_json::Value as Json;

use crate::defs::{annals, text};

const WORLD: &str = "<root> <Properties>
	<!-- What it can take. -->
	<hp> <Type> UINT8 </Type> <Flags> ALL_CLIENTS </Flags> <Persistent> true </Persistent> </hp>
	<name> <Type> UNICODE_STRING </Type> <Flags> BASE_AND_CLIENT </Flags> </name>
</Properties> </root>";

fn world(definition: &str) -> tempfile::TempDir {
    let dir = crate::defs::world(definition);
    fs::write(dir.path().join("entities.xml"), "<root> <Avatar/> <Stone/> </root>").expect("a file");
    fs::write(dir.path().join("entity_defs/Stone.def"), "<root/>").expect("a file");
    dir
}

#[test]
fn types_are_described_as_a_table_or_json() {
    let dir = world(WORLD);
    let table = annals(dir.path(), &["describe", "."]);
    assert_eq!(table.status.code(), Some(0));
    let table = text(&table.stdout);
    assert!(
        table.contains("Avatar  type 0") && table.contains("Stone  type 1"),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "colours are for terminals");
    let one = text(&annals(dir.path(), &["describe", ".", "Stone"]).stdout);
    assert!(one.contains("Stone") && !one.contains("Avatar"), "{one}");
    let json = annals(dir.path(), &["describe", ".", "--format", "json"]);
    let json: Json = serde_json::from_slice(&json.stdout).expect("JSON");
    let properties = &json["types"][0]["client_properties"];
    assert_eq!(properties[0]["name"], "hp");
    assert_eq!(
        (&properties[0]["id"], &properties[0]["stream_size"]),
        (&0.into(), &1.into())
    );
    assert_eq!(properties[0]["documentation"], "What it can take.");
    assert_eq!(properties[1]["name"], "name");
    assert_eq!(
        (&properties[1]["id"], &properties[1]["stream_size"]),
        (&1.into(), &Json::Null)
    );
}

#[test]
fn both_page_commands_write_the_same_page_to_the_given_path() {
    let dir = world(WORLD);
    let page = annals(dir.path(), &["docs", "."]);
    assert_eq!(page.status.code(), Some(0));
    let page = text(&page.stdout);
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("What it can take."),
        "{page}"
    );
    let name = dir.path().file_name().expect("a name").to_string_lossy().into_owned();
    assert!(page.contains(&format!("<title>{name} ")), "it is named like the folder");
    for arguments in [
        ["docs", ".", "--out", "a.html"],
        ["describe", ".", "--html", "b.html"],
        ["docs", ".", "--out", "folder/"],
    ] {
        assert_eq!(annals(dir.path(), &arguments).status.code(), Some(0), "{arguments:?}");
    }
    for file in ["a.html", "b.html", "folder/index.html"] {
        assert_eq!(
            fs::read_to_string(dir.path().join(file)).expect("written"),
            page,
            "{file}"
        );
    }
    for arguments in [["describe", "--html", "."], ["describe", ".", "--html"]] {
        assert_eq!(text(&annals(dir.path(), &arguments).stdout), page, "{arguments:?}");
    }
    let refused = annals(dir.path(), &["docs", ".", "--out", "a.html/b.html"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("cannot be written"));
    let one = text(&annals(dir.path(), &["describe", ".", "Stone", "--html"]).stdout);
    assert!(
        one.contains("Stone") && !one.contains("type:Avatar"),
        "only what is asked for"
    );
}

#[test]
fn definitions_that_cannot_be_described_are_reported() {
    let dir = world(WORLD);
    let slip = annals(dir.path(), &["describe", ".", "Avatr"]);
    assert_eq!(slip.status.code(), Some(2));
    assert!(text(&slip.stderr).contains("did you mean Avatar?"));
    let nothing = annals(dir.path(), &["describe", "no/such/folder"]);
    assert_eq!(nothing.status.code(), Some(2));
    let wrong = world("<root> <Properties> <hp> <Type> UINT9 </Type> </hp> </Properties> </root>");
    let wrong = annals(wrong.path(), &["describe", "."]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("error[D0201]") && wrong.stdout.is_empty());
}

#[test]
fn stored_sizes_equal_the_bytes_given_to_the_store() {
    for seed in 0..200 {
        let mut dice = split_mix(seed);
        let types = [
            DataType::Int8,
            DataType::Int64,
            DataType::UInt32,
            DataType::Float32,
            DataType::Float64,
            DataType::String,
            DataType::Unicode,
            DataType::Vector3,
            DataType::UdoRef,
            DataType::Mailbox,
            DataType::Array(annals_def::Sequence::of(DataType::UInt16).into()),
            DataType::Tuple(annals_def::Sequence::sized(DataType::Vector2, 3).into()),
        ];
        let mut one = EntityType::new("Thing");
        for (at, data_type) in types.into_iter().enumerate() {
            let mut property = Property::new(format!("property{at}"), data_type, Distribution::Base);
            property.default = generate(&property.data_type, &mut dice);
            property.persistent = !dice().is_multiple_of(4);
            one.properties.push(property);
        }
        let persistent = one.properties.iter().filter(|property| property.persistent);
        let stored = StoredEntity {
            entity_type: one.name.clone(),
            properties: persistent
                .map(|property| (property.name.clone(), property.default.clone()))
                .collect(),
        };
        let described = describe(&Schema::new(vec![one], Vec::new(), Vec::new()));
        let described = &described.types[0];
        assert_eq!(
            described.totals.stored.of_defaults,
            stored.encode(0).len(),
            "seed {seed}"
        );
        assert!(described.totals.stored.least <= stored.encode(0).len(), "seed {seed}");
        for storage in described
            .properties
            .iter()
            .filter_map(|property| property.storage.as_ref())
        {
            let entry = StoredEntity {
                entity_type: String::new(),
                properties: [(storage.key.clone(), stored.properties[&storage.key].clone())].into(),
            };
            // The generation, the length of an empty name and a count of one take a byte each.
            let bytes = entry.encode(0).len() - 3;
            assert_eq!(storage.size.of_default(), bytes, "seed {seed}: {}", storage.key);
            assert!(
                storage.size.fixed().is_none_or(|fixed| fixed == bytes),
                "seed {seed}: {}",
                storage.key
            );
            assert_eq!(storage.index, StoredIndex::None);
        }
    }
}
