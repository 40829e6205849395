//! The clocks that cores are given.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use annals_ids::{WallTime, WorldTime};
use annals_node::time::{Mono, Now};
use rustix::time::{ClockId, clock_gettime};

/// The time since the machine started, including the time it was suspended.
pub fn mono() -> Mono {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).expect("invariant: a machine has been up for no negative time");
    let nanoseconds = u64::try_from(now.tv_nsec).expect("invariant: a fraction of a second is not negative");
    Mono(seconds * 1_000_000 + nanoseconds / 1_000)
}

/// Waits until `deadline` by the monotonic clock; for ever if there is none.
pub async fn until(deadline: Option<Mono>) {
    match deadline {
        // A minimum sleep: the timer's clock and ours may differ by microseconds.
        Some(deadline) => tokio::time::sleep(deadline.since(mono()).max(Duration::from_micros(50))).await,
        None => std::future::pending().await,
    }
}

/// The wall clock's time.
pub fn wall() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A realm's clock in this process. Game time starts at the value that the director sends when the process registers,
/// and then follows the monotonic clock: it never goes back, and a wall clock that is set wrong while the realm runs
/// does not change it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Mono,
    world: WorldTime,
}

impl Clock {
    /// A clock whose game time is `world` now.
    pub fn at(world: WorldTime) -> Self {
        Self { started: mono(), world }
    }

    /// Continues from a later game time; an earlier one changes nothing.
    pub fn follow(&mut self, world: WorldTime) {
        if world > self.now().world {
            *self = Self::at(world);
        }
    }

    /// The current time.
    pub fn now(&self) -> Now {
        let mono = mono();
        let passed = u64::try_from(mono.since(self.started).as_millis()).unwrap_or(u64::MAX);
        Now {
            mono,
            wall: wall(),
            world: WorldTime(self.world.0.saturating_add(passed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_follows_later_game_times_only() {
        let mut clock = Clock::at(WorldTime(5_000));
        clock.follow(WorldTime(4_000));
        assert!((5_000..6_000_000).contains(&clock.now().world.0));
        clock.follow(WorldTime(7_000_000));
        assert!(clock.now().world >= WorldTime(7_000_000));
    }

    #[test]
    fn advances_by_microseconds() {
        let earlier = mono();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let later = mono();
        assert!(
            later.since(earlier) >= std::time::Duration::from_millis(2),
            "{earlier} to {later}"
        );
    }
}
