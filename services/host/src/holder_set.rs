//! The owners that a process holds by the director's orders: one holder task per owner, started by a grant and ended by
//! a revocation.

mod closing;
mod moving;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use annals_director::Stage as LifecycleStage;
use annals_event::OwnerState;
use annals_ids::{Epoch, OwnerId};
use annals_node::{
    Behaviour, Input, LifecycleEvent, Played, Role, panics,
    time::Mono,
    writer::{self, Durability, Tip},
};
use annals_wire::{
    SpaceMap,
    control::{self, CursorAnnouncement, GrantOrder, Holding, Orders, UpgradeOrder, Want, WirePlayed},
    load::{Load, WireLoad},
};
use futures::StreamExt;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use crate::following::Following;
use crate::health::Readiness;
use crate::holder::{COMMANDS, Command, Notice, Notices, Stage, Terms, Wires, hold};
use crate::nats::Subscription;
use crate::outbound::Outbound;
use crate::process::{self, BEAT, Presence, Process, Report};
use crate::waiting::Wait;
use crate::watched::Registration;
use watching::Figures;

/// Timeout of an orderly end of all holders. A log that works needs milliseconds.
const DRAIN_WITHIN: Duration = Duration::from_secs(4);

/// Normal time until a process has its owners: there is nothing to report earlier.
const WORK_WITHIN: Duration = Duration::from_secs(5);

/// Interval of beats to the director while the realm stops: each stage takes about two of these.
const STOPPING_BEAT: Duration = Duration::from_millis(50);

/// How often a process says that it leaves, until the director answers.
const LEAVES: usize = 3;

/// Poll interval for holders that end.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Makes the role of an owner from the state with which its epoch begins.
pub type Make<R> = Arc<dyn Fn(&OwnerState, Mono) -> R + Send + Sync>;

/// What all owners of a service are made with.
pub struct OwnerSetup<R: Role> {
    /// The game.
    pub behaviour: Arc<dyn Behaviour>,
    /// When a batch counts as acknowledged.
    pub durability: Durability,
    /// Makes the role of an owner with this state, at this time.
    pub make: Make<R>,
    /// Makes the role's input from a map.
    pub map: fn(SpaceMap) -> R::Input,
    /// Address for clients, if the process serves any.
    pub address: String,
    /// What performs calls of behaviour to services outside the realm.
    pub outbound: Arc<Outbound>,
}

/// Access to the holders of a process, for the rest of its service.
pub struct Holders<I> {
    commands: Arc<RwLock<BTreeMap<OwnerId, mpsc::Sender<Command<I>>>>>,
    /// The owners that are followed here.
    followed: Arc<RwLock<BTreeSet<OwnerId>>>,
}

impl<I> Clone for Holders<I> {
    fn clone(&self) -> Self {
        Self {
            commands: Arc::clone(&self.commands),
            followed: Arc::clone(&self.followed),
        }
    }
}

/// Why an input was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// The owner is not held here.
    NotHeld,
    /// Its holder's queue is full.
    Full,
}

impl<I> Holders<I> {
    /// Sends an input to the holder of an owner, without waiting.
    ///
    /// # Errors
    /// When the owner is not held here, or its holder's queue is full.
    pub fn send(&self, owner: OwnerId, input: I) -> Result<(), NotSent> {
        self.send_core(owner, Input::Role(input))
    }

    /// As [`Self::send`], with an input that is the same for all roles.
    pub(crate) fn send_core(&self, owner: OwnerId, input: Input<I>) -> Result<(), NotSent> {
        let commands = self.commands.read().unwrap_or_else(PoisonError::into_inner);
        let commands = commands.get(&owner).ok_or(NotSent::NotHeld)?;
        commands.try_send(Command::Core(input)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotSent::Full,
            mpsc::error::TrySendError::Closed(_) => NotSent::NotHeld,
        })
    }

    /// The owners that are held here and have the map.
    pub fn owners(&self) -> Vec<OwnerId> {
        let commands = self.commands.read().unwrap_or_else(PoisonError::into_inner);
        commands.keys().copied().collect()
    }

    /// Whether this process is to hold the owner next.
    pub fn is_next(&self, owner: OwnerId) -> bool {
        let followed = self.followed.read().unwrap_or_else(PoisonError::into_inner);
        followed.contains(&owner)
    }

    fn set_next(&self, owner: OwnerId, is_next: bool) {
        let mut followed = self.followed.write().unwrap_or_else(PoisonError::into_inner);
        if is_next {
            followed.insert(owner);
        } else {
            followed.remove(&owner);
        }
    }

    fn set(&self, owner: OwnerId, commands: Option<mpsc::Sender<Command<I>>>) {
        let mut held = self.commands.write().unwrap_or_else(PoisonError::into_inner);
        match commands {
            Some(commands) => held.insert(owner, commands),
            None => held.remove(&owner),
        };
    }
}

