//! db's shell: holds the store and serves it, folds the stream into it, and answers requests about accounts.

mod answers;
mod auditing;
mod converting;
mod definitions;
mod folding;
mod ledger;
mod retaining;
mod rounds;
mod sealing;
mod tiling;
mod traced_folds;
mod trimming;
mod watching;

use std::collections::BTreeMap;
use std::sync::Arc;

use annals_db::{
    FoldError,
    adopting::{Adoption, AdoptionRecord},
    ensure_shards, present_schema,
};
use annals_def::Schema;
use annals_ids::Shard;
use annals_store::{
    StoreError,
    layout::shards,
    remote::{ServeError, serve},
};
use futures::future::try_join_all;
use thiserror::Error;
use tokio::sync::{mpsc, watch};

use folding::{Folding, fold_shard};
use watching::Figures;

pub use answers::{REQUESTS_AT_ONCE, answer_all};
pub use definitions::{Change, Definitions};

use crate::{
    comparing::{self, CompareError},
    config::{Config, FoldedShards},
    director::course_ended,
    health::{DiscoveryError, Health, Readiness},
    log::{History, Logs},
    nats::{Bus, ConnectError, StreamError, Subscription},
    process::{self, FIRST_SHARD, Process, Reached, Settings},
    store::{self, OpenError},
    telemetry::Chain,
};

