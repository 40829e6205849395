//! The definitions of a world, for services and commands: compiled, or refused with all their errors.

use std::{
    fs, io,
    path::{self, Path, PathBuf},
    sync::Arc,
};

use annals_def::{Schema, Severity, Style, check_dir, render};
use thiserror::Error;

/// The named folder of definitions cannot be used.
#[derive(Debug, Error)]
pub enum NoFolder {
    /// It does not exist.
    #[error(
        "the world's folder {named} does not exist ({path}); name the folder with entities.xml, or the one above its scripts/",
        named = named.display(), path = path.display()
    )]
    Missing {
        /// The path as it was named.
        named: PathBuf,
        /// The resolved path.
        path: PathBuf,
    },
    /// It is not a folder.
    #[error(
        "{named} is a file; name its folder, {folder}",
        named = .0.display(), folder = .0.parent().filter(|folder| folder.file_name().is_some()).unwrap_or(Path::new(".")).display()
    )]
    NotAFolder(PathBuf),
    /// It cannot be read.
    #[error("the world's folder {named} cannot be read", named = named.display())]
    Unreadable {
        /// The path as it was named.
        named: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Why there are no definitions.
#[derive(Debug, Error)]
pub enum WorldError {
    /// There is no such folder.
    #[error(transparent)]
    NoFolder(#[from] NoFolder),
    /// The definitions do not compile.
    #[error("{text}\nthe definitions in {world} do not compile", world = world.display())]
    Broken {
        /// The folder.
        world: PathBuf,
        /// Every diagnostic, with file and line.
        text: String,
    },
}

/// Checks that there is a folder to read definitions from: a missing folder is a wrong path, not a wrong definition.
///
/// # Errors
/// When it is missing, no folder, or unreadable.
pub fn look_for(world: &Path) -> Result<(), NoFolder> {
    let named = world.to_owned();
    match fs::read_dir(world) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NoFolder::Missing {
            path: path::absolute(world).unwrap_or_else(|_| named.clone()),
            named,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(NoFolder::NotAFolder(named)),
        Err(source) => Err(NoFolder::Unreadable { named, source }),
    }
}

/// Compiles the definitions in a folder.
///
/// # Errors
/// When there is no such folder, or a definition is wrong: every error is reported with its file and line.
pub fn compile(world: &Path) -> Result<Arc<Schema>, WorldError> {
    look_for(world)?;
    let (schema, diagnostics) = check_dir(world);
    let broken = diagnostics.iter().any(|found| found.severity == Severity::Error);
    match schema.filter(|_| !broken) {
        Some(schema) => Ok(Arc::new(schema)),
        None => Err(WorldError::Broken {
            world: world.to_owned(),
            text: render(&diagnostics, Style::Plain),
        }),
    }
}
