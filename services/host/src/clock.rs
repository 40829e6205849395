//! The clocks that cores are given.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};
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

/// Difference of wall clocks that is not corrected, in milliseconds: it may as well be the time that a message took.
const WALL_TOLERANCE: u64 = 50;

/// A realm's clock in this process. Game time starts at the value that the director sends when the process registers,
/// and then follows the monotonic clock: it never goes back, and a wall clock that is set wrong while the realm runs
/// does not change it. Wall time is the director's, so that all logs of a realm have one: trades expire by it.
///
/// Clones share the correction of the wall clock.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Mono,
    world: WorldTime,
    /// Milliseconds by which the director's wall clock is ahead of this machine's.
    ahead: Arc<AtomicI64>,
}

impl Clock {
    /// A clock whose game time is `world` now.
    pub fn at(world: WorldTime) -> Self {
        Self {
            started: mono(),
            world,
            ahead: Arc::default(),
        }
    }

    /// Continues from a later game time; an earlier one changes nothing.
    pub fn follow(&mut self, world: WorldTime) {
        if world > self.now().world {
            (self.started, self.world) = (mono(), world);
        }
    }

    /// Corrects the wall time to the director's, given what that is now.
    pub fn follow_wall(&self, directors: WallTime) {
        let own = wall();
        let kept = self.corrected(own);
        if kept.0.abs_diff(directors.0) > WALL_TOLERANCE {
            let ahead = i64::try_from(i128::from(directors.0) - i128::from(own.0)).unwrap_or_default();
            self.ahead.store(ahead, Ordering::Relaxed);
        }
    }

    fn corrected(&self, own: WallTime) -> WallTime {
        WallTime(own.0.saturating_add_signed(self.ahead.load(Ordering::Relaxed)))
    }

    /// The current time.
    pub fn now(&self) -> Now {
        let mono = mono();
        let passed = u64::try_from(mono.since(self.started).as_millis()).unwrap_or(u64::MAX);
        Now {
            mono,
            wall: self.corrected(wall()),
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
    fn wall_time_is_the_directors() {
        let clock = Clock::at(WorldTime(0));
        let held = clock.clone();
        for shift in [300_000, -300_000, 0] {
            let directors = WallTime(wall().0.saturating_add_signed(shift));
            clock.follow_wall(directors);
            let apart = held.now().wall.0.abs_diff(directors.0);
            assert!(apart < 10_000, "{shift}: {apart} ms apart");
        }
        clock.follow_wall(WallTime(0));
        assert!(held.now().wall.0 < 10_000);
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
