//! Which aliases are used by what: so that a mistake in one that nothing uses stops nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::FileId;

/// What uses aliases: files of definitions, and aliases themselves.
#[derive(Default)]
pub(super) struct UsedTypes<'s> {
    by_file: BTreeMap<FileId, BTreeSet<&'s str>>,
    by_alias: BTreeMap<&'s str, BTreeSet<&'s str>>,
}

impl<'s> UsedTypes<'s> {
    /// Notes that a type of this name is used: in the declaration of an alias, or in a file.
    pub(super) fn note(&mut self, by: Option<&'s str>, file: FileId, name: &'s str) {
        let users = match by {
            Some(alias) => self.by_alias.entry(alias).or_default(),
            None => self.by_file.entry(file).or_default(),
        };
        users.insert(name);
    }

    /// The names of types used by files of which `is_read` holds, directly and through aliases.
    pub(super) fn from(&self, is_read: impl Fn(FileId) -> bool) -> BTreeSet<&'s str> {
        let read = self.by_file.iter().filter(|(file, _)| is_read(**file));
        let mut left: Vec<&str> = read.flat_map(|(_, names)| names).copied().collect();
        let mut used = BTreeSet::new();
        while let Some(name) = left.pop() {
            if used.insert(name) {
                left.extend(self.by_alias.get(name).into_iter().flatten());
            }
        }
        used
    }
}
