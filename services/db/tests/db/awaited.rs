//! Which batches a process waits for: those are folded at once, and the others may be gathered for a while.

use annals_db::ledger::Outbox;
use annals_event::{Body, ledger::Order};
use annals_ids::{DatabaseId, NoticeNumber, OwnerId};
use annals_store::MemoryStore;

use crate::{
    traders::{Traders, gold},
    wait,
};

/// The newest notice in the outbox.
fn newest(life: &Traders) -> Option<NoticeNumber> {
    let notices = wait(Outbox::default().read(&life.realm.store, 1_000)).expect("the store answers");
    notices.last().map(|(number, _)| *number)
}

/// Writes a batch of what was recorded and folds it by itself. Returns whether db says that a process waits for it, and
/// whether it added a notice.
fn fold_one(life: &mut Traders, owner: OwnerId) -> (bool, bool) {
    life.realm.write(owner, false);
    let before = newest(life);
    let (_, bytes) = life.realm.stream.last().expect("it was written").clone();
    let is_awaited = life.realm.db.offer(owner, bytes);
    life.realm.offered = life.realm.stream.len();
    while life.realm.db.has_work() {
        life.realm.commit().expect("the store answers");
    }
    (is_awaited, newest(life) > before)
}

#[test]
fn what_the_ledger_answers_is_awaited_and_the_rest_is_not() {
    let mut life = Traders::begin(MemoryStore::new().store(), 1, 2);
    let base = life.bases[0];
    life.mint(1, gold(10));
    assert_eq!(fold_one(&mut life, base), (true, true), "an order");
    life.turn();
    assert_eq!(fold_one(&mut life, base), (false, false), "a batch of nothing");

    let expires = life.later(1, 3);
    let with = DatabaseId(2);
    life.order(1, Order::Propose { with, expires });
    assert_eq!(fold_one(&mut life, base), (true, true), "a proposal");
    life.turn();
    // The batch in whose time the proposal expires asks for nothing: the answer comes as late as the expiry was noticed.
    let expired = (0..8).any(|_| fold_one(&mut life, base) == (false, true));
    assert!(expired, "the proposal expired");

    life.live(2, base);
    let (is_awaited, _) = fold_one(&mut life, base);
    assert!(is_awaited, "a stored entity that begins");
    life.turn();
    let (entity, _) = life.lives[&2];
    let database = DatabaseId(2);
    for (what, body) in [
        ("an entity that is stored", Body::Stored { database }),
        ("an entity that ends", Body::Destroyed),
    ] {
        life.realm.scribe(base).record(entity, false, body);
        let (is_awaited, _) = fold_one(&mut life, base);
        assert!(is_awaited, "{what}");
    }
    life.turn();
    let ledger = life.ledger;
    assert_eq!(
        fold_one(&mut life, ledger),
        (false, false),
        "the log of the ledger's owner"
    );
}
