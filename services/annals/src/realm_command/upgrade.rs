//! `annals realm upgrade`: changes the definitions of a realm while it runs (rule M7).

use std::{
    io::{Write, stdout},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use annals_authoring::{Audience, Class, Diff, diff};
use annals_db::{
    migrating::{MigrateError, may_be_later},
    present_schema,
};
use annals_def::{Plan, Rename, RenameError, Renames, Schema};
use annals_host::{
    log_source::KeptRealm,
    nats::{Bus, ConnectError},
    process::{AskError, Settings, connect, remote_store, request},
};
use annals_ids::Hash;
use annals_store::StoreError;
use annals_wire::{
    Subjects,
    control::{DirectorAsk, DirectorRequest, UpgradeAction, UpgradeRealm, UpgradeStage},
};
use thiserror::Error;

use super::RealmError;
use crate::defs_command::world::{self, WorldError};

/// Timeout of the change itself, longer than the director's. It takes a fraction of a second.
const CHANGED_WITHIN: Duration = Duration::from_secs(30);

/// Interval of the questions for progress.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Maximum encoded size of definitions in a request: what a message holds, with room for the renames.
const DEFINITIONS_LIMIT: usize = 900 << 10;

/// Change the definitions of a running realm. Start processes of the new definitions beside the present ones, which then
/// end; players stay connected. Until `finish`, everything can be taken back.
#[derive(Debug, clap::Args)]
pub(super) struct UpgradeCommand {
    #[command(subcommand)]
    step: UpgradeStep,
}

#[derive(Debug, clap::Subcommand)]
enum UpgradeStep {
    /// Print the changes, as `annals defs diff` does, and whether the realm can run meanwhile; exit code 1: it cannot
    Plan(NewDefinitions),
    /// Prepare the change: accept processes of the new definitions, and wait until they are ready to take over
    Apply(Apply),
    /// Change the definitions; there is no way back
    Finish,
    /// Take back what was prepared
    Rollback,
    /// Print what is prepared, and what it waits for; exit code 1: the last change was abandoned
    Status,
}

#[derive(Debug, clap::Args)]
struct NewDefinitions {
    /// The new definitions: a world's folder, or a file that `annals defs compile` wrote
    #[arg(long)]
    defs: PathBuf,
    /// A rename: `Type.old=new` for a property or method, `Old=New` for an entity type
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<Rename>,
}

#[derive(Debug, clap::Args)]
struct Apply {
    #[command(flatten)]
    new: NewDefinitions,
    /// Accept a change after which connected clients are disconnected until they are updated
    #[arg(long)]
    disconnect_clients: bool,
    /// Change the definitions as soon as everything is ready, as `finish` does
    #[arg(long)]
    finish: bool,
}

/// Why the definitions were not changed.
#[derive(Debug, Error)]
pub(super) enum NotUpgraded {
    #[error("a stopped realm is changed with `annals realm migrate`: leave --data out, and name a live realm")]
    Stopped,
    #[error("the realm's nats-server cannot be reached")]
    Connect(#[from] ConnectError),
    #[error("the realm's director was not reached; ask again")]
    NoDirector(#[from] AskError),
    #[error("the realm's store cannot be read")]
    Store(#[from] StoreError),
    #[error("the realm has not begun: start it with its first definitions")]
    NoRealm,
    #[error("invalid renames")]
    Rename(#[from] RenameError),
    #[error(
        "this change is not possible while the realm runs: {0}. Stop the realm and use `annals realm migrate`, which \
         tries the change on all data first"
    )]
    NeedsStop(String),
    #[error(
        "clients of the present definitions cannot read the new ones, so connected players would be disconnected until \
         their clients are updated: repeat with --disconnect-clients to accept that"
    )]
    Clients,
    #[error(
        "the new definitions take {0} bytes, more than a message holds: stop the realm and use `annals realm migrate`"
    )]
    TooLarge(usize),
    #[error("{0}")]
    Refused(String),
    #[error(
        "the definitions have not changed within {} s; see `annals realm upgrade status` and the director's log",
        CHANGED_WITHIN.as_secs()
    )]
    Slow,
}

