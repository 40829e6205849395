//! One log during its verification.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use annals_db::{Kind, Migrations, RecoveryError, read_floor, read_horizon, read_position, recover};
use annals_event::{Batch, Header, OwnerState, Reader, Subject, Tail, Thinned, latest::event::Event};
use annals_host::log_source::{Source, read_openings};
use annals_ids::{BatchNumber, Epoch, EventNumber, Hash, LogPosition, OwnerId, Shard};
use annals_store::{
    Store, StoreError,
    layout::{
        owners::{OpeningRecord, OwnerRecord},
        snapshots::Position,
    },
};

use crate::archive::{LogWalk, Step, of_recovery};

use super::{
    VerifyError,
    report::{Finding, OpeningFault, OwnerReport, VerifyReport},
};

/// A log, up to where it was verified.
#[derive(Clone)]
pub(super) struct Log {
    pub(super) owner: OwnerId,
    pub(super) shard: Shard,
    pub(super) walk: LogWalk,
    /// The state of the owner's holder, and its batch.
    held: Option<(BatchNumber, Hash)>,
    /// The state at a checkpoint, and its batch.
    expected: Option<(BatchNumber, Hash)>,
    store: Store,
    migrations: Arc<Migrations>,
    openings: BTreeMap<Epoch, OpeningRecord>,
    opened: BTreeSet<Epoch>,
    epoch: Epoch,
    /// The last intact batch.
    end: Tail,
    /// The last batch, intact or not.
    reached: BatchNumber,
    /// The state to which it replays; `None` once a fault prevents that.
    state: Option<OwnerState>,
    /// The state that recovery gave at the cursor, or its error.
    recovered: Result<(BatchNumber, Hash), String>,
    /// The snapshot from which recovery began.
    snapshot: Option<Position>,
    /// Its state at the retention horizon, if there is one.
    floor: Option<OwnerState>,
    /// Whether a batch of it was faulty.
    faulty: bool,
    summary: OwnerReport,
}

impl Log {
    /// A log of which nothing was read.
    pub(super) async fn begin(
        source: &Source,
        owner: OwnerId,
        record: &OwnerRecord,
        expected: Option<(BatchNumber, Hash)>,
    ) -> Result<Self, StoreError> {
        let store = source.store.clone();
        let nothing = OwnerState::new(owner, record.kind);
        let shard = record.shard;
        let horizon = read_horizon(&store, shard).await?;
        let floor = read_floor(&store, shard, owner, BatchNumber(0)).await;
        let floor = floor.map_err(of_recovery)?;
        Ok(Self {
            owner,
            shard,
            walk: LogWalk::begin(&store, record.shard, owner).await?,
            held: None,
            expected,
            openings: BTreeMap::new(),
            store,
            migrations: Arc::default(),
            opened: BTreeSet::new(),
            epoch: Epoch(0),
            end: Tail::default(),
            reached: BatchNumber(0),
            recovered: Ok((BatchNumber(0), nothing.hash())),
            snapshot: None,
            floor,
            state: Some(nothing),
            faulty: false,
            summary: OwnerReport {
                kind: record.kind,
                batches: 0,
                events: 0,
                bytes: 0,
                beyond: 0,
                epochs: 0,
                accepted: Vec::new(),
                state: None,
                compared: false,
                deleted: None,
                horizon: horizon.map(|horizon| horizon.wall),
            },
        })
    }

    /// Reads again from the store: the archived end of the log, its openings, and the recovered state, if recovery
    /// would begin from another snapshot than before.
    pub(super) async fn go_on(
        &mut self,
        record: &OwnerRecord,
        migrations: Arc<Migrations>,
        report: &mut VerifyReport,
    ) -> Result<(), VerifyError> {
        let snapshot = match read_position(&self.store, self.owner).await {
            Ok(snapshot) => snapshot,
            // Recovery cannot read it either, and reports that.
            Err(StoreError::Corrupt(_)) => None,
            Err(other) => return Err(other.into()),
        };
        // From a snapshot that was compared before, recovery would only read what is read anyway.
        if snapshot.is_none() || snapshot != self.snapshot {
            let recovered = recover(&self.store, record.shard, self.owner, record.kind).await;
            self.recovered = match recovered {
                Ok(recovered) => Ok((recovered.cursor.batch, recovered.state.hash())),
                Err(RecoveryError::Store { source, .. }) if !matches!(source, StoreError::Corrupt(_)) => {
                    return Err(source.into());
                }
                Err(error) => Err(error.to_string()),
            };
            self.snapshot = snapshot;
        }
        self.migrations = migrations;
        self.walk.extend().await?;
        self.openings = openings(&self.store, self.owner).await?;
        // Nothing may have been added since the last look.
        self.compare_recovered(report);
        Ok(())
    }

    /// Takes the state of the owner's holder, and its batch.
    pub(super) fn hold(&mut self, held: Option<(BatchNumber, Hash)>, report: &mut VerifyReport) {
        self.held = held;
        self.summary.compared = false;
        self.compare_held(report);
    }

