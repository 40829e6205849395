//! What may go wrong, and how often within one schedule.
//!
//! A pause needs no fault of its own: no model has a clock that makes anybody act, so any process may do nothing for as
//! long as it likes while everything else goes on, and then go on with what it knew. Delay and reordering come the same
//! way: whatever is on its way may arrive at any time, in any order, or never.

/// How many of each kind of fault a schedule may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Faults {
    /// A process is gone with its memory.
    pub crashes: u8,
    /// The log loses its newest messages (one fault loses one or two), and gives their sequences out again.
    pub tails: u8,
    /// The log loses one message, from the middle or the end, and sequences go on.
    pub holes: u8,
    /// A message arrives and arrives again.
    pub repeats: u8,
    /// A message, or an answer, never arrives.
    pub drops: u8,
    /// The store commits, and the answer is lost.
    pub unknowns: u8,
    /// A batch comes damaged out of the memory it was kept in.
    pub damages: u8,
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Faults = Faults {
        crashes: 0,
        tails: 0,
        holes: 0,
        repeats: 0,
        drops: 0,
        unknowns: 0,
        damages: 0,
    };

    /// One more of every kind that is allowed at all, `times` over: for deeper runs.
    #[must_use]
    pub fn deeper(self, times: u8) -> Self {
        let more = |count: u8| if count == 0 { 0 } else { count + times };
        Self {
            crashes: more(self.crashes),
            tails: more(self.tails),
            holes: more(self.holes),
            repeats: more(self.repeats),
            drops: more(self.drops),
            unknowns: more(self.unknowns),
            damages: more(self.damages),
        }
    }
}

/// Takes one from a budget, if one is left.
pub(crate) fn spend(budget: &mut u8) -> bool {
    match budget.checked_sub(1) {
        Some(left) => {
            *budget = left;
            true
        }
        None => false,
    }
}
