//! The input of the compiler: files by path.

use std::collections::BTreeMap;

/// Files by their path below the game's folder, `/` between names.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) unread: Vec<(String, String)>,
}

impl Tree {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), bytes.into());
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Records that a file or folder exists but cannot be read. For the game's folder itself, whose path is empty, the
    /// reason is a whole sentence.
    pub fn cannot_read(&mut self, path: &str, reason: &str) {
        self.unread.push((path.to_owned(), reason.to_owned()));
    }

    /// The files, ordered by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// Whether there is a file at this path.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// The unreadable files and folders, as path and reason.
    #[must_use]
    pub fn unread(&self) -> &[(String, String)] {
        &self.unread
    }
}
