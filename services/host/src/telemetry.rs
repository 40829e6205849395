//! What a process reports: its log, its traces, and its metrics. [`crate::health`] serves them to others.

mod catalogue;
mod costs;
pub(crate) mod exposition;
mod metrics;
pub mod otlp;
mod process_log;
mod resources;
mod spans;
pub mod trace;

use std::error::Error;
use std::fmt;
use std::io::{IsTerminal, stderr};

pub use costs::{Costs, MemberCost};
pub use metrics::{Counter, Gauge, Histogram, Metrics, Snapshot, Summary};
pub use process_log::{LINES, LogAnswer, LogLine, LogRequest, ProcessLog};
#[cfg(test)]
pub(crate) use spans::testing;
pub use spans::{Span, Traces};

use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

use crate::config::{LogFilter, LogFormat};

/// Another part of the process has set up logging already.
#[derive(Debug, thiserror::Error)]
#[error("logging is set up already: call telemetry::init once, at start")]
pub struct AlreadySet;

/// Writes the process's log to standard error, filtered by `filter`, in the given `format`, and keeps its newest lines.
///
/// # Errors
/// When it was called before.
pub fn init(filter: &LogFilter, format: LogFormat) -> Result<ProcessLog, AlreadySet> {
    // Neither may report on standard error, and panic when that fails too, as on a full disk.
    let log = tracing_subscriber::fmt::layer()
        .with_writer(stderr)
        .log_internal_errors(false);
    let written = match format {
        LogFormat::Text => log.with_ansi(stderr().is_terminal()).boxed(),
        LogFormat::Json => log
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed(),
    };
    let (process_log, filter) = ProcessLog::new(filter);
    let set = tracing_subscriber::registry()
        .with(filter)
        .with(written)
        .with(process_log.layer())
        .try_init();
    set.map(|()| process_log).map_err(|_| AlreadySet)
}

/// Writes a command's warnings to standard error, one plain line each: above all what it waits for.
///
/// # Errors
/// When logging is set up already.
pub fn init_command() -> Result<(), AlreadySet> {
    let ours = EnvFilter::new("off,annals=warn");
    let lines = tracing_subscriber::fmt()
        .with_env_filter(ours)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .without_time()
        .with_target(false)
        .log_internal_errors(false);
    lines.try_init().map_err(|_| AlreadySet)
}

/// An error with its chain of sources, for the edge where it is reported: `what: why: why that`.
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the log could not be read")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn the_chain_names_every_cause_once() {
        let error = Outer(std::io::Error::other("the disk is gone"));
        assert_eq!(Chain(&error).to_string(), "the log could not be read: the disk is gone");
    }
}
