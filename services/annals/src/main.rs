//! `annals`: the command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Run a realm, and look into one.
#[derive(Debug, Parser)]
#[command(name = "annals", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Run a whole realm on this machine: one process per service and a private nats-server
    Up(annals::up_command::Up),
    /// Let bots play in a realm that runs
    Bots(annals::bots_command::Bots),
    /// Run a realm with bots, kill two processes under them, and check that nothing shown was lost
    Demo(annals::demo_command::Demo),
    /// Compare what bots were shown with a realm's archive
    Check(annals::check_command::Check),
    /// Check a world's definitions, and explain what is wrong
    Defs(annals::defs_command::Defs),
    /// Look into a game's data files
    Data(annals::data_command::Data),
    /// Read a realm's log
    Log(annals::log_command::Log),
    /// Say what happened, from a realm's archive alone
    Audit(annals::audit_command::Audit),
    /// Look into a realm's database
    Realm(annals::realm_command::Realm),
    /// Make keys for signed checkpoints of a realm, print, cosign and verify them
    Checkpoint(annals::checkpoint_command::Checkpoint),
    /// Back up a realm, and restore it
    Backup(annals::backup_command::Backup),
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no threads can be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(async {
        match line.command {
            Commands::Up(up) => up.run().await,
            Commands::Bots(bots) => bots.run().await,
            Commands::Demo(demo) => demo.run().await,
            Commands::Check(check) => check.run().await,
            Commands::Defs(defs) => defs.run(),
            Commands::Data(data) => data.run(),
            Commands::Log(log) => log.run().await,
            Commands::Audit(audit) => audit.run().await,
            Commands::Realm(realm) => realm.run().await,
            Commands::Checkpoint(checkpoint) => checkpoint.run().await,
            Commands::Backup(backup) => backup.run().await,
        }
    })
}
