//! `annals realm`: inspects a running or stopped realm, places operators' orders, stops a realm, and migrates one. One
//! file per command.

mod adopt_log;
mod audit_ledger;
mod cells;
mod costs;
mod migrate;
mod operator;
mod query;
mod stop;

use std::{io, process::ExitCode};

use annals_host::{
    log_source::{KeptRealm, NamedRealm, SourceError},
    telemetry::Chain,
};
use annals_store::StoreError;
use thiserror::Error;

/// Look into a realm, grant and take, stop one, or migrate one to other definitions.
#[derive(Debug, clap::Args)]
pub struct Realm {
    #[command(subcommand)]
    command: Commands,
    #[command(flatten)]
    named: NamedRealm,
    #[command(flatten)]
    kept: KeptRealm,
}

#[derive(Debug, clap::Subcommand)]
enum Commands {
    /// Take up what a log proves that an older store does not know, or give it up, while the realm does not run; prints its
    /// plan first. Exit code 1 says what stands against it
    AdoptLog(adopt_log::AdoptLog),
    /// Check every invariant of the ledger, or say where assets come from; exit code 1 names what is wrong, 2 is that nothing
    /// can be said
    AuditLedger(audit_ledger::AuditLedger),
    /// Say how the spaces of a realm that runs are divided: whose each cell is, where, and how much is on it
    Cells(cells::Cells),
    /// Say which properties and methods of a realm that runs cost the most bytes, and where those go
    Costs(costs::Costs),
    /// Make units and items for an account of a realm that runs, or give items back to it; written down with who did it and why
    Grant(operator::Grant),
    /// Migrate a realm that is stopped to other definitions; exit code 1 says what stands against it
    Migrate(migrate::Migrate),
    /// Find stored entities by their type and what they hold; changes nothing
    Query(query::QueryStored),
    /// Stop a realm in order, and say how far that is; asked again, it says so and changes nothing
    Stop(stop::Stop),
    /// Take units and items from an account of a realm that runs; written down with who did it and why
    Take(operator::Take),
}

/// How what was found is printed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// Columns
    Table,
    /// One object
    Json,
}

/// Why a command failed.
#[derive(Debug, Error)]
enum RealmError {
    #[error("there is no realm to look into")]
    Source(#[from] SourceError),
    #[error("the store could not be read")]
    Store(#[from] StoreError),
    #[error("nothing was looked for")]
    Query(#[from] query::QueryFailed),
    #[error("the cells are not known")]
    Cells(#[from] cells::CellsUnknown),
    #[error("it is not known what members cost")]
    Costs(#[from] costs::CostsUnknown),
    #[error("nobody takes what is printed")]
    Print(#[from] io::Error),
}

impl Realm {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        let settings = self.named.settings();
        // Only the store is read: batches in the log of a stopped realm that are not in the store yet are not included.
        let source = self.kept.stored(&settings);
        let done = async {
            match self.command {
                Commands::AdoptLog(adopt) => Ok(adopt.run(&self.kept, &settings).await),
                Commands::AuditLedger(audit) => audit.run(&source.await?).await,
                Commands::Cells(cells) => cells.run(&self.kept, &settings).await,
                Commands::Costs(costs) => costs.run(&self.kept, &settings).await,
                Commands::Grant(grant) => Ok(grant.run(&self.kept, &settings).await),
                Commands::Migrate(migrate) => Ok(migrate.run(&self.kept, &settings).await),
                Commands::Query(query) => query.run(&source.await?).await,
                Commands::Stop(stop) => Ok(stop.run(&settings).await),
                Commands::Take(take) => Ok(take.run(&self.kept, &settings).await),
            }
        };
        match done.await {
            Ok(code) => code,
            // The reader closed the pipe: not an error.
            Err(RealmError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }
}
