//! A realm as seen by db: a store, a stream, and owners that write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals_db::{Alarm, FoldError, Folded, Folder, Retention, RetentionProgress};
use annals_def::split_mix;
use annals_director::{
    Grants,
    openings::{self, Recorded},
};
use annals_event::{FrozenBatch, Header, Tail};
use annals_ids::{BatchNumber, EntityId, Epoch, Hash, HistoryNumber, OwnerId, OwnerKind, ProcessId, Shard, WallTime};
use annals_store::{
    KeyRange, MemoryStore, ScanOrder, Store, StoreError,
    faults::{Call, Fault, FaultyStore},
    layout::{
        chunks,
        director::{Term, schema_key},
        owners::{self, OpeningRecord},
        shards,
    },
    segment::Segment,
};

use crate::{
    game,
    pipelined::LazyStore,
    scribe::{SCHEMA, Scribe, empty},
    together::{Committed, Lane, yielding},
    wait,
};

/// The first shard: that of all logs, unless the test says otherwise.
pub(crate) const SHARD: Shard = Shard(0);

/// Holder of every owner.
const PROCESS: ProcessId = ProcessId(1);

/// A batch that is on an owner's chain permanently.
pub(crate) struct Written {
    pub(crate) batch: FrozenBatch,
    /// Hash of the state after it.
    pub(crate) state: Hash,
}

/// An owner, its log as it was written, and the parts of it that have not arrived.
pub(crate) struct Owner {
    pub(crate) shard: Shard,
    pub(crate) scribe: Scribe,
    pub(crate) chain: Vec<Written>,
    /// The granted epoch.
    granted: Epoch,
    /// An `Open` that is in the stream and not recorded.
    opening: Option<FrozenBatch>,
    /// Batches that the stream has lost.
    pub(crate) lost: BTreeMap<BatchNumber, Vec<u8>>,
    /// Replaced holders that go on writing.
    zombies: Vec<(Epoch, Tail)>,
}

/// The whole test realm, determined by its seed.
pub(crate) struct Realm {
    pub(crate) seed: u64,
    dice: Box<dyn FnMut() -> u64>,
    /// The newest history number of each entity's last cell part that has ended.
    pub(crate) former: BTreeMap<EntityId, HistoryNumber>,
    /// The store itself.
    pub(crate) store: Store,
    /// The store as db accesses it, with faults.
    pub(crate) reached: Store,
    /// One in this many calls of db to the store fails; 0 for none.
    odds: Arc<AtomicU64>,
    grants: Grants,
    pub(crate) owners: BTreeMap<OwnerId, Owner>,
    pub(crate) stream: Vec<(OwnerId, Vec<u8>)>,
    /// Number of the stream's messages that were offered to db.
    pub(crate) offered: usize,
    pub(crate) db: Folder,
    /// The further shards, from shard 1 on.
    pub(crate) lanes: Vec<Lane>,
    /// The leaves in the order in which they were committed, in a realm of several shards.
    pub(crate) order: Committed,
    /// Batches about which db may raise an alarm: hashes of forged batches and of messages that are not batches.
    pub(crate) forged: BTreeSet<Hash>,
    strange: BTreeSet<OwnerId>,
    pub(crate) alarms: Vec<Alarm>,
    /// Transactions that were repeated after a conflict.
    pub(crate) conflicts: u64,
    /// Whether db folds the next transaction before the last is durable.
    pipelines: bool,
    marks: u64,
}

impl Realm {
    pub(crate) fn new(seed: u64) -> Self {
        Self::on(MemoryStore::new().store(), seed)
    }

    /// Creates a realm on an empty store.
    pub(crate) fn on(store: Store, seed: u64) -> Self {
        let odds = Arc::new(AtomicU64::new(0));
        let reached = FaultyStore::wrap(&store, fault_plan(seed, Arc::clone(&odds)));
        let grants = wait(Grants::lead(
            store.clone(),
            PROCESS,
            Term::default(),
            std::time::Duration::ZERO,
        ))
        .expect("no other director leads");
        let db = wait(Folder::begin(reached.clone(), SHARD, game::schema())).expect("no fault is injected yet");
        Self {
            seed,
            dice: Box::new(split_mix(seed)),
            former: BTreeMap::new(),
            store,
            reached,
            odds,
            grants,
            owners: BTreeMap::new(),
            stream: Vec::new(),
            offered: 0,
            db,
            lanes: Vec::new(),
            order: Committed::default(),
            forged: BTreeSet::new(),
            strange: BTreeSet::new(),
            alarms: Vec::new(),
            conflicts: 0,
            pipelines: false,
            marks: 1 << 32,
        }
    }

