//! The nats-servers of a realm on one machine: one, or three that each keep every log.

use std::fmt;
use std::path::Path;
use std::slice;
use std::str::FromStr;

use super::server::{Cluster, Server, ServerError, ServerOptions};

/// How many nats-servers a realm has, and hence how many keep each log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerCount {
    /// One: what it loses has to be put back by those who wrote it.
    #[default]
    One,
    /// Three, of which one may be lost at any time.
    Three,
}

/// The text is no [`ServerCount`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not how many nats-servers there can be; write 1 or 3")]
pub struct NotACount(String);

impl ServerCount {
    /// How many that are: the setting `replicas` of services that use them.
    #[must_use]
    pub fn replicas(self) -> usize {
        match self {
            ServerCount::One => 1,
            ServerCount::Three => 3,
        }
    }

    /// How many servers have kept something in a folder before; `None` if none did.
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

/// They run, or were killed and not started again. They are killed when this is dropped; their folders stay.
#[derive(Debug)]
pub enum Servers {
    /// A server alone, in the folder itself.
    One(Box<Server>),
    /// A cluster, in a folder each.
    Three(Cluster),
}

impl Servers {
    /// Starts so many and waits until their JetStream answers.
    ///
    /// # Errors
    /// When there is no program, the folder cannot be written, or one of them does not come up.
    pub async fn start(options: &ServerOptions, count: ServerCount) -> Result<Self, ServerError> {
        match count {
            ServerCount::One => Ok(Self::One(Box::new(Server::start(options).await?))),
            ServerCount::Three => Ok(Self::Three(Cluster::start(options).await?)),
        }
    }

    /// Where clients connect: all of them, separated by commas.
    pub fn url(&self) -> String {
        match self {
            Self::One(server) => server.url(),
            Self::Three(cluster) => cluster.url(),
        }
    }

    /// How many they are.
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

    /// SIGKILL to all of them.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        self.each().iter_mut().try_for_each(Server::kill)
    }

    /// Starts all of them again, those that run too, and waits until they answer.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub async fn restart(&mut self) -> Result<(), ServerError> {
        self.each().iter_mut().try_for_each(Server::relaunch)?;
        self.ready().await
    }

    /// Starts again those that have ended, and waits until they answer. How many those were.
    ///
    /// # Errors
    /// When one of them does not come up.
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
    /// Of the first that ends or takes longer than a minute.
    pub async fn ready(&mut self) -> Result<(), ServerError> {
        for server in self.each() {
            server.ready().await?;
        }
        Ok(())
    }

    /// Asks all of them to end, and waits for that.
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn stop(&mut self) -> Result<(), ServerError> {
        for server in self.each() {
            server.stop().await?;
        }
        Ok(())
    }

    /// Looks whether all of them run.
    ///
    /// # Errors
    /// [`ServerError::Ended`] of the first that does not, with the end of its log.
    pub fn check(&mut self) -> Result<(), ServerError> {
        self.each().iter_mut().try_for_each(Server::check)
    }
}
