//! The figures of processes, from two samples of their values.

use std::{cmp::Reverse, collections::BTreeMap};

use annals_host::watched::{Node, Value};
use serde_json::json;
use tokio::time::Instant;

use crate::realm_command::{
    live::Values,
    table::{self, Align},
};

/// What is requested of all processes.
pub(super) const PATTERNS: [&str; 14] = [
    "*/*/state",
    "*/*/uptime",
    "*/*/cpu",
    "*/*/memory",
    "*/*/clients",
    "*/*/owners/*/entities",
    "*/*/tick/recent/p50",
    "*/*/tick/recent/p99",
    "*/*/tick/overruns",
    "*/*/append/recent/p99",
    "*/*/fold/behind",
    "*/*/bytes",
    "*/*/edge/bytes_in",
    "*/*/edge/bytes_out",
];

/// A column, and what it is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Column {
    Process,
    Cpu,
    Memory,
    Owners,
    Entities,
    Tick,
    Append,
    Lag,
    Clients,
    Bytes,
}

/// Values at a time.
pub(super) struct Sampled {
    pub(super) at: Instant,
    pub(super) values: Values,
}

/// The figures of all processes.
pub(super) struct Figures {
    processes: Vec<Process>,
    silent: Vec<String>,
}

/// The figures of a process; `None` where its service has none.
#[derive(Debug, Default, PartialEq)]
struct Process {
    /// Its service and name.
    name: String,
    state: String,
    uptime: Option<u64>,
    cpu: Option<f64>,
    memory: Option<u64>,
    owners: Option<u64>,
    entities: Option<u64>,
    tick_p50: Option<u64>,
    tick_p99: Option<u64>,
    overruns: Option<u64>,
    append_p99: Option<u64>,
    /// Messages of the log that db has not read.
    behind: Option<u64>,
    clients: Option<u64>,
    /// Bytes per second of the edge; at db, of the log.
    bytes_in: Option<u64>,
    bytes_out: Option<u64>,
}

impl Figures {
    /// The figures at `now`, with rates since `before`.
    pub(super) fn between(before: &Sampled, now: &Sampled) -> Self {
        let seconds = (now.at - before.at).as_secs_f64();
        let earlier = by_process(&before.values.nodes);
        let processes = by_process(&now.values.nodes).into_iter().map(|(name, values)| {
            let earlier = earlier.get(name);
            let rate = |path: &str| {
                let (now, before) = (count(&values, path)?, count(earlier?, path)?);
                Some((now.saturating_sub(before) as f64 / seconds).round() as u64)
            };
            let owned = || values.iter().filter(|(path, _)| path.starts_with("owners/"));
            let has_owners = owned().next().is_some();
            Process {
                name: name.to_owned(),
                state: values.get("state").map(ToString::to_string).unwrap_or_default(),
                uptime: count(&values, "uptime"),
                cpu: real(&values, "cpu"),
                memory: count(&values, "memory"),
                owners: has_owners.then(|| owned().count() as u64),
                entities: has_owners.then(|| owned().filter_map(|(path, _)| count(&values, path)).sum()),
                tick_p50: count(&values, "tick/recent/p50"),
                tick_p99: count(&values, "tick/recent/p99"),
                overruns: count(&values, "tick/overruns"),
                append_p99: count(&values, "append/recent/p99"),
                behind: count(&values, "fold/behind"),
                clients: count(&values, "clients"),
                bytes_in: rate("edge/bytes_in").or_else(|| rate("bytes")),
                bytes_out: rate("edge/bytes_out"),
            }
        });
        Self {
            processes: processes.collect(),
            silent: now.values.silent.clone(),
        }
    }

