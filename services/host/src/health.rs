//! Discovery and health of processes: NATS service discovery (`$SRV.PING`, `$SRV.INFO`, `$SRV.STATS`), for the `nats`
//! tool and any monitor that knows it. A process that answers is alive; its readiness and its metrics are in the data
//! of its endpoint `health`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use annals_ids::{Hash, ProcessId};
use annals_store::Store;
use annals_wire::Subjects;
use async_nats::service::{Request, Service, ServiceExt, endpoint};
use futures::StreamExt;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::certificates::Certificates;
use crate::config::{LogFilter, Realm};
use crate::nats::Bus;
use crate::process::remote_store;
use crate::release::{COMMIT, VERSION};
use crate::telemetry::{LogAnswer, LogRequest, MemberCost, Metrics, ProcessLog, Snapshot, Traces};
use crate::watched::{
    self, Load, Patterns, Registration, Setting, Unit, WatchAnswer, WatchRequest, Watched,
    changing::{ChangeAnswer, ChangeRequest, change},
    name_of,
};

/// Prefix of all our service names: `annals-` and the service.
const PREFIX: &str = "annals-";

/// The endpoint that every instance has.
const ENDPOINT: &str = "health";

/// The endpoint that reports what members of entity types have cost.
const COSTS: &str = "costs";

/// The endpoint that answers with watched values.
const WATCH: &str = "watch";

/// The endpoint that changes settings.
const CHANGE: &str = "change";

/// The endpoint that answers with lines of the process's log.
const LOG_LINES: &str = "log-lines";

/// Maximum answers that are read per question: more instances than a realm has.
const MOST_INSTANCES: usize = 4096;

/// Whether a process does its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Readiness {
    /// It is starting.
    Starting,
    /// It does its work.
    Ready,
    /// It takes no new work, and ends when it has handed over what it has.
    Draining,
    /// It waits for something outside, and becomes ready again by itself.
    Waiting {
        /// What it waits for.
        reason: String,
    },
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Readiness::Starting => f.write_str("starting"),
            Readiness::Ready => f.write_str("ready"),
            Readiness::Draining => f.write_str("draining"),
            Readiness::Waiting { reason } => write!(f, "waiting: {reason}"),
        }
    }
}

/// What a process reports of itself. Clones are of the same process.
#[derive(Debug, Clone)]
pub struct Health {
    /// Its readiness.
    pub readiness: watch::Sender<Readiness>,
    /// Its metrics.
    pub metrics: Arc<Metrics>,
    /// Its watched values.
    pub watched: Watched,
    /// The newest lines of its log.
    pub log: ProcessLog,
    /// Fingerprint of the definitions that it was started with, if its service uses them.
    pub schema: Option<Hash>,
    /// Its certificates.
    pub certificates: Certificates,
    /// The calls that it traces.
    pub traces: Traces,
}

impl Default for Health {
    /// Of a process that is starting, whose log is not kept.
    fn default() -> Self {
        Self {
            readiness: watch::Sender::new(Readiness::Starting),
            metrics: Arc::default(),
            watched: Watched::default(),
            log: ProcessLog::default(),
            schema: None,
            certificates: Certificates::default(),
            traces: Traces::default(),
        }
    }
}

impl Health {
    /// The report at this moment.
    #[must_use]
    pub fn report(&self) -> Report {
        let readiness = self.readiness.borrow().clone();
        Report {
            ready: readiness == Readiness::Ready,
            readiness,
            process: self.watched.number(),
            pid: std::process::id(),
            metrics: self.metrics.snapshot(),
        }
    }
}

/// Health report of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Whether it is [`Readiness::Ready`], as one flag for monitors.
    pub ready: bool,
    /// The readiness in detail.
    #[serde(flatten)]
    pub readiness: Readiness,
    /// The number that the director gave the process, if it has one.
    #[serde(default, with = "number")]
    pub process: Option<ProcessId>,
    /// Its process id on its machine.
    #[serde(default)]
    pub pid: u32,
    /// Its metrics since it started.
    pub metrics: Snapshot,
}

