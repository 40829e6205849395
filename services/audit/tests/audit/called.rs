//! Display names, and the most recent trades.

use std::collections::BTreeMap;

use annals_audit::names::Names;
use annals_db::StoredEntity;
use annals_def::{DataType, Distribution, EntityType, Method, Property, Schema, Service, Value};
use annals_event::{BaseCreation, Body, Call, Cause, Event, GivenOutcome, Subject, ledger::Outcome};
use annals_ids::{
    Address, CallNumber, DatabaseId, EntityId, Mailbox, MemberId, OwnerId, Part, SessionId, TradeId, TypeId,
};
use annals_personal::{Admission, PersonalKey, seal};
use annals_store::layout::{chunks, database, personal};

use crate::game::{Game, commit, definitions, named};

#[tokio::test]
async fn an_account_is_named_by_its_newest_readable_log_in() {
    let mut game = Game::play(400, 40).await;
    let (person, key) = (DatabaseId(100), [3; 32]);
    let admission = |account: Option<&str>| Admission {
        account: account.map(ToOwned::to_owned),
        address: "203.0.113.9:40000".to_owned(),
    };
    // A client that returns to another process is logged without the name.
    for (salt, account) in [Some("anna"), None].into_iter().enumerate() {
        let plain = admission(account).encode();
        game.come_in(0, seal(&PersonalKey::new(key), person, salt as u128, &plain))
            .await;
    }
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let schemas = BTreeMap::from([(definitions().fingerprint(), definitions())]);
    let called = async || {
        let called = index.called(&game.store, &schemas, [100, 101, 7].map(DatabaseId)).await;
        called.expect("it can be said")
    };
    assert_eq!(called().await, BTreeMap::new(), "without the key");
    commit(&game.store, |transaction| {
        transaction.set(&personal::key_key(person), &key)
    })
    .await;
    assert_eq!(called().await, BTreeMap::from([(person, "anna".to_owned())]));
}

