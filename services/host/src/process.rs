//! A process of a realm: its connection, the store, its beats to the director, and its orders.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use annals_def::Schema;
use annals_director::{Progress, Stage};
use annals_ids::{Epoch, Hash, OwnerId, ProcessId, Shard, WallTime, WorldTime};
use annals_store::{Store, remote::RemoteStore};
use annals_wire::{
    Subjects,
    client::Located,
    control::{self, BUS_VERSION, DirectorAsk, DirectorRequest, Holding, Orders, ProcessBeat, Register, Registered},
};
use async_nats::client::RequestErrorKind;
use futures::{FutureExt, future::BoxFuture};
use thiserror::Error;
use tokio::sync::watch;

use crate::{
    clock::{Clock, mono, wall},
    config::Realm,
    health::{Announcement, DiscoveryError, Health, Readiness},
    log::Logs,
    nats::{Access, Address, Bus, ConnectError, StreamError},
    telemetry::{Metrics, Traces},
    waiting::Wait,
    watched::Watched,
};

/// Interval of a process's beats to the director (rule D2).
pub const BEAT: Duration = Duration::from_millis(300);

/// Timeout of the answer to a beat.
pub(crate) const BEAT_TIMEOUT: Duration = Duration::from_millis(700);

/// Timeout of a request to another process.
pub const TIMEOUT: Duration = Duration::from_secs(2);

/// Exit code of a process whose number another process has. A supervisor starts it again, under a number of its own.
const EXIT_REFUSED: i32 = 1;

/// The first shard of a realm: every realm has it, and the ledger's owner is placed on it.
pub const FIRST_SHARD: Shard = Shard(0);

/// Common settings of all services.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The realm's name.
    pub realm: Realm,
    /// The addresses of its nats-servers.
    pub nats: String,
    /// How it is admitted to them.
    pub access: Access,
    /// Number of copies of each log.
    pub replicas: usize,
}

impl From<&Settings> for Address {
    fn from(settings: &Settings) -> Self {
        Self {
            url: settings.nats.clone(),
            access: settings.access.clone(),
        }
    }
}

/// Whether a process stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It stays indefinitely.
    Stays,
    /// It takes no new owners, and ends its holders in order.
    Drains,
    /// It holds nothing any more: its owners can be granted to others.
    Leaves,
}

/// What a process reports in a beat.
#[derive(Clone, Debug)]
pub struct Report {
    pub presence: Presence,
    /// The owners that it holds.
    pub holds: BTreeMap<OwnerId, Holding>,
    /// Its address for clients, if it serves any.
    pub address: String,
    /// The version of the map that it has.
    pub map: u64,
    /// The owners that it follows, and could take over in a moment.
    pub follows: Vec<u32>,
    /// The owners that it follows, and is not at the end of the logs of.
    pub behind: Vec<u32>,
    /// The owners that it was granted and has released.
    pub released: Vec<u32>,
}

impl Report {
    /// The report of a process that holds no owners and needs no map.
    pub fn without_owners(presence: Presence) -> Self {
        Self {
            presence,
            holds: BTreeMap::new(),
            address: String::new(),
            map: u64::MAX,
            follows: Vec::new(),
            behind: Vec::new(),
            released: Vec::new(),
        }
    }
}

/// A base's location, as it is sent to clients; `address` is that of its process, as the director knows it. `None` if it
/// serves no clients.
pub fn located(owner: OwnerId, epoch: Epoch, address: &str) -> Option<Located> {
    let mut words = address.split_whitespace();
    let address: SocketAddr = words.next()?.parse().ok()?;
    let certificate = words.next().map(str::parse::<Hash>).transpose().ok()?;
    Some(Located {
        owner,
        epoch,
        address,
        certificate,
    })
}

