//! Realms of one to three shards, each folded by a db of its own: the ledger, which all share, and stored entities whose
//! parts are on different shards (rules T1 to T5).

use std::collections::BTreeMap;

use annals_db::{Round, ledger::audit, read_horizon, read_stored};
use annals_def::Value;
use annals_event::Body;
use annals_ids::{DatabaseId, EntityId, OwnerId, Part, WallTime};
use annals_store::{
    KeyRange, ScanOrder, Store,
    layout::{
        database::{self, Checkout},
        ledger as layout,
    },
};

use crate::{
    acts, game,
    generated::Play as Parts,
    ledger::{compare, entries, played_on, rows},
    ledger_oracle::{EXPECTED_OUTCOMES, assert_frequent},
    realm::Realm,
    wait,
};

/// Number of realms.
const SEEDS: u64 = 60;

/// Runs in a realm of several shards, whose dbs fold at the same time, and checks the result against the oracle and the
/// audit.
fn play_in_shards(seed: u64, shards: u16) -> BTreeMap<String, usize> {
    let (realm, play) = played_on(Realm::of_shards(seed, shards));
    let outcomes = compare(&realm, &play);
    let report = wait(audit(&realm.store)).expect("the store answers");
    assert_eq!(report.findings, [], "seed {seed}");
    outcomes
}

/// Folds what several shards have archived again, and compares the ledger's rows.
fn refold_shards(seed: u64, shards: u16) {
    let (realm, _) = played_on(Realm::of_shards(seed, shards));
    let mut again = Realm::of_shards(seed, shards);
    again.refold_shards(&realm);
    let (one, two) = (settled_rows(&realm.store), settled_rows(&again.store));
    assert!(one.len() > 20, "seed {seed}: something happened");
    let differs = one.iter().zip(&two).find(|(one, two)| one != two);
    assert_eq!(differs, None, "seed {seed}");
    assert_eq!(one.len(), two.len(), "seed {seed}");
    assert_eq!(entries(&realm), entries(&again), "seed {seed}");
}

/// The ledger's rows, except until when nothing needs to be looked up: that is not a function of the archive, since batches
/// that change nothing may know.
pub(crate) fn settled_rows(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_head = |key: &[u8]| key == layout::head_key();
    let settle = |(key, value): (Vec<u8>, Vec<u8>)| match layout::Head::decode(Some(&value)) {
        Ok(head) if is_head(&key) => (key, layout::Head { due: None, ..head }.encode()),
        _ => (key, value),
    };
    rows(store).into_iter().map(settle).collect()
}

#[test]
fn the_ledger_of_several_shards_matches_the_reference_model() {
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..SEEDS {
        let shards = 1 + u16::try_from(seed % 3).expect("few shards");
        for (outcome, times) in play_in_shards(seed, shards) {
            *outcomes.entry(outcome).or_default() += times;
        }
    }
    assert_frequent(&outcomes, &EXPECTED_OUTCOMES);
}

#[test]
fn folding_the_archives_again_in_the_order_of_the_ledger_gives_the_same_rows() {
    for seed in 0..SEEDS / 2 {
        refold_shards(seed, 2 + u16::try_from(seed % 2).expect("few shards"));
    }
}

/// Steps of a realm in which entities have parts on several shards.
const STEPS: usize = 900;

/// Stored entities of it.
const STORED: u64 = 5;

/// The present activation of a stored entity.
#[derive(Clone, Copy)]
struct Active {
    entity: EntityId,
    home: OwnerId,
}

/// Entities whose base parts and cell parts are on any shards, with dbs that are behind one another.
pub(crate) struct Play {
    pub(crate) realm: Realm,
    parts: Parts,
    bases: Vec<OwnerId>,
    cells: Vec<OwnerId>,
    active: BTreeMap<u64, Active>,
    /// The last value of a property of each stored entity's cell part.
    hp: BTreeMap<u64, i64>,
    rounds: BTreeMap<usize, (Round, usize)>,
    now: u64,
    next: u64,
    /// Activations that began from a row that cell parts of another shard had written.
    compared: usize,
    /// Bytes that retention deleted; `None` without retention.
    deleted: Option<u64>,
}

impl Play {
    fn new(seed: u64, shards: u16) -> Self {
        let mut realm = Realm::of_shards(seed, shards);
        let bases = (0..2).map(|_| realm.found(Part::Base)).collect();
        let cells = (0..3).map(|_| realm.found(Part::Cell)).collect();
        Self {
            realm,
            parts: Parts::default(),
            bases,
            cells,
            active: BTreeMap::new(),
            hp: BTreeMap::new(),
            rounds: BTreeMap::new(),
            now: 1_000,
            next: 1_000,
            compared: 0,
            deleted: None,
        }
    }

