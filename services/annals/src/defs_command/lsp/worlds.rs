//! The worlds that an editor works on: the files on disk, overlaid with the open ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use annals_authoring::editor::Draft;
use annals_def::{
    MAX_FILE_BYTES, MAX_TREE_BYTES, Tree,
    grammar::{FileKind, root_of},
};
use lsp_types::{TextDocumentContentChangeEvent, Url};

use super::position::Lines;

/// Maximum number of open files: far more than are in use.
const MAX_DOCUMENTS: usize = 1_024;

/// Maximum total size of open files, bytes: that of a whole world.
const MAX_OPEN_BYTES: usize = MAX_TREE_BYTES;

/// The limit that keeps the text of an open file from being used. The file on disk is used instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotTaken {
    #[error("more than {MAX_DOCUMENTS} files are open; close some and open the file again")]
    Number,
    #[error("the file has more than {MAX_FILE_BYTES} bytes; shorten it and open it again")]
    Length,
    #[error("the open files have more than {MAX_OPEN_BYTES} bytes; close some and open the file again")]
    Total,
}

/// All worlds of a session.
#[derive(Debug, Default)]
pub(super) struct Worlds {
    worlds: BTreeMap<PathBuf, World>,
    documents: BTreeMap<Url, Document>,
}

/// A world, by the folder that contains its `entity_defs`.
#[derive(Debug)]
pub(super) struct World {
    pub(super) draft: Draft,
    /// Whether it has changed since the last check.
    is_stale: bool,
    /// The last published diagnostics per file, where there were any.
    pub(super) published: BTreeMap<String, Vec<lsp_types::Diagnostic>>,
}

/// An open file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) path: PathBuf,
    pub(super) version: i32,
    pub(super) text: String,
}

/// A file of a world.
#[derive(Clone, Debug)]
pub(super) struct InWorld {
    pub(super) root: PathBuf,
    /// Its path below the root, with `/` between names.
    pub(super) file: String,
}

impl Worlds {
    /// Looks for a world in a folder, in the same places as `annals defs check`.
    pub(super) fn discover(&mut self, folder: &Path) {
        if let Some(below) = root_of(&Tree::read(folder)) {
            let root: PathBuf = folder.join(below).components().collect();
            self.load(&root);
        }
    }

    /// Removes the worlds below a folder and returns them: their diagnostics must be withdrawn.
    pub(super) fn forget(&mut self, folder: &Path) -> Vec<(PathBuf, World)> {
        let below: Vec<PathBuf> = self
            .worlds
            .keys()
            .filter(|root| root.starts_with(folder))
            .cloned()
            .collect();
        let is_open = |root: &PathBuf| self.documents.values().any(|document| document.path.starts_with(root));
        let unused: Vec<PathBuf> = below.into_iter().filter(|root| !is_open(root)).collect();
        unused
            .into_iter()
            .filter_map(|root| self.worlds.remove_entry(&root))
            .collect()
    }

    /// Loads a world from disk, if it is not known.
    fn load(&mut self, root: &Path) {
        if !self.worlds.contains_key(root) {
            let world = World {
                draft: Draft::new(self.tree(root)),
                is_stale: true,
                published: BTreeMap::new(),
            };
            self.worlds.insert(root.to_owned(), world);
        }
    }

    /// The files on disk, overlaid with the open ones.
    fn tree(&self, root: &Path) -> Tree {
        let mut tree = Tree::read(root);
        for document in self.documents.values() {
            if let Some(file) = below(root, &document.path) {
                tree.insert(file, document.text.clone());
            }
        }
        tree
    }

    /// Uses an open file's text in place of the file on disk.
    pub(super) fn open(&mut self, url: &Url, version: i32, text: String) -> Result<(), NotTaken> {
        let Ok(path) = url.to_file_path() else { return Ok(()) };
        // If it is opened twice, the newer text counts.
        self.documents.remove(url);
        let taken = self.room_for(text.len());
        if taken.is_ok() {
            let document = Document { path, version, text };
            self.documents.insert(url.clone(), document);
        } else {
            self.close(url);
        }
        if let Some(located) = self.locate(url) {
            self.load(&located.root);
            self.write(url, &located);
        }
        taken
    }

