//! One log as db folds it.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Batch, Event, Impossible, OwnerState, Subject};
use annals_ids::{BatchNumber, EntityId, Epoch, Hash, OwnerId, Shard};
use annals_store::{
    KeyRange, Order, Store, StoreError, Transaction,
    layout::{
        chunks,
        owners::{self, Cursor, OpeningRecord, OwnerRecord},
        snapshots,
    },
};

use super::{Alarm, FoldError, Found, Missing};
use crate::recovery::{Recovered, recover};

/// A snapshot is written after so many batches: what recovery has to replay at most, of the archive.
const SNAPSHOT_BATCHES: u64 = 256;

/// Or after so many entities have changed, so that it stays small beside the store's limit.
const SNAPSHOT_ENTITIES: usize = 1_024;

/// Bytes of a snapshot that one transaction takes at most. A larger one waits; recovery then replays more.
const SNAPSHOT_BYTES: usize = 4 << 20;

/// Openings looked at: there are as many as take-overs since the log was folded last.
const OPENINGS: usize = 1_000;

/// What is to be done with a batch.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It is the next.
    Next,
    /// It is void, or folded already.
    Void,
    /// Others are missing before it, or it is an `Open` that the store may come to hold.
    Waits,
    /// It should not be there.
    Alarm(Alarm),
}

/// See the module.
#[derive(Default)]
pub(super) struct Log {
    /// `None` until it is needed.
    folded: Option<Recovered>,
    record: Option<OwnerRecord>,
    openings: Vec<OpeningRecord>,
    /// Batches behind a hole, and openings that are not recorded yet, by number; void ones are sorted out when their turn comes.
    waiting: BTreeMap<(BatchNumber, Epoch, Hash), Found>,
    /// What the next snapshot must write; `None` after a restart, when nobody knows what has changed since the last one.
    changed: Option<BTreeSet<EntityId>>,
    snapshot: BatchNumber,
    moved: bool,
}

impl Log {
    pub(super) fn state(&self) -> Option<&OwnerState> {
        self.folded.as_ref().map(|folded| &folded.state)
    }

    pub(super) fn forget(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        *self = Self {
            waiting,
            ..Self::default()
        };
    }

