//! Time in cores: always an input, never read.

use std::{fmt, time::Duration};

use annals_ids::{WallTime, WorldTime};

/// A reading of the measuring clock: microseconds since the machine started, **including** suspended time
/// (`CLOCK_BOOTTIME`). A process that was suspended must notice it on waking, or it would count itself as fresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// The reading `by` later.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_micros()).unwrap_or(u64::MAX)))
    }

    /// Duration since `earlier`; zero if it is not earlier.
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

/// The time at which a core receives an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For measuring: deadlines, freshness, pace.
    pub mono: Mono,
    /// For the record; no decision depends on it.
    pub wall: WallTime,
    /// Game time.
    pub world: WorldTime,
}

impl Now {
    /// A time of the game clock, on the measuring clock.
    pub(crate) fn in_mono(self, due: WorldTime) -> Mono {
        self.mono
            .after(Duration::from_millis(due.0.saturating_sub(self.world.0)))
    }
}
