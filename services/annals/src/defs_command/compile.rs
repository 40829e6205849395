//! `annals defs compile`: a world's definitions as one file, to compare later ones with.

use std::{fs, path::PathBuf, process::ExitCode};

use super::{CANNOT_RUN, world};

#[derive(Debug, clap::Args)]
pub(super) struct Compile {
    /// The world's folder: the one with `entities.xml`, or the one above its `scripts/`
    dir: PathBuf,
    /// Where the stored schema goes
    #[arg(long)]
    out: PathBuf,
}

impl Compile {
    pub(super) fn run(self) -> ExitCode {
        let schema = match world::schema(&self.dir) {
            Ok(schema) => schema,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        if let Err(error) = fs::write(&self.out, schema.encode()) {
            eprintln!("{} cannot be written: {error}", self.out.display());
            return ExitCode::from(CANNOT_RUN);
        }
        println!("{}: schema {}", self.out.display(), schema.fingerprint());
        ExitCode::SUCCESS
    }
}
