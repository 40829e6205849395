//! Trims the archived part of the logs (rule F6). A separate task, so that folding never waits for it.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_ids::{BatchNumber, OwnerId};
use futures::{StreamExt, stream};
use tokio::{sync::watch, time::Instant};

use super::rounds::Rounds;
use crate::log::{History, Lane, ReadError};
use crate::waiting::Wait;

/// Interval of the checks which logs are due.
const ROUND: Duration = Duration::from_secs(1);

/// Minimum interval between two trims of a log.
const INTERVAL: Duration = Duration::from_secs(30);

/// Minimum age of what is trimmed: a take-over that reads the log a second time must find what it read at first.
const AGE: Duration = Duration::from_secs(60);

/// Maximum logs trimmed concurrently: a few, since each makes the server read a part of its disk.
const AT_ONCE: usize = 4;

/// Trims each log up to its cursor, at intervals, until folding ends.
pub(super) async fn trim_all(history: History, cursors: watch::Receiver<BTreeMap<OwnerId, BatchNumber>>) {
    let mut schedule = Schedule::default();
    let mut rounds = Rounds::new(ROUND, cursors);
    let mut wait = Wait::new("the nats-server", "logs are not trimmed until then; retrying");
    while rounds.next().await.is_some() {
        let due = schedule.due(Instant::now(), &rounds.cursors());
        let mut trims = stream::iter(due)
            .map(|(owner, cursor)| trim(&history, owner, cursor))
            .buffer_unordered(AT_ONCE);
        let (mut failed, mut reason) = (0_u64, None);
        while let Some((owner, trimmed)) = trims.next().await {
            let done = trimmed.unwrap_or_else(|error| {
                failed += 1;
                reason = Some(error);
                None
            });
            schedule.note(Instant::now(), owner, done);
        }
        match reason {
            Some(error) => wait.lasts(format_args!("{failed} logs could not be trimmed: {error}")),
            None => wait.ends(),
        }
    }
}

/// Trims the log and the fills of an owner; returns up to where, if that is complete.
async fn trim(
    history: &History,
    owner: OwnerId,
    cursor: BatchNumber,
) -> (OwnerId, Result<Option<BatchNumber>, ReadError>) {
    let mut all = true;
    for lane in [Lane::Log, Lane::Fill] {
        match history.trim(lane, owner, cursor, AGE).await {
            Ok(is_done) => all &= is_done,
            Err(error) => return (owner, Err(error)),
        }
    }
    (owner, Ok(all.then_some(cursor)))
}

/// When each log was last tried, and up to where it is trimmed.
#[derive(Debug, Default)]
struct Schedule {
    tried: BTreeMap<OwnerId, Tried>,
}

#[derive(Debug)]
struct Tried {
    at: Instant,
    /// The cursor up to which it is trimmed; `None` if it must be tried again.
    done: Option<BatchNumber>,
}

impl Schedule {
    /// The logs that have something to trim and were not tried just now.
    fn due(&self, now: Instant, cursors: &BTreeMap<OwnerId, BatchNumber>) -> Vec<(OwnerId, BatchNumber)> {
        let is_due = |(owner, cursor): &(&OwnerId, &BatchNumber)| match self.tried.get(*owner) {
            Some(tried) => now.duration_since(tried.at) >= INTERVAL && tried.done.as_ref() != Some(*cursor),
            None => true,
        };
        let due = cursors.iter().filter(is_due);
        due.map(|(owner, cursor)| (*owner, *cursor)).collect()
    }

    fn note(&mut self, at: Instant, owner: OwnerId, done: Option<BatchNumber>) {
        self.tried.insert(owner, Tried { at, done });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_due_until_it_is_trimmed_up_to_its_cursor() {
        let start = Instant::now();
        let (quiet, busy) = (OwnerId(1), OwnerId(2));
        let mut cursors = BTreeMap::from([(quiet, BatchNumber(10)), (busy, BatchNumber(20))]);
        let mut schedule = Schedule::default();
        let both = vec![(quiet, BatchNumber(10)), (busy, BatchNumber(20))];
        assert_eq!(schedule.due(start, &cursors), both);

        // After a failure both are tried again, but not at once.
        schedule.note(start, quiet, None);
        schedule.note(start, busy, None);
        assert_eq!(schedule.due(start + INTERVAL / 2, &cursors), []);
        assert_eq!(schedule.due(start + INTERVAL, &cursors), both);

        // After success only a cursor that moves makes a log due.
        let done = start + INTERVAL;
        schedule.note(done, quiet, Some(BatchNumber(10)));
        schedule.note(done, busy, Some(BatchNumber(20)));
        assert_eq!(schedule.due(done + INTERVAL, &cursors), []);
        cursors.insert(busy, BatchNumber(21));
        assert_eq!(schedule.due(done + INTERVAL / 2, &cursors), []);
        assert_eq!(schedule.due(done + INTERVAL, &cursors), [(busy, BatchNumber(21))]);
    }
}
