//! Effects of events on the database: entities are written, found and returned.

use annals_db::{Alarm, StoredEntity, accounts, find_stored};
use annals_def::Value;
use annals_event::{Body, Call, FormerCell};
use annals_ids::{Address, CallNumber, DatabaseId, EntityId, OwnerId, Part};
use annals_store::{Transaction, immediate, layout::database};

use crate::{acts, game, realm::Realm};

const ENTITY: EntityId = EntityId(50);
const DATABASE: DatabaseId = DatabaseId(900);

/// A realm with a base and two cell owners, and an entity with both parts, the cell part on the first of the two.
fn realm() -> (Realm, OwnerId, [OwnerId; 2]) {
    let mut realm = Realm::new(0);
    let base = realm.found(Part::Base);
    let cells = [realm.found(Part::Cell), realm.found(Part::Cell)];
    acts::begin_base(&mut realm, base, ENTITY, "anna", (0, 0));
    realm.write(base, false);
    acts::begin_cell(&mut realm, cells[0], ENTITY, base);
    realm.write(cells[0], false);
    acts::placed(&mut realm, base, ENTITY, Some(cells[0]));
    realm.write(base, false);
    (realm, base, cells)
}

fn load(realm: &Realm) -> Option<StoredEntity> {
    immediate(accounts::load(&realm.store, DATABASE)).expect("the store answers")
}

fn property(realm: &Realm, name: &str) -> Option<Value> {
    load(realm)?.properties.get(name).cloned()
}

fn find(realm: &Realm, name: &str) -> Option<DatabaseId> {
    let name = Value::Unicode(name.to_owned());
    immediate(find_stored(&realm.store.begin(), game::avatar(), &name)).expect("the store answers")
}

fn is_in_use(realm: &Realm) -> bool {
    let read = |transaction: Transaction| async move { transaction.get(&database::checkout_key(DATABASE)).await };
    immediate(realm.store.read(read)).expect("the store answers").is_some()
}