    /// The same, with retention or without.
    pub(crate) fn of(seed: u64, shards: u16, retains: bool) -> Self {
        Self {
            deleted: retains.then_some(0),
            ..Self::new(seed, shards)
        }
    }

    /// The realm gets more shards, with owners on them.
    pub(crate) fn grow(&mut self, count: u16) {
        self.realm.grow(count);
        for _ in 0..2 {
            self.bases.push(self.realm.found(Part::Base));
            self.cells.push(self.realm.found(Part::Cell));
        }
    }

    /// Writes a batch at the present time. One that the stream loses is followed by another, which shows the hole. In a
    /// realm of one shard nothing waits for a cell's log with a hole.
    fn write(&mut self, owner: OwnerId) {
        let lose = !self.realm.lanes.is_empty() && self.realm.roll(8) == 0;
        for lose in [lose, false] {
            self.now += 1;
            let now = WallTime(self.now);
            self.realm.scribe(owner).set_clock(now);
            self.realm.write(owner, lose);
        }
    }

    fn read<T>(&self, key: &[u8], decode: impl Fn(&[u8]) -> T) -> Option<T> {
        let value = wait(self.realm.store.begin().get(key)).expect("the store answers");
        value.map(|value| decode(&value))
    }

    /// Activates a stored entity as a requester does: only if it is not checked out, and from its row.
    fn activate(&mut self, stored: u64) {
        let database = DatabaseId(stored);
        let key = database::checkout_key(database);
        if self.read(&key, |_| ()).is_some() {
            return;
        }
        self.next += 1;
        let (entity, checkout) = (EntityId(self.next), self.next);
        let home = self.bases[self.realm.roll(self.bases.len())];
        let reading = self.realm.store.begin();
        let row = wait(read_stored(&reading, database)).expect("the store answers");
        if let Some(expected) = self.hp.get(&stored) {
            let found = row.as_ref().and_then(|row| row.properties.get("hp"));
            assert_eq!(
                found,
                Some(&Value::Int(*expected)),
                "seed {}: entity {stored}",
                self.realm.seed
            );
            self.compared += 1;
        }
        let life = Checkout {
            owner: home,
            number: checkout,
        };
        reading.set(&key, &life.encode()).expect("a small row");
        wait(reading.commit()).expect("nothing fails");
        acts::begin_base(
            &mut self.realm,
            home,
            entity,
            &format!("name {stored}"),
            (stored, checkout),
        );
        self.realm.scribe(home).record(entity, false, Body::Stored { database });
        self.write(home);
        self.active.insert(stored, Active { entity, home });
    }

    fn act(&mut self, stored: u64) {
        let Some(Active { entity, home }) = self.active.get(&stored).copied() else {
            return self.activate(stored);
        };
        let is_moving = self.parts.under_way.iter().any(|(moving, ..)| *moving == entity);
        match (self.parts.cells.get(&entity).copied(), self.realm.roll(8)) {
            (None, 0..=3) => {
                let at = self.cells[self.realm.roll(self.cells.len())];
                acts::begin_cell(&mut self.realm, at, entity, home);
                self.parts.cells.insert(entity, at);
                self.write(at);
                acts::placed(&mut self.realm, home, entity, Some(at));
                self.write(home);
            }
            (None, 4 | 5) => {
                acts::end(&mut self.realm, home, entity);
                self.write(home);
                self.active.remove(&stored);
            }
            (None, _) | (Some(_), 7) => {
                acts::store(&mut self.realm, home, entity, stored);
                self.write(home);
            }
            (Some(at), 0..=2) if !is_moving => {
                let hp = self.realm.roll(1_000) as i64;
                acts::set(&mut self.realm, at, entity, "hp", Value::Int(hp));
                if self.deleted.is_some() {
                    let baggage = Value::Bytes(vec![7; 2_000]);
                    acts::set(&mut self.realm, at, entity, "baggage", baggage);
                }
                self.write(at);
            }
            (Some(at), 3 | 4) if !is_moving => {
                self.parts.hand_over(&mut self.realm, at, entity);
                self.write(at);
            }
            (Some(at), 5 | 6) if !is_moving => self.end_cell(stored, at),
            _ => {}
        }
    }

    fn end_cell(&mut self, stored: u64, at: OwnerId) {
        let Active { entity, home } = self.active[&stored];
        let hp = self.realm.scribe(at).state.entities[&entity].properties[&game::member("hp")].clone();
        let Value::Int(hp) = hp else { panic!("it is a number") };
        self.hp.insert(stored, hp);
        acts::end(&mut self.realm, at, entity);
        self.parts.cells.remove(&entity);
        self.write(at);
        acts::placed(&mut self.realm, home, entity, None);
        self.write(home);
    }

