//! What came of a scenario: as text, and as JSON that a later run is compared with.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use annals_client::EndReason;
use annals_def::Schema;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Phase;
use crate::bots::{BotReport, BotsReport, Conduct, TradeEnd, exposed_methods};

/// Version of the JSON. A program refuses to compare with another one.
const FORMAT: u32 = 1;

/// Maximum bytes of a report that is read: larger than that of any scenario.
const MAX_BYTES: u64 = 64 << 20;

/// Methods that were not called, in the text of a report.
const MAX_NAMED: usize = 10;

/// The report of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioReport {
    pub format: u32,
    #[serde(flatten)]
    pub environment: Environment,
    pub phases: Vec<PhaseReport>,
}

/// What the figures of a report depend on, as far as bots know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of the program that drove the bots.
    pub version: String,
    /// Its commit, if it knows it.
    pub commit: Option<String>,
    /// Fingerprint of the world's definitions.
    pub schema: String,
    pub seed: u64,
    /// Whether bots asked for plain movements only.
    pub plain_movements: bool,
}

/// The report of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseReport {
    pub name: String,
    pub kind: String,
    pub bots: u64,
    /// Planned duration, seconds.
    pub seconds: u64,
    /// Time until all had logged off, seconds.
    pub elapsed: f64,
    /// Whether each bot logged in and was neither disconnected for good nor warned.
    pub has_played: bool,
    pub log_ins: u64,
    pub log_ins_refused: u64,
    /// Bots without any log-in.
    pub never_logged_in: u64,
    /// From the beginning of a log-in to the open session.
    pub log_in_times: Times,
    pub calls: u64,
    pub calls_taken: u64,
    pub calls_refused: u64,
    /// Calls that may not have reached their part, because it ended: often those of a bot that was leaving.
    pub calls_lost: u64,
    /// From a call through base and cell to its answer.
    pub round_trips: Times,
    /// Trades, as shown to their parties.
    pub trades: Trades,
    /// Connections that were lost, and sessions that the realm ended.
    pub disconnects: u64,
    /// Sessions that were resumed.
    pub resumed: u64,
    /// Views that were restarted because of a gap.
    pub views_restarted: u64,
    pub changes_shown: u64,
    pub client_methods_shown: u64,
    /// Average number of others in a bot's view.
    pub in_view: f64,
    /// Bytes sent to a client in a second of its session.
    pub bytes_per_second: f64,
    /// Of these, movements.
    pub moves_bytes_per_second: f64,
    /// Exposed methods that were called, of how many.
    pub exposed_called: u64,
    pub exposed: u64,
    /// Those that were not called.
    pub not_called: Vec<String>,
    /// How often each kind of error occurred.
    pub errors: BTreeMap<String, u64>,
    /// By bot, why sessions ended that the bot did not end.
    pub ended: BTreeMap<String, Vec<String>>,
}

/// A distribution of times, in microseconds; 0 if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    pub count: u64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub max_us: u64,
}

/// How trades ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trades {
    pub settled: u64,
    pub cancelled: u64,
    pub expired: u64,
}

/// Why a report cannot be read.
#[derive(Debug, Error)]
pub enum ReadReportError {
    #[error("{path} cannot be read", path = path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path} has {bytes} bytes, more than any report: name a file that --report wrote", path = path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{path} is not a report: name a file that --report wrote", path = path.display())]
    Malformed { path: PathBuf, source: serde_json::Error },
    #[error(
        "{path} is a report of format {found}, and this program has format {FORMAT}: run both scenarios with one release",
        path = path.display()
    )]
    Format { path: PathBuf, found: u32 },
}

/// The part of a report that every format has.
#[derive(Debug, Deserialize)]
struct Formatted {
    format: u32,
}

impl ScenarioReport {
    /// The report of these phases.
    #[must_use]
    pub fn new(environment: Environment, phases: Vec<PhaseReport>) -> Self {
        Self {
            format: FORMAT,
            environment,
            phases,
        }
    }

    /// Reads a report.
    ///
    /// # Errors
    /// When the file is not a report of this format.
    pub fn read(path: &Path) -> Result<Self, ReadReportError> {
        let unreadable = |source| ReadReportError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let malformed = |source| ReadReportError::Malformed {
            path: path.to_owned(),
            source,
        };
        let bytes = fs::metadata(path).map_err(unreadable)?.len();
        if bytes > MAX_BYTES {
            let path = path.to_owned();
            return Err(ReadReportError::TooLarge { path, bytes });
        }
        let text = fs::read(path).map_err(unreadable)?;
        let Formatted { format } = serde_json::from_slice(&text).map_err(malformed)?;
        if format != FORMAT {
            return Err(ReadReportError::Format {
                path: path.to_owned(),
                found: format,
            });
        }
        serde_json::from_slice(&text).map_err(malformed)
    }

    /// Whether each bot played in each phase.
    #[must_use]
    pub fn has_played(&self) -> bool {
        self.phases.iter().all(|phase| phase.has_played)
    }
}

