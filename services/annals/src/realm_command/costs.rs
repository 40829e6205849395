//! `annals realm costs`: the cost in bytes of the members of entity types, as counted by the base and cell processes of
//! a live realm.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    io::{self, Write, stdout},
    process::ExitCode,
    time::Duration,
};

use annals_host::{
    health::{DiscoveryError, Instance, costs, discover},
    log_source::KeptRealm,
    nats::ConnectError,
    process::{Settings, connect},
    telemetry::MemberCost,
};
use serde_json::json;
use thiserror::Error;

use super::Format;
use super::RealmError;

/// How long to wait for answers.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The services that count costs.
const SERVICES: [&str; 2] = ["base", "cell"];

/// Show the members that cost most, since the processes that are there started.
#[derive(Debug, clap::Args)]
pub(super) struct Costs {
    /// Sort order
    #[arg(long, value_enum, default_value_t = By::Bytes)]
    by: By,
    /// Only members of this entity type
    #[arg(long = "type", value_name = "NAME")]
    entity_type: Option<String>,
    /// Maximum number of members
    #[arg(long, default_value_t = 30)]
    limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// A column.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum By {
    /// All bytes
    Bytes,
    /// Number of changes or calls
    Changes,
    /// Bytes to the log
    Log,
    /// Bytes to the client whose entity it is
    Own,
    /// Bytes to other clients
    Others,
    /// Bytes to cells with a ghost of the entity
    Ghosts,
    /// Bytes of calls to base and cell parts from other owners
    Part,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum CostsUnknown {
    #[error("a stopped realm counts no costs: leave --data out, and name a live realm")]
    Stopped,
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error("no base or cell of this realm answers: name the realm with --realm, and its nats-server with --nats")]
    Nobody,
}

/// The counts of the processes.
struct Counted {
    processes: usize,
    members: Vec<MemberCost>,
}

impl By {
    fn of(self, cost: &MemberCost) -> u64 {
        match self {
            By::Bytes => cost.bytes(),
            By::Changes => cost.changes,
            By::Log => cost.log,
            By::Own => cost.own,
            By::Others => cost.others,
            By::Ghosts => cost.ghosts,
            By::Part => cost.part,
        }
    }
}

impl Costs {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> Result<ExitCode, RealmError> {
        if kept.data.is_some() {
            return Err(CostsUnknown::Stopped.into());
        }
        let mut counted = ask(settings).await?;
        let is_meant = |name: &str| self.entity_type.as_ref().is_none_or(|meant| meant == name);
        counted.members.retain(|cost| is_meant(&cost.entity_type));
        // Members with equal costs stay ordered by name.
        counted.members.sort_by_key(|cost| Reverse(self.by.of(cost)));
        match self.format {
            Format::Table => print_table(&counted, self.limit)?,
            Format::Json => writeln!(stdout(), "{:#}", to_json(&counted, self.limit))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn ask(settings: &Settings) -> Result<Counted, CostsUnknown> {
    let (bus, _) = connect(settings, "costs").await?;
    let found = discover(&bus, &settings.realm, TIMEOUT, |_| false).await?;
    let counts = |instance: &&Instance| SERVICES.contains(&instance.service.as_str());
    let mut sums: BTreeMap<(String, String, String), MemberCost> = BTreeMap::new();
    let mut processes = 0;
    for instance in found.iter().filter(counts) {
        processes += 1;
        for cost in costs(&bus, &settings.realm, instance, TIMEOUT).await? {
            let key = (cost.entity_type.clone(), cost.member.clone(), cost.kind.clone());
            match sums.get_mut(&key) {
                Some(sum) => sum.add(&cost),
                None => {
                    sums.insert(key, cost);
                }
            }
        }
    }
    if processes == 0 {
        return Err(CostsUnknown::Nobody);
    }
    let members = sums.into_values().collect();
    Ok(Counted { processes, members })
}

const HEADINGS: [&str; 10] = [
    "type", "member", "kind", "changes", "bytes", "log", "own", "others", "ghosts", "part",
];

/// Number of columns that are names.
const NAMES: usize = 3;

fn print_table(counted: &Counted, limit: usize) -> io::Result<()> {
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(counted.members.iter().take(limit).map(row));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    for line in &lines {
        let columns = line.iter().zip(&widths).enumerate();
        let columns = columns.map(|(column, (text, width))| {
            if column < NAMES {
                format!("{text:width$}")
            } else {
                format!("{text:>width$}")
            }
        });
        writeln!(stdout(), "{}", columns.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    let bytes: u64 = counted.members.iter().map(MemberCost::bytes).sum();
    let (shown, all) = (counted.members.len().min(limit), counted.members.len());
    let processes = counted.processes;
    writeln!(
        stdout(),
        "{shown} of {all} members, {bytes} bytes of all of them, counted by {processes} processes since they started"
    )
}

fn row(cost: &MemberCost) -> [String; HEADINGS.len()] {
    let numbers = [
        cost.changes,
        cost.bytes(),
        cost.log,
        cost.own,
        cost.others,
        cost.ghosts,
        cost.part,
    ];
    let [changes, bytes, log, own, others, ghosts, part] = numbers.map(|number| number.to_string());
    let [entity_type, member, kind] = [&cost.entity_type, &cost.member, &cost.kind].map(String::clone);
    [
        entity_type,
        member,
        kind,
        changes,
        bytes,
        log,
        own,
        others,
        ghosts,
        part,
    ]
}

fn to_json(counted: &Counted, limit: usize) -> serde_json::Value {
    let member = |cost: &MemberCost| {
        json!({
            "type": cost.entity_type,
            "member": cost.member,
            "kind": cost.kind,
            "changes": cost.changes,
            "bytes": cost.bytes(),
            "log": cost.log,
            "own": cost.own,
            "others": cost.others,
            "ghosts": cost.ghosts,
            "part": cost.part,
        })
    };
    json!({
        "processes": counted.processes,
        "members": counted.members.iter().take(limit).map(member).collect::<Vec<_>>(),
    })
}
