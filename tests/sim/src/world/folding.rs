//! The dbs: each folds the stream of its shard into the store.

use std::{collections::BTreeMap, sync::Arc};

use annals_db::{Alarm, FoldError, Folded, Folder, Round};
use annals_event::Header;
use annals_ids::{BatchNumber, LeafIndex, OwnerId, Shard};
use annals_node::writer::{self, Tip};
use annals_store::{
    immediate,
    layout::{archive, shards},
};

use super::{Step, World, hosting::Hold, retaining::Retaining};
use crate::stream::{Lane, Stream};

/// Delay before db restarts after a failure, microseconds.
const BEGIN_AGAIN: u64 = 400_000;

/// Reads between two requests for missing batches.
const ASK_EVERY: u64 = 10;

/// A running db.
pub struct Folding {
    shard: usize,
    folder: Folder,
    /// The requests of other shards that it has read, and the end of the stream at that moment.
    round: Option<(Round, u64)>,
    /// The next sequence to read.
    position: u64,
    /// Sequences of batches that are not yet trimmed.
    sequences: BTreeMap<OwnerId, BTreeMap<BatchNumber, u64>>,
    looks: u64,
    retaining: Retaining,
}

impl World {
    /// Records the number of shards, as the realm's creation does.
    pub(super) fn set_shards(&mut self) {
        if self.plan.shards > 1 {
            let transaction = self.truth().begin();
            let set = transaction.set(&shards::count_key(), &shards::encode_count(self.plan.shards));
            set.expect("a small row");
            immediate(transaction.commit()).expect("the simulated store answers");
        }
    }

    /// The shard of an owner's log.
    pub(super) fn shard_of(&self, owner: OwnerId) -> Shard {
        self.shards.get(&owner).copied().unwrap_or_default()
    }

    /// The stream of an owner's log.
    pub(super) fn stream_of(&mut self, owner: OwnerId) -> &mut Stream {
        let shard = self.shard_of(owner);
        &mut self.streams[usize::from(shard.0)]
    }

    pub(super) fn start_db(&mut self, shard: usize) {
        if self.dbs[shard].is_some() {
            return;
        }
        let folded = Shard(u16::try_from(shard).expect("few shards"));
        let begun = Folder::begin(self.store.clone(), folded, Arc::clone(&self.schema));
        let Ok(folder) = immediate(begun) else {
            self.after(BEGIN_AGAIN, Step::StartDb { shard });
            return;
        };
        self.dbs[shard] = Some(Folding {
            shard,
            round: None,
            retaining: Retaining::of(&folder),
            folder,
            position: 1,
            sequences: BTreeMap::new(),
            looks: 0,
        });
        self.after(0, Step::Fold { shard });
    }

    /// Resumes a paused db. Once another db has begun, its writes have no effect.
    pub(super) fn resume_db(&mut self, shard: usize) {
        let Some(mut stopped) = self.stopped_dbs[shard].take() else {
            return;
        };
        if self.dbs[shard].is_none() {
            self.dbs[shard] = Some(stopped);
            self.after(0, Step::Fold { shard });
            return;
        }
        if let Some((round, _)) = stopped.round.take()
            && matches!(immediate(stopped.folder.end_round(&round)), Ok(true))
        {
            self.broken.push("a superseded db answered another shard".to_owned());
        }
        self.retain_late(&mut stopped.retaining);
        self.read_stream(&mut stopped);
        while stopped.folder.has_work() {
            match immediate(stopped.folder.commit()) {
                Ok(folded) if folded.cursors.is_empty() => break,
                Ok(_) => self.broken.push("a superseded db continued to fold".to_owned()),
                Err(_) => break,
            }
        }
    }

    pub(super) fn fold(&mut self, shard: usize) {
        let Some(mut db) = self.dbs[shard].take() else { return };
        self.read_stream(&mut db);
        while db.folder.has_work() {
            match immediate(db.folder.commit()) {
                Ok(folded) => self.announce_folded(&mut db, folded),
                Err(error) => {
                    self.restart_db(shard, &error);
                    return;
                }
            }
        }
        if let Err(error) = self.take_round(&mut db) {
            self.restart_db(shard, &error);
            return;
        }
        self.note_archived();
        db.looks += 1;
        if db.looks.is_multiple_of(ASK_EVERY) && self.plan.fills {
            self.ask_for_missing(&db);
        }
        self.retain(&mut db.retaining);
        self.dbs[shard] = Some(db);
        self.after(self.plan.shape.look_us, Step::Fold { shard });
    }