/// Process numbers in JSON.
mod number {
    use annals_ids::ProcessId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(super) fn serialize<S: Serializer>(number: &Option<ProcessId>, to: S) -> Result<S::Ok, S::Error> {
        number.map(|number| number.0).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ProcessId>, D::Error> {
        Ok(Option::deserialize(from)?.map(ProcessId))
    }
}

/// An instance of a service that answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Which service: `cell`, `base` and so on.
    pub service: String,
    /// Its id, a new one at each start.
    pub id: String,
    /// Its release.
    pub version: String,
    pub report: Report,
}

impl Instance {
    /// The process's name among those of its service: its number, or the end of its id.
    #[must_use]
    pub fn name(&self) -> String {
        name_of(self.report.process, &self.id)
    }
}

/// A process could not be announced, or a question could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("service discovery over the bus failed while {doing}")]
pub struct DiscoveryError {
    doing: &'static str,
    source: async_nats::Error,
}

impl DiscoveryError {
    fn of<E: Into<async_nats::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self {
            doing,
            source: source.into(),
        }
    }
}

/// An announced process. It answers for as long as this is kept.
#[derive(Debug)]
pub struct Announcement {
    service: Option<Service>,
    id: String,
    answers: JoinHandle<()>,
    _watched: Vec<Registration>,
}

impl Announcement {
    /// Announces this process as an instance of the service `name` in `realm`. Answers carry its health at the time.
    ///
    /// # Errors
    /// When the bus is not available.
    pub async fn start(bus: &Bus, realm: &Realm, name: &str, health: &Health) -> Result<Self, DiscoveryError> {
        let of_stats = health.clone();
        let schema = health.schema.map(|schema| ("schema", schema.to_string()));
        let commit = COMMIT.map(|commit| ("commit", commit.to_owned()));
        let metadata = [
            ("realm", realm.to_string()),
            ("process", std::process::id().to_string()),
        ];
        let service = bus
            .client()
            .service_builder()
            .description(format!("{name} of the realm {realm}"))
            .metadata(
                metadata
                    .into_iter()
                    .chain(schema)
                    .chain(commit)
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<HashMap<_, _>>(),
            )
            .stats_handler(move |endpoint, _| match endpoint.as_str() {
                ENDPOINT => json(&of_stats.report()),
                _ => serde_json::Value::Null,
            })
            .start(format!("{PREFIX}{name}"), VERSION)
            .await
            .map_err(DiscoveryError::of("announcing the service"))?;
        let id = service.info().await.id;
        let subjects = Subjects::new(realm.as_str());
        let load = Load::default();
        let watched = vec![
            watched::add_system(&health.watched, health, load.clone()),
            watched::add_metrics(&health.watched, name, Arc::clone(&health.metrics)),
            health.watched.add_setting(log_filter(&health.log)),
        ];
        let endpoint = async |name: &str, subject: String| {
            let added = service.endpoint_builder().name(name).add(subject).await;
            added.map_err(DiscoveryError::of("announcing the endpoint"))
        };
        let endpoints = Endpoints {
            health: endpoint(ENDPOINT, subjects.health(&id)).await?,
            costs: endpoint(COSTS, subjects.costs(&id)).await?,
            watch: endpoint(WATCH, subjects.watch(&id)).await?,
            change: endpoint(CHANGE, subjects.change(&id)).await?,
            log_lines: endpoint(LOG_LINES, subjects.log_lines(&id)).await?,
        };
        let answering = Answering {
            health: health.clone(),
            service: name.to_owned(),
            id: id.clone(),
            store: remote_store(bus, &subjects),
        };
        let answers = tokio::spawn(async move {
            tokio::join!(answering.run(endpoints), load.measure());
        });
        Ok(Self {
            service: Some(service),
            id,
            answers,
            _watched: watched,
        })
    }

