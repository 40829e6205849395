//! Limits of size and age.

use std::time::Duration;

use futures::FutureExt;

use super::{Check, Subject, fresh, look, put};
use crate::limits::{KEY_BYTES, TRANSACTION_AGE, TRANSACTION_BYTES, VALUE_BYTES};
use crate::{CommitRequest, KeyRange, Mutation, RangeRead, ScanOrder, StoreError};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("sizes are limited", |subject| sizes(subject).boxed_local()),
    ("a commit is checked by the store itself", |subject| {
        checked_by_the_store(subject).boxed()
    }),
    ("the largest transaction commits", |subject| {
        largest(subject).boxed_local()
    }),
    ("an old transaction is refused", |subject| {
        too_old(subject).boxed_local()
    }),
    ("an old version is refused, or served as it was", |subject| {
        old_version(subject).boxed_local()
    }),
];

async fn sizes(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "sizes").await?;
    let longest = keys.key(vec![b'k'; KEY_BYTES - keys.key("").len()]);
    let too_long = [&longest[..], b"k"].concat();
    let largest = vec![7; VALUE_BYTES];
    let too_large = vec![7; VALUE_BYTES + 1];

    put(&subject.store, &[(&longest, &largest)]).await?;
    assert_eq!(look(&subject.store, &longest).await?.as_deref(), Some(&largest[..]));
    assert_eq!(
        subject
            .store
            .begin()
            .get_range(&KeyRange::single(&longest), 2, ScanOrder::Forward)
            .await?
            .rows
            .len(),
        1
    );

    let transaction = subject.store.begin();
    let long = Err(StoreError::KeyTooLarge { bytes: KEY_BYTES + 1 });
    assert_eq!(transaction.set(&too_long, b""), long);
    assert_eq!(transaction.clear(&too_long), long);
    assert_eq!(transaction.atomic_add(&too_long, 1), long);
    assert_eq!(transaction.get(&too_long).await.map(drop), long);
    assert_eq!(
        transaction.set_versionstamped_key(&longest[..KEY_BYTES - 9], b"", b""),
        Err(StoreError::KeyTooLarge { bytes: KEY_BYTES + 1 })
    );
    assert_eq!(
        transaction.set(&longest, &too_large),
        Err(StoreError::ValueTooLarge { bytes: VALUE_BYTES + 1 })
    );
    assert_eq!(
        transaction.set_versionstamped_value(&longest, &largest[..VALUE_BYTES - 13], b""),
        Err(StoreError::ValueTooLarge { bytes: VALUE_BYTES + 1 })
    );
    assert_eq!(transaction.set(b"\xff", b""), Err(StoreError::KeyReserved));
    assert_eq!(
        transaction.clear_range(&KeyRange::new(&b"b"[..], &b"a"[..])),
        Err(StoreError::RangeInverted)
    );

    for row in 0..TRANSACTION_BYTES / VALUE_BYTES {
        let key = keys.key(format!("{row}"));
        match transaction.set(&key, &largest) {
            Ok(()) => {}
            Err(StoreError::TransactionTooLarge { bytes }) => {
                assert!(bytes > TRANSACTION_BYTES);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    panic!("a transaction took more than {TRANSACTION_BYTES} B");
}

/// Bypasses the checks of [`crate::Transaction`], as another client might.
async fn checked_by_the_store(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "checked").await?;
    let set = |key: Vec<u8>, value: Vec<u8>| CommitRequest {
        mutations: vec![Mutation::Set {
            key: key.into(),
            value: value.into(),
        }],
        ..CommitRequest::default()
    };
    let backend = subject.store.backend();
    let too_long = keys.key(vec![b'k'; KEY_BYTES]);
    let bytes = too_long.len();
    assert_eq!(
        backend.commit(set(too_long, Vec::new())).await,
        Err(StoreError::KeyTooLarge { bytes })
    );
    assert_eq!(
        backend.commit(set(b"\xff/version".to_vec(), Vec::new())).await,
        Err(StoreError::KeyReserved)
    );
    let bytes = VALUE_BYTES + 1;
    assert_eq!(
        backend.commit(set(keys.key("k"), vec![0; bytes])).await,
        Err(StoreError::ValueTooLarge { bytes })
    );
    let inverted = KeyRange::new(&b"b"[..], &b"a"[..]);
    let clear = CommitRequest {
        mutations: vec![Mutation::ClearRange { range: inverted }],
        ..CommitRequest::default()
    };
    assert_eq!(backend.commit(clear).await, Err(StoreError::RangeInverted));
    Ok(())
}

async fn largest(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "largest").await?;
    let transaction = subject.store.begin();
    // Filled to the last byte: first with values of full size, then with the largest that still fits.
    let mut rows = 0;
    let mut value = VALUE_BYTES;
    loop {
        let key = keys.key(format!("{rows:03}"));
        match transaction.set(&key, &vec![1; value]) {
            Ok(()) => rows += 1,
            Err(StoreError::TransactionTooLarge { bytes }) => match value.checked_sub(bytes - TRANSACTION_BYTES) {
                Some(fits) => value = fits,
                None => break,
            },
            Err(error) => return Err(error),
        }
    }
    transaction.commit().await?;
    let mut found = 0;
    let mut range = keys.all();
    loop {
        let page = subject.store.begin().get_range(&range, 50, ScanOrder::Forward).await?;
        found += page.rows.len();
        match page.rows.last() {
            Some((last, _)) if page.more => range.begin = crate::key_after(last),
            _ => break,
        }
    }
    assert_eq!(found, rows);
    let transaction = subject.store.begin();
    transaction.clear_range(&keys.all())?;
    transaction.commit().await?;
    Ok(())
}

