//! Restoring realms of several shards (rules F15 and T6): for any cut in the order of the merge, the owners are as they
//! were written, the ledger is the beginning of the former one, and rows of stored entities have what ended before the
//! cut.

use std::collections::{BTreeMap, BTreeSet};

use annals_db::{
    ClaimedStore, Extent, MergedLeaf, Merging, RestoreError, Row, Survey, ledger::audit, read_archived, read_stored,
    read_unlogged,
};
use annals_def::Value;
use annals_event::{Batch, Body, OwnerState, Subject};
use annals_ids::{BatchNumber, DatabaseId, EntityId, Hash, LeafIndex, OwnerId, Part, Shard, WallTime};
use annals_store::{
    ArchivedBatch, KeyRange, MemoryStore, ScanOrder, Store,
    layout::{
        database::{self, Checkout},
        lineage::Lineage,
        shards,
    },
};

use crate::{
    game,
    ledger::{entries_of, played_on},
    realm::Realm,
    shards::{Play, settled_rows},
    shards_cut::cut_short,
    wait,
};

/// Number of realms.
const SEEDS: u64 = 24;

/// Steps of a realm in which entities have parts on several shards.
const STEPS: usize = 500;

/// The leaves of each shard.
pub(crate) type Archives = BTreeMap<Shard, Vec<ArchivedBatch>>;

pub(crate) fn archives(realm: &Realm) -> Archives {
    let mut found: BTreeMap<Shard, BTreeMap<LeafIndex, ArchivedBatch>> = BTreeMap::new();
    for shard in realm.shards() {
        found.insert(shard, BTreeMap::new());
    }
    for (owner, held) in &realm.owners {
        let mut after = BatchNumber(0);
        loop {
            let read = wait(read_archived(&realm.store, held.shard, *owner, after, 64)).expect("an archive");
            if read.is_empty() {
                break;
            }
            after = BatchNumber(after.0 + read.len() as u64);
            found.entry(held.shard).or_default().extend(read);
        }
    }
    let leaves = |(shard, leaves): (Shard, BTreeMap<_, _>)| (shard, leaves.into_values().collect());
    found.into_iter().map(leaves).collect()
}

/// The leaves in the order in which they are folded again.
pub(crate) struct Merged<'a> {
    pub(crate) merging: Merging,
    archives: &'a Archives,
    passed: BTreeMap<Shard, usize>,
    ends: BTreeMap<Shard, u64>,
    /// No leaf is wanted that was closed later, and none after that in its shard.
    until: Option<WallTime>,
    closed: BTreeSet<Shard>,
}

impl<'a> Merged<'a> {
    fn new(rows: &[Row], archives: &'a Archives, ends: BTreeMap<Shard, u64>) -> Self {
        let mut survey = Survey::default();
        for (shard, leaves) in archives {
            for (leaf, archived) in (0..).map(LeafIndex).zip(leaves) {
                survey.note(*shard, &MergedLeaf::read(leaf, archived).expect("a batch"));
            }
        }
        Self {
            merging: wait(Merging::begin(rows, survey, &ends)).expect("readable rows"),
            archives,
            passed: BTreeMap::new(),
            ends,
            until: None,
            closed: BTreeSet::new(),
        }
    }

    pub(crate) fn whole(rows: &[Row], archives: &'a Archives) -> Self {
        let ends = archives.iter().map(|(shard, leaves)| (*shard, leaves.len() as u64));
        Self::new(rows, archives, ends.collect())
    }

