//! Takes in an archive, batch by batch in the order of its leaves: verifies it and produces the rows of the index.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Batch, Body, Event, Header, Subject, Tail, Thinned, ledger::Entry};
use annals_evidence::concerns;
use annals_ids::{
    BatchNumber, DatabaseId, EntityId, EntryNumber, Hash, LeafIndex, LogPosition, OwnerId, Part, WallTime,
};
use annals_proof::Frontier;
use annals_store::{ArchivedBatch, StoreError};

use crate::{
    answer::AuditError,
    recent,
    rows::{self, EntryPosition, Reached, STRETCH, Where},
};

/// Verifies leaves and collects rows until they are written.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    tree: Frontier,
    /// The hash of the first batch.
    first: Hash,
    entry: EntryNumber,
    latest: WallTime,
    tails: BTreeMap<OwnerId, Tail>,
    /// Logs with events that are never deleted.
    lasting: BTreeSet<OwnerId>,
    /// Logs that have grown since the rows were last taken.
    grown: BTreeSet<OwnerId>,
    /// Per log: its current stretch, and the entities already recorded for it.
    noted: BTreeMap<OwnerId, (u64, BTreeSet<EntityId>)>,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

impl Intake {
    /// Continues from the state of an index.
    pub(crate) fn resume(
        reached: &Reached,
        tails: BTreeMap<OwnerId, Tail>,
        lasting: BTreeSet<OwnerId>,
    ) -> Result<Self, StoreError> {
        let tree = Frontier::resume(reached.leaves, reached.peaks.clone()).ok_or_else(rows::damaged)?;
        Ok(Self {
            tree,
            first: reached.first,
            entry: reached.entry,
            latest: reached.latest,
            tails,
            lasting,
            grown: BTreeSet::new(),
            noted: BTreeMap::new(),
            rows: Vec::new(),
            bytes: 0,
        })
    }

    /// Number of leaves taken in.
    pub(crate) fn leaves(&self) -> u64 {
        self.tree.size()
    }

    /// The tree over those leaves.
    pub(crate) fn tree(&self) -> &Frontier {
        &self.tree
    }

    /// The end of each log.
    pub(crate) fn tails(&self) -> &BTreeMap<OwnerId, Tail> {
        &self.tails
    }

    /// The current progress.
    pub(crate) fn reached(&self) -> Reached {
        Reached {
            first: self.first,
            entry: self.entry,
            latest: self.latest,
            leaves: self.tree.size(),
            peaks: self.tree.peaks().to_vec(),
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
            if let Some(tail) = self.tails.get(&owner) {
                rows.push((rows::tail_key(owner), rows::encode_tail(tail)));
            }
        }
        rows.push((rows::reached_key(), self.reached().encode()));
        rows
    }

    /// Takes in the next leaf, which must be the batch `expected`. It may lack its events only if it `is_below` a
    /// floor.
    pub(crate) fn take(
        &mut self,
        expected: LogPosition,
        archived: &ArchivedBatch,
        is_below: bool,
    ) -> Result<(), AuditError> {
        let leaf = LeafIndex(self.tree.size());
        let changed = |what: String| AuditError::Changed {
            leaf,
            at: expected,
            what,
        };
        let malformed = |error: annals_event::Malformed| changed(error.to_string());
        let batch = match archived {
            ArchivedBatch::Whole(bytes) => {
                let batch = Batch::read(bytes).map_err(malformed)?;
                self.follow(leaf, expected, &batch.header, batch.tail())?;
                Some(batch)
            }
            // Retention deletes no events of bases and the ledger, whatever the store claims now.
            ArchivedBatch::Thinned(_) if !is_below || self.lasting.contains(&expected.owner) => {
                return Err(changed(
                    "its events are missing, and retention cannot have deleted them".to_owned(),
                ));
            }
            ArchivedBatch::Thinned(bytes) => {
                let thinned = Thinned::read(bytes).map_err(malformed)?;
                self.follow(leaf, expected, &thinned.header, thinned.tail())?;
                None
            }
        };
        for (place, event) in batch.iter().flat_map(|batch| (0_u32..).zip(&batch.events)) {
            if let Subject::Entity(entity, _) = event.subject {
                self.note(expected, entity);
            }
            let lasts =
                matches!(event.subject, Subject::Entity(_, Part::Base)) || matches!(event.body, Body::Entered { .. });
            if lasts && self.lasting.insert(expected.owner) {
                self.row(rows::lasting_key(expected.owner), Vec::new());
            }
            match &event.body {
                Body::Entered { entry: Some(entry), .. } => self.enter(expected, place, entry)?,
                _ => {
                    for key in of_lives(event, leaf, place) {
                        self.row(key, rows::encode_position(expected));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that the batch with this header is the expected one and the next of its log, which then ends at `end`.
    fn follow(&mut self, leaf: LeafIndex, at: LogPosition, header: &Header, end: Tail) -> Result<(), AuditError> {
        if (header.owner, header.number) != (at.owner, at.batch) {
            let what = format!("batch {}@{} is in its place", header.owner, header.number);
            return Err(AuditError::Changed { leaf, at, what });
        }
        let before = self.tails.get(&at.owner).copied().unwrap_or_default();
        let follows = at.batch == before.batch.next()
            && header.previous == before.hash
            && header.first_event == before.event.next();
        if !follows {
            let before = before.batch;
            return Err(AuditError::Unchained { leaf, at, before });
        }
        if self.tree.size() == 0 {
            self.first = end.hash;
        }
        self.tree.push(end.hash);
        self.tails.insert(at.owner, end);
        self.grown.insert(at.owner);
        if header.wall > self.latest {
            self.latest = header.wall;
            self.row(rows::moment_key(header.wall), rows::encode_leaf(leaf));
        }
        let lies = Where { leaf, hash: end.hash };
        self.row(rows::batch_key(at.owner, at.batch), lies.encode());
        Ok(())
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
fn of_lives(event: &Event, leaf: LeafIndex, place: u32) -> Vec<Vec<u8>> {
    let began = |database| rows::life_key(database, leaf, place);
    match (&event.body, event.subject) {
        (Body::Admitted { session, person, .. }, _) => {
            let mut keys = vec![rows::session_key(*session, leaf, place)];
            if *person != DatabaseId(0) {
                keys.push(began(*person));
                keys.push(rows::admission_key(*person, leaf, place));
            }
            keys
        }
        (Body::BaseCreated(creation), _) if creation.database != DatabaseId(0) => vec![began(creation.database)],
        (Body::Stored { database }, _) => vec![began(*database)],
        (Body::Destroyed, Subject::Entity(entity, Part::Base)) => vec![rows::end_key(entity, leaf, place)],
        _ => Vec::new(),
    }
}

/// The stretch of its log that contains a batch.
pub(crate) fn stretch_of(batch: BatchNumber) -> u64 {
    batch.0 / STRETCH
}
