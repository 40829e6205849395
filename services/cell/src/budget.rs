//! The budget of a client: bytes per tick.
//!
//! A tick's bytes are spent until none are left, so the last item of a tick may overdraw the budget; the ticks after it
//! compensate. Over any number of ticks a client is therefore sent at most what these ticks and one more allow, plus
//! one item.

use std::num::NonZeroU32;

use crate::sampling::SECOND;

/// Headers of a packet, bytes, which a client's line carries as well: IPv4 and UDP. One packet a tick is counted:
/// 20,000 bit/s are 222 bytes a tick.
const HEADERS: i64 = 28;

/// Maximum number of ticks that compensate for one large item: a client that was sent a picture would otherwise stand
/// still for minutes.
const DEBT: i64 = 50;

/// What is left of the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Bytes per tick; `None` for no limit.
    tick: Option<i64>,
    balance: i64,
}

impl Budget {
    /// A budget of so many bits per second; `None` for no limit.
    pub(crate) fn new(bits: Option<NonZeroU32>) -> Self {
        let bytes = |bits: NonZeroU32| i64::from(bits.get()) / (8 * SECOND.cast_signed()) - HEADERS;
        Self {
            tick: bits.map(|bits| bytes(bits).max(1)),
            balance: 0,
        }
    }

    /// Begins a tick. What the last tick left over is kept, and nothing older.
    pub(crate) fn refill(&mut self) {
        if let Some(tick) = self.tick {
            self.balance = (self.balance + tick).min(2 * tick);
        }
    }

    /// Whether anything may be sent beyond `spent` bytes that are not yet recorded.
    pub(crate) fn allows(&self, spent: usize) -> bool {
        self.tick.is_none() || self.balance > i64::try_from(spent).unwrap_or(i64::MAX)
    }

    /// Bytes that may still be sent.
    pub(crate) fn left(&self) -> usize {
        match self.tick {
            Some(_) => usize::try_from(self.balance).unwrap_or(0),
            None => usize::MAX,
        }
    }

    /// Records bytes as sent.
    pub(crate) fn spend(&mut self, bytes: usize) {
        if let Some(tick) = self.tick {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.balance = self.balance.saturating_sub(bytes).max(-tick * DEBT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_kilobits_a_second_are_222_bytes_a_tick() {
        let mut budget = Budget::new(NonZeroU32::new(20_000));
        budget.refill();
        assert!(budget.allows(221) && !budget.allows(222));
        budget.spend(400);
        budget.refill();
        assert!(budget.allows(43) && !budget.allows(44));
    }

    #[test]
    fn unused_bandwidth_lasts_one_tick_and_overruns_are_repaid() {
        let mut budget = Budget::new(NonZeroU32::new(20_000));
        (0..100).for_each(|_| budget.refill());
        assert!(budget.allows(443) && !budget.allows(444));
        budget.spend(usize::MAX);
        (0..DEBT).for_each(|_| {
            budget.refill();
            assert!(!budget.allows(0));
        });
        budget.refill();
        assert!(budget.allows(221) && !budget.allows(222));
    }

    #[test]
    fn without_a_limit_there_is_always_room() {
        let mut budget = Budget::new(None);
        budget.spend(usize::MAX);
        assert!(budget.allows(usize::MAX));
    }
}
