//! db's answers about accounts and stored entities.

use std::sync::Arc;

use annals_db::{StoredEntity, accounts, bans, personal};
use annals_def::Schema;
use annals_event::latest::call::put_properties;
use annals_ids::{DatabaseId, OwnerId, Part};
use annals_store::{Store, StoreError, layout::database::Checkout};
use annals_wire::{
    client::Ban,
    control::{
        self, AccountFound, CheckOut, CheckedOut, CreateAccount, DbAsk, DbRequest, DefinitionsChanged, FindAccount,
        WireBan,
    },
};
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::Semaphore;

use super::definitions::Definitions;
use crate::{clock, nats::Subscription, process, telemetry::Chain};

/// Maximum requests handled concurrently. Further ones are refused, and their sender retries: a queue would only make
/// all answers late.
pub const REQUESTS_AT_ONCE: usize = 256;

/// The answer to a refused request.
const BUSY: &str = "db is overloaded; try again";

/// Answers requests about accounts and stored entities at `subject` until the connection ends.
///
/// # Errors
/// When the bus refuses the subscription.
pub async fn answer_all(
    client: &async_nats::Client,
    subject: String,
    store: &Store,
    definitions: &Arc<Definitions>,
) -> Result<(), async_nats::SubscribeError> {
    let mut requests = Subscription::from(client.queue_subscribe(subject, "db".to_owned()).await?);
    let free = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
    while let Some(message) = requests.next().await {
        let Some(reply) = message.reply else { continue };
        let Some(ask) = read(&message.payload) else { continue };
        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else {
            send(client, reply, turn_away(&ask)).await;
            continue;
        };
        let (store, definitions, client) = (store.clone(), Arc::clone(definitions), client.clone());
        tokio::spawn(async move {
            send(&client, reply, answer(&store, &definitions, ask).await).await;
            drop(permit);
        });
    }
    Ok(())
}

fn read(payload: &[u8]) -> Option<DbAsk> {
    match control::decode::<DbRequest>(payload) {
        Ok(request) => request.ask,
        Err(error) => {
            tracing::warn!(%error, "ignored a malformed request");
            None
        }
    }
}

async fn send(client: &async_nats::Client, reply: async_nats::Subject, answer: Bytes) {
    if let Err(error) = client.publish(reply, answer).await {
        tracing::warn!(%error, "could not send an answer");
    }
}

async fn answer(store: &Store, definitions: &Definitions, ask: DbAsk) -> Bytes {
    match ask {
        DbAsk::FindAccount(find) => control::encode(&find_account(store, &find).await),
        DbAsk::CreateAccount(create) => {
            let schema = definitions.present().await;
            control::encode(&create_account(store, &schema, &create).await)
        }
        DbAsk::CheckOut(check_out) => {
            let schema = definitions.present().await;
            control::encode(&checked_out(store, &schema, &check_out).await)
        }
        DbAsk::ChangeDefinitions(change) => control::encode(&definitions.change(&change).await),
    }
    .into()
}

fn turn_away(ask: &DbAsk) -> Bytes {
    let failed = BUSY.to_owned();
    match ask {
        DbAsk::FindAccount(_) | DbAsk::CreateAccount(_) => control::encode(&AccountFound {
            failed,
            ..AccountFound::default()
        }),
        DbAsk::CheckOut(_) => control::encode(&CheckedOut {
            failed,
            ..CheckedOut::default()
        }),
        DbAsk::ChangeDefinitions(_) => control::encode(&DefinitionsChanged { refused: failed }),
    }
    .into()
}

fn account_found(found: Result<Option<(DatabaseId, String)>, StoreError>) -> AccountFound {
    match found {
        Ok(Some((database, password))) => AccountFound {
            database: database.0,
            password,
            ..AccountFound::default()
        },
        Ok(None) => AccountFound::default(),
        Err(error) => AccountFound {
            failed: Chain(&error).to_string(),
            ..AccountFound::default()
        },
    }
}

