//! Cuts of realms in which one shard is always behind (rule T6): what was logged before a moment is in the last cut once it
//! is archived, although the late shard's changes of the ledger come after later ones of the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use annals_db::{
    Extent, Row,
    ledger::{Outbox, audit},
    read_cursor, read_unlogged,
};
use annals_event::{
    Body, Call,
    ledger::{LedgerUpdate, Order},
};
use annals_ids::{
    Address, BatchNumber, EntityId, LeafIndex, NoticeNumber, OwnerId, OwnerKind, Part, Shard, Slot, WallTime,
};
use annals_store::{
    Store,
    layout::shards::{self, LedgerChange},
};

use crate::{
    acts,
    cut_oracle::{Place, largest},
    ledger::{entries, entries_of},
    realm::Realm,
    shards_cut::converse,
    shards_restored::{Archives, Merged, archives, cuts, empty, prefixes, restored},
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

/// A stored entity that gives orders.
struct Trader {
    database: u64,
    entity: EntityId,
    base: OwnerId,
    /// The last batch of its activation, if that has ended.
    ended: Option<BatchNumber>,
}

/// Bases that call each other, and give orders, on three shards. The last shard is behind.
struct Behind {
    realm: Realm,
    bases: Vec<OwnerId>,
    ledger: OwnerId,
    outbox: Outbox,
    traders: Vec<Trader>,
    /// Calls of the ledger's owner to each base, in order.
    inboxes: BTreeMap<OwnerId, VecDeque<(EntityId, LedgerUpdate)>>,
    step: u64,
}

impl Behind {
    fn begin(seed: u64) -> Self {
        let mut realm = Realm::of_shards(seed, 3);
        let mut bases: Vec<OwnerId> = (0..6).map(|_| realm.found(Part::Base)).collect();
        let is_late = |realm: &Realm, base: &OwnerId| usize::from(realm.owners[base].shard.0) == realm.lanes.len();
        while bases.iter().filter(|base| is_late(&realm, base)).count() < 2 {
            bases.push(realm.found(Part::Base));
        }
        let ledger = realm.found(OwnerKind::Ledger);
        let mut traders = Vec::new();
        for (base, number) in bases.iter().zip(1..) {
            let entity = EntityId(100 + number);
            acts::begin_base(&mut realm, *base, entity, "trader", (number, number));
            realm.write(*base, false);
            traders.push(Trader {
                database: number,
                entity,
                base: *base,
                ended: None,
            });
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
        let trader = self.realm.roll(self.traders.len());
        match self.realm.roll(8) {
            0 | 1 => self.order(trader),
            2 => self.move_on(trader, base),
            3 | 4 => self.receive(base),
            _ => converse(&mut self.realm, &self.bases, self.step),
        }
        self.notify();
        self.fold();
    }

    fn write(&mut self, owner: OwnerId) {
        let now = WallTime(1_000 + 10 * self.step);
        self.realm.scribe(owner).set_clock(now);
        self.realm.write(owner, false);
    }

    fn order(&mut self, trader: usize) {
        let Trader { entity, base, .. } = self.traders[trader];
        let Some(image) = self.realm.scribe(base).state.entities.get(&entity) else {
            return;
        };
        let number = image.base().expect("a base part").ledger.last.next();
        let (slot, goods, reason) = (Slot(0), gold(1), "test".to_owned());
        let order = Order::Mint { slot, goods, reason };
        self.realm
            .scribe(base)
            .record(entity, false, Body::Ordered { number, order });
        self.write(base);
    }

    /// An activation ends; once that is archived, the entity is activated on another base.
    fn move_on(&mut self, trader: usize, to: OwnerId) {
        let moving = &mut self.traders[trader];
        let from = moving.base;
        let Some(ended) = moving.ended else {
            acts::end(&mut self.realm, from, moving.entity);
            moving.ended = Some(BatchNumber(self.realm.owners[&from].chain.len() as u64 + 1));
            return self.write(from);
        };
        if wait(read_cursor(&self.realm.store, from))
            .expect("the store answers")
            .batch
            < ended
        {
            return;
        }
        let checkout = 1_000 + self.step;
        moving.entity = EntityId(checkout);
        (moving.base, moving.ended) = (to, None);
        let (entity, database) = (moving.entity, moving.database);
        acts::begin_base(&mut self.realm, to, entity, "trader", (database, checkout));
        self.write(to);
    }

    /// A base consumes the next call of the ledger's owner.
    fn receive(&mut self, base: OwnerId) {
        let Some((to, update)) = self.inboxes.entry(base).or_default().pop_front() else {
            return;
        };
        let scribe = self.realm.scribe(base);
        scribe.consume(Address::Owner(self.ledger), Address::Owner(base));
        if scribe.state.entities.contains_key(&to) {
            scribe.record(to, false, Body::Booked(update));
        }
        self.write(base);
    }

    /// The ledger's owner takes what is in the outbox, and calls the bases.
    fn notify(&mut self) {
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

/// Restores a realm to a cut, and checks that its ledger is balanced.
fn balanced(realm: &Realm, rows: &[Row], archives: &Archives, cut: &Extent) -> Store {
    let store = restored(realm, rows, archives, cut);
    let report = wait(audit(&store)).expect("the store answers");
    assert_eq!(report.findings, [], "seed {}", realm.seed);
    store
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

        let store = balanced(&realm, &rows, &archives, &cut);
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

/// A merge of all leaves.
struct Walked<'a> {
    merged: Merged<'a>,
    /// The leaves of each shard up to the last cut of the merge.
    before: BTreeMap<Shard, u64>,
    behind: Vec<(Shard, LeafIndex)>,
}

impl<'a> Walked<'a> {
    fn through(rows: &[Row], archives: &'a Archives) -> Self {
        let (mut merged, mut before) = (Merged::whole(rows, archives), empty(archives).leaves);
        let mut behind = Vec::new();
        while let Some((shard, leaf, _, is_cut)) = merged.pass() {
            behind.push((shard, leaf));
            if is_cut {
                before.extend(behind.drain(..).map(|(shard, leaf)| (shard, leaf.0 + 1)));
            }
        }
        Self { merged, before, behind }
    }

    /// The smallest cut with one of the leaves behind the last cut of the merge.
    fn cut_with(&self, place: usize) -> Option<BTreeMap<Shard, u64>> {
        let is_in = self.merged.merging.in_cut(Some(place));
        let mut cut = self.before.clone();
        let leaves = self.behind.iter().zip(&is_in).filter(|(_, is_in)| **is_in);
        cut.extend(leaves.map(|((shard, leaf), _)| (*shard, leaf.0 + 1)));
        is_in[place].then_some(cut)
    }
}

/// These leaves of each shard.
fn part_of(archives: &Archives, cut: &BTreeMap<Shard, u64>) -> Archives {
    let leaves = archives.iter();
    leaves
        .map(|(shard, leaves)| (*shard, leaves[..cut[shard] as usize].to_vec()))
        .collect()
}

#[test]
fn the_cut_to_a_batch_has_what_the_batch_depends_on_and_no_more() {
    let mut smaller = 0;
    for seed in 0..SEEDS {
        let (mut realm, ..) = played(seed);
        let (rows, archives) = (wait(read_unlogged(&realm.store)).expect("readable"), archives(&realm));
        let changes = changes_of(&rows);
        let all = largest(&archives, &changes, None);
        let walked = Walked::through(&rows, &archives);
        let count = walked.behind.len();
        for _ in 0..count.min(4) {
            let place = realm.roll(count);
            let (shard, leaf) = walked.behind[place];
            let found = walked.cut_with(place);
            if leaf.0 >= all[&shard] {
                assert_eq!(found, None, "seed {seed}: no cut has leaf {leaf} of shard {shard}");
                continue;
            }
            let cut = found.expect("there is a cut");
            let has_it = |cut: &BTreeMap<Shard, u64>| cut[&shard] > leaf.0;
            assert!(has_it(&cut), "seed {seed}");
            let alone = |cut: &BTreeMap<Shard, u64>| largest(&part_of(&archives, cut), &changes, None);
            assert_eq!(alone(&cut), cut, "seed {seed}: a cut");
            for shard in cut.keys().filter(|shard| cut[shard] > walked.before[shard]) {
                let mut less = cut.clone();
                *less.get_mut(shard).expect("a shard") -= 1;
                assert!(!has_it(&alone(&less)), "seed {seed}: a smaller cut has leaf {leaf}");
            }
            smaller += u32::from(cut != all);
        }
    }
    assert!(smaller > 30, "{smaller} cuts are smaller than the largest");
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
            let store = balanced(&realm, &rows, &archives, &cut);
            let again = entries_of(&store);
            beyond += u32::from(again != entries(&realm)[..again.len()]);
        }
    }
    assert!(beyond > 10, "{beyond} cuts have entries with other numbers");
}
