//! `annals defs describe`: the cost, visibility and storage of each type and member.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_authoring::{Description, description_to_json, to_table};
use annals_def::{nearest, survey};
use clap::ValueEnum;

use super::{
    CANNOT_RUN,
    docs::write_page,
    say, style,
    world::{WorldError, tree},
};

#[derive(Debug, clap::Args)]
pub(super) struct Describe {
    /// The world's folder: the one with `entities.xml`, or the one above its `scripts/`
    #[arg(required_unless_present = "html")]
    dir: Option<PathBuf>,
    /// Only these types, services or user data objects
    types: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write a page as `annals defs docs` does, to this file or folder, or to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "format")]
    html: Option<Option<PathBuf>>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Json,
}

impl Describe {
    pub(super) fn run(self) -> ExitCode {
        // In `--html DIR` the value of the option is the world.
        let (dir, html) = match (self.dir, self.html) {
            (Some(dir), html) => (dir, html),
            (None, Some(Some(dir))) => (dir, Some(None)),
            (None, _) => {
                eprintln!("name the world's folder");
                return ExitCode::from(CANNOT_RUN);
            }
        };
        let description = match read(&dir) {
            Ok(description) => description,
            Err(code) => return code,
        };
        let description = match only(description, &self.types) {
            Ok(description) => description,
            Err(message) => {
                eprintln!("{message}");
                return ExitCode::from(CANNOT_RUN);
            }
        };
        if let Some(file) = html {
            return write_page(&description, &dir, file.as_deref());
        }
        match self.format {
            Format::Table => say(&to_table(&description, style())),
            Format::Json => say(&description_to_json(&description)),
        }
        ExitCode::SUCCESS
    }
}

/// Describes the definitions below a folder. If there is no schema, prints the cause and returns the exit code.
pub(super) fn read(dir: &Path) -> Result<Description, ExitCode> {
    let survey = match tree(dir) {
        Ok(tree) => survey(&tree),
        Err(error) => return Err(error.print()),
    };
    if let Some(description) = Description::of_survey(&survey) {
        return Ok(description);
    }
    Err(WorldError::new(dir, survey.diagnostics).print())
}

/// The description of the selected types and members, or why there is none.
fn only(mut description: Description, wanted: &[String]) -> Result<Description, String> {
    let names = description.names();
    for name in wanted {
        if !names.contains(&name.as_str()) {
            let hint = nearest(name, names.iter().copied()).map(|meant| format!("; did you mean {meant}?"));
            return Err(format!(
                "there is no type, service or user data object {name}{}",
                hint.unwrap_or_default()
            ));
        }
    }
    if !wanted.is_empty() {
        description.keep(wanted);
    }
    Ok(description)
}
