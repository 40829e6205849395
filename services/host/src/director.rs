//! The director's shell: leads by a term in the store, receives beats, grants owners, and answers requests for
//! locations.

mod orders;
mod requests;
mod rooms;
mod upgrades;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals_def::Schema;
use annals_director::{
    Admission, Attention, Balance, ClosedConnections, Decision, Desired, Grant, GrantError, Grants, Lifecycle,
    Membership, Pace, SILENCE, SpacePlan, Stage, Upgrade,
};
use annals_ids::{OwnerId, OwnerKind, ProcessId, WallTime, WorldTime};
use annals_node::time::Mono;
use annals_store::{Store, layout::director::Realm};
use annals_wire::{
    SpaceMap, Subjects,
    cells::{CellList, WireCellList},
    control::{self, GrantOrder, StageAnnouncement, StopRealm, StopStage, WireMap},
};
use futures::StreamExt;
use thiserror::Error;
use tokio::sync::{mpsc, watch};

use crate::{
    clock::{self, Clock},
    health::{DiscoveryError, Health, Readiness},
    nats::{Bus, ConnectError, LinkState, Reports, ReportsError, Subscription},
    process::{self, BEAT, BEAT_TIMEOUT, Settings},
    telemetry::Chain,
    waiting::Wait,
};
use upgrades::Changed;

use watching::Watching;

/// The director's interval while the realm stops.
const STOPPING_BEAT: Duration = Duration::from_millis(50);

/// Timeout of leaving the lead to a standby when the process is asked to stop.
const RESIGN_WITHIN: Duration = Duration::from_millis(500);

/// Normal time until the realm's processes have registered, when all are started together.
const CREW_WITHIN: Duration = Duration::from_secs(2);

/// Desired state of the realm.
#[derive(Clone, Debug)]
pub struct Plan {
    pub spaces: Vec<SpacePlan>,
    /// How many processes a start waits for.
    pub desired: Desired,
    /// Maximum players; further ones wait in a queue.
    pub max_players: Option<NonZeroU32>,
}