/// A live realm and its director.
struct Director {
    bus: Bus,
    subjects: Subjects,
}

impl UpgradeCommand {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> Result<ExitCode, RealmError> {
        if kept.data.is_some() {
            return Err(NotUpgraded::Stopped.into());
        }
        let (bus, subjects) = connect(settings, "upgrade").await.map_err(NotUpgraded::from)?;
        let director = Director { bus, subjects };
        match self.step {
            UpgradeStep::Plan(new) => match new.read() {
                Ok(schema) => plan(&director, &new, &schema).await,
                Err(unread) => Ok(unread.tell()),
            },
            UpgradeStep::Apply(apply) => match apply.new.read() {
                Ok(schema) => apply.run(&director, &schema).await,
                Err(unread) => Ok(unread.tell()),
            },
            UpgradeStep::Finish => finish(&director).await,
            UpgradeStep::Rollback => {
                let stage = director.ask(UpgradeAction::RollBack).await?;
                refuse(&stage)?;
                writeln!(
                    stdout(),
                    "nothing is prepared; processes of other definitions may be stopped now"
                )?;
                Ok(ExitCode::SUCCESS)
            }
            UpgradeStep::Status => {
                let stage = director.ask(UpgradeAction::Look).await?;
                print_status(&stage)?;
                let is_abandoned = !stage.next.is_empty() && !stage.refused.is_empty();
                Ok(if is_abandoned {
                    ExitCode::FAILURE
                } else {
                    ExitCode::SUCCESS
                })
            }
        }
    }
}

impl NewDefinitions {
    fn read(&self) -> Result<Schema, WorldError> {
        world::schema(&self.defs)
    }

    /// The differences to the realm's present definitions, and what prevents the change while the realm runs.
    async fn compare(&self, director: &Director, new: &Schema) -> Result<(Diff, Option<String>), NotUpgraded> {
        let store = remote_store(&director.bus, &director.subjects);
        let old = present_schema(&store).await?.ok_or(NotUpgraded::NoRealm)?;
        let renames = Renames::new(&old, new, self.rename.iter().cloned())?;
        let found = diff(&old, new, &renames);
        let breaks = [Audience::Stored, Audience::Log].into_iter();
        let breaks = breaks.filter(|audience| found.verdict(*audience) >= Class::Breaking);
        let mut obstacles: Vec<String> = breaks.map(|audience| format!("{audience}: breaking")).collect();
        if let Err(error @ MigrateError::IndexChanges(_)) = may_be_later(&Plan::new(&old, new, &renames)) {
            obstacles.push(error.to_string());
        }
        Ok((found, (!obstacles.is_empty()).then(|| obstacles.join("; "))))
    }
}

async fn plan(director: &Director, new: &NewDefinitions, schema: &Schema) -> Result<ExitCode, RealmError> {
    let (found, obstacle) = new.compare(director, schema).await?;
    write!(stdout(), "{}", found.to_text())?;
    if let Some(obstacle) = obstacle {
        writeln!(stdout(), "the realm must be stopped for this change: {obstacle}")?;
        return Ok(ExitCode::FAILURE);
    }
    if found.verdict(Audience::Clients) >= Class::Breaking {
        writeln!(
            stdout(),
            "connected clients would be disconnected until they are updated"
        )?;
    }
    writeln!(
        stdout(),
        "the realm can run during this change: with `annals realm upgrade apply`, processes of the new definitions are \
         started beside the others, and no process need be stopped before"
    )?;
    Ok(ExitCode::SUCCESS)
}

