//! The definitions of a world, for services and commands: compiled, or refused with all that is wrong with them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use annals_def::{Schema, Severity, Style, check_dir, render};
use thiserror::Error;

/// The definitions do not compile.
#[derive(Debug, Error)]
#[error("{text}\nthe definitions in {world} do not compile", world = world.display())]
pub struct WorldError {
    world: PathBuf,
    /// Every diagnostic, with file and line.
    text: String,
}

/// Compiles the definitions in a folder.
///
/// # Errors
/// When one of them is wrong: every mistake is named with its file and line.
pub fn compile(world: &Path) -> Result<Arc<Schema>, WorldError> {
    let (schema, diagnostics) = check_dir(world);
    let broken = diagnostics.iter().any(|found| found.severity == Severity::Error);
    match schema.filter(|_| !broken) {
        Some(schema) => Ok(Arc::new(schema)),
        None => Err(WorldError {
            world: world.to_owned(),
            text: render(&diagnostics, Style::Plain),
        }),
    }
}
