//! The history of an entity: every event that changed one of its parts, on all owners.

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Batch, Body, Consumed, Event, Link, Subject, Thinned};
use annals_evidence::{ShardLeaf, Span, Until};
use annals_ids::{
    Address, BatchNumber, CallNumber, EntityId, EventNumber, Hash, LogPosition, OwnerId, Part, SessionId, Shard,
    WallTime,
};
use annals_store::{ArchivedBatch, Store, Transaction, archive::ArchiveReader};

use crate::{
    answer::AuditError,
    index::Index,
    rows::{self, STRETCH, Seat, Where},
};

/// Maximum calls to follow back from an event. An entity may call itself indefinitely.
const CALLS_FOLLOWED: usize = 16;

/// All events of an entity. The order is that of the archive; between shards it is that of the writers' clocks.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityLog {
    pub entity: EntityId,
    pub events: Vec<EntityEvent>,
    /// Per owner, the last batch whose events retention deleted, in the stretches of its log in which the entity had
    /// some.
    pub deleted: BTreeMap<OwnerId, BatchNumber>,
}

/// One event, with its position in the archive.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityEvent {
    /// The batch.
    pub at: LogPosition,
    /// The batch's leaf.
    pub leaf: ShardLeaf,
    /// The latest time of a batch of its shard up to there: orders events of different shards.
    pub moment: WallTime,
    /// When the batch was closed, by its writer's clock.
    pub wall: WallTime,
    /// The definitions under which it was written.
    pub schema: Hash,
    /// Its number in its log.
    pub number: EventNumber,
    pub event: Event,
    /// The call that caused it, then the call that caused that one, and so on, as long as the entity itself made them;
    /// the last one came from elsewhere. Empty if a timer or the like caused the event.
    pub calls: Vec<Consumed>,
    /// The client session that controlled the entity until this event: it has ended, or controls another entity, as after
    /// `giveClientTo`.
    pub former_session: Option<SessionId>,
}

/// A batch in the archive, whole or thinned.
enum BatchLookup {
    Whole(Box<Batch>),
    Deleted,
}

impl Index {
    /// Whether any event taken in is about an entity.
    ///
    /// # Errors
    /// When the index cannot be read.
    #[boxed]
    pub async fn knows(&self, entity: EntityId) -> Result<bool, AuditError> {
        let rows = self.rows(rows::stretches(entity), 1).await?;
        Ok(!rows.is_empty())
    }

    /// The owners in whose logs an entity has events, as far as taken in.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub(crate) async fn owners_of(&self, entity: EntityId) -> Result<BTreeSet<OwnerId>, AuditError> {
        let rows = self.rows(rows::stretches(entity), usize::MAX).await?;
        let owners = rows.iter().map(|(key, _)| Ok(rows::stretch_of(key)?.0));
        owners.collect::<Result<_, _>>().map_err(AuditError::Index)
    }
}

impl EntityLog {
    /// Collects the events of an entity, as far as the archive was taken in.
    ///
    /// # Errors
    /// When no event is about it, or a batch is not what was verified.
    #[boxed]
    pub async fn find(index: &Index, archive: &Store, entity: EntityId) -> Result<Self, AuditError> {
        let mut log = Self {
            entity,
            events: Vec::new(),
            deleted: BTreeMap::new(),
        };
        for (key, _) in index.rows(rows::stretches(entity), usize::MAX).await? {
            let (owner, stretch) = rows::stretch_of(&key).map_err(AuditError::Index)?;
            for (lies, batch, found) in read_stretch(index, archive, owner, stretch).await? {
                match found {
                    BatchLookup::Whole(found) => log.take(lies, *found),
                    BatchLookup::Deleted => {
                        log.deleted.insert(owner, batch);
                    }
                }
            }
        }
        if log.events.is_empty() && log.deleted.is_empty() {
            return Err(AuditError::NoEntity(entity));
        }
        log.events.sort_by_key(|event| (event.seat(), event.number));
        log.follow_calls();
        mark_former_sessions(&mut log.events);
        Ok(log)
    }

    /// The events within a span.
    pub fn within<'a>(&'a self, span: &'a Span) -> impl Iterator<Item = &'a EntityEvent> {
        self.events
            .iter()
            .filter(move |event| span.covers(event.leaf, event.wall))
    }

    /// The end of the batch that has the last of the first `events` events; with 0 the moment before the first one.
    /// `None` if no event is left.
    ///
    /// # Errors
    /// When the index cannot be read.
    #[boxed]
    pub async fn end_of(&self, index: &Index, events: usize) -> Result<Option<Until>, AuditError> {
        let Some((first, last)) = self.events.first().zip(self.events.last()) else {
            return Ok(None);
        };
        let cut = match events.checked_sub(1) {
            Some(nth) => index.cut_after(self.events.get(nth).unwrap_or(last).seat()).await?,
            None => index.cut_before(first.seat()).await?,
        };
        Ok(Some(Until::Cut(cut)))
    }

    fn take(&mut self, lies: Where, batch: Batch) {
        let header = batch.header;
        for (number, event) in (header.first_event.0..).zip(batch.events) {
            if !matches!(event.subject, Subject::Entity(entity, _) if entity == self.entity) {
                continue;
            }
            let cause = (event.cause.0 as usize).checked_sub(1);
            self.events.push(EntityEvent {
                at: LogPosition {
                    owner: header.owner,
                    batch: header.number,
                },
                leaf: lies.seat.leaf,
                moment: lies.seat.moment,
                wall: header.wall,
                schema: header.schema,
                number: EventNumber(number),
                calls: cause
                    .and_then(|index| header.consumed.get(index))
                    .copied()
                    .into_iter()
                    .collect(),
                event,
                former_session: None,
            });
        }
    }