/// Why a process could not join its realm.
#[derive(Debug, Error)]
pub enum JoinError {
    /// It could not connect.
    #[error("the realm's bus could not be joined")]
    Connect(#[from] ConnectError),
    /// The history stream is not configured as required.
    #[error("the history stream cannot be used")]
    Stream(#[from] StreamError),
    /// Service discovery failed.
    #[error("cannot announce the process on the bus")]
    Announce(#[from] DiscoveryError),
    /// The director refused it.
    #[error("the director refused this process: {0}")]
    Refused(String),
}

/// Why a request to another service has no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// No process serves such requests.
    #[error("no process answers for {service}")]
    Nobody { service: &'static str },
    /// No answer arrived.
    #[error("{service} did not answer: {reason}")]
    Silent {
        service: &'static str,
        /// The bus's error.
        reason: String,
    },
    /// The answer could not be decoded.
    #[error("{service} sent a malformed answer")]
    Odd {
        service: &'static str,
        /// The cause.
        #[source]
        source: control::ControlError,
    },
}

/// A process that has joined its realm.
pub struct Process {
    pub bus: Bus,
    /// The realm's subjects.
    pub subjects: Subjects,
    /// The realm's store: through db, except in db itself.
    pub store: Store,
    /// The streams of the logs.
    pub logs: Logs,
    pub id: ProcessId,
    /// The realm's clock.
    pub clock: Clock,
    /// The realm's name.
    pub realm: String,
    pub schema: Arc<Schema>,
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
    /// Its watched values.
    pub watched: Watched,
    /// The calls that it traces.
    pub traces: Traces,
    /// The readiness that it reports.
    pub readiness: watch::Sender<Readiness>,
    /// Its progress in the realm's stop.
    pub progress: watch::Sender<Progress>,
    service: &'static str,
    /// Announces the process to service discovery while it exists, unless its service does.
    _announcement: Option<Announcement>,
}

/// A process's connections to its realm.
#[derive(Clone)]
pub struct Reached {
    pub bus: Bus,
    /// The realm's subjects.
    pub subjects: Subjects,
    /// The realm's store.
    pub store: Store,
    /// The streams of the logs.
    pub logs: Logs,
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
    /// Its watched values.
    pub watched: Watched,
    /// The calls that it traces.
    pub traces: Traces,
}

impl Process {
    /// Joins a realm: connects, and registers with the director, waiting for both as long as it takes.
    ///
    /// # Errors
    /// When the bus is not suitable, or the director refuses the process.
    pub async fn join(
        (settings, health): (&Settings, &Health),
        service: &'static str,
        schema: Arc<Schema>,
    ) -> Result<Self, JoinError> {
        let (bus, subjects) = join(settings, service).await?;
        let store = remote_store(&bus, &subjects);
        let registered = register(&bus, &subjects, service, &schema).await?;
        let logs = Logs::new(&bus, settings.realm.as_str(), settings.replicas, BTreeMap::new());
        // A stream with another configuration is an error at the start, and not with the first grant.
        logs.of(FIRST_SHARD).await?;
        let announcement = announce(&bus, settings, service, health).await?;
        let reached = Reached {
            bus,
            subjects,
            store,
            logs,
            metrics: Arc::clone(&health.metrics),
            watched: health.watched.clone(),
            traces: health.traces.clone(),
        };
        let process = Self::new(settings, service, schema, reached, &registered);
        Ok(Self {
            readiness: health.readiness.clone(),
            _announcement: Some(announcement),
            ..process
        })
    }

    /// Registers a process that serves already and is announced to service discovery, so that it can hold owners as
    /// well; waits for the director as long as it takes. The readiness of this registration is not reported.
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
        follow_wall(&clock, registered.wall, Duration::ZERO);
        let (id, realm) = (registered.process(), settings.realm.to_string());
        tracing::info!(process = %id, realm, "joined");
        let Reached {
            bus,
            subjects,
            store,
            logs,
            metrics,
            watched,
            traces,
        } = reached;
        watched.set_number(id);
        Self {
            bus,
            subjects,
            store,
            logs,
            id,
            clock,
            realm,
            schema,
            metrics,
            watched,
            traces,
            readiness,
            progress: watch::Sender::new(Progress::default()),
            service,
            _announcement: None,
        }
    }

    /// The stage of a stop in which this process ends.
    pub fn ends_at(&self) -> Option<Stage> {
        Stage::ending(self.service)
    }

    /// Sends a request to the director.
    ///
    /// # Errors
    /// When no answer arrives, or it cannot be decoded.
    pub async fn ask<A: prost::Message + Default>(&self, ask: DirectorAsk) -> Result<A, AskError> {
        ask_director(&self.bus, &self.subjects, ask).await
    }

    /// Reports to the director that the process is alive and what it holds; the answer has the orders. Ends the program
    /// if the director says that another process has its number: an orderly end would be taken for that one's.
    ///
    /// # Errors
    /// When no answer arrives, or it cannot be decoded.
    pub async fn beat(&self, report: Report) -> Result<Orders, AskError> {
        let progress = self.progress.borrow().clone();
        let Report {
            presence,
            holds,
            address,
            map,
            follows,
            behind,
            released,
        } = report;
        let beat = ProcessBeat {
            process: self.id.0,
            service: self.service.to_owned(),
            address,
            holds: holds.into_values().collect(),
            draining: presence == Presence::Drains,
            map,
            leaving: presence == Presence::Leaves,
            announced: progress.announced.number(),
            done: progress.done.number(),
            waits: progress.waits,
            world: self.clock.now().world.0,
            connection: self.bus.connection(),
            follows,
            released,
            schema: self.schema.fingerprint().0.to_vec(),
            wall: wall().0,
            behind,
        };
        let asked = mono();
        // A lost answer must not keep the process from its next beat for long.
        let asking = self.ask(DirectorAsk::Beat(Box::new(beat)));
        let answered = tokio::time::timeout(BEAT_TIMEOUT, asking).await.unwrap_or_else(|_| {
            Err(AskError::Silent {
                service: "director",
                reason: format!("no answer within {} ms", BEAT_TIMEOUT.as_millis()),
            })
        });
        answered.inspect(|orders: &Orders| {
            follow_wall(&self.clock, orders.wall, mono().since(asked) / 2);
            if !orders.refused.is_empty() {
                tracing::error!(
                    "the director refuses this process, which ends at once: {}",
                    orders.refused
                );
                std::process::exit(EXIT_REFUSED);
            }
        })
    }
}

/// Corrects the wall time to the director's, which was this when it sent an answer so long ago.
fn follow_wall(clock: &Clock, sent: u64, ago: Duration) {
    // Earlier releases do not send it.
    if sent != 0 {
        let ago = u64::try_from(ago.as_millis()).unwrap_or_default();
        clock.follow_wall(WallTime(sent.saturating_add(ago)));
    }
}

/// Connects a command to a realm's bus. The future is boxed, so that the connection's code is compiled into this crate
/// only and not into every caller.
///
/// # Errors
/// When it cannot be reached or is not suitable.
pub fn connect<'a>(settings: &'a Settings, command: &str) -> BoxFuture<'a, Result<(Bus, Subjects), ConnectError>> {
    let name = format!("annals-{command}");
    let connecting = async move {
        let bus = Bus::connect(settings, &name).await?;
        Ok((bus, Subjects::new(settings.realm.as_str())))
    };
    connecting.boxed()
}

