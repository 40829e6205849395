//! How steadily the client hears of the world around it: what a player notices of a cell or base that is lost.

use std::collections::VecDeque;

use crate::event::Millis;

/// Milliseconds without news of the world that count as a silence: half as much again as a cell that has nothing to show lets
/// pass between two frames.
pub const SILENCE: u64 = 1_500;

/// Silences that are remembered; older ones are forgotten first.
const MAX_SILENCES: usize = 1_024;

/// A time in which nothing was heard of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When the last frame or datagram of the cell's view came.
    pub from: Millis,
    /// When the next one came.
    pub to: Millis,
}

/// What was heard of the cell's view, and when.
#[derive(Debug, Default)]
pub(crate) struct Hearing {
    last: Option<Millis>,
    silences: VecDeque<Silence>,
}

impl Hearing {
    /// A frame or datagram of the cell's view was taken.
    pub(crate) fn heard(&mut self, now: Millis) {
        if let Some(from) = self.last.filter(|from| now.0.saturating_sub(from.0) >= SILENCE) {
            if self.silences.len() == MAX_SILENCES {
                self.silences.pop_front();
            }
            self.silences.push_back(Silence { from, to: now });
        }
        self.last = Some(now);
    }

    /// The view is over. Until another begins there is nothing to hear.
    pub(crate) fn closed(&mut self) {
        self.last = None;
    }

    pub(crate) fn last(&self) -> Option<Millis> {
        self.last
    }

    pub(crate) fn silences(&self) -> &VecDeque<Silence> {
        &self.silences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lasts_is_a_silence() {
        let mut hearing = Hearing::default();
        for at in [5_000, 5_100, 6_599, 8_099, 9_000, 12_500] {
            hearing.heard(Millis(at));
        }
        let silence = |from, to| Silence {
            from: Millis(from),
            to: Millis(to),
        };
        let expected = [silence(6_599, 8_099), silence(9_000, 12_500)];
        assert!(hearing.silences().iter().eq(&expected));
        assert_eq!(hearing.last(), Some(Millis(12_500)));
        hearing.closed();
        hearing.heard(Millis(60_000));
        assert!(hearing.silences().iter().eq(&expected));
    }

    #[test]
    fn no_more_are_remembered_than_the_limit() {
        let mut hearing = Hearing::default();
        (0..=MAX_SILENCES as u64 + 1).for_each(|nth| hearing.heard(Millis(nth * SILENCE)));
        assert_eq!(hearing.silences().len(), MAX_SILENCES);
        assert_eq!(hearing.silences()[0].from, Millis(SILENCE));
    }
}
