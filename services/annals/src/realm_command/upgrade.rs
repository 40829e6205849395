//! `annals realm upgrade`: changes the definitions of a realm while it runs (rule M7).

use std::{
    io::{Write, stdout},
    path::PathBuf,
    process::ExitCode,
};

use annals_def::{Rename, Schema};
use annals_host::{log_source::KeptRealm, process::Settings};
use annals_ids::Hash;
use annals_wire::control::UpgradeStage;

use super::RealmError;
use crate::{
    definition_change::{Director, NotUpgraded, Prepared},
    defs_command::world::{self, WorldError},
};

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

impl UpgradeCommand {
    pub(super) async fn run(self, kept: &KeptRealm, settings: &Settings) -> Result<ExitCode, RealmError> {
        if kept.data.is_some() {
            return Err(NotUpgraded::Stopped.into());
        }
        let director = Director::connect(settings).await?;
        match self.step {
            UpgradeStep::Plan(new) => match new.read() {
                Ok(schema) => plan(&director, &new, &schema).await,
                Err(unread) => Ok(unread.print()),
            },
            UpgradeStep::Apply(apply) => match apply.new.read() {
                Ok(schema) => apply.run(&director, &schema).await,
                Err(unread) => Ok(unread.print()),
            },
            UpgradeStep::Finish => finish(&director).await,
            UpgradeStep::Rollback => {
                director.roll_back().await?;
                writeln!(
                    stdout(),
                    "nothing is prepared; processes of other definitions may be stopped now"
                )?;
                Ok(ExitCode::SUCCESS)
            }
            UpgradeStep::Status => {
                let stage = director.look().await?;
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
}

async fn plan(director: &Director, new: &NewDefinitions, schema: &Schema) -> Result<ExitCode, RealmError> {
    let found = director.compare(schema, &new.rename).await?;
    write!(stdout(), "{}", found.diff.to_text())?;
    if let Some(obstacle) = &found.obstacle {
        writeln!(stdout(), "the realm must be stopped for this change: {obstacle}")?;
        return Ok(ExitCode::FAILURE);
    }
    if found.breaks_clients() {
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
        let found = director.compare(schema, &self.new.rename).await?;
        if found.breaks_clients() && found.obstacle.is_none() && !self.disconnect_clients {
            return Err(NotUpgraded::Clients.into());
        }
        director.prepare(schema, &self.new.rename, &found).await?;
        let mut out = stdout();
        let prepared = director.ready(schema, |waiting| writeln!(out, "waiting: {}", waiting.join("; ")));
        if let Prepared::FinishedElsewhere(stage) = prepared.await? {
            writeln!(
                stdout(),
                "another operator has finished the change meanwhile: the realm has definitions {}",
                fingerprint(&stage.present)
            )?;
            return Ok(ExitCode::SUCCESS);
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
    let stage = director.finish().await?;
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
