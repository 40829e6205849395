//! The newest lines of a process's log, kept in memory for operators who search those of all processes, and the log's
//! filter, which can be changed while the process runs.

use std::{
    collections::VecDeque,
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::{Level, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    fmt::MakeWriter,
    registry::LookupSpan,
    reload::{self, Handle},
};

use crate::{clock, config::LogFilter};

/// Maximum lines that a process keeps.
pub const LINES: usize = 2_000;

/// Maximum bytes of the lines that a process keeps.
const BYTES: usize = 1 << 20;

/// Maximum bytes of a line; a longer one is shortened.
const LINE_BYTES: usize = 16 << 10;

/// Maximum bytes of a compiled regular expression.
const REGEX_BYTES: usize = 1 << 20;

/// The newest lines of the log of this process, and its filter. Clones are of the same log.
#[derive(Clone, Default)]
pub struct ProcessLog {
    kept: Arc<Mutex<Kept>>,
    filter: Option<Arc<Filter>>,
}

struct Filter {
    handle: Handle<EnvFilter, Registry>,
    text: Mutex<String>,
}

#[derive(Default)]
struct Kept {
    /// With the time of each, by the wall clock, in milliseconds.
    lines: VecDeque<(u64, String)>,
    bytes: usize,
    /// Number of the next line; lines are numbered from 0.
    next: u64,
}

/// Request for lines.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LogRequest {
    /// The least severe level that is wanted; empty for all.
    pub level: String,
    /// Text that a line must contain; empty for all.
    pub text: String,
    /// Regular expression that the text of a line must match; empty for all.
    pub pattern: String,
    /// The oldest time that is wanted, wall clock, milliseconds.
    pub since: u64,
    /// The first number that is wanted.
    pub from: u64,
    /// Maximum lines of the answer: the newest of those that match.
    pub limit: usize,
}

/// Lines of one process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogAnswer {
    /// Oldest first.
    pub lines: Vec<LogLine>,
    /// Number of the line that is written next.
    pub next: u64,
    /// Number of wanted lines that are not kept any more.
    pub gone: u64,
    /// How many lines match beyond the limit.
    pub left_out: usize,
    /// Why the request was refused; else empty.
    pub refused: String,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was written, RFC 3339 in UTC.
    pub timestamp: String,
    pub level: String,
    /// The module that wrote it.
    pub target: String,
    #[serde(default)]
    pub message: String,
    /// The span that it was written in, with its trace.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub span: Map<String, Value>,
    /// Everything else.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl ProcessLog {
    /// A log that keeps nothing yet, and the layer that filters it.
    pub(super) fn new(filter: &LogFilter) -> (Self, reload::Layer<EnvFilter, Registry>) {
        let (layer, handle) = reload::Layer::new(filter.filter());
        let filter = Filter {
            handle,
            text: Mutex::new(filter.to_string()),
        };
        let log = Self {
            kept: Arc::default(),
            filter: Some(Arc::new(filter)),
        };
        (log, layer)
    }

    /// The layer that keeps lines.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .with_ansi(false)
            .log_internal_errors(false)
            .with_writer(Keep(Arc::clone(&self.kept)))
    }

    /// The filter; empty if the log has none.
    #[must_use]
    pub fn filter(&self) -> String {
        self.filter.as_ref().map_or_else(String::new, |filter| {
            filter.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })
    }

    /// Changes the filter, of what is written and of what is kept.
    pub fn set_filter(&self, new: &LogFilter) {
        let Some(filter) = &self.filter else { return };
        let mut text = filter.text.lock().unwrap_or_else(PoisonError::into_inner);
        match filter.handle.reload(new.filter()) {
            Ok(()) => *text = new.to_string(),
            Err(error) => tracing::error!(%error, "the filter of the log cannot be changed"),
        }
    }

    /// Number of lines that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept().lines.len()
    }

    /// Whether no line is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lines that a request wants.
    #[must_use]
    pub fn search(&self, request: &LogRequest) -> LogAnswer {
        let refused = |refused: String| LogAnswer {
            refused,
            ..LogAnswer::default()
        };
        let level: Level = match request.level.as_str() {
            "" => Level::TRACE,
            level => match level.parse() {
                Ok(level) => level,
                Err(_) => return refused(format!("there is no level {level:?}")),
            },
        };
        let pattern = match matcher(&request.pattern) {
            Ok(pattern) => pattern,
            Err(error) => return refused(error.to_string()),
        };
        // Only copied under the lock: it must not hold up what the process logs.
        let (lines, next, oldest) = {
            let kept = self.kept();
            let oldest = kept.next - kept.lines.len() as u64;
            let skipped = usize::try_from(request.from.saturating_sub(oldest)).unwrap_or(usize::MAX);
            let wanted = kept.lines.iter().skip(skipped).filter(|(at, _)| *at >= request.since);
            let lines: Vec<String> = wanted.map(|(_, line)| line.clone()).collect();
            (lines, kept.next, oldest)
        };
        let lines = lines
            .iter()
            .filter_map(|line| serde_json::from_str::<LogLine>(line).ok());
        let mut lines: Vec<LogLine> = lines
            .filter(|line| line.is_at_least(level))
            .filter(|line| {
                let text = line.to_string();
                let is_match = pattern.as_ref().is_none_or(|pattern| pattern.is_match(&text));
                is_match && text.contains(&request.text)
            })
            .collect();
        let left_out = lines.len().saturating_sub(request.limit);
        LogAnswer {
            lines: lines.split_off(left_out),
            next,
            gone: oldest.saturating_sub(request.from),
            left_out,
            refused: String::new(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A regular expression as operators write it; `None` for an empty one.
fn matcher(pattern: &str) -> Result<Option<Regex>, regex::Error> {
    if pattern.is_empty() {
        return Ok(None);
    }
    RegexBuilder::new(pattern).size_limit(REGEX_BYTES).build().map(Some)
}

impl fmt::Debug for ProcessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessLog").field("lines", &self.len()).finish()
    }
}

impl LogLine {
    /// Whether it is as severe as `level`, or more.
    fn is_at_least(&self, level: Level) -> bool {
        // A less severe level is the greater one.
        self.level.parse::<Level>().is_ok_and(|own| own <= level)
    }
}

impl fmt::Display for LogLine {
    /// The module, the message, and the fields.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.target, self.message)?;
        for (name, value) in self.fields.iter().chain(&self.span) {
            match value {
                Value::String(text) => write!(f, " {name}={text}")?,
                value => write!(f, " {name}={value}")?,
            }
        }
        Ok(())
    }
}