/// Why the director ended.
#[derive(Debug, Error)]
pub enum DirectorError {
    /// It could not connect.
    #[error("the realm's bus could not be joined")]
    Connect(#[from] ConnectError),
    /// The bus refused a subscription.
    #[error("cannot subscribe to the director's subjects on the bus")]
    Listen(#[from] async_nats::SubscribeError),
    /// The reports of closed connections cannot be subscribed to.
    #[error("the nats-servers' reports of closed connections are not available")]
    Reports(#[from] ReportsError),
    /// Service discovery failed.
    #[error("cannot announce the director on the bus")]
    Announce(#[from] DiscoveryError),
    /// The realm runs on another schema.
    #[error(transparent)]
    Grant(#[from] GrantError),
}

/// Runs a director until the process is asked to stop: leads, or stands by. `reports` is the file with the credentials
/// for the nats-servers' reports of closed connections, if any.
///
/// # Errors
/// When the bus cannot be joined, that file is not usable, or the realm runs on another schema.
pub async fn run(
    (settings, health): (&Settings, &Health),
    schema: &Arc<Schema>,
    plan: &Plan,
    reports: Option<&Path>,
) -> Result<(), DirectorError> {
    let stop = process::stop_signal();
    let stopped = async {
        process::stopped(stop.clone()).await;
        tokio::time::sleep(RESIGN_WITHIN).await;
    };
    tokio::select! {
        ended = direct((settings, health), schema, (plan, reports), &stop) => ended,
        () = stopped => Ok(()),
    }
}

async fn direct(
    (settings, health): (&Settings, &Health),
    schema: &Arc<Schema>,
    (plan, reports): (&Plan, Option<&Path>),
    stop: &watch::Receiver<bool>,
) -> Result<(), DirectorError> {
    let mut reports = match reports {
        Some(file) => Some(Reports::listen(file, &settings.access).await?),
        None => None,
    };
    let closed = Mutex::default();
    let Some(joined) = process::unless_stopped(stop, process::join(settings, "director")).await else {
        return Ok(());
    };
    let (bus, subjects) = joined?;
    let store = process::remote_store(&bus, &subjects);
    let _announcement = process::announce(&bus, settings, "director", health).await?;
    let readiness = &health.readiness;
    // The director numbers registered processes; directors have random ids.
    let id = ProcessId(u64::from_le_bytes(process::random()) | 1 << 63);
    let reach = Reach {
        bus: &bus,
        subjects: &subjects,
        store: &store,
    };
    let mut lifecycle = bus.subscribe(subjects.news("course")).await?;
    let mut looked = Looked::default();
    loop {
        readiness.send_replace(Readiness::Waiting {
            reason: "another director leads or may lead".to_owned(),
        });
        let grants = {
            let standing = stand_by(&store, (id, schema), &mut looked, &closed);
            tokio::pin!(standing);
            loop {
                tokio::select! {
                    grants = &mut standing => break grants,
                    () = course_ended(&mut lifecycle) => return Ok(()),
                    () = process::stopped(stop.clone()) => return Ok(()),
                    _ = next_closed(&mut reports, &closed) => {}
                }
            }
        };
        let mut closures = Closures {
            reports: &mut reports,
            closed: &closed,
        };
        let origin = (schema, looked.is_known, plan);
        let reports = (readiness, health);
        match lead(&reach, grants, origin, (reports, stop), &mut closures).await {
            Err(DirectorError::Grant(GrantError::Superseded { leader, term })) => {
                tracing::warn!(%leader, term, "another director leads; standing by");
            }
            Err(DirectorError::Grant(error @ GrantError::DefinitionsChanged(_))) => {
                tracing::warn!(%error, "standing by");
            }
            Err(DirectorError::Grant(GrantError::Store(error))) => {
                tracing::warn!(%error, "could not reach the store; standing by");
            }
            ended => return ended,
        }
    }
}

/// The connections that nats-servers have closed, from the reports if there are any.
struct Closures<'a> {
    reports: &'a mut Option<Reports>,
    closed: &'a Mutex<ClosedConnections>,
}

/// The next connection that was closed. Cancel-safe.
async fn next_closed(reports: &mut Option<Reports>, closed: &Mutex<ClosedConnections>) -> String {
    match reports {
        Some(reports) => {
            let connection = reports.closed().await;
            known(closed).add(connection.clone());
            connection
        }
        None => std::future::pending().await,
    }
}

fn known(closed: &Mutex<ClosedConnections>) -> MutexGuard<'_, ClosedConnections> {
    // The set is consistent after any panic: each change of it is one call.
    closed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a process has learned from the store while it stood by.
#[derive(Debug, Default)]
struct Looked {
    /// Whether it has looked whether the realm was stopped.
    at_stop: bool,
    /// Whether it has seen the realm run on its definitions, or about to change to them: then it may lead under others,
    /// if they change.
    is_known: bool,
}

/// Waits until the term has not changed for [`SILENCE`], or its director has left, then takes it (rule D1). When the first
/// look of a process finds that the realm was stopped in order, it has no leader, and there is nothing to wait for (rule
/// D6).
async fn stand_by(
    store: &Store,
    (id, schema): (ProcessId, &Schema),
    looked: &mut Looked,
    connections: &Mutex<ClosedConnections>,
) -> Grants {
    let is_closed = |connection: &str| known(connections).contains(connection);
    let mut closed = false;
    let mut seen = None;
    let mut wait = Wait::new(
        "the store",
        "nothing is granted until it answers; check that annals-db runs with the same --realm and --nats",
    );
    let mut since = clock::mono();
    // How much of the time since then the store did not answer, which hides the heartbeats of the leader.
    let (mut attention, mut paused) = (Attention::begin(monotonic(), BEAT), Duration::ZERO);
    loop {
        if !looked.at_stop
            && let Ok(found) = wait.during(Grants::is_closed(store)).await
        {
            (looked.at_stop, closed) = (true, found);
        }
        if !looked.is_known {
            let knows = wait.during(Grants::knows(store, schema.fingerprint())).await;
            looked.is_known = knows.unwrap_or(false);
        }
        let term = wait.during(Grants::watch(store)).await;
        let has_left = match &term {
            Ok(term) => Grants::has_left(store, *term, is_closed).await.unwrap_or(false),
            Err(_) => false,
        };
        if term.is_ok() {
            paused += attention.attend(monotonic());
        }
        match term {
            Err(error) => wait.lasts(error),
            Ok(term) if seen != Some(term) && !closed && !has_left => {
                if seen.is_none() && term.number > 0 {
                    let (number, silence) = (term.number, SILENCE.as_secs());
                    tracing::info!("standing by until the director of term {number} has been silent for {silence} s");
                }
                (seen, since, paused) = (Some(term), clock::mono(), Duration::ZERO);
            }
            // A realm that never had a director has none to wait for.
            Ok(term) if closed || has_left || term.number == 0 || clock::mono().since(since) >= SILENCE + paused => {
                if seen != Some(term) {
                    since = clock::mono();
                }
                // Nobody counted game time before the first term.
                let watched = clock::mono().since(since);
                let watched = if term.number == 0 { Duration::ZERO } else { watched };
                match wait.during(Grants::lead(store.clone(), id, term, watched)).await {
                    Ok(grants) => {
                        wait.ends();
                        return grants;
                    }
                    Err(error) => wait.lasts(Chain(&error)),
                }
                (seen, closed) = (None, false);
            }
            Ok(_) => wait.ends(),
        }
        tokio::time::sleep(BEAT / 2).await;
    }
}

/// Time within which every live process reports to a new director, also one whose last heartbeat got no answer.
const ALL_REPORTS_AFTER: Duration = BEAT.saturating_add(BEAT_TIMEOUT);

/// A director that leads.
struct Leader {
    grants: Grants,
    /// When it began to lead, plus its pauses until all processes had reported.
    since: Duration,
    plan: Plan,
    realm: Realm,
    /// The game time that is sent to processes when they register.
    clock: Clock,
    membership: Membership,
    /// Its connection as in the store, by which a standby knows of its end; empty at first.
    attached: String,
    /// When it last judged silences.
    attention: Attention,
    /// Grants of this term, with their ids; an older grant that its holder does not confirm is granted anew.
    orders: BTreeMap<OwnerId, (GrantOrder, ProcessId)>,
    /// Since when a live holder has not reported an owner that it was granted.
    unheld: BTreeMap<OwnerId, Duration>,
    map: SpaceMap,
    balance: Balance,
    lifecycle: Lifecycle,
    admission: Admission,
    /// Whether the stage that hangs was reported.
    named: bool,
    /// Whether the store has the realm as stopped in order.
    closed: bool,
    /// Processes with new orders, which are to send their next heartbeat at once.
    summoned: BTreeSet<ProcessId>,
    /// The live processes, with the names of their services.
    services: BTreeMap<ProcessId, String>,
    /// Processes whose wall clocks differ from this one's, and were reported.
    apart: BTreeSet<ProcessId>,
    /// Processes that an operator drains.
    drains: BTreeSet<ProcessId>,
    /// Processes that an operator has drained, and that have ended in order.
    left: BTreeSet<ProcessId>,
    /// The prepared change of the realm's definitions, if there is one.
    upgrade: Option<Upgrade>,
    /// The times of the last change that this director made.
    changed: Changed,
}

/// A director's connections to the realm.
struct Reach<'a> {
    bus: &'a Bus,
    subjects: &'a Subjects,
    store: &'a Store,
}

async fn lead(
    reach: &Reach<'_>,
    grants: Grants,
    (schema, is_known, plan): (&Arc<Schema>, bool, &Plan),
    ((readiness, health), stop): ((&watch::Sender<Readiness>, &Health), &watch::Receiver<bool>),
    closures: &mut Closures<'_>,
) -> Result<(), DirectorError> {
    let bus = reach.bus;
    let mut requests = bus.subscribe(reach.subjects.service("director")).await?;
    let mut listings = bus.subscribe(reach.subjects.listing()).await?;
    let closed_before = known(closures.closed).clone();
    let mut leader = Leader::begin(grants, (schema, is_known), plan.clone(), closed_before).await?;
    // The answers of db to the request to change the definitions.
    let (answers, mut answered) = mpsc::channel(1);
    let watching = Watching::begin(health);
    tracing::info!(began = %leader.realm.began, owners = leader.orders.len(), "leading");
    let mut missing = Wait::new(
        "processes of the realm",
        "nothing is granted before all have registered; start them, or the director with other --bases and --cells",
    )
    .after(CREW_WITHIN);
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let link = bus.state();
    loop {
        // Without its connection it receives no reports, and judges no process.
        let is_connected = matches!(*link.borrow(), LinkState::Up { .. });
        leader.go_on_changing(reach, &answers).await?;
        leader.summon(reach).await;
        let deadline = leader.membership.deadline();
        let deadline = deadline.map(|at| Mono(u64::try_from(at.as_micros()).unwrap_or(u64::MAX)));
        tokio::select! {
            connection = next_closed(closures.reports, closures.closed) => {
                leader.membership.disconnected(monotonic(), connection);
            }
            () = process::stopped(stop.clone()) => {
                leader.resign().await;
                return Ok(());
            }
            () = clock::until(deadline), if is_connected => leader.replace_dead().await?,
            Some(answer) = answered.recv() => leader.definitions_answered(answer).await?,
            request = requests.next() => {
                let Some(request) = request else { return Ok(()) };
                leader.reply(bus, request).await?;
            }
            Some(request) = listings.next() => leader.list(bus, request).await,
            _ = beat.tick() => {
                if leader.lifecycle.stage() == Stage::EndingDb {
                    if !end_db(reach).await {
                        tracing::info!("the realm is stopped");
                        return Ok(());
                    }
                } else if is_connected {
                    leader.beat(bus.connection()).await?;
                }
                if leader.lifecycle.stage() > Stage::Running {
                    beat.reset_after(STOPPING_BEAT);
                }
                match leader.lifecycle.missing() {
                    Some(reason) => missing.lasts(reason),
                    None => missing.ends(),
                }
                readiness.send_replace(leader.readiness());
                watching.set(&leader);
            }
        }
    }
}

/// Resolves when the realm has stopped and no process needs a director any more.
pub(crate) async fn course_ended(lifecycle: &mut Subscription) {
    while let Some(message) = lifecycle.next().await {
        let announcement = control::decode::<StageAnnouncement>(&message.payload).unwrap_or_default();
        if Stage::of_number(announcement.stage) >= Stage::EndingDb {
            return;
        }
    }
    // The connection is closed for good; the tasks that use it fail by themselves.
    std::future::pending::<()>().await;
}

/// Asks db, and directors that stand by, to end. Returns whether db still answers.
async fn end_db(reach: &Reach<'_>) -> bool {
    let Reach { bus, subjects, store } = reach;
    let stage = Stage::EndingDb.number();
    let announcement = control::encode(&StageAnnouncement { stage });
    if let Err(error) = bus.client().publish(subjects.news("course"), announcement.into()).await {
        tracing::warn!(%error, "could not notify db of its end; retrying");
    }
    store.begin().read_version().await.is_ok()
}

impl Leader {
    async fn begin(
        mut grants: Grants,
        (schema, is_known): (&Arc<Schema>, bool),
        plan: Plan,
        closed_before: ClosedConnections,
    ) -> Result<Self, GrantError> {
        let wall = clock::wall();
        let closed = grants.open_realm(wall).await?;
        if closed {
            tracing::info!(
                "the realm was stopped cleanly: it continues where it stopped, without waiting for silent processes"
            );
        }
        if !is_known {
            grants.begin_realm(wall, schema.fingerprint(), &schema.encode()).await?;
        }
        let (realm, next) = grants.read_realm().await?;
        let upgrade = next.map(Upgrade::prepared);
        let owners = grants.owners().await?;
        let connections = grants.connections().await?;
        // A realm that was stopped in order has no holders: there is no silence to wait for.
        let held = owners
            .iter()
            .map(|(owner, record)| (*owner, (record.kind, record.process)))
            .collect();
        let stored = grants.read_map().await?;
        let (map, balance) = resume(&plan, stored.as_deref());
        let orders = owners.iter().map(|(owner, record)| {
            // Without ids: its holder has them, and a process that does not hold it is granted it anew.
            let order = GrantOrder {
                owner: owner.0,
                kind: u32::from(record.kind.number()),
                shard: u32::from(record.shard.0),
                epoch: record.epoch.0,
                ..GrantOrder::default()
            };
            (*owner, (order, record.process))
        });
        let mut leader = Self {
            clock: Clock::at(game_time(wall, realm.began, grants.world(), closed)),
            realm,
            membership: if closed {
                Membership::reopened(held)
            } else {
                Membership::new(monotonic(), held).knowing(closed_before, connections)
            },
            attached: String::new(),
            attention: Attention::begin(monotonic(), BEAT),
            lifecycle: Lifecycle::new(plan.desired, closed || owners.is_empty()),
            admission: rooms::admission(plan.max_players, (&owners, closed)),
            orders: orders.collect(),
            unheld: BTreeMap::new(),
            named: false,
            closed: false,
            summoned: BTreeSet::new(),
            services: BTreeMap::new(),
            apart: BTreeSet::new(),
            drains: BTreeSet::new(),
            left: BTreeSet::new(),
            changed: Changed::default(),
            since: monotonic(),
            map,
            balance,
            grants,
            plan,
            upgrade,
        };
        leader.membership.stage(leader.upgrade.is_some());
        Ok(leader)
    }

    /// What a director does in each interval of heartbeats. `connection` is its own.
    async fn beat(&mut self, connection: String) -> Result<(), GrantError> {
        if self.attached != connection {
            self.grants.attach(Some(&connection)).await?;
            self.attached = connection;
        }
        self.grants.beat(self.clock.now().world).await?;
        self.go_on().await?;
        self.expire();
        if !self.grants_now() {
            return Ok(());
        }
        self.decide().await?;
        self.grant_unheld().await?;
        self.draw().await
    }

    /// Grants the owners of processes whose connection was closed, and that have not reconnected.
    async fn replace_dead(&mut self) -> Result<(), GrantError> {
        self.expire();
        if self.grants_now() {
            self.decide().await?;
        }
        Ok(())
    }

    /// Leaves the lead: a standby takes it at once.
    async fn resign(&self) {
        if let Err(error) = self.grants.attach(None).await {
            tracing::warn!(%error, "could not resign; a standby leads after a silence");
        }
    }

    /// Takes a pause of this director that has just ended off all durations that it measures. Called before a request is
    /// answered and before processes are judged.
    fn attend(&mut self) {
        let now = monotonic();
        let pause = self.attention.attend(now);
        if !pause.is_zero() {
            tracing::info!(
                ?pause,
                "received nothing for a time, which counts as no silence of others"
            );
            if !self.has_all_reports(now.saturating_sub(pause)) {
                self.since += pause;
            }
            self.membership.skip(now, pause);
            for since in self.unheld.values_mut() {
                *since = now.min(*since + pause);
            }
        }
    }

    /// Forgets the processes that count as dead.
    fn expire(&mut self) {
        self.attend();
        self.membership.expire(monotonic());
        self.services.retain(|process, _| self.membership.is_alive(*process));
        self.apart.retain(|process| self.membership.is_alive(*process));
    }

    /// Requests the heartbeats of processes with new orders, which the answers carry. A request that is lost costs the
    /// time until the next heartbeat.
    async fn summon(&mut self, reach: &Reach<'_>) {
        for process in std::mem::take(&mut self.summoned) {
            let subject = reach.subjects.summons(process);
            if let Err(error) = reach.bus.client().publish(subject, "".into()).await {
                tracing::debug!(%process, %error, "could not request a heartbeat");
            }
        }
    }

    /// Advances a stop as far as possible. The realm is marked as closed in the store while db runs, and when no owner
    /// is held any more.
    async fn go_on(&mut self) -> Result<(), GrantError> {
        if let Some(stage) = self.lifecycle.advance(monotonic()) {
            tracing::info!(%stage, "the realm is stopping: entered a stage");
        } else if self.lifecycle.is_overdue(monotonic()) && !self.named {
            for waiting in self.lifecycle.waiting() {
                tracing::error!(
                    stage = %self.lifecycle.stage(),
                    %waiting,
                    "a stage of the realm's stop is overdue: check the process that it waits for, or continue without it \
                     with `annals realm stop --go-on`"
                );
            }
        }
        self.named = self.lifecycle.is_overdue(monotonic());
        if self.lifecycle.stage() >= Stage::EndingLogin && !self.closed {
            // By game time, which a change of the wall clock since the realm began has not moved.
            let played = self.clock.now().world.0;
            let closed = WallTime(self.realm.began.0.saturating_add(played));
            self.grants.close_realm(closed).await?;
            self.closed = true;
        }
        Ok(())
    }

    /// Whether owners are created and granted now.
    fn grants_now(&self) -> bool {
        let is_changing = self.upgrade.as_ref().is_some_and(Upgrade::is_changing);
        self.lifecycle.grants() && !is_changing
    }

    /// Its readiness, for monitors.
    fn readiness(&self) -> Readiness {
        if self.lifecycle.stage() > Stage::Running {
            return Readiness::Draining;
        }
        match self.lifecycle.missing() {
            Some(reason) => Readiness::Waiting { reason },
            None => Readiness::Ready,
        }
    }

    /// An operator's request to stop the realm, or for the progress of a stop.
    fn stop(&mut self, ask: &StopRealm) -> StopStage {
        let now = monotonic();
        if ask.stop {
            let before = self.lifecycle.stage();
            let stage = self.lifecycle.stop(now, Duration::from_millis(ask.delay));
            if before == Stage::Running {
                tracing::info!(%stage, delay = ask.delay, "stop of the realm requested");
            }
        }
        if ask.go_on > 0 {
            let stage = Stage::of_number(ask.go_on);
            if stage == self.lifecycle.stage() {
                tracing::warn!(%stage, "skipping the processes that the stage waits for, as the operator ordered");
            }
            self.lifecycle.go_on(now, stage);
        }
        let waiting = self.lifecycle.waiting();
        StopStage {
            stage: self.lifecycle.stage().number(),
            waiting: waiting.iter().map(ToString::to_string).collect(),
            overdue: self.lifecycle.is_overdue(now),
        }
    }

    /// The division of spaces, for an operator.
    fn cells(&self) -> WireCellList {
        WireCellList::from(&CellList {
            map: self.map.version,
            cells: self.balance.report(monotonic()),
        })
    }

    /// Creates and grants owners as the membership decides.
    async fn decide(&mut self) -> Result<(), GrantError> {
        for decision in self.membership.decide(monotonic()) {
            let (grant, process) = match decision {
                Decision::CreateOwner { kind, process } => {
                    let shard = self.grants.shard_for(kind).await?;
                    (self.grants.found(kind, shard, process).await?, process)
                }
                Decision::Grant { owner, process } => (self.grant(owner, process).await?, process),
            };
            self.granted(&grant, process);
        }
        Ok(())
    }

    async fn grant(&self, owner: OwnerId, process: ProcessId) -> Result<Grant, GrantError> {
        let is_closed = |connection: &str| self.membership.closed().contains(connection);
        self.grants.grant(owner, process, is_closed).await
    }

    /// Grants anew what a live holder has not held for too long.
    async fn grant_unheld(&mut self) -> Result<(), GrantError> {
        let now = monotonic();
        let due = self
            .unheld
            .iter()
            .filter(|(_, since)| now.saturating_sub(**since) >= SILENCE);
        let due: Vec<OwnerId> = due.map(|(owner, _)| *owner).collect();
        for owner in due {
            let Some((_, process)) = self.orders.get(&owner) else {
                continue;
            };
            let process = *process;
            // What it has released goes to its follower.
            if self.membership.is_draining(process) || self.membership.is_former(process) {
                continue;
            }
            let grant = self.grant(owner, process).await?;
            self.granted(&grant, process);
        }
        Ok(())
    }

    fn granted(&mut self, grant: &Grant, process: ProcessId) {
        tracing::info!(
            owner = %grant.owner,
            epoch = %grant.epoch,
            kind = %grant.kind,
            %process,
            former_ended = grant.former_ended,
            "granted"
        );
        self.summoned.insert(process);
        self.membership.granted(grant.owner, grant.kind, process);
        self.orders.insert(grant.owner, (order(grant), process));
        self.unheld.insert(grant.owner, monotonic());
    }

    /// Divides the spaces once there are enough cells, and moves their boundaries as loads change. The same map names
    /// all owners, and the base owner on which the realm begins, as soon as there is one.
    async fn draw(&mut self) -> Result<(), GrantError> {
        let cells: Vec<OwnerId> = self.membership.live_owners(OwnerKind::Cell).collect();
        let drawn = self
            .balance
            .next_map(monotonic(), &cells, self.plan.desired.cells, &self.map);
        for (space, change) in self.balance.changes() {
            tracing::info!(%space, %change, "the number of cells changes");
        }
        let is_drawn = drawn.is_some();
        let mut map = drawn.unwrap_or_else(|| self.map.clone());
        let is_named = self.membership.name_owners(&mut map);
        if !is_drawn {
            if !is_named || map.version == 0 {
                return Ok(());
            }
            map.version += 1;
        }
        let stored = WireMap {
            trees: self.balance.trees(),
            ..WireMap::from(&map)
        };
        self.grants.write_map(&control::encode(&stored)).await?;
        tracing::debug!(version = map.version, "divided the spaces");
        self.map = map;
        Ok(())
    }
}

/// The game time with which a director begins. Where a realm was `closed`, its beginning has just been moved; where it
/// was not, the wall clock may have been changed since, and counts only if no director has recorded game time.
fn game_time(wall: WallTime, began: WallTime, recorded: WorldTime, closed: bool) -> WorldTime {
    if closed || recorded.0 == 0 {
        WorldTime(wall.0.saturating_sub(began.0))
    } else {
        recorded
    }
}

/// The map as it was stored, and the division of spaces from which it was made.
fn resume(plan: &Plan, stored: Option<&[u8]>) -> (SpaceMap, Balance) {
    let fresh = || Balance::new(plan.spaces.clone(), Pace::default());
    let Some(stored) = stored else {
        return (SpaceMap::default(), fresh());
    };
    let read = control::decode::<WireMap>(stored).and_then(|wire| Ok((SpaceMap::try_from(&wire)?, wire)));
    let (map, wire) = match read {
        Ok(read) => read,
        Err(error) => {
            tracing::error!(%error, "the stored map cannot be read; dividing the spaces again");
            return (SpaceMap::default(), fresh());
        }
    };
    let mut balance = fresh();
    if let Err(error) = balance.resume(monotonic(), &wire, &map) {
        tracing::error!(%error, "the stored division of spaces cannot be read; dividing the spaces again");
        balance = fresh();
    }
    (map, balance)
}

fn order(grant: &Grant) -> GrantOrder {
    GrantOrder {
        owner: grant.owner.0,
        kind: u32::from(grant.kind.number()),
        shard: u32::from(grant.shard.0),
        epoch: grant.epoch.0,
        ids_from: grant.ids.start,
        ids_to: grant.ids.end,
        former_ended: grant.former_ended,
    }
}

fn monotonic() -> Duration {
    Duration::from_micros(clock::mono().0)
}
