//! Time as cores know it: an input, never a question.

use std::{fmt, time::Duration};

use annals_ids::{WallTime, WorldTime};

/// A reading of the clock that only measures: microseconds since the machine started, **including** the time it was
/// suspended (`CLOCK_BOOTTIME`). A process that slept and wakes must see that it slept, or it would take itself for fresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// The reading `by` later.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_micros()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; nothing if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Mono) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Mono {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// The moment at which a core is given an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For measuring: deadlines, freshness, pace.
    pub mono: Mono,
    /// For the record; nothing is decided by it.
    pub wall: WallTime,
    /// Game time.
    pub world: WorldTime,
}
