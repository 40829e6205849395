//! A trade that expires and a gift that is returned while db and the base are killed: at each commit of db, with each
//! possible outcome of the commit. What was reserved comes back once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use annals_db::{FoldError, Folder};
use annals_event::ledger::{Assets, Order, Outcome};
use annals_ids::{DatabaseId, Slot, TradeId, TransferId};
use annals_store::{
    MemoryStore, Store,
    faults::{Call, Fault, FaultyStore},
    immediate,
};

use crate::{
    game,
    realm::SHARD,
    traders::{GOLD, Traders, gold},
};

/// Outcome of the last commit of a killed db process.
const ENDS: [Fault; 4] = [
    Fault::AnswerLost,
    Fault::RequestLost,
    Fault::LandsBeforeNext,
    Fault::LandsAfterNext,
];

/// The store as seen by a db process that is killed at its commit number `nth`: all its later calls fail. Once `dead`
/// is unset, the delayed commit is applied with the next one.
fn killed_at(store: &Store, nth: usize, end: Fault, dead: &Arc<AtomicBool>) -> Store {
    let (mut commits, dead) = (0, Arc::clone(dead));
    FaultyStore::wrap(store, move |call| {
        if dead.load(Ordering::Relaxed) {
            return Fault::Unavailable;
        }
        if call == Call::Commit {
            commits += 1;
            if commits == nth + 1 {
                dead.store(true, Ordering::Relaxed);
                return end;
            }
        }
        Fault::None
    })
}

struct Reserved {
    traders: Traders,
    trade: TransferId,
    gift: TransferId,
}

/// A trade with offers of both sides, which expires with the batch after the next; and a gift.
fn reserved() -> Reserved {
    let mut traders = Traders::begin(MemoryStore::new().store(), 1, 2);
    for holder in 1..=2 {
        traders.mint(holder, gold(100));
    }
    traders.turn();
    let (slot, with) = (Slot(0), DatabaseId(2));
    let expires = traders.later(1, 3);
    let trade = traders.order(1, Order::Propose { with, expires });
    let assets = Assets::units(GOLD, 30);
    let lasting = traders.later(1, 1_000);
    let (to, expires) = (with, lasting);
    let gift = traders.order(
        1,
        Order::Give {
            slot,
            to,
            assets,
            expires,
        },
    );
    traders.turn();
    for holder in [1, 2] {
        let (trade, assets) = (TradeId(trade), Assets::units(GOLD, 20));
        traders.order(holder, Order::Offer { trade, slot, assets });
    }
    traders.turn();
    assert_eq!(both(&traders), [50, 80]);
    Reserved { traders, trade, gift }
}

fn both(traders: &Traders) -> [u64; 2] {
    [1, 2].map(|holder| traders.held(holder).units.get(&GOLD).copied().unwrap_or(0))
}

/// A db process that is killed at its commit number `nth` folds the stream. Returns whether it reached that commit.
fn fold_until_killed(traders: &mut Traders, nth: usize, end: Fault, late: bool) -> bool {
    let dead = Arc::new(AtomicBool::new(false));
    let store = killed_at(&traders.realm.store, nth, end, &dead);
    let killed = immediate(Folder::begin(store.clone(), SHARD, game::schema())).and_then(|mut db| {
        for (owner, bytes) in &traders.realm.stream {
            db.offer(*owner, bytes.clone());
            while db.has_work() {
                immediate(db.commit())?;
            }
        }
        Ok(())
    });
    let was_killed = matches!(killed, Err(FoldError::Store(_)));
    assert!(was_killed || killed.is_ok(), "{:?}", killed.err());
    let land = || {
        dead.store(false, Ordering::Relaxed);
        let transaction = store.begin();
        transaction.set(b"\x7fland", b"").expect("a small row");
        immediate(transaction.commit()).expect("it commits");
    };
    // The delayed commit is applied before the next db process takes over, or after.
    if was_killed && !late {
        land();
    }
    drop(traders.realm.begin_db());
    if was_killed && late {
        land();
    }
    traders.realm.fold(usize::MAX);
    was_killed
}

#[test]
fn expired_trades_and_returned_gifts_come_back_once_despite_crashes() {
    let mut killed = 0;
    for end in ENDS {
        for late in [false, true] {
            for nth in 0..100 {
                let Reserved {
                    mut traders,
                    trade,
                    gift,
                } = reserved();
                let base = traders.bases[0];
                traders.order(2, Order::Void { of: gift });
                traders.realm.write(base, false);
                traders.realm.write(base, false);
                let was_killed = fold_until_killed(&mut traders, nth, end, late);
                // The base dies too, before it is notified.
                traders.realm.take_over(base);
                traders.realm.record_open(base);
                (0..4).for_each(|_| traders.turn());
                let outcomes = [trade, gift].map(|id| traders.outcomes(id));
                let expired = vec![Outcome::Pending, Outcome::Expired];
                assert_eq!(outcomes, [expired, vec![Outcome::Pending]], "{end:?} at commit {nth}");
                assert_eq!(both(&traders), [100, 100], "{end:?} at commit {nth}");
                for holder in [1, 2] {
                    let view = traders.view(holder);
                    assert!(view.trades.is_empty() && view.gifts.is_empty() && view.orders.is_empty());
                }
                traders.check();
                if !was_killed {
                    break;
                }
                killed += 1;
            }
        }
    }
    assert!(killed > 20, "db was killed {killed} times");
}
