//! The nats-servers of a realm on one machine: one, or three that each keep every log.

use std::fmt;
use std::path::Path;
use std::slice;
use std::str::FromStr;

use super::server::{Cluster, Server, ServerError, ServerOptions};

/// Number of nats-servers of a realm, and of the copies of each log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerCount {
    /// One: what it loses must be appended again by its writers.
    #[default]
    One,
    /// Three, of which one may be lost at any time.
    Three,
}

/// The text is not a [`ServerCount`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a possible number of nats-servers; write 1 or 3")]
pub struct NotACount(String);

impl ServerCount {
    /// The number: the setting `replicas` of services that use these servers.
    #[must_use]
    pub fn replicas(self) -> usize {
        match self {
            ServerCount::One => 1,
            ServerCount::Three => 3,
        }
    }

    /// Number of servers that have used a folder before; `None` if none did.
    #[must_use]
    pub fn kept_in(dir: &Path) -> Option<Self> {
        let holds = |name: &str| dir.join(name).is_dir();
        match (holds("store"), holds("n1")) {
            (_, true) => Some(ServerCount::Three),
            (true, false) => Some(ServerCount::One),
            (false, false) => None,
        }
    }
}

impl fmt::Display for ServerCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.replicas().fmt(f)
    }
}

impl FromStr for ServerCount {
    type Err = NotACount;

    fn from_str(text: &str) -> Result<Self, NotACount> {
        match text {
            "1" => Ok(ServerCount::One),
            "3" => Ok(ServerCount::Three),
            _ => Err(NotACount(text.to_owned())),
        }
    }
}

/// They run, or were killed and not restarted. They are killed when this is dropped; their folders stay.
#[derive(Debug)]
pub enum Servers {
    /// A single server, in the folder itself.
    One(Box<Server>),
    /// A cluster, with a folder for each server.
    Three(Cluster),
}

impl Servers {
    /// Starts `count` servers and waits until their JetStream answers.
    ///
    /// # Errors
    /// When there is no program, the folder cannot be written, or one of them does not start.
    pub async fn start(options: &ServerOptions, count: ServerCount) -> Result<Self, ServerError> {
        match count {
            ServerCount::One => Ok(Self::One(Box::new(Server::start(options).await?))),
            ServerCount::Three => Ok(Self::Three(Cluster::start(options).await?)),
        }
    }

    /// The addresses for clients: all of them, separated by commas.
    pub fn url(&self) -> String {
        match self {
            Self::One(server) => server.url(),
            Self::Three(cluster) => cluster.url(),
        }
    }

    /// The addresses for [reports](super::Reports) of closed connections, with credentials, separated by commas.
    pub fn system_url(&self) -> String {
        match self {
            Self::One(server) => server.system_url(),
            Self::Three(cluster) => cluster.system_url(),
        }
    }

    /// Their number.
    pub fn count(&self) -> ServerCount {
        match self {
            Self::One(_) => ServerCount::One,
            Self::Three(_) => ServerCount::Three,
        }
    }

    /// Each of them, always in the same order.
    pub fn each(&mut self) -> &mut [Server] {
        match self {
            Self::One(server) => slice::from_mut(server),
            Self::Three(cluster) => cluster.servers(),
        }
    }

    /// Kills all of them with SIGKILL.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        self.each().iter_mut().try_for_each(Server::kill)
    }

    /// Restarts all of them, also those that run, and waits until they answer.
    ///
    /// # Errors
    /// When one of them does not start.
    pub async fn restart(&mut self) -> Result<(), ServerError> {
        self.each().iter_mut().try_for_each(Server::relaunch)?;
        self.ready().await
    }

    /// Restarts those that have ended, and waits until they answer. Returns their number.
    ///
    /// # Errors
    /// When one of them does not start.
    pub async fn restart_ended(&mut self) -> Result<usize, ServerError> {
        let mut ended = 0;
        for server in self.each() {
            if server.check().is_err() {
                server.relaunch()?;
                ended += 1;
            }
        }
        if ended > 0 {
            self.ready().await?;
        }
        Ok(ended)
    }

    /// Waits until each of them answers.
    ///
    /// # Errors
    /// That of the first that ends or takes longer than a minute.
    pub async fn ready(&mut self) -> Result<(), ServerError> {
        for server in self.each() {
            server.ready().await?;
        }
        Ok(())
    }

    /// Stops all of them, and waits for that.
    ///
    /// # Errors
    /// The operating system's error.
    pub async fn stop(&mut self) -> Result<(), ServerError> {
        for server in self.each() {
            server.stop().await?;
        }
        Ok(())
    }

    /// Checks that all of them run.
    ///
    /// # Errors
    /// [`ServerError::Ended`] of the first that does not, with the end of its log.
    pub fn check(&mut self) -> Result<(), ServerError> {
        self.each().iter_mut().try_for_each(Server::check)
    }
}
