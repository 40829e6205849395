//! What a day costs a realm does not depend on its age: the keys that the store walks over are counted, deleted ones among
//! them, as a store keeps those for a while. Whatever is used as a queue has to be read and cleared from its front.

use std::collections::BTreeMap;

use annals_db::{ledger::Outbox, read_archived};
use annals_event::{
    Body, Call,
    ledger::{Assets, Goods, Order},
};
use annals_ids::{
    Address, AssetKind, BatchNumber, DatabaseId, EntityId, OfferVersion, OwnerId, OwnerKind, Part, Slot, TradeId,
    TransferId, WallTime,
};
use annals_store::MemoryStore;

use crate::{
    acts,
    realm::{Realm, SHARD},
    wait,
};

/// How many days are compared at either end of how many: in each such time there are as many tiles and snapshots.
const COMPARED: usize = 16;
const DAYS: usize = 6 * COMPARED;

/// Turns of a day; in each a batch of the base and one of the ledger is archived.
const TURNS: u64 = 16;

/// Entities of the database; each trades with its neighbour.
const HOLDERS: u64 = 8;

/// Milliseconds between batches.
const PACE: u64 = 500;

const GOLD: AssetKind = AssetKind(1);
const SWORDS: AssetKind = AssetKind(2);

struct Life {
    realm: Realm,
    base: OwnerId,
    ledger: OwnerId,
    outbox: Outbox,
    /// By entity of the database, who lives for it.
    lives: BTreeMap<u64, EntityId>,
    next: u64,
    turns: u64,
}

impl Life {
    fn begin(store: &MemoryStore) -> Self {
        let mut realm = Realm::on(store.store(), 1);
        let (base, ledger) = (realm.found(Part::Base), realm.found(OwnerKind::Ledger));
        let mut life = Self {
            realm,
            base,
            ledger,
            outbox: Outbox::default(),
            lives: BTreeMap::new(),
            next: 0,
            turns: 0,
        };
        for owner in [base, ledger] {
            life.realm.scribe(owner).pace = PACE;
        }
        (1..=HOLDERS).for_each(|holder| life.live(holder));
        life.turn();
        for holder in 1..=HOLDERS {
            let goods = Goods {
                units: [(GOLD, 1 << 40)].into(),
                ..Goods::default()
            };
            life.mint(holder, goods);
        }
        life.turn();
        life
    }

    fn live(&mut self, holder: u64) {
        self.next += 1;
        let entity = EntityId(100 + self.next);
        acts::begin_base(&mut self.realm, self.base, entity, "aging", (holder, self.next));
        self.lives.insert(holder, entity);
    }

    fn order(&mut self, holder: u64, order: Order) -> TransferId {
        let asker = self.lives[&holder];
        let scribe = self.realm.scribe(self.base);
        let base = scribe.state.entities[&asker].base().expect("a base part");
        let number = base.ledger.last.next();
        scribe.record(asker, false, Body::Ordered { number, order });
        TransferId { asker, number }
    }

    fn mint(&mut self, holder: u64, goods: Goods) {
        let (slot, reason) = (Slot(0), "aging".to_owned());
        self.order(holder, Order::Mint { slot, goods, reason });
    }

    /// In so many of the base's batches.
    fn later(&mut self, batches: u64) -> WallTime {
        WallTime((self.realm.scribe(self.base).state.tick.0 + batches) * PACE)
    }

    /// What was recorded is folded, told by the ledger's owner, and heard.
    fn turn(&mut self) {
        self.turns += 1;
        self.realm.write(self.base, false);
        self.realm.fold(usize::MAX);
        let notices = wait(self.outbox.read(&self.realm.store, 1_000)).expect("the store answers");
        for (notice, what) in notices {
            self.outbox.give(notice);
            let entry = what.entry;
            self.realm
                .scribe(self.ledger)
                .record_own(Body::Entered { notice, entry });
            for delivery in what.deliveries {
                let call = Call::Ledger {
                    to: delivery.to,
                    news: delivery.news,
                };
                self.hear(call);
            }
        }
        self.realm.write(self.ledger, false);
        self.realm.fold(usize::MAX);
    }

