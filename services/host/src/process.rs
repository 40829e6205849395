//! A process of a realm: its connection, the store, the director's ear, and what it is ordered to hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals_def::Schema;
use annals_director::{Progress, Stage};
use annals_event::Trace;
use annals_ids::{OwnerId, ProcessId, Shard, WorldTime};
use annals_store::{Store, remote::RemoteStore};
use annals_wire::{
    Subjects,
    control::{self, DirectorAsk, DirectorRequest, Holding, Orders, ProcessBeat, Register, Registered},
};
use async_nats::client::RequestErrorKind;
use thiserror::Error;
use tokio::sync::watch;

use crate::{
    clock::{Clock, mono},
    config::Realm,
    health::{Announcement, DiscoveryError, Readiness},
    log::History,
    nats::{Bus, ConnectError, StreamError},
    telemetry::{Metrics, TraceContext},
    waiting::Wait,
};

/// How often a process tells the director that it lives (rule D2).
pub const BEAT: Duration = Duration::from_millis(300);

/// How long an answer of another process is awaited.
const PATIENCE: Duration = Duration::from_secs(2);

/// The only shard of a realm that has not grown out of one stream.
pub const SHARD: Shard = Shard(0);

/// What every service is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The realm's name.
    pub realm: Realm,
    /// Where its nats-server is.
    pub nats: String,
    /// How many nats-servers keep each log.
    pub replicas: usize,
}

/// How long a process will be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// As far as it knows, for ever.
    Stays,
    /// It takes no new owners, and ends those that it holds in order.
    Drains,
    /// It holds nothing any more: what was granted to it is another's.
    Leaves,
}

