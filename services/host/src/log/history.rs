//! A shard's history stream: one subject per owner's log, one per owner for refills.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

use annals_event::Header;
use annals_ids::{BatchNumber, OwnerId, Shard};
use annals_node::{follow::Reading, writer::ANSWER_TIMEOUT};
use annals_wire::Subjects;
use async_nats::client::RequestErrorKind;
use async_nats::jetstream::consumer::{DeliverPolicy, push};
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, RawMessageError, RawMessageErrorKind, RetentionPolicy, Stream,
};
use async_nats::jetstream::{ErrorCode, publish::PublishAck};
use async_nats::{HeaderMap, HeaderValue, Request, header};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use opentelemetry::trace::SpanContext;
use thiserror::Error;
use tokio::time::{Instant, timeout};

use crate::nats::{Bus, StreamError};
use crate::telemetry::trace;

/// Window in which the server remembers message ids. We send none; this is the shortest that it accepts.
const DUPLICATE_WINDOW: Duration = Duration::from_millis(100);

/// Maximum time without a leader when a stream is looked up.
const LEADER_WITHIN: Duration = Duration::from_secs(20);

/// Pause between two tries.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The server's error codes for a wrong last sequence: one names the sequence, the other comes from a leader that has
/// not yet stored the message it compares with.
const WRONG_LAST_SEQUENCE: [ErrorCode; 2] = [
    ErrorCode::STREAM_WRONG_LAST_SEQUENCE,
    ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT,
];

/// Kind of a message in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// A batch that its writer appended.
    Log,
    /// A batch that a process still had, sent to fill a hole (F4).
    Fill,
}

/// One message of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its sequence in the stream.
    pub sequence: u64,
    /// Its kind.
    pub lane: Lane,
    /// The owner of the log.
    pub owner: OwnerId,
    /// The batch.
    pub bytes: Bytes,
    /// When the server stored it, by the server's clock.
    pub stored: SystemTime,
    /// Where its traced calls were handled. Headers are neither hashed nor archived.
    pub contexts: Vec<SpanContext>,
}

/// The server's answer to an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the log, at this sequence.
    Appended(u64),
    /// The subject's last sequence is not the expected one.
    Rejected,
    /// It is unknown whether it is in the log.
    Unknown(Fault),
}

/// Why the result of an append is unknown. Each is temporary; nothing is lost meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// No answer within [`ANSWER_TIMEOUT`].
    #[error("the log did not answer within {} ms", ANSWER_TIMEOUT.as_millis())]
    Silence,
    /// No server answers for the stream: it has no leader at the moment, or JetStream is off.
    #[error("no server answers for the log stream; if this lasts, check that a majority of its nats-servers is up")]
    NoLeader,
    /// The server refuses it.
    #[error("the nats-server does not append: {0}; check its disk and its JetStream limits")]
    Refused(String),
    /// The connection or the answer is broken.
    #[error("the log could not be reached: {0}")]
    Broken(String),
}

/// The stream could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// No answer in time.
    #[error(
        "reading {subject} of stream {stream}: no answer within {} ms; check that its leader is up",
        ANSWER_TIMEOUT.as_millis()
    )]
    Silent { stream: String, subject: String },
    /// The log ends before what has been read already.
    #[error("{subject} of stream {stream} has lost its tail; read it again from its first message")]
    Shrunk { stream: String, subject: String },
    /// The server answered with an error.
    #[error("reading {subject} of stream {stream} failed: {reason}")]
    Failed {
        stream: String,
        subject: String,
        /// The error of the server or the client.
        reason: String,
    },
}

/// A shard's history stream. Clones share the connection.
#[derive(Debug, Clone)]
pub struct History {
    bus: Bus,
    stream: Stream,
    name: String,
    subjects: Subjects,
    shard: Shard,
}

impl History {
    /// The stream of a realm's shard: created if missing, and compared with the server's configuration in either case.
    /// It keeps everything until it is trimmed, and refuses new messages rather than drop old ones.
    ///
    /// # Errors
    /// When it cannot be created, or has another configuration.
    pub async fn ensure(bus: &Bus, realm: &str, shard: Shard, replicas: usize) -> Result<Self, StreamError> {
        let stream = bus.ensure_stream(configuration(realm, shard, replicas)).await?;
        Ok(Self::of(bus, realm, shard, stream))
    }

