//! `annals realm processes`: the live processes of a realm, as its director knows them.

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use annals_host::{
    log_source::KeptRealm,
    nats::ConnectError,
    process::{AskError, Settings, connect},
};
use annals_wire::control::{DirectorAsk, ListProcesses, ListedProcess, ProcessList};
use serde_json::{Value, json};
use thiserror::Error;

use super::{Format, RealmError};
use crate::director::ask_until_answered;

/// Show the base, cell, login and db processes of a realm: what each holds, and whether it drains.
#[derive(Debug, clap::Args)]
pub(super) struct Processes {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum ProcessesUnknown {
    #[error("a stopped realm has no processes: leave --data out, and name a live realm")]
    Stopped,
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    #[error("the realm's director was not reached")]
    NoDirector(#[from] AskError),
}

impl Processes {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> Result<ExitCode, RealmError> {
        if kept.data.is_some() {
            return Err(ProcessesUnknown::Stopped.into());
        }
        let list = ask(settings).await?;
        let mut out = stdout();
        match self.format {
            Format::Table => {
                writeln!(out, "process  service   owners                entities  state")?;
                for listed in &list.processes {
                    writeln!(
                        out,
                        "{:>7}  {:<8}  {:<20}  {:>8}  {}",
                        listed.process,
                        listed.service,
                        numbers(&listed.owners),
                        listed.entities,
                        state(listed)
                    )?;
                }
            }
            Format::Json => {
                let listed: Vec<Value> = list.processes.iter().map(to_json).collect();
                writeln!(out, "{:#}", Value::Array(listed))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn ask(settings: &Settings) -> Result<ProcessList, ProcessesUnknown> {
    let (bus, subjects) = connect(settings, "processes").await?;
    let ask = DirectorAsk::Processes(ListProcesses {});
    Ok(ask_until_answered(&bus, &subjects, ask).await?)
}

fn numbers(owners: &[u32]) -> String {
    let owners: Vec<String> = owners.iter().map(u32::to_string).collect();
    if owners.is_empty() {
        "-".to_owned()
    } else {
        owners.join(", ")
    }
}

fn state(listed: &ListedProcess) -> String {
    match (listed.draining, listed.follows.is_empty()) {
        (true, _) => "drains".to_owned(),
        (false, true) => "serves".to_owned(),
        (false, false) => format!("serves, follows {}", numbers(&listed.follows)),
    }
}

fn to_json(listed: &ListedProcess) -> Value {
    json!({
        "process": listed.process,
        "service": listed.service,
        "owners": listed.owners,
        "entities": listed.entities,
        "isDraining": listed.draining,
        "follows": listed.follows,
    })
}
