//! `annals realm`: inspects a running or stopped realm, places operators' orders, stops a realm, and migrates one. One
//! file per command.

mod account;
mod adopt_log;
mod audit_ledger;
mod ban;
mod cells;
mod costs;
mod drain;
mod live;
mod logs;
mod migrate;
mod operator;
mod processes;
mod query;
mod stop;
mod table;
mod top;
mod upgrade;
mod watch;

use std::{io, process::ExitCode};

use annals_host::{
    log_source::{KeptRealm, NamedRealm, SourceError},
    telemetry::Chain,
};
use annals_store::StoreError;
use thiserror::Error;

use crate::definition_change::NotUpgraded;
pub(crate) use migrate::{NotMigrated, migrate_to};

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
    /// Create an account, for realms in which players cannot
    Account(account::AccountCommand),
    /// Reconcile an older store with a newer log of a stopped realm: adopt the batches that the log proves, or give
    /// them up; prints the plan first. Exit code 1: not possible
    AdoptLog(adopt_log::AdoptLog),
    /// Check every invariant of the ledger, or trace the origin of assets; exit code 1: faults found, 2: not checked
    AuditLedger(audit_ledger::AuditLedger),
    /// Ban an account: its log-ins are refused, and its session ends; recorded with operator and reason. Exit code 1:
    /// recorded, but a session may be left
    Ban(ban::Ban),
    /// List the accounts that are banned, or every decision of operators about accounts
    Bans(ban::Bans),
    /// List the cells of a live realm: owner, area and load
    Cells(cells::Cells),
    /// List the processes of a live realm
    Processes(processes::Processes),
    /// Hand everything that a process holds over to others, without interrupting players, and end it
    Drain(drain::Drain),
    /// List the properties and methods of a live realm by cost in bytes, and the destinations of those bytes
    Costs(costs::Costs),
    /// Grant units and items to an account of a live realm, or return items to it; recorded with operator and reason
    Grant(operator::Grant),
    /// Search the newest log lines of all processes of a live realm
    ///
    /// Each process keeps 2,000 lines, or 1 MiB of them, in memory.
    Logs(logs::Logs),
    /// Migrate a stopped realm to other definitions; exit code 1: not possible
    Migrate(migrate::Migrate),
    /// Find stored entities by type and property values; read-only
    Query(query::QueryStored),
    /// Stop a realm cleanly and report progress; repeating the command only reports progress
    Stop(stop::Stop),
    /// Change the definitions of a running realm, with players connected; exit code 1 of `plan`: not while it runs
    Upgrade(upgrade::UpgradeCommand),
    /// Lift the ban of an account; recorded with operator and reason
    Unban(ban::Unban),
    /// Take units and items from an account of a live realm; recorded with operator and reason
    Take(operator::Take),
    /// Show what the processes of a live realm do, on one screen
    ///
    /// On a terminal, keys sort: p process, c cpu, m memory, o owners, e entities, t tick, a append, l lag, n clients, b
    /// bytes; q ends.
    Top(top::Top),
    /// Read values of live processes by path, and set those that may be set; recorded with operator and reason
    ///
    /// Paths are SERVICE/PROCESS/…, where PROCESS is the number in `annals realm processes`, or the end of the id in
    /// service discovery. Without a path, all values are printed.
    Watch(watch::Watch),
}

/// How what was found is printed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// Columns
    Table,
    /// One JSON object
    Json,
}

/// Why a command failed.
#[derive(Debug, Error)]
enum RealmError {
    #[error("the realm cannot be opened")]
    Source(#[from] SourceError),
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    #[error("the query failed")]
    Query(#[from] query::QueryFailed),
    #[error("the account was not created")]
    Account(#[from] account::NotCreated),
    #[error("the ban is not known")]
    Ban(#[from] ban::NotBanned),
    #[error("the cells cannot be listed")]
    Cells(#[from] cells::CellsUnknown),
    #[error("the processes cannot be listed")]
    Processes(#[from] processes::ProcessesUnknown),
    #[error("the process is not drained")]
    Drain(#[from] drain::NotDrained),
    #[error("the realm's definitions were not changed")]
    Upgrade(#[from] NotUpgraded),
    #[error("the values cannot be read")]
    Watch(#[from] watch::NotWatched),
    #[error("the logs cannot be searched")]
    Logs(#[from] logs::NoLogs),
    #[error("the processes cannot be shown")]
    Top(#[from] top::NotSeen),
    #[error("the costs cannot be listed")]
    Costs(#[from] costs::CostsUnknown),
    #[error("standard output cannot be written")]
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
                Commands::Account(account) => account.run(&source.await?).await,
                Commands::AdoptLog(adopt) => Ok(adopt.run(&self.kept, &settings).await),
                Commands::AuditLedger(audit) => audit.run(&source.await?).await,
                Commands::Ban(ban) => ban.run(&source.await?).await,
                Commands::Bans(bans) => bans.run(&source.await?).await,
                Commands::Cells(cells) => cells.run(&self.kept, &settings).await,
                Commands::Processes(processes) => processes.run(&self.kept, &settings).await,
                Commands::Drain(drain) => drain.run(&self.kept, &settings).await,
                Commands::Costs(costs) => costs.run(&self.kept, &settings).await,
                Commands::Grant(grant) => Ok(grant.run(&self.kept, &settings).await),
                Commands::Migrate(migrate) => Ok(migrate.run(&self.kept, &settings).await),
                Commands::Query(query) => query.run(&source.await?).await,
                Commands::Stop(stop) => Ok(stop.run(&settings).await),
                Commands::Upgrade(upgrade) => upgrade.run(&self.kept, &settings).await,
                Commands::Unban(unban) => unban.run(&source.await?).await,
                Commands::Take(take) => Ok(take.run(&self.kept, &settings).await),
                Commands::Logs(logs) => logs.run(&self.kept, &settings).await,
                Commands::Top(top) => top.run(&self.kept, &settings).await,
                Commands::Watch(watch) if watch.lists_changes() => watch.list_changes(&source.await?).await,
                Commands::Watch(watch) => watch.run(&self.kept, &settings).await,
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
