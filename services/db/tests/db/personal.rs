//! Keys of persons: created once, deleted when the person is forgotten, and not restored by anything later. Answers are
//! lost.

use std::collections::{BTreeMap, BTreeSet};

use annals_db::{
    ClaimedStore, Extent, Row, StoredEntity, accounts,
    personal::{self, Imported, NotForgotten, Person},
    read_unlogged,
};
use annals_ids::{DatabaseId, LeafIndex, OwnerId, ProcessId, Shard};
use annals_personal::PersonalKey;
use annals_store::{
    KeyRange, MemoryStore, ScanOrder, Store, Transaction, immediate,
    layout::{
        database::{self, Checkout},
        owners::{self, OwnerRecord},
        personal::{self as personal_rows, Forgotten},
    },
};

use crate::{
    accounts::faulty,
    game, restoring,
    restoring::{leaves, lived, unlogged},
};

const SHARD: Shard = Shard(0);

fn account(store: &Store, name: &[u8]) -> DatabaseId {
    let entity = StoredEntity {
        entity_type: "Avatar".into(),
        ..StoredEntity::default()
    };
    let schema = game::schema();
    let created = accounts::create(store, name, "password", &entity, &schema);
    immediate(created).expect("an account").database
}

fn forget(store: &Store, person: DatabaseId, at: u64) -> Result<Forgotten, NotForgotten> {
    immediate(personal::forget(store, SHARD, person, (at, "olga", "asked by letter")))
}

fn person(store: &Store, id: DatabaseId) -> Person {
    immediate(personal::person(store, id)).expect("this store has no faults")
}

#[test]
fn a_key_is_created_once_and_never_after_erasure() {
    for seed in 0..100 {
        let store = MemoryStore::new().store();
        let faulty = faulty(&store, seed);
        let anna = account(&faulty, b"anna");
        let keys = [1, 2, 3].map(|fresh| immediate(personal::key(&faulty, anna, [fresh; 32])).expect("an answer"));
        assert_eq!(
            Person::Known(keys[0].clone().expect("a key")),
            person(&store, anna),
            "seed {seed}"
        );
        assert_eq!(keys[1..], [keys[0].clone(), keys[0].clone()], "seed {seed}");

        // Answers of the first are lost; the second finds the first's work done.
        let first = forget(&faulty, anna, 7).expect("forgotten");
        assert_eq!(
            forget(&faulty, anna, 8).expect("forgotten before"),
            first,
            "seed {seed}"
        );
        let expected = Forgotten {
            at: 7,
            leaves: LeafIndex(0),
            by: "olga".into(),
            reason: "asked by letter".into(),
        };
        assert_eq!(person(&store, anna), Person::Forgotten(expected), "seed {seed}");
        assert_eq!(
            immediate(personal::key(&faulty, anna, [4; 32])),
            Ok(None),
            "seed {seed}"
        );
        assert_eq!(
            immediate(accounts::find(&store, b"anna")),
            Ok(None),
            "seed {seed}: no account logs in"
        );
        let another = account(&faulty, b"anna");
        assert_ne!(
            another, anna,
            "seed {seed}: the name is free, and another account has it"
        );
        assert_eq!(person(&store, another), Person::Unknown, "seed {seed}");
    }
}

#[test]
fn an_activated_person_is_not_erased() {
    let store = MemoryStore::new().store();
    let anna = account(&store, b"anna");
    immediate(personal::key(&store, anna, [1; 32])).expect("a key");
    immediate(accounts::check_out(&store, anna, OwnerId(1))).expect("checked out");
    assert!(matches!(forget(&store, anna, 1), Err(NotForgotten::Lives(id)) if id == anna));
    assert!(matches!(person(&store, anna), Person::Known(_)));
    let gone = store.run_repeatable(|transaction| async move { transaction.clear(&database::checkout_key(anna)) });
    immediate(gone).expect("given back");
    assert!(forget(&store, anna, 1).is_ok());
}

#[test]
fn backups_have_no_keys_and_all_erasures() {
    let store = MemoryStore::new().store();
    let [anna, bert] = [b"anna", b"bert"].map(|name| account(&store, name));
    for (person, fresh) in [(anna, 0xa1), (bert, 0xb1)] {
        immediate(personal::key(&store, person, [fresh; 32])).expect("a key");
    }
    forget(&store, anna, 5).expect("forgotten");
    let rows = immediate(read_unlogged(&store)).expect("readable");
    assert!(
        rows.iter()
            .all(|(_, value)| !value.windows(32).any(|bytes| bytes == [0xb1; 32]))
    );
    let forgotten = rows
        .iter()
        .filter(|(_, value)| value.windows(4).any(|bytes| bytes == b"olga"));
    assert_eq!(forgotten.count(), 1);
}