/// Why db ended.
#[derive(Debug, Error)]
pub enum DbError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It could not connect.
    #[error("the realm's bus could not be joined")]
    Connect(#[from] ConnectError),
    /// The history stream is not configured as required.
    #[error("the history stream cannot be used")]
    Stream(#[from] StreamError),
    /// The bus refused a subscription.
    #[error("cannot subscribe to db's subjects on the bus")]
    Listen(#[from] async_nats::SubscribeError),
    /// The store cannot be served.
    #[error("the store cannot be served")]
    Serve(#[from] ServeError),
    /// Service discovery failed.
    #[error("cannot announce db on the bus")]
    Announce(#[from] DiscoveryError),
    /// Folding stopped.
    #[error("folding of the log has stopped")]
    Fold(#[from] FoldError),
    /// The store does not belong to the logs, or the comparison failed.
    #[error("the realm does not start")]
    Compare(#[from] CompareError),
    /// The store cannot be read.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// The realm does not have a shard that is to be folded.
    #[error(
        "the setting fold names shard {shard}, and the realm has {count} shards, 0 to {}: raise the setting shards of the db \
         that folds shard 0, or change fold",
        count - 1
    )]
    NoSuchShard {
        shard: Shard,
        /// Number of the realm's shards.
        count: u16,
    },
    /// The adoption of a log has not finished.
    #[error(
        "the realm does not start: {} began to adopt its log ({:?}) and did not complete it; run `annals realm \
         adopt-log` again, which continues it",
        .0.adoption.operator, .0.adoption.reason
    )]
    Adopting(AdoptionRecord),
}

/// Runs db. The db that folds the first shard opens the store that `config` names, serves it, answers requests and holds
/// the ledger's owner; another one only folds. Active stored entities are written within the archive period of a change, if
/// there is one.
///
/// # Errors
/// When the store or the bus cannot be used, or folding has to stop.
pub async fn run(
    (settings, health): (&Settings, &Health),
    schema: &Arc<Schema>,
    config: &Config,
) -> Result<(), DbError> {
    if config.fold.contains(FIRST_SHARD) {
        serve_realm((settings, health), schema, config).await
    } else {
        folding::fold_beside((settings, health), schema, config).await
    }
}

async fn serve_realm(
    (settings, health): (&Settings, &Health),
    schema: &Arc<Schema>,
    config: &Config,
) -> Result<(), DbError> {
    let store = store::open(&config.store, &config.data, &config.realm).await?;
    let (bus, subjects) = process::join(settings, "db").await?;
    let count = ensure_shards(&store, config.shards).await?;
    check_settings(config, count)?;
    let all = ensure_logs(&bus, settings, count).await?;
    let logs: BTreeMap<Shard, History> = folded_of(&all, &config.fold);
    if let Some(begun) = Adoption::unfinished(&store).await? {
        return Err(DbError::Adopting(begun));
    }
    comparing::check((&bus, &subjects), &logs, &store).await?;
    let lifecycle = bus.subscribe(subjects.news("course")).await?;
    let stop = process::stop_signal();
    let _announcement = process::announce(&bus, settings, "db", health).await?;
    let metrics = Arc::clone(&health.metrics);
    let reached = Reached {
        bus: bus.clone(),
        subjects: subjects.clone(),
        store: store.clone(),
        logs: Logs::new(&bus, settings.realm.as_str(), settings.replicas, all),
        metrics: Arc::clone(&metrics),
        watched: health.watched.clone(),
        traces: health.traces.clone(),
    };
    // A realm that has begun keeps its definitions, whatever this process was started with, until they are changed.
    let present = present_schema(&store)
        .await?
        .map_or_else(|| Arc::clone(schema), Arc::new);
    let (definitions, changes) = Definitions::new(present);
    let figures: BTreeMap<Shard, Arc<Figures>> = logs.keys().map(|shard| (*shard, Arc::default())).collect();
    let _watched = watching::add(&health.watched, &figures);
    let (end, ending) = watch::channel(false);
    let holding = tokio::spawn(hold_ledger(settings.clone(), definitions.subscribe(), reached, ending));
    let stopping = async {
        stopping(stop, lifecycle).await;
        end.send_replace(true);
        // The last events of the ledger's owner must reach the store, which is served until then.
        if let Err(error) = holding.await {
            tracing::error!(%error, "the task of the ledger's owner failed");
        }
    };
    let serving = serve(bus.client().clone(), subjects.service("store"), store.clone(), stopping);
    let answering = answer_all(bus.client(), subjects.service("db"), &store, &definitions);
    let folding = Folding {
        bus: &bus,
        subjects: &subjects,
        store: &store,
        schema: Arc::clone(&definitions.subscribe().borrow()),
        archive_period: config.archive_period,
        keep_cell_events: config.keep_cell_events,
        health,
    };
    let folding = fold_all(&folding, (&logs, count), &figures, Some(changes));
    let converting = converting::convert_all(store.clone(), definitions.subscribe());
    let auditing = auditing::audit_all(store.clone(), Arc::clone(&metrics));
    health.readiness.send_replace(Readiness::Ready);
    tracing::info!(store = %config.store, data = %config.data.display(), "serving the store");
    tokio::select! {
        () = auditing => unreachable!("invariant: auditing does not end"),
        () = converting => unreachable!("invariant: conversion does not end"),
        ended = serving => Ok(ended?),
        ended = answering => Ok(ended?),
        ended = folding => ended,
    }
}

/// The streams of all shards of a realm that has so many.
async fn ensure_logs(bus: &Bus, settings: &Settings, count: u16) -> Result<BTreeMap<Shard, History>, StreamError> {
    let mut logs = BTreeMap::new();
    for shard in shards::all(count) {
        let history = History::ensure(bus, settings.realm.as_str(), shard, settings.replicas).await?;
        logs.insert(shard, history);
    }
    Ok(logs)
}

/// The streams of the shards that a db folds.
fn folded_of(all: &BTreeMap<Shard, History>, fold: &FoldedShards) -> BTreeMap<Shard, History> {
    let folded = all.iter().filter(|(shard, _)| fold.contains(**shard));
    folded.map(|(shard, history)| (*shard, history.clone())).collect()
}

/// Checks the settings of a db against the number of the realm's shards.
fn check_settings(config: &Config, count: u16) -> Result<(), DbError> {
    match config.fold.highest() {
        Some(shard) if shard.0 >= count => Err(DbError::NoSuchShard { shard, count }),
        _ => Ok(()),
    }
}

/// Folds these of the realm's shards, each for itself: one that waits does not delay the others. The first that has to stop ends all.
async fn fold_all(
    folding: &Folding<'_>,
    (logs, count): (&BTreeMap<Shard, History>, u16),
    figures: &BTreeMap<Shard, Arc<Figures>>,
    mut changes: Option<mpsc::Receiver<Change>>,
) -> Result<(), DbError> {
    let folds = logs.iter().map(|(shard, history)| {
        let figures = Arc::clone(&figures[shard]);
        fold_shard(folding.clone(), (history, count), figures, changes.take())
    });
    try_join_all(folds.collect::<Vec<_>>()).await?;
    Ok(())
}

/// Resolves when the process is to end: it is asked to stop, or the realm has stopped and no process needs db any more.
async fn stopping(stop: watch::Receiver<bool>, mut lifecycle: Subscription) {
    tokio::select! {
        () = process::stopped(stop) => {}
        () = course_ended(&mut lifecycle) => tracing::info!("the realm is stopped"),
    }
}

/// Holds the ledger's owner, if it is granted, until the process is asked to stop; under the realm's definitions, as they
/// change. Without it the ledger's outputs are only delayed, so no failure here ends db.
async fn hold_ledger(
    settings: Settings,
    mut definitions: watch::Receiver<Arc<Schema>>,
    reached: Reached,
    stop: watch::Receiver<bool>,
) {
    loop {
        let schema = Arc::clone(&definitions.borrow_and_update());
        let enlisting = Process::enlist(&settings, "db", schema, reached.clone());
        let process = tokio::select! {
            enlisted = enlisting => match enlisted {
                Ok(process) => process,
                Err(error) => {
                    tracing::error!(error = %Chain(&error), "this db process cannot hold the ledger's owner");
                    return;
                }
            },
            () = process::stopped(stop.clone()) => return,
        };
        if let Err(error) = ledger::hold(process, stop.clone()).await {
            tracing::error!(%error, "this db process no longer holds the ledger's owner");
            return;
        }
        let has_changed = async {
            if definitions.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = has_changed => {}
            () = process::stopped(stop.clone()) => return,
        }
    }
}