    /// The id of this instance in discovery.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Withdraws the process from discovery.
    ///
    /// # Errors
    /// When the bus is not available.
    pub async fn withdraw(mut self) -> Result<(), DiscoveryError> {
        match self.service.take() {
            Some(service) => service
                .stop()
                .await
                .map_err(DiscoveryError::of("withdrawing the service")),
            None => Ok(()),
        }
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

/// The requests that a process answers.
struct Endpoints {
    health: endpoint::Endpoint,
    costs: endpoint::Endpoint,
    watch: endpoint::Endpoint,
    change: endpoint::Endpoint,
    log_lines: endpoint::Endpoint,
}

/// What the answers of a process are made of.
struct Answering {
    health: Health,
    service: String,
    /// The id of the instance.
    id: String,
    store: Store,
}

impl Answering {
    async fn run(self, endpoints: Endpoints) {
        let costs = || self.health.metrics.costs.all();
        tokio::join!(
            answer(endpoints.health, |_| json(&self.health.report())),
            answer(endpoints.costs, |_| json(&costs())),
            answer(endpoints.watch, |request| json(&self.watch(request))),
            answer(endpoints.log_lines, |request| json(&self.log_lines(request))),
            self.make_changes(endpoints.change),
        );
    }

    /// The process, as paths begin.
    fn process(&self) -> String {
        format!("{}/{}", self.service, self.health.watched.name(&self.id))
    }

    fn watch(&self, request: &[u8]) -> WatchAnswer {
        let patterns = serde_json::from_slice::<WatchRequest>(request)
            .map_err(|error| format!("the request is malformed: {error}"))
            .and_then(|request| Patterns::new(&request.patterns).map_err(|error| error.to_string()));
        match patterns {
            Ok(patterns) => self.health.watched.read(&self.process(), &patterns),
            Err(refused) => WatchAnswer {
                refused,
                ..WatchAnswer::default()
            },
        }
    }

    async fn make_changes(&self, mut requests: endpoint::Endpoint) {
        while let Some(request) = requests.next().await {
            let process = self.process();
            let changed = change(&self.health.watched, (&process, &self.store), &request.message.payload);
            let changed = changed.await;
            send(&request, &json(&changed)).await;
        }
    }

    fn log_lines(&self, request: &[u8]) -> LogAnswer {
        match serde_json::from_slice::<LogRequest>(request) {
            Ok(request) => self.health.log.search(&request),
            Err(error) => LogAnswer {
                refused: format!("the request is malformed: {error}"),
                ..LogAnswer::default()
            },
        }
    }
}

/// The log's filter, as a setting.
fn log_filter(log: &ProcessLog) -> Setting {
    let (read, log) = (log.clone(), log.clone());
    Setting {
        path: "log/filter",
        unit: Unit::None,
        about: "which messages are logged",
        allowed: "a level (error, warn, info, debug, trace), or levels by module",
        read: Box::new(move || read.filter().into()),
        check: Box::new(move |text| {
            let filter: LogFilter = text.parse()?;
            let (value, log) = (filter.to_string().into(), log.clone());
            Ok((value, Box::new(move || log.set_filter(&filter))))
        }),
    }
}

async fn answer(mut requests: endpoint::Endpoint, says: impl Fn(&[u8]) -> serde_json::Value) {
    while let Some(request) = requests.next().await {
        send(&request, &says(&request.message.payload)).await;
    }
}

async fn send(request: &Request, answer: &serde_json::Value) {
    if let Err(error) = request.respond(Ok(answer.to_string().into())).await {
        tracing::debug!(%error, "could not answer a discovery request");
    }
}

fn json(answer: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(answer).expect("invariant: an answer is plain data")
}

/// Costs of members of entity types at a discovered instance, the most expensive first.
///
/// # Errors
/// When it does not answer within `patience`, or its answer cannot be read.
pub async fn costs(
    bus: &Bus,
    realm: &Realm,
    instance: &Instance,
    patience: Duration,
) -> Result<Vec<MemberCost>, DiscoveryError> {
    let subject = Subjects::new(realm.as_str()).costs(&instance.id);
    ask(bus, subject, &(), patience, "requesting the members' costs").await
}

/// Watched values of a discovered instance.
///
/// # Errors
/// When it does not answer within `patience`, or its answer cannot be read.
pub async fn values(
    bus: &Bus,
    realm: &Realm,
    instance: &Instance,
    request: &WatchRequest,
    patience: Duration,
) -> Result<WatchAnswer, DiscoveryError> {
    let subject = Subjects::new(realm.as_str()).watch(&instance.id);
    ask(bus, subject, request, patience, "requesting values").await
}

/// Changes a setting of a discovered instance.
///
/// # Errors
/// As [`values`]; then it may have been changed.
pub async fn change_setting(
    bus: &Bus,
    realm: &Realm,
    instance: &Instance,
    request: &ChangeRequest,
    patience: Duration,
) -> Result<ChangeAnswer, DiscoveryError> {
    let subject = Subjects::new(realm.as_str()).change(&instance.id);
    ask(bus, subject, request, patience, "requesting the change of a setting").await
}

/// Lines of the log of a discovered instance.
///
/// # Errors
/// As [`values`].
pub async fn log_lines(
    bus: &Bus,
    realm: &Realm,
    instance: &Instance,
    request: &LogRequest,
    patience: Duration,
) -> Result<LogAnswer, DiscoveryError> {
    let subject = Subjects::new(realm.as_str()).log_lines(&instance.id);
    ask(bus, subject, request, patience, "requesting lines of the log").await
}

async fn ask<A: DeserializeOwned>(
    bus: &Bus,
    subject: String,
    request: &impl Serialize,
    patience: Duration,
    doing: &'static str,
) -> Result<A, DiscoveryError> {
    let request = serde_json::to_vec(request).map_err(DiscoveryError::of(doing))?;
    let answer = tokio::time::timeout(patience, bus.client().request(subject, request.into())).await;
    let answer = answer.map_err(DiscoveryError::of(doing))?;
    let answer = answer.map_err(DiscoveryError::of(doing))?;
    serde_json::from_slice(&answer.payload).map_err(DiscoveryError::of(doing))
}

/// Asks all processes of a realm for their reports, and returns once `enough` holds for the answers so far, or after
/// `patience`. Answers are sorted by service and id.
///
/// # Errors
/// When the bus is not available. That no process answers is no error.
pub async fn discover(
    bus: &Bus,
    realm: &Realm,
    patience: Duration,
    enough: impl Fn(&[Instance]) -> bool,
) -> Result<Vec<Instance>, DiscoveryError> {
    let inbox = bus.client().new_inbox();
    let asking = || DiscoveryError::of("asking for services");
    let mut answers = bus.client().subscribe(inbox.clone()).await.map_err(asking())?;
    let question = bus.client().publish_with_reply("$SRV.STATS", inbox, "".into()).await;
    question.map_err(DiscoveryError::of("asking for services"))?;

    let mut found = BTreeMap::new();
    let deadline = tokio::time::Instant::now() + patience;
    while found.len() < MOST_INSTANCES
        && let Ok(Some(message)) = tokio::time::timeout_at(deadline, answers.next()).await
    {
        if let Some(instance) = read(&message.payload, realm) {
            found.insert((instance.service.clone(), instance.id.clone()), instance);
            let so_far: Vec<_> = found.values().cloned().collect();
            if enough(&so_far) {
                return Ok(so_far);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// The part of an answer to `$SRV.STATS` that we read.
#[derive(Deserialize)]
struct StatsAnswer {
    name: String,
    id: String,
    #[serde(default)]
    version: String,
    endpoints: Vec<EndpointAnswer>,
}

#[derive(Deserialize)]
struct EndpointAnswer {
    subject: String,
    #[serde(default)]
    data: serde_json::Value,
}

/// `None` for foreign services, other realms, and what is not an answer.
fn read(payload: &[u8], realm: &Realm) -> Option<Instance> {
    let answer: StatsAnswer = serde_json::from_slice(payload).ok()?;
    let service = answer.name.strip_prefix(PREFIX)?.to_owned();
    let subject = Subjects::new(realm.as_str()).health(&answer.id);
    let endpoint = answer
        .endpoints
        .into_iter()
        .find(|endpoint| endpoint.subject == subject)?;
    let report = serde_json::from_value(endpoint.data).ok()?;
    Some(Instance {
        service,
        id: answer.id,
        version: answer.version,
        report,
    })
}
