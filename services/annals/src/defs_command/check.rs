//! `annals defs check`: every problem in every file, in one run.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_authoring::{to_json, to_sarif};
use annals_def::{Compiled, Severity, Survey, Tree, compile, digest, survey};
use clap::ValueEnum;

use super::{
    CANNOT_RUN, say, style,
    world::{is_nothing, tree},
};

#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// The world's folder: the one with `entities.xml`, or the one above its `scripts/`
    dir: PathBuf,
    /// Output format: text for people, JSON for programs, SARIF for code hosts and editors
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Fail on warnings too, and on advice if it is enabled
    #[arg(long)]
    strict: bool,
    /// Also give advice on bytes and work that could be saved
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
        let found = match tree(&self.dir) {
            Ok(tree) => self.compiled(&tree),
            Err(error) => return error.print(),
        };
        match self.format {
            Format::Text => say(&self.text(&found)),
            Format::Json => say(&to_json(&found)),
            Format::Sarif => say(&to_sarif(&found.diagnostics, &uri(&self.dir))),
        }
        if found.diagnostics.iter().any(is_nothing) {
            return ExitCode::from(CANNOT_RUN);
        }
        if found.schema.is_none() || self.refused(&found) > 0 {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    /// Number of findings that `--strict` does not accept in definitions that compile.
    fn refused(&self, found: &Compiled) -> usize {
        if !self.strict || found.schema.is_none() {
            return 0;
        }
        let findings = found.diagnostics.iter();
        findings.filter(|finding| finding.severity <= Severity::Lint).count()
    }

    fn compiled(&self, tree: &Tree) -> Compiled {
        if !self.lints {
            return compile(tree);
        }
        let Survey {
            schema,
            diagnostics,
            dialect,
            ..
        } = survey(tree);
        Compiled {
            schema,
            diagnostics,
            dialect,
        }
    }

    /// The findings, and the dialect in which the files were read: an error in one dialect may be correct in the other.
    fn text(&self, found: &Compiled) -> String {
        let (folder, dialect) = (self.dir.display(), &found.dialect);
        let gravest = found.diagnostics.iter().min_by_key(|diagnostic| diagnostic.severity);
        let mut verdict = format!("compiles: {}\n", found.verdict());
        match self.refused(found) {
            0 => {}
            1 => verdict += "strict: no, because of one finding\n",
            refused => verdict += &format!("strict: no, because of {refused} findings\n"),
        }
        let Some(gravest) = gravest else {
            let types = found.schema.as_ref().map_or(0, |schema| schema.types().len());
            let plural = if types == 1 { "" } else { "s" };
            return format!("{folder}: no problems in {types} entity type{plural}, {dialect}\n{verdict}");
        };
        let all = digest(&found.diagnostics, style());
        let read = match found.diagnostics.iter().any(is_nothing) {
            true => String::new(),
            false => format!("{folder}: {dialect}\n"),
        };
        let explain = format!("`annals defs explain {}` says more about a code", gravest.rule);
        format!("{all}{read}{verdict}{explain}\n")
    }
}

/// The folder as a log for other programs names it: relative if it is below the current one, else absolute.
fn uri(dir: &Path) -> String {
    let dir = dir.strip_prefix("./").unwrap_or(dir);
    if dir.is_absolute() {
        format!("file://{}", dir.display())
    } else {
        dir.display().to_string()
    }
}