    /// Sorts by a column, the largest first; by name if it is that column, or figures are equal.
    pub(super) fn sort(&mut self, by: Column) {
        self.processes.sort_by(|one, other| one.name.cmp(&other.name));
        let micro = |share: Option<f64>| share.map(|share| (share * 1e6) as u64);
        self.processes.sort_by_key(|process| {
            Reverse(match by {
                Column::Process => None,
                Column::Cpu => micro(process.cpu),
                Column::Memory => process.memory,
                Column::Owners => process.owners,
                Column::Entities => process.entities,
                Column::Tick => process.tick_p99,
                Column::Append => process.append_p99,
                Column::Lag => process.behind,
                Column::Clients => process.clients,
                Column::Bytes => process.bytes_out.or(process.bytes_in),
            })
        });
    }

    /// The screen: a summary, then a table.
    pub(super) fn lines(&self, realm: &str, sort: Column) -> Vec<String> {
        let sum = |figure: fn(&Process) -> Option<u64>| self.processes.iter().filter_map(figure).sum::<u64>();
        let ready = self.processes.iter().filter(|process| process.state == "ready").count();
        let summary = format!(
            "realm {realm}: {ready} of {} processes ready, {} clients, {} entities, db {} messages behind",
            self.processes.len(),
            sum(|process| process.clients),
            sum(|process| process.entities),
            sum(|process| process.behind),
        );
        let marked = |column: Column, heading: &str| {
            if column == sort {
                format!("{heading}*")
            } else {
                heading.to_owned()
            }
        };
        let headings = [
            marked(Column::Process, "process"),
            marked(Column::Cpu, "cpu"),
            marked(Column::Memory, "memory"),
            marked(Column::Owners, "owners"),
            marked(Column::Entities, "entities"),
            "tick p50".to_owned(),
            marked(Column::Tick, "tick p99"),
            "overruns".to_owned(),
            marked(Column::Append, "append p99"),
            marked(Column::Lag, "lag"),
            marked(Column::Clients, "clients"),
            "in/s".to_owned(),
            marked(Column::Bytes, "out/s"),
            "up".to_owned(),
            "state".to_owned(),
        ];
        let is_text = |column: usize| column == 0 || column == headings.len() - 1;
        let headings: [(&str, Align); 15] = std::array::from_fn(|column| {
            let align = if is_text(column) { Align::Left } else { Align::Right };
            (headings[column].as_str(), align)
        });
        let rows: Vec<[String; 15]> = self.processes.iter().map(Process::row).collect();
        let mut table = Vec::new();
        table::write(&mut table, headings, &rows).expect("invariant: memory takes any text");
        let table = String::from_utf8(table).expect("invariant: a table is text");
        let mut lines = vec![summary, String::new()];
        lines.extend(table.lines().map(str::to_owned));
        if !self.silent.is_empty() {
            lines.push(format!("no answer of {}", self.silent.join(", ")));
        }
        lines
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        let process = |process: &Process| {
            json!({
                "process": process.name,
                "state": process.state,
                "uptimeSeconds": process.uptime,
                "cpuCores": process.cpu,
                "memoryBytes": process.memory,
                "owners": process.owners,
                "entities": process.entities,
                "tickP50Micros": process.tick_p50,
                "tickP99Micros": process.tick_p99,
                "overruns": process.overruns,
                "appendP99Micros": process.append_p99,
                "messagesBehind": process.behind,
                "clients": process.clients,
                "bytesInPerSecond": process.bytes_in,
                "bytesOutPerSecond": process.bytes_out,
            })
        };
        json!({
            "processes": self.processes.iter().map(process).collect::<Vec<_>>(),
            "silent": self.silent,
        })
    }
}

impl Process {
    fn row(&self) -> [String; 15] {
        let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let count = |count: Option<u64>| dash(count.map(|count| count.to_string()));
        let millis = |micros: Option<u64>| dash(micros.map(|micros| format!("{:.1} ms", micros as f64 / 1_000.0)));
        let bytes = |bytes: Option<u64>| dash(bytes.map(readable));
        [
            self.name.clone(),
            dash(self.cpu.map(|cores| format!("{:.0} %", cores * 100.0))),
            bytes(self.memory),
            count(self.owners),
            count(self.entities),
            millis(self.tick_p50),
            millis(self.tick_p99),
            count(self.overruns),
            millis(self.append_p99),
            count(self.behind),
            count(self.clients),
            bytes(self.bytes_in),
            bytes(self.bytes_out),
            dash(self.uptime.map(|seconds| format!("{seconds} s"))),
            self.state.clone(),
        ]
    }
}