    pub(crate) fn step(&mut self) {
        let shard = self.realm.roll(self.realm.lanes.len() + 1);
        if let Some(deleted) = self.deleted
            && self.realm.roll(100) == 0
        {
            self.deleted = Some(deleted + self.realm.delete_in(shard));
        }
        match self.realm.roll(16) {
            0..=7 => {
                let stored = 1 + self.realm.roll(STORED as usize) as u64;
                self.act(stored);
            }
            8 => {
                let to = self.cells[self.realm.roll(self.cells.len())];
                self.parts.take_over(&mut self.realm, to);
                self.cells.clone().into_iter().for_each(|cell| self.write(cell));
            }
            9 | 10 => {
                let count = self.realm.roll(30);
                self.realm.fold_one(shard, count);
            }
            11 => {
                let count = self.realm.roll(30);
                self.realm.fold_together(count);
            }
            12 => {
                self.rounds.remove(&shard);
                self.rounds
                    .extend(self.realm.begin_round(shard).map(|round| (shard, round)));
            }
            13 | 14 => {
                self.realm.fold_one(shard, usize::MAX);
                if let Some(round) = self.rounds.remove(&shard) {
                    self.realm.end_round(shard, &round);
                }
            }
            _ => {
                let owner = self.cells[self.realm.roll(self.cells.len())];
                let lost: Vec<_> = self.realm.owner(owner).lost.keys().copied().collect();
                lost.into_iter().for_each(|number| self.realm.fill(owner, number));
            }
        }
    }

    /// Ends all activations, and folds and answers everything.
    pub(crate) fn settle(&mut self) {
        for to in self.cells.clone() {
            for _ in 0..=STORED {
                self.parts.take_over(&mut self.realm, to);
                self.cells.clone().into_iter().for_each(|cell| self.write(cell));
            }
        }
        for (stored, Active { entity, home }) in self.active.clone() {
            if let Some(at) = self.parts.cells.get(&entity).copied() {
                self.end_cell(stored, at);
            }
            acts::end(&mut self.realm, home, entity);
            self.write(home);
        }
        self.realm.settle();
        for shard in (0..=self.realm.lanes.len()).cycle().take(100) {
            if let Some(round) = self.realm.begin_round(shard) {
                self.realm.end_round(shard, &round);
            }
        }
    }

    pub(crate) fn check(&self) {
        let seed = self.realm.seed;
        self.realm.check();
        assert_eq!(self.realm.alarms, [], "seed {seed}");
        for (stored, expected) in &self.hp {
            let row = wait(read_stored(&self.realm.store.begin(), DatabaseId(*stored))).expect("the store answers");
            let found = row.as_ref().and_then(|row| row.properties.get("hp"));
            assert_eq!(found, Some(&Value::Int(*expected)), "seed {seed}: entity {stored}");
            let life = self.read(&database::checkout_key(DatabaseId(*stored)), |_| ());
            assert_eq!(life, None, "seed {seed}: entity {stored} is checked out");
        }
        let errands = KeyRange::new(vec![0x3a], vec![0x3c]);
        let left = wait(self.realm.store.begin().get_range(&errands, 9, ScanOrder::Forward));
        let left = left.expect("the store answers").rows;
        let keys: Vec<_> = left.into_iter().map(|(key, _)| key).collect();
        assert!(keys.is_empty(), "seed {seed}: requests between shards: {keys:?}");
    }
}

#[test]
fn each_shard_deletes_behind_a_horizon_of_its_own() {
    let mut moved = 0;
    for seed in 0..SEEDS / 3 {
        let mut play = Play::of(seed, 2 + u16::try_from(seed % 2).expect("few shards"), true);
        for _ in 0..STEPS {
            play.step();
        }
        play.settle();
        for shard in play.realm.shards() {
            play.realm.delete_in(shard.0.into());
            let horizon = wait(read_horizon(&play.realm.store, shard)).expect("the store answers");
            moved += u32::from(horizon.is_some());
        }
        play.check();
        assert!(play.deleted > Some(0), "seed {seed}: something was deleted on the way");
    }
    assert!(moved > 30, "{moved} horizons");
}

#[test]
fn an_activation_begins_with_what_the_last_cell_part_had() {
    let mut compared = 0;
    for seed in 0..SEEDS {
        let shards = 1 + u16::try_from(seed % 3).expect("few shards");
        let mut play = Play::new(seed, shards);
        for _ in 0..STEPS {
            play.step();
        }
        play.settle();
        play.check();
        compared += play.compared;
    }
    println!("{compared} activations were compared");
    assert!(compared > 100, "{compared} activations were compared");
}
