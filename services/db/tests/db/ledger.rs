//! Orders of several holders on two bases, with activations that end, logs that are taken over and transactions that
//! fail in every way. The result is compared with a simple oracle, and the bases' holdings with the store's.

use std::collections::{BTreeMap, BTreeSet};

use annals_db::ledger::{Audit, Lots, audit, read_entries, read_notices, trace_account};
use annals_event::{
    Body, Call,
    ledger::{AssetSlot, Assets, Entry, Goods, Holder, Order, Outcome},
};
use annals_ids::{
    Address, AssetKind, DatabaseId, EntityId, EntryNumber, NoticeNumber, OfferVersion, OwnerId, OwnerKind, Part,
    Serial, Slot, TradeId, TransferId, TransferNumber, WallTime,
};
use annals_store::{
    KeyRange, Largest, ScanOrder, Store, conformance::Cluster, embedded::EmbeddedStore, layout::ledger as layout,
    limits::TRANSACTION_BYTES,
};

use crate::{
    acts,
    ledger_oracle::{EXPECTED_OUTCOMES, Oracle, assert_frequent},
    operators,
    realm::Realm,
    wait,
};

/// Number of realms, and steps of each.
const SEEDS: u64 = 40;
const STEPS: usize = 240;

/// Number of realms on a store whose commits take time.
const SLOW_SEEDS: u64 = 3;

/// Stored entities that take part.
const HOLDERS: u64 = 4;

pub(crate) struct Play {
    bases: [OwnerId; 2],
    ledger: OwnerId,
    next_entity: u64,
    next_checkout: u64,
    /// By stored entity, its active entity and that one's owner.
    lives: BTreeMap<u64, (EntityId, OwnerId)>,
    /// Calls of the ledger's owner that were not received yet.
    under_way: Vec<(OwnerId, Call)>,
    /// Ids of trades and gifts that were opened; the first ids were never opened.
    known: Vec<TransferId>,
    /// Items that were ordered to be destroyed.
    gone: Vec<(Serial, AssetKind)>,
}

impl Play {
    fn begin(realm: &mut Realm) -> Self {
        let bases = [realm.found(Part::Base), realm.found(Part::Base)];
        let ledger = realm.found(OwnerKind::Ledger);
        let mut play = Self {
            bases,
            ledger,
            next_entity: 100,
            next_checkout: 1,
            lives: BTreeMap::new(),
            under_way: Vec::new(),
            known: vec![TransferId::default()],
            gone: Vec::new(),
        };
        for holder in 1..=HOLDERS {
            play.live(realm, holder);
        }
        play
    }

    fn live(&mut self, realm: &mut Realm, holder: u64) {
        self.next_entity += 1;
        let entity = EntityId(self.next_entity);
        let owner = self.bases[realm.roll(2)];
        let name = format!("holder {holder}");
        if self.next_checkout <= HOLDERS && realm.roll(2) == 0 {
            // It becomes a stored entity in its first activation.
            acts::begin_base(realm, owner, entity, &name, (0, 0));
            acts::store(realm, owner, entity, holder);
            self.next_checkout += 1;
        } else {
            acts::begin_base(realm, owner, entity, &name, (holder, self.next_checkout));
            self.next_checkout += 1;
        }
        self.lives.insert(holder, (entity, owner));
    }

    /// Ends an activation, and begins the next once db has folded that, as check-outs ensure.
    fn relive(&mut self, realm: &mut Realm, holder: u64) {
        let Some((entity, owner)) = self.lives.remove(&holder) else {
            return;
        };
        acts::end(realm, owner, entity);
        realm.write(owner, false);
        realm.fold(usize::MAX);
        let is_folded = {
            let held = &realm.owners[&owner];
            realm.archived_count(owner) == held.chain.len()
        };
        if is_folded {
            self.live(realm, holder);
        }
    }

