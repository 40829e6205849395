//! Folding of one shard: from its stream into the store (rules F1 to F6), and its answers to other shards (rule T3).

use std::collections::{BTreeMap, VecDeque};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use annals_db::{
    ChangeError, FoldError, Folded, Folder, Missing, PIPELINED_FROM, RetentionPace, Round, present_schema, read_shards,
};
use annals_def::Schema;
use annals_ids::{BatchNumber, OwnerId, Shard};
use annals_node::ALARM;
use annals_store::Store;
use annals_wire::{
    Subjects,
    control::{self, CursorAnnouncement, CursorMoved, Want},
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, sleep_until},
};

use super::{
    Change, DbError, check_settings, ensure_logs, fold_all, folded_of, retaining, sealing, stopping, tiling,
    traced_folds::TracedFolds,
    trimming,
    watching::{self, Figures},
};
use crate::{
    clock, comparing,
    config::{Age, Config, StoreKind},
    health::{Health, Readiness},
    log::{Entry, History, Reader},
    nats::Bus,
    process::{self, Settings},
    store,
    telemetry::{Chain, Metrics},
    waiting::Wait,
};

/// Bytes of batches that are read before they are folded: the size of one transaction.
const READ_AHEAD: usize = 3 << 20;

/// How long batches are gathered into one transaction, unless a process waits for its result. A transaction costs a sync
/// to disk and some fifty small writes, whatever it contains.
const GATHERED_FOR: Duration = Duration::from_millis(20);

/// Interval of the checks for holes and of archiving.
const UPKEEP: Duration = Duration::from_millis(500);

/// Interval of the checks for requests of other shards. A stored entity is activated again only when they are answered.
const ROUND: Duration = Duration::from_millis(100);

/// Pause before the store is read again at the start.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// How long a hole may last before it is reported (rule F4).
const HOLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The stream, on its way into the store.
struct Fold {
    bus: Bus,
    subjects: Subjects,
    folder: Folder,
    history: History,
    reader: Reader,
    /// Up to where each log is archived, for the tasks that trim.
    cursors: watch::Sender<BTreeMap<OwnerId, BatchNumber>>,
    holes: BTreeMap<(OwnerId, BatchNumber), Hole>,
    metrics: Arc<Metrics>,
    figures: Arc<Figures>,
    traced: TracedFolds,
    /// When the submitted transactions began.
    began: VecDeque<Instant>,
    archiving: Wait,
    asked: Option<Asked>,
}

struct Hole {
    since: Instant,
    named: bool,
}

/// What the folds of a process share.
#[derive(Clone)]
pub(super) struct Folding<'a> {
    pub(super) bus: &'a Bus,
    pub(super) subjects: &'a Subjects,
    pub(super) store: &'a Store,
    /// The definitions at the start.
    pub(super) schema: Arc<Schema>,
    pub(super) archive_period: Option<Duration>,
    pub(super) keep_cell_events: Age,
    pub(super) health: &'a Health,
}

/// Folds a shard, as one of `shards`, until another db folds it. `changes` of the realm's definitions go to one fold of
/// a process; the others follow.
pub(super) async fn fold_shard(
    folding: Folding<'_>,
    (history, shards): (&History, u16),
    figures: Arc<Figures>,
    mut changes: Option<mpsc::Receiver<Change>>,
) -> Result<(), DbError> {
    let (mut fold, archived) = Fold::begin(&folding, history, figures).await?;
    let folder = &fold.folder;
    // Separate tasks: folding waits neither for a slow trim of the stream nor for compression and hashing. They end
    // with it.
    tokio::spawn(trimming::trim_all(history.clone(), archived.clone()));
    tokio::spawn(sealing::seal_all(folder.sealer(), archived.clone()));
    tokio::spawn(tiling::tile_all(folder.tiler(), archived.clone()));
    if let Age::AtLeast(age) = folding.keep_cell_events {
        let retention = folder.retention(RetentionPace::Worthwhile);
        tokio::spawn(retaining::let_all_go(retention, age, archived));
    }
    let turns = |period: Duration| u32::try_from(period.as_millis() / UPKEEP.as_millis()).unwrap_or(u32::MAX);
    let turns = folding.archive_period.map(turns);
    let mut upkeep = tokio::time::interval(UPKEEP);
    upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut rounds = tokio::time::interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            entry = fold.reader.next() => {
                fold.gather(&entry).await?;
                fold.submit_all().await?;
            }
            folded = fold.folder.next_folded(), if fold.folder.submitted() > 0 => fold.report(folded?).await,
            Some(change) = next_change(&mut changes) => fold.change(change).await?,
            _ = rounds.tick(), if shards > 1 => fold.answer_others().await?,
            _ = upkeep.tick() => {
                fold.report_all().await?;
                fold.count();
                fold.keep_up().await;
                if let Some(turns) = turns {
                    fold.archive(turns).await?;
                }
            }
        }
    }
}

