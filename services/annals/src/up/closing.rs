//! Stops a realm of `annals up` in order: the director leads, and the processes end by themselves.

use std::time::{Duration, Instant};

use annals_director::Stage;
use annals_host::{
    config::Service,
    process::{Settings, connect},
};

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
        self.stop_console().await.map_err(|source| UpError::File {
            path: self.plan.data.clone(),
            source,
        })?;
        // The realm may have been stopped from elsewhere, and have ended already.
        let is_led = !self.has_director_left()?;
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

    /// The current stage, from the director.
    pub(super) async fn stage(&self) -> Result<Stage, StopError> {
        self.stopping().await?.stage().await
    }

    /// Whether a director has ended cleanly.
    pub(super) fn has_director_left(&mut self) -> Result<bool, UpError> {
        let mut left = self.ended_members()?.into_iter().filter(|(_, ended)| is_clean(ended));
        Ok(left.any(|(index, _)| self.members[index].service == Service::Director))
    }

    /// The processes that have ended, by index, with how they ended.
    pub(super) fn ended_members(&mut self) -> Result<Vec<(usize, UpError)>, UpError> {
        let mut ended = Vec::new();
        for index in 0..self.members.len() {
            ended.extend(self.how_ended(index)?.map(|how| (index, how)));
        }
        Ok(ended)
    }

    async fn lead_to_the_end(&self, say: &mut impl FnMut(String)) -> Result<(), StopError> {
        let mut stopping = self.stopping().await?;
        stopping.begin(Duration::ZERO).await?;
        stopping.follow(say).await
    }

    async fn stopping(&self) -> Result<Stopping, StopError> {
        let (bus, subjects) = connect(&self.settings(), "up").await?;
        Ok(Stopping::new(bus, subjects))
    }

    /// The settings to connect to it.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            realm: self
                .plan
                .realm
                .parse()
                .expect("invariant: services have accepted the realm's name"),
            nats: self.nats(),
            access: annals_host::nats::Access::default(),
            replicas: 1,
        }
    }

    /// Whether any process still runs.
    fn are_there(&mut self) -> Result<bool, UpError> {
        Ok(self.ended_members()?.len() < self.members.len())
    }
}

/// Whether a process ended with exit code 0, as after a request to stop.
pub(super) fn is_clean(ended: &UpError) -> bool {
    matches!(ended, UpError::Ended { status, .. } if status.success())
}