    fn order(&mut self, realm: &mut Realm, holder: u64) {
        let Some(&(entity, owner)) = self.lives.get(&holder) else {
            return self.relive_lost(realm, holder);
        };
        let order = self.pick_order(realm, holder, entity, owner);
        let state = &realm.scribe(owner).state;
        let Some(base) = state.entities.get(&entity).and_then(|image| image.base()) else {
            return;
        };
        let number = base.ledger.last.next();
        if matches!(order, Order::Give { .. } | Order::Propose { .. }) {
            self.known.push(TransferId { asker: entity, number });
        }
        if let Order::Burn { assets, .. } | Order::Take { assets, .. } = &order {
            self.gone.extend(assets.items.clone());
        }
        realm
            .scribe(owner)
            .record(entity, false, Body::Ordered { number, order });
    }

    fn relive_lost(&mut self, realm: &mut Realm, holder: u64) {
        realm.settle();
        self.live(realm, holder);
    }

    fn pick_order(&mut self, realm: &mut Realm, holder: u64, entity: EntityId, owner: OwnerId) -> Order {
        let slot = Slot(realm.roll(2) as u16);
        let other = DatabaseId(1 + realm.roll(HOLDERS as usize + 1) as u64);
        let of = self.pick_open(realm, entity, owner);
        let trade = TradeId(of);
        let held = self.held(realm, entity, owner, slot);
        let assets = self.some_of(realm, held);
        let now = realm.scribe(owner).state.tick.0;
        let expires = WallTime(now + realm.roll(80) as u64);
        let reason = "test".to_owned();
        match realm.roll(16) {
            14 | 15 => operators::order(realm, slot, assets, &self.gone),
            0 => Order::Mint {
                slot,
                goods: Goods {
                    units: BTreeMap::from([(AssetKind(realm.roll(3) as u32), 1 + realm.roll(9) as u64)]),
                    items: BTreeMap::new(),
                },
                reason,
            },
            1 => Order::Mint {
                slot,
                goods: Goods {
                    units: BTreeMap::new(),
                    items: BTreeMap::from([(AssetKind(2 + realm.roll(3) as u32), realm.roll(3) as u32)]),
                },
                reason,
            },
            2 if realm.roll(2) == 0 => Order::Burn { slot, assets, reason },
            2 | 3 => Order::Move {
                from: slot,
                to: Slot(realm.roll(2) as u16),
                assets,
            },
            4 | 5 => Order::Give {
                slot,
                to: other,
                assets,
                expires,
            },
            6 => Order::Post { of },
            7 => Order::Void { of },
            8 => Order::Propose {
                with: DatabaseId(if other.0 == holder {
                    1 + holder % HOLDERS
                } else {
                    other.0
                }),
                expires,
            },
            9 | 10 => Order::Offer { trade, slot, assets },
            11 => {
                let on_table = self.on_table(realm, entity, owner, trade, slot);
                let assets = self.some_of(realm, on_table);
                Order::Withdraw { trade, slot, assets }
            }
            12 if realm.roll(4) > 0 => {
                let seen = self.view(realm, entity, owner).and_then(|view| view.trades.get(&trade));
                let version = seen.map_or(OfferVersion(0), |trade| trade.version);
                Order::Accept { trade, version }
            }
            12 => Order::Accept {
                trade,
                version: OfferVersion(realm.roll(4) as u64),
            },
            _ => Order::Cancel { trade },
        }
    }

    /// Usually something that it is party to, sometimes anything that was opened recently.
    fn pick_open(&self, realm: &mut Realm, entity: EntityId, owner: OwnerId) -> TransferId {
        let view = self.view(realm, entity, owner);
        let own = view.into_iter().flat_map(|view| {
            let trades = view.trades.keys().map(|trade| trade.0);
            trades.chain(view.gifts.keys().copied())
        });
        let own: Vec<TransferId> = own.collect();
        let newest = self.known.len().saturating_sub(6);
        match realm.pick(&own).filter(|_| realm.roll(5) > 0) {
            Some(own) => own,
            None => self.known[newest..][realm.roll(self.known.len() - newest)],
        }
    }

