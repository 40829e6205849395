//! Stored entities that are deleted: once, with everything by which they are found, and never with assets.

use annals_db::{accounts, find_stored, ledger::audit};
use annals_def::Value;
use annals_event::{
    Body,
    ledger::{Assets, Order, Outcome, RefusalReason},
};
use annals_ids::{DatabaseId, EntityId, OwnerId, OwnerKind, Part, Slot, TransferNumber};
use annals_store::{MemoryStore, Transaction, immediate, layout::database};

use crate::{
    acts, game,
    ledger::{entries, rows},
    realm::Realm,
    traders::{GOLD, Traders, gold},
    wait,
};

const ENTITY: EntityId = EntityId(50);
const DATABASE: DatabaseId = DatabaseId(900);

/// Number of realms whose store fails.
const SEEDS: u64 = 300;

/// A realm with a stored entity that is active, with both parts.
fn realm(seed: u64) -> (Realm, OwnerId, OwnerId) {
    let mut realm = Realm::new(seed);
    let (base, cell) = (realm.found(Part::Base), realm.found(Part::Cell));
    realm.found(OwnerKind::Ledger);
    acts::begin_base(&mut realm, base, ENTITY, "anna", (0, 0));
    realm.write(base, false);
    acts::begin_cell(&mut realm, cell, ENTITY, base);
    realm.write(cell, false);
    acts::placed(&mut realm, base, ENTITY, Some(cell));
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert_eq!(find(&realm), Some(DATABASE));
    (realm, base, cell)
}

fn find(realm: &Realm) -> Option<DatabaseId> {
    let name = Value::Unicode("anna".to_owned());
    immediate(find_stored(&realm.store.begin(), game::avatar(), &name)).expect("the store answers")
}

fn is_stored(realm: &Realm) -> bool {
    let loaded = immediate(accounts::load(&realm.store, DATABASE));
    loaded.expect("the store answers").is_some()
}

fn is_in_use(realm: &Realm) -> bool {
    let read = |transaction: Transaction| async move { transaction.get(&database::checkout_key(DATABASE)).await };
    immediate(realm.store.read(read)).expect("the store answers").is_some()
}

fn delete(realm: &mut Realm, base: OwnerId, number: u64) {
    let number = TransferNumber(number);
    let order = Order::Delete;
    realm
        .scribe(base)
        .record(ENTITY, false, Body::Ordered { number, order });
}

/// Ends both parts, as the base does after the ledger's answer: each is written as it ends.
fn end(realm: &mut Realm, base: OwnerId, cell: OwnerId) {
    acts::store(realm, base, ENTITY, DATABASE.0);
    realm.write(base, false);
    acts::set(realm, cell, ENTITY, "hp", Value::Int(3));
    acts::end(realm, cell, ENTITY);
    realm.write(cell, false);
    acts::placed(realm, base, ENTITY, None);
    acts::store(realm, base, ENTITY, DATABASE.0);
    acts::end(realm, base, ENTITY);
    realm.write(base, false);
}

#[test]
fn a_deleted_entity_leaves_nothing_behind_by_which_it_is_found_or_activated() {
    let (mut realm, base, cell) = realm(0);
    delete(&mut realm, base, 1);
    // In the same batch, and so after the deletion in the same transaction.
    acts::set(&mut realm, base, ENTITY, "gold", Value::Int(5));
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert_eq!((find(&realm), is_stored(&realm)), (None, false));
    assert!(is_in_use(&realm), "its activation goes on");
    for _ in 0..3 {
        wait(realm.db.archive(1)).expect("the store answers");
    }
    assert!(!is_stored(&realm), "it is not written beside the folding either");

    end(&mut realm, base, cell);
    realm.fold(usize::MAX);
    assert_eq!((find(&realm), is_stored(&realm)), (None, false));
    assert!(!is_in_use(&realm));
    let checked_out = immediate(accounts::check_out(&realm.store, DATABASE, base));
    assert_eq!(checked_out, Ok(None));
    assert!(!is_in_use(&realm));

    let mut again = Realm::new(1);
    again.refold(&realm);
    assert_eq!(rows(&again.store), rows(&realm.store));
    assert!(!is_stored(&again));
    assert_eq!(wait(audit(&realm.store)).expect("the store answers").findings, []);
}

