//! Gaps in the updates of the cell's view: what a player notices when a cell or base fails.

use std::collections::VecDeque;

use crate::event::Millis;

/// Milliseconds without an update of the cell's view that count as a silence: one and a half times the interval at
/// which a cell sends frames that show nothing new.
pub const SILENCE: u64 = 1_500;

/// Maximum silences that are recorded; the oldest are dropped first.
const MAX_SILENCES: usize = 1_024;

/// A period without updates of the cell's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When the last frame or datagram of the cell's view arrived.
    pub from: Millis,
    /// When the next one arrived.
    pub to: Millis,
}

/// Milliseconds without an update that count as a gap, where ten updates per second are due.
pub const GAP: u64 = 150;

/// Maximum gaps that are recorded.
const MAX_GAPS: usize = 4_096;

/// Arrival times of the cell's view.
#[derive(Debug, Default)]
pub(crate) struct UpdateGaps {
    last: Option<Millis>,
    silences: VecDeque<Silence>,
    gaps: VecDeque<Silence>,
}

impl UpdateGaps {
    /// Records that a frame or datagram of the cell's view was accepted.
    pub(crate) fn received(&mut self, now: Millis) {
        let lasted = |at_least: u64| self.last.filter(|from| now.0.saturating_sub(from.0) >= at_least);
        if let Some(from) = lasted(SILENCE) {
            push(&mut self.silences, MAX_SILENCES, Silence { from, to: now });
        }
        if let Some(from) = lasted(GAP) {
            push(&mut self.gaps, MAX_GAPS, Silence { from, to: now });
        }
        self.last = Some(now);
    }

    /// The view has ended. Until another starts, silence is not recorded.
    pub(crate) fn closed(&mut self) {
        self.last = None;
    }

    pub(crate) fn last(&self) -> Option<Millis> {
        self.last
    }

    pub(crate) fn silences(&self) -> &VecDeque<Silence> {
        &self.silences
    }

    pub(crate) fn gaps(&self) -> &VecDeque<Silence> {
        &self.gaps
    }
}

fn push(kept: &mut VecDeque<Silence>, most: usize, silence: Silence) {
    if kept.len() == most {
        kept.pop_front();
    }
    kept.push_back(silence);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lasting_silence_counts() {
        let mut update_gaps = UpdateGaps::default();
        for at in [5_000, 5_100, 6_599, 8_099, 9_000, 12_500] {
            update_gaps.received(Millis(at));
        }
        let silence = |from, to| Silence {
            from: Millis(from),
            to: Millis(to),
        };
        let expected = [silence(6_599, 8_099), silence(9_000, 12_500)];
        assert!(update_gaps.silences().iter().eq(&expected));
        assert_eq!(update_gaps.last(), Some(Millis(12_500)));
        update_gaps.closed();
        update_gaps.received(Millis(60_000));
        assert!(update_gaps.silences().iter().eq(&expected));
    }

    #[test]
    fn remembered_entries_are_limited() {
        let mut update_gaps = UpdateGaps::default();
        (0..=MAX_SILENCES as u64 + 1).for_each(|nth| update_gaps.received(Millis(nth * SILENCE)));
        assert_eq!(update_gaps.silences().len(), MAX_SILENCES);
        assert_eq!(update_gaps.silences()[0].from, Millis(SILENCE));
    }
}
