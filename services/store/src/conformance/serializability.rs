//! Random concurrent transactions, compared with the simplest model: a map, and one transaction after the other.
//!
//! Every transaction records what it read. Afterwards the committed ones run again on a plain map, in the order of
//! their versionstamps: each read must return there what it returned in the store. A read-only transaction must match
//! the map at its read version, which must include every commit acknowledged before it began. Versions do not order
//! commits: several may share one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::try_join_all;

use super::{Check, Dice, Keys, Subject, fresh};
use crate::mutation::added;
use crate::{Committed, ScanOrder, StoreError, Submitted, Transaction, Version, Versionstamp};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("random transactions are strictly serializable", |subject| {
        random_transactions(subject, 0).boxed_local()
    }),
    (
        "random transactions are strictly serializable when some are submitted",
        |subject| random_transactions(subject, CLIENTS / 2).boxed_local(),
    ),
];

/// Few keys, so that transactions conflict.
const KEYS: u64 = 10;
const CLIENTS: u64 = 8;
const TRANSACTIONS: usize = 60;
const MOST_STEPS: u64 = 6;

type Rows = BTreeMap<u8, Vec<u8>>;

/// A step of a transaction, with its result.
#[derive(Clone, Debug)]
enum Step {
    Get {
        key: u8,
        seen: Option<Vec<u8>>,
    },
    Scan {
        begin: u8,
        end: u8,
        limit: usize,
        order: ScanOrder,
        seen: Vec<(u8, Vec<u8>)>,
    },
    Set {
        key: u8,
        value: Vec<u8>,
    },
    Clear {
        key: u8,
    },
    ClearRange {
        begin: u8,
        end: u8,
    },
    Add {
        key: u8,
        delta: i64,
    },
}

/// A committed transaction.
#[derive(Debug)]
struct Done {
    /// Its position among the others.
    place: (Version, Wrote),
    steps: Vec<Step>,
}

/// What a transaction did at a version: a read-only one comes after all that wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wrote {
    Something(Versionstamp),
    Nothing,
}

impl Done {
    fn new(read_at: Version, committed: Committed, steps: Vec<Step>) -> Self {
        let place = if committed.stamp == Versionstamp::default() {
            (read_at, Wrote::Nothing)
        } else {
            (committed.version, Wrote::Something(committed.stamp))
        };
        Self { place, steps }
    }
}

/// Transactions of clients, the first `pipelined` of which begin the next one before the last is durable.
async fn random_transactions(subject: &Subject, pipelined: u64) -> Result<(), StoreError> {
    let keys = fresh(subject, "random").await?;
    let done = RefCell::new(Vec::new());
    let acknowledged = Cell::new(Version(0));
    let conflicts = Cell::new(0);
    let finish = |version: Version, committed: Committed, steps: Vec<Step>| {
        let one = Done::new(version, committed, steps);
        if let (_, Wrote::Something(stamp)) = one.place {
            assert!(committed.version > version);
            assert_eq!(stamp.version(), committed.version);
            acknowledged.set(acknowledged.get().max(committed.version));
        }
        done.borrow_mut().push(one);
    };
    let client = async |client: u64| -> Result<(), StoreError> {
        let mut dice = Dice::new(subject.seed.wrapping_mul(CLIENTS + 1).wrapping_add(client));
        let mut last: Option<(Submitted, Version, Vec<Step>)> = None;
        for _ in 0..TRANSACTIONS {
            let begun_after = acknowledged.get();
            let is_pipelined = client < pipelined;
            let transaction = if is_pipelined {
                subject.store.begin_pipelined()
            } else {
                subject.store.begin()
            };
            let steps = take_steps(&keys, &transaction, &mut dice).await?;
            let version = transaction.read_version().await?;
            assert!(
                version >= begun_after,
                "reads at {version}, and {begun_after} was acknowledged before it began"
            );
            let committed = if is_pipelined {
                let submitted = transaction.submit().await;
                if let Some((mut submitted, version, steps)) = last.take() {
                    finish(version, submitted.committed().await?, steps);
                }
                submitted.map(|submitted| last = Some((submitted, version, steps)))
            } else {
                let committed = transaction.commit().await;
                committed.map(|committed| finish(version, committed, steps))
            };
            match committed {
                Ok(()) => {}
                Err(StoreError::Conflict) => conflicts.set(conflicts.get() + 1),
                Err(error) => return Err(error),
            }
        }
        if let Some((mut submitted, version, steps)) = last {
            finish(version, submitted.committed().await?, steps);
        }
        Ok(())
    };
    try_join_all((0..CLIENTS).map(&client)).await?;
    let rows = replay(done.into_inner());

    assert_eq!(
        stored_rows(subject, &keys).await?,
        rows,
        "what is stored in the end is what the transactions make, one after the other"
    );
    println!(
        "  {} transactions, {} conflicts",
        CLIENTS as usize * TRANSACTIONS,
        conflicts.get()
    );
    Ok(())
}

