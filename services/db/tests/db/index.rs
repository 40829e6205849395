//! Entities are found by their present indexed values, and not by former ones.

use std::collections::BTreeMap;

use annals_db::{FindError, find_indexed};
use annals_def::{Value, split_mix};
use annals_ids::{DatabaseId, EntityId, Part};
use annals_store::immediate;

use crate::{acts, game, realm::Realm};

/// Entities whose indexed values change.
const ENTITIES: u64 = 8;

/// Changes that are stored.
const CHANGES: usize = 60;

fn found(realm: &Realm, property: &str, value: &Value, after: u64, limit: usize) -> Vec<DatabaseId> {
    let reading = realm.store.begin();
    let place = (DatabaseId(after), limit);
    immediate(find_indexed(&reading, game::avatar(), property, value, place)).expect("it is indexed")
}

/// Mottos that are adjacent in any order: one is a prefix of another, and some contain the byte that ends a key.
fn mottos() -> Vec<Value> {
    let long = |last: u8| [vec![b'x'; 255], vec![last]].concat();
    let mottos = [
        Vec::new(),
        vec![0],
        vec![0, 0xff],
        b"a".to_vec(),
        b"a\0".to_vec(),
        b"a\0\0\0\0\0\0\0\0".to_vec(),
        vec![b'a', 0xff],
        vec![0xff; 9],
        long(1),
        long(2),
    ];
    mottos.into_iter().map(Value::Bytes).collect()
}

#[test]
fn a_lookup_returns_the_entities_with_the_current_value() {
    let levels: Vec<Value> = [-32_768, -256, -255, -1, 0, 1, 255, 256, 32_767].map(Value::Int).into();
    for seed in 0..20 {
        let mut dice = split_mix(seed);
        let mut realm = Realm::new(seed);
        let base = realm.found(Part::Base);
        let choices = [("level", levels.clone()), ("motto", mottos())];
        for number in 1..=ENTITIES {
            acts::begin_base(&mut realm, base, EntityId(number), "", (0, 0));
        }
        let mut expected: BTreeMap<(&str, u64), Value> = BTreeMap::new();
        for _ in 0..CHANGES {
            let number = 1 + dice() % ENTITIES;
            let (property, values) = &choices[(dice() % 2) as usize];
            let value = values[(dice() % values.len() as u64) as usize].clone();
            acts::set(&mut realm, base, EntityId(number), property, value.clone());
            acts::store(&mut realm, base, EntityId(number), 900 + number);
            realm.write(base, false);
            realm.fold(usize::MAX);
            for (property, _) in &choices {
                expected
                    .entry((property, number))
                    .or_insert_with(|| values_default(property));
            }
            expected.insert((property, number), value);
            for (property, values) in &choices {
                for value in values {
                    let right = expected
                        .iter()
                        .filter(|((name, _), held)| name == property && *held == value);
                    let right: Vec<DatabaseId> = right.map(|((_, number), _)| DatabaseId(900 + number)).collect();
                    assert_eq!(
                        found(&realm, property, value, 0, 100),
                        right,
                        "seed {seed}: {property} {value}"
                    );
                    if let [first, second, ..] = right[..] {
                        assert_eq!(
                            found(&realm, property, value, first.0, 1),
                            [second],
                            "seed {seed}: the next one"
                        );
                    }
                }
            }
        }
    }
}

fn values_default(property: &str) -> Value {
    match property {
        "level" => Value::Int(0),
        _ => Value::Bytes(Vec::new()),
    }
}

#[test]
fn a_lookup_without_an_index_is_rejected() {
    let realm = Realm::new(0);
    let look_up = |property: &str| {
        let reading = realm.store.begin();
        let place = (DatabaseId(0), 1);
        immediate(find_indexed(&reading, game::avatar(), property, &Value::Int(0), place))
    };
    assert!(matches!(look_up("gold"), Err(FindError::NotIndexed { .. })));
    assert!(matches!(look_up("silver"), Err(FindError::Unknown { .. })));
}