    fn view<'a>(
        &self,
        realm: &'a Realm,
        entity: EntityId,
        owner: OwnerId,
    ) -> Option<&'a annals_event::ledger::LedgerView> {
        let image = realm.owners[&owner].scribe.state.entities.get(&entity)?;
        image.base().map(|base| &base.ledger)
    }

    fn held(&self, realm: &Realm, entity: EntityId, owner: OwnerId, slot: Slot) -> Assets {
        let holdings = self.view(realm, entity, owner).and_then(|view| view.holdings.as_ref());
        holdings
            .and_then(|held| held.slots.get(&slot))
            .cloned()
            .unwrap_or_default()
    }

    fn on_table(&self, realm: &Realm, entity: EntityId, owner: OwnerId, trade: TradeId, slot: Slot) -> Assets {
        let trade = self.view(realm, entity, owner).and_then(|view| view.trades.get(&trade));
        let mut sides = trade.into_iter().flat_map(|trade| [&trade.proposer, &trade.partner]);
        sides
            .find_map(|side| side.table.get(&slot))
            .cloned()
            .unwrap_or_default()
    }

    /// A part of the holdings; sometimes more than there is.
    fn some_of(&self, realm: &mut Realm, held: Assets) -> Assets {
        let kinds: Vec<(AssetKind, u64)> = held.units.into_iter().collect();
        let items: Vec<(Serial, AssetKind)> = held.items.into_iter().collect();
        let mut some = Assets::default();
        if let Some((kind, amount)) = realm.pick(&kinds) {
            some.units.insert(kind, 1 + realm.roll(amount as usize + 1) as u64);
        }
        if let Some((serial, kind)) = realm.pick(&items).filter(|_| realm.roll(3) > 0) {
            some.items.insert(serial, kind);
        }
        if some.is_empty() && realm.roll(2) == 0 {
            some.items
                .insert(Serial(1 + realm.roll(5) as u64), AssetKind(2 + realm.roll(3) as u32));
        }
        some
    }

    /// The ledger's owner takes the notices in the outbox, and calls the parties.
    fn notify(&mut self, realm: &mut Realm, most: usize) {
        let taken = realm.scribe(self.ledger).state.ledger.notice;
        let notices = wait(read_notices(&realm.store, taken, most)).expect("the store answers");
        for (notice, what) in notices {
            // Those at or below the last one taken are about to leave the outbox.
            let scribe = realm.scribe(self.ledger);
            scribe.record_own(Body::Entered {
                notice,
                entry: what.entry,
            });
            for delivery in what.deliveries {
                let (to, update) = (delivery.to, delivery.update);
                self.under_way.push((delivery.home, Call::Ledger { to, update }));
            }
        }
        let lose = realm.roll(9) == 0;
        realm.write(self.ledger, lose);
    }

    /// Home owners take the updates for their base parts, in order; updates for ended entities are ignored.
    fn receive(&mut self, realm: &mut Realm) {
        for (home, call) in std::mem::take(&mut self.under_way) {
            let from = Address::Owner(self.ledger);
            let scribe = realm.scribe(home);
            scribe.consume(from, Address::Owner(home));
            let Call::Ledger { to, update } = call else {
                unreachable!("it sends updates")
            };
            if scribe.state.entities.contains_key(&to) {
                scribe.record(to, false, Body::Booked(update));
            }
        }
    }

    fn step(&mut self, realm: &mut Realm) {
        match realm.roll(28) {
            20..=23 => {
                // An answer passes through all steps.
                let owner = self.bases[realm.roll(2)];
                realm.write(owner, false);
                realm.fold(usize::MAX);
                self.notify(realm, usize::MAX);
                self.receive(realm);
            }
            0..=9 | 24..=27 => {
                let holder = 1 + realm.roll(HOLDERS as usize) as u64;
                self.order(realm, holder);
            }
            10..=12 => {
                let owner = self.bases[realm.roll(2)];
                let lose = realm.roll(9) == 0;
                realm.write(owner, lose);
            }
            13..=14 => {
                let count = realm.roll(9);
                realm.fold(count);
            }
            15 => {
                let most = 1 + realm.roll(5);
                self.notify(realm, most);
            }
            16..=17 => self.receive(realm),
            18 => {
                let holder = 1 + realm.roll(HOLDERS as usize) as u64;
                self.relive(realm, holder);
            }
            _ => self.disturb(realm),
        }
    }

    fn disturb(&mut self, realm: &mut Realm) {
        match realm.roll(4) {
            0 => {
                let odds = [0, 60, 300][realm.roll(3)];
                realm.fail_one_in(odds);
            }
            1 => drop(realm.begin_db()),
            2 => {
                let owner = self.bases[realm.roll(2)];
                realm.take_over(owner);
            }
            _ => {
                let owner = [self.bases[0], self.bases[1], self.ledger][realm.roll(3)];
                realm.record_open(owner);
            }
        }
    }

    /// Folds, notifies and delivers everything.
    fn settle(&mut self, realm: &mut Realm) {
        for _ in 0..100 {
            realm.settle();
            self.notify(realm, usize::MAX);
            realm.settle();
            self.receive(realm);
            realm.settle();
            // Each round writes a batch of every owner, so that time passes and more may have expired.
            if count(realm, &layout::notices_after(NoticeNumber(0))) == 0 {
                return;
            }
        }
        panic!("seed {}: the outbox never becomes empty", realm.seed);
    }
}