/// Values by process, and by their path within it.
fn by_process(nodes: &[Node]) -> BTreeMap<&str, BTreeMap<&str, &Value>> {
    let mut processes: BTreeMap<&str, BTreeMap<&str, &Value>> = BTreeMap::new();
    for node in nodes {
        let mut slashes = node.path.match_indices('/').map(|(at, _)| at);
        if let Some(end) = slashes.nth(1) {
            let (process, path) = node.path.split_at(end);
            processes.entry(process).or_default().insert(&path[1..], &node.value);
        }
    }
    processes
}

fn count(values: &BTreeMap<&str, &Value>, path: &str) -> Option<u64> {
    match values.get(path)? {
        Value::Count(count) => Some(*count),
        _ => None,
    }
}

fn real(values: &BTreeMap<&str, &Value>, path: &str) -> Option<f64> {
    match values.get(path)? {
        Value::Real(real) => Some(*real),
        // A whole number in JSON.
        Value::Count(count) => Some(*count as f64),
        _ => None,
    }
}

/// Bytes with a unit, to three digits or so.
fn readable(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if amount < 1_000.0 {
            return match unit {
                "B" => format!("{amount:.0} {unit}"),
                _ => format!("{amount:.1} {unit}"),
            };
        }
        amount /= 1_000.0;
    }
    format!("{amount:.1} TB")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sampled(at: Instant, values: &[(&str, Value)]) -> Sampled {
        let node = |(path, value): &(&str, Value)| Node {
            path: (*path).to_owned(),
            value: value.clone(),
            unit: annals_host::watched::Unit::None,
            about: String::new(),
            allowed: None,
        };
        let values = Values {
            nodes: values.iter().map(node).collect(),
            ..Values::default()
        };
        Sampled { at, values }
    }

    #[test]
    fn rates_and_sums_are_of_the_two_samples() {
        let at = Instant::now();
        let before = sampled(at, &[("base/7/edge/bytes_out", Value::Count(1_000))]);
        let now = sampled(
            at + Duration::from_secs(2),
            &[
                ("base/7/edge/bytes_out", Value::Count(5_000)),
                ("base/7/clients", Value::Count(4)),
                ("base/7/cpu", Value::Real(0.25)),
                ("base/7/state", Value::Text("ready".to_owned())),
                ("cell/3/owners/11/entities", Value::Count(2)),
                ("cell/3/owners/12/entities", Value::Count(3)),
                ("cell/3/tick/recent/p99", Value::Count(12_345)),
                ("cell/3/cpu", Value::Real(0.5)),
                (
                    "cell/3/state",
                    Value::Text("waiting: the logs of 1 owners are blocked".to_owned()),
                ),
            ],
        );
        let mut figures = Figures::between(&before, &now);
        let json = figures.to_json();
        let (base, cell) = (&json["processes"][0], &json["processes"][1]);
        assert_eq!(base["bytesOutPerSecond"], 2_000);
        assert_eq!((&cell["owners"], &cell["entities"]), (&json!(2), &json!(5)));
        assert_eq!(base["owners"], serde_json::Value::Null);

        figures.sort(Column::Cpu);
        let lines = figures.lines("aldmoor", Column::Cpu);
        assert_eq!(
            lines[0],
            "realm aldmoor: 1 of 2 processes ready, 4 clients, 5 entities, db 0 messages behind"
        );
        assert!(lines[2].contains("cpu*"), "{lines:?}");
        assert!(lines[3].starts_with("cell/3   50 %"), "{lines:?}");
        assert!(lines[3].contains("12.3 ms") && lines[4].contains("2.0 kB"), "{lines:?}");
        assert_eq!(readable(999), "999 B");
        assert_eq!(readable(12_345_678), "12.3 MB");
    }
}
