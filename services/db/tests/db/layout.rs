//! The layout mark of a store: db writes it when it begins to fold, and does not fold into a store with another one.

use annals_db::{FoldError, Folder};
use annals_store::{
    Transaction, immediate,
    layout::{
        archive::{FoldLease, lease_key},
        mark::{self, OtherLayout},
    },
};

use crate::{
    game,
    realm::{Realm, SHARD},
    restoring::{leaves, lived, restore, unlogged},
};

fn layout(store: &annals_store::Store) -> Option<u32> {
    let read = |transaction: Transaction| async move { mark::read_layout(&transaction).await };
    immediate(store.read(read)).expect("the store answers")
}

#[test]
fn folding_marks_an_unmarked_store() {
    let realm: Realm = lived(1);
    assert_eq!(layout(&realm.store), Some(mark::LAYOUT));
    let leaves = leaves(&realm);
    let (restored, _) = restore(&unlogged(&realm, &leaves), &leaves).expect("it is restored");
    assert_eq!(layout(&restored), Some(mark::LAYOUT));
}

#[test]
fn a_store_with_another_layout_is_not_folded_into() {
    let realm = lived(1);
    let found = mark::LAYOUT + 1;
    let set = |transaction: Transaction| async move { transaction.set(&mark::layout_key(), &found.to_be_bytes()) };
    immediate(realm.store.run_repeatable(set)).expect("the store answers");
    let lease = || {
        let read = |transaction: Transaction| async move { transaction.get(&lease_key(SHARD)).await };
        let value = immediate(realm.store.read(read)).expect("the store answers");
        FoldLease::decode(value.as_deref()).expect("readable").term
    };
    let before = lease();
    let refused = immediate(Folder::begin(realm.store.clone(), SHARD, game::schema())).err();
    assert!(
        matches!(refused, Some(FoldError::Layout(OtherLayout { found: named })) if named == found),
        "{refused:?}"
    );
    let said = OtherLayout { found }.to_string();
    let advice = "run the release that has written it, and upgrade one release at a time";
    assert!(said.ends_with(advice), "{said}");
    assert_eq!(
        (lease(), layout(&realm.store)),
        (before, Some(found)),
        "a db process continues to fold it"
    );
    // A store from before the mark existed is accepted.
    let clear = |transaction: Transaction| async move { transaction.clear(&mark::layout_key()) };
    immediate(realm.store.run_repeatable(clear)).expect("the store answers");
    assert!(immediate(Folder::begin(realm.store.clone(), SHARD, game::schema())).is_ok());
    assert_eq!(layout(&realm.store), Some(mark::LAYOUT));
}
