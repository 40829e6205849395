//! The message for a store and logs that do not belong together: counts, times and what to do.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use annals_ids::WallTime;

use super::{Beyond, ComparedLog, Standing, Unknown};

/// Maximum logs that are listed one by one; the others are counted.
const LISTED: usize = 8;

/// Last millisecond of the year 9999, since 1970: later dates have more than four digits.
const LAST_DATE: u64 = 253_402_300_799_999;

/// A wall time printed as a date, whatever value a batch contains.
struct Utc(WallTime);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = Duration::from_millis(self.0.0.min(LAST_DATE));
        humantime::format_rfc3339_seconds(UNIX_EPOCH + since).fmt(f)
    }
}

/// Which of the two is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// The log: it ends before something that the store has recorded.
    LogIsOlder,
    /// The store: the log contains something that the store has never recorded.
    StoreIsOlder,
    /// Neither: they belong to different realms.
    OtherRealm,
}

/// The store and the logs do not belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which is older.
    pub direction: Direction,
    /// The logs that show it.
    pub logs: Vec<ComparedLog>,
}

impl std::error::Error for Mismatch {}

impl Mismatch {
    pub(super) fn of(logs: Vec<ComparedLog>) -> Option<Self> {
        let direction = logs.iter().map(direction).max()?;
        Some(Self { direction, logs })
    }

    /// What the logs contain that the store does not know.
    #[must_use]
    pub fn beyond(&self) -> Beyond {
        let logs = self.logs.iter().map(|log| log.beyond);
        logs.fold(Beyond::default(), Beyond::plus)
    }
}

fn direction(log: &ComparedLog) -> Direction {
    match log.standing {
        Standing::Foreign { .. } => Direction::OtherRealm,
        Standing::Behind { .. } => Direction::LogIsOlder,
        Standing::Agrees | Standing::Ahead(_) | Standing::Detached { .. } => Direction::StoreIsOlder,
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.logs.len();
        match self.direction {
            Direction::StoreIsOlder => {
                let beyond = self.beyond();
                write!(
                    f,
                    "the store is older than the log: it does not know {} batches with {} events in {count} logs, closed from {} to {}",
                    beyond.batches,
                    beyond.events,
                    Utc(beyond.from),
                    Utc(beyond.to)
                )?;
                if let Some(known) = self.logs.iter().filter_map(|log| log.known_to).max() {
                    write!(
                        f,
                        "; the newest of these logs' batches that it knows is of {}",
                        Utc(known)
                    )?;
                }
                write!(
                    f,
                    ". Nothing was granted or changed. Put the newer store back, or take up what the log proves with `annals realm \
                     adopt-log`, or give it up with `annals realm adopt-log --discard`; each shows its plan first"
                )?;
            }
            Direction::LogIsOlder => write!(
                f,
                "the log is older than the store: {count} logs end before what the store knows of them, and the realm was not \
                 stopped in order, so that what they held beyond may have been shown and is missing. Nothing was granted or \
                 changed. Put the nats-server's own files back, or accept the loss with `annals realm adopt-log --discard`, \
                 which shows its plan first"
            )?,
            Direction::OtherRealm => write!(
                f,
                "the log is another realm's: nothing in {count} logs is in the archive or continues it. Nothing was granted or \
                 changed. Put the nats-server's files back that belong to this store, or the store that belongs to them"
            )?,
        }
        for log in self.logs.iter().take(LISTED) {
            write!(f, "\n  {log}")?;
        }
        match count.saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more logs"),
        }
    }
}

impl fmt::Display for ComparedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (owner, cursor) = (self.owner, self.cursor.batch);
        match self.standing {
            Standing::Agrees => write!(f, "owner {owner}: archived up to batch {cursor}")?,
            Standing::Ahead(Unknown::Owner) => write!(f, "owner {owner}: the store has no such owner")?,
            Standing::Ahead(Unknown::Epoch { granted, found }) => write!(
                f,
                "owner {owner}: archived up to batch {cursor}; the log is of epoch {found}, and the store has granted {granted}"
            )?,
            Standing::Ahead(Unknown::Opening { epoch, batch }) => write!(
                f,
                "owner {owner}: archived up to batch {cursor}; batch {batch} is of epoch {epoch}, whose opening is not in the store"
            )?,
            Standing::Ahead(Unknown::Number { found, next }) => write!(
                f,
                "owner {owner}: archived up to batch {cursor}; the log names number {found}, and the store would give out {next} next"
            )?,
            Standing::Detached { first } => write!(
                f,
                "owner {owner}: archived up to batch {cursor}, and the log begins with batch {first}"
            )?,
            Standing::Behind { last, known } => write!(
                f,
                "owner {owner}: the log ends with batch {last}, and the store knows of batch {known}"
            )?,
            Standing::Foreign { last } => write!(
                f,
                "owner {owner}: archived up to batch {cursor}; the log ends with batch {last} of another history"
            )?,
        }
        match self.beyond {
            Beyond { batches: 0, .. } => Ok(()),
            Beyond {
                batches,
                events,
                from,
                to,
            } => {
                let (from, to) = (Utc(from), Utc(to));
                write!(
                    f,
                    " ({batches} batches, {events} events beyond, closed from {from} to {to})"
                )
            }
        }
    }
}
