//! The newest events of a realm's logs, with the names of its definitions, and new ones as they arrive.
//!
//! ```text
//! line = OWNER@BATCH "#" EVENT  WORLD-TIME  SUBJECT ":" WHAT ["(history" NUMBER ")"] ["by call" NUMBER "of" SENDER]
//! ```
//! World time is the time since the realm began, by the wall clock of the event's writer. Events of different logs are
//! printed in the order of world time, events of one log in the order of the log.

mod follow;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use annals_audit::{
    archive::LogWalk,
    names::{Names, mentioned},
};
use annals_db::{RecoveryError, recover};
use annals_director::read_owners;
use annals_event::{Batch, Consumed, Event, Header, Subject};
use annals_host::{
    log::{ReadError, Reading},
    log_source::{BeyondError, Source, SourceError},
};
use annals_ids::{BatchNumber, EntityId, Epoch, EventNumber, Hash, LogPosition, OwnerId, WallTime};
use annals_store::{StoreError, layout::owners::OwnerRecord};
use thiserror::Error;

use follow::Following;

/// Batches of a log that are read together, backwards.
const PAGE: u64 = 64;

/// Batches before the printed ones that are searched for the creation of their entities: a quarter of an hour of a busy
/// cell. Entities whose creation is not found are printed by number.
const LOOK_BACK: u64 = 8_192;

/// What to print.
#[derive(Clone, Debug, Default)]
pub struct TailPlan {
    /// Number of events.
    pub events: usize,
    /// The owners of the logs; all if empty.
    pub owners: Vec<OwnerId>,
    /// The entity, if only its events are wanted.
    pub entity: Option<EntityId>,
}