/// The holders of a process: starts and ends them as the director orders, and reports on them in beats.
pub struct HolderSet<R: Role> {
    process: Arc<Process>,
    setup: OwnerSetup<R>,
    notices: Notices,
    holders: Holders<R::Input>,
    held: BTreeMap<OwnerId, Held<R::Input>>,
    /// Grants whose holders ended by themselves: only a new epoch restarts them.
    ended: BTreeSet<(OwnerId, Epoch)>,
    map: SpaceMap,
    /// The stage of the realm's stop, by the director.
    stage: LifecycleStage,
    /// The wait for a director that does not answer.
    director: Wait,
    /// The wait while anything else keeps this process from its work.
    work: Wait,
    /// Notified by each holder that has taken its owner over or has ended, and by each follower that is ready.
    changed: Arc<Notify>,
    /// The owners that other processes hold, and that this one is to hold next (rule D9).
    follows: BTreeMap<OwnerId, Following>,
    /// The owners that it has released while it drains.
    released: BTreeSet<OwnerId>,
}

struct Held<I> {
    epoch: Epoch,
    commands: mpsc::Sender<Command<I>>,
    entities: Arc<AtomicU64>,
    load: watch::Receiver<Option<Load>>,
    played: watch::Receiver<Option<Played>>,
    stage: watch::Receiver<Stage>,
    task: JoinHandle<()>,
    /// The version of the map that it was sent.
    map: u64,
    /// Number of lifecycle events that it was sent, and number of those that all its parts were notified of.
    moments_sent: u64,
    lifecycle_events: Arc<AtomicU64>,
    /// The stage of a stop up to which it was notified of everything.
    announced_stage: LifecycleStage,
    _watched: Registration,
}

