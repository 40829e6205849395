//! `annals defs`: checks and explains a designer's definitions.

mod check;
mod compile;
mod describe;
mod diff;
mod docs;
mod explain;
pub(crate) mod generate;
mod lsp;
mod output;
mod schema;
pub(crate) mod world;

use std::{
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
};

use annals_def::Style;
use clap::Subcommand;

use check::Check;
use compile::Compile;
use describe::Describe;
use diff::DiffCommand;
use docs::Docs;
use explain::Explain;
use generate::Generate;
use lsp::Lsp;
use schema::Schema;

/// Exit code if the command could not run, in contrast to problems found.
const CANNOT_RUN: u8 = 2;

/// Check a world's definitions, and explain what is wrong.
#[derive(Debug, clap::Args)]
pub struct Defs {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Report every problem in every file; exit code 1: problems found, 2: nothing to check
    Check(Check),
    /// Write a world's definitions to one file, for a later `diff`
    Compile(Compile),
    /// Describe each type and member: cost, audience and storage
    Describe(Describe),
    /// Report the effect of a change of definitions on stored data, the log, running peers and clients; exit code 1: a
    /// migration or break that is not allowed, or a compile error, 2: nothing to compare
    Diff(DiffCommand),
    /// Render the definitions as one page to browse and search offline
    Docs(Docs),
    /// Explain a rule, with an example that breaks it and one that follows it
    Explain(Explain),
    /// Generate typed code for games and clients; with --check, only report whether a generated file is current
    Generate(Generate),
    /// Run a language server on standard input and output: problems, completion and costs
    Lsp(Lsp),
    /// Write schemas of the language for XML tools, one per kind of file
    Schema(Schema),
}

impl Defs {
    /// Runs the command; exit code 0 on success, 1 if there are problems, 2 if it could not run.
    #[must_use]
    pub fn run(self) -> ExitCode {
        match self.command {
            Commands::Check(check) => check.run(),
            Commands::Compile(compile) => compile.run(),
            Commands::Describe(describe) => describe.run(),
            Commands::Diff(diff) => diff.run(),
            Commands::Docs(docs) => docs.run(),
            Commands::Explain(explain) => explain.run(),
            Commands::Generate(generate) => generate.run(),
            Commands::Lsp(lsp) => lsp.run(),
            Commands::Schema(schema) => schema.run(),
        }
    }
}

/// Writes to the standard output. A reader that has closed the pipe is no failure.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Colours on a terminal, none for files and pipes.
fn style() -> Style {
    if std::io::stdout().is_terminal() {
        Style::Coloured
    } else {
        Style::Plain
    }
}