/// Why a process could not join its realm.
#[derive(Debug, Error)]
pub enum JoinError {
    /// No connection.
    #[error("the realm's bus could not be joined")]
    Connect(#[from] ConnectError),
    /// The history stream is not as it should be.
    #[error("the history stream cannot be used")]
    Stream(#[from] StreamError),
    /// Service discovery.
    #[error("the process cannot make itself known")]
    Announce(#[from] DiscoveryError),
    /// The director does not want it.
    #[error("the director refused this process: {0}")]
    Refused(String),
}

/// Why a request to another service has no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// There is nobody who would answer.
    #[error("nobody answers for {service}")]
    Nobody {
        /// Which service.
        service: &'static str,
    },
    /// It did not come.
    #[error("{service} did not answer: {reason}")]
    Silent {
        /// Which service.
        service: &'static str,
        /// What the bus says.
        reason: String,
    },
    /// It was not understood.
    #[error("{service} answered something that is not understood")]
    Odd {
        /// Which service.
        service: &'static str,
        /// What is wrong with it.
        #[source]
        source: control::ControlError,
    },
}

/// A process that has joined its realm.
pub struct Process {
    /// The bus.
    pub bus: Bus,
    /// The realm's subjects.
    pub subjects: Subjects,
    /// The realm's store: through db, unless this is db.
    pub store: Store,
    /// The stream of the logs.
    pub history: History,
    /// Its id.
    pub id: ProcessId,
    /// The realm's clock.
    pub clock: Clock,
    /// The realm's name.
    pub realm: String,
    /// The schema.
    pub schema: Arc<Schema>,
    /// The process's figures.
    pub metrics: Arc<Metrics>,
    /// What it answers when it is asked whether it does its work.
    pub readiness: watch::Sender<Readiness>,
    /// How far it is when the realm stops.
    pub progress: watch::Sender<Progress>,
    service: &'static str,
    /// Makes the process known to service discovery for as long as it lives, unless its service does.
    _announcement: Option<Announcement>,
}

/// What of its realm a process has reached.
pub struct Reached {
    /// The bus.
    pub bus: Bus,
    /// The realm's subjects.
    pub subjects: Subjects,
    /// The realm's store.
    pub store: Store,
    /// The stream of the logs.
    pub history: History,
    /// The process's figures.
    pub metrics: Arc<Metrics>,
}

impl Process {
    /// Joins: connects, and registers with the director, waiting for both as long as it takes.
    ///
    /// # Errors
    /// When the bus does not fit, or the director refuses the process.
    pub async fn join(settings: &Settings, service: &'static str, schema: Arc<Schema>) -> Result<Self, JoinError> {
        let (bus, subjects) = join(settings, service).await?;
        let store = remote_store(&bus, &subjects);
        let registered = register(&bus, &subjects, service, &schema).await?;
        let history = History::ensure(&bus, settings.realm.as_str(), SHARD, settings.replicas).await?;
        let metrics = Arc::new(Metrics::default());
        let (announcement, readiness) = announce(&bus, settings, service, &metrics).await?;
        let reached = Reached {
            bus,
            subjects,
            store,
            history,
            metrics,
        };
        let process = Self::new(settings, service, schema, reached, &registered);
        Ok(Self {
            readiness,
            _announcement: Some(announcement),
            ..process
        })
    }

    /// Registers a process that serves already and is known to service discovery, so that it can hold owners besides;
    /// waits for the director as long as it takes. What it says of its readiness then nobody hears.
    ///
    /// # Errors
    /// When the director refuses it.
    pub async fn enlist(
        settings: &Settings,
        service: &'static str,
        schema: Arc<Schema>,
        reached: Reached,
    ) -> Result<Self, JoinError> {
        let registered = register(&reached.bus, &reached.subjects, service, &schema).await?;
        Ok(Self::new(settings, service, schema, reached, &registered))
    }

    fn new(
        settings: &Settings,
        service: &'static str,
        schema: Arc<Schema>,
        reached: Reached,
        registered: &Registered,
    ) -> Self {
        let (readiness, _) = watch::channel(Readiness::Starting);
        let clock = Clock::at(WorldTime(registered.world));
        let (id, realm) = (registered.process(), settings.realm.to_string());
        tracing::info!(process = %id, realm, "joined");
        let Reached {
            bus,
            subjects,
            store,
            history,
            metrics,
        } = reached;
        Self {
            bus,
            subjects,
            store,
            history,
            id,
            clock,
            realm,
            schema,
            metrics,
            readiness,
            progress: watch::Sender::new(Progress::default()),
            service,
            _announcement: None,
        }
    }

    /// In which stage of a stop this process ends.
    pub fn ends_at(&self) -> Option<Stage> {
        Stage::ending(self.service)
    }

    /// Asks the director something.
    ///
    /// # Errors
    /// When no understandable answer comes.
    pub async fn ask<A: prost::Message + Default>(&self, ask: DirectorAsk) -> Result<A, AskError> {
        ask_director(&self.bus, &self.subjects, ask).await
    }

    /// Tells the director that the process lives and what it holds; the answer says what it is to hold.
    ///
    /// # Errors
    /// When no understandable answer comes.
    pub async fn beat(
        &self,
        presence: Presence,
        holds: &BTreeMap<OwnerId, Holding>,
        address: &str,
        map: u64,
    ) -> Result<Orders, AskError> {
        let progress = self.progress.borrow().clone();
        let beat = ProcessBeat {
            process: self.id.0,
            service: self.service.to_owned(),
            address: address.to_owned(),
            holds: holds.values().cloned().collect(),
            draining: presence == Presence::Drains,
            map,
            leaving: presence == Presence::Leaves,
            told: progress.told.number(),
            done: progress.done.number(),
            waits: progress.waits,
        };
        self.ask(DirectorAsk::Beat(beat)).await
    }
}

/// Connects a command to a realm's bus.
///
/// # Errors
/// When it cannot be reached or does not fit.
pub async fn connect(settings: &Settings, command: &str) -> Result<(Bus, Subjects), ConnectError> {
    let bus = Bus::connect(&settings.nats, &format!("annals-{command}")).await?;
    Ok((bus, Subjects::new(settings.realm.as_str())))
}

/// Connects a service to its realm's bus, waiting for it as long as it takes.
///
/// # Errors
/// When the bus does not fit.
pub async fn join(settings: &Settings, service: &str) -> Result<(Bus, Subjects), ConnectError> {
    let bus = Bus::join(&settings.nats, &format!("annals-{service}")).await?;
    Ok((bus, Subjects::new(settings.realm.as_str())))
}

/// Makes a process known to service discovery, with its figures; it is starting until it says something else.
///
/// # Errors
/// When the bus is not there.
pub async fn announce(
    bus: &Bus,
    settings: &Settings,
    service: &str,
    metrics: &Arc<Metrics>,
) -> Result<(Announcement, watch::Sender<Readiness>), DiscoveryError> {
    let (says, readiness) = watch::channel(Readiness::Starting);
    let announcement = Announcement::start(bus, &settings.realm, service, readiness, Arc::clone(metrics)).await?;
    Ok((announcement, says))
}

async fn register(
    bus: &Bus,
    subjects: &Subjects,
    service: &'static str,
    schema: &Schema,
) -> Result<Registered, JoinError> {
    let mut wait = Wait::new(
        "the director",
        "this process holds and serves nothing until it is registered; check that annals-director runs with the same --realm and \
         --nats, and what its log says it waits for",
    );
    let registered = loop {
        let asked = mono();
        let register = Register {
            service: service.to_owned(),
            schema: schema.fingerprint().0.to_vec(),
        };
        match ask_director::<Registered>(bus, subjects, DirectorAsk::Register(register)).await {
            Ok(mut answer) => {
                // What the answer took, it took there and back.
                let back = mono().since(asked) / 2;
                let back = u64::try_from(back.as_millis()).unwrap_or_default();
                answer.world = answer.world.saturating_add(back);
                break answer;
            }
            Err(error) => {
                wait.lasts(error);
                tokio::time::sleep(BEAT).await;
            }
        }
    };
    wait.ends();
    if registered.refused.is_empty() {
        Ok(registered)
    } else {
        Err(JoinError::Refused(registered.refused))
    }
}

/// The realm's store, through whoever serves it.
pub fn remote_store(bus: &Bus, subjects: &Subjects) -> Store {
    RemoteStore::new(bus.client().clone(), subjects.service("store")).store()
}

async fn ask_director<A: prost::Message + Default>(
    bus: &Bus,
    subjects: &Subjects,
    ask: DirectorAsk,
) -> Result<A, AskError> {
    request(
        bus,
        "director",
        subjects.service("director"),
        &DirectorRequest { ask: Some(ask) },
    )
    .await
}

/// Asks another process something.
///
/// # Errors
/// When no understandable answer comes.
pub async fn request<A: prost::Message + Default>(
    bus: &Bus,
    service: &'static str,
    subject: String,
    ask: &impl prost::Message,
) -> Result<A, AskError> {
    let silent = |reason: String| AskError::Silent { service, reason };
    let asking = bus.client().request(subject, control::encode(ask).into());
    let answer = tokio::time::timeout(PATIENCE, asking).await;
    let answer = answer.map_err(|_| silent(format!("nothing within {} s", PATIENCE.as_secs())))?;
    let answer = answer.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => AskError::Nobody { service },
        _ => silent(error.to_string()),
    })?;
    control::decode(&answer.payload).map_err(|source| AskError::Odd { service, source })
}