#[test]
fn the_persistent_properties_of_both_parts_are_written_and_no_others() {
    let (mut realm, base, cells) = realm();
    acts::set(&mut realm, base, ENTITY, "gold", Value::Int(5));
    acts::set(&mut realm, base, ENTITY, "notes", Value::Int(6));
    let kit = |worn, wet| Value::Dict(vec![Value::Int(worn), Value::Int(wet)]);
    acts::set(&mut realm, base, ENTITY, "kit", kit(3, 4));
    acts::set(&mut realm, cells[0], ENTITY, "hp", Value::Int(7));
    acts::set(&mut realm, cells[0], ENTITY, "threat", Value::Int(8));
    realm.write(cells[0], false);
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    // Later changes are not written, even in the same batch.
    acts::set(&mut realm, base, ENTITY, "gold", Value::Int(-1));
    realm.write(base, false);
    assert_eq!(load(&realm), None);
    realm.fold(usize::MAX);
    let expected = [
        ("baggage", Value::Bytes(Vec::new())),
        ("gold", Value::Int(5)),
        ("hp", Value::Int(7)),
        ("kit", kit(3, 0)),
        ("level", Value::Int(0)),
        ("motto", Value::Bytes(Vec::new())),
        ("name", Value::Unicode("anna".into())),
    ];
    let expected = StoredEntity {
        entity_type: "Avatar".into(),
        properties: expected.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    assert_eq!(load(&realm), Some(expected));
    assert_eq!(find(&realm, "anna"), Some(DATABASE));
    assert!(is_in_use(&realm), "the activation that stored it has checked it out");
}

#[test]
fn an_entity_that_ends_in_the_batch_that_stores_it_is_stored() {
    let (mut realm, base, cells) = realm();
    acts::set(&mut realm, cells[0], ENTITY, "hp", Value::Int(7));
    realm.write(cells[0], false);
    acts::set(&mut realm, base, ENTITY, "gold", Value::Int(5));
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    acts::end(&mut realm, base, ENTITY);
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert_eq!(property(&realm, "gold"), Some(Value::Int(5)));
    assert_eq!(property(&realm, "hp"), Some(Value::Int(7)));
    assert!(!is_in_use(&realm), "the life has ended");
}

#[test]
fn the_last_values_of_an_ended_cell_part_are_kept() {
    let (mut realm, base, cells) = realm();
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    realm.write(base, false);
    acts::set(&mut realm, cells[0], ENTITY, "hp", Value::Int(7));
    acts::end(&mut realm, cells[0], ENTITY);
    realm.write(cells[0], false);
    acts::placed(&mut realm, base, ENTITY, None);
    acts::set(&mut realm, base, ENTITY, "gold", Value::Int(5));
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    acts::end(&mut realm, base, ENTITY);
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert_eq!(property(&realm, "hp"), Some(Value::Int(7)));
    assert_eq!(property(&realm, "gold"), Some(Value::Int(5)));
}

/// The stream lost the batch in which the cell part ended, after it was acknowledged: the end of the base part, which
/// depends on it, is folded first. Whether a later batch shows the hole by then makes no difference.
#[test]
fn a_check_out_is_returned_with_the_last_values_of_a_cell_part_whose_end_was_lost() {
    for (is_shown, restarts) in [(false, false), (true, false), (false, true), (true, true)] {
        let (mut realm, base, cells) = realm();
        acts::store(&mut realm, base, ENTITY, DATABASE.0);
        realm.write(base, false);
        acts::set(&mut realm, cells[0], ENTITY, "hp", Value::Int(7));
        acts::end(&mut realm, cells[0], ENTITY);
        realm.write(cells[0], true);
        if is_shown {
            acts::begin_cell(&mut realm, cells[0], EntityId(51), base);
            realm.write(cells[0], false);
        }
        acts::placed(&mut realm, base, ENTITY, None);
        acts::store(&mut realm, base, ENTITY, DATABASE.0);
        acts::end(&mut realm, base, ENTITY);
        realm.write(base, false);
        realm.fold(usize::MAX);
        assert!(is_in_use(&realm), "it must not be activated with older values");
        if restarts {
            realm.begin_db();
        }
        realm.fill_all(cells[0]);
        realm.fold(usize::MAX);
        assert_eq!(property(&realm, "hp"), Some(Value::Int(7)));
        assert!(!is_in_use(&realm), "the activation has ended");
    }
}

/// The stream lost the batch in which the cell part left for another owner, where it ended: when the end of the base part
/// is folded, it still seems to be real where it was.
#[test]
fn a_check_out_is_returned_when_the_lost_departure_of_an_ended_cell_part_is_found() {
    for restarts in [false, true] {
        let (mut realm, base, cells) = realm();
        acts::store(&mut realm, base, ENTITY, DATABASE.0);
        realm.write(base, false);
        let (from, to) = (cells[0], cells[1]);
        let image = Box::new(realm.scribe(from).state.entities[&ENTITY].clone());
        let (sender, receiver) = (Address::Owner(from), Address::Owner(to));
        let number = realm.scribe(from).next_call(sender, receiver);
        realm.scribe(from).record(ENTITY, false, Body::Offloaded { to, number });
        realm.write(from, true);
        assert_eq!(realm.scribe(to).consume(sender, receiver), number);
        realm
            .scribe(to)
            .record(ENTITY, false, Body::Onloaded { from, number, image });
        acts::set(&mut realm, to, ENTITY, "hp", Value::Int(7));
        acts::end(&mut realm, to, ENTITY);
        realm.write(to, false);
        acts::placed(&mut realm, base, ENTITY, None);
        acts::store(&mut realm, base, ENTITY, DATABASE.0);
        acts::end(&mut realm, base, ENTITY);
        realm.write(base, false);
        realm.fold(usize::MAX);
        assert!(is_in_use(&realm), "it may have older values");
        if restarts {
            realm.begin_db();
        }
        realm.fill_all(from);
        realm.fold(usize::MAX);
        assert_eq!(property(&realm, "hp"), Some(Value::Int(7)));
        assert!(!is_in_use(&realm), "the activation has ended");
    }
}

/// The stream lost the batch in which the first of two cell parts ended: it is folded after the second one has changed,
/// or ended, and changes nothing (C17).
#[test]
fn the_lost_end_of_a_former_cell_part_replaces_no_later_values() {
    for has_ended in [false, true] {
        let (mut realm, base, cells) = realm();
        let (of_base, of_cell) = (Address::Base(ENTITY), Address::Cell(ENTITY));
        let end_cell = |realm: &mut Realm, owner, number, hp| {
            acts::set(realm, owner, ENTITY, "hp", Value::Int(hp));
            let report = Body::Called {
                to: of_base,
                home: base,
                number: CallNumber(number),
                call: Call::Placed(None),
            };
            for body in [report, Body::CellEnding, Body::Destroyed] {
                realm.scribe(owner).record(ENTITY, false, body);
            }
        };
        acts::store(&mut realm, base, ENTITY, DATABASE.0);
        realm.write(base, false);
        end_cell(&mut realm, cells[0], 1, 7);
        let ending = realm.scribe(cells[0]).state.ending[&ENTITY].clone();
        realm.write(cells[0], true);

        let mut former = FormerCell {
            history: ending.history,
            links: ending.links,
        };
        let sent = former.links.sent.get_mut(&of_base).unwrap();
        sent.unconfirmed.clear();
        realm.scribe(base).consume(of_cell, of_base);
        acts::placed(&mut realm, base, ENTITY, None);
        let returned = Body::CellReturned {
            former: Box::new(former.clone()),
            properties: ending.properties.clone(),
        };
        realm.scribe(base).record(ENTITY, false, returned);
        acts::placed(&mut realm, base, ENTITY, Some(cells[1]));
        realm.write(base, false);
        acts::begin_further_cell(&mut realm, cells[1], ENTITY, base, former);
        acts::set(&mut realm, cells[1], ENTITY, "hp", Value::Int(8));
        realm.write(cells[1], false);
        acts::store(&mut realm, base, ENTITY, DATABASE.0);
        realm.write(base, false);
        realm.fold(usize::MAX);
        assert_eq!(property(&realm, "hp"), Some(Value::Int(8)));
        if has_ended {
            end_cell(&mut realm, cells[1], 2, 9);
            realm.write(cells[1], false);
            realm.scribe(base).consume(of_cell, of_base);
            acts::placed(&mut realm, base, ENTITY, None);
            acts::store(&mut realm, base, ENTITY, DATABASE.0);
            acts::end(&mut realm, base, ENTITY);
            realm.write(base, false);
            realm.fold(usize::MAX);
            assert!(is_in_use(&realm), "a cell part seems to be real");
        }
        realm.fill_all(cells[0]);
        realm.fold(usize::MAX);
        assert_eq!(property(&realm, "hp"), Some(Value::Int(if has_ended { 9 } else { 8 })));
        assert_eq!(is_in_use(&realm), !has_ended);
    }
}

#[test]
fn a_cell_part_without_its_base_writes_nothing() {
    let (mut realm, base, cells) = realm();
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    acts::end(&mut realm, base, ENTITY);
    realm.write(base, false);
    acts::set(&mut realm, cells[0], ENTITY, "hp", Value::Int(-3));
    acts::end(&mut realm, cells[0], ENTITY);
    realm.write(cells[0], false);
    realm.fold(usize::MAX);
    assert_eq!(
        property(&realm, "hp"),
        Some(Value::Int(100)),
        "a later activation may have it"
    );
}

#[test]
fn a_newly_started_db_finds_the_cell_part_on_any_owner() {
    let (mut realm, base, cells) = realm();
    let store_now = |realm: &mut Realm, hp: i64| {
        acts::store(realm, base, ENTITY, DATABASE.0);
        realm.write(base, false);
        realm.fold(usize::MAX);
        // A db process that does not have the other logs in memory; it reads only what the first has not folded.
        realm.begin_db();
        realm.offered = realm.stream.len();
        assert_eq!(property(realm, "hp"), Some(Value::Int(hp)));
    };
    acts::set(&mut realm, cells[0], ENTITY, "hp", Value::Int(1));
    realm.write(cells[0], false);
    store_now(&mut realm, 1);

    // In hand-over: as it was when it left.
    acts::set(&mut realm, cells[0], ENTITY, "hp", Value::Int(2));
    let image = realm.scribe(cells[0]).state.entities[&ENTITY].clone();
    let number = realm
        .scribe(cells[0])
        .next_call(Address::Owner(cells[0]), Address::Owner(cells[1]));
    let to = cells[1];
    realm
        .scribe(cells[0])
        .record(ENTITY, false, Body::Offloaded { to, number });
    realm.write(cells[0], false);
    store_now(&mut realm, 2);

    // It has arrived, and its base was not notified yet.
    let (from, image) = (cells[0], Box::new(image));
    realm
        .scribe(cells[1])
        .record(ENTITY, false, Body::Onloaded { from, number, image });
    acts::set(&mut realm, cells[1], ENTITY, "hp", Value::Int(3));
    realm.write(cells[1], false);
    store_now(&mut realm, 3);
    realm
        .scribe(cells[0])
        .record(ENTITY, false, Body::Departed { to, number });
    realm.write(cells[0], false);
    acts::set(&mut realm, cells[1], ENTITY, "hp", Value::Int(4));
    realm.write(cells[1], false);
    store_now(&mut realm, 4);
}

#[test]
fn only_the_holding_activation_releases_a_check_out() {
    let (mut realm, base, _) = realm();
    let check_out = |realm: &Realm, owner| {
        let checked_out = immediate(accounts::check_out(&realm.store, DATABASE, owner)).expect("the store answers");
        checked_out.expect("it was not deleted")
    };
    let first = check_out(&realm, base);
    let lives = [EntityId(60), EntityId(61), EntityId(62)];
    acts::begin_base(&mut realm, base, lives[0], "life", (DATABASE.0, first.number));
    acts::store(&mut realm, base, lives[0], DATABASE.0);
    acts::end(&mut realm, base, lives[0]);
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert!(!is_in_use(&realm));

    let second = check_out(&realm, base);
    assert!(second.number > first.number);
    // Two activations end that do not hold it: one with the previous check-out, one with none.
    acts::begin_base(&mut realm, base, lives[1], "life", (DATABASE.0, first.number));
    acts::end(&mut realm, base, lives[1]);
    acts::begin_base(&mut realm, base, lives[2], "life", (0, 0));
    acts::end(&mut realm, base, lives[2]);
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert_eq!(
        check_out(&realm, OwnerId(99)),
        second,
        "it is still in use, where it was"
    );
}

#[test]
fn an_identifier_finds_its_current_entity() {
    let (mut realm, base, _) = realm();
    let other = EntityId(51);
    acts::begin_base(&mut realm, base, other, "anna", (0, 0));
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    acts::store(&mut realm, base, other, 901);
    realm.write(base, false);
    realm.fold(usize::MAX);
    let taken = Alarm::IdentifierTaken {
        database: DatabaseId(901),
        property: "name".into(),
        holder: DATABASE,
    };
    assert_eq!(realm.alarms, [taken]);
    assert_eq!(find(&realm, "anna"), Some(DATABASE));

    // Its holder gives the name up, and then the other one can have it.
    acts::set(&mut realm, base, ENTITY, "name", Value::Unicode("berta".into()));
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    realm.write(base, false);
    realm.fold(usize::MAX);
    assert_eq!([find(&realm, "anna"), find(&realm, "berta")], [None, Some(DATABASE)]);
    acts::store(&mut realm, base, other, 901);
    acts::set(&mut realm, base, ENTITY, "name", Value::Unicode(String::new()));
    acts::store(&mut realm, base, ENTITY, DATABASE.0);
    realm.write(base, false);
    realm.fold(usize::MAX);
    let found = ["anna", "berta", ""].map(|name| find(&realm, name));
    assert_eq!(
        found,
        [Some(DatabaseId(901)), None, None],
        "an empty name finds no entity"
    );
}