impl Apply {
    async fn run(self, director: &Director, schema: &Schema) -> Result<ExitCode, RealmError> {
        let (found, obstacle) = self.new.compare(director, schema).await?;
        if let Some(obstacle) = obstacle {
            return Err(NotUpgraded::NeedsStop(obstacle).into());
        }
        if found.verdict(Audience::Clients) >= Class::Breaking && !self.disconnect_clients {
            return Err(NotUpgraded::Clients.into());
        }
        let encoded = schema.encode();
        if encoded.len() > DEFINITIONS_LIMIT {
            return Err(NotUpgraded::TooLarge(encoded.len()).into());
        }
        let prepared = UpgradeRealm {
            action: UpgradeAction::Prepare.into(),
            schema: encoded,
            renames: self.new.rename.iter().map(ToString::to_string).collect(),
        };
        let mut stage = director.send(prepared).await?;
        refuse(&stage)?;
        let mut said = Vec::new();
        while !stage.waiting.is_empty() {
            if stage.waiting != said {
                said.clone_from(&stage.waiting);
                writeln!(stdout(), "waiting: {}", said.join("; "))?;
            }
            tokio::time::sleep(ASK_EVERY).await;
            // While no director leads, there is no answer.
            let Ok(next) = director.ask(UpgradeAction::Look).await else {
                continue;
            };
            stage = next;
            refuse(&stage)?;
            if stage.next.is_empty() && stage.present == schema.fingerprint().0 {
                writeln!(
                    stdout(),
                    "another operator has finished the change meanwhile: the realm has definitions {}",
                    fingerprint(&stage.present)
                )?;
                return Ok(ExitCode::SUCCESS);
            }
            if stage.next.is_empty() {
                return Err(NotUpgraded::Refused("what was prepared was taken back meanwhile".to_owned()).into());
            }
        }
        if self.finish {
            return finish(director).await;
        }
        writeln!(
            stdout(),
            "ready: change the definitions with `annals realm upgrade finish`, or take it back with `annals realm \
             upgrade rollback`"
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn finish(director: &Director) -> Result<ExitCode, RealmError> {
    let began = Instant::now();
    let mut stage = director.ask(UpgradeAction::Finish).await?;
    refuse(&stage)?;
    let next = stage.next.clone();
    while stage.present != next || stage.changing {
        if began.elapsed() > CHANGED_WITHIN {
            return Err(NotUpgraded::Slow.into());
        }
        tokio::time::sleep(ASK_EVERY).await;
        let Ok(latest) = director.ask(UpgradeAction::Look).await else {
            continue;
        };
        stage = latest;
        refuse(&stage)?;
    }
    writeln!(
        stdout(),
        "the realm has definitions {}; all owners were held again after {} ms; processes of the former definitions end",
        fingerprint(&stage.present),
        stage.took
    )?;
    Ok(ExitCode::SUCCESS)
}

fn print_status(stage: &UpgradeStage) -> Result<(), std::io::Error> {
    let mut out = stdout();
    writeln!(out, "definitions of the realm: {}", fingerprint(&stage.present))?;
    if stage.next.is_empty() {
        return writeln!(out, "no change is prepared");
    }
    writeln!(out, "prepared: {}", fingerprint(&stage.next))?;
    if !stage.refused.is_empty() {
        return writeln!(
            out,
            "{}; the realm goes on with the definitions that it has. Prepare the change again with `annals realm upgrade \
             apply`, or forget it with `annals realm upgrade rollback`",
            stage.refused
        );
    }
    for waiting in &stage.waiting {
        writeln!(out, "waiting: {waiting}")?;
    }
    if stage.waiting.is_empty() {
        writeln!(out, "{}", if stage.changing { "changing" } else { "ready" })?;
    }
    Ok(())
}

fn fingerprint(bytes: &[u8]) -> String {
    let hash = bytes.try_into().map(Hash);
    hash.map_or_else(|_| "unknown".to_owned(), |hash| hash.to_string())
}

fn refuse(stage: &UpgradeStage) -> Result<(), NotUpgraded> {
    if stage.refused.is_empty() {
        Ok(())
    } else {
        Err(NotUpgraded::Refused(stage.refused.clone()))
    }
}

impl Director {
    async fn ask(&self, action: UpgradeAction) -> Result<UpgradeStage, NotUpgraded> {
        let action = action.into();
        let ask = UpgradeRealm {
            action,
            ..UpgradeRealm::default()
        };
        self.send(ask).await
    }

    async fn send(&self, ask: UpgradeRealm) -> Result<UpgradeStage, NotUpgraded> {
        let ask = DirectorRequest {
            ask: Some(DirectorAsk::Upgrade(ask)),
        };
        Ok(request(&self.bus, "director", self.subjects.service("director"), &ask).await?)
    }
}
