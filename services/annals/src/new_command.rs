//! `annals new`: writes a small, complete game crate in a folder of its own.
//!
//! The files are those of `services/annals/templates/game`, in which three words stand for others: the crate's name, the
//! same as an identifier, and the path of this repository. `src/defs.rs` and `page/world.ts` are generated.

use std::{
    fs, io,
    path::{self, Path, PathBuf},
    process::ExitCode,
};

use annals_authoring::codegen::{CodeParts, Model};
use annals_def::{Style, Tree, render};
use annals_host::telemetry::Chain;
use tempfile::TempDir;
use thiserror::Error;

use crate::defs_command::generate::through;

/// A file of the template, in this build.
macro_rules! template {
    ($path:literal) => {
        template!($path, $path)
    };
    // Another name in the repository, where Cargo, git or an editor would take it for one of its own files.
    ($path:literal, $stored:literal) => {
        ($path, include_str!(concat!("../templates/game/", $stored)))
    };
}

/// The files of a new game: path, and text.
const FILES: [(&str, &str); 24] = [
    template!("Cargo.toml", "Cargo.toml.in"),
    template!(".gitignore", "gitignore"),
    template!("Makefile"),
    template!("rustfmt.toml"),
    template!("README.md", "README.md.in"),
    template!("defs/entities.xml"),
    template!("defs/entity_defs/alias.xml"),
    template!("defs/entity_defs/Account.def"),
    template!("defs/entity_defs/Avatar.def"),
    template!("defs/entity_defs/Bush.def"),
    template!("defs/entity_defs/Garden.def"),
    template!("src/lib.rs"),
    template!("src/account.rs"),
    template!("src/avatar.rs"),
    template!("src/bush.rs"),
    template!("src/bin/annals-base.rs"),
    template!("src/bin/annals-cell.rs"),
    template!("tests/game.rs"),
    template!("page/index.html"),
    template!("page/style.css"),
    template!("page/tsconfig.json"),
    template!("page/main.ts"),
    template!("page/scene.ts"),
    template!("page/walker.ts"),
];

/// Folder of the definitions in a new game.
const DEFINITIONS: &str = "defs/";

/// Words in the template that stand for the crate's name, for the same as an identifier, and for the repository.
const NAME: &str = "new-game";
const IDENTIFIER: &str = "new_game";
const REPOSITORY: &str = "ANNALS_REPOSITORY";

/// The crate that a game depends on, below the repository.
const GAME_CRATE: &str = "services/game";

/// Maximum length of a crate's name.
const MAX_NAME: usize = 64;

/// Names that Cargo refuses or that would hide a crate of the same name from the game.
const TAKEN: [&str; 9] = [
    "alloc",
    "annals",
    "annals-game",
    "core",
    "deps",
    "proc-macro",
    "std",
    "test",
    "build",
];

/// Write a small, complete game.
#[derive(Debug, clap::Args)]
pub struct New {
    /// Folder of the game: a new or an empty one. Its name is the crate's: lower-case letters, digits, - and _
    dir: PathBuf,
    /// Repository of Annals, on which the game depends [default: the one that this program was built from]
    #[arg(long, value_name = "PATH")]
    annals: Option<PathBuf>,
}

/// Why no game was written.
#[derive(Debug, Error)]
enum NewError {
    #[error("{} has no name that a crate can have: {why}; name another folder", dir.display())]
    Name { dir: PathBuf, why: &'static str },
    #[error("{} exists and is not an empty folder; name another folder", .0.display())]
    Exists(PathBuf),
    #[error("the folder {} does not exist; create it first", .0.display())]
    NoParent(PathBuf),
    #[error("the repository that this program was built from is not at {} any more; name one with --annals PATH",
        .0.display())]
    Gone(PathBuf),
    #[error("{} is not a repository of Annals: it has no {GAME_CRATE}/Cargo.toml; name another one with --annals PATH",
        .0.display())]
    NotAnnals(PathBuf),
    #[error(
        "the path of the repository, {path:?}, cannot be written into a Makefile: it has {character:?}; move the \
        repository, or name it by a symbolic link"
    )]
    Unwritable { path: PathBuf, character: char },
    #[error("{} cannot be written", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the template's definitions do not compile; this is a bug of `annals new`:\n{0}")]
    Template(String),
}