    /// Passes a leaf. Returns its place, owner and number, and whether there is a cut after it.
    pub(crate) fn pass(&mut self) -> Option<(Shard, LeafIndex, (OwnerId, BatchNumber), bool)> {
        let mut heads = BTreeMap::new();
        for (shard, leaves) in self.archives {
            let next = self.passed.get(shard).copied().unwrap_or_default();
            if let Some(archived) = leaves.get(next).filter(|_| (next as u64) < self.ends[shard]) {
                let leaf = LeafIndex(next as u64);
                heads.insert(*shard, MergedLeaf::read(leaf, archived).expect("a batch"));
            }
        }
        let later = heads
            .iter()
            .filter(|(_, head)| self.until.is_some_and(|until| head.wall() > until));
        self.closed.extend(later.map(|(shard, _)| *shard));
        if heads.keys().all(|shard| self.closed.contains(shard)) {
            return None;
        }
        let shard = self.merging.choose(&heads)?;
        let head = heads.remove(&shard)?;
        let batch = head.batch();
        let is_cut = self.merging.pass(shard, head, !self.closed.contains(&shard));
        let next = self.passed.entry(shard).or_default();
        *next += 1;
        Some((shard, LeafIndex(*next as u64 - 1), batch, is_cut))
    }
}

/// The cuts up to which the merged leaves are in order, and the largest of all cuts behind them; to the end or to a moment.
pub(crate) fn cuts(rows: &[Row], archives: &Archives, until: Option<WallTime>) -> Vec<Extent> {
    let (prefixes, in_tail) = prefixes(rows, archives, until);
    let begin = prefixes.len() - in_tail.len();
    let mut cuts: Vec<Extent> = prefixes[..begin]
        .iter()
        .filter(|(_, is_cut)| *is_cut)
        .map(|(extent, _)| extent.clone())
        .collect();
    let mut last = cuts.last().cloned().unwrap_or_else(|| empty(archives));
    let before = last.clone();
    for (place, is_in) in (begin..).zip(in_tail) {
        let (with, _) = &prefixes[place];
        let without = place
            .checked_sub(1)
            .map_or_else(|| empty(archives), |before| prefixes[before].0.clone());
        if is_in {
            let grown = with
                .leaves
                .iter()
                .find(|(shard, leaves)| without.of(**shard) != **leaves);
            let (shard, leaves) = grown.expect("a leaf was passed");
            let added = last.leaves.insert(*shard, *leaves);
            assert_eq!(added, Some(leaves - 1), "a cut has a prefix of each shard");
            let log = with
                .logs
                .iter()
                .find(|(owner, batch)| without.logs.get(owner) != Some(batch));
            let (owner, batch) = log.expect("a batch was passed");
            last.logs.insert(*owner, *batch);
        }
    }
    if last != before {
        cuts.push(last);
    }
    cuts
}

pub(crate) fn empty(archives: &Archives) -> Extent {
    Extent {
        leaves: archives.keys().map(|shard| (*shard, 0)).collect(),
        ..Extent::default()
    }
}

/// All prefixes of the merged leaves, and whether they are cuts; and which of the leaves behind the last one are in the
/// largest cut.
pub(crate) fn prefixes(rows: &[Row], archives: &Archives, until: Option<WallTime>) -> (Vec<(Extent, bool)>, Vec<bool>) {
    let mut merged = Merged::whole(rows, archives);
    merged.until = until;
    let mut extent = empty(archives);
    let mut prefixes = Vec::new();
    while let Some((shard, leaf, (owner, number), is_cut)) = merged.pass() {
        extent.leaves.insert(shard, leaf.0 + 1);
        extent.logs.insert(owner, number);
        prefixes.push((extent.clone(), is_cut));
    }
    (prefixes, merged.merging.in_cut(None))
}

fn restore(rows: &[Row], archives: &Archives, cut: &Extent) -> Result<(Store, BTreeMap<OwnerId, Hash>), RestoreError> {
    restore_some(rows, archives, cut, u64::MAX)
}