/// All entries.
pub(crate) fn entries(realm: &Realm) -> Vec<Entry> {
    entries_of(&realm.store)
}

pub(crate) fn entries_of(store: &Store) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let after = entries.last().map_or(EntryNumber(0), |entry| entry.number);
        let read = wait(read_entries(store, after, 100)).expect("the store answers");
        if read.is_empty() {
            return entries;
        }
        entries.extend(read);
    }
}

/// The ledger's rows, byte for byte.
pub(crate) fn rows(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let transaction = store.begin();
    let page = wait(transaction.get_range(&layout::everything(), 1_000_000, ScanOrder::Forward));
    let rows = page.expect("the store answers").rows;
    rows.into_iter()
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

fn count(realm: &Realm, range: &KeyRange) -> usize {
    let transaction = realm.store.begin();
    let page = wait(transaction.get_range(range, 1_000_000, ScanOrder::Forward));
    page.expect("the store answers").rows.len()
}

/// Compares the entries and all holdings with the oracle's. Returns how often each outcome occurred.
pub(crate) fn compare(realm: &Realm, play: &Play) -> BTreeMap<String, usize> {
    let seed = realm.seed;
    let mut oracle = Oracle::default();
    let entries = entries(realm);
    if !realm.lanes.is_empty() {
        let expired = entries.iter().filter(|entry| entry.order.is_none());
        oracle.expiring = Some(expired.map(|entry| (entry.at.owner, entry.at.batch)).collect());
    }
    for (owner, batch) in &realm.check().leaves {
        let kind = realm.owners[owner].scribe.state.kind;
        oracle.take(*owner, kind, batch);
    }
    let came_again = ("an action came again".to_owned(), oracle.repeated);
    let came_back = ("an item came back".to_owned(), oracle.restored);
    let mut outcomes = BTreeMap::from([came_again, came_back]);
    for (entry, said) in entries.iter().zip(&oracle.says) {
        let actual = (entry.of, entry.outcome);
        assert_eq!(actual, (said.of, said.outcome), "seed {seed}: {entry:?}");
        *outcomes.entry(format!("{:?}", entry.outcome)).or_default() += 1;
    }
    assert_eq!(entries.len(), oracle.says.len(), "seed {seed}");
    assert_eq!(oracle.has_open(), count(realm, &layout::open()) > 0, "seed {seed}");
    let sums = sums_of(&entries, seed);
    assert_eq!(sums.units, oracle.wealth.units, "seed {seed}: units");
    assert_eq!(sums.items, oracle.wealth.items, "seed {seed}: items");
    for (holder, (entity, owner)) in &play.lives {
        let view = play.view(realm, *entity, *owner).expect("it lives");
        let held = view
            .holdings
            .as_ref()
            .unwrap_or_else(|| panic!("seed {seed}: {holder} has no statement"));
        assert!(
            view.orders.is_empty(),
            "seed {seed}: {holder} waits for {:?}",
            view.orders
        );
        let mut expected: BTreeMap<Slot, Assets> = BTreeMap::new();
        let own = |place: &AssetSlot| place.holder == Holder::Stored(DatabaseId(*holder));
        for ((place, kind), amount) in oracle.wealth.units.iter().filter(|((place, _), _)| own(place)) {
            let units = &mut expected.entry(place.slot).or_default().units;
            units.insert(*kind, u64::try_from(*amount).expect("nobody owes"));
        }
        for (serial, (kind, place)) in oracle.wealth.items.iter().filter(|(_, (_, place))| own(place)) {
            expected.entry(place.slot).or_default().items.insert(*serial, *kind);
        }
        assert_eq!(held.slots, expected, "seed {seed}: what {holder} knows of itself");
    }
    assert_eq!(
        count(realm, &layout::notices_after(NoticeNumber(0))),
        0,
        "seed {seed}: the outbox"
    );
    outcomes
}

/// Sums of the entries. Checks that each is balanced, and that no account but the world's is ever negative.
fn sums_of(entries: &[Entry], seed: u64) -> crate::ledger_oracle::Wealth {
    let mut wealth = crate::ledger_oracle::Wealth::default();
    for entry in entries {
        let mut per_kind: BTreeMap<AssetKind, i128> = BTreeMap::new();
        for posting in &entry.postings {
            let account = (posting.account.place, posting.account.kind);
            let balance = wealth.units.entry(account).or_default();
            *balance += i128::from(posting.amount);
            let may_owe = account.0.holder == Holder::World;
            assert!(may_owe || *balance >= 0, "seed {seed}: {account:?} in {entry:?}");
            *per_kind.entry(account.1).or_default() += i128::from(posting.amount);
        }
        assert!(per_kind.values().all(|sum| *sum == 0), "seed {seed}: {entry:?}");
        for passage in &entry.passages {
            let before = wealth.items.insert(passage.serial, (passage.kind, passage.to));
            match before {
                Some(before) => assert_eq!(before, (passage.kind, passage.from), "seed {seed}: {entry:?}"),
                None => assert_eq!(
                    passage.from.holder,
                    Holder::World,
                    "seed {seed}: it was made: {entry:?}"
                ),
            }
        }
    }
    wealth.units.retain(|_, amount| *amount != 0);
    wealth
}

fn played(seed: u64) -> (Realm, Play) {
    played_on(Realm::new(seed))
}

pub(crate) fn played_on(mut realm: Realm) -> (Realm, Play) {
    let mut play = Play::begin(&mut realm);
    for _ in 0..STEPS {
        play.step(&mut realm);
    }
    play.settle(&mut realm);
    (realm, play)
}

#[test]
fn the_ledger_matches_the_reference_model() {
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..SEEDS {
        let (realm, play) = played(seed);
        for (outcome, times) in compare(&realm, &play) {
            *outcomes.entry(outcome).or_default() += times;
        }
    }
    assert_frequent(&outcomes, &EXPECTED_OUTCOMES);
    assert_frequent(&outcomes, &["an action came again", "an item came back"]);
}

/// Runs on the given store, and checks the result against the oracle, the audit, and the store's limits.
fn play_out(store: Store, seed: u64) -> Largest {
    let (realm, play) = played_on(Realm::on(store, seed));
    let outcomes = compare(&realm, &play);
    assert!(outcomes.len() > 5, "seed {seed}: {outcomes:?}");
    let report = wait(audit(&realm.store)).expect("the store answers");
    assert_eq!(report.findings, [], "seed {seed}");
    let largest = realm.reached.largest();
    println!("seed {seed}: {outcomes:?}; {largest:?}");
    largest
}

#[test]
fn the_ledger_matches_on_the_embedded_store() {
    for seed in 0..SLOW_SEEDS {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = EmbeddedStore::open(directory.path()).expect("a new store").store();
        let largest = play_out(store, seed);
        let limit = TRANSACTION_BYTES as u64;
        assert!((1..limit / 10).contains(&largest.bytes), "seed {seed}: {largest:?}");
    }
}

#[test]
fn the_ledger_matches_on_foundationdb() {
    let Some(mut cluster) = wait(Cluster::named("ledger")) else {
        return;
    };
    for seed in 0..SLOW_SEEDS {
        play_out(wait(cluster.empty()), seed);
    }
}

#[test]
fn folding_the_archive_again_gives_the_same_rows() {
    for seed in SEEDS..SEEDS + 10 {
        let (realm, _) = played(seed);
        let mut again = Realm::new(seed);
        again.refold(&realm);
        let (one, two) = (rows(&realm.store), rows(&again.store));
        assert!(one.len() > 20, "seed {seed}: something happened");
        assert!(one == two, "seed {seed}: {} rows, {} again", one.len(), two.len());
    }
}

/// A base with one stored entity that gives orders.
fn alone(realm: &mut Realm) -> (OwnerId, EntityId) {
    let owner = realm.found(Part::Base);
    acts::begin_base(realm, owner, EntityId(9), "alone", (1, 1));
    (owner, EntityId(9))
}

#[test]
fn a_repeated_order_repeats_the_notice_and_not_the_entry() {
    use annals_db::ledger::{Ask, Books, Halt};
    let ask = Ask {
        at: annals_ids::LogPosition::default(),
        wall: WallTime(1),
        of: TransferId {
            asker: EntityId(9),
            number: TransferNumber(1),
        },
        holder: DatabaseId(1),
        order: Order::Post {
            of: TransferId::default(),
        },
    };
    // Nothing is loaded: the books request rows, and change nothing.
    let mut books = Books::default();
    assert!(matches!(books.execute(&ask), Err(Halt::Needs(_))));
    let mut realm = Realm::new(1);
    let (owner, entity) = alone(&mut realm);
    let mint = |number| Body::Ordered {
        number: TransferNumber(number),
        order: Order::Mint {
            slot: Slot(0),
            goods: Goods {
                units: BTreeMap::from([(AssetKind(1), 5)]),
                items: BTreeMap::new(),
            },
            reason: String::new(),
        },
    };
    realm.scribe(owner).record(entity, false, mint(1));
    realm.settle();
    // Another db process reads the stream from its beginning: everything is folded already.
    drop(realm.begin_db());
    realm.fold(usize::MAX);
    let entries = entries(&realm);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].outcome, Outcome::Posted);
}

