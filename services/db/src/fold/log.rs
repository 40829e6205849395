//! One log as db folds it.

use std::sync::Arc;

use annals_event::{Event, Impossible, OwnerState};
use annals_ids::{BatchNumber, OwnerId, Shard};
use annals_node::{
    chain::{Candidates, ChainEnd, Claim, Step},
    writer::{KEPT_CEILING, Opening, Tip},
};
use annals_store::{
    KeyRange, ScanOrder, Store, StoreError, Transaction,
    layout::{
        archive,
        owners::{self, Cursor, OpeningRecord, OwnerRecord},
    },
};

use super::{Alarm, FoldError, Missing, ReceivedBatch, snapshot::Snapshots};
use crate::migrations::Migrations;
use crate::recovery::{Recovered, RecoveryError, read_cursor, read_position, recover};

/// Bytes of batches that may wait behind a hole: all that the log's writer keeps, so the writer stops before they are
/// exceeded. Beyond that the newest are dropped; they return as holes.
const WAITING_BYTES: usize = KEPT_CEILING;

/// Whether the log's state is in memory.
enum Held {
    /// Not in memory, until it is needed.
    Nothing,
    /// In memory, at the cursor.
    State(Box<OwnerState>),
    /// The log is being restored and ends below its floor, which has this state: batches before the floor have no
    /// events any more (rule F14).
    Below(Box<OwnerState>),
    /// An alarm was raised that prevents further folding. The log stays as it is.
    Halted,
}

/// A log and its folded state, with the batches that wait and the undo information of the transaction in progress.
pub(super) struct Log {
    held: Held,
    cursor: Cursor,
    /// The owner's record as the current transaction has read it.
    record: Option<OwnerRecord>,
    openings: Vec<Opening>,
    candidates: Candidates<Arc<ReceivedBatch>>,
    /// The log before the current transaction.
    before: Option<Before>,
    pub(super) snapshots: Snapshots,
    /// First batch of the hole that the store has recorded, of the last one if there are several: a hole that is filled
    /// from its front may be recorded again.
    named: Option<BatchNumber>,
    moved: bool,
    /// Whether the current transaction halted the log.
    halting: bool,
}

/// A log before a transaction.
struct Before {
    candidates: Candidates<Arc<ReceivedBatch>>,
    /// Its state, if it was kept: otherwise it is read from the store again when the transaction is undone.
    state: Option<Position>,
}

/// The state of a log at its cursor.
struct Position {
    state: Box<OwnerState>,
    cursor: Cursor,
    snapshots: Snapshots,
    named: Option<BatchNumber>,
}

impl Log {
    pub(super) fn new() -> Self {
        Self {
            held: Held::Nothing,
            cursor: Cursor::default(),
            record: None,
            openings: Vec::new(),
            candidates: Candidates::default(),
            before: None,
            snapshots: Snapshots::default(),
            named: None,
            moved: false,
            halting: false,
        }
    }

    pub(super) fn state(&self) -> Option<&OwnerState> {
        match &self.held {
            Held::State(state) => Some(state),
            Held::Nothing | Held::Below(_) | Held::Halted => None,
        }
    }

    pub(super) fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Whether the log's position is known, so that it can advance.
    fn goes_on(&self) -> bool {
        matches!(self.held, Held::State(_) | Held::Below(_))
    }

    /// Reads the log's state if it is not in memory. Raises an alarm and halts the log if the state cannot be rebuilt.
    pub(super) async fn load(
        &mut self,
        store: &Store,
        shard: Shard,
        owner: OwnerId,
    ) -> Result<Option<Alarm>, FoldError> {
        if !matches!(self.held, Held::Nothing) {
            return Ok(None);
        }
        let record = store.read(|transaction| async move { read_record(&transaction, shard, owner).await });
        let Some(record) = record.await? else { return Ok(None) };
        let newest = read_position(store, owner).await?;
        match recover(store, shard, owner, record.kind).await {
            Ok(Recovered { state, cursor }) => {
                self.held = Held::State(Box::new(state));
                self.cursor = cursor;
                self.snapshots = Snapshots::after(newest);
                self.named = read_named(store, owner).await?;
                Ok(None)
            }
            Err(RecoveryError::BelowFloor(floor)) => {
                self.held = Held::Below(floor);
                self.cursor = read_cursor(store, owner).await?;
                Ok(None)
            }
            Err(RecoveryError::Store { source, .. }) => Err(source.into()),
            Err(unreadable) => {
                self.held = Held::Halted;
                Ok(Some(Alarm::Unreadable {
                    owner,
                    why: unreadable.to_string(),
                }))
            }
        }
    }