    /// The last batch, and the state to which the log replays there.
    pub(super) fn state(&self) -> Option<(BatchNumber, Hash)> {
        self.state.as_ref().map(|state| (state.tail.batch, state.hash()))
    }

    /// The last batch that was read.
    pub(super) fn reached(&self) -> BatchNumber {
        self.reached
    }

    /// Takes the next batch of the archive, if it is present.
    pub(super) async fn take_archived(&mut self, step: &Step, report: &mut VerifyReport) -> Result<(), StoreError> {
        if let Some(fault) = &step.fault {
            self.faulty = true;
            self.state = None;
            report.find(Finding::Batch {
                at: self.at(step.number),
                fault: fault.clone(),
                subjects: if step.batch.is_none() {
                    salvage(&step.bytes)
                } else {
                    Vec::new()
                },
            });
        }
        if let Some(batch) = &step.batch {
            self.summary.batches += 1;
            self.summary.events += batch.events.len() as u64;
            self.summary.bytes += step.bytes.len() as u64;
            self.take(batch, report).await?;
        }
        if let Some(thinned) = &step.deleted {
            self.summary.batches += 1;
            self.summary.events += u64::from(thinned.header.events);
            self.summary.bytes += step.bytes.len() as u64;
            self.take_thinned(thinned, report).await?;
        }
        self.reached = step.number;
        Ok(())
    }

    /// The state from which the log continues, if it is at this batch and what lies before it was deleted by retention.
    pub(super) fn floor_at(&self, batch: BatchNumber) -> Option<&OwnerState> {
        let goes_on = |floor: &&OwnerState| Kind::of(floor.kind) == Kind::Passing && floor.tail.batch == batch;
        self.floor.as_ref().filter(goes_on)
    }

    /// Takes a batch whose events were deleted by retention: at its floor the log continues.
    async fn take_thinned(&mut self, batch: &Thinned, report: &mut VerifyReport) -> Result<(), StoreError> {
        self.pass(&batch.header, batch.tail(), report).await?;
        let number = batch.header.number;
        self.summary.deleted = Some(number);
        let Some(floor) = self.floor_at(number) else {
            return Ok(());
        };
        if floor.tail == batch.tail() {
            self.state = Some(floor.clone());
            self.compare(number, report);
        } else {
            let at = self.at(number);
            report.find(Finding::Floor { at });
        }
        Ok(())
    }

    /// Takes the next batch beyond the archive.
    pub(super) async fn take_beyond(&mut self, batch: &Batch, report: &mut VerifyReport) -> Result<(), StoreError> {
        self.summary.beyond += 1;
        self.take(batch, report).await?;
        self.reached = batch.header.number;
        Ok(())
    }

    /// Ends the archived part: the cursor must be there.
    pub(super) fn end_archive(&mut self, report: &mut VerifyReport) {
        let cursor = self.walk.cursor();
        let Some(tail) = self.walk.tail().filter(|tail| tail.batch == cursor.batch) else {
            if self.end.batch < cursor.batch {
                self.lose(cursor.batch, cursor.event, report);
                self.epoch = cursor.epoch;
                self.end = Tail {
                    batch: cursor.batch,
                    hash: cursor.hash,
                    event: cursor.event,
                };
            }
            return;
        };
        if (tail.hash, tail.event, self.epoch) != (cursor.hash, cursor.event, cursor.epoch) {
            report.find(Finding::Cursor {
                at: self.at(cursor.batch),
            });
        }
    }

    /// Everything was read: compares what is left.
    pub(super) async fn finish(mut self, store: &Store, report: &mut VerifyReport) -> Result<OwnerReport, StoreError> {
        self.openings = openings(store, self.owner).await?;
        let closing = |opening: &&OpeningRecord| opening.closes_a_hole();
        self.summary.accepted = self
            .openings
            .values()
            .filter(closing)
            .map(|opening| opening.number)
            .collect();
        let absent = |opening: &&OpeningRecord| {
            opening.number <= self.end.batch && !self.opened.contains(&opening.epoch) && !opening.closes_a_hole()
        };
        for opening in self.openings.values().filter(absent).filter(|_| !self.faulty) {
            report.find(Finding::Opening {
                at: self.at(opening.number),
                epoch: opening.epoch,
                fault: OpeningFault::Absent,
            });
        }
        if let Err(why) = &self.recovered
            && !self.faulty
        {
            let (owner, why) = (self.owner, why.clone());
            report.find(Finding::Unrecoverable { owner, why });
        }
        if let Some((batch, _)) = self.expected
            && self.end.batch < batch
        {
            let at = self.at(batch);
            report.find(Finding::Otherwise { at });
        }
        self.summary.epochs = self.opened.len() as u64;
        self.summary.state = self.state();
        Ok(self.summary)
    }

