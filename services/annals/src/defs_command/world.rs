//! Definitions as commands are given them: a world's folder, or a stored schema.

use std::{fs, path::Path};

use annals_def::{Schema, SchemaDecodeError, Severity, check_dir, render};
use thiserror::Error;

use super::style;

/// Why there is no schema.
#[derive(Debug, Error)]
pub(super) enum WorldError {
    /// The definitions have errors, which follow.
    #[error("the definitions in {folder} do not compile:\n{problems}`annals defs check {folder}` says the same")]
    Definitions { folder: String, problems: String },
    /// A file cannot be read.
    #[error("{file} cannot be read: {source}")]
    Unreadable {
        file: String,
        #[source]
        source: std::io::Error,
    },
    /// A file is no stored schema.
    #[error("{file} is no schema that `annals defs compile` wrote: {source}")]
    Undecodable {
        file: String,
        #[source]
        source: SchemaDecodeError,
    },
}

/// The schema of a world's folder, or the one that a file holds.
pub(super) fn schema(path: &Path) -> Result<Schema, WorldError> {
    let name = path.display().to_string();
    if !path.is_file() {
        let (schema, mut diagnostics) = check_dir(path);
        diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
        let problems = || render(&diagnostics, style());
        return schema.ok_or_else(|| WorldError::Definitions {
            folder: name,
            problems: problems(),
        });
    }
    let bytes = fs::read(path).map_err(|source| WorldError::Unreadable {
        file: name.clone(),
        source,
    })?;
    Schema::decode(&bytes).map_err(|source| WorldError::Undecodable { file: name, source })
}
