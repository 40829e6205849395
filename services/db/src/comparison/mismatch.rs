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
                    "the store is older than the log: it lacks {} batches with {} events in {count} logs, closed from \
                     {} to {}",
                    beyond.batches,
                    beyond.events,
                    Utc(beyond.from),
                    Utc(beyond.to)
                )?;
                if let Some(known) = self.logs.iter().filter_map(|log| log.known_to).max() {
                    write!(
                        f,
                        "; the newest batch of these logs in the store was closed at {}",
                        Utc(known)
                    )?;
                }
                write!(
                    f,
                    ". Nothing was granted or changed. Restore the newer store, adopt the batches that the log proves \
                     with `annals realm adopt-log`, or discard them with `annals realm adopt-log --discard`; each \
                     command shows its plan first"
                )?;
            }
            Direction::LogIsOlder => write!(
                f,
                "the log is older than the store: {count} logs end before their newest batch in the store, and the \
                 realm was not stopped cleanly, so batches that clients may have seen are missing. Nothing was granted \
                 or changed. Restore the files of the nats-server, or accept the loss with `annals realm adopt-log \
                 --discard`, which shows its plan first"
            )?,
            Direction::OtherRealm => write!(
                f,
                "the log belongs to another realm: no batch in {count} logs is in the archive or continues it. Nothing \
                 was granted or changed. Restore the nats-server files that belong to this store, or the store that \
                 belongs to them"
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
                "owner {owner}: archived up to batch {cursor}; the log has epoch {found}, but the store granted \
                 {granted}"
            )?,
            Standing::Ahead(Unknown::Opening { epoch, batch }) => write!(
                f,
                "owner {owner}: archived up to batch {cursor}; batch {batch} is of epoch {epoch}, and the store lacks \
                 its opening"
            )?,
            Standing::Ahead(Unknown::Number { found, next }) => write!(
                f,
                "owner {owner}: archived up to batch {cursor}; the log uses number {found}, but the store's next \
                 number is {next}"
            )?,
            Standing::Detached { first } => write!(
                f,
                "owner {owner}: archived up to batch {cursor}, and the log begins with batch {first}"
            )?,
            Standing::Behind { last, known } => write!(
                f,
                "owner {owner}: the log ends with batch {last}, but the store has batch {known}"
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