    pub(super) async fn ready(
        &mut self,
        store: &Store,
        transaction: &Transaction,
        shard: Shard,
        owner: OwnerId,
    ) -> Result<(), FoldError> {
        let record = transaction.get(&owners::owner_key(owner)).await?;
        self.record = record.map(|value| OwnerRecord::decode(&value)).transpose()?;
        let Some(record) = self.record else { return Ok(()) };
        if self.folded.is_none() {
            let recovered = recover(store, shard, owner, record.part).await?;
            self.folded = Some(recovered);
            let position = transaction.get(&snapshots::position_key(owner)).await?;
            self.snapshot = position.map_or(Ok(BatchNumber(0)), |value| snapshots::decode_position(&value))?;
            self.changed = None;
        }
        let cursor = self.cursor();
        if !self.moved && Cursor::decode(transaction.get(&owners::cursor_key(owner)).await?.as_deref())? != cursor {
            // Another transaction of ours was applied whose answer was lost.
            return Err(FoldError::Store(StoreError::Conflict));
        }
        let newer = KeyRange::new(
            owners::opening_key(owner, cursor.epoch.next()),
            owners::openings(owner).end,
        );
        let page = transaction.get_range(&newer, OPENINGS, Order::Forward).await?;
        self.openings = page
            .rows
            .iter()
            .map(|(_, value)| OpeningRecord::decode(value))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Rules F2 and E5.
    pub(super) fn judge(&self, found: &Found) -> Verdict {
        let (header, cursor) = (&found.batch.header, self.cursor());
        let (owner, number) = (found.owner, header.number);
        if number <= cursor.batch || header.epoch < cursor.epoch || (header.opens && header.epoch == cursor.epoch) {
            return Verdict::Void;
        }
        // As a taker reads it (`annals_node::chain`): an `Open` that was not recorded before one of a higher epoch was is on
        // nobody's chain, nor is one in whose stead another of its epoch was recorded.
        let own = self.openings.iter().find(|opening| opening.epoch == header.epoch);
        let overtaken = self.openings.iter().any(|opening| {
            opening.epoch > header.epoch && (opening.number <= number || (header.opens && own.is_none()))
        });
        if overtaken || (header.opens && own.is_some_and(|opening| opening.hash != found.batch.hash)) {
            return Verdict::Void;
        }
        if self.record.is_none_or(|record| record.epoch < header.epoch) {
            return Verdict::Alarm(Alarm::Ungranted { owner, number });
        }
        if number > cursor.batch.next() || (header.opens && own.is_none()) {
            return Verdict::Waits;
        }
        if header.previous != cursor.hash || (header.epoch > cursor.epoch && !header.opens) {
            let (named, expected) = (header.previous, cursor.hash);
            return Verdict::Alarm(Alarm::Contradiction {
                owner,
                number,
                named,
                expected,
            });
        }
        // What fills a hole must be what its successor was chained to (rule F4).
        let successors = self
            .waiting
            .range((number.next(), Epoch(0), Hash::ZERO)..=(number.next(), Epoch(u64::MAX), Hash([u8::MAX; 32])));
        let valid = successors.filter(|(_, found)| !self.is_unrecorded(found));
        let mut named = valid.map(|(_, found)| found.batch.header.previous).peekable();
        match named.peek().copied() {
            Some(expected) if named.all(|named| named != found.batch.hash) => Verdict::Alarm(Alarm::Contradiction {
                owner,
                number,
                named: found.batch.hash,
                expected,
            }),
            _ => Verdict::Next,
        }
    }

    pub(super) fn wait(&mut self, found: Found) {
        let key = (found.batch.header.number, found.batch.header.epoch, found.batch.hash);
        self.waiting.entry(key).or_insert(found);
    }

    pub(super) fn pop_waiting(&mut self) -> Option<Found> {
        self.waiting.pop_first().map(|(_, found)| found)
    }

    pub(super) fn missing(&self, owner: OwnerId) -> Option<Missing> {
        // An opening that nobody has recorded proves nothing: it may stand on what was given up.
        let found = self.waiting.values().find(|found| !self.is_unrecorded(found))?;
        let cursor = self.cursor();
        (found.batch.header.number > cursor.batch.next()).then(|| Missing {
            owner,
            first: cursor.batch.next(),
            until: found.batch.header.number,
            after: cursor.hash,
            named: found.batch.header.previous,
        })
    }

    /// Whether a batch is an `Open` that the store does not hold.
    fn is_unrecorded(&self, found: &Found) -> bool {
        let header = &found.batch.header;
        let recorded = |opening: &OpeningRecord| opening.epoch == header.epoch && opening.hash == found.batch.hash;
        header.opens && !self.openings.iter().any(recorded)
    }

    /// Folds the next batch into the state in memory. `before` sees each event and the state that it is about to change.
    pub(super) fn fold(&mut self, batch: &Batch, before: impl FnMut(&OwnerState, &Event)) -> Result<(), Impossible> {
        let folded = self.folded.as_mut().expect("invariant: the log is ready");
        let tail = batch.tail();
        folded.cursor = Cursor {
            batch: tail.batch,
            hash: tail.hash,
            event: tail.event,
            epoch: batch.header.epoch,
        };
        self.moved = true;
        if let Some(changed) = &mut self.changed {
            changed.extend(
                batch
                    .header
                    .consumed
                    .iter()
                    .filter_map(|call| call.to.entity())
                    .map(|(entity, _)| entity),
            );
            changed.extend(batch.events.iter().filter_map(|event| match event.subject {
                Subject::Entity(entity, _) => Some(entity),
                Subject::Owner => None,
            }));
        }
        folded.state.fold_with(batch, before)
    }

    /// Writes the cursor, and when it is due the snapshot, of a log that has moved on.
    pub(super) fn write_moved(
        &mut self,
        transaction: &Transaction,
        owner: OwnerId,
    ) -> Result<Option<Cursor>, StoreError> {
        if !std::mem::take(&mut self.moved) {
            return Ok(None);
        }
        let cursor = self.cursor();
        transaction.set(&owners::cursor_key(owner), &cursor.encode())?;
        let behind = cursor.batch.0 - self.snapshot.0;
        let changed = self.changed.as_ref().map_or(0, BTreeSet::len);
        if behind >= SNAPSHOT_BATCHES || changed >= SNAPSHOT_ENTITIES {
            self.write_snapshot(transaction, owner)?;
        }
        Ok(Some(cursor))
    }

    fn write_snapshot(&mut self, transaction: &Transaction, owner: OwnerId) -> Result<(), StoreError> {
        let Some(folded) = &self.folded else { return Ok(()) };
        let mut own = Vec::new();
        folded.state.write_own(&mut own);
        let mut images = Vec::new();
        let mut size = own.len();
        let everything = || folded.state.entities.keys().copied().collect();
        for entity in self.changed.clone().unwrap_or_else(everything) {
            let image = folded.state.entities.get(&entity).map(|image| {
                let mut bytes = Vec::new();
                image.write(&mut bytes);
                bytes
            });
            size += image.as_ref().map_or(0, Vec::len);
            images.push((entity, image));
        }
        if size > SNAPSHOT_BYTES {
            return Ok(());
        }
        if self.changed.is_none() {
            transaction.clear_range(&snapshots::entities(owner))?;
        }
        put(transaction, &snapshots::own_key(owner), Some(&own))?;
        for (entity, image) in images {
            put(transaction, &snapshots::entity_key(owner, entity), image.as_deref())?;
        }
        self.changed = Some(BTreeSet::new());
        self.snapshot = folded.cursor.batch;
        transaction.set(
            &snapshots::position_key(owner),
            &snapshots::encode_position(self.snapshot),
        )
    }

    fn cursor(&self) -> Cursor {
        self.folded.as_ref().map(|folded| folded.cursor).unwrap_or_default()
    }
}

fn put(transaction: &Transaction, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
    transaction.clear_range(&KeyRange::prefix(key))?;
    if let Some(value) = value {
        for (key, chunk) in chunks(key, value) {
            transaction.set(&key, chunk)?;
        }
    }
    Ok(())
}
