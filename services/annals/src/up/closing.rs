//! Stops a realm of `annals up` in order: the director leads, and the processes end by themselves.

use std::time::{Duration, Instant};

use annals_director::Stage;
use annals_host::process::{Settings, connect};

use super::{POLL_INTERVAL, Realm, UpError};
use crate::stopping::{StopError, Stopping};

/// How long processes may take to end after the last stage.
const END_WITHIN: Duration = Duration::from_secs(10);

impl Realm {
    /// Stops in order, with a line for each stage. If no director leads, the processes are stopped one by one.
    ///
    /// # Errors
    /// Those of the operating system.
    pub async fn close(mut self, mut say: impl FnMut(String)) -> Result<(), UpError> {
        // The realm may have been stopped from elsewhere, and have ended already.
        let is_led = !self.left()?.iter().any(|name| is_director(name));
        if is_led && let Err(error) = self.lead_to_the_end(&mut say).await {
            say(format!("clean stop failed: {error}; stopping the processes one by one"));
            return self.stop().await;
        }
        let patience = Instant::now() + END_WITHIN;
        while self.are_there()? && Instant::now() < patience {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.stop().await
    }

    /// Whether the realm is being stopped: a process has ended in order, and not because of a failure.
    ///
    /// # Errors
    /// Those of the operating system.
    pub async fn is_closing(&mut self) -> Result<bool, UpError> {
        let left = self.left()?;
        if left.is_empty() {
            return Ok(false);
        }
        // A process that was stopped alone is restarted; the director knows whether the realm is stopping.
        let stage = match self.stopping().await {
            Ok(stopping) => stopping.stage().await,
            Err(error) => Err(error),
        };
        Ok(match stage {
            Ok(stage) => stage > Stage::Running,
            Err(_) => left.iter().any(|name| is_director(name)),
        })
    }

    /// The processes that have ended in order.
    fn left(&mut self) -> Result<Vec<String>, UpError> {
        let mut left = Vec::new();
        for index in 0..self.members.len() {
            if let Some(UpError::Ended { service, status, .. }) = self.how_ended(index)?
                && status.success()
            {
                left.push(service);
            }
        }
        Ok(left)
    }

    async fn lead_to_the_end(&self, say: &mut impl FnMut(String)) -> Result<(), StopError> {
        let mut stopping = self.stopping().await?;
        stopping.begin(Duration::ZERO).await?;
        stopping.follow(say).await
    }

    async fn stopping(&self) -> Result<Stopping, StopError> {
        let settings = Settings {
            realm: self
                .plan
                .realm
                .parse()
                .expect("invariant: services have accepted the realm's name"),
            nats: self.nats(),
            replicas: 1,
        };
        let (bus, subjects) = connect(&settings, "up").await?;
        Ok(Stopping::new(bus, subjects))
    }

    /// Whether any process still runs.
    fn are_there(&mut self) -> Result<bool, UpError> {
        for index in 0..self.members.len() {
            if self.how_ended(index)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_director(name: &str) -> bool {
    name.starts_with("director")
}
