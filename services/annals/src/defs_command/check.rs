//! `annals defs check`: every problem in every file, in one run.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_def::{Diagnostic, Rule, Severity, check_dir, digest, survey_dir, to_json, to_sarif};
use clap::ValueEnum;

use super::{CANNOT_RUN, say, style};

#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// The world's folder: the one with `entities.xml`, or the one above its `scripts/`
    dir: PathBuf,
    /// For people, for programs, or for code hosts and editors
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Let warnings, and advice if asked for, fail the check too
    #[arg(long)]
    strict: bool,
    /// Give advice too: what could be said with fewer bytes or less work
    #[arg(long)]
    lints: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
}

impl Check {
    pub(super) fn run(self) -> ExitCode {
        let (schema, diagnostics) = match self.lints {
            true => {
                let survey = survey_dir(&self.dir);
                (survey.schema, survey.diagnostics)
            }
            false => check_dir(&self.dir),
        };
        match self.format {
            Format::Text => say(&self.text(&diagnostics)),
            Format::Json => say(&to_json(&diagnostics)),
            Format::Sarif => say(&to_sarif(&diagnostics, &uri(&self.dir))),
        }
        let is_nothing = |d: &Diagnostic| match d.rule {
            Rule::NoDefinitions => true,
            rule => rule == Rule::Unreadable && d.place.file.is_empty(),
        };
        if diagnostics.iter().any(is_nothing) {
            return ExitCode::from(CANNOT_RUN);
        }
        let gravest = if self.strict { Severity::Lint } else { Severity::Error };
        if schema.is_none() || diagnostics.iter().any(|d| d.severity <= gravest) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    fn text(&self, diagnostics: &[Diagnostic]) -> String {
        match diagnostics.iter().min_by_key(|diagnostic| diagnostic.severity) {
            None => format!("{}: no problems\n", self.dir.display()),
            Some(gravest) => {
                let all = digest(diagnostics, style());
                format!("{all}`annals defs explain {}` says more about a code\n", gravest.rule)
            }
        }
    }
}

/// The folder as a log for other programs names it: below the current one as it is written, else from the root.
fn uri(dir: &Path) -> String {
    let dir = dir.strip_prefix("./").unwrap_or(dir);
    if dir.is_absolute() {
        format!("file://{}", dir.display())
    } else {
        dir.display().to_string()
    }
}
