//! `annals new`: writes a small, complete game crate in a folder of its own, or a client in TypeScript for a world.
//!
//! The files are those of a folder in `services/annals/templates`, in which some words stand for others: the crate's name,
//! the same as an identifier, the path of this repository, and that of the world. The types of the definitions are
//! generated.

use std::{
    fs, io,
    path::{self, Path, PathBuf},
    process::ExitCode,
};

use annals_authoring::codegen::{CodeParts, Model};
use annals_def::{Style, Tree, render};
use annals_host::{
    telemetry::Chain,
    world::{NoFolder, look_for},
};
use tempfile::TempDir;
use thiserror::Error;

use crate::defs_command::generate::through;

/// A file of the template, in this build.
macro_rules! template {
    ($folder:literal, $path:literal) => {
        template!($folder, $path, $path)
    };
    // Another name in the repository, where Cargo, git or an editor would take it for one of its own files.
    ($folder:literal, $path:literal, $stored:literal) => {
        ($path, include_str!(concat!("../templates/", $folder, "/", $stored)))
    };
}

/// The files of a new game: path, and text.
const GAME: [(&str, &str); 24] = [
    template!("game", "Cargo.toml", "Cargo.toml.in"),
    template!("game", ".gitignore", "gitignore"),
    template!("game", "Makefile"),
    template!("game", "rustfmt.toml"),
    template!("game", "README.md", "README.md.in"),
    template!("game", "defs/entities.xml"),
    template!("game", "defs/entity_defs/alias.xml"),
    template!("game", "defs/entity_defs/Account.def"),
    template!("game", "defs/entity_defs/Avatar.def"),
    template!("game", "defs/entity_defs/Bush.def"),
    template!("game", "defs/entity_defs/Garden.def"),
    template!("game", "src/lib.rs"),
    template!("game", "src/account.rs"),
    template!("game", "src/avatar.rs"),
    template!("game", "src/bush.rs"),
    template!("game", "src/bin/annals-base.rs"),
    template!("game", "src/bin/annals-cell.rs"),
    template!("game", "tests/game.rs"),
    template!("game", "page/index.html"),
    template!("game", "page/style.css"),
    template!("game", "page/tsconfig.json"),
    template!("game", "page/main.ts"),
    template!("game", "page/scene.ts"),
    template!("game", "page/walker.ts"),
];

/// The files of a new client in TypeScript.
const TYPESCRIPT_CLIENT: [(&str, &str); 5] = [
    template!("typescript-client", "package.json", "package.json.in"),
    template!("typescript-client", ".gitignore", "gitignore"),
    template!("typescript-client", "README.md", "README.md.in"),
    template!("typescript-client", "tsconfig.json"),
    template!("typescript-client", "src/main.ts"),
];

/// Folder of the definitions in a new game.
const DEFINITIONS: &str = "defs/";

/// Words in the templates that stand for the crate's name, for the same as an identifier, for the repository, and for the
/// folder of a world's definitions.
const NAME: &str = "new-game";
const IDENTIFIER: &str = "new_game";
const REPOSITORY: &str = "ANNALS_REPOSITORY";
const WORLD: &str = "ANNALS_WORLD";

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

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Language {
    /// A game: definitions, behaviour in Rust, tests, and a page
    Rust,
    /// A client for Node in TypeScript, of a world that exists
    TypescriptClient,
}