    fn restart_db(&mut self, shard: usize, error: &FoldError) {
        let is_superseded = matches!(error, FoldError::Superseded { .. });
        assert!(is_superseded || self.is_store_troubled(), "db cannot fold: {error}");
        self.note_archived();
        self.note(format_args!("the db of shard {shard} restarts: {error}"));
        self.after(BEGIN_AGAIN, Step::StartDb { shard });
    }

    /// Answers what other shards have asked, once the stream is folded up to its end of that moment (rule T3).
    fn take_round(&mut self, db: &mut Folding) -> Result<(), FoldError> {
        if self.plan.shards == 1 {
            return Ok(());
        }
        match &db.round {
            None => {
                let end = self.streams[db.shard].end();
                db.round = immediate(db.folder.begin_round())
                    .ok()
                    .flatten()
                    .map(|round| (round, end));
            }
            Some((round, end)) if db.position > (*end).min(self.streams[db.shard].end()) => {
                let (round, _) = (round.clone(), db.round = None);
                immediate(db.folder.end_round(&round))?;
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Notes which leaves have been archived since the last time.
    fn note_archived(&mut self) {
        let transaction = self.truth().begin();
        for shard in shards::all(self.plan.shards) {
            let tree = immediate(transaction.get(&archive::tree_key(shard))).expect("the simulated store answers");
            let size = archive::Tree::decode(tree.as_deref()).expect("db wrote it").size;
            let seen = self.archived_of.insert(shard, size).unwrap_or(0);
            self.archived.extend((seen..size).map(|leaf| (shard, LeafIndex(leaf))));
        }
    }

    fn read_stream(&self, db: &mut Folding) {
        if self.now < self.log_away {
            return;
        }
        if self.streams[db.shard].end() + 1 < db.position {
            // The stream has lost its tail: sequences are assigned again.
            db.position = 1;
        }
        while let Some((sequence, message)) = self.streams[db.shard].next(db.position) {
            db.position = sequence + 1;
            if let (Lane::Log, Ok((header, _))) = (message.lane, Header::read(&message.bytes)) {
                db.sequences
                    .entry(message.owner)
                    .or_default()
                    .insert(header.number, sequence);
            }
            db.folder.offer(message.owner, message.bytes.clone());
        }
    }

    fn announce_folded(&mut self, db: &mut Folding, folded: Folded) {
        for alarm in folded.alarms {
            self.judge_alarm(&alarm);
        }
        for (owner, cursor) in folded.cursors {
            let tip = Tip {
                number: cursor.batch,
                hash: cursor.hash,
            };
            for hold in self.holds_of(owner) {
                let input = writer::Input::Archived {
                    upto: tip,
                    epoch: cursor.epoch,
                };
                let delay = self.between(100, 2_000);
                self.after(delay, Step::Announce { hold, input });
            }
            if db.looks.is_multiple_of(self.plan.shape.trim_every) {
                self.trim(db, owner, cursor.batch);
            }
        }
    }

    fn trim(&mut self, db: &mut Folding, owner: OwnerId, batch: BatchNumber) {
        if let Some(keep) = db.sequences.get(&owner).and_then(|sequences| sequences.get(&batch)) {
            self.streams[db.shard].trim(owner, *keep);
        }
    }

    /// Rule F4: a process that keeps the missing batches publishes them again.
    fn ask_for_missing(&mut self, db: &Folding) {
        let missing: Vec<_> = db.folder.missing().collect();
        for hole in missing {
            for hold in self.holds_of(hole.owner) {
                let found: Vec<Vec<u8>> = match self.held(hold).and_then(|held| held.core.as_ref()) {
                    Some(core) => (hole.first.0..hole.until.0)
                        .filter_map(|number| core.writer().kept(BatchNumber(number)).map(|batch| batch.bytes.clone()))
                        .collect(),
                    None => continue,
                };
                for bytes in found {
                    self.streams[db.shard].fill(hole.owner, bytes);
                }
            }
        }
    }

    fn holds_of(&self, owner: OwnerId) -> Vec<Hold> {
        let live = self.processes.values();
        let live = live.filter(|host| host.paused.is_none() && !host.cut.log);
        live.filter_map(|host| host.owners.get(&owner))
            .map(|held| held.hold)
            .collect()
    }

    /// The simulated faults stay within the protocol, so an alarm is a defect.
    fn judge_alarm(&self, alarm: &Alarm) {
        panic!("seed {}: db raised an unexplained alarm: {alarm}", self.seed);
    }
}
