//! The definitions given to a command, a world's folder or a stored schema, and the errors if there are none.
//!
//! A world that does not compile has problems, and every command that needs it ends with exit code 1, as a check does.
//! If there is nothing to read, the command could not run, and ends with 2.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::Path,
    process::ExitCode,
};

use annals_def::{Compiled, Diagnostic, Rule, Schema, SchemaDecodeError, Severity, Style, Tree, compile, digest};
use annals_host::{
    telemetry::Chain,
    world::{NoFolder, look_for},
};
use thiserror::Error;

use super::CANNOT_RUN;

/// Why there is no schema.
#[derive(Debug, Error)]
pub(crate) enum WorldError {
    /// The definitions have errors, which come first; if there is no file, one error says so.
    #[error("{problems}{folder} does not compile; `annals defs explain {first}` says more about a code")]
    Definitions {
        folder: String,
        problems: String,
        first: Rule,
        /// Whether there is nothing to read.
        is_nothing: bool,
    },
    /// There is no such folder.
    #[error("{}", Chain(.0))]
    NoFolder(#[source] NoFolder),
    /// A file cannot be read.
    #[error("{file} cannot be read: {source}")]
    Unreadable {
        file: String,
        #[source]
        source: io::Error,
    },
    /// A file is not a stored schema.
    #[error("{file} is no schema that `annals defs compile` wrote: {source}")]
    Undecodable {
        file: String,
        #[source]
        source: SchemaDecodeError,
    },
}

impl WorldError {
    /// The errors of a folder that does not compile. Warnings are left out.
    pub(super) fn new(folder: &Path, mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
        let style = match io::stderr().is_terminal() {
            true => Style::Coloured,
            false => Style::Plain,
        };
        let first = diagnostics.iter().find(|one| is_nothing(one)).or(diagnostics.first());
        Self::Definitions {
            folder: folder.display().to_string(),
            problems: digest(&diagnostics, style),
            first: first.map_or(Rule::NoDefinitions, |one| one.rule),
            is_nothing: diagnostics.iter().any(is_nothing),
        }
    }

    /// Prints the error, and returns the exit code.
    pub(crate) fn print(&self) -> ExitCode {
        eprintln!("{self}");
        match self {
            Self::Definitions { is_nothing: false, .. } => ExitCode::FAILURE,
            _ => ExitCode::from(CANNOT_RUN),
        }
    }
}

/// The files below a world's folder.
///
/// # Errors
/// When there is no such folder.
pub(super) fn tree(folder: &Path) -> Result<Tree, WorldError> {
    look_for(folder).map_err(WorldError::NoFolder)?;
    Ok(Tree::read(folder))
}

/// Whether the diagnostic says that there is nothing to read: no definitions, or no folder.
pub(super) fn is_nothing(diagnostic: &Diagnostic) -> bool {
    match diagnostic.rule {
        Rule::NoDefinitions => true,
        rule => rule == Rule::Unreadable && diagnostic.place.file.is_empty(),
    }
}

/// The schema of a world's folder, or the one in a file.
pub(crate) fn schema(path: &Path) -> Result<Schema, WorldError> {
    if !path.is_file() {
        let Compiled {
            schema, diagnostics, ..
        } = compile(&tree(path)?);
        return schema.ok_or_else(|| WorldError::new(path, diagnostics));
    }
    let file = path.display().to_string();
    let bytes = fs::read(path).map_err(|source| WorldError::Unreadable {
        file: file.clone(),
        source,
    })?;
    Schema::decode(&bytes).map_err(|source| WorldError::Undecodable { file, source })
}
