//! `annals data`: prints a game's data files as the game reads them.

use std::{path::PathBuf, process::ExitCode};

use annals_data::{Binary, Blob, Matrix, OpenError, ReadError, Resources, Section};
use annals_host::telemetry::Chain;
use clap::{Subcommand, ValueEnum};

/// Look into a game's data files.
#[derive(Debug, clap::Args)]
pub struct Data {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Print the value of a section; exit code 1 if it is missing or of another type
    Read(Read),
}

#[derive(Debug, clap::Args)]
struct Read {
    /// The game's resource folder
    dir: PathBuf,
    /// Path of a file in that folder and of a section in the file: `data/prices.xml/fish/price`
    path: String,
    /// Type of the section's value
    #[arg(long = "as", value_enum, default_value_t = Kind::Xml)]
    kind: Kind,
}

/// The kinds of values, by the names that the predecessors' scripts have for them.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// The section with its subsections
    Xml,
    Bool,
    Int,
    Uint,
    Int64,
    Uint64,
    Float,
    Double,
    String,
    /// Bytes, printed in hexadecimal
    Blob,
    Vector2,
    Vector3,
    Vector4,
    Matrix,
}

impl Data {
    /// Runs the command; exit code 0 on success, 1 if there is nothing to print.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let Commands::Read(read) = self.command;
        match read.run() {
            Ok(text) => {
                println!("{}", text.trim_end());
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::FAILURE
            }
        }
    }
}

impl Read {
    fn run(&self) -> Result<String, OpenError> {
        let opened = Resources::at(&self.dir)?.open(&self.path)?;
        Ok(text(opened.section(), self.kind)?)
    }
}

/// The content of a section as readable text.
fn text(section: Section<'_>, kind: Kind) -> Result<String, ReadError> {
    Ok(match kind {
        Kind::Xml => String::from_utf8_lossy(&section.read::<Binary>()?.0).into_owned(),
        Kind::Bool => section.read::<bool>()?.to_string(),
        Kind::Int => section.read::<i32>()?.to_string(),
        Kind::Uint => section.read::<u32>()?.to_string(),
        Kind::Int64 => section.read::<i64>()?.to_string(),
        Kind::Uint64 => section.read::<u64>()?.to_string(),
        Kind::Float => section.read::<f32>()?.to_string(),
        Kind::Double => section.read::<f64>()?.to_string(),
        Kind::String => section.read::<String>()?,
        Kind::Blob => section
            .read::<Blob>()?
            .0
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        Kind::Vector2 => parts(&section.read::<[f32; 2]>()?),
        Kind::Vector3 => parts(&section.read::<[f32; 3]>()?),
        Kind::Vector4 => parts(&section.read::<[f32; 4]>()?),
        Kind::Matrix => section.read::<Matrix>()?.whole().map(|row| parts(&row)).join("\n"),
    })
}

fn parts(vector: &[f32]) -> String {
    vector.iter().map(f32::to_string).collect::<Vec<_>>().join(" ")
}
