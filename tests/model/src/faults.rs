//! Kinds of faults, and how many of each one schedule may contain.
//!
//! A pause needs no fault of its own: no model has a clock that forces a process to act, so any process may do nothing
//! for any time while everything else proceeds, and then continue with stale state. The same holds for delay and
//! reordering: a message in flight may arrive at any time, in any order, or never.

/// Maximum number of faults of each kind in one schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Faults {
    /// A process crashes and loses its memory.
    pub crashes: u8,
    /// The log loses its newest messages (one fault loses one or two), and reuses their sequences.
    pub tails: u8,
    /// The log loses one message, from the middle or the end; its sequence is not reused.
    pub holes: u8,
    /// A message is delivered twice.
    pub repeats: u8,
    /// A message, or an answer, is lost.
    pub drops: u8,
    /// The store commits, and its answer is lost.
    pub unknowns: u8,
    /// A server closes the connection of a process that goes on, and reports it.
    pub disconnects: u8,
    /// A batch is damaged in the memory of the process that keeps it.
    pub damages: u8,
}

impl Faults {
    /// No faults.
    pub const NONE: Faults = Faults {
        crashes: 0,
        tails: 0,
        holes: 0,
        repeats: 0,
        drops: 0,
        unknowns: 0,
        disconnects: 0,
        damages: 0,
    };

    /// Adds `times` faults of each kind that is allowed at all: for deeper runs.
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
            disconnects: more(self.disconnects),
            damages: more(self.damages),
        }
    }
}

/// Takes one from a budget; false if none is left.
pub(crate) fn spend(budget: &mut u8) -> bool {
    match budget.checked_sub(1) {
        Some(left) => {
            *budget = left;
            true
        }
        None => false,
    }
}