    /// Joins a transaction: reads what may void the log's batches, and verifies that the state in memory is that of the
    /// store. With `keeps`, the state is copied, so that [`Self::undo`] need not discard it.
    pub(super) async fn enter(
        &mut self,
        transaction: &Transaction,
        (shard, owner): (Shard, OwnerId),
        keeps: bool,
    ) -> Result<(), FoldError> {
        self.before = Some(Before {
            candidates: self.candidates.clone(),
            state: if keeps { self.position() } else { None },
        });
        self.record = read_record(transaction, shard, owner).await?;
        let is_known = self.record.is_some() && !matches!(self.held, Held::Halted);
        if !is_known {
            return Ok(());
        }
        let cursor = Cursor::decode(transaction.get(&owners::cursor_key(owner)).await?.as_deref())?;
        if !self.goes_on() || cursor != self.cursor {
            // The owner was granted since the last lookup, or a transaction of ours was applied but its answer was
            // lost: the state has to be read again.
            self.before = self.before.take().map(|before| Before { state: None, ..before });
            return Err(FoldError::Store(StoreError::Conflict));
        }
        // Openings before the cursor's epoch void nothing beyond the cursor.
        let openings = owners::read_openings(transaction, owner, cursor.epoch).await?;
        self.openings = openings.into_iter().map(opening).collect();
        Ok(())
    }

    /// Confirms the changes: the transaction was applied.
    pub(super) fn keep(&mut self) {
        self.before = None;
        self.halting = false;
    }

    /// Undoes the changes in memory: the transaction was not applied, or its outcome is unknown. The folded state is
    /// restored, if `restores` and there is a copy; otherwise it has to be read again.
    pub(super) fn undo(&mut self, restores: bool) {
        let before = self.before.take();
        let mut kept = None;
        if let Some(Before { candidates, state }) = before {
            self.candidates = candidates;
            kept = state.filter(|_| restores);
        }
        self.moved = false;
        let was_halted = matches!(self.held, Held::Halted) && !std::mem::take(&mut self.halting);
        match kept {
            Some(kept) => {
                self.held = Held::State(kept.state);
                (self.cursor, self.snapshots, self.named) = (kept.cursor, kept.snapshots, kept.named);
            }
            None => {
                self.snapshots = Snapshots::default();
                if !was_halted {
                    self.held = Held::Nothing;
                }
            }
        }
    }

    /// A copy of the state in memory, if there is one.
    fn position(&self) -> Option<Position> {
        let Held::State(state) = &self.held else { return None };
        Some(Position {
            state: state.clone(),
            cursor: self.cursor,
            snapshots: self.snapshots.without_progress(),
            named: self.named,
        })
    }

    /// Stops folding this log until this db process ends.
    pub(super) fn halt(&mut self) {
        self.held = Held::Halted;
        self.halting = true;
    }

    /// Adds a batch of the stream.
    pub(super) fn take(&mut self, found: &Arc<ReceivedBatch>) -> Option<Alarm> {
        let header = &found.batch.header;
        if self.record.is_none_or(|record| record.epoch < header.epoch) {
            let (owner, number) = (found.owner, header.number);
            return Some(Alarm::Ungranted { owner, number });
        }
        if header.number > self.cursor.batch {
            self.candidates
                .insert(Claim::of(header, found.batch.hash), Arc::clone(found));
        }
        while header.number > self.cursor.batch.next() && self.waiting_bytes() > WAITING_BYTES {
            self.candidates.drop_last();
        }
        None
    }

    fn waiting_bytes(&self) -> usize {
        self.candidates.iter().map(|(_, found)| found.bytes.len()).sum()
    }

    /// Returns the batch after the cursor, or why there is none (rules F2, F4 and E5).
    pub(super) fn step(&mut self) -> Step<Arc<ReceivedBatch>> {
        if !self.goes_on() {
            return Step::End;
        }
        let stand = stand(&self.cursor, &self.openings);
        self.candidates.step(&stand)
    }

    /// Whether an `Open` may come next, once it is recorded in the store.
    pub(super) fn awaits_opening(&self) -> bool {
        self.goes_on() && self.candidates.awaits_opening(&stand(&self.cursor, &self.openings))
    }

