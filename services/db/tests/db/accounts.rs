//! Accounts and check-outs, with lost answers.

use std::sync::Arc;

use annals_db::{StoredEntity, accounts, find_stored};
use annals_def::{Value, split_mix};
use annals_ids::{DatabaseId, OwnerId, Part};
use annals_store::{
    MemoryStore, Store,
    faults::{Call, Fault, FaultyStore},
    immediate,
};

use crate::game;

/// A store that sometimes loses commits and their answers.
pub(crate) fn faulty(store: &Store, seed: u64) -> Store {
    let mut dice = split_mix(seed);
    FaultyStore::wrap(store, move |call| match (call, dice() % 8) {
        (Call::Commit, 0) => Fault::AnswerLost,
        (Call::Commit, 1) => Fault::RequestLost,
        (Call::Commit, 2) => Fault::LandsBeforeNext,
        (Call::Commit, 3) => Fault::LandsAfterNext,
        (_, 4) => Fault::Unavailable,
        _ => Fault::None,
    })
}

fn avatar(name: &str) -> StoredEntity {
    StoredEntity {
        entity_type: "Avatar".into(),
        properties: [("name".to_owned(), Value::Unicode(name.to_owned()))].into(),
    }
}

#[test]
fn all_logins_hash_names_under_one_key() {
    for seed in 0..50 {
        let store = MemoryStore::new().store();
        // Commits of one login are applied late, among those of the next.
        let keys: Vec<_> = (1..=4)
            .map(|login| {
                let faulty = faulty(&store, seed * 4 + u64::from(login));
                immediate(accounts::name_key(&faulty, [login; 32]))
                    .unwrap_or_else(|error| panic!("seed {seed}, login {login}: {error}"))
            })
            .collect();
        let kept = immediate(accounts::name_key(&store, [9; 32])).expect("this store has no faults");
        assert_eq!(keys, [kept; 4], "seed {seed}");
    }
}

#[test]
fn account_names_exclude_entity_ids_and_control_characters() {
    for unfit in [
        "stored:17",
        "stored:",
        "stored:merlin",
        "mer\nlin",
        "\u{1b}[2J",
        "merlin\u{7f}",
        "\u{85}",
        "\0",
    ] {
        assert!(!accounts::can_be_named(unfit), "{unfit:?}");
    }
    for fit in [
        "merlin",
        "Stored",
        "restored:17",
        "stored 17",
        "Жанна d'Arc",
        "é 🐉",
        "anna@example.com",
    ] {
        assert!(accounts::can_be_named(fit), "{fit:?}");
    }
}

#[test]
fn an_account_is_made_once_and_found() {
    for seed in 0..50 {
        let store = MemoryStore::new().store();
        let faulty = faulty(&store, seed);
        let schema = game::schema();
        assert_eq!(immediate(accounts::find(&store, b"anna")), Ok(None));
        let create = |name: &'static [u8], password: &'static str| {
            let (faulty, schema) = (faulty.clone(), Arc::clone(&schema));
            immediate(async move {
                let entity = avatar(std::str::from_utf8(name).expect("a name"));
                accounts::create(&faulty, name, password, &entity, &schema).await
            })
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"))
        };
        let anna = create(b"anna", "first");
        assert_eq!(create(b"anna", "second"), anna, "seed {seed}: one request was first");
        let bert = create(b"bert", "third");
        assert_ne!(anna.database, bert.database, "seed {seed}");
        assert_eq!(
            immediate(accounts::find(&store, b"anna")),
            Ok(Some(anna.clone())),
            "seed {seed}"
        );
        assert_eq!(
            immediate(accounts::load(&store, anna.database)),
            Ok(Some(avatar("anna"))),
            "seed {seed}"
        );
        let (name, reading) = (Value::Unicode("anna".into()), store.begin());
        let found = immediate(find_stored(&reading, game::avatar(), &name));
        assert_eq!(found, Ok(Some(anna.database)), "seed {seed}");
    }
}

#[test]
fn an_entity_is_checked_out_once() {
    for seed in 0..50 {
        let store = MemoryStore::new().store();
        let faulty = faulty(&store, seed);
        let check_out = |entity, owner| {
            let checked_out = accounts::check_out(&faulty, DatabaseId(entity), OwnerId(owner));
            let checked_out = immediate(checked_out).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            checked_out.expect("it was not deleted")
        };
        let first = check_out(7, 1);
        assert_eq!(first.owner, OwnerId(1), "seed {seed}");
        assert_eq!(check_out(7, 2), first, "seed {seed}: it is in use");
        let other = check_out(8, 2);
        assert_eq!(other.owner, OwnerId(2), "seed {seed}");
        assert!(
            other.number > first.number,
            "seed {seed}: later activations have higher numbers"
        );
    }
}

#[test]
fn stored_values_load_into_their_parts_where_they_fit() {
    let properties = [
        ("name", Value::Unicode("anna".into())),
        ("gold", Value::Int(5)),
        ("hp", Value::Int(6)),
        ("notes", Value::Int(7)),
        ("baggage", Value::Int(8)),
        ("of an older schema", Value::Int(9)),
    ];
    let stored = StoredEntity {
        entity_type: "Avatar".into(),
        properties: properties.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    for generation in [0, 1, u32::MAX] {
        let read = StoredEntity::decode(&stored.encode(generation));
        assert_eq!(read, Ok((generation, stored.clone())));
    }
    let of = |part| stored.properties_of(game::avatar(), part);
    let pairs = |names: &[(&str, Value)]| -> Vec<_> {
        names
            .iter()
            .map(|(name, value)| (game::member(name), value.clone()))
            .collect()
    };
    assert_eq!(
        of(Part::Base),
        pairs(&[("name", Value::Unicode("anna".into())), ("gold", Value::Int(5))])
    );
    assert_eq!(
        of(Part::Cell),
        pairs(&[("hp", Value::Int(6))]),
        "a number is no longer a blob"
    );
    let unfit = stored.fits(game::avatar()).expect_err("a number is no blob");
    assert_eq!((&*unfit.entity_type, &*unfit.property), ("Avatar", "baggage"));
    let mut repaired = stored.clone();
    repaired.properties.remove("baggage");
    assert_eq!(repaired.fits(game::avatar()), Ok(()));
    for cut in 0..stored.encode(0).len() {
        assert!(StoredEntity::decode(&stored.encode(0)[..cut]).is_err(), "cut at {cut}");
    }
}