#[test]
fn a_restored_realm_repeats_the_erasures() {
    for seed in 0..50 {
        let [was, is] = [(); 2].map(|()| MemoryStore::new().store());
        let is = faulty(&is, seed);
        let names: [&[u8]; 4] = [b"anna", b"bert", b"carl", b"dora"];
        let persons = names.map(|name| account(&was, name));
        assert_eq!(
            names.map(|name| account(&is, name)),
            persons,
            "the restored realm has the same accounts"
        );
        let [anna, bert, carl, dora] = persons;
        for (person, fresh) in persons.into_iter().zip(1..) {
            immediate(personal::key(&was, person, [fresh; 32])).expect("a key");
        }
        // After the backup that was restored.
        forget(&was, anna, 5).expect("forgotten");
        let kept = immediate(personal::export(&was)).expect("exported");
        assert_eq!(kept.len(), 4);
        // Meanwhile in the restored realm: one was forgotten there, and one has logged in, without the key.
        immediate(personal::key(&is, bert, [9; 32])).expect("a key");
        forget(&is, bert, 6).expect("forgotten");
        immediate(personal::key(&is, carl, [9; 32])).expect("a key");

        let imported = immediate(personal::import(&is, &kept)).expect("imported");
        let expected = Imported {
            keys: 1,
            forgotten: 1,
            differing: 1,
            ..Imported::default()
        };
        assert_eq!(imported, expected, "seed {seed}");
        assert_eq!(immediate(accounts::find(&is, b"anna")), Ok(None), "seed {seed}");
        assert!(matches!(person(&is, anna), Person::Forgotten(_)), "seed {seed}");
        assert!(
            matches!(person(&is, bert), Person::Forgotten(found) if found.at == 6),
            "seed {seed}"
        );
        assert_eq!(
            person(&is, carl),
            Person::Known(PersonalKey::new([9; 32])),
            "seed {seed}"
        );
        assert_eq!(
            person(&is, dora),
            Person::Known(PersonalKey::new([4; 32])),
            "seed {seed}"
        );
        let again = immediate(personal::import(&is, &kept)).expect("imported again");
        assert_eq!((again.keys, again.forgotten), (0, 0), "seed {seed}");
        let nothing = immediate(personal::import(&is, &BTreeMap::new())).expect("nothing");
        assert_eq!(nothing, Imported::default());
    }
}

/// All check-outs in a store.
fn checked_out(store: &Store) -> BTreeMap<DatabaseId, OwnerId> {
    let all = KeyRange::prefix(&database::checkout_key(DatabaseId(0))[..1]);
    let page = immediate(store.begin().get_range(&all, 10_000, ScanOrder::Forward)).expect("this store has no faults");
    assert!(!page.more, "few rows");
    let of = |(key, value): &(_, _)| {
        let (key, value): (&bytes::Bytes, &bytes::Bytes) = (key, value);
        let person = key[1..].try_into().expect("eight bytes");
        let checkout = Checkout::decode(value).expect("a check-out");
        (DatabaseId(u64::from_be_bytes(person)), checkout.owner)
    };
    page.rows.iter().map(of).collect()
}

/// The director grants an owner to a process.
fn grant(store: &Store, owner: OwnerId) {
    let key = owners::owner_key(owner);
    let work = |transaction: Transaction| {
        let key = key.clone();
        async move {
            let value = transaction.get(&key).await?.expect("the owner is known");
            let record = OwnerRecord::decode(&value)?.passed_to(ProcessId(1));
            transaction.set(&key, &record.encode())
        }
    };
    immediate(store.run_repeatable(work)).expect("granted");
}

