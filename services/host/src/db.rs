//! db's shell: holds the store and serves it, folds the stream into it, and answers requests about accounts.

mod answers;
mod auditing;
mod converting;
mod definitions;
mod ledger;
mod retaining;
mod rounds;
mod sealing;
mod tiling;
mod traced_folds;
mod trimming;
mod watching;

use std::collections::BTreeMap;
use std::sync::{Arc, atomic::Ordering};
use std::time::Duration;

use annals_db::{
    ChangeError, FoldError, Folded, Folder, Missing, RetentionPace,
    adopting::{Adoption, AdoptionRecord},
    present_schema,
};
use annals_def::Schema;
use annals_ids::{BatchNumber, OwnerId};
use annals_node::ALARM;
use annals_store::{
    Store, StoreError,
    remote::{ServeError, serve},
};
use annals_wire::{
    Subjects,
    control::{self, CursorAnnouncement, CursorMoved, Want},
};
use futures::FutureExt;
use thiserror::Error;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior},
};

use watching::Figures;

pub use answers::{REQUESTS_AT_ONCE, answer_all};
pub use definitions::{Change, Definitions};
use traced_folds::TracedFolds;

use crate::{
    clock,
    comparing::{self, CompareError},
    config::{Age, Config},
    director::course_ended,
    health::{DiscoveryError, Health, Readiness},
    log::{Entry, History, Reader},
    nats::{Bus, ConnectError, StreamError, Subscription},
    process::{self, Process, Reached, SHARD, Settings},
    store::{self, OpenError},
    telemetry::{Chain, Metrics},
    waiting::Wait,
};

/// Bytes of batches that are read before they are folded: the size of one transaction.
const READ_AHEAD: usize = 3 << 20;

/// Interval of the checks for holes and of archiving.
const UPKEEP: Duration = Duration::from_millis(500);

/// How long a hole may last before it is reported (rule F4).
const HOLE_TIMEOUT: Duration = Duration::from_secs(30);

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
    /// The adoption of a log has not finished.
    #[error(
        "the realm does not start: {} began to adopt its log ({:?}) and did not complete it; run `annals realm \
         adopt-log` again, which continues it",
        .0.adoption.operator, .0.adoption.reason
    )]
    Adopting(AdoptionRecord),
}

