//! What folding a batch does to the database: entities that are written, and lives that end.

use annals_def::{MigrationError, Schema};
use annals_event::{Body, Event, Image, OwnerState, Subject, ledger::Order};
use annals_ids::{DatabaseId, EntityId, Hash, NoticeNumber, OwnerId, TransferId};
use annals_store::{
    StoreError, Transaction,
    layout::database::{self, Checkout},
};

use super::Alarm;
use crate::ledger::Life;
use crate::migrations::Migrations;
use crate::stored::{self, EntityRow, StoredEntity, Taken, Written};

/// What an event asks for.
pub(crate) enum Effect {
    /// An entity is to be written as it was at that moment.
    Write {
        entity: EntityId,
        database: DatabaseId,
        /// Whose life it is.
        life: Checkout,
        base: Box<Image>,
    },
    /// A life has ended: its check-out is given back.
    GiveBack {
        entity: EntityId,
        database: DatabaseId,
        life: Checkout,
    },
    /// An entity of the database lives, without anything to be written.
    Live { database: DatabaseId, life: Life },
    /// The ledger is asked for something.
    Ask {
        of: TransferId,
        holder: DatabaseId,
        order: Order,
    },
    /// The log `ledger` holds the notices after the first of these, up to the second.
    Took(NoticeNumber, NoticeNumber),
    /// The log `ledger` holds this adoption.
    Adopted(u32),
    /// The cell part of an entity with a base has ended: what it held last is the database's, if the entity is.
    EndCell {
        entity: EntityId,
        home: OwnerId,
        cell: Box<Image>,
    },
}

impl Effect {
    /// What an event asks for, before it changes the state.
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
            (Body::Destroyed, Some(base)) if base.database != DatabaseId(0) => Some(Self::GiveBack {
                entity,
                database: base.database,
                life: life(base.checkout),
            }),
            (Body::Destroyed, None) if image.cell().is_some_and(|cell| cell.based) => Some(Self::EndCell {
                entity,
                home: image.home,
                cell: Box::new(image.clone()),
            }),
            _ => None,
        }
    }
}

/// An entity of the database as it is to be written.
pub(super) struct Taking {
    before: Option<EntityRow>,
    now: StoredEntity,
    generation: u32,
}

impl Taking {
    /// Takes in the persistent properties of those parts of an entity that are known, each with the definitions under which
    /// it stands. Those of the other part stay as they are. An alarm says why it cannot be written.
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
        Ok(Ok(Self {
            before,
            now,
            generation,
        }))
    }

    /// Whether it is written already as it is.
    pub(super) fn is_there(&self) -> bool {
        let (generation, now) = (self.generation, &self.now);
        let is_same = |before: &EntityRow| before.generation == generation && before.entity == *now;
        self.before.as_ref().is_some_and(is_same)
    }

    /// Writes it.
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

/// An entity that has just become one of the database's is in use by the life that made it so.
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

/// A later life may have checked the entity out since; its check-out stays.
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
