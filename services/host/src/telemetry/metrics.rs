//! The metrics of a process: a fixed set, each with a name and a unit, cheap to write from anywhere and read all at
//! once.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use annals_node::time::Mono;
use serde::{Deserialize, Serialize};

use super::costs::Costs;
use crate::{clock::mono, violations::Violations};

/// Maximum duration that is recorded, in microseconds; longer ones count as this.
const LONGEST: u64 = 60_000_000;

/// Precision of a histogram: three digits, about 200 kB each.
const DIGITS: u8 = 3;

/// The same for recent values: two digits, about 20 kB each.
const WINDOW_DIGITS: u8 = 2;

/// Counters and measurements of a process since its start. A metric that its service does not have stays at zero.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Time of the work of a tick, with all that was due until the next.
    pub tick: Histogram,
    /// Time from sending a batch to its acknowledgement.
    pub append: Histogram,
    /// At base, clients connected at the moment.
    pub clients: Gauge,
    /// Inputs handled.
    pub inputs: Counter,
    /// Internal errors in owners that reach no client: unexpected denials, circular calls. The log has the details.
    pub troubles: Counter,
    /// At db, events folded.
    pub events: Counter,
    /// Batches acknowledged; at db, also those folded.
    pub batches: Counter,
    /// At db, bytes of the batches folded.
    pub bytes: Counter,
    /// At db, completed audits of the ledger.
    pub ledger_audits: Counter,
    /// At db, findings of those audits: any is an alarm.
    pub ledger_findings: Counter,
    /// Owners that are held at the moment.
    pub owners: Gauge,
    /// At base and cell, entities with a real part in those owners.
    pub entities: Gauge,
    /// At base and cell, time in which owners worked, microseconds.
    pub busy: Counter,
    /// At base, calls of clients that arrived.
    pub client_calls: Counter,
    /// At base and login, what clients did against the protocol or its limits.
    pub violations: Violations,
    /// At login, clients that were given a ticket.
    pub log_ins: Counter,
    /// At login, log-ins that were refused.
    pub log_ins_refused: Counter,
    /// At login, places in the queue of a full realm.
    pub log_ins_waiting: Gauge,
    /// At the director that leads a realm with a limit, its players.
    pub players: Gauge,
    /// At db, messages of the logs that it folds and has not read yet.
    pub fold_behind: Gauge,
    /// At db, places where those logs lack batches.
    pub log_holes: Gauge,
    /// At db, such transactions that conflicted with others and were repeated.
    pub fold_conflicts: Counter,
    /// At db, time of a transaction that folds batches.
    pub fold: Histogram,
    /// At db, entries of the ledger at its last audit.
    pub ledger_entries: Gauge,
    /// Spans of traced calls that the collector has.
    pub spans_exported: Counter,
    /// Spans that were dropped: the collector did not take them, or too many waited.
    pub spans_dropped: Counter,
    /// At base and cell, costs of members of entity types. Reported separately, on request.
    pub costs: Costs,
}

/// All metrics at one time, as they are reported. Durations are in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    pub tick: Summary,
    pub append: Summary,
    pub clients: i64,
    pub inputs: u64,
    pub troubles: u64,
    pub events: u64,
    pub batches: u64,
    pub bytes: u64,
    pub ledger_audits: u64,
    pub ledger_findings: u64,
}

/// Summary of a histogram, in microseconds; all zero when it is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The number of values.
    pub count: u64,
    pub mean: f64,
    /// Half of them are at most this.
    pub p50: u64,
    /// 99 of 100 are at most this.
    pub p99: u64,
    /// The largest; anything longer than a minute counts as a minute.
    pub max: u64,
}

/// A histogram in coarse buckets.
pub(super) struct Buckets {
    pub(super) counts: Vec<u64>,
    /// Sum of all values, in microseconds.
    pub(super) sum: f64,
}

impl Metrics {
    /// All metrics. Each is exact; they are not read at exactly the same time.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            tick: self.tick.summary(),
            append: self.append.summary(),
            clients: self.clients.get(),
            inputs: self.inputs.get(),
            troubles: self.troubles.get(),
            events: self.events.get(),
            batches: self.batches.get(),
            bytes: self.bytes.get(),
            ledger_audits: self.ledger_audits.get(),
            ledger_findings: self.ledger_findings.get(),
        }
    }
}

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `more`.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A value that rises and falls.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Adds `change`, which may be negative.
    pub fn add(&self, change: i64) {
        self.0.fetch_add(change, Ordering::Relaxed);
    }

    /// Replaces the value.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram of durations, from a microsecond to a minute.
#[derive(Debug)]
pub struct Histogram {
    all: Mutex<hdrhistogram::Histogram<u64>>,
    recent: Mutex<Windows>,
    /// The same for OpenTelemetry, if it is exported.
    exported: OnceLock<opentelemetry::metrics::Histogram<f64>>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            all: Mutex::new(empty(DIGITS)),
            recent: Mutex::new(Windows {
                began: mono(),
                present: empty(WINDOW_DIGITS),
                past: empty(WINDOW_DIGITS),
            }),
            exported: OnceLock::new(),
        }
    }
}

fn empty(digits: u8) -> hdrhistogram::Histogram<u64> {
    let values = hdrhistogram::Histogram::new_with_bounds(1, LONGEST, digits);
    values.expect("invariant: the bounds are constants that fit")
}