/// Restores a realm to a cut, of whose leaves only some are given.
fn restore_some(
    rows: &[Row],
    archives: &Archives,
    cut: &Extent,
    given: u64,
) -> Result<(Store, BTreeMap<OwnerId, Hash>), RestoreError> {
    let store = MemoryStore::new().store();
    let lineage = Lineage {
        leaf: LeafIndex(cut.of(Shard(0))),
        others: cut
            .leaves
            .iter()
            .skip(1)
            .map(|(_, leaves)| LeafIndex(*leaves))
            .collect(),
        restored: WallTime(5),
        from: "old".into(),
        to: "new".into(),
        backup: "old-5".into(),
    };
    let mut merged = Merged::new(rows, archives, cut.leaves.clone());
    let states = wait(async {
        let claimed = ClaimedStore::claim(store.clone(), "old-5").await?;
        let mut restoring = claimed.begin(rows, cut).await?;
        for _ in 0..given {
            let Some((shard, leaf, ..)) = merged.pass() else {
                break;
            };
            let archived = archives[&shard][leaf.0 as usize].clone();
            restoring.take(shard, leaf, archived).await?;
        }
        restoring.finish(&BTreeMap::new(), &lineage).await
    })?;
    let passed: BTreeMap<Shard, u64> = merged
        .passed
        .iter()
        .map(|(shard, count)| (*shard, *count as u64))
        .collect();
    let expected = cut.leaves.iter().filter(|(_, leaves)| **leaves > 0);
    assert_eq!(
        passed,
        expected.map(|(shard, leaves)| (*shard, *leaves)).collect(),
        "the whole cut is folded"
    );
    Ok((store, states))
}

/// Restores a realm to a cut, and compares the owners with what was written.
pub(crate) fn restored(realm: &Realm, rows: &[Row], archives: &Archives, cut: &Extent) -> Store {
    let seed = realm.seed;
    let (store, states) = restore(rows, archives, cut).unwrap_or_else(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        panic!("seed {seed}: {error}: {source:?}")
    });
    for (owner, number) in &cut.logs {
        let written = &realm.owners[owner].chain[number.0 as usize - 1];
        assert_eq!(states[owner], written.state, "seed {seed}: owner {owner}");
    }
    let errands = KeyRange::new(vec![0x3a], vec![0x3b]);
    let left = wait(store.begin().get_range(&errands, 9, ScanOrder::Forward)).expect("the store answers");
    let keys: Vec<_> = left.rows.into_iter().map(|(key, _)| key).collect();
    assert!(keys.is_empty(), "seed {seed}: requests between shards: {keys:?}");
    store
}

/// Stored entities at a cut, by what was written: the last value of a property of the last cell part that had ended, and the
/// active ones.
#[derive(Default)]
struct Expected {
    databases: BTreeMap<EntityId, DatabaseId>,
    ended: BTreeMap<EntityId, (WallTime, i64)>,
    /// Number of cell parts of each entity. In a realm, unlike here, a base part ends only after it has learned of the end of
    /// its cell part.
    cells: BTreeMap<EntityId, i32>,
    active: BTreeMap<DatabaseId, Checkout>,
}

impl Expected {
    fn at(realm: &Realm, cut: &Extent) -> Self {
        let mut expected = Self::default();
        for (owner, number) in &cut.logs {
            let held = &realm.owners[owner];
            let mut state = OwnerState::new(*owner, held.scribe.state.kind);
            for written in &held.chain[..number.0 as usize] {
                let batch = Batch::read(&written.batch.bytes).expect("it was written");
                let folded = state.fold_with(&batch, |state, event| {
                    if let Subject::Entity(entity, part) = event.subject {
                        expected.note(state, (entity, part), &event.body, batch.header.wall);
                    }
                });
                folded.expect("it was written");
            }
        }
        expected
    }

    fn note(&mut self, state: &OwnerState, (entity, part): (EntityId, Part), body: &Body, wall: WallTime) {
        match (part, body) {
            (Part::Base, Body::BaseCreated(new)) => {
                let life = Checkout {
                    owner: state.owner,
                    number: new.checkout,
                };
                self.databases.insert(entity, new.database);
                let held = self.active.entry(new.database).or_insert(life);
                held.number = held.number.max(life.number);
                if held.number == life.number {
                    *held = life;
                }
            }
            (Part::Base, Body::Destroyed) => {
                let base = state.entities[&entity].base().expect("a base part");
                let number = base.checkout;
                if self
                    .active
                    .get(&base.database)
                    .is_some_and(|held| held.number == number)
                {
                    self.active.remove(&base.database);
                }
            }
            (Part::Cell, Body::CellCreated(_)) => *self.cells.entry(entity).or_default() += 1,
            (Part::Cell, Body::Destroyed) => {
                *self.cells.entry(entity).or_default() -= 1;
                let hp = &state.entities[&entity].properties[&game::member("hp")];
                let Value::Int(hp) = hp else { panic!("it is a number") };
                let held = self.ended.entry(entity).or_insert((wall, *hp));
                if held.0 <= wall {
                    *held = (wall, *hp);
                }
            }
            _ => {}
        }
    }