/// Random bytes for tokens, from the operating system.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("invariant: the operating system gives random bytes: {error}"),
        }
    }
    bytes
}

/// Random numbers for cores, seeded by the operating system.
pub fn dice() -> Box<dyn FnMut() -> u64 + Send> {
    Box::new(annals_def::split_mix(u64::from_le_bytes(random())))
}

/// A trace id for a request that begins here.
pub fn fresh_trace() -> Trace {
    TraceContext::root().trace()
}

/// Resolves when the process is asked to stop.
pub fn stop_signal() -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        let interrupt = tokio::signal::ctrl_c();
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = interrupt => {}
                    _ = terminate.recv() => {}
                }
            }
            Err(error) => {
                tracing::warn!(%error, "SIGTERM cannot be listened for");
                let _ = interrupt.await;
            }
        }
        // Nobody listens any more: then there is nothing to stop.
        let _ = sender.send(true);
    });
    receiver
}

/// Resolves when the process is to stop.
pub async fn stopped(mut stop: watch::Receiver<bool>) {
    // Without a sender nobody will ever ask: the process runs on.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What `future` comes to, unless the process is asked to stop before: then `None`.
pub async fn unless_stopped<T>(stop: &watch::Receiver<bool>, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = future => Some(done),
        () = stopped(stop.clone()) => None,
    }
}
