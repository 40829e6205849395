//! Which transactions must conflict, and which must not.

use futures::FutureExt;
use futures::future::try_join_all;

use super::{Check, Subject, fresh, look, put};
use crate::{CommitRequest, Committed, KeyRange, Mutation, ScanOrder, StoreError, Versionstamp};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("write skew aborts", |subject| write_skew(subject).boxed_local()),
    ("a lost update aborts", |subject| lost_update(subject).boxed_local()),
    ("a phantom conflicts", |subject| phantom(subject).boxed_local()),
    ("a limited scan conflicts with what it read only", |subject| {
        limited_scan(subject).boxed()
    }),
    ("clearing a range conflicts with reads in it", |subject| {
        cleared_range(subject).boxed()
    }),
    ("snapshot reads do not conflict", |subject| {
        snapshot_reads(subject).boxed()
    }),
    ("explicit conflict ranges count", |subject| {
        explicit_conflicts(subject).boxed()
    }),
    ("what reads or writes alone does not conflict", |subject| {
        no_needless_conflict(subject).boxed()
    }),
    ("atomic adds add up", |subject| atomic_adds(subject).boxed_local()),
    ("reading a counter conflicts with adding to it", |subject| {
        counter_read(subject).boxed()
    }),
    ("versionstamps are unique and in order", |subject| {
        versionstamps(subject).boxed()
    }),
    ("what changes nothing commits without a version of its own", |subject| {
        nothing_changed(subject).boxed()
    }),
    ("what will hold a versionstamp cannot be read yet", |subject| {
        unreadable(subject).boxed()
    }),
    ("a pipelined transaction reads what is submitted", |subject| {
        pipelined(subject).boxed()
    }),
];

/// One caller: nothing else writes, so nothing conflicts.
async fn pipelined(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "pipelined").await?;
    let key = keys.key("number");
    let mut last = None;
    for number in 0_u8..50 {
        let transaction = subject.store.begin_pipelined();
        let before = number.checked_sub(1).map(|before| vec![before]);
        assert_eq!(transaction.get(&key).await?.map(|value| value.to_vec()), before);
        transaction.set(&key, &[number])?;
        last = Some(transaction.submit().await?);
    }
    let mut last = last.expect("invariant: the loop has a first round");
    let committed = last.committed().await?;
    assert_eq!(last.committed().await?, committed, "the outcome stays");
    assert_eq!(look(&subject.store, &key).await?, Some(vec![49]), "it is durable");
    Ok(())
}

/// Both `a` and `b` are on; each transaction may clear one of them because the other stays.
async fn write_skew(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "skew").await?;
    let (a, b) = (keys.key("a"), keys.key("b"));
    put(&subject.store, &[(&a, b"on"), (&b, b"on")]).await?;
    let (one, two) = (subject.store.begin(), subject.store.begin());
    for transaction in [&one, &two] {
        assert_eq!(transaction.get(&a).await?.as_deref(), Some(&b"on"[..]));
        assert_eq!(transaction.get(&b).await?.as_deref(), Some(&b"on"[..]));
    }
    one.clear(&a)?;
    two.clear(&b)?;
    one.commit().await?;
    assert_eq!(two.commit().await, Err(StoreError::Conflict));
    assert_eq!(
        look(&subject.store, &b).await?,
        Some(b"on".to_vec()),
        "of an aborted transaction nothing is applied"
    );
    Ok(())
}

async fn lost_update(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "update").await?;
    let a = keys.key("a");
    let (one, two) = (subject.store.begin(), subject.store.begin());
    for transaction in [&one, &two] {
        assert_eq!(transaction.get(&a).await?, None);
        transaction.set(&a, b"1")?;
    }
    two.commit().await?;
    assert_eq!(one.commit().await, Err(StoreError::Conflict));
    Ok(())
}

