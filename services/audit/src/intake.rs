//! Takes in the archives of a realm's shards, each batch by batch in the order of its leaves: verifies them and produces
//! the rows of the index.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Batch, Body, Event, Header, Subject, Tail, Thinned, ledger::Entry};
use annals_evidence::{LEDGER_SHARD, ShardLeaf, concerns};
use annals_ids::{
    BatchNumber, DatabaseId, EntityId, EntryNumber, Hash, LeafIndex, LogPosition, OwnerId, Part, Shard, WallTime,
};
use annals_proof::Frontier;
use annals_store::{ArchivedBatch, StoreError};

use crate::{
    answer::AuditError,
    recent,
    rows::{self, EntryPosition, LogEnd, Reached, STRETCH, Seat, ShardReached, Where},
};

/// Verifies leaves and collects rows until they are written.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    archives: BTreeMap<Shard, Archive>,
    entry: EntryNumber,
    ends: BTreeMap<OwnerId, LogEnd>,
    /// Logs with events that are never deleted.
    lasting: BTreeSet<OwnerId>,
    /// Logs that have grown since the rows were last taken.
    grown: BTreeSet<OwnerId>,
    /// Per log: its current stretch, and the entities already recorded for it.
    noted: BTreeMap<OwnerId, (u64, BTreeSet<EntityId>)>,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

/// The part of a shard's archive that was taken in.
#[derive(Clone, Debug, Default)]
struct Archive {
    tree: Frontier,
    /// The hash of the first batch.
    first: Hash,
    latest: WallTime,
}

impl Intake {
    /// Continues from the state of an index.
    pub(crate) fn resume(
        reached: &Reached,
        ends: BTreeMap<OwnerId, LogEnd>,
        lasting: BTreeSet<OwnerId>,
    ) -> Result<Self, StoreError> {
        let mut archives = BTreeMap::new();
        for (&shard, reached) in &reached.shards {
            let archive = Archive {
                tree: Frontier::resume(reached.leaves, reached.peaks.clone()).ok_or_else(rows::damaged)?,
                first: reached.first,
                latest: reached.latest,
            };
            archives.insert(shard, archive);
        }
        Ok(Self {
            archives,
            entry: reached.entry,
            ends,
            lasting,
            grown: BTreeSet::new(),
            noted: BTreeMap::new(),
            rows: Vec::new(),
            bytes: 0,
        })
    }

    /// Number of leaves of a shard taken in.
    pub(crate) fn leaves(&self, shard: Shard) -> u64 {
        self.archives.get(&shard).map_or(0, |archive| archive.tree.size())
    }

    /// Begins with the archive of a shard, which may be empty.
    pub(crate) fn begin(&mut self, shard: Shard) {
        self.archives.entry(shard).or_default();
    }

    /// The tree over those leaves: the roots of its complete subtrees, largest first.
    pub(crate) fn peaks(&self, shard: Shard) -> &[Hash] {
        self.archives.get(&shard).map_or(&[], |archive| archive.tree.peaks())
    }

    /// The end of each log.
    pub(crate) fn ends(&self) -> &BTreeMap<OwnerId, LogEnd> {
        &self.ends
    }

    /// The current progress.
    pub(crate) fn reached(&self) -> Reached {
        let reached = |archive: &Archive| ShardReached {
            first: archive.first,
            latest: archive.latest,
            leaves: archive.tree.size(),
            peaks: archive.tree.peaks().to_vec(),
        };
        let shards = self.archives.iter();
        Reached {
            entry: self.entry,
            shards: shards.map(|(shard, archive)| (*shard, reached(archive))).collect(),
        }
    }

    /// Bytes of the collected rows.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes and returns the collected rows, with those of the progress.
    pub(crate) fn take_rows(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        for owner in std::mem::take(&mut self.grown) {
            if let Some(end) = self.ends.get(&owner) {
                rows.push((rows::tail_key(owner), end.encode()));
            }
        }
        rows.push((rows::reached_key(), self.reached().encode()));
        rows
    }

