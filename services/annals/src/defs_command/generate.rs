//! `annals defs generate`: generates code from definitions, and checks whether a generated file is current.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use annals_authoring::codegen::{CodeParts, Model};
use clap::ValueEnum;

use super::{
    CANNOT_RUN, output,
    world::{WorldError, tree},
};

#[derive(Debug, clap::Args)]
pub(super) struct Generate {
    /// The world's folder: the one with `entities.xml`, or the one above its `scripts/`
    dir: PathBuf,
    /// Target language
    #[arg(long, value_enum)]
    lang: Language,
    /// Entity parts to generate; may be given several times. TypeScript supports clients only
    #[arg(long, value_enum, default_value = "all")]
    part: Vec<PartName>,
    /// Crate through which Rust code names those of Annals, such as annals_game, if the game depends on no other
    #[arg(long, value_name = "CRATE", value_parser = identifier)]
    through: Option<String>,
    /// Output file; standard output if omitted
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write nothing, and fail if the file is out of date
    #[arg(long, requires = "out")]
    check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    Rust,
    Typescript,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PartName {
    Base,
    Cell,
    Client,
    All,
}

impl Generate {
    pub(super) fn run(self) -> ExitCode {
        let is_client = |part: &PartName| matches!(part, PartName::Client | PartName::All);
        if self.lang == Language::Typescript && !self.part.iter().all(is_client) {
            eprintln!("TypeScript is for clients only: omit --part, or give --part client");
            return ExitCode::from(CANNOT_RUN);
        }
        if self.lang == Language::Typescript && self.through.is_some() {
            eprintln!("--through is for Rust: omit it");
            return ExitCode::from(CANNOT_RUN);
        }
        let tree = match tree(&self.dir) {
            Ok(tree) => tree,
            Err(error) => return error.print(),
        };
        let model = match Model::compile(&tree) {
            Ok(model) => model,
            Err(diagnostics) => return WorldError::new(&self.dir, diagnostics).print(),
        };
        let code = match self.lang {
            Language::Rust => match &self.through {
                Some(facade) => through(facade, &model.to_rust(self.parts())),
                None => model.to_rust(self.parts()),
            },
            Language::Typescript => model.to_typescript(),
        };
        match &self.out {
            None => {
                print!("{code}");
                ExitCode::SUCCESS
            }
            Some(file) if self.check => self.compare(file, &code),
            Some(file) => match output::write(file, &code) {
                Ok(()) => {
                    println!("{}: {} lines", file.display(), code.lines().count());
                    ExitCode::SUCCESS
                }
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::from(CANNOT_RUN)
                }
            },
        }
    }

    fn parts(&self) -> CodeParts {
        let has = |part| self.part.contains(&part) || self.part.contains(&PartName::All);
        CodeParts {
            base: has(PartName::Base),
            cell: has(PartName::Cell),
            client: has(PartName::Client),
        }
    }

    /// Reports whether a file is equal to the generated code.
    fn compare(&self, file: &Path, code: &str) -> ExitCode {
        let problem = match fs::read_to_string(file) {
            Ok(there) if there == code => {
                println!("{} is current", file.display());
                return ExitCode::SUCCESS;
            }
            Ok(_) => "is out of date",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "is missing",
            Err(error) => {
                eprintln!("{} cannot be read: {error}", file.display());
                return ExitCode::from(CANNOT_RUN);
            }
        };
        eprintln!("{} {problem}; run: {}", file.display(), self.command(file));
        ExitCode::FAILURE
    }

    /// The command that generates the file.
    fn command(&self, file: &Path) -> String {
        let name = |value: Option<clap::builder::PossibleValue>| {
            value.map_or_else(String::new, |value| value.get_name().to_owned())
        };
        let parts: String = self
            .part
            .iter()
            .map(|part| format!(" --part {}", name(part.to_possible_value())))
            .collect();
        let through = self.through.as_ref();
        let through = through.map_or_else(String::new, |facade| format!(" --through {facade}"));
        format!(
            "annals defs generate {} --lang {}{through}{parts} --out {}",
            self.dir.display(),
            name(self.lang.to_possible_value()),
            file.display()
        )
    }
}

/// A crate's name as Rust code has it.
fn identifier(name: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_allowed) {
        Ok(name.to_owned())
    } else {
        Err("a crate's name has letters, digits and _, such as annals_game".to_owned())
    }
}

/// Crates that generated Rust code names.
const CRATES: [&str; 5] = ["client", "def", "event", "ids", "node"];

/// Generated Rust code that names the crates of Annals through another one, which exports `annals_def` as `def`, and so
/// on.
pub(crate) fn through(facade: &str, code: &str) -> String {
    let named = |code: String, name: &&str| code.replace(&format!("annals_{name}::"), &format!("{facade}::{name}::"));
    CRATES.iter().fold(code.to_owned(), named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_named_through_another_one() {
        let code = "use annals_def::{Value, typed};\nconst A: annals_ids::Slot = annals_ids::Slot(1);\n";
        let expected = "use annals_game::def::{Value, typed};\n\
            const A: annals_game::ids::Slot = annals_game::ids::Slot(1);\n";
        assert_eq!(through("annals_game", code), expected);
        assert!(identifier("annals_game").is_ok());
        assert!(
            ["", "annals-game", "1st", "a::b"]
                .into_iter()
                .all(|name| identifier(name).is_err())
        );
    }
}
