//! Carries out a writer's decisions: the only way in which a service appends.

use std::sync::Arc;
use std::time::Duration;

use annals_event::FrozenBatch;
use annals_ids::{Epoch, OwnerId};
use annals_node::time::Mono;
use annals_node::writer::{Action, Input, Opening, OpeningRefused, Stop, Tip, Writer};
use bytes::Bytes;
use futures::future::BoxFuture;
use opentelemetry::trace::SpanContext;
use tokio::sync::watch;

use super::{History, Reading, Verdict};
use crate::clock;
use crate::nats::LinkState;
use crate::telemetry::Span;
use crate::waiting::Wait;

/// Why an epoch is not confirmed, or an opening not recorded.
const STORE_SILENT: &str = "the store does not answer; check that db runs";

/// Why an answer does not count.
const RECONNECTED: &str = "the bus was reconnected before the answer";

/// Result of recording an opening (E3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// It is in the store.
    Recorded,
    /// It is not, and will not be.
    Refused(OpeningRefused),
    /// Unknown; recording is idempotent, so it can be retried.
    Unknown,
}

/// Whether an epoch is still granted (E6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// The store grants it.
    Granted,
    /// The store grants a higher one.
    Lost,
    /// The store does not answer.
    Unknown,
}

/// Owners and epochs in the store.
pub trait Registry: Send + Sync {
    /// Records an owner's opening in one transaction, by [`Action::RecordOpening`]. Its holder receives acknowledgements
    /// over `connection`.
    fn record(&self, owner: OwnerId, opening: Opening, connection: String) -> BoxFuture<'static, Recording>;

    /// Whether `epoch` is the one granted for an owner, whose holder receives acknowledgements over `connection`.
    fn confirm(&self, owner: OwnerId, epoch: Epoch, connection: String) -> BoxFuture<'static, Holding>;
}

/// The writer of a log: a bare [`Writer`], or a core around one.
pub trait LogCore {
    /// The owner of the log.
    fn owner(&self) -> OwnerId;

    /// The current epoch.
    fn epoch(&self) -> Epoch;

    /// The next action, as [`Writer::poll`].
    fn poll_log(&mut self) -> Option<Action<'_>>;

    /// Applies the result of an action, as [`Writer::handle`].
    fn handle_log(&mut self, input: Input);

    /// The next deadline, as [`Writer::deadline`].
    fn log_deadline(&self) -> Option<Mono>;

    /// Why nothing is written any more.
    fn stopped(&self) -> Option<&Stop>;

    /// The spans of traced calls in a batch that is about to be appended.
    fn spans(&mut self, _batch: &[u8]) -> Vec<Span> {
        Vec::new()
    }

    /// Called with the time from sending an append to its answer.
    fn appended(&mut self, _after: Duration) {}
}

impl LogCore for Writer {
    fn owner(&self) -> OwnerId {
        Writer::owner(self)
    }

    fn epoch(&self) -> Epoch {
        Writer::epoch(self)
    }

    fn poll_log(&mut self) -> Option<Action<'_>> {
        self.poll(clock::mono())
    }

    fn handle_log(&mut self, input: Input) {
        self.handle(clock::mono(), input);
    }

    fn log_deadline(&self) -> Option<Mono> {
        self.deadline(clock::mono())
    }

    fn stopped(&self) -> Option<&Stop> {
        Writer::stopped(self)
    }
}

/// Time without an acknowledgement after which a log is reported: twice as long as an owner stays fresh, so that a
/// single lost answer is not reported.
const STANDSTILL: Duration = Duration::from_secs(2);

/// A core that writes a log, with that log, the store and a clock.
///
/// Whenever anything may have changed, drain the outputs of the [core](Self::core_mut); then await [`step`](Self::step)
/// beside everything else that the core waits for.
pub struct Driver<C> {
    core: C,
    history: History,
    registry: Arc<dyn Registry>,
    link: watch::Receiver<LinkState>,
    /// The name of the connection that the writer knows of; `None` while there is none. An answer counts only on this one
    /// (rule E8).
    connection: Option<String>,
    question: Option<BoxFuture<'static, Answer>>,
    /// When the action began.
    asked: Mono,
    /// Those of the traced calls in the batch that is being appended.
    spans: Vec<Span>,
    standstill: Wait,
}