/// Runs a db that only folds: through the db that serves the store, or on the cluster where the store is.
///
/// # Errors
/// When store or bus cannot be used, or folding has to stop.
pub(super) async fn fold_beside(
    (settings, health): (&Settings, &Health),
    schema: &Arc<Schema>,
    config: &Config,
) -> Result<(), DbError> {
    let (bus, subjects) = process::join(settings, "db").await?;
    let store = match &config.store {
        StoreKind::Embedded => process::remote_store(&bus, &subjects),
        cluster @ StoreKind::FoundationDb(_) => store::open(cluster, &config.data, &config.realm).await?,
    };
    let stop = process::stop_signal();
    let Some(count) = process::unless_stopped(&stop, wait_for_shards(&store)).await else {
        return Ok(());
    };
    check_settings(config, count)?;
    let all = ensure_logs(&bus, settings, count).await?;
    let logs = folded_of(&all, &config.fold);
    comparing::check((&bus, &subjects), &logs, &store).await?;
    let lifecycle = bus.subscribe(subjects.news("course")).await?;
    let _announcement = process::announce(&bus, settings, "db", health).await?;
    let figures: BTreeMap<Shard, Arc<Figures>> = logs.keys().map(|shard| (*shard, Arc::default())).collect();
    let _watched = watching::add(&health.watched, &figures);
    let present = present_schema(&store).await?;
    let folding = Folding {
        bus: &bus,
        subjects: &subjects,
        store: &store,
        schema: present.map_or_else(|| Arc::clone(schema), Arc::new),
        archive_period: config.archive_period,
        keep_cell_events: config.keep_cell_events,
        health,
    };
    health.readiness.send_replace(Readiness::Ready);
    tracing::info!(shards = ?logs.keys().collect::<Vec<_>>(), "folding beside the db that serves the store");
    tokio::select! {
        // The definitions are changed by the db that serves the store.
        ended = fold_all(&folding, (&logs, count), &figures, None) => ended,
        () = stopping(stop, lifecycle) => Ok(()),
    }
}

