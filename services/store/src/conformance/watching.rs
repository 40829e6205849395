//! Watches.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{Either, select};

use super::{Check, Subject, fresh, put};
use crate::{ScanOrder, StoreError};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("a watch fires when its key changes", |subject| {
        fires(subject).boxed_local()
    }),
    ("a watch fires at once when its key has changed already", |subject| {
        fires_at_once(subject).boxed()
    }),
    ("a watch sleeps while its key stays", |subject| {
        sleeps(subject).boxed_local()
    }),
];

/// Time limit of a watch.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Time during which a watch must not fire.
const SILENCE: Duration = Duration::from_millis(200);

async fn fires(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "fires").await?;
    let key = keys.key("k");
    let mut seen: Option<Bytes> = None;
    for change in [
        "set",
        "set again",
        "added to",
        "stamped",
        "cleared",
        "set",
        "cleared in a range",
    ] {
        let mut watch = std::pin::pin!(subject.store.watch(&key, seen.clone()));
        // One poll sends it; the store may receive it only after the change.
        assert!(futures::poll!(watch.as_mut()).is_pending(), "{change}: fired too early");
        let transaction = subject.store.begin();
        match change {
            "added to" => transaction.atomic_add(&key, 1)?,
            "stamped" => transaction.set_versionstamped_value(&key, b"", b"")?,
            "cleared" => transaction.clear(&key)?,
            "cleared in a range" => transaction.clear_range(&keys.all())?,
            _ => transaction.set(&key, change.as_bytes())?,
        }
        transaction.commit().await?;
        match select(watch, (subject.pass)(TIMEOUT)).await {
            Either::Left((fired, _)) => fired?,
            Either::Right(_) => panic!("{change}: did not fire"),
        }
        seen = subject.store.begin().get(&key).await?;
    }
    Ok(())
}

async fn fires_at_once(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "fires-at-once").await?;
    let key = keys.key("k");
    put(&subject.store, &[(&key, b"2")]).await?;
    subject.store.watch(&key, Some(Bytes::from_static(b"1"))).await?;
    subject.store.watch(&key, None).await?;
    Ok(())
}

async fn sleeps(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "sleeps").await?;
    let key = keys.key("k");
    put(&subject.store, &[(&key, b"1")]).await?;
    let watch = std::pin::pin!(subject.store.watch(&key, Some(Bytes::from_static(b"1"))));
    let others = async {
        put(&subject.store, &[(&key, b"1"), (&keys.key("other"), b"1")]).await?;
        subject
            .store
            .begin()
            .get_range(&keys.all(), 10, ScanOrder::Forward)
            .await?;
        (subject.pass)(SILENCE).await;
        Ok::<(), StoreError>(())
    };
    match select(watch, std::pin::pin!(others)).await {
        Either::Left(_) => panic!("it fired, and the value is the same"),
        Either::Right((others, watch)) => {
            assert!(
                futures::poll!(watch).is_pending(),
                "it fired, and the value is the same"
            );
            others
        }
    }
}