    async fn take(&mut self, batch: &Batch, report: &mut VerifyReport) -> Result<(), StoreError> {
        let number = batch.header.number;
        self.pass(&batch.header, batch.tail(), report).await?;
        let at = self.at(number);
        let Some(state) = &mut self.state else { return Ok(()) };
        if let Err(why) = self.migrations.fold(state, batch) {
            self.state = None;
            self.faulty = true;
            report.find(Finding::Impossible { at, why });
            return Ok(());
        }
        self.compare(number, report);
        Ok(())
    }

    /// Takes the header of a batch.
    async fn pass(&mut self, header: &Header, tail: Tail, report: &mut VerifyReport) -> Result<(), StoreError> {
        let is_gap = header.number > self.end.batch.next();
        if is_gap {
            let before = BatchNumber(header.number.0.saturating_sub(1));
            self.lose(before, EventNumber(header.first_event.0.saturating_sub(1)), report);
        }
        self.check_opening(header, tail.hash, is_gap, report).await?;
        self.epoch = header.epoch;
        self.end = tail;
        Ok(())
    }

    /// Compares the state after a batch with the other records of it.
    fn compare(&mut self, number: BatchNumber, report: &mut VerifyReport) {
        let at = self.at(number);
        let Some(state) = &self.state else { return };
        let differs = |floor: &OwnerState| floor.tail.batch == number && floor.hash() != state.hash();
        if self.floor.as_ref().is_some_and(differs) {
            report.find(Finding::Floor { at });
        }
        if let Some((batch, hash)) = self.expected
            && batch == number
            && hash != state.hash()
        {
            report.find(Finding::Otherwise { at });
        }
        self.compare_recovered(report);
        self.compare_held(report);
    }

    fn compare_recovered(&self, report: &mut VerifyReport) {
        if let (Some(state), Ok((recovered, hash))) = (&self.state, &self.recovered)
            && *recovered == state.tail.batch
            && *hash != state.hash()
        {
            let at = self.at(*recovered);
            report.find(Finding::Snapshot { at });
        }
    }

    fn compare_held(&mut self, report: &mut VerifyReport) {
        if let (Some(state), Some((held, hash))) = (&self.state, self.held)
            && held == state.tail.batch
        {
            self.summary.compared = true;
            if hash != state.hash() && !self.migrations.leads_from(state, hash) {
                let at = self.at(held);
                report.find(Finding::Holder { at });
            }
        }
    }

    /// Rules E5 and F2: an epoch begins with the batch that the store has as its opening.
    async fn check_opening(
        &mut self,
        header: &Header,
        hash: Hash,
        is_gap: bool,
        report: &mut VerifyReport,
    ) -> Result<(), StoreError> {
        let Header { epoch, number, .. } = *header;
        let fault = if header.opens {
            self.opened.insert(epoch);
            if !self.openings.contains_key(&epoch) {
                // It may have been recorded since they were read.
                self.openings = openings(&self.store, self.owner).await?;
            }
            match self.openings.get(&epoch) {
                None => Some(OpeningFault::Unrecorded),
                Some(opening) if opening.number != number || opening.hash != hash => Some(OpeningFault::Other),
                Some(_) if epoch <= self.epoch => Some(OpeningFault::Unopened),
                Some(_) => None,
            }
        } else {
            let goes_on = epoch == self.epoch || (is_gap && epoch > self.epoch);
            (!goes_on).then_some(OpeningFault::Unopened)
        };
        if let Some(fault) = fault {
            let at = self.at(number);
            report.find(Finding::Opening { at, epoch, fault });
        }
        Ok(())
    }

    /// Reports the events between the last intact batch and the next one present.
    fn lose(&self, last: BatchNumber, last_event: EventNumber, report: &mut VerifyReport) {
        let first = self.end.event.next();
        if first <= last_event {
            report.find(Finding::EventsLost {
                owner: self.owner,
                batches: (self.end.batch.next(), last),
                events: (first, last_event),
            });
        }
    }

    fn at(&self, batch: BatchNumber) -> LogPosition {
        LogPosition {
            owner: self.owner,
            batch,
        }
    }
}

async fn openings(store: &Store, owner: OwnerId) -> Result<BTreeMap<Epoch, OpeningRecord>, StoreError> {
    let records = read_openings(store, owner).await?;
    Ok(records.into_iter().map(|opening| (opening.epoch, opening)).collect())
}

/// The subjects of the events of a damaged batch, as far as they can be decoded, without duplicates.
fn salvage(bytes: &[u8]) -> Vec<Subject> {
    let Ok((header, _)) = Header::read(bytes) else {
        return Vec::new();
    };
    let Some(begin) = bytes.len().checked_sub(header.events_length as usize) else {
        return Vec::new();
    };
    let mut reader = Reader::new(&bytes[begin..]);
    let mut subjects = BTreeSet::new();
    for _ in 0..header.events {
        let Ok(event) = reader.bytes("event") else { break };
        subjects.extend(Event::read(event).map(|event| event.subject));
    }
    subjects.into_iter().collect()
}
