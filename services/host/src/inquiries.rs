//! Inquiries of behaviour on bases and cells: answered from the realm's store, by the director, and by the holder of the
//! owner on which an entity is activated. A failure is answered too, or not at all: then the deadline of the inquiry
//! passes.

use std::sync::Arc;
use std::time::Duration;

use annals_db::{FindError, accounts, find_indexed, find_stored, taken_from};
use annals_def::{EntityType, Value};
use annals_ids::{BatchNumber, CallNumber, DatabaseId, EntityId, OwnerId, TypeId};
use annals_node::{
    Begun, Input,
    inquiry::{Answer, Answered, Inquiry, Learned, NAMED_AT_ONCE, NotLearned, Wanted},
};
use annals_store::{
    Transaction,
    layout::owners::{self, Cursor},
};
use annals_wire::control::{DirectorAsk, OwnerAddress, PlaceSession};
use tokio::sync::Semaphore;

use crate::{
    activation::{self, NotBegun},
    holder_set::Holders,
    process::Process,
    telemetry::Chain,
};

/// Maximum inquiries of a process that are answered concurrently; one that writes waits for db to fold, some tens of
/// milliseconds.
const AT_ONCE: usize = 256;

/// Timeout of one inquiry. With a working database none takes longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Interval at which a log's cursor is read, and the director asked, again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Answers inquiries, each in its own task.
pub(crate) struct Inquiries<I> {
    process: Arc<Process>,
    holders: Holders<I>,
    room: Arc<Semaphore>,
}

impl<I: Send + Sync + 'static> Inquiries<I> {
    pub(crate) fn new(process: Arc<Process>, holders: Holders<I>) -> Self {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        Self { process, holders, room }
    }

    /// Answers an inquiry, within the timeout.
    pub(crate) fn answer(&self, owner: OwnerId, (entity, number): (EntityId, CallNumber), inquiry: Inquiry) {
        let (process, holders) = (Arc::clone(&self.process), self.holders.clone());
        let deliver = move |answer| {
            let answered = Answered { entity, number, answer };
            // A holder that has ended or lags gets no answer: the deadline handles that.
            if holders.send_core(owner, Input::Inquired(answered)).is_err() {
                tracing::debug!(
                    %owner,
                    %entity,
                    "dropped the answer to an inquiry: the holder has ended or its queue is full"
                );
            }
        };
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            let busy = format!("{AT_ONCE} inquiries are pending; try again in a moment");
            return deliver(Answer::Result(Err(NotLearned::Refused(busy))));
        };
        tokio::spawn(async move {
            let answer = tokio::time::timeout(TIMEOUT, answer(&process, owner, inquiry)).await;
            deliver(answer.unwrap_or(Answer::Result(Err(NotLearned::Late))));
            drop(permit);
        });
    }
}

async fn answer(process: &Process, owner: OwnerId, inquiry: Inquiry) -> Answer {
    Answer::Result(match inquiry {
        Inquiry::Written { database, batch } => written(process, owner, (database, batch)).await,
        Inquiry::Find {
            type_id,
            property,
            value,
            after,
        } => find(process, type_id, (&property, &value), after).await,
        Inquiry::Begin(wanted) => begin(process, owner, wanted).await,
        Inquiry::Place(new) => {
            let on = place(process).await;
            return Answer::Place { on, new };
        }
    })
}

async fn written(
    process: &Process,
    owner: OwnerId,
    (database, batch): (DatabaseId, BatchNumber),
) -> Result<Learned, NotLearned> {
    folded(process, owner, batch).await?;
    let read = |transaction: Transaction| async move { taken_from(&transaction, &process.schema, database).await };
    let taken = process.store.read(read).await.map_err(refused)?;
    Ok(Learned::Written { database, taken })
}

async fn find(
    process: &Process,
    type_id: TypeId,
    (property, value): (&str, &Value),
    after: DatabaseId,
) -> Result<Learned, NotLearned> {
    let entity_type = type_of(process, type_id)?;
    let read = |transaction: Transaction| async move {
        let place = (after, NAMED_AT_ONCE);
        let mut found = Vec::new();
        for id in find_indexed(&transaction, entity_type, property, value, place).await? {
            found.push(accounts::known(&transaction, type_id, id).await?);
        }
        Ok::<_, FindError>(found)
    };
    process.store.read(read).await.map(Learned::Found).map_err(refused)
}

/// The base owner that the director names for one more entity. Waits for a director that knows one.
async fn place(process: &Process) -> OwnerId {
    loop {
        let asked = DirectorAsk::PlaceSession(PlaceSession::default());
        match process.ask::<OwnerAddress>(asked).await {
            Ok(place) if place.owner != 0 => return OwnerId(place.owner),
            Ok(_) => tracing::debug!("the director knows no base owner"),
            Err(error) => tracing::debug!(error = %Chain(&error), "the director did not name a base owner"),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Waits until db has folded an owner's log up to a batch. Reads the store instead of waiting for db's notifications, which may
/// be lost.
async fn folded(process: &Process, owner: OwnerId, batch: BatchNumber) -> Result<(), NotLearned> {
    loop {
        let read = |transaction: Transaction| async move {
            let value = transaction.get(&owners::cursor_key(owner)).await?;
            Cursor::decode(value.as_deref())
        };
        if process.store.read(read).await.map_err(refused)?.batch >= batch {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Activates a stored entity, here or where it is active already.
async fn begin(process: &Process, owner: OwnerId, wanted: Wanted) -> Result<Learned, NotLearned> {
    let database = match wanted {
        Wanted::Id(database) => database,
        Wanted::Named { type_id, identifier } => find_named(process, type_id, &identifier).await?,
    };
    // Only an entity that exists may be checked out.
    let stored = accounts::load(&process.store, database).await.map_err(refused)?;
    stored.ok_or(NotLearned::Absent)?;
    match activation::begin(&process.bus, &process.subjects, database, owner).await {
        Ok(Begun { mailbox, was_active }) => Ok(Learned::Begun {
            database,
            mailbox,
            was_active,
        }),
        Err(NotBegun::Late) => Err(NotLearned::Late),
        Err(NotBegun::Refused(why)) => {
            // It may have been deleted since.
            let stored = accounts::load(&process.store, database).await.map_err(refused)?;
            Err(stored.map_or(NotLearned::Absent, |_| NotLearned::Refused(why)))
        }
    }
}

async fn find_named(process: &Process, type_id: TypeId, identifier: &Value) -> Result<DatabaseId, NotLearned> {
    let entity_type = type_of(process, type_id)?;
    let read = |transaction: Transaction| async move { find_stored(&transaction, entity_type, identifier).await };
    let found = process.store.read(read).await.map_err(refused)?;
    found.ok_or(NotLearned::Absent)
}

fn type_of(process: &Process, type_id: TypeId) -> Result<&EntityType, NotLearned> {
    let found = process.schema.entity_type(type_id);
    found.ok_or_else(|| NotLearned::Refused(format!("the realm has no type {type_id}")))
}

#[allow(clippy::needless_pass_by_value, reason = "map_err passes the error by value")]
fn refused(error: impl std::error::Error + 'static) -> NotLearned {
    NotLearned::Refused(Chain(&error).to_string())
}