#[test]
fn an_audit_is_clean_and_every_unit_traces_to_its_creation() {
    let (mut lots_seen, mut items_seen) = (0, 0);
    for seed in 100..110 {
        let (realm, _) = played(seed);
        let report = wait(audit(&realm.store)).expect("the store answers");
        assert_eq!(report.findings, [], "seed {seed}");
        let entries = entries(&realm);
        assert_eq!(report.entries.0, entries.len() as u64, "seed {seed}");
        let mut lots = Lots::default();
        entries.iter().for_each(|entry| lots.take(entry));
        let sums = sums_of(&entries, seed);
        for ((place, kind), amount) in sums
            .units
            .iter()
            .filter(|((place, _), _)| place.holder != Holder::World)
        {
            let account = annals_event::ledger::Account {
                place: *place,
                kind: *kind,
            };
            let all: i128 = lots.of(account).map(|lot| i128::from(lot.amount)).sum();
            assert_eq!(all, *amount, "seed {seed}: the lots of {account:?}");
            lots_seen += lots.of(account).count();
            if let Holder::Stored(holder) = place.holder {
                let traced = wait(trace_account(&realm.store, holder, place.slot, *kind)).expect("it answers");
                let traced: i128 = traced.iter().map(|(amount, _)| i128::from(*amount)).sum();
                assert_eq!(traced, *amount, "seed {seed}: {account:?} as notified");
            }
        }
        for serial in sums.items.keys() {
            let moves = entries
                .iter()
                .flat_map(|entry| entry.passages.iter().map(move |step| (entry, step)));
            let moves: Vec<_> = moves.filter(|(_, step)| step.serial == *serial).collect();
            let steps: Vec<_> = moves.iter().map(|(_, step)| step).collect();
            assert_eq!(steps[0].from.holder, Holder::World, "seed {seed}: item {serial}");
            assert!(matches!(
                moves[0].0.order,
                Some(Order::Mint { .. } | Order::Grant { .. })
            ));
            assert!(
                steps.windows(2).all(|pair| pair[0].to == pair[1].from),
                "seed {seed}: item {serial}"
            );
            assert_eq!(
                steps.last().map(|step| step.to),
                Some(sums.items[serial].1),
                "seed {seed}"
            );
            items_seen += 1;
        }
    }
    assert!(
        lots_seen > 20 && items_seen > 20,
        "{lots_seen} lots and {items_seen} items were traced"
    );
}

