//! How busy a core is: the share of time that it works.

use std::time::Duration;

use annals_node::time::Mono;

use crate::clock;

/// How often it is read.
const PERIOD: Duration = Duration::from_millis(500);

/// See the module.
pub(crate) struct Gauge {
    since: Mono,
    busy: Duration,
}

impl Gauge {
    /// Nothing was done yet.
    pub(crate) fn new() -> Self {
        Self {
            since: clock::mono(),
            busy: Duration::ZERO,
        }
    }

    /// Has the core work.
    pub(crate) fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let began = clock::mono();
        let done = work();
        self.busy += clock::mono().since(began);
        done
    }

    /// The share of the time since it was read last, twice a second.
    pub(crate) fn read(&mut self) -> Option<f64> {
        let passed = clock::mono().since(self.since);
        if passed < PERIOD {
            return None;
        }
        let busy = self.busy.as_secs_f64() / passed.as_secs_f64();
        *self = Self::new();
        Some(busy.min(1.0))
    }
}