    /// Creates a realm whose db folds the next transaction before the last is durable.
    pub(crate) fn pipelined(seed: u64) -> (Self, LazyStore) {
        let mut realm = Self::new(seed);
        let lazy = LazyStore::wrap(&realm.store, &realm.reached);
        realm.reached = Store::new(lazy.clone());
        realm.pipelines = true;
        realm.db = realm.begin_folder(SHARD);
        (realm, lazy)
    }

    /// Creates a realm of several shards, whose dbs fold at the same time.
    pub(crate) fn of_shards(seed: u64, count: u16) -> Self {
        let order = Committed::default();
        let mut realm = Self::on(order.record(&MemoryStore::new().store()), seed);
        realm.order = order;
        realm.reached = yielding(&realm.reached);
        let transaction = realm.store.begin();
        let stored = transaction.set(&shards::count_key(), &shards::encode_count(count));
        stored.expect("a small row");
        for (key, chunk) in chunks(&schema_key(SCHEMA), &game::schema().encode()) {
            transaction.set(&key, chunk).expect("a small row");
        }
        wait(transaction.commit()).expect("nothing fails");
        realm.lanes = (1..count)
            .map(|shard| Lane::begin(&realm.reached, Shard(shard)))
            .collect();
        realm.db = realm.begin_folder(SHARD);
        realm
    }