/// Write a small, complete game, or a client.
#[derive(Debug, clap::Args)]
pub struct New {
    /// Folder to write: a new or an empty one. Its name is the crate's: lower-case letters, digits, - and _
    dir: PathBuf,
    /// What to write
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = Language::Rust)]
    lang: Language,
    /// Folder of the definitions of the client's world
    #[arg(long, value_name = "DIR", required_if_eq("lang", "typescript-client"))]
    world: Option<PathBuf>,
    /// Repository of Annals, on which it depends [default: the one that this program was built from]
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
        "the path {path:?} cannot be written into the files of a build: it has {character:?}; move the folder, or name \
         it by a symbolic link"
    )]
    Unwritable { path: PathBuf, character: char },
    #[error("a game has definitions of its own: omit --world, or add --lang typescript-client")]
    OwnWorld,
    #[error(transparent)]
    World(#[from] NoFolder),
    #[error("{text}\nthe definitions in {world} do not compile", world = world.display())]
    Broken { world: PathBuf, text: String },
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
                self.say_next(&name);
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("new: {}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }

    /// Prints what was written, and what to do next.
    fn say_next(&self, name: &str) {
        let dir = self.dir.display();
        let (what, steps): (_, &[&str]) = match self.lang {
            Language::Rust => (
                "game",
                &[
                    "make test    # its tests, in a realm in memory (minutes at first: it builds)",
                    "make demo    # a realm of separate processes, and bots",
                    "make play    # the same with a page, in which you play",
                    "make dev     # and built and replaced after each change, while you play",
                ],
            ),
            Language::TypescriptClient => (
                "client",
                &[
                    "npm run library                 # builds the client library, once",
                    "npm install && npm run build",
                    "npm start URL NAME PASSWORD     # README.md starts a realm for it",
                ],
            ),
        };
        println!("{dir}: the {what} {name}. Next:");
        println!("  cd {dir}");
        for step in steps {
            println!("  {step}");
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
        let files = match (self.lang, &self.world) {
            (Language::Rust, None) => game(&name, &repository)?,
            (Language::Rust, Some(_)) => return Err(NewError::OwnWorld),
            (Language::TypescriptClient, world) => {
                let world = world.as_deref().unwrap_or(Path::new("."));
                typescript_client(&name, &repository, world)?
            }
        };
        let scratch = TempDir::with_prefix_in(".annals-new-", parent).map_err(failed(parent))?;
        for (path, text) in files {
            let path = scratch.path().join(path);
            let folder = path.parent().unwrap_or(scratch.path());
            fs::create_dir_all(folder).map_err(failed(folder))?;
            fs::write(&path, text).map_err(failed(&path))?;
        }
        let lock = repository.join("Cargo.lock");
        if self.lang == Language::Rust && lock.is_file() {
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
        writable(found)
    }
}

/// A path that needs no quotes in a Makefile or in JSON.
fn writable(path: PathBuf) -> Result<PathBuf, NewError> {
    let special = |character: &char| !(character.is_alphanumeric() || "/._-+@,".contains(*character));
    match path.to_string_lossy().chars().find(special) {
        Some(character) => Err(NewError::Unwritable { path, character }),
        None => Ok(path),
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

/// Files with their paths and texts.
type Files = Vec<(String, String)>;

/// The files of a template, with the words in them replaced.
fn filled(template: &[(&str, &str)], words: &[(&str, &str)]) -> Files {
    let replaced = |text: &str| {
        let words = words.iter();
        words.fold(text.to_owned(), |text, (word, by)| text.replace(word, by))
    };
    let files = template.iter();
    files.map(|(path, text)| ((*path).to_owned(), replaced(text))).collect()
}

/// The files of a game of this name.
fn game(name: &str, repository: &Path) -> Result<Files, NewError> {
    let identifier = name.replace('-', "_");
    let repository = repository.to_string_lossy();
    let mut tree = Tree::new();
    let definitions = GAME
        .iter()
        .filter_map(|(path, text)| Some((path.strip_prefix(DEFINITIONS)?, *text)));
    definitions.for_each(|(path, text)| tree.insert(path, text));
    let model = Model::compile(&tree).map_err(|problems| NewError::Template(render(&problems, Style::Plain)))?;
    let mut files = filled(
        &GAME,
        &[(NAME, name), (IDENTIFIER, &identifier), (REPOSITORY, &repository)],
    );
    let behaviour = through("annals_game", &model.to_rust(CodeParts::SERVER));
    files.push(("src/defs.rs".to_owned(), behaviour));
    files.push(("page/world.ts".to_owned(), model.to_typescript()));
    Ok(files)
}

/// The files of a client of this name, for the world in a folder.
fn typescript_client(name: &str, repository: &Path, world: &Path) -> Result<Files, NewError> {
    look_for(world)?;
    let world = world.canonicalize().map_err(|source| NewError::File {
        path: world.to_owned(),
        source,
    })?;
    let world = writable(world)?;
    let model = Model::compile(&Tree::read(&world)).map_err(|problems| NewError::Broken {
        world: world.clone(),
        text: render(&problems, Style::Plain),
    })?;
    let (repository, world) = (repository.to_string_lossy(), world.to_string_lossy());
    let mut files = filled(
        &TYPESCRIPT_CLIENT,
        &[(NAME, name), (REPOSITORY, &repository), (WORLD, &world)],
    );
    files.push(("src/world.ts".to_owned(), model.to_typescript()));
    Ok(files)
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
        let repository = Path::new("/annals");
        let game = game("garden", repository).expect("the template compiles");
        let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
        let client = typescript_client("watcher", repository, &world).expect("the sample compiles");
        for (path, text) in game.into_iter().chain(client) {
            for word in [NAME, IDENTIFIER, REPOSITORY, WORLD] {
                assert!(!text.contains(word), "{path} has {word}");
            }
        }
    }
}
