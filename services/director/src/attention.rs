//! How long a director was unable to receive anything. Pure: time is an input.

use std::time::Duration;

/// Intervals of heartbeats between two times at which a director that receives everything attends, at most.
const USUAL_BEATS: u32 = 2;

/// When a director last attended to what it receives. One that waits for the store, or gets no processor, receives
/// nothing: its own pause must not count as the silence of others (rule D2).
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    last: Duration,
    usual: Duration,
}

impl Attention {
    /// Begins to attend at `now` of the director's monotonic clock. `beat` is the interval of heartbeats.
    #[must_use]
    pub fn begin(now: Duration, beat: Duration) -> Self {
        Self {
            last: now,
            usual: USUAL_BEATS * beat,
        }
    }

    /// Attends at `now`. Returns how much of the time since the last call was a pause; zero if the calls follow each
    /// other as they should.
    #[must_use = "the pause must be taken off every silence"]
    pub fn attend(&mut self, now: Duration) -> Duration {
        let since = now.saturating_sub(self.last);
        self.last = now;
        since.saturating_sub(self.usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_exceeds_the_usual_interval_is_a_pause() {
        let millis = Duration::from_millis;
        let mut attention = Attention::begin(millis(1_000), millis(300));
        assert_eq!(attention.attend(millis(1_300)), Duration::ZERO);
        assert_eq!(attention.attend(millis(1_900)), Duration::ZERO);
        assert_eq!(attention.attend(millis(1_900)), Duration::ZERO);
        assert_eq!(attention.attend(millis(7_000)), millis(4_500));
        assert_eq!(attention.attend(millis(7_100)), Duration::ZERO);
    }
}