    pub(crate) fn begin_folder(&self, shard: Shard) -> Folder {
        let db = wait(Folder::begin(self.reached.clone(), shard, game::schema()));
        db.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed))
    }

    /// All shards.
    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        shards::all(1 + u16::try_from(self.lanes.len()).expect("few shards"))
    }

    fn shard_of(&self, owner: OwnerId) -> Shard {
        self.owners.get(&owner).map_or(SHARD, |held| held.shard)
    }

    /// Appends to the stream of the owner's shard.
    fn push(&mut self, owner: OwnerId, bytes: Vec<u8>) {
        let shard = self.shard_of(owner);
        match usize::from(shard.0).checked_sub(1) {
            None => self.stream.push((owner, bytes)),
            Some(lane) => self.lanes[lane].stream.push((owner, bytes)),
        }
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        usize::try_from((self.dice)() % sides as u64).expect("few sides")
    }

    /// A random element, or `None` if there are none.
    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let place = self.roll(from.len().max(1));
        from.get(place).cloned()
    }

    /// Makes one in `odds` calls of db to the store fail.
    pub(crate) fn fail_one_in(&mut self, odds: u64) {
        self.odds.store(odds, Ordering::Relaxed);
    }

    /// Creates an owner, with its first `Open` recorded and in the stream.
    pub(crate) fn found(&mut self, kind: impl Into<OwnerKind>) -> OwnerId {
        let kind = kind.into();
        let shard = match self.lanes.len() {
            lanes if lanes > 0 && kind != OwnerKind::Ledger => Shard(self.roll(lanes + 1) as u16),
            _ => SHARD,
        };
        let grant = wait(self.grants.found(kind, shard, PROCESS)).expect("the director leads");
        let owner = Owner {
            shard,
            scribe: Scribe::new(grant.owner, kind),
            chain: Vec::new(),
            granted: grant.epoch,
            opening: None,
            lost: BTreeMap::new(),
            zombies: Vec::new(),
        };
        self.owners.insert(grant.owner, owner);
        self.append_open(grant.owner);
        self.record_open(grant.owner);
        grant.owner
    }

    pub(crate) fn owner(&mut self, owner: OwnerId) -> &mut Owner {
        self.owners.get_mut(&owner).expect("it was founded")
    }

    pub(crate) fn scribe(&mut self, owner: OwnerId) -> &mut Scribe {
        &mut self.owner(owner).scribe
    }

    /// The director grants the owner again. The new holder, in place of any that was about to open it, opens it after
    /// the present batches.
    pub(crate) fn take_over(&mut self, owner: OwnerId) {
        let grant = wait(self.grants.grant(owner, PROCESS, |_| false)).expect("the director leads");
        self.owner(owner).granted = grant.epoch;
        self.append_open(owner);
    }

    /// The director grants the owner again, and its taker continues after `tail`, whatever the log has beyond: its
    /// `Open` is in the stream and recorded.
    pub(crate) fn go_on_behind(&mut self, owner: OwnerId, mut tail: Tail) -> FrozenBatch {
        let grant = wait(self.grants.grant(owner, PROCESS, |_| false)).expect("the director leads");
        let mark = self.mark();
        let open = empty(owner, grant.epoch, &mut tail, true, mark);
        self.push(owner, open.bytes.clone());
        self.record_in_store(owner, opening_of(&open));
        open
    }

    fn record_in_store(&self, owner: OwnerId, record: OpeningRecord) {
        let hash_of = |bytes: &[u8]| Header::read(bytes).ok().map(|(_, hash)| hash);
        let recorded = wait(openings::record(
            &self.store,
            self.shard_of(owner),
            owner,
            &[record],
            "server:1",
            hash_of,
        ));
        assert_eq!(recorded, Ok(Recorded::Yes), "seed {}: owner {owner}", self.seed);
    }

    /// A taker appends its `Open`; an earlier one that was not recorded is given up.
    fn append_open(&mut self, owner: OwnerId) {
        let held = self.owner(owner);
        let open = held.scribe.open(held.granted);
        held.opening = Some(open.clone());
        self.push(owner, open.bytes);
    }

    /// A taker records its `Open` if it is still the end of the log; otherwise it appends another one.
    pub(crate) fn record_open(&mut self, owner: OwnerId) {
        if !self.scribe(owner).is_idle() {
            // The previous holder gets one more batch in.
            self.write(owner, false);
        }
        let held = self.owner(owner);
        let Some(open) = held.opening.take() else { return };
        let before = held.scribe.tail();
        if open.previous != before.hash {
            return self.append_open(owner);
        }
        let former = held.scribe.epoch;
        held.scribe.take(&open);
        if former != Epoch(0) {
            held.zombies.push((former, before));
        }
        let record = opening_of(&open);
        self.keep(owner, open);
        self.record_in_store(owner, record);
    }

    /// Closes a batch of the owner and appends it; with `lose` the stream loses it.
    pub(crate) fn write(&mut self, owner: OwnerId, lose: bool) {
        let held = self.owner(owner);
        let batch = held.scribe.close();
        let bytes = batch.bytes.clone();
        if lose {
            held.lost.insert(batch.number, bytes);
        } else {
            self.push(owner, bytes);
        }
        self.keep(owner, batch);
    }

    fn keep(&mut self, owner: OwnerId, batch: FrozenBatch) {
        let held = self.owner(owner);
        let state = held.scribe.state.hash();
        held.chain.push(Written { batch, state });
    }

    /// A process that has a lost batch publishes it.
    pub(crate) fn fill(&mut self, owner: OwnerId, number: BatchNumber) {
        if let Some(bytes) = self.owner(owner).lost.remove(&number) {
            self.push(owner, bytes);
        }
    }

    /// Publishes all lost batches of an owner.
    pub(crate) fn fill_all(&mut self, owner: OwnerId) {
        let lost: Vec<BatchNumber> = self.owner(owner).lost.keys().copied().collect();
        lost.into_iter().for_each(|number| self.fill(owner, number));
    }

    /// Publishes something else in place of a lost batch, where a later batch in the stream reveals the difference.
    pub(crate) fn fill_wrongly(&mut self, owner: OwnerId, number: BatchNumber) {
        let mark = self.mark();
        let held = self.owner(owner);
        let newest = held.chain.len() as u64;
        if (number.0 + 1..=newest).all(|behind| held.lost.contains_key(&BatchNumber(behind))) {
            return;
        }
        let lost = Header::read(&held.lost[&number]).expect("an intact batch").0;
        let mut tail = Tail {
            batch: BatchNumber(number.0 - 1),
            hash: lost.previous,
            event: annals_ids::EventNumber(lost.first_event.0 - 1),
        };
        let wrong = empty(owner, lost.epoch, &mut tail, lost.opens, mark);
        self.forge(owner, wrong);
    }

    /// A replaced holder appends one more batch.
    pub(crate) fn write_void(&mut self, owner: OwnerId, which: usize) {
        let mark = self.mark();
        let held = self.owner(owner);
        let count = held.zombies.len().max(1);
        if let Some((epoch, tail)) = held.zombies.get_mut(which % count) {
            let batch = empty(owner, *epoch, tail, false, mark);
            self.push(owner, batch.bytes);
        }
    }

    /// Appends an `Open` of an epoch that was never granted.
    pub(crate) fn write_ungranted(&mut self, owner: OwnerId) {
        let mark = self.mark();
        let held = self.owner(owner);
        let (epoch, mut tail) = (Epoch(held.granted.0 + 1_000), held.scribe.tail());
        let batch = empty(owner, epoch, &mut tail, true, mark);
        self.forge(owner, batch);
    }

    fn forge(&mut self, owner: OwnerId, batch: FrozenBatch) {
        self.forged.insert(batch.hash);
        self.strange.insert(owner);
        self.push(owner, batch.bytes);
    }

    /// Appends to an owner's log something that is not one of its batches.
    pub(crate) fn write_strange(&mut self, owner: OwnerId, bytes: Vec<u8>) {
        self.strange.insert(owner);
        self.push(owner, bytes);
    }

    fn mark(&mut self) -> u64 {
        self.marks += 1;
        self.marks
    }

    /// db reads on, at most `count` messages, and folds until there is nothing to do.
    pub(crate) fn fold(&mut self, count: usize) {
        if !self.lanes.is_empty() {
            return self.fold_together(count);
        }
        let end = self.stream.len().min(self.offered.saturating_add(count));
        for (owner, bytes) in &self.stream[self.offered..end] {
            self.db.offer(*owner, bytes.clone());
        }
        self.offered = end;
        let mut commits = 0;
        while self.db.has_work() {
            let done = match self.pipelines {
                true => self.submit(),
                false => self.commit().map(drop),
            };
            done.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
            commits += 1;
            assert!(commits < 10_000, "seed {}: db never becomes idle", self.seed);
        }
    }

    /// db folds, and waits for some of what it has submitted.
    fn submit(&mut self) -> Result<(), FoldError> {
        wait(self.db.submit())?;
        let left = self.roll(3);
        self.take_folded(left)
    }

    /// db waits until at most `left` transactions are not durable.
    pub(crate) fn take_folded(&mut self, left: usize) -> Result<(), FoldError> {
        while self.db.submitted() > left {
            let folded = wait(self.db.next_folded())?;
            self.note(&folded.expect("a transaction is submitted"));
        }
        Ok(())
    }

    fn note(&mut self, folded: &Folded) {
        self.conflicts += folded.conflicts;
        for alarm in &folded.alarms {
            self.judge(alarm);
        }
        self.alarms.extend(folded.alarms.iter().cloned());
    }

    /// Folds the archive of another realm, in the order of its leaves, into this realm's empty store.
    pub(crate) fn refold(&mut self, other: &Realm) {
        self.copy_grants(other);
        for (owner, batch) in other.check().leaves {
            let chain = &other.owners[&owner].chain;
            let place = usize::try_from(batch.header.number.0 - 1).expect("few batches");
            self.db.offer(owner, chain[place].batch.bytes.clone());
        }
        self.fold(0);
    }

    /// Copies owners and openings, which are in no log.
    pub(crate) fn copy_grants(&self, other: &Realm) {
        let granted = [owners::owners(), KeyRange::prefix(&[0x05])];
        for range in granted {
            let reading = other.store.begin();
            let page = wait(reading.get_range(&range, 100_000, ScanOrder::Forward)).expect("the store answers");
            let writing = self.store.begin();
            for (key, value) in &page.rows {
                writing.set(key, value).expect("a small transaction");
            }
            wait(writing.commit()).expect("nothing fails");
        }
    }

    pub(crate) fn commit(&mut self) -> Result<Folded, FoldError> {
        let folded = wait(self.db.commit())?;
        self.note(&folded);
        Ok(folded)
    }

    /// db seals the archive into segments of `most` leaves, as far as there are whole ones and the store does not fail.
    pub(crate) fn seal(&mut self, most: usize) -> Vec<Segment> {
        let mut sealer = self.db.sealer().of_leaves(most);
        let mut sealed = Vec::new();
        for _ in 0..10_000 {
            match wait(sealer.seal_next()) {
                Ok(Some(segment)) => sealed.push(segment),
                Ok(None) | Err(FoldError::Store(_)) => return sealed,
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        }
        panic!("seed {}: db never has sealed everything", self.seed);
    }

    /// db writes tiles, as far as the store does not fail.
    pub(crate) fn tile(&mut self) {
        let mut tiler = self.db.tiler();
        for _ in 0..10_000 {
            match wait(tiler.tile_next()) {
                Ok(Some(_)) => {}
                Ok(None) | Err(FoldError::Store(_)) => return,
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        }
        panic!("seed {}: db never has tiled everything", self.seed);
    }

    /// db deletes events that are sealed and were closed before `older_than`, for `turns` turns, as far as the store
    /// does not fail. Returns whether there is nothing left to do.
    pub(crate) fn deleted(&mut self, retention: &mut Retention, older_than: WallTime, turns: usize) -> bool {
        for _ in 0..turns {
            match wait(retention.turn(older_than)) {
                Ok(RetentionProgress::Idle) => return true,
                Ok(_) => {}
                Err(FoldError::Store(StoreError::Corrupt(what))) => panic!("seed {}: {what}", self.seed),
                Err(FoldError::Store(_)) => return false,
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
        }
        false
    }

    /// Begins another db process, which reads the stream from its first remaining message.
    pub(crate) fn begin_db(&mut self) -> Folder {
        let chosen = match self.lanes.len() {
            0 => 0,
            lanes => self.roll(lanes + 1),
        };
        let db = self.begin_folder(Shard(u16::try_from(chosen).expect("few shards")));
        match chosen.checked_sub(1) {
            None => {
                self.offered = 0;
                std::mem::replace(&mut self.db, db)
            }
            Some(lane) => {
                self.lanes[lane].offered = 0;
                std::mem::replace(&mut self.lanes[lane].db, db)
            }
        }
    }

    /// Checks that an alarm is about a fault that the test has caused.
    pub(crate) fn judge(&self, alarm: &Alarm) {
        let known = match alarm {
            Alarm::Contradiction { hash, .. } => self.forged.contains(hash),
            Alarm::Malformed { owner, .. } | Alarm::Misplaced { owner, .. } | Alarm::Ungranted { owner, .. } => {
                self.strange.contains(owner)
            }
            Alarm::IdentifierTaken { .. } => true,
            Alarm::Impossible { .. }
            | Alarm::Ledger { .. }
            | Alarm::Unreadable { .. }
            | Alarm::TooLarge { .. }
            | Alarm::Unconverted { .. }
            | Alarm::UnknownType { .. } => false,
        };
        assert!(known, "seed {}: {alarm}", self.seed);
    }

    /// Completes everything outstanding: openings are recorded, holes filled, and db reads to the end.
    pub(crate) fn settle(&mut self) {
        self.fail_one_in(0);
        let owners: Vec<OwnerId> = self.owners.keys().copied().collect();
        for owner in owners {
            while self.owner(owner).opening.is_some() {
                self.record_open(owner);
            }
            let lost: Vec<BatchNumber> = self.owner(owner).lost.keys().copied().collect();
            lost.into_iter().for_each(|number| self.fill(owner, number));
            self.write(owner, false);
        }
        self.fold(usize::MAX);
        let durable = self.take_folded(0);
        durable.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
    }
}

fn opening_of(open: &FrozenBatch) -> OpeningRecord {
    OpeningRecord {
        epoch: open.epoch,
        number: open.number,
        hash: open.hash,
    }
}

/// Outcome of each of db's calls to the store.
fn fault_plan(seed: u64, odds: Arc<AtomicU64>) -> impl FnMut(Call) -> Fault + Send + 'static {
    let mut dice = split_mix(seed ^ 0xfau64.rotate_left(40));
    move |call| {
        let odds = odds.load(Ordering::Relaxed);
        if odds == 0 || !dice().is_multiple_of(odds) {
            return Fault::None;
        }
        match (call, dice() % 6) {
            (Call::Commit, 0) => Fault::Conflict,
            (Call::Commit, 1) => Fault::AnswerLost,
            (Call::Commit, 2) => Fault::RequestLost,
            (Call::Commit, 3) => Fault::LandsBeforeNext,
            (Call::Commit, 4) => Fault::LandsAfterNext,
            _ => Fault::Unavailable,
        }
    }
}
