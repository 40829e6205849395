//! Time spent per phase of a round.

use std::{
    fmt,
    ops::AddAssign,
    time::{Duration, Instant},
};

/// The times of a round, or of many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    rounds: u32,
    spent: [Duration; Phase::ALL.len()],
}

/// The phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Starting a realm and logging in all bots, and stopping it.
    Setting,
    /// Playing before a fault.
    Playing,
    /// From a fault until all bots play again.
    Recovering,
    /// Checking that they continue to play.
    Settling,
    /// Waiting until everything logged is archived, and checking that a frozen process has appended nothing.
    Archiving,
    /// Verifying all logs.
    Verifying,
    /// Comparing what bots were shown with the archive.
    Checking,
    /// Comparing the ledger, and the holdings known to bases, with its entries.
    Auditing,
    /// Reading process logs.
    Reading,
    /// Checking everything from the beginning.
    ProvingAnew,
}

impl Phase {
    const ALL: [Self; 10] = [
        Self::Setting,
        Self::Playing,
        Self::Recovering,
        Self::Settling,
        Self::Archiving,
        Self::Verifying,
        Self::Checking,
        Self::Auditing,
        Self::Reading,
        Self::ProvingAnew,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Setting => "set-up",
            Self::Playing => "playing",
            Self::Recovering => "recovery",
            Self::Settling => "settling",
            Self::Archiving => "archiving",
            Self::Verifying => "verifying",
            Self::Checking => "shown",
            Self::Auditing => "ledger",
            Self::Reading => "logs",
            Self::ProvingAnew => "proof from nothing",
        }
    }
}

impl Times {
    /// Adds time.
    pub(crate) fn add(&mut self, phase: Phase, time: Duration) {
        self.spent[phase as usize] += time;
    }

    /// Adds the time since `since`, which becomes the current time.
    pub(crate) fn lap(&mut self, phase: Phase, since: &mut Instant) {
        let now = Instant::now();
        self.add(phase, now - *since);
        *since = now;
    }

    /// Counts a round.
    pub(crate) fn count_round(&mut self) {
        self.rounds += 1;
    }
}

impl AddAssign for Times {
    fn add_assign(&mut self, more: Self) {
        self.rounds += more.rounds;
        self.spent
            .iter_mut()
            .zip(more.spent)
            .for_each(|(sum, more)| *sum += more);
    }
}

/// Seconds per round.
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |time: Duration| (time / self.rounds.max(1)).as_secs_f64();
        write!(f, "{:.1} s", each(self.spent.iter().sum()))?;
        for phase in Phase::ALL {
            let time = each(self.spent[phase as usize]);
            if time >= 0.05 {
                write!(f, ", {} {time:.1}", phase.title())?;
            }
        }
        Ok(())
    }
}
