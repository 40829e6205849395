//! `annals realm query` on the data directory of a stopped realm, and on a missing one.

use std::{path::Path, process::Command};

use annals_db::{StoredEntity, accounts};
use annals_def::{DataType, Distribution, EntityType, Index, Property, Schema, Value, split_mix};
use annals_ids::{DatabaseId, OwnerId, WallTime};
use annals_store::{
    Store,
    embedded::EmbeddedStore,
    layout::{chunks, director},
};
use serde_json::json;
use tempfile::TempDir;

/// Avatars in the realm.
const AVATARS: u64 = 120;

/// Waits for the answer of a store on disk.
fn wait_for<T>(answer: impl Future<Output = T>) -> T {
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build();
    waiting.unwrap().block_on(answer)
}

fn schema() -> Schema {
    let mut avatar = EntityType::new("Avatar");
    avatar.properties = vec![
        Property::new("name", DataType::Unicode, Distribution::Base),
        Property::new("level", DataType::UInt16, Distribution::Base),
        Property::new("gold", DataType::Int64, Distribution::AllClients),
        Property::new("mood", DataType::Unicode, Distribution::Base),
    ];
    for property in &mut avatar.properties[..3] {
        property.persistent = true;
    }
    avatar.properties[0].indexed = Index::Unique;
    avatar.properties[0].identifier = true;
    avatar.properties[1].indexed = Index::Plain;
    Schema::new(vec![avatar, EntityType::new("Chest")], Vec::new(), Vec::new())
}

fn begin(store: &Store, schema: &Schema) {
    let transaction = store.begin();
    let (began, fingerprint) = (WallTime(1), schema.fingerprint());
    let realm = director::Realm {
        began,
        schema: fingerprint,
    };
    transaction.set(&director::realm_key(), &realm.encode()).unwrap();
    for (key, chunk) in chunks(&director::schema_key(fingerprint), &schema.encode()) {
        transaction.set(&key, chunk).unwrap();
    }
    wait_for(transaction.commit()).unwrap();
}

fn make(store: &Store, schema: &Schema, entity_type: &str, properties: &[(&str, Value)], key: u64) -> DatabaseId {
    let entity = StoredEntity {
        entity_type: entity_type.to_owned(),
        properties: properties
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
    };
    wait_for(accounts::create(store, &key.to_be_bytes(), "-", &entity, schema))
        .unwrap()
        .database
}

fn run(data: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    let output = command
        .args(["realm", "query"])
        .args(arguments)
        .arg("--data")
        .arg(data)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn found(data: &Path, arguments: &[&str]) -> serde_json::Value {
    let (code, text) = run(data, &[arguments, &["--format", "json"]].concat());
    assert_eq!(code, Some(0), "{text}");
    serde_json::from_str(&text).unwrap()
}

fn ids(answer: &serde_json::Value) -> Vec<u64> {
    let found = answer["found"].as_array().unwrap();
    found.iter().map(|entity| entity["id"].as_u64().unwrap()).collect()
}

#[test]
fn entities_are_found_by_value_without_changes_to_the_store() {
    let (folder, schema, mut dice) = (TempDir::new().unwrap(), schema(), split_mix(7));
    let mut expected: Vec<(u64, u64, i64)> = Vec::new();
    {
        let store = EmbeddedStore::open(&folder.path().join("store")).unwrap().store();
        begin(&store, &schema);
        for number in 0..AVATARS {
            let (level, gold) = (1 + dice() % 4, (dice() % 3) as i64 - 1);
            let name = Value::Unicode(format!("n{number}"));
            let properties = [
                ("name", name),
                ("level", Value::UInt(level)),
                ("gold", Value::Int(gold)),
            ];
            let id = make(&store, &schema, "Avatar", &properties, number);
            expected.push((id.0, level, gold));
        }
        make(&store, &schema, "Chest", &[], AVATARS);
        wait_for(accounts::check_out(&store, DatabaseId(expected[3].0), OwnerId(9))).unwrap();
    }
    let data = folder.path();
    let of = |level: u64, gold: Option<i64>| -> Vec<u64> {
        let all = expected
            .iter()
            .filter(|(_, held, coins)| *held == level && gold.is_none_or(|gold| gold == *coins));
        all.map(|(id, ..)| *id).collect()
    };
    for level in 1..=4 {
        let condition = format!("level={level}");
        let by_index = found(data, &["Avatar", "--where", &condition]);
        assert_eq!(
            (ids(&by_index), &by_index["index"]),
            (of(level, None), &json!("level")),
            "{by_index}"
        );
        let both = found(data, &["Avatar", "--where", "gold=-1", "--where", &condition]);
        assert_eq!(ids(&both), of(level, Some(-1)), "{both}");
    }
    let poor: Vec<u64> = expected
        .iter()
        .filter(|(_, _, gold)| *gold == -1)
        .map(|(id, ..)| *id)
        .collect();
    let scanned = found(data, &["Avatar", "--where", "gold=-1", "--limit", "1000"]);
    assert_eq!((ids(&scanned), &scanned["index"]), (poor.clone(), &json!(null)));
    assert_eq!(
        (&scanned["scanned"], &scanned["more"]),
        (&json!(AVATARS + 1), &json!(false))
    );
    let few = found(data, &["Avatar", "--where", "gold=-1", "--limit", "2"]);
    assert_eq!((ids(&few), &few["more"]), (poor[..2].to_vec(), &json!(true)));
    let bounded = found(data, &["Avatar", "--scan", "5"]);
    assert_eq!((ids(&bounded).len(), &bounded["more"]), (5, &json!(true)));

    let one = found(data, &["Avatar", "--where", "name=n3", "--select", "name,gold"]);
    let gold = expected[3].2;
    assert_eq!(one["found"][0]["properties"], json!({ "name": "n3", "gold": gold }));
    assert_eq!(one["found"][0]["inUse"]["owner"], json!(9));
    let (code, text) = run(data, &["Avatar", "--where", "name=n3", "--select", "name"]);
    assert_eq!(code, Some(0), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("id") && lines[1].contains("owner 9"), "{text}");
    assert!(
        lines[1].ends_with("\"n3\"") && lines[2] == "1 found, by the index on name",
        "{text}"
    );
}

#[test]
fn invalid_queries_are_reported() {
    let (folder, schema) = (TempDir::new().unwrap(), schema());
    let (code, text) = run(folder.path(), &["Avatar"]);
    assert!(
        code == Some(2) && text.contains("not the data directory of a realm"),
        "{text}"
    );
    {
        let store = EmbeddedStore::open(&folder.path().join("store")).unwrap().store();
        make(&store, &schema, "Avatar", &[], 1);
    }
    let (code, text) = run(folder.path(), &["Avatar"]);
    assert!(code == Some(2) && text.contains("the realm has not begun"), "{text}");
    {
        let store = EmbeddedStore::open(&folder.path().join("store")).unwrap().store();
        begin(&store, &schema);
    }
    for (arguments, said) in [
        (vec!["Dragon"], "the realm has no entity type Dragon"),
        (vec!["Avatar", "--where", "mood=glad"], "Avatar stores no property mood"),
        (
            vec!["Avatar", "--select", "name,mood"],
            "Avatar stores no property mood",
        ),
        (
            vec!["Avatar", "--where", "level=-1"],
            "`-1` is not a value of that type",
        ),
        (vec!["Avatar", "--where", "level"], "write PROPERTY=VALUE"),
    ] {
        let (code, text) = run(folder.path(), &arguments);
        assert!(code == Some(2) && text.contains(said), "{arguments:?}: {text}");
    }
}
