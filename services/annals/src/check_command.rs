//! `annals check`: compares what bots were shown with a realm's archive.

use std::{path::PathBuf, process::ExitCode};

use annals_bots::checker::check;
use annals_host::{
    log_source::NamedRealm,
    process::{connect, remote_store},
    telemetry::Chain,
    world::compile,
};

/// The exit code if nothing is lost, but not everything was driven.
pub(crate) const INCOMPLETE: u8 = 3;

/// Compare what bots were shown with the archive.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Folder of the files that bots wrote
    #[arg(long)]
    files: PathBuf,
    /// Folder of the world's definitions
    #[arg(long, default_value = "defs")]
    world: PathBuf,
    /// Also check that the archive contains every method and property of the world; exit code 3 if one is missing
    #[arg(long)]
    all_driven: bool,
    #[command(flatten)]
    named: NamedRealm,
}

impl Check {
    /// Runs the check. The exit code is 0 if nothing is lost, 1 if something is, 2 if the check could not run, and 3 if
    /// nothing is lost but not everything was driven that must be.
    pub async fn run(self) -> ExitCode {
        let schema = match compile(&self.world) {
            Ok(schema) => schema,
            Err(error) => {
                eprintln!("{}", Chain(&error));
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
                match (report.is_clean(), report.driven.missing.is_empty()) {
                    (false, _) => ExitCode::FAILURE,
                    (true, false) if self.all_driven => ExitCode::from(INCOMPLETE),
                    (true, _) => ExitCode::SUCCESS,
                }
            }
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }
}
