//! The client side.

use std::time::{Duration, Instant};

use async_nats::client::RequestErrorKind;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use prost::Message;

use super::message::{Answer, Ask, Commit, Get, GetRange, Part, ReadVersion, Request, Says, Watch, malformed};
use super::{COMMIT_BYTES, COMMIT_TIMEOUT, LEAST_PAYLOAD, PART_BYTES, READ_TIMEOUT, WATCH_TIMEOUT};
use crate::{Backend, CommitRequest, Committed, Page, RangeRead, Store, StoreError, Version};

/// Pause of a watch before it retries, while the store is unavailable.
const WATCH_PAUSE: Duration = Duration::from_secs(1);

/// A store that another process serves. Clones refer to the same store.
#[derive(Clone, Debug)]
pub struct RemoteStore {
    client: async_nats::Client,
    subject: String,
    since: Instant,
}

/// Why there was no answer.
#[derive(Debug)]
enum Silence {
    /// The server cannot have received the request.
    NotSent(StoreError),
    /// The server may have received it.
    NoAnswer(StoreError),
}

impl Silence {
    /// As the error of a request that changes nothing.
    fn harmless(self) -> StoreError {
        match self {
            Self::NotSent(error) | Self::NoAnswer(error) => error,
        }
    }

    /// As the error of a commit.
    fn of_commit(self) -> StoreError {
        match self {
            Self::NotSent(error) => error,
            Self::NoAnswer(_) => StoreError::CommitUnknown,
        }
    }
}

impl RemoteStore {
    /// The store served at `subject`, such as `annals.<realm>.store`. Sends nothing before the first use.
    #[must_use]
    pub fn new(client: async_nats::Client, subject: String) -> Self {
        Self {
            client,
            subject,
            since: Instant::now(),
        }
    }

    /// A handle to the store.
    #[must_use]
    pub fn store(&self) -> Store {
        Store::new(self.clone())
    }

    async fn read(&self, ask: Ask) -> Result<Says, StoreError> {
        self.ask(ask, READ_TIMEOUT).await.map_err(Silence::harmless)
    }

    async fn ask(&self, ask: Ask, patience: Duration) -> Result<Says, Silence> {
        let payload = self.client.max_payload();
        if payload < LEAST_PAYLOAD {
            let why = format!(
                "nats-server takes messages of {payload} B, and the store needs {LEAST_PAYLOAD}; raise its max_payload"
            );
            return Err(Silence::NotSent(StoreError::Unavailable(why.into())));
        }
        let request = async_nats::Request::new()
            .payload(Request::new(ask).encode_to_vec().into())
            .timeout(Some(patience));
        let answer = self.client.send_request(self.subject.clone(), request).await;
        let answer = answer.map_err(|error| self.silence(&error))?;
        let answer = Answer::decode(answer.payload).map_err(|_| Silence::NoAnswer(malformed("is garbled")))?;
        answer
            .says
            .ok_or_else(|| Silence::NoAnswer(malformed("has no content that this release knows")))
    }

