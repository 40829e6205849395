//! Comparison of a realm's logs with its store (rule F17): before db serves the store, and for the command that adopts
//! a log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use annals_db::{
    RecoveryError,
    comparison::{ComparedLog, Comparison, Mismatch, compare_log},
};
use annals_director::read_owners;
use annals_ids::{OwnerId, Shard};
use annals_store::{Store, StoreError};
use annals_wire::{Subjects, control::Inspected};
use futures::{StreamExt, TryStreamExt, stream};
use thiserror::Error;
use tokio::time::Instant;

use crate::{
    log::{History, ReadError, Reading},
    nats::Bus,
    process::{AskError, request},
    telemetry::Chain,
};

/// Maximum logs read concurrently: each is in memory as a whole.
const AT_ONCE: usize = 4;

/// Maximum owners asked concurrently whether a process holds them.
const ASKED_AT_ONCE: usize = 64;

/// Maximum reads of a log that loses its tail meanwhile, or whose server is busy or has no leader.
const READINGS: usize = 10;

/// Pause between two reads.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Report interval while logs are waited for.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// The store and the logs do not belong together, or could not be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// They do not belong together.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The stream could not be read.
    #[error("the log could not be compared with the store: a log was not read")]
    Log(#[from] ReadError),
    /// The store could not be read.
    #[error("the log could not be compared with the store: the store was not read")]
    Store(#[from] StoreError),
    /// The archive could not be read.
    #[error("the log could not be compared with the store: the archive was not read")]
    Archive(#[from] RecoveryError),
}

/// Compares all logs of some shards of a realm with its store, of which nothing else may write these shards meanwhile.
///
/// # Errors
/// When the store or a log cannot be read.
pub async fn compare(logs: &BTreeMap<Shard, History>, store: &Store) -> Result<Comparison, CompareError> {
    let recorded = read_owners(store).await?.into_iter();
    let mut owners: BTreeSet<(Shard, OwnerId)> = recorded.map(|(owner, record)| (record.shard, owner)).collect();
    for (shard, history) in logs {
        owners.extend(listed(history).await?.into_iter().map(|owner| (*shard, owner)));
    }
    let owners = owners
        .into_iter()
        .filter_map(|(shard, owner)| Some((logs.get(&shard)?, owner)));
    let compared = stream::iter(owners)
        .map(|(history, owner)| compare_one(history, store, owner))
        .buffer_unordered(AT_ONCE);
    let mut compared = std::pin::pin!(compared);
    let mut comparison = Comparison::default();
    while let Some((log, _)) = compared.try_next().await? {
        comparison.add(log);
    }
    Ok(comparison)
}

/// Compares one log with the store. Also returns what was read of the log.
///
/// # Errors
/// When the store or the log cannot be read.
pub async fn compare_one(
    history: &History,
    store: &Store,
    owner: OwnerId,
) -> Result<(ComparedLog, Reading), CompareError> {
    let reading = again(async || {
        let mut reading = Reading::default();
        history.read(owner, &mut reading).await.map(|()| reading)
    })
    .await?;
    let log = compare_log(store, history.shard(), owner, &reading.batches).await?;
    Ok((log, reading))
}

/// The owners that have batches in the stream.
async fn listed(history: &History) -> Result<BTreeSet<OwnerId>, ReadError> {
    again(async || history.owners().await).await
}

/// Reads, with retries.
async fn again<T>(read: impl AsyncFn() -> Result<T, ReadError>) -> Result<T, ReadError> {
    for _ in 1..READINGS {
        if let Ok(read) = read().await {
            return Ok(read);
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
    read().await
}

/// Checks that the store belongs to the logs, before anything is granted from it. Waits for logs that cannot be read.
///
/// # Errors
/// When it does not, or the comparison fails.
pub(crate) async fn check(
    (bus, subjects): (&Bus, &Subjects),
    logs: &BTreeMap<Shard, History>,
    store: &Store,
) -> Result<(), CompareError> {
    let mut waiting: Option<Instant> = None;
    let comparison = loop {
        match compare(logs, store).await {
            Err(CompareError::Log(error)) => {
                if waiting.is_none_or(|said| said.elapsed() >= SAID_EVERY) {
                    tracing::warn!(
                        error = %Chain(&error),
                        "cannot read the logs; the store is served once they can be read"
                    );
                    waiting = Some(Instant::now());
                }
            }
            compared => break compared?,
        }
    };
    let Some(mismatch) = comparison.mismatch(false) else {
        return Ok(());
    };
    if is_any_held(bus, subjects, store).await? {
        return match comparison.mismatch(true) {
            Some(mismatch) => Err(mismatch.into()),
            None => {
                tracing::warn!(%mismatch, "logs lack batches; the processes that hold them refill them");
                Ok(())
            }
        };
    }
    Err(mismatch.into())
}

/// Whether a process holds an owner. A process that does not answer in time counts as holding it.
///
/// # Errors
/// When the store cannot be read.
pub async fn is_any_held(bus: &Bus, subjects: &Subjects, store: &Store) -> Result<bool, StoreError> {
    let owners = read_owners(store).await?.into_keys();
    let asked = stream::iter(owners)
        .map(|owner| async move {
            let asked = request::<Inspected>(bus, "the owner's holder", subjects.inspect(owner), &()).await;
            !matches!(asked, Err(AskError::Nobody { .. }))
        })
        .buffer_unordered(ASKED_AT_ONCE);
    Ok(std::pin::pin!(asked).any(std::future::ready).await)
}
