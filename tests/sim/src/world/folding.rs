//! db: the stream into the store.

use std::{collections::BTreeMap, sync::Arc};

use annals_db::{Alarm, Folder};
use annals_event::Header;
use annals_ids::{BatchNumber, OwnerId};
use annals_node::writer::{self, Tip};
use annals_store::immediate;

use super::{
    Step, World,
    hosting::{Hold, SHARD},
};
use crate::stream::Lane;

/// Between two looks at the stream, microseconds.
const LOOK: u64 = 20_000;

/// A db that runs.
pub struct Folding {
    folder: Folder,
    /// The sequence that is read next.
    position: u64,
    /// Where batches lie that are not trimmed yet.
    sequences: BTreeMap<OwnerId, BTreeMap<BatchNumber, u64>>,
    looks: u64,
}

impl World {
    pub(super) fn start_db(&mut self) {
        let begun = Folder::begin(self.store.clone(), SHARD, Arc::clone(&self.schema));
        let folder = immediate(begun).expect("the simulated store answers");
        self.db = Some(Folding {
            folder,
            position: 1,
            sequences: BTreeMap::new(),
            looks: 0,
        });
        self.after(0, Step::Fold);
    }

    pub(super) fn fold(&mut self) {
        let Some(mut db) = self.db.take() else { return };
        if self.stream.end() + 1 < db.position {
            // The stream has lost its tail: sequences are given out again.
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
        while db.folder.has_work() {
            let folded = immediate(db.folder.commit()).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
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
                if db.looks.is_multiple_of(16) {
                    self.trim(&mut db, owner, cursor.batch);
                }
            }
        }
        db.looks += 1;
        if db.looks.is_multiple_of(10) {
            self.ask_for_missing(&db);
        }
        self.db = Some(db);
        self.after(LOOK, Step::Fold);
    }

    fn trim(&mut self, db: &mut Folding, owner: OwnerId, batch: BatchNumber) {
        if let Some(keep) = db.sequences.get(&owner).and_then(|sequences| sequences.get(&batch)) {
            self.stream.trim(owner, *keep);
        }
    }

    /// Rule F4: whoever keeps what is missing publishes it again.
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
        let live = self.processes.values().filter(|host| host.paused.is_none());
        live.filter_map(|host| host.owners.get(&owner))
            .map(|held| held.hold)
            .collect()
    }

    /// Nothing that the simulated faults do is beyond the protocol: an alarm is a defect.
    fn judge_alarm(&self, alarm: &Alarm) {
        panic!("seed {}: db raised an alarm that no fault explains: {alarm}", self.seed);
    }
}