/// Number of the realm's shards, once its store is served.
async fn wait_for_shards(store: &Store) -> u16 {
    let mut wait = Wait::new(
        "the store",
        "nothing is folded here until then; check that the db of shard 0 runs",
    );
    loop {
        match read_shards(store).await {
            Ok(count) => {
                wait.ends();
                return count;
            }
            Err(error) => {
                wait.lasts(Chain(&error));
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }
}

/// The next change of the definitions; never, for a fold that follows others.
async fn next_change(changes: &mut Option<mpsc::Receiver<Change>>) -> Option<Change> {
    match changes {
        Some(changes) => changes.recv().await,
        None => std::future::pending().await,
    }
}

/// Requests of other shards that were read, and what has to be folded before they are answered.
struct Asked {
    round: Round,
    /// The last sequence of the stream after they were read.
    end: u64,
    /// Restarts of the reader before that.
    restarts: u64,
}

impl Drop for Fold {
    fn drop(&mut self) {
        // The shard is folded elsewhere from now on, or not at all.
        self.figures.set(&self.metrics, (0, 0, 0));
    }
}

impl Fold {
    async fn begin(
        folding: &Folding<'_>,
        history: &History,
        figures: Arc<Figures>,
    ) -> Result<(Self, watch::Receiver<BTreeMap<OwnerId, BatchNumber>>), DbError> {
        let (store, schema) = (folding.store.clone(), Arc::clone(&folding.schema));
        let folder = Folder::begin(store, history.shard(), schema).await?;
        let (cursors, archived) = watch::channel(BTreeMap::new());
        let fold = Self {
            bus: folding.bus.clone(),
            subjects: folding.subjects.clone(),
            folder: folder.following_definitions(),
            history: history.clone(),
            reader: Reader::new(history, 1),
            cursors,
            holes: BTreeMap::new(),
            metrics: Arc::clone(&folding.health.metrics),
            figures,
            traced: TracedFolds::new(folding.health.traces.clone()),
            began: VecDeque::new(),
            archiving: Wait::new(
                "the store to accept changed entities",
                "the log has them, but rows for queries are stale; retrying",
            ),
            asked: None,
        };
        Ok((fold, archived))
    }

    /// Answers what other shards ask, once what the stream held by then is folded (rule T3).
    async fn answer_others(&mut self) -> Result<(), DbError> {
        self.report_all().await?;
        if self
            .asked
            .as_ref()
            .is_some_and(|asked| asked.restarts != self.reader.restarts())
        {
            self.asked = None;
        }
        if self.asked.is_none() {
            self.asked = match self.read_requests().await {
                Ok(asked) => asked,
                Err(error) => {
                    tracing::debug!(%error, "requests of other shards could not be read; retrying");
                    None
                }
            };
        }
        if let Some(asked) = self.asked.take_if(|asked| asked.end < self.reader.position()) {
            // What was not answered is read again with the next round.
            let answered = self.folder.end_round(&asked.round).await?;
            tracing::debug!(answered, "a round of other shards' requests");
        }
        Ok(())
    }

    async fn read_requests(&self) -> Result<Option<Asked>, Box<dyn std::error::Error + Send + Sync>> {
        let Some(round) = self.folder.begin_round().await? else {
            return Ok(None);
        };
        let restarts = self.reader.restarts();
        let end = self.history.last_sequence().await?;
        Ok(Some(Asked { round, end, restarts }))
    }

    /// Takes a batch and those that go into the same transaction: what has arrived already, what arrives until the
    /// transactions before it are durable, and, unless a process waits for the result, what arrives within
    /// [`GATHERED_FOR`].
    async fn gather(&mut self, first: &Entry) -> Result<(), DbError> {
        let until = Instant::now() + GATHERED_FOR;
        let mut is_awaited = self.take(first);
        loop {
            let is_free = self.folder.submitted() == 0;
            let enough = if is_free { READ_AHEAD } else { PIPELINED_FROM };
            if self.folder.pending_bytes() >= enough {
                return Ok(());
            }
            tokio::select! {
                biased;
                folded = self.folder.next_folded(), if !is_free => self.report(folded?).await,
                entry = self.reader.next() => is_awaited |= self.take(&entry),
                () = ready(()), if is_free && is_awaited => return Ok(()),
                () = sleep_until(until), if is_free => return Ok(()),
            }
        }
    }

    /// Folds everything that was taken. The last transaction may not be durable yet.
    async fn submit_all(&mut self) -> Result<(), DbError> {
        while self.folder.has_work() {
            self.began.push_back(Instant::now());
            self.folder.submit().await?;
            while self.folder.submitted() > 1 {
                let folded = self.folder.next_folded().await?;
                self.report(folded).await;
            }
        }
        Ok(())
    }

    /// Folds everything that was taken, and waits until it is durable.
    async fn commit_all(&mut self) -> Result<(), DbError> {
        self.submit_all().await?;
        self.report_all().await
    }

    /// Waits until all transactions are durable, and reports them.
    async fn report_all(&mut self) -> Result<(), DbError> {
        while self.folder.submitted() > 0 {
            let folded = self.folder.next_folded().await?;
            self.report(folded).await;
        }
        Ok(())
    }

    /// Reports a transaction that is durable.
    async fn report(&mut self, folded: Option<Folded>) {
        let (Some(folded), Some(began)) = (folded, self.began.pop_front()) else {
            return;
        };
        self.metrics.fold.record(began.elapsed());
        self.metrics.fold_conflicts.add(folded.conflicts);
        self.announce(&folded).await;
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
        let owners = self.cursors.borrow().len() as u64;
        self.figures.set(&self.metrics, (behind, holes, owners));
    }

    fn take(&mut self, entry: &Entry) -> bool {
        self.traced.arrive(entry);
        self.folder.offer(entry.owner, entry.bytes.to_vec())
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
