//! The progress of a run of bots.

use std::{fmt, time::Duration};

/// Progress of a run of bots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Time since the run began.
    pub elapsed: Duration,
    /// Bots that play at present.
    pub connected: u64,
    /// Of these, bots that receive nothing about the world around them.
    pub interrupted: u64,
    /// Bots that wait in the queue of a full realm.
    pub queued: u64,
    /// Planned number of bots.
    pub bots: u64,
    /// Calls made.
    pub calls: u64,
    /// Recent calls per second.
    pub calls_per_second: f64,
    /// Events that bots were shown.
    pub shown: u64,
    /// Recent events shown per second.
    pub shown_per_second: f64,
    /// Number of session resumptions.
    pub resumed: u64,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} bots play", self.connected, self.bots)?;
        if self.queued > 0 {
            write!(f, ", {} wait in the queue", self.queued)?;
        }
        write!(
            f,
            ", {:.0} calls/s, {:.0} shown/s, {} resumed",
            self.calls_per_second, self.shown_per_second, self.resumed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_printed_as_one_line() {
        let progress = Progress {
            connected: 97,
            bots: 100,
            calls_per_second: 210.4,
            shown_per_second: 3_140.6,
            resumed: 3,
            ..Progress::default()
        };
        assert_eq!(
            progress.to_string(),
            "97/100 bots play, 210 calls/s, 3141 shown/s, 3 resumed"
        );
        let full = Progress { queued: 2, ..progress };
        assert!(
            full.to_string()
                .starts_with("97/100 bots play, 2 wait in the queue, 210 calls/s")
        );
    }
}