/// Connects a service to its realm's bus, waiting for it as long as it takes.
///
/// # Errors
/// When the bus is not suitable.
pub async fn join(settings: &Settings, service: &str) -> Result<(Bus, Subjects), ConnectError> {
    let bus = Bus::join(settings, &format!("annals-{service}")).await?;
    Ok((bus, Subjects::new(settings.realm.as_str())))
}

/// Announces a process to service discovery, with its health.
///
/// # Errors
/// When the bus is not available.
pub async fn announce(
    bus: &Bus,
    settings: &Settings,
    service: &str,
    health: &Health,
) -> Result<Announcement, DiscoveryError> {
    Announcement::start(bus, &settings.realm, service, health).await
}

async fn register(
    bus: &Bus,
    subjects: &Subjects,
    service: &'static str,
    schema: &Schema,
) -> Result<Registered, JoinError> {
    let mut wait = Wait::new(
        "the director",
        "this process holds and serves nothing until it is registered; check that annals-director runs with the same \
         --realm and --nats, and read in its log what it waits for",
    );
    let registered = loop {
        let asked = mono();
        let register = Register {
            service: service.to_owned(),
            schema: schema.fingerprint().0.to_vec(),
            bus: BUS_VERSION,
        };
        match ask_director::<Registered>(bus, subjects, DirectorAsk::Register(register)).await {
            Ok(mut answer) => {
                // Half the round-trip time has passed since the answer was sent.
                let back = mono().since(asked) / 2;
                let back = u64::try_from(back.as_millis()).unwrap_or_default();
                answer.world = answer.world.saturating_add(back);
                answer.wall = if answer.wall == 0 {
                    0
                } else {
                    answer.wall.saturating_add(back)
                };
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

/// The realm's store, through the process that serves it.
pub fn remote_store(bus: &Bus, subjects: &Subjects) -> Store {
    RemoteStore::new(bus.client().clone(), subjects.service("store")).store()
}

/// Sends a request to the director.
///
/// # Errors
/// When no answer arrives, or it cannot be decoded.
pub async fn ask_director<A: prost::Message + Default>(
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

/// Sends a request to another process.
///
/// # Errors
/// When no answer arrives, or it cannot be decoded.
pub async fn request<A: prost::Message + Default>(
    bus: &Bus,
    service: &'static str,
    subject: String,
    ask: &impl prost::Message,
) -> Result<A, AskError> {
    let silent = |reason: String| AskError::Silent { service, reason };
    let asking = bus.client().request(subject, control::encode(ask).into());
    let answer = tokio::time::timeout(TIMEOUT, asking).await;
    let answer = answer.map_err(|_| silent(format!("no answer within {} s", TIMEOUT.as_secs())))?;
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
            Err(error) => panic!("invariant: the operating system returns random bytes: {error}"),
        }
    }
    bytes
}

/// Random numbers for cores, seeded by the operating system.
pub fn dice() -> Box<dyn FnMut() -> u64 + Send> {
    Box::new(annals_def::split_mix(u64::from_le_bytes(random())))
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
                tracing::warn!(%error, "the SIGTERM handler could not be installed");
                let _ = interrupt.await;
            }
        }
        // Without a receiver there is nothing to stop.
        let _ = sender.send(true);
    });
    receiver
}

/// Resolves when the process is to stop.
pub async fn stopped(mut stop: watch::Receiver<bool>) {
    // Without a sender no stop is ever requested: the process runs on.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The result of `future`, or `None` if the process is asked to stop first.
pub async fn unless_stopped<T>(stop: &watch::Receiver<bool>, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = future => Some(done),
        () = stopped(stop.clone()) => None,
    }
}