    /// Compares the rows of a restored realm. Returns how many of entities that are not active were compared.
    fn compare(&self, realm: &Realm, store: &Store) -> usize {
        let seed = realm.seed;
        let mut last: BTreeMap<DatabaseId, (WallTime, i64)> = BTreeMap::new();
        for (entity, ended) in &self.ended {
            let Some(database) = self.databases.get(entity) else {
                continue;
            };
            let held = last.entry(*database).or_insert(*ended);
            if held.0 <= ended.0 {
                *held = *ended;
            }
        }
        let mut compared = 0;
        let databases: BTreeSet<DatabaseId> = self.databases.values().copied().collect();
        for database in databases {
            let life = wait(store.begin().get(&database::checkout_key(database))).expect("the store answers");
            let life = life.map(|value| Checkout::decode(&value).expect("a check-out"));
            assert_eq!(
                life,
                self.active.get(&database).copied(),
                "seed {seed}: entity {database}"
            );
            let mut entities = self.databases.iter().filter(|(_, of)| **of == database);
            let has_cell = entities.any(|(entity, _)| self.cells.get(entity).is_some_and(|cells| *cells != 0));
            if let (None, Some((_, hp)), false) = (life, last.get(&database), has_cell) {
                let row = wait(read_stored(&store.begin(), database)).expect("the store answers");
                let found = row.as_ref().and_then(|row| row.properties.get("hp"));
                assert_eq!(found, Some(&Value::Int(*hp)), "seed {seed}: entity {database}");
                compared += 1;
            }
        }
        compared
    }
}

/// Plays, with retention or without, and restores to the end and to other cuts. Returns how many rows were compared.
fn play_and_restore(seed: u64, shards: u16, retains: bool) -> (usize, usize) {
    let mut play = Play::of(seed, shards, retains);
    for _ in 0..STEPS {
        play.step();
    }
    restore_played(play)
}

fn restore_played(mut play: Play) -> (usize, usize) {
    play.settle();
    play.check();
    let mut realm = play.realm;
    let seed = realm.seed;
    let (rows, archives) = (wait(read_unlogged(&realm.store)).expect("readable"), archives(&realm));
    let mut found = cuts(&rows, &archives, None);
    let whole = found.pop().expect("the end is a cut");
    let leaves: u64 = archives.values().map(|leaves| leaves.len() as u64).sum();
    assert_eq!(
        whole.leaves.values().sum::<u64>(),
        leaves,
        "seed {seed}: everything is a cut"
    );
    let store = restored(&realm, &rows, &archives, &whole);
    let mut compared = Expected::at(&realm, &whole).compare(&realm, &store);
    let mut refused = 0;
    for _ in 0..4 {
        let cut = realm.pick(&found).expect("there are cuts");
        if let Err(RestoreError::BeforeHorizon { .. }) = restore(&rows, &archives, &cut).map(|_| ()) {
            refused += 1;
            continue;
        }
        let store = restored(&realm, &rows, &archives, &cut);
        compared += Expected::at(&realm, &cut).compare(&realm, &store);
    }
    for _ in 0..2 {
        let short = cut_short(&mut realm, &archives);
        let Some(cut) = cuts(&rows, &short, None).pop() else {
            continue;
        };
        if let Err(RestoreError::BeforeHorizon { .. }) = restore(&rows, &short, &cut).map(|_| ()) {
            refused += 1;
            continue;
        }
        let store = restored(&realm, &rows, &short, &cut);
        compared += Expected::at(&realm, &cut).compare(&realm, &store);
    }
    (compared, refused)
}