    /// The same stream for services that use what db has created, and need no permission to create streams. Waits until
    /// it exists, as long as it takes.
    ///
    /// # Errors
    /// When it cannot be read, or has another configuration.
    pub async fn join(bus: &Bus, realm: &str, shard: Shard, replicas: usize) -> Result<Self, StreamError> {
        let stream = bus.await_stream(configuration(realm, shard, replicas)).await?;
        Ok(Self::of(bus, realm, shard, stream))
    }

    /// The existing stream of a realm's shard, for readers; `None` when there is none. A cluster that has just started
    /// answers once the stream has a leader.
    ///
    /// # Errors
    /// When the server does not answer within 20 s.
    pub async fn find(bus: &Bus, realm: &str, shard: Shard) -> Result<Option<Self>, StreamError> {
        let name = stream_name(realm, shard);
        let patience = Instant::now() + LEADER_WITHIN;
        loop {
            match bus.jetstream().get_stream(&name).await {
                Ok(stream) => return Ok(Some(Self::of(bus, realm, shard, stream))),
                Err(error) if is_absent(&error) => return Ok(None),
                Err(source) if Instant::now() >= patience => return Err(StreamError::Read { stream: name, source }),
                Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
            }
        }
    }

    fn of(bus: &Bus, realm: &str, shard: Shard, stream: Stream) -> Self {
        Self {
            bus: bus.clone(),
            stream,
            name: stream_name(realm, shard),
            subjects: Subjects::new(realm),
            shard,
        }
    }

