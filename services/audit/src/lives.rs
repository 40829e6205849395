//! When a stored entity was in the world: its lives, and the logins of its clients.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeSet;

use annals_event::{Body, Subject};
use annals_evidence::ShardLeaf;
use annals_ids::{DatabaseId, EntityId, EventNumber, LogPosition, SessionId, WallTime};
use annals_store::Store;

use crate::{
    answer::AuditError,
    index::Index,
    rows,
    sessions::{CameIn, IndexedEvent},
};

/// An event of a stored entity's lives, with its position in the archive.
#[derive(Clone, Debug, PartialEq)]
pub struct LifeStep {
    /// The batch.
    pub at: LogPosition,
    /// The batch's leaf.
    pub leaf: ShardLeaf,
    /// The latest time of a batch of its shard up to there: orders events of different shards.
    pub moment: WallTime,
    /// Number of events before it in the batch.
    pub place: u32,
    /// The event's number in its log.
    pub event: EventNumber,
    /// When the batch was closed, by its writer's clock.
    pub wall: WallTime,
    /// What happened.
    pub turn: Turn,
}

/// Events of a stored entity's lives.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// A life began.
    Began {
        entity: EntityId,
        /// The check-out of the stored entity; `None` if a live entity was stored.
        checkout: Option<u64>,
    },
    /// A client came in for it.
    CameIn(CameIn),
    /// A life ended.
    Ended { entity: EntityId },
}

impl Index {
    /// The events of a stored entity's lives, in the order of the archive, and between shards by the writers' clocks.
    ///
    /// # Errors
    /// When there are none, or a batch is not what was verified.
    #[boxed]
    pub async fn lives(&self, archive: &Store, stored: DatabaseId) -> Result<Vec<LifeStep>, AuditError> {
        let mut steps = Vec::new();
        let mut sessions: BTreeSet<SessionId> = BTreeSet::new();
        let mut entities: BTreeSet<EntityId> = BTreeSet::new();
        for (key, value) in self.rows(rows::lives(stored), usize::MAX).await? {
            let indexed = self.indexed_event(archive, &key, &value).await?;
            let (&entity, checkout) = match (&indexed.event.body, &indexed.event.subject) {
                (Body::Admitted { session, person, .. }, _) if *person == stored => {
                    sessions.insert(*session);
                    continue;
                }
                (Body::BaseCreated(creation), Subject::Entity(entity, _)) if creation.database == stored => {
                    (entity, Some(creation.checkout))
                }
                (Body::Stored { database }, Subject::Entity(entity, _)) if *database == stored => (entity, None),
                _ => return Err(AuditError::Mislaid(indexed.at)),
            };
            // A live entity is stored repeatedly.
            if entities.insert(entity) {
                steps.push(step(&indexed, Turn::Began { entity, checkout }));
                steps.extend(self.end_of(archive, entity).await?);
            }
        }
        for session in sessions {
            // Includes returns of its client to a process that did not know the person.
            let came = self.came_in(archive, session).await?;
            steps.extend(came.into_iter().map(LifeStep::from));
        }
        if steps.is_empty() {
            return Err(AuditError::NoLife(stored));
        }
        steps.sort_by_key(|step| (step.moment, step.leaf, step.place));
        Ok(steps)
    }

    async fn end_of(&self, archive: &Store, entity: EntityId) -> Result<Option<LifeStep>, AuditError> {
        let rows = self.rows(rows::ends(entity), 1).await?;
        let Some((key, value)) = rows.first() else {
            return Ok(None);
        };
        let indexed = self.indexed_event(archive, key, value).await?;
        match (&indexed.event.body, indexed.event.subject) {
            (Body::Destroyed, Subject::Entity(ended, _)) if ended == entity => {
                Ok(Some(step(&indexed, Turn::Ended { entity })))
            }
            _ => Err(AuditError::Mislaid(indexed.at)),
        }
    }
}

fn step(indexed: &IndexedEvent, turn: Turn) -> LifeStep {
    LifeStep {
        at: indexed.at,
        leaf: indexed.seat.leaf,
        moment: indexed.seat.moment,
        place: indexed.place,
        event: indexed.number,
        wall: indexed.wall,
        turn,
    }
}

impl From<CameIn> for LifeStep {
    fn from(came: CameIn) -> Self {
        Self {
            at: came.at,
            leaf: came.leaf,
            moment: came.moment,
            place: came.place,
            event: came.event,
            wall: came.wall,
            turn: Turn::CameIn(came),
        }
    }
}
