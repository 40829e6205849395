//! Reads of data written by others and by the transaction itself.

use futures::FutureExt;

use super::{Check, Keys, Subject, fresh, look, put};
use crate::limits::{PAGE_BYTES, VALUE_BYTES};
use crate::{KeyRange, Page, ScanOrder, StoreError, Transaction};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("what is committed is read", |subject| {
        committed_is_read(subject).boxed()
    }),
    ("what is not committed is not read", |subject| {
        uncommitted_is_not_read(subject).boxed()
    }),
    ("a transaction reads at one version", |subject| {
        reads_at_one_version(subject).boxed()
    }),
    ("a transaction reads its own writes", |subject| {
        reads_own_writes(subject).boxed()
    }),
    ("ranges hold the transaction's own writes", |subject| {
        ranges_hold_own_writes(subject).boxed()
    }),
    ("ranges of many pages are whole", |subject| {
        ranges_of_many_pages(subject).boxed()
    }),
    ("a committed transaction is finished", |subject| {
        finished(subject).boxed()
    }),
];

async fn committed_is_read(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "committed").await?;
    let (a, b) = (keys.key("a"), keys.key("b"));
    assert_eq!(look(&subject.store, &a).await?, None);
    put(&subject.store, &[(&a, b"1"), (&b, b"")]).await?;
    assert_eq!(look(&subject.store, &a).await?, Some(b"1".to_vec()));
    assert_eq!(
        look(&subject.store, &b).await?,
        Some(Vec::new()),
        "an empty value is a value"
    );

    let transaction = subject.store.begin();
    transaction.clear(&a)?;
    transaction.set(&b, b"2")?;
    transaction.set(&b, b"3")?;
    transaction.commit().await?;
    assert_eq!(look(&subject.store, &a).await?, None);
    assert_eq!(
        look(&subject.store, &b).await?,
        Some(b"3".to_vec()),
        "mutations apply in order"
    );

    let transaction = subject.store.begin();
    transaction.set(&a, b"in the range")?;
    transaction.clear_range(&keys.range("a", "b"))?;
    transaction.commit().await?;
    assert_eq!(
        look(&subject.store, &a).await?,
        None,
        "a range clears what was set before it"
    );
    assert_eq!(
        look(&subject.store, &b).await?,
        Some(b"3".to_vec()),
        "the end of a range stays"
    );
    Ok(())
}

async fn uncommitted_is_not_read(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "uncommitted").await?;
    let a = keys.key("a");
    let transaction = subject.store.begin();
    transaction.set(&a, b"1")?;
    assert_eq!(look(&subject.store, &a).await?, None);
    drop(transaction);
    assert_eq!(look(&subject.store, &a).await?, None);
    Ok(())
}

async fn reads_at_one_version(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "one-version").await?;
    let (a, b) = (keys.key("a"), keys.key("b"));
    put(&subject.store, &[(&a, b"1"), (&b, b"1")]).await?;
    let reader = subject.store.begin();
    assert_eq!(reader.get(&a).await?.as_deref(), Some(&b"1"[..]));
    put(&subject.store, &[(&a, b"2"), (&b, b"2"), (&keys.key("c"), b"2")]).await?;
    assert_eq!(
        reader.get(&b).await?.as_deref(),
        Some(&b"1"[..]),
        "as it was when the transaction first read"
    );
    assert_eq!(
        names(&keys, &reader.get_range(&keys.all(), 10, ScanOrder::Forward).await?),
        "a=1 b=1"
    );
    let committed = reader.commit().await?;
    assert_eq!(committed.stamp, Default::default(), "it wrote nothing");
    Ok(())
}

async fn reads_own_writes(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "own").await?;
    let key = |name| keys.key(name);
    put(
        &subject.store,
        &[
            (&key("n"), &5_i64.to_le_bytes()),
            (&key("gone"), b"1"),
            (&key("ranged"), b"1"),
        ],
    )
    .await?;

    let transaction = subject.store.begin();
    transaction.set(&key("a"), b"1")?;
    transaction.clear(&key("gone"))?;
    transaction.clear_range(&keys.range("r", "s"))?;
    transaction.atomic_add(&key("n"), -7)?;
    transaction.atomic_add(&key("n"), 1)?;
    transaction.atomic_add(&key("m"), 3)?;
    transaction.set(&key("k"), &1_u64.to_le_bytes())?;
    transaction.atomic_add(&key("k"), 1)?;
    transaction.atomic_add(&key("ranged"), 4)?;

    let expected: [(&str, Option<&[u8]>); 7] = [
        ("a", Some(b"1")),
        ("gone", None),
        ("n", Some(&(-1_i64).to_le_bytes())),
        ("m", Some(&3_i64.to_le_bytes())),
        ("k", Some(&2_i64.to_le_bytes())),
        ("ranged", Some(&4_i64.to_le_bytes())),
        ("rest", None),
    ];
    for (name, value) in expected {
        assert_eq!(
            transaction.get(&key(name)).await?.as_deref(),
            value,
            "{name} before the commit"
        );
    }
    transaction.commit().await?;
    for (name, value) in expected {
        assert_eq!(
            look(&subject.store, &key(name)).await?.as_deref(),
            value,
            "{name} after the commit"
        );
    }
    Ok(())
}

