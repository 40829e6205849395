//! What folding a batch does to the database: entities that are written, and lives that end.

use std::collections::BTreeMap;

use annals_def::Schema;
use annals_event::{Body, Event, Image, OwnerState, Subject};
use annals_ids::{DatabaseId, EntityId, OwnerId};
use annals_store::{
    StoreError, Transaction,
    layout::database::{self, Checkout},
};

use super::{Alarm, log::Log};
use crate::stored::{self, StoredEntity};

/// What the events of one batch ask for, in their order.
#[derive(Default)]
pub(super) struct Effects {
    wanted: Vec<Effect>,
}

enum Effect {
    /// An entity is to be written as it was at that moment.
    Write {
        owner: OwnerId,
        entity: EntityId,
        database: DatabaseId,
        image: Box<Image>,
    },
    /// A life has ended: its check-out is given back.
    GiveBack { database: DatabaseId, checkout: Checkout },
}

impl Effects {
    /// Notes what an event asks for, before it changes the state.
    pub(super) fn note(&mut self, state: &OwnerState, event: &Event) {
        let Subject::Entity(entity, _) = event.subject else {
            return;
        };
        let Some(image) = state.entities.get(&entity) else {
            return;
        };
        match (&event.body, image.base()) {
            (Body::Stored { database }, Some(_)) => {
                let (owner, image) = (state.owner, Box::new(image.clone()));
                self.wanted.push(Effect::Write {
                    owner,
                    entity,
                    database: *database,
                    image,
                });
            }
            (Body::Destroyed, Some(base)) if base.database != DatabaseId(0) => {
                let checkout = Checkout {
                    owner: state.owner,
                    number: base.checkout,
                };
                self.wanted.push(Effect::GiveBack {
                    database: base.database,
                    checkout,
                });
            }
            _ => {}
        }
    }

    /// Writes them.
    pub(super) async fn write(
        self,
        transaction: &Transaction,
        schema: &Schema,
        logs: &BTreeMap<OwnerId, Log>,
        alarms: &mut Vec<Alarm>,
    ) -> Result<(), StoreError> {
        for effect in self.wanted {
            match effect {
                Effect::Write {
                    owner,
                    entity,
                    database,
                    image,
                } => {
                    let cell = image.base().and_then(|base| base.cell);
                    let cell = cell.and_then(|at| logs.get(&at)?.state()?.entities.get(&entity));
                    let holder = write_entity(transaction, schema, database, &image, cell).await?;
                    alarms.extend(holder.map(|holder| Alarm::IdentifierTaken { database, holder }));
                    let number = image.base().map_or(0, |base| base.checkout);
                    check_out_new(transaction, database, Checkout { owner, number }).await?;
                }
                Effect::GiveBack { database, checkout } => give_back(transaction, database, checkout).await?,
            }
        }
        Ok(())
    }
}

/// Writes the persistent properties of both parts; what the cell part held before stays if it is not known now.
async fn write_entity(
    transaction: &Transaction,
    schema: &Schema,
    database: DatabaseId,
    base: &Image,
    cell: Option<&Image>,
) -> Result<Option<DatabaseId>, StoreError> {
    let Some(entity_type) = schema.entity_type(base.type_id) else {
        return Ok(None);
    };
    let mut entity: StoredEntity = stored::read(transaction, database).await?.unwrap_or_default();
    entity.take_in(entity_type, base);
    if let Some(cell) = cell {
        entity.take_in(entity_type, cell);
    }
    stored::write(transaction, schema, database, &entity).await
}

/// An entity that has just become one of the database's is in use by the life that made it so.
async fn check_out_new(transaction: &Transaction, database: DatabaseId, checkout: Checkout) -> Result<(), StoreError> {
    let key = database::checkout_key(database);
    match transaction.get(&key).await? {
        Some(_) => Ok(()),
        None => transaction.set(&key, &checkout.encode()),
    }
}

/// A later life may have checked the entity out since; its check-out stays.
async fn give_back(transaction: &Transaction, database: DatabaseId, ended: Checkout) -> Result<(), StoreError> {
    let key = database::checkout_key(database);
    let held = transaction
        .get(&key)
        .await?
        .map(|value| Checkout::decode(&value))
        .transpose()?;
    if held == Some(ended) {
        transaction.clear(&key)
    } else {
        Ok(())
    }
}