/// Runs db on the store that `config` names. Active stored entities are written within the archive period of a change,
/// if there is one.
///
/// # Errors
/// When the store or the bus cannot be used, or folding has to stop.
pub async fn run(
    (settings, health): (&Settings, &Health),
    schema: &Arc<Schema>,
    config: &Config,
) -> Result<(), DbError> {
    let store = store::open(&config.store, &config.data, &config.realm).await?;
    let (bus, subjects) = process::join(settings, "db").await?;
    let history = History::ensure(&bus, settings.realm.as_str(), SHARD, settings.replicas).await?;
    if let Some(begun) = Adoption::unfinished(&store).await? {
        return Err(DbError::Adopting(begun));
    }
    comparing::check((&bus, &subjects), &history, &store).await?;
    let lifecycle = bus.subscribe(subjects.news("course")).await?;
    let stop = process::stop_signal();
    let _announcement = process::announce(&bus, settings, "db", health).await?;
    let metrics = Arc::clone(&health.metrics);
    let reached = Reached {
        bus: bus.clone(),
        subjects: subjects.clone(),
        store: store.clone(),
        history: history.clone(),
        metrics: Arc::clone(&metrics),
        watched: health.watched.clone(),
        traces: health.traces.clone(),
    };
    // A realm that has begun keeps its definitions, whatever this process was started with, until they are changed.
    let present = present_schema(&store)
        .await?
        .map_or_else(|| Arc::clone(schema), Arc::new);
    let (definitions, changes) = Definitions::new(present);
    let figures = Arc::new(Figures::default());
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
    let folding = fold_all(
        &bus,
        &subjects,
        &history,
        (&store, definitions.subscribe(), changes),
        (config.archive_period, config.keep_cell_events),
        (health, &figures),
    );
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

/// The stream, on its way into the store.
struct Fold {
    bus: Bus,
    subjects: Subjects,
    folder: Folder,
    reader: Reader,
    /// Up to where each log is archived, for the tasks that trim.
    cursors: watch::Sender<BTreeMap<OwnerId, BatchNumber>>,
    holes: BTreeMap<(OwnerId, BatchNumber), Hole>,
    metrics: Arc<Metrics>,
    figures: Arc<Figures>,
    traced: TracedFolds,
    archiving: Wait,
}

struct Hole {
    since: Instant,
    named: bool,
}

async fn fold_all(
    bus: &Bus,
    subjects: &Subjects,
    history: &History,
    (store, definitions, mut changes): (&Store, watch::Receiver<Arc<Schema>>, mpsc::Receiver<Change>),
    (archive_period, keep): (Option<Duration>, Age),
    (health, figures): (&Health, &Arc<Figures>),
) -> Result<(), DbError> {
    let present = Arc::clone(&definitions.borrow());
    let folder = Folder::begin(store.clone(), SHARD, present).await?;
    let (cursors, archived) = watch::channel(BTreeMap::new());
    // Separate tasks: folding waits neither for a slow trim of the stream nor for compression and hashing. They end
    // with it.
    tokio::spawn(trimming::trim_all(history.clone(), archived.clone()));
    tokio::spawn(sealing::seal_all(folder.sealer(), archived.clone()));
    tokio::spawn(tiling::tile_all(folder.tiler(), archived.clone()));
    if let Age::AtLeast(age) = keep {
        tokio::spawn(retaining::let_all_go(
            folder.retention(RetentionPace::Worthwhile),
            age,
            archived,
        ));
    }
    let mut fold = Fold {
        bus: bus.clone(),
        subjects: subjects.clone(),
        folder,
        reader: Reader::new(history, 1),
        cursors,
        holes: BTreeMap::new(),
        metrics: Arc::clone(&health.metrics),
        figures: Arc::clone(figures),
        traced: TracedFolds::new(health.traces.clone()),
        archiving: Wait::new(
            "the store to accept changed entities",
            "the log has them, but rows for queries are stale; retrying",
        ),
    };
    let turns = archive_period.map(|period| u32::try_from(period.as_millis() / UPKEEP.as_millis()).unwrap_or(u32::MAX));
    let mut upkeep = tokio::time::interval(UPKEEP);
    upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            entry = fold.reader.next() => {
                fold.take(&entry);
                // Batches that have arrived already go into the same transaction.
                while fold.folder.pending_bytes() < READ_AHEAD {
                    match fold.reader.next().now_or_never() {
                        Some(entry) => fold.take(&entry),
                        None => break,
                    }
                }
                fold.commit_all().await?;
            }
            Some(change) = changes.recv() => fold.change(change).await?,
            _ = upkeep.tick() => {
                fold.count();
                fold.keep_up().await;
                if let Some(turns) = turns {
                    fold.archive(turns).await?;
                }
            }
        }
    }
}

impl Fold {
    /// Folds everything that was taken.
    async fn commit_all(&mut self) -> Result<(), DbError> {
        while self.folder.has_work() {
            let began = Instant::now();
            let folded = self.folder.commit().await?;
            self.metrics.fold.record(began.elapsed());
            self.announce(&folded).await;
        }
        Ok(())
    }

    /// Changes the definitions, as the director asks once all owners are released and folded.
    async fn change(&mut self, Change { to, answer }: Change) -> Result<(), DbError> {
        self.commit_all().await?;
        let changed = match self.folder.change_definitions(to, clock::wall()).await {
            Ok(()) => {
                tracing::info!(schema = %to, "the realm's definitions have changed");
                Ok(Arc::clone(self.folder.schema()))
            }
            // It is not known whether they have changed: a process that is started again finds out.
            Err(ChangeError::Fold(error)) => return Err(error.into()),
            Err(ChangeError::Store(error)) => return Err(error.into()),
            Err(error) => {
                let refused = Chain(&error).to_string();
                tracing::warn!(schema = %to, refused, "the realm's definitions do not change");
                Err(refused)
            }
        };
        // If the request was abandoned, nobody waits for the answer.
        let _ = answer.send(changed);
        Ok(())
    }