/// Why nothing can be printed.
#[derive(Debug, Error)]
pub enum TailError {
    /// Error of the store.
    #[error("the archive cannot be read")]
    Store(#[from] StoreError),
    /// Error of the log.
    #[error("the log beyond the archive cannot be read")]
    Log(#[from] ReadError),
    /// Error of the realm.
    #[error("the realm's record cannot be read")]
    Source(#[from] SourceError),
    /// The owner does not exist.
    #[error("the realm has no owner {0}; `annals log verify` lists its owners")]
    UnknownOwner(OwnerId),
    /// An offline realm has no new events.
    #[error("the log of a stopped realm does not grow: leave --follow out")]
    NothingToFollow,
}

/// The newest events.
pub struct Tail {
    plan: TailPlan,
    began: WallTime,
    names: Names,
    rows: Vec<Row>,
    /// Faults in what was read.
    notes: Vec<String>,
    following: Following,
}

/// An event, and its place.
#[derive(Clone, Debug)]
struct Row {
    header: Arc<Header>,
    number: EventNumber,
    event: Event,
}

/// The end of a log, as far as it was read.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    batch: BatchNumber,
    hash: Hash,
    epoch: Epoch,
}

impl Row {
    /// The call that caused the event.
    fn cause(&self) -> Option<&Consumed> {
        let index = (self.event.cause.0 as usize).checked_sub(1)?;
        self.header.consumed.get(index)
    }

    /// The entities that are named in its line.
    fn mentioned(&self) -> impl Iterator<Item = EntityId> {
        let sender = self.cause().and_then(|call| call.from.entity());
        mentioned(&self.event).chain(sender.map(|(entity, _)| entity))
    }
}

impl Tail {
    /// Reads the newest events.
    ///
    /// # Errors
    /// When the logs cannot be read.
    pub async fn read(source: &Source, plan: TailPlan) -> Result<Self, TailError> {
        let owners = read_owners(&source.store).await?;
        if let Some(unknown) = plan.owners.iter().find(|owner| !owners.contains_key(owner)) {
            return Err(TailError::UnknownOwner(*unknown));
        }
        let about = source.about().await?;
        let began = about.as_ref().map_or(WallTime(0), |about| about.began);
        let schemas = about
            .into_iter()
            .flat_map(|about| about.former.into_iter().chain([about.schema]));
        let mut tail = Self {
            plan,
            began,
            names: Names::new(schemas),
            rows: Vec::new(),
            notes: Vec::new(),
            following: Following::default(),
        };
        let mut looked = BTreeMap::new();
        for (&owner, record) in &owners {
            let (rows, first) = tail.read_owner(source, owner, record).await?;
            tail.rows.extend(rows);
            looked.insert(owner, first);
        }
        // A stable sort: the order within a log is kept.
        tail.rows.sort_by_key(|row| row.header.wall);
        let surplus = tail.rows.len().saturating_sub(tail.plan.events);
        tail.rows.drain(..surplus);
        tail.find_types(source, &owners, &looked).await?;
        Ok(tail)
    }

    /// The lines of the events that were read.
    pub fn lines(&mut self) -> Vec<String> {
        let mut lines: Vec<String> = self.notes.drain(..).map(|note| format!("note: {note}")).collect();
        for row in self.rows.drain(..) {
            lines.push(line(&self.names, self.began, &row));
        }
        lines
    }

    /// Waits for new events. Cancel-safe: nothing is lost if the future is dropped.
    ///
    /// # Errors
    /// When there is no log, or the store does not answer.
    pub async fn follow(&mut self, source: &Source) -> Result<Vec<String>, TailError> {
        if !self.following.has_begun() {
            // New events may be about any entity.
            for (owner, record) in read_owners(&source.store).await? {
                self.learn_state(source, owner, &record).await?;
            }
        }
        let batches = self.following.next(source, &mut self.notes).await?;
        for batch in batches {
            self.names.learn(&batch);
            let rows = self.rows_of(batch);
            self.rows.extend(rows);
        }
        Ok(self.lines())
    }

    /// The newest wanted events of one log, and the first batch that was read for them.
    async fn read_owner(
        &mut self,
        source: &Source,
        owner: OwnerId,
        record: &OwnerRecord,
    ) -> Result<(Vec<Row>, BatchNumber), TailError> {
        let mut reading = Reading::default();
        source.read_log((record.shard, owner), &mut reading).await?;
        // Read after the log: batches trimmed from it are archived by now.
        let walk = LogWalk::begin(&source.store, record.shard, owner).await?;
        let (cursor, floor) = (walk.cursor(), walk.floor().unwrap_or_default());
        let mut end = End {
            batch: cursor.batch,
            hash: cursor.hash,
            epoch: cursor.epoch,
        };
        let mut rows = Vec::new();
        match source.beyond(owner, cursor, &reading).await {
            Ok(beyond) => {
                for batch in beyond.iter().filter_map(|frozen| Batch::read(&frozen.bytes).ok()) {
                    end = End {
                        batch: batch.header.number,
                        hash: batch.hash,
                        epoch: batch.header.epoch,
                    };
                    self.names.learn(&batch);
                    rows.extend(self.rows_of(batch));
                }
            }
            Err(BeyondError::Hole(hole)) => self.notes.push(hole.to_string()),
            Err(BeyondError::Store(error)) => return Err(error.into()),
            Err(BeyondError::Log(error)) => return Err(error.into()),
        }
        self.following.begin(owner, end);
        let mut first = cursor.batch.next();
        while rows.len() < self.plan.events && first > floor.next() && self.wants(owner) {
            let (earlier, batches) = self.page_before(source, record, owner, first).await?;
            first = earlier;
            let mut before: Vec<Row> = batches.into_iter().flat_map(|batch| self.rows_of(batch)).collect();
            before.append(&mut rows);
            rows = before;
        }
        if rows.len() < self.plan.events && floor.0 > 0 && self.wants(owner) {
            self.notes.push(format!(
                "the events of owner {owner} up to batch {floor} were deleted by retention"
            ));
        }
        Ok((rows, first))
    }

    /// The archived batches of a page before `first`, and where that page begins.
    async fn page_before(
        &mut self,
        source: &Source,
        record: &OwnerRecord,
        owner: OwnerId,
        first: BatchNumber,
    ) -> Result<(BatchNumber, Vec<Batch>), StoreError> {
        let after = BatchNumber((first.0 - 1).saturating_sub(PAGE));
        let mut walk = LogWalk::after(&source.store, record.shard, owner, after).await?;
        let mut batches = Vec::new();
        while let Some(step) = walk.next().await? {
            if step.number >= first {
                break;
            }
            if let Some(fault) = step.fault {
                self.notes
                    .push(format!("batch {} of owner {owner} {fault}", step.number));
            }
            if let Some(batch) = step.batch {
                self.names.learn(&batch);
                batches.push(batch);
            }
        }
        Ok((after.next(), batches))
    }

    /// Finds the types of the entities in the events: from the states at hand, then from earlier parts of the log.
    async fn find_types(
        &mut self,
        source: &Source,
        owners: &BTreeMap<OwnerId, OwnerRecord>,
        looked: &BTreeMap<OwnerId, BatchNumber>,
    ) -> Result<(), TailError> {
        for (&owner, record) in owners {
            if self.unknown(None).is_empty() {
                return Ok(());
            }
            self.learn_state(source, owner, record).await?;
        }
        // Destroyed entities are in no state.
        for (&owner, record) in owners {
            let mut first = looked.get(&owner).copied().unwrap_or_default();
            let last = first.0.saturating_sub(LOOK_BACK);
            while first.0 > last.max(1) && !self.unknown(Some(owner)).is_empty() {
                (first, _) = self.page_before(source, record, owner, first).await?;
            }
        }
        Ok(())
    }

    /// Learns the types of an owner's entities.
    async fn learn_state(&mut self, source: &Source, owner: OwnerId, record: &OwnerRecord) -> Result<(), TailError> {
        match recover(&source.store, record.shard, owner, record.kind).await {
            Ok(recovered) => self.names.learn_state(&recovered.state),
            Err(RecoveryError::Store { source, .. }) => return Err(source.into()),
            // The names are then missing; `annals log verify` gives the reason.
            Err(error) => self.notes.push(error.to_string()),
        }
        Ok(())
    }

    /// Entities of unknown type in the events, of one owner or of all.
    fn unknown(&self, of: Option<OwnerId>) -> BTreeSet<EntityId> {
        let rows = self
            .rows
            .iter()
            .filter(|row| of.is_none_or(|owner| row.header.owner == owner));
        rows.flat_map(Row::mentioned)
            .filter(|entity| !self.names.knows(*entity))
            .collect()
    }

    /// The wanted events of a batch.
    fn rows_of(&self, batch: Batch) -> Vec<Row> {
        if !self.wants(batch.header.owner) {
            return Vec::new();
        }
        let header = Arc::new(batch.header);
        let numbered = (header.first_event.0..).map(EventNumber).zip(batch.events);
        let wanted = numbered.filter(|(_, event)| {
            let entity = self.plan.entity;
            entity.is_none_or(|entity| matches!(event.subject, Subject::Entity(found, _) if found == entity))
        });
        wanted
            .map(|(number, event)| Row {
                header: Arc::clone(&header),
                number,
                event,
            })
            .collect()
    }

    fn wants(&self, owner: OwnerId) -> bool {
        self.plan.owners.is_empty() || self.plan.owners.contains(&owner)
    }
}

/// The line of an event.
fn line(names: &Names, began: WallTime, row: &Row) -> String {
    let Row { header, number, event } = row;
    let names = names.under(header.schema);
    let at = LogPosition {
        owner: header.owner,
        batch: header.number,
    };
    let mut text = format!(
        "{at} #{number}  {}  {}: {}",
        clock(header.wall.0.saturating_sub(began.0)),
        names.subject(event.subject),
        names.event(event)
    );
    if let Some(history) = event.history {
        text.push_str(&format!(" (history {history})"));
    }
    if let Some(cause) = row.cause() {
        text.push_str(&format!(" by call {} of {}", cause.number, names.address(cause.from)));
    }
    text
}

/// Milliseconds as hours, minutes, seconds.
pub(crate) fn clock(ms: u64) -> String {
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}", ms % 1_000)
}
