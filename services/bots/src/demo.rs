//! The course of a demonstration: bots play in a realm while two of its processes are killed, the states of the owners
//! are read from their holders, and the promises that were checked give a verdict.

use std::{
    fmt, io,
    time::{Duration, Instant},
};

use annals_audit::replay::owners;
use annals_host::{
    nats::Bus,
    process::{AskError, request},
};
use annals_ids::{BatchNumber, Hash, LogPosition, OwnerId};
use annals_store::{Store, StoreError};
use annals_wire::{Subjects, control::Inspected};
use thiserror::Error;
use tokio::sync::watch;

use crate::{
    bots::{self, BotPlan, BotsError, BotsReport},
    progress::Progress,
};

/// The processes that are killed: the first after a third of the time, the second after two thirds.
pub const KILLED: [&str; 2] = ["cell-1", "base-1"];

/// How long an owner may be without a holder that answers.
const HELD_WITHIN: Duration = Duration::from_secs(20);

/// Interval between retries of these.
const AGAIN_AFTER: Duration = Duration::from_millis(300);

/// The verdict on a demonstration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every promise was kept, and everything was driven.
    Kept,
    /// No promise was broken, but something was not tried, for these reasons.
    Incomplete(Vec<String>),
    /// A promise was broken.
    Broken,
}

/// The promises checked so far, and what was not tried.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    broken: bool,
    untried: Vec<String>,
}

impl Findings {
    /// Records whether a promise was kept.
    pub fn promise(&mut self, is_kept: bool) {
        self.broken |= !is_kept;
    }

    /// Records something that was not tried, as the words after "but" in [`Verdict::Incomplete`].
    pub fn miss(&mut self, untried: String) {
        self.untried.push(untried);
    }

    /// What follows from them.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match (self.broken, self.untried.is_empty()) {
            (true, _) => Verdict::Broken,
            (false, true) => Verdict::Kept,
            (false, false) => Verdict::Incomplete(self.untried),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Kept => f.write_str("every promise was kept"),
            Verdict::Incomplete(untried) => write!(
                f,
                "INCOMPLETE: no promise was broken, but {}; let the bots play for longer, with DURATION=seconds (--duration)",
                untried.join(", and ")
            ),
            Verdict::Broken => f.write_str("FAILED: a promise was broken"),
        }
    }
}

/// Why a demonstration was aborted.
#[derive(Debug, Error)]
pub enum DemoError {
    /// The bots were aborted.
    #[error("the bots cannot run")]
    Bots(#[from] BotsError),
    /// The archive's owners are not known.
    #[error("the realm's store cannot be read")]
    Store(#[from] StoreError),
    /// No holder of an owner answers.
    #[error("owner {owner} cannot be inspected")]
    Inspect {
        owner: OwnerId,
        /// The last failure.
        source: AskError,
    },
    /// A holder's answer is malformed.
    #[error("owner {owner}'s holder answered with an invalid state hash; build all binaries from the same source")]
    Hash { owner: OwnerId },
    /// A process was not killed.
    #[error("a child process cannot be run")]
    Process(#[source] io::Error),
}

/// Lets bots play for a duration, which the plan's end must equal, and kills the processes of [`KILLED`] meanwhile:
/// `kill` is given the name of each, and the time since the bots began. Returns the names with the times of their ends;
/// fewer than two if the bots ended before.
///
/// # Errors
/// When the bots are aborted, or `kill` fails.
pub async fn play(
    plan: BotPlan,
    duration: Duration,
    progress: watch::Sender<Progress>,
    mut kill: impl FnMut(&'static str, Duration) -> io::Result<()>,
) -> Result<(BotsReport, Vec<(&'static str, Instant)>), DemoError> {
    let began = Instant::now();
    let mut kills = Vec::new();
    let playing = bots::run(plan, progress);
    tokio::pin!(playing);
    loop {
        let next = KILLED.get(kills.len()).copied();
        let due = began + duration * u32::try_from(kills.len() + 1).unwrap_or(u32::MAX) / 3;
        tokio::select! {
            report = &mut playing => return Ok((report?, kills)),
            () = tokio::time::sleep_until(due.into()), if next.is_some() => {
                let name = next.expect("invariant: guarded");
                kill(name, began.elapsed()).map_err(DemoError::Process)?;
                kills.push((name, Instant::now()));
            }
        }
    }
}

/// The live state of each owner, from its holder.
///
/// # Errors
/// When the store cannot be read, or an owner has no holder that answers in time.
pub async fn inspect(bus: &Bus, subjects: &Subjects, store: &Store) -> Result<Vec<(LogPosition, Hash)>, DemoError> {
    let mut live = Vec::new();
    for owner in owners(store).await? {
        let until = Instant::now() + HELD_WITHIN;
        let inspected = loop {
            match request::<Inspected>(bus, "the owner's holder", subjects.inspect(owner), &()).await {
                Ok(inspected) => break inspected,
                // The owner may be in a take-over.
                Err(_) if Instant::now() < until => tokio::time::sleep(AGAIN_AFTER).await,
                Err(source) => return Err(DemoError::Inspect { owner, source }),
            }
        };
        let state = inspected.state.try_into().map_err(|_| DemoError::Hash { owner })?;
        let state = Hash(state);
        live.push((
            LogPosition {
                owner,
                batch: BatchNumber(inspected.batch),
            },
            state,
        ));
    }
    Ok(live)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_differs_from_an_incomplete_run() {
        let untried = || vec!["3 exposed methods were not called (A.b)".to_owned()];
        let cases = [
            (Findings::default(), Verdict::Kept, "every promise was kept"),
            (
                Findings {
                    broken: false,
                    untried: untried(),
                },
                Verdict::Incomplete(untried()),
                "INCOMPLETE: no promise was broken, but 3 exposed methods were not called (A.b); let",
            ),
            (
                Findings {
                    broken: true,
                    untried: untried(),
                },
                Verdict::Broken,
                "FAILED: a promise was broken",
            ),
        ];
        for (findings, expected, text) in cases {
            let verdict = findings.verdict();
            assert_eq!(verdict, expected);
            assert!(verdict.to_string().starts_with(text), "{verdict}");
        }
    }
}