impl Kept {
    fn push(&mut self, line: String) {
        self.next += 1;
        self.bytes += line.len();
        self.lines.push_back((clock::wall().0, line));
        while self.lines.len() > LINES || self.bytes > BYTES {
            let Some((_, line)) = self.lines.pop_front() else {
                return;
            };
            self.bytes -= line.len();
        }
    }
}

/// Writes into the kept lines.
struct Keep(Arc<Mutex<Kept>>);

impl<'a> MakeWriter<'a> for Keep {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(&self.0)
    }
}

/// Keeps the line that is written to it, in one piece.
struct Line<'a>(&'a Mutex<Kept>);

impl io::Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let line = shortened(line.trim_end());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line of at most [`LINE_BYTES`]: without its fields if it is longer, and with the beginning of its message.
fn shortened(line: &str) -> String {
    if line.len() <= LINE_BYTES {
        return line.to_owned();
    }
    let Ok(mut long) = serde_json::from_str::<LogLine>(line) else {
        return String::new();
    };
    long.message.truncate(long.message.floor_char_boundary(LINE_BYTES / 4));
    long.message.push('…');
    long.fields.clear();
    long.span.clear();
    serde_json::to_string(&long).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// A log with what `logs` writes.
    fn logged(filter: &str, logs: impl FnOnce(&ProcessLog)) -> ProcessLog {
        let (log, filter) = ProcessLog::new(&filter.parse().unwrap());
        let subscriber = tracing_subscriber::registry().with(filter).with(log.layer());
        tracing::subscriber::with_default(subscriber, || logs(&log));
        log
    }

    fn texts(log: &ProcessLog, request: &LogRequest) -> Vec<String> {
        let answer = log.search(request);
        assert_eq!(answer.refused, "");
        answer.lines.iter().map(ToString::to_string).collect()
    }

    fn all() -> LogRequest {
        LogRequest {
            limit: LINES,
            ..LogRequest::default()
        }
    }

    #[test]
    fn lines_are_found_by_level_text_and_number() {
        let log = logged("debug", |_| {
            tracing::debug!("beat");
            let span = tracing::info_span!("work", trace_id = "0af7");
            span.in_scope(|| tracing::warn!(owner = 7, "the log is blocked"));
            tracing::error!(error = "no answer", "the bus is unreachable");
        });
        let texts = |request: LogRequest| texts(&log, &request);
        let module = module_path!();
        let (blocked, away) = (
            format!("{module}: the log is blocked owner=7 name=work trace_id=0af7"),
            format!("{module}: the bus is unreachable error=no answer"),
        );
        let level = |level: &str| LogRequest {
            level: level.to_owned(),
            ..all()
        };
        assert_eq!(texts(all()).len(), 3);
        assert_eq!(texts(level("warn")), [blocked.clone(), away.clone()]);
        let pattern = |pattern: &str| LogRequest {
            pattern: pattern.to_owned(),
            ..all()
        };
        assert_eq!(texts(pattern("owner=[0-9]+")), std::slice::from_ref(&blocked));
        let text = "owner=7".to_owned();
        assert_eq!(texts(LogRequest { text, ..all() }), [blocked]);
        assert_eq!(texts(LogRequest { from: 2, ..all() }), std::slice::from_ref(&away));
        assert_eq!(texts(LogRequest { limit: 1, ..all() }), [away]);
        let later = clock::wall().0 + 60_000;
        assert_eq!(texts(LogRequest { since: later, ..all() }), [""; 0]);
        for request in [pattern("("), level("loud")] {
            assert_ne!(log.search(&request).refused, "");
        }
    }

    #[test]
    fn the_newest_lines_are_kept() {
        let log = logged("info", |_| {
            for number in 0..LINES + 10 {
                tracing::info!(number, "one of many");
            }
        });
        let answer = log.search(&LogRequest { from: 3, ..all() });
        assert_eq!((answer.lines.len(), answer.next), (LINES, LINES as u64 + 10));
        assert_eq!(answer.gone, 7);
        assert_eq!(answer.lines[0].fields["number"], 10);

        let log = logged("info", |_| {
            for _ in 0..100 {
                tracing::info!(long = "x".repeat(20_000), "ü{}", "ü".repeat(20_000));
            }
        });
        let kept = log.kept();
        assert!(kept.bytes <= BYTES && kept.lines.len() == 100, "{} bytes", kept.bytes);
        assert!(kept.lines[0].1.len() <= LINE_BYTES);
        drop(kept);
        let line = &log.search(&all()).lines[0];
        assert!(line.message.starts_with("üü") && line.message.ends_with('…'));
    }

    #[test]
    fn the_filter_can_be_changed() {
        let log = logged("info", |log| {
            tracing::debug!("hidden");
            log.set_filter(&"debug".parse().unwrap());
            tracing::debug!("seen");
        });
        assert_eq!(log.filter(), "debug");
        assert_eq!(texts(&log, &all()).len(), 1);
    }
}