    /// Follows each event's call back through the calls that the entity made.
    fn follow_calls(&mut self) {
        let mut made: BTreeMap<(Link, CallNumber), Option<Consumed>> = BTreeMap::new();
        for event in &self.events {
            if let (Body::Called { to, number, .. }, Subject::Entity(entity, part)) =
                (&event.event.body, event.event.subject)
            {
                let from = Address::of(entity, part);
                made.insert((Link { from, to: *to }, *number), event.calls.first().copied());
            }
        }
        for event in &mut self.events {
            while let Some(last) = event.calls.last()
                && event.calls.len() < CALLS_FOLLOWED
            {
                let link = Link {
                    from: last.from,
                    to: last.to,
                };
                match made.get(&(link, last.number)) {
                    Some(Some(before)) => event.calls.push(*before),
                    _ => break,
                }
            }
        }
    }
}

/// Marks the events with which a client session controls the entity no longer. The base part's events have them, of which no later one repeats what
/// is so already.
fn mark_former_sessions(events: &mut [EntityEvent]) {
    let mut present = None;
    for event in events {
        let next = match (&event.event.body, event.event.subject) {
            (Body::ClientSet(client), Subject::Entity(_, Part::Base)) => client.map(|client| client.session),
            (Body::Destroyed, Subject::Entity(_, Part::Base)) => None,
            _ => continue,
        };
        if present != next {
            event.former_session = std::mem::replace(&mut present, next);
        }
    }
}

impl EntityEvent {
    fn seat(&self) -> Seat {
        let (moment, leaf) = (self.moment, self.leaf);
        Seat { moment, leaf }
    }
}

/// The batches of a stretch of a log, each checked against its verified hash.
async fn read_stretch(
    index: &Index,
    archive: &Store,
    owner: OwnerId,
    stretch: u64,
) -> Result<Vec<(Where, BatchNumber, BatchLookup)>, AuditError> {
    let end = index.log_ends().get(&owner);
    let (shard, last) = end.map_or((Shard(0), BatchNumber(0)), |end| (end.shard, end.tail.batch));
    let mut places = Vec::new();
    for number in (stretch * STRETCH).max(1)..(stretch * STRETCH + STRETCH).min(last.0 + 1) {
        let batch = BatchNumber(number);
        places.push((batch, index.find(owner, batch).await?));
    }
    let places = &places;
    let read = |transaction: Transaction| async move {
        let mut reader = ArchiveReader::new(&transaction, shard);
        let mut found = Vec::new();
        for (batch, lies) in places {
            found.push(reader.batch(lies.seat.leaf.leaf, owner, *batch).await?);
        }
        Ok(found)
    };
    let archived = archive.read(read).await.map_err(AuditError::Archive)?;
    let taken = places.iter().zip(archived).map(|((batch, lies), archived)| {
        let found = match archived {
            Some(ArchivedBatch::Whole(bytes)) => Batch::read(&bytes)
                .ok()
                .filter(|batch| batch.hash == lies.hash)
                .map(|batch| BatchLookup::Whole(Box::new(batch))),
            Some(ArchivedBatch::Thinned(bytes)) => Thinned::read(&bytes)
                .ok()
                .filter(|batch| batch.hash == lies.hash)
                .map(|_| BatchLookup::Deleted),
            None => None,
        };
        let at = LogPosition { owner, batch: *batch };
        let found = found.ok_or(AuditError::Replaced {
            leaf: lies.seat.leaf,
            at,
        })?;
        Ok((*lies, *batch, found))
    });
    taken.collect()
}

#[cfg(test)]
mod tests {
    use annals_event::{Cause, ClientLink};
    use annals_ids::LeafIndex;

    use super::*;

    fn event(body: Body, part: Part) -> EntityEvent {
        EntityEvent {
            at: LogPosition {
                owner: OwnerId(3),
                batch: BatchNumber(1),
            },
            leaf: ShardLeaf {
                shard: Shard(0),
                leaf: LeafIndex(0),
            },
            moment: WallTime(0),
            wall: WallTime(0),
            schema: Hash::ZERO,
            number: EventNumber(1),
            event: Event {
                subject: Subject::Entity(EntityId(7), part),
                cause: Cause(0),
                history: None,
                body,
            },
            calls: Vec::new(),
            former_session: None,
        }
    }

    #[test]
    fn events_have_the_session_that_controlled_the_entity_before() {
        let client = |session| {
            let (session, proxy) = (SessionId(session), OwnerId(3));
            Body::ClientSet(Some(ClientLink { session, proxy }))
        };
        let mut events = [
            event(client(5), Part::Base),
            event(client(5), Part::Cell),
            // Another client of the account logs in.
            event(client(6), Part::Base),
            event(client(6), Part::Cell),
            event(Body::ClientSet(None), Part::Base),
            event(Body::ClientSet(None), Part::Base),
            event(client(8), Part::Base),
            event(Body::Destroyed, Part::Base),
        ];
        mark_former_sessions(&mut events);
        let former = events.map(|event| event.former_session.map(|session| session.0));
        assert_eq!(former, [None, None, Some(5), None, Some(6), None, None, Some(8)]);
    }
}
