//! Reading a whole history stream in order, for as long as the process lives: what db folds from.

use std::time::Duration;

use async_nats::jetstream::consumer::push;
use futures::StreamExt;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Entry, History};

/// How often the stream is asked for its end, which a server that lost its tail has moved back.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Before the reading is begun anew after it failed.
const PAUSE: Duration = Duration::from_millis(200);

/// Reads a stream from some sequence on, logs and fills of all owners, in order.
///
/// It begins anew by itself when the connection or the server was away. When the stream has lost its tail, it begins again at
/// the stream's first message, since sequences may have been given out twice: the reader's user skips what it has folded.
pub struct Reader {
    history: History,
    /// The sequence that is read next.
    position: u64,
    messages: Option<push::Ordered>,
    look: tokio::time::Interval,
}

impl Reader {
    /// Will read from `sequence` on.
    pub fn new(history: &History, sequence: u64) -> Self {
        let mut look = interval_at(Instant::now() + LOOK_INTERVAL, LOOK_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            history: history.clone(),
            position: sequence.max(1),
            messages: None,
            look,
        }
    }

    /// The next message, waiting for it however long. Nothing is lost when the waiting is given up.
    pub async fn next(&mut self) -> Entry {
        loop {
            let Some(messages) = &mut self.messages else {
                self.open().await;
                continue;
            };
            tokio::select! {
                message = messages.next() => match message {
                    Some(Ok(message)) => {
                        if let Some(entry) = self.history.entry(&message) {
                            self.position = entry.sequence + 1;
                            return entry;
                        }
                    }
                    Some(Err(error)) => self.fail(&error).await,
                    None => self.fail(&"the consumer ended").await,
                },
                _ = self.look.tick() => self.look_for_a_lost_tail().await,
            }
        }
    }

    async fn open(&mut self) {
        match self.history.follow(Vec::new(), self.position).await {
            Ok(messages) => self.messages = Some(messages),
            Err(error) => self.fail(&error).await,
        }
    }

    async fn fail(&mut self, error: &dyn std::fmt::Display) {
        tracing::warn!(stream = self.history.name(), %error, "reading the log is interrupted, and begins again where it was");
        self.messages = None;
        tokio::time::sleep(PAUSE).await;
    }

    async fn look_for_a_lost_tail(&mut self) {
        // Without an answer there is nothing to conclude; the next look comes.
        let Ok(info) = self.history.stream().get_info().await else {
            return;
        };
        if info.state.last_sequence + 1 < self.position {
            tracing::error!(
                stream = self.history.name(),
                read = self.position - 1,
                last = info.state.last_sequence,
                "the stream has lost its tail; reading it again from its first message"
            );
            self.position = info.state.first_sequence.max(1);
            self.messages = None;
        }
    }
}