    /// Changes an open file. If the change is not accepted, the file counts as closed: later changes would apply to
    /// another text.
    pub(super) fn change(
        &mut self,
        url: &Url,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) -> Result<(), NotTaken> {
        let Some(mut document) = self.documents.remove(url) else {
            return Ok(());
        };
        document.version = version;
        for change in changes {
            match change.range {
                Some(range) => {
                    let bytes = Lines::of(&document.text).bytes(range);
                    document.text.replace_range(bytes, &change.text);
                }
                None => document.text = change.text,
            }
            if let Err(reason) = self.room_for(document.text.len()) {
                self.close(url);
                return Err(reason);
            }
        }
        self.documents.insert(url.clone(), document);
        if let Some(located) = self.locate(url) {
            self.write(url, &located);
        }
        Ok(())
    }

    /// Whether one more file of this many bytes may be open.
    fn room_for(&self, bytes: usize) -> Result<(), NotTaken> {
        let open: usize = self.documents.values().map(|document| document.text.len()).sum();
        if bytes > MAX_FILE_BYTES {
            Err(NotTaken::Length)
        } else if self.documents.len() >= MAX_DOCUMENTS {
            Err(NotTaken::Number)
        } else if open + bytes > MAX_OPEN_BYTES {
            Err(NotTaken::Total)
        } else {
            Ok(())
        }
    }

    fn write(&mut self, url: &Url, located: &InWorld) {
        let text = self.documents.get(url).map(|document| document.text.clone());
        if let (Some(world), Some(text)) = (self.worlds.get_mut(&located.root), text) {
            world.draft.write(&located.file, text);
            world.is_stale = true;
        }
    }

    /// Goes back to the file on disk.
    pub(super) fn close(&mut self, url: &Url) {
        let located = self.locate(url);
        self.documents.remove(url);
        if let Some(InWorld { root, .. }) = located {
            self.reread(&root);
        }
    }

    /// Rereads the disk after changes to these files: once per world, however many of its files changed. Returns the
    /// number of reads.
    pub(super) fn changed_on_disk(&mut self, paths: &BTreeSet<PathBuf>) -> usize {
        let mut stale = BTreeSet::new();
        let mut unknown = BTreeSet::new();
        for path in paths {
            let known: Vec<&PathBuf> = self.worlds.keys().filter(|root| path.starts_with(root)).collect();
            if known.is_empty() {
                unknown.extend(root_above(path));
            }
            stale.extend(known.into_iter().cloned());
        }
        stale.iter().for_each(|root| self.reread(root));
        unknown.iter().for_each(|root| self.load(root));
        stale.len() + unknown.len()
    }

    fn reread(&mut self, root: &Path) {
        let tree = self.tree(root);
        if let Some(world) = self.worlds.get_mut(root) {
            world.draft.replace(tree);
            world.is_stale = true;
        }
    }

    /// Whether a world has changed since its last check.
    pub(super) fn is_any_stale(&self) -> bool {
        self.worlds.values().any(|world| world.is_stale)
    }

    /// Checks one changed world.
    pub(super) fn check_one(&mut self) -> Option<(&Path, &mut World)> {
        let (root, world) = self.worlds.iter_mut().find(|(_, world)| world.is_stale)?;
        world.draft.check();
        world.is_stale = false;
        Some((root, world))
    }

    /// The world that contains a file, and the path in it.
    pub(super) fn locate(&self, url: &Url) -> Option<InWorld> {
        let path = url.to_file_path().ok()?;
        let known = self.worlds.keys().rev().find(|root| path.starts_with(root)).cloned();
        let root = known.or_else(|| root_above(&path))?;
        let file = below(&root, &path)?;
        Some(InWorld { root, file })
    }

    pub(super) fn draft(&self, located: &InWorld) -> Option<&Draft> {
        self.worlds.get(&located.root).map(|world| &world.draft)
    }

    /// The open files, with their URLs.
    pub(super) fn documents(&self) -> impl Iterator<Item = (&Url, &Document)> {
        self.documents.iter()
    }
}

/// The path of a file below a folder, with `/` between names.
fn below(root: &Path, path: &Path) -> Option<String> {
    let names = path.strip_prefix(root).ok()?.components();
    let names: Option<Vec<&str>> = names.map(|name| name.as_os_str().to_str()).collect();
    names.map(|names| names.join("/")).filter(|file| !file.is_empty())
}