#[test]
fn the_entries_of_a_batch_are_one_row_and_page_at_any_size() {
    let (realm, _) = played(7);
    let all = entries(&realm);
    let batches: BTreeSet<_> = all.iter().map(|entry| entry.at).collect();
    assert!(batches.len() < all.len(), "some batches hold several orders");
    let range = layout::entries_after(EntryNumber(0));
    assert_eq!(count(&realm, &range), batches.len());
    for after in 0..all.len() {
        for limit in [1, 2, 7, usize::MAX] {
            let read = wait(read_entries(&realm.store, EntryNumber(after as u64), limit));
            let expected: Vec<_> = all[after..].iter().take(limit).cloned().collect();
            assert_eq!(read.expect("the store answers"), expected, "{limit} after {after}");
        }
    }
}

#[test]
fn an_audit_finds_an_orphaned_deadline() {
    let mut tried = 0;
    for seed in SEEDS..SEEDS + 10 {
        let (realm, _) = played(seed);
        let (key, value) = rows(&realm.store)
            .into_iter()
            .find(|(key, _)| *key == layout::head_key())
            .expect("something was done");
        let head = layout::Head::decode(Some(&value)).expect("it is as it was written");
        if count(&realm, &layout::deadlines()) == 0 {
            continue;
        }
        let late = head.due.map(|due| WallTime(due.0 + annals_event::ledger::LONGEST_OPEN));
        for due in [None, late] {
            let transaction = realm.store.begin();
            transaction
                .set(&key, &layout::Head { due, ..head }.encode())
                .expect("a small row");
            wait(transaction.commit()).expect("it commits");
            let report = wait(audit(&realm.store)).expect("the store answers");
            assert_eq!(report.found, 1, "seed {seed}: {:?}", report.findings);
            tried += 1;
        }
    }
    assert!(tried > 0, "something was open");
}

