//! Pages while the archive is slow to read, or grows faster than questions end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use annals_store::{
    Backend, CommitRequest, Committed, Page, RangeRead, Store, StoreError, Version, layout::director::realm_key,
};
use axum::http::StatusCode;
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use tokio::sync::watch;

use crate::{
    archive::{Console, Signed},
    visitor::Visitor,
};

/// Which reads are held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    /// The next read of the realm's record, which a question makes after it has the index. `has_held` reports it.
    OneQuestion,
    Everything,
}

/// A store whose reads can be held up.
struct Gate {
    inner: Arc<dyn Backend>,
    held: watch::Receiver<Held>,
    /// Whether a question is or was held up.
    has_held: Arc<AtomicBool>,
}

impl Gate {
    async fn pass(&self, key: &[u8]) {
        let is_question = key == realm_key() && *self.held.borrow() == Held::OneQuestion;
        if is_question && !self.has_held.swap(true, Ordering::SeqCst) {
            let _ = self.held.clone().wait_for(|held| *held == Held::Nothing).await;
        }
        let _ = self.held.clone().wait_for(|held| *held != Held::Everything).await;
    }
}

impl Backend for Gate {
    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn wait(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.inner.wait(time)
    }

    fn read_version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.inner.read_version()
    }

    fn get<'a>(&'a self, at: Version, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        async move {
            self.pass(key).await;
            self.inner.get(at, key).await
        }
        .boxed()
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

/// A wrapper around a store, the control of what it holds up, and whether it has.
fn gated(store: &Store) -> (Store, watch::Sender<Held>, Arc<AtomicBool>) {
    let (hold, held) = watch::channel(Held::Nothing);
    let has_held = Arc::new(AtomicBool::new(false));
    let gate = Gate {
        inner: store.backend(),
        held,
        has_held: Arc::clone(&has_held),
    };
    (Store::new(gate), hold, has_held)
}

#[tokio::test]
async fn batches_not_indexed_are_counted() {
    let mut signed = Signed::play(610, 80).await;
    let (store, hold, has_held) = gated(&signed.game.store);
    let console = Console::over(&store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let not_yet = "not indexed yet";
    let before = iris.get("/item/1").await;
    assert!(before.status == StatusCode::OK && !before.text().contains(not_yet));

    // A slow question delays taking in new batches.
    hold.send_replace(Held::OneQuestion);
    let mut other = iris.clone();
    let slow = tokio::spawn(async move { other.get("/item/1").await });
    while !has_held.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let known = signed.game.leaves.len();
    signed.game.play_on(20).await;
    let newer = signed.game.leaves.len() - known;
    assert!(newer > 1);
    let said = format!("{newer} newer batches are not indexed yet");
    for (address, status) in [
        ("/item/1", StatusCode::OK),
        ("/account/100", StatusCode::OK),
        ("/search?q=gandalf", StatusCode::NOT_FOUND),
    ] {
        let shown = iris.get(address).await;
        assert_eq!(shown.status, status, "{address}");
        assert!(shown.text().contains(&said), "{address}: {}", shown.text());
    }
    hold.send_replace(Held::Nothing);
    let slow = slow.await.expect("it does not panic");
    assert!(
        slow.status == StatusCode::OK && !slow.text().contains(not_yet),
        "all was taken in when it was asked"
    );
    let after = iris.get("/item/1").await;
    assert!(after.status == StatusCode::OK && !after.text().contains(not_yet));
}

#[tokio::test]
async fn a_busy_page_reloads_itself_only_after_a_get() {
    let signed = Signed::play(620, 60).await;
    let (store, hold, _) = gated(&signed.game.store);
    let console = Console::over(&store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let form = iris.get("/").await.field("form");
    hold.send_replace(Held::Everything);
    let mut other = iris.clone();
    let (got, given) = tokio::join!(
        iris.get("/item/1"),
        other.give("/verification", &form, ("pasted", "hello"))
    );
    for (shown, again, said) in [
        (&got, "2", "This page reloads automatically."),
        (&given, "", "go back, and send it again in a moment."),
    ] {
        assert_eq!(shown.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(shown.header("refresh"), again);
        assert!(
            shown.text().contains("Being verified") && shown.text().contains(said),
            "{}",
            shown.text()
        );
    }
    hold.send_replace(Held::Nothing);
    assert_eq!(iris.get("/item/1").await.status, StatusCode::OK);
}