    /// Its shard.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// Its connection.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The stream itself, for operators' requests.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The stream's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Appends to an owner's log, provided that the last sequence of its subject is `expect` (L4); 0 is an empty
    /// subject. `contexts` are those of traced calls in the batch.
    pub async fn append(&self, owner: OwnerId, expect: u64, bytes: Bytes, contexts: &[SpanContext]) -> Verdict {
        let mut headers = HeaderMap::new();
        trace::inject(contexts, &mut headers);
        headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, HeaderValue::from(expect));
        self.publish(self.subject(Lane::Log, owner), headers, bytes).await
    }

    /// Publishes a batch that fills a hole of an owner's log. Duplicates do no harm.
    pub async fn fill(&self, owner: OwnerId, bytes: Bytes) -> Verdict {
        self.publish(self.subject(Lane::Fill, owner), HeaderMap::new(), bytes)
            .await
    }

    async fn publish(&self, subject: String, headers: HeaderMap, bytes: Bytes) -> Verdict {
        let request = Request::new()
            .headers(headers)
            .payload(bytes)
            .timeout(Some(ANSWER_TIMEOUT));
        let message = match self.bus.client().send_request(subject, request).await {
            Ok(message) => message,
            Err(error) => {
                return Verdict::Unknown(match error.kind() {
                    RequestErrorKind::TimedOut => Fault::Silence,
                    RequestErrorKind::NoResponders => Fault::NoLeader,
                    _ => Fault::Broken(error.to_string()),
                });
            }
        };
        match serde_json::from_slice::<Response<PublishAck>>(&message.payload) {
            Ok(Response::Ok(stored)) => Verdict::Appended(stored.sequence),
            Ok(Response::Err { error }) if WRONG_LAST_SEQUENCE.contains(&error.error_code()) => Verdict::Rejected,
            Ok(Response::Err { error }) => Verdict::Unknown(Fault::Refused(error.to_string())),
            Err(error) => Verdict::Unknown(Fault::Broken(error.to_string())),
        }
    }

    /// The last message of an owner's log, from the stream's leader; `None` when the subject is empty.
    ///
    /// # Errors
    /// When the leader does not answer.
    pub async fn last(&self, owner: OwnerId) -> Result<Option<Entry>, ReadError> {
        let subject = self.subject(Lane::Log, owner);
        self.ask(&subject, self.stream.get_last_raw_message_by_subject(&subject))
            .await
    }

    /// The first message of an owner's log or fills at `sequence` or later, from the stream's leader; `None` when there
    /// is none.
    ///
    /// # Errors
    /// When the leader does not answer.
    pub async fn next(&self, lane: Lane, owner: OwnerId, sequence: u64) -> Result<Option<Entry>, ReadError> {
        let subject = self.subject(lane, owner);
        self.ask(
            &subject,
            self.stream.get_first_raw_message_by_subject(&subject, sequence),
        )
        .await
    }

    /// Reads an owner's log and fills to their end (E1); given an earlier reading, only what is new since, so that a
    /// take-over gets ahead of a writer that is still alive.
    ///
    /// The leader determines the end. What lies before it may come from any replica: each batch names the hash of the
    /// one before, so a replica that lacks one shows as a hole.
    ///
    /// # Errors
    /// When the stream does not answer, or has lost its tail meanwhile: then start with an empty reading.
    pub async fn read(&self, owner: OwnerId, reading: &mut Reading) -> Result<(), ReadError> {
        let log = self.subject(Lane::Log, owner);
        if reading.last == 0 {
            let fills = self.subject(Lane::Fill, owner);
            let (last, last_fill) = futures::try_join!(self.end(&log), self.end(&fills))?;
            let mut all = Reading::default();
            self.visit(vec![log.clone(), fills], last.max(last_fill), |entry| {
                match entry.lane {
                    Lane::Log => all.add_message(entry.sequence, entry.bytes.into()),
                    Lane::Fill => all.add_fill(entry.sequence, entry.bytes.into()),
                }
                ControlFlow::Continue(())
            })
            .await?;
            if all.last < last {
                return Err(self.shrunk(log));
            }
            *reading = all;
            return Ok(());
        }
        if let Some(entry) = self.next(Lane::Log, owner, reading.last).await?
            && reading.is_replaced_by(entry.sequence, &entry.bytes)
        {
            *reading = Reading::default();
            return Err(self.shrunk(log));
        }
        // Few, if any: requesting each is quicker than setting up a consumer.
        loop {
            let next = self.next(Lane::Log, owner, reading.last + 1);
            let next_fill = self.next(Lane::Fill, owner, reading.last_fill() + 1);
            let (end, next, next_fill) = futures::try_join!(self.end(&log), next, next_fill)?;
            if end < reading.last {
                *reading = Reading::default();
                return Err(self.shrunk(log));
            }
            let is_all = next.as_ref().is_none_or(|entry| entry.sequence >= end) && next_fill.is_none();
            if let Some(entry) = next {
                reading.add_message(entry.sequence, entry.bytes.into());
            }
            if let Some(entry) = next_fill {
                reading.add_fill(entry.sequence, entry.bytes.into());
            }
            if is_all {
                return Ok(());
            }
        }
    }

    /// The owners that have logs or fills in the stream.
    ///
    /// # Errors
    /// When the leader does not answer.
    pub async fn owners(&self) -> Result<BTreeSet<OwnerId>, ReadError> {
        let listing = async {
            let mut subjects = self
                .stream
                .info_with_subjects(">")
                .await
                .map_err(|error| error.to_string())?;
            let mut owners = BTreeSet::new();
            while let Some((subject, _)) = subjects.try_next().await.map_err(|error| error.to_string())? {
                owners.extend(self.place(&subject).map(|(_, owner)| owner));
            }
            Ok(owners)
        };
        let (stream, subject) = (self.name.clone(), "all subjects".to_owned());
        match timeout(ANSWER_TIMEOUT, listing).await {
            Err(_) => Err(ReadError::Silent { stream, subject }),
            Ok(Err(reason)) => Err(ReadError::Failed {
                stream,
                subject,
                reason,
            }),
            Ok(Ok(owners)) => Ok(owners),
        }
    }

    /// The last sequence of the stream, from its leader; 0 if it is empty.
    ///
    /// # Errors
    /// When the leader does not answer.
    pub async fn last_sequence(&self) -> Result<u64, ReadError> {
        let (stream, subject) = (self.name.clone(), "all subjects".to_owned());
        match timeout(ANSWER_TIMEOUT, self.stream.get_info()).await {
            Err(_) => Err(ReadError::Silent { stream, subject }),
            Ok(Err(error)) => Err(ReadError::Failed {
                stream,
                subject,
                reason: error.to_string(),
            }),
            Ok(Ok(info)) => Ok(info.state.last_sequence),
        }
    }

    /// The highest sequence of any message of these owners' logs and fills; 0 if there is none.
    ///
    /// # Errors
    /// When the leader does not answer.
    pub async fn end_of(&self, owners: &BTreeSet<OwnerId>) -> Result<u64, ReadError> {
        let mut end = 0;
        for owner in owners {
            for lane in [Lane::Log, Lane::Fill] {
                end = end.max(self.end(&self.subject(lane, *owner)).await?);
            }
        }
        Ok(end)
    }

    fn shrunk(&self, subject: String) -> ReadError {
        let stream = self.name.clone();
        ReadError::Shrunk { stream, subject }
    }

    /// The last sequence of a subject, from the stream's leader; 0 if it is empty.
    async fn end(&self, subject: &str) -> Result<u64, ReadError> {
        let last = self
            .ask(subject, self.stream.get_last_raw_message_by_subject(subject))
            .await?;
        Ok(last.map_or(0, |entry| entry.sequence))
    }

    /// Visits the messages on some subjects, in order, up to the one at `last`, which must be one of them (0 for none),
    /// or until a visit breaks off.
    async fn visit(
        &self,
        subjects: Vec<String>,
        last: u64,
        mut visit: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        if last == 0 {
            return Ok(());
        }
        let (stream, subject) = (self.name.clone(), subjects.join(" and "));
        let failed = |reason: String| ReadError::Failed {
            stream: stream.clone(),
            subject: subject.clone(),
            reason,
        };
        let silent = |_| ReadError::Silent {
            stream: stream.clone(),
            subject: subject.clone(),
        };
        let mut messages = timeout(ANSWER_TIMEOUT, self.follow(subjects, 1))
            .await
            .map_err(silent)?
            .map_err(failed)?;
        loop {
            let message = timeout(ANSWER_TIMEOUT, messages.next()).await.map_err(silent)?;
            let message = message.ok_or_else(|| failed("the consumer ended".to_owned()))?;
            let message = message.map_err(|error| failed(error.to_string()))?;
            let Some(entry) = self.entry(&message) else { continue };
            let sequence = entry.sequence;
            if sequence > last || visit(entry).is_break() || sequence == last {
                return Ok(());
            }
        }
    }

    /// Delivers messages of some subjects, or of all if none are given, from a sequence on.
    pub(super) async fn follow(&self, filter_subjects: Vec<String>, first: u64) -> Result<push::Ordered, String> {
        let config = push::OrderedConfig {
            deliver_subject: self.bus.client().new_inbox(),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: first },
            filter_subjects,
            ..push::OrderedConfig::default()
        };
        let consumer = self
            .stream
            .create_consumer(config)
            .await
            .map_err(|error| error.to_string())?;
        consumer.messages().await.map_err(|error| error.to_string())
    }

    /// Decodes a delivered message; `None` if it belongs to no owner.
    pub(super) fn entry(&self, message: &async_nats::jetstream::Message) -> Option<Entry> {
        let place = message.info().ok().zip(self.place(&message.subject));
        let Some((info, (lane, owner))) = place else {
            tracing::warn!(stream = self.name, subject = %message.subject, "ignored a message without an owner");
            return None;
        };
        Some(Entry {
            sequence: info.stream_sequence,
            lane,
            owner,
            bytes: message.payload.clone(),
            stored: info.published.into(),
            contexts: trace::extract(message.headers.as_ref()),
        })
    }

    async fn ask(
        &self,
        subject: &str,
        reading: impl Future<Output = Result<StreamMessage, RawMessageError>>,
    ) -> Result<Option<Entry>, ReadError> {
        let (stream, named) = (self.name.clone(), subject.to_owned());
        match timeout(ANSWER_TIMEOUT, reading).await {
            Err(_) => Err(ReadError::Silent { stream, subject: named }),
            Ok(Err(error)) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Ok(Err(error)) => Err(ReadError::Failed {
                stream,
                subject: named,
                reason: error.to_string(),
            }),
            Ok(Ok(message)) => match self.place(&message.subject) {
                Some((lane, owner)) => Ok(Some(Entry {
                    sequence: message.sequence,
                    lane,
                    owner,
                    contexts: trace::extract(Some(&message.headers)),
                    bytes: message.payload,
                    stored: message.time.into(),
                })),
                None => {
                    let reason = format!("the server answered with subject {}", message.subject);
                    Err(ReadError::Failed {
                        stream,
                        subject: named,
                        reason,
                    })
                }
            },
        }
    }

    /// Deletes an owner's oldest messages, up to the first that is younger than `age`, or is not a batch numbered lower
    /// than `cursor`: everything below the cursor is archived or void (F6). It reads what is stored now, since a
    /// sequence seen before may have been reused. The last message always stays, so that a subject never becomes empty
    /// again.
    ///
    /// Returns whether it is done, that is, nothing was kept only because of its age.
    ///
    /// # Errors
    /// When the server does not answer or refuses.
    pub async fn trim(
        &self,
        lane: Lane,
        owner: OwnerId,
        cursor: BatchNumber,
        age: Duration,
    ) -> Result<bool, ReadError> {
        let subject = self.subject(lane, owner);
        let end = self.end(&subject).await?;
        if end == 0 {
            return Ok(true);
        }
        let oldest_to_stay = SystemTime::now() - age;
        let mut stays = 0;
        let mut goes = 0_u64;
        let mut is_done = true;
        self.visit(vec![subject.clone()], end, |entry| {
            stays = entry.sequence;
            let is_below = Header::read(&entry.bytes).is_ok_and(|(header, _)| header.number < cursor);
            if !is_below || entry.sequence >= end {
                return ControlFlow::Break(());
            }
            if entry.stored >= oldest_to_stay {
                is_done = false;
                return ControlFlow::Break(());
            }
            goes += 1;
            ControlFlow::Continue(())
        })
        .await?;
        if goes == 0 {
            return Ok(is_done);
        }
        let purge = self.stream.purge().filter(&subject).sequence(stays);
        purge.await.map(|_| is_done).map_err(|error| ReadError::Failed {
            stream: self.name.clone(),
            subject,
            reason: error.to_string(),
        })
    }

    fn subject(&self, lane: Lane, owner: OwnerId) -> String {
        match lane {
            Lane::Log => self.subjects.log(self.shard, owner),
            Lane::Fill => self.subjects.fill(self.shard, owner),
        }
    }

    /// Parses a subject of this stream.
    fn place(&self, subject: &str) -> Option<(Lane, OwnerId)> {
        let (_, owner) = subject.rsplit_once('.')?;
        let owner = OwnerId(owner.parse().ok()?);
        [Lane::Log, Lane::Fill]
            .into_iter()
            .find(|lane| self.subject(*lane, owner) == subject)
            .map(|lane| (lane, owner))
    }
}

fn configuration(realm: &str, shard: Shard, replicas: usize) -> Config {
    let subjects = Subjects::new(realm);
    Config {
        name: stream_name(realm, shard),
        subjects: vec![subjects.logs(shard), subjects.fills(shard)],
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::New,
        duplicate_window: DUPLICATE_WINDOW,
        num_replicas: replicas,
        // No read may come from a replica that lags (L5).
        allow_direct: false,
        ..Config::default()
    }
}

fn stream_name(realm: &str, shard: Shard) -> String {
    format!("annals_{realm}_history_{shard}")
}

fn is_absent(error: &GetStreamError) -> bool {
    match error.kind() {
        GetStreamErrorKind::JetStream(error) => error.error_code() == ErrorCode::STREAM_NOT_FOUND,
        _ => false,
    }
}
