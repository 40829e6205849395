//! `annals defs`: a designer's definitions, checked and explained.

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_def::{Diagnostic, Rule, Severity, Style, check_dir, explain, nearest, render, to_json, to_sarif};
use clap::{Subcommand, ValueEnum};

/// Nothing could be checked, as opposed to: something is wrong.
const CANNOT_RUN: u8 = 2;

/// Check a world's definitions, and explain what is wrong.
#[derive(Debug, clap::Args)]
pub struct Defs {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Report every problem in every file; the exit code is 1 if there is one, 2 if there is nothing to check
    Check(Check),
    /// Explain a rule, with an example that breaks it and one that does not
    Explain(Explain),
}

impl Defs {
    /// Runs the command; 0 if all is well, 1 if there are problems, 2 if it could not run.
    #[must_use]
    pub fn run(self) -> ExitCode {
        match self.command {
            Commands::Check(check) => check.run(),
            Commands::Explain(explain) => explain.run(),
        }
    }
}

#[derive(Debug, clap::Args)]
struct Check {
    /// The world's folder: the one with `entities.xml`, or the one above its `scripts/`
    dir: PathBuf,
    /// For people, for programs, or for code hosts and editors
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Let warnings fail the check too
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
}

impl Check {
    fn run(self) -> ExitCode {
        let diagnostics = check_dir(&self.dir).1;
        match self.format {
            Format::Text => print!("{}", self.text(&diagnostics)),
            Format::Json => print!("{}", to_json(&diagnostics)),
            Format::Sarif => print!("{}", to_sarif(&diagnostics, &uri(&self.dir))),
        }
        if diagnostics.iter().any(|d| d.rule == Rule::NoDefinitions) {
            return ExitCode::from(CANNOT_RUN);
        }
        let gravest = if self.strict {
            Severity::Warning
        } else {
            Severity::Error
        };
        if diagnostics.iter().any(|d| d.severity <= gravest) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    fn text(&self, diagnostics: &[Diagnostic]) -> String {
        match diagnostics {
            [] => format!("{}: no problems\n", self.dir.display()),
            [first, ..] => {
                let all = render(diagnostics, style());
                format!("{all}`annals defs explain {}` says more about a code\n", first.rule)
            }
        }
    }
}

/// Colours for people, none for files and pipes.
fn style() -> Style {
    if std::io::stdout().is_terminal() {
        Style::Coloured
    } else {
        Style::Plain
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

#[derive(Debug, clap::Args)]
struct Explain {
    /// The rule's code, like D0201; without one, all rules are listed
    code: Option<String>,
}

impl Explain {
    fn run(self) -> ExitCode {
        let Some(code) = self.code else {
            for rule in Rule::ALL {
                println!("{rule}  {:<7}  {}", rule.text().severity, rule.text().title);
            }
            return ExitCode::SUCCESS;
        };
        let Some(rule) = Rule::with_code(&code) else {
            let codes: Vec<String> = Rule::ALL.iter().map(ToString::to_string).collect();
            let hint = match nearest(&code, codes.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean {meant}?"),
                None => "`annals defs explain` lists all".to_owned(),
            };
            eprintln!("there is no rule {code}; {hint}");
            return ExitCode::from(CANNOT_RUN);
        };
        print!("{}", explain(rule, style()));
        ExitCode::SUCCESS
    }
}