async fn phantom(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "phantom").await?;
    let counter = subject.store.begin();
    assert!(
        counter
            .get_range(&keys.range("a", "m"), 100, ScanOrder::Forward)
            .await?
            .rows
            .is_empty()
    );
    counter.set(&keys.key("z"), b"none")?;
    put(&subject.store, &[(&keys.key("b"), b"here")]).await?;
    assert_eq!(counter.commit().await, Err(StoreError::Conflict));

    let counter = subject.store.begin();
    assert_eq!(
        counter
            .get_range(&keys.range("a", "m"), 100, ScanOrder::Forward)
            .await?
            .rows
            .len(),
        1
    );
    counter.set(&keys.key("z"), b"one")?;
    put(
        &subject.store,
        &[(&keys.key("m"), b"beyond"), (&keys.key("A"), b"before")],
    )
    .await?;
    counter.commit().await?;
    Ok(())
}

async fn limited_scan(subject: &Subject) -> Result<(), StoreError> {
    let cases = [
        // Order, key written meanwhile, whether a read of two rows of b d f h covers it.
        (ScanOrder::Forward, "a", true),
        (ScanOrder::Forward, "b", true),
        (ScanOrder::Forward, "c", true),
        (ScanOrder::Forward, "d", true),
        (ScanOrder::Forward, "e", false),
        (ScanOrder::Forward, "h", false),
        (ScanOrder::Reverse, "i", true),
        (ScanOrder::Reverse, "h", true),
        (ScanOrder::Reverse, "g", true),
        (ScanOrder::Reverse, "f", true),
        (ScanOrder::Reverse, "e", false),
        (ScanOrder::Reverse, "a", false),
    ];
    for (order, written, conflicts) in cases {
        let keys = fresh(subject, "limited").await?;
        let [b, d, f, h] = ["b", "d", "f", "h"].map(|name| keys.key(name));
        put(&subject.store, &[(&b, b"1"), (&d, b"1"), (&f, b"1"), (&h, b"1")]).await?;
        let scan = subject.store.begin();
        let page = scan.get_range(&keys.all(), 2, order).await?;
        assert_eq!((page.rows.len(), page.more), (2, true));
        scan.set(&keys.key("result"), b"1")?;
        put(&subject.store, &[(&keys.key(written), b"2")]).await?;
        let expected = if conflicts { Err(StoreError::Conflict) } else { Ok(()) };
        assert_eq!(
            scan.commit().await.map(drop),
            expected,
            "{order:?} scan of two, {written} written"
        );
    }
    Ok(())
}

async fn cleared_range(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "cleared").await?;
    for (read, conflicts) in [("b", true), ("c", false)] {
        let reader = subject.store.begin();
        assert_eq!(reader.get(&keys.key(read)).await?, None);
        reader.set(&keys.key("result"), b"1")?;
        let clearer = subject.store.begin();
        clearer.clear_range(&keys.range("a", "c"))?;
        clearer.commit().await?;
        let expected = if conflicts { Err(StoreError::Conflict) } else { Ok(()) };
        assert_eq!(
            reader.commit().await.map(drop),
            expected,
            "{read} read while a to c were cleared"
        );
    }
    Ok(())
}

async fn snapshot_reads(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "snapshot").await?;
    let a = keys.key("a");
    put(&subject.store, &[(&a, b"1")]).await?;
    let reader = subject.store.begin();
    assert_eq!(reader.snapshot().get(&a).await?.as_deref(), Some(&b"1"[..]));
    assert_eq!(
        reader
            .snapshot()
            .get_range(&keys.all(), 10, ScanOrder::Forward)
            .await?
            .rows
            .len(),
        1
    );
    reader.set(&keys.key("own"), b"1")?;
    assert_eq!(
        reader
            .snapshot()
            .get_range(&keys.all(), 10, ScanOrder::Forward)
            .await?
            .rows
            .len(),
        2,
        "own writes are seen"
    );
    put(&subject.store, &[(&a, b"2"), (&keys.key("b"), b"2")]).await?;
    assert_eq!(
        reader.snapshot().get(&a).await?.as_deref(),
        Some(&b"1"[..]),
        "at the same version"
    );
    reader.commit().await?;
    Ok(())
}

