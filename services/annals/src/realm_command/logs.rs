//! `annals realm logs`: the newest log lines of all processes of a live realm, searched and merged by time.

use std::{
    collections::BTreeMap,
    io::{self, Write, stdout},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use annals_host::{
    health::{DiscoveryError, Instance, log_lines},
    log_source::KeptRealm,
    process::Settings,
    telemetry::{LINES, LogAnswer, LogLine, LogRequest},
    watched::{BadPattern, Patterns},
};
use serde_json::json;
use thiserror::Error;

use super::{
    Format, RealmError,
    live::{Live, NotReached, TIMEOUT, path_of},
};

/// Interval at which new lines are requested.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Search the newest log lines of all processes.
#[derive(Debug, clap::Args)]
pub(super) struct Logs {
    /// Only lines of this level, and of more severe ones
    #[arg(long, value_enum, default_value_t = Level::Trace)]
    level: Level,
    /// Only lines of these processes: SERVICE, or SERVICE/PROCESS, with `*` for any; may be given several times
    #[arg(long, value_name = "PROCESS")]
    process: Vec<String>,
    /// Only lines that contain this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    text: String,
    /// Only lines that this regular expression matches
    #[arg(long, value_name = "REGEX", default_value = "", hide_default_value = true)]
    grep: String,
    /// Only lines of this last time, such as 5m or 2h
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    since: Option<Duration>,
    /// Maximum number of lines: the newest
    #[arg(long, default_value_t = 500)]
    limit: usize,
    /// Go on with new lines, until interrupted
    #[arg(long)]
    follow: bool,
    /// Output format; json: one object per line
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// A level of severity.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }
}

/// Why there are no lines.
#[derive(Debug, Error)]
pub(super) enum NoLogs {
    #[error(transparent)]
    NotReached(#[from] NotReached),
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error(transparent)]
    Pattern(#[from] BadPattern),
    #[error("{process} refused the request: {reason}")]
    Refused { process: String, reason: String },
    #[error("there is no process {wanted}; there are {}", found.join(", "))]
    NoProcess { wanted: String, found: Vec<String> },
}

/// A line of a process.
struct Line {
    process: String,
    line: LogLine,
}

impl Logs {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> Result<ExitCode, RealmError> {
        let wanted = match &self.process[..] {
            [] => Patterns::new(["**"]),
            processes => Patterns::new(processes),
        };
        let wanted = wanted.map_err(NoLogs::from)?;
        let mut live = Live::find(kept, settings, "logs").await.map_err(NoLogs::from)?;
        if !live.instances.iter().any(|instance| wanted.matches(&path_of(instance))) {
            let (wanted, found) = (self.process.join(", "), live.instances.iter().map(path_of).collect());
            return Err(NoLogs::NoProcess { wanted, found }.into());
        }
        // Number of the next line, by instance.
        let mut next: BTreeMap<String, u64> = BTreeMap::new();
        let mut limit = self.limit;
        loop {
            let mut lines = self.round(&live, &wanted, &mut next, limit).await?;
            lines.sort_by(|one, other| {
                (&one.line.timestamp, &one.process).cmp(&(&other.line.timestamp, &other.process))
            });
            let older = lines.len().saturating_sub(limit);
            if older > 0 {
                eprintln!("older lines match too: raise --limit to see them");
            }
            self.print(&lines[older..])?;
            if !self.follow {
                return Ok(ExitCode::SUCCESS);
            }
            limit = LINES;
            tokio::time::sleep(FOLLOW_INTERVAL).await;
            live.keep_up().await.map_err(NoLogs::from)?;
        }
    }

    /// The lines since the last round, of all wanted processes.
    async fn round(
        &self,
        live: &Live,
        wanted: &Patterns,
        next: &mut BTreeMap<String, u64>,
        limit: usize,
    ) -> Result<Vec<Line>, NoLogs> {
        let instances = live
            .instances
            .iter()
            .filter(|instance| wanted.matches(&path_of(instance)));
        let requests: Vec<(&Instance, LogRequest)> = instances
            .map(|instance| {
                (
                    instance,
                    self.request(next.get(&instance.id).copied().unwrap_or(0), limit),
                )
            })
            .collect();
        let asking = requests.iter().map(|(instance, request)| async move {
            log_lines(&live.bus, &live.settings.realm, instance, request, TIMEOUT).await
        });
        let answers = futures::future::join_all(asking).await;
        let mut lines = Vec::new();
        for ((instance, request), answer) in requests.iter().zip(answers) {
            let process = path_of(instance);
            match answer {
                Ok(answer) if !answer.refused.is_empty() => {
                    let reason = answer.refused;
                    return Err(NoLogs::Refused { process, reason });
                }
                Ok(answer) => {
                    note_missing(&process, request, &answer);
                    next.insert(instance.id.clone(), answer.next);
                    let of_it = answer.lines.into_iter().map(|line| Line {
                        process: process.clone(),
                        line,
                    });
                    lines.extend(of_it);
                }
                // In a later round it answers, or is no longer found.
                Err(_) if self.follow => {}
                Err(_) => eprintln!("no answer of {process}"),
            }
        }
        Ok(lines)
    }

    fn request(&self, from: u64, limit: usize) -> LogRequest {
        let since = self.since.map(|since| SystemTime::now() - since);
        let since = since.and_then(|since| since.duration_since(UNIX_EPOCH).ok());
        LogRequest {
            level: self.level.name().to_owned(),
            text: self.text.clone(),
            pattern: self.grep.clone(),
            since: since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            from,
            limit,
        }
    }

    fn print(&self, lines: &[Line]) -> io::Result<()> {
        let mut out = stdout().lock();
        for Line { process, line } in lines {
            match self.format {
                Format::Table => writeln!(out, "{} {:>5} {process}  {line}", line.timestamp, line.level)?,
                Format::Json => {
                    let mut object = json!(line);
                    object["process"] = json!(process);
                    writeln!(out, "{object}")?;
                }
            }
        }
        out.flush()
    }
}

/// Says on standard error what is missing in an answer.
fn note_missing(process: &str, request: &LogRequest, answer: &LogAnswer) {
    if answer.left_out > 0 {
        eprintln!(
            "{} older lines of {process} match: raise --limit to see them",
            answer.left_out
        );
    }
    // At first, everything that a process has written before is wanted, and it need not keep that.
    if request.from > 0 && answer.gone > 0 {
        eprintln!("{} lines of {process} were not kept long enough", answer.gone);
    }
}