/// Result of an action: the writer's input, or why it is [`Input::Silent`].
type Answer = Result<Input, String>;

impl Driver<Writer> {
    /// The writer.
    pub fn writer(&self) -> &Writer {
        &self.core
    }

    /// Passes a batch to the writer.
    ///
    /// # Panics
    /// As [`Writer::offer`].
    pub fn offer(&mut self, batch: FrozenBatch) {
        self.core.offer(clock::mono(), batch);
    }

    /// Passes on a cursor from db's notifications.
    pub fn archived(&mut self, upto: Tip, epoch: Epoch) {
        self.handle(Input::Archived { upto, epoch });
    }
}

impl<C: LogCore> Driver<C> {
    /// The stream to which the core's batches are appended.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Drives a core whose chain was read over the connection of `history`.
    pub fn new(core: C, history: History, registry: Arc<dyn Registry>) -> Self {
        let link = history.bus().state();
        let connection = name(*link.borrow(), &history);
        let standstill = Wait::new(
            format!("the log of owner {}", core.owner()),
            "the log is blocked and nothing is shown; look at the nats-server's log and disk; after a full disk, free \
             space and restart it, as `annals up` does",
        )
        .after(STANDSTILL);
        let mut driver = Self {
            core,
            history,
            registry,
            link,
            connection,
            question: None,
            asked: clock::mono(),
            spans: Vec::new(),
            standstill,
        };
        if driver.connection.is_none() {
            driver.handle(Input::Disconnected);
        }
        driver
    }

    /// The core.
    pub fn core(&self) -> &C {
        &self.core
    }

    /// Whether the log has acknowledged nothing for so long that its owner shows nothing, and this was reported.
    pub fn stands_still(&self) -> bool {
        self.standstill.is_reported()
    }

    /// The core, to be given inputs and drained of outputs.
    pub fn core_mut(&mut self) -> &mut C {
        &mut self.core
    }