async fn stored_rows(subject: &Subject, keys: &Keys) -> Result<Rows, StoreError> {
    let transaction = subject.store.begin();
    let stored = transaction.get_range(&keys.all(), 1_000, ScanOrder::Forward).await?;
    let rows = stored.rows.into_iter();
    Ok(rows.map(|(key, value)| (key[key.len() - 1], value.to_vec())).collect())
}

async fn take_steps(keys: &Keys, transaction: &Transaction, dice: &mut Dice) -> Result<Vec<Step>, StoreError> {
    let mut steps = Vec::new();
    for _ in 0..=dice.below(MOST_STEPS) {
        steps.push(take_step(keys, transaction, dice).await?);
        // Otherwise a store that never waits would run one transaction after the other.
        if dice.below(2) == 0 {
            tokio::task::yield_now().await;
        }
    }
    Ok(steps)
}

async fn take_step(keys: &Keys, transaction: &Transaction, dice: &mut Dice) -> Result<Step, StoreError> {
    let key = some_key(dice);
    let other = some_key(dice);
    let (begin, end) = (key.min(other), key.max(other));
    let stored = |key: u8| keys.key([key]);
    let range = crate::KeyRange::new(stored(begin), stored(end));
    Ok(match dice.below(10) {
        0..3 => Step::Get {
            key,
            seen: transaction.get(&stored(key)).await?.map(|value| value.to_vec()),
        },
        3..6 => {
            let limit = 1 + usize::from(some_key(dice) % 4);
            let order = if dice.below(2) == 0 {
                ScanOrder::Forward
            } else {
                ScanOrder::Reverse
            };
            let page = transaction.get_range(&range, limit, order).await?;
            let seen = page
                .rows
                .into_iter()
                .map(|(key, value)| (key[key.len() - 1], value.to_vec()))
                .collect();
            Step::Scan {
                begin,
                end,
                limit,
                order,
                seen,
            }
        }
        6 | 7 => {
            let value = dice.roll().to_le_bytes().to_vec();
            transaction.set(&stored(key), &value)?;
            Step::Set { key, value }
        }
        8 if dice.below(2) == 0 => {
            transaction.clear(&stored(key))?;
            Step::Clear { key }
        }
        8 => {
            transaction.clear_range(&range)?;
            Step::ClearRange { begin, end }
        }
        _ => {
            let delta = i64::from(other) - 3;
            transaction.atomic_add(&stored(key), delta)?;
            Step::Add { key, delta }
        }
    })
}

fn some_key(dice: &mut Dice) -> u8 {
    u8::try_from(dice.below(KEYS)).unwrap_or_default()
}

/// Runs the transactions one after the other on a map, and returns its final contents.
fn replay(mut done: Vec<Done>) -> Rows {
    // In many stores they were recorded in commit order; the replay must not depend on that.
    done.reverse();
    done.sort_by_key(|done| done.place);
    let mut rows = Rows::new();
    for transaction in &done {
        for step in &transaction.steps {
            replay_step(&mut rows, step, transaction);
        }
    }
    rows
}

fn replay_step(rows: &mut Rows, step: &Step, transaction: &Done) {
    match step {
        Step::Get { key, seen } => {
            assert_eq!(rows.get(key), seen.as_ref(), "a get of {key} in {transaction:?}");
        }
        Step::Scan {
            begin,
            end,
            limit,
            order,
            seen,
        } => {
            let range = rows.range(begin..end).map(|(&key, value)| (key, value.clone()));
            let expected: Vec<(u8, Vec<u8>)> = match order {
                ScanOrder::Forward => range.take(*limit).collect(),
                ScanOrder::Reverse => range.rev().take(*limit).collect(),
            };
            assert_eq!(seen, &expected, "a scan in {transaction:?}");
        }
        Step::Set { key, value } => {
            rows.insert(*key, value.clone());
        }
        Step::Clear { key } => {
            rows.remove(key);
        }
        Step::ClearRange { begin, end } => rows.retain(|key, _| !(*begin..*end).contains(key)),
        Step::Add { key, delta } => {
            let value = added(rows.get(key).map(Vec::as_slice), *delta);
            rows.insert(*key, value.to_vec());
        }
    }
}
