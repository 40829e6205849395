//! The store over NATS: the conformance suite, and behaviour that a network adds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::nats::NatsServer;
use annals_store::conformance::{self, Subject};
use annals_store::embedded::EmbeddedStore;
use annals_store::remote::{RemoteStore, ServeError, serve};
use annals_store::{
    Backend, CommitRequest, Committed, MemoryStore, Page, RangeRead, Store, StoreError, Transaction, Version,
};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SUBJECT: &str = "annals.test.store";

/// A served store; sending or dropping `stop` stops it.
struct Served {
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), ServeError>>,
}

impl Served {
    async fn new(nats: &NatsServer, store: Store) -> Self {
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            let _ = stopped.await;
        };
        let server = tokio::spawn(serve(nats.connect().await, SUBJECT.to_owned(), store, stopped));
        let served = Self { stop, server };
        // It is served once it answers: before that, no one receives requests.
        let client = remote(nats).await;
        while client.begin().read_version().await.is_err() {
            assert!(!served.server.is_finished(), "it is no longer served");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        served
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.server
            .await
            .expect("the server does not panic")
            .expect("it was served until the stop");
    }
}

async fn remote(nats: &NatsServer) -> Store {
    RemoteStore::new(nats.connect().await, SUBJECT.to_owned()).store()
}

async fn set(store: &Store, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let transaction = store.begin();
    transaction.set(key, value)?;
    transaction.commit().await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_over_nats_conforms() {
    let nats = NatsServer::start("");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let embedded = EmbeddedStore::open(directory.path()).expect("a new store");
    let served = Served::new(&nats, embedded.store()).await;
    conformance::run(&Subject::real(remote(&nats).await, 1)).await;
    served.stop().await;
}

/// A store in which nothing that is submitted becomes durable.
struct NeverDurable {
    inner: Arc<dyn Backend>,
    durable: Version,
}

impl Backend for NeverDurable {
    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.inner.wait(time)
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        std::future::ready(Ok(self.durable)).boxed()
    }

    fn submitted_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.inner.read_version()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        self.inner.get(at, key)
    }

    fn get_range(&self, at: Version, read: RangeRead) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.inner.get_range(at, read)
    }

    fn commit(&self, request: CommitRequest) -> BoxFuture<'_, Result<Committed, StoreError>> {
        self.inner.commit(request)
    }

    fn watch(&self, key: Bytes, seen: Option<Bytes>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.watch(key, seen)
    }
}

/// Otherwise a db beside one that submits all the time would always read what is outdated.
#[tokio::test]
async fn a_pipelined_transaction_reads_what_the_server_has_accepted() {
    let nats = NatsServer::start("");
    let store = MemoryStore::new().store();
    let backend = store.backend();
    let durable = backend.read_version().await.expect("a version");
    let served = Served::new(
        &nats,
        Store::new(NeverDurable {
            inner: backend,
            durable,
        }),
    )
    .await;
    set(&store, b"k", b"submitted").await.expect("nothing fails");
    let remote = remote(&nats).await;
    assert_eq!(remote.begin().get(b"k").await, Ok(None));
    let read = remote.begin_pipelined().get(b"k").await.expect("the store answers");
    assert_eq!(read.as_deref(), Some(&b"submitted"[..]));
    served.stop().await;
}

#[tokio::test]
async fn a_store_without_a_server_is_unavailable() {
    let nats = NatsServer::start("");
    let backend = remote(&nats).await.backend();
    let error = backend.read_version().await.expect_err("there is no server");
    assert!(
        matches!(&error, StoreError::Unavailable(why) if why.contains("is db running?")),
        "{error}"
    );
    let error = backend
        .commit(annals_store::CommitRequest::default())
        .await
        .expect_err("there is no server");
    assert!(
        matches!(error, StoreError::Unavailable(_)),
        "the commit was not sent, and that is known: {error}"
    );
}

#[tokio::test]
async fn a_commit_without_an_answer_is_unknown() {
    let nats = NatsServer::start("");
    let mut silent = nats.connect().await.subscribe(SUBJECT).await.expect("subscribed");
    tokio::spawn(async move { while silent.next().await.is_some() {} });
    let store = remote(&nats).await;
    // Until the server knows the subscription, it reports that there is no responder.
    let commit = async || loop {
        match set(&store, b"k", b"1").await {
            Err(StoreError::Unavailable(why)) if why.contains("no process serves") => {}
            result => return result,
        }
    };
    assert_eq!(commit().await, Err(StoreError::CommitUnknown));
    let read = store.backend().get(annals_store::Version(1), b"k").await;
    assert!(
        matches!(read, Err(StoreError::Unavailable(_))),
        "a read without an answer did nothing: {read:?}"
    );
}

