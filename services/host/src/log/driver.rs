//! Carries out what a writer decides: the one way in which a service appends.

use std::sync::Arc;
use std::time::Duration;

use annals_event::FrozenBatch;
use annals_ids::{Epoch, OwnerId};
use annals_node::time::Mono;
use annals_node::writer::{Action, Input, Opening, OpeningRefused, Stop, Tip, Writer};
use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::watch;

use super::{History, Reading, Verdict};
use crate::clock;
use crate::nats::LinkState;
use crate::waiting::Wait;

/// Why an epoch is not confirmed, or an opening not recorded.
const STORE_SILENT: &str = "the store does not answer; check that db runs";

/// What became of an opening that was to be recorded (E3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// It is in the store.
    Recorded,
    /// It is not, and will not be.
    Refused(OpeningRefused),
    /// It is not known; recording it again has the effect of once.
    Unknown,
}

/// Whether an epoch still holds (E6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// The store grants it.
    Granted,
    /// The store grants a higher one.
    Lost,
    /// The store does not answer.
    Unknown,
}

/// What the store says of owners and epochs.
pub trait Registry: Send + Sync {
    /// Records an owner's opening in one transaction, as [`Action::RecordOpening`] says.
    fn record(&self, owner: OwnerId, opening: Opening) -> BoxFuture<'static, Recording>;

    /// Whether `epoch` is the one granted for an owner.
    fn confirm(&self, owner: OwnerId, epoch: Epoch) -> BoxFuture<'static, Holding>;
}

/// What writes a log: a bare [`Writer`], or a core around one.
pub trait LogCore {
    /// Whose log.
    fn owner(&self) -> OwnerId;

    /// Under which holding.
    fn epoch(&self) -> Epoch;

    /// What is to be done next, as [`Writer::poll`] says.
    fn poll_log(&mut self) -> Option<Action<'_>>;

    /// What became of it, as [`Writer::handle`] says.
    fn handle_log(&mut self, input: Input);

    /// When time makes a difference, as [`Writer::deadline`] says.
    fn log_deadline(&self) -> Option<Mono>;

    /// Why nothing is written any more.
    fn stopped(&self) -> Option<&Stop>;

    /// An append was answered so long after it was sent.
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

/// How long a log may stand still before it is reported: twice as long as an owner stays fresh, so that a single answer that
/// was lost is no news.
const STANDSTILL: Duration = Duration::from_secs(2);

/// A core that writes a log, with that log, the store and a clock.
///
/// Driving it: whenever anything may have changed, let the [core](Self::core_mut) say what it has to say; then await
/// [`step`](Self::step) beside whatever else the core waits for.
pub struct Driver<C> {
    core: C,
    history: History,
    registry: Arc<dyn Registry>,
    link: watch::Receiver<LinkState>,
    /// The connection that the writer knows of; `None` while it knows of none.
    connection: Option<u64>,
    question: Option<BoxFuture<'static, Answer>>,
    /// When the question was put.
    asked: Mono,
    standstill: Wait,
}

/// What became of an action: what the writer is told, and why it is [`Input::Silent`] if it is.
type Answer = Result<Input, String>;

impl Driver<Writer> {
    /// What it decides by.
    pub fn writer(&self) -> &Writer {
        &self.core
    }

    /// Hands over the batch that is wanted.
    ///
    /// # Panics
    /// As [`Writer::offer`].
    pub fn offer(&mut self, batch: FrozenBatch) {
        self.core.offer(clock::mono(), batch);
    }

    /// Passes on a cursor that db announced.
    pub fn archived(&mut self, upto: Tip, epoch: Epoch) {
        self.tell(Input::Archived { upto, epoch });
    }
}

impl<C: LogCore> Driver<C> {
    /// Drives a core whose chain was read over the connection of `history`.
    pub fn new(core: C, history: History, registry: Arc<dyn Registry>) -> Self {
        let link = history.bus().state();
        let connection = number(*link.borrow());
        let standstill = Wait::new(
            format!("the log of owner {}", core.owner()),
            "the log stands still and nothing is shown; look at the nats-server's log and disk; one whose disk was full has to be started again once there is room, which `annals up` does",
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
            standstill,
        };
        if driver.connection.is_none() {
            driver.tell(Input::Disconnected);
        }
        driver
    }

