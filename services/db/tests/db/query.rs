//! Queries over stored entities, compared with an examination of each entity.

use annals_db::{Query, QueryError, StoredEntity, accounts, query};
use annals_def::{Value, split_mix};
use annals_ids::{DatabaseId, OwnerId};
use annals_store::{MemoryStore, Store, immediate};

use crate::game;

/// Stored entities: more than one page of rows, as some take several.
const ENTITIES: u64 = 300;

/// Size of a row that exceeds one value of the store.
const LARGE: usize = 250_000;

/// Some properties of an entity. Those left out were never stored.
fn entity(dice: &mut impl FnMut() -> u64) -> StoredEntity {
    let mut properties = Vec::new();
    let mut give = |name: &str, values: &[Value], roll: u64| {
        if let Some(value) = values.get(roll as usize) {
            properties.push((name.to_owned(), value.clone()));
        }
    };
    give("level", &levels(), dice() % 6);
    give("motto", &mottos(), dice() % 6);
    give("gold", &golds(), dice() % 3);
    if dice().is_multiple_of(8) {
        give("baggage", &[Value::Bytes(vec![7; LARGE])], 0);
    }
    StoredEntity {
        entity_type: if dice().is_multiple_of(10) { "Chest" } else { "Avatar" }.to_owned(),
        properties: properties.into_iter().collect(),
    }
}

/// 0 is the default.
fn levels() -> Vec<Value> {
    [-1, 0, 1, 2].map(Value::Int).into()
}

/// The empty one is the default; the last two have the same bytes in the index.
fn mottos() -> Vec<Value> {
    let long = |last: u8| [vec![b'x'; 255], vec![last]].concat();
    [Vec::new(), b"a".to_vec(), long(1), long(2)].map(Value::Bytes).into()
}

fn golds() -> Vec<Value> {
    [0, 5].map(Value::Int).into()
}

fn stored(seed: u64) -> (Store, Vec<(DatabaseId, StoredEntity)>) {
    let (store, mut dice) = (MemoryStore::new().store(), split_mix(seed));
    let make = |number: u64| {
        let entity = entity(&mut dice);
        let name = number.to_be_bytes();
        let made = immediate(accounts::create(&store, &name, "-", &entity, &game::schema()));
        (made.expect("this store has no faults").database, entity)
    };
    let entities = (0..ENTITIES).map(make).collect();
    (store, entities)
}

fn ask(conditions: &[(&str, Value)], (limit, scanned): (usize, usize)) -> Query {
    let named = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone());
    Query {
        entity_type: "Avatar".to_owned(),
        conditions: conditions.iter().map(named).collect(),
        limit,
        scanned,
    }
}

#[test]
fn query_results_equal_a_full_scan() {
    for seed in 0..4 {
        let (store, entities) = stored(seed);
        let mut dice = split_mix(seed ^ 0x51);
        for turn in 0..60 {
            let mut conditions = Vec::new();
            for (property, values) in [("gold", golds()), ("level", levels()), ("motto", mottos())] {
                if dice().is_multiple_of(2) {
                    conditions.push((property, values[(dice() % values.len() as u64) as usize].clone()));
                }
            }
            let holds = |entity: &StoredEntity, property: &str, value: &Value| {
                let default = game::avatar().property_named(property).map(|found| &found.default);
                entity.properties.get(property).or(default) == Some(value)
            };
            let right = entities.iter().filter(|(_, entity)| {
                entity.entity_type == "Avatar"
                    && conditions
                        .iter()
                        .all(|(property, value)| holds(entity, property, value))
            });
            let right: Vec<(DatabaseId, StoredEntity)> = right.cloned().collect();
            let limit = 1 + (dice() % (2 * ENTITIES)) as usize;
            let asked = ask(&conditions, (limit, usize::MAX));
            let about = format!("seed {seed}, turn {turn}: {asked:?}");
            let answer = immediate(query(&store, &game::schema(), &asked)).expect("it can be asked");
            let found = answer.found.into_iter();
            let found: Vec<(DatabaseId, StoredEntity)> = found.map(|one| (one.database, one.entity)).collect();
            assert_eq!(found, right[..limit.min(right.len())], "{about}");
            assert!(answer.more || right.len() <= limit, "{about}");
            let by_index = |property: &str, unnamed: Value| {
                let mut named = conditions.iter().filter(|(name, _)| *name == property);
                named.any(|(_, value)| *value != unnamed)
            };
            let expected = if by_index("level", Value::Int(0)) {
                Some("level")
            } else if by_index("motto", Value::Bytes(Vec::new())) {
                Some("motto")
            } else {
                None
            };
            assert_eq!(answer.index.as_deref(), expected, "{about}");
        }
    }
}

#[test]
fn a_query_respects_its_limits_and_reports_check_outs() {
    let (store, entities) = stored(9);
    let (first, owner) = (entities[0].0, OwnerId(3));
    let held = immediate(accounts::check_out(&store, first, owner)).expect("this store has no faults");
    let asked = ask(&[], (usize::MAX, 20));
    let answer = immediate(query(&store, &game::schema(), &asked)).expect("it can be asked");
    assert_eq!((answer.scanned, answer.more), (20, true));
    for found in answer.found {
        assert_eq!(found.checkout, held.filter(|_| found.database == first));
    }
    let all = ask(&[], (usize::MAX, usize::MAX));
    let answer = immediate(query(&store, &game::schema(), &all)).expect("it can be asked");
    assert_eq!((answer.scanned, answer.more), (ENTITIES as usize, false));
}

#[test]
fn queries_for_undefined_members_are_rejected() {
    let (store, _) = stored(1);
    let asked = |query_type: &str, property: &str| {
        let question = Query {
            entity_type: query_type.to_owned(),
            ..ask(&[(property, Value::Int(0))], (1, 1))
        };
        immediate(query(&store, &game::schema(), &question)).expect_err("it cannot be asked")
    };
    assert!(matches!(asked("Dragon", "gold"), QueryError::UnknownType(_)));
    assert!(matches!(asked("Avatar", "notes"), QueryError::NotStored { .. }));
    assert!(matches!(asked("Avatar", "silver"), QueryError::NotStored { .. }));
}
