//! `annals realm watch`: values of live processes by path, and changes of those that operators may set.

use std::{
    collections::BTreeSet,
    io::{self, Write, stdout},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use annals_db::{SettingChange, newest_changes};
use annals_def::nearest;
use annals_host::{
    health::{DiscoveryError, change_setting},
    log_source::{KeptRealm, Source},
    process::Settings,
    watched::{BadPattern, Node, Patterns, changing::ChangeRequest},
};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::MissedTickBehavior;

use super::{
    Format, RealmError,
    live::{Live, NotReached, Values, path_of},
    table::{self, Align},
};

/// Timeout of a change: longer than a process takes to record it.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum paths that are named in a message.
const NAMED: usize = 8;

/// Shortest interval between two rounds.
const SHORTEST_INTERVAL: f64 = 0.1;

/// Print values of live processes, or set some.
#[derive(Debug, clap::Args)]
pub(super) struct Watch {
    /// Path of a value, or of all values below it; `*` stands for any part of a segment, `**` for any segments
    paths: Vec<String>,
    /// Read them again at this interval, until interrupted
    #[arg(long, value_name = "SECONDS", value_parser = interval, conflicts_with = "set")]
    every: Option<Duration>,
    /// End after so many rounds
    #[arg(long, value_name = "NUMBER", requires = "every")]
    count: Option<u64>,
    /// Set the values to this
    #[arg(long, value_name = "VALUE", requires = "paths", requires = "by", requires = "reason")]
    set: Option<String>,
    /// Name of the operator, recorded with the change
    #[arg(long, value_name = "NAME", requires = "set")]
    by: Option<String>,
    /// Reason, recorded with the change
    #[arg(long, value_name = "TEXT", requires = "set")]
    reason: Option<String>,
    /// List the newest recorded changes instead, of a live realm or an offline data directory
    #[arg(long, conflicts_with_all = ["paths", "every", "set"])]
    changes: bool,
    /// Maximum number of recorded changes to list
    #[arg(long, default_value_t = 100, requires = "changes")]
    limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum NotWatched {
    #[error(transparent)]
    NotReached(#[from] NotReached),
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error(transparent)]
    Pattern(#[from] BadPattern),
    #[error("the processes refused the request: {0}")]
    Refused(String),
    #[error("there is no value {path}{hint}")]
    NoValue {
        path: String,
        /// What there is instead.
        hint: String,
    },
    #[error("{path} cannot be set{hint}")]
    NotSettable { path: String, hint: String },
    #[error("{path} was not set: {reason}")]
    NotSet { path: String, reason: String },
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "write seconds, such as 1 or 0.5".to_owned())?;
    if !(SHORTEST_INTERVAL..=86_400.0).contains(&seconds) {
        return Err(format!("write seconds from {SHORTEST_INTERVAL} to 86400"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

impl Watch {
    /// Whether recorded changes are wanted, rather than values.
    pub(super) fn lists_changes(&self) -> bool {
        self.changes
    }

    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> Result<ExitCode, RealmError> {
        // Before anything is asked.
        Patterns::new(&self.paths).map_err(NotWatched::from)?;
        let mut live = Live::find(kept, settings, "watch").await.map_err(NotWatched::from)?;
        let patterns = match &self.paths[..] {
            [] => vec!["**".to_owned()],
            paths => paths.to_vec(),
        };
        let values = live.values(&patterns).await.map_err(NotWatched::Refused)?;
        for path in &self.paths {
            missing(&live, path, &values).await?;
        }
        if let (Some(value), Some(by), Some(reason)) = (&self.set, &self.by, &self.reason) {
            return self.set(&live, &values, (value, by, reason)).await;
        }
        let Some(every) = self.every else {
            self.print(&values)?;
            return Ok(ExitCode::SUCCESS);
        };
        let mut rounds = tokio::time::interval(every);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut done = 0;
        while self.count.is_none_or(|count| done < count) {
            rounds.tick().await;
            live.keep_up().await.map_err(NotWatched::from)?;
            let values = live.values(&patterns).await.map_err(NotWatched::Refused)?;
            self.print_round(&values)?;
            done += 1;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, values: &Values) -> io::Result<()> {
        let mut out = stdout().lock();
        match self.format {
            Format::Table => {
                let headings = [
                    ("path", Align::Left),
                    ("value", Align::Right),
                    ("unit", Align::Left),
                    ("what", Align::Left),
                ];
                let rows: Vec<[String; 4]> = values.nodes.iter().map(row).collect();
                table::write(&mut out, headings, &rows)?;
            }
            Format::Json => writeln!(out, "{:#}", to_json(values))?,
        }
        note_missing(values);
        Ok(())
    }

    /// One round of several: a line for each value, or one JSON object in a line.
    fn print_round(&self, values: &Values) -> io::Result<()> {
        let mut out = stdout().lock();
        let at = humantime::format_rfc3339_millis(SystemTime::now());
        match self.format {
            Format::Table => {
                for node in &values.nodes {
                    let line = format!("{at}  {}  {} {}", node.path, node.value, node.unit);
                    writeln!(out, "{}", line.trim_end())?;
                }
            }
            Format::Json => {
                let mut round = to_json(values);
                round["at"] = json!(at.to_string());
                writeln!(out, "{round}")?;
            }
        }
        note_missing(values);
        out.flush()
    }

    /// Sets all values, or none if one of them cannot be set.
    async fn set(
        &self,
        live: &Live,
        values: &Values,
        (value, by, reason): (&str, &str, &str),
    ) -> Result<ExitCode, RealmError> {
        if let Some(fixed) = values.nodes.iter().find(|node| !node.is_settable()) {
            let path = fixed.path.clone();
            let hint = settable_hint(live, &path).await;
            return Err(NotWatched::NotSettable { path, hint }.into());
        }
        let mut changes = Vec::new();
        for node in &values.nodes {
            let path = node.path.clone();
            let failed = |reason: String| NotWatched::NotSet {
                path: node.path.clone(),
                reason,
            };
            let instance = live.instance_of(&path);
            let instance = instance.ok_or_else(|| failed("its process has ended".to_owned()))?;
            let request = ChangeRequest {
                path,
                value: value.to_owned(),
                operator: by.to_owned(),
                reason: reason.to_owned(),
            };
            let answer = change_setting(&live.bus, &live.settings.realm, instance, &request, CHANGE_TIMEOUT);
            let answer = answer.await.map_err(NotWatched::from)?;
            let change = answer.change.ok_or_else(|| failed(answer.refused))?;
            if matches!(self.format, Format::Table) {
                println!(
                    "{}: {} → {} (recorded as change {})",
                    node.path, change.before, change.after, change.number
                );
            }
            changes.push(json!({
                "path": node.path,
                "before": change.before,
                "after": change.after,
                "change": change.number,
            }));
        }
        if matches!(self.format, Format::Json) {
            writeln!(stdout(), "{:#}", Value::Array(changes))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Lists the changes that are recorded in the store.
    pub(super) async fn list_changes(self, source: &Source) -> Result<ExitCode, RealmError> {
        let newest = newest_changes(&source.store, self.limit).await?;
        let mut out = stdout().lock();
        match self.format {
            Format::Table => {
                for (number, change) in &newest.changes {
                    let SettingChange {
                        process,
                        path,
                        before,
                        after,
                        operator,
                        reason,
                        ..
                    } = change;
                    let at = moment(change);
                    writeln!(
                        out,
                        "{number}  {at}  {process}/{path}: {before} → {after}  by {operator}: {reason}"
                    )?;
                }
                writeln!(out, "{} of {} changes", newest.changes.len(), newest.all)?;
            }
            Format::Json => {
                let changes = newest.changes.iter().map(|(number, change)| {
                    json!({
                        "change": number,
                        "at": moment(change),
                        "path": format!("{}/{}", change.process, change.path),
                        "before": change.before,
                        "after": change.after,
                        "by": change.operator,
                        "reason": change.reason,
                    })
                });
                let changes: Vec<Value> = changes.collect();
                writeln!(out, "{:#}", json!({ "changes": changes, "all": newest.all }))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn moment(change: &SettingChange) -> String {
    let at = UNIX_EPOCH.checked_add(Duration::from_millis(change.at.0));
    humantime::format_rfc3339_seconds(at.unwrap_or(UNIX_EPOCH)).to_string()
}

fn row(node: &Node) -> [String; 4] {
    let about = match &node.allowed {
        Some(allowed) => format!("{} (can be set: {allowed})", node.about),
        None => node.about.clone(),
    };
    [node.path.clone(), node.value.to_string(), node.unit.to_string(), about]
}

fn to_json(values: &Values) -> Value {
    json!({ "values": values.nodes, "leftOut": values.left_out, "silent": values.silent })
}

/// Says on standard error what is missing in the answer.
fn note_missing(values: &Values) {
    if values.left_out > 0 {
        eprintln!("{} more values match: ask for a longer path", values.left_out);
    }
    if !values.silent.is_empty() {
        eprintln!("no answer of {}", values.silent.join(", "));
    }
}

/// Fails with what there is instead, if no value matches this path.
async fn missing(live: &Live, path: &str, values: &Values) -> Result<(), NotWatched> {
    let pattern = Patterns::new([path])?;
    if values.nodes.iter().any(|node| pattern.matches(&node.path)) {
        return Ok(());
    }
    let all = live.values(&["**".to_owned()]).await.map_err(NotWatched::Refused)?;
    let processes = live.instances.iter().map(path_of);
    let paths: Vec<String> = all.nodes.into_iter().map(|node| node.path).chain(processes).collect();
    Err(NotWatched::NoValue {
        path: path.to_owned(),
        hint: hint(path.trim_matches('/'), &paths),
    })
}

/// What an operator may have meant with a path that matches none of `paths`: a similar one, or what there is below the
/// part of it that exists.
fn hint(path: &str, paths: &[String]) -> String {
    let segments: Vec<&str> = path.split('/').collect();
    if let Some(near) = misspelt(&segments, paths) {
        return format!("; did you mean {near}?");
    }
    for known in (0..segments.len()).rev() {
        let begin = segments[..known].join("/");
        let Ok(pattern) = Patterns::new([if known == 0 { "**" } else { &begin }]) else {
            continue;
        };
        let below = paths.iter().filter(|path| pattern.matches(path));
        let below: BTreeSet<String> = below
            .map(|path| path.split('/').take(known + 1).collect::<Vec<_>>().join("/"))
            .filter(|path| *path != begin)
            .collect();
        if !below.is_empty() {
            return format!("; there are {}", listed(&below));
        }
    }
    String::new()
}

/// A path that differs in one segment, which may be misspelt.
fn misspelt<'p>(segments: &[&str], paths: &'p [String]) -> Option<&'p str> {
    (0..segments.len()).find_map(|place| {
        let same_elsewhere = |path: &&'p str| {
            let others: Vec<&str> = path.split('/').collect();
            let is_same = |(at, segment): (usize, &&str)| at == place || segments[at] == *segment;
            others.len() == segments.len() && others.iter().enumerate().all(is_same)
        };
        let segment_of = |path: &'p str| path.split('/').nth(place).unwrap_or_default();
        let alike: Vec<&'p str> = paths.iter().map(String::as_str).filter(same_elsewhere).collect();
        let near = nearest(segments[place], alike.iter().map(|path| segment_of(path)))?;
        alike.into_iter().find(|path| segment_of(path) == near)
    })
}

/// The values that can be set, for a message about one that cannot.
async fn settable_hint(live: &Live, path: &str) -> String {
    let service = path.split('/').next().unwrap_or_default();
    let Ok(all) = live.values(&[format!("{service}/*")]).await else {
        return String::new();
    };
    let settable = all.nodes.into_iter().filter(Node::is_settable).map(|node| node.path);
    let settable: BTreeSet<String> = settable.collect();
    if settable.is_empty() {
        String::new()
    } else {
        format!("; there are {}", listed(&settable))
    }
}

fn listed(paths: &BTreeSet<String>) -> String {
    let mut named: Vec<&str> = paths.iter().take(NAMED).map(String::as_str).collect();
    if paths.len() > NAMED {
        named.push("…");
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_path_names_what_there_is() {
        let paths = [
            "cell/3/tick/p99",
            "cell/3/tick/p50",
            "cell/4/tick/p99",
            "base/7/clients",
        ]
        .map(str::to_owned);
        for (path, expected) in [
            ("cell/3/tikc/p99", "; did you mean cell/3/tick/p99?"),
            ("cell/*/clients", "; there are cell/3/tick, cell/4/tick"),
            ("cell/31/append/recent/p99", "; there are cell/3, cell/4"),
            ("cells/**", "; there are base, cell"),
            ("cell/3/tick/maximum", "; there are cell/3/tick/p50, cell/3/tick/p99"),
        ] {
            assert_eq!(hint(path, &paths), expected, "{path}");
        }
        assert_eq!(hint("cell", &[]), "");
    }

    #[test]
    fn intervals_are_bounded() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "0.01", "-1", "nan", "inf", "1e9", "soon"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