#[tokio::test]
async fn malformed_requests_are_answered_with_an_error() {
    let nats = NatsServer::start("");
    let memory = MemoryStore::new();
    let served = Served::new(&nats, memory.store()).await;
    let client = nats.connect().await;
    let mut garbage: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![0xff; 3],
        vec![0x12; 500_000],
        b"\x08\x63\x12\x00".to_vec(),
    ];
    garbage.extend((0..200_u8).map(|seed| (0..seed).map(|byte| byte.wrapping_mul(37) ^ seed).collect()));
    for garbage in garbage {
        let answer = client
            .request(SUBJECT, garbage.into())
            .await
            .expect("even garbage is answered");
        assert!(!answer.payload.is_empty());
    }
    assert!(memory.rows().is_empty());
    set(&remote(&nats).await, b"k", b"1").await.expect("it continues");
    served.stop().await;
}

#[tokio::test]
async fn a_nats_server_with_a_small_message_limit_is_reported() {
    let nats = NatsServer::start("max_payload: 65536");
    let client = nats.connect().await;
    let refused = serve(
        client,
        SUBJECT.to_owned(),
        MemoryStore::new().store(),
        std::future::pending(),
    )
    .await;
    let refused = refused.expect_err("pages do not fit");
    assert!(refused.to_string().contains("raise its max_payload"), "{refused}");
    let error = remote(&nats)
        .await
        .begin()
        .get(b"k")
        .await
        .expect_err("commits do not fit either");
    assert!(error.to_string().contains("raise its max_payload"), "{error}");
}

#[tokio::test]
async fn a_watch_survives_a_restart_of_its_server() {
    let nats = NatsServer::start("");
    let memory = MemoryStore::new();
    let first = Served::new(&nats, memory.store()).await;
    let client = remote(&nats).await;
    let watch = tokio::spawn(async move { client.watch(b"k", None).await });
    // A second watch that fires shows that the first one, sent before it, has arrived.
    remote(&nats)
        .await
        .watch(b"k", Some("other".into()))
        .await
        .expect("it fires at once");
    first.stop().await;
    assert!(!watch.is_finished());
    let second = Served::new(&nats, memory.store()).await;
    set(&remote(&nats).await, b"k", b"1").await.expect("committed");
    watch.await.expect("the watcher does not panic").expect("it fires");
    second.stop().await;
}

/// Operations that must each be counted once, while nats-server and the process that serves the store restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_count_once_while_the_bus_and_the_store_are_restarted() {
    const CLIENTS: i64 = 8;
    let mut nats = NatsServer::start("");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open = || EmbeddedStore::open(directory.path()).expect("the store opens").store();
    let mut served = Served::new(&nats, open()).await;
    let finish = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let (store, finish) = (remote(&nats).await, Arc::clone(&finish));
        clients.push(tokio::spawn(async move {
            let mut operations = 0_i64;
            while !finish.load(Ordering::Relaxed) {
                let work = async |transaction: Transaction| transaction.atomic_add(b"count", 1);
                let key = format!("{client}/{operations}");
                // If the outcome is still unknown after many runs, ask again under the same key.
                while let Err(error) = store.run_once(key.as_bytes(), &work).await {
                    assert!(
                        matches!(error, StoreError::CommitUnknown | StoreError::Unavailable(_)),
                        "{error}"
                    );
                }
                operations += 1;
            }
            operations
        }));
    }
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        nats.restart();
        tokio::time::sleep(Duration::from_millis(300)).await;
        served.stop().await;
        served = Served::new(&nats, open()).await;
    }
    finish.store(true, Ordering::Relaxed);
    let mut operations = 0;
    for client in clients {
        operations += client.await.expect("no client fails");
    }
    let count = remote(&nats)
        .await
        .begin()
        .get(b"count")
        .await
        .expect("readable")
        .expect("something was counted");
    assert_eq!(count.as_ref(), operations.to_le_bytes());
    println!("{operations} operations counted once each");
    served.stop().await;
}