    fn silence(&self, error: &async_nats::client::RequestError) -> Silence {
        let unavailable = |why: String| StoreError::Unavailable(why.into());
        match error.kind() {
            RequestErrorKind::NoResponders => Silence::NotSent(unavailable(format!(
                "no process serves {}; is db running?",
                self.subject
            ))),
            RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                Silence::NotSent(unavailable(error.to_string()))
            }
            RequestErrorKind::TimedOut => Silence::NoAnswer(unavailable(format!(
                "no answer from {}; is nats-server reachable?",
                self.subject
            ))),
            RequestErrorKind::Other => Silence::NoAnswer(unavailable(error.to_string())),
        }
    }

    async fn commit_whole(&self, request: CommitRequest) -> Result<Committed, StoreError> {
        let commit = Commit::from(request);
        let size = commit.encoded_len();
        if size <= PART_BYTES {
            return settled(self.ask(Ask::Commit(commit), COMMIT_TIMEOUT).await);
        }
        if size > COMMIT_BYTES {
            return Err(StoreError::TransactionTooLarge { bytes: size });
        }
        let bytes = Bytes::from(commit.encode_to_vec());
        let upload = self.client.new_inbox();
        let parts = size.div_ceil(PART_BYTES);
        for index in 0..parts - 1 {
            match self.read(Ask::Part(part(&upload, &bytes, index, parts))).await? {
                Says::PartTaken(_) => {}
                Says::Failed(failed) => return Err(failed.into()),
                other => return Err(unexpected(&other)),
            }
        }
        settled(
            self.ask(Ask::Part(part(&upload, &bytes, parts - 1, parts)), COMMIT_TIMEOUT)
                .await,
        )
    }

    async fn watch_until_changed(&self, key: Bytes, seen: Option<Bytes>) -> Result<(), StoreError> {
        loop {
            let ask = Ask::Watch(Watch {
                key: key.clone(),
                seen: seen.clone(),
            });
            let error = match self.ask(ask, WATCH_TIMEOUT).await {
                Ok(Says::Changed(true)) => return Ok(()),
                Ok(Says::Changed(false)) => continue,
                Ok(Says::Failed(failed)) => failed.into(),
                Ok(other) => unexpected(&other),
                Err(silence) => silence.harmless(),
            };
            // All changes are made through the same store: a later retry misses nothing.
            match error {
                StoreError::Unavailable(_) => tokio::time::sleep(WATCH_PAUSE).await,
                error => return Err(error),
            }
        }
    }
}

fn part(upload: &str, bytes: &Bytes, index: usize, parts: usize) -> Part {
    let end = bytes.len().min((index + 1) * PART_BYTES);
    Part {
        upload: upload.to_owned(),
        index: u32::try_from(index).expect("invariant: a commit has few parts"),
        last: index + 1 == parts,
        bytes: bytes.slice(index * PART_BYTES..end),
    }
}

/// The outcome of a commit, from the answer to its last message.
fn settled(answer: Result<Says, Silence>) -> Result<Committed, StoreError> {
    match answer.map_err(Silence::of_commit)? {
        // The commit was applied, though its stamp is unreadable.
        Says::Committed(applied) => applied.try_into().map_err(|_| StoreError::CommitUnknown),
        Says::Failed(failed) => Err(failed.into()),
        _ => Err(StoreError::CommitUnknown),
    }
}

fn unexpected(says: &Says) -> StoreError {
    let what = match says {
        Says::Failed(_) => "fails",
        Says::ReadVersion(_) => "returns a version",
        Says::Value(_) => "returns a value",
        Says::Rows(_) => "returns rows",
        Says::Committed(_) => "returns a commit",
        Says::PartTaken(_) => "accepts a part",
        Says::Changed(_) => "reports a change",
    };
    malformed(&format!("{what} in answer to a request of another kind"))
}

impl RemoteStore {
    async fn read_some_version(&self, submitted: bool) -> Result<Version, StoreError> {
        match self.read(Ask::ReadVersion(ReadVersion { submitted })).await? {
            Says::ReadVersion(version) => Ok(Version(version)),
            Says::Failed(failed) => Err(failed.into()),
            other => Err(unexpected(&other)),
        }
    }
}

impl Backend for RemoteStore {
    fn is_remote(&self) -> bool {
        true
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        tokio::time::sleep(time).boxed()
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.read_some_version(false).boxed()
    }

    /// Otherwise a process that submits one transaction after the other would always have written since.
    fn submitted_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.read_some_version(true).boxed()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        async move {
            match self
                .read(Ask::Get(Get {
                    at: at.0,
                    key: Bytes::copy_from_slice(key),
                }))
                .await?
            {
                Says::Value(value) => Ok(value.value),
                Says::Failed(failed) => Err(failed.into()),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        async move {
            match self.read(Ask::GetRange(GetRange::new(at, read))).await? {
                Says::Rows(rows) => Ok(rows.into()),
                Says::Failed(failed) => Err(failed.into()),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>> {
        self.commit_whole(request).boxed()
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.watch_until_changed(key, seen).boxed()
    }
}