impl<R> HolderSet<R>
where
    R: Role + Send + 'static,
    R::Input: Clone + Send + 'static,
{
    /// A set that holds nothing yet.
    pub fn new(process: Arc<Process>, setup: OwnerSetup<R>, notices: Notices) -> Self {
        let holders = Holders {
            commands: Arc::default(),
            followed: Arc::default(),
        };
        Self {
            process,
            setup,
            notices,
            holders,
            held: BTreeMap::new(),
            ended: BTreeSet::new(),
            map: SpaceMap::default(),
            stage: LifecycleStage::Running,
            director: Wait::new(
                "the director",
                "held owners continue, and no owner is granted; check that annals-director runs with the same --realm \
                 and --nats",
            ),
            work: Wait::new(
                "work",
                "this process is idle; if that lasts, see in the director's log what the director waits for",
            )
            .after(WORK_WITHIN),
            changed: Arc::default(),
            follows: BTreeMap::new(),
            released: BTreeSet::new(),
        }
    }

    /// Access to the holders.
    pub fn holders(&self) -> Holders<R::Input> {
        self.holders.clone()
    }

    /// Follows the director's orders until the process is asked to stop, and then ends its holders in order.
    ///
    /// # Errors
    /// When the bus refuses the subscriptions to db's notifications.
    pub async fn run(mut self, stop: watch::Receiver<bool>) -> Result<(), async_nats::SubscribeError> {
        let mut notifications = Notifications::listen(&self.process).await?;
        let summons = self.process.subjects.summons(self.process.id);
        let mut summons = self.process.bus.subscribe(summons).await?;
        let changed = Arc::clone(&self.changed);
        let mut link = self.process.bus.state();
        let stopped = process::stopped(stop);
        tokio::pin!(stopped);
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stopped => break,
                _ = beat.tick() => {
                    let orders = self.beat(Presence::Stays).await;
                    let upgrade = orders.as_ref().map_or(UpgradeOrder::None, Orders::upgrade);
                    let is_last = match upgrade {
                        UpgradeOrder::None | UpgradeOrder::Wait => orders.is_some_and(|orders| orders.drain),
                        UpgradeOrder::Release => {
                            self.release_for_change(&mut notifications, &mut summons, stopped.as_mut()).await
                        }
                        UpgradeOrder::End => {
                            tracing::info!("the realm does not have the definitions of this process, which ends");
                            true
                        }
                    };
                    if self.ends() || is_last {
                        break;
                    }
                    if self.stage > LifecycleStage::Running {
                        beat.reset_after(STOPPING_BEAT);
                    }
                    self.say_ready();
                }
                Some(_) = summons.next() => beat.reset_immediately(),
                () = changed.notified() => beat.reset_immediately(),
                // Over another connection: the director need not wait for a report of this process (rule D2).
                Ok(()) = link.changed() => beat.reset_immediately(),
                item = notifications.next() => self.spread(item),
            }
        }
        self.drain(notifications, summons).await;
        Ok(())
    }

    /// Ends everything in order: what other processes can follow is handed over to them, and the rest is released, so
    /// that it can be taken over at once. Only then the rest of the service is stopped.
    async fn drain(mut self, mut notifications: Notifications, summons: Subscription) {
        self.process.readiness.send_replace(Readiness::Draining);
        tracing::info!(owners = self.held.len(), "draining");
        self.hand_over_all(&mut notifications, summons).await;
        let mut timeout = tokio::time::Instant::now();
        for (owner, held) in &self.held {
            // It had its time while owners were handed over.
            if self.released.contains(owner) {
                continue;
            }
            timeout = tokio::time::Instant::now() + DRAIN_WITHIN;
            let asked = *held.stage.borrow() != Stage::Taking && held.commands.try_send(Command::Finish).is_ok();
            if !asked {
                // Nothing has happened under an epoch that is not open; and a holder with a full queue would take too
                // long.
                held.task.abort();
            }
        }
        while !self.held.values().all(|held| held.task.is_finished()) {
            tokio::select! {
                item = notifications.next() => self.spread(item),
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = tokio::time::sleep_until(timeout) => {
                    tracing::warn!(
                        "not everything could be logged in time; the next holder continues from what is logged"
                    );
                    break;
                }
            }
        }
        for _ in 0..LEAVES {
            if self.say(Presence::Leaves).await {
                break;
            }
        }
        while let Some((&owner, _)) = self.held.first_key_value() {
            self.end(owner).await;
        }
    }

    /// Notifies the director of a change, and returns whether it answered; if not, it notices the silence.
    async fn say(&self, presence: Presence) -> bool {
        let said = self.process.beat(self.report(presence)).await;
        if let Err(error) = &said {
            tracing::warn!(%error, "could not send the beat to the director");
        }
        said.is_ok()
    }

    fn report(&self, presence: Presence) -> Report {
        let (ready, behind): (Vec<_>, Vec<_>) = self.follows.iter().partition(|(_, following)| following.is_ready());
        let owners = |follows: Vec<(&OwnerId, &Following)>| follows.into_iter().map(|(owner, _)| owner.0).collect();
        Report {
            presence,
            holds: match presence {
                Presence::Leaves => BTreeMap::new(),
                Presence::Stays | Presence::Drains => self.holds(),
            },
            address: self.setup.address.clone(),
            map: self.map.version,
            follows: owners(ready),
            behind: owners(behind),
            released: self
                .released
                .iter()
                .filter(|owner| !self.held.contains_key(owner))
                .map(|owner| owner.0)
                .collect(),
        }
    }

    fn holds(&self) -> BTreeMap<OwnerId, Holding> {
        let held = self.held.iter();
        held.map(|(owner, held)| (*owner, held.holding(*owner))).collect()
    }

    /// Reports the readiness to monitors, and in the process's log when the process is not ready for long.
    fn say_ready(&mut self) {
        let Some(reason) = self.obstacle() else {
            self.work.ends();
            self.process.readiness.send_replace(Readiness::Ready);
            return;
        };
        self.work.lasts(&reason);
        let readiness = match *self.process.readiness.borrow() {
            Readiness::Starting => Readiness::Starting,
            _ => Readiness::Waiting { reason },
        };
        self.process.readiness.send_replace(readiness);
    }

    /// What keeps the process from holding all its grants and showing what happens there.
    fn obstacle(&self) -> Option<String> {
        let count = |stage| self.held.values().filter(|held| *held.stage.borrow() == stage).count();
        match (self.held.len(), count(Stage::Taking), count(Stage::Stuck)) {
            (0, ..) => Some("nothing is granted to it".to_owned()),
            _ if self.map.version == 0 => Some("no space is divided yet".to_owned()),
            (_, 0, 0) => None,
            (_, 0, stuck) => Some(format!("the logs of {stuck} owners are blocked")),
            (_, taking, _) => Some(format!("{taking} owners are being taken over")),
        }
    }

    /// One beat: reports to the director what is held, and carries out its orders. Returns those that are for the caller;
    /// `None` if the director does not answer.
    async fn beat(&mut self, presence: Presence) -> Option<Orders> {
        self.sweep().await;
        self.follow_stop();
        let orders = match self.process.beat(self.report(presence)).await {
            Ok(orders) => orders,
            Err(error) => {
                // Owners run on; epochs and the gate prevent that anything wrong is shown.
                self.director.lasts(error);
                return None;
            }
        };
        self.director.ends();
        self.enter(LifecycleStage::of_number(orders.stage));
        match orders.map.as_ref().map(SpaceMap::try_from) {
            Some(Ok(map)) => self.map = map,
            Some(Err(error)) => tracing::error!(%error, "the director's map is malformed; keeping the previous one"),
            None => {}
        }
        let granted: BTreeMap<OwnerId, &GrantOrder> = orders
            .grants
            .iter()
            .map(|grant| (OwnerId(grant.owner), grant))
            .collect();
        let is_granted = |owner: &OwnerId, held: &Held<R::Input>| {
            granted.get(owner).is_some_and(|grant| Epoch(grant.epoch) == held.epoch)
        };
        let lost: Vec<OwnerId> = self
            .held
            .iter()
            .filter(|(owner, held)| !is_granted(owner, held))
            .map(|(owner, _)| *owner)
            .collect();
        for owner in lost {
            self.end(owner).await;
        }
        for (owner, grant) in granted {
            let begun = self.held.contains_key(&owner) || self.ended.contains(&(owner, Epoch(grant.epoch)));
            // A grant without ids is from an earlier term of the director: a process that lost the owner is granted it
            // anew.
            let goes_on = self.stage < LifecycleStage::Closing && orders.upgrade() != UpgradeOrder::End;
            if !begun && grant.ids_to > grant.ids_from && goes_on {
                self.begin(owner, grant);
            }
        }
        self.follow(&orders.follow);
        self.send_map().await;
        Some(orders)
    }

    /// Passes db's notifications on to the holders concerned.
    fn spread(&mut self, item: Notification) {
        match item {
            Notification::Cursors(announced) => {
                for (owner, number, hash, epoch) in announced.cursors.iter().filter_map(control::CursorMoved::position)
                {
                    if let Some(held) = self.held.get(&owner) {
                        let input = writer::Input::Archived {
                            upto: Tip { number, hash },
                            epoch,
                        };
                        // A holder that lags or has just ended needs no single item: later notifications repeat it.
                        let _ = held.commands.try_send(Command::Core(Input::Log(input)));
                    }
                }
            }
            Notification::Want(want) => {
                if let Some(held) = self.held.get(&OwnerId(want.owner)) {
                    // db repeats a request that is not answered.
                    let _ = held.commands.try_send(Command::Refill(want.first..want.until));
                }
            }
        }
    }

    fn begin(&mut self, owner: OwnerId, grant: &GrantOrder) {
        let Some((_, kind, shard, epoch)) = grant.terms().filter(|(_, kind, ..)| *kind == R::KIND) else {
            tracing::error!(%owner, kind = grant.kind, "ignored a grant that is malformed or for another kind of owner");
            return;
        };
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let (entities, lifecycle_events) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (says, stage) = watch::channel(Stage::Taking);
        let ((weighs, load), (counts, played)) = (watch::channel(None), watch::channel(None));
        let (behaviour, durability) = (Arc::clone(&self.setup.behaviour), self.setup.durability);
        let terms = Terms {
            owner,
            kind,
            shard,
            epoch,
            ids: grant.ids_from..grant.ids_to,
            former_ended: grant.former_ended,
            behaviour,
            durability,
        };
        let wires = Wires {
            commands: receiver,
            own: commands.clone(),
            notices: self.notices.clone(),
            outbound: Arc::clone(&self.setup.outbound),
            entities: Arc::clone(&entities),
            load: weighs,
            played: counts,
            lifecycle_events: Arc::clone(&lifecycle_events),
            stage: says,
            changed: Arc::clone(&self.changed),
        };
        let watched = watching::add(
            &self.process.watched,
            (owner, epoch),
            Figures {
                entities: Arc::clone(&entities),
                load: load.clone(),
                stage: stage.clone(),
            },
        );
        let make = Arc::clone(&self.setup.make);
        let make = move |state: &OwnerState, now| make(state, now);
        let following = self.follows.remove(&owner);
        let (holding, changed) = (
            hold(Arc::clone(&self.process), terms, make, wires, following),
            Arc::clone(&self.changed),
        );
        let task = tokio::spawn(async move {
            holding.await;
            changed.notify_one();
        });
        self.held.insert(
            owner,
            Held {
                epoch,
                commands,
                entities,
                load,
                played,
                stage,
                task,
                map: 0,
                moments_sent: 0,
                lifecycle_events,
                announced_stage: LifecycleStage::Running,
                _watched: watched,
            },
        );
    }

    async fn end(&mut self, owner: OwnerId) {
        if let Some(mut held) = self.held.remove(&owner) {
            if held.task.is_finished()
                && let Err(ended) = (&mut held.task).await
                && let Ok(panic) = ended.try_into_panic()
            {
                let message = panics::message(panic.as_ref());
                self.process.metrics.troubles.add(1);
                tracing::error!(
                    %owner, epoch = %held.epoch, message,
                    "the owner's task panicked, which is a defect: the owner is taken over from its log; keep this log"
                );
            }
            tracing::info!(%owner, epoch = %held.epoch, "released the owner");
            held.task.abort();
            self.holders.set_next(owner, false);
            self.holders.set(owner, None);
            // If the service has ended, the notice is not needed.
            let _ = self.notices.send(Notice::Ended(owner)).await;
        }
    }

    /// Removes holders that ended by themselves.
    async fn sweep(&mut self) {
        let finished = self.held.iter().filter(|(_, held)| held.task.is_finished());
        let finished: Vec<(OwnerId, Epoch)> = finished.map(|(owner, held)| (*owner, held.epoch)).collect();
        for (owner, epoch) in finished {
            self.ended.insert((owner, epoch));
            self.end(owner).await;
        }
    }

    /// Sends the map to the holders that do not have it yet; one whose queue is full gets it with a later beat. Only a
    /// holder that has the map is visible to the rest of the service: a player who came in before there is a world
    /// would not get into it.
    async fn send_map(&mut self) {
        let mut first = Vec::new();
        let uninformed = self.held.iter_mut().filter(|(_, held)| held.map < self.map.version);
        for (owner, held) in uninformed {
            let input = Input::Role((self.setup.map)(self.map.clone()));
            if held.commands.try_send(Command::Core(input)).is_ok() {
                if held.map == 0 {
                    let is_bootstrap = self.map.bootstrap == Some(*owner);
                    let ready = Input::LifecycleEvent(LifecycleEvent::Ready { is_bootstrap });
                    // There is room: the map was its first command.
                    let sent = held.commands.try_send(Command::Core(ready)).is_ok();
                    held.moments_sent += u64::from(sent);
                }
                if held.map == 0 {
                    first.push(*owner);
                }
                held.map = self.map.version;
                self.holders.set(*owner, Some(held.commands.clone()));
            }
        }
        for owner in first {
            self.holders.set_next(owner, false);
            // If the service has ended, the notice is not needed.
            let _ = self.notices.send(Notice::Held(owner)).await;
        }
    }
}

