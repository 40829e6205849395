//! Holders that give orders, on one base or more: their orders are folded, announced by the ledger's owner, and
//! received.

use std::collections::BTreeMap;

use annals_db::ledger::{Outbox, audit, read_entries};
use annals_event::{
    Body, Call,
    ledger::{Assets, Goods, LedgerView, Order, Outcome},
};
use annals_ids::{Address, AssetKind, EntityId, EntryNumber, OwnerId, OwnerKind, Part, Slot, TransferId, WallTime};
use annals_store::Store;

use crate::{acts, realm::Realm, wait};

pub(crate) const GOLD: AssetKind = AssetKind(1);

/// Milliseconds between the batches of an owner.
pub(crate) const PACE: u64 = 500;

pub(crate) struct Traders {
    pub(crate) realm: Realm,
    pub(crate) bases: Vec<OwnerId>,
    pub(crate) ledger: OwnerId,
    pub(crate) outbox: Outbox,
    /// By stored entity, its active entity and that one's owner.
    pub(crate) lives: BTreeMap<u64, (EntityId, OwnerId)>,
    /// Number of activations begun, and of turns.
    pub(crate) begun: u64,
    pub(crate) turns: u64,
}

impl Traders {
    /// Begins holders 1, 2, 3 … without assets, on the bases in turn.
    pub(crate) fn begin(store: Store, bases: usize, holders: u64) -> Self {
        let mut realm = Realm::on(store, 1);
        let bases: Vec<OwnerId> = (0..bases).map(|_| realm.found(Part::Base)).collect();
        let ledger = realm.found(OwnerKind::Ledger);
        for owner in bases.iter().chain([&ledger]) {
            realm.scribe(*owner).pace = PACE;
        }
        let mut traders = Self {
            realm,
            bases,
            ledger,
            outbox: Outbox::default(),
            lives: BTreeMap::new(),
            begun: 0,
            turns: 0,
        };
        for (holder, place) in (1..=holders).zip(0..) {
            let base = traders.bases[place % traders.bases.len()];
            traders.live(holder, base);
        }
        traders.turn();
        traders
    }

    pub(crate) fn live(&mut self, holder: u64, base: OwnerId) {
        self.begun += 1;
        let entity = EntityId(100 + self.begun);
        acts::begin_base(&mut self.realm, base, entity, "trader", (holder, self.begun));
        self.lives.insert(holder, (entity, base));
    }

    pub(crate) fn order(&mut self, holder: u64, order: Order) -> TransferId {
        let (asker, base) = self.lives[&holder];
        let number = self.view(holder).last.next();
        let ordered = Body::Ordered { number, order };
        self.realm.scribe(base).record(asker, false, ordered);
        TransferId { asker, number }
    }

    /// Executes one order by itself, and returns its outcome.
    pub(crate) fn ask(&mut self, holder: u64, order: Order) -> (TransferId, Outcome) {
        let id = self.order(holder, order);
        self.turn();
        (id, self.outcome(id))
    }

    pub(crate) fn mint(&mut self, holder: u64, goods: Goods) -> TransferId {
        let (slot, reason) = (Slot(0), "test".to_owned());
        self.order(holder, Order::Mint { slot, goods, reason })
    }

    pub(crate) fn view(&self, holder: u64) -> &LedgerView {
        let (entity, base) = self.lives[&holder];
        let image = &self.realm.owners[&base].scribe.state.entities[&entity];
        &image.base().expect("a base part").ledger
    }

    /// A holder's inventory as known to its base part.
    pub(crate) fn held(&self, holder: u64) -> Assets {
        let holdings = self.view(holder).holdings.as_ref().expect("a notification arrived");
        holdings.slots.get(&Slot(0)).cloned().unwrap_or_default()
    }

    /// The time `batches` batches from now, by the clock of a holder's base.
    pub(crate) fn later(&self, holder: u64, batches: u64) -> WallTime {
        let (_, base) = self.lives[&holder];
        WallTime(self.realm.owners[&base].scribe.now().0 + batches * PACE)
    }

    /// Folds, announces and delivers what was recorded.
    pub(crate) fn turn(&mut self) {
        self.turns += 1;
        for base in self.bases.clone() {
            self.realm.write(base, false);
        }
        self.realm.fold(usize::MAX);
        self.notify();
        self.realm.write(self.ledger, false);
        self.realm.fold(usize::MAX);
    }

    fn notify(&mut self) {
        let notices = wait(self.outbox.read(&self.realm.store, 1_000)).expect("the store answers");
        for (notice, what) in notices {
            self.outbox.give(notice);
            let entry = what.entry;
            self.realm
                .scribe(self.ledger)
                .record_own(Body::Entered { notice, entry });
            for delivery in what.deliveries {
                let (to, update) = (delivery.to, delivery.update);
                self.receive(delivery.home, Call::Ledger { to, update });
            }
        }
    }

    fn receive(&mut self, home: OwnerId, call: Call) {
        let Call::Ledger { to, update } = call else { return };
        let scribe = self.realm.scribe(home);
        scribe.consume(Address::Owner(self.ledger), Address::Owner(home));
        if scribe.state.entities.contains_key(&to) {
            scribe.record(to, false, Body::Booked(update));
        }
    }

    /// The last outcome in the entries of an order, or of the trade or gift that it opened.
    pub(crate) fn outcome(&self, id: TransferId) -> Outcome {
        let outcomes = self.outcomes(id);
        *outcomes.last().expect("it was executed")
    }

    /// All outcomes in the entries of an order and of the trade or gift that it opened, in order.
    pub(crate) fn outcomes(&self, id: TransferId) -> Vec<Outcome> {
        let entries = wait(read_entries(&self.realm.store, EntryNumber(0), usize::MAX)).expect("the store answers");
        let of_it = entries.iter().filter(|entry| entry.of == id);
        of_it.map(|entry| entry.outcome).collect()
    }

    /// Checks that an audit of the ledger finds nothing.
    pub(crate) fn check(&self) {
        let report = wait(audit(&self.realm.store)).expect("the store answers");
        assert_eq!(report.findings, []);
    }
}

pub(crate) fn gold(amount: u64) -> Goods {
    Goods {
        units: [(GOLD, amount)].into(),
        ..Goods::default()
    }
}

pub(crate) fn items(kind: AssetKind, count: u32) -> Goods {
    Goods {
        items: [(kind, count)].into(),
        ..Goods::default()
    }
}