impl New {
    /// Writes the game; exit code 2 if that is not possible. Then nothing is left of it.
    #[must_use]
    pub fn run(self) -> ExitCode {
        match self.write() {
            Ok(name) => {
                let dir = self.dir.display();
                println!("{dir}: the game {name}. Next:");
                println!("  cd {dir}");
                println!("  make test    # its tests, in a realm in memory (minutes at first: it builds)");
                println!("  make demo    # a realm of separate processes, and bots");
                println!("  make play    # the same with a page, in which you play");
                println!("  make dev     # and built and replaced after each change, while you play");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("new: {}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }

    /// Writes all files into a temporary folder beside the wanted one, and renames it at the end.
    fn write(&self) -> Result<String, NewError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| NewError::File { path, source }
        };
        let dir = path::absolute(&self.dir).map_err(failed(&self.dir))?;
        let name = crate_name(&dir)?;
        let parent = free(&dir)?;
        let repository = self.repository()?;
        let scratch = TempDir::with_prefix_in(".annals-new-", parent).map_err(failed(parent))?;
        for (path, text) in files(&name, &repository)? {
            let path = scratch.path().join(path);
            let folder = path.parent().unwrap_or(scratch.path());
            fs::create_dir_all(folder).map_err(failed(folder))?;
            fs::write(&path, text).map_err(failed(&path))?;
        }
        let lock = repository.join("Cargo.lock");
        if lock.is_file() {
            // Cargo removes from it what the game does not need.
            fs::copy(&lock, scratch.path().join("Cargo.lock")).map_err(failed(&lock))?;
        }
        share(scratch.path()).map_err(failed(scratch.path()))?;
        // Replaces an empty folder, and no other.
        fs::rename(scratch.path(), &dir).map_err(failed(&dir))?;
        let _ = scratch.keep();
        Ok(name)
    }

    /// The absolute path of the repository.
    fn repository(&self) -> Result<PathBuf, NewError> {
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        let named = self.annals.as_deref().or(built_from).unwrap_or(Path::new("."));
        let is_annals = named.join(GAME_CRATE).join("Cargo.toml").is_file();
        let found = named.canonicalize().ok().filter(|_| is_annals);
        let Some(found) = found else {
            return Err(match self.annals {
                Some(_) => NewError::NotAnnals(named.to_owned()),
                None => NewError::Gone(named.to_owned()),
            });
        };
        let special = |character: &char| !(character.is_alphanumeric() || "/._-+@,".contains(*character));
        match found.to_string_lossy().chars().find(special) {
            Some(character) => Err(NewError::Unwritable { path: found, character }),
            None => Ok(found),
        }
    }
}

/// The name of the crate in a folder: that of the folder.
fn crate_name(dir: &Path) -> Result<String, NewError> {
    let refused = |why| NewError::Name {
        dir: dir.to_owned(),
        why,
    };
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let identifier = name.replace('-', "_");
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(refused("it must begin with a lower-case letter"));
    }
    if !name.chars().all(is_allowed) {
        return Err(refused("it may have lower-case letters, digits, - and _"));
    }
    if name.len() > MAX_NAME {
        return Err(refused("it may have 64 characters"));
    }
    if annals_authoring::codegen::is_keyword(&identifier) {
        return Err(refused("it is a keyword of Rust"));
    }
    if TAKEN.iter().any(|taken| taken.replace('-', "_") == identifier) {
        return Err(refused("another crate has this name"));
    }
    Ok(name.to_owned())
}

/// The existing parent of a folder that is empty or does not exist.
fn free(dir: &Path) -> Result<&Path, NewError> {
    let is_empty = || fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    if dir.symlink_metadata().is_ok() && !is_empty() {
        return Err(NewError::Exists(dir.to_owned()));
    }
    let parent = dir.parent().unwrap_or(dir);
    match parent.is_dir() {
        true => Ok(parent),
        false => Err(NewError::NoParent(parent.to_owned())),
    }
}

/// The files of a game of this name, with their texts.
fn files(name: &str, repository: &Path) -> Result<Vec<(String, String)>, NewError> {
    let identifier = name.replace('-', "_");
    let repository = repository.to_string_lossy();
    let filled = |text: &str| {
        let text = text.replace(NAME, name).replace(IDENTIFIER, &identifier);
        text.replace(REPOSITORY, &repository)
    };
    let mut tree = Tree::new();
    let definitions = FILES
        .iter()
        .filter_map(|(path, text)| Some((path.strip_prefix(DEFINITIONS)?, *text)));
    definitions.for_each(|(path, text)| tree.insert(path, text));
    let model = Model::compile(&tree).map_err(|problems| NewError::Template(render(&problems, Style::Plain)))?;
    let generated = [
        (
            "src/defs.rs".to_owned(),
            through("annals_game", &model.to_rust(CodeParts::SERVER)),
        ),
        ("page/world.ts".to_owned(), model.to_typescript()),
    ];
    let written = FILES.iter().map(|(path, text)| ((*path).to_owned(), filled(text)));
    Ok(written.chain(generated).collect())
}

/// Gives a folder the permissions of a new one: temporary folders are closed to others.
fn share(folder: &Path) -> io::Result<()> {
    let like = folder.join("src");
    fs::set_permissions(folder, fs::metadata(like)?.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_names_the_crate() {
        for good in ["garden", "my-garden_2"] {
            assert_eq!(crate_name(&Path::new("/games").join(good)).ok().as_deref(), Some(good));
        }
        let long = "a".repeat(MAX_NAME + 1);
        for (bad, why) in [
            ("Garden", "begin with a lower-case letter"),
            ("2nd", "begin with a lower-case letter"),
            ("my garden", "lower-case letters, digits"),
            ("gärten", "lower-case letters, digits"),
            ("match", "keyword"),
            ("annals-game", "another crate"),
            ("annals_game", "another crate"),
            (&long, "64 characters"),
        ] {
            let refused = crate_name(&Path::new("/games").join(bad)).expect_err(bad).to_string();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(crate_name(Path::new("/")).is_err());
    }

    #[test]
    fn no_word_of_the_template_is_left_in_a_new_game() {
        let files = files("garden", Path::new("/annals")).expect("the template compiles");
        for (path, text) in files {
            for word in [NAME, IDENTIFIER, REPOSITORY] {
                assert!(!text.contains(word), "{path} has {word}");
            }
        }
    }
}
