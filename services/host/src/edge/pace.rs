//! Rate limits of a client.

use std::time::{Duration, Instant};

/// Messages per second above which a client is warned.
pub const WARN_MESSAGES: u32 = 250;

/// Messages per second above which a client is closed.
pub const MAX_MESSAGES: u32 = 500;

/// Bytes per second above which a client is warned.
pub const WARN_BYTES: u32 = 20_480;

/// Bytes per second above which a client is closed.
pub const MAX_BYTES: u32 = 40_960;

/// Burst in seconds of the allowed rate: a client that resumes sends more than one that walks.
pub const BURST_SECONDS: u32 = 4;
const _: () = assert!(BURST_SECONDS * MAX_BYTES >= 2 * annals_wire::client::MAX_UPSTREAM_FRAME as u32);

/// Minimum interval between warnings to a client.
const WARN_EVERY: Duration = Duration::from_secs(1);

/// Consequence of a message for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Fine,
    /// The client is warned.
    Warn,
    /// The client is closed.
    TooFast,
}

/// Measures what one client sends.
#[derive(Debug)]
pub(super) struct Pace {
    messages: [Bucket; 2],
    bytes: [Bucket; 2],
    warned: Option<Instant>,
}

/// A leaky bucket: fills with what is sent and leaks at the allowed rate.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: f64,
    level: f64,
    at: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        let bucket = |rate: u32| Bucket {
            rate: rate.into(),
            level: 0.0,
            at: now,
        };
        Self {
            messages: [bucket(WARN_MESSAGES), bucket(MAX_MESSAGES)],
            bytes: [bucket(WARN_BYTES), bucket(MAX_BYTES)],
            warned: None,
        }
    }

    /// Counts a message.
    pub(super) fn take(&mut self, now: Instant, bytes: usize) -> Verdict {
        let bytes = bytes as f64;
        let full = |buckets: &mut [Bucket; 2], amount: f64| buckets.each_mut().map(|bucket| bucket.pour(now, amount));
        let [many, too_many] = full(&mut self.messages, 1.0);
        let [much, too_much] = full(&mut self.bytes, bytes);
        if too_many || too_much {
            return Verdict::TooFast;
        }
        let due = self.warned.is_none_or(|at| now.duration_since(at) >= WARN_EVERY);
        if (many || much) && due {
            self.warned = Some(now);
            return Verdict::Warn;
        }
        Verdict::Fine
    }
}

impl Bucket {
    /// Adds an amount and returns whether the bucket overflows.
    fn pour(&mut self, now: Instant, amount: f64) -> bool {
        let leaked = now.duration_since(self.at).as_secs_f64() * self.rate;
        self.level = (self.level - leaked).max(0.0) + amount;
        self.at = now;
        self.level > self.rate * f64::from(BURST_SECONDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `rate` messages of `bytes` bytes per second, evenly, and returns the result.
    fn send(rate: u32, bytes: usize, seconds: u32) -> (usize, bool) {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut warnings = 0;
        for i in 0..rate * seconds {
            match pace.take(start + Duration::from_secs(1) * i / rate, bytes) {
                Verdict::Fine => {}
                Verdict::Warn => warnings += 1,
                Verdict::TooFast => return (warnings, true),
            }
        }
        (warnings, false)
    }

    #[test]
    fn rates_below_the_limits_are_fine() {
        assert_eq!(send(WARN_MESSAGES, 10, 60), (0, false));
        assert_eq!(send(10, WARN_BYTES as usize / 10, 60), (0, false));
    }

    #[test]
    fn rates_between_the_limits_are_warned_once_a_second() {
        let (warnings, closed) = send(WARN_MESSAGES + 100, 10, 60);
        assert!(!closed && (30..=60).contains(&warnings), "{warnings} warnings");
        let (warnings, closed) = send(10, MAX_BYTES as usize / 10, 60);
        assert!(!closed && (30..=60).contains(&warnings), "{warnings} warnings");
    }

    #[test]
    fn rates_above_the_limits_end_the_connection() {
        assert!(send(MAX_MESSAGES + 100, 10, 60).1);
        assert!(send(10, MAX_BYTES as usize / 8, 60).1);
    }
}
