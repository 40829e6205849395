//! A realm that starts on new definitions at once, and is converted while players log in.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
    time::Duration,
};

use annals::up::{Realm, RealmPlan};
use annals_client::{Client, Config, Credentials, Event, Trust, client_endpoint};
use annals_db::{
    Query, StoredEntity,
    accounts::{create, load},
    migrating::read_converting,
    query, read_archived, read_shards, recover,
};
use annals_def::{Schema, Value};
use annals_director::read_owners;
use annals_event::{Batch, Body};
use annals_host::{process::remote_store, world::compile};
use annals_ids::{BatchNumber, DatabaseId};
use annals_realm::Folder;
use annals_store::Store;

use crate::{
    played::{are_built, permit, repository, until, until_event},
    stopping::{REALM, begin, log_of, migrate, other_definitions, reach, start, store, verified},
};

/// Accounts of players that do not log in.
const ABSENT_ACCOUNTS: u64 = 3_000;

/// Length of the name of an avatar of each, bytes: long, so that converting them all takes a while.
const NAME: usize = 60_000;

/// Players that log in, under the old definitions and under the new ones.
const PRESENT: [&str; 6] = ["ada", "berta", "cleo", "dora", "edith", "frida"];

/// Initial log-in count of the first absent account: larger than that of any player.
const FIRST_COUNT: u64 = 100;

/// Batches read at a time.
const PAGE: usize = 256;

/// Maximum time to convert all, on a machine that is busy with tests.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_log_in_during_a_migration_and_no_data_is_lost() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = Folder::create();
    let data = folder.path().join("realm");
    let old = compile(&repository().join("defs")).expect("the sample compiles");
    let absent = create_accounts(&data, &old).await;

    let realm = start(&data).await;
    for name in PRESENT {
        log_in(&realm, &old, name).await;
    }
    realm.close(|line| println!("{line}")).await.expect("stopped");

    let present = accounts_from_log_ins(&store(&data), &old, &absent).await;
    assert_eq!(present.len(), PRESENT.len());
    let definitions = other_definitions(folder.path());
    let (code, said) = migrate(&data, &definitions, &["--later"]).await;
    assert_eq!(code, Some(0), "{said}");
    let new = compile(&definitions).expect("they compile");

    let mut realm = begin(&definitions, &data).await;
    let (bus, subjects) = reach(&realm).await;
    for name in PRESENT {
        log_in(&realm, &new, name).await;
        let converting = read_converting(&remote_store(&bus, &subjects)).await;
        let converting = converting.expect("the store answers");
        println!("{name}: {converting:?}");
        if name == PRESENT[0] {
            assert!(
                converting.is_some(),
                "everything was converted before anybody was there"
            );
            // The converting process crashes, and continues where it was.
            assert!(realm.kill("db").expect("it can be killed"));
            assert!(realm.start_again("db").expect("it starts"));
        }
    }
    until(MIGRATION_TIMEOUT, "everything to be converted", || {
        log_of(&data, "db").contains("all stored entities are converted to the realm's definitions")
    })
    .await;
    log_in(&realm, &new, "gerda").await;
    realm.close(|line| println!("{line}")).await.expect("stopped");
    verified(&data, "its whole past, under either definitions").await;

    let store = store(&data);
    assert_eq!(read_converting(&store).await.expect("readable"), None);
    for (id, visits) in absent {
        let entity = load(&store, id).await.expect("readable").expect("it is there");
        assert_eq!(entity.properties.get("visits"), Some(&Value::UInt(visits)), "{id}");
        assert!(!entity.properties.contains_key("logIns"), "{id}");
    }
    // The activations of players began with their stored values as converted by the plan.
    let lives = log_in_counts(&store, &new).await;
    for (id, entity) in present {
        let visits = lives.get(&id).expect("it was activated under the new definitions");
        assert_eq!(Some(visits), entity.properties.get("logIns"), "{id}");
    }
}

