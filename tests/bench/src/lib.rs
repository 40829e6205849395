//! The subjects of `make bench`: each module measures one subject, each figure against a baseline of the same run.
//!
//! A figure without a baseline says little: machines differ, and so does the same machine from day to day. Every module
//! therefore measures the bare operation beside the one of Annals, in one run, and reports the ratio.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

pub mod aging;
pub mod audit;
pub mod backup;
pub mod balance;
pub mod connections;
pub mod definitions;
pub mod interest;
mod lean;
pub mod log;
pub mod login;
mod processes;
pub mod quic_echo;
pub mod realm;
pub mod recovery;
pub mod round_trip;
pub mod scale;
pub mod sdk;
pub mod store;
pub mod telemetry;
pub mod tick;
pub mod trade;
pub mod traffic;
pub mod verify;
pub mod volatile;

/// A folder on the measured disk, deleted when dropped. It is below `target`, so that leftovers of a killed run do no
/// harm.
///
/// # Panics
/// If it cannot be created.
pub(crate) fn scratch() -> tempfile::TempDir {
    std::fs::create_dir_all("target/bench").expect("a folder to measure in");
    tempfile::tempdir_in("target/bench").expect("a folder to measure in")
}

/// One measured figure. Names that checks rely on do not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of the figure.
    pub name: String,
    /// The measured value.
    pub value: f64,
    /// The unit of `value` and `baseline`.
    pub unit: String,
    /// The value of the bare operation in the same run, if there is one to compare with.
    pub baseline: Option<f64>,
    /// `value / baseline`.
    pub ratio: Option<f64>,
    /// How to interpret it.
    pub note: String,
}

impl Figure {
    /// A figure without a baseline.
    #[must_use]
    pub fn alone(name: &str, value: f64, unit: &str, note: String) -> Self {
        Self {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            baseline: None,
            ratio: None,
            note,
        }
    }

    /// A figure with a baseline.
    #[must_use]
    pub fn against(name: &str, value: f64, baseline: f64, unit: &str, note: String) -> Self {
        let ratio = (baseline > 0.0).then(|| value / baseline);
        Self {
            baseline: Some(baseline),
            ratio,
            ..Self::alone(name, value, unit, note)
        }
    }
}

/// Median and 99th percentile of some durations, microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Percentiles {
    pub(crate) fn of(durations: &[Duration]) -> Self {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        let at = |share: usize| sorted[(sorted.len() * share / 100).min(sorted.len() - 1)].as_secs_f64() * 1e6;
        Self {
            p50: at(50),
            p99: at(99),
        }
    }
}

/// Processor time of this thread: for work that does not wait, so that other load on the machine is not counted.
pub(crate) fn busy() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime)
        .try_into()
        .expect("thread CPU time is not negative")
}

/// A subject: its name, and how it is measured.
pub type Subject = (&'static str, Measured);

/// In which process a subject is measured.
#[derive(Clone, Copy, Debug)]
pub enum Measured {
    /// In `annals-bench`, or in the processes of a realm that it starts.
    Here(fn() -> Vec<Figure>),
    /// In `annals-bench-db`, which has the allocator of `annals-db`.
    LikeDb(fn() -> Vec<Figure>),
}

/// All subjects, in the order in which they run.
pub const SUBJECTS: &[Subject] = &[
    ("definitions", Measured::Here(definitions::run)),
    ("log", Measured::Here(log::run)),
    ("store", Measured::LikeDb(store::run)),
    ("trade", Measured::LikeDb(trade::run)),
    ("aging", Measured::LikeDb(aging::run)),
    ("backup", Measured::Here(backup::run)),
    ("audit", Measured::Here(audit::run)),
    ("verify", Measured::Here(verify::run)),
    ("interest", Measured::Here(interest::run)),
    ("balance", Measured::Here(balance::run)),
    ("volatile", Measured::Here(volatile::run)),
    ("tick", Measured::Here(tick::run)),
    ("unwatched", Measured::Here(tick::unwatched::run)),
    ("watched", Measured::Here(tick::watched::run)),
    ("login", Measured::Here(login::run)),
    ("round_trip", Measured::Here(round_trip::run)),
    ("connections", Measured::Here(connections::run)),
    ("traffic", Measured::Here(traffic::run)),
    ("sdk", Measured::Here(sdk::run)),
    ("recovery", Measured::Here(recovery::run)),
    ("telemetry", Measured::Here(telemetry::run)),
    ("scale", Measured::Here(scale::run)),
];

/// Figures as lines of a table.
#[must_use]
pub fn table(figures: &[Figure]) -> String {
    let number = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
    let mut lines = vec![format!(
        "{:<34} {:>10} {:>10} {:>7}  {:<9} note",
        "name", "value", "baseline", "ratio", "unit"
    )];
    lines.extend(figures.iter().map(|figure| {
        let value = number(Some(figure.value), if figure.value < 100.0 { 2 } else { 0 });
        let baseline = number(
            figure.baseline,
            if figure.baseline.unwrap_or(0.0) < 100.0 { 2 } else { 0 },
        );
        let ratio = number(figure.ratio, 2);
        format!(
            "{:<34} {value:>10} {baseline:>10} {ratio:>7}  {:<9} {}",
            figure.name, figure.unit, figure.note
        )
    }));
    lines.join("\n")
}
