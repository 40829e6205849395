//! Cuts of realms in which one shard is always behind (rule T6): what was logged before a moment is in the last cut once it
//! is archived, although the late shard's changes of the ledger come after later ones of the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use annals_db::{
    Extent, Row,
    ledger::{Outbox, audit},
    read_unlogged,
};
use annals_event::{
    Body, Call,
    ledger::{LedgerUpdate, Order},
};
use annals_ids::{Address, BatchNumber, EntityId, NoticeNumber, OwnerId, OwnerKind, Part, Slot, WallTime};
use annals_store::layout::shards::{self, LedgerChange};

use crate::{
    acts,
    ledger::{entries, entries_of},
    realm::Realm,
    shards_cut::{Place, converse, largest},
    shards_restored::{archives, cuts, prefixes, restored},
    together::Lane,
    traders::gold,
    wait,
};

/// Number of realms.
const SEEDS: u64 = 40;

/// Steps before the moment.
const STEPS: u64 = 120;

/// Maximum steps until everything from before the moment is archived.
const MORE_STEPS: u64 = 400;

/// Messages by which the late shard is behind.
const BEHIND: usize = 30;

/// Bases that call each other, and give orders, on three shards. The last shard is behind.
struct Behind {
    realm: Realm,
    bases: Vec<OwnerId>,
    ledger: OwnerId,
    outbox: Outbox,
    /// An entity of each base that gives orders.
    traders: BTreeMap<OwnerId, EntityId>,
    /// Calls of the ledger's owner to each base, in order.
    inboxes: BTreeMap<OwnerId, VecDeque<(EntityId, LedgerUpdate)>>,
    step: u64,
}

impl Behind {
    fn begin(seed: u64) -> Self {
        let mut realm = Realm::of_shards(seed, 3);
        let bases: Vec<OwnerId> = (0..6).map(|_| realm.found(Part::Base)).collect();
        let ledger = realm.found(OwnerKind::Ledger);
        let mut traders = BTreeMap::new();
        for (base, number) in bases.iter().zip(1..) {
            let entity = EntityId(100 + number);
            acts::begin_base(&mut realm, *base, entity, "trader", (number, number));
            realm.write(*base, false);
            traders.insert(*base, entity);
        }
        realm.fold(usize::MAX);
        Self {
            realm,
            bases,
            ledger,
            outbox: Outbox::default(),
            traders,
            inboxes: BTreeMap::new(),
            step: 0,
        }
    }

    fn step(&mut self) {
        self.step += 1;
        let base = self.realm.pick(&self.bases).expect("there are bases");
        match self.realm.roll(4) {
            0 => self.order(base),
            1 => self.hear(base),
            _ => converse(&mut self.realm, &self.bases, self.step),
        }
        self.tell();
        self.fold();
    }

    fn write(&mut self, owner: OwnerId) {
        let now = WallTime(1_000 + 10 * self.step);
        self.realm.scribe(owner).set_clock(now);
        self.realm.write(owner, false);
    }

    fn order(&mut self, base: OwnerId) {
        let trader = self.traders[&base];
        let image = &self.realm.scribe(base).state.entities[&trader];
        let number = image.base().expect("a base part").ledger.last.next();
        let (slot, goods, reason) = (Slot(0), gold(1), "test".to_owned());
        let order = Order::Mint { slot, goods, reason };
        self.realm
            .scribe(base)
            .record(trader, false, Body::Ordered { number, order });
        self.write(base);
    }

    /// A base consumes the next call of the ledger's owner.
    fn hear(&mut self, base: OwnerId) {
        let Some((to, update)) = self.inboxes.entry(base).or_default().pop_front() else {
            return;
        };
        let scribe = self.realm.scribe(base);
        scribe.consume(Address::Owner(self.ledger), Address::Owner(base));
        scribe.record(to, false, Body::Booked(update));
        self.write(base);
    }

    /// The ledger's owner takes what is in the outbox, and calls the bases.
    fn tell(&mut self) {
        let notices = wait(self.outbox.read(&self.realm.store, 1_000)).expect("the store answers");
        if notices.is_empty() {
            return;
        }
        for (notice, what) in notices {
            self.outbox.give(notice);
            let entry = what.entry;
            let scribe = self.realm.scribe(self.ledger);
            scribe.record_own(Body::Entered { notice, entry });
            for delivery in what.deliveries {
                let (to, update, home) = (delivery.to, delivery.update, delivery.home);
                let number = scribe.next_call(Address::Owner(self.ledger), Address::Owner(home));
                let call = Call::Ledger {
                    to,
                    update: update.clone(),
                };
                scribe.record_own(Body::Called {
                    to: Address::Owner(home),
                    home,
                    number,
                    call,
                });
                self.inboxes.entry(home).or_default().push_back((to, update));
            }
        }
        self.write(self.ledger);
    }

    /// All shards are folded to the end, except for the last one.
    fn fold(&mut self) {
        let last = self.realm.lanes.len();
        for shard in 0..last {
            self.realm.fold_one(shard, usize::MAX);
        }
        let lane = self.late();
        let due = (lane.stream.len() - lane.offered).saturating_sub(BEHIND);
        self.realm.fold_one(last, due);
    }

