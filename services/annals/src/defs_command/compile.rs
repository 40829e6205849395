//! `annals defs compile`: a world's definitions as one file, for later comparison.

use std::{path::PathBuf, process::ExitCode};

use super::{CANNOT_RUN, output, world};

#[derive(Debug, clap::Args)]
pub(super) struct Compile {
    /// The world's folder: the one with `entities.xml`, or the one above its `scripts/`
    dir: PathBuf,
    /// Output file of the stored schema
    #[arg(long)]
    out: PathBuf,
}

impl Compile {
    pub(super) fn run(self) -> ExitCode {
        let schema = match world::schema(&self.dir) {
            Ok(schema) => schema,
            Err(error) => return error.print(),
        };
        if let Err(error) = output::write(&self.out, schema.encode()) {
            eprintln!("{error}");
            return ExitCode::from(CANNOT_RUN);
        }
        println!("{}: schema {}", self.out.display(), schema.fingerprint());
        ExitCode::SUCCESS
    }
}