/// The values of the present window of time and of the one before.
#[derive(Debug)]
struct Windows {
    began: Mono,
    present: hdrhistogram::Histogram<u64>,
    past: hdrhistogram::Histogram<u64>,
}

impl Windows {
    /// Begins another window if this one is over.
    fn advance(&mut self) {
        let (now, passed) = (mono(), mono().since(self.began));
        if passed < Histogram::WINDOW {
            return;
        }
        std::mem::swap(&mut self.present, &mut self.past);
        self.present.reset();
        if passed >= 2 * Histogram::WINDOW {
            self.past.reset();
        }
        self.began = now;
    }
}

impl Histogram {
    /// Recent values are those of one to two of these periods.
    pub const WINDOW: Duration = Duration::from_secs(10);

    /// Adds a value.
    pub fn record(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(LONGEST);
        let micros = micros.clamp(1, LONGEST);
        self.values().saturating_record(micros);
        let mut windows = self.windows();
        windows.advance();
        windows.present.saturating_record(micros);
        drop(windows);
        if let Some(exported) = self.exported.get() {
            exported.record(duration.as_secs_f64(), &[]);
        }
    }

    /// Records everything in this one as well, from now on.
    pub(super) fn export(&self, exported: opentelemetry::metrics::Histogram<f64>) {
        // A process begins to export once.
        let _ = self.exported.set(exported);
    }

    /// Its summary.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.values())
    }

    /// Summary of recent values, to two digits.
    pub fn recent(&self) -> Summary {
        let mut windows = self.windows();
        windows.advance();
        let mut both = windows.past.clone();
        both.add(&windows.present)
            .expect("invariant: both have the same bounds");
        Summary::of(&both)
    }

    /// The number of values above a duration.
    pub fn above(&self, duration: Duration) -> u64 {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(LONGEST);
        let values = self.values();
        values.len() - values.count_between(0, micros.min(LONGEST))
    }

    /// The number of values up to each of the ascending `bounds` and above the one before, and of those above all.
    pub(super) fn buckets(&self, bounds: &[u64]) -> Buckets {
        let values = self.values();
        // Neighbouring values share a slot, which ranges that meet would both count. Counts up to each bound do not.
        let upto = bounds.iter().map(|bound| values.count_between(0, *bound));
        let mut before = 0;
        let counts = upto
            .chain([values.len()])
            .map(|count| {
                let more = count - before;
                before = count;
                more
            })
            .collect();
        let sum = values.mean() * values.len() as f64;
        Buckets { counts, sum }
    }

    /// A thread that panicked while it recorded has left the values consistent: they are numbers.
    fn values(&self) -> MutexGuard<'_, hdrhistogram::Histogram<u64>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Summary {
    fn of(values: &hdrhistogram::Histogram<u64>) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        Self {
            count: values.len(),
            mean: values.mean(),
            p50: values.value_at_quantile(0.5),
            p99: values.value_at_quantile(0.99),
            max: values.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_summarises_what_it_was_given() {
        let histogram = Histogram::default();
        assert_eq!(histogram.summary(), Summary::default());
        for millis in 1..=100 {
            histogram.record(Duration::from_millis(millis));
        }
        let summary = histogram.summary();
        assert_eq!(summary.count, 100);
        for (found, exact) in [(summary.p50, 50_000), (summary.p99, 99_000), (summary.max, 100_000)] {
            assert!(
                found.abs_diff(exact) <= exact / 1000,
                "{found} is {exact} to three digits"
            );
        }
        histogram.record(Duration::from_secs(3600));
        histogram.record(Duration::ZERO);
        assert!(
            histogram.summary().max.abs_diff(LONGEST) <= LONGEST / 1000,
            "what is too long counts as the longest"
        );
        assert_eq!(histogram.summary().count, 102);
    }

    #[test]
    fn recent_values_are_those_of_the_last_windows() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_millis(200));
        histogram.record(Duration::from_millis(5));
        assert_eq!(histogram.above(Duration::from_millis(100)), 1);
        assert_eq!(histogram.recent().count, 2);
        let age = |windows: u32| {
            let mut values = histogram.windows();
            let since = Histogram::WINDOW * windows;
            values.began = Mono(values.began.0 - u64::try_from(since.as_micros()).unwrap());
        };
        age(1);
        histogram.record(Duration::from_millis(7));
        assert_eq!(histogram.recent().count, 3, "the window before counts");
        age(1);
        assert_eq!(histogram.recent().count, 1);
        age(2);
        assert_eq!(histogram.recent(), Summary::default());
        assert_eq!(histogram.summary().count, 3);
    }

    #[test]
    fn a_snapshot_crosses_the_bus_and_may_say_less() {
        let metrics = Metrics::default();
        metrics.events.add(3);
        metrics.clients.add(2);
        metrics.clients.add(-1);
        metrics.append.record(Duration::from_micros(700));
        let snapshot = metrics.snapshot();
        assert_eq!((snapshot.events, snapshot.clients, snapshot.append.count), (3, 1, 1));
        let json = serde_json::to_string(&snapshot).unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&json).unwrap(), snapshot);
        let older: Snapshot = serde_json::from_str(r#"{"events": 3, "unknown": 1}"#).unwrap();
        assert_eq!(older.events, 3);
    }
}