    /// The core.
    pub fn core(&self) -> &C {
        &self.core
    }

    /// Whether the log has taken nothing for so long that its owner shows nothing, and said so in the process's log.
    pub fn stands_still(&self) -> bool {
        self.standstill.is_reported()
    }

    /// The core, to be given inputs and drained of outputs.
    pub fn core_mut(&mut self) -> &mut C {
        &mut self.core
    }

    /// Waits until the writer has learned something, or time has made a difference to it. Nothing is lost when the waiting is
    /// given up. Once the writer has stopped it waits for ever.
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
                // The connection's last clone is ours, so its state has an author for as long as we look.
                Err(_) => std::future::pending().await,
            },
            () = clock::until(deadline) => {}
        }
        self.ask();
    }

    fn answered(&mut self, answer: Answer) {
        let (now, owner) = (clock::mono(), self.core.owner());
        if let Ok(Input::Appended { .. }) = answer {
            self.core.appended(now.since(self.asked));
        }
        match &answer {
            Ok(Input::Appended { .. } | Input::EpochConfirmed) => self.standstill.ends(),
            Ok(_) => {}
            Err(why) => {
                tracing::debug!(%owner, "{why}");
                self.standstill.lasts(why);
            }
        }
        self.tell(answer.unwrap_or(Input::Silent));
    }

    /// Begins what the writer asks for.
    fn ask(&mut self) {
        if self.question.is_some() {
            return;
        }
        let (owner, epoch) = (self.core.owner(), self.core.epoch());
        let (history, registry) = (self.history.clone(), Arc::clone(&self.registry));
        self.asked = clock::mono();
        self.question = match self.core.poll_log() {
            None => return,
            Some(Action::Append { expect, batch }) => Some(Box::pin(append(
                history,
                owner,
                expect,
                Bytes::copy_from_slice(&batch.bytes),
            ))),
            Some(Action::ReadLast) => Some(Box::pin(read_last(history, owner))),
            Some(Action::LookAgain) => Some(Box::pin(look_again(history, owner))),
            Some(Action::RecordOpening(opening)) => Some(Box::pin(record(registry, owner, opening))),
            Some(Action::ConfirmEpoch) => Some(Box::pin(confirm(registry, owner, epoch))),
        };
    }

    /// Tells the writer that the connection went or came. An action that was under way then counts as unanswered.
    fn watch_link(&mut self) {
        let connection = number(*self.link.borrow_and_update());
        if connection == self.connection {
            return;
        }
        if self.connection.is_some() {
            self.tell(Input::Disconnected);
            if self.question.take().is_some() {
                self.tell(Input::Silent);
            }
        }
        if connection.is_some() {
            self.tell(Input::Reconnected);
        }
        self.connection = connection;
    }

    fn tell(&mut self, input: Input) {
        let running = self.core.stopped().is_none();
        self.core.handle_log(input);
        match self.core.stopped() {
            Some(stop) if running && stop.is_alarm() => tracing::error!("{stop}"),
            Some(stop) if running => tracing::info!("{stop}"),
            _ => {}
        }
    }
}

/// Which connection this is; `None` while there is none.
fn number(state: LinkState) -> Option<u64> {
    match state {
        LinkState::Up { connection } => Some(connection),
        LinkState::Down { .. } => None,
    }
}

async fn append(history: History, owner: OwnerId, expect: u64, bytes: Bytes) -> Answer {
    match history.append(owner, expect, bytes).await {
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

async fn record(registry: Arc<dyn Registry>, owner: OwnerId, opening: Opening) -> Answer {
    match registry.record(owner, opening).await {
        Recording::Recorded => Ok(Input::OpeningRecorded),
        Recording::Refused(why) => Ok(Input::OpeningRefused(why)),
        Recording::Unknown => Err(STORE_SILENT.to_owned()),
    }
}

async fn confirm(registry: Arc<dyn Registry>, owner: OwnerId, epoch: Epoch) -> Answer {
    match registry.confirm(owner, epoch).await {
        Holding::Granted => Ok(Input::EpochConfirmed),
        Holding::Lost => Ok(Input::EpochLost),
        Holding::Unknown => Err(STORE_SILENT.to_owned()),
    }
}
