//! `annals defs diff`: the effects of a change of definitions, whom they affect, and what to do.

use std::{path::PathBuf, process::ExitCode, str::FromStr};

use annals_authoring::{Audience, Class, Diff, diff};
use annals_def::{Rename, Renames};
use clap::ValueEnum;

use super::{CANNOT_RUN, world};

#[derive(Debug, clap::Args)]
pub(super) struct DiffCommand {
    /// The realm's current definitions: a world's folder, or a file that `annals defs compile` wrote
    old: PathBuf,
    /// The new definitions, in either form
    new: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// A rename: `Type.old=new` for a property or method, `Old=New` for an entity type
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<Rename>,
    /// Changes to allow: `migration` or `breaking`, for all or, as in `clients=breaking`, for stored, log, peers or
    /// clients
    #[arg(long, value_name = "[WHO=]CLASS")]
    allow: Vec<Allowance>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// A class of change that does not fail the comparison, for one audience or for all.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    audience: Option<Audience>,
    class: Class,
}

impl FromStr for Allowance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (audience, class) = match text.split_once('=') {
            Some((audience, class)) => (Some(audience), class),
            None => (None, text),
        };
        let wrong =
            || "write `migration` or `breaking`, or limit it as in `clients=breaking` to stored, log, peers or clients";
        let audience = audience.map(|word| Audience::ALL.into_iter().find(|audience| audience.word() == word));
        if audience == Some(None) {
            return Err(wrong().to_owned());
        }
        match class {
            "migration" | "breaking" => Ok(Self {
                audience: audience.flatten(),
                class: if class == "breaking" {
                    Class::Breaking
                } else {
                    Class::NeedsMigration
                },
            }),
            _ => Err(wrong().to_owned()),
        }
    }
}

impl DiffCommand {
    pub(super) fn run(self) -> ExitCode {
        let found = match self.compare() {
            Ok(found) => found,
            Err(code) => return code,
        };
        match self.format {
            Format::Text => print!("{}", found.to_text()),
            Format::Json => print!("{}", found.to_json()),
        }
        let is_allowed = |audience: &Audience| found.verdict(*audience) <= self.allowed(*audience);
        if Audience::ALL.iter().all(is_allowed) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// The differences. If nothing can be compared, prints the cause and returns the exit code.
    fn compare(&self) -> Result<Diff, ExitCode> {
        let [old, new] = [&self.old, &self.new].map(|path| world::schema(path).map_err(|error| error.print()));
        let (old, new) = (old?, new?);
        let renames = Renames::new(&old, &new, self.rename.iter().cloned()).map_err(|error| {
            eprintln!("{error}");
            ExitCode::from(CANNOT_RUN)
        })?;
        Ok(diff(&old, &new, &renames))
    }

    /// The most severe class that does not fail.
    fn allowed(&self, audience: Audience) -> Class {
        let meant = self
            .allow
            .iter()
            .filter(|allowance| allowance.audience.is_none_or(|meant| meant == audience));
        meant
            .map(|allowance| allowance.class)
            .max()
            .unwrap_or(Class::Compatible)
    }
}