    /// Takes in the next leaf of a shard, which must be the batch `expected`. It may lack its events only if it
    /// `is_below` a floor.
    pub(crate) fn take(
        &mut self,
        (shard, expected): (Shard, LogPosition),
        archived: &ArchivedBatch,
        is_below: bool,
    ) -> Result<(), AuditError> {
        let leaf = ShardLeaf {
            shard,
            leaf: LeafIndex(self.leaves(shard)),
        };
        let changed = |what: String| AuditError::Changed {
            leaf,
            at: expected,
            what,
        };
        let malformed = |error: annals_event::Malformed| changed(error.to_string());
        let (seat, batch) = match archived {
            ArchivedBatch::Whole(bytes) => {
                let batch = Batch::read(bytes).map_err(malformed)?;
                (self.follow(leaf, expected, &batch.header, batch.tail())?, Some(batch))
            }
            // Retention deletes no events of bases and the ledger, whatever the store claims now.
            ArchivedBatch::Thinned(_) if !is_below || self.lasting.contains(&expected.owner) => {
                return Err(changed(
                    "its events are missing, and retention cannot have deleted them".to_owned(),
                ));
            }
            ArchivedBatch::Thinned(bytes) => {
                let thinned = Thinned::read(bytes).map_err(malformed)?;
                (self.follow(leaf, expected, &thinned.header, thinned.tail())?, None)
            }
        };
        for (place, event) in batch.iter().flat_map(|batch| (0_u32..).zip(&batch.events)) {
            let is_entry = matches!(event.body, Body::Entered { .. });
            if is_entry && shard != LEDGER_SHARD {
                return Err(changed(
                    "it has an entry of the ledger, whose log is on shard 0".to_owned(),
                ));
            }
            if let Subject::Entity(entity, _) = event.subject {
                self.note(expected, entity);
            }
            let lasts = matches!(event.subject, Subject::Entity(_, Part::Base)) || is_entry;
            if lasts && self.lasting.insert(expected.owner) {
                self.row(rows::lasting_key(expected.owner), Vec::new());
            }
            match &event.body {
                Body::Entered { entry: Some(entry), .. } => self.enter(expected, place, entry)?,
                _ => {
                    for key in of_lives(event, seat, place) {
                        self.row(key, rows::encode_position(expected));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that the batch with this header is the expected one and the next of its log, which then ends at `end`.
    fn follow(&mut self, leaf: ShardLeaf, at: LogPosition, header: &Header, end: Tail) -> Result<Seat, AuditError> {
        let changed = |what| AuditError::Changed { leaf, at, what };
        if (header.owner, header.number) != (at.owner, at.batch) {
            let what = format!("batch {}@{} is in its place", header.owner, header.number);
            return Err(changed(what));
        }
        let shard = leaf.shard;
        let before = match self.ends.get(&at.owner) {
            // An owner belongs to its shard for life (rule T).
            Some(known) if known.shard != shard => {
                return Err(changed(format!("its log is on shard {}", known.shard)));
            }
            known => known.map_or_else(Tail::default, |known| known.tail),
        };
        let follows = at.batch == before.batch.next()
            && header.previous == before.hash
            && header.first_event == before.event.next();
        if !follows {
            let before = before.batch;
            return Err(AuditError::Unchained { leaf, at, before });
        }
        let archive = self.archives.entry(shard).or_default();
        if archive.tree.size() == 0 {
            archive.first = end.hash;
        }
        archive.tree.push(end.hash);
        let is_later = header.wall > archive.latest;
        archive.latest = archive.latest.max(header.wall);
        let moment = archive.latest;
        self.ends.insert(at.owner, LogEnd { shard, tail: end });
        self.grown.insert(at.owner);
        if is_later {
            self.row(rows::moment_key(shard, moment), rows::encode_leaf(leaf.leaf));
        }
        let seat = Seat { moment, leaf };
        let lies = Where { seat, hash: end.hash };
        self.row(rows::batch_key(at.owner, at.batch), lies.encode());
        Ok(seat)
    }

    /// Records that a batch has an event of an entity.
    fn note(&mut self, at: LogPosition, entity: EntityId) {
        let stretch = stretch_of(at.batch);
        let (current, entities) = self.noted.entry(at.owner).or_default();
        if *current != stretch {
            *current = stretch;
            entities.clear();
        }
        if entities.insert(entity) {
            self.row(rows::stretch_key(entity, at.owner, stretch), Vec::new());
        }
    }

    /// Takes in an entry of the ledger's log.
    fn enter(&mut self, at: LogPosition, place: u32, entry: &Entry) -> Result<(), AuditError> {
        let expected = self.entry.next();
        if entry.number != expected {
            return Err(AuditError::Entries {
                expected,
                found: entry.number,
                at,
            });
        }
        self.entry = entry.number;
        let LogPosition { owner, batch } = at;
        self.row(
            rows::entry_key(entry.number),
            EntryPosition { owner, batch, place }.encode(),
        );
        for about in concerns(entry) {
            self.row(rows::about_key(about, entry.number), Vec::new());
        }
        if let Some(trade) = recent::trade_of(entry) {
            self.row(rows::traded_key(entry.number), rows::encode_trade(trade));
        }
        Ok(())
    }

    fn row(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len();
        self.rows.push((key, value));
    }
}

/// Keys of an event about a life or a client's arrival.
fn of_lives(event: &Event, seat: Seat, place: u32) -> Vec<Vec<u8>> {
    let began = |database| rows::life_key(database, seat, place);
    match (&event.body, event.subject) {
        (Body::Admitted { session, person, .. }, _) => {
            let mut keys = vec![rows::session_key(*session, seat, place)];
            if *person != DatabaseId(0) {
                keys.push(began(*person));
                keys.push(rows::admission_key(*person, seat, place));
            }
            keys
        }
        (Body::BaseCreated(creation), _) if creation.database != DatabaseId(0) => vec![began(creation.database)],
        (Body::Stored { database }, _) => vec![began(*database)],
        (Body::Destroyed, Subject::Entity(entity, Part::Base)) => vec![rows::end_key(entity, seat, place)],
        _ => Vec::new(),
    }
}

/// The stretch of its log that contains a batch.
pub(crate) fn stretch_of(batch: BatchNumber) -> u64 {
    batch.0 / STRETCH
}