    /// Waits until the writer has had an input, or its deadline has passed. Cancel-safe. Once the writer has stopped it
    /// waits for ever.
    pub async fn step(&mut self) {
        self.watch_link();
        self.ask();
        let deadline = self.core.log_deadline();
        let answered = async {
            match &mut self.question {
                Some(question) => question.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = answered => {
                self.question = None;
                self.answered(answer);
            }
            changed = self.link.changed() => match changed {
                Ok(()) => self.watch_link(),
                // We hold the last clone of the connection, so the sender of its state exists as long as we watch.
                Err(_) => std::future::pending().await,
            },
            () = clock::until(deadline) => {}
        }
        self.ask();
    }

    fn answered(&mut self, answer: Answer) {
        let (now, owner) = (clock::mono(), self.core.owner());
        // The state of the connection lags behind its name, which has changed before anything arrives over the next one.
        let answer = match answer {
            Ok(_) if self.connection != name(*self.link.borrow(), &self.history) => Err(RECONNECTED.to_owned()),
            answer => answer,
        };
        if let Ok(Input::Appended { .. }) = answer {
            self.core.appended(now.since(self.asked));
        }
        self.end_spans(match &answer {
            Ok(Input::Appended { .. }) => None,
            Ok(_) => Some("the log was written by another process"),
            Err(why) => Some(why),
        });
        match &answer {
            Ok(Input::Appended { .. } | Input::EpochConfirmed) => self.standstill.ends(),
            Ok(_) => {}
            Err(why) => {
                tracing::debug!(%owner, "{why}");
                self.standstill.lasts(why);
            }
        }
        self.handle(answer.unwrap_or(Input::Silent));
    }

    /// Starts the writer's next action.
    fn ask(&mut self) {
        if self.question.is_some() {
            return;
        }
        self.watch_link();
        let (owner, epoch) = (self.core.owner(), self.core.epoch());
        let (history, registry) = (self.history.clone(), Arc::clone(&self.registry));
        self.asked = clock::mono();
        let connection = self.connection.clone().unwrap_or_default();
        self.question = match self.core.poll_log() {
            None => return,
            Some(Action::Append { expect, batch }) => {
                let bytes = Bytes::copy_from_slice(&batch.bytes);
                self.spans = self.core.spans(&bytes);
                let contexts = self.spans.iter().map(|span| span.context().clone()).collect();
                Some(Box::pin(append(history, owner, expect, bytes, contexts)))
            }
            Some(Action::ReadLast) => Some(Box::pin(read_last(history, owner))),
            Some(Action::LookAgain) => Some(Box::pin(look_again(history, owner))),
            Some(Action::RecordOpening(opening)) => Some(Box::pin(record(registry, owner, opening, connection))),
            Some(Action::ConfirmEpoch) => Some(Box::pin(confirm(registry, owner, epoch, connection))),
        };
    }

    /// Ends the spans of an append, if it was one: with an error, or successfully.
    fn end_spans(&mut self, error: Option<&str>) {
        for span in self.spans.drain(..) {
            match error {
                Some(error) => span.fail(error.to_owned()),
                None => span.end(),
            }
        }
    }

    /// Notifies the writer that the connection was lost or established. An action in progress then counts as
    /// unanswered.
    fn watch_link(&mut self) {
        let state = *self.link.borrow_and_update();
        let connection = name(state, &self.history);
        if connection == self.connection {
            return;
        }
        if self.connection.is_some() {
            self.handle(Input::Disconnected);
            if self.question.take().is_some() {
                self.end_spans(Some(RECONNECTED));
                self.handle(Input::Silent);
            }
        }
        if connection.is_some() {
            self.handle(Input::Reconnected);
        }
        self.connection = connection;
    }

    fn handle(&mut self, input: Input) {
        let running = self.core.stopped().is_none();
        self.core.handle_log(input);
        match self.core.stopped() {
            Some(stop) if running && stop.is_alarm() => tracing::error!("{stop}"),
            Some(stop) if running => tracing::info!("{stop}"),
            _ => {}
        }
    }
}

/// The name of the present connection; `None` while there is none.
fn name(state: LinkState, history: &History) -> Option<String> {
    match state {
        LinkState::Up { .. } => Some(history.bus().connection()),
        LinkState::Down { .. } => None,
    }
}

async fn append(history: History, owner: OwnerId, expect: u64, bytes: Bytes, contexts: Vec<SpanContext>) -> Answer {
    match history.append(owner, expect, bytes, &contexts).await {
        Verdict::Appended(sequence) => Ok(Input::Appended { sequence }),
        Verdict::Rejected => Ok(Input::Rejected),
        Verdict::Unknown(fault) => Err(fault.to_string()),
    }
}

async fn read_last(history: History, owner: OwnerId) -> Answer {
    match history.last(owner).await {
        Ok(last) => Ok(Input::Last(last.map(|entry| (entry.sequence, entry.bytes.into())))),
        Err(error) => Err(error.to_string()),
    }
}

async fn look_again(history: History, owner: OwnerId) -> Answer {
    let mut reading = Reading::default();
    match history.read(owner, &mut reading).await {
        Ok(()) => Ok(Input::Looked {
            last: reading.last_message(),
            batches: reading.batches,
        }),
        Err(error) => Err(error.to_string()),
    }
}

async fn record(registry: Arc<dyn Registry>, owner: OwnerId, opening: Opening, connection: String) -> Answer {
    match registry.record(owner, opening, connection).await {
        Recording::Recorded => Ok(Input::OpeningRecorded),
        Recording::Refused(why) => Ok(Input::OpeningRefused(why)),
        Recording::Unknown => Err(STORE_SILENT.to_owned()),
    }
}

async fn confirm(registry: Arc<dyn Registry>, owner: OwnerId, epoch: Epoch, connection: String) -> Answer {
    match registry.confirm(owner, epoch, connection).await {
        Holding::Granted => Ok(Input::EpochConfirmed),
        Holding::Lost => Ok(Input::EpochLost),
        Holding::Unknown => Err(STORE_SILENT.to_owned()),
    }
}