#[test]
fn an_audit_finds_each_edited_row() {
    let (realm, _) = played(7);
    let everything = rows(&realm.store);
    let mut looked = Audit::default();
    assert_eq!(wait(looked.look(&realm.store)).expect("the store answers").findings, []);
    let is_entry = |key: &[u8]| key[0] == layout::entries_after(EntryNumber(0)).begin[0];
    let mut found = 0;
    for (key, value) in &everything {
        // Rows that only record are not part of the audit: executed orders, activations, the newest numbers.
        let is_audited = matches!((key[0], key[1]), (0x18..=0x1e, _));
        for change in [None, Some(flipped(value))] {
            if !is_audited || (change.as_ref() == Some(value)) {
                continue;
            }
            let changed = |value: Option<&Vec<u8>>| {
                let transaction = realm.store.begin();
                let done = match value {
                    Some(value) => transaction.set(key, value),
                    None => transaction.clear(key),
                };
                done.and_then(|()| wait(transaction.commit()).map(drop))
                    .expect("a small change");
            };
            changed(change.as_ref());
            let report = wait(audit(&realm.store)).expect("the store answers");
            assert!(report.found > 0, "{key:02x?} was {value:02x?}, became {change:02x?}");
            if !is_entry(key) {
                let again = wait(looked.clone().look(&realm.store)).expect("the store answers");
                assert_eq!(again.findings, report.findings, "{key:02x?}");
            }
            found += 1;
            changed(Some(value));
        }
    }
    assert!(found > 50, "{found} changes were found");
    assert_eq!(wait(audit(&realm.store)).expect("the store answers").findings, []);
}

#[test]
fn incremental_audits_equal_one_full_audit() {
    let mut grown = 0;
    for seed in 0..5 {
        let mut realm = Realm::new(seed);
        let mut looking = Audit::default();
        let mut play = Play::begin(&mut realm);
        for _ in 0..6 {
            (0..STEPS / 6).for_each(|_| play.step(&mut realm));
            let before = looking.report().entries;
            let look = wait(looking.look(&realm.store)).expect("the store answers");
            assert_eq!(
                look,
                wait(audit(&realm.store)).expect("the store answers"),
                "seed {seed}"
            );
            grown += u64::from(look.entries > before);
        }
    }
    assert!(grown > 20, "{grown}");
}

/// A row's value with its last byte changed.
fn flipped(value: &[u8]) -> Vec<u8> {
    let mut flipped = value.to_vec();
    if let Some(last) = flipped.last_mut() {
        *last ^= 1;
    }
    flipped
}
