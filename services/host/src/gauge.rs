//! Utilisation of a core: the share of time in which it works.

use std::time::Duration;

use annals_node::time::Mono;

use crate::clock;

/// Measuring period.
const PERIOD: Duration = Duration::from_millis(500);

/// Measures the share of time that a core works, per period of 500 ms.
pub(crate) struct Gauge {
    since: Mono,
    busy: Duration,
}

impl Gauge {
    /// A gauge that has measured nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            since: clock::mono(),
            busy: Duration::ZERO,
        }
    }

    /// Runs `work` and counts its time.
    pub(crate) fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let began = clock::mono();
        let done = work();
        self.busy += clock::mono().since(began);
        done
    }

    /// The share of time since the last reading, and the time in microseconds, twice a second.
    pub(crate) fn read(&mut self) -> Option<(f64, u64)> {
        let passed = clock::mono().since(self.since);
        if passed < PERIOD {
            return None;
        }
        let busy = self.busy.as_secs_f64() / passed.as_secs_f64();
        let micros = u64::try_from(self.busy.as_micros()).unwrap_or(u64::MAX);
        *self = Self::new();
        Some((busy.min(1.0), micros))
    }
}
