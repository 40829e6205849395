//! db's shell: holds the embedded store and serves it, folds the stream into it, and answers for accounts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals_db::{FoldError, Folded, Folder, Missing, StoredEntity, accounts};
use annals_def::Schema;
use annals_event::latest::call::put_properties;
use annals_ids::{BatchNumber, DatabaseId, OwnerId, Part};
use annals_store::{
    Store, StoreError,
    embedded::{EmbeddedStore, OpenError},
    remote::{ServeError, serve},
};
use annals_wire::{
    Subjects,
    control::{
        self, AccountFound, CheckOut, CheckedOut, CreateAccount, CursorMoved, CursorNews, DbAsk, DbRequest, Want,
    },
};
use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use thiserror::Error;
use tokio::time::{Instant, MissedTickBehavior};

use crate::{
    health::{DiscoveryError, Readiness},
    log::{Entry, History, Lane, Reader},
    nats::{Bus, ConnectError, StreamError},
    process::{self, SHARD, Settings},
    telemetry::{Chain, Metrics},
};

/// Bytes of batches that are read before they are folded: one transaction's worth.
const READ_AHEAD: usize = 3 << 20;

/// How often holes are looked at and logs trimmed.
const UPKEEP: Duration = Duration::from_millis(500);

/// How long a hole may last before it is named (rule F4).
const HOLE_PATIENCE: Duration = Duration::from_secs(30);

/// How often a log is trimmed at most.
const TRIM_INTERVAL: Duration = Duration::from_secs(30);

/// What is younger than this is left alone: a taker that looks at the log a second time must find what it read at first.
const TRIM_AGE: Duration = Duration::from_secs(60);

