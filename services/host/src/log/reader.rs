//! Reads a whole history stream in order, for as long as the process runs: db's input to folding.

use std::time::Duration;

use async_nats::jetstream::consumer::push;
use futures::{StreamExt, future::BoxFuture};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Entry, History};
use crate::waiting::Wait;

/// Interval at which the stream's end is requested: a server that lost its tail has moved it back.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Pause before reading is restarted after a failure.
const PAUSE: Duration = Duration::from_millis(200);

/// Reads a stream from a sequence on, logs and fills of all owners, in order.
///
/// It restarts by itself when the connection or the server was lost. When the stream has lost its tail, it restarts at
/// the stream's first message, since sequences may have been reused: its user skips what it has folded.
pub struct Reader {
    history: History,
    /// The next sequence to read.
    position: u64,
    /// The last sequence of the stream, when it was requested last.
    end: u64,
    messages: Messages,
    look: tokio::time::Interval,
    /// The request for the stream's end in progress.
    looking: Option<Looking>,
    restarts: u64,
    interrupted: Wait,
}

/// The source of messages. Steps in progress are kept here, so that they continue when the wait is cancelled: a caller
/// that waits in short slices would never complete a step longer than a slice.
enum Messages {
    /// The consumer is being created.
    Opening(BoxFuture<'static, Result<push::Ordered, String>>),
    /// Messages are delivered.
    Open(Box<push::Ordered>),
    /// Reading failed, and restarts at this time.
    Failed(Instant),
}

/// A request for the stream's end.
struct Looking {
    /// The next sequence to read at the time of the request: the answer may be older than what has been read since.
    position: u64,
    answer: BoxFuture<'static, Option<Ends>>,
}

/// The first and the last sequence of the stream.
struct Ends {
    first: u64,
    last: u64,
}

impl Reader {
    /// A reader from `sequence` on.
    pub fn new(history: &History, sequence: u64) -> Self {
        let mut look = interval_at(Instant::now() + LOOK_INTERVAL, LOOK_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let position = sequence.max(1);
        Self {
            history: history.clone(),
            position,
            end: 0,
            messages: open(history, position),
            look,
            looking: None,
            restarts: 0,
            interrupted: Wait::new(
                format!("stream {}", history.name()),
                "reading the log was interrupted; it resumes from the same message; check that the nats-server runs",
            ),
        }
    }

    /// The next message, waiting for it indefinitely. Cancel-safe: what was in progress continues with the next call.
    pub async fn next(&mut self) -> Entry {
        loop {
            tokio::select! {
                delivered = delivered(&mut self.messages, &self.history, self.position) => match delivered {
                    Ok(message) => {
                        self.interrupted.ends();
                        if let Some(entry) = self.history.entry(&message) {
                            self.position = entry.sequence + 1;
                            return entry;
                        }
                    }
                    Err(error) => self.fail(&error),
                },
                ends = ends(&mut self.looking) => {
                    if let Some(looking) = self.looking.take() {
                        self.compare(looking.position, ends.as_ref());
                    }
                }
                _ = self.look.tick(), if self.looking.is_none() => self.looking = Some(self.ask_for_the_end()),
            }
        }
    }

    /// The next sequence to read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How often reading was restarted because the stream had lost its tail. Sequences from before a restart say nothing
    /// about the stream after it.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Number of messages in the stream that are not read yet, as of at most a second ago.
    pub fn behind(&self) -> u64 {
        (self.end + 1).saturating_sub(self.position)
    }

    fn fail(&mut self, error: &str) {
        self.interrupted.lasts(error);
        self.messages = Messages::Failed(Instant::now() + PAUSE);
    }

    fn ask_for_the_end(&self) -> Looking {
        let stream = self.history.stream().clone();
        let asking = async move {
            let info = stream.get_info().await.ok()?;
            Some(Ends {
                first: info.state.first_sequence,
                last: info.state.last_sequence,
            })
        };
        Looking {
            position: self.position,
            answer: Box::pin(asking),
        }
    }

    /// Restarts when the stream ends before what had been read at the time of the request. Without an answer nothing
    /// can be concluded until the next request.
    fn compare(&mut self, position: u64, ends: Option<&Ends>) {
        let Some(&Ends { first, last }) = ends else { return };
        self.end = last;
        if last + 1 >= position {
            return;
        }
        tracing::error!(
            stream = self.history.name(),
            read = position - 1,
            last,
            "the stream has lost its tail; reading it again from its first message"
        );
        self.restarts += 1;
        self.position = first.max(1);
        self.messages = open(&self.history, self.position);
    }
}

fn open(history: &History, position: u64) -> Messages {
    let history = history.clone();
    Messages::Opening(Box::pin(async move { history.follow(Vec::new(), position).await }))
}

/// The next message, or why there is none; the caller then sets [`Messages::Failed`].
async fn delivered(
    messages: &mut Messages,
    history: &History,
    position: u64,
) -> Result<async_nats::jetstream::Message, String> {
    loop {
        match messages {
            Messages::Opening(opening) => {
                let opened = opening.await?;
                *messages = Messages::Open(Box::new(opened));
            }
            Messages::Open(open) => {
                let message = open.next().await.ok_or("the consumer ended")?;
                return message.map_err(|error| error.to_string());
            }
            Messages::Failed(until) => {
                tokio::time::sleep_until(*until).await;
                *messages = open(history, position);
            }
        }
    }
}

/// The answer to the request in progress; waits for ever if there is none.
async fn ends(looking: &mut Option<Looking>) -> Option<Ends> {
    match looking {
        Some(looking) => (&mut looking.answer).await,
        None => std::future::pending().await,
    }
}
