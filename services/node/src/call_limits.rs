//! Limits of clients' calls, by method (`CallsPerMinute`).
//!
//! They are counted by the owner of the called part, and are not part of its state: after a hand-over or a take-over they
//! begin anew. What was admitted is in the log like any call.

use std::{collections::BTreeMap, time::Duration};

use annals_ids::{EntityId, MemberId, SessionId};

use crate::time::Mono;

/// Calls of this time may come at once, but always one.
const BURST: Duration = Duration::from_secs(6);

/// Minimum number of counters at which those of idle callers are dropped.
const MIN_SWEEP: usize = 1_024;

/// A caller and the method that it calls.
type CountedCall = (EntityId, SessionId, MemberId);

/// Counters of calls. There are at most twice as many as callers in the last minute, or [`MIN_SWEEP`].
#[derive(Debug)]
pub(crate) struct CallLimits {
    /// When the calls made so far would have been due, if they were evenly spaced (generic cell rate algorithm).
    due: BTreeMap<CountedCall, Mono>,
    /// Number of counters at which those of idle callers are dropped next.
    sweep_at: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            sweep_at: MIN_SWEEP,
        }
    }
}

impl CallLimits {
    /// Counts a call, if the limit of so many calls per minute admits it.
    pub(crate) fn admit(&mut self, now: Mono, call: CountedCall, per_minute: u32) -> bool {
        let interval = Duration::from_secs(60) / per_minute.max(1);
        let due = self.due.get(&call).copied().unwrap_or(now).max(now);
        let next = due.after(interval);
        if next > now.after(interval.max(BURST)) {
            return false;
        }
        if self.due.len() >= self.sweep_at {
            self.due.retain(|_, due| *due > now);
            self.sweep_at = MIN_SWEEP.max(2 * self.due.len());
        }
        self.due.insert(call, next);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: CountedCall = (EntityId(1), SessionId(2), MemberId(3));

    fn at(milliseconds: u64) -> Mono {
        Mono(0).after(Duration::from_millis(milliseconds))
    }

    /// Of calls at random times, as many are admitted in any window as the limit says, and calls within the limit are
    /// never refused.
    #[test]
    fn no_window_has_more_calls_than_the_limit() {
        for seed in 0..200 {
            let mut dice = annals_def::split_mix(seed);
            let per_minute = u32::try_from(1 + dice() % 600).expect("it is small");
            let longest = 2 * 60_000 / u64::from(per_minute);
            let (mut limits, mut now, mut admitted) = (CallLimits::default(), 0, Vec::new());
            for _ in 0..500 {
                now += dice() % longest.max(2);
                if limits.admit(at(now), CALL, per_minute) {
                    admitted.push(now);
                }
            }
            let at_once = (per_minute / 10).max(1);
            for (place, first) in admitted.iter().enumerate() {
                for (count, last) in (1_u64..).zip(&admitted[place..]) {
                    // Admitted evenly, after those that came at once.
                    let most = u64::from(at_once) + (last - first) * u64::from(per_minute) / 60_000 + 1;
                    assert!(count <= most, "seed {seed}: {count} calls in {} ms", last - first);
                }
            }
            let mut limits = CallLimits::default();
            let interval = 60_000_u64.div_ceil(u64::from(per_minute));
            let refused = (0..500).filter(|call| !limits.admit(at(call * interval), CALL, per_minute));
            assert_eq!(refused.count(), 0, "seed {seed}: {per_minute} per minute");
        }
    }

    #[test]
    fn a_tenth_of_a_minute_may_come_at_once() {
        for (per_minute, at_once) in [(1, 1), (9, 1), (30, 3), (600, 60)] {
            let mut limits = CallLimits::default();
            let admitted = (0..1_000).filter(|_| limits.admit(at(5), CALL, per_minute)).count();
            assert_eq!(admitted, at_once, "{per_minute} per minute");
        }
    }

    #[test]
    fn callers_and_methods_are_counted_apart_and_forgotten() {
        let mut limits = CallLimits::default();
        for entity in 0..10_000 {
            let (of_session, of_method) = (entity % 7, entity % 5);
            let method = MemberId(u16::try_from(of_method).expect("it is small"));
            let call = (EntityId(entity), SessionId(of_session), method);
            assert!(limits.admit(at(entity * 100), call, 60));
            assert!(limits.due.len() <= MIN_SWEEP);
        }
    }
}
