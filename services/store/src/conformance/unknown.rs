//! Commits whose answer is lost are applied exactly once.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt;

use super::{Check, Dice, Subject, fresh, look, put};
use crate::faults::{Call, Fault, FaultyStore};
use crate::{Once, Store, StoreError, Transaction};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("an unknown commit is resolved by its idempotency key", |subject| {
        resolved(subject).boxed()
    }),
    ("a run that fails for good leaves no other behind", |subject| {
        fenced(subject).boxed()
    }),
    ("an operation asked for again is not applied again", |subject| {
        asked_again(subject).boxed()
    }),
    ("under random faults each operation counts once", |subject| {
        random_faults(subject).boxed()
    }),
    ("a store that stays away is given up on", |subject| {
        given_up(subject).boxed()
    }),
];

/// The same store, with these faults for its commits, one after the other.
fn with_commit_faults(store: &Store, faults: Vec<Fault>) -> Store {
    let mut faults = faults.into_iter();
    FaultyStore::wrap(store, move |call| match call {
        Call::Commit => faults.next().unwrap_or(Fault::None),
        Call::Read | Call::Watch => Fault::None,
    })
}

async fn resolved(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "resolved").await?;
    // The faults of the commits, and the run that is applied in the end.
    let cases: [(&[Fault], u32); 8] = [
        (&[], 0),
        (&[Fault::AnswerLost], 0),
        (&[Fault::RequestLost], 1),
        (&[Fault::LandsBeforeNext], 0),
        (&[Fault::LandsAfterNext], 1),
        (&[Fault::RequestLost, Fault::AnswerLost], 1),
        (&[Fault::Conflict, Fault::Unavailable, Fault::AnswerLost], 2),
        (&[Fault::LandsAfterNext, Fault::RequestLost], 0),
    ];
    for (case, (faults, applied)) in cases.into_iter().enumerate() {
        let store = with_commit_faults(&subject.store, faults.to_vec());
        let counter = keys.key(format!("counter/{case}"));
        let runs = AtomicU32::new(0);
        let operation = async |transaction: Transaction| {
            transaction.atomic_add(&counter, 1)?;
            Ok::<u32, StoreError>(runs.fetch_add(1, Ordering::Relaxed))
        };
        let once = store
            .run_once(&keys.key(format!("operation/{case}")), &operation)
            .await?;
        let Once::Applied { value, committed } = once else {
            panic!("{faults:?}: the record of another run was found")
        };
        assert_eq!(
            value, applied,
            "{faults:?}: the value is that of the run that was applied"
        );
        assert!(committed.version > Default::default());
        assert_eq!(
            look(&subject.store, &counter).await?,
            Some(1_i64.to_le_bytes().to_vec()),
            "{faults:?}"
        );
    }
    Ok(())
}