    fn count(&self) {
        let (behind, holes) = (self.reader.behind(), self.holes.len() as u64);
        self.figures.behind.store(behind, Ordering::Relaxed);
        self.figures.holes.store(holes, Ordering::Relaxed);
        let owners = self.cursors.borrow().len() as u64;
        self.figures.owners.store(owners, Ordering::Relaxed);
    }

    fn take(&mut self, entry: &Entry) {
        self.traced.arrive(entry);
        self.folder.offer(entry.owner, entry.bytes.to_vec());
    }

    /// Rule F6, and the operator's messages.
    async fn announce(&mut self, folded: &Folded) {
        for alarm in &folded.alarms {
            tracing::error!(%alarm, "{ALARM} while folding the log");
        }
        if folded.cursors.is_empty() {
            return;
        }
        self.traced.fold(&folded.cursors);
        self.metrics.batches.add(folded.batches as u64);
        self.metrics.events.add(folded.events);
        self.metrics.bytes.add(folded.bytes);
        let moved = folded.cursors.iter().map(|(owner, cursor)| CursorMoved {
            owner: owner.0,
            batch: cursor.batch.0,
            hash: cursor.hash.0.to_vec(),
            epoch: cursor.epoch.0,
        });
        let announcement = CursorAnnouncement {
            cursors: moved.collect(),
        };
        self.publish("cursors", &announcement).await;
        let cursors = folded.cursors.iter().map(|(owner, cursor)| (*owner, cursor.batch));
        self.cursors.send_modify(|known| known.extend(cursors));
        tracing::debug!(
            batches = folded.batches,
            events = folded.events,
            bytes = folded.bytes,
            "folded"
        );
    }

    async fn publish(&self, topic: &str, message: &impl prost::Message) {
        let published = self
            .bus
            .client()
            .publish(self.subjects.news(topic), control::encode(message).into())
            .await;
        if let Err(error) = published {
            // Later messages repeat it: cursors only grow, and holes are checked again.
            tracing::debug!(%error, topic, "could not publish a notification");
        }
    }

    async fn keep_up(&mut self) {
        let missing: Vec<Missing> = self.folder.missing().collect();
        let present: Vec<(OwnerId, BatchNumber)> = missing.iter().map(|hole| (hole.owner, hole.first)).collect();
        self.holes.retain(|place, _| present.contains(place));
        for hole in missing {
            self.ask_for(hole).await;
        }
    }

    /// One turn of archiving. It is retried when the store does not answer.
    async fn archive(&mut self, turns: u32) -> Result<(), DbError> {
        match self.folder.archive(turns).await {
            Ok(archived) => {
                self.archiving.ends();
                for alarm in &archived.alarms {
                    tracing::error!(%alarm, "{ALARM} while archiving to the database");
                }
                if archived.written > 0 {
                    let (looked_at, written) = (archived.looked_at, archived.written);
                    tracing::debug!(looked_at, written, "archived");
                }
                Ok(())
            }
            Err(error @ FoldError::Superseded { .. }) => Err(error.into()),
            Err(error) => {
                self.archiving.lasts(error);
                Ok(())
            }
        }
    }

    async fn ask_for(&mut self, missing: Missing) {
        let place = (missing.owner, missing.first);
        let hole = self.holes.entry(place).or_insert_with(|| Hole {
            since: Instant::now(),
            named: false,
        });
        let overdue = !hole.named && hole.since.elapsed() >= HOLE_TIMEOUT;
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
            tracing::error!(
                %owner,
                %first,
                %until,
                %after,
                %named,
                "the log has lost batches that no process has: it is blocked there. If they are lost for good, accept that \
                 with `annals log accept-hole`, after reading what it costs in docs/log-command.md"
            );
            match self.folder.name_hole(missing).await {
                Ok(()) => {
                    if let Some(hole) = self.holes.get_mut(&place) {
                        hole.named = true;
                    }
                }
                Err(error) => tracing::warn!(%error, "could not record the hole; retrying"),
            }
        }
    }
}
