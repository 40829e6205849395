//! Effects of folding a batch on the database: entities to write, activations that end.

use annals_def::{MigrationError, Schema};
use annals_event::{Body, Event, Image, OwnerState, Subject, ledger::Order};
use annals_ids::{
    Address, CallNumber, DatabaseId, EntityId, Hash, NoticeNumber, OwnerId, SessionId, TransferId, TypeId,
};
use annals_store::{
    StoreError, Transaction,
    layout::{
        database::{self, Checkout},
        shards::Parting,
    },
};

use super::Alarm;
use crate::ledger::{Life, is_deleted};
use crate::migrations::Migrations;
use crate::stored::{self, EntityRow, StoredEntity, Taken, Written};

/// Effect that an event requests.
pub(crate) enum Effect {
    /// Write the entity as it was at that event.
    Write {
        entity: EntityId,
        database: DatabaseId,
        /// The activation's check-out.
        life: Checkout,
        base: Box<Image>,
    },
    /// An activation has ended: return its check-out.
    GiveBack {
        entity: EntityId,
        parting: Parting,
        /// Whether the base part knew of no cell part, or had learned of its end.
        without_cell: bool,
    },
    /// An activation of an entity that was never stored has ended.
    EndUnstored {
        entity: EntityId,
        type_id: TypeId,
        life: Checkout,
    },
    /// A stored entity is active; there is nothing to write.
    Live { database: DatabaseId, life: Life },
    /// A request to the ledger.
    Ask {
        of: TransferId,
        holder: DatabaseId,
        order: Order,
    },
    /// The log `ledger` contains the notices after the first number, up to and including the second.
    Took(NoticeNumber, NoticeNumber),
    /// The log `ledger` contains this adoption.
    Adopted(u32),
    /// A client was admitted.
    Admitted { person: DatabaseId, session: SessionId },
    /// The cell part of an entity with a base has left for another owner.
    LeaveCell { entity: EntityId, home: OwnerId },
    /// The cell part of an entity with a base has ended: its last properties are written to the database if the entity
    /// is stored.
    EndCell {
        entity: EntityId,
        home: OwnerId,
        cell: Box<Image>,
    },
}

impl Effect {
    /// Effect of an event, determined before the event changes the state.
    pub(crate) fn of(state: &OwnerState, event: &Event) -> Option<Self> {
        let Subject::Entity(entity, _) = event.subject else {
            return match &event.body {
                Body::Entered { notice, .. } => Some(Self::Took(state.ledger.notice, *notice)),
                Body::Adopted(adoption) => Some(Self::Adopted(adoption.number)),
                _ => None,
            };
        };
        if let Body::BaseCreated(creation) = &event.body {
            let life = Life {
                entity,
                home: state.owner,
                checkout: creation.checkout,
            };
            let database = creation.database;
            return (database != DatabaseId(0)).then_some(Self::Live { database, life });
        }
        let image = state.entities.get(&entity)?;
        let life = |number| Checkout {
            owner: state.owner,
            number,
        };
        match (&event.body, image.base()) {
            (Body::Stored { database }, Some(base)) => Some(Self::Write {
                entity,
                database: *database,
                life: life(base.checkout),
                base: Box::new(image.clone()),
            }),
            (Body::Ordered { number, order }, Some(base)) => Some(Self::Ask {
                of: TransferId {
                    asker: entity,
                    number: *number,
                },
                holder: base.database,
                order: order.clone(),
            }),
            (Body::Admitted { session, person, .. }, Some(_)) if *person != DatabaseId(0) => Some(Self::Admitted {
                person: *person,
                session: *session,
            }),
            (Body::Destroyed, Some(base)) if base.database != DatabaseId(0) => Some(Self::GiveBack {
                entity,
                parting: Parting {
                    database: base.database,
                    life: life(base.checkout),
                    last_cell: last_cell(entity, image),
                },
                without_cell: base.cell.is_none(),
            }),
            (Body::Destroyed, Some(base)) => Some(Self::EndUnstored {
                entity,
                type_id: image.type_id,
                life: life(base.checkout),
            }),
            (Body::Destroyed, None) if image.cell().is_some_and(|cell| cell.based) => Some(Self::EndCell {
                entity,
                home: image.home,
                cell: Box::new(image.clone()),
            }),
            (Body::Offloaded { .. }, None) if image.cell().is_some_and(|cell| cell.based) => Some(Self::LeaveCell {
                entity,
                home: image.home,
            }),
            _ => None,
        }
    }

    /// Whether it reads or changes the ledger.
    pub(super) fn is_of_ledger(&self) -> bool {
        match self {
            Self::Write { .. } | Self::GiveBack { .. } | Self::Live { .. } | Self::Ask { .. } => true,
            Self::EndUnstored { .. }
            | Self::Took(..)
            | Self::Adopted(_)
            | Self::Admitted { .. }
            | Self::LeaveCell { .. }
            | Self::EndCell { .. } => false,
        }
    }
}

