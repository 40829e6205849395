//! `annals check`: what bots were shown against what a realm's archive holds.

use std::{path::PathBuf, process::ExitCode};

use annals_host::{
    process::{connect, remote_store},
    source::NamedRealm,
    telemetry::Chain,
    world::compile,
};

use crate::checker::check;

/// Compare what bots were shown with the archive.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Folder of the bots' files
    #[arg(long)]
    files: PathBuf,
    /// Folder of the world's definitions
    #[arg(long, default_value = "defs")]
    world: PathBuf,
    /// Fail as well if the archive shows that something of the world was never at work
    #[arg(long)]
    all_driven: bool,
    #[command(flatten)]
    named: NamedRealm,
}

impl Check {
    /// Runs the check; the exit code is 0 if nothing is lost and nothing is missing.
    pub async fn run(self) -> ExitCode {
        let schema = match compile(&self.world) {
            Ok(schema) => schema,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        };
        let (bus, subjects) = match connect(&self.named.settings(), "check").await {
            Ok(connected) => connected,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                return ExitCode::from(2);
            }
        };
        let store = remote_store(&bus, &subjects);
        match check(&self.files, &store, &schema).await {
            Ok(report) => {
                println!("{report}");
                if report.is_clean() && (report.driven.missing.is_empty() || !self.all_driven) {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                }
            }
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }
}
