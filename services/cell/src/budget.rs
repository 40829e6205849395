//! How much a client is shown: so many bytes a tick.
//!
//! A tick's bytes are spent until none are left, so the last thing shown at a tick may take more than there was; the ticks
//! after it make up for that. Over any number of ticks a client is thus sent at most what they and one tick more allow, and one
//! thing.

use std::num::NonZeroU32;

use crate::sampling::SECOND;

/// Headers of a packet, bytes, which a client's line carries as well: IPv4 and UDP. One packet a tick is counted, as
/// everywhere in this field: 20,000 bit/s are 222 bytes a tick.
const HEADERS: i64 = 28;

/// The largest thing shown is made up for within so many ticks; or a client that was shown a picture would stand still for
/// minutes.
const DEBT: i64 = 50;

/// What is left of the bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// `None`: as much as there is.
    tick: Option<i64>,
    balance: i64,
}

impl Budget {
    /// So many bits a second; `None` for no limit.
    pub(crate) fn new(bits: Option<NonZeroU32>) -> Self {
        let bytes = |bits: NonZeroU32| i64::from(bits.get()) / (8 * SECOND.cast_signed()) - HEADERS;
        Self {
            tick: bits.map(|bits| bytes(bits).max(1)),
            balance: 0,
        }
    }

    /// A tick begins. What was not needed at the one before it is kept, and nothing older.
    pub(crate) fn refill(&mut self) {
        if let Some(tick) = self.tick {
            self.balance = (self.balance + tick).min(2 * tick);
        }
    }

    /// Whether anything may be shown beyond `spent` bytes that are not noted yet.
    pub(crate) fn allows(&self, spent: usize) -> bool {
        self.tick.is_none() || self.balance > i64::try_from(spent).unwrap_or(i64::MAX)
    }

    /// How many bytes may still be shown.
    pub(crate) fn left(&self) -> usize {
        match self.tick {
            Some(_) => usize::try_from(self.balance).unwrap_or(0),
            None => usize::MAX,
        }
    }

    /// So many bytes were shown.
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
    fn what_was_not_needed_is_kept_for_one_tick_and_what_was_too_much_is_made_up_for() {
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