/// The root of the world to which a file belongs, by its path: the folder below which this path is read.
fn root_above(path: &Path) -> Option<PathBuf> {
    // Many programs have folders of zones.
    let is_world = |root: &Path| root.join("entities.xml").is_file() || root.join("entity_defs").is_dir();
    let is_root = |root: &&Path| match below(root, path).and_then(|file| FileKind::of(&file)) {
        Some(FileKind::Zone) => is_world(root),
        kind => kind.is_some(),
    };
    path.ancestors().skip(1).find(is_root).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(name: &str) -> Url {
        Url::parse(&format!("file:///nowhere/{name}")).expect("a URL")
    }

    fn typed(text: &str) -> Vec<TextDocumentContentChangeEvent> {
        let range = Some(lsp_types::Range::default());
        let text = text.to_owned();
        vec![TextDocumentContentChangeEvent {
            range,
            range_length: None,
            text,
        }]
    }

    #[test]
    fn open_files_are_bounded_in_number_and_length() {
        let mut worlds = Worlds::default();
        for number in 0..MAX_DOCUMENTS {
            assert_eq!(worlds.open(&url(&number.to_string()), 0, String::new()), Ok(()));
        }
        assert_eq!(worlds.open(&url("more"), 0, String::new()), Err(NotTaken::Number));
        assert_eq!(worlds.open(&url("7"), 1, "again".to_owned()), Ok(()));
        assert_eq!(worlds.change(&url("7"), 2, typed("once ")), Ok(()));
        assert_eq!(worlds.documents[&url("7")].text, "once again");
        worlds.close(&url("0"));
        assert_eq!(worlds.open(&url("more"), 0, " ".repeat(MAX_FILE_BYTES)), Ok(()));
        assert_eq!(worlds.change(&url("more"), 1, typed(".")), Err(NotTaken::Length));
        // It counts as closed: later changes would apply to an unknown text.
        assert!(!worlds.documents.contains_key(&url("more")));
        assert_eq!(worlds.change(&url("more"), 2, typed("ignored")), Ok(()));
        assert_eq!(
            worlds.open(&url("more"), 0, " ".repeat(MAX_FILE_BYTES + 1)),
            Err(NotTaken::Length)
        );
    }

    #[test]
    fn all_changes_of_a_world_are_checked_in_one_pass() {
        let dir = tempfile::tempdir().expect("a folder");
        let game = dir.path().join("game");
        let file = |path: &str, text: &str| {
            let path = game.join("res/scripts").join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(&path, text).expect("a file");
            path
        };
        let paths = BTreeSet::from([
            file("entities.xml", "<root/>"),
            file("entity_defs/Avatar.def", "<root/>"),
            file("entity_defs/interfaces/Fighter.def", "<root/>"),
        ]);
        let mut worlds = Worlds::default();
        worlds.discover(&game);
        assert_eq!(worlds.worlds.keys().collect::<Vec<_>>(), [&game.join("res/scripts")]);
        file("entities.xml", "<root> <Avatar/> </root>");
        assert_eq!(worlds.changed_on_disk(&paths), 1);
        let draft = &worlds.worlds[&game.join("res/scripts")].draft;
        assert_eq!(draft.text("entities.xml"), Some("<root> <Avatar/> </root>"));
        // Files of an unknown world lead to its discovery.
        let mut worlds = Worlds::default();
        assert_eq!(worlds.changed_on_disk(&paths), 1);
        assert_eq!(
            worlds.changed_on_disk(&BTreeSet::from([dir.path().join("notes.xml")])),
            0
        );
    }

    #[test]
    fn the_total_size_of_open_files_is_bounded() {
        let mut worlds = Worlds::default();
        for number in 0..MAX_OPEN_BYTES / MAX_FILE_BYTES {
            assert_eq!(
                worlds.open(&url(&number.to_string()), 0, " ".repeat(MAX_FILE_BYTES)),
                Ok(())
            );
        }
        assert_eq!(worlds.open(&url("more"), 0, ".".to_owned()), Err(NotTaken::Total));
        worlds.close(&url("3"));
        assert_eq!(worlds.open(&url("more"), 0, ".".to_owned()), Ok(()));
    }

    #[test]
    fn the_world_folder_is_derived_from_a_file() {
        for (path, root) in [
            ("/g/scripts/entity_defs/Avatar.def", Some("/g/scripts")),
            ("/g/entity_defs/interfaces/Fighter.def", Some("/g")),
            ("/g/entity_defs/alias.xml", Some("/g")),
            ("/g/entities.xml", Some("/g")),
            ("/g/component_defs/Bag.def", Some("/g")),
            ("/g/readme.xml", None),
            ("/g/Avatar.def", None),
        ] {
            assert_eq!(root_above(Path::new(path)), root.map(PathBuf::from), "{path}");
        }
    }
}