impl PhaseReport {
    /// The report of a phase's bots.
    #[must_use]
    pub fn of(phase: &Phase, report: &BotsReport, schema: &Schema) -> Self {
        let total = |figure: fn(&BotReport) -> u64| report.total(figure);
        let trades = |end| report.trades(end) as u64;
        let (bytes_per_second, moves_bytes_per_second) = report.bytes_per_second();
        let refused = |reason: &&EndReason| matches!(reason, EndReason::LoginRefused(_) | EndReason::Rejected(_));
        let ends = report.bots.iter().flat_map(|bot| &bot.ended);
        let log_ins_refused = ends.clone().filter(refused).count() as u64;
        let ended = ends.count() as u64 - log_ins_refused;
        Self {
            name: phase.name.clone(),
            kind: phase.conduct.name().to_owned(),
            bots: phase.bots as u64,
            seconds: phase.duration.as_secs(),
            elapsed: report.elapsed.as_secs_f64(),
            has_played: report.has_played(),
            log_ins: total(|bot| bot.log_ins),
            log_ins_refused,
            never_logged_in: total(|bot| u64::from(bot.log_ins == 0)),
            log_in_times: Times::of(&report.log_in_times()),
            calls: total(|bot| bot.calls),
            calls_taken: total(|bot| bot.confirmed),
            calls_refused: total(|bot| bot.refused.values().sum()),
            calls_lost: total(|bot| bot.lost_calls),
            round_trips: Times::of(&report.round_trips()),
            trades: Trades {
                settled: trades(TradeEnd::Settled),
                cancelled: trades(TradeEnd::Cancelled),
                expired: trades(TradeEnd::Expired),
            },
            disconnects: total(|bot| bot.disconnected.len() as u64) + ended,
            resumed: total(|bot| bot.resumed),
            views_restarted: total(|bot| bot.view_gaps),
            changes_shown: total(|bot| bot.changes),
            client_methods_shown: total(|bot| bot.invocations),
            in_view: report.in_view(),
            bytes_per_second,
            moves_bytes_per_second,
            exposed_called: report.driven().len() as u64,
            exposed: exposed_methods(schema) as u64,
            not_called: report.undriven(schema),
            errors: errors(report, schema),
            ended: ended_by_bot(report),
        }
    }
}

/// How often each kind of error occurred to the bots.
fn errors(report: &BotsReport, schema: &Schema) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    let mut count = |kind: String, times: u64| {
        if times > 0 {
            *errors.entry(kind).or_default() += times;
        }
    };
    for bot in &report.bots {
        bot.ended.iter().for_each(|reason| count(reason.to_string(), 1));
        let lost = bot.disconnected.iter();
        lost.for_each(|reason| count(format!("disconnected: {reason}"), 1));
        count("a frame or datagram was malformed".to_owned(), bot.malformed);
        count("the realm warned of sending too much".to_owned(), bot.rate_warnings);
        count("a view was restarted because of a gap".to_owned(), bot.view_gaps);
    }
    for (what, times) in report.refusals(schema) {
        count(format!("call refused: {what}"), times);
    }
    errors
}

fn ended_by_bot(report: &BotsReport) -> BTreeMap<String, Vec<String>> {
    let ended = report.bots.iter().filter(|bot| !bot.ended.is_empty());
    ended
        .map(|bot| {
            let reasons = bot.ended.iter().map(ToString::to_string).collect();
            (bot.name.clone(), reasons)
        })
        .collect()
}

impl Times {
    fn of(times: &Histogram<u64>) -> Self {
        if times.is_empty() {
            return Self::default();
        }
        Self {
            count: times.len(),
            p50_us: times.value_at_quantile(0.5),
            p90_us: times.value_at_quantile(0.9),
            p99_us: times.value_at_quantile(0.99),
            max_us: times.max(),
        }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count == 0 {
            return f.write_str("none");
        }
        let ms = |us: u64| us as f64 / 1_000.0;
        write!(
            f,
            "p50 {:.1} ms, p90 {:.1} ms, p99 {:.1} ms, max {:.1} ms ({})",
            ms(self.p50_us),
            ms(self.p90_us),
            ms(self.p99_us),
            ms(self.max_us),
            self.count
        )
    }
}

/// Lines without an end of the last one.
impl fmt::Display for PhaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {}, {} bots, {} s",
            self.name, self.kind, self.bots, self.seconds
        )?;
        writeln!(
            f,
            "  log-ins {}, refused {}; {}",
            self.log_ins, self.log_ins_refused, self.log_in_times
        )?;
        writeln!(
            f,
            "  calls {} ({} taken, {} refused, {} lost); property changes shown {}, client methods {}",
            self.calls,
            self.calls_taken,
            self.calls_refused,
            self.calls_lost,
            self.changes_shown,
            self.client_methods_shown
        )?;
        writeln!(f, "  round trips bot → base → cell → bot: {}", self.round_trips)?;
        let Trades {
            settled,
            cancelled,
            expired,
        } = self.trades;
        if settled + cancelled + expired > 0 {
            writeln!(
                f,
                "  trades settled {settled}, cancelled {cancelled}, expired {expired}"
            )?;
        }
        writeln!(
            f,
            "  {:.0} others in view; {:.0} bytes/s per client, {:.0} of them movements",
            self.in_view, self.bytes_per_second, self.moves_bytes_per_second
        )?;
        write!(
            f,
            "  disconnects {}; sessions resumed {}; views restarted {}",
            self.disconnects, self.resumed, self.views_restarted
        )?;
        if self.kind == Conduct::Walk.name() {
            write!(
                f,
                "\n  exposed methods driven {} of {}",
                self.exposed_called, self.exposed
            )?;
        }
        if self.kind == Conduct::Walk.name() && !self.not_called.is_empty() {
            let named = self.not_called.iter().take(MAX_NAMED).map(String::as_str);
            write!(f, "; not called: {}", named.collect::<Vec<_>>().join(", "))?;
            let further = self.not_called.len().saturating_sub(MAX_NAMED);
            if further > 0 {
                write!(f, " and {further} more")?;
            }
        }
        for (what, times) in &self.errors {
            write!(f, "\n  {times} × {what}")?;
        }
        Ok(())
    }
}
