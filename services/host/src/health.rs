//! Discovery and health of processes: NATS service discovery (`$SRV.PING`, `$SRV.INFO`, `$SRV.STATS`), for the `nats`
//! tool and any monitor that knows it. A process that answers is alive; its readiness and its metrics are in the data
//! of its endpoint `health`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use annals_wire::Subjects;
use async_nats::service::{Service, ServiceExt, endpoint};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::Realm;
use crate::nats::Bus;
use crate::telemetry::{MemberCost, Metrics, Snapshot, Traces};

/// Prefix of all our service names: `annals-` and the service.
const PREFIX: &str = "annals-";

/// The endpoint that every instance has.
const ENDPOINT: &str = "health";

/// The endpoint that reports what members of entity types have cost.
const COSTS: &str = "costs";

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
    /// The calls that it traces.
    pub traces: Traces,
}

impl Default for Health {
    /// Of a process that is starting.
    fn default() -> Self {
        Self {
            readiness: watch::Sender::new(Readiness::Starting),
            metrics: Arc::default(),
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
    /// Its metrics since it started.
    pub metrics: Snapshot,
}

/// An instance of a service that answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Which service: `cell`, `base` and so on.
    pub service: String,
    /// Its id, a new one at each start.
    pub id: String,
    pub report: Report,
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
}

impl Announcement {
    /// Announces this process as an instance of `service` in `realm`. Answers carry its health at the time.
    ///
    /// # Errors
    /// When the bus is not available.
    pub async fn start(bus: &Bus, realm: &Realm, service: &str, health: &Health) -> Result<Self, DiscoveryError> {
        let (of_stats, of_answers, metrics) = (health.clone(), health.clone(), Arc::clone(&health.metrics));
        let metadata = [
            ("realm", realm.to_string()),
            ("process", std::process::id().to_string()),
        ];
        let service = bus
            .client()
            .service_builder()
            .description(format!("{service} of the realm {realm}"))
            .metadata(
                metadata
                    .map(|(key, value)| (key.to_owned(), value))
                    .into_iter()
                    .collect::<HashMap<_, _>>(),
            )
            .stats_handler(move |endpoint, _| match endpoint.as_str() {
                ENDPOINT => json(&of_stats.report()),
                _ => serde_json::Value::Null,
            })
            .start(format!("{PREFIX}{service}"), env!("CARGO_PKG_VERSION"))
            .await
            .map_err(DiscoveryError::of("announcing the service"))?;
        let id = service.info().await.id;
        let subject = Subjects::new(realm.as_str()).health(&id);
        let requests = service.endpoint_builder().name(ENDPOINT).add(subject).await;
        let requests = requests.map_err(DiscoveryError::of("announcing the endpoint"))?;
        let subject = Subjects::new(realm.as_str()).costs(&id);
        let questions = service.endpoint_builder().name(COSTS).add(subject).await;
        let questions = questions.map_err(DiscoveryError::of("announcing the endpoint"))?;
        let answers = tokio::spawn(async move {
            let health = answer(requests, || json(&of_answers.report()));
            let costs = answer(questions, || {
                serde_json::to_value(metrics.costs.all()).expect("invariant: costs are plain data")
            });
            tokio::join!(health, costs);
        });
        Ok(Self {
            service: Some(service),
            id,
            answers,
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

async fn answer(mut requests: endpoint::Endpoint, says: impl Fn() -> serde_json::Value) {
    while let Some(request) = requests.next().await {
        let body = says().to_string();
        if let Err(error) = request.respond(Ok(body.into())).await {
            tracing::debug!(%error, "could not answer a discovery request");
        }
    }
}

fn json(report: &Report) -> serde_json::Value {
    serde_json::to_value(report).expect("invariant: a report is plain data")
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
    const DOING: &str = "requesting the members' costs";
    let answer = tokio::time::timeout(patience, bus.client().request(subject, "".into())).await;
    let answer = answer.map_err(DiscoveryError::of(DOING))?;
    let answer = answer.map_err(DiscoveryError::of(DOING))?;
    serde_json::from_slice(&answer.payload).map_err(DiscoveryError::of(DOING))
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
        report,
    })
}