async fn ranges_hold_own_writes(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "own-ranges").await?;
    let key = |name: &str| keys.key(name);
    let stored: Vec<Vec<u8>> = ["a", "b", "c", "d", "e", "f"].map(&key).to_vec();
    let rows: Vec<(&[u8], &[u8])> = stored.iter().map(|key| (key.as_slice(), &b"s"[..])).collect();
    put(&subject.store, &rows).await?;

    let transaction = subject.store.begin();
    transaction.clear(&key("b"))?;
    transaction.clear_range(&keys.range("d", "f"))?;
    transaction.set(&key("e"), b"o")?;
    transaction.set(&key("g"), b"o")?;
    let scan = async |range: KeyRange, limit, order| -> Result<(String, bool), StoreError> {
        let page = transaction.get_range(&range, limit, order).await?;
        Ok((names(&keys, &page), page.more))
    };
    assert_eq!(
        scan(keys.all(), 10, ScanOrder::Forward).await?,
        ("a=s c=s e=o f=s g=o".into(), false)
    );
    assert_eq!(
        scan(keys.all(), 10, ScanOrder::Reverse).await?,
        ("g=o f=s e=o c=s a=s".into(), false)
    );
    assert_eq!(scan(keys.all(), 2, ScanOrder::Forward).await?, ("a=s c=s".into(), true));
    assert_eq!(
        scan(keys.all(), 3, ScanOrder::Reverse).await?,
        ("g=o f=s e=o".into(), true)
    );
    assert_eq!(
        scan(keys.range("b", "e"), 10, ScanOrder::Forward).await?,
        ("c=s".into(), false)
    );
    assert_eq!(
        scan(keys.range("d", "e"), 1, ScanOrder::Reverse).await?,
        (String::new(), false)
    );
    transaction.commit().await?;
    assert_eq!(scan_all(&keys, &subject.store.begin()).await?, "a=s c=s e=o f=s g=o");
    Ok(())
}

/// More rows than fit on a page of the store, most of them cleared or overwritten by the transaction itself.
async fn ranges_of_many_pages(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "pages").await?;
    let rows = 3 * PAGE_BYTES / VALUE_BYTES + 1;
    let key = |row: usize| keys.key(format!("{row:03}"));
    let transaction = subject.store.begin();
    for row in 0..rows {
        transaction.set(&key(row), &vec![u8::try_from(row).unwrap_or_default(); VALUE_BYTES])?;
    }
    transaction.commit().await?;

    let whole = subject
        .store
        .begin()
        .get_range(&keys.all(), 1_000, ScanOrder::Forward)
        .await?;
    assert_eq!((whole.rows.len(), whole.more), (rows, false));
    assert!(whole.rows.iter().enumerate().all(|(row, (stored, value))| {
        stored[..] == key(row) && value.len() == VALUE_BYTES && value.iter().all(|&byte| usize::from(byte) == row)
    }));

    let transaction = subject.store.begin();
    transaction.clear_range(&KeyRange::new(key(1), key(rows - 1)))?;
    let mut ends = transaction.get_range(&keys.all(), 1_000, ScanOrder::Reverse).await?;
    assert_eq!(ends.rows.len(), 2, "all but the ends are cleared, over several pages");
    ends.rows.reverse();
    assert_eq!(
        (&ends.rows[0].0[..], &ends.rows[1].0[..]),
        (&key(0)[..], &key(rows - 1)[..])
    );
    Ok(())
}

async fn finished(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "finished").await?;
    let transaction = subject.store.begin();
    transaction.set(&keys.key("a"), b"1")?;
    transaction.commit().await?;
    assert_eq!(transaction.set(&keys.key("b"), b"1"), Err(StoreError::Finished));
    assert_eq!(transaction.commit().await, Err(StoreError::Finished));
    Ok(())
}

async fn scan_all(keys: &Keys, transaction: &Transaction) -> Result<String, StoreError> {
    Ok(names(
        keys,
        &transaction.get_range(&keys.all(), 1_000, ScanOrder::Forward).await?,
    ))
}

/// A page as `key=value key=value`.
fn names(keys: &Keys, page: &Page) -> String {
    let rows = page
        .rows
        .iter()
        .map(|(key, value)| format!("{}={}", keys.name(key), String::from_utf8_lossy(value)));
    rows.collect::<Vec<_>>().join(" ")
}
