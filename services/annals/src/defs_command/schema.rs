//! `annals defs schema`: the grammar as schemas for XML tools.

use std::{path::PathBuf, process::ExitCode};

use annals_authoring::{relax_ng_files, xsd_files};
use annals_def::grammar::Dialect;
use clap::ValueEnum;

use super::{CANNOT_RUN, output};

#[derive(Debug, clap::Args)]
pub(super) struct Schema {
    /// XSD 1.0, or RELAX NG, which also checks the tags of members
    #[arg(long, value_enum, default_value_t = Notation::Xsd)]
    format: Notation,
    /// Dialect that the schemas accept
    #[arg(long, value_enum, default_value_t = Words::Bigworld)]
    dialect: Words,
    /// Output folder; created if missing, in a folder that exists
    #[arg(long)]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Notation {
    Xsd,
    Rng,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Words {
    Bigworld,
    Kbengine,
}

impl Schema {
    pub(super) fn run(self) -> ExitCode {
        let dialect = match self.dialect {
            Words::Bigworld => Dialect::BigWorld,
            Words::Kbengine => Dialect::KBEngine,
        };
        let files = match self.format {
            Notation::Xsd => xsd_files(dialect),
            Notation::Rng => relax_ng_files(dialect),
        };
        if let Err(error) = output::make_folder(&self.out) {
            eprintln!("{error}");
            return ExitCode::from(CANNOT_RUN);
        }
        for file in files {
            let path = self.out.join(&file.name);
            if let Err(error) = output::write(&path, &file.text) {
                eprintln!("{error}");
                return ExitCode::from(CANNOT_RUN);
            }
            println!("{}", path.display());
        }
        ExitCode::SUCCESS
    }
}
