//! A migration that is killed at any of its transactions.

use annals_db::{accounts, find_indexed};
use annals_def::{Value, split_mix};
use annals_director::Grants;
use annals_ids::{DatabaseId, WallTime};
use annals_store::{StoreError, Transaction, immediate};

use super::{PROCESS, World, dump, dying, migrate, rows_of, simple};

#[test]
fn a_killed_migration_resumes_to_the_same_result() {
    /// Enough entities that they are converted in several transactions.
    const ENTITIES: u64 = 700;
    let (pair, entity_type) = simple();
    let realm = || {
        let world = World::live(&pair.old, &mut split_mix(1));
        for number in 0..ENTITIES {
            let entity = annals_db::StoredEntity {
                entity_type: "Avatar".into(),
                properties: [("level".to_owned(), Value::UInt(number % 200))].into(),
            };
            let name = number.to_be_bytes();
            immediate(accounts::create(&world.store, &name, "phc", &entity, &pair.old)).expect("an account");
        }
        world.store
    };
    let whole = realm();
    migrate(&whole, &pair).expect("nothing fails");
    let expected = dump(&whole);
    let find = |transaction: Transaction| {
        let entity_type = &entity_type;
        async move {
            let range = (DatabaseId(0), 256);
            Ok::<_, StoreError>(find_indexed(&transaction, entity_type, "rank", &Value::Int(7), range).await)
        }
    };
    let found = immediate(whole.read(find)).expect("readable").expect("it has an index");
    assert_eq!(found.len(), 4, "one in 200");
    let mut killed = 0;
    for applied in [false, true] {
        for at in 0.. {
            let store = realm();
            let failing = dying(&store, at, applied);
            let ended = migrate(&failing, &pair);
            let begun = immediate(async {
                let grants = Grants::lead(
                    store.clone(),
                    PROCESS,
                    Grants::watch(&store).await?,
                    std::time::Duration::ZERO,
                )
                .await
                .expect("a term");
                Ok::<_, StoreError>(grants.begin_realm(WallTime(1), pair.new.fingerprint(), &[]).await)
            });
            let begun = begun.expect("readable");
            let is_whole = rows_of(&store) == rows_of(&whole);
            assert!(begun.is_err() || is_whole, "{at}: no owner runs on unconverted state");
            if ended.is_ok() {
                assert!(begun.is_ok() && at > 3, "{at}: several transactions");
                break;
            }
            killed += 1;
            // The director's look took a term; nothing else differs.
            migrate(&store, &pair).expect("faults have ended");
            let is_term = |key: &[u8]| key.first() == Some(&0x10);
            let rest =
                |rows: Vec<(Vec<u8>, Vec<u8>)>| rows.into_iter().filter(|(key, _)| !is_term(key)).collect::<Vec<_>>();
            assert!(rest(dump(&store)) == rest(expected.clone()), "{at}, applied {applied}");
        }
    }
    println!("killed {killed} times");
}