async fn find_account(store: &Store, find: &FindAccount) -> AccountFound {
    let found = match accounts::find(store, &find.name).await {
        Ok(found) => found,
        Err(error) => return account_found(Err(error)),
    };
    let Some(account) = found else {
        return AccountFound::default();
    };
    match bans::in_force(store, account.database, clock::wall()).await {
        Ok(ban) => AccountFound {
            ban: ban.as_ref().map(WireBan::from),
            ..account_found(Ok(Some((account.database, account.password))))
        },
        Err(error) => account_found(Err(error)),
    }
}

async fn create_account(store: &Store, schema: &Schema, create: &CreateAccount) -> AccountFound {
    if schema.type_named(&create.entity_type).is_none() {
        return AccountFound {
            failed: format!(
                "the realm's definitions have no type {}: the login process was started with others",
                create.entity_type
            ),
            ..AccountFound::default()
        };
    }
    let entity = StoredEntity {
        entity_type: create.entity_type.clone(),
        ..StoredEntity::default()
    };
    let created = accounts::create(store, &create.name, &create.password, &entity, schema).await;
    account_found(created.map(|account| Some((account.database, account.password))))
}

async fn checked_out(store: &Store, schema: &Schema, wanted: &CheckOut) -> CheckedOut {
    let failed = |reason: String| CheckedOut {
        failed: reason,
        ..CheckedOut::default()
    };
    let database = DatabaseId(wanted.database);
    if wanted.only_active {
        return match accounts::checkout_of(store, database).await {
            Ok(checkout) => CheckedOut {
                owner: checkout.map_or(0, |checkout| checkout.owner.0),
                ..CheckedOut::default()
            },
            Err(error) => failed(Chain(&error).to_string()),
        };
    }
    let checkout = match check_out(store, wanted).await {
        Ok(Ok(Some(checkout))) => checkout,
        Ok(Ok(None)) => return failed(format!("there is no entity {database} in the database")),
        Ok(Err(ban)) => {
            return CheckedOut {
                ban: Some(WireBan::from(&ban)),
                ..CheckedOut::default()
            };
        }
        Err(error) => return failed(Chain(&error).to_string()),
    };
    let stored = match accounts::load(store, database).await {
        Ok(Some(stored)) => stored,
        Ok(None) => return failed(format!("there is no entity {database} in the database")),
        Err(error) => return failed(Chain(&error).to_string()),
    };
    let Some(entity_type) = schema.type_named(&stored.entity_type) else {
        return failed(format!(
            "entity {database} is of type {}, which the schema does not have",
            stored.entity_type
        ));
    };
    if let Err(unfit) = stored.fits(entity_type) {
        return failed(format!("entity {database} cannot be loaded: {}", Chain(&unfit)));
    }
    let key = match personal::key(store, database, process::random()).await {
        Ok(key) => key.map_or_else(Vec::new, |key| key.bytes().to_vec()),
        Err(error) => return failed(Chain(&error).to_string()),
    };
    let mut properties = Vec::new();
    let parts = [Part::Base, Part::Cell].map(|part| stored.properties_of(entity_type, part));
    put_properties(&mut properties, &parts.concat());
    CheckedOut {
        owner: checkout.owner.0,
        checkout: checkout.number,
        type_id: u32::from(entity_type.id.0),
        properties,
        failed: String::new(),
        key,
        ban: None,
    }
}

async fn check_out(store: &Store, wanted: &CheckOut) -> Result<Result<Option<Checkout>, Ban>, StoreError> {
    let (database, preferred) = (DatabaseId(wanted.database), OwnerId(wanted.preferred));
    if wanted.plays {
        accounts::check_out_to_play(store, database, preferred, clock::wall()).await
    } else {
        accounts::check_out(store, database, preferred).await.map(Ok)
    }
}