#[test]
fn a_restore_that_lacks_a_leaf_of_its_cut_fails() {
    let mut play = Play::of(1, 3, false);
    for _ in 0..STEPS {
        play.step();
    }
    play.settle();
    let (rows, archives) = (
        wait(read_unlogged(&play.realm.store)).expect("readable"),
        archives(&play.realm),
    );
    let whole = cuts(&rows, &archives, None).pop().expect("the end is a cut");
    let leaves: u64 = whole.leaves.values().sum();
    let restored = restore_some(&rows, &archives, &whole, leaves - 1).map(|_| ());
    assert!(matches!(restored, Err(RestoreError::Short { .. })), "{restored:?}");
}

#[test]
fn a_cut_has_all_parts_of_the_entities_in_it() {
    let mut compared = 0;
    for seed in 0..SEEDS {
        compared += play_and_restore(seed, 2 + u16::try_from(seed % 2).expect("few shards"), false).0;
    }
    assert!(compared > 100, "{compared} rows were compared");
}

#[test]
fn a_realm_that_had_one_shard_for_a_time_is_restored() {
    let mut compared = 0;
    for seed in 0..SEEDS {
        let mut play = Play::of(seed, 1, seed % 2 == 1);
        for step in 0..STEPS {
            if step == STEPS / 2 {
                play.grow(3);
            }
            play.step();
        }
        compared += restore_played(play).0;
    }
    assert!(compared > 60, "{compared} rows were compared");
}

#[test]
fn cell_parts_that_ended_before_the_horizons_are_in_a_restored_realm() {
    let (mut compared, mut refused) = (0, 0);
    for seed in 0..SEEDS {
        let found = play_and_restore(seed, 2 + u16::try_from(seed % 2).expect("few shards"), true);
        compared += found.0;
        refused += found.1;
    }
    assert!(
        compared > 60 && refused > 10,
        "{compared} rows were compared, {refused} cuts refused"
    );
}

#[test]
fn the_ledger_of_a_restored_realm_is_the_beginning_of_the_former_one() {
    let mut cut_short = 0;
    for seed in 0..SEEDS {
        let (mut realm, _) = played_on(Realm::of_shards(seed, 2 + u16::try_from(seed % 2).expect("few shards")));
        let (rows, archives) = (wait(read_unlogged(&realm.store)).expect("readable"), archives(&realm));
        // In these realms bases consume calls that the ledger's owner does not log.
        let found: Vec<Extent> = prefixes(&rows, &archives, None)
            .0
            .into_iter()
            .map(|(extent, _)| extent)
            .collect();
        let whole = found.last().expect("there are leaves");
        let leaves: u64 = archives.values().map(|leaves| leaves.len() as u64).sum();
        assert_eq!(
            whole.leaves.values().sum::<u64>(),
            leaves,
            "seed {seed}: all leaves follow"
        );
        let store = restored(&realm, &rows, &archives, whole);
        assert!(
            settled_rows(&store) == settled_rows(&realm.store),
            "seed {seed}: the same rows"
        );
        let entries = entries_of(&realm.store);
        for _ in 0..3 {
            let cut = realm.pick(&found).expect("there are cuts");
            let store = restored(&realm, &rows, &archives, &cut);
            let report = wait(audit(&store)).expect("the store answers");
            assert_eq!(report.findings, [], "seed {seed}");
            let some = entries_of(&store);
            assert_eq!(some, entries[..some.len()], "seed {seed}");
            cut_short += usize::from(!some.is_empty() && some.len() < entries.len());
            let again = wait(read_unlogged(&store)).expect("readable");
            let changes = shards::changes();
            let of = |rows: &[Row]| {
                let changes = rows.iter().filter(|(key, _)| changes.contains(key)).cloned();
                changes.collect::<Vec<_>>()
            };
            let (former, kept) = (of(&rows), of(&again));
            assert_eq!(kept, former[..kept.len()], "seed {seed}: the order is recorded again");
        }
    }
    assert!(cut_short > 20, "{cut_short} cuts were within the ledger");
}
