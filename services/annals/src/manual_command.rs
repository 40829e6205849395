//! `annals manual`: man pages and shell completions of all programs, for a release.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_console::command::Console;
use annals_host::{service, telemetry::Chain};
use annals_verify::CommandLine;
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate_to};
use clap_mangen::generate_to as write_pages;
use thiserror::Error;

/// Shells that completions are written for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Write man pages and shell completions.
#[derive(Debug, clap::Args)]
pub struct Manual {
    /// Folder for `man/man1` and `completions`; created if missing
    #[arg(long)]
    out: PathBuf,
}

/// A file cannot be written.
#[derive(Debug, Error)]
#[error("{path} cannot be written", path = path.display())]
struct NotWritten {
    path: PathBuf,
    source: io::Error,
}

impl Manual {
    /// Writes those of the command line `annals`, of the services, of the console, and of `annals-verify`.
    #[must_use]
    pub fn run(self, annals: Command) -> ExitCode {
        let programs = std::iter::once(annals)
            .chain(service::commands())
            .chain([Console::command(), CommandLine::command()]);
        for program in programs {
            if let Err(error) = self.write(program) {
                eprintln!("{}", Chain(&error));
                return ExitCode::from(2);
            }
        }
        ExitCode::SUCCESS
    }

    fn write(&self, mut program: Command) -> Result<(), NotWritten> {
        let name = program.get_name().to_owned();
        let folder = folder(&self.out.join("completions"))?;
        for shell in SHELLS {
            generate_to(shell, &mut program, &name, &folder).map_err(failed(&folder))?;
        }
        let folder = self::folder(&self.out.join("man/man1"))?;
        write_pages(program, &folder).map_err(failed(&folder))
    }
}

fn folder(path: &Path) -> Result<PathBuf, NotWritten> {
    fs::create_dir_all(path).map_err(failed(path))?;
    Ok(path.to_owned())
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> NotWritten {
    let path = path.to_owned();
    move |source| NotWritten { path, source }
}