async fn explicit_conflicts(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "explicit").await?;
    let guarded = KeyRange::single(&keys.key("guarded"));

    // A snapshot read with an explicit conflict range.
    let reader = subject.store.begin();
    reader.snapshot().get(&guarded.begin).await?;
    reader.add_read_conflict(&guarded)?;
    reader.set(&keys.key("result"), b"1")?;
    put(&subject.store, &[(&guarded.begin, b"1")]).await?;
    assert_eq!(reader.commit().await, Err(StoreError::Conflict));

    // A write that changes nothing.
    let reader = subject.store.begin();
    reader.get(&guarded.begin).await?;
    reader.set(&keys.key("result"), b"1")?;
    let writer = subject.store.begin();
    writer.add_write_conflict(&guarded)?;
    writer.commit().await?;
    assert_eq!(reader.commit().await, Err(StoreError::Conflict));
    assert_eq!(look(&subject.store, &guarded.begin).await?, Some(b"1".to_vec()));
    Ok(())
}

async fn no_needless_conflict(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "needless").await?;
    let (a, b) = (keys.key("a"), keys.key("b"));
    let (reader, blind, owner) = (subject.store.begin(), subject.store.begin(), subject.store.begin());
    assert_eq!(reader.get(&a).await?, None);
    blind.set(&a, b"blind")?;
    owner.set(&b, b"own")?;
    assert_eq!(owner.get(&b).await?.as_deref(), Some(&b"own"[..]));
    put(&subject.store, &[(&a, b"1"), (&b, b"1")]).await?;
    reader.commit().await?;
    blind.commit().await?;
    owner.commit().await?;
    assert_eq!(look(&subject.store, &a).await?, Some(b"blind".to_vec()));
    assert_eq!(look(&subject.store, &b).await?, Some(b"own".to_vec()));
    Ok(())
}

async fn atomic_adds(subject: &Subject) -> Result<(), StoreError> {
    const WRITERS: i64 = 16;
    const ADDS: i64 = 10;
    let keys = fresh(subject, "adds").await?;
    let (sum, wrapped) = (keys.key("sum"), keys.key("wrapped"));
    put(&subject.store, &[(&wrapped, &u64::MAX.to_le_bytes())]).await?;
    let writer = async |writer: i64| -> Result<(), StoreError> {
        for _ in 0..ADDS {
            let transaction = subject.store.begin();
            transaction.atomic_add(&sum, writer)?;
            transaction.atomic_add(&wrapped, 1)?;
            transaction.commit().await?;
        }
        Ok(())
    };
    try_join_all((0..WRITERS).map(&writer)).await?;
    let expected = ADDS * WRITERS * (WRITERS - 1) / 2;
    assert_eq!(look(&subject.store, &sum).await?, Some(expected.to_le_bytes().to_vec()));
    assert_eq!(
        look(&subject.store, &wrapped).await?,
        Some((ADDS * WRITERS - 1).to_le_bytes().to_vec())
    );
    Ok(())
}

async fn counter_read(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "counter").await?;
    let counter = keys.key("counter");
    let reader = subject.store.begin();
    reader.atomic_add(&counter, 1)?;
    assert_eq!(reader.get(&counter).await?.as_deref(), Some(&1_i64.to_le_bytes()[..]));
    let adder = subject.store.begin();
    adder.atomic_add(&counter, 1)?;
    adder.commit().await?;
    assert_eq!(reader.commit().await, Err(StoreError::Conflict));
    Ok(())
}

