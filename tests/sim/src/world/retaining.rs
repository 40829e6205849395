//! db seals the archive, and deletes batches of cells after a while. Deleted batches are kept here for the checkers: a
//! realm with retention keeps every promise of one without.

use annals_db::{FoldError, Retention, RetentionPace, RetentionProgress, Sealer, read_archived};
use annals_ids::{BatchNumber, OwnerId, WallTime};
use annals_store::{ArchivedBatch, StoreError, immediate};

use super::{BEGAN, World};

/// Leaves of a segment: few, so that many are sealed in a run.
const LEAVES: usize = 40;

/// Interval between rounds, microseconds.
const ROUND: u64 = 700_000;

/// Maximum turns of a round; the rest may be cut off by a crash.
const TURNS: u64 = 12;

/// State of db's sealing and retention.
pub(super) struct Retaining {
    sealer: Sealer,
    retention: Retention,
    next: u64,
}

impl Retaining {
    pub(super) fn of(folder: &annals_db::Folder) -> Self {
        Self {
            sealer: folder.sealer().of_leaves(LEAVES),
            retention: folder.retention(RetentionPace::Eager),
            next: 0,
        }
    }
}

impl World {
    /// Runs a round of sealing and retention, if one is due in this realm.
    pub(super) fn retain(&mut self, retaining: &mut Retaining) {
        let Some(age_ms) = self.plan.lets_go_ms.filter(|_| self.now >= retaining.next) else {
            return;
        };
        retaining.next = self.now + ROUND;
        while let Ok(Some(_)) = immediate(retaining.sealer.seal_next()) {}
        self.remember();
        let older_than = WallTime(BEGAN.0 + (self.now / 1_000).saturating_sub(age_ms));
        for _ in 0..self.between(0, TURNS) {
            match immediate(retaining.retention.turn(older_than)) {
                Ok(RetentionProgress::Idle) => return,
                Ok(RetentionProgress::Thinned { bytes, .. }) => self.deleted += bytes,
                Ok(RetentionProgress::Folding | RetentionProgress::Moved(_)) => {}
                Err(FoldError::Store(StoreError::Corrupt(what))) => {
                    self.broken
                        .push(format!("the batches to delete cannot be read: {what}"));
                    return;
                }
                // The store is in trouble, or another db folds.
                Err(_) => return,
            }
        }
    }

    /// A db that was succeeded tries to continue.
    pub(super) fn retain_late(&mut self, retaining: &mut Retaining) {
        if self.plan.lets_go_ms.is_none() {
            return;
        }
        for _ in 0..TURNS {
            match immediate(retaining.retention.turn(WallTime(u64::MAX))) {
                Ok(RetentionProgress::Moved(_) | RetentionProgress::Thinned { .. }) => {
                    self.broken.push("a superseded db continued to delete".to_owned());
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// Keeps newly archived batches, before any of them is deleted.
    fn remember(&mut self) {
        let store = self.truth();
        let owners = immediate(annals_director::read_owners(&store)).expect("the simulated store answers");
        for (owner, record) in owners {
            let log = self.remembered.entry(owner).or_default();
            loop {
                let after = BatchNumber(log.len() as u64);
                let read = immediate(read_archived(&store, record.shard, owner, after, usize::MAX));
                let batches = read.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
                if batches.is_empty() {
                    break;
                }
                let whole = batches.into_iter().map(|(_, archived)| archived.whole());
                log.extend(whole.map(|bytes| bytes.expect("an event is recorded before it is deleted")));
            }
        }
    }

    /// A batch as it was archived, given what the store still has of it.
    pub(crate) fn as_archived(&self, owner: OwnerId, number: BatchNumber, archived: ArchivedBatch) -> Vec<u8> {
        match archived {
            ArchivedBatch::Whole(bytes) => bytes,
            ArchivedBatch::Thinned(_) => {
                let place = usize::try_from(number.0 - 1).expect("few batches");
                self.remembered[&owner][place].clone()
            }
        }
    }
}