/// Why db ended.
#[derive(Debug, Error)]
pub enum DbError {
    /// The store cannot be opened.
    #[error("the store cannot be opened")]
    Open(#[from] OpenError),
    /// No connection.
    #[error("the realm's bus could not be joined")]
    Connect(#[from] ConnectError),
    /// The history stream is not as it should be.
    #[error("the history stream cannot be used")]
    Stream(#[from] StreamError),
    /// The bus does not let us listen.
    #[error("the bus does not let db listen")]
    Listen(#[from] async_nats::SubscribeError),
    /// The store cannot be served.
    #[error("the store cannot be served")]
    Serve(#[from] ServeError),
    /// Service discovery.
    #[error("db cannot make itself known")]
    Announce(#[from] DiscoveryError),
    /// Folding stopped.
    #[error("the log is not folded any more")]
    Fold(#[from] FoldError),
}

/// Runs db on the store in `directory`.
///
/// # Errors
/// When the store or the bus cannot be used, or folding has to stop.
pub async fn run(settings: &Settings, schema: &Arc<Schema>, directory: &Path) -> Result<(), DbError> {
    let store = EmbeddedStore::open(directory)?.store();
    let (bus, subjects) = process::connect(settings, "db").await?;
    let history = History::ensure(&bus, settings.realm.as_str(), SHARD, settings.replicas).await?;
    let stopping = process::stopped(process::stop_signal());
    let metrics = Arc::new(Metrics::default());
    let (_announcement, readiness) = process::announce(&bus, settings, "db", &metrics).await?;
    let serving = serve(bus.client().clone(), subjects.service("store"), store.clone(), stopping);
    let answering = answer_all(&bus, &subjects, &store, schema);
    let folding = fold_all(&bus, &subjects, &history, &store, schema, &metrics);
    readiness.send_replace(Readiness::Ready);
    tracing::info!(directory = %directory.display(), "serving the store");
    tokio::select! {
        ended = serving => Ok(ended?),
        ended = answering => ended,
        ended = folding => ended,
    }
}

/// The stream, on its way into the store.
struct Fold {
    bus: Bus,
    subjects: Subjects,
    history: History,
    folder: Folder,
    reader: Reader,
    /// When each log was trimmed last, and up to which cursor.
    trimmed: BTreeMap<OwnerId, (Instant, BatchNumber)>,
    cursors: BTreeMap<OwnerId, BatchNumber>,
    holes: BTreeMap<(OwnerId, BatchNumber), Hole>,
    metrics: Arc<Metrics>,
}

struct Hole {
    since: Instant,
    named: bool,
}

async fn fold_all(
    bus: &Bus,
    subjects: &Subjects,
    history: &History,
    store: &Store,
    schema: &Arc<Schema>,
    metrics: &Arc<Metrics>,
) -> Result<(), DbError> {
    let folder = Folder::begin(store.clone(), SHARD, Arc::clone(schema)).await?;
    let mut fold = Fold {
        bus: bus.clone(),
        subjects: subjects.clone(),
        history: history.clone(),
        folder,
        reader: Reader::new(history, 1),
        trimmed: BTreeMap::new(),
        cursors: BTreeMap::new(),
        holes: BTreeMap::new(),
        metrics: Arc::clone(metrics),
    };
    let mut upkeep = tokio::time::interval(UPKEEP);
    upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            entry = fold.reader.next() => {
                fold.take(&entry);
                // Whatever is there already goes into the same transaction.
                while fold.folder.pending_bytes() < READ_AHEAD {
                    match fold.reader.next().now_or_never() {
                        Some(entry) => fold.take(&entry),
                        None => break,
                    }
                }
                while fold.folder.has_work() {
                    let folded = fold.folder.commit().await?;
                    fold.announce(&folded).await;
                }
            }
            _ = upkeep.tick() => fold.keep_up().await,
        }
    }
}

impl Fold {
    fn take(&mut self, entry: &Entry) {
        self.folder.offer(entry.owner, entry.bytes.to_vec());
    }

    /// Rule F6, and what an operator must see.
    async fn announce(&mut self, folded: &Folded) {
        for alarm in &folded.alarms {
            tracing::error!(%alarm, "the log is not as it should be");
        }
        if folded.cursors.is_empty() {
            return;
        }
        self.metrics.batches.add(folded.batches as u64);
        self.metrics.events.add(folded.events);
        self.metrics.bytes.add(folded.bytes);
        let moved = folded.cursors.iter().map(|(owner, cursor)| CursorMoved {
            owner: owner.0,
            batch: cursor.batch.0,
            hash: cursor.hash.0.to_vec(),
            epoch: cursor.epoch.0,
        });
        let news = CursorNews {
            cursors: moved.collect(),
        };
        self.publish("cursors", &news).await;
        self.cursors
            .extend(folded.cursors.iter().map(|(owner, cursor)| (*owner, cursor.batch)));
        tracing::debug!(
            batches = folded.batches,
            events = folded.events,
            bytes = folded.bytes,
            "folded"
        );
    }

    async fn publish(&self, topic: &str, news: &impl prost::Message) {
        let published = self
            .bus
            .client()
            .publish(self.subjects.news(topic), control::encode(news).into())
            .await;
        if let Err(error) = published {
            // Said again with the next: cursors only grow, and holes are looked at again.
            tracing::debug!(%error, topic, "news were not sent");
        }
    }

    async fn keep_up(&mut self) {
        let missing: Vec<Missing> = self.folder.missing().collect();
        let present: Vec<(OwnerId, BatchNumber)> = missing.iter().map(|hole| (hole.owner, hole.first)).collect();
        self.holes.retain(|place, _| present.contains(place));
        for hole in missing {
            self.ask_for(hole).await;
        }
        self.trim().await;
    }

    async fn ask_for(&mut self, missing: Missing) {
        let place = (missing.owner, missing.first);
        let hole = self.holes.entry(place).or_insert_with(|| Hole {
            since: Instant::now(),
            named: false,
        });
        let overdue = !hole.named && hole.since.elapsed() >= HOLE_PATIENCE;
        self.publish(
            "wants",
            &Want {
                owner: missing.owner.0,
                first: missing.first.0,
                until: missing.until.0,
            },
        )
        .await;
        if overdue {
            let Missing {
                owner,
                first,
                until,
                after,
                named,
            } = missing;
            tracing::error!(%owner, %first, %until, %after, %named, "batches are lost and nobody has them: the log stands still there");
            match self.folder.name_hole(missing).await {
                Ok(()) => {
                    if let Some(hole) = self.holes.get_mut(&place) {
                        hole.named = true;
                    }
                }
                Err(error) => tracing::warn!(%error, "the hole could not be recorded; it is tried again"),
            }
        }
    }

    /// Drops what lies before the newest archived batch of each log, which itself stays.
    async fn trim(&mut self) {
        let now = Instant::now();
        for (owner, cursor) in &self.cursors {
            let last = self.trimmed.get(owner);
            if last.is_some_and(|(at, upto)| now - *at < TRIM_INTERVAL || upto == cursor) {
                continue;
            }
            self.trimmed.insert(*owner, (now, *cursor));
            for lane in [Lane::Log, Lane::Fill] {
                if let Err(error) = self.history.trim(lane, *owner, *cursor, TRIM_AGE).await {
                    tracing::warn!(%owner, %error, "trimming is tried again");
                }
            }
        }
    }
}

/// Answers requests about accounts and stored entities.
async fn answer_all(bus: &Bus, subjects: &Subjects, store: &Store, schema: &Arc<Schema>) -> Result<(), DbError> {
    let mut requests = bus
        .client()
        .queue_subscribe(subjects.service("db"), "db".to_owned())
        .await?;
    while let Some(request) = requests.next().await {
        let Some(reply) = request.reply.clone() else { continue };
        let (store, schema, client) = (store.clone(), Arc::clone(schema), bus.client().clone());
        tokio::spawn(async move {
            let Some(answer) = answer(&store, &schema, &request.payload).await else {
                return;
            };
            if let Err(error) = client.publish(reply, answer).await {
                tracing::warn!(%error, "an answer was not sent");
            }
        });
    }
    Ok(())
}

async fn answer(store: &Store, schema: &Schema, payload: &[u8]) -> Option<Bytes> {
    let request: DbRequest = match control::decode(payload) {
        Ok(request) => request,
        Err(error) => {
            tracing::warn!(%error, "a request that was not understood");
            return None;
        }
    };
    Some(
        match request.ask? {
            DbAsk::FindAccount(find) => {
                let found = accounts::find(store, &find.name).await;
                control::encode(&account_found(
                    found.map(|account| account.map(|account| (account.database, account.password))),
                ))
            }
            DbAsk::CreateAccount(create) => control::encode(&create_account(store, schema, &create).await),
            DbAsk::CheckOut(check_out) => control::encode(&checked_out(store, schema, &check_out).await),
        }
        .into(),
    )
}

fn account_found(found: Result<Option<(DatabaseId, String)>, StoreError>) -> AccountFound {
    match found {
        Ok(Some((database, password))) => AccountFound {
            database: database.0,
            password,
            failed: String::new(),
        },
        Ok(None) => AccountFound::default(),
        Err(error) => AccountFound {
            failed: Chain(&error).to_string(),
            ..AccountFound::default()
        },
    }
}

async fn create_account(store: &Store, schema: &Schema, create: &CreateAccount) -> AccountFound {
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
    let checkout = match accounts::check_out(store, database, OwnerId(wanted.preferred)).await {
        Ok(checkout) => checkout,
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
    let mut properties = Vec::new();
    put_properties(&mut properties, &stored.properties_of(entity_type, Part::Base));
    CheckedOut {
        owner: checkout.owner.0,
        checkout: checkout.number,
        type_id: u32::from(entity_type.id.0),
        properties,
        failed: String::new(),
    }
}