    pub(super) fn missing(&self, owner: OwnerId) -> Option<Missing> {
        self.goes_on().then_some(())?;
        // Looking consumes the next batch, so it is done on a copy, which is small when nothing is missing.
        let mut candidates = self.candidates.clone();
        match candidates.step(&stand(&self.cursor, &self.openings)) {
            Step::Missing { first, after, behind } => Some(Missing {
                owner,
                first,
                until: behind.number,
                after,
                named: behind.previous,
            }),
            Step::Next(..) | Step::Wrong { .. } | Step::End => None,
        }
    }

    /// Folds the next batch into the state in memory. `before` is called with each event and the state before it.
    pub(super) fn fold(
        &mut self,
        migrations: &Migrations,
        found: &ReceivedBatch,
        before: impl FnMut(&OwnerState, &Event),
    ) -> Result<(), Impossible> {
        let tail = found.batch.tail();
        match &mut self.held {
            Held::State(state) => {
                if migrations.prepare(state, &found.batch)? {
                    self.snapshots.forget();
                }
                state.fold_with(&found.batch, before)?;
            }
            Held::Below(floor) if tail == floor.tail => {
                let floor = std::mem::replace(&mut self.held, Held::Nothing);
                let Held::Below(floor) = floor else {
                    unreachable!("invariant: the variant was just matched")
                };
                self.held = Held::State(floor);
            }
            Held::Below(floor) if tail.batch < floor.tail.batch => {}
            Held::Below(floor) => {
                return Err(Impossible {
                    owner: floor.owner,
                    after: floor.tail.event,
                    subject: "owner".to_owned(),
                    event: "batch",
                    why: "it is not the batch of the floor".into(),
                });
            }
            Held::Nothing | Held::Halted => {
                unreachable!("invariant: the next batch is known only with the position of the log")
            }
        }
        self.cursor = Cursor {
            batch: tail.batch,
            hash: tail.hash,
            event: tail.event,
            epoch: found.batch.header.epoch,
        };
        self.snapshots.note(&found.batch);
        self.moved = true;
        Ok(())
    }

    /// Writes the cursor of a log that has advanced, and deletes the records of holes that it has passed.
    pub(super) fn write_moved(
        &mut self,
        transaction: &Transaction,
        owner: OwnerId,
    ) -> Result<Option<Cursor>, StoreError> {
        if !std::mem::take(&mut self.moved) {
            return Ok(None);
        }
        transaction.set(&owners::cursor_key(owner), &self.cursor.encode())?;
        if self.named.is_some() {
            let passed = KeyRange::new(
                archive::hole_key(owner, BatchNumber(0)),
                archive::hole_key(owner, self.cursor.batch.next()),
            );
            transaction.clear_range(&passed)?;
            self.named.take_if(|first| *first <= self.cursor.batch);
        }
        Ok(Some(self.cursor))
    }

    /// Notes that the store has recorded a hole.
    pub(super) fn name(&mut self, first: BatchNumber) {
        self.named = self.named.max(Some(first));
    }

    /// Begins a snapshot if one is due. Returns whether it did.
    pub(super) fn begin_snapshot(&mut self) -> bool {
        match &self.held {
            Held::State(state) => self.snapshots.begin_if_due(state),
            Held::Nothing | Held::Below(_) | Held::Halted => false,
        }
    }
}

fn stand<'a>(cursor: &Cursor, openings: &'a [Opening]) -> ChainEnd<'a> {
    ChainEnd {
        tip: Tip {
            number: cursor.batch,
            hash: cursor.hash,
        },
        epoch: cursor.epoch,
        openings,
    }
}

/// The owner's record, if its log is in this shard.
async fn read_record(
    transaction: &Transaction,
    shard: Shard,
    owner: OwnerId,
) -> Result<Option<OwnerRecord>, StoreError> {
    let value = transaction.get(&owners::owner_key(owner)).await?;
    let record = value.map(|value| OwnerRecord::decode(&value)).transpose()?;
    Ok(record.filter(|record| record.shard == shard))
}

/// Converts an opening to the type of the chain's rules.
fn opening(record: OpeningRecord) -> Opening {
    let OpeningRecord { epoch, number, hash } = record;
    Opening { epoch, number, hash }
}

/// First batch of the last hole that the store has recorded for this log.
async fn read_named(store: &Store, owner: OwnerId) -> Result<Option<BatchNumber>, StoreError> {
    let read = |transaction: Transaction| async move {
        let page = transaction
            .get_range(&archive::holes_of(owner), 1, ScanOrder::Reverse)
            .await?;
        page.rows.first().map(|(key, _)| archive::Hole::place(key)).transpose()
    };
    Ok(store.read(read).await?.map(|(_, first)| first))
}