    fn late(&self) -> &Lane {
        self.realm.lanes.last().expect("a shard that is behind")
    }

    /// The last batch of each log.
    fn ends(&self) -> BTreeMap<OwnerId, BatchNumber> {
        let ends = self.realm.owners.iter();
        ends.map(|(owner, held)| (*owner, BatchNumber(held.chain.len() as u64)))
            .collect()
    }
}

fn has_all(cut: &Extent, ends: &BTreeMap<OwnerId, BatchNumber>) -> bool {
    ends.iter().all(|(owner, end)| cut.logs.get(owner) >= Some(end))
}

/// The changes of the ledger, each with its last notice, in their order.
fn changes_of(rows: &[Row]) -> Vec<(NoticeNumber, Place)> {
    let all = shards::changes();
    let changes = rows.iter().filter(|(key, _)| all.contains(key));
    changes
        .map(|(key, value)| {
            let change = LedgerChange::decode(value).expect("a change");
            let last = shards::change_of(key).expect("its last notice");
            (last, (change.shard, change.leaf.0 as usize))
        })
        .collect()
}

/// A realm that was played until what was logged before a moment is archived, what that was, and how many entries were
/// known then.
fn played(seed: u64) -> (Realm, BTreeMap<OwnerId, BatchNumber>, usize) {
    let mut behind = Behind::begin(seed);
    for _ in 0..STEPS {
        behind.step();
    }
    let (ends, known) = (behind.ends(), entries(&behind.realm).len());
    let goal = behind.late().stream.len();
    for _ in 0..MORE_STEPS {
        if behind.late().offered >= goal {
            return (behind.realm, ends, known);
        }
        behind.step();
    }
    panic!("seed {seed}: the late shard does not go on")
}

#[test]
fn what_was_logged_before_a_moment_is_in_the_last_cut_once_it_is_archived() {
    let (mut no_prefixes, mut made_again) = (0, 0);
    for seed in 0..SEEDS {
        let (realm, ends, known) = played(seed);
        let (rows, archives) = (wait(read_unlogged(&realm.store)).expect("readable"), archives(&realm));
        let cut = cuts(&rows, &archives, None).pop().expect("there is a cut");
        assert!(has_all(&cut, &ends), "seed {seed}: {ends:?} in {:?}", cut.logs);
        assert_eq!(cut.leaves, largest(&archives, &changes_of(&rows), None), "seed {seed}");
        let (prefixes, _) = prefixes(&rows, &archives, None);
        let last = prefixes.iter().rfind(|(_, is_cut)| *is_cut);
        no_prefixes += u32::from(last.is_none_or(|(last, _)| !has_all(last, &ends)));

        let store = restored(&realm, &rows, &archives, &cut);
        let report = wait(audit(&store)).expect("the store answers");
        assert_eq!(report.findings, [], "seed {seed}");
        let (former, again) = (entries(&realm), entries_of(&store));
        assert_eq!(
            again[..known],
            former[..known],
            "seed {seed}: what was known is as it was"
        );
        made_again += u32::from(again != former[..again.len()]);
        let recorded = changes_of(&wait(read_unlogged(&store)).expect("readable"));
        let places = |changes: Vec<(NoticeNumber, Place)>| -> BTreeSet<Place> {
            let places = changes.into_iter().map(|(_, place)| place);
            places.filter(|(shard, leaf)| (*leaf as u64) < cut.of(*shard)).collect()
        };
        assert_eq!(
            places(recorded),
            places(changes_of(&rows)),
            "seed {seed}: the changes are recorded again"
        );
    }
    assert!(
        no_prefixes > 10 && made_again > 10,
        "{no_prefixes} cuts are no prefix of the merge, {made_again} have entries with other numbers"
    );
}

#[test]
fn the_cut_to_a_moment_has_what_was_closed_by_then_and_its_causes() {
    let mut beyond = 0;
    for seed in 0..SEEDS {
        let (mut realm, ..) = played(seed);
        let (rows, archives) = (wait(read_unlogged(&realm.store)).expect("readable"), archives(&realm));
        let changes = changes_of(&rows);
        for _ in 0..4 {
            let step = realm.roll(usize::try_from(STEPS).expect("few steps")) as u64;
            let until = WallTime(1_000 + 10 * step);
            let largest = largest(&archives, &changes, Some(until));
            let found = cuts(&rows, &archives, Some(until)).pop();
            assert_eq!(
                found.as_ref().map(|cut| &cut.leaves),
                Some(&largest),
                "seed {seed}: {until:?}"
            );
            let cut = found.expect("there is a cut");
            let store = restored(&realm, &rows, &archives, &cut);
            let report = wait(audit(&store)).expect("the store answers");
            assert_eq!(report.findings, [], "seed {seed}");
            let again = entries_of(&store);
            beyond += u32::from(again != entries(&realm)[..again.len()]);
        }
    }
    assert!(beyond > 10, "{beyond} cuts have entries with other numbers");
}
