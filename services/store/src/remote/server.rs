//! The server side.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::StreamExt;
use prost::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::message::{Answer, Applied, Ask, Commit, Part, ReadVersion, Request, Rows, Says, Value, Watch, malformed};
use super::upload::{Taken, Uploads};
use super::{COMMIT_BYTES, LEAST_PAYLOAD, WATCH_WAIT};
use crate::limits::{self, PAGE_BYTES};
use crate::{Backend, CommitRequest, Store, StoreError, Version};

/// Maximum memory of requests in progress, answers included, in KiB. A request beyond it is rejected, and its client
/// retries.
const REQUESTS_KIB: usize = 256 * 1_024;

/// Maximum memory of waiting watches, in KiB.
const WATCHES_KIB: usize = 64 * 1_024;

const KIB: usize = 1_024;

/// Start of the reply subject of every message that a consumer of a stream delivers. A user who may create one can have
/// a stored message delivered to any subject.
const OF_CONSUMERS: &str = "$JS.ACK.";

// The largest request fits.
const _: () = assert!(2 * COMMIT_BYTES / KIB < REQUESTS_KIB);

/// Why a store cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The maximum message size of the nats-server is smaller than the store needs.
    #[error("nats-server takes messages of {found} B, and the store needs {LEAST_PAYLOAD}; raise its max_payload")]
    PayloadTooSmall {
        /// Its `max_payload`, in bytes.
        found: usize,
    },
    /// The subscription failed.
    #[error("cannot serve the store at {subject}")]
    Subscribe {
        subject: String,
        /// The error of NATS.
        source: async_nats::SubscribeError,
    },
    /// NATS ended the subscription: the connection was closed for good.
    #[error("the store is no longer served: the connection to nats-server was closed")]
    Closed,
}

/// Serves `store` at `subject` until `stop` resolves, then completes the requests in progress. Only one process may
/// serve a store at a subject: the one that has it open.
///
/// # Errors
/// When it cannot be served (any longer).
pub async fn serve(
    client: async_nats::Client,
    subject: String,
    store: Store,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let found = client.max_payload();
    if found < LEAST_PAYLOAD {
        return Err(ServeError::PayloadTooSmall { found });
    }
    let mut requests = client
        .subscribe(subject.clone())
        .await
        .map_err(|source| ServeError::Subscribe { subject, source })?;
    let server = Arc::new(Server {
        client,
        backend: store.backend(),
        uploads: Mutex::new(Uploads::default()),
        requests: Arc::new(Semaphore::new(REQUESTS_KIB)),
        watches: Arc::new(Semaphore::new(WATCHES_KIB)),
        stopping: watch::Sender::new(false),
    });
    let mut working = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    let result = loop {
        tokio::select! {
            () = &mut stop => break Ok(()),
            request = requests.next() => match request {
                Some(request) => drop(working.spawn(Arc::clone(&server).work(request))),
                None => break Err(ServeError::Closed),
            },
            Some(_) = working.join_next() => {}
        }
    };
    // Watches would wait for long; their clients ask the next server. Other requests take moments.
    server.stopping.send_replace(true);
    drop(requests);
    while working.join_next().await.is_some() {}
    result
}

struct Server {
    client: async_nats::Client,
    backend: Arc<dyn Backend>,
    uploads: Mutex<Uploads>,
    requests: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    stopping: watch::Sender<bool>,
}

impl Server {
    async fn work(self: Arc<Self>, request: async_nats::Message) {
        let Some(reply) = request.reply else {
            return;
        };
        if reply.starts_with(OF_CONSUMERS) {
            tracing::warn!("ignored a request that a consumer of a stream delivered, not a client of the store");
            return;
        }
        let says = match self.answer(request.payload).await {
            Ok(says) => says,
            Err(error) => Says::Failed(error.into()),
        };
        let answer = Answer { says: Some(says) }.encode_to_vec();
        if let Err(error) = self.client.publish(reply, answer.into()).await {
            // The client notices by itself: no answer arrives.
            tracing::warn!(%error, "could not send an answer of the store");
        }
    }

    async fn answer(&self, payload: Bytes) -> Result<Says, StoreError> {
        let size = payload.len();
        let ask = Request::decode(payload).map_err(|_| malformed("is garbled"))?.ask()?;
        let _room = self.room(&ask, size)?;
        match ask {
            Ask::ReadVersion(ReadVersion { submitted }) => {
                let version = match submitted {
                    true => self.backend.submitted_version(),
                    false => self.backend.read_version(),
                };
                Ok(Says::ReadVersion(version.await?.0))
            }
            Ask::Get(get) => {
                limits::check_key(&get.key)?;
                let value = self.backend.get(Version(get.at), &get.key).await?;
                Ok(Says::Value(Value { value }))
            }
            Ask::GetRange(get) => {
                let at = Version(get.at);
                let read = get.read()?;
                limits::check_range(&read.range)?;
                Ok(Says::Rows(Rows::from(self.backend.get_range(at, read).await?)))
            }
            Ask::Commit(commit) => self.commit(commit).await,
            Ask::Part(part) => self.part(part).await,
            Ask::Watch(watch) => self.watch(watch).await,
        }
    }

    /// Reserves memory for a request of `size` bytes and its answer.
    fn room(&self, ask: &Ask, size: usize) -> Result<OwnedSemaphorePermit, StoreError> {
        let (room, bytes) = match ask {
            Ask::Watch(_) => (&self.watches, size),
            Ask::GetRange(_) => (&self.requests, size + PAGE_BYTES),
            Ask::Get(_) => (&self.requests, size + limits::VALUE_BYTES),
            // The last part completes a commit with all its earlier parts.
            Ask::Part(part) if part.last => (&self.requests, COMMIT_BYTES),
            Ask::ReadVersion(_) | Ask::Commit(_) | Ask::Part(_) => (&self.requests, size),
        };
        let kib = u32::try_from(bytes / KIB + 1).map_err(|_| malformed("is oversized"))?;
        let busy = |_| StoreError::Unavailable("the store is overloaded".into());
        Arc::clone(room).try_acquire_many_owned(kib).map_err(busy)
    }

    async fn commit(&self, commit: Commit) -> Result<Says, StoreError> {
        let request = CommitRequest::try_from(commit)?;
        limits::check_commit(&request, self.backend.prefix_bytes())?;
        let committed = self.backend.commit(request).await?;
        Ok(Says::Committed(Applied::from(committed)))
    }

    async fn part(&self, part: Part) -> Result<Says, StoreError> {
        let now = self.backend.now();
        let taken = self
            .uploads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(now, part)?;
        match taken {
            Taken::Parts(parts) => Ok(Says::PartTaken(parts)),
            Taken::Whole(bytes) => {
                let commit = Commit::decode(bytes).map_err(|_| malformed("is garbled"))?;
                self.commit(commit).await
            }
        }
    }

    async fn watch(&self, watch: Watch) -> Result<Says, StoreError> {
        limits::check_key(&watch.key)?;
        let mut stopping = self.stopping.subscribe();
        let changed = tokio::time::timeout(WATCH_WAIT, self.backend.watch(watch.key, watch.seen));
        tokio::select! {
            changed = changed => match changed {
                Ok(changed) => changed.map(|()| Says::Changed(true)),
                Err(_) => Ok(Says::Changed(false)),
            },
            _ = stopping.wait_for(|stopping| *stopping) => Err(StoreError::Unavailable("the store is stopping".into())),
        }
    }
}