async fn versionstamps(subject: &Subject) -> Result<(), StoreError> {
    const WRITERS: usize = 8;
    const STAMPS: usize = 10;
    let keys = fresh(subject, "stamps").await?;
    let prefix = keys.key("log/");
    let writer = async |writer: usize| -> Result<Vec<Versionstamp>, StoreError> {
        let mut stamps = Vec::new();
        for _ in 0..STAMPS {
            let transaction = subject.store.begin();
            transaction.set_versionstamped_key(&prefix, b"/end", b"entry")?;
            transaction.set_versionstamped_value(&keys.key(format!("last/{writer}")), b"<", b">")?;
            let committed = transaction.commit().await?;
            assert_eq!(committed.stamp.version(), committed.version);
            stamps.push(committed.stamp);
        }
        assert!(
            stamps.is_sorted_by(|one, two| one < two),
            "each later than what was acknowledged before: {stamps:?}"
        );
        let last = look(&subject.store, &keys.key(format!("last/{writer}"))).await?;
        assert_eq!(last, Some([b"<", &stamps[STAMPS - 1].0[..], b">"].concat()));
        Ok(stamps)
    };
    let mut stamps: Vec<Versionstamp> = try_join_all((0..WRITERS).map(&writer)).await?.concat();
    stamps.sort_unstable();
    let expected: Vec<Vec<u8>> = stamps
        .iter()
        .map(|stamp| [&prefix, &stamp.0[..], b"/end"].concat())
        .collect();
    let page = subject
        .store
        .begin()
        .get_range(&KeyRange::prefix(&prefix), 1_000, ScanOrder::Forward)
        .await?;
    let found: Vec<Vec<u8>> = page.rows.into_iter().map(|(key, _)| key.to_vec()).collect();
    assert_eq!(
        found, expected,
        "the keys are those of the stamps given, each once, in the order of commits"
    );
    Ok(())
}

async fn nothing_changed(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "nothing").await?;
    let (a, b) = (keys.key("a"), keys.key("b"));
    let none = keys.range("n", "n");
    put(&subject.store, &[(&a, b"1")]).await?;

    let transaction = subject.store.begin();
    transaction.get(&a).await?;
    transaction.clear_range(&none)?;
    transaction.add_write_conflict(&none)?;
    let version = transaction.read_version().await?;
    put(&subject.store, &[(&a, b"2")]).await?;
    assert_eq!(transaction.commit().await?, Committed::nothing(version));

    // Bypasses the transaction, as another client might: it read data that was written since, and depends on nothing.
    let backend = subject.store.backend();
    let nothing = CommitRequest {
        read_version: Some(version),
        read_conflicts: vec![KeyRange::single(&a)],
        write_conflicts: vec![none.clone()],
        mutations: vec![Mutation::ClearRange { range: none.clone() }],
    };
    assert_eq!(backend.commit(nothing.clone()).await?, Committed::nothing(version));
    let blind = CommitRequest {
        read_version: None,
        read_conflicts: Vec::new(),
        ..nothing
    };
    let committed = backend.commit(blind).await?;
    assert_eq!(committed, Committed::nothing(committed.version));
    assert!(committed.version > version, "it is no older than what was acknowledged");

    // Next to a real change, it has no effect.
    let transaction = subject.store.begin();
    transaction.clear_range(&none)?;
    transaction.set(&b, b"1")?;
    transaction.clear_range(&keys.range("b", "b"))?;
    let committed = transaction.commit().await?;
    assert_ne!(committed.stamp, Versionstamp::default());
    assert_eq!(committed.stamp.version(), committed.version);
    assert_eq!(look(&subject.store, &b).await?, Some(b"1".to_vec()));
    Ok(())
}

async fn unreadable(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "unreadable").await?;
    let transaction = subject.store.begin();
    transaction.set_versionstamped_value(&keys.key("value"), b"", b"")?;
    transaction.set_versionstamped_key(&keys.key("log/"), b"", b"")?;
    assert_eq!(transaction.get(&keys.key("value")).await, Err(StoreError::Unreadable));
    assert_eq!(transaction.get(&keys.key("log/x")).await, Err(StoreError::Unreadable));
    assert_eq!(
        transaction.get_range(&keys.all(), 10, ScanOrder::Forward).await,
        Err(StoreError::Unreadable)
    );
    assert_eq!(transaction.get(&keys.key("other")).await?, None);
    transaction.commit().await?;
    assert_eq!(
        subject
            .store
            .begin()
            .get_range(&keys.all(), 10, ScanOrder::Forward)
            .await?
            .rows
            .len(),
        2
    );
    Ok(())
}