/// By the clock alone, even if the store still has the version.
async fn too_old(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "old").await?;
    let (a, b) = (keys.key("a"), keys.key("b"));
    let (reader, writer, blind) = (subject.store.begin(), subject.store.begin(), subject.store.begin());
    reader.get(&a).await?;
    writer.get(&a).await?;
    writer.set(&b, b"1")?;
    blind.set(&keys.key("blind"), b"1")?;
    put(&subject.store, &[(&b, b"0")]).await?;

    (subject.pass)(TRANSACTION_AGE + Duration::from_millis(300)).await;
    assert_eq!(reader.get(&b).await, Err(StoreError::TooOld));
    assert_eq!(
        reader.get_range(&keys.all(), 10, ScanOrder::Forward).await,
        Err(StoreError::TooOld)
    );
    assert_eq!(writer.commit().await, Err(StoreError::TooOld));
    assert_eq!(look(&subject.store, &b).await?, Some(b"0".to_vec()));
    blind.commit().await?;
    Ok(())
}

/// A client that ignores the clock. A store may or may not still have an old version; if it has, its data must be
/// correct.
async fn old_version(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "old-version").await?;
    let (read, written) = (keys.key("read"), keys.key("written"));
    put(&subject.store, &[(&read, b"then")]).await?;
    let version = subject.store.begin().read_version().await?;
    put(&subject.store, &[(&read, b"since")]).await?;
    (subject.pass)(TRANSACTION_AGE + Duration::from_millis(300)).await;
    // Commits made after time has passed cause a store to forget old versions.
    put(&subject.store, &[(&keys.key("other"), b"1")]).await?;

    let backend = subject.store.backend();
    match backend.get(version, &read).await {
        Err(StoreError::TooOld) => {}
        served => assert_eq!(
            served.map(|value| value.map(|value| value.to_vec())),
            Ok(Some(b"then".to_vec()))
        ),
    }
    let whole = RangeRead {
        range: keys.all(),
        limit: 10,
        order: ScanOrder::Forward,
    };
    match backend.get_range(version, whole).await {
        Err(StoreError::TooOld) => {}
        served => {
            let rows = served?.rows;
            assert_eq!(rows, [(read.clone().into(), "then".into())]);
        }
    }
    let commit = |depends: &[u8], value: &'static str| CommitRequest {
        read_version: Some(version),
        read_conflicts: vec![KeyRange::single(depends)],
        mutations: vec![Mutation::Set {
            key: written.clone().into(),
            value: value.into(),
        }],
        ..CommitRequest::default()
    };
    let refused = backend.commit(commit(&read, "stale")).await;
    assert!(
        matches!(refused, Err(StoreError::TooOld | StoreError::Conflict)),
        "it depends on what was written since: {refused:?}"
    );
    let expected = match backend.commit(commit(&keys.key("unwritten"), "late")).await {
        Err(StoreError::TooOld) => None,
        committed => committed.map(|_| Some(b"late".to_vec()))?,
    };
    assert_eq!(look(&subject.store, &written).await?, expected);
    Ok(())
}