    fn hear(&mut self, call: Call) {
        let Call::Ledger { to, news } = call else { return };
        let scribe = self.realm.scribe(self.base);
        scribe.consume(Address::Owner(self.ledger), Address::Owner(self.base));
        if scribe.state.entities.contains_key(&to) {
            scribe.record(to, false, Body::Booked(news));
        }
    }

    fn day(&mut self) {
        self.trade();
        self.give();
        self.make_and_destroy();
        self.log_in_again(1 + self.next % HOLDERS);
        // As its reader does where nothing was new for a while.
        self.outbox.give_again();
        while !self.turns.is_multiple_of(TURNS) {
            self.turn();
        }
        self.realm.seal(8);
        self.realm.tile();
        let first = wait(read_archived(&self.realm.store, SHARD, self.base, BatchNumber(0), 8)).expect("it is there");
        assert_eq!(first.len(), 8, "the oldest batches");
    }

    /// Everybody trades with a neighbour; one proposal more is left to itself.
    fn trade(&mut self) {
        let (expires, soon) = (self.later(20), self.later(3));
        let propose = |with: u64, expires| Order::Propose {
            with: DatabaseId(with),
            expires,
        };
        let sides: Vec<(u64, u64)> = (1..=HOLDERS).step_by(2).map(|holder| (holder, holder + 1)).collect();
        self.order(HOLDERS, propose(1, soon));
        let mut trades = Vec::new();
        for (proposer, partner) in &sides {
            trades.push(TradeId(self.order(*proposer, propose(*partner, expires))));
        }
        self.turn();
        for (trade, (proposer, partner)) in trades.iter().zip(&sides) {
            for holder in [proposer, partner] {
                let (trade, slot, assets) = (*trade, Slot(0), Assets::units(GOLD, 1 + *holder));
                self.order(*holder, Order::Offer { trade, slot, assets });
            }
        }
        self.turn();
        for accepts in 0..2 {
            for (trade, (proposer, partner)) in trades.iter().zip(&sides) {
                let (trade, version) = (*trade, OfferVersion(2));
                self.order([*proposer, *partner][accepts], Order::Accept { trade, version });
            }
            self.turn();
        }
    }

    /// One gift that is posted, and one that nobody takes.
    fn give(&mut self) {
        let (expires, soon) = (self.later(100_000), self.later(3));
        let gift = |expires| Order::Give {
            slot: Slot(0),
            to: DatabaseId(2),
            assets: Assets::units(GOLD, 1),
            expires,
        };
        let of = self.order(1, gift(expires));
        self.order(3, gift(soon));
        self.turn();
        self.order(1, Order::Post { of });
        self.turn();
    }

    fn make_and_destroy(&mut self) {
        let goods = Goods {
            items: [(SWORDS, 2)].into(),
            ..Goods::default()
        };
        self.mint(4, goods);
        self.turn();
        let scribe = self.realm.scribe(self.base);
        let view = &scribe.state.entities[&self.lives[&4]]
            .base()
            .expect("a base part")
            .ledger;
        let holdings = view.holdings.as_ref().expect("it was told");
        let assets = Assets {
            items: holdings.slots[&Slot(0)].items.clone(),
            ..Assets::default()
        };
        assert_eq!(assets.items.len(), 2);
        let (slot, reason) = (Slot(0), "aging".to_owned());
        self.order(4, Order::Burn { slot, assets, reason });
        self.turn();
    }

    fn log_in_again(&mut self, holder: u64) {
        let entity = self.lives[&holder];
        acts::end(&mut self.realm, self.base, entity);
        self.turn();
        self.live(holder);
        self.turn();
    }
}

#[test]
fn a_day_walks_over_as_many_keys_in_an_old_realm_as_in_a_young_one() {
    let store = MemoryStore::new();
    let mut life = Life::begin(&store);
    // The first days have not yet what the days after them find.
    (0..4).for_each(|_| life.day());
    let mut days = Vec::new();
    for _ in 0..DAYS {
        let before = store.walked();
        life.day();
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
