//! Archiving: writes activated stored entities to the database without a request, so that its rows are never older than
//! one round of archiving. Nothing depends on it, since the log has everything; it serves readers of the rows.
//!
//! A round covers all entities that changed since the previous round and spreads them over its turns. The module has no
//! clock: the folder's driver takes a turn at intervals.

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeSet, VecDeque};

use annals_event::{Batch, Body, Image, Subject};
use annals_ids::{DatabaseId, EntityId, Hash, OwnerKind};
use annals_store::Transaction;

use super::{Alarm, FoldError, Folder, check_lease, effects::Taking};

/// Maximum entities that are examined in one turn, and so in one transaction: about ten milliseconds of work. A round
/// with more entities than its turns can take continues beyond them.
const ENTITIES_AT_ONCE: usize = 256;

/// Bytes of rows after which a turn ends, give or take one entity.
const BYTES_AT_ONCE: usize = 1 << 20;

/// Entities that are due for archiving.
#[derive(Default)]
pub(super) struct Archiving {
    /// Changed entities that are not in this round.
    changed: BTreeSet<EntityId>,
    /// Remaining entities of this round.
    round: VecDeque<EntityId>,
    /// Entities per turn.
    share: usize,
    /// Remaining turns of this round.
    turns: u32,
    /// Whether all entities that were active when this db process began have been added, since it is unknown which of
    /// them were written.
    begun: bool,
}

/// Result of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// Number of entities examined.
    pub looked_at: usize,
    /// Number of entities written; the other rows were up to date.
    pub written: usize,
    /// Alarms about them.
    pub alarms: Vec<Alarm>,
}

impl Archiving {
    /// Records the changes of a batch.
    pub(super) fn note(&mut self, batch: &Batch) {
        let changed = batch
            .events
            .iter()
            .filter_map(|event| match (event.subject, &event.body) {
                (Subject::Entity(entity, _), Body::Changed { .. }) => Some(entity),
                _ => None,
            });
        self.changed.extend(changed);
    }

    /// Entities of the next turn.
    fn next(&mut self, turns_of_a_round: u32) -> Vec<EntityId> {
        if self.turns == 0 && self.round.is_empty() {
            self.turns = turns_of_a_round.max(1);
            self.round = std::mem::take(&mut self.changed).into_iter().collect();
            self.share = self.round.len().div_ceil(self.turns as usize);
        }
        self.turns = self.turns.saturating_sub(1);
        let count = self.share.min(ENTITIES_AT_ONCE).min(self.round.len());
        self.round.drain(..count).collect()
    }
}

impl Folder {
    /// Takes a turn of archiving; a round has `turns_of_a_round` turns. Must be called between commits.
    ///
    /// # Errors
    /// When another db process folds the shard, or the store cannot be used; what was not written is due again.
    #[boxed(?Send)]
    pub async fn archive(&mut self, turns_of_a_round: u32) -> Result<Archived, FoldError> {
        self.wait_for_submitted().await?;
        // Read the states again that a failed commit has discarded.
        self.load_all().await?;
        if !self.archiving.begun {
            let bases = self.states().filter(|state| state.kind == OwnerKind::Base);
            let living: Vec<EntityId> = bases.flat_map(|state| state.databases.values().copied()).collect();
            self.archiving.changed.extend(living);
            self.archiving.begun = true;
        }
        let due = self.archiving.next(turns_of_a_round);
        if due.is_empty() {
            return Ok(Archived::default());
        }
        let transaction = self.store.begin();
        let result = self.archive_all(&transaction, &due).await;
        match result {
            Ok((archived, left)) => {
                for entity in due[due.len() - left..].iter().rev() {
                    self.archiving.round.push_front(*entity);
                }
                Ok(archived)
            }
            Err(error) => {
                // Written or not, they are examined again.
                self.archiving.changed.extend(due);
                Err(error)
            }
        }
    }

    /// Writes them in one transaction. Also returns how many at the end are left.
    async fn archive_all(
        &mut self,
        transaction: &Transaction,
        due: &[EntityId],
    ) -> Result<(Archived, usize), FoldError> {
        check_lease(transaction, self.shard, self.term).await?;
        let mut archived = Archived::default();
        let mut bytes = 0;
        for entity in due {
            if bytes >= BYTES_AT_ONCE {
                break;
            }
            archived.looked_at += 1;
            let Some((database, schema, base)) = self.find_stored(*entity) else {
                continue;
            };
            let cell = match base.base().and_then(|base| base.cell) {
                Some(at) => self.cell_or_request(transaction, (*entity, database), at).await?,
                None => None,
            };
            let cell = cell.as_ref().map(|(schema, image)| (*schema, image));
            let parts: Vec<(Hash, &Image)> = [Some((schema, &base)), cell].into_iter().flatten().collect();
            let definitions = (&*self.schema, &self.migrations);
            let taking = match Taking::read(transaction, definitions, database, &parts).await? {
                Ok(taking) if taking.is_there() => continue,
                Ok(taking) => taking,
                Err(alarm) => {
                    archived.alarms.push(alarm);
                    continue;
                }
            };
            let (written, alarms) = taking.write(transaction, definitions, database).await?;
            bytes += written.bytes;
            archived.written += 1;
            archived.alarms.extend(alarms);
        }
        transaction.commit().await?;
        let left = due.len() - archived.looked_at;
        Ok((archived, left))
    }

    /// The stored entity of an active one, and its base part with the definitions under which it is stored.
    fn find_stored(&self, entity: EntityId) -> Option<(DatabaseId, Hash, Image)> {
        let mut bases = self.states().filter(|state| state.kind == OwnerKind::Base);
        let (schema, image) = bases.find_map(|state| Some((state.schema, state.entities.get(&entity)?)))?;
        // If it cannot be converted, its log raises the alarm when it goes over.
        let type_id = self.migrations.image(schema, image).map(|image| image.type_id);
        let is_stored =
            type_id.is_ok_and(|type_id| self.schema.entity_type(type_id).is_some_and(|found| found.persistent));
        let database = image.base().filter(|_| is_stored)?.database;
        (database.0 != 0).then(|| (database, schema, image.clone()))
    }
}
