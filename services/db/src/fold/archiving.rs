//! Archiving: stored entities that live are written to the database without being asked, so that its rows are never older
//! than a round of archiving. The log has everything, so nothing rests on it: it is for whoever reads the rows.
//!
//! A round takes all entities that have changed since the round before and spreads them over its turns. There is no clock in
//! here: whoever drives the folder takes a turn now and then.

use std::collections::{BTreeSet, VecDeque};

use annals_event::{Batch, Body, Image, Subject};
use annals_ids::{DatabaseId, EntityId, Hash, OwnerKind};
use annals_store::Transaction;

use super::{Alarm, FoldError, Folder, check_lease, effects::Taking};

/// Most entities that are looked at in one turn, and so in one transaction: some ten milliseconds' worth. A round that has more
/// of them than its turns can take goes on beyond them.
const ENTITIES_AT_ONCE: usize = 256;

/// Bytes of rows after which a turn ends, give or take one entity.
const BYTES_AT_ONCE: usize = 1 << 20;

/// Which entities are due.
#[derive(Default)]
pub(super) struct Archiving {
    /// Those that have changed and are not in this round.
    changed: BTreeSet<EntityId>,
    /// Those of this round that are left.
    round: VecDeque<EntityId>,
    /// How many of them each turn takes.
    share: usize,
    /// Turns that are left in this round.
    turns: u32,
    /// Whether everything that lived when this db began is among them, as nobody knows what of it was written.
    begun: bool,
}

/// What one turn did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// How many entities were looked at.
    pub looked_at: usize,
    /// How many of them were written: the others' rows were as they are.
    pub written: usize,
    /// What is wrong with them.
    pub alarms: Vec<Alarm>,
}

impl Archiving {
    /// Notes what a batch has changed.
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

    /// Those whose turn it is.
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
    /// Takes a turn of archiving; a round has `turns_of_a_round` of them. To be called between commits.
    ///
    /// # Errors
    /// When another db folds the shard, or the store cannot be used; what was not written is due again.
    pub async fn archive(&mut self, turns_of_a_round: u32) -> Result<Archived, FoldError> {
        // What a failed commit has thrown away is read again.
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
                // Written or not, they are looked at again.
                self.archiving.changed.extend(due);
                Err(error)
            }
        }
    }

    /// Writes them in one transaction. Also says how many of them, at the end, are left.
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
                Some(at) => self.find_cell(*entity, at).await?,
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

    /// The entity of the database that a living one stands for, and its base part with the definitions under which it stands.
    fn find_stored(&self, entity: EntityId) -> Option<(DatabaseId, Hash, Image)> {
        let mut bases = self.states().filter(|state| state.kind == OwnerKind::Base);
        let (schema, image) = bases.find_map(|state| Some((state.schema, state.entities.get(&entity)?)))?;
        // Of one that cannot be converted its log says so, when it goes over.
        let type_id = self.migrations.image(schema, image).map(|image| image.type_id);
        let is_stored =
            type_id.is_ok_and(|type_id| self.schema.entity_type(type_id).is_some_and(|found| found.persistent));
        let database = image.base().filter(|_| is_stored)?.database;
        (database.0 != 0).then(|| (database, schema, image.clone()))
    }
}
