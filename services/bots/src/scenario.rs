//! What bots do in a realm, phase after phase, and what came of it.
//!
//! A [`Scenario`] is read from a TOML file, or has one phase. Each [`Phase`] is a run of bots of its own: they log in,
//! do one thing together, and log off. Its [`PhaseReport`] is part of a [`ScenarioReport`], which is kept as JSON and
//! compared with an earlier one ([`Comparison`]).

mod comparison;
mod parser;
mod report;

use std::time::Duration;

pub use comparison::{Comparison, Difference, NotCompared};
pub use parser::{Mistake, ScenarioError, Wrong};
pub use report::{Environment, PhaseReport, ReadReportError, ScenarioReport, Times, Trades};

use crate::bots::Conduct;

/// Phases in their order; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub phases: Vec<Phase>,
}

/// A run of bots that all do the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name: small letters, digits and hyphens.
    pub name: String,
    pub conduct: Conduct,
    /// Number of bots.
    pub bots: usize,
    /// From the first log-in until all log off.
    pub duration: Duration,
}

impl Scenario {
    /// Bots that walk, for so long.
    #[must_use]
    pub fn walk(bots: usize, duration: Duration) -> Self {
        let conduct = Conduct::Walk;
        Self {
            phases: vec![Phase {
                name: conduct.name().to_owned(),
                conduct,
                bots,
                duration,
            }],
        }
    }
}