/// The first run may be in flight when the second finds that the operation is no longer allowed.
async fn fenced(subject: &Subject) -> Result<(), StoreError> {
    #[derive(Debug, thiserror::Error)]
    enum Refusal {
        #[error(transparent)]
        Store(#[from] StoreError),
        #[error("not allowed")]
        NotAllowed,
    }
    for (fault, applied) in [
        (Fault::LandsAfterNext, false),
        (Fault::RequestLost, false),
        (Fault::AnswerLost, true),
    ] {
        let keys = fresh(subject, "fenced").await?;
        subject.store.forget_runs(crate::Version(u64::MAX), 1_000).await?;
        let store = with_commit_faults(&subject.store, vec![fault]);
        let runs = AtomicU32::new(0);
        let operation = async |transaction: Transaction| {
            if runs.fetch_add(1, Ordering::Relaxed) > 0 {
                return Err(Refusal::NotAllowed);
            }
            transaction.set(&keys.key("effect"), b"1")?;
            Ok(())
        };
        let result = store.run_once(&keys.key("operation"), &operation).await;
        // Delayed commits are applied with this commit at the latest.
        put(&store, &[(&keys.key("another"), b"1")]).await?;
        let effect = look(&subject.store, &keys.key("effect")).await?.is_some();
        match result {
            Ok(_) => assert!(applied && effect, "{fault:?}"),
            Err(Refusal::NotAllowed) => assert!(!applied && !effect, "{fault:?}: refused, and applied afterwards"),
            Err(Refusal::Store(error)) => return Err(error),
        }
    }
    Ok(())
}

async fn asked_again(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "again").await?;
    let counter = keys.key("counter");
    let operation = async |transaction: Transaction| transaction.atomic_add(&counter, 1);
    subject.store.forget_runs(crate::Version(u64::MAX), 1_000).await?;
    let first = subject.store.run_once(&keys.key("operation"), &operation).await?;
    let second = subject.store.run_once(&keys.key("operation"), &operation).await?;
    assert_eq!(
        second,
        Once::Earlier {
            committed: first.committed()
        }
    );
    assert_eq!(
        look(&subject.store, &counter).await?,
        Some(1_i64.to_le_bytes().to_vec())
    );

    let before = crate::Version(first.committed().version.0 - 1);
    assert_eq!(
        subject.store.forget_runs(before, 1_000).await?,
        0,
        "its record is younger"
    );
    assert_eq!(subject.store.forget_runs(first.committed().version, 1_000).await?, 1);
    let third = subject.store.run_once(&keys.key("operation"), &operation).await?;
    assert!(matches!(third, Once::Applied { .. }), "its record is forgotten");
    Ok(())
}

async fn random_faults(subject: &Subject) -> Result<(), StoreError> {
    const OPERATIONS: i64 = 60;
    let keys = fresh(subject, "random-faults").await?;
    subject.store.forget_runs(crate::Version(u64::MAX), 10_000).await?;
    let dice = Arc::new(Mutex::new(Dice::new(subject.seed)));
    let store = FaultyStore::wrap(&subject.store, move |call| {
        let mut dice = dice.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match (call, dice.below(8)) {
            (Call::Commit, 0) => Fault::AnswerLost,
            (Call::Commit, 1) => Fault::RequestLost,
            (Call::Commit, 2) => Fault::LandsBeforeNext,
            (Call::Commit, 3) => Fault::LandsAfterNext,
            (Call::Commit, 4) => Fault::Conflict,
            (_, 5) if dice.below(4) == 0 => Fault::Unavailable,
            _ => Fault::None,
        }
    });
    let (sum, counter) = (keys.key("sum"), keys.key("counter"));
    let operation = async |number: i64| -> Result<(), StoreError> {
        let work = async |transaction: Transaction| {
            transaction.atomic_add(&sum, number)?;
            // Read and write, so that runs of different operations conflict too.
            let count = transaction.get(&counter).await?.map_or(0, |value| value.len());
            transaction.set(&counter, &vec![1; count + 1])
        };
        store
            .run_once(&keys.key(format!("operation/{number}")), &work)
            .await
            .map(drop)
    };
    for first in (0..OPERATIONS).step_by(4) {
        futures::future::try_join_all((first..first + 4).map(&operation)).await?;
    }
    let expected = OPERATIONS * (OPERATIONS - 1) / 2;
    assert_eq!(look(&subject.store, &sum).await?, Some(expected.to_le_bytes().to_vec()));
    let count = look(&subject.store, &counter).await?.map_or(0, |value| value.len());
    assert_eq!(i64::try_from(count), Ok(OPERATIONS));
    Ok(())
}

async fn given_up(subject: &Subject) -> Result<(), StoreError> {
    let keys = fresh(subject, "given-up").await?;
    let store = FaultyStore::wrap(&subject.store, |_| Fault::None);
    let refused = async |transaction: Transaction| {
        transaction.set(&keys.key("k"), b"1")?;
        Err::<(), _>(StoreError::ClearTooWide)
    };
    let result = store.run_once(&keys.key("operation"), &refused).await;
    assert_eq!(
        result,
        Err(StoreError::ClearTooWide),
        "an error that running again cannot cure is passed on at once"
    );
    assert_eq!(look(&subject.store, &keys.key("k")).await?, None);
    Ok(())
}
