//! The one place of this crate that touches a disk: it reads a game's folder into a [`Tree`].
#![allow(
    clippy::disallowed_methods,
    reason = "whoever has files already hands the compiler a Tree; this is for everybody else"
)]

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{MAX_FILE_BYTES, MAX_FILES, MAX_TREE_BYTES, Tree};

/// Deepest folder below the game's that is looked into; `scripts/entity_defs/interfaces/npc/` is 4.
const MAX_FOLDER_DEPTH: usize = 8;

impl Tree {
    /// Reads what concerns the language from a game's folder: definitions, lists and type files whole, of scripts the
    /// names. What cannot be read is told by [`Tree::unread`].
    #[must_use]
    pub fn read(dir: &Path) -> Self {
        let mut tree = Self::default();
        let mut left = MAX_TREE_BYTES;
        tree.read_folder(dir, "", 0, &mut left);
        tree
    }

    fn read_folder(&mut self, dir: &Path, below: &str, depth: usize, left: &mut usize) {
        let entries = match sorted_entries(dir) {
            Ok(entries) => entries,
            Err(error) => return self.cannot_read(below, &error.to_string()),
        };
        for (name, path) in entries {
            let below = if below.is_empty() {
                name
            } else {
                format!("{below}/{name}")
            };
            if path.is_dir() {
                if depth < MAX_FOLDER_DEPTH && is_wanted_folder(&below) {
                    self.read_folder(&path, &below, depth + 1, left);
                }
            } else if let Some(wanted) = wanted(&below) {
                if self.files.len() == MAX_FILES {
                    return self.cannot_read(&below, &format!("there are more than {MAX_FILES} files"));
                }
                self.read_file(&path, below, wanted, left);
            }
        }
    }

    fn read_file(&mut self, path: &Path, below: String, wanted: Wanted, left: &mut usize) {
        if wanted == Wanted::Name {
            self.files.insert(below, Vec::new());
            return;
        }
        let limit = (*left).min(MAX_FILE_BYTES + 1);
        match read_at_most(path, limit) {
            Ok(bytes) if bytes.len() == *left => {
                self.cannot_read(&below, &format!("the files have more than {MAX_TREE_BYTES} bytes"));
            }
            Ok(bytes) => {
                *left -= bytes.len();
                self.files.insert(below, bytes);
            }
            Err(error) => self.cannot_read(&below, &error.to_string()),
        }
    }
}

/// How much of a file matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Content,
    Name,
}

/// The folders that hold definitions, and those whose file names tell which parts an entity has.
const FOLDERS: [&str; 9] = [
    "scripts",
    "entity_defs",
    "component_defs",
    "service_defs",
    "user_data_object_defs",
    "base",
    "cell",
    "client",
    "res",
];

/// Everything below a folder of definitions, and the way there.
fn is_wanted_folder(below: &str) -> bool {
    let mut names = below.split('/');
    names.by_ref().all(|name| FOLDERS.contains(&name)) || is_definition_path(below)
}

fn is_definition_path(path: &str) -> bool {
    path.split('/')
        .any(|name| name.ends_with("_defs") && FOLDERS.contains(&name))
}

fn wanted(path: &str) -> Option<Wanted> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase())?;
    let is_list = ["entities.xml", "services.xml", "user_data_objects.xml"].contains(&name);
    match ending.as_str() {
        "def" | "xml" if is_definition_path(folder) || is_list => Some(Wanted::Content),
        "py" if ["base", "cell", "client"].iter().any(|part| folder.ends_with(part)) => Some(Wanted::Name),
        _ => None,
    }
}

fn sorted_entries(dir: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        entries.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    entries.sort();
    Ok(entries)
}

fn read_at_most(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
