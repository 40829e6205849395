//! The cost of a realm's day does not depend on its age. Counts the keys that the store scans, including deleted ones,
//! which a store keeps for a while. A queue in the store has to be read and cleared from its front.

use annals_db::read_archived;
use annals_event::ledger::{Assets, Order};
use annals_ids::{AssetKind, BatchNumber, DatabaseId, OfferVersion, Slot, TradeId};
use annals_store::MemoryStore;

use crate::{
    acts,
    realm::SHARD,
    traders::{GOLD, Traders, gold, items},
    wait,
};

/// Number of days compared at either end; each such period has as many tiles and snapshots.
const COMPARED: usize = 16;
const DAYS: usize = 6 * COMPARED;

/// Turns of a day; each archives a batch of the base and one of the ledger.
const TURNS: u64 = 16;

/// Stored entities; each trades with its neighbour.
const HOLDERS: u64 = 8;

const SWORDS: AssetKind = AssetKind(2);

fn begin(store: &MemoryStore) -> Traders {
    let mut life = Traders::begin(store.store(), 1, HOLDERS);
    for holder in 1..=HOLDERS {
        life.mint(holder, gold(1 << 40));
    }
    life.turn();
    life
}

fn day(life: &mut Traders) {
    trade(life);
    give(life);
    make_and_destroy(life);
    log_in_again(life);
    // As the reader does when nothing was new for a while.
    life.outbox.give_again();
    while !life.turns.is_multiple_of(TURNS) {
        life.turn();
    }
    life.realm.seal(8);
    life.realm.tile();
    let oldest = read_archived(&life.realm.store, SHARD, life.bases[0], BatchNumber(0), 8);
    assert_eq!(wait(oldest).expect("it is there").len(), 8, "the oldest batches");
}

/// Every holder trades with a neighbour; one more proposal expires.
fn trade(life: &mut Traders) {
    let (expires, soon) = (life.later(1, 20), life.later(1, 3));
    let propose = |with: u64, expires| Order::Propose {
        with: DatabaseId(with),
        expires,
    };
    let sides: Vec<(u64, u64)> = (1..=HOLDERS).step_by(2).map(|holder| (holder, holder + 1)).collect();
    life.order(HOLDERS, propose(1, soon));
    let mut trades = Vec::new();
    for (proposer, partner) in &sides {
        trades.push(TradeId(life.order(*proposer, propose(*partner, expires))));
    }
    life.turn();
    for (trade, (proposer, partner)) in trades.iter().zip(&sides) {
        for holder in [proposer, partner] {
            let (trade, slot, assets) = (*trade, Slot(0), Assets::units(GOLD, 1 + *holder));
            life.order(*holder, Order::Offer { trade, slot, assets });
        }
    }
    life.turn();
    for accepts in 0..2 {
        for (trade, (proposer, partner)) in trades.iter().zip(&sides) {
            let (trade, version) = (*trade, OfferVersion(2));
            life.order([*proposer, *partner][accepts], Order::Accept { trade, version });
        }
        life.turn();
    }
}

/// One gift that is posted, and one that expires.
fn give(life: &mut Traders) {
    let (expires, soon) = (life.later(1, 100_000), life.later(1, 3));
    let gift = |expires| Order::Give {
        slot: Slot(0),
        to: DatabaseId(2),
        assets: Assets::units(GOLD, 1),
        expires,
    };
    let of = life.order(1, gift(expires));
    life.order(3, gift(soon));
    life.turn();
    life.order(1, Order::Post { of });
    life.turn();
}

fn make_and_destroy(life: &mut Traders) {
    life.mint(4, items(SWORDS, 2));
    life.turn();
    let assets = Assets {
        items: life.held(4).items,
        ..Assets::default()
    };
    assert_eq!(assets.items.len(), 2);
    let (slot, reason) = (Slot(0), "aging".to_owned());
    life.order(4, Order::Burn { slot, assets, reason });
    life.turn();
}

fn log_in_again(life: &mut Traders) {
    let holder = 1 + life.begun % HOLDERS;
    let (entity, base) = life.lives[&holder];
    acts::end(&mut life.realm, base, entity);
    life.turn();
    life.live(holder, base);
    life.turn();
}

#[test]
fn keys_scanned_per_day_do_not_grow_with_the_realms_age() {
    let store = MemoryStore::new();
    let mut life = begin(&store);
    // The first days lack leftovers that later days find.
    (0..4).for_each(|_| day(&mut life));
    let mut days = Vec::new();
    for _ in 0..DAYS {
        let before = store.walked();
        day(&mut life);
        days.push(store.walked() - before);
    }
    let young: u64 = days[..COMPARED].iter().sum();
    let old: u64 = days[DAYS - COMPARED..].iter().sum();
    println!("{young} keys in the first {COMPARED} of {DAYS} days, {old} in the last");
    assert!(young > 500, "something was walked over: {young}");
    assert!(
        old * 100 <= young * 105,
        "{young} keys were walked over in the first {COMPARED} days, {old} in the last: {days:?}"
    );
}
