//! Stopping a realm in order, from outside: sends the request to its director, and follows the stages to the end.

use std::time::Duration;

use annals_director::Stage;
use annals_host::{
    nats::{Bus, ConnectError},
    process::{AskError, ask_director},
};
use annals_wire::{
    Subjects,
    control::{DirectorAsk, StopRealm, StopStage},
};
use thiserror::Error;

use crate::director::ask_until_answered;

/// Interval between polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// After this many unanswered polls in a row the director has ended. Each waits up to two seconds, but returns at once
/// if nothing subscribes.
const SILENT_LOOKS: usize = 5;

/// Why a realm was not stopped, or its end not observed.
#[derive(Debug, Error)]
pub enum StopError {
    /// No connection.
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    /// The director does not answer.
    #[error("the realm's director was not reached; stop a realm without a director by stopping its processes")]
    NoDirector(#[source] AskError),
    /// The realm is not stopping, so there is no stage to skip.
    #[error("the realm is not stopping, so there is no stage to advance from")]
    NotStopping,
}

/// A realm that is being stopped.
pub struct Stopping {
    bus: Bus,
    subjects: Subjects,
    /// The last stage that the director reported, and whether it was reported as delayed.
    seen: Option<(Stage, bool)>,
    /// Whether a director that does not answer is asked again for a time.
    is_patient: bool,
}

impl Stopping {
    /// The stop of the realm with these subjects.
    #[must_use]
    pub fn new(bus: Bus, subjects: Subjects) -> Self {
        Self {
            bus,
            subjects,
            seen: None,
            is_patient: false,
        }
    }

    /// The same, for a realm that somebody else supervises: requests are repeated for a time if no director answers, as
    /// another one may be about to lead.
    #[must_use]
    pub fn patient(self) -> Self {
        Self {
            is_patient: true,
            ..self
        }
    }

    /// The current stage of the stop.
    ///
    /// # Errors
    /// When the director does not answer.
    pub async fn stage(&self) -> Result<Stage, StopError> {
        let look = self.order(StopRealm::default()).await.map_err(StopError::NoDirector)?;
        Ok(Stage::of_number(look.stage))
    }

    /// Begins to stop the realm, with this delay for the game before clients are disconnected. No effect if it is
    /// stopping already.
    ///
    /// # Errors
    /// When the director does not answer.
    pub async fn begin(&mut self, delay: Duration) -> Result<(), StopError> {
        let begin = StopRealm {
            stop: true,
            delay: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            go_on: 0,
        };
        self.order(begin).await.map(drop).map_err(StopError::NoDirector)
    }

    /// Continues with the next stage without the processes for which the current one waits.
    ///
    /// # Errors
    /// When the director does not answer, or the realm is not stopping.
    pub async fn go_on(&mut self) -> Result<(), StopError> {
        let stage = self.stage().await?;
        if stage == Stage::Running {
            return Err(StopError::NotStopping);
        }
        let go_on = StopRealm {
            go_on: stage.number(),
            ..StopRealm::default()
        };
        self.order(go_on).await.map(drop).map_err(StopError::NoDirector)
    }

    /// Reports through `say` each stage, and what delays it if it takes too long, until the director has ended too.
    ///
    /// # Errors
    /// When the director does not answer although the realm has not come so far.
    pub async fn follow(&mut self, mut say: impl FnMut(String)) -> Result<(), StopError> {
        let mut silent = 0;
        loop {
            let look = DirectorAsk::Stop(StopRealm::default());
            match ask_director(&self.bus, &self.subjects, look).await {
                Ok(look) => {
                    silent = 0;
                    self.report(&look, &mut say);
                }
                // From this stage on the director ends by itself.
                Err(_) if self.seen.is_some_and(|(stage, _)| stage >= Stage::EndingLogin) => return Ok(()),
                Err(error) => {
                    silent += 1;
                    if silent == SILENT_LOOKS {
                        return Err(StopError::NoDirector(error));
                    }
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn report(&mut self, look: &StopStage, say: &mut impl FnMut(String)) {
        let stage = Stage::of_number(look.stage);
        let (known, named) = self.seen.unwrap_or_default();
        let is_new = self.seen.is_none() || known != stage;
        if is_new {
            say(stage.to_string());
        }
        let named = named && !is_new;
        if look.overdue && !named {
            say("this stage takes too long; it waits for".to_owned());
            for waiting in &look.waiting {
                say(format!("  {waiting}"));
            }
            say("it continues when they do; `annals realm stop --go-on` continues without them".to_owned());
        }
        self.seen = Some((stage, named || look.overdue));
    }

    async fn order(&self, order: StopRealm) -> Result<StopStage, AskError> {
        let order = DirectorAsk::Stop(order);
        if self.is_patient {
            ask_until_answered(&self.bus, &self.subjects, order).await
        } else {
            ask_director(&self.bus, &self.subjects, order).await
        }
    }
}
