//! The live processes of a realm, found by service discovery and asked one by one.

use std::time::Duration;

use annals_host::{
    health::{DiscoveryError, Instance, discover, values},
    log_source::KeptRealm,
    nats::{Bus, ConnectError},
    process::{Settings, connect},
    watched::{Node, WatchRequest},
};
use futures::{StreamExt, stream};
use thiserror::Error;
use tokio::time::Instant;

/// Timeout of answers.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);

/// Interval at which processes that have started meanwhile are looked for.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum processes that are asked at a time.
const AT_ONCE: usize = 32;

/// Why no process is reached.
#[derive(Debug, Error)]
pub(super) enum NotReached {
    #[error("a stopped realm has no processes: leave --data out, and name a live realm")]
    Stopped,
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error("no process of this realm answers: name the realm with --realm, and its nats-server with --nats")]
    Nobody,
}

/// The processes of a live realm.
pub(super) struct Live {
    pub(super) bus: Bus,
    pub(super) settings: Settings,
    pub(super) instances: Vec<Instance>,
    discovered: Instant,
}

/// Values of all processes that answered.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// By process and path.
    pub(super) nodes: Vec<Node>,
    /// How many matching values processes have left out.
    pub(super) left_out: usize,
    /// Processes that did not answer.
    pub(super) silent: Vec<String>,
}

impl Live {
    /// Finds the processes.
    ///
    /// # Errors
    /// When the realm does not run, or no process answers.
    pub(super) async fn find(kept: &KeptRealm, settings: &Settings, command: &str) -> Result<Self, NotReached> {
        if kept.data.is_some() {
            return Err(NotReached::Stopped);
        }
        let (bus, _) = connect(settings, command).await?;
        let mut live = Self {
            bus,
            settings: settings.clone(),
            instances: Vec::new(),
            discovered: Instant::now(),
        };
        live.discover().await?;
        if live.instances.is_empty() {
            return Err(NotReached::Nobody);
        }
        Ok(live)
    }

    async fn discover(&mut self) -> Result<(), DiscoveryError> {
        self.instances = discover(&self.bus, &self.settings.realm, TIMEOUT, |_| false).await?;
        self.discovered = Instant::now();
        Ok(())
    }

    /// Looks for processes again if that was some time ago, for commands that go on.
    ///
    /// # Errors
    /// When the bus is not available.
    pub(super) async fn keep_up(&mut self) -> Result<(), DiscoveryError> {
        if self.discovered.elapsed() >= DISCOVERY_INTERVAL {
            self.discover().await?;
        }
        Ok(())
    }

    /// The values that match any of the patterns. The error text of a process that refuses is the same for all.
    ///
    /// # Errors
    /// When the patterns are refused.
    pub(super) async fn values(&self, patterns: &[String]) -> Result<Values, String> {
        let request = WatchRequest {
            patterns: patterns.to_vec(),
        };
        let (bus, realm, request) = (&self.bus, &self.settings.realm, &request);
        let asking = self
            .instances
            .iter()
            .map(|instance| async move { (instance, values(bus, realm, instance, request, TIMEOUT).await) });
        let mut answers = stream::iter(asking).buffered(AT_ONCE);
        let mut found = Values::default();
        while let Some((instance, answer)) = answers.next().await {
            match answer {
                Ok(answer) if !answer.refused.is_empty() => return Err(answer.refused),
                Ok(mut answer) => {
                    found.nodes.append(&mut answer.nodes);
                    found.left_out += answer.left_out;
                }
                Err(_) => found.silent.push(path_of(instance)),
            }
        }
        Ok(found)
    }

    /// The instance whose paths begin as this one does.
    pub(super) fn instance_of(&self, path: &str) -> Option<&Instance> {
        let begins = |instance: &&Instance| {
            let rest = path.strip_prefix(&path_of(instance));
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.instances.iter().find(begins)
    }
}

/// How the paths of a process begin: `SERVICE/PROCESS`.
pub(super) fn path_of(instance: &Instance) -> String {
    format!("{}/{}", instance.service, instance.name())
}