#[test]
fn persons_activated_at_the_cut_are_erased_until_a_holder_has_them() {
    let (mut forgotten, mut left) = (0, 0);
    for seed in 0..20 {
        let realm = lived(seed);
        let leaves = leaves(&realm);
        let (store, _) = restoring::restore(&unlogged(&realm, &leaves), &leaves).expect("it is restored");
        let living = checked_out(&store);
        let Some((_, &granted)) = living.iter().next() else {
            continue;
        };
        // Some owners have a holder again before the keys are imported.
        grant(&store, granted);
        let since = Forgotten {
            at: 5,
            leaves: LeafIndex(0),
            by: "olga".into(),
            reason: "asked by letter".into(),
        };
        let mut kept: BTreeMap<DatabaseId, Person> = living
            .keys()
            .map(|person| (*person, Person::Forgotten(since.clone())))
            .collect();
        let last = DatabaseId(u64::MAX);
        kept.insert(last, Person::Known(PersonalKey::new([7; 32])));

        let imported = immediate(personal::import(&faulty(&store, seed), &kept)).expect("imported");
        let held: BTreeSet<DatabaseId> = living
            .iter()
            .filter(|(_, owner)| **owner == granted)
            .map(|(person, _)| *person)
            .collect();
        assert_eq!(imported.living, held, "seed {seed}");
        assert_eq!(imported.keys, 1, "seed {seed}: keys are restored for every activation");
        assert_eq!(imported.forgotten as usize, living.len() - held.len(), "seed {seed}");
        for &id in living.keys() {
            let is_forgotten = matches!(person(&store, id), Person::Forgotten(_));
            assert_eq!(is_forgotten, !held.contains(&id), "seed {seed}: {id}");
        }
        assert_eq!(
            checked_out(&store),
            living,
            "seed {seed}: their activations are ended later, by the holders of their owners"
        );
        forgotten += imported.forgotten;
        left += held.len();
    }
    assert!(forgotten > 0 && left > 0, "{forgotten} forgotten, {left} living");
}

#[test]
fn a_person_without_a_key_is_erased_permanently() {
    for seed in 0..50 {
        let store = MemoryStore::new().store();
        let faulty = faulty(&store, seed);
        let anna = account(&faulty, b"anna");
        let nobody = DatabaseId(1_000);
        assert!(matches!(forget(&store, nobody, 1), Err(NotForgotten::Unknown(id)) if id == nobody));
        forget(&faulty, anna, 7).expect("the account is there, as in a realm that was restored without its keys");
        assert_eq!(immediate(accounts::find(&store, b"anna")), Ok(None), "seed {seed}");
        // An older file of keys is imported.
        let kept = BTreeMap::from([(anna, Person::Known(PersonalKey::new([1; 32])))]);
        let imported = immediate(personal::import(&store, &kept)).expect("imported");
        assert_eq!(imported, Imported::default(), "seed {seed}");
        assert!(matches!(person(&store, anna), Person::Forgotten(_)), "seed {seed}");
    }
}

/// The rows of a backup during which anna was forgotten: the account, and the record that she was forgotten.
fn torn() -> (Vec<Row>, DatabaseId) {
    let store = MemoryStore::new().store();
    let anna = account(&store, b"anna");
    let mut rows = immediate(read_unlogged(&store)).expect("readable");
    forget(&store, anna, 7).expect("forgotten");
    let later = immediate(read_unlogged(&store)).expect("readable");
    let forgotten = personal_rows::forgotten();
    rows.extend(later.into_iter().filter(|(key, _)| forgotten.contains(key)));
    (rows, anna)
}

/// Writes rows to a store.
fn put(store: &Store, rows: &[Row]) {
    let work =
        |transaction: Transaction| async move { rows.iter().try_for_each(|(key, value)| transaction.set(key, value)) };
    immediate(store.run_repeatable(work)).expect("written");
}

#[test]
fn an_erased_persons_account_is_deleted_with_the_next_change() {
    let (rows, anna) = torn();
    let found = |store: &Store| immediate(accounts::find(store, b"anna")).expect("readable");
    let forgetting: fn(&Store, DatabaseId) = |store, anna| drop(forget(store, anna, 9).expect("forgotten before"));
    let importing: fn(&Store, DatabaseId) =
        |store, _| drop(immediate(personal::import(store, &BTreeMap::new())).expect("imported"));
    let older: fn(&Store, DatabaseId) = |store, anna| {
        let kept = BTreeMap::from([(anna, Person::Known(PersonalKey::new([1; 32])))]);
        immediate(personal::import(store, &kept)).expect("imported");
    };
    for come in [forgetting, importing, older] {
        let store = MemoryStore::new().store();
        put(&store, &rows);
        assert!(found(&store).is_some_and(|account| account.database == anna));
        come(&store, anna);
        assert_eq!(found(&store), None);
        assert!(matches!(person(&store, anna), Person::Forgotten(since) if since.at == 7));
    }
    // Nor is it in a backup, or restored from one.
    let store = MemoryStore::new().store();
    put(&store, &rows);
    let again = immediate(read_unlogged(&store)).expect("readable");
    let accounts = KeyRange::prefix(&database::account_key(&[]));
    assert!(again.iter().all(|(key, _)| !accounts.contains(key)));
    let store = MemoryStore::new().store();
    let claimed = immediate(ClaimedStore::claim(store.clone(), "torn")).expect("empty");
    let begun = immediate(claimed.begin(&rows, &Extent::default()));
    assert!(begun.is_ok() && found(&store).is_none());
    assert!(matches!(person(&store, anna), Person::Forgotten(_)));
}