#[tokio::test]
async fn cited_entries_name_their_definitions() {
    let mut game = Game::play(410, 60).await;
    let before = game.truths.len() as u64;
    game.rename("ducat").await;
    game.play_on(60).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let owned = index.owned(&game.store, DatabaseId(100)).await.expect("known");
    let mut seen = [0; 2];
    for step in &owned.steps {
        let is_new = step.cited.entry.number.0 > before;
        let name = ["coin", "ducat"][usize::from(is_new)];
        assert_eq!(step.cited.schema, named(name).fingerprint());
        seen[usize::from(is_new)] += 1;
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
}

#[tokio::test]
async fn recent_trades_are_ordered_by_their_last_change() {
    for seed in 0..3 {
        let game = Game::play(420 + seed, 200).await;
        let (_folder, mut index) = game.index().await;
        index.catch_up(&game.store, |_| {}).await.expect("sound");
        let mut all: Vec<TradeId> = Vec::new();
        for truth in &game.truths {
            // The expiry of a trade with empty tables does not name the trade.
            let has_moved = !truth.entry.postings.is_empty() || !truth.entry.passages.is_empty();
            let is_named = truth.entry.order.is_some() || has_moved;
            let is_done = is_named && !matches!(truth.entry.outcome, Outcome::Refused(_));
            if let Some(deal) = truth.deal.as_ref().filter(|_| is_done) {
                all.retain(|known| *known != deal.id);
                all.push(deal.id);
            }
        }
        for most in [0, 1, 5] {
            let found = index.recent_trades(most).await.expect("it can be read");
            assert_eq!(found, all[all.len() - most..], "seed {seed}");
        }
    }
}

/// A stored entity that never logged in has the name in its identifier; an empty one is no name.
#[tokio::test]
async fn an_empty_identifier_is_no_name() {
    let game = Game::play(430, 10).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let mut named = EntityType::new("Guild");
    let mut property = Property::new("title", DataType::Blob, Distribution::Base);
    property.identifier = true;
    named.properties.push(property);
    let schema = Schema::new(vec![named], Vec::new(), Vec::new());
    let schemas = BTreeMap::from([(schema.fingerprint(), schema)]);
    let stored = DatabaseId(7);
    for title in ["", "Owls"] {
        let entity = StoredEntity {
            entity_type: "Guild".to_owned(),
            properties: BTreeMap::from([("title".to_owned(), Value::Bytes(title.into()))]),
        };
        commit(&game.store, |transaction| {
            for (key, chunk) in chunks(&database::entity_key(stored), &entity.encode(0)) {
                transaction.set(&key, chunk)?;
            }
            Ok(())
        })
        .await;
        let called = index
            .called(&game.store, &schemas, [stored])
            .await
            .expect("it can be said");
        assert_eq!(
            called.get(&stored).map(String::as_str),
            Some(title).filter(|title| !title.is_empty())
        );
    }
}

/// An event of an entity, in words.
fn said(body: Body) -> String {
    let names = Names::new([definitions()]);
    names.under(definitions().fingerprint()).event(&Event {
        subject: Subject::Entity(EntityId(5), Part::Base),
        cause: Cause(0),
        history: None,
        body,
    })
}

#[test]
fn clients_that_are_given_away_are_described() {
    let to_owner = |call| Body::Called {
        to: Address::Owner(OwnerId(4)),
        home: OwnerId(4),
        number: CallNumber(1),
        call,
    };
    let taken = |outcome| {
        to_owner(Call::ClientTaken {
            from: EntityId(8),
            to: Mailbox {
                entity: EntityId(9),
                home: OwnerId(4),
                type_id: TypeId(0),
                part: Part::Base,
            },
            session: SessionId(6),
            outcome,
        })
    };
    for (body, words) in [
        (to_owner(Call::Store), "store the entity"),
        (
            taken(GivenOutcome::Taken { token: [7; 32] }),
            "entity 9 base has the client of session 6 from entity 8 base",
        ),
        (
            taken(GivenOutcome::InUse),
            "keeps the client that it has: session 6 of entity 8 base ends",
        ),
        (
            taken(GivenOutcome::Refused("it is full".into())),
            "does not take the client of entity 8 base: it is full",
        ),
    ] {
        let found = said(body);
        assert!(found.ends_with(words), "{found}");
    }
}

#[test]
fn calls_and_clients_are_described() {
    let confirmed = |lost| Body::Confirmed {
        to: Address::Cell(EntityId(6)),
        upto: CallNumber(3),
        lost,
    };
    let text = |text: &str| Value::Unicode(text.to_owned());
    let called = |to, args| Body::Called {
        to: Address::Owner(to),
        home: OwnerId(4),
        number: CallNumber(1),
        call: Call::Method {
            method: MemberId(0),
            args,
            wants_reply: true,
        },
    };
    let content = |bytes| Value::Bytes(vec![7; bytes]);
    let paid = called(OwnerId::OUTSIDE, vec![text("shop"), content(9)]);
    let news = called(OwnerId::DOWNLOADS, vec![text("news"), text(""), content(3_000)]);
    let film = called(OwnerId::DOWNLOADS, vec![text("intro"), text("films/intro"), content(0)]);
    for (body, words) in [
        (paid, "service \"shop\" with 9 bytes"),
        (news, "download \"news\" of 3000 bytes"),
        (film, "download \"intro\" of the file \"films/intro\""),
        (confirmed(false), "took calls up to 3"),
        (confirmed(true), "no longer exists; calls up to 3 are lost"),
        (Body::ClientSet(None), "has no client"),
        (Body::Placed(None), "its cell part has ended"),
    ] {
        let found = said(body);
        assert!(found.ends_with(words), "{found}");
    }
}

/// A fragment is created once, and has another type under later definitions. An entity type may have the service's name.
#[test]
fn methods_of_fragments_are_named_under_all_definitions() {
    let service = |methods: &[&str]| Service {
        name: "Bank".into(),
        methods: methods.iter().map(|name| Method::new(*name, Vec::new())).collect(),
    };
    let schema = |types: &[&str], methods: &[&str]| {
        let types = types.iter().map(|name| EntityType::new(*name)).collect();
        Schema::new(types, vec![service(methods)], Vec::new())
    };
    let (old, new) = (schema(&["Bank"], &["pay"]), schema(&["Ape", "Bank"], &["save", "pay"]));
    let mut names = Names::new([old.clone(), new.clone()]);
    let fragment = EntityId::of_fragment(OwnerId(4), service(&[]).slot());
    let event = |body| Event {
        subject: Subject::Entity(fragment, Part::Base),
        cause: Cause(0),
        history: None,
        body,
    };
    let begun = BaseCreation {
        type_id: old.fragments_of("Bank").expect("it is listed").id,
        database: DatabaseId(0),
        checkout: 0,
        properties: Vec::new(),
        cell_properties: Vec::new(),
    };
    names.learn_event(old.fingerprint(), &event(Body::BaseCreated(Box::new(begun))));
    let called = event(Body::Called {
        to: Address::Base(fragment),
        home: OwnerId(4),
        number: CallNumber(1),
        call: Call::Method {
            method: MemberId(0),
            args: Vec::new(),
            wants_reply: false,
        },
    });
    for (schema, name) in [(&old, "pay"), (&new, "save")] {
        let found = names.under(schema.fingerprint()).event(&called);
        assert!(found.contains(name), "{found}");
    }
}
