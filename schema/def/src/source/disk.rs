//! Reads a game's folder into a [`Tree`]: the only module of this crate with file access.
#![allow(
    clippy::disallowed_methods,
    reason = "a caller that has the files in memory passes a Tree; this module reads them from disk"
)]

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::{MAX_FILE_BYTES, MAX_FILES, MAX_TREE_BYTES, Tree};
use crate::grammar::{LEDGER_FILE, ZONE_FOLDER};

/// Maximum depth of folders below the game's; `scripts/entity_defs/interfaces/npc/` is 4.
const MAX_FOLDER_DEPTH: usize = 8;

/// Maximum files and folders visited, relevant or not: a link can lead to a whole disk.
const MAX_ENTRIES: usize = 200_000;

impl Tree {
    /// Reads the files of the language from a game's folder: definitions, lists and type files with content, scripts by
    /// name. [`Tree::unread`] lists what cannot be read.
    ///
    /// A link to a folder is followed, as games share definitions that way; each folder is read once, even if several
    /// paths lead to it. A link to a file is followed if its target is in a folder that is read, so that a game never
    /// shows files of another.
    #[must_use]
    pub fn read(dir: &Path) -> Self {
        let mut reader = Reader {
            tree: Self::default(),
            bytes_left: MAX_TREE_BYTES,
            entries_left: MAX_ENTRIES,
            seen: BTreeSet::new(),
            links: Vec::new(),
        };
        reader.read_from(dir, "", 0);
        // After all else, so that a folder reachable with and without a link is read without it.
        while let Some((path, below, depth)) = reader.links.pop() {
            reader.read_from(&path, &below, depth);
        }
        for (below, reason) in &mut reader.tree.unread {
            // The game's folder, under the name that the caller gave.
            if below.is_empty() {
                *reason = no_folder(dir, reason);
            }
        }
        reader.tree
    }
}

/// The state of reading a game's folder.
struct Reader {
    tree: Tree,
    bytes_left: usize,
    entries_left: usize,
    /// The folders read so far, as canonical paths.
    seen: BTreeSet<PathBuf>,
    /// Links to folders, with their paths below the game's folder and their depths.
    links: Vec<(PathBuf, String, usize)>,
}

impl Reader {
    /// Reads a folder and its subfolders.
    fn read_from(&mut self, dir: &Path, below: &str, depth: usize) {
        match dir.canonicalize() {
            Ok(real) => self.read_folder(&real, below, depth),
            Err(error) => self.tree.cannot_read(below, &error.to_string()),
        }
    }

    /// Reads the folder at a canonical path.
    fn read_folder(&mut self, dir: &Path, below: &str, depth: usize) {
        if !self.seen.insert(dir.to_owned()) {
            let reason = "it is a link to a folder that was already read";
            return self.tree.cannot_read(below, reason);
        }
        let entries = match sorted_entries(dir, &mut self.entries_left) {
            Ok(entries) => entries,
            Err(error) => return self.tree.cannot_read(below, &error.to_string()),
        };
        for (name, path) in entries {
            let below = if below.is_empty() {
                name
            } else {
                format!("{below}/{name}")
            };
            if path.is_dir() {
                if depth < MAX_FOLDER_DEPTH && is_wanted_folder(&below) {
                    match path.is_symlink() {
                        true => self.links.push((path, below, depth + 1)),
                        false => self.read_folder(&path, &below, depth + 1),
                    }
                }
            } else if let Some(wanted) = wanted(&below) {
                if self.tree.files.len() == MAX_FILES {
                    let reason = format!("there are more than {MAX_FILES} files");
                    return self.tree.cannot_read(&below, &reason);
                }
                self.read_file(&path, below, wanted);
            }
        }
    }

    fn read_file(&mut self, path: &Path, below: String, wanted: Wanted) {
        if wanted == Wanted::Name {
            self.tree.files.insert(below, Vec::new());
            return;
        }
        let limit = self.bytes_left.min(MAX_FILE_BYTES + 1);
        match self.content(path, limit) {
            Ok(bytes) if bytes.len() == self.bytes_left => {
                let reason = format!("the files have more than {MAX_TREE_BYTES} bytes");
                self.tree.cannot_read(&below, &reason);
            }
            Ok(bytes) => {
                self.bytes_left -= bytes.len();
                self.tree.files.insert(below, bytes);
            }
            Err(error) => self.tree.cannot_read(&below, &error.to_string()),
        }
    }

    /// The content of a path, which must be a regular file of the game.
    fn content(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if path.is_symlink() {
            let real = path.canonicalize()?;
            if !real.ancestors().any(|folder| self.seen.contains(folder)) {
                return Err(io::Error::other("it is a link that leads out of the folder"));
            }
        }
        read_at_most(path, limit)
    }
}

/// Why a game's folder could not be read.
fn no_folder(dir: &Path, reason: &str) -> String {
    let name = dir.display();
    match dir.parent().filter(|_| dir.is_file()) {
        Some(parent) if parent.as_os_str().is_empty() => format!("`{name}` is a file: name its folder, `.`"),
        Some(parent) => format!("`{name}` is a file: name its folder, `{}`", parent.display()),
        None => format!("`{name}` cannot be read: {reason}"),
    }
}

/// Which part of a file is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Content,
    Name,
}

/// The definition folders, and the folders whose file names determine which parts an entity has.
const FOLDERS: [&str; 10] = [
    "scripts",
    "entity_defs",
    "component_defs",
    "service_defs",
    "user_data_object_defs",
    ZONE_FOLDER,
    "base",
    "cell",
    "client",
    "res",
];

/// The lists beside the folders of definitions.
const LISTED_FILES: [&str; 5] = [
    "entities.xml",
    "services.xml",
    "user_data_objects.xml",
    "components.xml",
    LEDGER_FILE,
];

/// Whether the folder is inside a definition folder, or on the path to one.
fn is_wanted_folder(below: &str) -> bool {
    let mut names = below.split('/');
    names.by_ref().all(|name| FOLDERS.contains(&name)) || is_definition_path(below) || is_among_zones(below)
}

/// Whether the folder is that of zones, or inside: files there that are none are reported.
fn is_among_zones(folder: &str) -> bool {
    let before = folder.split('/').take_while(|name| *name != ZONE_FOLDER);
    let depth = before.clone().count();
    before.into_iter().all(|name| FOLDERS.contains(&name)) && folder.split('/').count() > depth
}

fn is_definition_path(path: &str) -> bool {
    path.split('/')
        .any(|name| name.ends_with("_defs") && FOLDERS.contains(&name))
}

fn wanted(path: &str) -> Option<Wanted> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase())?;
    let is_list = LISTED_FILES.contains(&name);
    match ending.as_str() {
        "def" | "xml" if is_definition_path(folder) || is_list => Some(Wanted::Content),
        "xml" | "def" if is_among_zones(folder) => Some(Wanted::Content),
        "py" if ["base", "cell", "client"].iter().any(|part| folder.ends_with(part)) => Some(Wanted::Name),
        _ => None,
    }
}

fn sorted_entries(dir: &Path, left: &mut usize) -> io::Result<Vec<(String, PathBuf)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        *left = left.checked_sub(1).ok_or_else(|| {
            let what = format!("there are more than {MAX_ENTRIES} files and folders");
            io::Error::other(what)
        })?;
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
