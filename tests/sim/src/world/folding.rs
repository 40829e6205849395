//! db: folds the stream into the store.

use std::{collections::BTreeMap, sync::Arc};

use annals_db::{Alarm, FoldError, Folded, Folder};
use annals_event::Header;
use annals_ids::{BatchNumber, OwnerId};
use annals_node::writer::{self, Tip};
use annals_store::immediate;

use super::{
    Step, World,
    hosting::{Hold, SHARD},
    retaining::Retaining,
};
use crate::stream::Lane;

/// Delay before db restarts after a failure, microseconds.
const BEGIN_AGAIN: u64 = 400_000;

/// Reads between two requests for missing batches.
const ASK_EVERY: u64 = 10;

/// A running db.
pub struct Folding {
    folder: Folder,
    /// The next sequence to read.
    position: u64,
    /// Sequences of batches that are not yet trimmed.
    sequences: BTreeMap<OwnerId, BTreeMap<BatchNumber, u64>>,
    looks: u64,
    retaining: Retaining,
}

impl World {
    pub(super) fn start_db(&mut self) {
        if self.db.is_some() {
            return;
        }
        let begun = Folder::begin(self.store.clone(), SHARD, Arc::clone(&self.schema));
        let Ok(folder) = immediate(begun) else {
            self.after(BEGIN_AGAIN, Step::StartDb);
            return;
        };
        self.db = Some(Folding {
            retaining: Retaining::of(&folder),
            folder,
            position: 1,
            sequences: BTreeMap::new(),
            looks: 0,
        });
        self.after(0, Step::Fold);
    }

    /// Resumes a paused db. Once another db has begun, its writes have no effect.
    pub(super) fn resume_db(&mut self) {
        let Some(mut stopped) = self.stopped_db.take() else {
            return;
        };
        if self.db.is_none() {
            self.db = Some(stopped);
            self.after(0, Step::Fold);
            return;
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

    pub(super) fn fold(&mut self) {
        let Some(mut db) = self.db.take() else { return };
        self.read_stream(&mut db);
        while db.folder.has_work() {
            match immediate(db.folder.commit()) {
                Ok(folded) => self.announce_folded(&mut db, folded),
                Err(error) => {
                    let is_superseded = matches!(error, FoldError::Superseded { .. });
                    assert!(is_superseded || self.is_store_troubled(), "db cannot fold: {error}");
                    self.note(format_args!("db restarts: {error}"));
                    self.after(BEGIN_AGAIN, Step::StartDb);
                    return;
                }
            }
        }
        db.looks += 1;
        if db.looks.is_multiple_of(ASK_EVERY) && self.plan.fills {
            self.ask_for_missing(&db);
        }
        self.retain(&mut db.retaining);
        self.db = Some(db);
        self.after(self.plan.shape.look_us, Step::Fold);
    }

    fn read_stream(&self, db: &mut Folding) {
        if self.now < self.log_away {
            return;
        }
        if self.stream.end() + 1 < db.position {
            // The stream has lost its tail: sequences are assigned again.
            db.position = 1;
        }
        while let Some((sequence, message)) = self.stream.next(db.position) {
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
            self.stream.trim(owner, *keep);
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
                    self.stream.fill(hole.owner, bytes);
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