#[test]
fn the_name_of_a_deleted_entity_is_free_for_another() {
    let (mut realm, base, _) = realm(0);
    delete(&mut realm, base, 1);
    let other = EntityId(51);
    acts::begin_base(&mut realm, base, other, "anna", (0, 0));
    acts::store(&mut realm, base, other, 901);
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert_eq!(find(&realm), Some(DatabaseId(901)));
}

#[test]
fn an_account_whose_entity_was_deleted_can_be_created_again() {
    let (mut realm, base, _) = realm(0);
    let schema = game::schema();
    let create = |realm: &Realm| {
        let entity = annals_db::StoredEntity {
            entity_type: game::avatar().name.clone(),
            ..Default::default()
        };
        immediate(accounts::create(&realm.store, b"bea", "hash", &entity, &schema)).expect("the store answers")
    };
    let account = create(&realm);
    assert_eq!(create(&realm), account);
    let entity = EntityId(52);
    acts::begin_base(&mut realm, base, entity, "bea", (account.database.0, 7));
    let order = Body::Ordered {
        number: TransferNumber(1),
        order: Order::Delete,
    };
    realm.scribe(base).record(entity, false, order);
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert_eq!(immediate(accounts::find(&realm.store, b"bea")), Ok(None));
    assert_ne!(create(&realm).database, account.database);
}

#[test]
fn a_deletion_takes_effect_once_whatever_fails() {
    for seed in 0..SEEDS {
        let (mut realm, base, cell) = realm(seed);
        realm.fail_one_in(60);
        delete(&mut realm, base, 1);
        let lose = realm.roll(2) == 0;
        realm.write(base, lose);
        realm.fold(usize::MAX);
        if realm.roll(2) == 0 {
            drop(realm.begin_db());
        }
        if realm.roll(2) == 0 {
            realm.take_over(base);
        }
        realm.settle();
        assert!(!is_stored(&realm), "seed {seed}");
        realm.fail_one_in(60);
        end(&mut realm, base, cell);
        realm.settle();
        let outcomes: Vec<Outcome> = entries(&realm).iter().map(|entry| entry.outcome).collect();
        assert_eq!(outcomes, [Outcome::Posted], "seed {seed}");
        assert_eq!(
            (find(&realm), is_stored(&realm), is_in_use(&realm)),
            (None, false, false),
            "seed {seed}"
        );
    }
}

#[test]
fn an_entity_with_assets_or_something_open_is_not_deleted() {
    let still_holds = Outcome::Refused(RefusalReason::StillHolds);
    let mut three = Traders::begin(MemoryStore::new().store(), 2, 3);
    three.mint(1, gold(10));
    three.turn();
    assert_eq!(three.ask(1, Order::Delete).1, still_holds);

    // A gift of everything: nothing is held, and the gift is open.
    let (slot, to, expires) = (Slot(0), DatabaseId(2), three.later(1, 40));
    let assets = Assets::units(GOLD, 10);
    let (of, given) = three.ask(
        1,
        Order::Give {
            slot,
            to,
            assets: assets.clone(),
            expires,
        },
    );
    assert_eq!(given, Outcome::Pending);
    assert_eq!(three.ask(1, Order::Delete).1, still_holds);

    // The receiver of a gift that is not posted has nothing, and is deleted. The gift goes back.
    let (with, expires) = (DatabaseId(2), three.later(3, 40));
    let (trade, _) = three.ask(3, Order::Propose { with, expires });
    assert_eq!(three.ask(2, Order::Delete).1, still_holds, "a trade of it is open");
    let trade = annals_ids::TradeId(trade);
    assert_eq!(three.ask(3, Order::Cancel { trade }).1, Outcome::Voided);
    assert_eq!(three.ask(2, Order::Delete).1, Outcome::Posted);
    let unknown = Outcome::Refused(RefusalReason::UnknownHolder);
    assert_eq!(three.ask(1, Order::Post { of }).1, unknown);
    assert_eq!(three.held(1), Assets::default(), "it is reserved until it is voided");
    assert_eq!(three.ask(1, Order::Void { of }).1, Outcome::Voided);
    assert_eq!(three.held(1), assets);
    let expires = three.later(1, 40);
    assert_eq!(
        three
            .ask(
                1,
                Order::Give {
                    slot,
                    to,
                    assets,
                    expires
                }
            )
            .1,
        unknown
    );

    // A deleted entity receives nothing by its own orders either.
    let mint = three.mint(2, gold(1));
    three.turn();
    assert_eq!(three.outcome(mint), Outcome::Refused(RefusalReason::NotAlive));
    three.check();
}
