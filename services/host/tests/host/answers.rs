//! db's answers under overload.

use std::sync::Arc;
use std::time::Duration;

use annals_def::Schema;
use annals_host::db::{Definitions, REQUESTS_AT_ONCE, answer_all};
use annals_host::nats::{Bus, Server, ServerOptions};
use annals_store::{Backend, CommitRequest, Committed, MemoryStore, Page, RangeRead, Store, StoreError, Version};
use annals_wire::control::{self, AccountFound, CreateAccount, DbAsk, DbRequest, FindAccount};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

/// Upper bound for anything here on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Requests beyond those that are handled concurrently.
const TOO_MANY: usize = 40;

/// A store whose reads wait until they are released.
struct Held {
    inner: Arc<dyn Backend>,
    free: watch::Receiver<bool>,
}

impl Backend for Held {
    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.inner.wait(time)
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        let mut free = self.free.clone();
        async move {
            free.wait_for(|free| *free).await.unwrap();
            self.inner.read_version().await
        }
        .boxed()
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

#[tokio::test]
async fn requests_beyond_the_limit_are_refused_and_others_answered() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&ServerOptions::new(dir.path())).await.unwrap();
    let bus = Bus::connect(&server.url(), "test").await.unwrap();
    let (lets_go, free) = watch::channel(true);
    let store = Store::new(Held {
        inner: MemoryStore::new().store().backend(),
        free,
    });
    let schema = Arc::new(Schema::new(Vec::new(), Vec::new(), Vec::new()));
    let client = bus.client().clone();
    let (definitions, _changes) = Definitions::new(schema);
    tokio::spawn(async move { answer_all(&client, "db".to_owned(), &store, &definitions).await });
    let listening = async { while ask(bus.client(), 0).await.is_none() {} };
    timeout(TIMEOUT, listening).await.unwrap();

    lets_go.send_replace(false);
    let (answered, mut answers) = mpsc::channel(REQUESTS_AT_ONCE + TOO_MANY);
    for number in 0..REQUESTS_AT_ONCE + TOO_MANY {
        let (client, answered) = (bus.client().clone(), answered.clone());
        tokio::spawn(async move { answered.try_send(ask(&client, number).await.unwrap()) });
    }
    for _ in 0..TOO_MANY {
        let answer = timeout(TIMEOUT, answers.recv()).await.unwrap().unwrap();
        assert!(answer.failed.contains("try again"), "{answer:?}");
    }
    assert!(answers.try_recv().is_err(), "the others are being worked on");
    lets_go.send_replace(true);
    for _ in 0..REQUESTS_AT_ONCE {
        let answer = timeout(TIMEOUT, answers.recv()).await.unwrap().unwrap();
        assert_eq!(answer, AccountFound::default(), "there is no such account");
    }
    assert_eq!(ask(bus.client(), 0).await, Some(AccountFound::default()));
}

#[tokio::test]
async fn an_account_of_a_type_that_the_realm_does_not_have_is_not_created() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&ServerOptions::new(dir.path())).await.unwrap();
    let bus = Bus::connect(&server.url(), "test").await.unwrap();
    let store = MemoryStore::new().store();
    let (definitions, _changes) = Definitions::new(Arc::new(Schema::new(Vec::new(), Vec::new(), Vec::new())));
    let client = bus.client().clone();
    tokio::spawn(async move { answer_all(&client, "db".to_owned(), &store, &definitions).await });
    timeout(TIMEOUT, async { while ask(bus.client(), 0).await.is_none() {} })
        .await
        .unwrap();
    let create = DbAsk::CreateAccount(CreateAccount {
        name: find(0).to_vec(),
        password: "phc".to_owned(),
        entity_type: "Player".to_owned(),
    });
    let request = control::encode(&DbRequest { ask: Some(create) });
    let answer = bus.client().request("db", request.into()).await.unwrap();
    let answer: AccountFound = control::decode(&answer.payload).unwrap();
    assert_eq!(answer.database, 0);
    assert!(answer.failed.contains("no type Player"), "{answer:?}");
}

/// Requests an account; `None` if no service listens.
async fn ask(client: &async_nats::Client, number: usize) -> Option<AccountFound> {
    let answer = client.request("db", find(number)).await.ok()?;
    Some(control::decode(&answer.payload).unwrap())
}

fn find(number: usize) -> Bytes {
    let find = FindAccount {
        name: number.to_be_bytes().to_vec(),
    };
    control::encode(&DbRequest {
        ask: Some(DbAsk::FindAccount(find)),
    })
    .into()
}