impl<I> Held<I> {
    fn holding(&self, owner: OwnerId) -> Holding {
        Holding {
            owner: owner.0,
            epoch: self.epoch.0,
            entities: self.entities.load(Ordering::Relaxed),
            load: self.load.borrow().as_ref().map(WireLoad::from),
            played: self.played.borrow().map(|played| WirePlayed {
                sessions: played.sessions,
                newest: played.newest.0,
            }),
        }
    }
}

/// db's notifications for all processes.
struct Notifications {
    cursors: Subscription,
    wants: Subscription,
}

/// A notification of db.
enum Notification {
    /// Cursors of logs have advanced (rule F6).
    Cursors(CursorAnnouncement),
    /// Batches are missing (rule F4).
    Want(Want),
}

impl Notifications {
    async fn listen(process: &Process) -> Result<Self, async_nats::SubscribeError> {
        let bus = &process.bus;
        Ok(Self {
            cursors: bus.subscribe(process.subjects.news("cursors")).await?,
            wants: bus.subscribe(process.subjects.news("wants")).await?,
        })
    }

    async fn next(&mut self) -> Notification {
        loop {
            let item = tokio::select! {
                Some(message) = self.cursors.next() => control::decode(&message.payload).map(Notification::Cursors),
                Some(message) = self.wants.next() => control::decode(&message.payload).map(Notification::Want),
                else => std::future::pending().await,
            };
            match item {
                Ok(item) => return item,
                Err(error) => tracing::warn!(%error, "ignored a malformed notification"),
            }
        }
    }
}