/// The number of the call with which the last one of several cell parts reported its end; 0 if there was at most one.
fn last_cell(entity: EntityId, base: &Image) -> CallNumber {
    let had_several = base.base().is_some_and(|base| base.cell_history.is_some());
    let taken = base.links.taken.get(&Address::Cell(entity)).filter(|_| had_several);
    taken.copied().unwrap_or_default()
}

/// The number of the call with which a cell part that has ended reported that to its base part.
pub(super) fn report_of_end(entity: EntityId, cell: &Image) -> CallNumber {
    let sent = cell.links.sent.get(&Address::Base(entity));
    sent.map(|sent| sent.last).unwrap_or_default()
}

/// Whether a cell part that has ended is not the last one that the base part knows: the end of its log was lost, and is
/// folded late.
pub(crate) fn is_former(entity: EntityId, base: &Image, cell: &Image) -> bool {
    let end = report_of_end(entity, cell);
    let taken = base
        .links
        .taken
        .get(&Address::Cell(entity))
        .copied()
        .unwrap_or_default();
    let has_next = base.base().is_some_and(|base| base.cell.is_some());
    end != CallNumber(0) && (taken > end || (taken == end && has_next))
}

/// A stored entity that is about to be written.
pub(super) struct Taking {
    before: Option<EntityRow>,
    now: StoredEntity,
    generation: u32,
    /// Whether the entity was deleted: then it is not written any more.
    pub(super) is_deleted: bool,
}

impl Taking {
    /// Merges the persistent properties of the known parts of an entity, each with the definitions under which it is
    /// stored. Properties of an unknown part stay unchanged. Returns an alarm if the entity cannot be written.
    pub(super) async fn read(
        transaction: &Transaction,
        (schema, migrations): (&Schema, &Migrations),
        database: DatabaseId,
        parts: &[(Hash, &Image)],
    ) -> Result<Result<Self, Alarm>, StoreError> {
        let unconverted = |error: MigrationError| {
            let why = error.to_string();
            Ok(Err(Alarm::Unconverted { database, why }))
        };
        let before = stored::read_row(transaction, database).await?;
        let mut now = match before.as_ref().map(|before| migrations.entity(before)) {
            None => StoredEntity::default(),
            Some(Ok(entity)) => entity,
            Some(Err(error)) => return unconverted(error),
        };
        for (written, part) in parts {
            let part = match migrations.image(*written, part) {
                Ok(part) => part,
                Err(error) => return unconverted(error),
            };
            let Some(entity_type) = schema.entity_type(part.type_id) else {
                let type_id = part.type_id;
                return Ok(Err(Alarm::UnknownType { database, type_id }));
            };
            now.take_in(entity_type, &part);
        }
        let generation = migrations.generation();
        let is_deleted = before.is_none() && is_deleted(transaction, database).await?;
        Ok(Ok(Self {
            before,
            now,
            generation,
            is_deleted,
        }))
    }

    /// Whether there is nothing to write: the row is up to date, or the entity was deleted.
    pub(super) fn is_there(&self) -> bool {
        let (generation, now) = (self.generation, &self.now);
        let is_same = |before: &EntityRow| before.generation == generation && before.entity == *now;
        self.is_deleted || self.before.as_ref().is_some_and(is_same)
    }

    /// Writes the entity.
    pub(super) async fn write(
        &self,
        transaction: &Transaction,
        (schema, migrations): (&Schema, &Migrations),
        database: DatabaseId,
    ) -> Result<(Written, Vec<Alarm>), StoreError> {
        let before = self.before.as_ref();
        let before = before.map(|before| (migrations.schema_of(before.generation, schema), &before.entity));
        let definitions = (schema, self.generation);
        let written = stored::write(transaction, definitions, database, before, &self.now).await?;
        let taken = |taken: &Taken| Alarm::IdentifierTaken {
            database,
            property: taken.property.clone(),
            holder: taken.holder,
        };
        let alarms = written.taken.iter().map(taken).collect();
        Ok((written, alarms))
    }
}

/// Checks an entity that has just become stored out to the activation that stored it.
pub(super) async fn check_out_new(
    transaction: &Transaction,
    database: DatabaseId,
    life: Checkout,
) -> Result<(), StoreError> {
    let key = database::checkout_key(database);
    match transaction.get(&key).await? {
        Some(_) => Ok(()),
        None => transaction.set(&key, &life.encode()),
    }
}

/// Returns a check-out, unless a later activation has checked the entity out since.
pub(super) async fn give_back(
    transaction: &Transaction,
    database: DatabaseId,
    ended: Checkout,
) -> Result<(), StoreError> {
    let key = database::checkout_key(database);
    let held = transaction.get(&key).await?;
    if held.map(|value| Checkout::decode(&value)).transpose()? == Some(ended) {
        transaction.clear(&key)
    } else {
        Ok(())
    }
}