/// A stopped realm of several shards is migrated as one: the logs of all go over to the new definitions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_realm_of_several_shards_is_migrated() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = Folder::create();
    let data = folder.path().join("realm");
    let world = repository().join("defs");
    let old = compile(&world).expect("the sample compiles");
    let plan = RealmPlan {
        shards: 3,
        ..RealmPlan::new(REALM, &world, &data)
    };
    let realm = Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"));
    for name in PRESENT {
        log_in(&realm, &old, name).await;
    }
    realm.close(|line| println!("{line}")).await.expect("stopped");
    let definitions = other_definitions(folder.path());
    let (code, said) = migrate(&data, &definitions, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    let new = compile(&definitions).expect("they compile");

    let realm = begin(&definitions, &data).await;
    for name in PRESENT {
        log_in(&realm, &new, name).await;
    }
    realm.close(|line| println!("{line}")).await.expect("stopped");
    verified(&data, "its whole past, under either definitions").await;
    let store = store(&data);
    assert_eq!(read_shards(&store).await, Ok(3));
    let mut gone_over = BTreeSet::new();
    for (owner, record) in read_owners(&store).await.expect("readable") {
        let state = recover(&store, record.shard, owner, record.kind)
            .await
            .expect("readable")
            .state;
        if state.schema == new.fingerprint() {
            gone_over.insert(record.shard);
        }
    }
    assert_eq!(gone_over.len(), 3, "owners of each shard are under the new definitions");
    assert!(log_in_counts(&store, &new).await.len() >= PRESENT.len());
}

/// Log-in counts of accounts at their first activation under these definitions.
async fn log_in_counts(store: &Store, schema: &Schema) -> BTreeMap<DatabaseId, Value> {
    let account = schema.type_named("Account").expect("there are accounts");
    let visits = account.property_named("visits").expect("it has that name now").index;
    let mut lives = BTreeMap::new();
    for (owner, record) in read_owners(store).await.expect("readable") {
        let mut reached = BatchNumber(0);
        loop {
            let batches = read_archived(store, record.shard, owner, reached, PAGE)
                .await
                .expect("readable");
            if batches.is_empty() {
                break;
            }
            for (_, kept) in batches {
                let batch = Batch::read(kept.header()).expect("an intact batch");
                reached = batch.header.number;
                let events = batch
                    .events
                    .into_iter()
                    .filter(|_| batch.header.schema == schema.fingerprint());
                for event in events {
                    if let Body::BaseCreated(creation) = event.body
                        && creation.type_id == account.id
                        && let Some((_, value)) = creation.properties.iter().find(|(member, _)| *member == visits)
                    {
                        lives.entry(creation.database).or_insert_with(|| value.clone());
                    }
                }
            }
        }
    }
    lives
}

/// The accounts that were created by logging in.
async fn accounts_from_log_ins(
    store: &Store,
    schema: &Schema,
    than: &BTreeMap<DatabaseId, u64>,
) -> BTreeMap<DatabaseId, StoredEntity> {
    let accounts = Query {
        entity_type: "Account".to_owned(),
        conditions: Vec::new(),
        limit: usize::MAX,
        scanned: usize::MAX,
    };
    let answer = query(store, schema, &accounts).await.expect("it can be asked");
    let found = answer.found.into_iter().map(|found| (found.database, found.entity));
    found.filter(|(id, _)| !than.contains_key(id)).collect()
}

/// Creates the accounts of absent players in the store of a realm before its first start; returns the log-in count of
/// each.
async fn create_accounts(data: &Path, schema: &Schema) -> BTreeMap<DatabaseId, u64> {
    fs::create_dir_all(data).expect("a folder for the realm");
    let store = store(data);
    let mut made = BTreeMap::new();
    for number in 0..ABSENT_ACCOUNTS {
        let visits = FIRST_COUNT + number;
        let properties = [
            ("logIns", Value::UInt(visits)),
            ("accountName", Value::Unicode(format!("n{number}"))),
            ("avatarNames", Value::Sequence(vec![Value::Unicode("n".repeat(NAME))])),
        ];
        let entity = StoredEntity {
            entity_type: "Account".to_owned(),
            properties: properties.map(|(name, value)| (name.to_owned(), value)).into(),
        };
        let account = create(&store, &number.to_be_bytes(), "", &entity, schema).await;
        made.insert(account.expect("the store takes it").database, visits);
    }
    made
}

/// Logs a player in, and drops the connection.
async fn log_in(realm: &Realm, schema: &Arc<Schema>, name: &str) {
    let (login, certificate) = realm.login;
    let mut client = Client::start(
        client_endpoint(login).expect("a socket"),
        Config {
            login,
            trust: Trust::Pinned(certificate),
            credentials: Credentials::password(name, "the password"),
            schema: Arc::clone(schema),
            seed: 7,
            reads: annals_client::Reads::Predicted,
        },
    );
    until_event(&mut client, name, |event| matches!(event, Event::Connected { .. })).await;
}
